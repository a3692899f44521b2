/* Scores of predictions against what was observed. */
#ifndef THIELE_METRICS_H
#define THIELE_METRICS_H

#include <thiele/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * NaN marks an undefined score: SMSE of constant targets, MSLL without training statistics, AUC of rows with a
 * single label, all but the last four for classes (ordered ones also have a CRPS), and those four for numbers.
 */
typedef struct thiele_scores {
    int64_t rows;
    double rmse; /* root of the mean squared error, in the units of the target */
    double mae;  /* mean absolute error */
    double smse; /* mean squared error over the test targets' population variance: 1 is no better than their mean */
    double nlpd; /* mean of -log p(y), nats: lower is better */
    double msll; /* nlpd minus that of a Gaussian with the training targets' mean and variance: below 0 is better */
    double crps; /* continuous ranked probability score, in the units of the target; for ordered classes, in steps */
    double coverage50; /* fraction of targets inside the central 50% interval: should be near 0.5 */
    double coverage90; /* of the 90% interval */
    double coverage95; /* of the 95% interval */
    double error_rate; /* class targets: the fraction whose most probable class is wrong */
    double nlp;        /* class targets: mean of -log p(class), nats */
    double brier;      /* class targets: mean of the Brier score, from 0 to 2 */
    double auc;        /* class targets: thiele_score_auc, 0.5 by chance, 1 at best */
} thiele_scores;

/*
 * Gaussian predictions N(mean_i, variance_i) against y_i, i < n. train_mean and train_variance are those of the
 * training targets (population variance); NaN if unknown. Errors: ARGUMENT (n < 1, a variance that is not positive: the
 * message says which).
 */
THIELE_API thiele_status thiele_score_gaussian(thiele_context *ctx, int64_t n, const double *y, const double *mean,
                                               const double *variance, double train_mean, double train_variance,
                                               thiele_scores *scores);
/* The CRPS of one Gaussian prediction: sd [z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)], z = (y - mean)/sd. */
THIELE_API double thiele_crps_gaussian(double y, double mean, double variance);

/*
 * Classes: probability is classes x n, column-major (one row of data per column), label in 0..classes-1. error_rate:
 * the fraction whose most probable class (the lowest on a tie) is not the label; nlp: the mean of -log
 * probability[label].
 */
THIELE_API thiele_status thiele_score_classes(thiele_context *ctx, int64_t n, int classes, const int *label,
                                              const double *probability, double *error_rate, double *nlp);
/*
 * The area under the ROC curve: the probability that a row with a label is given a higher probability of it than a
 * row without, ties counting half. For more than two classes, the mean over those that some rows have and others lack;
 * NaN if there are none. Arguments as above. Errors: ARGUMENT (no rows), MEMORY. O(classes n log n).
 */
THIELE_API thiele_status thiele_score_auc(thiele_context *ctx, int64_t n, int classes, const int *label,
                                          const double *probability, double *auc);
/* The Brier score of one row: the sum over classes of (probability - [class is the label])^2. */
THIELE_API double thiele_brier(int classes, int label, const double *probability);

#ifdef __cplusplus
}
#endif
#endif

/* Scores of predictions, collected block by block. */
#ifndef THI_SCORE_H
#define THI_SCORE_H

#include "model/outputs.h"

typedef struct thi_scorer {
    const thiele_model *model;
    thiele_predict_options options; /* the quantiles of the coverage */
    bool densities;                 /* scores of numbers come from densities: the predictions are no Gaussians */
    thi_outputs outputs;
    int64_t rows, capacity;
    bool quick, bare; /* without CRPS and intervals; and without moments */
    /* Of all rows, P x rows each; of classes as keep_label says. */
    double *y, *mean, *variance, *loss, *crps;
    unsigned char *inside; /* bit i: in the i-th of the central intervals */
    /* Of classes, unless quick, for what has to see all rows at once: classes x rows, and the class of each row. */
    double *probability;
    int *label;
} thi_scorer;

thiele_status thi_scorer_open(thi_scorer *scorer, thiele_context *ctx, const thiele_model *model, int64_t capacity,
                              thi_scoring how);
void thi_scorer_close(thi_scorer *scorer);
/* y is P x n in the units of the model (NaN: missing), mu and v are Q x n x K. */
thiele_status thi_scorer_add(thi_scorer *scorer, thiele_context *ctx, int64_t n, const double *y, const double *mu,
                             const double *v);
/* Adds up, of classes, rows by class and guess: classes x classes. Not of a quick scorer. */
void thi_scorer_confusion(const thi_scorer *scorer, int64_t *confusion);
/* scores: one of each target. Error: DATA when there are no rows. */
thiele_status thi_scorer_finish(thi_scorer *scorer, thiele_context *ctx, thiele_scores *scores);

/* Of row i and target p so far, at = i P + p; NaN where it is missing: -log p(y), nats, in the units of the target. */
double thi_scorer_loss(const thi_scorer *scorer, int64_t at);
/* (y - mean)^2, in the squared units of the target; of a class its Brier score. */
double thi_scorer_square(const thi_scorer *scorer, int64_t at);

/* Where losses go: that of target p of row i of a table to loss[i stride + p]. */
typedef struct thi_losses {
    double *loss, *square; /* NULL: not wanted */
    int64_t stride;
} thi_losses;
/* Losses of a table, targets x rows, NaN of rows that are left out, and scores of the targets. NULL: not wanted. */
thiele_status thi_model_losses(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                               const thiele_predict_options *options, double *loss, double *square,
                               thiele_scores *scores);

/* No rows, and NaN for each score. */
extern const thiele_scores thi_no_scores;

/*
 * metrics.c: what is known of errors without the density: rmse, mae, smse, and in msll minus the loss of a Gaussian
 * with the training targets' mean and variance (NaN where that is no yardstick).
 */
void thi_score_errors(int64_t n, const double *y, const double *mean, double train_mean, double train_variance,
                      thiele_scores *scores);

#endif

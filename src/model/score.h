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
    bool quick;
    /* Of all rows, P x rows each; of classes as keep_label says. */
    double *y, *mean, *variance, *loss, *crps;
    unsigned char *inside; /* bit i: in the i-th of the central intervals */
} thi_scorer;

/* quick: without the coverage of intervals where that takes quantiles, and CRPS where that takes integrals. */
thiele_status thi_scorer_open(thi_scorer *scorer, thiele_context *ctx, const thiele_model *model, int64_t capacity,
                              bool quick);
void thi_scorer_close(thi_scorer *scorer);
/* y is P x n in the units of the model (NaN: missing), mu and v are Q x n x K. */
thiele_status thi_scorer_add(thi_scorer *scorer, thiele_context *ctx, int64_t n, const double *y, const double *mu,
                             const double *v);
/* -log p(y) of a target, in the units of the data, at place row * P + target of those added; NaN: it is missing. */
double thi_scorer_loss(const thi_scorer *scorer, int64_t at);
/* scores: one of each target. Error: DATA when there are no rows. */
thiele_status thi_scorer_finish(thi_scorer *scorer, thiele_context *ctx, thiele_scores *scores);

/* No rows, and NaN for each score. */
extern const thiele_scores thi_no_scores;

/*
 * metrics.c: what is known of errors without the density: rmse, mae, smse, and in msll minus the loss of a Gaussian
 * with the training targets' mean and variance (NaN where that is no yardstick).
 */
void thi_score_errors(int64_t n, const double *y, const double *mean, double train_mean, double train_variance,
                      thiele_scores *scores);

#endif

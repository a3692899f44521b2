/*
 * From marginals of the latent functions to what is predicted, in the units of the data: moments, class probabilities,
 * quantiles, draws. Buffers for one block of rows are allocated once.
 */
#ifndef THI_OUTPUTS_H
#define THI_OUTPUTS_H

#include "expect/expect.h"
#include "expect/parallel.h"
#include "model/model.h"

typedef struct thi_outputs {
    const thiele_model *model;
    const thiele_predict_options *options;
    bool latent;
    int outputs, classes; /* as in thiele_prediction */
    double *mean, *variance, *probability, *quantiles, *samples;
    double *gathered;   /* of a mixture: the marginals of a block */
    bool bare;          /* before calibration */
    thi_spread *spread; /* outputs x rows; NULL: not needed */
    thi_providers providers;
} thi_outputs;

/* Room for at most `rows` rows. Errors: MEMORY; UNSUPPORTED for quantiles of unordered classes. */
thiele_status thi_outputs_open(thi_outputs *outputs, thiele_context *ctx, const thiele_model *model,
                               const thiele_predict_options *options, int64_t rows);
/* The same of predictions as they are before calibration; of numbers with their spread, units of the model. */
thiele_status thi_outputs_open_bare(thi_outputs *outputs, thiele_context *ctx, const thiele_model *model,
                                    const thiele_predict_options *options, int64_t rows);
void thi_outputs_close(thi_outputs *outputs);
/* mu, v: Q x n x K; row: the numbers of the rows, which draws depend on; may be NULL without them. */
thiele_status thi_outputs_make(thi_outputs *outputs, thiele_context *ctx, int64_t n, const int64_t *row,
                               const double *mu, const double *v);

/*
 * The same for observations, at most THI_EXPECT_BLOCK rows, on the calling thread with a provider of the caller's.
 * Nothing is allocated, but for draws.
 */
thiele_status thi_outputs_observe(thi_outputs *outputs, thi_expect *expect, thiele_context *ctx, int64_t n,
                                  const int64_t *row, const double *mu, const double *v);

/* --- calibrated.c: for the block of rows that begins with `first` --- */
bool thi_outputs_calibrated(const thi_outputs *outputs);
/* Whether the law of each output is a Gaussian with its mean and variance, but for calibration. */
bool thi_model_is_normal(const thiele_model *model);
/* The spread of its numbers, whose moments are there, in the units of the model. */
thiele_status thi_outputs_spread(thi_outputs *outputs, thi_expect *expect, thiele_context *ctx,
                                 const thi_marginals *part, int64_t first);
/* What calibration makes of its n rows: variances, quantiles and draws of numbers, or probabilities and draws of
 * labels.
 */
void thi_outputs_calibrate(thi_outputs *outputs, thiele_context *ctx, const int64_t *row, int64_t first, int64_t n);

/* Room for the marginals of the block of rows that begins with `first`; NULL for one component. */
double *thi_gathered_part(const thi_outputs *outputs, int64_t first);
/*
 * Rows first .. first + m->n - 1 of all n rows as the expectations take them, at most THI_EXPECT_BLOCK; gathered (2 Q K
 * numbers a row) is used where there are several components.
 */
void thi_marginals_part(thi_marginals *part, const thiele_model *model, int64_t n, const double *mu, const double *v,
                        int64_t first, int64_t count, double *gathered);

#endif

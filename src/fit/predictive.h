/*
 * The noise of predictions. A variational bound explains what its basis cannot by noise, while predictions count the
 * same once more as the variance that is left of the prior: together they promise too little. The rows themselves say
 * what is right: the noise s2 and the factor tau <= 1 of the variances that maximise the log density of rows at
 * predictions that leave each of them out. q stays as it is, and remembers the noise that it was made with.
 */
#ifndef THI_PREDICTIVE_H
#define THI_PREDICTIVE_H

#include "fit/search.h"
#include "fit/source.h"

/* Rows as predictions without them see them: squared errors, variances of f. */
typedef struct thi_left_out {
    int64_t n;
    double *error2, *v;
} thi_left_out;
/* Their mean squared error. */
double thi_left_out_error(const thi_left_out *rows);

/*
 * For Gaussian noise, one target, and a posterior of one component whose rows had the noise of the likelihood as the
 * whole of theirs (not FITC and its kin). hypers and spec get the noise of predictions, the predictor the rest. Nothing
 * is changed where the noise was given, or where the basis leaves nothing unexplained. Some 2,000 predictions.
 */
thiele_status thi_predictive_noise(thiele_context *ctx, const thi_source *source, thi_spec *spec, thi_hypers *hypers,
                                   thi_predictor *latent);
/* The same for one of several targets, from rows that the caller has left out of its posterior; none: nothing is
 * changed. */
thiele_status thi_predictive_choose(thiele_context *ctx, const thi_left_out *rows, thi_spec *spec, thi_hypers *hypers,
                                    int target, thi_predictor *latent);
/* Back to the noise that q is made with, before it is made again. */
thiele_status thi_predictive_undo(thiele_context *ctx, thi_spec *spec, thi_hypers *hypers);

#endif

/*
 * Judging what a fit knows by rows: the mean log density of their targets at the predictions, the same for posteriors
 * of all kinds whatever their own objectives are.
 */
#ifndef THI_JUDGE_H
#define THI_JUDGE_H

#include "fit/search.h"

/* Marginals (Q x n) of Q latent functions with one component each; rows' offsets are added to the first. */
thiele_status thi_latent_marginals(thiele_context *ctx, int Q, const thi_predictor *latent, const thi_rows *rows,
                                   double *mu, double *v);
/*
 * Mean log predictive density (nats a row, units of the model) of the rows at posteriors of one component, one a latent
 * function; -infinity where a prediction is not finite.
 */
thiele_status thi_judge(thiele_context *ctx, const thi_spec *spec, const thi_predictor *latent, const thi_rows *rows,
                        double *score);
/* The same for a method's posterior of `train` at the specification's present values; -infinity where it has none. */
thiele_status thi_judge_objective(thiele_context *ctx, const thi_spec *spec, const thi_objective *objective,
                                  const thi_rows *train, const thi_rows *rows, double *score);

#endif

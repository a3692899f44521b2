/*
 * Predictions when the latents have a mixture of Gaussians for a posterior: moments by the law of total variance, log
 * densities and class probabilities by weighted sums over the components. One component costs nothing extra.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"
#include "likelihood/special.h"

/* What one component says: THI_EXPECT_BLOCK times the most that a row may have. */
static thiele_status work_space(thi_space *space, thiele_context *ctx)
{
    int64_t classes = space->lik->classes > 2 ? space->lik->classes : 2;
    int64_t each = 2 * (int64_t)space->P > classes ? 2 * (int64_t)space->P : classes;
    return space->mixed != NULL ? THIELE_OK
                                : thi_alloc(ctx, &space->mixed, (size_t)(THI_EXPECT_BLOCK * each), sizeof(double));
}

thiele_status thi_mixture_predict(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, double *mean,
                                  double *variance)
{
    int64_t all = m->n * expect->lik->outputs, step = m->n * expect->lik->latents;
    thiele_status status = thi_predict_block(expect, ctx, m->n, m->mu, m->v, mean, variance);
    if (status != THIELE_OK || m->components == 1) {
        return status;
    }
    THI_TRY(work_space(expect->space, ctx));
    double *own = expect->space->mixed, *spread = own + all, sum = m->weight[0];
    for (int64_t i = 0; i < all; i++) {
        variance[i] *= sum;
    }
    /* Running sums about the running mean: nothing large is subtracted. */
    for (int k = 1; k < m->components; k++) {
        double pi = m->weight[k];
        THI_TRY(thi_predict_block(expect, ctx, m->n, m->mu + k * step, m->v + k * step, own, spread));
        sum += pi;
        for (int64_t i = 0; i < all && pi > 0; i++) {
            double away = own[i] - mean[i];
            mean[i] += away * pi / sum;
            variance[i] += pi * (spread[i] + away * (own[i] - mean[i]));
        }
    }
    for (int64_t i = 0; i < all; i++) {
        variance[i] /= sum;
    }
out:
    return status;
}

thiele_status thi_mixture_log_predictive(thi_expect *expect, thiele_context *ctx, const thi_marginals *m,
                                         const double *y, double *out)
{
    int64_t step = m->n * expect->lik->latents;
    thiele_status status = thi_log_predictive_block(expect, ctx, m->n, y, m->mu, m->v, out);
    if (status != THIELE_OK || m->components == 1) {
        return status;
    }
    THI_TRY(work_space(expect->space, ctx));
    for (int k = 0; k < m->components; k++) {
        double *own = k == 0 ? out : expect->space->mixed;
        if (k > 0) {
            THI_TRY(thi_log_predictive_block(expect, ctx, m->n, y, m->mu + k * step, m->v + k * step, own));
        }
        for (int64_t i = 0; i < m->n; i++) {
            double one = own[i] + log(m->weight[k]);
            out[i] = k == 0 ? one : thi_log_add(out[i], one);
        }
    }
out:
    return status;
}

thiele_status thi_mixture_probabilities(thi_expect *expect, thiele_context *ctx, const thi_marginals *m,
                                        double *probability)
{
    int64_t step = m->n * expect->lik->latents;
    thiele_status status = thi_probabilities_block(expect, ctx, m->n, m->mu, m->v, probability);
    if (status != THIELE_OK || m->components == 1) {
        return status;
    }
    THI_TRY(work_space(expect->space, ctx));
    int64_t all = m->n * (expect->lik->ops->support == THI_SUPPORT_BINARY ? 2 : expect->lik->classes);
    for (int k = 0; k < m->components; k++) {
        double *own = k == 0 ? probability : expect->space->mixed;
        if (k > 0) {
            THI_TRY(thi_probabilities_block(expect, ctx, m->n, m->mu + k * step, m->v + k * step, own));
        }
        for (int64_t i = 0; i < all; i++) {
            probability[i] = (k == 0 ? 0 : probability[i]) + m->weight[k] * own[i];
        }
    }
out:
    return status;
}

thiele_status thi_gather(thi_space *space, thiele_context *ctx, const thi_marginals *m, int64_t i, thi_marginals *row)
{
    int64_t Q = space->Q, K = m->components;
    thiele_status status = THIELE_OK;
    if (space->gathered == NULL || space->components < K) {
        status = thi_grow(ctx, &space->gathered, (size_t)(2 * (K * Q + space->P)), sizeof(double));
    }
    if (status != THIELE_OK) {
        return status;
    }
    space->components = (int)K;
    double *mu = space->gathered, *v = mu + K * Q;
    for (int64_t k = 0; k < K; k++) {
        memcpy(mu + k * Q, m->mu + (k * m->n + i) * Q, (size_t)Q * sizeof *mu);
        memcpy(v + k * Q, m->v + (k * m->n + i) * Q, (size_t)Q * sizeof *v);
    }
    *row = (thi_marginals){1, m->components, m->weight, mu, v};
    return THIELE_OK;
}

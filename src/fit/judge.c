/* The mean log predictive density of rows. Predictions of n rows, and an average over f for each of them. */
#include "fit/judge.h"

#include <math.h>

#include "expect/parallel.h"

thiele_status thi_latent_marginals(thiele_context *ctx, int Q, const thi_predictor *latent, const thi_rows *rows,
                                   double *mu, double *v)
{
    int64_t n = rows->n, clipped = 0;
    double *own = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &own, (size_t)(2 * n), sizeof *own));
    for (int q = 0; q < Q; q++) {
        THI_TRY(thi_predictor_marginals(&latent[q], ctx, n, rows->X, own, own + n, &clipped));
        for (int64_t i = 0; i < n; i++) {
            mu[i * Q + q] = own[i] + (q == 0 && rows->offset != NULL ? rows->offset[i] : 0.0);
            v[i * Q + q] = own[n + i];
        }
    }
out:
    thi_free(own);
    return status;
}

typedef struct question {
    const thi_rows *rows;
    int64_t latents;
    const double *mu, *v;
    double *log_p;
} question;

static thiele_status ask_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    const question *q = arg;
    int64_t at = row * q->latents;
    return thi_log_predictive_block(expect, ctx, n, q->rows->y + row * q->rows->outputs, q->mu + at, q->v + at,
                                    q->log_p + row);
}

thiele_status thi_judge(thiele_context *ctx, const thi_spec *spec, const thi_predictor *latent, const thi_rows *rows,
                        double *score)
{
    int64_t n = rows->n, Q = spec->latents.count;
    double *mu = NULL, sum = 0.0, count = thi_rows_count(rows);
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &mu, (size_t)(2 * n * Q + n), sizeof *mu));
    double *v = mu + n * Q, *log_p = v + n * Q;
    THI_TRY(thi_latent_marginals(ctx, spec->latents.count, latent, rows, mu, v));
    question asked = {rows, Q, mu, v, log_p};
    THI_TRY(thi_expect_rows(spec->lik, ctx, NULL, n, ask_block, &asked));
    for (int64_t i = 0; i < n; i++) {
        sum += (rows->weight != NULL ? rows->weight[i] : 1.0) * log_p[i] / count;
    }
    *score = isnan(sum) ? -INFINITY : sum;
out:
    thi_free(mu);
    return status;
}

thiele_status thi_judge_objective(thiele_context *ctx, const thi_spec *spec, const thi_objective *objective,
                                  const thi_rows *train, const thi_rows *rows, double *score)
{
    int Q = spec->latents.count;
    thi_predictor *latent = NULL;
    thiele_status status;
    *score = -INFINITY;
    THI_TRY(thi_alloc(ctx, &latent, (size_t)Q, sizeof *latent));
    thi_fitted fitted = {.latent = latent};
    status = thi_freeze(ctx, objective, spec, train, &fitted);
    if (status == THIELE_OK) {
        status = thi_judge(ctx, spec, latent, rows, score);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx);
        status = THIELE_OK;
    }
out:
    for (int q = 0; latent != NULL && q < Q; q++) {
        thi_predictor_clear(&latent[q]);
    }
    thi_free(latent);
    return status;
}

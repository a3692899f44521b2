/* The distribution function of y. Each value is one average over f a component, of some 10 to 100 points. */
#include "expect/predictive_cdf.h"

#include <math.h>

static void evaluate_cdf(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    const double *at = in->extra;
    (void)y;
    for (int64_t i = 0; i < n; i++) {
        value[i] = in->lik->ops->cdf(in->lik, *at, f + i * in->lik->latents);
    }
}

static void reduce_cdf(const thi_integrand *in, const thi_points *p, double *result)
{
    (void)in;
    for (int64_t k = 0; k < p->count; k++) {
        result[0] += p->w[k] * p->value[p->at + k];
    }
}

static bool settled_cdf(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                        const double *now)
{
    (void)in;
    (void)centre;
    return fabs(now[0] - before[0]) <= 100 * tolerance * fmin(now[0], 1 - now[0]) + 0.1 * tolerance;
}

/* The rows of the averages are the components of one row of data: Q x components. */
static thiele_status averages(thi_row_cdf *c, thiele_context *ctx, double y, double *cdf)
{
    thi_space *space = c->expect->space;
    thi_integrand in = {.lik = c->expect->lik, .values = 1, .results = 1, .extra = &y, .evaluate = evaluate_cdf};
    in.reduce = reduce_cdf;
    in.settled = settled_cdf;
    thi_block_rows rows = {c->row.components, space->row, NULL, c->row.mu, space->sd, NULL};
    if (space->Q > 3) {
        return thi_average(space, ctx, &in, &rows, cdf);
    }
    thiele_status status = thi_ladder(space, ctx, &in, &rows, cdf, space->level, c->again);
    /* The distribution function of a large count is nearly a step in f: each value needs its own number of nodes. */
    c->again = c->expect->lik->ops->support != THI_SUPPORT_COUNT;
    return status;
}

bool thi_has_cdf(const thiele_likelihood *lik)
{
    return lik->ops->predictive_cdf != NULL || (lik->ops->cdf != NULL && lik->outputs == 1);
}

thiele_status thi_row_cdf_prepare(thi_row_cdf *c, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    c->again = false;
    c->law = NULL;
    if (thi_has_cdf(c->expect->lik)) {
        thi_space_rows(c->expect->space, c->row.components, NULL);
        return thi_space_spread(c->expect->space, ctx, c->row.components, c->row.mu, c->row.v);
    }
    THI_TRY(thi_space_law(c->expect, ctx, &c->law));
    THI_TRY(thi_law_fit(c->law, ctx, &c->row, c->output, NULL, false));
out:
    return status;
}

thiele_status thi_row_cdf_at(thi_row_cdf *c, thiele_context *ctx, double y, double *p)
{
    const thiele_likelihood *lik = c->expect->lik;
    double cdf[THI_EXPECT_BLOCK] = {0};
    int K = c->row.components;
    thiele_status status = thi_stop_ask(ctx);
    if (status != THIELE_OK || c->law != NULL) {
        return status != THIELE_OK ? status : thi_law_cdf(c->law, y, p);
    }
    for (int k = 0; k < K && lik->ops->predictive_cdf != NULL; k++) {
        const double *mu = c->row.mu + k * lik->latents, *v = c->row.v + k * lik->latents;
        cdf[k] = lik->ops->predictive_cdf(lik, c->output, y, mu, v);
    }
    if (lik->ops->predictive_cdf == NULL) {
        status = averages(c, ctx, y, cdf);
    }
    *p = K == 1 ? cdf[0] : 0.0;
    for (int k = 0; k < K && K > 1; k++) {
        *p += c->row.weight[k] * cdf[k];
    }
    return status;
}

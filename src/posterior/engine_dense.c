/* Gaussian sites at all rows as an engine: see dense.h. Its rows are those of the shape. */
#include <math.h>

#include "posterior/dense.h"

/*
 * The costly part of the gradient is left out when the sites are this close to their fixed point: nats per unit of a
 * log parameter. (What was left out was mostly below this sum, and never more than 1.4 times it, in the cases tried.)
 */
static const double RESIDUAL = 1e-3;
/* A divergence from the prior that is negative by more than this, beside its terms, is an accident of rounding. */
static const double ROUNDING = 1e-6;

typedef struct dense_state {
    thi_dense dense; /* first: other workspaces borrow from it */
    thi_prior prior;
    thi_dense_sites sites;
    double *v;           /* n */
    const double *g, *h; /* of the last pull */
    double *slope;       /* 2 n */
} dense_state;

static double bytes(const void *shape, int threads)
{
    const thi_dense_shape *rows = shape;
    (void)threads;
    return thi_dense_bytes(rows->n);
}

static void close(void *self)
{
    dense_state *s = self;
    if (s != NULL) {
        thi_dense_close(&s->dense);
        thi_free(s->v);
        thi_free(s->slope);
        thi_free(s);
    }
}

static thiele_status open(void **self, thiele_context *ctx, const void *shape)
{
    const thi_dense_shape *rows = shape;
    dense_state *s = NULL;
    thiele_status status;
    *self = NULL;
    THI_TRY(thi_alloc(ctx, &s, 1, sizeof *s));
    *self = s;
    THI_TRY(thi_alloc(ctx, &s->v, (size_t)rows->n, sizeof *s->v));
    THI_TRY(thi_alloc(ctx, &s->slope, 2 * (size_t)rows->n, sizeof *s->slope));
    THI_TRY(thi_dense_open(&s->dense, ctx, rows->n, rows->X, rows->work, rows->twin));
out:
    return status;
}

static thiele_status begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    dense_state *s = self;
    thiele_status status;
    s->prior = *prior;
    s->sites = *(const thi_dense_sites *)q;
    s->g = s->h = NULL;
    if (s->sites.fresh) {
        THI_TRY(thi_dense_prior(&s->dense, ctx, prior));
    }
    THI_TRY(thi_dense_condition(&s->dense, ctx, s->sites.lambda, s->sites.nu, s->slope, s->v));
out:
    return status;
}

static thiele_status marginals(void *self, thiele_context *ctx, int64_t n, const double *X, double *mu, double *v)
{
    const dense_state *s = self;
    if (n != s->dense.n || X != s->dense.X) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a dense posterior has marginals at its own rows alone");
    }
    thi_mean_fill(s->prior.mean, s->prior.mean_parameter, n, s->prior.kernel->dims, X, mu);
    for (int64_t i = 0; i < n; i++) {
        mu[i] += s->dense.mu[i];
        v[i] = s->v[i];
    }
    return THIELE_OK;
}

static thiele_status pull(void *self, thiele_context *ctx, const double *g, const double *h, const void *bar)
{
    dense_state *s = self;
    (void)ctx;
    (void)bar;
    s->g = g;
    s->h = h;
    return THIELE_OK;
}

/*
 * The bound at fixed sites is log Z + sum_n R_n, R = E - nu mu + lambda (mu^2 + v)/2, whose slopes vanish at the fixed
 * point: dR/dmu = g - nu + lambda mu, dR/dv = h + lambda/2. The second costs much and is left out where its share is
 * nothing: v's slope in a log parameter is about v.
 */
static thiele_status give(dense_state *s, thiele_context *ctx, const thi_dense_bar *bar)
{
    int64_t n = s->dense.n;
    double *g = s->slope, *h = s->slope + n, share = 0.0;
    for (int64_t i = 0; i < n; i++) {
        g[i] = s->g[i] - s->sites.nu[i] + s->sites.lambda[i] * s->dense.mu[i];
        h[i] = s->h[i] + 0.5 * s->sites.lambda[i];
        share += fabs(h[i]) * s->v[i];
    }
    thi_mean_pull(s->prior.mean, s->prior.mean_parameter, n, s->prior.kernel->dims, s->dense.X, s->g, bar->mean, NULL);
    return thi_dense_gradient(&s->dense, ctx, &s->prior, g, share > RESIDUAL ? h : NULL, bar->theta);
}

static thiele_status end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    dense_state *s = self;
    (void)expected;
    *kl = thi_dense_kl(&s->dense, s->sites.lambda, s->v);
    if (!(*kl >= -ROUNDING * fabs(s->dense.log_det) - ROUNDING)) {
        return thi_fail(ctx, THIELE_ERROR_NUMERIC, "the posterior is lost to rounding");
    }
    return bar == NULL ? THIELE_OK : give(s, ctx, bar);
}

static void step(void *self, double rho, const void *q)
{
    const dense_state *s = self;
    const thi_dense_sites *to = q;
    for (int64_t i = 0; i < s->dense.n; i++) {
        double lambda = -2.0 * s->h[i], nu = s->g[i] + lambda * s->dense.mu[i];
        to->lambda[i] += rho * (lambda - to->lambda[i]);
        to->nu[i] += rho * (nu - to->nu[i]);
    }
}

static thiele_status freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    const dense_state *s = self;
    (void)latent;
    return thi_dense_freeze(&s->dense, ctx, &s->prior, out);
}

const thi_engine thi_engine_dense = {
    .name = "dense",
    .words = "a Gaussian at all rows by a site for each of them",
    .bytes = bytes,
    .open = open,
    .close = close,
    .begin = begin,
    .marginals = marginals,
    .pull = pull,
    .end = end,
    .step = step,
    .freeze = freeze,
};

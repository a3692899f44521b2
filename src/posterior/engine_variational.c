/* The variational posterior as an engine: see variational.h. */
#include "posterior/variational.h"

static thiele_status open(void **self, thiele_context *ctx, const void *shape)
{
    thi_variational *v = NULL;
    thiele_status status = thi_variational_open(&v, ctx, shape);
    *self = v;
    return status;
}

static void close(void *self)
{
    thi_variational_close(self);
}

static thiele_status begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    const thi_variational_at *at = q;
    thi_variational_narrow(self, at->narrow);
    return thi_variational_begin(self, ctx, prior, at->Z, at->q, at->sites, at->fresh);
}

static thiele_status marginals(void *self, thiele_context *ctx, int64_t n, const double *X, double *mu, double *v)
{
    return thi_variational_marginals(self, ctx, n, X, mu, v);
}

static void residual(const void *self, double *r)
{
    thi_variational_residual(self, r);
}

static void relieve(void *self, const double *c)
{
    thi_variational_relieve(self, c);
}

/* All adjoints are given at the end. */
static thiele_status pull(void *self, thiele_context *ctx, const double *g, const double *h, const void *bar)
{
    (void)bar;
    return thi_variational_pull(self, ctx, g, h);
}

static int64_t sums(const void *self)
{
    return thi_variational_sums(self);
}

static void take(void *self, double *to)
{
    thi_variational_take(self, to);
}

static void put(void *self, const double *from)
{
    thi_variational_put(self, from);
}

static thiele_status end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    return thi_variational_end(self, ctx, expected, kl, bar);
}

static void step(void *self, double rho, const void *q)
{
    const thi_variational_at *at = q;
    thi_variational_step(self, rho, at->sites);
}

static thiele_status freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    return thi_variational_freeze(self, ctx, latent, out);
}

static const double *weights(const void *self)
{
    return thi_variational_weights(self);
}

static double jitter(const void *self)
{
    return thi_variational_jitter(self);
}

const thi_engine thi_engine_variational = {
    .name = "variational",
    .words = "a Gaussian over inducing variables, full or diagonal, or a mixture of such",
    .open = open,
    .close = close,
    .begin = begin,
    .marginals = marginals,
    .residual = residual,
    .relieve = relieve,
    .pull = pull,
    .sums = sums,
    .take = take,
    .put = put,
    .end = end,
    .step = step,
    .freeze = freeze,
    .weights = weights,
    .jitter = jitter,
};

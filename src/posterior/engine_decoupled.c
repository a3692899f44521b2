/* The decoupled posterior as an engine: see decoupled.h. */
#include "posterior/decoupled_internal.h"

static thiele_status open(void **self, thiele_context *ctx, const void *shape)
{
    thi_decoupled *d = NULL;
    thiele_status status = thi_decoupled_open(&d, ctx, shape);
    *self = d;
    return status;
}

static void close(void *self)
{
    thi_decoupled_close(self);
}

static thiele_status begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    return thi_decoupled_begin(self, ctx, prior, q);
}

static thiele_status marginals(void *self, thiele_context *ctx, int64_t n, const double *X, double *mu, double *v)
{
    return thi_decoupled_marginals(self, ctx, n, X, mu, v);
}

static void residual(const void *self, double *r)
{
    thi_decoupled_residual(self, r);
}

static void relieve(void *self, const double *c)
{
    thi_decoupled_relieve(self, c);
}

static thiele_status pull(void *self, thiele_context *ctx, const double *g, const double *h, const void *bar)
{
    static const thi_decoupled_bar NONE;
    return thi_decoupled_pull(self, ctx, g, h, bar != NULL ? bar : &NONE);
}

static thiele_status end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    const thi_decoupled *d = self;
    (void)expected;
    return thi_decoupled_end(self, ctx, &d->q.columns, kl, bar);
}

static void step(void *self, double rho, const void *q)
{
    const thi_decoupled_q *at = q;
    thi_natural sites = {.T = at->factor, .t = at->t};
    thi_decoupled_step(self, rho, &sites);
}

static thiele_status freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    (void)latent;
    return thi_decoupled_freeze(self, ctx, out);
}

static double jitter(const void *self)
{
    return thi_decoupled_jitter(self);
}

const thi_engine thi_engine_decoupled = {
    .name = "decoupled",
    .words = "a basis for the mean beside that of the covariance",
    .open = open,
    .close = close,
    .begin = begin,
    .marginals = marginals,
    .residual = residual,
    .relieve = relieve,
    .pull = pull,
    .end = end,
    .step = step,
    .freeze = freeze,
    .jitter = jitter,
};

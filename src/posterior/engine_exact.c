/* Exact regression as an engine: see exact.h. Its rows are those of the shape, and KL is minus the log evidence. */
#include "posterior/engine.h"

static double bytes(const void *shape, int threads)
{
    const thi_exact_shape *rows = shape;
    (void)threads;
    return thi_exact_bytes(rows->n);
}

static thiele_status open(void **self, thiele_context *ctx, const void *shape)
{
    thi_exact *e;
    *self = NULL;
    thiele_status status = thi_alloc(ctx, &e, 1, sizeof *e);
    if (status == THIELE_OK) {
        *self = e;
        status = thi_exact_open_shape(e, ctx, shape);
    }
    return status;
}

static void close(void *self)
{
    if (self != NULL) {
        thi_exact_close(self);
        thi_free(self);
    }
}

static thiele_status begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    const double *noise = q;
    thi_exact *e = self;
    thiele_status status = THIELE_OK;
    if (e->L.data == NULL) { /* a predictor has it */
        THI_TRY(thi_exact_open_shape(e, ctx, &e->shape));
    }
    e->prior = *prior;
    THI_TRY(thi_exact_condition(e, ctx, prior, *noise));
out:
    return status;
}

static thiele_status end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    const thi_exact_bar *to = bar;
    thi_exact *e = self;
    (void)expected;
    *kl = -e->log_marginal;
    return to == NULL ? THIELE_OK : thi_exact_gradient(e, ctx, &e->prior, to->theta, to->mean, to->log_noise);
}

static thiele_status freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    thi_exact *e = self;
    thi_prior prior = e->prior;
    (void)latent;
    thiele_status status = e->factored ? THIELE_OK : thi_exact_condition(e, ctx, &prior, e->noise);
    return status == THIELE_OK ? thi_predictor_freeze(out, ctx, e, &prior) : status;
}

static thiele_status leave_out(void *self, thiele_context *ctx, double *mean, double *variance)
{
    return thi_exact_loo(self, ctx, mean, variance);
}

static double jitter(const void *self)
{
    return ((const thi_exact *)self)->jitter;
}

const thi_engine thi_engine_exact = {
    .name = "exact",
    .words = "the posterior of Gaussian noise at all rows",
    .bytes = bytes,
    .open = open,
    .close = close,
    .begin = begin,
    .end = end,
    .freeze = freeze,
    .leave_out = leave_out,
    .jitter = jitter,
};

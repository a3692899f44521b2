/*
 * Any likelihood at Z = X as an objective: the bound at the converged sites, whose gradient is that at
 * fixed sites (they are a stationary point). Each evaluation starts from the sites of the one before.
 */
#include "fit/dense.h"

#include "fit/search.h"

/*
 * Well below what the search takes for progress, so that its line search sees a smooth function. With noise g and h are
 * not exactly the slopes of E, and near the fixed point no step gains: what a row's draws cannot tell is not asked for.
 */
static thi_converge_options converge_options(const thi_dense_fit *fit)
{
    static const double NATS = 1e-7, NATS_A_ROW = 1e-5;
    return (thi_converge_options){.tolerance = fit->noisy ? NATS_A_ROW * (double)fit->rows->n : NATS, .steps = 200};
}

static void dense_close(void *state)
{
    thi_dense_fit_close(state);
    thi_free(state);
}

static thiele_status dense_open(void **state, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows)
{
    thi_dense_fit *fit;
    *state = NULL;
    thiele_status status = thi_alloc(ctx, &fit, 1, sizeof *fit);
    if (status == THIELE_OK) {
        *state = fit;
        status = thi_dense_fit_open(fit, ctx, spec, rows);
    }
    return status == THIELE_OK ? thi_expect_noise(ctx, spec->lik, spec->expectation, &fit->noisy) : status;
}

static thiele_status dense_evaluate(void *state, thiele_context *ctx, const thi_hypers *hypers, double *value,
                                    double *gradient)
{
    (void)hypers;
    thi_dense_fit *fit = state;
    thi_converge_options converge = converge_options(fit);
    thi_converge_result result;
    thiele_status status = thi_dense_converge(fit, ctx, &converge, &result);
    if (status != THIELE_OK) {
        return status;
    }
    *value = fit->bound;
    return gradient != NULL ? thi_dense_fit_gradient(fit, ctx, gradient) : THIELE_OK;
}

static thiele_status dense_freeze(void *state, thiele_context *ctx, thi_fitted *fitted)
{
    thi_dense_fit *fit = state;
    const thi_latents *latents = &fit->spec->latents;
    thi_converge_options converge = converge_options(fit);
    thi_converge_result result;
    thiele_status status = thi_dense_converge(fit, ctx, &converge, &result);
    for (int j = 0; status == THIELE_OK && j < latents->count; j++) {
        status = thi_engine_dense.freeze(fit->latent[j], ctx, 0, &fitted->latent[j]);
    }
    fitted->value = fit->bound;
    return status;
}

/* An evaluation is some ten times that of exact regression: fewer rows to explore with. */
const thi_objective thi_objective_dense = {
    .name = "dense",
    .subset = 256,
    .cubes = 15.0,
    .open = dense_open,
    .close = dense_close,
    .evaluate = dense_evaluate,
    .freeze = dense_freeze,
};

/* Exact Gaussian-process regression as an objective: the log marginal likelihood. */
#include "posterior/exact.h"

#include "fit/search.h"

typedef struct exact_state {
    thi_exact exact;
    const thi_spec *spec;
} exact_state;

static double noise_of(const thi_spec *spec)
{
    return spec->lik->value[0];
}

static void exact_close(void *state)
{
    exact_state *s = state;
    thi_exact_close(&s->exact);
    thi_free(s);
}

static thiele_status exact_open(void **state, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows)
{
    exact_state *s;
    *state = NULL;
    thiele_status status = thi_alloc(ctx, &s, 1, sizeof *s);
    if (status != THIELE_OK) {
        return status;
    }
    s->spec = spec;
    *state = s;
    return thi_exact_open(&s->exact, ctx, rows->n, rows->X, rows->y);
}

static thiele_status exact_evaluate(void *state, thiele_context *ctx, const thi_hypers *hypers, double *value,
                                    double *gradient)
{
    exact_state *s = state;
    const thi_prior *prior = s->spec->latents.prior;
    thiele_status status = thi_exact_condition(&s->exact, ctx, prior, noise_of(s->spec));
    if (status != THIELE_OK) {
        return status;
    }
    *value = s->exact.log_marginal;
    return gradient == NULL ? THIELE_OK
                            : thi_exact_gradient(&s->exact, ctx, prior, gradient, gradient + prior->kernel->parameters,
                                                 gradient + hypers->noise);
}

static thiele_status exact_freeze(void *state, thiele_context *ctx, thi_fitted *fitted)
{
    exact_state *s = state;
    const thi_prior *prior = s->spec->latents.prior;
    thiele_status status;
    THI_TRY(thi_exact_condition(&s->exact, ctx, prior, noise_of(s->spec)));
    fitted->value = s->exact.log_marginal;
    fitted->jitter = s->exact.jitter;
    if (fitted->loo_mean != NULL) {
        THI_TRY(thi_exact_loo(&s->exact, ctx, fitted->loo_mean, fitted->loo_variance));
    }
    THI_TRY(thi_predictor_freeze(fitted->latent, ctx, &s->exact, prior));
out:
    return status;
}

/* A thousand rows tell most of what all of them tell, at a cost that does not matter. */
const thi_objective thi_objective_exact = {
    .name = "exact",
    .subset = 800,
    .cubes = 1.5,
    .open = exact_open,
    .close = exact_close,
    .evaluate = exact_evaluate,
    .freeze = exact_freeze,
};

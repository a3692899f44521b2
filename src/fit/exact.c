/* Exact Gaussian-process regression as an objective: the log marginal likelihood. */
#include "fit/search.h"
#include "posterior/engine.h"

typedef struct exact_state {
    void *exact; /* the engine's workspace */
    const thi_spec *spec;
} exact_state;

static const thi_engine *const engine = &thi_engine_exact;

static void exact_close(void *state)
{
    exact_state *s = state;
    engine->close(s->exact);
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
    return engine->open(&s->exact, ctx, &(thi_exact_shape){rows->n, rows->outputs, rows->X, rows->y});
}

static thiele_status exact_evaluate(void *state, thiele_context *ctx, const thi_hypers *hypers, double *value,
                                    double *gradient)
{
    exact_state *s = state;
    const thi_prior *prior = s->spec->latents.prior;
    thi_exact_bar bar = {0};
    if (gradient != NULL) {
        bar = (thi_exact_bar){gradient, gradient + prior->kernel->parameters, gradient + hypers->noise};
    }
    double kl;
    thiele_status status = engine->begin(s->exact, ctx, prior, s->spec->lik->value);
    if (status == THIELE_OK) {
        status = engine->end(s->exact, ctx, NULL, &kl, gradient != NULL ? &bar : NULL);
    }
    if (status == THIELE_OK) {
        *value = -kl;
    }
    return status;
}

static thiele_status exact_freeze(void *state, thiele_context *ctx, thi_fitted *fitted)
{
    exact_state *s = state;
    double kl;
    thiele_status status;
    THI_TRY(engine->begin(s->exact, ctx, s->spec->latents.prior, s->spec->lik->value));
    THI_TRY(engine->end(s->exact, ctx, NULL, &kl, NULL));
    fitted->value = -kl;
    fitted->jitter = engine->jitter(s->exact);
    if (fitted->loo_mean != NULL) {
        THI_TRY(thi_exact_loo(s->exact, ctx, fitted->loo_mean, fitted->loo_variance));
    }
    THI_TRY(engine->freeze(s->exact, ctx, 0, fitted->latent));
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

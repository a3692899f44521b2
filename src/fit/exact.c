/*
 * Exact Gaussian-process regression as an objective: the log marginal likelihood, on the CPU or on a card. A card that
 * fails in the middle of it is left, and the CPU goes on from there.
 */
#include "fit/search.h"
#include "posterior/device.h"
#include "posterior/engine.h"

/*
 * Rows from which on `auto` takes a card. An evaluation is quicker there from 250 rows on (docs/results/cuda.md), and a
 * fit, of some 200 of them, from about here on, as beginning to work with a card takes half a second. It must not
 * depend on the number of threads, as bits do not.
 */
enum { CARD_ROWS = 800 };

typedef struct exact_state {
    const thi_engine *engine;
    void *exact; /* the engine's workspace */
    thi_exact_shape shape;
    const thi_spec *spec;
} exact_state;

static void exact_close(void *state)
{
    exact_state *s = state;
    s->engine->close(s->exact);
    thi_free(s);
}

bool thi_exact_on_card(thiele_context *ctx, int64_t n)
{
    return thi_device_takes(ctx, n >= CARD_ROWS);
}

/* Opens the CPU's engine where the card failed, of which the log tells; other failures stay. */
static thiele_status retreat(exact_state *s, thiele_context *ctx, thiele_status status)
{
    if (status != THIELE_ERROR_UNSUPPORTED || s->engine != &thi_engine_exact_device) {
        return status;
    }
    thi_device_lost(ctx);
    s->engine->close(s->exact);
    s->engine = &thi_engine_exact;
    return s->engine->open(&s->exact, ctx, &s->shape);
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
    s->shape = (thi_exact_shape){rows->n, rows->outputs, rows->X, rows->y, rows->weight};
    s->engine = rows->weight == NULL && thi_exact_on_card(ctx, rows->n) ? &thi_engine_exact_device : &thi_engine_exact;
    *state = s;
    return retreat(s, ctx, s->engine->open(&s->exact, ctx, &s->shape));
}

/* The value at the specification's present values, and the adjoints of `bar` unless it is NULL. */
static thiele_status evaluate_once(exact_state *s, thiele_context *ctx, double *value, const thi_exact_bar *bar)
{
    double kl;
    thiele_status status;
    THI_TRY(s->engine->begin(s->exact, ctx, s->spec->latents.prior, s->spec->lik->value));
    THI_TRY(s->engine->end(s->exact, ctx, NULL, &kl, bar));
    *value = -kl;
out:
    return status;
}

static thiele_status evaluate(exact_state *s, thiele_context *ctx, double *value, const thi_exact_bar *bar)
{
    thiele_status status = evaluate_once(s, ctx, value, bar);
    if (status == THIELE_ERROR_UNSUPPORTED) {
        THI_TRY(retreat(s, ctx, status));
        THI_TRY(evaluate_once(s, ctx, value, bar));
    }
out:
    return status;
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
    return evaluate(s, ctx, value, gradient != NULL ? &bar : NULL);
}

static thiele_status freeze_once(exact_state *s, thiele_context *ctx, thi_fitted *fitted)
{
    thiele_status status;
    fitted->jitter = s->engine->jitter(s->exact);
    if (fitted->loo_mean != NULL) {
        THI_TRY(s->engine->leave_out(s->exact, ctx, fitted->loo_mean, fitted->loo_variance));
    }
    THI_TRY(s->engine->freeze(s->exact, ctx, 0, fitted->latent));
out:
    return status;
}

static thiele_status exact_freeze(void *state, thiele_context *ctx, thi_fitted *fitted)
{
    exact_state *s = state;
    thiele_status status;
    THI_TRY(evaluate(s, ctx, &fitted->value, NULL));
    status = freeze_once(s, ctx, fitted);
    if (status == THIELE_ERROR_UNSUPPORTED) {
        THI_TRY(retreat(s, ctx, status));
        THI_TRY(evaluate(s, ctx, &fitted->value, NULL));
        THI_TRY(freeze_once(s, ctx, fitted));
    }
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

/* Hyperparameters from the log evidence of some blocks: two passes over them an evaluation, sums and then adjoints. */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"

enum { ITERATIONS = 60, FEWEST_BLOCKS = 2 };
static const double TOLERANCE = 1e-5; /* nats a row */
static const double FLOPS = 1e11, FLOPS_A_SECOND = 2e10, MOST_ROWS = 1e5;
/* Of what is left until the deadline. */
static const double LEARN_SHARE = 0.4;

thiele_status thi_bfit_prepare(thi_bfit *fit)
{
    return thi_sparse_prepare(&fit->engine, fit->ctx, fit->spec->latents.prior, fit->Z, fit->spec->lik->value[0]);
}

/* The blocks that are learned from. */
typedef struct chosen_blocks {
    thi_bfit *fit;
    int64_t count;
    int64_t *block;
} chosen_blocks;

static thiele_status choose(chosen_blocks *c, thi_bfit *fit)
{
    const thi_driver *driver = fit->driver;
    int64_t P = fit->partition.blocks;
    double flops = FLOPS;
    if (driver->deadline > 0.0) {
        double left = fmax(0.0, driver->deadline - (thi_seconds() - driver->started));
        flops = fmin(flops, LEARN_SHARE * left * FLOPS_A_SECOND / (0.5 * ITERATIONS));
    }
    double each = thi_bfit_sum_flops(fit, 1) + thi_bfit_pull_flops(fit, 1);
    double blocks = fmax(FEWEST_BLOCKS, fmin(MOST_ROWS / (double)fit->typical, flops / each));
    *c = (chosen_blocks){.fit = fit, .count = blocks < (double)P ? (int64_t)blocks : P};
    thiele_status status = thi_alloc(fit->ctx, &c->block, (size_t)c->count, sizeof *c->block);
    thi_shuffle order;
    thi_shuffle_open(&order, (thi_stream){fit->ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_BLOCKS}, P);
    for (int64_t i = 0; status == THIELE_OK && i < c->count; i++) {
        c->block[i] = thi_shuffle_at(&order, i);
    }
    return status;
}

static int64_t lanes_from(const chosen_blocks *c, int64_t first)
{
    return c->count - first < THI_SPARSE_LANES ? c->count - first : THI_SPARSE_LANES;
}

static thiele_status add_sums(const chosen_blocks *c)
{
    thi_bfit *fit = c->fit;
    thiele_status status = THIELE_OK;
    int64_t rows;
    thi_sparse_sums_zero(&fit->sums);
    for (int64_t first = 0; first < c->count; first += THI_SPARSE_LANES) {
        int64_t lanes = lanes_from(c, first);
        THI_TRY(thi_bfit_load(fit, lanes, c->block + first, &rows));
        THI_TRY(thi_sparse_sum(&fit->engine, fit->ctx, lanes, fit->block, 1.0, &fit->sums));
        fit->result->fit.evaluations += lanes;
    }
out:
    return status;
}

static thiele_status add_adjoints(const chosen_blocks *c, const thi_sparse_bar *bar)
{
    thi_bfit *fit = c->fit;
    thiele_status status = THIELE_OK;
    double bound = 0.0;
    int64_t rows;
    for (int64_t first = 0; first < c->count; first += THI_SPARSE_LANES) {
        int64_t lanes = lanes_from(c, first);
        THI_TRY(thi_bfit_load(fit, lanes, c->block + first, &rows));
        THI_TRY(thi_sparse_pull(&fit->engine, fit->ctx, lanes, fit->block, 1.0, &bound, bar));
    }
out:
    return status;
}

static thiele_status evaluate(void *state, thiele_context *ctx, const thi_hypers *hypers, double *value,
                              double *gradient)
{
    const chosen_blocks *c = state;
    thi_bfit *fit = c->fit;
    thiele_status status;
    THI_TRY(thi_bfit_prepare(fit));
    THI_TRY(add_sums(c));
    THI_TRY(thi_sparse_set(&fit->engine, ctx, &fit->sums));
    *value = thi_sparse_evidence(&fit->engine, &fit->sums);
    if (gradient != NULL) {
        const thi_prior *prior = fit->spec->latents.prior;
        thi_sparse_bar bar = {
            .theta = gradient, .mean = gradient + prior->kernel->parameters, .log_noise = gradient + hypers->noise};
        THI_TRY(add_adjoints(c, &bar));
    }
out:
    return status;
}

static const thi_method evidence_of_blocks = {.name = "blocks", .evaluate = evaluate};

bool thi_bfit_climbs(const thi_bfit *fit)
{
    const thi_driver *driver = fit->driver;
    int64_t P = fit->partition.blocks;
    double flops = 0.5 * ITERATIONS * (thi_bfit_sum_flops(fit, P) + thi_bfit_pull_flops(fit, P));
    double left = driver->deadline - (thi_seconds() - driver->started);
    return flops <= (driver->deadline > 0.0 ? LEARN_SHARE * left * fit->rate : 0.5 * ITERATIONS * FLOPS);
}

thiele_status thi_bfit_learn(thi_bfit *fit)
{
    chosen_blocks c = {0};
    double started = thi_seconds();
    double deadline = thi_driver_lend(fit->driver, LEARN_SHARE);
    int iterations = fit->sparse->iterations > 0 ? fit->sparse->iterations : ITERATIONS;
    thi_fit_result own = {0};
    thiele_status status;
    THI_TRY(choose(&c, fit));
    double a_row = fit->sparse->tolerance > 0.0 ? fit->sparse->tolerance : TOLERANCE;
    THI_TRY(thi_search_climb(fit->ctx, fit->driver, &evidence_of_blocks, &c, fit->spec, fit->hypers, iterations,
                             a_row * (double)(c.count * fit->typical), &own));
    fit->result->fit.iterations += own.iterations;
    fit->result->fit.stop = own.stop;
out:
    thi_driver_restore(fit->driver, deadline);
    fit->result->learn_seconds += thi_seconds() - started;
    thi_free(c.block);
    return status;
}

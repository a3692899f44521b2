/* Hyperparameters from the log evidence of some blocks: two passes over them an evaluation, sums and then adjoints. */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

enum {
    ITERATIONS = 60,
    SITES_ITERATIONS = 25,
    ENDLESS = 1000000, /* where there is a deadline */
    FEWEST_BLOCKS = 2,
    FIRST_ROWS = 2000, /* of the first stage */
    GROWTH = 4,        /* of the blocks, from stage to stage */
    EVALUATIONS = 10   /* that a further stage must have time for */
};
static const double TOLERANCE = 1e-5, COARSE = 1e-3; /* nats a row; of stages before the last */
static const double FLOPS = 1.2e10, MOST_ROWS = 1e5; /* of an evaluation, without a deadline */

thiele_status thi_bfit_prepare(thi_bfit *fit)
{
    const thi_latents *latents = &fit->problem.spec->latents;
    double noise = fit->sites == NULL ? fit->problem.spec->lik->value[0] : 1.0;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < fit->latents && status == THIELE_OK; q++) {
        const thi_prior *prior = &latents->prior[latents->group[q]];
        status = thi_sparse_prepare(&fit->engine[q], fit->problem.ctx, prior, fit->Z, noise);
    }
    return status;
}

/* The blocks that are learned from. */
typedef struct chosen_blocks {
    thi_bfit *fit;
    int64_t count;
    int64_t *block;
} chosen_blocks;

static thiele_status choose(chosen_blocks *c, thi_bfit *fit, int64_t count)
{
    *c = (chosen_blocks){.fit = fit, .count = count};
    thiele_status status = thi_alloc(fit->problem.ctx, &c->block, (size_t)count, sizeof *c->block);
    thi_shuffle order;
    thi_shuffle_open(&order, (thi_stream){fit->problem.ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_BLOCKS},
                     fit->partition.blocks);
    for (int64_t i = 0; status == THIELE_OK && i < count; i++) {
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
    double begun = thi_seconds();
    int64_t rows;
    thi_natural_zero(fit->sums);
    for (int64_t first = 0; first < c->count; first += THI_SPARSE_LANES) {
        int64_t lanes = lanes_from(c, first);
        THI_TRY(thi_bfit_load(fit, lanes, c->block + first, &rows));
        THI_TRY(thi_sparse_sum(fit->engine, fit->problem.ctx, lanes, fit->block, 1.0, fit->sums));
        fit->result->fit.evaluations += lanes;
    }
    thi_budget_took(fit->problem.driver, thi_bfit_sum_flops(fit, c->count), thi_seconds() - begun);
out:
    return status;
}

static thiele_status add_adjoints(const chosen_blocks *c, const thi_sparse_bar *bar)
{
    thi_bfit *fit = c->fit;
    thiele_status status = THIELE_OK;
    double bound = 0.0, begun = thi_seconds();
    int64_t rows;
    for (int64_t first = 0; first < c->count; first += THI_SPARSE_LANES) {
        int64_t lanes = lanes_from(c, first);
        THI_TRY(thi_bfit_load(fit, lanes, c->block + first, &rows));
        THI_TRY(thi_sparse_pull(fit->engine, fit->problem.ctx, lanes, fit->block, 1.0, &bound, bar));
    }
    thi_budget_took(fit->problem.driver, thi_bfit_pull_flops(fit, c->count), thi_seconds() - begun);
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
    THI_TRY(thi_sparse_set(fit->engine, ctx, fit->sums));
    *value = thi_sparse_evidence(fit->engine, fit->sums);
    if (gradient != NULL) {
        const thi_prior *prior = fit->problem.spec->latents.prior;
        thi_sparse_bar bar = {
            .theta = gradient, .mean = gradient + prior->kernel->parameters, .log_noise = gradient + hypers->noise};
        THI_TRY(add_adjoints(c, &bar));
    }
out:
    return status;
}

/* With sites: some rounds. */
static double evaluation_flops(const thi_bfit *fit, int64_t blocks)
{
    enum { ROUNDS = 5 };
    return (fit->sites != NULL ? ROUNDS : 1) * thi_bfit_sum_flops(fit, blocks) + thi_bfit_pull_flops(fit, blocks);
}

static thiele_status evaluate_sites(void *state, thiele_context *ctx, const thi_hypers *hypers, double *value,
                                    double *gradient)
{
    (void)ctx;
    (void)hypers;
    const chosen_blocks *c = state;
    thi_bfit *fit = c->fit;
    double begun = thi_seconds();
    thiele_status status;
    THI_TRY(thi_bfit_prepare(fit));
    THI_TRY(thi_bsites_converge(fit, c->count, c->block, value));
    if (gradient != NULL) {
        THI_TRY(thi_bsites_pull(fit, c->count, c->block, gradient));
        thi_budget_took(fit->problem.driver, evaluation_flops(fit, c->count), thi_seconds() - begun);
    }
out:
    return status;
}

static const thi_objective bound_of_blocks = {.name = "blocks", .evaluate = evaluate_sites};
static const thi_objective evidence_of_blocks = {.name = "blocks", .evaluate = evaluate};

/* --- stages ----------------------------------------------------------------------------------------------------------
 */

/* Blocks of the next stage after so many; the same number: there is no time for more. */
static int64_t next_count(const thi_bfit *fit, int64_t count)
{
    double P = (double)fit->partition.blocks, each = evaluation_flops(fit, 1), most = P;
    double left = thi_budget_left(fit->problem.driver) - thi_bfit_pass_seconds(fit);
    if (isinf(left)) {
        most = thi_budget_work(fit->problem.driver, fmin(MOST_ROWS / (double)fit->typical, FLOPS / each));
        most = fmin(P, fmax(FEWEST_BLOCKS, most));
    }
    double affordable = fmax(0.0, left) / (EVALUATIONS * thi_budget_seconds(fit->problem.driver, each));
    double next = fmin(fmin(GROWTH * (double)count, most), affordable);
    return next < 1.5 * (double)count && next < most ? count : (int64_t)fmax((double)count, next);
}

/* One stage. first: none came before it; last: no larger one follows. */
static thiele_status climb(thi_bfit *fit, int64_t count, bool first, bool last, thi_fit_result *own)
{
    thi_driver *driver = fit->problem.driver;
    const thi_objective *objective = fit->sites != NULL ? &bound_of_blocks : &evidence_of_blocks;
    chosen_blocks c = {0};
    double rows = (double)(count * fit->typical), given = fit->sparse->tolerance;
    double a_row = last && fit->sites == NULL ? (given > 0.0 ? given : TOLERANCE) : fmax(given, COARSE);
    double deadline = thi_budget_keep(driver, thi_bfit_pass_seconds(fit));
    int iterations = fit->sparse->iterations > 0 ? fit->sparse->iterations
                     : driver->deadline > 0.0    ? ENDLESS
                     : fit->sites != NULL        ? SITES_ITERATIONS
                                                 : ITERATIONS;
    thiele_status status;
    if (!last) {
        thi_budget_lend(driver, THI_SHARE_STAGE);
    }
    THI_TRY(choose(&c, fit, count));
    fit->problem.hypers->most_scales = fit->sites != NULL ? thi_scales_apart(rows) : 0;
    if (first) {
        THI_TRY(thi_search_starts(&fit->problem, objective, &c, &fit->starts, &fit->result->fit));
    }
    if (!thi_driver_stopped(driver)) {
        THI_TRY(thi_search_climb(&fit->problem, objective, &c, iterations, a_row * rows, own));
    }
out:
    fit->problem.hypers->most_scales = 0;
    thi_budget_restore(driver, deadline);
    thi_free(c.block);
    return status;
}

thiele_status thi_bfit_learn(thi_bfit *fit)
{
    int64_t P = fit->partition.blocks, first = (FIRST_ROWS + fit->typical - 1) / fit->typical;
    int64_t count = first < FEWEST_BLOCKS ? FEWEST_BLOCKS : first, next;
    double started = thi_seconds();
    bool last = false, measured = false;
    bool hurried = fit->problem.driver->deadline > 0.0;
    thi_fit_result own = {.stop = hurried ? THIELE_STOP_DEADLINE : THIELE_STOP_CONVERGED};
    thiele_status status = THIELE_OK;
    count = count < P ? count : P;
    while (!last) {
        last = count == P || (measured && next_count(fit, count) == count);
        THI_TRY(climb(fit, count, !measured, last, &own));
        if (fit->settings->snapshot.save != NULL && !last) {
            THI_TRY(thi_bfit_show(fit));
        }
        measured = true;
        next = next_count(fit, count);
        last = count == P || thi_driver_stopped(fit->problem.driver) || ((last || fit->sites != NULL) && next == count);
        count = next;
    }
    fit->result->fit.iterations += own.iterations;
    fit->result->fit.stop = own.stop;
out:
    fit->result->learn_seconds += thi_seconds() - started;
    return status;
}

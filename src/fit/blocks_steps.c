/*
 * q(u) block by block, in a random order. A step adds the natural parameters of some blocks, so that after one pass q
 * is that of all rows and before it that of the blocks so far; they add up in a tree over their places in the pass;
 * with a schedule (Hoang, Hoang and Low 2015, equations 24 to 26) it moves towards P times their mean.
 */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

enum { STEP_ROWS = 2000 };
static const double MOMENT = 0.1;     /* seconds */
static const double SHOW_EVERY = 0.2; /* seconds between two bounds that are shown */

/* Where the steps stand. */
typedef struct walk {
    thi_bfit *fit;
    int64_t drawn; /* blocks so far */
    int64_t t;     /* of the schedule */
    int64_t most;  /* blocks a step */
    int64_t count; /* of this one: the last of a pass has what is left of it */
    double weight; /* blocks that q is that of */
    thi_shuffle order;
    double shown; /* when a bound was shown last */
    double began;
} walk;

void thi_bfit_order(const thi_bfit *fit, int64_t pass, thi_shuffle *order)
{
    thi_stream stream = {fit->problem.ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_BLOCKS + 1 + (uint64_t)pass};
    thi_shuffle_open(order, stream, fit->partition.blocks);
}

static void draw(walk *w, int64_t *block)
{
    int64_t P = w->fit->partition.blocks, left = P - w->drawn % P;
    w->count = w->most < left ? w->most : left;
    for (int64_t i = 0; i < w->count; i++, w->drawn++) {
        if (w->drawn % P == 0) {
            thi_bfit_order(w->fit, w->drawn / P, &w->order);
        }
        block[i] = thi_shuffle_at(&w->order, w->drawn % P);
    }
}

static bool is_scheduled(const thi_blocks_settings *s)
{
    return s->rho_0 > 0.0 || s->gradient;
}

static double rho_at(const thi_blocks_settings *s, int64_t t)
{
    double rho_0 = s->rho_0 > 0.0 ? s->rho_0 : 1.0, tau = s->tau > 0.0 ? s->tau : 1.0;
    double kappa = s->kappa > 0.0 ? s->kappa : 1.0;
    return fmin(1.0, rho_0 / pow(1.0 + tau * rho_0 * (double)t, kappa));
}

/* The bound at the present q as the blocks of this step tell it: their share follows from their sums. */
static void show(const walk *w, double scale, double size, int64_t rows)
{
    thi_bfit *fit = w->fit;
    const thi_sparse *e = fit->engine;
    double expected = scale * thi_sparse_expected(e, fit->step);
    double divergence = thi_sparse_divergence(e);
    thi_step step = {
        .value = expected - divergence, .expected = expected, .divergence = divergence, .size = size, .rows = rows};
    thi_driver_step(fit->problem.driver, &step);
}

/*
 * Moves q by the sums of this step; *size is the share of q that they now have. By a schedule: towards what these
 * blocks say of the whole. Else they are added to those before.
 */
static thiele_status move(walk *w, int64_t rows, double *size)
{
    thi_bfit *fit = w->fit;
    double scale = (double)fit->partition.blocks / (double)w->count;
    thiele_status status = THIELE_OK;
    if (!is_scheduled(fit->settings)) {
        THI_TRY(thi_sparse_keep(fit->engine, fit->problem.ctx, w->drawn - w->count, w->count, &fit->tree));
        THI_TRY(thi_natural_tree_sum(&fit->tree, fit->problem.ctx, fit->sums));
        w->weight += (double)w->count;
        fit->result->rows += (double)rows;
        *size = (double)w->count / w->weight;
        return THIELE_OK;
    }
    *size = rho_at(fit->settings, w->t);
    fit->result->rows = (double)fit->partition.n;
    fit->result->estimate = true;
    if (fit->settings->gradient) {
        thi_natural_mix(fit->step, scale, fit->step, 0.0);
        return thi_bfit_gradient(fit, *size);
    }
    thi_natural_mix(fit->sums, 1.0 - *size, fit->step, *size * scale);
out:
    return status;
}

static double step_flops(const walk *w)
{
    return thi_bfit_sum_flops(w->fit, w->count);
}

/*
 * There is a first step in any case: without one there would be no model. Nor would one block make a good one of values
 * that were learned for long: a fit that was cancelled while it learned takes those that a moment has time for.
 */
static bool goes_on(const walk *w)
{
    const thi_driver *driver = w->fit->problem.driver;
    bool moment = driver->stopped && driver->reason == THIELE_STOP_CANCELLED && thi_seconds() - w->began < MOMENT;
    return w->t == 0 || moment ||
           (!thi_driver_stopped(w->fit->problem.driver) && thi_bfit_affords(w->fit, step_flops(w)));
}

static thiele_status one_step(walk *w)
{
    thi_bfit *fit = w->fit;
    int64_t block[THI_SPARSE_LANES], rows;
    double began = thi_seconds(), size;
    thiele_status status;
    draw(w, block);
    THI_TRY(thi_bfit_load(fit, w->count, block, &rows));
    thi_natural_zero(fit->step);
    THI_TRY(thi_sparse_sum(fit->engine, fit->problem.ctx, w->count, fit->block, 1.0, fit->step));
    THI_TRY(move(w, rows, &size));
    w->t++;
    if (began - w->shown > SHOW_EVERY) {
        THI_TRY(thi_sparse_set(fit->engine, fit->problem.ctx, fit->sums));
        show(w, fit->settings->gradient ? 1.0 : (double)fit->partition.blocks / (double)w->count, size, rows);
        w->shown = began;
    } else {
        thi_driver_count(fit->problem.driver, rows);
    }
    fit->result->fit.evaluations += w->count;
    fit->result->passes = (double)w->drawn / (double)fit->partition.blocks;
    thi_budget_took(fit->problem.driver, step_flops(w), thi_seconds() - began);
out:
    return status;
}

/* How many steps at most: given, or one pass, after which, without a schedule, there is nothing more to learn. */
static int64_t steps_of(const thi_bfit *fit, int64_t count)
{
    int64_t pass = (fit->partition.blocks + count - 1) / count;
    int iterations = fit->settings->anytime ? fit->sparse->iterations : 0, epochs = fit->sparse->epochs;
    int64_t wanted = iterations > 0 ? iterations : pass * (epochs > 0 ? epochs : 1);
    return is_scheduled(fit->settings) || wanted < pass ? wanted : pass;
}

/*
 * As many as can be worked on side by side; anytime so many that they have some thousand rows, but no step takes more
 * than a small part of the time that is left.
 */
static int64_t blocks_a_step(const thi_bfit *fit)
{
    int64_t P = fit->partition.blocks, count = fit->settings->step_blocks;
    if (!fit->settings->anytime) {
        count = THI_SPARSE_LANES;
    } else if (count == 0) {
        double rows = STEP_ROWS / (double)fit->typical;
        double blocks = thi_budget_flops(fit->problem.driver, THI_SHARE_STEP) / thi_bfit_sum_flops(fit, 1);
        count = (int64_t)fmax(1.0, fmin(rows, blocks));
    }
    count = count < THI_SPARSE_LANES ? count : THI_SPARSE_LANES;
    return count < P ? count : P;
}

thiele_status thi_bfit_steps(thi_bfit *fit)
{
    int64_t most = blocks_a_step(fit), steps = steps_of(fit, most);
    walk w = {.fit = fit, .most = most, .count = most, .began = thi_seconds()};
    thiele_status status;
    fit->result->rows = 0.0;
    thi_natural_zero(fit->sums);
    thi_driver_phase(fit->problem.driver, fit->settings->anytime ? "steps" : "blocks", steps);
    THI_TRY(thi_bfit_prepare(fit));
    thi_natural_tree_open(&fit->tree, fit->M, fit->engine->basis);
    while (w.t < steps && goes_on(&w)) {
        THI_TRY(one_step(&w));
        THI_TRY(thi_bfit_look(fit));
    }
    bool late = w.t < steps, complete = w.drawn >= fit->partition.blocks && !is_scheduled(fit->settings);
    fit->result->fit.iterations += fit->settings->anytime ? (int)w.t : 0;
    if (late || !complete) {
        fit->result->fit.stop = late ? THIELE_STOP_DEADLINE : THIELE_STOP_ITERATIONS;
    }
    THI_TRY(thi_sparse_set(fit->engine, fit->problem.ctx, fit->sums));
out:
    thi_natural_tree_close(&fit->tree);
    return status;
}

/*
 * q(u) block by block. Exact: one pass over all blocks adds up the natural parameters. Anytime (Hoang, Hoang and Low
 * 2015, equations 24 to 26): a step draws some blocks and moves the natural parameters towards P times their mean.
 * While there are hyperparameters to learn, the first part of the steps is followed by a step of Adam on the bound
 * each; then q begins anew at the values that were found.
 */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "optim/rules.h"

/* LEARN_STEPS: at most, and with a deadline those that its share has time for. */
enum { STEP_ROWS = 2000, LEARN_STEPS = 200, MOST_LEARN_STEPS = 10000 };
/* While hyperparameters move, a step forgets at least this share of those before it: taken at other values. */
static const double FADE = 0.05;
static const double RATE = 0.02;
/* Of the time until the deadline, for steps that learn hyperparameters. */
static const double LEARN_SHARE = 0.4;
/* Of what is left until the deadline, for one step. */
static const double STEP_SHARE = 0.02;
static const double SHOW_EVERY = 0.2; /* seconds between two bounds that are shown */

/* --- one pass --------------------------------------------------------------------------------------------------------
 */

thiele_status thi_bfit_pass(thi_bfit *fit)
{
    int64_t P = fit->partition.blocks, done = 0, rows;
    int64_t block[THI_SPARSE_LANES];
    thiele_status status;
    thi_sparse_sums_zero(&fit->sums);
    thi_driver_phase(fit->driver, "blocks", (P + THI_SPARSE_LANES - 1) / THI_SPARSE_LANES);
    THI_TRY(thi_bfit_prepare(fit));
    while (done < P && (done == 0 || !thi_driver_stopped(fit->driver))) {
        int64_t lanes = P - done < THI_SPARSE_LANES ? P - done : THI_SPARSE_LANES;
        for (int64_t i = 0; i < lanes; i++) {
            block[i] = done + i;
        }
        THI_TRY(thi_bfit_load(fit, lanes, block, &rows));
        THI_TRY(thi_sparse_sum(&fit->engine, fit->ctx, lanes, fit->block, 1.0, &fit->sums));
        done += lanes;
        thi_step step = {.value = NAN, .expected = NAN, .divergence = NAN, .size = NAN, .rows = rows};
        thi_driver_step(fit->driver, &step);
    }
    fit->result->fit.evaluations += done;
    fit->result->passes = (double)done / (double)P;
    fit->result->rows = (double)fit->partition.n;
    fit->result->estimate = done < P;
    if (done < P) {
        /* What was seen stands for all. */
        thi_sparse_sums_mix(&fit->sums, 0.0, &fit->sums, (double)P / (double)done);
    }
    THI_TRY(thi_sparse_set(&fit->engine, fit->ctx, &fit->sums));
out:
    return status;
}

/* --- steps -----------------------------------------------------------------------------------------------------------
 */

/* Where the steps stand. */
typedef struct walk {
    thi_bfit *fit;
    int64_t drawn; /* blocks so far */
    int64_t t;     /* of the schedule */
    int64_t most;  /* blocks a step */
    int64_t count; /* of this one: the last of a pass has what is left of it */
    double weight; /* blocks that q is that of */
    thi_shuffle order;
    double shown;         /* when a bound was shown last */
    double *x, *gradient; /* of the hyperparameters: free values; all */
    thi_rule rule;
} walk;

static void draw(walk *w, int64_t *block)
{
    int64_t P = w->fit->partition.blocks, left = P - w->drawn % P;
    w->count = w->most < left ? w->most : left;
    for (int64_t i = 0; i < w->count; i++, w->drawn++) {
        if (w->drawn % P == 0) {
            uint64_t epoch = (uint64_t)(w->drawn / P);
            thi_shuffle_open(&w->order,
                             (thi_stream){w->fit->ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_BLOCKS + 1 + epoch}, P);
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
    const thi_sparse *e = &fit->engine;
    double expected = scale * thi_sparse_expected(e, &fit->step);
    double divergence = thi_sparse_divergence(e);
    thi_step step = {
        .value = expected - divergence, .expected = expected, .divergence = divergence, .size = size, .rows = rows};
    thi_driver_step(fit->driver, &step);
}

/* One step of Adam on the bound at the present q, by the blocks that are loaded; then Kzz anew. */
static thiele_status learn_step(walk *w, double scale, double *bound)
{
    thi_bfit *fit = w->fit;
    thi_hypers *hypers = fit->hypers;
    const thi_prior *prior = fit->spec->latents.prior;
    thiele_status status;
    memset(w->gradient, 0, (size_t)hypers->count * sizeof *w->gradient);
    thi_sparse_bar bar = {.theta = w->gradient,
                          .mean = w->gradient + prior->kernel->parameters,
                          .log_noise = w->gradient + hypers->noise};
    THI_TRY(thi_sparse_pull(&fit->engine, fit->ctx, w->count, fit->block, scale, bound, &bar));
    thi_hypers_chain(hypers, w->gradient);
    *bound += thi_hypers_log_prior(hypers, w->gradient);
    int kept = 0;
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed) {
            w->gradient[kept++] = -w->gradient[i];
        }
    }
    thi_hypers_pack(hypers, w->x);
    THI_TRY(thi_rule_step(&w->rule, fit->ctx, w->x, w->gradient, NULL));
    thi_hypers_unpack(hypers, w->x);
    THI_TRY(thi_hypers_apply(hypers, fit->ctx, fit->spec));
    THI_TRY(thi_bfit_prepare(fit));
out:
    return status;
}

/*
 * Moves q by the sums of this step; *size is the share of q that they now have. By a schedule: towards what these
 * blocks say of the whole. Else they are added to those before: q is that of the blocks so far, and at the end of a
 * pass that of all. While hyperparameters move, old blocks fade, and `weight` tells how many q is that of.
 */
static thiele_status move(walk *w, bool learning, int64_t rows, double *size)
{
    thi_bfit *fit = w->fit;
    double scale = (double)fit->partition.blocks / (double)w->count;
    if (is_scheduled(fit->settings)) {
        double rho = rho_at(fit->settings, w->t);
        rho = learning ? fmax(rho, FADE) : rho;
        *size = rho;
        w->weight = (double)fit->partition.blocks;
        fit->result->rows = (double)fit->partition.n;
        fit->result->estimate = true;
        if (fit->settings->gradient) {
            thi_sparse_sums_mix(&fit->step, scale, &fit->step, 0.0);
            return thi_bfit_gradient(fit, rho);
        }
        thi_sparse_sums_mix(&fit->sums, 1.0 - rho, &fit->step, rho * scale);
        return THIELE_OK;
    }
    /* q is never that of more blocks than there are. */
    double fade = fmax(FADE, (double)w->count / (double)fit->partition.blocks);
    double keep = learning ? 1.0 - fade : 1.0;
    thi_sparse_sums_mix(&fit->sums, keep, &fit->step, 1.0);
    w->weight = keep * w->weight + (double)w->count;
    fit->result->rows = keep * fit->result->rows + (double)rows;
    fit->result->estimate = learning;
    *size = (double)w->count / w->weight;
    return THIELE_OK;
}

static double step_flops(const walk *w, bool learning)
{
    const thi_bfit *fit = w->fit;
    return thi_bfit_sum_flops(fit, w->count) +
           (learning ? thi_bfit_pull_flops(fit, w->count) + thi_bfit_set_flops(fit) : 0.0);
}

static bool goes_on(const walk *w, bool learning)
{
    return !thi_driver_stopped(w->fit->driver) && thi_bfit_affords(w->fit, step_flops(w, learning));
}

static thiele_status one_step(walk *w, bool learning)
{
    thi_bfit *fit = w->fit;
    int64_t block[THI_SPARSE_LANES], rows;
    double began = thi_seconds(), size;
    thiele_status status;
    draw(w, block);
    THI_TRY(thi_bfit_load(fit, w->count, block, &rows));
    thi_sparse_sums_zero(&fit->step);
    THI_TRY(thi_sparse_sum(&fit->engine, fit->ctx, w->count, fit->block, 1.0, &fit->step));
    THI_TRY(move(w, learning, rows, &size));
    w->t++;
    bool due = began - w->shown > SHOW_EVERY;
    if (learning || due) {
        THI_TRY(thi_sparse_set(&fit->engine, fit->ctx, &fit->sums));
    }
    double bound = 0.0;
    if (due) {
        show(w, fit->settings->gradient ? 1.0 : (double)fit->partition.blocks / (double)w->count, size, rows);
        w->shown = began;
    } else {
        thi_driver_count(fit->driver, rows);
    }
    if (learning) {
        THI_TRY(learn_step(w, w->weight / (double)w->count, &bound));
    }
    fit->result->fit.evaluations += w->count;
    fit->result->passes = (double)w->drawn / (double)fit->partition.blocks;
    thi_bfit_took(fit, step_flops(w, learning), thi_seconds() - began);
out:
    return status;
}

/* Steps that also learn; few, because each costs some four times as much as one that does not. */
static thiele_status learn(walk *w)
{
    thi_bfit *fit = w->fit;
    int64_t free = thi_hypers_free(fit->hypers);
    double started = thi_seconds(), deadline = thi_driver_lend(fit->driver, LEARN_SHARE);
    double rate = fit->sparse->rate > 0.0 ? fit->sparse->rate : RATE;
    thi_schedule schedule;
    thiele_status status;
    int steps = fit->driver->deadline > 0.0 ? MOST_LEARN_STEPS : LEARN_STEPS;
    thi_driver_phase(fit->driver, "learn", steps);
    THI_TRY(thi_alloc(fit->ctx, &w->x, (size_t)free, sizeof *w->x));
    THI_TRY(thi_alloc(fit->ctx, &w->gradient, (size_t)fit->hypers->count, sizeof *w->gradient));
    THI_TRY(thi_schedule_make(&schedule, fit->ctx, "sqrt", rate, 0.0, 0.0));
    THI_TRY(thi_rule_open(&w->rule, fit->ctx, "adam", &schedule, 1, &free));
    for (int t = 0; t < steps && goes_on(w, true); t++) {
        THI_TRY(one_step(w, true));
        THI_TRY(thi_bfit_look(fit));
    }
out:
    thi_driver_restore(fit->driver, deadline);
    fit->result->learn_seconds += thi_seconds() - started;
    return status;
}

/* Forgets what was learned of q: it was taken at other values of the hyperparameters. */
static void begin_anew(walk *w)
{
    w->t = w->drawn = 0;
    w->weight = w->fit->result->rows = 0.0;
    thi_sparse_sums_zero(&w->fit->sums);
}

static void walk_close(walk *w)
{
    if (w->rule.kind != NULL) {
        thi_rule_close(&w->rule);
    }
    thi_free(w->x);
    thi_free(w->gradient);
}

/* How many steps at most: given, or one pass, after which, without a schedule, there is nothing more to learn. */
static int64_t steps_of(const thi_bfit *fit, int64_t count)
{
    int64_t pass = (fit->partition.blocks + count - 1) / count;
    int iterations = fit->sparse->iterations, epochs = fit->sparse->epochs;
    int64_t wanted = iterations > 0 ? iterations : pass * (epochs > 0 ? epochs : 1);
    return is_scheduled(fit->settings) || wanted < pass ? wanted : pass;
}

/* So many that they have some thousand rows, but no step takes more than a small part of the time that is left. */
static int64_t blocks_a_step(const thi_bfit *fit)
{
    const thi_driver *d = fit->driver;
    int64_t P = fit->partition.blocks, count = fit->settings->step_blocks;
    if (count == 0) {
        double left = d->deadline > 0.0 ? d->deadline - (thi_seconds() - d->started) : (double)INFINITY;
        double rows = STEP_ROWS / (double)fit->typical;
        double blocks = STEP_SHARE * left * fit->rate / thi_bfit_sum_flops(fit, 1);
        count = (int64_t)fmax(1.0, fmin(rows, blocks));
    }
    count = count < THI_SPARSE_LANES ? count : THI_SPARSE_LANES;
    return count < P ? count : P;
}

thiele_status thi_bfit_steps(thi_bfit *fit)
{
    int64_t most = blocks_a_step(fit);
    walk w = {.fit = fit, .most = most, .count = most};
    thiele_status status;
    thi_sparse_sums_zero(&fit->sums);
    THI_TRY(thi_bfit_prepare(fit));
    if (fit->learn && !fit->climbed) {
        THI_TRY(learn(&w));
        if (!thi_driver_stopped(fit->driver)) {
            begin_anew(&w);
        }
    }
    int64_t steps = steps_of(fit, most), t = 0;
    thi_driver_phase(fit->driver, "steps", steps);
    while (t < steps && goes_on(&w, false)) {
        THI_TRY(one_step(&w, false));
        THI_TRY(thi_bfit_look(fit));
        t++;
    }
    fit->result->fit.iterations += (int)t;
    bool complete = !is_scheduled(fit->settings) && w.drawn >= fit->partition.blocks;
    fit->result->fit.stop = t < steps  ? THIELE_STOP_DEADLINE
                            : complete ? THIELE_STOP_CONVERGED
                                       : THIELE_STOP_ITERATIONS;
    THI_TRY(thi_sparse_set(&fit->engine, fit->ctx, &fit->sums));
out:
    walk_close(&w);
    return status;
}

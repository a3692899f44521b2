/*
 * Learning hyperparameters: maximise the objective plus log p(theta) over logs of positive parameters by L-BFGS. The
 * surface has several modes (all noise; wiggly without noise; in between), so a small grid of starts is climbed on a
 * subset of rows, which costs little, and the best of them is polished on all rows.
 */
#include "fit/search.h"

#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/start.h"
#include "optim/lbfgs.h"

enum { SUBSET_ITERATIONS = 60, CLIMBED = 3 };
/* A thousandth of a nat over five iterations is far below what the data can tell. */
static const double TOLERANCE = 1e-3;

/* The stretch of the length-scales and the share of noise of each start; without Gaussian noise the first three differ.
 */
static const struct {
    double stretch, noise;
} grid_starts[] = {{1.0, 0.1}, {0.3, 0.1}, {3.0, 0.1}, {0.1, 0.1}, {0.03, 0.1}, {1.0, 0.01}, {3.0, 0.01}, {1.0, 0.5}};
enum { STARTS = sizeof grid_starts / sizeof *grid_starts, STARTS_WITHOUT_NOISE = 4, TASTE = 4 };

/* A search under way: the problem's parts at hand, and what is climbed. */
typedef struct ascent {
    thiele_context *ctx;
    thi_driver *driver;
    thi_spec *spec;
    thi_hypers *hypers;
    const thi_objective *objective;
    void *state;
    double spread;      /* variance of y */
    int grid;           /* starts of the grid */
    double *gradient;   /* all hypers */
    const double *base; /* their first guesses */
    double tolerance;   /* stop when five iterations together gained less */
    double longest;     /* seconds of an evaluation: what freezing takes is kept for it; 0 where nothing is frozen */
    bool freezes;
} ascent;

/* The objective with log p(theta), and its gradient in p->gradient when wanted. */
static thiele_status log_posterior(ascent *p, bool with_gradient, double *value)
{
    thiele_status status;
    memset(p->gradient, 0, (size_t)p->hypers->count * sizeof *p->gradient);
    THI_TRY(thi_hypers_apply(p->hypers, p->ctx, p->spec));
    THI_TRY(p->objective->evaluate(p->state, p->ctx, p->hypers, value, with_gradient ? p->gradient : NULL));
    thi_hypers_chain(p->hypers, p->gradient);
    *value += thi_hypers_log_prior(p->hypers, p->gradient);
    thi_scales_tie(p->hypers, &p->spec->latents, p->gradient);
out:
    return status;
}

static thiele_status objective(void *arg, const double *x, double *value, double *gradient)
{
    ascent *p = arg;
    thi_hypers_unpack(p->hypers, x);
    if (!thi_hypers_in_bounds(p->hypers, p->base)) {
        return thi_fail(p->ctx, THIELE_ERROR_NUMERIC, "the search diverged from its first guesses");
    }
    double log_p, begun = thi_seconds();
    thiele_status status = log_posterior(p, true, &log_p);
    if (status != THIELE_OK) {
        return status;
    }
    p->longest = p->freezes ? fmax(p->longest, thi_seconds() - begun) : 0.0;
    *value = -log_p;
    for (int i = 0; i < p->hypers->count; i++) {
        if (!p->hypers->hyper[i].fixed) {
            *gradient++ = -p->gradient[i];
        }
    }
    thi_driver_report(p->driver, log_p);
    return THIELE_OK;
}

static bool stop(void *arg)
{
    const ascent *p = arg;
    if (thi_budget_left(p->driver) < p->longest) {
        p->driver->stopped = true;
        p->driver->reason = THIELE_STOP_DEADLINE;
    }
    return thi_driver_stopped(p->driver);
}

static void confine(void *arg, double *x)
{
    const ascent *p = arg;
    thi_hypers_confine(p->hypers, p->base, x);
}

static thiele_status ascent_open(ascent *p, const thi_rows *rows)
{
    thiele_status status = thi_alloc(p->ctx, &p->gradient, (size_t)p->hypers->count, sizeof *p->gradient);
    return status == THIELE_OK ? p->objective->open(&p->state, p->ctx, p->spec, rows) : status;
}

static void ascent_close(ascent *p)
{
    if (p->state != NULL) {
        p->objective->close(p->state);
    }
    p->state = NULL;
    thi_free(p->gradient);
    p->gradient = NULL;
}

static thiele_status climb(ascent *p, int iterations, double *x, thi_lbfgs_result *result)
{
    thi_lbfgs_options options = {iterations, 1e-5, p->tolerance, stop, confine};
    thi_hypers_pack(p->hypers, x);
    thiele_status status = thi_lbfgs(p->ctx, thi_hypers_free(p->hypers), x, objective, p, &options, result);
    if (status == THIELE_OK) {
        thi_hypers_unpack(p->hypers, x);
    }
    return status;
}

/* --- starts ----------------------------------------------------------------------------------------------------------
 */

/* A start: its values and how good it is. */
typedef struct start {
    double *value; /* all hypers */
    double score;
} start;

/* Start number s from the first guesses: the grid first, then random ones a factor e (one sd) away. */
static void make_start(ascent *p, int s)
{
    thi_hypers_load(p->hypers, p->base);
    if (s < p->grid) {
        thi_start_variant(p->hypers, p->spec, p->spread, grid_starts[s].stretch, grid_starts[s].noise);
        return;
    }
    for (int i = 0; i < p->hypers->count; i++) {
        thi_hyper *h = &p->hypers->hyper[i];
        if (!h->fixed && !h->given && h->log) {
            h->value += thi_random_normal((thi_stream){p->ctx->seed, THI_RANDOM_START, (uint64_t)s}, (uint64_t)i);
        }
    }
}

/* A short climb: the start becomes where it led. */
static thiele_status taste(ascent *p, start *s, double *x, thi_fit_result *total)
{
    thi_lbfgs_result result;
    thiele_status status = climb(p, TASTE, x, &result);
    total->evaluations += result.evaluations;
    if (status == THIELE_OK) {
        thi_hypers_keep(p->hypers, s->value);
        s->score = -result.value;
    }
    return status;
}

static thiele_status score_starts(ascent *p, int count, start *list, double *x, thi_fit_result *total)
{
    for (int s = 0; s < count; s++) {
        make_start(p, s);
        thi_hypers_keep(p->hypers, list[s].value);
        /* A few iterations tell more than the value does where it begins: from afar all noise looks best. */
        thiele_status status =
            thi_hypers_in_bounds(p->hypers, p->base) ? taste(p, &list[s], x, total) : THIELE_ERROR_NUMERIC;
        if (status == THIELE_ERROR_NUMERIC || isnan(list[s].score)) {
            list[s].score = -INFINITY;
            thi_recover(p->ctx);
        } else if (status != THIELE_OK) {
            return status;
        }
        if (thi_driver_stopped(p->driver)) {
            for (int rest = s + 1; rest < count; rest++) {
                list[rest].score = -INFINITY;
            }
            break;
        }
    }
    return THIELE_OK;
}

/* Moves the best CLIMBED of the grid's starts to its front. */
static void promote(start *list, int grid)
{
    for (int front = 0; front < CLIMBED; front++) {
        int best = front;
        for (int s = front + 1; s < grid; s++) {
            best = list[s].score > list[best].score ? s : best;
        }
        start swap = list[front];
        list[front] = list[best];
        list[best] = swap;
    }
}

/*
 * Modes whose evidence differs by less than this cannot be told apart by the data; the one with more noise explains
 * them by the plainer function. (Chosen on Boston's splits, where two modes are 0.01 to 0.03 nats apart.)
 */
static const double TIE = 0.05;

static bool is_better(const thi_hypers *hypers, const start *a, const start *b)
{
    bool tied = hypers->noise >= 0 && fabs(a->score - b->score) < TIE;
    return tied ? a->value[hypers->noise] > b->value[hypers->noise] : a->score > b->score;
}

/* Climbs the best starts of the grid and all random ones; hypers gets the best summit. */
static thiele_status climb_starts(ascent *p, int count, start *list, int iterations, double *x, thi_fit_result *total)
{
    int best = 0;
    promote(list, p->grid);
    for (int s = 0; s < count && !thi_driver_stopped(p->driver); s++) {
        if (s >= CLIMBED && s < p->grid) {
            continue;
        }
        thi_lbfgs_result result;
        thi_hypers_load(p->hypers, list[s].value);
        thiele_status status = climb(p, iterations, x, &result);
        total->evaluations += result.evaluations;
        if (status == THIELE_ERROR_NUMERIC) {
            thi_recover(p->ctx);
            continue;
        }
        if (status != THIELE_OK) {
            return status;
        }
        thi_hypers_keep(p->hypers, list[s].value);
        list[s].score = -result.value;
        best = is_better(p->hypers, &list[s], &list[best]) ? s : best;
    }
    thi_hypers_load(p->hypers, list[best].value);
    return THIELE_OK;
}

/* Explores on some of the rows, leaving the best start in hypers. */
static thiele_status explore(ascent *p, const thi_rows *rows, const thi_fit_settings *settings, thi_fit_result *total)
{
    int restarts = settings->restarts;
    int iterations = settings->iterations < SUBSET_ITERATIONS ? settings->iterations : SUBSET_ITERATIONS;
    int count = p->grid + restarts;
    size_t hypers = (size_t)p->hypers->count;
    double *block = NULL;
    start *list = NULL;
    thiele_status status;
    thi_driver_phase(p->driver, "explore", TASTE * count + (CLIMBED + restarts) * iterations);
    THI_TRY(ascent_open(p, rows));
    THI_TRY(thi_alloc(p->ctx, &block, hypers * (size_t)(count + 1), sizeof *block));
    THI_TRY(thi_alloc(p->ctx, &list, (size_t)count, sizeof *list));
    for (int s = 0; s < count; s++) {
        list[s].value = block + hypers * (size_t)(s + 1);
    }
    THI_TRY(score_starts(p, count, list, block, total));
    THI_TRY(climb_starts(p, count, list, iterations, block, total));
out:
    thi_free(block);
    thi_free(list);
    ascent_close(p);
    return status;
}

/* The state stays open: the posterior is frozen from it. */
static thiele_status polish(ascent *p, int iterations, thi_fit_result *result)
{
    double *x = NULL;
    thi_lbfgs_result run = {0};
    thiele_status status;
    thi_driver_phase(p->driver, "fit", iterations);
    THI_TRY(thi_alloc(p->ctx, &x, (size_t)p->hypers->count, sizeof *x));
    THI_TRY(climb(p, iterations, x, &run));
    result->iterations += run.iterations;
    result->evaluations += run.evaluations;
    result->stop =
        p->driver->stopped ? p->driver->reason : (run.converged ? THIELE_STOP_CONVERGED : THIELE_STOP_ITERATIONS);
out:
    thi_free(x);
    return status;
}

/* Whether the first output takes two values at least: else a subset has nothing to say. */
static bool varies(const thi_rows *rows)
{
    for (int64_t i = 1; i < rows->n; i++) {
        if (rows->y[i * rows->outputs] != rows->y[0]) {
            return true;
        }
    }
    return false;
}

static thiele_status explore_sample(ascent *p, const thi_rows *rows, const thi_fit_settings *settings,
                                    thi_fit_result *result)
{
    thi_rows subset = {0};
    thiele_status status = thi_rows_sample(&subset, p->ctx, rows, p->objective->subset);
    if (status == THIELE_OK && varies(&subset)) {
        status = explore(p, &subset, settings, result);
    }
    thi_rows_free(&subset);
    result->stop = p->driver->reason;
    return status;
}

/* Whether there is anything that starts may differ in. */
static bool has_starts(const thi_hypers *hypers)
{
    bool open = false;
    for (int i = 0; i < hypers->count; i++) {
        open = open || (!hypers->hyper[i].fixed && !hypers->hyper[i].given);
    }
    return open;
}

static thiele_status search(ascent *p, const thi_rows *rows, const thi_fit_settings *settings, thi_fit_result *result,
                            thi_fitted *fitted)
{
    bool learn = thi_hypers_free(p->hypers) > 0 && settings->iterations >= 0;
    thiele_status status;
    if (learn && has_starts(p->hypers)) {
        double deadline = thi_budget_lend(p->driver, THI_SHARE_SITES);
        THI_TRY(explore_sample(p, rows, settings, result));
        thi_budget_restore(p->driver, deadline);
    }
    p->freezes = fitted != NULL;
    p->longest = 0.0;
    bool polishing = learn && !thi_driver_stopped(p->driver);
    if (polishing || fitted != NULL) {
        THI_TRY(ascent_open(p, rows));
    }
    if (polishing) {
        THI_TRY(polish(p, settings->iterations, result));
    } else if (learn) {
        result->stop = p->driver->reason;
    }
    THI_TRY(thi_hypers_apply(p->hypers, p->ctx, p->spec));
    if (fitted != NULL) {
        /* Whatever ended the search: a posterior that was given up halfway is none. */
        p->spec->driver = NULL;
        THI_TRY(p->objective->freeze(p->state, p->ctx, fitted));
    }
out:
    ascent_close(p);
    return status;
}

static ascent ascent_of(const thi_problem *problem, const thi_objective *objective, void *state)
{
    return (ascent){.ctx = problem->ctx,
                    .driver = problem->driver,
                    .spec = problem->spec,
                    .hypers = problem->hypers,
                    .objective = objective,
                    .state = state,
                    .tolerance = TOLERANCE};
}

thiele_status thi_search(const thi_problem *problem, const thi_objective *objective, const thi_rows *rows,
                         const thi_fit_settings *settings, thi_fit_result *result, thi_fitted *fitted)
{
    ascent p = ascent_of(problem, objective, NULL);
    double *base = NULL;
    thiele_status status;
    *result = (thi_fit_result){.stop = THIELE_STOP_FIXED};
    p.grid = p.hypers->noise >= 0 ? STARTS : STARTS_WITHOUT_NOISE;
    p.tolerance = fmax(TOLERANCE, settings->tolerance);
    p.spec->driver = p.driver;
    THI_TRY(thi_start_guess(p.hypers, p.ctx, p.spec, rows, &p.spread));
    THI_TRY(thi_alloc(p.ctx, &base, (size_t)p.hypers->count, sizeof *base));
    thi_hypers_keep(p.hypers, base);
    p.base = base;
    THI_TRY(search(&p, rows, settings, result, fitted));
out:
    p.spec->driver = NULL;
    thi_free(base);
    return status;
}

thiele_status thi_search_climb(const thi_problem *problem, const thi_objective *objective, void *state, int iterations,
                               double tolerance, thi_fit_result *result)
{
    ascent p = ascent_of(problem, objective, state);
    size_t count = (size_t)p.hypers->count;
    double *base = NULL;
    thiele_status status;
    p.tolerance = fmax(tolerance, TOLERANCE);
    THI_TRY(thi_alloc(p.ctx, &base, count, sizeof *base));
    THI_TRY(thi_alloc(p.ctx, &p.gradient, count, sizeof *p.gradient));
    thi_hypers_keep(p.hypers, base);
    p.base = base;
    THI_TRY(polish(&p, iterations, result));
    THI_TRY(thi_hypers_apply(p.hypers, p.ctx, p.spec));
out:
    thi_free(base);
    thi_free(p.gradient);
    return status;
}

/* The best of some noises that are factors apart, with all else as it is. */
static thiele_status try_noises(ascent *p)
{
    /* Multiples of the least noise there may be; the present one comes first, for want of time for more. */
    static const double factors[] = {0.0, 1e9, 1e8, 1e6, 1e4, 1e2};
    thi_hyper *noise = &p->hypers->hyper[p->hypers->noise];
    double begun = noise->value, best = begun, top = -INFINITY, low, high;
    thi_hyper_limits(noise, begun, &low, &high);
    for (size_t i = 0; i < sizeof factors / sizeof *factors && !thi_driver_stopped(p->driver); i++) {
        double value = -INFINITY;
        noise->value = i == 0 ? begun : fmin(fmax(log(factors[i] * noise->floor), low), high);
        thiele_status status = log_posterior(p, false, &value);
        if (status != THIELE_OK && status != THIELE_ERROR_NUMERIC) {
            return status;
        }
        thi_recover(p->ctx);
        best = status == THIELE_OK && value > top ? noise->value : best;
        top = status == THIELE_OK ? fmax(top, value) : top;
    }
    noise->value = best;
    return thi_hypers_apply(p->hypers, p->ctx, p->spec);
}

/* The start that hypers hold: its noise, a short climb, and whether it is better than the best before it. */
static thiele_status try_start(ascent *p, start *best, double *x, thi_fit_result *result)
{
    thiele_status status = THIELE_OK;
    start here = {.value = x + p->hypers->count, .score = -INFINITY};
    if (p->hypers->noise >= 0 && !p->hypers->hyper[p->hypers->noise].fixed) {
        THI_TRY(try_noises(p));
    }
    status = taste(p, &here, x, result);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(p->ctx);
        status = THIELE_OK;
    }
    if (here.score > best->score) {
        best->score = here.score;
        memcpy(best->value, here.value, (size_t)p->hypers->count * sizeof *best->value);
    }
out:
    return status;
}

thiele_status thi_search_starts(const thi_problem *problem, const thi_objective *objective, void *state,
                                const thi_starts *starts, thi_fit_result *result)
{
    ascent p = ascent_of(problem, objective, state);
    size_t count = (size_t)p.hypers->count;
    double *room = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(p.ctx, &room, 3 * count, sizeof *room));
    THI_TRY(thi_alloc(p.ctx, &p.gradient, count, sizeof *p.gradient));
    start best = {.value = room + 2 * count, .score = -INFINITY};
    thi_hypers_keep(p.hypers, best.value);
    thi_driver_phase(p.driver, "starts", TASTE * starts->count);
    for (int s = 0; s < starts->count && !thi_driver_stopped(p.driver); s++) {
        p.base = starts->value + (size_t)s * count;
        thi_hypers_load(p.hypers, p.base);
        double deadline = thi_budget_split(p.driver, starts->count - s);
        status = try_start(&p, &best, room, result);
        thi_budget_restore(p.driver, deadline);
        THI_TRY(status);
    }
    thi_hypers_load(p.hypers, best.value);
    THI_TRY(thi_hypers_apply(p.hypers, p.ctx, p.spec));
out:
    thi_free(room);
    thi_free(p.gradient);
    return status;
}

thiele_status thi_freeze(thiele_context *ctx, const thi_objective *objective, const thi_spec *spec,
                         const thi_rows *rows, thi_fitted *fitted)
{
    void *state = NULL;
    thiele_status status = objective->open(&state, ctx, spec, rows);
    if (status == THIELE_OK) {
        status = objective->freeze(state, ctx, fitted);
    }
    if (state != NULL) {
        objective->close(state);
    }
    return status;
}

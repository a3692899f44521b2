/*
 * Gradient ascent in the parameters of q itself over all rows, by L-BFGS: everything together, or by turns as
 * savigp-jmlr section 9.1 has it (variational parameters, hyperparameters, likelihood parameters, inducing inputs, each
 * to some precision, until cycles gain less than the tolerance); or over hyperparameters and Z alone, with q at its
 * optimum by natural steps within each evaluation, where the gradient at fixed q is all of it. Any family of q.
 */
#include "fit/variational_state.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "optim/lbfgs.h"

enum {
    ITERATIONS = 500,
    CYCLES = 200,
    CYCLE_ITERATIONS = 20,
    LAST_CYCLES = 3,
    INNER_STEPS = 100,
    FIRST_STEPS = 400,
    NESTED_ITERATIONS = 200
};
/* Of what the search takes for progress: how near q is brought to its optimum within an evaluation. */
static const double PRECISE = 0.01;
/* Of what the cycle before gained: five iterations that gain less than this end a turn. */
static const double TURN_SHARE = 0.1;

/* --- L-BFGS over a stretch of the vector -------------------------------------------------------------------------- */

typedef struct climb {
    thi_vfit *fit;
    int64_t from, to;
    double *x; /* the whole vector at the best point but for the stretch */
    double *trial;
    double *before; /* a cycle: where it began */
    double *scale;  /* of each number: the optimiser sees x / scale */
    double best_value, best_bound;
    double single;        /* bound of the best component alone */
    thi_members *members; /* q goes to its optimum within each evaluation; NULL: it stays, or is part of the stretch */
} climb;

static double tolerance_of(const thi_vfit *fit)
{
    return fmax(1e-3, fit->tolerance * (double)fit->problem.source->n);
}

/* What the gradient in the stretch needs. */
static thi_wanted needed(const climb *c)
{
    const int64_t *first = c->fit->vector.first;
    bool q = c->from < first[THI_PART_KERNEL];
    bool prior = (c->from < first[THI_PART_PHI] && c->to > first[THI_PART_KERNEL]) || c->to > first[THI_PART_Z];
    bool phi = c->from < first[THI_PART_Z] && c->to > first[THI_PART_KERNEL];
    return (thi_wanted){.q = q, .prior = prior, .phi = phi};
}

/* The bound with log p(theta) at c->trial. */
static thiele_status evaluate(climb *c, thi_wanted wanted, double *log_p)
{
    thi_vfit *fit = c->fit;
    thiele_status status;
    THI_TRY(thi_vfit_take(fit, c->trial));
    if (c->members != NULL) {
        THI_TRY(thi_members_converge(fit, c->members, PRECISE * tolerance_of(fit), INNER_STEPS));
    }
    THI_TRY(thi_vfit_evaluate(fit, &thi_all_rows, wanted));
    *log_p = fit->pass.at.bound + fit->pass.at.log_prior;
    if (*log_p > c->best_value) {
        c->best_value = *log_p;
        c->best_bound = fit->pass.at.bound;
        fit->result->bound_rows = fit->problem.source->n;
        if (c->members != NULL) {
            memcpy(c->x, fit->vector.x, (size_t)fit->vector.first[THI_PART_KERNEL] * sizeof *c->x);
        }
    }
    thi_vfit_report(fit, *log_p, NAN, fit->problem.source->n);
    /* The first evaluation of a stretch must end well; any further one may be given up. */
    fit->pass.may_stop = true;
out:
    return status;
}

static thiele_status objective(void *arg, const double *stretch, double *value, double *gradient)
{
    climb *c = arg;
    double log_p;
    memcpy(c->trial, c->x, (size_t)thi_vfit_size(c->fit) * sizeof *c->x);
    for (int64_t i = c->from; i < c->to; i++) {
        c->trial[i] = c->scale[i] * stretch[i - c->from];
    }
    thiele_status status = evaluate(c, needed(c), &log_p);
    for (int64_t i = c->from; i < c->to && status == THIELE_OK; i++) {
        *value = -log_p;
        gradient[i - c->from] = -c->scale[i] * c->fit->vector.bar[i];
    }
    return status;
}

static bool stop(void *arg)
{
    return thi_vfit_stopped(((climb *)arg)->fit);
}

/* Hyperparameters have the scale 1. */
static void confine(void *arg, double *stretch)
{
    climb *c = arg;
    const int64_t *first = c->fit->vector.first;
    int64_t from = first[THI_PART_KERNEL], to = first[THI_PART_Z];
    from = from > c->from ? from : c->from;
    to = to < c->to ? to : c->to;
    if (from < to) {
        size_t size = (size_t)(to - from) * sizeof *stretch;
        memcpy(c->trial, c->x, (size_t)thi_vfit_size(c->fit) * sizeof *c->x);
        memcpy(c->trial + from, stretch + from - c->from, size);
        thi_vfit_confine(c->fit, c->trial);
        memcpy(stretch + from - c->from, c->trial + from, size);
    }
}

static thiele_status climb_stretch(climb *c, int64_t from, int64_t to, int iterations, double tolerance,
                                   thi_lbfgs_result *run)
{
    thi_vfit *fit = c->fit;
    thi_lbfgs_options options = {iterations, 1e-5, tolerance, stop, confine};
    double *stretch = NULL;
    thiele_status status;
    c->from = from;
    c->to = to;
    fit->pass.may_stop = false;
    THI_TRY(thi_alloc(fit->problem.ctx, &stretch, (size_t)(to - from), sizeof *stretch));
    for (int64_t i = from; i < to; i++) {
        stretch[i - from] = c->x[i] / c->scale[i];
    }
    THI_TRY(thi_lbfgs(fit->problem.ctx, (int)(to - from), stretch, objective, c, &options, run));
    for (int64_t i = from; i < to; i++) {
        c->x[i] = c->scale[i] * stretch[i - from];
    }
    fit->result->fit.iterations += run->iterations;
out:
    thi_free(stretch);
    return status;
}

/* Means and the entries of factors are scaled by the standard deviations that q begins with, and curve alike then. */
static void set_scale(climb *c)
{
    const thi_shape *shape = &c->fit->shape;
    int64_t M = shape->inducing;
    for (int64_t i = 0; i < thi_vfit_size(c->fit); i++) {
        c->scale[i] = 1.0;
    }
    for (int member = 0; member < shape->components * shape->latents; member++) {
        int64_t m = thi_variational_offset(shape, member / shape->latents, member % shape->latents), at = m + M;
        for (int64_t j = 0; j < M; j++) {
            int64_t column = shape->diagonal ? 1 : M - j;
            double sd = exp(c->x[at]);
            c->scale[m + j] = sd;
            for (int64_t i = 1; i < column; i++) {
                c->scale[at + i] = sd;
            }
            at += column;
        }
    }
}

static thiele_status climb_open(climb *c, thi_vfit *fit)
{
    size_t size = (size_t)thi_vfit_size(fit);
    *c = (climb){.fit = fit, .best_value = -INFINITY};
    if (size > INT_MAX) {
        return thi_fail(fit->problem.ctx, THIELE_ERROR_LIMIT,
                        "%zu numbers are too many for L-BFGS: use fewer inducing inputs or another optimiser", size);
    }
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &c->x, size, sizeof *c->x));
    THI_TRY(thi_alloc(fit->problem.ctx, &c->trial, size, sizeof *c->trial));
    THI_TRY(thi_alloc(fit->problem.ctx, &c->before, size, sizeof *c->before));
    THI_TRY(thi_alloc(fit->problem.ctx, &c->scale, size, sizeof *c->scale));
    memcpy(c->x, fit->vector.x, size * sizeof *c->x);
    set_scale(c);
out:
    return status;
}

/* To the best point. */
static thiele_status climb_end(climb *c)
{
    thi_vfit *fit = c->fit;
    fit->pass.may_stop = false;
    thiele_status status = thi_vfit_take(fit, c->x);
    if (status == THIELE_OK) {
        status = thi_vfit_begin(fit);
    }
    fit->pass.at.bound = c->best_bound;
    return status;
}

static void climb_close(climb *c)
{
    c->fit->pass.may_stop = false;
    thi_free(c->x);
    thi_free(c->trial);
    thi_free(c->before);
    thi_free(c->scale);
}

/* q first: its components are still where one was best. */
thiele_status thi_vfit_lbfgs(thi_vfit *fit)
{
    climb c;
    int iterations = fit->settings->iterations > 0 ? fit->settings->iterations : ITERATIONS;
    int64_t q = fit->vector.first[THI_PART_KERNEL], all = thi_vfit_size(fit);
    thi_lbfgs_result run;
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "fit", iterations);
    THI_TRY(climb_open(&c, fit));
    THI_TRY(climb_stretch(&c, 0, q, iterations, tolerance_of(fit), &run));
    if (q < all && !thi_vfit_stopped(fit)) {
        int left = iterations - run.iterations;
        THI_TRY(climb_stretch(&c, 0, all, left > 1 ? left : 1, tolerance_of(fit), &run));
    }
    fit->result->fit.stop = run.converged ? THIELE_STOP_CONVERGED : THIELE_STOP_ITERATIONS;
    THI_TRY(climb_end(&c));
out:
    climb_close(&c);
    return status;
}

/* --- q by natural steps ---------------------------------------------------------------------------------------------
 */

/* From q as it is in the fit's vector: c->x and its bound, where that is higher. */
static thiele_status settle_from_here(climb *c, int steps)
{
    thi_vfit *fit = c->fit;
    thiele_status status = thi_members_converge(fit, c->members, PRECISE * tolerance_of(fit), steps);
    if (status == THIELE_ERROR_NUMERIC && isfinite(c->best_bound)) {
        thi_recover(fit->problem.ctx);
        return THIELE_OK;
    }
    if (status == THIELE_OK && !(fit->pass.at.bound <= c->best_bound)) {
        c->best_bound = fit->pass.at.bound;
        fit->result->bound_rows = fit->problem.source->n;
        memcpy(c->x, fit->vector.x, (size_t)thi_vfit_size(fit) * sizeof *c->x);
    }
    return status;
}

/*
 * q at the present values, by steps from the modes apart and from copies of the best of them: the better of both, so
 * that a mixture is never behind one component, which goes the way of its copies. Where minibatches led, that one's
 * bound is known, and there is a q to end with before any pass over all rows.
 */
static thiele_status settle(climb *c, const thi_modes *modes)
{
    thi_vfit *fit = c->fit;
    thiele_status status = THIELE_OK;
    c->best_bound = -INFINITY;
    if (modes->count > 0) {
        thi_vfit_start_equal(fit, modes);
        if (!modes->weighed && !fit->shape.jensen) {
            c->best_bound = modes->bound[0];
            memcpy(c->x, fit->vector.x, (size_t)thi_vfit_size(fit) * sizeof *c->x);
            fit->pass.may_stop = true;
        }
        THI_TRY(settle_from_here(c, INNER_STEPS));
    }
    c->single = c->best_bound;
    if (modes->count == 0 || (fit->shape.components > 1 && !thi_vfit_stopped(fit))) {
        thi_vfit_start_q(fit, modes);
        THI_TRY(settle_from_here(c, FIRST_STEPS));
    }
    memcpy(c->before, c->x, (size_t)thi_vfit_size(fit) * sizeof *c->x);
    thi_vfit_report(fit, c->best_bound + fit->pass.at.log_prior, NAN, fit->problem.source->n);
out:
    return status;
}

/*
 * Whether hyperparameters stay: sites have led one component of this family to its optimum in everything already, or
 * minibatches have led to them, beside which every evaluation over all rows would be long.
 */
static bool is_settled(const thi_vfit *fit, const thi_modes *modes)
{
    bool whole = fit->problem.driver->deadline <= 0.0 && isinf(fit->passes), led = modes->count > 0 && !modes->weighed;
    return led || (fit->shape.components == 1 && !fit->settings->even && modes->count > 0 && whole);
}

thiele_status thi_vfit_members(thi_vfit *fit, const thi_modes *modes)
{
    climb c;
    thi_members members = {0};
    int iterations = fit->settings->iterations > 0 ? fit->settings->iterations : NESTED_ITERATIONS;
    int64_t q = fit->vector.first[THI_PART_KERNEL], all = thi_vfit_size(fit);
    thi_lbfgs_result run = {0};
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "fit", iterations);
    THI_TRY(climb_open(&c, fit));
    THI_TRY(thi_members_open(&members, fit));
    c.members = &members;
    THI_TRY(settle(&c, modes));
    double settled = c.best_bound;
    run.converged = fit->result->fit.stop == THIELE_STOP_CONVERGED;
    if (q < all && !is_settled(fit, modes) && !thi_vfit_stopped(fit)) {
        THI_TRY(climb_stretch(&c, q, all, iterations, tolerance_of(fit), &run));
    }
    if (c.best_bound < c.single) { /* what a prior of hyperparameters gained cost more than it */
        memcpy(c.x, c.before, (size_t)all * sizeof *c.x);
        c.best_bound = settled;
    }
    fit->result->fit.stop = q == all        ? THIELE_STOP_FIXED
                            : run.converged ? THIELE_STOP_CONVERGED
                                            : THIELE_STOP_ITERATIONS;
    THI_TRY(climb_end(&c));
out:
    thi_members_close(&members);
    climb_close(&c);
    return status;
}

/* --- by turns ----------------------------------------------------------------------------------------------------- */

/* On from where the cycle led to, in its direction, by strides that double as long as each of them gains. */
static thiele_status stride(climb *c)
{
    thi_vfit *fit = c->fit;
    int64_t size = thi_vfit_size(fit);
    double log_p, gone = 0.0;
    thiele_status status = THIELE_OK;
    for (double far = 1.0; status == THIELE_OK && !thi_vfit_stopped(fit); far *= 2.0) {
        double best = c->best_value;
        for (int64_t i = 0; i < size; i++) {
            c->trial[i] = c->x[i] + far * (c->x[i] - c->before[i]);
        }
        status = evaluate(c, (thi_wanted){0}, &log_p);
        if (status == THIELE_OK && !(log_p > best)) {
            break;
        }
        gone = status == THIELE_OK ? far : gone;
    }
    for (int64_t i = 0; i < size; i++) {
        c->x[i] += gone * (c->x[i] - c->before[i]);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        status = THIELE_OK;
    }
    return status;
}

/* *gain is what the cycle before gained, and then what this one did. */
static thiele_status cycle(climb *c, double tolerance, double *gain)
{
    const int64_t *first = c->fit->vector.first;
    double before = c->best_value;
    thi_lbfgs_result run;
    thiele_status status = THIELE_OK;
    memcpy(c->before, c->x, (size_t)thi_vfit_size(c->fit) * sizeof *c->x);
    for (int p = 0; p < THI_PARTS && status == THIELE_OK; p++) {
        bool stopped = p > 0 && thi_vfit_stopped(c->fit);
        if (first[p] < first[p + 1] && !stopped) {
            status =
                climb_stretch(c, first[p], first[p + 1], CYCLE_ITERATIONS, fmax(tolerance, TURN_SHARE * *gain), &run);
        }
    }
    if (status == THIELE_OK && first[THI_PART_KERNEL] < first[THI_PARTS]) {
        status = stride(c);
    }
    *gain = c->best_value - before;
    return status;
}

thiele_status thi_vfit_alternate(thi_vfit *fit)
{
    climb c;
    int cycles = fit->settings->iterations > 0 ? fit->settings->iterations : CYCLES, small = 0;
    double tolerance = tolerance_of(fit), gain = 0.0;
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "fit", (int64_t)cycles * CYCLE_ITERATIONS);
    THI_TRY(climb_open(&c, fit));
    for (int i = 0; i < cycles && small < LAST_CYCLES && (i == 0 || !thi_vfit_stopped(fit)); i++) {
        THI_TRY(cycle(&c, 0.1 * tolerance, &gain));
        small = gain < tolerance ? small + 1 : 0;
    }
    fit->result->fit.stop = small == LAST_CYCLES ? THIELE_STOP_CONVERGED : THIELE_STOP_ITERATIONS;
    THI_TRY(climb_end(&c));
out:
    climb_close(&c);
    return status;
}

/*
 * Steps of a decoupled fit on minibatches. A step that cannot be evaluated is taken back, and those after it are
 * shorter.
 */
#include <math.h>
#include <string.h>

#include "fit/decoupled_state.h"

enum {
    HOLD = 10,    /* steps before hyperparameters and points begin to move */
    FAILURES = 20 /* in a row */
};
static const double RECOVERY = 1.01;

typedef struct loop {
    thi_dfit *fit;
    thi_rule rule;
    int64_t t;
    double rate, caution;
    int failures;
    double smooth; /* running average of the bound */
    bool trial;    /* of a rate */
} loop;

static double rho_of(const loop *l)
{
    return l->caution * pow(8.0 + (double)l->t, -THI_DECOUPLED_DECAY);
}

/* New functions from the rows of the batch. In the orthogonal form one at a point of beta would add nothing. */
static thiele_status grow(thi_dfit *fit)
{
    int64_t D = fit->problem.source->dims, n = fit->pass.rows.n;
    int64_t beta = thi_least(n, thi_least(fit->added, fit->most_beta - fit->n_beta)), from = fit->orthogonal ? beta : 0;
    int64_t alpha = thi_least(n - from, thi_least(fit->added, fit->most_alpha - fit->n_alpha));
    thiele_status status = THIELE_OK;
    if (beta > 0) {
        THI_TRY(thi_dfit_add(fit, false, beta, fit->pass.rows.X, 0));
    }
    if (alpha > 0) {
        THI_TRY(thi_dfit_add(fit, true, alpha, fit->pass.rows.X + from * D, 0));
    }
out:
    return status;
}

/* Numbers from `at` on that a step has moved, each by one over its scale instead. */
static void shorten(thi_dfit *fit, double *at, int64_t n, const double *scale)
{
    const double *before = fit->vector.before + (at - fit->vector.x);
    for (int64_t i = 0; i < n; i++) {
        at[i] = before[i] + (at[i] - before[i]) / scale[i];
    }
}

/* Adam's step of a and L in the coordinates of the preconditioner. */
static void precondition(thi_dfit *fit)
{
    for (int q = 0; q < fit->latents->count; q++) {
        int group = fit->latents->group[q];
        const double *scale_L = fit->vector.scale_L + group * fit->most_beta;
        shorten(fit, thi_dfit_of(fit, THI_DPART_A, q), fit->n_alpha, fit->vector.scale_a + group * fit->most_alpha);
        for (int64_t j = 0; j < fit->n_beta && !fit->orthogonal; j++) {
            double *column = thi_dfit_of(fit, THI_DPART_L, q) + j * fit->most_beta;
            shorten(fit, column + j, fit->n_beta - j, scale_L + j);
        }
    }
}

static thiele_status move(loop *l, bool prior)
{
    thi_dfit *fit = l->fit;
    double scale = -1.0 / (double)fit->problem.source->n;
    bool points = prior && fit->settings->learn_basis;
    bool active[THI_DPARTS] = {true, true, prior && fit->learn, points, points, points, points};
    thiele_status status;
    memcpy(fit->vector.before, fit->vector.x, (size_t)fit->vector.whole * sizeof *fit->vector.x);
    if (fit->orthogonal && fit->n_beta > 0) {
        thi_dfit_step(fit, rho_of(l));
    }
    for (int64_t i = 0; i < fit->vector.size; i++) {
        fit->vector.bar[i] *= scale;
    }
    l->rule.factor = l->caution;
    THI_TRY(thi_rule_step(&l->rule, fit->problem.ctx, fit->vector.x, fit->vector.bar, active));
    precondition(fit);
    if (prior) {
        THI_TRY(thi_dfit_apply(fit));
    }
out:
    return status;
}

static thiele_status take_back(loop *l)
{
    thi_dfit *fit = l->fit;
    thi_recover(fit->problem.ctx);
    l->failures++;
    l->caution *= 0.5;
    memcpy(fit->vector.x, fit->vector.before, (size_t)fit->vector.whole * sizeof *fit->vector.x);
    return thi_dfit_apply(fit);
}

static void report(loop *l)
{
    thi_dfit *fit = l->fit;
    double log_p = fit->pass.at.bound + fit->pass.at.log_prior;
    l->smooth = l->t == 0 ? log_p : l->smooth + 0.1 * (log_p - l->smooth);
    thi_driver_step(fit->problem.driver, &(thi_step){.value = l->smooth,
                                                     .expected = fit->pass.at.expected,
                                                     .divergence = fit->pass.at.kl,
                                                     .size = thi_schedule_rate(&l->rule.schedule, l->t),
                                                     .rows = fit->pass.rows.n});
}

static thiele_status step(loop *l)
{
    thi_dfit *fit = l->fit;
    bool prior = (fit->learn || fit->settings->learn_basis) && l->t >= HOLD;
    thiele_status status;
    THI_TRY(thi_dfit_fetch(fit, l->t));
    if (fit->pass.rows.n == 0) {
        return THIELE_OK;
    }
    if (l->failures == 0) {
        THI_TRY(grow(fit));
    }
    if (thi_dfit_only_fills(fit)) {
        return THIELE_OK;
    }
    status = thi_dfit_evaluate(fit, l->t, (thi_wanted){.q = true, .prior = prior});
    if (status == THIELE_OK) {
        l->failures = 0;
        l->caution = fmin(1.0, RECOVERY * l->caution);
        report(l);
        status = move(l, prior);
    }
    if (status == THIELE_OK && !l->trial && thi_dfit_due(fit)) {
        status = thi_dfit_save(fit, l->smooth);
    }
    if (status == THIELE_ERROR_NUMERIC && l->t > 0 && l->failures < FAILURES) {
        status = take_back(l);
    }
out:
    return status;
}

static thiele_status loop_open(loop *l, thi_dfit *fit, double rate, bool trial)
{
    int64_t length[THI_DPARTS];
    thi_schedule schedule;
    thiele_status status;
    *l = (loop){.fit = fit, .rate = rate, .caution = 1.0, .trial = trial};
    for (int p = 0; p < THI_DPARTS; p++) {
        length[p] = fit->vector.first[p + 1] - fit->vector.first[p];
    }
    THI_TRY(thi_schedule_make(&schedule, fit->problem.ctx, "sqrt", rate, 0.0, 0.0));
    THI_TRY(thi_rule_open(&l->rule, fit->problem.ctx, "adam", &schedule, THI_DPARTS, length));
out:
    return status;
}

thiele_status thi_dfit_steps(thi_dfit *fit, double rate, int64_t steps, bool trial, double *last)
{
    loop l;
    double sum = 0.0, count = 0.0;
    thiele_status status;
    THI_TRY(loop_open(&l, fit, rate, trial));
    /* One step at least: without any there is no model. */
    for (; l.t < steps && (l.t == 0 || !thi_driver_stopped(fit->problem.driver)); l.t++) {
        THI_TRY(step(&l));
        if (4 * (l.t + 1) > 3 * steps) {
            sum += fit->pass.at.bound + fit->pass.at.log_prior;
            count += 1.0;
        }
    }
    *last = count > 0.0 ? sum / count : -INFINITY;
    fit->result->fit.iterations = (int)l.t;
out:
    if (l.rule.kind != NULL) {
        thi_rule_close(&l.rule);
    }
    return status;
}

/* The phases of a decoupled fit. */
#include "fit/decoupled.h"

#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/decoupled_state.h"

enum {
    ALPHA = 4096,
    BETA = 500,
    BATCH = 1024,
    ADDED = 128,
    COLUMNS = 256,
    ITERATIONS = 300, /* before sweeps */
    ITERATIONS_ALONE = 2000,
    SWEEPS = 10,
    TRIAL_STEPS = 100, /* with each rate; a twentieth of all steps where that is less */
    TRIAL_SHARE = 20,
    LEAST_TRIAL = 10,
    FEWEST_JUDGES = 100 /* rows that can say what noise predictions want */
};
static const double RATES[] = {0.1, 0.01, 0.001};
enum { RATE_COUNT = sizeof RATES / sizeof *RATES };

/* --- plan ------------------------------------------------------------------------------------------------------------
 */

static int64_t given_or(int64_t given, int64_t standard)
{
    return given > 0 ? given : standard;
}

static thiele_status check(const thi_dfit *fit)
{
    for (int g = 0; g < fit->latents->groups && fit->settings->generalised; g++) {
        if (!thi_functions_may_stretch(fit->latents->kernel[g])) {
            return thi_fail(fit->problem.ctx, THIELE_ERROR_ARGUMENT,
                            "separate length-scales per basis function need a single kernel: se, matern12, "
                            "matern32 or matern52");
        }
    }
    return THIELE_OK;
}

static void plan(thi_dfit *fit)
{
    const thi_decoupled_settings *s = fit->settings;
    int64_t n = fit->problem.source->n;
    fit->most_alpha = s->shared ? 0 : thi_least(given_or(s->alpha, ALPHA), n);
    fit->most_beta = s->beta < 0 ? 0 : thi_least(given_or(s->beta, BETA), (n + 1) / 2);
    fit->orthogonal = s->shared || s->form == THI_DECOUPLED_ORTHOGONAL ||
                      (s->form == THI_DECOUPLED_AUTO && fit->most_alpha > fit->most_beta && fit->most_beta > 0);
    fit->columns = thi_least(given_or(s->columns, COLUMNS), fit->most_alpha);
    /* Epoch by epoch another order; other uses of this purpose number their streams from 0. */
    thi_batches_open(&fit->batches, (thi_stream){fit->problem.ctx->seed, THI_RANDOM_SUBSET, UINT64_C(1) << 40}, n,
                     thi_least(given_or(s->batch, BATCH), n), fit->problem.source->run);
    int64_t epoch = fit->batches.per_epoch, most = fit->most_alpha > fit->most_beta ? fit->most_alpha : fit->most_beta;
    int64_t needed = (most + epoch - 1) / epoch;
    fit->added = s->added > 0 ? s->added : needed > ADDED ? needed : ADDED;
    fit->result->batch = fit->batches.largest;
    fit->result->orthogonal = fit->orthogonal;
}

/* --- the rate --------------------------------------------------------------------------------------------------------
 */

/* A few steps with each rate from where things stand, which they do again afterwards. */
static thiele_status choose_rate(thi_dfit *fit, int64_t steps, double *rate)
{
    double *start = NULL, best = -INFINITY;
    int64_t n_beta = fit->n_beta;
    double deadline = thi_budget_lend(fit->problem.driver, THI_SHARE_TRIAL);
    thiele_status status;
    *rate = RATES[1];
    thi_driver_phase(fit->problem.driver, "rate", steps * RATE_COUNT);
    THI_TRY(thi_alloc(fit->problem.ctx, &start, (size_t)fit->vector.whole, sizeof *start));
    memcpy(start, fit->vector.x, (size_t)fit->vector.whole * sizeof *start);
    for (int i = 0; i < RATE_COUNT; i++) {
        double last;
        thiele_status tried = thi_dfit_steps(fit, RATES[i], steps, true, &last);
        if (tried != THIELE_OK && tried != THIELE_ERROR_NUMERIC) {
            THI_TRY(tried);
        }
        thi_recover(fit->problem.ctx);
        if (tried == THIELE_OK && last > best) {
            best = last;
            *rate = RATES[i];
        }
        memcpy(fit->vector.x, start, (size_t)fit->vector.whole * sizeof *start);
        fit->n_alpha = 0;
        fit->n_beta = n_beta;
        THI_TRY(thi_dfit_apply(fit));
    }
out:
    thi_budget_restore(fit->problem.driver, deadline);
    thi_free(start);
    return status;
}

static int64_t trial_steps(int64_t steps)
{
    int64_t few = steps / TRIAL_SHARE > LEAST_TRIAL ? steps / TRIAL_SHARE : LEAST_TRIAL;
    return few < TRIAL_STEPS ? few : TRIAL_STEPS;
}

/* --- all of it -------------------------------------------------------------------------------------------------------
 */

/* Given, or the default; where sweeps find the weights and nothing else is learned, so many that the bases are
 * full. */
static int64_t steps_of(const thi_dfit *fit)
{
    if (thi_dfit_only_fills(fit)) {
        return (fit->most_alpha + fit->most_beta) / fit->added + 1;
    }
    return given_or(fit->sparse->iterations, fit->settings->sweeps >= 0 ? ITERATIONS : ITERATIONS_ALONE);
}

static thiele_status take_steps(thi_dfit *fit)
{
    int64_t steps = steps_of(fit);
    bool sweeps = fit->settings->sweeps >= 0;
    double deadline = sweeps ? thi_budget_lend(fit->problem.driver, THI_SHARE_STEPS) : fit->problem.driver->deadline,
           last;
    thiele_status status = THIELE_OK;
    fit->result->rate = fit->settings->rate > 0.0 ? fit->settings->rate : RATES[1];
    if (!(fit->settings->rate > 0.0) && steps >= 2 * LEAST_TRIAL && !thi_dfit_only_fills(fit)) {
        THI_TRY(choose_rate(fit, trial_steps(steps), &fit->result->rate));
    }
    thi_driver_phase(fit->problem.driver, "fit", steps);
    THI_TRY(thi_dfit_steps(fit, fit->result->rate, steps, false, &last));
out:
    thi_budget_restore(fit->problem.driver, deadline);
    return status;
}

/* Functions that no sweep would have time for are of no use. */
static void limit_alpha(thi_dfit *fit)
{
    if (fit->settings->alpha == 0 && fit->settings->sweeps >= 0 && thi_dfit_only_fills(fit)) {
        int64_t swept = thi_dfit_swept(fit);
        fit->most_alpha = thi_least(fit->most_alpha, swept > fit->most_beta ? swept : fit->most_beta);
        fit->columns = thi_least(fit->columns, fit->most_alpha);
    }
}

static thiele_status run(thi_dfit *fit, thi_fitted *fitted)
{
    const thi_pass *pass = &fit->pass;
    int sweeps = fit->settings->sweeps != 0 ? fit->settings->sweeps : SWEEPS;
    thiele_status status;
    THI_TRY(thi_dfit_first_values(fit));
    limit_alpha(fit);
    THI_TRY(thi_dfit_open(fit));
    THI_TRY(thi_dfit_first_beta(fit));
    if (isfinite(fit->floor) && thi_dfit_due(fit)) {
        THI_TRY(thi_dfit_save(fit, fit->floor));
    }
    THI_TRY(take_steps(fit));
    fit->result->fit.stop = THIELE_STOP_ITERATIONS;
    if (sweeps > 0 && !thi_driver_stopped(fit->problem.driver)) {
        thi_driver *driver = fit->problem.driver;
        double deadline = thi_budget_keep(driver, thi_budget_seconds(driver, thi_dfit_last_flops(fit)));
        status = thi_dfit_sweeps(fit, sweeps);
        thi_budget_restore(driver, deadline);
        THI_TRY(status);
    }
    THI_TRY(thi_dfit_last(fit));
    for (int q = 0; q < fit->latents->count; q++) {
        THI_TRY(pass->engine->freeze(pass->self, fit->problem.ctx, q, &fitted->latent[q]));
    }
    fitted->value = pass->at.bound;
    fitted->jitter = pass->engine->jitter(pass->self);
    fit->result->alpha = fit->n_alpha;
    fit->result->beta = fit->n_beta;
    fit->result->judged = fit->held >= FEWEST_JUDGES; /* else leave-one-out errors of all rows do */
    for (int q = 0; q < fit->latents->count && fit->result->judged; q++) {
        THI_TRY(thi_predictive_choose(fit->problem.ctx, &fit->left_out[q], fit->problem.spec, fit->problem.hypers, q,
                                      &fitted->latent[q]));
    }
out:
    return status;
}

thiele_status thi_fit_decoupled(const thi_problem *problem, const thi_variational_settings *sparse,
                                const thi_decoupled_settings *settings, thi_decoupled_result *result,
                                thi_fitted *fitted)
{
    *result = (thi_decoupled_result){0};
    thi_dfit fit = {.problem = *problem,
                    .latents = &problem->spec->latents,
                    .sparse = sparse,
                    .settings = settings,
                    .result = result,
                    .kl_alpha = NAN,
                    .floor = -INFINITY,
                    .learn = thi_hypers_free(problem->hypers) > 0 && !sparse->condition && sparse->iterations >= 0 &&
                             (settings->learn_hypers || settings->median || settings->sweeps < 0)};
    thiele_status status = check(&fit);
    if (status != THIELE_OK) {
        return status;
    }
    plan(&fit);
    status = run(&fit, fitted);
    result->fit.evaluations += fit.pass.evaluations;
    if (problem->driver->stopped) {
        result->fit.stop = problem->driver->reason;
    }
    thi_dfit_close(&fit);
    return status;
}

/*
 * Where a decoupled fit begins: hyperparameters and beta.
 *
 * With few functions in beta a variational fit takes for noise what they cannot follow, and the mean, which has many,
 * is then too smooth; exact regression on some rows has no such fault, but sees only those. With Gaussian noise both
 * are tried: of the two sets of values that one is taken with which exact regression on some rows predicts others
 * better, by the squared error, since the mean is what the large basis is for. Twice R^3/3 flops for R rows.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/decoupled_state.h"
#include "fit/online.h"
#include "fit/start.h"

enum { JUDGED = 2000 /* rows, at most */, LARGE = 10000 /* rows */, FEWEST_BETA = 250 };

bool thi_dfit_only_fills(const thi_dfit *fit)
{
    return fit->settings->sweeps >= 0 && !fit->learn && !fit->settings->learn_basis;
}

static thiele_status median_trick(thi_dfit *fit)
{
    thi_rows sample = {0};
    double spread;
    thiele_status status;
    THI_TRY(
        thi_source_sample(fit->problem.source, fit->problem.ctx, fit->batches.largest, THI_SAMPLE_EXPLORE, &sample));
    THI_TRY(thi_start_guess(fit->problem.hypers, fit->problem.ctx, fit->problem.spec, &sample, &spread));
    THI_TRY(thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec));
out:
    thi_rows_free(&sample);
    return status;
}

/* Hyperparameters and beta by a variational fit, which may have been given inducing inputs of its own. */
static thiele_status variational_first(thi_dfit *fit)
{
    thi_variational_settings settings = *fit->sparse;
    thi_variational_result result;
    thi_predictor latent = {0};
    thi_fitted fitted = {.latent = &latent};
    double deadline = thi_budget_lend(fit->problem.driver, THI_SHARE_VALUES);
    thiele_status status;
    if (fit->settings->beta == 0) {
        int64_t affordable = thi_most(FEWEST_BETA, thi_first_inducing(fit->problem.driver, fit->problem.source, 1));
        fit->most_beta = affordable < fit->most_beta ? affordable : fit->most_beta;
    }
    settings.inducing = fit->most_beta;
    settings.optimizer = "natural";
    settings.batch = fit->settings->batch;
    settings.rate = 0.0;
    THI_TRY(thi_fit_variational(&fit->problem, &settings, &result, &fitted));
    fit->result->fit.evaluations += result.fit.evaluations;
    thi_predictor_clear(&fit->found);
    fit->found = latent;
    latent = (thi_predictor){0};
    fit->bound_noise = true;
out:
    thi_budget_restore(fit->problem.driver, deadline);
    thi_predictor_clear(&latent);
    return status;
}

static thiele_status explore(thi_dfit *fit, const thi_objective *objective)
{
    return thi_first_explore(&fit->problem, objective, fit->sparse, &fit->result->fit, NULL);
}

static thiele_status set_values(thi_dfit *fit, const double *values)
{
    for (int i = 0; i < fit->problem.hypers->count; i++) {
        fit->problem.hypers->hyper[i].value = values[i];
    }
    return thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
}

/* The mean squared error of exact regression on the first half of some rows at the others; infinite where it cannot be
 * had. */
static thiele_status judge(const thi_dfit *fit, const thi_rows *sample, double *error)
{
    thi_rows half = *sample;
    int64_t n = sample->n / 2, rest = sample->n - n;
    thi_predictor latent = {0};
    thi_fitted fitted = {.latent = &latent};
    double *mean = NULL, sum = 0.0;
    thiele_status status;
    half.n = n;
    THI_TRY(thi_alloc(fit->problem.ctx, &mean, (size_t)rest, sizeof *mean));
    status = thi_freeze(fit->problem.ctx, &thi_objective_exact, fit->problem.spec, &half, &fitted);
    *error = INFINITY;
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        status = THIELE_OK;
        goto out;
    }
    THI_TRY(status);
    THI_TRY(thi_predictor_marginals(&latent, fit->problem.ctx, rest, sample->X + n * sample->dims, mean, NULL, NULL));
    for (int64_t i = 0; i < rest; i++) {
        sum += (sample->y[n + i] - mean[i]) * (sample->y[n + i] - mean[i]);
    }
    *error = sum / (double)rest;
out:
    thi_predictor_clear(&latent);
    thi_free(mean);
    return status;
}

/* Values by exploring and by a variational fit, of which the better ones stay; beta is the latter's. */
static thiele_status better_of_two(thi_dfit *fit)
{
    thi_rows sample = {0};
    double *explored = NULL, *learned = NULL, error[2];
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &explored, (size_t)fit->problem.hypers->count, sizeof *explored));
    THI_TRY(thi_alloc(fit->problem.ctx, &learned, (size_t)fit->problem.hypers->count, sizeof *learned));
    THI_TRY(explore(fit, &thi_objective_exact));
    thi_hypers_keep(fit->problem.hypers, explored);
    THI_TRY(variational_first(fit));
    thi_hypers_keep(fit->problem.hypers, learned);
    if (thi_driver_stopped(fit->problem.driver)) {
        goto out;
    }
    THI_TRY(thi_source_sample(fit->problem.source, fit->problem.ctx, 2 * JUDGED, THI_SAMPLE_JUDGE, &sample));
    for (int k = 0; k < 2; k++) {
        THI_TRY(set_values(fit, k == 0 ? explored : learned));
        THI_TRY(judge(fit, &sample, &error[k]));
    }
    /*
     * The variational posterior is that of its own values: others need sweeps to be of use, and leave a poor bound, for
     * which small tables have no need.
     */
    bool large = fit->problem.source->n >= LARGE;
    if (large && error[0] < error[1] && thi_dfit_swept(fit) > fit->most_beta) {
        THI_TRY(set_values(fit, explored));
        fit->bound_noise = false;
    }
out:
    thi_rows_free(&sample);
    thi_free(explored);
    thi_free(learned);
    return status;
}

thiele_status thi_dfit_first_values(thi_dfit *fit)
{
    const thi_objective *objective = fit->problem.hypers->noise >= 0 ? &thi_objective_exact : &thi_objective_dense;
    if (fit->sparse->condition) {
        return THIELE_OK;
    }
    if (fit->settings->median) {
        return median_trick(fit);
    }
    if (thi_dfit_only_fills(fit) && fit->orthogonal && fit->most_beta > 0 && !fit->settings->explore_only) {
        return fit->problem.hypers->noise >= 0 && thi_hypers_free(fit->problem.hypers) > 0 &&
                       fit->sparse->iterations >= 0
                   ? better_of_two(fit)
                   : variational_first(fit);
    }
    return explore(fit, objective);
}

/* What the variational fit knew is not forgotten. */
static thiele_status first_sites(thi_dfit *fit)
{
    thiele_status status = thi_online_prepare(&fit->found, fit->problem.ctx);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        return THIELE_OK;
    }
    return status == THIELE_OK ? thi_online_sites(&fit->found, fit->problem.ctx, NULL, &fit->vector.sites) : status;
}

thiele_status thi_dfit_first_beta(thi_dfit *fit)
{
    double *Z = NULL;
    int64_t M;
    thiele_status status;
    if (!fit->orthogonal || fit->most_beta == 0 || fit->settings->shared) {
        return THIELE_OK;
    }
    if (fit->found.n > 0 && fit->found.n <= fit->most_beta) {
        THI_TRY(thi_dfit_add(fit, false, fit->found.n, fit->found.basis));
        return fit->bound_noise ? first_sites(fit) : THIELE_OK;
    }
    THI_TRY(thi_first_basis(&fit->problem, fit->sparse, fit->most_beta, &Z, &M, NULL));
    THI_TRY(thi_dfit_add(fit, false, thi_least(M, fit->most_beta), Z));
out:
    thi_free(Z);
    return status;
}

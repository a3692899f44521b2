/*
 * Where a decoupled fit begins: hyperparameters and beta. Those of a variational fit with as many inducing inputs are
 * best by a bound that the decoupled one, at the same values, is never below: with a = 0 it is that of q(u_beta) alone.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/decoupled_state.h"
#include "fit/online.h"
#include "fit/start.h"

enum { FEWEST_BETA = 250 };

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

/* Lends a variational fit its share or, where sweeps take less than what that leaves, up to a quarter of the rest: how
 * fast the machine is nobody knows yet. */
static double lend_time(const thi_dfit *fit)
{
    thi_driver *driver = fit->problem.driver;
    double rest = thi_budget_left(driver) - thi_budget_part(driver, THI_SHARE_SMALL);
    double wanted = thi_budget_seconds(driver, thi_dfit_sweep_flops(fit));
    return isinf(rest) ? driver->deadline : thi_budget_keep(driver, fmin(rest, fmax(0.75 * rest, wanted)));
}

/*
 * Hyperparameters and beta by a variational fit, which may have been given inducing inputs of its own. Where values are
 * given it is for q alone: sweeps see the variances of f, and products of functions have no slope where all are zero.
 */
static thiele_status variational_first(thi_dfit *fit)
{
    thi_variational_settings settings = *fit->sparse;
    thi_variational_result result;
    thiele_status status;
    if (fit->settings->beta == 0) {
        int64_t affordable =
            thi_most(FEWEST_BETA, thi_first_inducing(fit->problem.driver, fit->problem.source, fit->latents->count));
        fit->most_beta = affordable < fit->most_beta ? affordable : fit->most_beta;
    }
    double deadline = lend_time(fit);
    settings.inducing = fit->most_beta;
    settings.optimizer = "natural";
    settings.batch = fit->settings->batch;
    settings.rate = 0.0;
    settings.explored = &fit->explored;
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->found, (size_t)fit->latents->count, sizeof *fit->found));
    thi_fitted fitted = {.latent = fit->found};
    THI_TRY(thi_fit_variational(&fit->problem, &settings, &result, &fitted));
    fit->result->fit.evaluations += result.fit.evaluations;
    fit->floor = fitted.value;
out:
    thi_budget_restore(fit->problem.driver, deadline);
    return status;
}

static thiele_status explore(thi_dfit *fit, const thi_objective *objective)
{
    return thi_first_explore(&fit->problem, objective, fit->sparse, &fit->result->fit, NULL);
}

thiele_status thi_dfit_first_values(thi_dfit *fit)
{
    const thi_objective *objective = fit->problem.hypers->noise >= 0 ? &thi_objective_exact : &thi_objective_dense;
    bool gaussian = thi_pass_is_tight(fit->problem.spec, &thi_engine_decoupled);
    bool sweeps = thi_dfit_only_fills(fit) && fit->orthogonal && fit->most_beta > 0;
    if (fit->sparse->condition) {
        return sweeps && !gaussian ? variational_first(fit) : THIELE_OK;
    }
    if (fit->settings->median) {
        return median_trick(fit);
    }
    return sweeps ? variational_first(fit) : explore(fit, objective);
}

/* What the variational fit knew is not forgotten. */
static thiele_status first_sites(thi_dfit *fit)
{
    thiele_status status = THIELE_OK;
    for (int q = 0; q < fit->latents->count && status == THIELE_OK; q++) {
        thi_natural sites = thi_dfit_sites(fit, fit->vector.x, q);
        status = thi_online_prepare(&fit->found[q], fit->problem.ctx);
        if (status == THIELE_OK) {
            status = thi_online_sites(&fit->found[q], fit->problem.ctx, NULL, &sites);
        } else if (status == THIELE_ERROR_NUMERIC) {
            thi_recover(fit->problem.ctx);
            status = THIELE_OK;
        }
    }
    return status;
}

/* The bases of the variational fit, one a group, in one piece. */
static thiele_status found_basis(const thi_dfit *fit, double **Z)
{
    int64_t each = fit->found[0].n * fit->problem.source->dims;
    thiele_status status = thi_alloc(fit->problem.ctx, Z, (size_t)(each * fit->latents->groups), sizeof **Z);
    for (int g = 0; status == THIELE_OK && g < fit->latents->groups; g++) {
        memcpy(*Z + g * each, fit->found[thi_dfit_first(fit, g)].basis, (size_t)each * sizeof **Z);
    }
    return status;
}

thiele_status thi_dfit_first_beta(thi_dfit *fit)
{
    double *Z = NULL;
    int64_t M;
    thiele_status status;
    if (!fit->orthogonal || fit->most_beta == 0 || fit->settings->shared) {
        return THIELE_OK;
    }
    int64_t D = fit->problem.source->dims;
    if (fit->found != NULL && fit->found[0].n > 0 && fit->found[0].n <= fit->most_beta) {
        THI_TRY(found_basis(fit, &Z));
        THI_TRY(thi_dfit_add(fit, false, fit->found[0].n, Z, fit->found[0].n * D));
        THI_TRY(first_sites(fit));
        goto out;
    }
    THI_TRY(thi_first_basis(&fit->problem, fit->sparse, fit->most_beta, &Z, &M, NULL));
    THI_TRY(thi_dfit_add(fit, false, thi_least(M, fit->most_beta), Z,
                         fit->sparse->Z != NULL && fit->sparse->all_Z ? M * D : 0));
out:
    thi_free(Z);
    return status;
}

/* The phases of a fit by blocks, and what there is between two steps: a predictor, an error, a snapshot. */
#include "fit/blocks.h"

#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

/* A look at the held-out rows is followed by steps that take this many times as long, at least. */
static const double LOOK_EVERY = 20.0;

/* --- the present state -----------------------------------------------------------------------------------------------
 */

thiele_status thi_bfit_freeze(thi_bfit *fit, thi_fitted *fitted)
{
    /* The sums of plain gradients are those that q would be the posterior of; what the data say is in the last step. */
    const thi_natural *told = fit->settings->gradient ? &fit->step : &fit->sums;
    thiele_status status;
    THI_TRY(thi_sparse_set(&fit->engine, fit->problem.ctx, &fit->sums));
    THI_TRY(thi_sparse_freeze(&fit->engine, fit->problem.ctx, fit->settings->form.conditional, fitted->latent));
    if (fit->settings->form.local) {
        thi_local_renew(fit->local, fit->engine.noise);
        fitted->latent->local = fit->local;
    }
    fitted->value = thi_sparse_expected(&fit->engine, told) - thi_sparse_divergence(&fit->engine);
    fitted->jitter = fit->engine.jitter;
out:
    return status;
}

static double probe_flops(const thi_bfit *fit)
{
    return thi_bfit_set_flops(fit) + thi_bfit_local_flops(fit, THI_HELD_BLOCKS);
}

/* The root mean square error on the held-out rows. */
static thiele_status probe(thi_bfit *fit, const thi_predictor *predictor)
{
    const thi_rows *held = &fit->held;
    double *mean = NULL, total = 0.0;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &mean, (size_t)held->n, sizeof *mean));
    THI_TRY(thi_predictor_marginals(predictor, fit->problem.ctx, held->n, held->X, mean, NULL, NULL));
    for (int64_t i = 0; i < held->n; i++) {
        double gap = held->y[i] - mean[i];
        total += gap * gap;
    }
    fit->problem.driver->held_out = fit->result->held_error = sqrt(total / (double)held->n);
out:
    thi_free(mean);
    return status;
}

thiele_status thi_bfit_look(thi_bfit *fit)
{
    const thi_blocks_settings *s = fit->settings;
    double began = thi_seconds();
    bool probing = fit->held.n > 0 && began >= fit->next_probe && thi_bfit_affords(fit, probe_flops(fit)) &&
                   thi_budget_seconds(fit->problem.driver, probe_flops(fit)) <
                       thi_budget_part(fit->problem.driver, THI_SHARE_LOOK);
    bool saving = s->snapshot != NULL && began >= fit->next_snapshot && thi_bfit_affords(fit, thi_bfit_set_flops(fit));
    thi_predictor predictor = {0};
    thi_fitted fitted = {.latent = &predictor};
    thiele_status status = THIELE_OK;
    if (!probing && !saving) {
        return THIELE_OK;
    }
    THI_TRY(thi_bfit_freeze(fit, &fitted));
    if (probing) {
        THI_TRY(probe(fit, &predictor));
        fit->next_probe = thi_seconds() + LOOK_EVERY * (thi_seconds() - began);
    }
    if (saving) {
        THI_TRY(s->snapshot(s->snapshot_arg, &fitted));
        fit->next_snapshot = thi_seconds() + s->every;
    }
out:
    predictor.local = NULL;
    thi_predictor_clear(&predictor);
    return status;
}

thiele_status thi_bfit_show(thi_bfit *fit)
{
    thi_fit_result result = fit->result->fit;
    double deadline = thi_budget_lend(fit->problem.driver, THI_SHARE_LOOK);
    thiele_status status = THIELE_OK;
    if (fit->settings->form.local) {
        THI_TRY(thi_bfit_gather(fit));
    }
    fit->next_snapshot = 0.0;
    THI_TRY(thi_bfit_steps(fit));
out:
    thi_local_destroy(fit->local);
    fit->local = NULL;
    fit->result->fit = result;
    thi_budget_restore(fit->problem.driver, deadline);
    return status;
}

/* --- phases ----------------------------------------------------------------------------------------------------------
 */

static thiele_status open_engine(thi_bfit *fit)
{
    const double *weight = fit->settings->form.weight;
    thi_sparse_shape shape = {
        .M = fit->M, .largest = fit->result->largest, .penalty = THI_PENALTY_TRACE, .gradients = fit->learn};
    memcpy(shape.weight, weight, sizeof shape.weight);
    thi_sparse_close(&fit->engine);
    return thi_sparse_open(&fit->engine, fit->problem.ctx, &shape, fit->problem.source->dims);
}

static thiele_status open_blocks(thi_bfit *fit)
{
    thiele_status status = thi_bfit_partition(fit);
    return status == THIELE_OK ? open_engine(fit) : status;
}

static thiele_status first_phases(thi_bfit *fit)
{
    const thi_variational_settings *s = fit->sparse;
    double started = thi_seconds();
    thiele_status status = THIELE_OK;
    if (!s->condition) {
        THI_TRY(thi_first_explore(&fit->problem, &thi_objective_exact, s, &fit->result->fit, &fit->starts));
    }
    fit->result->learn_seconds = thi_seconds() - started;
    int64_t wanted = s->inducing > 0 ? s->inducing : thi_first_inducing(fit->problem.driver, fit->problem.source, 1);
    THI_TRY(thi_first_basis(&fit->problem, s, wanted, &fit->Z, &fit->M, NULL));
    THI_TRY(thi_natural_open(&fit->sums, fit->problem.ctx, fit->M));
    THI_TRY(thi_natural_open(&fit->step, fit->problem.ctx, fit->M));
    fit->result->inducing = fit->M;
    THI_TRY(open_blocks(fit));
    thi_bfit_plan(fit);
out:
    return status;
}

static thiele_status run(thi_bfit *fit, thi_fitted *fitted)
{
    bool whole = fit->settings->form.weight[THI_RESIDUAL_BLOCK] != 0.0;
    thiele_status status;
    THI_TRY(first_phases(fit));
    if (!fit->settings->form.local) {
        /* What explains blocks best may leave nothing to predictions, which do not see them. */
        fit->starts.count = fit->starts.count > 0 ? 1 : 0;
    }
    if (fit->learn) {
        THI_TRY(thi_bfit_learn(fit));
        if (whole) {
            THI_TRY(open_blocks(fit)); /* in the distances of what was learned */
        }
    }
    if (fit->settings->form.local) {
        THI_TRY(thi_bfit_gather(fit));
    }
    THI_TRY(thi_bfit_steps(fit));
    THI_TRY(thi_bfit_freeze(fit, fitted));
    fit->local = NULL; /* the predictor's now */
    THI_TRY(thi_bfit_noise(fit, fitted));
    if (fit->held.n > 0 && thi_bfit_affords(fit, probe_flops(fit))) {
        THI_TRY(probe(fit, fitted->latent));
    }
out:
    return status;
}

static void close_fit(thi_bfit *fit)
{
    thi_partition_clear(&fit->partition);
    thi_sparse_close(&fit->engine);
    thi_natural_close(&fit->sums);
    thi_natural_close(&fit->step);
    thi_rows_free(&fit->buffer);
    thi_rows_free(&fit->held);
    thi_local_destroy(fit->local);
    thi_free(fit->Z);
    thi_free(fit->starts.value);
}

thiele_status thi_fit_blocks(const thi_problem *problem, const thi_variational_settings *sparse,
                             const thi_blocks_settings *settings, thi_blocks_result *result, thi_fitted *fitted)
{
    *result = (thi_blocks_result){.held_error = NAN};
    thi_bfit fit = {.problem = *problem,
                    .sparse = sparse,
                    .settings = settings,
                    .result = result,
                    .learn = thi_hypers_free(problem->hypers) > 0 && !sparse->condition && sparse->iterations >= 0};
    if (problem->hypers->noise < 0 || problem->source->outputs != 1) {
        return thi_fail(problem->ctx, THIELE_ERROR_ARGUMENT,
                        "sparse regression by blocks is for Gaussian noise and one target");
    }
    thiele_status status = run(&fit, fitted);
    if (problem->driver->stopped) {
        result->fit.stop = problem->driver->reason;
    }
    close_fit(&fit);
    return status;
}

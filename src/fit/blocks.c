/* The phases of a fit by blocks, and what there is between two steps: a predictor, an error, a snapshot. */
#include "fit/blocks.h"

#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

/* A look at the held-out rows is followed by steps that take this many times as long, at least. */
static const double LOOK_EVERY = 20.0;
enum { MOST_RAISES = 3, INDUCING = 300 /* without a deadline */ };
/* Likewise, of a variational fit: some twenty seconds of two cores. */
static const double LEARNING_FLOPS = 6e11, FEWEST_EPOCHS = 2.0, MOST_EPOCHS = 1000.0;

/* --- the present state -----------------------------------------------------------------------------------------------
 */

thiele_status thi_bfit_freeze(thi_bfit *fit, thi_fitted *fitted)
{
    /* The sums of plain gradients are those that q would be the posterior of; what the data say is in the last step. */
    const thi_natural *told = fit->settings->gradient ? fit->step : fit->sums;
    bool local = fit->settings->form.local;
    thiele_status status = THIELE_OK;
    if (local && fit->sites != NULL) {
        THI_TRY(thi_bsites_lend(fit));
    }
    fitted->jitter = 0.0;
    for (int q = 0; q < fit->latents; q++) {
        thi_sparse *e = &fit->engine[q];
        THI_TRY(thi_sparse_set(e, fit->problem.ctx, &fit->sums[q]));
        THI_TRY(thi_sparse_freeze(e, fit->problem.ctx, fit->settings->form.conditional, &fitted->latent[q]));
        if (local) {
            thi_local_renew(fit->local[q], e->noise);
            fitted->latent[q].local = fit->local[q];
        }
        fitted->jitter = fmax(fitted->jitter, e->jitter);
    }
    fitted->value = fit->sites != NULL ? thi_bsites_bound(fit)
                                       : thi_sparse_expected(fit->engine, told) - thi_sparse_divergence(fit->engine);
out:
    for (int q = 0; q < fit->latents && status != THIELE_OK; q++) {
        fitted->latent[q].local = NULL; /* still the fit's */
    }
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
    bool saving =
        s->snapshot.save != NULL && began >= fit->next_snapshot && thi_bfit_affords(fit, thi_bfit_set_flops(fit));
    thi_fitted fitted = {0};
    thiele_status status = THIELE_OK;
    if (!probing && !saving) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &fitted.latent, (size_t)fit->latents, sizeof *fitted.latent));
    THI_TRY(thi_bfit_freeze(fit, &fitted));
    if (probing) {
        THI_TRY(probe(fit, fitted.latent));
        fit->next_probe = thi_seconds() + LOOK_EVERY * (thi_seconds() - began);
    }
    if (saving) {
        THI_TRY(s->snapshot.save(s->snapshot.arg, &fitted));
        fit->next_snapshot = thi_seconds() + s->snapshot.every;
    }
out:
    for (int q = 0; fitted.latent != NULL && q < fit->latents; q++) {
        fitted.latent[q].local = NULL;
        thi_predictor_clear(&fitted.latent[q]);
    }
    thi_free(fitted.latent);
    return status;
}

static void drop_local(thi_bfit *fit)
{
    for (int q = 0; fit->local != NULL && q < fit->latents; q++) {
        thi_local_destroy(fit->local[q]);
        fit->local[q] = NULL;
    }
}

static thiele_status steps(thi_bfit *fit)
{
    return fit->sites != NULL ? thi_bsites_steps(fit) : thi_bfit_steps(fit);
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
    THI_TRY(steps(fit));
out:
    drop_local(fit);
    fit->result->fit = result;
    thi_budget_restore(fit->problem.driver, deadline);
    return status;
}

/* --- phases ----------------------------------------------------------------------------------------------------------
 */

static thiele_status open_engine(thi_bfit *fit)
{
    const double *weight = fit->settings->form.weight;
    thi_sparse_shape shape = {.M = fit->M,
                              .largest = fit->result->largest,
                              .penalty = THI_PENALTY_LOG,
                              .gradients = fit->climbs,
                              .sites = fit->sites != NULL};
    thiele_status status = THIELE_OK;
    memcpy(shape.weight, weight, sizeof shape.weight);
    for (int q = 0; q < fit->latents && status == THIELE_OK; q++) {
        thi_sparse_close(&fit->engine[q]);
        shape.twin = q > 0 && fit->problem.spec->latents.groups == 1;
        status = thi_sparse_open(&fit->engine[q], fit->problem.ctx, &shape, fit->problem.source->dims);
    }
    return status;
}

static thiele_status open_blocks(thi_bfit *fit)
{
    thiele_status status;
    THI_TRY(thi_bfit_partition(fit));
    if (!fit->closed) {
        THI_TRY(thi_bsites_open(fit));
    }
    THI_TRY(open_engine(fit));
out:
    return status;
}

/* As many as were asked for, or suit the time. */
static int64_t inducing_of(const thi_bfit *fit)
{
    bool hurried = fit->problem.driver->deadline > 0.0;
    int64_t most = thi_first_inducing(fit->problem.driver, fit->problem.source, fit->latents);
    return fit->sparse->inducing > 0 ? fit->sparse->inducing
           : hurried                 ? most
                                     : thi_least(most, (int64_t)thi_budget_rows(fit->problem.driver, INDUCING));
}

static thiele_status explore(thi_bfit *fit)
{
    const thi_variational_settings *s = fit->sparse;
    thiele_status status = THIELE_OK;
    if (!s->condition && (fit->closed || fit->learn)) {
        const thi_objective *objective = fit->closed ? &thi_objective_exact : &thi_objective_dense;
        THI_TRY(thi_first_explore(&fit->problem, objective, s, &fit->result->fit, &fit->starts));
    }
    THI_TRY(thi_first_basis(&fit->problem, s, inducing_of(fit), &fit->Z, &fit->M, NULL));
out:
    return status;
}

/* Passes over the rows that a variational fit may take where no deadline says so. */
static int epochs_of(const thi_bfit *fit, double M)
{
    const thi_source *source = fit->problem.source;
    double pass = fit->latents * (double)source->n * (5.0 * M * M + 6.0 * M * source->dims);
    return (int)fmax(FEWEST_EPOCHS, fmin(MOST_EPOCHS, thi_budget_work(fit->problem.driver, LEARNING_FLOPS) / pass));
}

/*
 * Hyperparameters and Z by a variational fit: sites take many rounds for each evaluation of a bound of blocks, where a
 * minibatch takes one.
 */
static thiele_status variational_first(thi_bfit *fit)
{
    thi_variational_settings settings = *fit->sparse;
    thi_variational_result result;
    thi_fitted fitted = {0};
    bool others;
    double deadline = thi_budget_lend(fit->problem.driver, THI_SHARE_VALUES);
    thiele_status status;
    settings.inducing = inducing_of(fit);
    settings.optimizer = "natural";
    settings.components = 1;
    settings.explored = &fit->starts;
    if (fit->problem.driver->deadline == 0.0 && settings.epochs == 0 && settings.iterations == 0) {
        settings.epochs = epochs_of(fit, (double)settings.inducing);
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &fitted.latent, (size_t)fit->latents, sizeof *fitted.latent));
    THI_TRY(thi_fit_variational(&fit->problem, &settings, &result, &fitted));
    fit->result->fit.evaluations += result.fit.evaluations;
    fit->result->fit.iterations += result.fit.iterations;
    fit->result->fit.stop = result.fit.stop;
    fit->M = fitted.latent->n;
    fit->Z = fitted.latent->basis;
    fitted.latent->basis = NULL;
    if (fit->learn) {
        THI_TRY(thi_keep_better(&fit->problem, &thi_objective_dense, &fit->starts, &others));
    }
out:
    thi_budget_restore(fit->problem.driver, deadline);
    for (int q = 0; fitted.latent != NULL && q < fit->latents; q++) {
        thi_predictor_clear(&fitted.latent[q]);
    }
    thi_free(fitted.latent);
    return status;
}

static thiele_status first_phases(thi_bfit *fit)
{
    bool variational = !fit->closed && fit->learn && !fit->climbs;
    double started = thi_seconds();
    thiele_status status = THIELE_OK;
    THI_TRY((variational ? variational_first : explore)(fit));
    fit->result->learn_seconds = thi_seconds() - started;
    for (int q = 0; q < fit->latents; q++) {
        THI_TRY(thi_natural_open(&fit->sums[q], fit->problem.ctx, fit->M));
        THI_TRY(thi_natural_open(&fit->step[q], fit->problem.ctx, fit->M));
    }
    fit->result->inducing = fit->M;
    THI_TRY(open_blocks(fit));
    thi_bfit_plan(fit);
out:
    return status;
}

/*
 * What some blocks taught may be far off for all, one row beyond all others is enough. Where the rows are less likely
 * than under a constant and unit variance, their squares are so many times too large for the noise; it rises by as
 * much, and the sums are taken again.
 */
static thiele_status steps_with_enough_noise(thi_bfit *fit)
{
    thi_hypers *hypers = fit->problem.hypers;
    thi_hyper *noise = &hypers->hyper[hypers->noise];
    bool free = fit->learn && !noise->fixed && !fit->settings->gradient;
    thiele_status status;
    for (int tries = 0; tries < MOST_RAISES; tries++) {
        THI_TRY(thi_bfit_steps(fit));
        double rows = fit->result->rows, level = thi_hyper_number(noise);
        double constant = -0.5 * rows * (1.0 + log(2.0 * M_PI));
        double lack = constant - thi_sparse_expected(fit->engine, fit->sums) + thi_sparse_divergence(fit->engine);
        if (!free || !(lack > 0.0) || level >= 1.0) {
            break;
        }
        noise->value = log(fmin(1.0, level * (1.0 + 2.0 * lack / rows)));
        THI_TRY(thi_hypers_apply(hypers, fit->problem.ctx, fit->problem.spec));
    }
out:
    return status;
}

/* The last of them is there when all are. */
static thiele_status open_latents(thi_bfit *fit)
{
    size_t latents = (size_t)fit->latents;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->engine, latents, sizeof *fit->engine));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->sums, latents, sizeof *fit->sums));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->step, latents, sizeof *fit->step));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->local, latents, sizeof *fit->local));
out:
    return status;
}

static thiele_status run(thi_bfit *fit, thi_fitted *fitted)
{
    bool whole = fit->settings->form.weight[THI_RESIDUAL_BLOCK] != 0.0;
    thiele_status status;
    THI_TRY(open_latents(fit));
    THI_TRY(first_phases(fit));
    if (!fit->settings->form.local || fit->sites != NULL) {
        /* What explains blocks best may leave nothing to predictions, which do not see them; sites take long to try. */
        fit->starts.count = fit->starts.count > 0 ? 1 : 0;
    }
    if (fit->climbs) {
        THI_TRY(thi_bfit_learn(fit));
        fit->small = false;
        if (whole) {
            THI_TRY(open_blocks(fit)); /* in the distances of what was learned */
        }
    }
    if (fit->settings->form.local) {
        THI_TRY(thi_bfit_gather(fit));
    }
    THI_TRY((fit->closed ? steps_with_enough_noise : steps)(fit));
    THI_TRY(thi_bfit_freeze(fit, fitted));
    memset(fit->local, 0, (size_t)fit->latents * sizeof *fit->local); /* the predictors' now */
    if (fit->closed) {
        THI_TRY(thi_bfit_noise(fit, fitted));
    }
    if (fit->held.n > 0 && thi_bfit_affords(fit, probe_flops(fit))) {
        THI_TRY(probe(fit, fitted->latent));
    }
    if (fit->settings->form.local) {
        THI_TRY(thi_bfit_borders(fit, fitted));
    }
out:
    return status;
}

static void close_fit(thi_bfit *fit)
{
    thi_partition_clear(&fit->partition);
    drop_local(fit);
    for (int q = 0; fit->local != NULL && q < fit->latents; q++) {
        thi_sparse_close(&fit->engine[q]);
        thi_natural_close(&fit->sums[q]);
        thi_natural_close(&fit->step[q]);
    }
    thi_bsites_close(fit);
    thi_free(fit->engine);
    thi_free(fit->sums);
    thi_free(fit->step);
    thi_free(fit->local);
    thi_rows_free(&fit->buffer);
    thi_rows_free(&fit->held);
    thi_free(fit->Z);
    thi_free(fit->starts.value);
}

/* The bound's gradient has no part for parameters of the likelihood, and several functions take as many times longer.
 */
static bool climbs_by_sites(const thi_bfit *fit)
{
    const thi_hypers *hypers = fit->problem.hypers;
    bool own = false;
    for (int i = hypers->first[hypers->groups]; i < hypers->count; i++) {
        own = own || !hypers->hyper[i].fixed;
    }
    return fit->latents == 1 && !own;
}

thiele_status thi_fit_blocks(const thi_problem *problem, const thi_variational_settings *sparse,
                             const thi_blocks_settings *settings, thi_blocks_result *result, thi_fitted *fitted)
{
    *result = (thi_blocks_result){.held_error = NAN};
    thi_bfit fit = {.problem = *problem,
                    .sparse = sparse,
                    .settings = settings,
                    .result = result,
                    .latents = problem->spec->latents.count,
                    .closed =
                        problem->hypers->noise >= 0 && problem->source->outputs == 1 && !problem->source->beside.weight,
                    .learn = thi_hypers_free(problem->hypers) > 0 && !sparse->condition && sparse->iterations >= 0};
    fit.climbs = fit.learn && (fit.closed || climbs_by_sites(&fit));
    fit.small = fit.climbs && !fit.closed && settings->form.weight[THI_RESIDUAL_BLOCK] != 0.0;
    const thi_blocks_form *form = &settings->form;
    bool one = form->weight[THI_RESIDUAL_DIAGONAL] == 1.0 || form->weight[THI_RESIDUAL_BLOCK] == 1.0;
    if (!fit.closed && (!one || settings->rho_0 > 0.0 || settings->gradient)) {
        return thi_fail(problem->ctx, THIELE_ERROR_ARGUMENT,
                        "sums of models, schedules and plain gradients, like sor and dtc, need Gaussian noise and a "
                        "single target");
    }
    thiele_status status = run(&fit, fitted);
    if (problem->driver->stopped) {
        result->fit.stop = problem->driver->reason;
    }
    close_fit(&fit);
    return status;
}

/*
 * Snapshots, and the end of a decoupled fit. Orthogonal: a natural step of size 1 over all rows is the optimum of the
 * sites given the mean's other part with Gaussian noise, and near it else; it takes the noise of the batches out of q.
 * Where there are many rows a part of them joins what the last batches left, each weighed by its rows. After sweeps of
 * Gaussian noise the sites are there already.
 */
#include <math.h>
#include <string.h>

#include "fit/decoupled_state.h"

enum { BATCHES = 64, STEPS = 5 };
/* Nats a row: a step that gains less is the last one. */
static const double TOLERANCE = 1e-6;

bool thi_dfit_due(const thi_dfit *fit)
{
    return fit->settings->snapshot.save != NULL && thi_seconds() >= fit->next_snapshot;
}

thiele_status thi_dfit_save(thi_dfit *fit, double value)
{
    const thi_snapshot *snapshot = &fit->settings->snapshot;
    const thi_pass *pass = &fit->pass;
    int Q = fit->latents->count;
    thi_fitted fitted = {.value = value};
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &fitted.latent, (size_t)Q, sizeof *fitted.latent));
    THI_TRY(thi_dfit_ready(fit));
    fitted.jitter = pass->engine->jitter(pass->self);
    for (int q = 0; q < Q; q++) {
        THI_TRY(pass->engine->freeze(pass->self, fit->problem.ctx, q, &fitted.latent[q]));
    }
    THI_TRY(snapshot->save(snapshot->arg, &fitted));
    fit->next_snapshot = thi_seconds() + snapshot->every;
out:
    for (int q = 0; fitted.latent != NULL && q < Q; q++) {
        thi_predictor_clear(&fitted.latent[q]);
    }
    thi_free(fitted.latent);
    return status;
}

/* The bound over the first batches of the next epoch, as many as there is time for; *rows of them. */
static thiele_status pass(thi_dfit *fit, int64_t from, int64_t count, bool pull, int64_t *rows)
{
    thi_wanted wanted = {.step = pull};
    thiele_status status;
    int64_t t = from;
    *rows = 0;
    THI_TRY(thi_dfit_begin(fit, from, wanted));
    for (; t < from + count && (*rows == 0 || !thi_driver_ask(fit->problem.driver)); t++) {
        THI_TRY(thi_dfit_fetch(fit, t));
        if (fit->pass.rows.n > 0) {
            THI_TRY(thi_dfit_rows(fit, t, 1.0, wanted));
            *rows += fit->pass.rows.n;
        }
    }
    if (*rows == 0) {
        return thi_fail(fit->problem.ctx, THIELE_ERROR_DATA, "every row examined has a missing value");
    }
    fit->pass.at.expected *= (double)fit->problem.source->n / (double)*rows;
    THI_TRY(thi_dfit_end(fit));
    fit->result->bound_rows = *rows;
out:
    return status;
}

/* A natural step with what the last pass pulled, whose rows had the weight 1. */
static void step(thi_dfit *fit, int64_t rows, double rho)
{
    double weight = (double)fit->problem.source->n / (double)rows;
    memcpy(fit->vector.before, fit->vector.x, (size_t)fit->vector.whole * sizeof *fit->vector.x);
    thi_dfit_step(fit, 1.0);
    for (int q = 0; q < fit->latents->count; q++) {
        thi_natural now = thi_dfit_sites(fit, fit->vector.x, q), before = thi_dfit_sites(fit, fit->vector.before, q);
        thi_natural_mix(&now, rho * weight, &before, 1.0 - rho);
    }
}

/* How far a step over so many rows should go: the sites are an average over the batches so far. */
static double size_of(const thi_dfit *fit, int64_t rows)
{
    double rho = pow(8.0 + (double)fit->result->fit.iterations, -THI_DECOUPLED_DECAY);
    double averaged = (double)fit->batches.largest * (2.0 - rho) / rho;
    return rows >= fit->problem.source->n ? 1.0 : (double)rows / ((double)rows + averaged);
}

/* Two passes, and the quadratic term of the KL. */
double thi_dfit_last_flops(const thi_dfit *fit)
{
    double rows = fmin((double)fit->problem.source->n, (double)BATCHES * (double)fit->batches.largest);
    double covariance = 2.0 * fit->problem.source->dims + 40.0, M = (double)fit->n_alpha, Mb = (double)fit->n_beta;
    double groups = fit->latents->groups;
    return 2.0 * rows * (groups * M * covariance + 4.0 * fit->latents->count * Mb * Mb) + groups * M * M * covariance;
}

thiele_status thi_dfit_last(thi_dfit *fit)
{
    int64_t epoch = fit->batches.per_epoch, from = (fit->result->fit.iterations + epoch - 1) / epoch * epoch;
    int64_t count = epoch < BATCHES ? epoch : BATCHES, rows;
    bool sites = fit->orthogonal && fit->n_beta > 0 && fit->held == 0;
    int steps = count == epoch ? STEPS : 1;
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "end", 1 + (sites ? steps : 0));
    THI_TRY(thi_dfit_ready(fit));
    THI_TRY(thi_dfit_know_kl(fit));
    THI_TRY(pass(fit, from, count, sites, &rows));
    thi_driver_report(fit->problem.driver, fit->pass.at.bound);
    for (int i = 0; sites && i < steps && (i == 0 || !thi_driver_stopped(fit->problem.driver)); i++) {
        double bound = fit->pass.at.bound, expected = fit->pass.at.expected, kl = fit->pass.at.kl;
        int64_t seen = rows;
        step(fit, rows, size_of(fit, rows));
        status = pass(fit, from, count, true, &rows);
        bool worse = status == THIELE_ERROR_NUMERIC || (status == THIELE_OK && !(fit->pass.at.bound >= bound)) ||
                     (status == THIELE_OK && rows < seen); /* by those alone nobody knows */
        if (worse) {
            thi_recover(fit->problem.ctx);
            memcpy(fit->vector.x, fit->vector.before, (size_t)fit->vector.whole * sizeof *fit->vector.x);
            fit->pass.at.bound = bound;
            fit->pass.at.expected = expected;
            fit->pass.at.kl = kl;
            status = thi_dfit_ready(fit);
        }
        THI_TRY(status);
        thi_driver_report(fit->problem.driver, fit->pass.at.bound);
        if (worse || fit->pass.at.bound - bound < TOLERANCE * (double)fit->problem.source->n) {
            break;
        }
    }
out:
    return status;
}

/* Sites of all rows: passes over the blocks, so that there is a model after each step, until little is left to gain. */
#include <math.h>
#include <string.h>

#include "fit/blocks_sites.h"
#include "fit/budget.h"

enum { PASSES = 20 };
static const double ENOUGH = 2e-3; /* nats per row: a pass that has less to gain is the last, and takes most of it */
static const double MOMENT = 0.1;  /* seconds */

static bool goes_on(const thi_bfit *fit, bool first, double began)
{
    const thi_driver *driver = fit->problem.driver;
    bool moment = driver->stopped && driver->reason == THIELE_STOP_CANCELLED && thi_seconds() - began < MOMENT;
    return first || moment ||
           (!thi_driver_stopped(fit->problem.driver) &&
            thi_bfit_affords(fit, thi_bfit_sum_flops(fit, THI_SPARSE_LANES)));
}

/* All blocks once, in a random order. False in *whole: time was up before. */
static thiele_status pass_over(thi_bfit *fit, int64_t pass, double rho, double *gains, bool *whole)
{
    int64_t P = fit->partition.blocks, block[THI_SPARSE_LANES], done = 0;
    double began = thi_seconds();
    thi_shuffle order;
    thiele_status status = THIELE_OK;
    thi_bfit_order(fit, pass, &order);
    *gains = 0.0;
    while (done < P && goes_on(fit, pass == 0 && done == 0, began)) {
        int64_t count = thi_bsites_lanes(P, done);
        double before = thi_seconds();
        for (int64_t i = 0; i < count; i++) {
            block[i] = thi_shuffle_at(&order, done + i);
        }
        THI_TRY(thi_bsites_visit(fit, count, block, pass, rho, gains));
        done += count;
        thi_budget_took(fit->problem.driver, thi_bfit_sum_flops(fit, count), thi_seconds() - before);
        thi_driver_count(fit->problem.driver, count * fit->typical);
        fit->result->passes += (double)count / (double)P;
        THI_TRY(thi_bfit_look(fit));
    }
    *whole = done == P;
out:
    return status;
}

/* The bound at the sites that there are: another look at all blocks, or at those that there is time for. */
static thiele_status final_bound(thi_bfit *fit)
{
    int64_t P = fit->partition.blocks, block[THI_SPARSE_LANES], done = 0;
    double own = 0.0, began = thi_seconds();
    thi_shuffle order;
    thiele_status status = THIELE_OK;
    fit->sites->left = 0;
    thi_bfit_order(fit, 0, &order);
    while (done < P && goes_on(fit, done == 0, began)) {
        int64_t count = thi_bsites_lanes(P, done);
        for (int64_t i = 0; i < count; i++) {
            block[i] = thi_shuffle_at(&order, done + i);
        }
        THI_TRY(thi_bsites_slack(fit, count, block, &own));
        done += count;
    }
    int64_t left = fit->sites->left, seen = done - left;
    if (seen == 0) {
        THI_TRY(thi_fail(fit->problem.ctx, THIELE_ERROR_NUMERIC,
                         "the likelihood overflows in every block of rows: extreme targets, or the values "
                         "that were set, do not suit it"));
    }
    fit->sites->bound = own * fmin(fit->result->passes, 1.0) * (double)P / (double)seen + thi_bsites_log_z(fit);
    fit->result->estimate = ((double)done < fit->result->passes * (double)P && done < P) || left > 0;
    if (left > 0) {
        thi_log(fit->problem.ctx, THIELE_LOG_WARNING,
                "the likelihood overflows in %lld of %lld blocks of rows, which were left as they were: "
                "they may contain extreme targets",
                (long long)left, (long long)done);
    }
out:
    return status;
}

thiele_status thi_bsites_steps(thi_bfit *fit)
{
    thi_bsites *s = fit->sites;
    size_t bytes = (size_t)(s->N * fit->latents) * sizeof *s->all_lambda;
    double gains;
    thi_bsites_pace p = thi_bsites_first_pace;
    bool whole = true;
    thiele_status status;
    memset(s->all_lambda, 0, bytes);
    memset(s->all_nu, 0, bytes);
    fit->result->passes = 0.0;
    thi_driver_phase(fit->problem.driver, "blocks", PASSES);
    THI_TRY(thi_bfit_prepare(fit));
    for (int q = 0; q < fit->latents; q++) {
        thi_natural_zero(&fit->sums[q]);
        THI_TRY(thi_sparse_set(&fit->engine[q], fit->problem.ctx, &fit->sums[q]));
    }
    for (int64_t pass = 0; pass < PASSES && whole; pass++) {
        THI_TRY(pass_over(fit, pass, p.rho, &gains, &whole));
        thi_driver_report(fit->problem.driver, thi_bsites_log_z(fit));
        if (pass > 0 && whole && gains < ENOUGH * (double)fit->partition.n) {
            break;
        }
        if (pass > 0) { /* what the first had to gain was seen at guesses */
            thi_bsites_adapt(fit, pass, gains, &p);
        }
    }
    fit->result->rows = fmin(1.0, fit->result->passes) * (double)fit->partition.n;
    if (!whole) {
        fit->result->fit.stop = THIELE_STOP_DEADLINE;
    }
    THI_TRY(final_bound(fit));
out:
    return status;
}

thiele_status thi_bsites_lend(thi_bfit *fit)
{
    const thi_bsites *s = fit->sites;
    for (int q = 0; q < fit->latents; q++) {
        thi_local *local = fit->local[q];
        thiele_status status = local->lambda == NULL ? thi_local_hold_sites(local, fit->problem.ctx) : THIELE_OK;
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < fit->partition.n; i++) {
            local->lambda[i] = s->all_lambda[q * s->N + fit->partition.order[i]];
            local->nu[i] = s->all_nu[q * s->N + fit->partition.order[i]];
        }
    }
    return THIELE_OK;
}

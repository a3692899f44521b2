/*
 * One evaluation of the bound over some rows, by blocks: marginals from the engine, (E, g, h) from the likelihood on
 * all threads, back to the engine with the weights of the minibatch and of the components (savigp-jmlr eqs. 8 to 13,
 * MATH.md sections 1 and 2). O(capacity M) memory whatever the number of rows.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

#include "expect/parallel.h"

const thi_part thi_all_rows = {0, NULL, 0};

/* --- expectations ------------------------------------------------------------------------------------------------- */

/* What the likelihood is asked for one component's marginals. */
typedef struct question {
    const thi_vfit *fit;
    int64_t at; /* where the component's numbers begin in mu, v, g, h */
    uint64_t draws;
    bool phi;
} question;

static thiele_status ask_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    const question *ask = arg;
    const thi_vfit *fit = ask->fit;
    int64_t at = ask->at + row * fit->shape.latents;
    return thi_expect_block(expect, ctx, (int64_t)ask->draws + row, n, fit->work.rows.y + row * fit->work.rows.outputs,
                            fit->work.mu + at, fit->work.v + at, fit->work.E + row, fit->work.g + at, fit->work.h + at,
                            ask->phi ? fit->work.dphi + row * fit->problem.spec->lik->parameters : NULL);
}

/*
 * Marginals become what the likelihood takes each row to be, with moderate odds or rates where f is a logarithm; shift
 * (Q x n) is by how much the means moved. One component.
 */
static void take_guesses(thi_vfit *fit, double *shift)
{
    const thiele_likelihood *lik = fit->problem.spec->lik;
    int64_t n = fit->work.rows.n, Q = fit->shape.latents;
    for (int64_t i = 0; i < n; i++) {
        double *mu = fit->work.mu + i * Q, *v = fit->work.v + i * Q;
        for (int64_t q = 0; q < Q; q++) {
            shift[i * Q + q] = -mu[q];
            v[q] = thi_first_variance(lik, q, v[q]);
        }
        if (lik->ops->guess != NULL) {
            lik->ops->guess(lik, fit->work.rows.y + i * fit->work.rows.outputs, mu);
        }
        for (int64_t q = 0; q < Q; q++) {
            mu[q] = isfinite(mu[q]) ? mu[q] : -shift[i * Q + q];
            shift[i * Q + q] += mu[q];
        }
    }
}

/* g of a step from the present means, when (g, h) were taken at others. */
static void move_slopes(thi_vfit *fit, const double *shift)
{
    for (int64_t i = 0; i < fit->work.rows.n * fit->shape.latents; i++) {
        fit->work.g[i] -= 2.0 * fit->work.h[i] * shift[i];
    }
}

static thiele_status ask_guesses(thi_vfit *fit, const question *asked)
{
    double *shift;
    thiele_status status =
        thi_alloc(fit->problem.ctx, &shift, (size_t)(fit->work.rows.n * fit->shape.latents), sizeof *shift);
    if (status != THIELE_OK) {
        return status;
    }
    take_guesses(fit, shift);
    status = thi_expect_rows(fit->problem.spec->lik, fit->problem.ctx, fit->problem.spec->expectation, fit->work.rows.n,
                             ask_block, asked);
    if (status == THIELE_OK) {
        move_slopes(fit, shift);
    }
    thi_free(shift);
    return status;
}

/* Component k at the present marginals: its E is added up, its g and h are weighted. */
static thiele_status ask(thi_vfit *fit, int component, double weight, uint64_t draws, bool phi)
{
    int64_t n = fit->work.rows.n, Q = fit->shape.latents, parameters = fit->problem.spec->lik->parameters;
    int64_t at = component * n * Q;
    question asked = {fit, at, draws, phi && parameters > 0};
    thiele_status status = fit->guessing ? ask_guesses(fit, &asked)
                                         : thi_expect_rows(fit->problem.spec->lik, fit->problem.ctx,
                                                           fit->problem.spec->expectation, n, ask_block, &asked);
    if (status != THIELE_OK) {
        return status;
    }
    double share = weight * thi_variational_weights(fit->engine)[component], sum = 0.0;
    double *phi_bar = fit->work.hyper_bar + fit->problem.hypers->first[fit->problem.hypers->groups];
    for (int64_t i = 0; i < n; i++) {
        sum += fit->work.E[i];
        for (int64_t p = 0; asked.phi && p < parameters; p++) {
            phi_bar[p] += share * fit->work.dphi[p + i * parameters];
        }
    }
    for (int64_t i = at; i < at + n * Q; i++) {
        fit->work.g[i] *= share;
        fit->work.h[i] *= share;
    }
    fit->work.expected_of[component] += weight * sum;
    fit->at.expected += share * sum;
    return THIELE_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void add_offset(thi_vfit *fit)
{
    int64_t n = fit->work.rows.n, Q = fit->shape.latents;
    for (int64_t i = 0; fit->problem.source->offset && i < n * fit->shape.components; i++) {
        fit->work.mu[i * Q] += fit->work.rows.offset[i % n];
    }
}

static thiele_status block(thi_vfit *fit, int64_t count, const int64_t *row, double weight, uint64_t draws,
                           thi_wanted wanted)
{
    thiele_status status;
    THI_TRY(fit->problem.source->fetch(fit->problem.source->arg, fit->problem.ctx, count, row, &fit->work.rows));
    if (fit->work.rows.n == 0) {
        return THIELE_OK;
    }
    THI_TRY(thi_variational_marginals(fit->engine, fit->problem.ctx, fit->work.rows.n, fit->work.rows.X, fit->work.mu,
                                      fit->work.v));
    add_offset(fit);
    for (int k = 0; k < fit->shape.components; k++) {
        THI_TRY(ask(fit, k, weight, draws, wanted.phi));
    }
    if (wanted.pull) {
        THI_TRY(thi_variational_pull(fit->engine, fit->problem.ctx, fit->work.g, fit->work.h));
    }
    fit->at.seen += fit->work.rows.n;
out:
    return status;
}

static thiele_status all_blocks(thi_vfit *fit, thi_wanted wanted)
{
    int64_t n = fit->problem.source->n;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < n && status == THIELE_OK; first += fit->shape.capacity) {
        int64_t count = n - first < fit->shape.capacity ? n - first : fit->shape.capacity;
        for (int64_t i = 0; i < count; i++) {
            fit->work.row[i] = first + i;
        }
        if (fit->may_stop && thi_driver_stopped(fit->problem.driver)) {
            return thi_fail(fit->problem.ctx, THIELE_ERROR_NUMERIC, "the fit was ended within a pass over the rows");
        }
        status = block(fit, count, fit->work.row, 1.0, (uint64_t)first, wanted);
    }
    return status;
}

static thiele_status some_blocks(thi_vfit *fit, const thi_part *part, thi_wanted wanted)
{
    double weight = (double)fit->problem.source->n / (double)part->count;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < part->count && status == THIELE_OK; first += fit->shape.capacity) {
        int64_t left = part->count - first, count = left < fit->shape.capacity ? left : fit->shape.capacity;
        status = block(fit, count, part->row + first, weight, part->draws + (uint64_t)first, wanted);
    }
    return status;
}

/* --- the evaluation ----------------------------------------------------------------------------------------------- */

thiele_status thi_vfit_begin(thi_vfit *fit)
{
    const double *q = fit->natural ? NULL : fit->vector.x;
    thiele_status status;
    if (fit->natural && fit->white) {
        THI_TRY(thi_white_take(fit));
        q = fit->whitened.q;
    }
    THI_TRY(thi_variational_begin(fit->engine, fit->problem.ctx, fit->problem.spec->latents.prior, fit->Z_of, q,
                                  fit->sites, fit->fresh));
    fit->fresh = false;
out:
    return status;
}

/* The gradient in hypers, with that of log p(theta), to the vector. */
static void give_hypers(thi_vfit *fit, bool wanted)
{
    thi_hypers_chain(fit->problem.hypers, fit->work.hyper_bar);
    fit->at.log_prior = thi_hypers_log_prior(fit->problem.hypers, fit->work.hyper_bar);
    double *to = fit->vector.bar + fit->vector.first[THI_PART_KERNEL];
    bool learned = wanted && fit->vector.first[THI_PART_KERNEL] < fit->vector.first[THI_PART_Z];
    for (int i = 0; learned && i < fit->problem.hypers->count; i++) {
        if (!fit->problem.hypers->hyper[i].fixed) {
            *to++ = fit->work.hyper_bar[i];
        }
    }
}

static thiele_status end(thi_vfit *fit, thi_wanted wanted)
{
    thi_adjoints adjoints = {.q = wanted.q ? fit->vector.bar : NULL};
    if (wanted.prior) {
        adjoints.theta = fit->work.theta_bars;
        adjoints.mean = fit->work.mean_bars;
        adjoints.Z = fit->work.Z_bars;
    }
    bool any = wanted.q || wanted.prior;
    thiele_status status =
        thi_variational_end(fit->engine, fit->problem.ctx, fit->work.expected_of, &fit->at.kl, any ? &adjoints : NULL);
    fit->at.bound = fit->at.expected - fit->at.kl;
    return status;
}

static thiele_status begin_pass(thi_vfit *fit, thi_wanted wanted)
{
    fit->evaluations++;
    fit->at.expected = 0.0;
    fit->at.seen = 0;
    fit->at.empty = false;
    memset(fit->vector.bar, 0, (size_t)thi_vfit_size(fit) * sizeof *fit->vector.bar);
    memset(fit->work.hyper_bar, 0, (size_t)fit->problem.hypers->count * sizeof *fit->work.hyper_bar);
    memset(fit->work.expected_of, 0, (size_t)fit->shape.components * sizeof *fit->work.expected_of);
    thi_variational_narrow(fit->engine, !wanted.prior);
    return thi_vfit_begin(fit);
}

thiele_status thi_vfit_evaluate(thi_vfit *fit, const thi_part *part, thi_wanted wanted)
{
    bool all = part->row == NULL;
    thiele_status status;
    THI_TRY(begin_pass(fit, wanted));
    THI_TRY(all ? all_blocks(fit, wanted) : some_blocks(fit, part, wanted));
    fit->rows_done += (double)(all ? fit->problem.source->n : part->count);
    fit->at.empty = fit->at.seen == 0;
    if (fit->at.empty) {
        return thi_fail(fit->problem.ctx, all ? THIELE_ERROR_DATA : THIELE_ERROR_NUMERIC,
                        "each of the %lld rows looked at has a missing value",
                        (long long)(all ? fit->problem.source->n : part->count));
    }
    THI_TRY(end(fit, wanted));
    give_hypers(fit, wanted.prior || wanted.phi);
    if (!isfinite(fit->at.bound + fit->at.log_prior)) {
        status = thi_fail(fit->problem.ctx, THIELE_ERROR_NUMERIC, "the bound is not finite");
    }
out:
    return status;
}

thiele_status thi_vfit_pull_some(thi_vfit *fit, thi_next_rows next, void *arg)
{
    const thi_wanted wanted = {.pull = true};
    int64_t count;
    thiele_status status;
    THI_TRY(begin_pass(fit, wanted));
    while ((count = next(arg, fit->shape.capacity, fit->work.row)) > 0) {
        THI_TRY(block(fit, count, fit->work.row, 1.0, (uint64_t)fit->work.row[0], wanted));
        fit->rows_done += (double)count;
    }
    THI_TRY(end(fit, wanted));
out:
    return status;
}

thiele_status thi_vfit_expect_again(thi_vfit *fit)
{
    double weight = (double)fit->problem.source->n / (double)fit->work.rows.n;
    thiele_status status = THIELE_OK;
    fit->at.expected = 0.0;
    memset(fit->work.hyper_bar, 0, (size_t)fit->problem.hypers->count * sizeof *fit->work.hyper_bar);
    memset(fit->work.expected_of, 0, (size_t)fit->shape.components * sizeof *fit->work.expected_of);
    for (int k = 0; k < fit->shape.components && status == THIELE_OK; k++) {
        status = ask(fit, k, weight, 0, true);
    }
    give_hypers(fit, true);
    return status;
}

bool thi_vfit_stopped(const thi_vfit *fit)
{
    return thi_driver_stopped(fit->problem.driver) || fit->rows_done >= fit->passes * (double)fit->problem.source->n;
}

void thi_vfit_report(thi_vfit *fit, double value, double size, int64_t rows)
{
    thi_driver_step(
        fit->problem.driver,
        &(thi_step){
            .value = value, .expected = fit->at.expected, .divergence = fit->at.kl, .size = size, .rows = rows});
}

/*
 * Gaussian noise in closed form. At q = p one pass over the rows gives all that the collapsed bound (Titsias 2025;
 * math.md section 9) needs at any noise s2, with V = L^-1 Kzx, G = V V', c = V r, r the targets less their prior mean
 * and d_n = k_nn - q_nn:
 *   F(s2) = -N/2 log 2 pi s2 - 1/2 log|I + G/s2| - (|r|^2 - c'(s2 I + G)^-1 c) / (2 s2) - sum_n log(1 + d_n/s2) / 2
 * The sites at a noise are G/s2 and c/s2, so that the noise is searched in one dimension, a Cholesky factorisation a
 * value, and q is at its optimum afterwards without another look at the rows; of d_n their spread is kept. What the
 * basis cannot explain counts as noise here, which the exact fit of a small subset knows nothing of. One pass and some
 * 20 M^3/3 flops.
 */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/budget.h"
#include "fit/variational_state.h"
#include "optim/scalar.h"

/* The grid of log noise begins where the noise is this many e-folds below the variance of the residuals at q = p. */
static const double DEEPEST = 24.0;
static const double TWO_PI = 6.283185307179586;

/* F at sites that were made with the noise s2. */
typedef struct profile {
    thi_vfit *fit;
    double s2;        /* of the sites */
    double n, energy; /* N, |r|^2 with weights */
    double constant;  /* log 2 pi for each, as often as it counts */
    thi_spread *left; /* of d_n */
    thi_matrix work;
    double *t;
    double share; /* of all rows, that were seen before a deadline */
} profile;

static double noise_of(const thi_vfit *fit)
{
    return thi_hyper_number(&fit->problem.hypers->hyper[fit->problem.hypers->noise]);
}

static double log_prior_of(thi_vfit *fit)
{
    memset(fit->pass.hyper_bar, 0, (size_t)fit->problem.hypers->count * sizeof *fit->pass.hyper_bar);
    return thi_hypers_log_prior(fit->problem.hypers, fit->pass.hyper_bar);
}

/* -infinity where I + G/s2 cannot be factored. */
static thiele_status value_at(const profile *p, double s2, double *value)
{
    const thi_sites *sites = p->fit->sites;
    int64_t M = p->work.rows;
    double factor = p->s2 / s2;
    for (int64_t j = 0; j < M; j++) {
        const double *from = sites->sum.T.data + j * sites->sum.T.ld;
        double *to = p->work.data + j * p->work.ld;
        for (int64_t i = j; i < M; i++) {
            to[i] = factor * from[i] + (i == j ? 1.0 : 0.0);
        }
        p->t[j] = factor * sites->sum.t[j];
    }
    thiele_status status = thi_chol(p->fit->problem.ctx, p->work);
    *value = -INFINITY;
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(p->fit->problem.ctx);
        return THIELE_OK;
    }
    if (status == THIELE_OK) {
        thi_blas_trsv(THI_N, p->work, p->t);
        *value = -0.5 * (p->constant + p->n * log(s2) + thi_chol_logdet(p->work) + p->energy / s2 -
                         thi_blas_dot(M, p->t, p->t) + thi_spread_logs(p->left, s2));
    }
    return status;
}

/* F with log p(theta) at a value of the hyperparameter, which it then has. */
static thiele_status objective(void *arg, double x, double *value)
{
    const profile *p = arg;
    thi_hypers *hypers = p->fit->problem.hypers;
    hypers->hyper[hypers->noise].value = x;
    thiele_status status = value_at(p, noise_of(p->fit), value);
    *value += log_prior_of(p->fit);
    return status;
}

/* The new noise to the model and the vector; sites follow. */
static thiele_status adopt(const profile *p, double x)
{
    thi_vfit *fit = p->fit;
    thi_hypers *hypers = fit->problem.hypers;
    thi_hyper *noise = &hypers->hyper[hypers->noise];
    noise->value = x;
    thi_sites_scale(fit, p->s2 / thi_hyper_number(noise));
    if (fit->vector.first[THI_PART_KERNEL] < fit->vector.first[THI_PART_Z]) {
        thi_hypers_pack(hypers, fit->vector.x + fit->vector.first[THI_PART_KERNEL]);
    }
    return thi_hypers_apply(hypers, fit->problem.ctx, fit->problem.spec);
}

/* --- the pass over the rows ------------------------------------------------------------------------------------------
 */

/* Rows in their order, or in a random one of which a deadline may leave the last ones out. */
typedef struct row_order {
    thi_vfit *fit;
    thi_batches batches;
    int64_t t;
} row_order;

static int64_t next_rows(void *arg, int64_t most, int64_t *row)
{
    row_order *o = arg;
    (void)most; /* the batches are of as many */
    bool late = o->fit->pass.at.seen > 0 && thi_driver_stopped(o->fit->problem.driver);
    return late || o->t == o->batches.per_epoch ? 0 : thi_batches_rows(&o->batches, o->t++, row);
}

/*
 * Sites of the rows that were seen; E at q = p has |r|^2 + tr G and the logs in it. Where a deadline left rows out, q
 * is that of the others and no surer than they make it.
 */
static thiele_status sum_rows(profile *p, thi_vfit *fit)
{
    const thi_sites *sites = fit->sites;
    double trace = 0.0;
    row_order order = {.fit = fit};
    thi_batches_open(&order.batches, (thi_stream){fit->problem.ctx->seed, THI_RANDOM_SUBSET, UINT64_C(1) << 41},
                     fit->problem.source->n, fit->shape.capacity, fit->problem.source->run);
    fit->white = true;
    thi_sites_clear(fit);
    double M = (double)fit->sites->sum.T.rows, begun = thi_seconds();
    fit->pass.spread = p->left;
    thiele_status status = thi_vfit_pull_some(fit, next_rows, &order);
    fit->pass.spread = NULL;
    if (status != THIELE_OK) {
        return status;
    }
    thi_budget_took(fit->problem.driver, (double)fit->pass.at.seen * M * (3.0 * M + 2.0 * fit->problem.source->dims),
                    thi_seconds() - begun);
    p->share = (double)order.t / (double)order.batches.per_epoch;
    if (fit->pass.at.seen == 0) {
        return thi_fail(fit->problem.ctx, THIELE_ERROR_DATA, "every row examined has a missing value");
    }
    double n = (double)fit->pass.at.seen, s2 = noise_of(fit);
    thi_vfit_step(fit, 1.0);
    for (int64_t j = 0; j < sites->sum.T.rows; j++) {
        trace += s2 * sites->sum.T.data[j + j * sites->sum.T.ld];
    }
    p->s2 = s2;
    p->n = n;
    p->constant = fit->pass.at.weight * log(TWO_PI);
    p->energy = -2.0 * s2 * (fit->pass.at.expected + 0.5 * (p->constant + n * log(s2))) - trace -
                s2 * thi_spread_logs(p->left, s2);
    p->energy = fmax(p->energy, 0.0);
    fit->result->bound_rows = fit->pass.at.seen;
    return THIELE_OK;
}

static thiele_status open_work(profile *p, thi_vfit *fit)
{
    int64_t M = fit->shape.inducing;
    thiele_status status = thi_matrix_alloc(&p->work, fit->problem.ctx, M, M);
    p->fit = fit;
    if (status == THIELE_OK) {
        status = thi_alloc(fit->problem.ctx, &p->left, 1, sizeof *p->left);
    }
    return status == THIELE_OK ? thi_alloc(fit->problem.ctx, &p->t, (size_t)M, sizeof *p->t) : status;
}

thiele_status thi_vfit_profile(thi_vfit *fit, bool learn)
{
    thi_hyper *noise = &fit->problem.hypers->hyper[fit->problem.hypers->noise];
    profile p = {0};
    double low, high, best = noise->value, bound;
    thiele_status status;
    THI_TRY(open_work(&p, fit));
    THI_TRY(sum_rows(&p, fit));
    if (learn && !noise->fixed) {
        thi_hyper_limits(noise, fit->vector.base[fit->problem.hypers->noise], &low, &high);
        high = fmax(best, fmin(high, log((p.energy + p.left->sum) / p.n + p.s2) + 1.0));
        low = fmin(best, fmax(low, high - DEEPEST));
        THI_TRY(thi_scalar_search(objective, &p, low, high, &best));
    }
    THI_TRY(objective(&p, best, &bound));
    fit->pass.at.log_prior = log_prior_of(fit);
    /* Of rows that stand for all: no less than this by the whole divergence. */
    fit->pass.at.bound = (bound - fit->pass.at.log_prior) / p.share;
    THI_TRY(adopt(&p, best));
    THI_TRY(thi_vfit_begin(fit));
    thi_vfit_report(fit, bound, NAN, fit->pass.at.seen);
out:
    thi_free(p.work.data);
    thi_free(p.t);
    thi_free(p.left);
    return status;
}

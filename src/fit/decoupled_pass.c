/* One evaluation of the bound of a decoupled posterior on a minibatch: marginals, expectations, adjoints. */
#include <math.h>
#include <string.h>

#include "expect/parallel.h"
#include "fit/decoupled_state.h"

thiele_status thi_dfit_fetch(thi_dfit *fit, int64_t t)
{
    int64_t count = thi_batches_rows(&fit->batches, t, fit->work.row);
    return fit->problem.source->fetch(fit->problem.source->arg, fit->problem.ctx, count, fit->work.row,
                                      &fit->work.rows);
}

/* What the likelihood is asked. */
typedef struct question {
    const thi_rows *rows;
    int64_t row, parameters;
    const double *mu, *v;
    double *E, *g, *h, *dphi;
} question;

static thiele_status ask_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    const question *ask = arg;
    return thi_expect_block(expect, ctx, ask->row + row, n, ask->rows->y + row * ask->rows->outputs, ask->mu + row,
                            ask->v + row, ask->E + row, ask->g + row, ask->h + row,
                            ask->dphi != NULL ? ask->dphi + row * ask->parameters : NULL);
}

thiele_status thi_dfit_expect(const thi_dfit *fit, const thi_rows *rows, int64_t row, const double *mu, const double *v,
                              double *E, double *g, double *h, double *dphi)
{
    question asked = {rows, row, fit->problem.spec->lik->parameters, mu, v, E, g, h, dphi};
    return thi_expect_rows(fit->problem.spec->lik, fit->problem.ctx, fit->problem.spec->expectation, rows->n, ask_block,
                           &asked);
}

/* E, g, h with the weight; the likelihood's share of the gradient. */
static thiele_status expect(thi_dfit *fit, int64_t t, double weight)
{
    int64_t n = fit->work.rows.n, parameters = fit->problem.spec->lik->parameters;
    double *phi = fit->work.hyper_bar + fit->problem.hypers->first[fit->problem.hypers->groups];
    thiele_status status =
        thi_dfit_expect(fit, &fit->work.rows, t * fit->batches.largest, fit->work.mu, fit->work.v, fit->work.E,
                        fit->work.g, fit->work.h, parameters > 0 ? fit->work.dphi : NULL);
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        fit->at.expected += weight * fit->work.E[i];
        fit->work.g[i] *= weight;
        fit->work.h[i] *= weight;
        for (int64_t p = 0; p < parameters; p++) {
            phi[p] += weight * fit->work.dphi[p + i * parameters];
        }
    }
    return status;
}

/* Columns of K_alpha: others for every t; all of them where there are no more than may be taken. */
static thi_decoupled_columns draw_columns(thi_dfit *fit, int64_t t)
{
    int64_t count = fit->columns < fit->n_alpha ? fit->columns : fit->n_alpha;
    thi_shuffle order;
    if (count > 0) {
        thi_shuffle_open(&order,
                         (thi_stream){fit->problem.ctx->seed, THI_RANDOM_SUBSET, (UINT64_C(1) << 41) + (uint64_t)t},
                         fit->n_alpha);
    }
    for (int64_t i = 0; i < count; i++) {
        fit->work.column[i] = thi_shuffle_at(&order, i);
    }
    return (thi_decoupled_columns){count, fit->work.column};
}

static thi_decoupled_bar make_bar(thi_dfit *fit, thi_dwanted wanted)
{
    bool points = wanted.prior && fit->settings->learn_basis, general = points && fit->settings->generalised;
    double *bar = fit->vector.bar;
    const int64_t *first = fit->vector.first;
    bool hypers = wanted.prior && fit->learn;
    thi_decoupled_bar out = {.theta = hypers ? fit->work.hyper_bar : NULL,
                             .mean =
                                 hypers ? fit->work.hyper_bar + fit->problem.spec->latents.kernel[0]->parameters : NULL,
                             .a = wanted.q ? bar + first[THI_DPART_A] : NULL,
                             .alpha = points ? bar + first[THI_DPART_ALPHA] : NULL,
                             .log_c_alpha = general ? bar + first[THI_DPART_C_ALPHA] : NULL,
                             .beta = points ? bar + first[THI_DPART_BETA] : NULL,
                             .log_c_beta = general ? bar + first[THI_DPART_C_BETA] : NULL};
    if (wanted.q && !fit->orthogonal) {
        out.L = thi_matrix_view(bar + first[THI_DPART_L], fit->n_beta, fit->n_beta, fit->most_beta);
    }
    return out;
}

/* The gradient in hyperparameters, with that of their log prior, to the vector. */
static void give_hypers(thi_dfit *fit)
{
    double *to = fit->vector.bar + fit->vector.first[THI_DPART_HYPER];
    thi_hypers_chain(fit->problem.hypers, fit->work.hyper_bar);
    fit->at.log_prior = thi_hypers_log_prior(fit->problem.hypers, fit->work.hyper_bar);
    for (int i = 0; fit->learn && i < fit->problem.hypers->count; i++) {
        if (!fit->problem.hypers->hyper[i].fixed) {
            *to++ = fit->work.hyper_bar[i];
        }
    }
}

thiele_status thi_dfit_begin(thi_dfit *fit)
{
    thi_decoupled_q q = thi_dfit_q(fit);
    memset(fit->vector.bar, 0, (size_t)fit->vector.size * sizeof *fit->vector.bar);
    memset(fit->work.hyper_bar, 0, (size_t)fit->problem.hypers->count * sizeof *fit->work.hyper_bar);
    fit->at.expected = 0.0;
    fit->result->fit.evaluations++;
    return thi_decoupled_begin(fit->engine, fit->problem.ctx, fit->problem.spec->latents.prior, &q);
}

thiele_status thi_dfit_rows(thi_dfit *fit, int64_t t, double weight, thi_dwanted wanted)
{
    thi_decoupled_bar bar = make_bar(fit, wanted);
    thiele_status status;
    THI_TRY(thi_decoupled_marginals(fit->engine, fit->problem.ctx, fit->work.rows.n, fit->work.rows.X, fit->work.mu,
                                    fit->work.v));
    for (int64_t i = 0; fit->problem.source->offset && i < fit->work.rows.n; i++) {
        fit->work.mu[i] += fit->work.rows.offset[i];
    }
    THI_TRY(expect(fit, t, weight));
    if (wanted.pull || wanted.q || wanted.prior) {
        THI_TRY(thi_decoupled_pull(fit->engine, fit->problem.ctx, fit->work.g, fit->work.h, &bar));
    }
out:
    return status;
}

thiele_status thi_dfit_end(thi_dfit *fit, int64_t t, thi_dwanted wanted)
{
    thi_decoupled_bar bar = make_bar(fit, wanted);
    bool known = !isnan(fit->kl_alpha);
    thi_decoupled_columns columns = {0};
    if (!known) {
        columns = draw_columns(fit, t);
    }
    thiele_status status =
        thi_decoupled_end(fit->engine, fit->problem.ctx, &columns, &fit->at.kl, wanted.q || wanted.prior ? &bar : NULL);
    if (status != THIELE_OK) {
        return status;
    }
    fit->at.kl += known ? fit->kl_alpha : 0.0;
    fit->at.bound = fit->at.expected - fit->at.kl;
    give_hypers(fit);
    return isfinite(fit->at.bound + fit->at.log_prior)
               ? THIELE_OK
               : thi_fail(fit->problem.ctx, THIELE_ERROR_NUMERIC, "the bound is not finite");
}

thiele_status thi_dfit_know_kl(thi_dfit *fit)
{
    double beta, kl, sum = 0.0;
    int64_t done = 0;
    thiele_status status;
    THI_TRY(thi_decoupled_end(fit->engine, fit->problem.ctx, &(thi_decoupled_columns){0}, &beta, NULL));
    while (done < fit->n_alpha && (done == 0 || !thi_driver_stopped(fit->problem.driver))) {
        int64_t left = fit->n_alpha - done, count = left < fit->columns ? left : fit->columns;
        for (int64_t i = 0; i < count; i++) {
            fit->work.column[i] = done + i;
        }
        THI_TRY(thi_decoupled_end(fit->engine, fit->problem.ctx, &(thi_decoupled_columns){count, fit->work.column}, &kl,
                                  NULL));
        sum += (double)count * (kl - beta);
        done += count;
    }
    fit->kl_alpha = done > 0 ? sum / (double)done : 0.0;
out:
    return status;
}

thiele_status thi_dfit_evaluate(thi_dfit *fit, int64_t t, thi_dwanted wanted)
{
    thiele_status status;
    THI_TRY(thi_dfit_begin(fit));
    THI_TRY(thi_dfit_rows(fit, t, (double)fit->problem.source->n / (double)fit->work.rows.n, wanted));
    THI_TRY(thi_dfit_end(fit, t, wanted));
out:
    return status;
}

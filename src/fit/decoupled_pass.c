/* One evaluation of the bound of a decoupled posterior at the present values: what the pass over rows is given. */
#include <math.h>
#include <string.h>

#include "fit/decoupled_state.h"

thiele_status thi_dfit_fetch(thi_dfit *fit, int64_t t)
{
    int64_t count = thi_batches_rows(&fit->batches, t, fit->pass.row);
    return thi_pass_fetch(&fit->pass, count, fit->pass.row);
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
        fit->column[i] = thi_shuffle_at(&order, i);
    }
    return (thi_decoupled_columns){count, fit->column};
}

/* Where the adjoint of a part of a latent or group goes, unless it is not wanted. */
static double *bar_of(const thi_dfit *fit, int part, int which, bool wanted)
{
    return wanted ? fit->vector.bar + (thi_dfit_of(fit, part, which) - fit->vector.x) : NULL;
}

static void make_bars(thi_dfit *fit, thi_wanted wanted)
{
    bool points = wanted.prior && fit->settings->learn_basis, general = points && fit->settings->generalised;
    bool L = wanted.q && !fit->orthogonal;
    for (int q = 0; q < fit->latents->count && L; q++) {
        fit->vector.L_bar[q] =
            thi_matrix_view(bar_of(fit, THI_DPART_L, q, true), fit->n_beta, fit->n_beta, fit->most_beta);
    }
    for (int g = 0; g < fit->latents->groups; g++) {
        double *theta = wanted.prior && fit->learn ? fit->pass.hyper_bar + fit->problem.hypers->first[g] : NULL;
        int latent = thi_dfit_first(fit, g);
        thi_matrix a = fit->q[g].a;
        a.data = bar_of(fit, THI_DPART_A, latent, wanted.q);
        fit->bar[g] = (thi_decoupled_bar){.theta = theta,
                                          .mean = theta != NULL ? theta + fit->latents->kernel[g]->parameters : NULL,
                                          .a = a,
                                          .alpha = bar_of(fit, THI_DPART_ALPHA, g, points),
                                          .log_c_alpha = bar_of(fit, THI_DPART_C_ALPHA, g, general),
                                          .beta = bar_of(fit, THI_DPART_BETA, g, points),
                                          .log_c_beta = bar_of(fit, THI_DPART_C_BETA, g, general),
                                          .L = L ? fit->vector.L_bar + latent : NULL};
    }
}

thiele_status thi_dfit_ready(thi_dfit *fit)
{
    return thi_pass_ready(&fit->pass, thi_dfit_q(fit));
}

thiele_status thi_dfit_begin(thi_dfit *fit, int64_t t, thi_wanted wanted)
{
    const thi_decoupled_q *q = thi_dfit_q(fit);
    if (isnan(fit->kl_alpha)) {
        thi_decoupled_columns columns = draw_columns(fit, t);
        for (int g = 0; g < fit->latents->groups; g++) {
            fit->q[g].columns = columns;
        }
    }
    memset(fit->vector.bar, 0, (size_t)fit->vector.size * sizeof *fit->vector.bar);
    make_bars(fit, wanted);
    return thi_pass_begin(&fit->pass, q, wanted.q || wanted.prior ? fit->bar : NULL);
}

thiele_status thi_dfit_rows(thi_dfit *fit, int64_t t, double weight, thi_wanted wanted)
{
    wanted.phi = true;
    return thi_pass_take(&fit->pass, weight, (uint64_t)(t * fit->batches.largest), wanted);
}

thiele_status thi_dfit_end(thi_dfit *fit)
{
    thi_found *at = &fit->pass.at;
    double *hypers = fit->learn ? fit->vector.bar + fit->vector.first[THI_DPART_HYPER] : NULL;
    thiele_status status = thi_pass_end(&fit->pass, hypers);
    if (status == THIELE_OK && !isnan(fit->kl_alpha)) {
        at->kl += fit->kl_alpha;
        at->bound = at->expected - at->kl;
    }
    return status;
}

void thi_dfit_step(thi_dfit *fit, double rho)
{
    thi_pass_step(&fit->pass, rho, thi_dfit_q(fit));
}

/* The KL of all groups by some columns of K_alpha, or none. */
static thiele_status divergence(thi_dfit *fit, const thi_decoupled_columns *columns, double *kl)
{
    thiele_status status = THIELE_OK;
    *kl = 0.0;
    for (int g = 0; g < fit->latents->groups && status == THIELE_OK; g++) {
        double own = 0.0;
        status = thi_decoupled_end(thi_decoupled_group(fit->pass.self, g), fit->problem.ctx, columns, &own, NULL);
        *kl += own;
    }
    return status;
}

thiele_status thi_dfit_know_kl(thi_dfit *fit)
{
    double beta, kl, sum = 0.0;
    int64_t done = 0;
    thiele_status status;
    THI_TRY(divergence(fit, &(thi_decoupled_columns){0}, &beta));
    while (done < fit->n_alpha && (done == 0 || !thi_driver_ask(fit->problem.driver))) {
        int64_t left = fit->n_alpha - done, count = left < fit->columns ? left : fit->columns;
        for (int64_t i = 0; i < count; i++) {
            fit->column[i] = done + i;
        }
        THI_TRY(divergence(fit, &(thi_decoupled_columns){count, fit->column}, &kl));
        sum += (double)count * (kl - beta);
        done += count;
    }
    fit->kl_alpha = done > 0 ? sum / (double)done : 0.0;
out:
    return status;
}

thiele_status thi_dfit_evaluate(thi_dfit *fit, int64_t t, thi_wanted wanted)
{
    double weight = (double)fit->problem.source->n / (double)fit->pass.rows.n;
    thiele_status status;
    THI_TRY(thi_dfit_begin(fit, t, wanted));
    THI_TRY(thi_dfit_rows(fit, t, weight, wanted));
    THI_TRY(thi_dfit_end(fit));
out:
    return status;
}

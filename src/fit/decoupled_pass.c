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

static thi_decoupled_bar make_bar(thi_dfit *fit, thi_wanted wanted)
{
    bool points = wanted.prior && fit->settings->learn_basis, general = points && fit->settings->generalised;
    double *bar = fit->vector.bar;
    const int64_t *first = fit->vector.first;
    bool hypers = wanted.prior && fit->learn;
    thi_decoupled_bar out = {.theta = hypers ? fit->pass.hyper_bar : NULL,
                             .mean =
                                 hypers ? fit->pass.hyper_bar + fit->problem.spec->latents.kernel[0]->parameters : NULL,
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

thiele_status thi_dfit_ready(thi_dfit *fit)
{
    thi_decoupled_q q = thi_dfit_q(fit);
    return thi_pass_ready(&fit->pass, &q);
}

thiele_status thi_dfit_begin(thi_dfit *fit, int64_t t, thi_wanted wanted)
{
    thi_decoupled_q q = thi_dfit_q(fit);
    if (isnan(fit->kl_alpha)) {
        q.columns = draw_columns(fit, t);
    }
    memset(fit->vector.bar, 0, (size_t)fit->vector.size * sizeof *fit->vector.bar);
    fit->bar = make_bar(fit, wanted);
    return thi_pass_begin(&fit->pass, &q, wanted.q || wanted.prior ? &fit->bar : NULL);
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
    thi_decoupled_q q = thi_dfit_q(fit);
    thi_pass_step(&fit->pass, rho, &q);
}

thiele_status thi_dfit_know_kl(thi_dfit *fit)
{
    double beta, kl, sum = 0.0;
    int64_t done = 0;
    thiele_status status;
    THI_TRY(thi_decoupled_end(fit->pass.self, fit->problem.ctx, &(thi_decoupled_columns){0}, &beta, NULL));
    while (done < fit->n_alpha && (done == 0 || !thi_driver_stopped(fit->problem.driver))) {
        int64_t left = fit->n_alpha - done, count = left < fit->columns ? left : fit->columns;
        for (int64_t i = 0; i < count; i++) {
            fit->column[i] = done + i;
        }
        THI_TRY(thi_decoupled_end(fit->pass.self, fit->problem.ctx, &(thi_decoupled_columns){count, fit->column}, &kl,
                                  NULL));
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

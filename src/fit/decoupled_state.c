/* Room for a decoupled fit, growing bases, and the way between the optimiser's vector and the model. */
#include "fit/decoupled_state.h"

#include <math.h>
#include <string.h>

static int64_t lengths(const thi_dfit *fit, int64_t length[THI_DPARTS])
{
    int64_t D = fit->problem.source->dims;
    bool general = fit->settings->generalised;
    length[THI_DPART_A] = fit->most_alpha;
    length[THI_DPART_L] = fit->orthogonal ? 0 : fit->most_beta * fit->most_beta;
    length[THI_DPART_HYPER] = fit->learn ? thi_hypers_free(fit->problem.hypers) : 0;
    length[THI_DPART_ALPHA] = D * fit->most_alpha;
    length[THI_DPART_C_ALPHA] = general ? D * fit->most_alpha : 0;
    length[THI_DPART_BETA] = D * fit->most_beta;
    length[THI_DPART_C_BETA] = general ? D * fit->most_beta : 0;
    int64_t total = 0;
    for (int p = 0; p < THI_DPARTS; p++) {
        total += length[p];
    }
    return total;
}

thiele_status thi_dfit_open(thi_dfit *fit)
{
    int64_t length[THI_DPARTS];
    size_t hypers = (size_t)fit->problem.hypers->count;
    thi_decoupled_shape shape = {.D = fit->problem.source->dims,
                                 .orthogonal = fit->orthogonal,
                                 .beta = fit->most_beta,
                                 .rows = fit->batches.largest,
                                 .columns = fit->columns};
    thiele_status status;
    fit->vector.size = lengths(fit, length);
    for (int p = 0; p < THI_DPARTS; p++) {
        fit->vector.first[p + 1] = fit->vector.first[p] + length[p];
    }
    fit->vector.whole = fit->vector.size + (fit->orthogonal ? fit->most_beta * (fit->most_beta + 1) : 0);
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->vector.x, (size_t)fit->vector.whole, sizeof *fit->vector.x));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->vector.before, (size_t)fit->vector.whole, sizeof *fit->vector.before));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->vector.bar, (size_t)fit->vector.size, sizeof *fit->vector.bar));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->vector.scale_a, (size_t)fit->most_alpha, sizeof *fit->vector.scale_a));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->vector.scale_L, (size_t)fit->most_beta, sizeof *fit->vector.scale_L));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->vector.base, hypers, sizeof *fit->vector.base));
    if (fit->orthogonal) {
        fit->vector.sites = thi_dfit_sites(fit, fit->vector.x);
    }
    for (int i = 0; i < fit->problem.hypers->count; i++) {
        fit->vector.base[i] = fit->problem.hypers->hyper[i].value;
    }
    if (fit->learn) {
        thi_hypers_pack(fit->problem.hypers, thi_dfit_part(fit, THI_DPART_HYPER));
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->column, (size_t)fit->columns, sizeof *fit->column));
    THI_TRY(thi_pass_open(&fit->pass, &fit->problem, &thi_engine_decoupled, &shape,
                          &(thi_pass_shape){1, 1, fit->batches.largest}));
out:
    return status;
}

void thi_dfit_close(thi_dfit *fit)
{
    thi_pass_close(&fit->pass);
    thi_free(fit->column);
    thi_free(fit->vector.x);
    thi_free(fit->vector.before);
    thi_free(fit->vector.bar);
    thi_free(fit->vector.scale_a);
    thi_free(fit->vector.scale_L);
    thi_free(fit->vector.base);
    thi_free(fit->explored.value);
    thi_free(fit->left_out.error2);
    thi_free(fit->left_out.v);
    thi_predictor_clear(&fit->found);
}

thi_natural thi_dfit_sites(const thi_dfit *fit, double *whole)
{
    int64_t M = fit->most_beta;
    double *T = whole + fit->vector.size;
    return (thi_natural){.T = thi_matrix_view(T, M, M, M), .t = T + M * M};
}

double *thi_dfit_part(thi_dfit *fit, int part)
{
    return fit->vector.x + fit->vector.first[part];
}

thi_decoupled_q thi_dfit_q(thi_dfit *fit)
{
    bool general = fit->settings->generalised;
    double *factor = fit->orthogonal ? fit->vector.sites.T.data : thi_dfit_part(fit, THI_DPART_L);
    return (thi_decoupled_q){.alpha = {fit->n_alpha, thi_dfit_part(fit, THI_DPART_ALPHA),
                                       general ? thi_dfit_part(fit, THI_DPART_C_ALPHA) : NULL},
                             .beta = {fit->n_beta, thi_dfit_part(fit, THI_DPART_BETA),
                                      general ? thi_dfit_part(fit, THI_DPART_C_BETA) : NULL},
                             .a = thi_dfit_part(fit, THI_DPART_A),
                             .factor = thi_matrix_view(factor, fit->n_beta, fit->n_beta, fit->most_beta),
                             .t = fit->vector.sites.t};
}

/* A new function of the mean has the weight 0; one of the covariance leaves the prior (T = 0), or half of it (plain: at
 * L = 0 there is no slope). */
thiele_status thi_dfit_add(thi_dfit *fit, bool alpha, int64_t count, const double *X)
{
    int64_t D = fit->problem.source->dims, n = alpha ? fit->n_alpha : fit->n_beta;
    double *points = thi_dfit_part(fit, alpha ? THI_DPART_ALPHA : THI_DPART_BETA) + n * D;
    double *scale = (alpha ? fit->vector.scale_a : fit->vector.scale_L) + n, *L = thi_dfit_part(fit, THI_DPART_L);
    thi_functions f = {0};
    thiele_status status;
    memcpy(points, X, (size_t)(count * D) * sizeof *points);
    THI_TRY(thi_functions_make(&f, fit->problem.ctx, fit->problem.spec->latents.kernel[0], count, points, NULL));
    THI_TRY(thi_functions_diagonal(&f, fit->problem.ctx, scale));
    for (int64_t i = 0; i < count; i++) {
        scale[i] = scale[i] > 0.0 ? scale[i] : 1.0;
        if (!alpha && !fit->orthogonal) {
            L[(n + i) * (fit->most_beta + 1)] = 1.0 / sqrt(scale[i]);
        }
    }
    fit->n_alpha += alpha ? count : 0;
    fit->n_beta += alpha ? 0 : count;
out:
    thi_functions_clear(&f);
    return status;
}

thiele_status thi_dfit_apply(thi_dfit *fit)
{
    static const int stretches[] = {THI_DPART_C_ALPHA, THI_DPART_C_BETA};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = fit->vector.first[stretches[k]]; i < fit->vector.first[stretches[k] + 1]; i++) {
            fit->vector.x[i] = fmin(fmax(fit->vector.x[i], -THI_STRETCH_MAX), THI_STRETCH_MAX);
        }
    }
    if (!fit->learn) {
        return THIELE_OK;
    }
    double *x = thi_dfit_part(fit, THI_DPART_HYPER);
    thi_hypers_confine(fit->problem.hypers, fit->vector.base, x);
    thi_hypers_unpack(fit->problem.hypers, x);
    return thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
}

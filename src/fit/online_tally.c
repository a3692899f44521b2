/* Sums over rows that are exact: see online_tally.h. */
#include "fit/online_tally.h"

#include <math.h>

/* The largest prior variance at the points of a basis. */
static thiele_status largest_variance(const thi_predictor *p, thiele_context *ctx, double *largest)
{
    thi_inputs inputs = {0};
    double *diagonal = NULL;
    thiele_status status;
    *largest = 0.0;
    THI_TRY(thi_alloc(ctx, &diagonal, (size_t)p->n, sizeof *diagonal));
    THI_TRY(thi_inputs_make(&inputs, ctx, p->kernel, p->n, p->basis));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &inputs, diagonal));
    for (int64_t i = 0; i < p->n; i++) {
        *largest = fmax(*largest, diagonal[i]);
    }
out:
    thi_inputs_clear(&inputs);
    thi_free(diagonal);
    return status;
}

thiele_status thi_online_tally_open(const thi_online *o, thiele_context *ctx, int latent, thi_tally *tally)
{
    const thi_predictor *p = o->latent[latent].basis;
    double variance;
    thiele_status status = largest_variance(p, ctx, &variance);
    if (status != THIELE_OK) {
        return status;
    }
    double target = sqrt(variance + thi_online_noise(o, latent));
    return isfinite(target) && variance > 0.0
               ? thi_tally_open(tally, ctx, p->n, sqrt(variance), target)
               : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "the prior has no variance at its inducing inputs");
}

/* V = L^-1 k(Z, X), from k(X, Z): distances are told from the mean of the second argument. */
static thiele_status load(thi_online *o, thiele_context *ctx, int latent, const double *X)
{
    enum { B = THI_ONLINE_TALLY_BATCH };
    thi_online_latent *l = &o->latent[latent];
    const thi_predictor *p = l->basis;
    int64_t M = p->n;
    thi_matrix V = thi_matrix_view(l->V.data, M, B, M), K = thi_matrix_view(l->W.data, B, M, B);
    thi_inputs inputs = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, ctx, p->kernel, B, X));
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &inputs, &p->inputs, K, false));
    for (int64_t i = 0; i < B; i++) {
        for (int64_t k = 0; k < M; k++) {
            V.data[k + i * M] = K.data[i + k * B];
        }
    }
    THI_TRY(thi_tri_solve(ctx, THI_N, p->L, V));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &inputs, l->left));
    thi_mean_fill(p->mean, p->mean_parameter, B, p->kernel->dims, X, o->E);
    for (int64_t i = 0; i < B; i++) {
        const double *v = V.data + i * M;
        l->left[i] = fmax(0.0, l->left[i] - thi_blas_dot(M, v, v));
        o->shift[i * o->latents + latent] = o->E[i];
    }
out:
    thi_inputs_clear(&inputs);
    return status;
}

thiele_status thi_online_tally_load(thi_online *o, thiele_context *ctx, const double *X, const double *offset)
{
    thiele_status status = THIELE_OK;
    for (int j = 0; j < o->latents && status == THIELE_OK; j++) {
        status = load(o, ctx, j, X);
    }
    for (int64_t i = 0; i < THI_ONLINE_TALLY_BATCH; i++) {
        o->shift[i * o->latents] += offset[i];
    }
    return status;
}

thiele_status thi_online_tally_add(const thi_online *o, thiele_context *ctx, int latent, int64_t n, const double *y,
                                   thi_tally_desk *desk, thi_tally *tally, int64_t *bad)
{
    const thi_online_latent *l = &o->latent[latent];
    const double *own = o->settings.weight;
    bool diagonal = own[THI_RESIDUAL_DIAGONAL] > 0.0;
    double noise = thi_online_noise(o, latent), *numbers = NULL;
    thiele_status status = thi_alloc(ctx, &numbers, (size_t)(3 * n), sizeof *numbers);
    if (status != THIELE_OK) {
        return status;
    }
    double *weight = numbers, *residual = weight + n, *unexplained = residual + n;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i * o->latents + latent;
        double ratio = l->left[i] / noise;
        weight[i] = isnan(y[at]) ? 0.0 : diagonal ? 1.0 / (1.0 + ratio) : 1.0;
        residual[i] = y[at] - o->shift[at];
        unexplained[i] = diagonal ? 0.0 : ratio;
    }
    thi_tally_rows rows = {n, thi_matrix_view(l->V.data, tally->M, n, l->V.ld), weight, residual, unexplained};
    status = thi_tally_add(tally, ctx, desk, &rows, bad);
    thi_free(numbers);
    return status;
}

thiele_status thi_online_tally_put(thi_online *o, thiele_context *ctx, int latent, const thi_tally *tally,
                                   double *evidence)
{
    thi_online_latent *l = &o->latent[latent];
    thi_natural sum;
    double spared;
    thiele_status status = thi_natural_open(&sum, ctx, tally->M);
    if (status == THIELE_OK) {
        thi_tally_natural(tally, thi_online_noise(o, latent), &sum, &spared);
        status = thi_online_put(o, ctx, latent, &sum);
    }
    if (status == THIELE_OK) {
        *evidence = sum.constant + 0.5 * (thi_blas_dot(tally->M, sum.t, l->m) - thi_chol_logdet(l->root) - spared);
    }
    thi_natural_close(&sum);
    return status;
}

/*
 * The bound at a given q(w) = N(m, S), block by block, and its adjoints. With e = Gamma^-1 (r - V'm):
 *   Gbar = dF/dGamma = [e e' - Gamma^-1 + Gamma^-1 V'S V Gamma^-1] / 2
 *   Vbar = m e' - S V Gamma^-1 - 2 V Gbar (the last where R = K - V'V has a share in Gamma)
 *   kbar(Z, x) = L^-T Vbar,  Lbar = -tril(L^-T sum Vbar V'),  dF/dm(x) = e,  dF/dlog noise = noise tr Gbar
 */
#include <math.h>
#include <string.h>

#include "posterior/sparse_internal.h"

#define LOG_2PI 1.837877066409345483561

/* Kinds NONE and DIAGONAL: Vbar into W; S V is in X. Gbar of single rows ends in k, e in e. */
static void pull_columns(const thi_sparse *sparse, thi_sparse_desk *desk, int64_t n, thi_sparse_lane *lane)
{
    int64_t M = sparse->shape.M;
    double noise = sparse->noise;
    double none = sparse->shape.weight[THI_RESIDUAL_NONE], diagonal = sparse->shape.weight[THI_RESIDUAL_DIAGONAL];
    for (int64_t j = 0; j < n; j++) {
        const double *v = desk->V.data + j * M, *s = desk->X.data + j * M;
        double *vbar = desk->W.data + j * M;
        double gap = desk->r[j] - thi_blas_dot(M, v, sparse->m);
        double spread = gap * gap + thi_blas_dot(M, v, s);
        double left = fmax(0.0, desk->k[j] - thi_blas_dot(M, v, v));
        double gamma = noise + left, lambda = none / noise + diagonal / gamma;
        double g_none = 0.5 * none * (spread / noise - 1.0) / noise;
        double g_diagonal = 0.5 * diagonal * (spread / gamma - 1.0) / gamma;
        double slope = thi_sparse_loss_slope(sparse, left), e = lambda * gap, on_v = 2.0 * (slope - g_diagonal);
        lane->value -=
            0.5 * (none * log(noise) + diagonal * log(gamma) + (none + diagonal) * LOG_2PI + lambda * spread) +
            thi_sparse_loss(sparse, left);
        lane->log_noise_bar[0] += noise * (g_none + g_diagonal) + slope * left;
        for (int64_t i = 0; i < M; i++) {
            vbar[i] += e * sparse->m[i] - lambda * s[i] + on_v * v[i];
        }
        desk->k[j] = g_diagonal - slope;
        desk->e[j] += e;
    }
}

/* Gbar (symmetric, full) takes the place of the factor; e was solved for. */
static thiele_status gamma_adjoint(thiele_context *ctx, thi_matrix G, thi_matrix X, thi_matrix SX, const double *e)
{
    thiele_status status;
    THI_TRY(thi_chol_inverse(ctx, G));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 0.5, X, SX, -0.5, G, true));
    for (int64_t j = 0; j < G.cols; j++) {
        thi_blas_axpy(G.rows - j, 0.5 * e[j], e + j, G.data + j + j * G.ld);
    }
    thi_symmetrise(G);
out:
    return status;
}

/* Kind BLOCK: Vbar into W, e into e, the kernel's adjoints of K_i. X is overwritten. */
static thiele_status pull_whole(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                const thi_block *block, thi_sparse_lane *lane)
{
    int64_t n = block->n, M = sparse->shape.M;
    double weight = sparse->shape.weight[THI_RESIDUAL_BLOCK];
    thi_matrix G = thi_sparse_view(desk->G, n, n), V = thi_sparse_view(desk->V, M, n);
    thi_matrix W = thi_sparse_view(desk->W, M, n), X = thi_sparse_view(desk->X, M, n);
    thiele_status status;
    THI_TRY(thi_sparse_load_gamma(sparse, ctx, desk, block));
    memcpy(desk->e, desk->r, (size_t)n * sizeof(double));
    thi_blas_gemv(THI_T, -1.0, V, sparse->m, 1.0, desk->e);
    thi_blas_trsv(THI_N, G, desk->e);
    double fit = thi_blas_dot(n, desk->e, desk->e), log_det = thi_chol_logdet(G);
    thi_blas_trsv(THI_T, G, desk->e);
    memcpy(X.data, V.data, (size_t)(M * n) * sizeof(double));
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, G, X));
    THI_TRY(thi_sparse_solve_right(ctx, THI_N, G, X));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sparse->S, X, 0.0, W, false));
    double trace = thi_blas_dot(M * n, W.data, V.data);
    lane->value -= 0.5 * weight * (fit + log_det + (double)n * LOG_2PI + trace);
    THI_TRY(gamma_adjoint(ctx, G, X, W, desk->e));
    double total = 0.0;
    for (int64_t j = 0; j < n; j++) {
        total += G.data[j + j * n];
    }
    lane->log_noise_bar[0] += weight * sparse->noise * total;
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, -2.0, V, G, -1.0, W, false));
    for (int64_t j = 0; j < n; j++) {
        thi_blas_axpy(M, desk->e[j], sparse->m, W.data + j * M);
        desk->e[j] *= weight;
        for (int64_t i = 0; i < n && weight != 1.0; i++) {
            G.data[i + j * n] *= weight;
        }
    }
    for (int64_t i = 0; i < M * n && weight != 1.0; i++) {
        W.data[i] *= weight;
    }
    THI_TRY(thi_kernel_pull(sparse->prior.kernel, ctx, &desk->inputs, &desk->inputs, G, true, lane->theta_bar, NULL));
out:
    return status;
}

static void transpose(thi_matrix A, thi_matrix At)
{
    enum { SQUARE = 32 };
    for (int64_t j0 = 0; j0 < A.cols; j0 += SQUARE) {
        for (int64_t i0 = 0; i0 < A.rows; i0 += SQUARE) {
            for (int64_t j = j0; j < A.cols && j < j0 + SQUARE; j++) {
                for (int64_t i = i0; i < A.rows && i < i0 + SQUARE; i++) {
                    At.data[j + i * At.ld] = A.data[i + j * A.ld];
                }
            }
        }
    }
}

/* From Vbar (in W) to the kernel's parameters and Z. */
static thiele_status pull_cross(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk, int64_t n,
                                thi_sparse_lane *lane)
{
    int64_t M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), W = thi_sparse_view(desk->W, M, n);
    thi_matrix Wt = thi_sparse_view(desk->Xt, n, M);
    thiele_status status;
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, W, V, 0.0, lane->VV, false));
    THI_TRY(thi_tri_solve(ctx, THI_T, sparse->L, W));
    transpose(W, Wt);
    THI_TRY(thi_kernel_pull(sparse->prior.kernel, ctx, &desk->inputs, &sparse->inputs, Wt, false, lane->theta_bar,
                            lane->Z_bar));
out:
    return status;
}

static thiele_status pull_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                               const thi_block *block, thi_sparse_lane *lane)
{
    int64_t n = block->n, M = sparse->shape.M;
    const double *weight = sparse->shape.weight;
    const thi_prior *prior = &sparse->prior;
    bool sites = sparse->shape.sites;
    bool columns = !sites && (weight[THI_RESIDUAL_NONE] != 0.0 || weight[THI_RESIDUAL_DIAGONAL] != 0.0);
    thi_matrix V = thi_sparse_view(desk->V, M, n), X = thi_sparse_view(desk->X, M, n);
    thiele_status status;
    if (sites) {
        THI_TRY(thi_sparse_pull_sites(sparse, ctx, desk, block, lane));
    } else {
        THI_TRY(thi_sparse_load(sparse, ctx, desk, block));
    }
    if (!sites && weight[THI_RESIDUAL_BLOCK] != 0.0) {
        THI_TRY(pull_whole(sparse, ctx, desk, block, lane));
    } else if (!sites) {
        memset(desk->W.data, 0, (size_t)(M * n) * sizeof(double));
        memset(desk->e, 0, (size_t)n * sizeof(double));
    }
    if (columns) {
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sparse->S, V, 0.0, X, false));
        pull_columns(sparse, desk, n, lane);
        THI_TRY(thi_kernel_pull_diagonal(prior->kernel, ctx, &desk->inputs, desk->k, lane->theta_bar, NULL));
    }
    THI_TRY(pull_cross(sparse, ctx, desk, n, lane));
    thi_mean_pull(prior->mean, prior->mean_parameter, n, sparse->D, block->X, desk->e, lane->mean_bar, NULL);
out:
    return status;
}

/* --- over lanes ------------------------------------------------------------------------------------------------------
 */

/* Numbers of a lane: theta, mean, log noise, Z. */
static int64_t numbers_of(const thi_sparse *sparse)
{
    const thi_prior *prior = &sparse->prior;
    return prior->kernel->parameters + thi_mean_parameters(prior->mean, sparse->D) + 1 + sparse->D * sparse->shape.M;
}

static thiele_status ready_lanes(thi_sparse *sparse, thiele_context *ctx, int64_t count)
{
    int64_t numbers = numbers_of(sparse);
    for (int64_t i = 0; i < count; i++) {
        thi_sparse_lane *lane = &sparse->space->lane[i];
        thiele_status status = thi_grow(ctx, &lane->numbers, (size_t)numbers, sizeof *lane->numbers);
        if (status != THIELE_OK) {
            return status;
        }
        memset(lane->numbers, 0, (size_t)numbers * sizeof *lane->numbers);
        lane->theta_bar = lane->numbers;
        lane->mean_bar = lane->theta_bar + sparse->prior.kernel->parameters;
        lane->log_noise_bar = lane->mean_bar + thi_mean_parameters(sparse->prior.mean, sparse->D);
        lane->Z_bar = lane->log_noise_bar + 1;
        lane->value = 0.0;
    }
    return THIELE_OK;
}

static void collect(const thi_sparse *sparse, const thi_sparse_lane *lane, double scale, double *value,
                    const thi_sparse_bar *bar)
{
    int64_t M = sparse->shape.M;
    *value += scale * lane->value;
    thi_blas_axpy(sparse->prior.kernel->parameters, scale, lane->theta_bar, bar->theta);
    thi_blas_axpy(thi_mean_parameters(sparse->prior.mean, sparse->D), scale, lane->mean_bar, bar->mean);
    *bar->log_noise += scale * *lane->log_noise_bar;
    if (bar->Z != NULL) {
        thi_blas_axpy(sparse->D * M, scale, lane->Z_bar, bar->Z);
    }
    thi_blas_axpy(M * M, -scale, lane->VV.data, sparse->space->work.data);
}

/* work = -sum Vbar V' becomes Lbar, then the adjoint of Kzz. */
static thiele_status pull_inducing(thi_sparse *sparse, thiele_context *ctx, const thi_sparse_bar *bar)
{
    thi_matrix Lbar = sparse->space->work;
    thiele_status status;
    THI_TRY(thi_tri_solve(ctx, THI_T, sparse->L, Lbar));
    THI_TRY(thi_chol_adjoint(ctx, sparse->L, Lbar, sparse->space->lane[0].VV));
    THI_TRY(
        thi_kernel_pull(sparse->prior.kernel, ctx, &sparse->inputs, &sparse->inputs, Lbar, true, bar->theta, bar->Z));
out:
    return status;
}

thiele_status thi_sparse_pull(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              double scale, double *value, const thi_sparse_bar *bar)
{
    int64_t M = sparse->shape.M;
    thi_natural tilted = {0};
    thiele_status status = THIELE_OK;
    sparse->space->m = sparse->m;
    sparse->space->S = sparse->S;
    if (sparse->shape.sites && count > 0 && block[0].at.g != NULL) {
        THI_TRY(thi_natural_open(&tilted, ctx, M));
        THI_TRY(thi_sparse_tilt(sparse, ctx, count, block, scale, &tilted));
    }
    memset(sparse->space->work.data, 0, (size_t)(M * M) * sizeof(double));
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        int64_t lanes = count - first < THI_SPARSE_LANES ? count - first : THI_SPARSE_LANES;
        THI_TRY(ready_lanes(sparse, ctx, lanes));
        THI_TRY(thi_sparse_lanes(sparse, 1, ctx, lanes, block + first, 0, pull_part, THI_SPARSE_FRESH));
        for (int64_t i = 0; i < lanes; i++) {
            collect(sparse, &sparse->space->lane[i], scale, value, bar);
        }
    }
    THI_TRY(pull_inducing(sparse, ctx, bar));
out:
    thi_natural_close(&tilted);
    return status;
}

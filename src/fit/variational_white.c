/*
 * q from sites in w = L^-1 u, handed to the engine as numbers: S = (I + T)^-1, m = S t whatever L is, so that sites
 * stay in w as kernels and Z move. The engine's own sites stay in u (math.md section 3), which follows kernels and Z
 * better as long as Kzz is well conditioned; where it is nearly singular, sites that are fixed in u take what they know
 * of a direction in which u hardly varied for knowledge of others. With rows and columns in reverse order, J (I + T) J
 * = C C', N = C^-1: S = J N'N J and its lower factor is J N'J. 2/3 M^3 flops a latent.
 *
 * Of a diagonal family in w or in u = L w it is the member that is nearest to N(m, S) (the least KL(q || .)): the same
 * mean, and the reciprocals of the diagonal of the precision I + T, or L^-T (I + T) L^-1. Where natural steps lead to
 * with q so chosen, the bound is stationary within the family. 2 M^3 flops a latent.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

/*
 * Squared pivots of Kzz below this share of the largest are no ground for sites in u. (Of smooth functions of 2 to 8
 * inputs those with 1e-8 and more learned faster in u, one with 1e-13 not at all.)
 */
static const double SINGULAR = 1e-9;

bool thi_white_needed(const thi_vfit *fit)
{
    for (int q = 0; q < fit->shape.latents; q++) {
        thi_matrix L = fit->sites[q].L;
        double low = INFINITY, high = 0.0;
        for (int64_t i = 0; i < L.rows; i++) {
            double pivot = L.data[i + i * L.ld];
            low = fmin(low, pivot);
            high = fmax(high, pivot);
        }
        if (low * low < SINGULAR * high * high) {
            return true;
        }
    }
    return false;
}

/* C = J (I + T) J, lower triangle. */
static void reverse(thi_matrix T, thi_matrix C)
{
    int64_t M = T.rows;
    for (int64_t i = 0; i < M; i++) {
        const double *from = T.data + (M - 1 - i) * T.ld;
        for (int64_t j = 0; j <= i; j++) {
            C.data[i + j * C.ld] = from[M - 1 - j] + (i == j ? 1.0 : 0.0);
        }
    }
}

/* m = J N'N J t, then the factor J N'J by columns with the logs of its diagonal. */
static void pack(thi_matrix N, const double *t, double *q)
{
    int64_t M = N.rows;
    thi_matrix m = thi_matrix_view(q, M, 1, M);
    for (int64_t i = 0; i < M; i++) {
        q[i] = t[M - 1 - i];
    }
    thi_blas_trmm(THI_LEFT, THI_N, 1.0, N, m);
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, N, m);
    for (int64_t i = 0; i < M / 2; i++) {
        double swap = q[i];
        q[i] = q[M - 1 - i];
        q[M - 1 - i] = swap;
    }
    q += M;
    for (int64_t j = 0; j < M; j++) {
        const double *row = N.data + (M - 1 - j);
        for (int64_t i = j; i < M; i++) {
            *q++ = row[(M - 1 - i) * N.ld];
        }
        q[j - M] = log(q[j - M]);
    }
}

static thiele_status take_full(thi_vfit *fit, int latent)
{
    thi_matrix C = fit->whitened.work;
    reverse(fit->sites[latent].sum.T, C);
    thiele_status status = thi_chol(fit->problem.ctx, C);
    if (status == THIELE_OK) {
        status = thi_tri_inverse(fit->problem.ctx, C);
    }
    if (status == THIELE_OK) {
        pack(C, fit->sites[latent].sum.t, fit->whitened.q + thi_variational_offset(&fit->shape, 0, latent));
    }
    return status;
}

/* --- diagonal families -------------------------------------------------------------------------------------------- */

static thiele_status factor(const thi_vfit *fit, int group)
{
    const thiele_kernel *kernel = fit->problem.spec->latents.kernel[group];
    thi_matrix L = fit->whitened.L[group];
    thi_inputs inputs = {0};
    double jitter;
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, fit->problem.ctx, kernel, L.rows, fit->Z_of[group]));
    THI_TRY(thi_kernel_fill(kernel, fit->problem.ctx, &inputs, &inputs, L, true));
    THI_TRY(thi_chol_jitter(fit->problem.ctx, L, &jitter));
out:
    thi_inputs_clear(&inputs);
    return status;
}

/* C C' = I + T, m = (I + T)^-1 t */
static thiele_status solve(thi_vfit *fit, const thi_sites *sites, thi_matrix C, double *m)
{
    int64_t M = C.rows;
    for (int64_t j = 0; j < M; j++) {
        memcpy(C.data + j + j * M, sites->sum.T.data + j + j * sites->sum.T.ld, (size_t)(M - j) * sizeof(double));
        C.data[j + j * M] += 1.0;
    }
    thiele_status status = thi_chol(fit->problem.ctx, C);
    memcpy(m, sites->sum.t, (size_t)M * sizeof *m);
    if (status == THIELE_OK) {
        thi_blas_trsv(THI_N, C, m);
        thi_blas_trsv(THI_T, C, m);
    }
    return status;
}

/* The columns' lengths of Y = C', in u of C'L^-1, are the roots of the diagonal of the precision. */
static thiele_status take_diagonal(thi_vfit *fit, int latent)
{
    thi_matrix C = fit->whitened.work, Y = {0};
    int64_t M = C.rows;
    double *m = fit->whitened.q + thi_variational_offset(&fit->shape, 0, latent), *packed = m + M;
    thiele_status status;
    THI_TRY(solve(fit, &fit->sites[latent], C, m));
    THI_TRY(thi_matrix_alloc(&Y, fit->problem.ctx, M, M));
    for (int64_t j = 0; j < M; j++) {
        Y.data[j + j * M] = 1.0;
    }
    if (fit->whitened.L != NULL) {
        thi_matrix L = fit->whitened.L[fit->problem.spec->latents.group[latent]];
        thi_blas_trmm(THI_LEFT, THI_N, 1.0, L, thi_matrix_view(m, M, 1, M));
        THI_TRY(thi_tri_solve(fit->problem.ctx, THI_N, L, Y));
    }
    THI_TRY(thi_tri_multiply(fit->problem.ctx, THI_T, C, Y));
    for (int64_t j = 0; j < M; j++) {
        const double *column = Y.data + j * M;
        memset(packed, 0, (size_t)(M - j) * sizeof(double));
        packed[0] = -0.5 * log(thi_blas_dot(M, column, column));
        packed += M - j;
    }
out:
    thi_free(Y.data);
    return status;
}

thiele_status thi_white_take(thi_vfit *fit)
{
    thiele_status status = THIELE_OK;
    for (int g = 0; fit->whitened.L != NULL && fit->fresh && g < fit->problem.spec->latents.groups; g++) {
        THI_TRY(factor(fit, g));
    }
    for (int j = 0; j < fit->shape.latents; j++) {
        status = fit->settings->diagonal ? take_diagonal(fit, j) : take_full(fit, j);
        if (status == THIELE_ERROR_NUMERIC) {
            return thi_fail(
                fit->problem.ctx, status,
                "the sites of latent function %d do not give a proper posterior: I + T is not positive definite",
                j + 1);
        }
        THI_TRY(status);
    }
out:
    return status;
}

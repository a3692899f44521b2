/*
 * q from sites in w = L^-1 u, handed to the engine as numbers: S = (I + T)^-1, m = S t whatever L is, so that sites
 * stay in w as kernels and Z move. The engine's own sites stay in u (MATH.md section 3), which follows kernels and Z
 * better as long as Kzz is well conditioned; where it is nearly singular, sites that are fixed in u take what they know
 * of a direction in which u hardly varied for knowledge of others. With rows and columns in reverse order, J (I + T) J
 * = C C', N = C^-1: S = J N'N J and its lower factor is J N'J. 2/3 M^3 flops a latent.
 */
#include "fit/variational_state.h"

#include <math.h>

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

thiele_status thi_white_take(thi_vfit *fit)
{
    thi_matrix C = fit->white_work;
    for (int j = 0; j < fit->shape.latents; j++) {
        reverse(fit->sites[j].T, C);
        thiele_status status = thi_chol(fit->ctx, C);
        if (status == THIELE_ERROR_NUMERIC) {
            return thi_fail(fit->ctx, status,
                            "the sites of latent function %d give no proper posterior: I + T is not positive definite",
                            j + 1);
        }
        if (status == THIELE_OK) {
            status = thi_tri_inverse(fit->ctx, C);
        }
        if (status != THIELE_OK) {
            return status;
        }
        pack(C, fit->sites[j].t, fit->white_q + thi_variational_offset(&fit->shape, 0, j));
    }
    return THIELE_OK;
}

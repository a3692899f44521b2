/* One triangle for a variance (triangle.h): C' = diag(scale) L^-T U, with U from a Cholesky factor of I - S reversed.
 */
#include "posterior/triangle.h"

#include <float.h>

/* A = J R' with J the reversal of rows: A A' = J S J. */
static void reverse_root(const thi_predictor *p, thi_matrix R, thi_matrix A)
{
    int64_t n = p->n;
    bool triangle = p->plus == THI_PLUS_TRIANGLE;
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = triangle ? j : 0; i < n; i++) {
            A.data[(n - 1 - i) + j * A.ld] = triangle ? R.data[i + j * R.ld] : R.data[j + i * R.ld];
        }
    }
}

/*
 * The lower triangle of J (I - S) J, or J S J where nothing of K - Q is kept, becomes its Cholesky factor. Where S is
 * near I rounding has made it indefinite, and where q is not quite what its rows say S may exceed I by as little: a
 * jitter is added that |w|^2 <= k(x, x) makes harmless, first what rounding needs and then what the loss allows.
 */
static thiele_status factor_rest(const thi_predictor *p, thiele_context *ctx, thi_matrix A, thi_matrix T)
{
    double sign = p->conditional == THI_CONDITIONAL_NONE ? 1.0 : -1.0;
    const double jitter[] = {DBL_EPSILON * (double)p->n, 0.5 * THI_TRIANGLE_LOSS};
    thiele_status status = THIELE_ERROR_NUMERIC;
    for (int attempt = 0; attempt < 2 && status == THIELE_ERROR_NUMERIC; attempt++) {
        thi_recover(ctx);
        THI_TRY(thi_multiply(ctx, THI_N, THI_T, sign, A, A, 0.0, T, true));
        for (int64_t i = 0; i < p->n; i++) {
            T.data[i + i * T.ld] += (sign < 0.0 ? 1.0 : 0.0) + jitter[attempt];
        }
        status = thi_chol(ctx, T);
    }
out:
    return status;
}

/* to (zeroed) = U = J T J, the upper triangle of which T is the reversed lower one. */
static void reverse_factor(thi_matrix T, thi_matrix to)
{
    int64_t n = T.rows;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            to.data[(n - 1 - i) + (n - 1 - j) * n] = T.data[i + j * T.ld];
        }
    }
}

/* U (zeroed) with U U' = I - S, or S; I without R. */
static thiele_status make_upper(const thi_predictor *p, thiele_context *ctx, int component, thi_matrix U)
{
    thi_matrix T = {0}, A = {0}, N = {0};
    thiele_status status = THIELE_OK;
    if (p->plus == THI_PLUS_NONE) {
        for (int64_t i = 0; i < p->n; i++) {
            U.data[i + i * U.ld] = 1.0;
        }
        return THIELE_OK;
    }
    THI_TRY(thi_matrix_alloc(&T, ctx, p->n, p->n));
    THI_TRY(thi_matrix_alloc(&A, ctx, p->n, p->R[component].rows));
    if (p->plus == THI_PLUS_PRECISION) {
        THI_TRY(thi_predictor_invert_root(p, ctx, component, &N));
    }
    reverse_root(p, N.data != NULL ? N : p->R[component], A);
    THI_TRY(factor_rest(p, ctx, A, T));
    reverse_factor(T, U);
out:
    thi_free(T.data);
    thi_free(A.data);
    thi_free(N.data);
    return status;
}

/* The lower triangle becomes that of diag(scale) U, transposed. */
static void scale_and_flip(const double *scale, thi_matrix U)
{
    for (int64_t i = 0; i < U.rows; i++) {
        for (int64_t j = i; j < U.cols; j++) {
            U.data[j + i * U.ld] = U.data[i + j * U.ld] * (scale != NULL ? scale[i] : 1.0);
        }
    }
}

thiele_status thi_triangle_make(thi_matrix *C, thiele_context *ctx, const thi_predictor *predictor, int component)
{
    thiele_status status;
    *C = (thi_matrix){0};
    THI_TRY(thi_matrix_alloc(C, ctx, predictor->n, predictor->n));
    THI_TRY(make_upper(predictor, ctx, component, *C));
    THI_TRY(thi_tri_solve(ctx, THI_T, predictor->L, *C));
    scale_and_flip(predictor->scale, *C);
    return THIELE_OK;
out:
    thi_free(C->data);
    *C = (thi_matrix){0};
    return status;
}

int64_t thi_triangle_probes(const thi_predictor *p, double *X)
{
    int D = p->kernel->dims;
    int64_t count = p->n < THI_TRIANGLE_PROBES / 2 ? p->n : THI_TRIANGLE_PROBES / 2;
    for (int64_t i = 0; i < count; i++) {
        const double *one = p->basis + i * p->n / count * D, *other = p->basis + (i * p->n / count + 1) % p->n * D;
        for (int d = 0; d < D; d++) {
            X[2 * i * D + d] = one[d];
            X[(2 * i + 1) * D + d] = 0.5 * (one[d] + other[d]);
        }
    }
    return 2 * count;
}

/*
 * Cholesky factors: by tiles on all threads, with a ladder of jitter, log-determinant, adjoint.
 *
 * The factorisation is left-looking: a tile first takes its product with everything to its left, then is solved against
 * the diagonal tile of its column. Tiles are begun column by column and wait for those they need, so that the next
 * column starts while the last tiles of this one are being done. n^3/3 flops, no workspace but a counter per row of
 * tiles. Inside a tile: recursive halving over BLAS-3 down to a plain loop.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "linalg/tiles.h"

/* How many tiles of the inner dimension go into one product: about one block of a BLAS kernel. */
enum { CHUNK = 2 };

/* column -= sum over the `count` columns before it of their element in row `row` times them, from that row on. */
static void subtract_columns(double *restrict column, const double *before, int64_t ld, int64_t count, int64_t row,
                             int64_t n)
{
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double *c0 = before + k * ld, *c1 = c0 + ld, *c2 = c1 + ld, *c3 = c2 + ld;
        double f0 = c0[row], f1 = c1[row], f2 = c2[row], f3 = c3[row];
        for (int64_t i = row; i < n; i++) {
            column[i] -= f0 * c0[i] + f1 * c1[i] + f2 * c2[i] + f3 * c3[i];
        }
    }
    for (; k < count; k++) {
        const double *c0 = before + k * ld;
        double f0 = c0[row];
        for (int64_t i = row; i < n; i++) {
            column[i] -= f0 * c0[i];
        }
    }
}

/* Returns 0, or 1 + the index of the pivot that is not positive. */
static int64_t factor_leaf(thi_matrix A)
{
    for (int64_t j = 0; j < A.cols; j++) {
        double *column = A.data + j * A.ld;
        subtract_columns(column, A.data, A.ld, j, j, A.rows);
        double pivot = column[j];
        if (!(pivot > 0 && pivot <= DBL_MAX)) {
            return j + 1;
        }
        column[j] = sqrt(pivot);
        double scale = 1 / column[j];
        for (int64_t i = j + 1; i < A.rows; i++) {
            column[i] *= scale;
        }
    }
    return 0;
}

/* The same for a matrix of any size, on the calling thread. */
static int64_t factor(thi_matrix A)
{
    int64_t n = A.rows;
    if (n <= THI_LEAF) {
        return factor_leaf(A);
    }
    int64_t half = thi_half(n), rest = n - half;
    thi_matrix A11 = thi_matrix_block(A, 0, 0, half, half), A21 = thi_matrix_block(A, half, 0, rest, half);
    thi_matrix A22 = thi_matrix_block(A, half, half, rest, rest);
    int64_t bad = factor(A11);
    if (bad != 0) {
        return bad;
    }
    thi_blas_trsm(THI_RIGHT, THI_T, 1, A11, A21);
    thi_blas_syrk(THI_N, -1, A21, 1, A22);
    bad = factor(A22);
    return bad != 0 ? half + bad : 0;
}

typedef struct factorisation {
    thi_matrix A;
    thi_tiling tiling;
    int64_t bad; /* 1 + the failing pivot; written by one task at most, as the diagonal tiles wait for each other */
} factorisation;

/* Counter i is the number of finished tiles in row i, from the left. */
static bool factor_tile(void *arg, thi_tasks *tasks, int64_t task, int thread)
{
    (void)thread;
    factorisation *f = arg;
    thi_tiling t = f->tiling;
    int64_t i, j;
    thi_tile_of_lower(t, task, &i, &j);
    thi_matrix Aij = thi_tile(t, f->A, i, j);
    for (int64_t k = 0; k < j; k += CHUNK) {
        int64_t k1 = k + CHUNK < j ? k + CHUNK : j;
        if (!thi_tasks_wait(tasks, i, k1) || !thi_tasks_wait(tasks, j, k1)) {
            return false;
        }
        thi_matrix Li = thi_tile_range(t, f->A, i, i + 1, k, k1), Lj = thi_tile_range(t, f->A, j, j + 1, k, k1);
        if (i == j) {
            thi_blas_syrk(THI_N, -1, Li, 1, Aij);
        } else {
            thi_blas_gemm(THI_N, THI_T, -1, Li, Lj, 1, Aij);
        }
    }
    if (i == j) {
        int64_t bad = factor(Aij);
        if (bad != 0) {
            f->bad = thi_tile_start(t, j) + bad;
            return false;
        }
    } else {
        if (!thi_tasks_wait(tasks, j, j + 1)) {
            return false;
        }
        thi_blas_trsm(THI_RIGHT, THI_T, 1, thi_tile(t, f->A, j, j), Aij);
    }
    thi_tasks_raise(tasks, i);
    return true;
}

/* *bad: 0, or 1 + the failing pivot. */
static thiele_status factor_parallel(thiele_context *ctx, thi_matrix A, int64_t *bad)
{
    factorisation f = {A, thi_tiling_make(A.rows, THI_SERIAL), 0};
    int64_t count = f.tiling.count;
    if (count <= 1) {
        *bad = factor(A);
        return THIELE_OK;
    }
    thiele_status status = thi_tasks_run(ctx, count * (count + 1) / 2, count, factor_tile, &f);
    *bad = f.bad;
    return status;
}

thiele_status thi_chol(thiele_context *ctx, thi_matrix A)
{
    int64_t bad;
    thiele_status status = factor_parallel(ctx, A, &bad);
    if (status == THIELE_OK && bad != 0) {
        return thi_fail(ctx, THIELE_ERROR_NUMERIC, "the matrix is not positive definite (pivot %lld of %lld)",
                        (long long)bad, (long long)A.rows);
    }
    return status;
}

/* A strip of the strict lower triangle, copied up or down. */
static thiele_status save_strip(void *arg, int64_t strip, int thread)
{
    (void)thread;
    thi_mirror_up(*(const thi_matrix *)arg, strip);
    return THIELE_OK;
}

static thiele_status restore_strip(void *arg, int64_t strip, int thread)
{
    (void)thread;
    thi_mirror_down(*(const thi_matrix *)arg, strip);
    return THIELE_OK;
}

/* Copying is bound by memory: an entry counts as some 16 flops. */
static thiele_status for_strips(thiele_context *ctx, thi_matrix A, thi_block_fn fn)
{
    int64_t strips = (A.cols + THI_STRIP - 1) / THI_STRIP;
    return thi_parallel_work(ctx, strips, 16.0 * (double)A.cols * (double)A.cols, fn, &A);
}

/* Why a matrix could not be factored, once the cause is not a want of jitter: diagonal as given, strict upper triangle.
 */
static thiele_status check_finite(thiele_context *ctx, thi_matrix A, const double *diagonal)
{
    for (int64_t i = 0; i < A.cols; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double value = j < i ? A.data[j + i * A.ld] : diagonal[i];
            if (!isfinite(value)) {
                return thi_fail(ctx, THIELE_ERROR_NUMERIC, "the matrix is not finite: row %lld, column %lld is %g",
                                (long long)i + 1, (long long)j + 1, value);
            }
        }
    }
    return THIELE_OK;
}

static double mean_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] / (double)n;
    }
    return sum;
}

double thi_jitter_rung(int rung)
{
    static const double ladder[THI_JITTER_RUNGS] = {0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4};
    return ladder[rung];
}

/* Climbs the ladder; A's strict lower triangle is in its upper one, its diagonal in `diagonal`. */
static thiele_status climb(thiele_context *ctx, thi_matrix A, const double *diagonal, double *jitter)
{
    double mean = mean_of(diagonal, A.rows);
    int64_t bad = 0;
    for (int rung = 0; rung < THI_JITTER_RUNGS; rung++) {
        *jitter = thi_jitter_rung(rung) * mean;
        thiele_status status = rung > 0 ? for_strips(ctx, A, restore_strip) : THIELE_OK;
        for (int64_t i = 0; i < A.rows; i++) {
            A.data[i + i * A.ld] = diagonal[i] + *jitter;
        }
        if (status == THIELE_OK) {
            status = factor_parallel(ctx, A, &bad);
        }
        if (status == THIELE_OK && bad != 0 && rung == 0) {
            status = check_finite(ctx, A, diagonal);
        }
        if (status != THIELE_OK || bad == 0) {
            return status;
        }
        if (!(mean > 0)) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                            "the matrix is not positive definite: the mean of its diagonal is %g", mean);
        }
    }
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "the matrix is not positive definite, even with %g added to its diagonal (pivot %lld of %lld)",
                    *jitter, (long long)bad, (long long)A.rows);
}

thiele_status thi_chol_jitter(thiele_context *ctx, thi_matrix A, double *jitter)
{
    *jitter = 0;
    double *diagonal;
    thiele_status status = thi_alloc(ctx, &diagonal, (size_t)A.rows, sizeof *diagonal);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < A.rows; i++) {
        diagonal[i] = A.data[i + i * A.ld];
    }
    THI_TRY(for_strips(ctx, A, save_strip));
    THI_TRY(climb(ctx, A, diagonal, jitter));
out:
    thi_free(diagonal);
    return status;
}

double thi_chol_logdet(thi_matrix L)
{
    double sum = 0;
    for (int64_t i = 0; i < L.rows; i++) {
        sum += log(L.data[i + i * L.ld]);
    }
    return 2 * sum;
}

/* --- The adjoint -------------------------------------------------------------------------------------------------- */

/*
 * With P = tril(L' Lbar)/2, its diagonal halved once more, Kbar = Z + Z' for Z = L^-T P L^-1. P and P L^-1 are lower
 * triangular, so the three products take n^3/3, n^3/3 and n^3 flops, each in independent tiles or strips of tiles. The
 * blocked recursion of the paper takes 2n^3/3 in all, but with a condition number of 1e12 loses 4 to 5 digits more.
 */
typedef struct adjoint {
    thi_matrix L, Lbar, Z;
    thi_tiling tiling;
} adjoint;

/* Tile (i, j) of P: L_ii' Lbar_ij + sum over k > i of L_ki' Lbar_kj. The upper triangles of L and Lbar are not read. */
static thiele_status adjoint_product(void *arg, int64_t block, int thread)
{
    (void)thread;
    const adjoint *a = arg;
    thi_tiling t = a->tiling;
    int64_t i, j;
    thi_tile_of_lower(t, block, &i, &j);
    thi_matrix P = thi_tile(t, a->Z, i, j), B = thi_tile(t, a->Lbar, i, j);
    for (int64_t c = 0; c < P.cols; c++) {
        int64_t above = i == j ? c : 0;
        memset(P.data + c * P.ld, 0, (size_t)above * sizeof(double));
        memcpy(P.data + above + c * P.ld, B.data + above + c * B.ld, (size_t)(P.rows - above) * sizeof(double));
    }
    thi_blas_trmm(THI_LEFT, THI_T, 0.5, thi_tile(t, a->L, i, i), P);
    thi_blas_gemm(THI_T, THI_N, 0.5, thi_tile_range(t, a->L, i + 1, t.count, i, i + 1),
                  thi_tile_range(t, a->Lbar, i + 1, t.count, j, j + 1), 1, P);
    for (int64_t c = 0; i == j && c < P.cols; c++) {
        memset(P.data + c * P.ld, 0, (size_t)c * sizeof(double));
        P.data[c + c * P.ld] *= 0.5;
    }
    return THIELE_OK;
}

/* A row of tiles of P L^-1, up to the diagonal; the longest rows first. */
static thiele_status adjoint_rows(void *arg, int64_t block, int thread)
{
    (void)thread;
    const adjoint *a = arg;
    thi_tiling t = a->tiling;
    int64_t i = t.count - 1 - block;
    thi_blas_trsm(THI_RIGHT, THI_N, 1, thi_tile_range(t, a->L, 0, i + 1, 0, i + 1),
                  thi_tile_range(t, a->Z, i, i + 1, 0, i + 1));
    return THIELE_OK;
}

/* A column of tiles of L^-T (P L^-1), zero above the diagonal before it and full after. */
static thiele_status adjoint_columns(void *arg, int64_t j, int thread)
{
    (void)thread;
    const adjoint *a = arg;
    thi_tiling t = a->tiling;
    thi_matrix Z = thi_tile_range(t, a->Z, 0, t.count, j, j + 1);
    for (int64_t c = 0; c < Z.cols; c++) {
        memset(Z.data + c * Z.ld, 0, (size_t)thi_tile_start(t, j) * sizeof(double));
    }
    thi_blas_trsm(THI_LEFT, THI_T, 1, a->L, Z);
    return THIELE_OK;
}

/* A tile of the lower triangle of Z + Z'. */
static thiele_status adjoint_sum(void *arg, int64_t block, int thread)
{
    (void)thread;
    const adjoint *a = arg;
    int64_t i, j;
    thi_tile_of_lower(a->tiling, block, &i, &j);
    thi_matrix K = thi_tile(a->tiling, a->Lbar, i, j), Z = thi_tile(a->tiling, a->Z, i, j);
    thi_matrix Zt = thi_tile(a->tiling, a->Z, j, i);
    for (int64_t c = 0; c < K.cols; c++) {
        for (int64_t r = i == j ? c : 0; r < K.rows; r++) {
            K.data[r + c * K.ld] = Z.data[r + c * Z.ld] + Zt.data[c + r * Zt.ld];
        }
    }
    return THIELE_OK;
}

thiele_status thi_chol_adjoint(thiele_context *ctx, thi_matrix L, thi_matrix Lbar, thi_matrix work)
{
    adjoint a = {L, Lbar, work, thi_tiling_make(L.rows, 6 * THI_GRAIN)};
    int64_t count = a.tiling.count, tiles = count * (count + 1) / 2;
    thiele_status status;
    THI_TRY(thi_parallel(ctx, tiles, adjoint_product, &a));
    THI_TRY(thi_parallel(ctx, count, adjoint_rows, &a));
    THI_TRY(thi_parallel(ctx, count, adjoint_columns, &a));
    THI_TRY(thi_parallel(ctx, tiles, adjoint_sum, &a));
out:
    return status;
}

/* Matrices: making one, copying a triangle onto the other, and the product of two in tiles on all threads. */
#include <limits.h>

#include "linalg/tiles.h"

thiele_status thi_matrix_alloc(thi_matrix *out, thiele_context *ctx, int64_t rows, int64_t cols)
{
    *out = (thi_matrix){NULL, 0, 0, 0};
    if (rows < 0 || cols < 0 || rows > INT_MAX || cols > INT_MAX) {
        return thi_fail(ctx, THIELE_ERROR_LIMIT, "a matrix of %lld x %lld is too large: each side can be at most %d",
                        (long long)rows, (long long)cols, INT_MAX);
    }
    double *data;
    thiele_status status = thi_alloc(ctx, &data, (size_t)(rows * cols), sizeof *data);
    if (status == THIELE_OK) {
        *out = (thi_matrix){data, rows, cols, rows};
    }
    return status;
}

/* The inner loops run along what is written; what they read stays in the first-level cache for the next ones. */
void thi_mirror_up(thi_matrix A, int64_t strip)
{
    int64_t j0 = strip * THI_STRIP, j1 = j0 + THI_STRIP < A.cols ? j0 + THI_STRIP : A.cols;
    for (int64_t i = j0 + 1; i < A.rows; i++) {
        double *restrict to = A.data + i * A.ld;
        const double *from = A.data + i;
        for (int64_t j = j0; j < (j1 < i ? j1 : i); j++) {
            to[j] = from[j * A.ld];
        }
    }
}

void thi_mirror_down(thi_matrix A, int64_t strip)
{
    int64_t j0 = strip * THI_STRIP, j1 = j0 + THI_STRIP < A.cols ? j0 + THI_STRIP : A.cols;
    for (int64_t i0 = j0; i0 < A.rows; i0 += THI_STRIP) {
        int64_t i1 = i0 + THI_STRIP < A.rows ? i0 + THI_STRIP : A.rows;
        for (int64_t j = j0; j < j1; j++) {
            double *restrict to = A.data + j * A.ld;
            const double *from = A.data + j;
            for (int64_t i = i0 > j ? i0 : j + 1; i < i1; i++) {
                to[i] = from[i * A.ld];
            }
        }
    }
}

void thi_symmetrise(thi_matrix A)
{
    for (int64_t strip = 0; strip * THI_STRIP < A.cols; strip++) {
        thi_mirror_up(A, strip);
    }
}

typedef struct product {
    thi_trans ta, tb;
    double alpha, beta;
    thi_matrix A, B, C;
    bool lower_only;
    int64_t height, width; /* of a tile of C */
    int64_t down;          /* tiles in a column of C */
    thi_tiling tiling;     /* of C when only its lower triangle is wanted */
} product;

/* Rows first..first+count-1 of op(X). */
static thi_matrix op_rows(thi_trans t, thi_matrix X, int64_t first, int64_t count)
{
    return t == THI_N ? thi_matrix_block(X, first, 0, count, X.cols) : thi_matrix_block(X, 0, first, X.rows, count);
}

static thi_matrix op_cols(thi_trans t, thi_matrix X, int64_t first, int64_t count)
{
    return op_rows(t == THI_N ? THI_T : THI_N, X, first, count);
}

static thiele_status multiply_tile(void *arg, int64_t block, int thread)
{
    (void)thread;
    const product *p = arg;
    int64_t i = block % p->down, j = block / p->down;
    if (p->lower_only) {
        thi_tile_of_lower(p->tiling, block, &i, &j);
    }
    int64_t row = i * p->height, col = j * p->width;
    int64_t rows = p->C.rows - row < p->height ? p->C.rows - row : p->height;
    int64_t cols = p->C.cols - col < p->width ? p->C.cols - col : p->width;
    thi_matrix A = op_rows(p->ta, p->A, row, rows), B = op_cols(p->tb, p->B, col, cols);
    thi_matrix C = thi_matrix_block(p->C, row, col, rows, cols);
    if (p->lower_only && i == j) {
        thi_blas_gemmt(p->ta, p->tb, p->alpha, A, B, p->beta, C);
    } else {
        thi_blas_gemm(p->ta, p->tb, p->alpha, A, B, p->beta, C);
    }
    return THIELE_OK;
}

/* Tiles about an eighth of the side, so that there is work for many threads, within what BLAS does at full speed. */
static int64_t tile_side(int64_t n)
{
    int64_t side = (n / 8 + 23) / 24 * 24;
    return side < 96 ? 96 : side > 240 ? 240 : side;
}

thiele_status thi_multiply(thiele_context *ctx, thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B,
                           double beta, thi_matrix C, bool lower_only)
{
    product p = {ta, tb, alpha, beta, A, B, C, lower_only, 0, 0, 0, {0, 0, 0}};
    double flops = 2.0 * (double)C.rows * (double)C.cols * (double)(ta == THI_N ? A.cols : A.rows);
    bool whole = flops < THI_PARALLEL_FLOPS;
    p.height = whole ? C.rows : tile_side(C.rows);
    p.width = whole ? C.cols : tile_side(C.cols);
    if (C.rows == 0 || C.cols == 0) {
        return THIELE_OK;
    }
    p.down = (C.rows + p.height - 1) / p.height;
    p.tiling = (thi_tiling){C.rows, p.height, p.down};
    int64_t across = (C.cols + p.width - 1) / p.width;
    return thi_parallel(ctx, lower_only ? p.down * (p.down + 1) / 2 : p.down * across, multiply_tile, &p);
}

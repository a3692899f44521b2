/* Matrices: making one, copying a triangle onto the other, and the product of two in tiles on all threads. */
#include <limits.h>
#include <string.h>

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

bool thi_matrix_is_zero(thi_matrix A)
{
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = 0; i < A.rows; i++) {
            if (A.data[i + j * A.ld] != 0.0) {
                return false;
            }
        }
    }
    return true;
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

void thi_tri_copy(thi_matrix from, thi_matrix to)
{
    for (int64_t j = 0; j < from.cols; j++) {
        memcpy(to.data + j + j * to.ld, from.data + j + j * from.ld, (size_t)(from.rows - j) * sizeof(double));
    }
}

void thi_tri_copy_clean(thi_matrix from, thi_matrix to)
{
    thi_tri_copy(from, to);
    for (int64_t j = 0; j < from.cols; j++) {
        memset(to.data + j * to.ld, 0, (size_t)j * sizeof(double));
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

/*
 * Tiles about a quarter of the side: below some 200 BLAS takes kernels for small matrices, which are a third slower
 * (bench/anytime_cost.c), and far above there is no work for many threads.
 */
static int64_t tile_side(int64_t n)
{
    int64_t side = (n / 4 + 23) / 24 * 24;
    return side < 192 ? 192 : side > 264 ? 264 : side;
}

/* --- long products: op(A) is flat, op(B) tall -----------------------------------------------------------------------
 */

/*
 * Where the inner dimension is this many times the outer ones, it is what is cut: BLAS is slow on tiles that are narrow
 * and long. Each part gives a matrix of its own, and they are added in a fixed order.
 */
enum { LONG = 4, PART = 1024 };

typedef struct long_product {
    const product *p;
    int64_t inner, parts;
    double *part; /* C.rows x C.cols each */
} long_product;

static thi_matrix part_of(const long_product *l, int64_t i)
{
    int64_t rows = l->p->C.rows;
    return thi_matrix_view(l->part + i * rows * l->p->C.cols, rows, l->p->C.cols, rows);
}

static thiele_status multiply_part(void *arg, int64_t block, int thread)
{
    (void)thread;
    const long_product *l = arg;
    const product *p = l->p;
    int64_t first = l->inner * block / l->parts;
    int64_t count = l->inner * (block + 1) / l->parts - first;
    thi_matrix A = op_cols(p->ta, p->A, first, count);
    thi_matrix B = op_rows(p->tb, p->B, first, count);
    if (p->lower_only) {
        thi_blas_gemmt(p->ta, p->tb, p->alpha, A, B, 0.0, part_of(l, block));
    } else {
        thi_blas_gemm(p->ta, p->tb, p->alpha, A, B, 0.0, part_of(l, block));
    }
    return THIELE_OK;
}

/* Column `block` of C = beta C + the parts' sum. */
static thiele_status add_parts(void *arg, int64_t block, int thread)
{
    (void)thread;
    const long_product *l = arg;
    thi_matrix C = l->p->C;
    double *column = C.data + block * C.ld;
    double beta = l->p->beta;
    for (int64_t i = l->p->lower_only ? block : 0; i < C.rows; i++) {
        double sum = beta == 0.0 ? 0.0 : beta * column[i];
        for (int64_t k = 0; k < l->parts; k++) {
            thi_matrix part = part_of(l, k);
            sum += part.data[i + block * part.ld];
        }
        column[i] = sum;
    }
    return THIELE_OK;
}

static thiele_status multiply_long(thiele_context *ctx, const product *p, int64_t inner)
{
    long_product l = {p, inner, inner / PART, NULL};
    size_t size = (size_t)p->C.rows * (size_t)p->C.cols;
    thiele_status status = thi_alloc_bare(ctx, &l.part, size * (size_t)l.parts, sizeof *l.part);
    if (status == THIELE_OK) {
        status = thi_parallel(ctx, l.parts, multiply_part, &l);
    }
    if (status == THIELE_OK) {
        status = thi_parallel_work(ctx, p->C.cols, (double)size * (double)l.parts, add_parts, &l);
    }
    thi_free(l.part);
    return status;
}

thiele_status thi_multiply(thiele_context *ctx, thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B,
                           double beta, thi_matrix C, bool lower_only)
{
    product p = {ta, tb, alpha, beta, A, B, C, lower_only, 0, 0, 0, {0, 0, 0}};
    int64_t inner = ta == THI_N ? A.cols : A.rows;
    double flops = 2.0 * (double)C.rows * (double)C.cols * (double)inner;
    bool whole = flops < THI_PARALLEL_FLOPS;
    p.height = whole ? C.rows : tile_side(C.rows);
    p.width = whole ? C.cols : tile_side(C.cols);
    if (C.rows == 0 || C.cols == 0) {
        return THIELE_OK;
    }
    if (!whole && inner >= 2 * PART && inner >= LONG * C.rows && inner >= LONG * C.cols) {
        return multiply_long(ctx, &p, inner);
    }
    p.down = (C.rows + p.height - 1) / p.height;
    p.tiling = (thi_tiling){C.rows, p.height, p.down};
    int64_t across = (C.cols + p.width - 1) / p.width;
    return thi_parallel(ctx, lower_only ? p.down * (p.down + 1) / 2 : p.down * across, multiply_tile, &p);
}

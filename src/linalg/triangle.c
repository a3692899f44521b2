/*
 * Triangular matrices on all threads: solves and products by column blocks, the inverse and W'W by tiles in place.
 *
 * The inverse goes through the columns of tiles from right to left, W_ij = -(sum_k W_ik L_kj) L_jj^-1 over j < k <= i:
 * method 2C of Du Croz and Higham (1992), "Stability of methods for matrix inversion". Products by W_jj in place of the
 * solve, solves from both sides, or the one-sweep recursion for (L L')^-1 take as many flops, but on the factor of a
 * smooth kernel matrix (condition number 1e12) lose 4 digits, 3 digits and all of them. Costs: n^3/3 flops for L^-1 and
 * again for W'W; workspace 2 n x tile.
 */
#include <string.h>

#include "linalg/tiles.h"

/* --- Solves and products by column blocks ------------------------------------------------------------------------- */

typedef void (*column_op)(thi_trans tl, thi_matrix L, thi_matrix B);

typedef struct column_blocks {
    thi_trans tl;
    thi_matrix L, B;
    int64_t width;
    column_op op;
} column_blocks;

/* A few columns are bound by reading L: a packed solve would read it twice. */
static void solve_columns(thi_trans tl, thi_matrix L, thi_matrix B)
{
    enum { FEW = 4 };
    if (B.cols > FEW) {
        thi_blas_trsm(THI_LEFT, tl, 1, L, B);
        return;
    }
    for (int64_t j = 0; j < B.cols; j++) {
        thi_blas_trsv(tl, L, B.data + j * B.ld);
    }
}

static void multiply_columns(thi_trans tl, thi_matrix L, thi_matrix B)
{
    thi_blas_trmm(THI_LEFT, tl, 1, L, B);
}

static thiele_status do_columns(void *arg, int64_t block, int thread)
{
    (void)thread;
    const column_blocks *c = arg;
    int64_t first = block * c->width;
    int64_t count = c->B.cols - first < c->width ? c->B.cols - first : c->width;
    c->op(c->tl, c->L, thi_matrix_block(c->B, 0, first, c->B.rows, count));
    return THIELE_OK;
}

/* Blocks of about an eighth of the columns, between what BLAS needs to be fast and what is enough for it. */
static int64_t block_width(int64_t n, int64_t cols)
{
    if ((double)n * (double)n * (double)cols < THI_PARALLEL_FLOPS) {
        return cols;
    }
    int64_t width = (cols / 8 + 23) / 24 * 24;
    return width < 48 ? 48 : width > 192 ? 192 : width;
}

static thiele_status by_columns(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B, column_op op)
{
    if (L.rows == 0 || B.cols == 0) {
        return THIELE_OK;
    }
    column_blocks c = {tl, L, B, block_width(L.rows, B.cols), op};
    return thi_parallel(ctx, (B.cols + c.width - 1) / c.width, do_columns, &c);
}

thiele_status thi_tri_solve(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B)
{
    return by_columns(ctx, tl, L, B, solve_columns);
}

thiele_status thi_tri_multiply(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B)
{
    return by_columns(ctx, tl, L, B, multiply_columns);
}

/* --- The inverse of a lower triangle ------------------------------------------------------------------------------ */

/*
 * In a copy with zeros above the diagonal, so that four columns at a time can begin in the same row. Column j of the
 * inverse from the columns right of it: W_21 = -W_22 l_21 / l_11.
 */
static void invert_leaf(thi_matrix L)
{
    int64_t n = L.rows;
    double W[THI_LEAF * THI_LEAF] = {0};
    for (int64_t j = n - 1; j >= 0; j--) {
        double *restrict l = L.data + j * L.ld, *w = W + j * THI_LEAF;
        double sum[THI_LEAF] = {0};
        int64_t k = j + 1;
        for (; k + 4 <= n; k += 4) {
            const double *w0 = W + k * THI_LEAF, *w1 = w0 + THI_LEAF, *w2 = w1 + THI_LEAF, *w3 = w2 + THI_LEAF;
            double l0 = l[k], l1 = l[k + 1], l2 = l[k + 2], l3 = l[k + 3];
            for (int64_t i = k; i < n; i++) {
                sum[i] += l0 * w0[i] + l1 * w1[i] + l2 * w2[i] + l3 * w3[i];
            }
        }
        for (; k < n; k++) {
            for (int64_t i = k; i < n; i++) {
                sum[i] += l[k] * W[i + k * THI_LEAF];
            }
        }
        w[j] = 1 / l[j];
        for (int64_t i = j + 1; i < n; i++) {
            w[i] = -w[j] * sum[i];
        }
    }
    for (int64_t j = 0; j < n; j++) {
        memcpy(L.data + j + j * L.ld, W + j + j * THI_LEAF, (size_t)(n - j) * sizeof(double));
    }
}

static void invert(thi_matrix L)
{
    int64_t n = L.rows;
    if (n <= THI_LEAF) {
        invert_leaf(L);
        return;
    }
    int64_t half = thi_half(n), rest = n - half;
    thi_matrix L11 = thi_matrix_block(L, 0, 0, half, half), L21 = thi_matrix_block(L, half, 0, rest, half);
    thi_matrix L22 = thi_matrix_block(L, half, half, rest, rest);
    invert(L22);
    thi_blas_trmm(THI_LEFT, THI_N, -1, L22, L21);
    thi_blas_trsm(THI_RIGHT, THI_N, 1, L11, L21);
    invert(L11);
}

static void copy_block(thi_matrix from, thi_matrix to)
{
    for (int64_t j = 0; j < from.cols; j++) {
        memcpy(to.data + j * to.ld, from.data + j * from.ld, (size_t)from.rows * sizeof(double));
    }
}

/*
 * Column j of tiles is first copied to one of two buffers (its diagonal tile is then inverted in place), after which
 * its tiles can be overwritten in any order. Counters, for rows and columns of tiles:
 * - row + i: finished tiles of W in row i, from the diagonal to the left;
 * - copied + j: copied tiles of column j;
 * - written + j: finished tiles of column j; when all are, its buffer is free for column j - 2.
 */
typedef struct inversion {
    thi_matrix L;
    thi_tiling tiling;
    double *buffer; /* two of n x size */
    int64_t row, copied, written;
} inversion;

static thi_matrix column_copy(const inversion *v, int64_t j)
{
    thi_tiling t = v->tiling;
    return thi_matrix_view(v->buffer + (j % 2) * t.n * t.size, t.n, t.size, t.n);
}

static bool copy_tile(const inversion *v, thi_tasks *tasks, int64_t i, int64_t j)
{
    thi_tiling t = v->tiling;
    if (j + 2 < t.count && !thi_tasks_wait(tasks, v->written + j + 2, t.count - (j + 2))) {
        return false;
    }
    thi_matrix Lij = thi_tile(t, v->L, i, j);
    copy_block(Lij, thi_matrix_block(column_copy(v, j), thi_tile_start(t, i), 0, Lij.rows, Lij.cols));
    thi_tasks_raise(tasks, v->copied + j);
    if (i == j) {
        invert(Lij);
        thi_tasks_raise(tasks, v->row + i);
        thi_tasks_raise(tasks, v->written + j);
    }
    return true;
}

static bool invert_tile(const inversion *v, thi_tasks *tasks, int64_t i, int64_t j)
{
    thi_tiling t = v->tiling;
    if (!thi_tasks_wait(tasks, v->copied + j, t.count - j) || !thi_tasks_wait(tasks, v->row + i, i - j)) {
        return false;
    }
    thi_matrix Wij = thi_tile(t, v->L, i, j), Wi = thi_tile_range(t, v->L, i, i + 1, j + 1, i);
    thi_matrix Lj = column_copy(v, j);
    Lj.cols = Wij.cols;
    thi_blas_trmm(THI_LEFT, THI_N, -1, thi_tile(t, v->L, i, i), Wij);
    thi_blas_gemm(THI_N, THI_N, -1, Wi, thi_matrix_block(Lj, thi_tile_start(t, j + 1), 0, Wi.cols, Lj.cols), 1, Wij);
    thi_blas_trsm(THI_RIGHT, THI_N, 1, thi_matrix_block(Lj, thi_tile_start(t, j), 0, Wij.cols, Wij.cols), Wij);
    thi_tasks_raise(tasks, v->row + i);
    thi_tasks_raise(tasks, v->written + j);
    return true;
}

/* Tasks: for each column from the last to the first, its copies, then its tiles from the lowest (and longest) up. */
static bool inversion_task(void *arg, thi_tasks *tasks, int64_t task, int thread)
{
    (void)thread;
    const inversion *v = arg;
    int64_t height = 1; /* of the column, in tiles: that many copies and one tile less */
    while (task >= 2 * height - 1) {
        task -= 2 * height - 1;
        height++;
    }
    int64_t j = v->tiling.count - height;
    return task < height ? copy_tile(v, tasks, j + task, j) : invert_tile(v, tasks, j + 2 * height - 1 - task, j);
}

thiele_status thi_tri_inverse(thiele_context *ctx, thi_matrix L)
{
    inversion v = {L, thi_tiling_make(L.rows, THI_SERIAL), NULL, 0, 0, 0};
    int64_t count = v.tiling.count;
    if (count <= 1) {
        invert(L);
        return THIELE_OK;
    }
    v.copied = count;
    v.written = 2 * count;
    thiele_status status = thi_alloc(ctx, &v.buffer, (size_t)(2 * v.tiling.n * v.tiling.size), sizeof *v.buffer);
    if (status != THIELE_OK) {
        return status;
    }
    status = thi_tasks_run(ctx, count * count, 3 * count, inversion_task, &v);
    thi_free(v.buffer);
    return status;
}

/* --- W'W ---------------------------------------------------------------------------------------------------------- */

/* The lower triangle of W becomes that of W'W, on the calling thread. */
static void square(thi_matrix W)
{
    int64_t n = W.rows;
    if (n <= THI_LEAF) {
        double copy[THI_LEAF * THI_LEAF];
        thi_matrix full = thi_matrix_view(copy, n, n, THI_LEAF);
        thi_tri_copy_clean(W, full);
        thi_blas_syrk(THI_T, 1, full, 0, W);
        return;
    }
    int64_t half = thi_half(n), rest = n - half;
    thi_matrix W11 = thi_matrix_block(W, 0, 0, half, half), W21 = thi_matrix_block(W, half, 0, rest, half);
    thi_matrix W22 = thi_matrix_block(W, half, half, rest, rest);
    square(W11);
    thi_blas_syrk(THI_T, 1, W21, 1, W11);
    thi_blas_trmm(THI_LEFT, THI_T, 1, W22, W21);
    square(W22);
}

/*
 * X_ij = W_ii' W_ij + sum over k > i of W_ki' W_kj, row by row of tiles from the top: a row reads itself and what is
 * below, so it may be overwritten once the rows above it are done. The long sum goes to the thread's own tile first,
 * which needs no waiting. Counters: copied + i is 1 when W_ii has been copied; written + i counts the finished tiles of
 * row i.
 */
typedef struct squaring {
    thi_matrix W;
    thi_tiling tiling;
    double *diagonal; /* copies of W_ii for two rows: the tiles of a row need it while X_ii is written */
    double *sum;      /* a tile for each thread */
    int64_t copied, written;
} squaring;

static thi_matrix diagonal_copy(const squaring *s, int64_t i)
{
    int64_t size = s->tiling.size, length = thi_tile_length(s->tiling, i);
    return thi_matrix_view(s->diagonal + (i % 2) * size * size, length, length, size);
}

static bool square_diagonal(const squaring *s, thi_tasks *tasks, int64_t i)
{
    thi_tiling t = s->tiling;
    if (i >= 2 && !thi_tasks_wait(tasks, s->written + i - 2, i - 1)) {
        return false;
    }
    thi_matrix Wii = thi_tile(t, s->W, i, i);
    copy_block(Wii, diagonal_copy(s, i));
    thi_tasks_raise(tasks, s->copied + i);
    square(Wii);
    thi_blas_syrk(THI_T, 1, thi_tile_range(t, s->W, i + 1, t.count, i, i + 1), 1, Wii);
    thi_tasks_raise(tasks, s->written + i);
    return true;
}

static bool square_tile(const squaring *s, thi_tasks *tasks, int64_t i, int64_t j, int thread)
{
    thi_tiling t = s->tiling;
    thi_matrix Wij = thi_tile(t, s->W, i, j);
    thi_matrix sum = thi_matrix_view(s->sum + thread * t.size * t.size, Wij.rows, Wij.cols, t.size);
    thi_blas_gemm(THI_T, THI_N, 1, thi_tile_range(t, s->W, i + 1, t.count, i, i + 1),
                  thi_tile_range(t, s->W, i + 1, t.count, j, j + 1), 0, sum);
    if (!thi_tasks_wait(tasks, s->copied + i, 1) || !thi_tasks_wait(tasks, s->written + i - 1, i)) {
        return false;
    }
    thi_blas_trmm(THI_LEFT, THI_T, 1, diagonal_copy(s, i), Wij);
    for (int64_t c = 0; c < Wij.cols; c++) {
        for (int64_t r = 0; r < Wij.rows; r++) {
            Wij.data[r + c * Wij.ld] += sum.data[r + c * sum.ld];
        }
    }
    thi_tasks_raise(tasks, s->written + i);
    return true;
}

/* Tasks: row by row from the top, the diagonal tile first. */
static bool squaring_task(void *arg, thi_tasks *tasks, int64_t task, int thread)
{
    const squaring *s = arg;
    int64_t i = 0;
    while (task > i) {
        task -= i + 1;
        i++;
    }
    return task == 0 ? square_diagonal(s, tasks, i) : square_tile(s, tasks, i, task - 1, thread);
}

thiele_status thi_tri_square(thiele_context *ctx, thi_matrix W)
{
    squaring s = {W, thi_tiling_make(W.rows, THI_SERIAL), NULL, NULL, 0, 0};
    int64_t count = s.tiling.count, tile = s.tiling.size * s.tiling.size;
    if (count <= 1) {
        square(W);
        return THIELE_OK;
    }
    s.written = count;
    thiele_status status = thi_alloc(ctx, &s.diagonal, (size_t)((2 + ctx->threads) * tile), sizeof *s.diagonal);
    if (status != THIELE_OK) {
        return status;
    }
    s.sum = s.diagonal + 2 * tile;
    status = thi_tasks_run(ctx, count * (count + 1) / 2, 2 * count, squaring_task, &s);
    thi_free(s.diagonal);
    return status;
}

thiele_status thi_chol_inverse(thiele_context *ctx, thi_matrix L)
{
    thiele_status status = thi_tri_inverse(ctx, L);
    return status == THIELE_OK ? thi_tri_square(ctx, L) : status;
}

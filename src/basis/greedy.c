/*
 * Greedy variance: pivoted partial Cholesky of K(X, X) (Fine and Scheinberg 2001; as a choice of inducing inputs: Burt,
 * Rasmussen and van der Wilk 2020). Column m of the factor is
 *   l = (k(X, x_p) - L L_p') / sqrt(d_p),   d -= l^2,   p = argmax d,
 * where d_i is the variance of f(x_i) given f at the rows chosen so far. n M^2 flops by row blocks in single-threaded
 * BLAS, bound by reading L (n x M).
 */
#include "basis/basis.h"

#include <math.h>
#include <string.h>

#include "data/batches.h"

/* Candidates at most; numbers in L at most (as long as there are 2 M candidates); rows of a task. */
enum { CANDIDATES = 20000, NUMBERS = 1 << 24, ROWS = 512 };

/* Of the largest variance: what is left is noise of rounding and worth no inducing input. */
static const double NEGLIGIBLE = 1e-10;

typedef struct greedy {
    const thiele_kernel *kernel;
    int64_t n, blocks;
    double *sample; /* the candidates, when they are not all rows */
    const double *X;
    thi_inputs inputs;
    thi_matrix L;            /* n x M */
    double *d;               /* variance that is left */
    double *row;             /* L_p, contiguous */
    int64_t *peak;           /* of each block: where d is largest */
    int64_t pivot, factored; /* p, and how many columns of L there are */
} greedy;

/* The same inputs, `count` rows from `first` on. */
static thi_inputs part_of(const greedy *g, int64_t first, int64_t count)
{
    thi_inputs part = g->inputs;
    part.n = count;
    part.X += first * g->kernel->dims;
    for (int leaf = 0; leaf < g->kernel->leaves; leaf++) {
        part.leaf[leaf] += first * g->kernel->leaf[leaf].features;
    }
    return part;
}

static thiele_status take_candidates(greedy *g, thiele_context *ctx, const thi_basis_source *source, int64_t M)
{
    int64_t most = NUMBERS / M < CANDIDATES ? NUMBERS / M : CANDIDATES;
    most = most > 2 * M ? most : 2 * M;
    g->n = source->n < most ? source->n : most;
    g->X = source->X;
    if (g->n == source->n) {
        return THIELE_OK;
    }
    size_t D = (size_t)source->D;
    thiele_status status = thi_alloc(ctx, &g->sample, (size_t)g->n * D, sizeof *g->sample);
    if (status != THIELE_OK) {
        return status;
    }
    thi_shuffle order;
    thi_shuffle_open(&order, thi_basis_stream(ctx->seed, THI_BASIS_CANDIDATES), source->n);
    for (int64_t i = 0; i < g->n; i++) {
        memcpy(g->sample + (size_t)i * D, source->X + (size_t)thi_shuffle_at(&order, i) * D, D * sizeof(double));
    }
    g->X = g->sample;
    return THIELE_OK;
}

/*
 * d = k(x_i, x_i) without the white kernel, whose variance no inducing input explains: from blocks of k(X, X) off the
 * symmetric case.
 */
static thiele_status fill_variances(greedy *g, thiele_context *ctx)
{
    thi_matrix K;
    thiele_status status = thi_matrix_alloc(&K, ctx, THI_TILE_COLS, THI_TILE_COLS);
    for (int64_t first = 0; status == THIELE_OK && first < g->n; first += THI_TILE_COLS) {
        int64_t count = g->n - first < THI_TILE_COLS ? g->n - first : THI_TILE_COLS;
        thi_inputs part = part_of(g, first, count);
        status = thi_kernel_fill(g->kernel, ctx, &part, &part, thi_matrix_block(K, 0, 0, count, count), false);
        for (int64_t i = 0; status == THIELE_OK && i < count; i++) {
            g->d[first + i] = K.data[i + i * K.ld];
        }
    }
    thi_free(K.data);
    return status;
}

static thiele_status greedy_open(greedy *g, thiele_context *ctx, const thi_basis_source *source, int64_t M)
{
    thiele_status status;
    THI_TRY(take_candidates(g, ctx, source, M));
    g->blocks = (g->n + ROWS - 1) / ROWS;
    THI_TRY(thi_inputs_make(&g->inputs, ctx, g->kernel, g->n, g->X));
    THI_TRY(thi_matrix_alloc(&g->L, ctx, g->n, M));
    THI_TRY(thi_alloc(ctx, &g->d, (size_t)g->n, sizeof *g->d));
    THI_TRY(thi_alloc(ctx, &g->row, (size_t)M, sizeof *g->row));
    THI_TRY(thi_alloc(ctx, &g->peak, (size_t)g->blocks, sizeof *g->peak));
    THI_TRY(fill_variances(g, ctx));
out:
    return status;
}

static void greedy_close(greedy *g)
{
    thi_inputs_clear(&g->inputs);
    thi_free(g->sample);
    thi_free(g->L.data);
    thi_free(g->d);
    thi_free(g->row);
    thi_free(g->peak);
}

/* The rows of one block: their part of the new column (k(X, x_p) is in it) and of d. */
static thiele_status eliminate(void *arg, int64_t block, int thread)
{
    (void)thread;
    greedy *g = arg;
    int64_t first = block * ROWS;
    int64_t count = g->n - first < ROWS ? g->n - first : ROWS;
    double *l = g->L.data + first + g->factored * g->L.ld;
    double *d = g->d + first;
    double root = g->row[g->factored];
    if (g->factored > 0) {
        thi_blas_gemv(THI_N, -1.0, thi_matrix_block(g->L, first, 0, count, g->factored), g->row, 1.0, l);
    }
    int64_t peak = 0;
    for (int64_t i = 0; i < count; i++) {
        l[i] /= root;
        d[i] = first + i == g->pivot ? 0.0 : fmax(d[i] - l[i] * l[i], 0.0);
        peak = d[i] > d[peak] ? i : peak;
    }
    g->peak[block] = first + peak;
    return THIELE_OK;
}

/* Adds the pivot's column to L. */
static thiele_status add_column(greedy *g, thiele_context *ctx)
{
    int64_t m = g->factored;
    thi_inputs pivot = part_of(g, g->pivot, 1);
    thiele_status status =
        thi_kernel_fill(g->kernel, ctx, &g->inputs, &pivot, thi_matrix_block(g->L, 0, m, g->n, 1), false);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t j = 0; j < m; j++) {
        g->row[j] = g->L.data[g->pivot + j * g->L.ld];
    }
    g->row[m] = sqrt(g->d[g->pivot]);
    status = thi_parallel_work(ctx, g->blocks, 4.0 * (double)g->n * (double)(m + 1), eliminate, g);
    g->factored++;
    g->pivot = g->peak[0];
    for (int64_t block = 1; block < g->blocks; block++) {
        g->pivot = g->d[g->peak[block]] > g->d[g->pivot] ? g->peak[block] : g->pivot;
    }
    return status;
}

thiele_status thi_basis_greedy(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                               int64_t *chosen)
{
    if (source->kernel == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "greedy inducing inputs need a kernel");
    }
    const size_t D = (size_t)source->D;
    greedy g = {.kernel = source->kernel};
    thiele_status status;
    THI_TRY(greedy_open(&g, ctx, source, M));
    for (int64_t i = 0; i < g.n; i++) {
        if (!isfinite(g.d[i])) {
            status = thi_fail(ctx, THIELE_ERROR_NUMERIC, "the kernel's variance at a row is not finite");
            goto out;
        }
        g.pivot = g.d[i] > g.d[g.pivot] ? i : g.pivot;
    }
    double least = NEGLIGIBLE * g.d[g.pivot];
    while (*chosen == 0 || g.d[g.pivot] > least) {
        memcpy(Z + (size_t)*chosen * D, g.X + (size_t)g.pivot * D, D * sizeof *Z);
        ++*chosen;
        if (*chosen == M || !(g.d[g.pivot] > 0.0)) {
            break;
        }
        THI_TRY(add_column(&g, ctx));
    }
out:
    greedy_close(&g);
    return status;
}

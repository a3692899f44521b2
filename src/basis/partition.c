/*
 * The partition as a whole: centres by k-means (partition_centres.c), every row to the nearest, large blocks
 * cut (partition_cut.c) and small ones merged (partition_merge.c), rows in order.
 */
#include "basis/partition.h"

#include <math.h>
#include <string.h>

#include "basis/partition_internal.h"
#include "data/batches.h"

/* Columns for which plain loops beat a gemm with its packing, so that a single row waits for no memory. */
enum { FEW_COLUMNS = 8 };

void thi_scale_columns(int D, const double *scale, int64_t n, const double *X, double *U)
{
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < D; d++) {
            U[i * D + d] = scale[d] != 0.0 ? scale[d] * X[i * D + d] : 0.0;
        }
    }
}

thiele_status thi_scaled_fetch(const thi_scaled_rows *s, int64_t count, const int64_t *row, double *X)
{
    thiele_status status = s->rows->fetch(s->rows->arg, s->ctx, count, row, X);
    if (status == THIELE_OK) {
        thi_scale_columns(s->rows->D, s->scale, count, X, X);
    }
    return status;
}

void thi_sort_by_label(int64_t n, const int64_t *label, int64_t labels, int64_t *start, int64_t *order)
{
    memset(start, 0, (size_t)(labels + 1) * sizeof *start);
    for (int64_t i = 0; i < n; i++) {
        start[label[i] + 1]++;
    }
    for (int64_t k = 0; k < labels; k++) {
        start[k + 1] += start[k];
    }
    for (int64_t i = 0; i < n; i++) {
        order[start[label[i]]++] = i;
    }
    /* Each start has become the next one. */
    memmove(start + 1, start, (size_t)labels * sizeof *start);
    start[0] = 0;
}

/* --- Making ----------------------------------------------------------------------------------------------------- */

/* As many blocks as rows: each row is its own. */
static thiele_status one_row_each(thi_partition *p, const thi_scaled_rows *s)
{
    for (int64_t i = 0; i <= p->n; i++) {
        p->start[i] = i;
    }
    memcpy(p->order, p->start, (size_t)p->n * sizeof *p->order);
    for (int64_t first = 0; first < p->n; first += THI_PARTITION_CHUNK) {
        int64_t count = thi_least(THI_PARTITION_CHUNK, p->n - first);
        thiele_status status = thi_scaled_fetch(s, count, p->order + first, p->centre + first * p->D);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

/* Blocks of any size by k-means: order and start, and the sums of their rows. */
static thiele_status first_blocks(thi_portions *blocks, const thi_scaled_rows *s, int64_t P, double seconds,
                                  int64_t *label)
{
    thi_nearest near = {0};
    thiele_status status;
    THI_TRY(thi_partition_centres(&near, s, P, seconds));
    blocks->count = near.centres.count;
    THI_TRY(thi_alloc(s->ctx, &blocks->start, (size_t)blocks->count + 1, sizeof *blocks->start));
    THI_TRY(thi_alloc(s->ctx, &blocks->sum, (size_t)blocks->count, (size_t)near.D * sizeof *blocks->sum));
    THI_TRY(thi_partition_assign(&near, s, label, blocks->sum));
    thi_sort_by_label(s->rows->n, label, blocks->count, blocks->start, blocks->order);
out:
    thi_nearest_close(&near);
    return status;
}

static thiele_status make_blocks(thi_partition *p, const thi_scaled_rows *s, double seconds)
{
    thi_portions blocks = {.order = p->order};
    thi_portions pieces = {0};
    int64_t *label = NULL;
    int64_t *into = NULL;
    thiele_status status;
    THI_TRY(thi_alloc_bare(s->ctx, &label, (size_t)p->n, sizeof *label));
    THI_TRY(first_blocks(&blocks, s, p->blocks, seconds, label));
    THI_TRY(thi_portions_cut(&pieces, s, &blocks, p->blocks, thi_largest_block(p->n, p->blocks)));
    THI_TRY(thi_alloc(s->ctx, &into, (size_t)pieces.count, sizeof *into));
    THI_TRY(thi_portions_merge(&pieces, s, p->blocks, into, p->centre));
    for (int64_t k = 0; k < pieces.count; k++) {
        for (int64_t i = pieces.start[k]; i < pieces.start[k + 1]; i++) {
            label[pieces.order[i]] = into[k];
        }
    }
    thi_sort_by_label(p->n, label, p->blocks, p->start, p->order);
out:
    thi_portions_clear(&blocks);
    thi_portions_clear(&pieces);
    thi_free(label);
    thi_free(into);
    return status;
}

static thiele_status check(thiele_context *ctx, const thi_partition_rows *rows, int64_t blocks, const double *scale)
{
    if (blocks < 1 || rows->n < 1 || rows->D < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "cannot cut %lld rows of %d columns into %lld blocks",
                        (long long)rows->n, rows->D, (long long)blocks);
    }
    for (int d = 0; d < rows->D; d++) {
        if (!isfinite(scale[d])) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the scale of column %d of a partition is not finite", d + 1);
        }
    }
    return THIELE_OK;
}

thiele_status thi_partition_make(thi_partition *p, thiele_context *ctx, const thi_partition_rows *rows, int64_t blocks,
                                 const double *scale, double seconds)
{
    const size_t bytes = (size_t)rows->D * sizeof *p->centre;
    *p = (thi_partition){.D = rows->D, .n = rows->n, .blocks = thi_least(blocks, rows->n)};
    thiele_status status;
    THI_TRY(check(ctx, rows, blocks, scale));
    THI_TRY(thi_alloc(ctx, &p->scale, 1, bytes));
    THI_TRY(thi_alloc(ctx, &p->centre, (size_t)p->blocks, bytes));
    THI_TRY(thi_alloc(ctx, &p->start, (size_t)p->blocks + 1, sizeof *p->start));
    THI_TRY(thi_alloc_bare(ctx, &p->order, (size_t)p->n, sizeof *p->order));
    memcpy(p->scale, scale, bytes);
    thi_scaled_rows s = {ctx, rows, p->scale};
    THI_TRY(p->blocks == p->n ? one_row_each(p, &s) : make_blocks(p, &s, seconds));
out:
    if (status != THIELE_OK) {
        thi_partition_clear(p);
    }
    return status;
}

thiele_status thi_partition_random(thi_partition *p, thiele_context *ctx, int64_t n, int64_t blocks)
{
    *p = (thi_partition){.n = n, .blocks = thi_least(blocks, n)};
    int64_t *label = NULL;
    thiele_status status;
    if (n < 1 || blocks < 1) {
        *p = (thi_partition){0};
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "cannot cut %lld rows into %lld blocks", (long long)n,
                        (long long)blocks);
    }
    THI_TRY(thi_alloc(ctx, &p->start, (size_t)p->blocks + 1, sizeof *p->start));
    THI_TRY(thi_alloc_bare(ctx, &p->order, (size_t)n, sizeof *p->order));
    THI_TRY(thi_alloc_bare(ctx, &label, (size_t)n, sizeof *label));
    thi_shuffle order;
    thi_shuffle_open(&order, thi_basis_stream(ctx->seed, THI_PARTITION_ORDER), n);
    for (int64_t b = 0; b < p->blocks; b++) {
        int64_t end = thi_part_start(n, p->blocks, b + 1);
        for (int64_t i = thi_part_start(n, p->blocks, b); i < end; i++) {
            label[thi_shuffle_at(&order, i)] = b;
        }
    }
    thi_sort_by_label(n, label, p->blocks, p->start, p->order);
out:
    thi_free(label);
    if (status != THIELE_OK) {
        thi_partition_clear(p);
    }
    return status;
}

void thi_partition_clear(thi_partition *p)
{
    thi_free(p->scale);
    thi_free(p->centre);
    thi_free(p->mark);
    thi_free(p->start);
    thi_free(p->order);
    *p = (thi_partition){0};
}

/* --- Finding ---------------------------------------------------------------------------------------------------- */

/* The block of a mark, or -1. */
static int64_t marked_block(const thi_partition *p, double mark)
{
    int64_t low = 0, high = p->mark != NULL ? p->blocks : 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (p->mark[middle] < mark) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return p->mark != NULL && low < p->blocks && p->mark[low] == mark ? low : -1;
}

static int64_t nearest_block(const thi_partition *p, const double *x)
{
    int64_t nearest = 0;
    double least = INFINITY;
    for (int64_t b = 0; b < p->blocks; b++) {
        const double *c = p->centre + b * p->D;
        double sum = 0.0;
        for (int d = 0; d < p->D; d++) {
            double off = p->scale[d] != 0.0 ? p->scale[d] * x[d] - c[d] : 0.0;
            sum += off * off;
        }
        if (sum < least) {
            least = sum;
            nearest = b;
        }
    }
    return nearest;
}

static void set_centres(thi_nearest *near, const thi_partition *p)
{
    thi_points points = {.D = p->D, .shift = near->shift};
    for (int64_t b = 0; b < p->blocks; b++) {
        for (int d = 0; d < p->D; d++) {
            near->shift[d] += (p->centre[b * p->D + d] - near->shift[d]) / (double)(b + 1);
        }
    }
    for (int64_t b = 0; b < p->blocks; b++) {
        thi_centre_set(&near->centres, &points, b, p->centre + b * p->D);
    }
    near->centres.count = p->blocks;
}

static thiele_status find_nearest(const thi_partition *p, thiele_context *ctx, int64_t n, const double *X,
                                  int64_t *block)
{
    if (n <= FEW_COLUMNS) {
        for (int64_t i = 0; i < n; i++) {
            block[i] = nearest_block(p, X + i * p->D);
        }
        return THIELE_OK;
    }
    thi_nearest near = {0};
    thiele_status status;
    THI_TRY(thi_nearest_open(&near, ctx, p->D, thi_least(n, THI_PARTITION_CHUNK), p->blocks));
    set_centres(&near, p);
    for (int64_t first = 0; first < n; first += near.room) {
        int64_t count = thi_least(near.room, n - first);
        thi_scale_columns(p->D, p->scale, count, X + first * p->D, near.X);
        THI_TRY(thi_nearest_assign(&near, ctx, count));
        memcpy(block + first, near.clusters.near, (size_t)count * sizeof *block);
    }
out:
    thi_nearest_close(&near);
    return status;
}

thiele_status thi_partition_find(const thi_partition *p, thiele_context *ctx, int64_t n, const double *X,
                                 int64_t *block)
{
    if (p->centre == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a partition without centres has no nearest block");
    }
    thiele_status status = find_nearest(p, ctx, n, X, block);
    for (int64_t i = 0; p->mark != NULL && status == THIELE_OK && i < n; i++) {
        int64_t own = marked_block(p, X[(i + 1) * p->D - 1]);
        block[i] = own >= 0 ? own : block[i];
    }
    return status;
}

/*
 * Tables of rows, a block at a time on each thread or on all together, the variances by one triangle (triangle.h) where
 * there are rows enough: of M^2 flops a row in place of 2 M^2. M = 500, D = 8: 1.7 times the rows per second.
 */
#include <math.h>
#include <string.h>

#include "posterior/local.h"
#include "posterior/predictor_internal.h"
#include "posterior/triangle.h"

/* --- whether one triangle will do ------------------------------------------------------------------------------------
 */

/*
 * What the table saves must be several times what it costs to make C and to test it on a block. Exact regression would
 * only change a solve for a product; of R on k there is no triangle. C may take a share of the memory.
 */
static bool pays(const thi_predictor *p, const thiele_context *ctx, int64_t rows)
{
    enum { SMALL = 64, TIMES = 8 };
    const double share = 0.1;
    double n = (double)p->n, K = (double)p->components, saved = n * n * (1.0 - K);
    if (p->n < SMALL || (!thi_plus_is_triangle(p->plus) && p->plus != THI_PLUS_WHITE)) {
        return false;
    }
    for (int k = 0; k < p->components; k++) {
        saved += thi_plus_is_triangle(p->plus) ? n * n : 2.0 * n * (double)p->R[k].rows;
    }
    return saved * (double)rows >= TIMES * n * n * (K * n + THI_PREDICT_BLOCK) &&
           8.0 * n * n * (K + 2.0) <= share * (double)thi_memory_limit(ctx);
}

static void clear_triangles(thi_batch *b)
{
    for (int k = 0; b->C != NULL && k < b->p->components; k++) {
        thi_free(b->C[k].data);
    }
    thi_free(b->C);
    b->C = NULL;
}

/* Points of the basis, points between them, and the table's first rows: a block at most, as columns of out. */
static int64_t take_rows(const thi_predictor *p, int64_t n, const double *X, double *out)
{
    int D = p->kernel->dims;
    int64_t probes = thi_triangle_probes(p, out), rest = thi_least(n, THI_PREDICT_BLOCK - probes);
    memcpy(out + probes * D, X, (size_t)(rest * D) * sizeof *out);
    return probes + rest;
}

/* Whether both ways agree there, with a margin for the other rows: unit has k(x, x), got and want count x components.
 */
static bool agree(int64_t count, int components, const double *unit, const double *got, const double *want)
{
    for (int64_t i = 0; i < count * components; i++) {
        if (!(fabs(got[i] - want[i]) <= 0.5 * THI_TRIANGLE_LOSS * unit[i % count])) {
            return false;
        }
    }
    return true;
}

static thiele_status test_triangles(const thi_batch *b, thiele_context *ctx, int64_t n, const double *X, bool *good)
{
    const thi_predictor *p = b->p;
    size_t D = (size_t)p->kernel->dims, all = THI_PREDICT_BLOCK * (size_t)p->components;
    double *rows = NULL, *out = NULL;
    thi_rows_space s = {0};
    thi_inputs inputs = {0};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &rows, THI_PREDICT_BLOCK * D, sizeof *rows));
    THI_TRY(thi_alloc(ctx, &out, THI_PREDICT_BLOCK + 3 * all, sizeof *out));
    double *unit = out + 3 * all, *mean = out + 2 * all, *got = out + all;
    int64_t count = take_rows(p, n, X, rows);
    THI_TRY(thi_rows_space_open(&s, ctx, p, count, true));
    THI_TRY(thi_inputs_make(&inputs, ctx, p->kernel, count, rows));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &inputs, unit));
    THI_TRY(thi_predictor_block(p, ctx, count, rows, &s, NULL, mean, out));
    THI_TRY(thi_predictor_block(p, ctx, count, rows, &s, b->C, mean, got));
    *good = agree(count, p->components, unit, got, out);
out:
    thi_inputs_clear(&inputs);
    thi_rows_space_close(&s);
    thi_free(rows);
    thi_free(out);
    return status;
}

/* Makes C where it pays and keeps it where it is good, for the table that begins with the n columns of X. */
static thiele_status decide(thi_batch *b, thiele_context *ctx, int64_t n, const double *X)
{
    bool good = true;
    thiele_status status = THIELE_OK;
    if (b->decided || !pays(b->p, ctx, b->rows)) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &b->C, (size_t)b->p->components, sizeof *b->C));
    for (int k = 0; k < b->p->components; k++) {
        THI_TRY(thi_triangle_make(&b->C[k], ctx, b->p, k));
    }
    THI_TRY(test_triangles(b, ctx, n, X, &good));
out:
    b->decided = status == THIELE_OK || status == THIELE_ERROR_NUMERIC;
    if (status != THIELE_OK || !good) {
        clear_triangles(b);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx);
        return THIELE_OK;
    }
    return status;
}

/* --- all rows --------------------------------------------------------------------------------------------------------
 */

/* Copies a block's columns, times a factor, to their place among all rows; a negative variance becomes zero. */
static void place(int64_t count, int components, const double *block, double factor, int64_t n, int64_t first,
                  double *out, int64_t *clipped)
{
    for (int k = 0; k < components; k++) {
        for (int64_t i = 0; i < count; i++) {
            double value = factor * block[k * count + i];
            bool negative = clipped != NULL && value < 0.0;
            out[k * n + first + i] = negative ? 0.0 : value;
            if (negative) {
                *clipped += 1;
            }
        }
    }
}

/* What a thread that works on blocks of its own has; one works on all of them where each is the work of all threads. */
typedef struct worker {
    thiele_context ctx; /* the caller's, for one thread and with a message of its own */
    thi_rows_space s;
    double *block; /* mean and variance of a block */
    int64_t clipped;
    int64_t failed; /* the lowest block that failed, or INT64_MAX */
} worker;

typedef struct task {
    const thi_predictor *p;
    const thi_matrix *C; /* as in thi_predictor_block */
    int64_t n, columns;
    const double *X;
    double *mean, *variance;
    worker *workers;
} task;

static thiele_status do_block(const task *t, thiele_context *ctx, worker *w, int64_t index)
{
    int D = t->p->kernel->dims, K = t->p->components;
    int64_t first = index * THI_PREDICT_BLOCK, count = thi_least(t->n - first, THI_PREDICT_BLOCK);
    double *variance = t->variance != NULL ? w->block + t->columns * K : NULL;
    thiele_status status = thi_stop_ask(ctx);
    if (status == THIELE_OK) {
        status = thi_predictor_block(t->p, ctx, count, t->X + first * D, &w->s, t->C, w->block, variance);
    }
    if (status != THIELE_OK) {
        w->failed = index < w->failed ? index : w->failed;
        return status;
    }
    place(count, K, w->block, 1.0, t->n, first, t->mean, NULL);
    if (variance != NULL) {
        place(count, K, variance, thi_predictor_tau(t->p), t->n, first, t->variance, &w->clipped);
    }
    return THIELE_OK;
}

static thiele_status one_of_many(void *arg, int64_t index, int thread)
{
    const task *t = arg;
    worker *w = &t->workers[thread];
    return do_block(t, &w->ctx, w, index);
}

/* Each thread a block at a time; of several failures the message is that of the lowest block, as is the status. */
static thiele_status many_blocks(const task *t, thiele_context *ctx, int64_t blocks)
{
    int64_t lowest = INT64_MAX;
    for (int i = 0; i < ctx->threads; i++) {
        t->workers[i].ctx = *ctx;
        t->workers[i].ctx.threads = 1;
        t->workers[i].ctx.pool = NULL;
    }
    thiele_status status = thi_parallel(ctx, blocks, one_of_many, (void *)t);
    for (int i = 0; i < ctx->threads; i++) {
        if (t->workers[i].failed < lowest) {
            lowest = t->workers[i].failed;
            memcpy(ctx->message, t->workers[i].ctx.message, sizeof ctx->message);
        }
    }
    return status;
}

/*
 * Blocks are cut by the same rule whether one thread does a block or all do it together: no bit depends on this. Many
 * blocks of a small basis wait less for each other; few, or those that take much memory, are the work of all threads.
 */
static int workers_of(const thi_predictor *p, const thiele_context *ctx, int64_t blocks)
{
    enum { SMALL = 2048 };
    return ctx->threads > 1 && blocks >= 2 * (int64_t)ctx->threads && p->n <= SMALL ? ctx->threads : 1;
}

static thiele_status open_workers(task *t, thiele_context *ctx, int count)
{
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &t->workers, (size_t)count, sizeof *t->workers));
    for (int i = 0; i < count; i++) {
        t->workers[i].failed = INT64_MAX;
        THI_TRY(thi_rows_space_open(&t->workers[i].s, ctx, t->p, t->columns, t->variance != NULL));
        THI_TRY(thi_alloc(ctx, &t->workers[i].block, (size_t)(2 * t->columns * t->p->components), sizeof(double)));
    }
out:
    return status;
}

static void close_workers(task *t, int count)
{
    for (int i = 0; t->workers != NULL && i < count; i++) {
        thi_rows_space_close(&t->workers[i].s);
        thi_free(t->workers[i].block);
    }
    thi_free(t->workers);
}

static thiele_status all_blocks(task *t, thiele_context *ctx, int64_t *clipped)
{
    int64_t blocks = (t->n + THI_PREDICT_BLOCK - 1) / THI_PREDICT_BLOCK;
    int count = workers_of(t->p, ctx, blocks);
    thiele_status status;
    THI_TRY(open_workers(t, ctx, count));
    if (count > 1) {
        THI_TRY(many_blocks(t, ctx, blocks));
    }
    for (int64_t index = 0; count == 1 && index < blocks; index++) {
        THI_TRY(do_block(t, ctx, t->workers, index));
    }
    for (int i = 0; t->variance != NULL && i < count; i++) {
        *clipped += t->workers[i].clipped;
    }
out:
    close_workers(t, count);
    return status;
}

static bool sees_nearest(const thi_batch *batch)
{
    const thi_partition *partition = &batch->p->local->partition;
    return batch->sight == THI_SEES_NEAREST && partition->blocks > 1 && partition->mark == NULL;
}

int thi_batch_twins(thi_batch *batch, int most)
{
    int twins = 1;
    if (batch->p->local != NULL && sees_nearest(batch)) {
        for (; twins < most && thi_local_are_twins(batch->p, &batch->p[twins]); twins++) {
        }
    }
    batch->twins = twins;
    return twins;
}

thiele_status thi_batch_marginals(thi_batch *batch, thiele_context *ctx, int64_t n, const double *X, double *mean,
                                  double *variance, int64_t *clipped)
{
    const thi_predictor *p = batch->p;
    thiele_status status;
    if (p->local != NULL) {
        int twins = batch->twins > 0 ? batch->twins : 1;
        return batch->sight == THI_SEES_BLEND ? thi_local_blend(p, ctx, n, X, mean, variance, clipped)
               : sees_nearest(batch)          ? thi_local_near_twins(p, twins, ctx, n, X, mean, variance, clipped)
                                              : thi_local_marginals(p, ctx, n, X, NULL, mean, variance, clipped);
    }
    if (variance != NULL) {
        THI_TRY(decide(batch, ctx, n, X));
    }
    task t = {p, batch->C, n, thi_least(n, THI_PREDICT_BLOCK), X, mean, variance, NULL};
    THI_TRY(all_blocks(&t, ctx, clipped));
out:
    return status;
}

void thi_batch_clear(thi_batch *batch)
{
    clear_triangles(batch);
}

thiele_status thi_predictor_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                      double *mean, double *variance, int64_t *clipped)
{
    thi_batch batch = {.p = predictor, .rows = n};
    thiele_status status = thi_batch_marginals(&batch, ctx, n, X, mean, variance, clipped);
    thi_batch_clear(&batch);
    return status;
}

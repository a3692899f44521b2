/* Predictions of PIC by the rows nearest to each: see local.h. Rows are worked on side by side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "posterior/local.h"

enum { NEAR = THI_LOCAL_NEAR, SEARCHED = THI_LOCAL_SEARCHED, PORTION = 16 /* rows of a piece of work */ };

typedef struct candidate {
    double distance;
    int64_t row;
} candidate;

static int by_distance(const void *a, const void *b)
{
    const candidate *one = a, *other = b;
    int order = (one->distance > other->distance) - (one->distance < other->distance);
    return order != 0 ? order : (one->row > other->row) - (one->row < other->row);
}

/* The nearest `wanted` of them come first, in order (Hoare 1961). */
static int64_t nearest_first(candidate *list, int64_t count, int64_t wanted)
{
    int64_t low = 0, high = count - 1;
    wanted = thi_least(wanted, count);
    while (low < high) {
        candidate pivot = list[wanted - 1];
        int64_t i = low, j = high;
        while (i <= j) {
            for (; by_distance(&list[i], &pivot) < 0; i++) {
            }
            for (; by_distance(&list[j], &pivot) > 0; j--) {
            }
            if (i <= j) {
                candidate swap = list[i];
                list[i++] = list[j];
                list[j--] = swap;
            }
        }
        low = j < wanted - 1 ? i : low;
        high = i > wanted - 1 ? j : high;
    }
    qsort(list, (size_t)wanted, sizeof *list, by_distance);
    return wanted;
}

/* What one thread works with. */
typedef struct bench {
    candidate *candidate; /* the rows of the blocks that are searched */
    double *X, *y, *lambda, *nu, *V;
    thi_dense prior; /* of twins */
    int64_t clipped;
} bench;

static void bench_close(bench *w)
{
    thi_free(w->candidate);
    thi_free(w->X);
    thi_free(w->V);
    thi_dense_close(&w->prior);
}

static thiele_status bench_open(bench *w, thiele_context *ctx, const thi_predictor *p, bool twins)
{
    const thi_local *local = p->local;
    size_t rows = (size_t)(SEARCHED * local->largest);
    thiele_status status;
    THI_TRY(thi_alloc_bare(ctx, &w->candidate, rows, sizeof *w->candidate));
    THI_TRY(thi_alloc_bare(ctx, &w->X, (size_t)(NEAR * (local->partition.D + 3)), sizeof *w->X));
    THI_TRY(thi_alloc_bare(ctx, &w->V, (size_t)(NEAR * p->n), sizeof *w->V));
    w->y = w->X + (ptrdiff_t)NEAR * local->partition.D;
    w->lambda = w->y + NEAR;
    w->nu = w->lambda + NEAR;
    if (twins) {
        THI_TRY(thi_dense_open(&w->prior, ctx, NEAR, NULL, NULL, NULL));
    }
out:
    return status;
}

/* The nearest rows of these blocks come first; returns how many. */
static int64_t find_rows(const thi_local *local, bench *w, const double *x, int blocks, const int64_t *block)
{
    const thi_partition *p = &local->partition;
    int64_t count = 0;
    for (int k = 0; k < blocks; k++) {
        for (int64_t i = p->start[block[k]]; i < p->start[block[k] + 1]; i++) {
            double sum = 0.0;
            for (int d = 0; d < p->D; d++) {
                double gap = p->scale[d] * (x[d] - local->X[i * p->D + d]);
                sum += gap * gap;
            }
            w->candidate[count++] = (candidate){sum, i};
        }
    }
    return nearest_first(w->candidate, count, NEAR);
}

/* Takes what a block's factor knows of those of the rows that are its. */
static void take_columns(const thi_local *local, bench *w, int64_t M, int64_t n, const thi_local_factor *f)
{
    const int64_t *start = local->partition.start + f->block;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = w->candidate[i].row;
        if (row >= start[0] && row < start[1]) {
            memcpy(w->V + i * M, f->V.data + (row - start[0]) * f->V.ld, (size_t)M * sizeof *w->V);
        }
    }
}

static thiele_status gather(const thi_predictor *p, thiele_context *ctx, bench *w, int64_t n, int blocks,
                            const int64_t *block)
{
    const thi_local *local = p->local;
    int64_t D = local->partition.D;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = w->candidate[i].row;
        memcpy(w->X + i * D, local->X + row * D, (size_t)D * sizeof *w->X);
        w->y[i] = local->y[row];
    }
    for (int k = 0; k < blocks; k++) {
        thi_local_factor *f = NULL;
        thiele_status status = thi_local_acquire(p, ctx, block[k], true, &f);
        if (status != THIELE_OK) {
            return status;
        }
        take_columns(local, w, p->n, n, f);
        thi_local_release(local->cache, f);
    }
    return THIELE_OK;
}

typedef struct task {
    const thi_predictor *p;
    int twins;
    thiele_context *ctx;
    int64_t n;
    const double *X;
    double *mean, *variance;
    bool cached;      /* factors of all blocks fit into the cache, and have V of all rows; else it is made each time */
    candidate *order; /* rows of one block after each other: what they need is in the cache then */
    bench *bench;     /* one a thread */
} task;

static void gather_sites(const thi_local *local, bench *w, int64_t n)
{
    for (int64_t i = 0; i < n && local->lambda != NULL; i++) {
        int64_t row = w->candidate[i].row;
        w->lambda[i] = local->lambda[row];
        w->nu[i] = local->nu[row];
    }
}

/* What twins share: V, which may be known, and K - V'V. */
static thiele_status share(const task *t, bench *w, int64_t n)
{
    const thi_predictor *p = t->p;
    thi_matrix V = thi_matrix_view(w->V, p->n, n, p->n);
    thi_inputs inputs = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, t->ctx, p->kernel, n, w->X));
    if (!t->cached) {
        THI_TRY(thi_kernel_fill(p->kernel, t->ctx, &p->inputs, &inputs, V, false));
        THI_TRY(thi_tri_solve(t->ctx, THI_N, p->L, V));
    }
    THI_TRY(thi_dense_residual(&w->prior, t->ctx, p->kernel, &inputs, V));
out:
    thi_inputs_clear(&inputs);
    return status;
}

/* Row i by the rows that were gathered; q: which of the twins. */
static thiele_status predict_by(const task *t, bench *w, int64_t i, int q, int64_t n)
{
    const thi_predictor *p = &t->p[q];
    const double *x = t->X + i * p->local->partition.D;
    int64_t at = i + q * t->n;
    bool sites = p->local->lambda != NULL, twins = t->twins > 1;
    const thi_local_rows rows = {.n = n,
                                 .X = w->X,
                                 .y = w->y,
                                 .lambda = sites ? w->lambda : NULL,
                                 .nu = sites ? w->nu : NULL,
                                 .V = t->cached || twins ? w->V : NULL,
                                 .prior = twins ? &w->prior : NULL};
    thi_local_factor *f = NULL;
    thiele_status status;
    gather_sites(p->local, w, n);
    THI_TRY(thi_local_factor_make(p, t->ctx, &rows, &f));
    THI_TRY(thi_local_one(p, t->ctx, f, x, t->mean + at, t->variance != NULL ? t->variance + at : NULL, &w->clipped));
out:
    thi_local_factor_free(f);
    return status;
}

static thiele_status predict_one(const task *t, bench *w, int64_t i)
{
    const thi_local *local = t->p->local;
    const double *x = t->X + i * local->partition.D;
    int64_t block[SEARCHED];
    double distance[SEARCHED];
    int blocks = (int)thi_least(SEARCHED, local->partition.blocks);
    thiele_status status;
    thi_local_nearest(&local->partition, x, blocks, block, distance);
    int64_t n = find_rows(local, w, x, blocks, block);
    THI_TRY(gather(t->p, t->ctx, w, n, t->cached ? blocks : 0, block));
    if (t->twins > 1) {
        THI_TRY(share(t, w, n));
    }
    for (int q = 0; q < t->twins; q++) {
        THI_TRY(predict_by(t, w, i, q, n));
    }
out:
    return status;
}

static thiele_status predict_portion(void *arg, int64_t portion, int thread)
{
    const task *t = arg;
    int64_t end = thi_least(t->n, (portion + 1) * PORTION);
    thiele_status status = THIELE_OK;
    for (int64_t i = portion * PORTION; i < end && status == THIELE_OK; i++) {
        status = predict_one(t, &t->bench[thread], t->order[i].row);
    }
    return status;
}

static bool fits_cache(const thi_predictor *p)
{
    const thi_partition *partition = &p->local->partition;
    double rows = (double)partition->n, each = rows / (double)partition->blocks;
    return 8.0 * rows * ((double)p->n + each + partition->D) < p->local->cache_most;
}

static thiele_status sort_rows(task *t)
{
    int64_t *block = NULL;
    thiele_status status;
    THI_TRY(thi_alloc_bare(t->ctx, &t->order, (size_t)t->n, sizeof *t->order));
    THI_TRY(thi_alloc_bare(t->ctx, &block, (size_t)t->n, sizeof *block));
    THI_TRY(thi_partition_find(&t->p->local->partition, t->ctx, t->n, t->X, block));
    for (int64_t i = 0; i < t->n; i++) {
        t->order[i] = (candidate){(double)block[i], i};
    }
    qsort(t->order, (size_t)t->n, sizeof *t->order, by_distance);
out:
    thi_free(block);
    return status;
}

bool thi_local_are_twins(const thi_predictor *a, const thi_predictor *b)
{
    bool same = a->local != NULL && b->local != NULL && a->local->X == b->local->X && a->local->lambda != NULL &&
                b->local->lambda != NULL && a->n == b->n && thi_kernel_is_same(a->kernel, b->kernel);
    return same && memcmp(a->inputs.X, b->inputs.X, (size_t)(a->n * a->kernel->dims) * sizeof *a->inputs.X) == 0;
}

thiele_status thi_local_near_twins(const thi_predictor *predictor, int twins, thiele_context *ctx, int64_t n,
                                   const double *X, double *mean, double *variance, int64_t *clipped)
{
    task t = {predictor, twins, ctx, n, X, mean, variance, fits_cache(predictor), NULL, NULL};
    thiele_status status;
    THI_TRY(sort_rows(&t));
    THI_TRY(thi_alloc(ctx, &t.bench, (size_t)ctx->threads, sizeof *t.bench));
    for (int i = 0; i < ctx->threads; i++) {
        THI_TRY(bench_open(&t.bench[i], ctx, predictor, twins > 1));
    }
    THI_TRY(thi_parallel(ctx, (n + PORTION - 1) / PORTION, predict_portion, &t));
    for (int i = 0; i < ctx->threads && clipped != NULL; i++) {
        *clipped += t.bench[i].clipped;
    }
    for (int64_t i = 0; variance != NULL && i < n * twins; i++) {
        variance[i] *= thi_predictor_tau(&predictor[i / n]);
    }
out:
    for (int i = 0; t.bench != NULL && i < ctx->threads; i++) {
        bench_close(&t.bench[i]);
    }
    thi_free(t.bench);
    thi_free(t.order);
    return status;
}

thiele_status thi_local_near(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                             double *mean, double *variance, int64_t *clipped)
{
    return thi_local_near_twins(predictor, 1, ctx, n, X, mean, variance, clipped);
}

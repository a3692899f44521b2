/*
 * Blocks of rows on all threads. A thread has a provider and a copy of the context of its own: what a failing block
 * says must not be overwritten by another.
 */
#include "expect/parallel.h"

#include <math.h>
#include <string.h>

typedef struct thi_expect_worker {
    thiele_context ctx; /* message apart, the caller's */
    thi_expect expect;
    bool open;
    int64_t failed; /* the lowest block that failed, or INT64_MAX */
} worker;

typedef struct job {
    const thi_providers *providers;
    int64_t n, size; /* rows in all, and in a block */
    thi_expect_rows_fn fn;
    const void *arg;
} job;

static thiele_status run_block(void *arg, int64_t block, int thread)
{
    const job *j = arg;
    worker *w = &j->providers->workers[thread];
    int64_t row = block * j->size, left = j->n - row;
    if (block > w->failed) {
        return THIELE_OK;
    }
    thiele_status status = thi_stop_ask(&w->ctx);
    if (status == THIELE_OK && !w->open) {
        status = thi_expect_open(&w->expect, &w->ctx, j->providers->lik, j->providers->method);
        w->open = status == THIELE_OK;
    }
    if (status == THIELE_OK) {
        status = j->fn(&w->expect, &w->ctx, row, left < j->size ? left : j->size, j->arg);
    }
    if (status != THIELE_OK) {
        w->failed = block;
    }
    return status;
}

static void keep_message(thiele_context *ctx, const worker *workers, int threads)
{
    int64_t lowest = INT64_MAX;
    for (int t = 0; t < threads; t++) {
        if (workers[t].failed < lowest) {
            lowest = workers[t].failed;
            memcpy(ctx->message, workers[t].ctx.message, sizeof ctx->message);
        }
    }
}

/*
 * Few rows that cost much are shared out too, but not with a user's function of many points: it is to get many. Depends
 * on n alone.
 */
static int64_t block_size(const thiele_likelihood *lik, int64_t n)
{
    enum { LEAST = 16, SHARES = 8 };
    int64_t size = (n + SHARES - 1) / SHARES;
    return thi_likelihood_is_batched(lik) ? THI_EXPECT_BLOCK
           : size < LEAST                 ? LEAST
           : size > THI_EXPECT_BLOCK      ? THI_EXPECT_BLOCK
                                          : size;
}

/* Operations for a row: an exact expectation takes a few hundred, any other ten nodes at least, and often far more. */
static double row_cost(const thiele_likelihood *lik, const char *method)
{
    const char *way = method != NULL ? method : thiele_likelihood_best_method(lik);
    return strcmp(way, "closed") == 0 || strcmp(way, "augmented") == 0 ? 1000.0 : 20000.0;
}

/* A worker for each thread of the context, which a call after another one may have more of. */
static thiele_status ready(thi_providers *p, thiele_context *ctx)
{
    int threads = ctx->threads > 1 ? ctx->threads : 1;
    if (threads > p->threads) {
        thi_providers_close(p);
        thiele_status status = thi_alloc(ctx, &p->workers, (size_t)threads, sizeof *p->workers);
        if (status != THIELE_OK) {
            return status;
        }
        p->threads = threads;
    }
    for (int t = 0; t < threads; t++) {
        p->workers[t].ctx = *ctx;
        p->workers[t].ctx.threads = 1; /* a block is the work of one thread */
        p->workers[t].failed = INT64_MAX;
    }
    return THIELE_OK;
}

void thi_providers_close(thi_providers *p)
{
    for (int t = 0; t < p->threads; t++) {
        thi_expect_close(&p->workers[t].expect);
    }
    thi_free(p->workers);
    p->workers = NULL;
    p->threads = 0;
}

thiele_status thi_providers_rows(thi_providers *p, thiele_context *ctx, int64_t n, thi_expect_rows_fn fn,
                                 const void *arg)
{
    if (n < 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the number of rows is negative");
    }
    job j = {p, n, block_size(p->lik, n), fn, arg};
    thiele_status status = ready(p, ctx);
    if (status != THIELE_OK) {
        return status;
    }
    /* No rows: the method is still checked. */
    int64_t blocks = n > 0 ? (n + j.size - 1) / j.size : 1;
    status = thi_parallel_work(ctx, blocks, row_cost(p->lik, p->method) * (double)n, run_block, &j);
    keep_message(ctx, p->workers, ctx->threads > 1 ? ctx->threads : 1);
    return status;
}

thiele_status thi_expect_rows(const thiele_likelihood *lik, thiele_context *ctx, const char *method, int64_t n,
                              thi_expect_rows_fn fn, const void *arg)
{
    thi_providers p = {.lik = lik, .method = method};
    thiele_status status = thi_providers_rows(&p, ctx, n, fn, arg);
    thi_providers_close(&p);
    return status;
}

/* A likelihood to a power: so many times its log, with the scale of y that it then lacks. */
static void weigh(const thi_asked *a, int64_t row, int64_t n, const thiele_likelihood *lik)
{
    int64_t P = lik->outputs, Q = lik->latents;
    int varying = lik->ops->log_variance;
    for (int64_t i = row; i < row + n; i++) {
        const double w = a->weight[i], *y = a->y + i * P;
        a->E[i] = w * a->E[i] + (w - 1.0) * thi_likelihood_log_scale(lik, y, a->mu + i * Q);
        for (int64_t q = i * Q; q < (i + 1) * Q; q++) {
            a->g[q] *= w;
            a->h[q] *= w;
        }
        if (varying > 0 && !isnan(y[0])) {
            a->g[varying + i * Q] += 0.5 * (w - 1.0);
        }
        for (int k = 0; a->dphi != NULL && k < lik->parameters; k++) {
            double *slope = &a->dphi[k + i * lik->parameters];
            *slope = w * *slope + (w - 1.0) * thi_likelihood_scale_slope(lik, y, k);
        }
    }
}

static thiele_status ask_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    const thi_asked *a = arg;
    const thiele_likelihood *lik = expect->lik;
    int64_t at = row * lik->latents;
    thiele_status status =
        thi_expect_block(expect, ctx, a->row + row, n, a->y + row * lik->outputs, a->mu + at, a->v + at, a->E + row,
                         a->g + at, a->h + at, a->dphi != NULL ? a->dphi + row * lik->parameters : NULL);
    if (status == THIELE_OK && a->weight != NULL) {
        weigh(a, row, n, lik);
    }
    return status;
}

thiele_status thi_providers_expect(thi_providers *p, thiele_context *ctx, const thi_asked *asked)
{
    return thi_providers_rows(p, ctx, asked->n, ask_block, asked);
}

/*
 * Parallel work in blocks and sums of their parts in a fixed order. Which thread does which block is left to chance;
 * what a block computes and the order of the sum are not, so results have the same bits on any number of threads.
 */
#include "base/base.h"
#include "base/pool.h"

/* A failure as one number, block first, so that the lowest block is the smallest number. */
enum { STATUS_RANGE = 256 };
static const long long NO_FAILURE = INT64_MAX;

static void note_failure(atomic_llong *worst, int64_t block, thiele_status status)
{
    long long own = block * STATUS_RANGE - (long long)status;
    long long seen = atomic_load(worst);
    while (own < seen && !atomic_compare_exchange_weak(worst, &seen, own)) {
    }
}

static thiele_status in_turn(int64_t blocks, thi_block_fn fn, void *arg)
{
    for (int64_t block = 0; block < blocks; block++) {
        thiele_status status = fn(arg, block, 0);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

/* What the threads of a pool share. */
typedef struct parallel_job {
    thi_block_fn fn;
    void *arg;
    atomic_llong worst;
} parallel_job;

static void run_block(void *arg, int64_t block, int thread)
{
    parallel_job *job = arg;
    thiele_status status = job->fn(job->arg, block, thread);
    if (status != THIELE_OK) {
        note_failure(&job->worst, block, status);
    }
}

thiele_status thi_parallel(thiele_context *ctx, int64_t blocks, thi_block_fn fn, void *arg)
{
    int threads = ctx->threads < blocks ? ctx->threads : (int)blocks;
    if (threads > 1 && ctx->pool != NULL && !thi_pool_is_own(ctx->pool)) {
        thi_pool_destroy(ctx->pool);
        ctx->pool = NULL;
    }
    if (threads > 1 && ctx->pool == NULL) {
        ctx->pool = thi_pool_create(ctx->threads);
    }
    parallel_job job = {fn, arg, NO_FAILURE};
    if (threads <= 1 || ctx->pool == NULL || !thi_pool_run(ctx->pool, threads, blocks, run_block, &job)) {
        return in_turn(blocks, fn, arg);
    }
    return job.worst == NO_FAILURE ? THIELE_OK : (thiele_status) - (job.worst % STATUS_RANGE);
}

thiele_status thi_parallel_work(thiele_context *ctx, int64_t blocks, double flops, thi_block_fn fn, void *arg)
{
    return flops < THI_PARALLEL_FLOPS ? in_turn(blocks, fn, arg) : thi_parallel(ctx, blocks, fn, arg);
}

void thi_reduce(int64_t blocks, int64_t length, double *part, double *out)
{
    /* Neighbours first, then pairs of pairs: the shape depends on the number of blocks alone. */
    for (int64_t step = 1; step < blocks; step *= 2) {
        for (int64_t block = 0; block + step < blocks; block += 2 * step) {
            double *left = part + block * length;
            const double *right = part + (block + step) * length;
            for (int64_t i = 0; i < length; i++) {
                left[i] += right[i];
            }
        }
    }
    for (int64_t i = 0; blocks > 0 && i < length; i++) {
        out[i] += part[i];
    }
}

/*
 * Parallel work in blocks and sums of their parts in a fixed order. Which thread does which block is left to chance;
 * what a block computes and the order of the sum are not, so results have the same bits on any number of threads.
 */
#include <omp.h>

#include "base/base.h"

thiele_status thi_parallel(thiele_context *ctx, int64_t blocks, thi_block_fn fn, void *arg)
{
    int threads = ctx->threads < blocks ? ctx->threads : (int)blocks;
    if (threads <= 1) {
        for (int64_t block = 0; block < blocks; block++) {
            thiele_status status = fn(arg, block, 0);
            if (status != THIELE_OK) {
                return status;
            }
        }
        return THIELE_OK;
    }
    int64_t first_failed = blocks;
    thiele_status result = THIELE_OK;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t block = 0; block < blocks; block++) {
        thiele_status status = fn(arg, block, omp_get_thread_num());
        if (status != THIELE_OK) {
#pragma omp critical(thi_parallel_failure)
            if (block < first_failed) {
                first_failed = block;
                result = status;
            }
        }
    }
    return result;
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

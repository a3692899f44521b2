/* Work on an n x n matrix of a dense posterior, a block of columns at a time on all threads. */
#ifndef THI_DENSE_COLUMNS_H
#define THI_DENSE_COLUMNS_H

#include "posterior/dense.h"

enum { THI_DENSE_COLUMNS = 256 };

static inline thiele_status thi_dense_each_column(thiele_context *ctx, int64_t n, thi_block_fn fn, void *arg)
{
    int64_t blocks = (n + THI_DENSE_COLUMNS - 1) / THI_DENSE_COLUMNS;
    return thi_parallel_work(ctx, blocks, 2.0 * (double)n * (double)n, fn, arg);
}

/* One behind the last column of a block. */
static inline int64_t thi_dense_block_end(int64_t n, int64_t block)
{
    int64_t end = (block + 1) * THI_DENSE_COLUMNS;
    return end < n ? end : n;
}

#endif

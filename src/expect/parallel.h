/* Blocks of rows on all threads, each thread with a provider of its own. */
#ifndef THI_EXPECT_PARALLEL_H
#define THI_EXPECT_PARALLEL_H

#include "expect/expect.h"

/* Rows row .. row + n - 1, n <= THI_EXPECT_BLOCK. */
typedef thiele_status (*thi_expect_rows_fn)(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n,
                                            const void *arg);
/*
 * Calls fn for all blocks of n rows. The method is checked before any of them; the message of the lowest failing block
 * is the one that is kept.
 */
thiele_status thi_expect_rows(const thiele_likelihood *lik, thiele_context *ctx, const char *method, int64_t n,
                              thi_expect_rows_fn fn, const void *arg);

#endif

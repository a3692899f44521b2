/* Blocks of rows on all threads, each thread with a provider of its own. */
#ifndef THI_EXPECT_PARALLEL_H
#define THI_EXPECT_PARALLEL_H

#include "expect/expect.h"

/* One provider per thread, opened when a thread first needs it and kept for the calls to come. One caller at a time. */
typedef struct thi_providers {
    const thiele_likelihood *lik; /* borrowed, as is method; the values of its parameters may change between calls */
    const char *method;
    int threads; /* 0 at first, with no workers */
    struct thi_expect_worker *workers;
} thi_providers;

void thi_providers_close(thi_providers *providers);

/* Rows row .. row + n - 1, n <= THI_EXPECT_BLOCK. */
typedef thiele_status (*thi_expect_rows_fn)(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n,
                                            const void *arg);
/*
 * Calls fn for all blocks of n rows. The method is checked before any of them; the message of the lowest failing block
 * is the one that is kept.
 */
thiele_status thi_providers_rows(thi_providers *providers, thiele_context *ctx, int64_t n, thi_expect_rows_fn fn,
                                 const void *arg);
/* The same with providers for this one call. */
thiele_status thi_expect_rows(const thiele_likelihood *lik, thiele_context *ctx, const char *method, int64_t n,
                              thi_expect_rows_fn fn, const void *arg);

/* Rows whose (E, g, h) are wanted; shapes as in thi_expect_block. */
typedef struct thi_asked {
    int64_t row; /* the number of the first one, for draws */
    int64_t n;
    const double *y, *mu, *v;
    double *E, *g, *h;
    double *dphi;         /* NULL: not wanted */
    const double *weight; /* of each row: its density has this power, but for the scale of y; NULL: 1 */
} thi_asked;

thiele_status thi_providers_expect(thi_providers *providers, thiele_context *ctx, const thi_asked *asked);

#endif

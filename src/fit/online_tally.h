/*
 * Rows with Gaussian noise into sums that are exact (posterior/tally.h), and a posterior from these. What a row adds
 * must depend on the row alone, whatever stands beside it: k(x, z) is told from the centre of Z, not of the batch;
 * batches have one size, a multiple of the widths in which matrix products are cut, and the last one is filled up.
 */
#ifndef THI_FIT_ONLINE_TALLY_H
#define THI_FIT_ONLINE_TALLY_H

#include "fit/online.h"
#include "posterior/tally.h"

/* Columns of a batch: 6 x 8, 14, 16, 24 and 32 divide it. */
enum { THI_ONLINE_TALLY_BATCH = 2016 };

/* One of a latent function's, all zeros; unexplained variances are at most those of the prior at its basis. */
thiele_status thi_online_tally_open(const thi_online *online, thiele_context *ctx, int latent, thi_tally *tally);
/*
 * Takes a batch of THI_ONLINE_TALLY_BATCH columns of X, the capacity of `online`; offset is added to the mean of the
 * first latent function. k(Z, X), 3 M^2 flops a row.
 */
thiele_status thi_online_tally_load(thi_online *online, thiele_context *ctx, const double *X, const double *offset);
/*
 * Adds the first n rows of the batch that was loaded last; y is Q x n (NaN:
 * missing). Error: DATA, *bad is the row then.
 */
thiele_status thi_online_tally_add(const thi_online *online, thiele_context *ctx, int latent, int64_t n,
                                   const double *y, thi_tally_desk *desk, thi_tally *tally, int64_t *bad);
/*
 * q from these rows alone. *evidence: their log evidence and, where what the basis leaves unexplained counts as lost
 * (Titsias 2025), the bound on that. Error: NUMERIC.
 */
thiele_status thi_online_tally_put(thi_online *online, thiele_context *ctx, int latent, const thi_tally *tally,
                                   double *evidence);

#endif

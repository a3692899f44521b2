/*
 * The continuous ranked probability score of an observation y under a law with distribution function F,
 *   CRPS = int (F(x) - [x >= y])^2 dx,
 * in the units of y; of counts the sum of the same over 0, 1, 2, ... (Gneiting and Raftery 2007, section 4.2).
 */
#ifndef THI_CRPS_H
#define THI_CRPS_H

#include "expect/expect.h"

/* A law by its distribution function. */
typedef struct thi_known_law {
    thiele_status (*cdf)(void *law, thiele_context *ctx, double y, double *p); /* P(Y <= y) */
    void (*anew)(void *law); /* called before the values of another cell; NULL: nothing is kept from value to value */
    void *law;
    thi_support support;   /* no classes, whose probabilities say it all */
    double low, mid, high; /* y at its 16%, 50% and 84% quantiles: where it lies and how wide it is, roughly */
} thi_known_law;

/* Some 200 to 400 values of F; to 1e-7 of the result where F can be told that well. */
thiele_status thi_crps(const thi_known_law *law, thiele_context *ctx, double y, double *crps);

/*
 * For each output by itself; y and out: P x n, NaN where y is. Exact where the likelihood knows it and there is one
 * component; NaN for the thousands of components that draws are. Errors: as of thi_mixture_quantiles; UNSUPPORTED for
 * classes.
 */
thiele_status thi_mixture_crps(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, const double *y,
                               double *out);

#endif

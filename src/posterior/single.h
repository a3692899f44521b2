/*
 * A predictor made ready for one row at a time: no allocation, no GEMM, and where it can be one triangle in place of
 * two (triangle.h), var = k(x, x) - |C k|^2. Whether C keeps the digits is tried when the object is made, on the basis
 * and between its points, and where the variance is off by more than THI_TRIANGLE_LOSS of k(x, x) it is had from a
 * solve with L and then R, in twice the time. What has other bases than points (length-scales of functions, blocks of
 * PIC) is left to thi_predictor_marginals, which allocates.
 */
#ifndef THI_SINGLE_H
#define THI_SINGLE_H

#include "posterior/predictor.h"

/* How the variance is had. */
typedef enum thi_single_way {
    THI_SINGLE_MEAN,    /* not at all: only the mean is wanted */
    THI_SINGLE_ONE,     /* |C k|^2, one triangle a component */
    THI_SINGLE_SOLVE,   /* w by a solve with L, then R */
    THI_SINGLE_GENERAL, /* thi_predictor_marginals, also for the mean */
} thi_single_way;

typedef struct thi_single thi_single;

/* 2 n^3 flops and n^2/2 numbers a component where the variance is wanted. predictor is borrowed. */
thiele_status thi_single_open(thi_single **out, thiele_context *ctx, const thi_predictor *predictor, bool variance);
void thi_single_close(thi_single *single);
thi_single_way thi_single_way_of(const thi_single *single);
/*
 * Mean and, unless variance is NULL, variance of f at x (D), components each; as thi_predictor_marginals but for
 * rounding. One thread at a time: the object has one work space.
 */
thiele_status thi_single_marginals(const thi_single *single, thiele_context *ctx, const double *x, double *mean,
                                   double *variance);

#endif

/* Type-II maximum likelihood (or MAP) for exact regression. */
#ifndef THI_FIT_EXACT_H
#define THI_FIT_EXACT_H

#include "fit/driver.h"
#include "fit/parameters.h"

typedef struct thi_fit_settings {
    int restarts;   /* further random starts */
    int iterations; /* of L-BFGS on all rows; negative: keep the first guesses */
} thi_fit_settings;

typedef struct thi_fit_result {
    thiele_stop stop;
    int iterations;
    int64_t evaluations;
} thi_fit_result;

/*
 * hypers holds first guesses in and the learned values out. Several starts are tried on a random subset of at most 1000
 * rows; the best is polished on all of them. Cost: n^3 flops for each of the evaluations on all rows.
 */
thiele_status thi_fit_exact(thiele_context *ctx, thi_driver *driver, int64_t n, const double *X, const double *y,
                            thiele_kernel *kernel, thi_mean mean, thi_hypers *hypers, const thi_fit_settings *settings,
                            thi_fit_result *result);

#endif

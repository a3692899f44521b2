/* First guesses of the hyperparameters. */
#ifndef THI_START_H
#define THI_START_H

#include "fit/parameters.h"

/*
 * Sets every hyperparameter that the user did not give: length-scales to the median distance between rows over the
 * kernel's columns, periods to a third of their range, variances to that of y shared among the summands, the noise to a
 * tenth of it (with a floor under it), the mean to the average of y. At most 512 rows are looked at.
 */
thiele_status thi_start_guess(thi_hypers *hypers, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                              const double *X, const double *y);
/* Moves the free, not given length-scales by the factor `stretch` and the noise to `noise` times the variance of y. */
void thi_start_variant(thi_hypers *hypers, const thiele_kernel *kernel, double variance, double stretch, double noise);
double thi_variance(int64_t n, const double *y);

#endif

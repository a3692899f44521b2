/* First guesses of the hyperparameters. */
#ifndef THI_START_H
#define THI_START_H

#include "fit/parameters.h"

/*
 * Sets every hyperparameter that the user did not give: length-scales to the median distance between rows over the
 * kernel's columns, periods to a third of their range, variances to that of the likelihood's guesses of f (of y, for
 * Gaussian noise) shared among the summands, the noise to a tenth of *spread (with a floor under it), the mean to the
 * average of the guesses. At most 512 rows are looked at for distances. *spread: the variance of y, of the first
 * target, times the mean weight of the rows: what Gaussian noise is measured by.
 */
thiele_status thi_start_guess(thi_hypers *hypers, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows,
                              double *spread);
/*
 * Moves the free, not given length-scales by the factor `stretch` and a Gaussian noise to `noise` times the spread of
 * y.
 */
void thi_start_variant(thi_hypers *hypers, const thi_spec *spec, double spread, double stretch, double noise);

/*
 * start_rows.c: mean and variance (Q) of latents some of whose signs the likelihood leaves open, by what the rows have
 * in common. *found: it is of that kind, with several latents that have means.
 */
thiele_status thi_start_rows(thiele_context *ctx, const thi_spec *spec, const thi_rows *rows, double *mean,
                             double *variance, bool *found);

#endif

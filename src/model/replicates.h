/* Rows with equal inputs and different targets: repeated measurements. */
#ifndef THI_REPLICATES_H
#define THI_REPLICATES_H

#include "data/data.h"

/*
 * Where rows of X (D x n) are equal while their y differ, a line to the log says how many, names two of them by the
 * table's row numbers, and tells the noise that they imply: the standard deviation of y around the mean of each set of
 * equal rows, in the unit of the target. O(n log n) comparisons of D numbers.
 */
thiele_status thi_report_replicates(thiele_context *ctx, int64_t n, int D, const double *X, const double *y,
                                    const thi_target *target, const int64_t *row);

#endif

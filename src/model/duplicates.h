/* Rows with equal inputs and different targets. */
#ifndef THI_DUPLICATES_H
#define THI_DUPLICATES_H

#include "base/base.h"

/*
 * Logs a warning when rows of X (D x n) are equal while their y differ, naming the first pair by the table's row
 * numbers. O(n log n) comparisons of D numbers.
 */
thiele_status thi_warn_duplicates(thiele_context *ctx, int64_t n, int D, const double *X, const double *y,
                                  const int64_t *row);

#endif

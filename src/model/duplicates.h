/* Rows with equal inputs and different targets. */
#ifndef THI_DUPLICATES_H
#define THI_DUPLICATES_H

#include "base/base.h"

/*
 * Rows of X (D x n) that are equal while their y differ: DATA, naming the first pair by the table's row numbers, or a
 * warning when they are allowed. O(n log n) comparisons of D numbers.
 */
thiele_status thi_check_replicates(thiele_context *ctx, int64_t n, int D, const double *X, const double *y,
                                   const int64_t *row, bool allowed);

#endif

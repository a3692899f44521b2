/* The maximum of a function of one number that may have several: the best of a grid, then a golden section around it.
 */
#ifndef THI_SCALAR_H
#define THI_SCALAR_H

#include "base/base.h"

typedef thiele_status (*thi_scalar_fn)(void *arg, double x, double *value);

/* *best: a first guess, which is among those tried, and the best one found. Some 20 evaluations. Errors: the
 * function's. */
thiele_status thi_scalar_search(thi_scalar_fn function, void *arg, double low, double high, double *best);

#endif

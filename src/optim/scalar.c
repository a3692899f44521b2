/* A search in one dimension: see scalar.h. */
#include "optim/scalar.h"

#include <math.h>

enum { GRID = 9, REFINEMENTS = 12 };
static const double GOLDEN = 0.6180339887498949;

thiele_status thi_scalar_search(thi_scalar_fn function, void *arg, double low, double high, double *best)
{
    double step = (high - low) / (GRID - 1), top, value;
    thiele_status status;
    THI_TRY(function(arg, *best, &top));
    for (int i = 0; i < GRID; i++) {
        THI_TRY(function(arg, low + i * step, &value));
        if (value > top) {
            top = value;
            *best = low + i * step;
        }
    }
    double a = fmax(low, *best - step), b = fmin(high, *best + step);
    for (int i = 0; i < REFINEMENTS; i++) {
        double x = i % 2 == 0 ? b - GOLDEN * (b - a) : a + GOLDEN * (b - a);
        THI_TRY(function(arg, x, &value));
        bool better = value > top;
        if (x < *best) {
            *(better ? &b : &a) = better ? *best : x;
        } else {
            *(better ? &a : &b) = better ? *best : x;
        }
        top = better ? value : top;
        *best = better ? x : *best;
    }
out:
    return status;
}

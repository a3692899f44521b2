/*
 * Quantiles of the standard normal by Halley's iteration on erfc, from a rough start (Abramowitz and Stegun 26.2.23,
 * error below 4.5e-4); three steps triple the digits each time.
 */
#include "likelihood/normal_quantile.h"

#include <math.h>

double thi_normal_quantile(double p)
{
    if (p > 0.5) {
        return -thi_normal_quantile(1.0 - p);
    }
    /* Below this exp(z^2/2) would overflow in the iteration. */
    p = p < 1e-306 ? 1e-306 : p;
    double t = sqrt(-2.0 * log(p));
    double top = 2.515517 + t * (0.802853 + t * 0.010328);
    double bottom = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    double z = top / bottom - t;
    for (int step = 0; step < 3; step++) {
        double excess = 0.5 * erfc(-z * M_SQRT1_2) - p;
        double newton = excess * 2.506628274631000502416 * exp(0.5 * z * z);
        z -= newton / (1.0 + 0.5 * z * newton);
    }
    return z;
}

/* phi(r) = cosh(sqrt(r)/2)^-b: what the logistic link and all that is made of it share. */
#ifndef THI_POLYA_GAMMA_H
#define THI_POLYA_GAMMA_H

#include "likelihood/formulas/values.h"

/*
 * With x = sqrt(r)/2: log phi = -b log cosh x, mean b tanh(x)/(8x), variance b (tanh x - x/cosh(x)^2)/(64 x^3), all
 * from e^-2x - 1. Below x = 1/2 the variance is that of sinh(2x) - 2x, by its series, over 2 x^3 cosh(x)^2.
 */
THI_POINTWISE thi_omega thi_polya_gamma(double b, double r)
{
    double x = 0.5 * sqrt(r), m = expm1(-2.0 * x), e = 1.0 + m, tangent = -m / (2.0 + m);
    double secant2 = 4.0 * e / ((1.0 + e) * (1.0 + e));
    double log_cosh = x < 1.0 ? 0.5 * log1p(0.25 * m * m / e) : x + log1p(e) - M_LN2;
    double excess = (tangent - x * secant2) / (x * x * x);
    if (x < 0.5) {
        double series = 1.0 + r / 20.0 * (1.0 + r / 42.0 * (1.0 + r / 72.0 * (1.0 + r / 110.0 * (1.0 + r / 156.0))));
        excess = 2.0 / 3.0 * series * secant2;
    }
    return thi_omega_of(-b * log_cosh, x > 0.0 ? 0.125 * b * (tangent / x) : 0.125 * b, b / 64.0 * excess);
}

#endif

/* y = f + e, e ~ N(0, noise). half: 1/(2 noise); constant: that of the density. */
#ifndef THI_FORMULAS_GAUSSIAN_H
#define THI_FORMULAS_GAUSSIAN_H

#include "likelihood/formulas/values.h"

THI_POINTWISE double thi_gaussian_constant(double noise)
{
    return -0.5 * (THI_LOG_2PI + log(noise));
}

THI_POINTWISE double thi_gaussian_density(double constant, double half, double y, double f)
{
    double r = y - f;
    return constant - half * r * r;
}

/* E[(y - f)^2]/(2 noise), of which the derivative in log noise is this less 1/2. */
THI_POINTWISE double thi_gaussian_misfit(double half, double y, double mu, double v)
{
    double r = y - mu;
    return half * (r * r + v);
}

THI_POINTWISE thi_row thi_gaussian_expectation(double constant, double half, double y, double mu, double v)
{
    return thi_row_of(constant - thi_gaussian_misfit(half, y, mu, v), 2.0 * half * (y - mu), -half);
}

#endif

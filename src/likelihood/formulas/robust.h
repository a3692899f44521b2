/* y = f + e with a symmetric e of heavier tails than a Gaussian's (likelihood/robust.c). */
#ifndef THI_FORMULAS_ROBUST_H
#define THI_FORMULAS_ROBUST_H

#include "likelihood/formulas/values.h"
#include "likelihood/stirling.h"

#define THI_SQRT3 1.7320508075688772935

/* --- Student-t; nu, scale: log p = constant - (nu + 1)/2 log(1 + z^2/nu), z = (y - f)/scale --- */

THI_POINTWISE double thi_student_constant(double nu, double scale)
{
    return thi_lgamma_rise(0.5 * nu, 0.5) - 0.5 * log(nu * M_PI) - log(scale);
}

/* z^2/nu */
THI_POINTWISE double thi_student_ratio(double nu, double scale, double y, double f)
{
    double z = (y - f) / scale;
    return z * z / nu;
}

/* From log(1 + z^2/nu). */
THI_POINTWISE double thi_student_density(double constant, double nu, double log_ratio)
{
    return constant - 0.5 * (nu + 1.0) * log_ratio;
}

/* d[0], d[1]: first and second derivative in f. */
THI_POINTWISE void thi_student_derivatives(double nu, double scale, double y, double f, double *d)
{
    double slope = (nu + 1.0) / scale, curve = slope / scale;
    double z = (y - f) / scale, over = 1.0 / (nu + z * z);
    d[0] = slope * z * over;
    d[1] = curve * (z * z - nu) * over * over;
}

/* In log nu and log scale. */
THI_POINTWISE void thi_student_phi(thi_values phi, double y, double f, double *dphi)
{
    double nu = phi.value[0], z = (y - f) / phi.value[1];
    double share = (nu + 1.0) * z * z / (nu + z * z);
    dphi[0] = 0.5 * (nu * (thi_digamma_rise(0.5 * nu, 0.5) - log1p(z * z / nu)) - 1.0 + share);
    dphi[1] = share - 1.0;
}

/* --- Laplace; beta: log p = constant - |y - f|/beta --- */

THI_POINTWISE double thi_laplace_constant(double beta)
{
    return -log(2.0 * beta);
}

/* |y - f|/beta, over = 1/beta; the derivative in log beta is this less 1. */
THI_POINTWISE double thi_laplace_size(double over, double y, double f)
{
    return over * fabs(y - f);
}

/* E|y - f| = s sqrt(2/pi) exp(-z^2/2) + r erf(z/sqrt2), r = y - mu, s = sqrt(v), z = r/s. */
THI_POINTWISE thi_row thi_laplace_expectation(thi_values phi, double y, double mu, double v, double *dphi)
{
    double over = 1.0 / phi.value[0], r = y - mu, s = sqrt(fmax(v, THI_LEAST_VARIANCE)), z = r / s;
    double density = thi_normal_density(z), sign = erf(z * M_SQRT1_2);
    double size = over * (2.0 * s * density + r * sign);
    if (dphi != NULL) {
        dphi[0] = size - 1.0;
    }
    return thi_row_of(thi_laplace_constant(phi.value[0]) - size, over * sign, -over * density / s);
}

/* --- Matern-3/2; rho: log p = log(a/4) + log(1 + u) - u, u = a |y - f|, a = sqrt3/rho --- */

THI_POINTWISE double thi_matern_size(double a, double y, double f)
{
    return a * fabs(y - f);
}

/* From u and log(1 + u). */
THI_POINTWISE double thi_matern_density(double constant, double u, double log_more)
{
    return constant + log_more - u;
}

THI_POINTWISE void thi_matern_derivatives(double a, double y, double f, double *d)
{
    double r = y - f, over = a / (1.0 + a * fabs(r));
    d[0] = a * over * r;
    d[1] = -over * over;
}

#endif

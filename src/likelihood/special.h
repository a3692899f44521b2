/*
 * Functions of one variable that the densities need, safe in the far tails: |x| up to 1e150 gives no overflow, no
 * cancellation and no NaN. Relative errors are below 1e-13 unless said otherwise. Phi and phi are the standard normal's
 * distribution function and density. Tails of the normal are taken through exp(x^2) erfc(x), where the factor that
 * underflows is gone, Mills' ratio by Laplace's continued fraction (DLMF 7.9), digamma and trigamma by recurrence and
 * Stirling's series (DLMF 5.11, 5.15). Each costs one to four library functions.
 */
#ifndef THI_SPECIAL_H
#define THI_SPECIAL_H

#include <math.h>

#include "base/pointwise.h"

#define THI_SQRT_2_OVER_PI   0.79788456080286535588
#define THI_LOG_SQRT_2PI     0.91893853320467274178
#define THI_ONE_OVER_SQRT_PI 0.56418958354775628695

/* exp(x^2) erfc(x); overflows to infinity below x = -26.6. */
THI_POINTWISE double thi_erfcx(double x)
{
    if (x < 25.0) {
        /* x^2 = square + rest exactly: the rounding error of the square would be multiplied by x^2 otherwise. */
        double square = x * x;
        double rest = fma(x, x, -square);
        double value = exp(square) * erfc(x);
        return square < 709.0 ? value * (1.0 + rest) : value;
    }
    double t = 0.5 / x / x;
    double series = 1.0 - t * (1.0 - 3.0 * t * (1.0 - 5.0 * t * (1.0 - 7.0 * t * (1.0 - 9.0 * t * (1.0 - 11.0 * t)))));
    return THI_ONE_OVER_SQRT_PI / x * series;
}

THI_POINTWISE double thi_normal_density(double x)
{
    return exp(-0.5 * x * x - THI_LOG_SQRT_2PI);
}

/* Phi(x); its relative error grows as x^2 eps in the left tail. */
THI_POINTWISE double thi_normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

/*
 * The CRPS of a Gaussian at `error` from its mean: sd [z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)], z = error/sd
 * (Gneiting and Raftery 2007, eq. 21).
 */
THI_POINTWISE double thi_normal_crps(double error, double variance)
{
    if (variance == 0.0) {
        return fabs(error);
    }
    double sd = sqrt(variance), z = error / sd;
    return error * erf(z * M_SQRT1_2) + sd * (THI_SQRT_2_OVER_PI * exp(-0.5 * z * z) - THI_ONE_OVER_SQRT_PI);
}

/* log(Phi(x) exp(x^2/2)) for x <= 0 */
THI_POINTWISE double thi_log_scaled_tail(double x)
{
    return log(0.5 * thi_erfcx(-x * M_SQRT1_2));
}

THI_POINTWISE double thi_log_phi(double x)
{
    if (x > 0.0) {
        return log1p(-0.5 * erfc(x * M_SQRT1_2));
    }
    return x > -1.0 ? log(thi_normal_cdf(x)) : thi_log_scaled_tail(x) - 0.5 * x * x;
}

/* phi(x)/Phi(x), the derivative of log Phi: near -x for x << 0, 0 for x >> 0. */
THI_POINTWISE double thi_mills(double x)
{
    if (x > 0.0) {
        return thi_normal_density(x) / thi_normal_cdf(x);
    }
    return THI_SQRT_2_OVER_PI / thi_erfcx(-x * M_SQRT1_2);
}

/* x + phi(x)/Phi(x), positive: 1/|x| for x << 0. The second derivative of log Phi is -thi_mills * thi_mills_excess. For
 * t = -x: 1/(t + 2/(t + 3/(t + ...))). From t = 6 on 24 terms give full precision; nearer to zero the sum of x and the
 * ratio loses less than two digits. */
THI_POINTWISE double thi_mills_excess(double x)
{
    if (x > -6.0) {
        return x + thi_mills(x);
    }
    double tail = -x;
    for (int k = 24; k >= 2; k--) {
        tail = -x + k / tail;
    }
    return 1.0 / tail;
}

/* A narrow interval: phi(mid) times the width times the mean of exp((mid^2 - x^2)/2), by eight Gauss-Legendre nodes. */
THI_POINTWISE double thi_phi_narrow(double a, double b, double *ratio_a, double *ratio_b)
{
    static const double node[4] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363};
    static const double weight[4] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};
    double mid = 0.5 * (a + b), half = 0.5 * (b - a);
    double mean = 0;
    for (int i = 0; i < 4; i++) {
        double t = half * node[i];
        mean += weight[i] * exp(-0.5 * t * t) * cosh(mid * t);
    }
    double area = 2.0 * half * mean;
    *ratio_a = exp(half * (mid - 0.5 * half)) / area;
    *ratio_b = exp(-half * (mid + 0.5 * half)) / area;
    return log(area) - 0.5 * mid * mid - THI_LOG_SQRT_2PI;
}

/* thi_phi_between for a <= 0 */
THI_POINTWISE double thi_phi_between_left(double a, double b, double *ratio_a, double *ratio_b)
{
    if ((b - a) * fmax(1.0, 0.5 * fabs(a + b)) <= 2.0) {
        return thi_phi_narrow(a, b, ratio_a, ratio_b);
    }
    if (b > 0.0) {
        double outside = thi_normal_cdf(a) + thi_normal_cdf(-b);
        *ratio_a = thi_normal_density(a) / (1.0 - outside);
        *ratio_b = thi_normal_density(b) / (1.0 - outside);
        return log1p(-outside);
    }
    double fall = exp(0.5 * (b - a) * (b + a)); /* phi(a)/phi(b) */
    double tail_b = thi_erfcx(-b * M_SQRT1_2);
    double share = fall > 0.0 ? fall * thi_erfcx(-a * M_SQRT1_2) / tail_b : 0.0; /* Phi(a)/Phi(b) */
    *ratio_b = THI_SQRT_2_OVER_PI / tail_b / (1.0 - share);
    *ratio_a = *ratio_b * fall;
    return log(0.5 * tail_b) - 0.5 * b * b + log1p(-share);
}

/* log(Phi(b) - Phi(a)), a < b, either of which may be infinite (minus infinity when a >= b), with the ratios
 * phi(a)/(Phi(b) - Phi(a)) and phi(b)/(Phi(b) - Phi(a)), which do not cancel or underflow. */
THI_POINTWISE double thi_phi_between(double a, double b, double *ratio_a, double *ratio_b)
{
    *ratio_a = *ratio_b = 0.0;
    if (!(a < b)) {
        return isnan(a) || isnan(b) ? NAN : -INFINITY;
    }
    return a > 0.0 ? thi_phi_between_left(-b, -a, ratio_b, ratio_a) : thi_phi_between_left(a, b, ratio_a, ratio_b);
}

/* The logarithm alone. */
THI_POINTWISE double thi_log_phi_between(double a, double b)
{
    double ratio_a, ratio_b;
    return thi_phi_between(a, b, &ratio_a, &ratio_b);
}

/* log of the integral of exp(-k t) N(t; z, 1) over t > 0, that is k^2/2 - k z + log Phi(z - k). */
THI_POINTWISE double thi_log_phi_tilted(double z, double k)
{
    double x = z - k;
    return x < 0.0 ? thi_log_scaled_tail(x) - 0.5 * z * z : k * (0.5 * k - z) + thi_log_phi(x);
}

/* log(1 + e^x) */
THI_POINTWISE double thi_log1pexp(double x)
{
    return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

/* log(1/(1 + e^-x)) */
THI_POINTWISE double thi_log_sigmoid(double x)
{
    return fmin(x, 0.0) - log1p(exp(-fabs(x)));
}

/* 1/(1 + e^-x) */
THI_POINTWISE double thi_sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/* log(e^a + e^b); either may be minus infinity. */
THI_POINTWISE double thi_log_add(double a, double b)
{
    double high = fmax(a, b);
    return isinf(high) ? high : high + log1p(exp(fmin(a, b) - high));
}

/* For x > 0, absolute error of a few ulp of max(1, |value|). */
THI_POINTWISE double thi_digamma(double x)
{
    double shift = 0;
    for (; x < 10.0; x += 1.0) {
        shift += 1.0 / x;
    }
    double t = 1.0 / (x * x);
    double series =
        t *
        (1.0 / 12 -
         t * (1.0 / 120 - t * (1.0 / 252 - t * (1.0 / 240 - t * (1.0 / 132 - t * (691.0 / 32760 - t * (1.0 / 12)))))));
    return log(x) - 0.5 / x - series - shift;
}

THI_POINTWISE double thi_trigamma(double x)
{
    double shift = 0;
    for (; x < 10.0; x += 1.0) {
        shift += 1.0 / (x * x);
    }
    double t = 1.0 / (x * x);
    double series =
        1.0 / 6 -
        t * (1.0 / 30 - t * (1.0 / 42 - t * (1.0 / 30 - t * (5.0 / 66 - t * (691.0 / 2730 - t * (7.0 / 6))))));
    return 1.0 / x + 0.5 * t + series * t / x + shift;
}

/* log Gamma(x), x > 0; unlike lgamma it shares no state between threads. */
THI_POINTWISE double thi_lgamma(double x)
{
#ifdef __CUDA_ARCH__
    return lgamma(x);
#else
    int sign;
    return lgamma_r(x, &sign);
#endif
}

#endif

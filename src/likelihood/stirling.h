/*
 * Differences of log Gamma and digamma that lose nothing when their arguments are large and close: the plain
 * difference of log Gamma at 1e8 is good to six digits only. From Stirling's series above 10, where its next term is
 * below an ulp (Abramowitz and Stegun 6.1.40, 6.3.18): log Gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + S(x), S of
 * order 1/(12x). Differences are arranged so that what is large cancels on paper.
 */
#ifndef THI_STIRLING_H
#define THI_STIRLING_H

#include "likelihood/special.h"

/* Six terms of the series are exact to 1e-15 from here on. */
#define THI_STIRLING_LARGE 10

/* S(x) */
THI_POINTWISE double thi_stirling_tail(double x)
{
    double w = 1 / (x * x);
    double sum = 1.0 / 1188 - w * (691.0 / 360360);
    sum = 1.0 / 1680 - w * sum;
    sum = 1.0 / 1260 - w * sum;
    sum = 1.0 / 360 - w * sum;
    return (1.0 / 12 - w * sum) / x;
}

/* log x - digamma(x), x > 0: about 1/(2x). */
THI_POINTWISE_CALL double thi_digamma_gap(double x)
{
    if (x < THI_STIRLING_LARGE) {
        return log(x) - thi_digamma(x);
    }
    double w = 1 / (x * x);
    double sum = 1.0 / 132 - w * (691.0 / 32760 - w / 12);
    sum = 1.0 / 240 - w * sum;
    sum = 1.0 / 252 - w * sum;
    sum = 1.0 / 120 - w * sum;
    return 0.5 / x + w * (1.0 / 12 - w * sum);
}

/* x log x - x - log Gamma(x), x > 0: about log(x/(2 pi))/2. */
THI_POINTWISE_CALL double thi_lgamma_gap(double x)
{
    if (x < THI_STIRLING_LARGE) {
        return x * log(x) - x - thi_lgamma(x);
    }
    return 0.5 * log(x / (2 * M_PI)) - thi_stirling_tail(x);
}

/* log Gamma(x + y) - log Gamma(x), x > 0, y >= 0. */
THI_POINTWISE double thi_lgamma_rise(double x, double y)
{
    if (x < THI_STIRLING_LARGE) {
        return thi_lgamma(x + y) - thi_lgamma(x);
    }
    return (x + y - 0.5) * log1p(y / x) + y * (log(x) - 1) + thi_stirling_tail(x + y) - thi_stirling_tail(x);
}

/* digamma(x + y) - digamma(x), x > 0, y >= 0. */
THI_POINTWISE double thi_digamma_rise(double x, double y)
{
    if (x < THI_STIRLING_LARGE) {
        return thi_digamma(x + y) - thi_digamma(x);
    }
    return log1p(y / x) + thi_digamma_gap(x) - thi_digamma_gap(x + y);
}

/* log of n choose k. */
THI_POINTWISE double thi_log_choose(double n, double k)
{
    double few = fmin(k, n - k);
    return thi_lgamma_rise(n - few + 1, few) - thi_lgamma(few + 1);
}

/* d - log(1 + d) without cancellation near d = 0; ratio = 1 + d is given too. With w = d/(2 + d), log(1 + d) = 2 (w +
 * w^3/3 + w^5/5 + ...) and d - 2w = w d. */
THI_POINTWISE double thi_log_excess(double d, double ratio)
{
    if (fabs(d) > 0.3) {
        return d - log(ratio);
    }
    double w = d / (2 + d), square = w * w, sum = 0;
    for (int k = 21; k >= 3; k -= 2) {
        sum = 1.0 / k + square * sum;
    }
    return w * (d - 2 * square * sum);
}

#endif

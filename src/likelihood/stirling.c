/*
 * Stirling's series (Abramowitz and Stegun 6.1.40, 6.3.18): log Gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + S(x), S
 * of order 1/(12x). Differences are arranged so that what is large cancels on paper.
 */
#include "likelihood/stirling.h"

#include <math.h>

#include "likelihood/special.h"

/* Six terms of the series are exact to 1e-15 from here on. */
static const double LARGE = 10;

/* S(x) */
static double tail(double x)
{
    double w = 1 / (x * x);
    double sum = 1.0 / 1188 - w * (691.0 / 360360);
    sum = 1.0 / 1680 - w * sum;
    sum = 1.0 / 1260 - w * sum;
    sum = 1.0 / 360 - w * sum;
    return (1.0 / 12 - w * sum) / x;
}

double thi_digamma_gap(double x)
{
    if (x < LARGE) {
        return log(x) - thi_digamma(x);
    }
    double w = 1 / (x * x);
    double sum = 1.0 / 132 - w * (691.0 / 32760 - w / 12);
    sum = 1.0 / 240 - w * sum;
    sum = 1.0 / 252 - w * sum;
    sum = 1.0 / 120 - w * sum;
    return 0.5 / x + w * (1.0 / 12 - w * sum);
}

double thi_lgamma_gap(double x)
{
    if (x < LARGE) {
        return x * log(x) - x - thi_lgamma(x);
    }
    return 0.5 * log(x / (2 * M_PI)) - tail(x);
}

double thi_lgamma_rise(double x, double y)
{
    if (x < LARGE) {
        return thi_lgamma(x + y) - thi_lgamma(x);
    }
    return (x + y - 0.5) * log1p(y / x) + y * (log(x) - 1) + tail(x + y) - tail(x);
}

double thi_digamma_rise(double x, double y)
{
    if (x < LARGE) {
        return thi_digamma(x + y) - thi_digamma(x);
    }
    return log1p(y / x) + thi_digamma_gap(x) - thi_digamma_gap(x + y);
}

double thi_log_choose(double n, double k)
{
    double few = fmin(k, n - k);
    return thi_lgamma_rise(n - few + 1, few) - thi_lgamma(few + 1);
}

/* With w = d/(2 + d), log(1 + d) = 2 (w + w^3/3 + w^5/5 + ...) and d - 2w = w d. */
double thi_log_excess(double d, double ratio)
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

/*
 * Exact samplers: Poisson and binomial by inversion for means below 10 and by transformed rejection above (PTRS and
 * BTRS, Hoermann 1993), gamma by Marsaglia and Tsang (2000). The rejections accept with probability 0.7 or more a
 * round, so that the 32 rounds there is room for run out once in 1e16 draws; the middle of the law is returned then.
 */
#include "likelihood/draws.h"

#include <math.h>

#include "likelihood/special.h"
#include "likelihood/stirling.h"

/* From here on the law is normal within 1e-5 standard deviations, and log Gamma too coarse for an acceptance test. */
static const double NORMAL_VARIANCE = 1e10;

/* The hat of PTRS and BTRS: k = floor((2 a/us + b) U + c) with U in (-1/2, 1/2), us = 1/2 - |U|. */
typedef struct hat {
    double a, b, c;
    double quick;  /* accept at once below this, in the middle */
    double height; /* what log V is compared by */
} hat;

/* A candidate: its value, and whether the squeeze takes it; else the log of what is compared with the density. */
typedef struct candidate {
    double k, level;
    bool accepted;
} candidate;

static candidate propose(thi_stream stream, uint64_t index, const hat *h)
{
    double U = thi_random_uniform(stream, index) - 0.5, V = thi_random_uniform(stream, index + 1);
    double us = 0.5 - fabs(U);
    double k = floor((2 * h->a / us + h->b) * U + h->c);
    return (candidate){
        .k = k, .level = log(V * h->height / (h->a / (us * us) + h->b)), .accepted = us >= 0.07 && V <= h->quick};
}

static double rounded_normal(thi_stream stream, uint64_t first, double mean, double variance)
{
    return fmax(0, floor(mean + sqrt(variance) * thi_random_normal(stream, first) + 0.5));
}

static double poisson_by_inversion(double u, double mean)
{
    double k = 0, p = exp(-mean);
    while (u > p && k < 200) {
        u -= p;
        k++;
        p *= mean / k;
    }
    return k;
}

double thi_draw_poisson(thi_stream stream, uint64_t first, double mean)
{
    if (mean < 10) {
        return poisson_by_inversion(thi_random_uniform(stream, first), mean);
    }
    if (mean > NORMAL_VARIANCE) {
        return isinf(mean) ? mean : rounded_normal(stream, first, mean, mean);
    }
    double b = 0.931 + 2.53 * sqrt(mean);
    hat h = {-0.059 + 0.02483 * b, b, mean + 0.43, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4)};
    for (uint64_t i = first; i < first + THI_DRAW; i += 2) {
        candidate c = propose(stream, i, &h);
        if (c.k >= 0 && (c.accepted || c.level <= c.k * log(mean) - mean - thi_lgamma(c.k + 1))) {
            return c.k;
        }
    }
    return floor(mean);
}

static double binomial_by_inversion(double u, double trials, double p)
{
    double k = 0, odds = p / (1 - p), mass = exp(trials * log1p(-p));
    while (u > mass && k < trials && k < 200) {
        u -= mass;
        mass *= (trials - k) / (k + 1) * odds;
        k++;
    }
    return k;
}

double thi_draw_binomial(thi_stream stream, uint64_t first, double trials, double p)
{
    if (trials * p < 10) {
        return binomial_by_inversion(thi_random_uniform(stream, first), trials, p);
    }
    double variance = trials * p * (1 - p);
    if (variance > NORMAL_VARIANCE) {
        return fmin(trials, rounded_normal(stream, first, trials * p, variance));
    }
    double sd = sqrt(variance), b = 1.15 + 2.53 * sd, mode = floor((trials + 1) * p);
    hat h = {-0.0873 + 0.0248 * b + 0.01 * p, b, trials * p + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * sd};
    double top = thi_log_choose(trials, mode), odds = log(p / (1 - p));
    for (uint64_t i = first; i < first + THI_DRAW; i += 2) {
        candidate c = propose(stream, i, &h);
        if (c.k >= 0 && c.k <= trials &&
            (c.accepted || c.level <= thi_log_choose(trials, c.k) - top + (c.k - mode) * odds)) {
            return c.k;
        }
    }
    return mode;
}

/* Gamma(shape, 1), shape >= 1, from index `first` on. The first test, which takes nearly all, implies the second. */
static double large_gamma(thi_stream stream, uint64_t first, uint64_t end, double shape)
{
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (uint64_t i = first; i + 1 < end; i += 2) {
        double x = thi_random_normal(stream, i), t = 1 + c * x;
        if (t <= 0) {
            continue;
        }
        double v = t * t * t, u = thi_random_uniform(stream, i + 1), square = x * x;
        if (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d - d * v + d * log(v)) {
            return d * v;
        }
    }
    return d;
}

/* A shape below 1 is raised by 1 and brought back by U^(1/shape). */
double thi_draw_log_gamma(thi_stream stream, uint64_t first, double shape)
{
    double boost = shape < 1 ? log(thi_random_uniform(stream, first)) / shape : 0;
    return boost + log(large_gamma(stream, first + 1, first + THI_DRAW, shape < 1 ? shape + 1 : shape));
}

double thi_draw_gamma_one(thi_stream stream, uint64_t first, double shape)
{
    return shape < 1 ? exp(thi_draw_log_gamma(stream, first, shape))
                     : large_gamma(stream, first + 1, first + THI_DRAW, shape);
}

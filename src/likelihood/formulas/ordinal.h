/* Ordered classes (likelihood/ordinal.c): sigma, cut1, gap2, gap3, ..., so that there are as many values as classes. */
#ifndef THI_FORMULAS_ORDINAL_H
#define THI_FORMULAS_ORDINAL_H

#include "likelihood/formulas/values.h"
#include "likelihood/special.h"

enum { THI_ORDINAL_SIGMA, THI_ORDINAL_CUT };

/* Cut k, 0 <= k <= classes: minus and plus infinity at the ends. */
THI_POINTWISE double thi_ordinal_cut(thi_values phi, int k)
{
    if (k < 1 || k >= phi.count) {
        return k < 1 ? -INFINITY : INFINITY;
    }
    double at = phi.value[THI_ORDINAL_CUT];
    for (int j = 2; j <= k; j++) {
        at += phi.value[THI_ORDINAL_CUT + j - 1];
    }
    return at;
}

/* Cut k + 1 from cut k, in turn from k = 0 on. */
THI_POINTWISE double thi_ordinal_next_cut(thi_values phi, int k, double at)
{
    if (k + 1 >= phi.count) {
        return INFINITY;
    }
    return k == 0 ? phi.value[THI_ORDINAL_CUT] : at + phi.value[THI_ORDINAL_CUT + k];
}

THI_POINTWISE double thi_ordinal_log_probability(thi_values phi, int k, double f, double sigma)
{
    return thi_log_phi_between((thi_ordinal_cut(phi, k) - f) / sigma, (thi_ordinal_cut(phi, k + 1) - f) / sigma);
}

/* The limits of a class in units of sigma, and phi/(Phi(high) - Phi(low)) at each; products with infinity are 0. */
typedef struct thi_ordinal_interval {
    double low, high, at_low, at_high;
    double mean; /* of the normal cut off at the limits: at_low - at_high */
} thi_ordinal_interval;

THI_POINTWISE thi_ordinal_interval thi_ordinal_interval_of(thi_values phi, int k, double f)
{
    double sigma = phi.value[THI_ORDINAL_SIGMA];
    thi_ordinal_interval c;
    c.low = (thi_ordinal_cut(phi, k) - f) / sigma;
    c.high = (thi_ordinal_cut(phi, k + 1) - f) / sigma;
    thi_phi_between(c.low, c.high, &c.at_low, &c.at_high);
    c.mean = c.at_low - c.at_high;
    return c;
}

/* low phi(low)/... - high phi(high)/...: the second moment of the cut-off normal, less 1. */
THI_POINTWISE double thi_ordinal_spread(thi_values phi, int k, const thi_ordinal_interval *c)
{
    return (k > 0 ? c->low * c->at_low : 0) - (k < phi.count - 1 ? c->high * c->at_high : 0);
}

THI_POINTWISE void thi_ordinal_derivatives(thi_values phi, double y, double f, double *d)
{
    if (!thi_is_class(phi.count, y)) {
        return;
    }
    int k = (int)y;
    double sigma = phi.value[THI_ORDINAL_SIGMA];
    thi_ordinal_interval c = thi_ordinal_interval_of(phi, k, f);
    d[0] = c.mean / sigma;
    if (k == 0) {
        d[1] = -c.at_high * thi_mills_excess(c.high);
    } else if (k == phi.count - 1) {
        d[1] = -c.at_low * thi_mills_excess(-c.low);
    } else {
        d[1] = thi_ordinal_spread(phi, k, &c) - c.mean * c.mean;
    }
    d[1] /= sigma * sigma;
}

/* gap j moves cuts j, j + 1, ...: both limits of the classes from j on, the upper one of class j - 1. */
THI_POINTWISE void thi_ordinal_phi(thi_values phi, double y, double f, double *dphi)
{
    if (!thi_is_class(phi.count, y)) {
        return;
    }
    int k = (int)y;
    double sigma = phi.value[THI_ORDINAL_SIGMA];
    thi_ordinal_interval c = thi_ordinal_interval_of(phi, k, f);
    dphi[THI_ORDINAL_SIGMA] = thi_ordinal_spread(phi, k, &c);
    dphi[THI_ORDINAL_CUT] = -c.mean / sigma;
    for (int j = 2; j <= k + 1 && j < phi.count; j++) {
        dphi[THI_ORDINAL_CUT + j - 1] = phi.value[THI_ORDINAL_CUT + j - 1] * (j <= k ? -c.mean : c.at_high) / sigma;
    }
}

/* sigma: the noise of the ordinal, or with the uncertainty of f in it. */
THI_POINTWISE double thi_ordinal_density(thi_values phi, double sigma, double y, double f)
{
    return thi_is_class(phi.count, y) ? thi_ordinal_log_probability(phi, (int)y, f, sigma) : -INFINITY;
}

#endif

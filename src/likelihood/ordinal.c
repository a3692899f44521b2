/*
 * Ordered classes (Chu and Ghahramani 2005): class k when f + sigma e, e ~ N(0, 1), falls between cut k and cut k + 1
 * (cuts are counted from 1; below the first is class 0). The parameters are sigma, cut1, and the positive gaps gap2,
 * gap3, ... from each cut to the next, so that learning keeps the order. Scaling f, sigma and the cuts together changes
 * nothing: sigma is fixed unless it is asked for. Under f ~ N(mu, v) a class has the same probability as given f = mu
 * with sigma^2 + v for sigma^2, so predictions are exact. O(classes) a row.
 */
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/rows.h"
#include "likelihood/special.h"

enum { SIGMA, CUT };

/* Cut k, 0 <= k <= classes: minus and plus infinity at the ends. */
static double cut(const thiele_likelihood *lik, int k)
{
    if (k < 1 || k >= lik->classes) {
        return k < 1 ? -INFINITY : INFINITY;
    }
    double at = lik->value[CUT];
    for (int j = 2; j <= k; j++) {
        at += lik->value[CUT + j - 1];
    }
    return at;
}

/* Cut k + 1 from cut k, in turn from k = 0 on. */
static double next_cut(const thiele_likelihood *lik, int k, double at)
{
    if (k + 1 >= lik->classes) {
        return INFINITY;
    }
    return k == 0 ? lik->value[CUT] : at + lik->value[CUT + k];
}

static double log_probability(const thiele_likelihood *lik, int k, double f, double sigma)
{
    return thi_log_phi_between((cut(lik, k) - f) / sigma, (cut(lik, k + 1) - f) / sigma);
}

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sigma = lik->value[SIGMA];
        out[i] = isnan(y[i]) ? 0 : thi_is_class(lik, y[i]) ? log_probability(lik, (int)y[i], f[i], sigma) : -INFINITY;
    }
}

/* The limits of a class in units of sigma, and phi/(Phi(high) - Phi(low)) at each; products with infinity are 0. */
typedef struct interval {
    double low, high, at_low, at_high;
    double mean; /* of the normal cut off at the limits: at_low - at_high */
} interval;

static interval interval_of(const thiele_likelihood *lik, int k, double f)
{
    double sigma = lik->value[SIGMA];
    interval c = {.low = (cut(lik, k) - f) / sigma, .high = (cut(lik, k + 1) - f) / sigma};
    thi_phi_between(c.low, c.high, &c.at_low, &c.at_high);
    c.mean = c.at_low - c.at_high;
    return c;
}

/* low phi(low)/... - high phi(high)/...: the second moment of the cut-off normal, less 1. */
static double spread(const thiele_likelihood *lik, int k, const interval *c)
{
    return (k > 0 ? c->low * c->at_low : 0) - (k < lik->classes - 1 ? c->high * c->at_high : 0);
}

static void derivatives_row(const thiele_likelihood *lik, double y, double f, double *d)
{
    if (!thi_is_class(lik, y)) {
        return;
    }
    int k = (int)y;
    double sigma = lik->value[SIGMA];
    interval c = interval_of(lik, k, f);
    d[0] = c.mean / sigma;
    if (k == 0) {
        d[1] = -c.at_high * thi_mills_excess(c.high);
    } else if (k == lik->classes - 1) {
        d[1] = -c.at_low * thi_mills_excess(-c.low);
    } else {
        d[1] = spread(lik, k, &c) - c.mean * c.mean;
    }
    d[1] /= sigma * sigma;
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, derivatives_row);
}

/* gap j moves cuts j, j + 1, ...: both limits of the classes from j on, the upper one of class j - 1. */
static void phi_row(const thiele_likelihood *lik, double y, double f, double *dphi)
{
    if (!thi_is_class(lik, y)) {
        return;
    }
    int k = (int)y;
    double sigma = lik->value[SIGMA];
    interval c = interval_of(lik, k, f);
    dphi[SIGMA] = spread(lik, k, &c);
    dphi[CUT] = -c.mean / sigma;
    for (int j = 2; j <= k + 1 && j < lik->classes; j++) {
        dphi[CUT + j - 1] = lik->value[CUT + j - 1] * (j <= k ? -c.mean : c.at_high) / sigma;
    }
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, phi_row);
}

static int bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    int count = 0;
    if (!thi_is_class(lik, y[0])) {
        return 0;
    }
    for (int k = (int)y[0]; k <= (int)y[0] + 1; k++) {
        if (k > 0 && k < lik->classes) {
            bend[count++] = (thi_bend){cut(lik, k), lik->value[SIGMA]};
        }
    }
    return count;
}

static void moments(const thiele_likelihood *lik, double f, double sigma, double *mean, double *variance)
{
    double sum = 0, square = 0, low = -INFINITY, high = 0;
    for (int k = 0; k < lik->classes - 1; k++) {
        high = next_cut(lik, k, high);
        sum += thi_normal_cdf((f - high) / sigma);
    }
    for (int k = 0; k < lik->classes; k++, low = high) {
        high = next_cut(lik, k, low);
        square += (k - sum) * (k - sum) * exp(thi_log_phi_between((low - f) / sigma, (high - f) / sigma));
    }
    *mean = sum;
    *variance = square;
}

static void conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        moments(lik, f[i], lik->value[SIGMA], &mean[i], &variance[i]);
    }
}

static void predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                       double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        moments(lik, mu[i], hypot(lik->value[SIGMA], sqrt(v[i])), &mean[i], &variance[i]);
    }
}

static void log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                           double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sigma = hypot(lik->value[SIGMA], sqrt(v[i]));
        out[i] = isnan(y[i]) ? 0 : thi_is_class(lik, y[i]) ? log_probability(lik, (int)y[i], mu[i], sigma) : -INFINITY;
    }
}

static double cdf(const thiele_likelihood *lik, double y, const double *f)
{
    int k = (int)fmin(fmax(floor(y), -1), lik->classes);
    return thi_normal_cdf((cut(lik, k + 1) - f[0]) / lik->value[SIGMA]);
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double at = f[0] + lik->value[SIGMA] * thi_random_normal(stream, draw);
    double high = next_cut(lik, 0, 0);
    int k = 0;
    while (k < lik->classes - 1 && at > high) {
        k++;
        high = next_cut(lik, k, high);
    }
    y[0] = k;
}

/* The middle of the class, or one sigma beyond the last cut. */
static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    f[0] = 0;
    if (thi_is_class(lik, y[0])) {
        int k = (int)y[0];
        double sigma = lik->value[SIGMA], low = cut(lik, k), high = cut(lik, k + 1);
        f[0] = k == 0 ? high - sigma : k == lik->classes - 1 ? low + sigma : 0.5 * (low + high);
    }
}

static void probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    for (int64_t i = 0; i < n; i++) {
        double low = -INFINITY, high = 0, sigma = lik->value[SIGMA];
        for (int k = 0; k < lik->classes; k++, low = high) {
            high = next_cut(lik, k, low);
            prob[i * lik->classes + k] = exp(thi_log_phi_between((low - f[i]) / sigma, (high - f[i]) / sigma));
        }
    }
}

const thi_likelihood_ops thi_lik_ordinal = {
    .name = "ordinal",
    .support = THI_SUPPORT_CLASS,
    .ordered = true,
    .log_density = log_density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .bends = bends,
    .conditional = conditional,
    .predictive = predictive,
    .log_predictive = log_predictive,
    .cdf = cdf,
    .sample = sample,
    .guess = guess,
    .probabilities = probabilities,
};

thiele_status thi_make_ordinal(thiele_likelihood *lik, thiele_context *ctx)
{
    if (lik->classes < 2) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood 'ordinal' needs a target with at least two classes; this one has %d", lik->classes);
    }
    lik->outputs = lik->latents = 1;
    thiele_status status;
    THI_TRY(thi_likelihood_add_phi(lik, ctx, "sigma", 1, true));
    lik->phi[SIGMA].fixed = true;
    THI_TRY(thi_likelihood_add_phi(lik, ctx, "cut1", 1 - 0.5 * lik->classes, false));
    for (int k = 2; k < lik->classes; k++) {
        char name[32];
        snprintf(name, sizeof name, "gap%d", k);
        THI_TRY(thi_likelihood_add_phi(lik, ctx, name, 1, true));
    }
out:
    return status;
}

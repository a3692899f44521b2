/*
 * The sum of a user's density over all y, at one f: over the values of a discrete y, else by the trapezoidal rule in t,
 * which for y = a + e^t and the like is as good as the density is smooth, and sees widths from 1e-9 to 1e9.
 */
#include <math.h>

#include "likelihood/custom.h"

static double density(const thiele_likelihood *lik, double y, const double *f)
{
    double value = exp(thi_custom_density(lik, &y, f));
    return isfinite(value) ? value : 0.0;
}

/* Between these t, in such steps. */
static const double FAR = 20.7, STEP = 0.03;

/* Both sides of a value near which the density is not zero. */
static double sum_over_reals(const thiele_likelihood *lik, double y, const double *f)
{
    double sum = 0.0;
    for (double t = -FAR; t <= FAR; t += STEP) {
        sum += STEP * exp(t) * (density(lik, y + exp(t), f) + density(lik, y - exp(t), f));
    }
    return sum;
}

/* y = e^t and y = 1/(1 + e^-t): both sides of log y, or of its log odds, as above. */
static double sum_over_positive(const thiele_likelihood *lik, double y, const double *f)
{
    double sum = 0.0, at = log(y);
    for (double t = -FAR; t <= log(FAR); t += STEP) {
        double up = exp(at + exp(t)), down = exp(at - exp(t));
        sum += STEP * exp(t) * (density(lik, up, f) * up + density(lik, down, f) * down);
    }
    return sum;
}

static double sum_over_unit(const thiele_likelihood *lik, double y, const double *f)
{
    double sum = 0.0, at = log(y / (1.0 - y));
    for (double t = -FAR; t <= log(FAR); t += STEP) {
        for (int side = -1; side <= 1; side += 2) {
            double u = 1.0 / (1.0 + exp(-at - side * exp(t)));
            sum += STEP * exp(t) * (u > 0.0 && u < 1.0 ? density(lik, u, f) * u * (1.0 - u) : 0.0);
        }
    }
    return sum;
}

/* Up to where it no longer grows. */
static double sum_over_counts(const thiele_likelihood *lik, double y, const double *f)
{
    enum { MOST = 100000 };
    double sum = 0.0;
    for (int k = 0; k < MOST; k++) {
        double one = density(lik, k, f);
        sum += one;
        if (k > y && one < 1e-9 * sum) {
            break;
        }
    }
    return sum;
}

static double sum_over_signs(const thiele_likelihood *lik, double y, const double *f)
{
    (void)y;
    return density(lik, -1.0, f) + density(lik, 1.0, f);
}

static double sum_over_classes(const thiele_likelihood *lik, double y, const double *f)
{
    (void)y;
    double sum = 0.0;
    for (int c = 0; c < lik->classes; c++) {
        sum += density(lik, c, f);
    }
    return sum;
}

double thi_custom_total(const thiele_likelihood *lik, double y, const double *f)
{
    static double (*const sums[])(const thiele_likelihood *lik, double y, const double *f) = {
        [THIELE_SUPPORT_REAL] = sum_over_reals,   [THIELE_SUPPORT_POSITIVE] = sum_over_positive,
        [THIELE_SUPPORT_UNIT] = sum_over_unit,    [THIELE_SUPPORT_COUNT] = sum_over_counts,
        [THIELE_SUPPORT_BINARY] = sum_over_signs, [THIELE_SUPPORT_CLASS] = sum_over_classes,
    };
    return sums[lik->spec->support](lik, y, f);
}

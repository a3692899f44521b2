/*
 * Incomplete gamma and beta functions by their power series and continued fractions (Abramowitz and Stegun 6.5.29,
 * 6.5.31; Didonato and Morris 1992, equation 9, both fractions by the modified Lentz method), which take O(sqrt(a))
 * terms at worst, and beyond parameters of 1e5 by Temme's uniform expansions (DLMF 8.12.8 and 8.18.9), two terms and
 * one.
 */
#include "likelihood/incomplete.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "likelihood/stirling.h"

enum { MOST_TERMS = 20000 };
static const double LARGE = 1e5;
static const double TINY = 1e-300;

/* x^a e^-x / Gamma(a) */
static double gamma_weight(double a, double x)
{
    return exp(thi_lgamma_gap(a) - a * thi_log_excess((x - a) / a, x / a));
}

static double gamma_series(double a, double x)
{
    double term = 1 / a, sum = term;
    for (int k = 1; k < MOST_TERMS && term > DBL_EPSILON * sum; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return gamma_weight(a, x) * sum;
}

/* Q by the fraction 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))). */
static double gamma_fraction(double a, double x)
{
    double b = x + 1 - a, c = 1 / TINY, d = 1 / b, value = d;
    for (int k = 1; k < MOST_TERMS; k++) {
        double top = -k * (k - a);
        b += 2;
        d = top * d + b;
        c = b + top / c;
        d = 1 / (fabs(d) < TINY ? TINY : d);
        c = fabs(c) < TINY ? TINY : c;
        value *= d * c;
        if (fabs(d * c - 1) < 2 * DBL_EPSILON) {
            break;
        }
    }
    return gamma_weight(a, x) * value;
}

/* Q(a, x) = erfc(eta sqrt(a/2))/2 + exp(-a eta^2/2)/sqrt(2 pi a) (c_0 + c_1/a), eta^2/2 = d - log(1 + d) */
static double gamma_uniform(double a, double x)
{
    double d = (x - a) / a;
    double eta = copysign(sqrt(2 * thi_log_excess(d, x / a)), d);
    double c0 = fabs(d) > 1e-4 ? 1 / d - 1 / eta : -1.0 / 3 + eta / 12;
    double c1 = -1.0 / 540 - eta / 288;
    return 0.5 * erfc(eta * sqrt(0.5 * a)) + exp(-0.5 * a * eta * eta) / sqrt(2 * M_PI * a) * (c0 + c1 / a);
}

/* P when `lower`, else Q: the smaller of the two is computed, the other is one minus it. */
static double gamma_part(double a, double x, bool lower)
{
    if (!(x > 0)) {
        return lower ? 0 : 1;
    }
    if (isinf(x)) {
        return lower ? 1 : 0;
    }
    if (a > LARGE && fabs(x - a) < 0.3 * a) {
        double upper = gamma_uniform(a, x);
        return lower ? 1 - upper : upper;
    }
    bool below = x < a + 1;
    double part = fmin(1, below ? gamma_series(a, x) : gamma_fraction(a, x));
    return below == lower ? part : 1 - part;
}

double thi_gamma_lower(double a, double x)
{
    return gamma_part(a, x, true);
}

double thi_gamma_upper(double a, double x)
{
    return gamma_part(a, x, false);
}

/*
 * x^a y^b / B(a, b) / (beta_0 + alpha_1/(beta_1 + alpha_2/(beta_2 + ...))), for x below (a + 1)/(a + b + 2). Didonato
 * and Morris write the fraction in lambda = a y - b x, which is where the plain one cancels for large a.
 */
static double beta_fraction(double a, double b, double x, double y)
{
    double lambda = y * a - x * b;
    double far = a * thi_log_excess(-lambda / a, x * (a + b) / a) + b * thi_log_excess(lambda / b, y * (a + b) / b);
    double weight = exp(thi_lgamma_gap(a) + thi_lgamma_gap(b) - thi_lgamma_gap(a + b) - far);
    double value = a * (lambda + 1) / (a + 1), c = value, d = 0;
    for (int k = 1; k < MOST_TERMS; k++) {
        double odd = a + 2 * k - 1;
        double alpha = (a + k - 1) / odd * ((a + b + k - 1) / odd) * k * (b - k) * x * x;
        double beta = k + k * (b - k) * x / odd + (a + k) / (odd + 2) * (lambda + 1 + k * (1 + y));
        d = beta + alpha * d;
        c = beta + alpha / c;
        d = 1 / (fabs(d) < TINY ? TINY : d);
        c = fabs(c) < TINY ? TINY : c;
        value *= c * d;
        if (!(fabs(c * d - 1) >= 2 * DBL_EPSILON)) {
            break; /* or no number any more */
        }
    }
    return weight / value;
}

/*
 * I_x = erfc(-eta sqrt(r/2))/2 + exp(-r eta^2/2)/sqrt(2 pi r) c_0, r = a + b, with u the distance of x from the mean
 * x0 over sqrt(x0 y0), eta^2 = u^2 - 2/3 A u^3 + ..., and c_0 = 1/eta - 1/u = A/3 + (A^2/6 - B/4) u + ...
 */
static double beta_uniform(double a, double b, double x, double y)
{
    double r = a + b, s = x * b - y * a, x0 = a / r, y0 = b / r;
    double u = s / r / sqrt(x0 * y0);
    double half = x0 * thi_log_excess(s / a, x / x0) + y0 * thi_log_excess(-s / b, y / y0);
    double eta = copysign(sqrt(2 * half), s);
    double A = (y0 - x0) / sqrt(x0 * y0), B = (x0 * x0 * x0 + y0 * y0 * y0) / (x0 * y0);
    double c0 = fabs(u) > 1e-5 ? 1 / eta - 1 / u : A / 3 + (A * A / 6 - B / 4) * u;
    return 0.5 * erfc(-eta * sqrt(0.5 * r)) + exp(-r * half) / sqrt(2 * M_PI * r) * c0;
}

double thi_beta_lower(double a, double b, double x, double y)
{
    if (!(x > 0)) {
        return 0;
    }
    if (!(y > 0)) {
        return 1;
    }
    if (fmin(a, b) > LARGE) {
        return beta_uniform(a, b, x, y);
    }
    if (x * (a + b + 2) < a + 1) {
        return fmin(1, beta_fraction(a, b, x, y));
    }
    return 1 - fmin(1, beta_fraction(b, a, y, x));
}

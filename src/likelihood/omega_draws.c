/*
 * Polya-Gamma by the alternating series of Devroye as in Polson, Scott and Windle (2013), "Bayesian inference for
 * logistic models using Polya-Gamma latent variables"; inverse Gaussian by Michael, Schucany and Haas (1976), with
 * the roots written so that an infinite mean is fine; generalised inverse Gaussian by Devroye (2014), "Random variate
 * generation for the generalized inverse Gaussian distribution": uniformly fast, the log of the variable having a
 * log-concave density.
 */
#include "likelihood/omega_draws.h"

#include <math.h>

#include "likelihood/draws.h"
#include "likelihood/inversion.h"
#include "likelihood/plane.h"
#include "likelihood/special.h"

/* Sums of draws up to this many, which costs half of one inversion (bench-omega); some seven indices each. */
enum { MOST_SUMMED = 200 };

/* The indices of one draw, taken one after the other. */
typedef struct dice {
    thi_stream stream;
    uint64_t next, end;
} dice;

static inline double uniform(dice *d)
{
    return thi_random_uniform(d->stream, d->next++);
}

static inline double exponential(dice *d)
{
    return -log(uniform(d));
}

/* Whether a round that takes at most eight is still possible. */
static inline bool any_left(const dice *d)
{
    return d->next + 8 <= d->end;
}

double thi_draw_gamma(thi_stream stream, uint64_t first, double shape, double rate)
{
    return exp(thi_draw_log_gamma(stream, first, shape)) / rate;
}

/* The smaller root is x; the other, 1/(over^2 x), is taken with probability over x/(1 + over x). */
static double inverse_gaussian(dice *d, double over, double shape)
{
    double z = thi_random_normal(d->stream, d->next++), half = 0.5 * z * z / shape;
    double x = 1.0 / (over + half + sqrt(half * (2.0 * over + half)));
    return uniform(d) * (1.0 + over * x) <= 1.0 ? x : 1.0 / (over * over * x);
}

double thi_draw_inverse_gaussian(thi_stream stream, uint64_t first, double over, double shape)
{
    dice d = {stream, first, first + THI_OMEGA};
    return inverse_gaussian(&d, over, shape);
}

/* --- Polya-Gamma: four times it is J*(1, z), z = c/2, with the density cosh(z) exp(-z^2 x/2) sum_n (-1)^n a_n(x) ---
 */

/* Where the two series for a_n take turns, and the hat changes from inverse Gaussian to exponential. */
static const double CUT = 0.64;

/* The share of the hat that lies right of CUT. */
static double right_share(double z)
{
    double rate = 0.125 * M_PI * M_PI + 0.5 * z * z, root = 1.0 / sqrt(CUT), top = log(rate) + rate * CUT;
    double near = top - z + thi_log_phi(root * (CUT * z - 1.0)), far = top + z + thi_log_phi(-root * (CUT * z + 1.0));
    return 1.0 / (1.0 + 4.0 / M_PI * (exp(near) + exp(far)));
}

/* Inverse Gaussian of mean 1/z and shape 1, below CUT. */
static double truncated_inverse_gaussian(dice *d, double z)
{
    while (any_left(d)) {
        if (z * CUT > 1.0) {
            double x = inverse_gaussian(d, z, 1.0);
            if (x < CUT) {
                return x;
            }
            continue;
        }
        double e = exponential(d), other = exponential(d);
        if (e * e > 2.0 * other / CUT) {
            continue;
        }
        double x = CUT / ((1.0 + CUT * e) * (1.0 + CUT * e));
        if (uniform(d) <= exp(-0.5 * z * z * x)) {
            return x;
        }
    }
    return fmin(0.5 * CUT, 1.0 / fmax(z, 1.0));
}

/* Whether u < sum_n (-1)^n a_n(x)/a_0(x), whose partial sums lie on alternating sides of it. */
static bool series_accepts(double u, double x)
{
    double rate = x > CUT ? 0.5 * M_PI * M_PI * x : 2.0 / x, sum = 1.0;
    for (int n = 1; n < 100; n++) {
        double term = (2 * n + 1) * exp(-rate * n * (n + 1));
        sum += n % 2 ? -term : term;
        if (n % 2 && u <= sum) {
            return true;
        }
        if (n % 2 == 0 && u > sum) {
            return false;
        }
    }
    return true;
}

static double polya_gamma_one(dice *d, double z, double share)
{
    double rate = 0.125 * M_PI * M_PI + 0.5 * z * z, x = CUT;
    while (any_left(d)) {
        x = uniform(d) < share ? CUT + exponential(d) / rate : truncated_inverse_gaussian(d, z);
        if (series_accepts(uniform(d), x)) {
            break;
        }
    }
    return 0.25 * x;
}

static double complex log_phi_polya_gamma(const void *b, double complex r)
{
    return -*(const double *)b * thi_plane_log_cosh(csqrt(0.5 * r));
}

double thi_draw_polya_gamma(thi_stream stream, uint64_t first, double b, double c)
{
    dice d = {stream, first, first + THI_OMEGA};
    double z = 0.5 * fabs(c);
    if (b <= MOST_SUMMED && b == floor(b)) {
        double share = right_share(z), sum = 0.0;
        for (int i = 0; i < (int)b; i++) {
            sum += polya_gamma_one(&d, z, share);
        }
        return sum;
    }
    thi_omega_law law;
    thi_omega_law_open(&law, log_phi_polya_gamma, &b, 0.5 * c * c);
    return thi_omega_law_at(&law, thi_random_normal(stream, first));
}

/* --- generalised inverse Gaussian ------------------------------------------------------------------------------------
 */

/* With x = mode-like scale times e^t: the log density of t, zero with slope zero at t = 0. */
typedef struct log_law {
    double alpha, p;
} log_law;

static double log_density(const log_law *law, double t)
{
    double half = sinh(0.5 * t);
    return -2.0 * law->alpha * half * half - law->p * (expm1(t) - t);
}

static double log_slope(const log_law *law, double t)
{
    return -law->alpha * sinh(t) - law->p * expm1(t);
}

/* A hat: flat on [-left, right], exponential on either side, tangent to the log density at -s and t. */
typedef struct hat {
    double left, right, left_rate, right_rate;
} hat;

static hat make_hat(const log_law *law)
{
    double alpha = law->alpha, p = law->p;
    double fall = -log_density(law, 1.0), t = 1.0, s = 1.0;
    if (fall > 2.0) {
        t = sqrt(2.0 / (alpha + p));
    } else if (fall < 0.5) {
        t = log(4.0 / (alpha + 2.0 * p));
    }
    fall = -log_density(law, -1.0);
    if (fall > 2.0) {
        s = sqrt(4.0 / (alpha * cosh(1.0) + p));
    } else if (fall < 0.5) {
        s = fmin(1.0 / p, alpha > 0.0 ? log1p(1.0 / alpha + sqrt((1.0 / alpha + 2.0) / alpha)) : INFINITY);
    }
    double right_rate = -log_slope(law, t), left_rate = log_slope(law, -s);
    return (hat){s + log_density(law, -s) / left_rate, t + log_density(law, t) / right_rate, left_rate, right_rate};
}

/* A draw below the hat, and the log of the hat there. */
static double draw_hat(dice *d, const hat *h, double *level)
{
    double flat = h->left + h->right, left = 1.0 / h->left_rate, right = 1.0 / h->right_rate;
    double u = uniform(d) * (flat + left + right), e;
    *level = 0.0;
    if (u < flat) {
        return -h->left + flat * uniform(d);
    }
    e = exponential(d);
    *level = -e;
    return u < flat + right ? h->right + right * e : -h->left - left * e;
}

double thi_draw_inverse_gaussian_general(thi_stream stream, uint64_t first, double p, double a, double b)
{
    dice d = {stream, first, first + THI_OMEGA};
    double omega = 2.0 * sqrt(a) * sqrt(b), root = hypot(omega, p), x = 0.0;
    log_law law = {omega * (omega / (root + p)), p};
    hat h = make_hat(&law);
    while (any_left(&d)) {
        double level;
        x = draw_hat(&d, &h, &level);
        if (log(uniform(&d)) + level <= log_density(&law, x)) {
            break;
        }
    }
    return (p + root) / (2.0 * a) * exp(x);
}

/*
 * Euler summation (Abate and Whitt 1995, "Numerical inversion of Laplace transforms of probability distributions") of
 * F^(s) = phi(s + r)/(s phi(r)):
 *   F(x) = e^{at}/t (F^(a)/2 + sum_k (-1)^k Re F^(a + i k pi/t)),  t = x - start,
 * the alternating tail averaged binomially. What the sum adds by mistake is at most e^{-2at}, what rounding does
 * eps phi(a + r)/phi(r) e^{at}; a makes both the same, which keeps F's relative error small in the left tail too. A law
 * that is narrow beside its mean is moved to start near 0, so that the number of terms does not grow with mean/sd.
 * Draws: Newton's steps in log omega within a bracket (augmented-aaci, algorithm 2), two to four evaluations of F.
 */
#include "likelihood/inversion.h"
#include "likelihood/plane.h"

#include <math.h>

#include "likelihood/special.h"

/* -log of the double's eps; the mass that is cut off is below e^-CUT. */
static const double DIGITS = 36.0, CUT = 80.0;
static const double LEAST_R = 1e-20;
/* With sd below this share of the mean the law is moved. */
static const double NARROW = 0.1;
/* A law as narrow as this beside its mean is normal but for its skewness, some 1e-3, to 1e-7; and beside its log
 * phi(r), some 1e7, the rounding of F begins to show. */
static const double POINT = 3e-4;
/* The longest step in log omega. */
static const double FAR = 3.0;

enum { AVERAGED = 14, MOST_STEPS = 100 };

/* --- moments ---------------------------------------------------------------------------------------------------------
 */

/* The step is so small that its error is below any rounding, and takes part in no difference. Any branch of the log
 * will do. */
static double step_into_plane(thi_log_phi_fn log_phi, const void *arg, double r, double *value)
{
    double step = 1e-40 * r;
    double complex at = log_phi(arg, thi_plane_at(r, step));
    *value = creal(at);
    return -remainder(cimag(at), 2.0 * M_PI) / step;
}

double thi_omega_slope(thi_log_phi_fn log_phi, const void *arg, double r, double *value)
{
    return step_into_plane(log_phi, arg, fmax(r, LEAST_R), value);
}

double thi_omega_mean(thi_log_phi_fn log_phi, const void *arg, double r)
{
    double value;
    return thi_omega_slope(log_phi, arg, r, &value);
}

/* Forward differences over the scale 1e-3 mean/variance on which the mean changes, found in a few rounds. */
static double variance_near_zero(thi_log_phi_fn log_phi, const void *arg, double r, double mean)
{
    double step = 1e-3 / mean, variance = 0.0;
    for (int i = 0; i < 3 && step < INFINITY; i++) {
        double one = thi_omega_mean(log_phi, arg, r + step), two = thi_omega_mean(log_phi, arg, r + 2.0 * step);
        variance = fmax(0.0, (3.0 * mean - 4.0 * one + two) / (2.0 * step));
        step = 1e-3 * mean / variance;
    }
    return variance;
}

double thi_omega_variance(thi_log_phi_fn log_phi, const void *arg, double r)
{
    static const double place[4] = {-2, -1, 1, 2};
    double at = fmax(r, LEAST_R), step = 1e-3 * at, mean[4], value;
    for (int i = 0; i < 4; i++) {
        mean[i] = step_into_plane(log_phi, arg, at + place[i] * step, &value);
    }
    if (mean[0] - mean[3] < 1e-5 * mean[0]) {
        return variance_near_zero(log_phi, arg, at, 0.5 * (mean[0] + mean[3]));
    }
    return fmax(0.0, (mean[0] - 8.0 * mean[1] + 8.0 * mean[2] - mean[3]) / (-12.0 * step));
}

/* --- the law ---------------------------------------------------------------------------------------------------------
 */

/* log E[exp(-s omega)] for real s >= 0. */
static double log_transform(const thi_omega_law *law, double s)
{
    return creal(law->log_phi(law->arg, thi_plane_at(law->r + s, 0.0))) - law->at_r;
}

/* P(omega < x) <= exp(log_transform(s) + s x), best where the mean at tilt r + s is x: s is raised until it is e^-CUT.
 */
static double find_start(const thi_omega_law *law)
{
    double s = 8.0 / law->sd, x = 0.0;
    for (int i = 0; i < 60; i++) {
        x = thi_omega_mean(law->log_phi, law->arg, law->r + s);
        if (!(log_transform(law, s) + s * x > -CUT)) {
            break;
        }
        s *= 1.3;
    }
    return isfinite(x) && x > 0.0 && x < law->mean ? x : 0.0;
}

void thi_omega_law_open(thi_omega_law *law, thi_log_phi_fn log_phi, const void *arg, double r)
{
    double at = fmax(r, LEAST_R);
    *law = (thi_omega_law){.log_phi = log_phi, .arg = arg, .r = at};
    law->mean = thi_omega_slope(log_phi, arg, at, &law->at_r);
    law->sd = sqrt(thi_omega_variance(log_phi, arg, at));
    if (law->sd < NARROW * law->mean && law->sd > 1e-6 * law->mean) {
        law->start = find_start(law);
    }
}

/* The a with 3 a t + log_transform(a) + a start = DIGITS: its other terms grow more slowly, so plain iteration rises to
 * the answer. */
static double damping(const thi_omega_law *law, double t)
{
    double a = DIGITS / (3.0 * t);
    for (int i = 0; i < 8; i++) {
        double next = (DIGITS - fmin(0.0, log_transform(law, a) + a * law->start)) / (3.0 * t);
        if (!(next > a * 1.05)) {
            return fmax(a, next);
        }
        a = next;
    }
    return a;
}

/* Binomial averages of the last AVERAGED + 1 partial sums, in place. */
static double average(double *partial)
{
    for (int left = AVERAGED; left > 0; left--) {
        for (int i = 0; i < left; i++) {
            partial[i] = 0.5 * (partial[i] + partial[i + 1]);
        }
    }
    return partial[0];
}

/* Term k of the sum for the density, on the law moved by start; over s it is that for F. */
static double complex term_at(const thi_omega_law *law, double complex s, double t, int k)
{
    double complex exponent = law->log_phi(law->arg, law->r + s) - law->at_r;
    exponent += thi_plane_at(creal(s) * (law->start + t), cimag(s) * law->start);
    return cexp(exponent) * (k == 0 ? 0.5 : k % 2 ? -1.0 : 1.0);
}

double thi_omega_law_cdf(const thi_omega_law *law, double x, double *density, bool *settled)
{
    double t = x - law->start, a = t > 0.0 ? damping(law, t) : 0.0, sum = 0.0, slope = 0.0;
    double sums[AVERAGED + 1] = {0.0}, slopes[AVERAGED + 1] = {0.0};
    /* Enough for the damping, and for the width of a transform that falls like a normal law's. */
    int plain = 16 + (int)(fmin(1e4, 1.2 * a * t) + fmax(0.0, fmin(40.0, 2.0 * t / law->sd)));
    for (int k = 0; k <= plain + AVERAGED && t > 0.0; k++) {
        double complex s = thi_plane_at(a, k * M_PI / t), term = term_at(law, s, t, k);
        sum += creal(term / s);
        slope += creal(term);
        if (k >= plain) {
            sums[k - plain] = sum / t;
            slopes[k - plain] = slope / t;
        }
    }
    double F = average(sums), p = average(slopes);
    if (density != NULL) {
        *density = p;
    }
    if (settled != NULL) {
        *settled = fabs(F - sums[1]) < 1e-7 && fabs(p - slopes[1]) * x < 1e-6;
    }
    return F;
}

/* --- draws -----------------------------------------------------------------------------------------------------------
 */

/* A log-normal law with the same mean and variance: a first guess. */
static double first_guess(const thi_omega_law *law, double z)
{
    double ratio = law->sd / law->mean, width = log1p(fmin(ratio * ratio, 1e4));
    return log(law->mean) - 0.5 * width + sqrt(width) * z;
}

/* Where Newton's step for F(exp(at)) = u leads, taken on the log odds of F, which are near a line in log omega. */
static double newton(const thi_omega_law *law, double at, double u, double *F)
{
    double density, x = exp(at);
    *F = thi_omega_law_cdf(law, x, &density, NULL);
    double rest = 1.0 - *F, odds = *F / u * ((1.0 - u) / rest);
    double miss = *F > 0.0 && rest > 0.0 ? *F * rest * log(odds) : *F - u;
    return density > 0.0 ? at - fmax(-FAR, fmin(FAR, miss / (x * density))) : NAN;
}

/* Cornish and Fisher: z + skewness (z^2 - 1)/6 standard deviations from the mean. */
static double nearly_normal(const thi_omega_law *law, double z)
{
    double variance = law->sd * law->sd, step = 1e-3 * law->mean / variance;
    if (!(law->sd > 1e-12 * law->mean)) {
        return law->mean;
    }
    double third = (variance - thi_omega_variance(law->log_phi, law->arg, law->r + step)) / step;
    return law->mean + law->sd * z + third / variance * (z * z - 1.0) / 6.0;
}

double thi_omega_law_at(const thi_omega_law *law, double z)
{
    if (!(law->sd > POINT * law->mean)) {
        return nearly_normal(law, z);
    }
    /* No further right than F's own error can tell. */
    double noise = fmin(1e-5, fmax(1e-10, 5e-14 * fabs(law->at_r)));
    double u = fmin(fmax(thi_normal_cdf(z), 1e-16), 1.0 - noise);
    double low = -INFINITY, high = INFINITY, at = first_guess(law, z);
    for (int i = 0; i < MOST_STEPS; i++) {
        double F, next = newton(law, at, u, &F);
        if (F < u) {
            low = at;
        } else {
            high = at;
        }
        if (!(next > low && next < high)) {
            next = isinf(low) ? at - FAR : isinf(high) ? at + FAR : 0.5 * (low + high);
        }
        /* The step's own error is of the order of its square. */
        if (fabs(next - at) < 1e-5 * fmin(1.0, law->sd / law->mean) || high - low < 1e-14) {
            return exp(next);
        }
        at = next;
    }
    return exp(at);
}

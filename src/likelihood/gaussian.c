/*
 * Gaussian likelihoods of a real y: one latent with a noise parameter, and two latents where the second is the log of
 * the noise variance (heteroscedastic). All expectations are exact: E[exp(-f_2)] is a lognormal mean.
 */
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/formulas/gaussian.h"
#include "likelihood/special.h"

/* --- gaussian: y = f + e, e ~ N(0, noise) ---------------------------------------------------------------------------
 */

/* log N(y; mean, variance), 0 for a missing y. */
static double log_normal_density(double y, double mean, double variance)
{
    double r = y - mean;
    return isnan(y) ? 0.0 : -0.5 * (THI_LOG_2PI + log(variance) + r * r / variance);
}

static void gaussian_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    double half = 0.5 / lik->value[0], constant = thi_gaussian_constant(lik->value[0]);
    for (int64_t i = 0; i < n; i++) {
        double density = thi_gaussian_density(constant, half, y[i], f[i]);
        out[i] = y[i] == y[i] ? density : 0.0;
    }
}

static void gaussian_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                                 double *d2)
{
    double precision = 1.0 / lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        bool there = y[i] == y[i];
        d1[i] = there ? precision * (y[i] - f[i]) : 0.0;
        d2[i] = there ? -precision : 0.0;
    }
}

static void gaussian_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    double half = 0.5 / lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        double r = y[i] - f[i];
        dphi[i] = y[i] == y[i] ? half * r * r - 0.5 : 0.0;
    }
}

static void gaussian_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                 const double *v, double *E, double *g, double *h, double *dphi)
{
    double half = 0.5 / lik->value[0], constant = thi_gaussian_constant(lik->value[0]);
    for (int64_t i = 0; i < n; i++) {
        bool there = y[i] == y[i];
        thi_row row = thi_gaussian_expectation(constant, half, y[i], mu[i], v[i]);
        if (dphi != NULL) {
            dphi[i] = there ? thi_gaussian_misfit(half, y[i], mu[i], v[i]) - 0.5 : 0.0;
        }
        E[i] = there ? row.E : 0.0;
        g[i] = there ? row.g : 0.0;
        h[i] = there ? row.h : 0.0;
    }
}

static void gaussian_precision(const thiele_likelihood *lik, double *out)
{
    out[0] = 1.0 / lik->value[0];
}

static void gaussian_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean,
                                 double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        mean[i] = f[i];
        variance[i] = lik->value[0];
    }
}

static void gaussian_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v,
                                double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        mean[i] = mu[i];
        variance[i] = v[i] + lik->value[0];
    }
}

static void gaussian_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                    const double *v, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = log_normal_density(y[i], mu[i], v[i] + lik->value[0]);
    }
}

static double gaussian_predictive_cdf(const thiele_likelihood *lik, int output, double y, const double *mu,
                                      const double *v)
{
    (void)output;
    return thi_normal_cdf((y - mu[0]) / sqrt(v[0] + lik->value[0]));
}

static double gaussian_predictive_crps(const thiele_likelihood *lik, int output, double y, const double *mu,
                                       const double *v)
{
    (void)output;
    return thi_normal_crps(y - mu[0], v[0] + lik->value[0]);
}

static void gaussian_quantiles(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, int count,
                               const double *z, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sd = sqrt(v[i] + lik->value[0]);
        for (int j = 0; j < count; j++) {
            out[i * count + j] = mu[i] + z[j] * sd;
        }
    }
}

static double gaussian_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    return thi_normal_cdf((y - f[0]) / sqrt(lik->value[0]));
}

static void gaussian_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    y[0] = f[0] + sqrt(lik->value[0]) * thi_random_normal(stream, draw);
}

static void gaussian_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)lik;
    f[0] = isnan(y[0]) ? 0.0 : y[0];
}

thiele_status thi_make_gaussian(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return thi_likelihood_add_scaled(lik, ctx, "noise", 0.1, true, 2);
}

const thi_likelihood_ops thi_lik_gaussian = {
    .name = "gaussian",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .several = true, /* as gaussians */
    .log_density = gaussian_density,
    .derivatives = gaussian_derivatives,
    .phi_derivatives = gaussian_phi,
    .expectation = gaussian_expectation,
    .precision = gaussian_precision,
    .conditional = gaussian_conditional,
    .predictive = gaussian_predictive,
    .log_predictive = gaussian_log_predictive,
    .predictive_cdf = gaussian_predictive_cdf,
    .predictive_crps = gaussian_predictive_crps,
    .quantiles = gaussian_quantiles,
    .cdf = gaussian_cdf,
    .sample = gaussian_sample,
    .guess = gaussian_guess,
};

/* --- heteroscedastic: y ~ N(f_1, exp(f_2)) ---------------------------------------------------------------------------
 */

/* Beyond e^600 a precision or variance stays where it is: its products with anything else remain finite. */
static double bounded_exp(double x)
{
    return exp(fmin(x, 600.0));
}

static void hetero_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        double r = y[i] - f[2 * i];
        out[i] = isnan(y[i]) ? 0.0 : -0.5 * (THI_LOG_2PI + f[2 * i + 1] + r * r * bounded_exp(-f[2 * i + 1]));
    }
}

static void hetero_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                               double *d2)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        bool there = !isnan(y[i]);
        double r = y[i] - f[2 * i], precision = bounded_exp(-f[2 * i + 1]);
        d1[2 * i] = there ? precision * r : 0.0;
        d2[2 * i] = there ? -precision : 0.0;
        d1[2 * i + 1] = there ? 0.5 * precision * r * r - 0.5 : 0.0;
        d2[2 * i + 1] = there ? -0.5 * precision * r * r : 0.0;
    }
}

static void hetero_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                               const double *v, double *E, double *g, double *h, double *dphi)
{
    (void)lik;
    (void)dphi; /* there are no parameters */
    for (int64_t i = 0; i < n; i++) {
        bool there = !isnan(y[i]);
        double r = y[i] - mu[2 * i], square = r * r + v[2 * i];
        double precision = bounded_exp(0.5 * v[2 * i + 1] - mu[2 * i + 1]);
        E[i] = there ? -0.5 * (THI_LOG_2PI + mu[2 * i + 1] + square * precision) : 0.0;
        g[2 * i] = there ? precision * r : 0.0;
        h[2 * i] = there ? -0.5 * precision : 0.0;
        g[2 * i + 1] = there ? 0.5 * precision * square - 0.5 : 0.0;
        h[2 * i + 1] = there ? -0.25 * precision * square : 0.0;
    }
}

static void hetero_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        mean[i] = f[2 * i];
        variance[i] = exp(f[2 * i + 1]);
    }
}

static void hetero_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                              double *variance)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        mean[i] = mu[2 * i];
        variance[i] = v[2 * i] + exp(mu[2 * i + 1] + 0.5 * v[2 * i + 1]);
    }
}

/*
 * The integrand once f_1 is integrated out, N(y; mu_1, v_1 + e^f_2) N(f_2; mu_2, v_2), in logs, as a function of d =
 * f_2
 * - mu_2 (which keeps its digits when v_2 is tiny).
 */
typedef struct mixture {
    double square, v1, mu2, v2; /* square: (y - mu_1)^2 */
} mixture;

static double log_integrand(const mixture *m, double d)
{
    double variance = fmax(m->v1 + bounded_exp(m->mu2 + d), 1e-300);
    return -0.5 * (2.0 * THI_LOG_2PI + log(m->v2) + log(variance) + m->square / variance + d * d / m->v2);
}

/* A scan, because there can be two maxima, and golden sections in the best cell. */
static double highest_point(const mixture *m, double low, double high)
{
    enum { CELLS = 128, SECTIONS = 80 };
    double step = (high - low) / CELLS, best = low, value = -INFINITY;
    for (int k = 0; k <= CELLS; k++) {
        double here = log_integrand(m, low + k * step);
        best = here > value ? low + k * step : best;
        value = fmax(value, here);
    }
    double a = best - step, b = best + step;
    for (int k = 0; k < SECTIONS; k++) {
        double reach = 0.38196601125010515 * (b - a);
        if (log_integrand(m, a + reach) > log_integrand(m, b - reach)) {
            b -= reach;
        } else {
            a += reach;
        }
    }
    return 0.5 * (a + b);
}

/* Trapezoids away from the top until nothing is left. */
static double sum_from(const mixture *m, double top, double step, double end)
{
    enum { ENOUGH = 1024, MOST = 65536 };
    double sum = 0.0, peak = log_integrand(m, top);
    for (int k = 1; k < MOST && (end - top) / step >= k; k++) {
        double term = exp(log_integrand(m, top + k * step) - peak);
        sum += term;
        if (term < 1e-18 && k > ENOUGH) {
            break;
        }
    }
    return sum;
}

/*
 * The trapezoidal rule converges geometrically on the line for analytic integrands (Trefethen and Weideman 2014). Steps
 * of half the local deviation, at most 1/4 (the integrand is tame for |Im f_2| < pi/2), leave 1e-13 or less. The top
 * lies between -v_2/2, because the likelihood's slope is -1/2 at least, and the likelihood's own maximum below log
 * square. About 400 evaluations a row, more for a large v_2.
 */
static double hetero_row_log_predictive(double y, const double *mu, const double *v)
{
    mixture m = {(y - mu[0]) * (y - mu[0]), v[0], mu[1], fmax(v[1], 1e-24)};
    double deviation = sqrt(m.v2), low = -0.5 * m.v2, high = fmax(0.0, log(fmax(m.square, 1e-300)) - m.mu2);
    double top = highest_point(&m, low, high);
    double step = fmin(0.5 * deviation / sqrt(1.0 + fmax(0.0, top)), 0.25);
    double sum =
        1.0 + sum_from(&m, top, step, high + 9.0 * deviation) + sum_from(&m, top, -step, low - 9.0 * deviation);
    return log_integrand(&m, top) + log(step * sum);
}

static void hetero_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *out)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        out[i] = isnan(y[i]) ? 0.0 : hetero_row_log_predictive(y[i], mu + 2 * i, v + 2 * i);
    }
}

/*
 * The same for a wide f_2, by parts: g(-inf) + int g'(f_2) P(F_2 > f_2) df_2. What remains to be integrated is zero but
 * for some hundred units of f_2, about where e^f_2 passes v_1 and (y - mu_1)^2, however wide f_2 is.
 */
static double hetero_wide_cdf(double away, double v1, double mu2, double deviation)
{
    enum { STEPS = 1024 };
    double square = log(fmax(away * away, 1e-300)), least = log(fmax(v1, 1e-300));
    double first = square - 5.0 > least ? square - 8.0 : least - 40.0;
    double low = fmax(first, mu2 - 9.0 * deviation);
    double high = fmin(fmax(least, square) + 80.0, mu2 + 9.0 * deviation);
    double sum = 0.0, step = (high - low) / STEPS;
    for (int k = 0; k <= STEPS && step > 0.0; k++) {
        double f = low + k * step, noise = bounded_exp(f), x = away / sqrt(v1 + noise);
        double slope = 0.398942280401432677940 * exp(-0.5 * x * x) * -0.5 * x * noise / (v1 + noise);
        sum += slope * thi_normal_cdf((mu2 - f) / deviation);
    }
    /* A window that lies above or below all of f_2 leaves one value. */
    double noise = step > 0.0 ? 0.0 : bounded_exp(mu2);
    double cdf = thi_normal_cdf(away / sqrt(fmax(v1 + noise, 1e-300))) + sum * fmax(step, 0.0);
    return fmin(fmax(cdf, 0.0), 1.0);
}

/*
 * E[Phi((y - mu_1)/sqrt(v_1 + e^f_2))] over f_2, by the same rule: steps of 0.3 in f_2 and 0.6 standard deviations of
 * it leave 1e-12.
 */
static double hetero_predictive_cdf(const thiele_likelihood *lik, int output, double y, const double *mu,
                                    const double *v)
{
    (void)lik;
    (void)output;
    double deviation = sqrt(v[1]), step = fmin(0.6, 0.3 / fmax(deviation, 1e-3)), sum = 0, weights = 0;
    if (deviation > 72.0) {
        return hetero_wide_cdf(y - mu[0], v[0], mu[1], deviation);
    }
    int reach = (int)(8.5 / step) + 1;
    for (int k = -reach; k <= reach; k++) {
        double z = k * step, weight = exp(-0.5 * z * z);
        double variance = fmax(v[0] + bounded_exp(mu[1] + deviation * z), 1e-300);
        sum += weight * thi_normal_cdf((y - mu[0]) / sqrt(variance));
        weights += weight;
    }
    return sum / weights;
}

static double hetero_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    (void)lik;
    return thi_normal_cdf((y - f[0]) * bounded_exp(-0.5 * f[1]));
}

static void hetero_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    (void)lik;
    y[0] = f[0] + bounded_exp(0.5 * f[1]) * thi_random_normal(stream, draw);
}

/* The noise starts at e^-2, a seventh of the variance of a standardised y. */
static void hetero_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    gaussian_guess(lik, y, f);
    f[1] = -2.0;
}

thiele_status thi_make_heteroscedastic(thiele_likelihood *lik, thiele_context *ctx)
{
    (void)ctx;
    lik->outputs = 1;
    lik->latents = 2;
    return THIELE_OK;
}

const thi_likelihood_ops thi_lik_heteroscedastic = {
    .name = "heteroscedastic",
    .log_variance = 1,
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .log_density = hetero_density,
    .derivatives = hetero_derivatives,
    .expectation = hetero_expectation,
    .conditional = hetero_conditional,
    .predictive = hetero_predictive,
    .log_predictive = hetero_log_predictive,
    .predictive_cdf = hetero_predictive_cdf,
    .cdf = hetero_cdf,
    .sample = hetero_sample,
    .guess = hetero_guess,
};

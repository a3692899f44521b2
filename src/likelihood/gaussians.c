/*
 * Several outputs, each a latent function of its own with Gaussian noise of its own: y_p = f_p + e_p. All expectations
 * are exact, and the posteriors of the functions do not depend on each other. Missing outputs are left out. O(outputs)
 * a row.
 */
#include <math.h>
#include <string.h>

#include "likelihood/families.h"
#include "likelihood/special.h"

static const double LOG_2PI = 1.8378770664093454836;

/* log N(y; mean, variance), 0 for a missing y. */
static double log_normal(double y, double mean, double variance)
{
    double r = y - mean;
    return isnan(y) ? 0.0 : -0.5 * (LOG_2PI + log(variance) + r * r / variance);
}

/* out_i = sum_p log N(y_p; mu_p, v_p + noise_p); v NULL: 0. */
static void add_densities(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                          double *out)
{
    int P = lik->outputs;
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0.0;
        for (int p = 0; p < P; p++) {
            int64_t k = i * P + p;
            out[i] += log_normal(y[k], mu[k], (v != NULL ? v[k] : 0.0) + lik->value[p]);
        }
    }
}

static void density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    add_densities(lik, n, y, f, NULL, out);
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    for (int64_t k = 0; k < n * lik->outputs; k++) {
        double inverse = isnan(y[k]) ? 0.0 : 1.0 / lik->value[k % lik->outputs];
        d1[k] = inverse > 0.0 ? inverse * (y[k] - f[k]) : 0.0;
        d2[k] = -inverse;
    }
}

static void precision(const thiele_likelihood *lik, double *out)
{
    for (int p = 0; p < lik->outputs; p++) {
        out[p] = 1.0 / lik->value[p];
    }
}

/* In the logs of the noises, at f ~ N(mu, v); v NULL: 0. */
static void noise_slopes(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                         double *dphi)
{
    for (int64_t k = 0; k < n * lik->outputs; k++) {
        double r = y[k] - mu[k];
        dphi[k] = isnan(y[k]) ? 0.0 : 0.5 * (r * r + (v != NULL ? v[k] : 0.0)) / lik->value[k % lik->outputs] - 0.5;
    }
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    noise_slopes(lik, n, y, f, NULL, dphi);
}

static void expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                        double *E, double *g, double *h, double *dphi)
{
    int P = lik->outputs;
    density(lik, n, y, mu, E);
    derivatives(lik, n, y, mu, g, h);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = i * P; k < (i + 1) * P; k++) {
            h[k] *= 0.5;
            E[i] += h[k] * v[k];
        }
    }
    if (dphi != NULL) {
        noise_slopes(lik, n, y, mu, v, dphi);
    }
}

static void predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                       double *variance)
{
    for (int64_t k = 0; k < n * lik->outputs; k++) {
        mean[k] = mu[k];
        variance[k] = (v != NULL ? v[k] : 0.0) + lik->value[k % lik->outputs];
    }
}

static void conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    predictive(lik, n, f, NULL, mean, variance);
}

static double predictive_cdf(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v)
{
    return thi_normal_cdf((y - mu[output]) / sqrt(v[output] + lik->value[output]));
}

static double predictive_crps(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v)
{
    return thi_normal_crps(y - mu[output], v[output] + lik->value[output]);
}

static void quantiles(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, int count,
                      const double *z, double *out)
{
    for (int64_t k = 0; k < n * lik->outputs; k++) {
        double sd = sqrt(v[k] + lik->value[k % lik->outputs]);
        for (int j = 0; j < count; j++) {
            out[k * count + j] = mu[k] + z[j] * sd;
        }
    }
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    for (int p = 0; p < lik->outputs; p++) {
        uint64_t index = draw * (uint64_t)lik->outputs + (uint64_t)p;
        y[p] = f[p] + sqrt(lik->value[p]) * thi_random_normal(stream, index);
    }
}

static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    for (int p = 0; p < lik->outputs; p++) {
        f[p] = isnan(y[p]) ? 0.0 : y[p];
    }
}

thiele_status thi_make_gaussians(thiele_likelihood *lik, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    lik->outputs = lik->outputs == 0 ? 1 : lik->outputs;
    lik->latents = lik->outputs;
    for (int p = 0; p < lik->outputs && status == THIELE_OK; p++) {
        char name[24];
        snprintf(name, sizeof name, "noise%d", p + 1);
        status = thi_likelihood_add_scaled(lik, ctx, name, 0.1, true, 2);
        if (status == THIELE_OK) {
            lik->phi[p].output = p + 1;
        }
    }
    return status;
}

const thi_likelihood_ops thi_lik_gaussians = {
    .name = "gaussians",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .separate = true,
    .several = true,
    .log_density = density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .expectation = expectation,
    .precision = precision,
    .conditional = conditional,
    .predictive = predictive,
    .log_predictive = add_densities,
    .predictive_cdf = predictive_cdf,
    .predictive_crps = predictive_crps,
    .quantiles = quantiles,
    .sample = sample,
    .guess = guess,
};

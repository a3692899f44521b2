/*
 * Positive and bounded values: gamma with mean exp(f) and variance mean^2/shape, and the exponential, which is the
 * gamma of shape 1, both in closed form; beta on (0, 1) with mean sigmoid(f) and precision a + b. O(1) a row.
 */
#include <float.h>
#include <math.h>

#include "likelihood/draws.h"
#include "likelihood/families.h"
#include "likelihood/formulas/positive.h"
#include "likelihood/incomplete.h"
#include "likelihood/rows.h"

/* --- gamma and exponential --- */

static void gamma_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, thi_gamma_constant, thi_gamma_density);
}

static void gamma_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                              double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_gamma_derivatives);
}

static void gamma_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_gamma_phi);
}

static void gamma_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                              const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, thi_gamma_expectation);
}

static void gamma_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                             double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        thi_log_link_moments(mu[i], v ? v[i] : 0, 0, 1 / thi_gamma_shape(thi_values_of(lik)), &mean[i], &variance[i]);
    }
}

static void gamma_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    gamma_predictive(lik, n, f, NULL, mean, variance);
}

static double gamma_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double k = thi_gamma_shape(thi_values_of(lik));
    return y > 0 ? thi_gamma_lower(k, k * exp(log(y) - f[0])) : 0;
}

static void gamma_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double k = thi_gamma_shape(thi_values_of(lik));
    y[0] = fmax(DBL_MIN, exp(f[0] - log(k) + thi_draw_log_gamma(stream, draw * THI_DRAW, k)));
}

static void gamma_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)lik;
    f[0] = y[0] > 0 ? log(y[0]) : 0;
}

const thi_likelihood_ops thi_lik_gamma = {
    .name = "gamma",
    .support = THI_SUPPORT_POSITIVE,
    .log_link = true,
    .log_density = gamma_log_density,
    .derivatives = gamma_derivatives,
    .phi_derivatives = gamma_phi,
    .expectation = gamma_expectation,
    .conditional = gamma_conditional,
    .predictive = gamma_predictive,
    .cdf = gamma_cdf,
    .sample = gamma_sample,
    .guess = gamma_guess,
};

/* A parameter that is learned up to a noise of a ten-thousandth of y: where y is constant it would grow for ever. */
static thiele_status add_sharpness(thiele_likelihood *lik, thiele_context *ctx, const char *name, double value)
{
    thiele_status status = thi_likelihood_add_phi(lik, ctx, name, value, true);
    if (status == THIELE_OK) {
        lik->phi[0].most = 1e8;
    }
    return status;
}

thiele_status thi_make_gamma(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return add_sharpness(lik, ctx, "shape", 1);
}

const thi_likelihood_ops thi_lik_exponential = {
    .name = "exponential",
    .support = THI_SUPPORT_POSITIVE,
    .log_link = true,
    .log_density = gamma_log_density,
    .derivatives = gamma_derivatives,
    .expectation = gamma_expectation,
    .conditional = gamma_conditional,
    .predictive = gamma_predictive,
    .cdf = gamma_cdf,
    .sample = gamma_sample,
    .guess = gamma_guess,
};

thiele_status thi_make_exponential(thiele_likelihood *lik, thiele_context *ctx)
{
    (void)ctx;
    lik->outputs = lik->latents = 1;
    return THIELE_OK;
}

/* --- beta --- */

static void beta_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, thi_beta_constant, thi_beta_density);
}

static void beta_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                             double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_beta_derivatives);
}

static void beta_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_beta_phi);
}

/* At the middle of the sigmoid, and where a or b falls below 1. */
static int beta_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)y;
    double at = fabs(log(lik->value[0]));
    bend[0] = (thi_bend){0, 1};
    bend[1] = (thi_bend){-at, 1};
    bend[2] = (thi_bend){at, 1};
    return 3;
}

static void beta_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        mean[i] = thi_sigmoid(f[i]);
        variance[i] = mean[i] * thi_sigmoid(-f[i]) / (1 + lik->value[0]);
    }
}

static double beta_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    /* A parameter that underflowed puts all mass at its end. */
    double s = lik->value[0], a = fmax(DBL_MIN, s * thi_sigmoid(f[0])), b = fmax(DBL_MIN, s * thi_sigmoid(-f[0]));
    return thi_beta_lower(a, b, y, 1 - y);
}

static void beta_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double s = lik->value[0], a = fmax(DBL_MIN, s * thi_sigmoid(f[0])), b = fmax(DBL_MIN, s * thi_sigmoid(-f[0]));
    uint64_t first = draw * 2 * THI_DRAW;
    double top = thi_draw_log_gamma(stream, first, a), rest = thi_draw_log_gamma(stream, first + THI_DRAW, b);
    y[0] = fmin(1 - 0.5 * DBL_EPSILON, fmax(DBL_MIN, thi_sigmoid(top - rest)));
}

static void beta_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)lik;
    f[0] = y[0] > 0 && y[0] < 1 ? log(y[0]) - log1p(-y[0]) : 0;
}

const thi_likelihood_ops thi_lik_beta = {
    .name = "beta",
    .support = THI_SUPPORT_UNIT,
    .log_density = beta_log_density,
    .derivatives = beta_derivatives,
    .phi_derivatives = beta_phi,
    .bends = beta_bends,
    .conditional = beta_conditional,
    .cdf = beta_cdf,
    .sample = beta_sample,
    .guess = beta_guess,
};

thiele_status thi_make_beta(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return add_sharpness(lik, ctx, "precision", 10);
}

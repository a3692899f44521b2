/*
 * Counts: Poisson with mean exp(f + offset), the likelihood of a log Gaussian Cox process, in closed form; negative
 * binomial with mean m = exp(f) and variance m + m^2/r, a Poisson with a gamma-distributed rate; binomial out of a
 * known number of trials, with probability sigmoid(f). O(1) a row.
 */
#include <math.h>

#include "likelihood/draws.h"
#include "likelihood/families.h"
#include "likelihood/formulas/counts.h"
#include "likelihood/incomplete.h"
#include "likelihood/rows.h"
#include "linalg/vector.h"

static thiele_status one_parameter(thiele_likelihood *lik, thiele_context *ctx, const char *name, double value,
                                   bool positive, bool fixed)
{
    lik->outputs = lik->latents = 1;
    thiele_status status = thi_likelihood_add_phi(lik, ctx, name, value, positive);
    if (status == THIELE_OK) {
        lik->phi[0].fixed = fixed;
    }
    return status;
}

/* --- poisson --- */

/* eta = f + offset and m = exp(eta) of at most BUFFER rows. */
enum { BUFFER = 256 };

static void rates(const thiele_likelihood *lik, int64_t n, const double *f, double *eta, double *m)
{
    for (int64_t i = 0; i < n; i++) {
        eta[i] = f[i] + lik->value[0];
    }
    thi_vector()->exp(n, eta, m);
}

static void poisson_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    double eta[BUFFER], m[BUFFER], last = NAN, c = 0; /* points of a row have one constant */
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i % BUFFER;
        if (k == 0) {
            rates(lik, n - i < BUFFER ? n - i : BUFFER, f + i, eta, m);
        }
        if (y[i] != last) {
            last = y[i];
            c = isnan(last) ? 0 : thi_poisson_constant(thi_values_of(lik), last);
        }
        out[i] = isnan(last) ? 0 : c > -INFINITY ? thi_poisson_at_rate(c, last, eta[k], m[k]) : -INFINITY;
    }
}

static void poisson_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                                double *d2)
{
    double eta[BUFFER], m[BUFFER];
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i % BUFFER;
        if (k == 0) {
            rates(lik, n - i < BUFFER ? n - i : BUFFER, f + i, eta, m);
        }
        d1[i] = isnan(y[i]) ? 0 : y[i] - m[k];
        d2[i] = isnan(y[i]) ? 0 : -m[k];
    }
}

static void poisson_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_poisson_phi);
}

static void poisson_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, thi_poisson_expectation);
}

static void poisson_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                               double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        thi_log_link_moments(mu[i] + lik->value[0], v ? v[i] : 0, 1, 0, &mean[i], &variance[i]);
    }
}

static void poisson_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean,
                                double *variance)
{
    poisson_predictive(lik, n, f, NULL, mean, variance);
}

static double poisson_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    return y < 0 ? 0 : thi_gamma_upper(floor(y) + 1, exp(f[0] + lik->value[0]));
}

static void poisson_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    y[0] = thi_draw_poisson(stream, draw * THI_DRAW, exp(f[0] + lik->value[0]));
}

static void poisson_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    f[0] = isnan(y[0]) ? 0 : log(y[0] + 0.5) - lik->value[0];
}

const thi_likelihood_ops thi_lik_poisson = {
    .name = "poisson",
    .support = THI_SUPPORT_COUNT,
    .log_link = true,
    .log_density = poisson_log_density,
    .derivatives = poisson_derivatives,
    .phi_derivatives = poisson_phi,
    .expectation = poisson_expectation,
    .conditional = poisson_conditional,
    .predictive = poisson_predictive,
    .cdf = poisson_cdf,
    .sample = poisson_sample,
    .guess = poisson_guess,
};

thiele_status thi_make_poisson(thiele_likelihood *lik, thiele_context *ctx)
{
    return one_parameter(lik, ctx, "offset", 0, false, true);
}

/* --- negative binomial --- */

static void negbin_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, thi_negbin_constant, thi_negbin_density);
}

static void negbin_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                               double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_negbin_derivatives);
}

static void negbin_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_negbin_phi);
}

static int negbin_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)y;
    bend[0] = (thi_bend){log(lik->value[0]), 1};
    return 1;
}

static void negbin_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                              double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        thi_log_link_moments(mu[i], v ? v[i] : 0, 1, 1 / lik->value[0], &mean[i], &variance[i]);
    }
}

static void negbin_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    negbin_predictive(lik, n, f, NULL, mean, variance);
}

static double negbin_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double r = lik->value[0], t = f[0] - log(r);
    return y < 0 ? 0 : thi_beta_lower(r, floor(y) + 1, thi_sigmoid(-t), thi_sigmoid(t));
}

static void negbin_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double r = lik->value[0];
    uint64_t first = draw * 2 * THI_DRAW;
    double rate = exp(f[0] - log(r) + thi_draw_log_gamma(stream, first, r));
    y[0] = thi_draw_poisson(stream, first + THI_DRAW, rate);
}

static void negbin_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)lik;
    f[0] = isnan(y[0]) ? 0 : log(y[0] + 0.5);
}

const thi_likelihood_ops thi_lik_negative_binomial = {
    .name = "negative-binomial",
    .support = THI_SUPPORT_COUNT,
    .log_link = true,
    .log_density = negbin_log_density,
    .derivatives = negbin_derivatives,
    .phi_derivatives = negbin_phi,
    .bends = negbin_bends,
    .conditional = negbin_conditional,
    .predictive = negbin_predictive,
    .cdf = negbin_cdf,
    .sample = negbin_sample,
    .guess = negbin_guess,
    .augmentation = &thi_aug_negative_binomial,
};

thiele_status thi_make_negative_binomial(thiele_likelihood *lik, thiele_context *ctx)
{
    return one_parameter(lik, ctx, "r", 1, true, false);
}

/* --- binomial --- */

static void binomial_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, thi_binomial_constant, thi_binomial_density);
}

static void binomial_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                                 double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_binomial_derivatives);
}

static void binomial_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_binomial_phi);
}

static int binomial_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)lik;
    (void)y;
    bend[0] = (thi_bend){0, 1};
    return 1;
}

static void binomial_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean,
                                 double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        mean[i] = lik->value[0] * thi_sigmoid(f[i]);
        variance[i] = mean[i] * thi_sigmoid(-f[i]);
    }
}

static double binomial_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double trials = lik->value[0], k = floor(y);
    if (k < 0 || k >= trials) {
        return k < 0 ? 0 : 1;
    }
    return thi_beta_lower(trials - k, k + 1, thi_sigmoid(-f[0]), thi_sigmoid(f[0]));
}

static void binomial_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double trials = lik->value[0], few = thi_draw_binomial(stream, draw * THI_DRAW, trials, thi_sigmoid(-fabs(f[0])));
    y[0] = f[0] > 0 ? trials - few : few;
}

static void binomial_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    f[0] = isnan(y[0]) ? 0 : log((y[0] + 0.5) / (lik->value[0] - y[0] + 0.5));
}

static const char *binomial_check(const thiele_likelihood *lik)
{
    double trials = lik->value[0];
    if (!lik->phi[0].fixed) {
        return "the number of trials is known, not learned: write trials=10";
    }
    return trials >= 1 && trials == floor(trials) ? NULL : "trials must be a whole number, 1 or more";
}

static const char *binomial_refuses(const thiele_likelihood *lik, double y)
{
    return y > lik->value[0] ? "there are more successes than trials (say how many there were: binomial(trials=N))"
                             : NULL;
}

const thi_likelihood_ops thi_lik_binomial = {
    .name = "binomial",
    .support = THI_SUPPORT_COUNT,
    .log_density = binomial_log_density,
    .derivatives = binomial_derivatives,
    .phi_derivatives = binomial_phi,
    .bends = binomial_bends,
    .conditional = binomial_conditional,
    .cdf = binomial_cdf,
    .sample = binomial_sample,
    .guess = binomial_guess,
    .check = binomial_check,
    .refuses = binomial_refuses,
    .augmentation = &thi_aug_binomial,
};

thiele_status thi_make_binomial(thiele_likelihood *lik, thiele_context *ctx)
{
    return one_parameter(lik, ctx, "trials", 1, true, true);
}

/*
 * Counts with the mean rate * sigmoid(f), a Poisson likelihood whose mean stays below `rate`: a Cox process with a
 * sigmoid link. Augmented as by Donner and Opper (2018), "Efficient Bayesian inference of sigmoidal Gaussian Cox
 * processes": exp(rate s(-f)) is summed over k ~ Poisson, events that were thinned away, and
 *   s(f)^y s(-f)^k = 2^-(y+k) exp((y - k) f/2) cosh(f/2)^-(y+k),
 * which Polya-Gamma variables make Gaussian. O(1) a row.
 */
#include <math.h>

#include "likelihood/augment.h"
#include "likelihood/draws.h"
#include "likelihood/families.h"
#include "likelihood/incomplete.h"
#include "likelihood/omega_draws.h"
#include "likelihood/polya_gamma.h"
#include "likelihood/rows.h"
#include "likelihood/special.h"

static double sigmoid_constant(const thiele_likelihood *lik, double y)
{
    return y >= 0 ? y * log(lik->value[0]) - thi_lgamma(y + 1) : -INFINITY;
}

static double sigmoid_row(const thiele_likelihood *lik, double constant, double y, double f)
{
    return constant + y * thi_log_sigmoid(f) - lik->value[0] * thi_sigmoid(f);
}

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, sigmoid_constant, sigmoid_row);
}

static void derivatives_row(const thiele_likelihood *lik, double y, double f, double *d)
{
    double rate = lik->value[0], s = thi_sigmoid(f), o = thi_sigmoid(-f);
    d[0] = o * (y - rate * s);
    d[1] = -s * o * (y + rate * (o - s));
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, derivatives_row);
}

static void phi_row(const thiele_likelihood *lik, double y, double f, double *dphi)
{
    dphi[0] = y - lik->value[0] * thi_sigmoid(f);
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, phi_row);
}

static int bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)lik;
    (void)y;
    bend[0] = (thi_bend){0, 1};
    return 1;
}

static void conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        mean[i] = variance[i] = lik->value[0] * thi_sigmoid(f[i]);
    }
}

static double cdf(const thiele_likelihood *lik, double y, const double *f)
{
    return y < 0 ? 0 : thi_gamma_upper(floor(y) + 1, lik->value[0] * thi_sigmoid(f[0]));
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    y[0] = thi_draw_poisson(stream, draw * THI_DRAW, lik->value[0] * thi_sigmoid(f[0]));
}

static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    double top = fmax(lik->value[0], y[0]);
    f[0] = isnan(y[0]) ? 0 : log((y[0] + 0.5) / (top - y[0] + 0.5));
}

/* --- augmentation ---------------------------------------------------------------------------------------------------
 */

/*
 * With c^2 = mu^2 + v, l = log cosh(c/2) and k's mean kappa = rate exp(-mu/2 - l)/2, the optimal q(k, omega) gives
 *   E = y log rate - log y! - rate + y (mu/2 - l - log 2) + kappa.
 */
static thi_row augmented_row(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    double rate = lik->value[0];
    thi_omega one = thi_polya_gamma(1.0, mu * mu + v);
    double kappa = rate * exp(one.log_phi - 0.5 * mu - M_LN2), weight = 2.0 * one.mean * (y + kappa);
    if (dphi) {
        dphi[0] = y - rate + kappa;
    }
    return (thi_row){sigmoid_constant(lik, y) - rate + y * (0.5 * mu + one.log_phi - M_LN2) + kappa,
                     0.5 * (y - kappa) - weight * mu, -0.5 * weight};
}

static void augmented_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, augmented_row);
}

/* k given f, then omega given both. */
static void augmented_site(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *y,
                           const double *f, double *lambda, double *nu)
{
    lambda[0] = nu[0] = 0;
    if (isnan(y[0])) {
        return;
    }
    uint64_t first = draw * (THI_OMEGA + THI_DRAW);
    double k = thi_draw_poisson(stream, first, lik->value[0] * thi_sigmoid(-f[0]));
    lambda[0] = thi_draw_polya_gamma(stream, first + THI_DRAW, y[0] + k, f[0]);
    nu[0] = 0.5 * (y[0] - k);
}

static const thi_augmentation augmentation = {.expectation = augmented_expectation, .site = augmented_site};

const thi_likelihood_ops thi_lik_sigmoid_poisson = {
    .name = "sigmoid-poisson",
    .support = THI_SUPPORT_COUNT,
    .log_density = log_density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .bends = bends,
    .conditional = conditional,
    .cdf = cdf,
    .sample = sample,
    .guess = guess,
    .augmentation = &augmentation,
};

thiele_status thi_make_sigmoid_poisson(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return thi_likelihood_add_phi(lik, ctx, "rate", 10, true);
}

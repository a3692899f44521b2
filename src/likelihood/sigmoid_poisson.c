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
#include "likelihood/formulas/counts.h"
#include "likelihood/incomplete.h"
#include "likelihood/omega_draws.h"
#include "likelihood/rows.h"

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, thi_sigmoid_poisson_constant, thi_sigmoid_poisson_density);
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_sigmoid_poisson_derivatives);
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_sigmoid_poisson_phi);
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

static void augmented_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, thi_sigmoid_poisson_bound);
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

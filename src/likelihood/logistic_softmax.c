/*
 * Classes 0 .. C-1 with a latent each: p(y | f) = s(f_y) / sum_c s(f_c), s the sigmoid. A softmax with bounded weights,
 * augmented as by Galy-Fajou, Wenzel, Donner and Opper (2019), "Multi-class Gaussian process classification made
 * conjugate": 1/sum_c s(f_c) is the integral of exp(-lambda sum_c s(f_c)) over lambda > 0, exp(lambda s(-f_c)) a sum
 * over k_c ~ Poisson, and what is left Polya-Gamma. lambda and the k_c are kept together here rather than independent
 * as in the paper, which gives a closed and tighter bound. O(C) a row.
 */
#include <math.h>
#include <string.h>

#include "likelihood/augment.h"
#include "likelihood/draws.h"
#include "likelihood/families.h"
#include "likelihood/omega_draws.h"
#include "likelihood/polya_gamma.h"
#include "likelihood/rows.h"
#include "likelihood/special.h"

enum { MOST_CLASSES = 1000 };

/* log sum_c s(f_c), safe when all f are far below zero. */
static double log_total(int C, const double *f)
{
    double most = thi_log_sigmoid(f[0]);
    for (int c = 1; c < C; c++) {
        most = fmax(most, thi_log_sigmoid(f[c]));
    }
    double sum = exp(thi_log_sigmoid(f[0]) - most);
    for (int c = 1; c < C; c++) {
        sum += exp(thi_log_sigmoid(f[c]) - most);
    }
    return most + log(sum);
}

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    int C = lik->classes;
    for (int64_t i = 0; i < n; i++) {
        const double *row = f + i * C;
        if (!thi_is_class(lik->classes, y[i])) {
            out[i] = isnan(y[i]) ? 0 : -INFINITY;
            continue;
        }
        out[i] = thi_log_sigmoid(row[(int)y[i]]) - log_total(C, row);
    }
}

static void probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    int C = lik->classes;
    for (int64_t i = 0; i < n; i++) {
        double total = log_total(C, f + i * C);
        for (int c = 0; c < C; c++) {
            prob[i * C + c] = exp(thi_log_sigmoid(f[i * C + c]) - total);
        }
    }
}

/* With p_c the probabilities and o_c = s(-f_c): d1_c = ([c = y] - p_c) o_c, d2_c = -[c = y] s o - p_c o (o - s - p o).
 */
static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    int C = lik->classes;
    probabilities(lik, n, f, d1);
    for (int64_t i = 0; i < n * C; i++) {
        double at = y[i / C], p = d1[i], s = thi_sigmoid(f[i]), o = thi_sigmoid(-f[i]), own = at == i % C ? 1.0 : 0.0;
        bool known = thi_is_class(lik->classes, at);
        d1[i] = known ? (own - p) * o : 0;
        d2[i] = known ? -own * s * o - p * o * (o - s - p * o) : 0;
    }
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double total = log_total(lik->classes, f), left = thi_random_uniform(stream, draw);
    int c = 0;
    left -= exp(thi_log_sigmoid(f[0]) - total);
    while (left >= 0 && c < lik->classes - 1) {
        left -= exp(thi_log_sigmoid(f[++c]) - total);
    }
    y[0] = c;
}

static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    for (int c = 0; c < lik->classes; c++) {
        f[c] = isnan(y[0]) ? 0 : (y[0] == c ? 1.0 : 0.0) - 1.0 / lik->classes;
    }
}

/* --- augmentation ---------------------------------------------------------------------------------------------------
 */

/*
 * -log rho for rho = exp(-mu/2)/(2 cosh(c/2)), c^2 = mu^2 + v, the bound of s(-f): (mu + c)/2 + log(1 + e^-c), where
 * mu + c = v/(c - mu) is what does not cancel for mu < 0.
 */
static double log_one_over_rho(double mu, double v)
{
    double c = sqrt(mu * mu + v);
    return 0.5 * (mu < 0 ? v / (c - mu) : mu + c) + log1p(exp(-c));
}

/*
 * Summed over k and integrated over lambda, exp(-C lambda) prod_c exp(lambda rho_c) is 1/(C - R), R = sum_c rho_c, so
 *   E = log of the same bound of s(f_y) - log(C - R),  E[k_c] = kappa_c = rho_c/(C - R).
 */
static void augmented_row(int C, int y, const double *mu, const double *v, double *E, double *g, double *h)
{
    double left = -expm1(-log_one_over_rho(mu[0], v[0]));
    for (int c = 1; c < C; c++) {
        left -= expm1(-log_one_over_rho(mu[c], v[c]));
    }
    *E = -log_one_over_rho(-mu[y], v[y]) - log(left);
    for (int c = 0; c < C; c++) {
        double kappa = exp(-log_one_over_rho(mu[c], v[c])) / left, own = c == y ? 1.0 : 0.0;
        double weight = 2.0 * thi_polya_gamma(1.0, mu[c] * mu[c] + v[c]).mean * (own + kappa);
        g[c] = 0.5 * (own - kappa) - weight * mu[c];
        h[c] = -0.5 * weight;
    }
}

static void augmented_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *E, double *g, double *h, double *dphi)
{
    (void)dphi;
    int C = lik->classes;
    for (int64_t i = 0; i < n; i++) {
        if (thi_is_class(lik->classes, y[i])) {
            augmented_row(C, (int)y[i], mu + i * C, v + i * C, &E[i], g + i * C, h + i * C);
            continue;
        }
        E[i] = 0;
        memset(g + i * C, 0, (size_t)C * sizeof *g);
        memset(h + i * C, 0, (size_t)C * sizeof *h);
    }
}

/* lambda given f is exponential, each k Poisson given both, each omega Polya-Gamma given k. */
static void augmented_site(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *y,
                           const double *f, double *lambda, double *nu)
{
    int C = lik->classes;
    uint64_t each = THI_OMEGA + THI_DRAW, first = draw * (each * (uint64_t)C + 1);
    double scale = -log(thi_random_uniform(stream, first)) * exp(-log_total(C, f));
    for (int c = 0; c < C; c++) {
        uint64_t at = first + 1 + (uint64_t)c * each;
        double own = y[0] == c ? 1.0 : 0.0, k = thi_draw_poisson(stream, at, scale * thi_sigmoid(-f[c]));
        bool known = thi_is_class(lik->classes, y[0]);
        lambda[c] = known ? thi_draw_polya_gamma(stream, at + THI_DRAW, own + k, f[c]) : 0;
        nu[c] = known ? 0.5 * (own - k) : 0;
    }
}

static const thi_augmentation augmentation = {.expectation = augmented_expectation, .site = augmented_site};

const thi_likelihood_ops thi_lik_logistic_softmax = {
    .name = "logistic-softmax",
    .support = THI_SUPPORT_CLASS,
    .log_density = log_density,
    .derivatives = derivatives,
    .sample = sample,
    .guess = guess,
    .probabilities = probabilities,
    .augmentation = &augmentation,
};

thiele_status thi_make_logistic_softmax(thiele_likelihood *lik, thiele_context *ctx)
{
    if (lik->classes < 2 || lik->classes > MOST_CLASSES) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood 'logistic-softmax' needs a target with 2 to %d classes; this one has %d",
                        MOST_CLASSES, lik->classes);
    }
    lik->outputs = 1;
    lik->latents = lik->classes;
    return THIELE_OK;
}

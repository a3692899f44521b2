/*
 * Positive and bounded values: gamma with mean exp(f) and variance mean^2/shape, and the exponential, which is the
 * gamma of shape 1, both in closed form; beta on (0, 1) with mean sigmoid(f) and precision a + b. O(1) a row.
 */
#include <float.h>
#include <math.h>

#include "likelihood/draws.h"
#include "likelihood/families.h"
#include "likelihood/incomplete.h"
#include "likelihood/rows.h"
#include "likelihood/special.h"
#include "likelihood/stirling.h"

/*
 * --- gamma: with u = log y - f and k the shape, log p = k log k - log Gamma(k) - log y + k (u - e^u) ---
 * written as gap(k) - log y + k (u - expm1(u)), in which nothing large cancels for large k.
 */

static double shape_of(const thiele_likelihood *lik)
{
    return lik->parameters > 0 ? lik->value[0] : 1;
}

static double gamma_constant(const thiele_likelihood *lik, double y)
{
    return y > 0 ? thi_lgamma_gap(shape_of(lik)) - log(y) : -INFINITY;
}

static double gamma_row(const thiele_likelihood *lik, double constant, double y, double f)
{
    double u = log(y) - f;
    return constant + shape_of(lik) * (u - expm1(u));
}

static void gamma_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, gamma_constant, gamma_row);
}

static void gamma_derivatives_row(const thiele_likelihood *lik, double y, double f, double *d)
{
    if (y > 0) {
        double k = shape_of(lik), u = log(y) - f;
        d[0] = k * expm1(u);
        d[1] = -k * exp(u);
    }
}

static void gamma_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                              double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, gamma_derivatives_row);
}

static void gamma_phi_row(const thiele_likelihood *lik, double y, double f, double *dphi)
{
    if (y > 0) {
        double k = lik->value[0], u = log(y) - f;
        dphi[0] = k * (thi_digamma_gap(k) + u - expm1(u));
    }
}

static void gamma_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, gamma_phi_row);
}

/* E[e^u] = exp(log y - mu + v/2) */
static thi_row gamma_expectation_row(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    double k = shape_of(lik), constant = gamma_constant(lik, y);
    if (constant == -INFINITY) {
        return (thi_row){-INFINITY, 0, 0};
    }
    double u = log(y) - mu, w = u + 0.5 * v;
    if (dphi && lik->parameters > 0) {
        dphi[0] = k * (thi_digamma_gap(k) + u - expm1(w));
    }
    return (thi_row){constant + k * (u - expm1(w)), k * expm1(w), -0.5 * k * exp(w)};
}

static void gamma_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                              const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, gamma_expectation_row);
}

static void gamma_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                             double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        thi_log_link_moments(mu[i], v ? v[i] : 0, 0, 1 / shape_of(lik), &mean[i], &variance[i]);
    }
}

static void gamma_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    gamma_predictive(lik, n, f, NULL, mean, variance);
}

static double gamma_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double k = shape_of(lik);
    return y > 0 ? thi_gamma_lower(k, k * exp(log(y) - f[0])) : 0;
}

static void gamma_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double k = shape_of(lik);
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

/*
 * --- beta: a = s p, b = s q with p = sigmoid(f), q = 1 - p, s the precision ---
 * Small a or b: Gamma(a) = Gamma(1 + a)/a and log a = log s + log p keep everything finite when one underflows. When
 * both are large the density is gap(a) + gap(b) - gap(s) - log y(1 - y) - s KL, where KL, the divergence of (y, 1 - y)
 * from (p, q), is a sum of small terms. The smaller of a and b is that of the smaller of p and q: the other is no less
 * than s/2.
 */

typedef struct beta_shape {
    double s, p, q, a, b;
    bool large; /* both a and b */
} beta_shape;

static beta_shape beta_at(const thiele_likelihood *lik, double f)
{
    double s = lik->value[0], p = thi_sigmoid(f), q = thi_sigmoid(-f);
    return (beta_shape){s, p, q, s * p, s * q, s * fmin(p, q) > 10};
}

/* s KL */
static double beta_misfit(const beta_shape *k, double y)
{
    double d = k->p < 0.5 ? y - k->p : k->q - (1 - y); /* the smaller of p and q has the digits */
    return k->a * thi_log_excess(d / k->p, y / k->p) + k->b * thi_log_excess(-d / k->q, (1 - y) / k->q);
}

static double beta_constant(const thiele_likelihood *lik, double y)
{
    (void)lik;
    return y > 0 && y < 1 ? -log(y) - log1p(-y) : -INFINITY;
}

static double beta_row(const thiele_likelihood *lik, double constant, double y, double f)
{
    beta_shape k = beta_at(lik, f);
    if (k.large) {
        return constant + thi_lgamma_gap(k.a) + thi_lgamma_gap(k.b) - thi_lgamma_gap(k.s) - beta_misfit(&k, y);
    }
    /* Gamma(s)/Gamma(large) as one difference, 1/Gamma(small) by Gamma(1 + small). */
    double few = fmin(k.a, k.b), many = fmax(k.a, k.b), log_few = log(k.s) + thi_log_sigmoid(-fabs(f));
    return constant + thi_lgamma_rise(many, few) - thi_lgamma(1 + few) + log_few + k.a * log(y) + k.b * log1p(-y);
}

static void beta_log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, beta_constant, beta_row);
}

/* With w = da/df = s p q and T = psi(1 + b) - psi(1 + a) + logit y, d1 = w T + q - p. */
static void beta_derivatives_row(const thiele_likelihood *lik, double y, double f, double *d)
{
    if (!(y > 0 && y < 1)) {
        return;
    }
    double s = lik->value[0], p = thi_sigmoid(f), q = thi_sigmoid(-f), a = s * p, b = s * q, w = s * p * q;
    double T = thi_digamma(1 + b) - thi_digamma(1 + a) + log(y) - log1p(-y);
    d[0] = w * T + (q - p);
    d[1] = w * (q - p) * T - w * w * (thi_trigamma(1 + a) + thi_trigamma(1 + b)) - 2 * p * q;
}

static void beta_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                             double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, beta_derivatives_row);
}

/*
 * s psi(s) - a psi(a) - b psi(b) + a log y + b log(1 - y): with x psi(x) = x log x - x gap(x) when both are large, with
 * x psi(x) = x psi(1 + x) - 1 for the small one else.
 */
static void beta_phi_row(const thiele_likelihood *lik, double y, double f, double *dphi)
{
    if (!(y > 0 && y < 1)) {
        return;
    }
    beta_shape k = beta_at(lik, f);
    if (k.large) {
        dphi[0] =
            k.a * thi_digamma_gap(k.a) + k.b * thi_digamma_gap(k.b) - k.s * thi_digamma_gap(k.s) - beta_misfit(&k, y);
        return;
    }
    double few = fmin(k.a, k.b), many = fmax(k.a, k.b);
    dphi[0] = 1 + few * (thi_digamma(k.s) - thi_digamma(1 + few)) + many * thi_digamma_rise(many, few) + k.a * log(y) +
              k.b * log1p(-y);
}

static void beta_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, beta_phi_row);
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

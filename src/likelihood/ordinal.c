/*
 * Ordered classes (Chu and Ghahramani 2005): class k when f + sigma e, e ~ N(0, 1), falls between cut k and cut k + 1
 * (cuts are counted from 1; below the first is class 0). The parameters are sigma, cut1, and the positive gaps gap2,
 * gap3, ... from each cut to the next, so that learning keeps the order. Scaling f, sigma and the cuts together changes
 * nothing: sigma is fixed unless it is asked for. Under f ~ N(mu, v) a class has the same probability as given f = mu
 * with sigma^2 + v for sigma^2, so predictions are exact. O(classes) a row.
 */
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/formulas/ordinal.h"
#include "likelihood/rows.h"

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sigma = lik->value[THI_ORDINAL_SIGMA];
        out[i] = isnan(y[i]) ? 0 : thi_ordinal_density(thi_values_of(lik), sigma, y[i], f[i]);
    }
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_ordinal_derivatives);
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_ordinal_phi);
}

static int bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    int count = 0;
    if (!thi_is_class(lik->classes, y[0])) {
        return 0;
    }
    for (int k = (int)y[0]; k <= (int)y[0] + 1; k++) {
        if (k > 0 && k < lik->classes) {
            bend[count++] = (thi_bend){thi_ordinal_cut(thi_values_of(lik), k), lik->value[THI_ORDINAL_SIGMA]};
        }
    }
    return count;
}

static void moments(const thiele_likelihood *lik, double f, double sigma, double *mean, double *variance)
{
    double sum = 0, square = 0, low = -INFINITY, high = 0;
    for (int k = 0; k < lik->classes - 1; k++) {
        high = thi_ordinal_next_cut(thi_values_of(lik), k, high);
        sum += thi_normal_cdf((f - high) / sigma);
    }
    for (int k = 0; k < lik->classes; k++, low = high) {
        high = thi_ordinal_next_cut(thi_values_of(lik), k, low);
        square += (k - sum) * (k - sum) * exp(thi_log_phi_between((low - f) / sigma, (high - f) / sigma));
    }
    *mean = sum;
    *variance = square;
}

static void conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        moments(lik, f[i], lik->value[THI_ORDINAL_SIGMA], &mean[i], &variance[i]);
    }
}

static void predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                       double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        moments(lik, mu[i], hypot(lik->value[THI_ORDINAL_SIGMA], sqrt(v[i])), &mean[i], &variance[i]);
    }
}

static void log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                           double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sigma = hypot(lik->value[THI_ORDINAL_SIGMA], sqrt(v[i]));
        out[i] = isnan(y[i]) ? 0 : thi_ordinal_density(thi_values_of(lik), sigma, y[i], mu[i]);
    }
}

static double cdf(const thiele_likelihood *lik, double y, const double *f)
{
    int k = (int)fmin(fmax(floor(y), -1), lik->classes);
    return thi_normal_cdf((thi_ordinal_cut(thi_values_of(lik), k + 1) - f[0]) / lik->value[THI_ORDINAL_SIGMA]);
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double at = f[0] + lik->value[THI_ORDINAL_SIGMA] * thi_random_normal(stream, draw);
    double high = thi_ordinal_next_cut(thi_values_of(lik), 0, 0);
    int k = 0;
    while (k < lik->classes - 1 && at > high) {
        k++;
        high = thi_ordinal_next_cut(thi_values_of(lik), k, high);
    }
    y[0] = k;
}

/* The middle of the class, or one sigma beyond the last cut. */
static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    f[0] = 0;
    if (thi_is_class(lik->classes, y[0])) {
        int k = (int)y[0];
        double sigma = lik->value[THI_ORDINAL_SIGMA], low = thi_ordinal_cut(thi_values_of(lik), k),
               high = thi_ordinal_cut(thi_values_of(lik), k + 1);
        f[0] = k == 0 ? high - sigma : k == lik->classes - 1 ? low + sigma : 0.5 * (low + high);
    }
}

static void probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    for (int64_t i = 0; i < n; i++) {
        double low = -INFINITY, high = 0, sigma = lik->value[THI_ORDINAL_SIGMA];
        for (int k = 0; k < lik->classes; k++, low = high) {
            high = thi_ordinal_next_cut(thi_values_of(lik), k, low);
            prob[i * lik->classes + k] = exp(thi_log_phi_between((low - f[i]) / sigma, (high - f[i]) / sigma));
        }
    }
}

const thi_likelihood_ops thi_lik_ordinal = {
    .name = "ordinal",
    .support = THI_SUPPORT_CLASS,
    .ordered = true,
    .log_density = log_density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .bends = bends,
    .conditional = conditional,
    .predictive = predictive,
    .log_predictive = log_predictive,
    .cdf = cdf,
    .sample = sample,
    .guess = guess,
    .probabilities = probabilities,
};

thiele_status thi_make_ordinal(thiele_likelihood *lik, thiele_context *ctx)
{
    if (lik->classes < 2) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood 'ordinal' needs a target with at least two classes; this one has %d", lik->classes);
    }
    lik->outputs = lik->latents = 1;
    thiele_status status;
    THI_TRY(thi_likelihood_add_phi(lik, ctx, "sigma", 1, true));
    lik->phi[THI_ORDINAL_SIGMA].fixed = true;
    THI_TRY(thi_likelihood_add_phi(lik, ctx, "cut1", 1 - 0.5 * lik->classes, false));
    for (int k = 2; k < lik->classes; k++) {
        char name[32];
        snprintf(name, sizeof name, "gap%d", k);
        THI_TRY(thi_likelihood_add_phi(lik, ctx, name, 1, true));
    }
out:
    return status;
}

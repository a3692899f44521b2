/*
 * Likelihoods of a real y with heavier tails than a Gaussian's, all of the form y = f + e with a symmetric e:
 * Student-t, Laplace, and the Matern-3/2 density sqrt3/(4 rho) (1 + u) exp(-u), u = sqrt3 |e|/rho, which is an equal
 * mixture of exponential and Gamma(2) sizes. Laplace has exact expectations by erf; Laplace and Matern exact predictive
 * densities by tilted normal integrals over either sign of e.
 */
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/formulas/robust.h"
#include "likelihood/incomplete.h"
#include "likelihood/rows.h"
#include "linalg/vector.h"

enum { CHUNK = 256 };

static void location_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)lik;
    f[0] = isnan(y[0]) ? 0.0 : y[0];
}

/* Moments of y = f + e when e has this mean (0, or NaN where there is none) and variance; v: of f, or NULL. */
static void location_moments(int64_t n, const double *f, const double *v, double noise_mean, double noise_variance,
                             double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        mean[i] = f[i] + noise_mean;
        variance[i] = (v != NULL ? v[i] : 0.0) + noise_variance;
    }
}

/* --- Student-t; parameters nu, scale ---------------------------------------------------------------------------------
 */

/* Beyond this many degrees of freedom the digits that 1 + z^2/nu drops would show, times nu/2, in the density. */
static const double LARGE_NU = 1e3;

static void student_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    double nu = lik->value[0], scale = lik->value[1];
    double constant = thi_student_constant(nu, scale);
    double buffer[CHUNK];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        for (int64_t i = 0; i < count; i++) {
            double ratio = thi_student_ratio(nu, scale, y[first + i], f[first + i]);
            buffer[i] = nu > LARGE_NU ? log1p(ratio) : 1.0 + ratio;
        }
        if (nu <= LARGE_NU) {
            thi_vector()->log(count, buffer, buffer);
        }
        for (int64_t i = 0; i < count; i++) {
            bool there = y[first + i] == y[first + i];
            out[first + i] = there ? thi_student_density(constant, nu, buffer[i]) : 0.0;
        }
    }
}

static void student_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                                double *d2)
{
    double nu = lik->value[0], scale = lik->value[1];
    for (int64_t i = 0; i < n; i++) {
        bool there = y[i] == y[i];
        double d[2];
        thi_student_derivatives(nu, scale, y[i], f[i], d);
        d1[i] = there ? d[0] : 0.0;
        d2[i] = there ? d[1] : 0.0;
    }
}

static void student_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_student_phi);
}

/* log p is analytic but for y +- i scale sqrt(nu); a third of that distance is the scale on which it bends. */
static int student_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    bend[0] = (thi_bend){y[0], lik->value[1] * sqrt(lik->value[0]) / 3.0};
    return 1;
}

/* There is no mean for nu <= 1 and no finite variance for nu <= 2. */
static void student_moments(const thiele_likelihood *lik, int64_t n, const double *f, const double *v, double *mean,
                            double *variance)
{
    double nu = lik->value[0], scale = lik->value[1];
    double spread = nu > 2.0 ? scale * scale * nu / (nu - 2.0) : INFINITY;
    location_moments(n, f, v, nu > 1.0 ? 0.0 : NAN, spread, mean, variance);
}

static void student_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean,
                                double *variance)
{
    student_moments(lik, n, f, NULL, mean, variance);
}

static double student_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double nu = lik->value[0], t = (y - f[0]) / lik->value[1];
    if (isinf(t)) {
        return t > 0 ? 1.0 : 0.0;
    }
    double inner = t * t / (nu + t * t), outer = nu / (nu + t * t);
    if (t * t < nu) {
        return 0.5 + copysign(0.5, t) * thi_beta_lower(0.5, 0.5 * nu, inner, outer);
    }
    double tail = 0.5 * thi_beta_lower(0.5 * nu, 0.5, outer, inner);
    return t > 0 ? 1.0 - tail : tail;
}

/* Bailey (1994): the polar method's radius with the tail of a t. */
static void student_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double nu = lik->value[0];
    double radius = sqrt(nu * expm1(-2.0 / nu * log(thi_random_uniform(stream, 2 * draw))));
    y[0] = f[0] + lik->value[1] * radius * cos(2.0 * M_PI * thi_random_uniform(stream, 2 * draw + 1));
}

thiele_status thi_make_student_t(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    thiele_status status = thi_likelihood_add_phi(lik, ctx, "nu", 4.0, true);
    if (status == THIELE_OK) {
        lik->phi[0].least = 2.0;  /* below it y has no variance, and from 1 on no mean */
        lik->phi[0].most = 100.0; /* beyond it the noise is Gaussian, as nearly as rows can tell: it would run away */
        status = thi_likelihood_add_scaled(lik, ctx, "scale", 0.3, true, 1);
    }
    return status;
}

const thi_likelihood_ops thi_lik_student_t = {
    .name = "student-t",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .log_density = student_density,
    .derivatives = student_derivatives,
    .phi_derivatives = student_phi,
    .bends = student_bends,
    .conditional = student_conditional,
    .predictive = student_moments,
    .cdf = student_cdf,
    .sample = student_sample,
    .guess = location_guess,
    .augmentation = &thi_aug_student_t,
};

/* --- Laplace; parameter beta -----------------------------------------------------------------------------------------
 */

static void laplace_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    double over = 1.0 / lik->value[0], constant = thi_laplace_constant(lik->value[0]);
    for (int64_t i = 0; i < n; i++) {
        out[i] = y[i] == y[i] ? constant - thi_laplace_size(over, y[i], f[i]) : 0.0;
    }
}

static void laplace_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    double over = 1.0 / lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        dphi[i] = y[i] == y[i] ? thi_laplace_size(over, y[i], f[i]) - 1.0 : 0.0;
    }
}

static void laplace_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, thi_laplace_expectation);
}

static int laplace_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)lik;
    bend[0] = (thi_bend){y[0], 0.0};
    return 1;
}

static void laplace_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                               double *variance)
{
    location_moments(n, mu, v, 0.0, 2.0 * lik->value[0] * lik->value[0], mean, variance);
}

static void laplace_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean,
                                double *variance)
{
    laplace_predictive(lik, n, f, NULL, mean, variance);
}

static void laplace_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                   const double *v, double *out)
{
    double beta = lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        double s = sqrt(fmax(v[i], THI_LEAST_VARIANCE)), z = (y[i] - mu[i]) / s;
        double both = thi_log_add(thi_log_phi_tilted(z, s / beta), thi_log_phi_tilted(-z, s / beta));
        out[i] = isnan(y[i]) ? 0.0 : both - log(2.0 * beta);
    }
}

/* P(t > 0) less the upper tail of e where t = y - f > 0, plus the lower one where t < 0. */
static double laplace_predictive_cdf(const thiele_likelihood *lik, int output, double y, const double *mu,
                                     const double *v)
{
    (void)output;
    double s = sqrt(fmax(v[0], THI_LEAST_VARIANCE)), z = (y - mu[0]) / s, k = s / lik->value[0];
    return thi_normal_cdf(z) - 0.5 * exp(thi_log_phi_tilted(z, k)) + 0.5 * exp(thi_log_phi_tilted(-z, k));
}

/* P(Y <= y) of a symmetric law from its upper tail P(e > |y - f|). */
static double two_sided(double y, double f, double tail)
{
    return y > f ? 1.0 - tail : tail;
}

static double laplace_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    return two_sided(y, f[0], 0.5 * exp(-fabs(y - f[0]) / lik->value[0]));
}

/* The difference of two exponential variables. */
static void laplace_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double up = log(thi_random_uniform(stream, 2 * draw)), down = log(thi_random_uniform(stream, 2 * draw + 1));
    y[0] = f[0] + lik->value[0] * (down - up);
}

thiele_status thi_make_laplace(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return thi_likelihood_add_scaled(lik, ctx, "beta", 0.2, true, 1);
}

/* No derivatives: the second one is not a function at f = y, and its mean under a Gaussian would be lost. */
const thi_likelihood_ops thi_lik_laplace = {
    .name = "laplace",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .log_density = laplace_density,
    .phi_derivatives = laplace_phi,
    .expectation = laplace_expectation,
    .bends = laplace_bends,
    .conditional = laplace_conditional,
    .predictive = laplace_predictive,
    .log_predictive = laplace_log_predictive,
    .predictive_cdf = laplace_predictive_cdf,
    .cdf = laplace_cdf,
    .sample = laplace_sample,
    .guess = location_guess,
    .augmentation = &thi_aug_laplace,
};

/* --- Matern-3/2; parameter rho ---------------------------------------------------------------------------------------
 */

static void matern_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    double a = THI_SQRT3 / lik->value[0], constant = log(0.25 * a);
    double buffer[CHUNK];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        for (int64_t i = 0; i < count; i++) {
            buffer[i] = 1.0 + thi_matern_size(a, y[first + i], f[first + i]);
        }
        thi_vector()->log(count, buffer, buffer);
        for (int64_t i = 0; i < count; i++) {
            double u = thi_matern_size(a, y[first + i], f[first + i]);
            out[first + i] = y[first + i] == y[first + i] ? thi_matern_density(constant, u, buffer[i]) : 0.0;
        }
    }
}

static void matern_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                               double *d2)
{
    double a = THI_SQRT3 / lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        bool there = y[i] == y[i];
        double d[2];
        thi_matern_derivatives(a, y[i], f[i], d);
        d1[i] = there ? d[0] : 0.0;
        d2[i] = there ? d[1] : 0.0;
    }
}

static void matern_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    double a = THI_SQRT3 / lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        double u = thi_matern_size(a, y[i], f[i]);
        dphi[i] = y[i] == y[i] ? u * u / (1.0 + u) - 1.0 : 0.0;
    }
}

/* The third derivative jumps at y; either side alone is singular rho/sqrt3 behind it. */
static int matern_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    bend[0] = (thi_bend){y[0], 0.0};
    bend[1] = (thi_bend){y[0], lik->value[0] / THI_SQRT3};
    return 2;
}

static void matern_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                              double *variance)
{
    location_moments(n, mu, v, 0.0, 4.0 / 3.0 * lik->value[0] * lik->value[0], mean, variance);
}

static void matern_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    matern_predictive(lik, n, f, NULL, mean, variance);
}

/* log of the integral of (1 + k t) exp(-k t) N(t; z, 1) over t > 0: the mean of t under the tilted normal, cut at 0, is
 * x + phi(x)/Phi(x), x = z - k. */
static double matern_side(double z, double k)
{
    return thi_log_phi_tilted(z, k) + log1p(k * thi_mills_excess(z - k));
}

static void matern_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *out)
{
    double a = THI_SQRT3 / lik->value[0];
    for (int64_t i = 0; i < n; i++) {
        double s = sqrt(fmax(v[i], THI_LEAST_VARIANCE)), z = (y[i] - mu[i]) / s;
        double both = thi_log_add(matern_side(z, a * s), matern_side(-z, a * s));
        out[i] = isnan(y[i]) ? 0.0 : both + log(0.25 * a);
    }
}

/* The integral of (1/2 + k t/4) exp(-k t) N(t; z, 1) over t > 0, the upper tail of e. */
static double matern_tail(double z, double k)
{
    return exp(thi_log_phi_tilted(z, k)) * (0.5 + 0.25 * k * thi_mills_excess(z - k));
}

static double matern_predictive_cdf(const thiele_likelihood *lik, int output, double y, const double *mu,
                                    const double *v)
{
    (void)output;
    double s = sqrt(fmax(v[0], THI_LEAST_VARIANCE)), z = (y - mu[0]) / s, k = THI_SQRT3 / lik->value[0] * s;
    return thi_normal_cdf(z) - matern_tail(z, k) + matern_tail(-z, k);
}

static double matern_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double u = fmin(THI_SQRT3 / lik->value[0] * fabs(y - f[0]), 1e300);
    return two_sided(y, f[0], (0.5 + 0.25 * u) * exp(-u));
}

static void matern_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    uint64_t coins = thi_random_bits(stream, 4 * draw);
    double size = -log(thi_random_uniform(stream, 4 * draw + 1));
    if (coins >> 63) {
        size -= log(thi_random_uniform(stream, 4 * draw + 2));
    }
    y[0] = f[0] + (coins >> 62 & 1 ? size : -size) * lik->value[0] / THI_SQRT3;
}

thiele_status thi_make_matern32(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return thi_likelihood_add_scaled(lik, ctx, "rho", 0.3, true, 1);
}

const thi_likelihood_ops thi_lik_matern32 = {
    .name = "matern32",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .log_density = matern_density,
    .derivatives = matern_derivatives,
    .phi_derivatives = matern_phi,
    .bends = matern_bends,
    .conditional = matern_conditional,
    .predictive = matern_predictive,
    .log_predictive = matern_log_predictive,
    .predictive_cdf = matern_predictive_cdf,
    .cdf = matern_cdf,
    .sample = matern_sample,
    .guess = location_guess,
    .augmentation = &thi_aug_matern32,
};

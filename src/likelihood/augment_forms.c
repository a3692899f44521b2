/*
 * The forms of the built-in likelihoods (augmented-aaci, table 1, with the errata of MATH.md section 8): Student-t,
 * Laplace, Matern-3/2, logistic and the Bayesian SVM; and by Polya-Gamma variables (Polson, Scott and Windle 2013) the
 * binomial and the negative binomial, whose phi is cosh(sqrt(r)/2)^-b with b successes and failures. All work with log
 * phi and neither cancel nor overflow for r from 0 to 1e12 and beyond.
 */
#include <math.h>

#include "likelihood/augment.h"
#include "likelihood/families.h"
#include "likelihood/omega_draws.h"
#include "likelihood/plane.h"
#include "likelihood/polya_gamma.h"
#include "likelihood/special.h"
#include "likelihood/stirling.h"

/* y = f + e: r = (f - y)^2/scale^2. */
static thi_coefficients located(double log_C, double y, double scale)
{
    double z = y / scale;
    return (thi_coefficients){log_C, 0.0, z * z, 2.0 * z / scale, 1.0 / (scale * scale)};
}

/* --- Student-t: phi = (1 + r/nu)^-(nu+1)/2; omega ~ Gamma((nu + 1)/2, rate nu + r) ----------------------------------
 */

static void student_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    double nu = lik->value[0], scale = lik->value[1];
    *out = located(thi_lgamma_rise(0.5 * nu, 0.5) - 0.5 * log(nu * M_PI) - log(scale), y, scale);
}

static void student_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    (void)y;
    double nu = lik->value[0], shape = 0.5 * (nu + 1.0), mean = shape / (nu + r);
    *out = (thi_omega){-shape * log1p(r / nu), mean, mean / (nu + r)};
}

static double complex student_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    (void)y;
    double nu = lik->value[0];
    return -0.5 * (nu + 1.0) * thi_plane_log1p(r / nu);
}

static double student_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    (void)y;
    double nu = lik->value[0];
    return thi_draw_gamma(stream, draw * THI_OMEGA, 0.5 * (nu + 1.0), nu + r);
}

static void student_phi(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    double nu = lik->value[0], scale = lik->value[1], z = (y - mu) / scale, r = z * z + v / (scale * scale);
    double share = (nu + 1.0) * r / (nu + r);
    dphi[0] = 0.5 * (nu * (thi_digamma_rise(0.5 * nu, 0.5) - log1p(r / nu)) - 1.0 + share);
    dphi[1] = share - 1.0;
}

static const thi_form student_form = {.coefficients = student_coefficients,
                                      .omega = student_omega,
                                      .log_phi = student_log_phi,
                                      .draw = student_draw,
                                      .phi_derivatives = student_phi};
const thi_augmentation thi_aug_student_t = {.form = &student_form};

/* --- phi = exp(-sqrt(r)/b), Laplace and with b = 1 the SVM; omega ~ IG(mean 1/(2 b c), shape 1/(2 b^2)), c = sqrt(r) -
 */

/* Its mean grows without bound at r = 0; c below this many b counts as that, a site of precision 1e10/b^2. */
static const double LEAST_C = 1e-10;

static thi_omega root_omega(double b, double r)
{
    double c = sqrt(r), kept = fmax(c, LEAST_C * b), mean = 0.5 / (b * kept);
    return (thi_omega){-c / b, mean, 0.5 * mean / (kept * kept)};
}

static double root_draw(double b, double r, thi_stream stream, uint64_t draw)
{
    return thi_draw_inverse_gaussian(stream, draw * THI_OMEGA, 2.0 * b * sqrt(r), 0.5 / (b * b));
}

static void laplace_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    *out = located(-log(2.0 * lik->value[0]), y, 1.0);
}

static void laplace_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    (void)y;
    *out = root_omega(lik->value[0], r);
}

static double complex laplace_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    (void)y;
    return -csqrt(r) / lik->value[0];
}

static double laplace_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    (void)y;
    return root_draw(lik->value[0], r, stream, draw);
}

static void laplace_phi(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    dphi[0] = sqrt((y - mu) * (y - mu) + v) / lik->value[0] - 1.0;
}

static const thi_form laplace_form = {.coefficients = laplace_coefficients,
                                      .omega = laplace_omega,
                                      .log_phi = laplace_log_phi,
                                      .draw = laplace_draw,
                                      .phi_derivatives = laplace_phi};
const thi_augmentation thi_aug_laplace = {.form = &laplace_form};

/* -2 max(0, 1 - y f) = -1 + y f - |1 - y f| */
static void svm_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    (void)lik;
    *out = (thi_coefficients){-1.0, y, 1.0, 2.0 * y, 1.0};
}

static void svm_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    (void)lik;
    (void)y;
    *out = root_omega(1.0, r);
}

static double complex svm_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    (void)lik;
    (void)y;
    return -csqrt(r);
}

static double svm_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    (void)lik;
    (void)y;
    return root_draw(1.0, r, stream, draw);
}

static const thi_form svm_form = {
    .coefficients = svm_coefficients, .omega = svm_omega, .log_phi = svm_log_phi, .draw = svm_draw};
const thi_augmentation thi_aug_svm = {.form = &svm_form};

/* --- Matern-3/2: phi = (1 + u) exp(-u), u = sqrt(3r)/rho; omega has the density x^(-5/2) exp(-3/(4 rho^2 x) - r x) ---
 */

static void matern_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    *out = located(log(sqrt(3.0) / (4.0 * lik->value[0])), y, 1.0);
}

/* The variance is infinite at r = 0, and so it is said. */
static void matern_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    (void)y;
    double rho = lik->value[0], u = sqrt(3.0 * r) / rho, mean = 1.5 / (rho * rho * (1.0 + u));
    *out = (thi_omega){-thi_log_excess(u, 1.0 + u), mean, mean * mean / u};
}

static double complex matern_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    (void)y;
    double complex u = csqrt(3.0 * r) / lik->value[0];
    return thi_plane_log1p(u) - u;
}

static double matern_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    (void)y;
    double rho = lik->value[0];
    return 1.0 / thi_draw_inverse_gaussian_general(stream, draw * THI_OMEGA, 1.5, 0.75 / (rho * rho), r);
}

static void matern_phi(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    double u = sqrt(3.0 * ((y - mu) * (y - mu) + v)) / lik->value[0];
    dphi[0] = u * (u / (1.0 + u)) - 1.0;
}

static const thi_form matern_form = {.coefficients = matern_coefficients,
                                     .omega = matern_omega,
                                     .log_phi = matern_log_phi,
                                     .draw = matern_draw,
                                     .phi_derivatives = matern_phi};
const thi_augmentation thi_aug_matern32 = {.form = &matern_form};

/* --- phi = cosh(sqrt(r)/2)^-b; omega is half a Polya-Gamma(b, sqrt(r)) variable --------------------------------------
 */

static double complex cosh_log_phi(double b, double complex r)
{
    return -b * thi_plane_log_cosh(0.5 * csqrt(r));
}

static double cosh_draw(double b, double r, thi_stream stream, uint64_t draw)
{
    return 0.5 * thi_draw_polya_gamma(stream, draw * THI_OMEGA, b, sqrt(r));
}

/* sigmoid(y f) = exp(y f/2)/(2 cosh(f/2)) */
static void logit_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    (void)lik;
    *out = (thi_coefficients){-M_LN2, 0.5 * y, 0.0, 0.0, 1.0};
}

static void logit_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    (void)lik;
    (void)y;
    *out = thi_polya_gamma(1.0, r);
}

static double complex logit_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    (void)lik;
    (void)y;
    return cosh_log_phi(1.0, r);
}

static double logit_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    (void)lik;
    (void)y;
    return cosh_draw(1.0, r, stream, draw);
}

static const thi_form logit_form = {
    .coefficients = logit_coefficients, .omega = logit_omega, .log_phi = logit_log_phi, .draw = logit_draw};
const thi_augmentation thi_aug_bernoulli = {.form = &logit_form};

/* s(f)^y s(-f)^(n-y) = exp((y - n/2) f) (2 cosh(f/2))^-n */
static void binomial_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    double n = lik->value[0], choose = y <= n ? thi_log_choose(n, y) : -INFINITY;
    *out = (thi_coefficients){choose - n * M_LN2, y - 0.5 * n, 0.0, 0.0, 1.0};
}

static void binomial_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    (void)y;
    *out = thi_polya_gamma(lik->value[0], r);
}

static double complex binomial_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    (void)y;
    return cosh_log_phi(lik->value[0], r);
}

static double binomial_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    (void)y;
    return cosh_draw(lik->value[0], r, stream, draw);
}

static void binomial_phi(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    double n = lik->value[0], log_phi = thi_polya_gamma(1.0, mu * mu + v).log_phi;
    dphi[0] = y <= n ? n * (thi_digamma_rise(n - y + 1.0, y) - M_LN2 - 0.5 * mu + log_phi) : 0.0;
}

static const thi_form binomial_form = {.coefficients = binomial_coefficients,
                                       .omega = binomial_omega,
                                       .log_phi = binomial_log_phi,
                                       .draw = binomial_draw,
                                       .phi_derivatives = binomial_phi};
const thi_augmentation thi_aug_binomial = {.form = &binomial_form};

/* With t = f - log r, s(t)^y s(-t)^r = exp((y - r) t/2) (2 cosh(t/2))^-(y+r) */
static void negbin_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    double r = lik->value[0], L = log(r), log_C = thi_lgamma_rise(r, y) - thi_lgamma(y + 1.0) - (y + r) * M_LN2;
    *out = (thi_coefficients){log_C - 0.5 * (y - r) * L, 0.5 * (y - r), L * L, 2.0 * L, 1.0};
}

static void negbin_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    *out = thi_polya_gamma(y + lik->value[0], r);
}

static double complex negbin_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    return cosh_log_phi(y + lik->value[0], r);
}

static double negbin_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    return cosh_draw(y + lik->value[0], r, stream, draw);
}

/* d/dr of log Gamma(y + r) - log Gamma(r) - (y + r) log 2 + (y - r) t/2 - (y + r) log cosh(c/2), c^2 = t^2 + v, times
 * r; dt/dr = -1/r. */
static void negbin_phi(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    double r = lik->value[0], t = mu - log(r);
    thi_omega one = thi_polya_gamma(1.0, t * t + v);
    dphi[0] =
        r * (thi_digamma_rise(r, y) - M_LN2 - 0.5 * t + one.log_phi) - 0.5 * (y - r) + 2.0 * (y + r) * one.mean * t;
}

static const thi_form negbin_form = {.coefficients = negbin_coefficients,
                                     .omega = negbin_omega,
                                     .log_phi = negbin_log_phi,
                                     .draw = negbin_draw,
                                     .phi_derivatives = negbin_phi};
const thi_augmentation thi_aug_negative_binomial = {.form = &negbin_form};

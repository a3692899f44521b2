/*
 * The forms of the built-in likelihoods (likelihood/formulas/augmented.h) as tables, with log phi on complex arguments
 * and exact draws of omega.
 */
#include <math.h>

#include "likelihood/augment.h"
#include "likelihood/families.h"
#include "likelihood/omega_draws.h"
#include "likelihood/plane.h"
#include "likelihood/rows.h"

/* The formulas of one family as functions of a likelihood, and what goes into its table. */
#define FORM(family)                                                                                                   \
    static void family##_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)                   \
    {                                                                                                                  \
        *out = thi_##family##_coefficients(thi_values_of(lik), y);                                                     \
    }                                                                                                                  \
    static void family##_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)                       \
    {                                                                                                                  \
        *out = thi_##family##_omega(thi_values_of(lik), y, r);                                                         \
    }

#define FORM_PHI(family)                                                                                               \
    static void family##_phi(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)                \
    {                                                                                                                  \
        thi_##family##_bound_phi(thi_values_of(lik), y, mu, v, dphi);                                                  \
    }

FORM(student)
FORM(laplace)
FORM(svm)
FORM(matern)
FORM(logit)
FORM(binomial)
FORM(negbin)
FORM_PHI(student)
FORM_PHI(laplace)
FORM_PHI(matern)
FORM_PHI(binomial)
FORM_PHI(negbin)

/* --- Student-t: phi = (1 + r/nu)^-(nu+1)/2; omega ~ Gamma((nu + 1)/2, rate nu + r) ----------------------------------
 */

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

static const thi_form student_form = {.coefficients = student_coefficients,
                                      .omega = student_omega,
                                      .log_phi = student_log_phi,
                                      .draw = student_draw,
                                      .phi_derivatives = student_phi};
const thi_augmentation thi_aug_student_t = {.form = &student_form};

/* --- phi = exp(-sqrt(r)/b), Laplace and with b = 1 the SVM; omega ~ IG(mean 1/(2 b c), shape 1/(2 b^2)), c = sqrt(r) -
 */

static double root_draw(double b, double r, thi_stream stream, uint64_t draw)
{
    return thi_draw_inverse_gaussian(stream, draw * THI_OMEGA, 2.0 * b * sqrt(r), 0.5 / (b * b));
}

static void root_draws(double b, int64_t n, const double *r, thi_stream stream, uint64_t draw, double *omega)
{
    for (int64_t i = 0; i < n; i++) {
        omega[i] = 2.0 * b * sqrt(r[i]);
    }
    thi_draw_inverse_gaussian_rows(stream, draw, n, omega, 0.5 / (b * b), omega);
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

static void laplace_draws(const thiele_likelihood *lik, int64_t n, const double *y, const double *r, thi_stream stream,
                          uint64_t draw, double *omega)
{
    (void)y;
    root_draws(lik->value[0], n, r, stream, draw, omega);
}

static const thi_form laplace_form = {.coefficients = laplace_coefficients,
                                      .omega = laplace_omega,
                                      .log_phi = laplace_log_phi,
                                      .draw = laplace_draw,
                                      .draws = laplace_draws,
                                      .phi_derivatives = laplace_phi};
const thi_augmentation thi_aug_laplace = {.form = &laplace_form};

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

static void svm_draws(const thiele_likelihood *lik, int64_t n, const double *y, const double *r, thi_stream stream,
                      uint64_t draw, double *omega)
{
    (void)lik;
    (void)y;
    root_draws(1.0, n, r, stream, draw, omega);
}

static const thi_form svm_form = {
    .coefficients = svm_coefficients, .omega = svm_omega, .log_phi = svm_log_phi, .draw = svm_draw, .draws = svm_draws};
const thi_augmentation thi_aug_svm = {.form = &svm_form};

/* --- Matern-3/2: phi = (1 + u) exp(-u), u = sqrt(3r)/rho; omega has the density x^(-5/2) exp(-3/(4 rho^2 x) - r x) ---
 */

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

static void logit_draws(const thiele_likelihood *lik, int64_t n, const double *y, const double *r, thi_stream stream,
                        uint64_t draw, double *omega)
{
    (void)lik;
    (void)y;
    for (int64_t i = 0; i < n; i++) {
        omega[i] = sqrt(r[i]);
    }
    thi_draw_polya_gamma_rows(stream, draw, n, omega, omega);
    for (int64_t i = 0; i < n; i++) {
        omega[i] *= 0.5;
    }
}

static const thi_form logit_form = {.coefficients = logit_coefficients,
                                    .omega = logit_omega,
                                    .log_phi = logit_log_phi,
                                    .draw = logit_draw,
                                    .draws = logit_draws};
const thi_augmentation thi_aug_bernoulli = {.form = &logit_form};

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

static const thi_form binomial_form = {.coefficients = binomial_coefficients,
                                       .omega = binomial_omega,
                                       .log_phi = binomial_log_phi,
                                       .draw = binomial_draw,
                                       .phi_derivatives = binomial_phi};
const thi_augmentation thi_aug_binomial = {.form = &binomial_form};

static double complex negbin_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    return cosh_log_phi(y + lik->value[0], r);
}

static double negbin_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    return cosh_draw(y + lik->value[0], r, stream, draw);
}

static const thi_form negbin_form = {.coefficients = negbin_coefficients,
                                     .omega = negbin_omega,
                                     .log_phi = negbin_log_phi,
                                     .draw = negbin_draw,
                                     .phi_derivatives = negbin_phi};
const thi_augmentation thi_aug_negative_binomial = {.form = &negbin_form};

/*
 * The forms of the built-in likelihoods (augmented-aaci, table 1, with the errata of math.md section 11): Student-t,
 * Laplace, Matern-3/2, logistic and the Bayesian SVM; and by Polya-Gamma variables (Polson, Scott and Windle 2013) the
 * binomial and the negative binomial, whose phi is cosh(sqrt(r)/2)^-b with b successes and failures. All work with log
 * phi and neither cancel nor overflow for r from 0 to 1e12 and beyond. From a form the bound and the Gaussian site
 * follow.
 */
#ifndef THI_FORMULAS_AUGMENTED_H
#define THI_FORMULAS_AUGMENTED_H

#include <float.h>

#include "likelihood/formulas/counts.h"
#include "likelihood/formulas/robust.h"

/* --- from a form to a row -------------------------------------------------------------------------------------------
 */

/*
 * r = E[alpha - beta f + gamma f^2] under f ~ N(mu, v), written as gamma ((mu - centre)^2 + v) + rest so that a
 * residual that is small beside y keeps its digits.
 */
typedef struct thi_square {
    double centre, rest;
} thi_square;

THI_POINTWISE thi_square thi_complete_square(const thi_coefficients *c)
{
    thi_square square = {0.0, c->alpha};
    if (c->gamma > 0.0) {
        square.centre = 0.5 * c->beta / c->gamma;
        square.rest = c->alpha - 0.5 * c->beta * square.centre;
        /* Most are squares (f - y)^2: what is left of alpha is rounding then. */
        square.rest = fabs(square.rest) <= 8.0 * DBL_EPSILON * fabs(c->alpha) ? 0.0 : square.rest;
    }
    return square;
}

THI_POINTWISE double thi_expected_square(const thi_coefficients *c, double mu, double v)
{
    thi_square s = thi_complete_square(c);
    double d = mu - s.centre;
    return fmax(0.0, c->gamma * (d * d + v) + s.rest);
}

/* The bound at the omega of the expected square, and its derivatives. */
THI_POINTWISE thi_row thi_form_row(const thi_coefficients *c, const thi_omega *omega, double mu)
{
    double h = -c->gamma * omega->mean;
    return thi_row_of(c->log_C + c->g * mu + omega->log_phi, c->g + 2.0 * h * (mu - thi_complete_square(c).centre), h);
}

THI_POINTWISE thi_coefficients thi_coefficients_of(double log_C, double g, double alpha, double beta, double gamma)
{
    thi_coefficients c = {log_C, g, alpha, beta, gamma};
    return c;
}

/* y = f + e: r = (f - y)^2/scale^2. */
THI_POINTWISE thi_coefficients thi_located(double log_C, double y, double scale)
{
    double z = y / scale;
    return thi_coefficients_of(log_C, 0.0, z * z, 2.0 * z / scale, 1.0 / (scale * scale));
}

/* --- Student-t: phi = (1 + r/nu)^-(nu+1)/2; omega ~ Gamma((nu + 1)/2, rate nu + r) ----------------------------------
 */

THI_POINTWISE thi_coefficients thi_student_coefficients(thi_values phi, double y)
{
    return thi_located(thi_student_constant(phi.value[0], phi.value[1]), y, phi.value[1]);
}

THI_POINTWISE thi_omega thi_student_omega(thi_values phi, double y, double r)
{
    (void)y;
    double nu = phi.value[0], shape = 0.5 * (nu + 1.0), mean = shape / (nu + r);
    return thi_omega_of(-shape * log1p(r / nu), mean, mean / (nu + r));
}

THI_POINTWISE void thi_student_bound_phi(thi_values phi, double y, double mu, double v, double *dphi)
{
    double nu = phi.value[0], scale = phi.value[1], z = (y - mu) / scale, r = z * z + v / (scale * scale);
    double share = (nu + 1.0) * r / (nu + r);
    dphi[0] = 0.5 * (nu * (thi_digamma_rise(0.5 * nu, 0.5) - log1p(r / nu)) - 1.0 + share);
    dphi[1] = share - 1.0;
}

/* --- phi = exp(-sqrt(r)/b), Laplace and with b = 1 the SVM; omega ~ IG(mean 1/(2 b c), shape 1/(2 b^2)), c = sqrt(r) -
 */

/* Its mean grows without bound at r = 0; c below this many b counts as that, a site of precision 1e10/b^2. */
#define THI_LEAST_C 1e-10

THI_POINTWISE thi_omega thi_root_omega(double b, double r)
{
    double c = sqrt(r), kept = fmax(c, THI_LEAST_C * b), mean = 0.5 / (b * kept);
    return thi_omega_of(-c / b, mean, 0.5 * mean / (kept * kept));
}

THI_POINTWISE thi_coefficients thi_laplace_coefficients(thi_values phi, double y)
{
    return thi_located(thi_laplace_constant(phi.value[0]), y, 1.0);
}

THI_POINTWISE thi_omega thi_laplace_omega(thi_values phi, double y, double r)
{
    (void)y;
    return thi_root_omega(phi.value[0], r);
}

THI_POINTWISE void thi_laplace_bound_phi(thi_values phi, double y, double mu, double v, double *dphi)
{
    dphi[0] = sqrt((y - mu) * (y - mu) + v) / phi.value[0] - 1.0;
}

/* -2 max(0, 1 - y f) = -1 + y f - |1 - y f| */
THI_POINTWISE thi_coefficients thi_svm_coefficients(thi_values phi, double y)
{
    (void)phi;
    return thi_coefficients_of(-1.0, y, 1.0, 2.0 * y, 1.0);
}

THI_POINTWISE thi_omega thi_svm_omega(thi_values phi, double y, double r)
{
    (void)phi;
    (void)y;
    return thi_root_omega(1.0, r);
}

/* --- Matern-3/2: phi = (1 + u) exp(-u), u = sqrt(3r)/rho; omega has the density x^(-5/2) exp(-3/(4 rho^2 x) - r x) ---
 */

THI_POINTWISE thi_coefficients thi_matern_coefficients(thi_values phi, double y)
{
    return thi_located(log(sqrt(3.0) / (4.0 * phi.value[0])), y, 1.0);
}

/* The variance is infinite at r = 0, and so it is said. */
THI_POINTWISE thi_omega thi_matern_omega(thi_values phi, double y, double r)
{
    (void)y;
    double rho = phi.value[0], u = sqrt(3.0 * r) / rho, mean = 1.5 / (rho * rho * (1.0 + u));
    return thi_omega_of(-thi_log_excess(u, 1.0 + u), mean, mean * mean / u);
}

THI_POINTWISE void thi_matern_bound_phi(thi_values phi, double y, double mu, double v, double *dphi)
{
    double u = sqrt(3.0 * ((y - mu) * (y - mu) + v)) / phi.value[0];
    dphi[0] = u * (u / (1.0 + u)) - 1.0;
}

/* --- phi = cosh(sqrt(r)/2)^-b; omega is half a Polya-Gamma(b, sqrt(r)) variable --------------------------------------
 */

/* sigmoid(y f) = exp(y f/2)/(2 cosh(f/2)) */
THI_POINTWISE thi_coefficients thi_logit_coefficients(thi_values phi, double y)
{
    (void)phi;
    return thi_coefficients_of(-M_LN2, 0.5 * y, 0.0, 0.0, 1.0);
}

THI_POINTWISE thi_omega thi_logit_omega(thi_values phi, double y, double r)
{
    (void)phi;
    (void)y;
    return thi_polya_gamma(1.0, r);
}

/* s(f)^y s(-f)^(n-y) = exp((y - n/2) f) (2 cosh(f/2))^-n */
THI_POINTWISE thi_coefficients thi_binomial_coefficients(thi_values phi, double y)
{
    double n = phi.value[0], choose = y <= n ? thi_log_choose(n, y) : -INFINITY;
    return thi_coefficients_of(choose - n * M_LN2, y - 0.5 * n, 0.0, 0.0, 1.0);
}

THI_POINTWISE thi_omega thi_binomial_omega(thi_values phi, double y, double r)
{
    (void)y;
    return thi_polya_gamma(phi.value[0], r);
}

THI_POINTWISE void thi_binomial_bound_phi(thi_values phi, double y, double mu, double v, double *dphi)
{
    double n = phi.value[0], log_phi = thi_polya_gamma(1.0, mu * mu + v).log_phi;
    dphi[0] = y <= n ? n * (thi_digamma_rise(n - y + 1.0, y) - M_LN2 - 0.5 * mu + log_phi) : 0.0;
}

/* With t = f - log r, s(t)^y s(-t)^r = exp((y - r) t/2) (2 cosh(t/2))^-(y+r) */
THI_POINTWISE thi_coefficients thi_negbin_coefficients(thi_values phi, double y)
{
    double r = phi.value[0], L = log(r), log_C = thi_lgamma_rise(r, y) - thi_lgamma(y + 1.0) - (y + r) * M_LN2;
    return thi_coefficients_of(log_C - 0.5 * (y - r) * L, 0.5 * (y - r), L * L, 2.0 * L, 1.0);
}

THI_POINTWISE thi_omega thi_negbin_omega(thi_values phi, double y, double r)
{
    return thi_polya_gamma(y + phi.value[0], r);
}

/* d/dr of log Gamma(y + r) - log Gamma(r) - (y + r) log 2 + (y - r) t/2 - (y + r) log cosh(c/2), c^2 = t^2 + v, times
 * r; dt/dr = -1/r. */
THI_POINTWISE void thi_negbin_bound_phi(thi_values phi, double y, double mu, double v, double *dphi)
{
    double r = phi.value[0], t = mu - log(r);
    thi_omega one = thi_polya_gamma(1.0, t * t + v);
    dphi[0] =
        r * (thi_digamma_rise(r, y) - M_LN2 - 0.5 * t + one.log_phi) - 0.5 * (y - r) + 2.0 * (y + r) * one.mean * t;
}

#endif

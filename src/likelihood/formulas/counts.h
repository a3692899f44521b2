/* Counts: Poisson, negative binomial, binomial (likelihood/counts.c) and the sigmoid Poisson (sigmoid_poisson.c). */
#ifndef THI_FORMULAS_COUNTS_H
#define THI_FORMULAS_COUNTS_H

#include "likelihood/formulas/values.h"
#include "likelihood/polya_gamma.h"
#include "likelihood/stirling.h"

/* --- poisson: log p = y eta - exp(eta) - log y!, eta = f + offset --- */

THI_POINTWISE double thi_poisson_constant(thi_values phi, double y)
{
    (void)phi;
    return y >= 0 ? -thi_lgamma(y + 1) : -INFINITY;
}

/* Given m = exp(eta). */
THI_POINTWISE double thi_poisson_at_rate(double constant, double y, double eta, double m)
{
    return isinf(m) ? -INFINITY : constant + y * eta - m;
}

THI_POINTWISE double thi_poisson_density(thi_values phi, double constant, double y, double f)
{
    double eta = f + phi.value[0];
    return thi_poisson_at_rate(constant, y, eta, exp(eta));
}

THI_POINTWISE void thi_poisson_derivatives(thi_values phi, double y, double f, double *d)
{
    double m = exp(f + phi.value[0]);
    d[0] = y - m;
    d[1] = -m;
}

THI_POINTWISE void thi_poisson_phi(thi_values phi, double y, double f, double *dphi)
{
    dphi[0] = y - exp(f + phi.value[0]);
}

/* E[exp(eta)] = exp(mu + offset + v/2) */
THI_POINTWISE thi_row thi_poisson_expectation(thi_values phi, double y, double mu, double v, double *dphi)
{
    double eta = mu + phi.value[0], m = exp(eta + 0.5 * v);
    if (dphi) {
        dphi[0] = y - m;
    }
    double E = isinf(m) ? -INFINITY : thi_poisson_constant(phi, y) + y * eta - m;
    return thi_row_of(E, y - m, -0.5 * m);
}

/* --- negative binomial: with t = f - log r, log p = log(y + r - 1 choose y) + y log s(t) + r log s(-t) --- */

THI_POINTWISE double thi_negbin_constant(thi_values phi, double y)
{
    return y >= 0 ? thi_lgamma_rise(phi.value[0], y) - thi_lgamma(y + 1) : -INFINITY;
}

/* One softplus serves log s(t) = min(t, 0) - L and log s(-t) = -max(t, 0) - L, L = log(1 + exp(-|t|)). */
THI_POINTWISE double thi_negbin_density(thi_values phi, double constant, double y, double f)
{
    double r = phi.value[0], t = f - log(r);
    return constant + y * fmin(t, 0.0) - r * fmax(t, 0.0) - (y + r) * thi_log1pexp(-fabs(t));
}

THI_POINTWISE void thi_negbin_derivatives(thi_values phi, double y, double f, double *d)
{
    double r = phi.value[0], t = f - log(r), s = thi_sigmoid(t), o = thi_sigmoid(-t);
    d[0] = y * o - r * s;
    d[1] = -(r + y) * s * o;
}

/* d log p/dr = psi(y + r) - psi(r) - log(1 + m/r) + (m - y)/(r + m) */
THI_POINTWISE void thi_negbin_phi(thi_values phi, double y, double f, double *dphi)
{
    double r = phi.value[0], t = f - log(r);
    double slope = thi_digamma_rise(r, y) - thi_log1pexp(t) + thi_sigmoid(t) - y / r * thi_sigmoid(-t);
    dphi[0] = r * slope;
}

/* --- binomial: log p = log(n choose y) + y log s(f) + (n - y) log s(-f) --- */

THI_POINTWISE double thi_binomial_constant(thi_values phi, double y)
{
    double trials = phi.value[0];
    return y >= 0 && y <= trials ? thi_log_choose(trials, y) : -INFINITY;
}

THI_POINTWISE double thi_binomial_density(thi_values phi, double constant, double y, double f)
{
    double trials = phi.value[0];
    return constant + y * fmin(f, 0.0) - (trials - y) * fmax(f, 0.0) - trials * thi_log1pexp(-fabs(f));
}

THI_POINTWISE void thi_binomial_derivatives(thi_values phi, double y, double f, double *d)
{
    double trials = phi.value[0], s = thi_sigmoid(f), o = thi_sigmoid(-f);
    d[0] = y * o - (trials - y) * s;
    d[1] = -trials * s * o;
}

/* The number of trials is known, never learned; the derivative is that of the formula with trials a real number. */
THI_POINTWISE void thi_binomial_phi(thi_values phi, double y, double f, double *dphi)
{
    double trials = phi.value[0];
    dphi[0] = y <= trials ? trials * (thi_digamma_rise(trials - y + 1, y) + thi_log_sigmoid(-f)) : 0;
}

/* --- sigmoid Poisson: the mean is rate s(f) --- */

THI_POINTWISE double thi_sigmoid_poisson_constant(thi_values phi, double y)
{
    return y >= 0 ? y * log(phi.value[0]) - thi_lgamma(y + 1) : -INFINITY;
}

THI_POINTWISE double thi_sigmoid_poisson_density(thi_values phi, double constant, double y, double f)
{
    return constant + y * thi_log_sigmoid(f) - phi.value[0] * thi_sigmoid(f);
}

THI_POINTWISE void thi_sigmoid_poisson_derivatives(thi_values phi, double y, double f, double *d)
{
    double rate = phi.value[0], s = thi_sigmoid(f), o = thi_sigmoid(-f);
    d[0] = o * (y - rate * s);
    d[1] = -s * o * (y + rate * (o - s));
}

THI_POINTWISE void thi_sigmoid_poisson_phi(thi_values phi, double y, double f, double *dphi)
{
    dphi[0] = y - phi.value[0] * thi_sigmoid(f);
}

/*
 * The augmented bound: with c^2 = mu^2 + v, l = log cosh(c/2) and k's mean kappa = rate exp(-mu/2 - l)/2, the optimal
 * q(k, omega) gives
 *   E = y log rate - log y! - rate + y (mu/2 - l - log 2) + kappa.
 */
THI_POINTWISE thi_row thi_sigmoid_poisson_bound(thi_values phi, double y, double mu, double v, double *dphi)
{
    double rate = phi.value[0];
    thi_omega one = thi_polya_gamma(1.0, mu * mu + v);
    double kappa = rate * exp(one.log_phi - 0.5 * mu - M_LN2), weight = 2.0 * one.mean * (y + kappa);
    if (dphi) {
        dphi[0] = y - rate + kappa;
    }
    return thi_row_of(thi_sigmoid_poisson_constant(phi, y) - rate + y * (0.5 * mu + one.log_phi - M_LN2) + kappa,
                      0.5 * (y - kappa) - weight * mu, -0.5 * weight);
}

#endif

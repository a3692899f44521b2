/* Positive and bounded values: gamma, exponential, beta (likelihood/positive.c). */
#ifndef THI_FORMULAS_POSITIVE_H
#define THI_FORMULAS_POSITIVE_H

#include "likelihood/formulas/values.h"
#include "likelihood/stirling.h"

/*
 * --- gamma: with u = log y - f and k the shape, log p = k log k - log Gamma(k) - log y + k (u - e^u) ---
 * written as gap(k) - log y + k (u - expm1(u)), in which nothing large cancels for large k.
 */

/* The exponential, without parameters, has the shape 1. */
THI_POINTWISE double thi_gamma_shape(thi_values phi)
{
    return phi.count > 0 ? phi.value[0] : 1;
}

THI_POINTWISE double thi_gamma_constant(thi_values phi, double y)
{
    return y > 0 ? thi_lgamma_gap(thi_gamma_shape(phi)) - log(y) : -INFINITY;
}

THI_POINTWISE double thi_gamma_density(thi_values phi, double constant, double y, double f)
{
    double u = log(y) - f;
    return constant + thi_gamma_shape(phi) * (u - expm1(u));
}

THI_POINTWISE void thi_gamma_derivatives(thi_values phi, double y, double f, double *d)
{
    if (y > 0) {
        double k = thi_gamma_shape(phi), u = log(y) - f;
        d[0] = k * expm1(u);
        d[1] = -k * exp(u);
    }
}

THI_POINTWISE void thi_gamma_phi(thi_values phi, double y, double f, double *dphi)
{
    if (y > 0) {
        double k = phi.value[0], u = log(y) - f;
        dphi[0] = k * (thi_digamma_gap(k) + u - expm1(u));
    }
}

/* E[e^u] = exp(log y - mu + v/2) */
THI_POINTWISE thi_row thi_gamma_expectation(thi_values phi, double y, double mu, double v, double *dphi)
{
    double k = thi_gamma_shape(phi), constant = thi_gamma_constant(phi, y);
    if (constant == -INFINITY) {
        return thi_row_of(-INFINITY, 0, 0);
    }
    double u = log(y) - mu, w = u + 0.5 * v;
    if (dphi && phi.count > 0) {
        dphi[0] = k * (thi_digamma_gap(k) + u - expm1(w));
    }
    return thi_row_of(constant + k * (u - expm1(w)), k * expm1(w), -0.5 * k * exp(w));
}

/*
 * --- beta: a = s p, b = s q with p = sigmoid(f), q = 1 - p, s the precision ---
 * Small a or b: Gamma(a) = Gamma(1 + a)/a and log a = log s + log p keep everything finite when one underflows. When
 * both are large the density is gap(a) + gap(b) - gap(s) - log y(1 - y) - s KL, where KL, the divergence of (y, 1 - y)
 * from (p, q), is a sum of small terms. The smaller of a and b is that of the smaller of p and q: the other is no less
 * than s/2.
 */

typedef struct thi_beta_shape {
    double s, p, q, a, b;
    bool large; /* both a and b */
} thi_beta_shape;

THI_POINTWISE thi_beta_shape thi_beta_at(thi_values phi, double f)
{
    double s = phi.value[0], p = thi_sigmoid(f), q = thi_sigmoid(-f);
    thi_beta_shape shape = {s, p, q, s * p, s * q, s * fmin(p, q) > 10};
    return shape;
}

/* s KL */
THI_POINTWISE double thi_beta_misfit(const thi_beta_shape *k, double y)
{
    double d = k->p < 0.5 ? y - k->p : k->q - (1 - y); /* the smaller of p and q has the digits */
    return k->a * thi_log_excess(d / k->p, y / k->p) + k->b * thi_log_excess(-d / k->q, (1 - y) / k->q);
}

THI_POINTWISE double thi_beta_constant(thi_values phi, double y)
{
    (void)phi;
    return y > 0 && y < 1 ? -log(y) - log1p(-y) : -INFINITY;
}

THI_POINTWISE double thi_beta_density(thi_values phi, double constant, double y, double f)
{
    thi_beta_shape k = thi_beta_at(phi, f);
    if (k.large) {
        return constant + thi_lgamma_gap(k.a) + thi_lgamma_gap(k.b) - thi_lgamma_gap(k.s) - thi_beta_misfit(&k, y);
    }
    /* Gamma(s)/Gamma(large) as one difference, 1/Gamma(small) by Gamma(1 + small). */
    double few = fmin(k.a, k.b), many = fmax(k.a, k.b), log_few = log(k.s) + thi_log_sigmoid(-fabs(f));
    return constant + thi_lgamma_rise(many, few) - thi_lgamma(1 + few) + log_few + k.a * log(y) + k.b * log1p(-y);
}

/* With w = da/df = s p q and T = psi(1 + b) - psi(1 + a) + logit y, d1 = w T + q - p. */
THI_POINTWISE void thi_beta_derivatives(thi_values phi, double y, double f, double *d)
{
    if (!(y > 0 && y < 1)) {
        return;
    }
    double s = phi.value[0], p = thi_sigmoid(f), q = thi_sigmoid(-f), a = s * p, b = s * q, w = s * p * q;
    double T = thi_digamma(1 + b) - thi_digamma(1 + a) + log(y) - log1p(-y);
    d[0] = w * T + (q - p);
    d[1] = w * (q - p) * T - w * w * (thi_trigamma(1 + a) + thi_trigamma(1 + b)) - 2 * p * q;
}

/*
 * s psi(s) - a psi(a) - b psi(b) + a log y + b log(1 - y): with x psi(x) = x log x - x gap(x) when both are large, with
 * x psi(x) = x psi(1 + x) - 1 for the small one else.
 */
THI_POINTWISE void thi_beta_phi(thi_values phi, double y, double f, double *dphi)
{
    if (!(y > 0 && y < 1)) {
        return;
    }
    thi_beta_shape k = thi_beta_at(phi, f);
    if (k.large) {
        dphi[0] = k.a * thi_digamma_gap(k.a) + k.b * thi_digamma_gap(k.b) - k.s * thi_digamma_gap(k.s) -
                  thi_beta_misfit(&k, y);
        return;
    }
    double few = fmin(k.a, k.b), many = fmax(k.a, k.b);
    dphi[0] = 1 + few * (thi_digamma(k.s) - thi_digamma(1 + few)) + many * thi_digamma_rise(many, few) + k.a * log(y) +
              k.b * log1p(-y);
}

#endif

/*
 * The regularised incomplete gamma and beta functions: distribution functions of the gamma, Poisson, beta, binomial and
 * negative binomial laws. Absolute errors below 1e-13 (1e-10 beyond parameters of 1e5); some sqrt(parameter) flops.
 */
#ifndef THI_INCOMPLETE_H
#define THI_INCOMPLETE_H

/* P(a, x) = P(X <= x) for X ~ Gamma(a, 1), a > 0; and its complement Q = 1 - P without cancellation. */
double thi_gamma_lower(double a, double x);
double thi_gamma_upper(double a, double x);
/* I_x(a, b) = P(X <= x) for X ~ Beta(a, b); y = 1 - x is given too, so that neither end loses digits. */
double thi_beta_lower(double a, double b, double x, double y);

#endif

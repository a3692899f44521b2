/*
 * Functions of one variable that the densities need, safe in the far tails: |x| up to 1e150 gives no overflow, no
 * cancellation and no NaN. Relative errors are below 1e-13 unless said otherwise. Phi and phi are the standard normal's
 * distribution function and density.
 */
#ifndef THI_SPECIAL_H
#define THI_SPECIAL_H

/* exp(x^2) erfc(x); overflows to infinity below x = -26.6. */
double thi_erfcx(double x);

double thi_normal_density(double x);
/* Phi(x); its relative error grows as x^2 eps in the left tail. */
double thi_normal_cdf(double x);

double thi_log_phi(double x);
/* phi(x)/Phi(x), the derivative of log Phi: near -x for x << 0, 0 for x >> 0. */
double thi_mills(double x);
/* x + phi(x)/Phi(x), positive: 1/|x| for x << 0. The second derivative of log Phi is -thi_mills * thi_mills_excess. */
double thi_mills_excess(double x);
/* log(Phi(b) - Phi(a)) for a < b, either of which may be infinite; minus infinity when a >= b. */
double thi_log_phi_between(double a, double b);
/* The same with the ratios phi(a)/(Phi(b) - Phi(a)) and phi(b)/(Phi(b) - Phi(a)), which do not cancel or underflow. */
double thi_phi_between(double a, double b, double *ratio_a, double *ratio_b);
/* log of the integral of exp(-k t) N(t; z, 1) over t > 0, that is k^2/2 - k z + log Phi(z - k). */
double thi_log_phi_tilted(double z, double k);

/* log(1 + e^x) */
double thi_log1pexp(double x);
/* log(1/(1 + e^-x)) */
double thi_log_sigmoid(double x);
/* 1/(1 + e^-x) */
double thi_sigmoid(double x);
/* log(e^a + e^b); either may be minus infinity. */
double thi_log_add(double a, double b);

/* For x > 0, absolute error of a few ulp of max(1, |value|). */
double thi_digamma(double x);
double thi_trigamma(double x);
/* log Gamma(x), x > 0; unlike lgamma it shares no state between threads. */
double thi_lgamma(double x);

#endif

/*
 * The law of omega ~ pi(omega | r) from its Laplace transform alone: E[exp(-s omega)] = phi(s + r)/phi(r), with log phi
 * given on complex arguments of a positive real part (any branch of the log). The absolute error of the distribution
 * function is some 1e-10, and its relative error 1e-8 or better down to F = 1e-16, where the law has a smooth density
 * and |log phi(r)| is below 1e6 (beyond, its rounding counts, up to fifty times); laws with jumps come out smeared.
 */
#ifndef THI_INVERSION_H
#define THI_INVERSION_H

#include <complex.h>

#include "base/base.h"

typedef double complex (*thi_log_phi_fn)(const void *arg, double complex r);

typedef struct thi_omega_law {
    thi_log_phi_fn log_phi;
    const void *arg;
    double r, at_r; /* the tilt, and log phi there */
    double mean, sd;
    double start; /* below it lies a mass of less than e^-80 */
} thi_omega_law;

/* -(log phi)'(r) by a complex step, as exact as log phi itself; and log phi(r), from the same evaluation. An r below
 * 1e-20 counts as 1e-20, here and below. */
double thi_omega_slope(thi_log_phi_fn log_phi, const void *arg, double r, double *value);
double thi_omega_mean(thi_log_phi_fn log_phi, const void *arg, double r);
/* (log phi)''(r), from differences of the mean: some 8 digits, 5 where r is so small that the mean hardly changes. */
double thi_omega_variance(thi_log_phi_fn log_phi, const void *arg, double r);

/* About ten evaluations of log phi; some fifty for a law that is narrow beside its mean. */
void thi_omega_law_open(thi_omega_law *law, thi_log_phi_fn log_phi, const void *arg, double r);
/* F(x | r) and, unless NULL, the density: some fifty evaluations. *settled (may be NULL): the sum has converged. */
double thi_omega_law_cdf(const thi_omega_law *law, double x, double *density, bool *settled);
/* The omega with F(omega | r) = Phi(z), Phi the normal distribution function: a draw when z is one. */
double thi_omega_law_at(const thi_omega_law *law, double z);

#endif

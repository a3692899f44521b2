/*
 * Loops over rows for likelihoods with one output and one latent, so that each says only what it does to one row
 * (likelihood/formulas/).
 * Missing rows (y is NaN) get zeros. The functions passed in are inlined.
 */
#ifndef THI_ROWS_H
#define THI_ROWS_H

#include <string.h>

#include "likelihood/formulas/values.h"
#include "likelihood/likelihood.h"

/* What depends on y alone in log p(y | f), minus infinity when y is impossible; and log p with it. */
typedef double (*thi_row_constant_fn)(thi_values phi, double y);
typedef double (*thi_row_density_fn)(thi_values phi, double constant, double y, double f);
/* d[0], d[1]: first and second derivative in f. */
typedef void (*thi_row_derivatives_fn)(thi_values phi, double y, double f, double *d);
/* dphi comes zeroed. */
typedef void (*thi_row_phi_fn)(thi_values phi, double y, double f, double *dphi);
/* A closed expectation; dphi comes zeroed or NULL. */
typedef thi_row (*thi_row_expectation_fn)(thi_values phi, double y, double mu, double v, double *dphi);

static inline thi_values thi_values_of(const thiele_likelihood *lik)
{
    return (thi_values){lik->value, lik->parameters};
}

static inline void thi_rows_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f,
                                    double *out, thi_row_constant_fn constant, thi_row_density_fn row)
{
    double last = NAN, c = 0; /* quadrature asks for one y at many f: its constant is kept */
    for (int64_t i = 0; i < n; i++) {
        if (isnan(y[i])) {
            out[i] = 0;
            continue;
        }
        if (y[i] != last) {
            last = y[i];
            c = constant(thi_values_of(lik), last);
        }
        out[i] = c > -INFINITY ? row(thi_values_of(lik), c, last, f[i]) : -INFINITY;
    }
}

static inline void thi_rows_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f,
                                        double *d1, double *d2, thi_row_derivatives_fn row)
{
    for (int64_t i = 0; i < n; i++) {
        double d[2] = {0, 0};
        if (!isnan(y[i])) {
            row(thi_values_of(lik), y[i], f[i], d);
        }
        d1[i] = d[0];
        d2[i] = d[1];
    }
}

static inline void thi_rows_phi(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi,
                                thi_row_phi_fn row)
{
    memset(dphi, 0, (size_t)(n * lik->parameters) * sizeof *dphi);
    for (int64_t i = 0; i < n; i++) {
        if (!isnan(y[i])) {
            row(thi_values_of(lik), y[i], f[i], dphi + i * lik->parameters);
        }
    }
}

static inline void thi_rows_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                        const double *v, double *E, double *g, double *h, double *dphi,
                                        thi_row_expectation_fn row)
{
    if (dphi) {
        memset(dphi, 0, (size_t)(n * lik->parameters) * sizeof *dphi);
    }
    for (int64_t i = 0; i < n; i++) {
        thi_row result = {0, 0, 0};
        if (!isnan(y[i])) {
            result = row(thi_values_of(lik), y[i], mu[i], v[i], dphi ? dphi + i * lik->parameters : NULL);
        }
        E[i] = result.E;
        g[i] = result.g;
        h[i] = result.h;
    }
}

/*
 * Mean and variance of a y with mean m = exp(f + offset) and variance poisson * m + square * m^2, f ~ N(mu, v):
 * E[m] = exp(eta + v/2), Var[m] = exp(2 eta + v) expm1(v), eta = mu + offset, in logs so that 0 times infinity does not
 * arise.
 */
static inline void thi_log_link_moments(double eta, double v, double poisson, double square, double *mean,
                                        double *variance)
{
    double m = exp(eta + 0.5 * v);
    double spread = v > 0 ? exp(2 * eta + 2 * v + log(-expm1(-v))) : 0;
    *mean = m;
    *variance = spread + (poisson > 0 ? poisson * m : 0) + (square > 0 ? square * exp(2 * eta + 2 * v) : 0);
}

#endif

/* The warped Gaussian (likelihood/warped.c): noise, then a1 .., b1 .., c1 .. of its tanh terms. */
#ifndef THI_FORMULAS_WARPED_H
#define THI_FORMULAS_WARPED_H

#include "likelihood/formulas/values.h"

enum { THI_WARPED_NOISE, THI_WARPED_A };

THI_POINTWISE int thi_warped_terms(thi_values phi)
{
    return (phi.count - THI_WARPED_A) / 3;
}

THI_POINTWISE const double *thi_warped_a(thi_values phi)
{
    return phi.value + THI_WARPED_A;
}

THI_POINTWISE const double *thi_warped_b(thi_values phi)
{
    return phi.value + THI_WARPED_A + thi_warped_terms(phi);
}

THI_POINTWISE const double *thi_warped_c(thi_values phi)
{
    return phi.value + THI_WARPED_A + 2 * thi_warped_terms(phi);
}

/* 1 - tanh(x)^2 without cancellation. */
THI_POINTWISE double thi_sech2(double x)
{
    double e = exp(-2 * fabs(x));
    return 4 * e / ((1 + e) * (1 + e));
}

/* t(y), and t'(y) >= 1 */
THI_POINTWISE double thi_warp(thi_values phi, double y, double *slope)
{
    const double *a = thi_warped_a(phi), *b = thi_warped_b(phi), *c = thi_warped_c(phi);
    double t = y;
    *slope = 1;
    for (int i = 0; i < thi_warped_terms(phi); i++) {
        double x = b[i] * (y + c[i]);
        t += a[i] * tanh(x);
        *slope += a[i] * b[i] * thi_sech2(x);
    }
    return t;
}

THI_POINTWISE double thi_warped_constant(thi_values phi, double y)
{
    double slope;
    thi_warp(phi, y, &slope);
    return log(slope) - 0.5 * log(2 * M_PI * phi.value[THI_WARPED_NOISE]);
}

THI_POINTWISE double thi_warped_density(thi_values phi, double constant, double y, double f)
{
    double slope, rest = thi_warp(phi, y, &slope) - f;
    return constant - 0.5 * rest * rest / phi.value[THI_WARPED_NOISE];
}

THI_POINTWISE void thi_warped_derivatives(thi_values phi, double y, double f, double *d)
{
    double slope;
    d[0] = (thi_warp(phi, y, &slope) - f) / phi.value[THI_WARPED_NOISE];
    d[1] = -1 / phi.value[THI_WARPED_NOISE];
}

/*
 * The parameters of t act through t and log t': with z = y + c, T = tanh(b z), S = 1 - T^2,
 *   dt/da = T, dt/db = a z S, dt/dc = a b S;  dt'/da = b S, dt'/db = a S (1 - 2 b z T), dt'/dc = -2 a b^2 S T.
 * pull: d E[log p]/dt = -(t - mu)/noise.
 */
THI_POINTWISE void thi_warped_phi_of(thi_values phi, double y, double slope, double pull, double *dphi)
{
    int terms = thi_warped_terms(phi);
    const double *a = thi_warped_a(phi), *b = thi_warped_b(phi), *c = thi_warped_c(phi);
    double *da = dphi + THI_WARPED_A, *db = da + terms, *dc = db + terms;
    for (int i = 0; i < terms; i++) {
        double z = y + c[i], T = tanh(b[i] * z), S = thi_sech2(b[i] * z);
        da[i] = a[i] * (pull * T + b[i] * S / slope);
        db[i] = b[i] * a[i] * S * (pull * z + (1 - 2 * b[i] * z * T) / slope);
        dc[i] = a[i] * b[i] * S * (pull - 2 * b[i] * T / slope);
    }
}

THI_POINTWISE thi_row thi_warped_expectation(thi_values phi, double y, double mu, double v, double *dphi)
{
    double slope, noise = phi.value[THI_WARPED_NOISE], rest = thi_warp(phi, y, &slope) - mu;
    double square = (rest * rest + v) / noise;
    if (dphi) {
        dphi[THI_WARPED_NOISE] = 0.5 * (square - 1);
        thi_warped_phi_of(phi, y, slope, -rest / noise, dphi);
    }
    return thi_row_of(log(slope) - 0.5 * log(2 * M_PI * noise) - 0.5 * square, rest / noise, -0.5 / noise);
}

THI_POINTWISE void thi_warped_phi(thi_values phi, double y, double f, double *dphi)
{
    thi_warped_expectation(phi, y, f, 0, dphi);
}

#endif

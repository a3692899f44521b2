/*
 * A user's augmentation of several latents or outputs (augmented-aaci, equations 4 and 5): one omega for a row,
 *   log p(y | f) = sum_q (log C_q + g_q f_q) + log phi(r),  r = sum_q (alpha_q - beta_q f_q + gamma_q f_q^2),
 * so that given it every latent has a site of its own. As with one latent (augment.c): at r = E[r] the bound is
 * that, dE/dmu_q = g_q - 2 gamma_q omega (mu_q - centre_q) and dE/dv_q = -gamma_q omega. O(Q) a row.
 */
#include <math.h>
#include <string.h>

#include "likelihood/custom.h"
#include "likelihood/inversion.h"
#include "likelihood/omega_draws.h"

/* The parts of one latent may lie below zero, their sum does not. v: NULL for none. */
double thi_custom_square(int latents, const thi_coefficients *c, const double *mu, const double *v)
{
    double sum = 0.0;
    for (int q = 0; q < latents; q++) {
        thi_square s = thi_complete_square(&c[q]);
        double d = mu[q] - s.centre;
        sum += c[q].gamma * (d * d + (v != NULL ? v[q] : 0.0)) + s.rest;
    }
    return sum;
}

/* E, and where g is not NULL g and h. */
static double expected(const thiele_likelihood *lik, const double *y, const double *mu, const double *v, double *g,
                       double *h)
{
    thi_coefficients c[THI_AUGMENTED_LATENTS];
    thi_custom_coefficients(lik, y, c);
    double E, r = fmax(0.0, thi_custom_square(lik->latents, c, mu, v));
    double omega = thi_omega_slope(thi_custom_log_phi, &(thi_custom_row){lik, y}, r, &E);
    for (int q = 0; q < lik->latents; q++) {
        E += c[q].log_C + c[q].g * mu[q];
        if (g != NULL) {
            h[q] = -c[q].gamma * omega;
            g[q] = c[q].g + 2.0 * h[q] * (mu[q] - thi_complete_square(&c[q]).centre);
        }
    }
    return E;
}

typedef struct latents_row {
    const double *y, *mu, *v;
} latents_row;

static double latents_bound(const thiele_likelihood *lik, const void *row)
{
    const latents_row *r = row;
    return expected(lik, r->y, r->mu, r->v, NULL, NULL);
}

static bool is_missing(const thiele_likelihood *lik, const double *y)
{
    for (int p = 0; p < lik->outputs; p++) {
        if (!isnan(y[p])) {
            return false;
        }
    }
    return true;
}

static void expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                        double *E, double *g, double *h, double *dphi)
{
    int64_t P = lik->outputs, Q = lik->latents, parameters = lik->parameters;
    memset(E, 0, (size_t)n * sizeof *E);
    memset(g, 0, (size_t)(n * Q) * sizeof *g);
    memset(h, 0, (size_t)(n * Q) * sizeof *h);
    if (dphi != NULL) {
        memset(dphi, 0, (size_t)(n * parameters) * sizeof *dphi);
    }
    for (int64_t i = 0; i < n; i++) {
        if (is_missing(lik, y + i * P)) {
            continue;
        }
        E[i] = expected(lik, y + i * P, mu + i * Q, v + i * Q, g + i * Q, h + i * Q);
        if (dphi != NULL) {
            const latents_row row = {y + i * P, mu + i * Q, v + i * Q};
            thi_bound_slopes(lik, latents_bound, &row, dphi + i * parameters);
        }
    }
}

static void site(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *y, const double *f,
                 double *lambda, double *nu)
{
    thi_coefficients c[THI_AUGMENTED_LATENTS];
    thi_custom_row row = {lik, y};
    thi_omega_law law;
    thi_custom_coefficients(lik, y, c);
    thi_omega_law_open(&law, thi_custom_log_phi, &row, fmax(0.0, thi_custom_square(lik->latents, c, f, NULL)));
    double omega = thi_omega_law_at(&law, thi_random_normal(stream, draw * THI_OMEGA));
    for (int q = 0; q < lik->latents; q++) {
        lambda[q] = 2.0 * c[q].gamma * omega;
        nu[q] = c[q].g + c[q].beta * omega;
    }
}

const thi_augmentation thi_custom_augmentation_of_latents = {.expectation = expectation, .site = site};

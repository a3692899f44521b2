/*
 * From a form (log C, g, alpha, beta, gamma; phi) to the bound and the Gaussian site (math.md section 4): at
 * c^2 = E[alpha - beta f + gamma f^2],
 *   E = log C + g mu + log phi(c^2),  dE/dmu = g - 2 gamma omega (mu - centre),  dE/dv = -gamma omega,
 * omega = -(log phi)'(c^2); and given f, omega ~ pi(omega | r) makes the site lambda = 2 gamma omega, nu = g + omega
 * beta. O(1) a row.
 */
#include "likelihood/augment.h"

#include <math.h>
#include <string.h>

#include "likelihood/inversion.h"
#include "likelihood/omega_draws.h"

bool thi_is_augmented(const thiele_likelihood *lik)
{
    return lik->ops->augmentation != NULL;
}

void thi_bound_slopes(const thiele_likelihood *lik, thi_row_bound bound, const void *row, double *dphi)
{
    double value[THI_AUGMENTED_PARAMETERS];
    thiele_likelihood copy = *lik;
    copy.value = value;
    memcpy(value, lik->value, (size_t)lik->parameters * sizeof *value);
    for (int p = 0; p < lik->parameters; p++) {
        bool positive = lik->phi[p].positive;
        double now = value[p], step = 6e-6 * (positive ? 1.0 : fmax(1.0, fabs(now)));
        if (lik->phi[p].fixed) {
            dphi[p] = 0.0;
            continue;
        }
        value[p] = positive ? now * exp(step) : now + step;
        double above = bound(&copy, row);
        value[p] = positive ? now * exp(-step) : now - step;
        dphi[p] = (above - bound(&copy, row)) / (2.0 * step);
        value[p] = now;
    }
}

typedef struct form_row {
    double y, mu, v;
} form_row;

static double form_bound(const thiele_likelihood *lik, const void *row)
{
    const thi_form *form = lik->ops->augmentation->form;
    const form_row *r = row;
    thi_coefficients c;
    thi_omega omega;
    form->coefficients(lik, r->y, &c);
    form->omega(lik, r->y, thi_expected_square(&c, r->mu, r->v), &omega);
    return c.log_C + c.g * r->mu + omega.log_phi;
}

static void differentiate(const thiele_likelihood *lik, double y, double mu, double v, double *dphi)
{
    thi_bound_slopes(lik, form_bound, &(form_row){y, mu, v}, dphi);
}

static void form_expectation(const thiele_likelihood *lik, const thi_form *form, int64_t n, const double *y,
                             const double *mu, const double *v, double *E, double *g, double *h, double *dphi)
{
    for (int64_t i = 0; i < n; i++) {
        if (isnan(y[i])) {
            E[i] = g[i] = h[i] = 0.0;
            continue;
        }
        thi_coefficients c;
        thi_omega omega;
        form->coefficients(lik, y[i], &c);
        form->omega(lik, y[i], thi_expected_square(&c, mu[i], v[i]), &omega);
        thi_row row = thi_form_row(&c, &omega, mu[i]);
        E[i] = row.E;
        g[i] = row.g;
        h[i] = row.h;
    }
    if (dphi == NULL) {
        return;
    }
    memset(dphi, 0, (size_t)(n * lik->parameters) * sizeof *dphi);
    for (int64_t i = 0; i < n && lik->parameters > 0; i++) {
        if (!isnan(y[i])) {
            (form->phi_derivatives != NULL ? form->phi_derivatives : differentiate)(lik, y[i], mu[i], v[i],
                                                                                    dphi + i * lik->parameters);
        }
    }
}

void thi_augmented_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                               const double *v, double *E, double *g, double *h, double *dphi)
{
    const thi_augmentation *augmentation = lik->ops->augmentation;
    if (augmentation->form != NULL) {
        form_expectation(lik, augmentation->form, n, y, mu, v, E, g, h, dphi);
        return;
    }
    augmentation->expectation(lik, n, y, mu, v, E, g, h, dphi);
}

/* --- omega -----------------------------------------------------------------------------------------------------------
 */

/* What the inversion calls: the form's log phi for one y. */
typedef struct form_at {
    const thiele_likelihood *lik;
    double y;
} form_at;

static double complex form_log_phi(const void *arg, double complex r)
{
    const form_at *at = arg;
    return at->lik->ops->augmentation->form->log_phi(at->lik, at->y, r);
}

void thi_augmented_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    lik->ops->augmentation->form->omega(lik, y, r, out);
    if (isnan(out->variance)) {
        out->variance = thi_omega_variance(form_log_phi, &(form_at){lik, y}, r);
    }
}

double thi_augmented_cdf(const thiele_likelihood *lik, double y, double r, double x)
{
    thi_omega_law law;
    thi_omega_law_open(&law, form_log_phi, &(form_at){lik, y}, r);
    return fmin(1.0, fmax(0.0, thi_omega_law_cdf(&law, x, NULL, NULL)));
}

double thi_augmented_omega_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw)
{
    const thi_form *form = lik->ops->augmentation->form;
    if (form->draw != NULL) {
        return form->draw(lik, y, r, stream, draw);
    }
    thi_omega_law law;
    thi_omega_law_open(&law, form_log_phi, &(form_at){lik, y}, r);
    return thi_omega_law_at(&law, thi_random_normal(stream, draw * THI_OMEGA));
}

/* The stream of a row some way from that of the first. */
static thi_stream stream_at(thi_stream stream, int64_t row)
{
    stream.row += (uint64_t)row;
    return stream;
}

static void draw_omegas(const thiele_likelihood *lik, int64_t n, const double *y, const double *r, thi_stream stream,
                        uint64_t draw, double *omega)
{
    const thi_form *form = lik->ops->augmentation->form;
    if (form->draws != NULL) {
        form->draws(lik, n, y, r, stream, draw, omega);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        omega[i] = isnan(y[i]) ? 0.0 : thi_augmented_omega_draw(lik, y[i], r[i], stream_at(stream, i), draw);
    }
}

enum { ROWS = 64 };

static void form_sites(const thiele_likelihood *lik, int64_t n, thi_stream stream, uint64_t draw, const double *y,
                       const double *f, double *lambda, double *nu)
{
    thi_coefficients c[ROWS];
    double r[ROWS], omega[ROWS];
    for (int64_t i = 0; i < n; i++) {
        lik->ops->augmentation->form->coefficients(lik, y[i], &c[i]);
        r[i] = isnan(y[i]) ? 0.0 : thi_expected_square(&c[i], f[i], 0.0);
    }
    draw_omegas(lik, n, y, r, stream, draw, omega);
    for (int64_t i = 0; i < n; i++) {
        bool missing = isnan(y[i]);
        lambda[i] = missing ? 0.0 : 2.0 * c[i].gamma * omega[i];
        nu[i] = missing ? 0.0 : c[i].g + c[i].beta * omega[i];
    }
}

static bool is_missing(int P, const double *y)
{
    for (int p = 0; p < P; p++) {
        if (!isnan(y[p])) {
            return false;
        }
    }
    return true;
}

void thi_augmented_sites(const thiele_likelihood *lik, int64_t n, thi_stream stream, uint64_t draw, const double *y,
                         const double *f, double *lambda, double *nu)
{
    const thi_augmentation *augmentation = lik->ops->augmentation;
    int P = lik->outputs, Q = lik->latents;
    for (int64_t i = 0; augmentation->form != NULL && i < n; i += ROWS) {
        form_sites(lik, n - i < ROWS ? n - i : ROWS, stream_at(stream, i), draw, y + i, f + i, lambda + i, nu + i);
    }
    for (int64_t i = 0; augmentation->form == NULL && i < n; i++) {
        memset(lambda + i * Q, 0, (size_t)Q * sizeof *lambda);
        memset(nu + i * Q, 0, (size_t)Q * sizeof *nu);
        if (!is_missing(P, y + i * P)) {
            augmentation->site(lik, stream_at(stream, i), draw, y + i * P, f + i * Q, lambda + i * Q, nu + i * Q);
        }
    }
}

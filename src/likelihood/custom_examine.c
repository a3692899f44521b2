/*
 * A look at whether a user's augmentation is one: phi(0) = 1, phi falls, log phi is convex, the law of omega has a
 * density that is nowhere negative, and the density of y comes out as log_density says or, without one, adds up to 1
 * (custom_total.c). A function that passes need not be completely monotone; one that fails is not.
 */
#include <math.h>

#include "likelihood/custom.h"
#include "likelihood/inversion.h"
#include "likelihood/plane.h"

/* Stands for r = 0, where a formula for log phi may be 0/0. */
static const double LEAST_R = 1e-300;

/* One row, and where a flaw is told. */
typedef struct look {
    thi_custom_row row;
    thi_flaw *flaw;
} look;

static double complex look_at(const void *arg, double complex r)
{
    const look *l = arg;
    return thi_custom_log_phi(&l->row, r);
}

enum {
    NONE,
    NOT_A_NUMBER,
    BAD_COEFFICIENT,
    NEGATIVE,
    NOT_ONE,
    GROWS,
    NOT_CONVEX,
    NOT_MONOTONE,
    DISAGREES,
    WRONG_TOTAL
};

static bool found(const look *l, int kind, double at, double got, double want)
{
    *l->flaw = (thi_flaw){kind, l->row.y[0], at, got, want};
    return true;
}

/* phi(0) = 1, and on a grid of r: finite, falling, convex in the log. The slack is for rounding. */
static bool shape_is_wrong(const look *l)
{
    double start = creal(look_at(l, thi_plane_at(LEAST_R, 0.0))), last = INFINITY;
    if (!(fabs(start) < 1e-8)) {
        return found(l, isnan(start) ? NOT_A_NUMBER : NOT_ONE, 0.0, exp(start), 1.0);
    }
    for (int i = -24; i <= 16; i++) {
        double r = pow(10.0, 0.25 * i), value = creal(look_at(l, thi_plane_at(r, 0.0))),
               mean = thi_omega_mean(look_at, l, r);
        if (!isfinite(value) || !isfinite(mean)) {
            return found(l, NOT_A_NUMBER, r, value, mean);
        }
        if (mean < 0.0) {
            return found(l, GROWS, r, value, mean);
        }
        if (mean > last * (1.0 + 1e-7) + 1e-300) {
            return found(l, NOT_CONVEX, r, mean, last);
        }
        last = mean;
    }
    return false;
}

/* A density below zero, or a mass outside [0, 1], where the inversion has settled: jumps of the law are no flaw. */
static bool law_is_wrong(const look *l, double r)
{
    thi_omega_law law;
    thi_omega_law_open(&law, look_at, l, r);
    if (!(law.sd > 1e-4 * law.mean)) {
        return false;
    }
    for (int i = -24; i <= 16; i++) {
        bool settled;
        double x = law.mean * exp(0.25 * i), density, F = thi_omega_law_cdf(&law, x, &density, &settled);
        if (settled && (F < -1e-6 || F > 1.0 + 1e-6 || density * x < -1e-5)) {
            return found(l, NOT_MONOTONE, x, density, F);
        }
    }
    return false;
}

/* Finite; gamma not below zero, of some latent above, and above where there is a beta; r >= 0 at its lowest. */
static bool coefficients_are_wrong(const look *l, const thi_coefficients *c)
{
    double most = 0.0, lowest = 0.0;
    for (int q = 0; q < l->row.lik->latents; q++) {
        if (!(isfinite(c[q].g) && isfinite(c[q].alpha) && isfinite(c[q].beta) && isfinite(c[q].gamma)) ||
            isnan(c[q].log_C) || c[q].gamma < 0.0 || (c[q].gamma == 0.0 && c[q].beta != 0.0)) {
            return found(l, BAD_COEFFICIENT, 0.0, c[q].gamma, 0.0);
        }
        most = fmax(most, c[q].gamma);
        lowest += fabs(c[q].alpha);
    }
    if (!(most > 0.0)) {
        return found(l, BAD_COEFFICIENT, 0.0, most, 0.0);
    }
    double centre[THI_AUGMENTED_LATENTS];
    for (int q = 0; q < l->row.lik->latents; q++) {
        centre[q] = thi_complete_square(&c[q]).centre;
    }
    double least = thi_custom_square(l->row.lik->latents, c, centre, NULL);
    return least < -1e-12 * lowest && found(l, NEGATIVE, centre[0], least, 0.0);
}

/* At a few f log_density (if there is one and y is possible) is what the parts add up to. */
static bool density_is_wrong(const look *l)
{
    static const double at[] = {0, 0.3, -0.7, 2, -3};
    const thiele_likelihood *lik = l->row.lik;
    thi_coefficients c[THI_AUGMENTED_LATENTS];
    double f[THI_AUGMENTED_LATENTS];
    thi_custom_coefficients(lik, l->row.y, c);
    if (coefficients_are_wrong(l, c)) {
        return true;
    }
    for (size_t i = 0; i < sizeof at / sizeof at[0] && lik->spec->log_density != NULL; i++) {
        for (int q = 0; q < lik->latents; q++) {
            f[q] = at[i] * (1.0 + 0.4 * (q % 3));
        }
        double got = thi_custom_density(lik, l->row.y, f);
        double want = lik->spec->log_density(l->row.y, f, lik->value, lik->spec->user);
        if (want > -INFINITY && !(fabs(got - want) <= 1e-7 * (1.0 + fabs(want)))) {
            return found(l, DISAGREES, f[0], got, want);
        }
    }
    return false;
}

/* Where nothing else says what the constant C is: at the f that y suits best. Errors of C below 1e-3 pass. */
static bool total_is_wrong(const look *l)
{
    const thiele_likelihood *lik = l->row.lik;
    thi_coefficients c[THI_AUGMENTED_LATENTS];
    double f[THI_AUGMENTED_LATENTS];
    if (lik->spec->log_density != NULL || lik->outputs > 1) {
        return false;
    }
    thi_custom_coefficients(lik, l->row.y, c);
    for (int q = 0; q < lik->latents; q++) {
        f[q] = thi_complete_square(&c[q]).centre;
    }
    double total = thi_custom_total(lik, l->row.y[0], f);
    return !(fabs(total - 1.0) < 1e-3) && found(l, WRONG_TOTAL, f[0], total, 1.0);
}

bool thi_custom_examine(const thiele_likelihood *lik, const double *y, bool whole, thi_flaw *flaw)
{
    look l = {{lik, y}, flaw};
    return density_is_wrong(&l) || (whole && (shape_is_wrong(&l) || law_is_wrong(&l, 1e-2) || law_is_wrong(&l, 1.0) ||
                                              law_is_wrong(&l, 1e2) || total_is_wrong(&l)));
}

thiele_status thi_custom_refuse(thiele_context *ctx, const thiele_likelihood *lik, const thi_flaw *flaw)
{
    static const char *const words[] = {
        [NOT_A_NUMBER] =
            "its log_phi or the slope of it is not finite at r = %g (y = %g); give the log itself, not the "
            "log of a phi that underflows",
        [BAD_COEFFICIENT] =
            "its coefficients are finite and gamma is above zero; not so at f = %g, y = %g (gamma is %g)",
        [NEGATIVE] = "its r = alpha - beta f + gamma f^2 is below zero at f = %g for y = %g: %g",
        [NOT_ONE] = "its phi must be 1 at r = %g (y = %g); it is %g there",
        [GROWS] = "its phi grows at r = %g (y = %g); a completely monotone function falls",
        [NOT_CONVEX] =
            "the log of its phi bends downwards at r = %g (y = %g); that of a completely monotone function is "
            "convex",
        [NOT_MONOTONE] = "its phi is not completely monotone: it would be the transform of a law with a density below "
                         "zero near omega = %g (y = %g)",
        [DISAGREES] = "its augmentation differs from its log_density: at f = %g and y = %g they are %g and %g",
        [WRONG_TOTAL] =
            "its density does not add up to 1 over all y: at f = %g (that of y = %g) the sum is %g. Its log_c "
            "is wrong; or give a log_density too, if that is meant",
    };
    char sentence[300];
    snprintf(sentence, sizeof sentence, words[flaw->kind], flaw->at, flaw->y, flaw->got, flaw->want);
    return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "likelihood '%.100s': %s", thiele_likelihood_name(lik), sentence);
}

/*
 * A user's augmentation: coefficients of y and log phi on complex numbers, from which all else is made (augmented-aaci,
 * algorithms 1 and 2): omega's mean by a complex step, its draws by inversion. And a look at whether it is one: phi(0)
 * = 1, phi falls, log phi is convex, the law of omega has a density that is nowhere negative, and the density of y
 * comes out as log_density says. A function that passes need not be completely monotone; one that fails is not.
 */
#include <math.h>
#include <stddef.h>

#include "likelihood/custom.h"
#include "likelihood/inversion.h"
#include "likelihood/plane.h"

bool thi_spec_is_known(const thiele_likelihood_spec *spec)
{
    size_t second = offsetof(thiele_likelihood_spec, log_densities);
    size_t first = offsetof(thiele_likelihood_spec, coefficients);
    return (spec->version == THIELE_LIKELIHOOD_VERSION && spec->size == sizeof *spec) ||
           (spec->version == 1 && (spec->size == first || spec->size == second));
}

bool thi_spec_is_batched(const thiele_likelihood_spec *spec)
{
    return spec != NULL && spec->size == sizeof *spec && spec->log_densities != NULL;
}

static bool knows_augmentation(const thiele_likelihood_spec *spec)
{
    return spec->size >= offsetof(thiele_likelihood_spec, log_densities);
}

bool thi_spec_is_augmented(const thiele_likelihood_spec *spec)
{
    return spec != NULL && knows_augmentation(spec) && spec->coefficients != NULL && spec->log_phi != NULL;
}

thiele_status thi_custom_check(thiele_context *ctx, const thiele_likelihood_spec *spec)
{
    if (!knows_augmentation(spec) || (spec->coefficients == NULL && spec->log_phi == NULL)) {
        return THIELE_OK;
    }
    if (spec->coefficients == NULL || spec->log_phi == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%.100s': an augmentation is coefficients and log_phi, both", spec->name);
    }
    if (spec->outputs != 1 || spec->latents != 1 || spec->parameters > THI_AUGMENTED_PARAMETERS) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%.100s': one with an augmentation has one output, one latent and at most %d "
                        "parameters, not %d, %d and %d",
                        spec->name, THI_AUGMENTED_PARAMETERS, spec->outputs, spec->latents, spec->parameters);
    }
    return THIELE_OK;
}

/* --- the form --------------------------------------------------------------------------------------------------------
 */

/* Stands for r = 0, where a formula for log phi may be 0/0. */
static const double LEAST_R = 1e-300;

static void custom_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    thiele_likelihood_coefficients c = {0, 0, 0, 0, 0};
    lik->spec->coefficients(&y, lik->value, &c, lik->spec->user);
    *out = (thi_coefficients){c.log_c, c.g, c.alpha, c.beta, c.gamma};
}

static double complex custom_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    double at[2] = {creal(r), cimag(r)}, out[2] = {NAN, NAN};
    lik->spec->log_phi(&y, lik->value, at, out, lik->spec->user);
    return thi_plane_at(out[0], out[1]);
}

/* phi of one y. */
typedef struct look {
    const thiele_likelihood *lik;
    double y;
    thi_flaw *flaw;
} look;

static double complex look_at(const void *arg, double complex r)
{
    const look *l = arg;
    return custom_log_phi(l->lik, l->y, r);
}

static void custom_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    look l = {lik, y, NULL};
    out->mean = thi_omega_slope(look_at, &l, r, &out->log_phi);
    out->variance = NAN;
}

static const thi_form custom_form = {
    .coefficients = custom_coefficients, .omega = custom_omega, .log_phi = custom_log_phi};
const thi_augmentation thi_custom_augmentation = {.form = &custom_form};

double thi_custom_density(const thiele_likelihood *lik, double y, double f)
{
    thi_coefficients c;
    custom_coefficients(lik, y, &c);
    if (!(c.log_C > -INFINITY)) {
        return c.log_C;
    }
    double r = fmax(LEAST_R, thi_expected_square(&c, f, 0.0));
    return c.log_C + c.g * f + creal(custom_log_phi(lik, y, thi_plane_at(r, 0.0)));
}

/* --- is it one? ------------------------------------------------------------------------------------------------------
 */

enum { NONE, NOT_A_NUMBER, BAD_COEFFICIENT, NEGATIVE, NOT_ONE, GROWS, NOT_CONVEX, NOT_MONOTONE, DISAGREES };

static bool found(const look *l, int kind, double at, double got, double want)
{
    *l->flaw = (thi_flaw){kind, l->y, at, got, want};
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

/* r >= 0 at its lowest, and at a few f log_density (if there is one and y is possible) is what the parts add up to. */
static bool density_is_wrong(const look *l)
{
    static const double at[] = {0, 0.3, -0.7, 2, -3};
    const thiele_likelihood_spec *spec = l->lik->spec;
    thi_coefficients c;
    custom_coefficients(l->lik, l->y, &c);
    if (!(isfinite(c.g) && isfinite(c.alpha) && isfinite(c.beta) && isfinite(c.gamma)) || isnan(c.log_C) ||
        c.gamma <= 0.0) {
        return found(l, BAD_COEFFICIENT, 0.0, c.gamma, 0.0);
    }
    thi_square s = thi_complete_square(&c);
    if (s.rest < 0.0) {
        return found(l, NEGATIVE, s.centre, s.rest, 0.0);
    }
    for (size_t i = 0; i < sizeof at / sizeof at[0] && spec->log_density != NULL; i++) {
        double got = thi_custom_density(l->lik, l->y, at[i]);
        double want = spec->log_density(&l->y, &at[i], l->lik->value, spec->user);
        if (want > -INFINITY && !(fabs(got - want) <= 1e-7 * (1.0 + fabs(want)))) {
            return found(l, DISAGREES, at[i], got, want);
        }
    }
    return false;
}

bool thi_custom_examine(const thiele_likelihood *lik, double y, bool whole, thi_flaw *flaw)
{
    look l = {lik, y, flaw};
    return density_is_wrong(&l) ||
           (whole && (shape_is_wrong(&l) || law_is_wrong(&l, 1e-2) || law_is_wrong(&l, 1.0) || law_is_wrong(&l, 1e2)));
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
        [DISAGREES] = "its augmentation is not its log_density: at f = %g and y = %g they are %g and %g",
    };
    char sentence[300];
    snprintf(sentence, sizeof sentence, words[flaw->kind], flaw->at, flaw->y, flaw->got, flaw->want);
    return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "likelihood '%.100s': %s", thiele_likelihood_name(lik), sentence);
}

/*
 * A user's augmentation: coefficients of y and log phi on complex numbers, from which all else is made (augmented-aaci,
 * algorithms 1 and 2): omega's mean by a complex step, its draws by inversion. Of one latent it is a form (augment.h);
 * for several see custom_latents.c, and custom_examine.c for whether it is one.
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
                        "likelihood '%.100s': an augmentation needs both coefficients and log_phi", spec->name);
    }
    if (spec->latents > THI_AUGMENTED_LATENTS || spec->parameters > THI_AUGMENTED_PARAMETERS) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%.100s': an augmentation allows at most %d latents and %d parameters, not "
                        "%d and %d",
                        spec->name, THI_AUGMENTED_LATENTS, THI_AUGMENTED_PARAMETERS, spec->latents, spec->parameters);
    }
    return THIELE_OK;
}

/* --- the form --------------------------------------------------------------------------------------------------------
 */

/* Stands for r = 0, where a formula for log phi may be 0/0. */
static const double LEAST_R = 1e-300;

void thi_custom_coefficients(const thiele_likelihood *lik, const double *y, thi_coefficients *out)
{
    thiele_likelihood_coefficients c[THI_AUGMENTED_LATENTS] = {{0, 0, 0, 0, 0}};
    lik->spec->coefficients(y, lik->value, c, lik->spec->user);
    for (int q = 0; q < lik->latents; q++) {
        out[q] = (thi_coefficients){c[q].log_c, c[q].g, c[q].alpha, c[q].beta, c[q].gamma};
    }
}

double complex thi_custom_log_phi(const void *arg, double complex r)
{
    const thi_custom_row *row = arg;
    double at[2] = {creal(r), cimag(r)}, out[2] = {NAN, NAN};
    row->lik->spec->log_phi(row->y, row->lik->value, at, out, row->lik->spec->user);
    return thi_plane_at(out[0], out[1]);
}

static void custom_coefficients(const thiele_likelihood *lik, double y, thi_coefficients *out)
{
    thi_custom_coefficients(lik, &y, out);
}

static double complex custom_log_phi(const thiele_likelihood *lik, double y, double complex r)
{
    return thi_custom_log_phi(&(thi_custom_row){lik, &y}, r);
}

static void custom_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out)
{
    out->mean = thi_omega_slope(thi_custom_log_phi, &(thi_custom_row){lik, &y}, r, &out->log_phi);
    out->variance = NAN;
}

static const thi_form custom_form = {
    .coefficients = custom_coefficients, .omega = custom_omega, .log_phi = custom_log_phi};
const thi_augmentation thi_custom_augmentation = {.form = &custom_form};

double thi_custom_density(const thiele_likelihood *lik, const double *y, const double *f)
{
    thi_coefficients c[THI_AUGMENTED_LATENTS];
    thi_custom_coefficients(lik, y, c);
    double sum = 0.0;
    for (int q = 0; q < lik->latents; q++) {
        sum += c[q].log_C + c[q].g * f[q];
    }
    if (!(sum > -INFINITY)) {
        return sum;
    }
    double r = fmax(LEAST_R, thi_custom_square(lik->latents, c, f, NULL));
    return sum + creal(thi_custom_log_phi(&(thi_custom_row){lik, y}, thi_plane_at(r, 0.0)));
}

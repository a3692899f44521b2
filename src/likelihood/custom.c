/*
 * A user's own likelihood: one function for the log density of a row, called row by row, and one for its moments if
 * there is one. Everything else follows from these (src/expect).
 */
#include <math.h>

#include "likelihood/likelihood.h"

static bool all_missing(int outputs, const double *y)
{
    for (int p = 0; p < outputs; p++) {
        if (!isnan(y[p])) {
            return false;
        }
    }
    return true;
}

static void custom_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    const thiele_likelihood_spec *spec = lik->spec;
    for (int64_t i = 0; i < n; i++) {
        const double *row = y + i * lik->outputs;
        bool missing = all_missing(lik->outputs, row);
        out[i] = missing ? 0.0 : spec->log_density(row, f + i * lik->latents, lik->value, spec->user);
    }
}

static void custom_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    const thiele_likelihood_spec *spec = lik->spec;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i * lik->outputs;
        spec->moments(f + i * lik->latents, lik->value, mean + first, variance + first, spec->user);
    }
}

static const thi_likelihood_ops density_only = {
    .name = "custom",
    .support = THI_SUPPORT_REAL,
    .log_density = custom_density,
};
static const thi_likelihood_ops with_moments = {
    .name = "custom",
    .support = THI_SUPPORT_REAL,
    .log_density = custom_density,
    .conditional = custom_conditional,
};

static thiele_status check_spec(thiele_context *ctx, const thiele_likelihood_spec *spec)
{
    if (spec->version != THIELE_LIKELIHOOD_VERSION || spec->size != sizeof *spec) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT,
                        "the likelihood was made for version %d of the interface (%zu bytes), this library has version "
                        "%d (%zu bytes): compile it again with this library's thiele/likelihood.h",
                        spec->version, spec->size, THIELE_LIKELIHOOD_VERSION, sizeof *spec);
    }
    if (spec->name == NULL || spec->log_density == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a likelihood of your own needs a name and a log_density");
    }
    enum { MOST = 65536 };
    if (spec->outputs < 1 || spec->latents < 1 || spec->parameters < 0 || spec->outputs > MOST ||
        spec->latents > MOST || spec->parameters > MOST || (spec->parameters > 0 && spec->parameter == NULL)) {
        return thi_fail(
            ctx, THIELE_ERROR_ARGUMENT,
            "likelihood '%.100s' has %d outputs, %d latents and %d parameters: one output and one latent or "
            "more are needed, and a list of the parameters if there are any",
            spec->name, spec->outputs, spec->latents, spec->parameters);
    }
    return THIELE_OK;
}

static thiele_status add_parameter(thiele_likelihood *lik, thiele_context *ctx,
                                   const thiele_likelihood_parameter *parameter)
{
    if (parameter->name == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "parameter %d of likelihood '%.100s' has no name",
                        lik->parameters + 1, lik->spec->name);
    }
    thiele_status status = thi_likelihood_add_phi(lik, ctx, parameter->name, 1.0, parameter->positive != 0);
    return status == THIELE_OK ? thi_likelihood_set_phi(lik, ctx, lik->parameters - 1, parameter->initial) : status;
}

thiele_status thiele_likelihood_custom(thiele_likelihood **out, thiele_context *ctx, const thiele_likelihood_spec *spec)
{
    *out = NULL;
    thiele_likelihood *lik = NULL;
    thiele_status status;
    THI_TRY(check_spec(ctx, spec));
    THI_TRY(thi_alloc(ctx, &lik, 1, sizeof *lik));
    *lik = (thiele_likelihood){.ops = spec->moments != NULL ? &with_moments : &density_only,
                               .outputs = spec->outputs,
                               .latents = spec->latents,
                               .user = spec->user,
                               .spec = spec};
    for (int i = 0; i < spec->parameters; i++) {
        THI_TRY(add_parameter(lik, ctx, &spec->parameter[i]));
    }
    *out = lik;
    lik = NULL;
out:
    thiele_likelihood_destroy(lik);
    return status;
}

/*
 * A user's own likelihood: one function for the log density of a row, called row by row, or for those of many points
 * at once, one for its moments if there is one, what values y takes, and an augmentation if there is one. Everything
 * else follows from these (src/expect).
 */
#include <math.h>
#include <string.h>

#include "likelihood/custom.h"

static bool all_missing(int outputs, const double *y)
{
    for (int p = 0; p < outputs; p++) {
        if (!isnan(y[p])) {
            return false;
        }
    }
    return true;
}

bool thi_likelihood_is_batched(const thiele_likelihood *lik)
{
    return lik->spec != NULL && thi_spec_is_batched(lik->spec);
}

/* Stretches of points with outputs go to the user's function together; between them all outputs are missing. */
static void batched_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    const thiele_likelihood_spec *spec = lik->spec;
    int64_t P = lik->outputs, Q = lik->latents, from = 0;
    for (int64_t i = 0; i <= n; i++) {
        if (i < n && !all_missing(lik->outputs, y + i * P)) {
            continue;
        }
        if (i > from) {
            spec->log_densities(i - from, y + from * P, f + from * Q, lik->value, out + from, spec->user);
        }
        if (i < n) {
            out[i] = 0.0;
        }
        from = i + 1;
    }
}

static void custom_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    const thiele_likelihood_spec *spec = lik->spec;
    if (thi_spec_is_batched(spec)) {
        batched_density(lik, n, y, f, out);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double *row = y + i * lik->outputs;
        const double *latent = f + i * lik->latents;
        if (all_missing(lik->outputs, row)) {
            out[i] = 0.0;
            continue;
        }
        out[i] = spec->log_density != NULL ? spec->log_density(row, latent, lik->value, spec->user)
                                           : thi_custom_density(lik, row, latent);
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

/* A table for each support, without and with moments, and without an augmentation, with one of one latent and of more.
 */
#define CUSTOM_OPS(values, moments, augmented)                                                                         \
    {                                                                                                                  \
        .name = "custom", .support = values, .log_density = custom_density, .conditional = moments,                    \
        .even = thi_custom_even, .guess = thi_custom_guess, .augmentation = augmented                                  \
    }
#define CUSTOM_BOTH(values, moments)                                                                                   \
    {                                                                                                                  \
        CUSTOM_OPS(values, moments, NULL), CUSTOM_OPS(values, moments, &thi_custom_augmentation),                      \
            CUSTOM_OPS(values, moments, &thi_custom_augmentation_of_latents)                                           \
    }
#define CUSTOM(values)                                                                                                 \
    {                                                                                                                  \
        CUSTOM_BOTH(values, NULL), CUSTOM_BOTH(values, custom_conditional)                                             \
    }
static const thi_likelihood_ops custom_ops[THI_SUPPORTS][2][3] = {
    [THIELE_SUPPORT_REAL] = CUSTOM(THI_SUPPORT_REAL),     [THIELE_SUPPORT_POSITIVE] = CUSTOM(THI_SUPPORT_POSITIVE),
    [THIELE_SUPPORT_UNIT] = CUSTOM(THI_SUPPORT_UNIT),     [THIELE_SUPPORT_COUNT] = CUSTOM(THI_SUPPORT_COUNT),
    [THIELE_SUPPORT_BINARY] = CUSTOM(THI_SUPPORT_BINARY), [THIELE_SUPPORT_CLASS] = CUSTOM(THI_SUPPORT_CLASS),
};

static thiele_status check_spec(thiele_context *ctx, const thiele_likelihood_spec *spec)
{
    if (!thi_spec_is_known(spec)) {
        return thi_fail(
            ctx, THIELE_ERROR_FORMAT,
            "the likelihood was made for version %d of the interface (%zu bytes), and this library has versions "
            "1 and %d (%zu bytes): recompile it with this library's thiele/likelihood.h",
            spec->version, spec->size, THIELE_LIKELIHOOD_VERSION, sizeof *spec);
    }
    bool has_density = spec->log_density != NULL || thi_spec_is_batched(spec) || thi_spec_is_augmented(spec);
    if (spec->name == NULL || !has_density) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "your own likelihood needs a name and a log_density (or log_densities, or an augmentation)");
    }
    for (const char *c = spec->name; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the name of your own likelihood must be plain ASCII");
        }
    }
    enum { MOST = 65536 };
    if (spec->outputs < 1 || spec->latents < 1 || spec->parameters < 0 || spec->outputs > MOST ||
        spec->latents > MOST || spec->parameters > MOST || (spec->parameters > 0 && spec->parameter == NULL)) {
        return thi_fail(
            ctx, THIELE_ERROR_ARGUMENT,
            "likelihood '%.100s' has %d outputs, %d latents and %d parameters: it needs at least one output "
            "and one latent, and a list of its parameters if it has any",
            spec->name, spec->outputs, spec->latents, spec->parameters);
    }
    if ((unsigned)spec->support >= THI_SUPPORTS ||
        (spec->support == THIELE_SUPPORT_CLASS && (spec->classes < 2 || spec->classes > MOST))) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%.100s': its support is one of thiele_support, and one of classes has 2 to %d of "
                        "them, not %d",
                        spec->name, MOST, spec->classes);
    }
    return thi_custom_check(ctx, spec);
}

static bool is_word(const char *name)
{
    return name[0] >= 'a' && name[0] <= 'z' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static thiele_status add_parameter(thiele_likelihood *lik, thiele_context *ctx,
                                   const thiele_likelihood_parameter *parameter)
{
    if (parameter->name == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "parameter %d of likelihood '%.100s' has no name",
                        lik->parameters + 1, lik->spec->name);
    }
    if (!is_word(parameter->name)) {
        return thi_fail(
            ctx, THIELE_ERROR_ARGUMENT,
            "likelihood '%.100s': the name of parameter %d, '%.60s', is not a word of a-z, 0-9, _ and - that "
            "begins with a letter",
            lik->spec->name, lik->parameters + 1, parameter->name);
    }
    for (int i = 0; i < lik->parameters; i++) {
        if (strcmp(lik->phi[i].name, parameter->name) == 0) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "likelihood '%.100s' has two parameters called '%.60s'",
                            lik->spec->name, parameter->name);
        }
    }
    thiele_status status = thi_likelihood_add_phi(lik, ctx, parameter->name, 1.0, parameter->positive != 0);
    return status == THIELE_OK ? thi_likelihood_set_phi(lik, ctx, lik->parameters - 1, parameter->initial) : status;
}

thiele_status thiele_likelihood_custom(thiele_likelihood **out, thiele_context *ctx, const thiele_likelihood_spec *spec)
{
    THI_NEED_OUT(out, ctx, ctx && spec);
    thiele_likelihood *lik = NULL;
    thiele_status status;
    THI_TRY(check_spec(ctx, spec));
    THI_TRY(thi_alloc(ctx, &lik, 1, sizeof *lik));
    int augmented = !thi_spec_is_augmented(spec) ? 0 : spec->latents == 1 && spec->outputs == 1 ? 1 : 2;
    *lik = (thiele_likelihood){.ops = &custom_ops[spec->support][spec->moments != NULL][augmented],
                               .outputs = spec->outputs,
                               .latents = spec->latents,
                               .classes = spec->support == THIELE_SUPPORT_CLASS ? spec->classes : 0,
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

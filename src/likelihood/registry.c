/*
 * The built-in likelihoods by name, and what all likelihoods share: parameters, the values that y may take, their end.
 */
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <string.h>

#include "likelihood/families.h"

const thi_family_entry thi_family_entries[] = {
#define THI_FAMILY(ops, make) {&thi_lik_##ops, thi_make_##make},
#include THI_FAMILIES
#undef THI_FAMILY
    {NULL, NULL},
};

void thiele_likelihood_destroy(thiele_likelihood *likelihood)
{
    if (likelihood == NULL) {
        return;
    }
    for (int i = 0; i < likelihood->parameters; i++) {
        thi_free(likelihood->phi[i].name);
    }
    thi_free(likelihood->phi);
    thi_free(likelihood->value);
    thi_free(likelihood->path);
    if (likelihood->library != NULL) {
        dlclose(likelihood->library);
    }
    thi_free(likelihood);
}

/* One more user of a library that is loaded. */
static thiele_status share_library(thiele_context *ctx, void *library, void **out)
{
    struct link_map *map = NULL;
    *out = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return *out != NULL ? THIELE_OK : thi_fail(ctx, THIELE_ERROR_IO, "the library of a plug-in is no longer loaded");
}

static thiele_status copy_phi(thiele_likelihood *to, thiele_context *ctx, const thiele_likelihood *from)
{
    thiele_status status = THIELE_OK;
    for (int i = 0; i < from->parameters && status == THIELE_OK; i++) {
        status = thi_likelihood_add_phi(to, ctx, from->phi[i].name, from->value[i], from->phi[i].positive);
        if (status == THIELE_OK) {
            char *name = to->phi[i].name;
            to->phi[i] = from->phi[i];
            to->phi[i].name = name;
        }
    }
    return status;
}

thiele_status thi_likelihood_copy(thiele_likelihood **out, thiele_context *ctx, const thiele_likelihood *lik)
{
    *out = NULL;
    thiele_likelihood *copy = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &copy, 1, sizeof *copy));
    *copy = (thiele_likelihood){.ops = lik->ops,
                                .outputs = lik->outputs,
                                .latents = lik->latents,
                                .classes = lik->classes,
                                .nodes = lik->nodes,
                                .spec = lik->spec};
    THI_TRY(copy_phi(copy, ctx, lik));
    if (lik->path != NULL) {
        THI_TRY(thi_strdup(ctx, &copy->path, lik->path));
    }
    if (lik->library != NULL) {
        THI_TRY(share_library(ctx, lik->library, &copy->library));
    }
    *out = copy;
    copy = NULL;
out:
    thiele_likelihood_destroy(copy);
    return status;
}

/* --- parameters ------------------------------------------------------------------------------------------------------
 */

thiele_status thi_likelihood_add_phi(thiele_likelihood *lik, thiele_context *ctx, const char *name, double value,
                                     bool positive)
{
    size_t count = (size_t)lik->parameters + 1;
    thiele_status status;
    THI_TRY(thi_grow(ctx, &lik->phi, count, sizeof *lik->phi));
    THI_TRY(thi_grow(ctx, &lik->value, count, sizeof *lik->value));
    thi_phi *phi = &lik->phi[lik->parameters];
    THI_TRY(thi_strdup(ctx, &phi->name, name));
    phi->value = lik->value[lik->parameters] = value;
    phi->positive = positive;
    lik->parameters++;
out:
    return status;
}

thiele_status thi_likelihood_add_scaled(thiele_likelihood *lik, thiele_context *ctx, const char *name, double value,
                                        bool positive, int power)
{
    thiele_status status = thi_likelihood_add_phi(lik, ctx, name, value, positive);
    if (status == THIELE_OK) {
        lik->phi[lik->parameters - 1].power = power;
    }
    return status;
}

thiele_status thi_likelihood_set_phi(thiele_likelihood *lik, thiele_context *ctx, int index, double value)
{
    thi_phi *phi = &lik->phi[index];
    if (phi->positive && !(value >= 1e-100 && value <= 1e100)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "parameter '%s' of likelihood '%s' is positive, between 1e-100 and 1e100; %g is not", phi->name,
                        thiele_likelihood_name(lik), value);
    }
    if (!(fabs(value) <= 1e100)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "parameter '%s' of likelihood '%s' is a number up to 1e100 in size; %g is not", phi->name,
                        thiele_likelihood_name(lik), value);
    }
    phi->value = lik->value[index] = value;
    return THIELE_OK;
}

thiele_status thi_likelihood_check(const thiele_likelihood *lik, thiele_context *ctx)
{
    const char *wrong = lik->ops->check != NULL ? lik->ops->check(lik) : NULL;
    return wrong == NULL
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_ARGUMENT, "likelihood '%s': %s", thiele_likelihood_name(lik), wrong);
}

thiele_status thiele_likelihood_set_parameter(thiele_likelihood *likelihood, thiele_context *ctx, int index,
                                              double value)
{
    THI_NEED(ctx, likelihood && ctx);
    if (index < 0 || index >= likelihood->parameters) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "likelihood '%s' has %d parameters, counted from 0; %d is not one",
                        thiele_likelihood_name(likelihood), likelihood->parameters, index);
    }
    double before = likelihood->value[index];
    thiele_status status = thi_likelihood_set_phi(likelihood, ctx, index, value);
    if (status == THIELE_OK) {
        status = thi_likelihood_check(likelihood, ctx);
    }
    if (status != THIELE_OK) {
        likelihood->phi[index].value = likelihood->value[index] = before;
    }
    return status;
}

const char *thiele_likelihood_name(const thiele_likelihood *likelihood)
{
    THI_NEED_OR(NULL, likelihood);
    return likelihood->spec != NULL ? likelihood->spec->name : likelihood->ops->name;
}

int thiele_likelihood_outputs(const thiele_likelihood *likelihood)
{
    THI_NEED_OR(0, likelihood);
    return likelihood->outputs;
}

int thiele_likelihood_latents(const thiele_likelihood *likelihood)
{
    THI_NEED_OR(0, likelihood);
    return likelihood->latents;
}

int thiele_likelihood_parameters(const thiele_likelihood *likelihood)
{
    THI_NEED_OR(0, likelihood);
    return likelihood->parameters;
}

const char *thiele_likelihood_parameter_name(const thiele_likelihood *likelihood, int index)
{
    THI_NEED_OR(NULL, likelihood);
    return index >= 0 && index < likelihood->parameters ? likelihood->phi[index].name : NULL;
}

double thiele_likelihood_get_parameter(const thiele_likelihood *likelihood, int index)
{
    THI_NEED_OR(NAN, likelihood);
    return index >= 0 && index < likelihood->parameters ? likelihood->value[index] : NAN;
}

/* --- what y may be ---------------------------------------------------------------------------------------------------
 */

static bool whole_from_zero(double y)
{
    return y >= 0 && y == floor(y) && isfinite(y);
}

static const char *outside_support(const thiele_likelihood *lik, double y)
{
    static const char *const rule[THI_SUPPORTS] = {
        [THI_SUPPORT_REAL] = "a value must be a finite number",
        [THI_SUPPORT_POSITIVE] = "a value must be a positive number",
        [THI_SUPPORT_UNIT] = "a value must lie between 0 and 1, both excluded",
        [THI_SUPPORT_COUNT] = "a count must be 0, 1, 2, ...",
        [THI_SUPPORT_BINARY] = "a binary value must be -1 or +1",
        [THI_SUPPORT_CLASS] = "a class must be 0, 1, ..., the number of classes minus one",
    };
    const bool inside[THI_SUPPORTS] = {
        [THI_SUPPORT_REAL] = true,
        [THI_SUPPORT_POSITIVE] = y > 0,
        [THI_SUPPORT_UNIT] = y > 0 && y < 1,
        [THI_SUPPORT_COUNT] = whole_from_zero(y),
        [THI_SUPPORT_BINARY] = y == -1 || y == 1,
        [THI_SUPPORT_CLASS] = whole_from_zero(y) && y < lik->classes,
    };
    return inside[lik->ops->support] && isfinite(y) ? NULL : rule[lik->ops->support];
}

const char *thi_likelihood_refuses(const thiele_likelihood *lik, double y)
{
    if (isnan(y)) {
        return NULL;
    }
    const char *why = outside_support(lik, y);
    return why == NULL && lik->ops->refuses != NULL ? lik->ops->refuses(lik, y) : why;
}

void thiele_likelihood_log_density(const thiele_likelihood *likelihood, int64_t n, const double *y, const double *f,
                                   double *out)
{
    THI_NEED_OR(, likelihood && y && f && out);
    likelihood->ops->log_density(likelihood, n, y, f, out);
}

/* --- scales of y ---------------------------------------------------------------------------------------------------
 */

/* The first parameter of an output that has a unit of y is its scale, or the square of it; others are of other things.
 */
double thi_likelihood_scale_slope(const thiele_likelihood *lik, const double *y, int k)
{
    const thi_phi *phi = &lik->phi[k];
    if (!lik->ops->standardise || !phi->positive || phi->power <= 0) {
        return 0.0;
    }
    for (int j = 0; j < k; j++) {
        if (lik->phi[j].power > 0 && lik->phi[j].positive && lik->phi[j].output == phi->output) {
            return 0.0;
        }
    }
    return isnan(y[phi->output > 0 ? phi->output - 1 : 0]) ? 0.0 : 1.0 / phi->power;
}

double thi_likelihood_log_scale(const thiele_likelihood *lik, const double *y, const double *f)
{
    double sum = lik->ops->log_variance > 0 && !isnan(y[0]) ? 0.5 * f[lik->ops->log_variance] : 0.0;
    for (int k = 0; k < lik->parameters; k++) {
        double slope = thi_likelihood_scale_slope(lik, y, k);
        sum += slope != 0.0 ? slope * log(lik->value[k]) : 0.0;
    }
    return sum;
}

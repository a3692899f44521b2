/*
 * The posterior as draws: chains at the learned hyperparameters (fit/chains.h), frozen as a mixture of equal weights;
 * and a summary of how well they mixed, in the model's description.
 */
#include "model/sampling.h"

#include <math.h>
#include <string.h>

#include "fit/chains.h"
#include "model/methods.h"

/* Draws that a model keeps, at most: as many components as quantiles are taken of. */
enum { KEPT = THI_EXPECT_BLOCK };
/* R-hat of chains that never moved, or as good as never, as it is written. */
#define STUCK 1e9

void thi_sampling_clear(thiele_model *model)
{
    thi_free(model->sampling.sampler);
    model->sampling = (thi_sampling){0};
    model->components = 1;
    model->weight[0] = 1.0;
}

static thiele_status keep_summary(thi_fitting *f, const thi_chains_result *r)
{
    thi_sampling *s = &f->model->sampling;
    thi_free(s->sampler);
    *s = (thi_sampling){.chains = r->chains,
                        .draws = r->draws,
                        .kept = r->kept,
                        .mixing = r->mixing,
                        .acceptance = r->acceptance,
                        .step = r->step,
                        .divergences = r->divergences};
    s->mixing.rhat = s->mixing.rhat > STUCK ? STUCK : s->mixing.rhat;
    return thi_strdup(f->ctx, &s->sampler, r->sampler);
}

/* The draws in place of what the method had frozen. */
static thiele_status take_draws(thi_fitting *f, const thi_rows *rows, const thi_chains_result *r)
{
    thiele_model *model = f->model;
    thiele_status status;
    thi_model_clear_predictors(model);
    thi_free(model->weight);
    model->weight = NULL;
    THI_TRY(thi_alloc(f->ctx, &model->weight, (size_t)r->kept, sizeof *model->weight));
    model->components = (int)r->kept;
    for (int64_t s = 0; s < r->kept; s++) {
        model->weight[s] = 1.0 / (double)r->kept;
    }
    THI_TRY(thi_chains_freeze(r, f->ctx, &f->spec, rows, model->latent));
    model->jitter = fmax(model->jitter, r->jitter);
    THI_TRY(keep_summary(f, r));
out:
    return status;
}

/* The inducing inputs of each group, from the Gaussian posterior that the parameters were learned with; none of a
 * method on all rows. *Z is the caller's. */
static thiele_status take_basis(thi_fitting *f, double **Z, thi_chains_basis *basis)
{
    const thi_latents *latents = &f->spec.latents;
    const thi_predictor *first = f->model->latent;
    if (f->method->objective != NULL) {
        return THIELE_OK;
    }
    size_t numbers = (size_t)first->n * (size_t)first->kernel->dims;
    thiele_status status = thi_alloc(f->ctx, Z, numbers * (size_t)latents->groups, sizeof **Z);
    for (int q = 0; status == THIELE_OK && q < latents->count; q++) {
        memcpy(*Z + numbers * (size_t)latents->group[q], f->model->latent[q].basis, numbers * sizeof **Z);
    }
    *basis = (thi_chains_basis){*Z, first->n};
    return status;
}

thiele_status thi_sample(thi_fitting *f, const thi_rows *rows)
{
    const thiele_fit_options *o = f->options;
    thi_chains_settings settings = {.sampler = f->method->sampler,
                                    .chains = (int)o->sampling.chains,
                                    .draws = o->sampling.draws,
                                    .burn_in = o->sampling.burn_in,
                                    .thin = o->sampling.thin,
                                    .keep = KEPT,
                                    .step = o->sampling.step,
                                    .leaps = (int)o->sampling.leaps};
    thi_chains_result result = {0};
    double *Z = NULL;
    thiele_status status;
    THI_TRY(take_basis(f, &Z, &settings.basis));
    THI_TRY(thi_chains_run(f->ctx, f->driver, &f->spec, rows, &settings, &result));
    if (f->driver->stopped) {
        f->result.stop = f->driver->reason;
    }
    if (result.early) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "the chains were stopped before their first draw: the model has the Gaussian posterior that the "
                "parameters were learned with");
    } else {
        status = take_draws(f, rows, &result);
    }
out:
    thi_free(Z);
    thi_chains_clear(&result);
    return status;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* A number, or null where there is none. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Names in the description, and what they may be. Means of shares may end a rounding above 1. */
static const struct {
    const char *name;
    size_t at;
    double low, high;
} numbers[] = {
    {"rhat", offsetof(thi_sampling, mixing.rhat), 0.0, STUCK},
    {"share_unmixed", offsetof(thi_sampling, mixing.share), 0.0, 1.0},
    {"lag1", offsetof(thi_sampling, mixing.lag1), -1.0 - 1e-9, 1.0 + 1e-9},
    {"ess_least", offsetof(thi_sampling, mixing.ess_least), 0.0, INFINITY},
    {"ess_median", offsetof(thi_sampling, mixing.ess_median), 0.0, INFINITY},
    {"acceptance", offsetof(thi_sampling, acceptance), 0.0, 1.0 + 1e-9},
    {"step", offsetof(thi_sampling, step), 0.0, INFINITY},
};
static const struct {
    const char *name;
    size_t at;
    int64_t low, high;
} counts[] = {
    {"chains", offsetof(thi_sampling, chains), 1, THI_CHAINS_MAX},
    {"draws", offsetof(thi_sampling, draws), 1, (int64_t)1 << 31},
    {"kept", offsetof(thi_sampling, kept), 1, INT32_MAX},
    {"divergences", offsetof(thi_sampling, divergences), 0, INT64_MAX},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, COUNTS = sizeof counts / sizeof *counts };

int thi_sampling_to_json(const thiele_model *model, json_t *json)
{
    const char *from = (const char *)&model->sampling;
    if (model->sampling.sampler == NULL) {
        return 0;
    }
    json_t *out = json_pack("{s:s}", "sampler", model->sampling.sampler);
    int failed = out == NULL;
    for (int i = 0; i < COUNTS && !failed; i++) {
        const int64_t *count = (const void *)(from + counts[i].at);
        failed = json_object_set_new(out, counts[i].name, json_integer((json_int_t)*count));
    }
    for (int i = 0; i < NUMBERS && !failed; i++) {
        const double *x = (const void *)(from + numbers[i].at);
        failed = json_object_set_new(out, numbers[i].name, number(*x));
    }
    return json_object_set_new(json, "sampling", out) | failed;
}

static bool is_by(const thiele_model *model, const char *sampler)
{
    const thi_method *method = thi_method_named(model->method);
    return sampler != NULL && method != NULL && method->sampler != NULL && strcmp(method->sampler, sampler) == 0;
}

thiele_status thi_sampling_from_json(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *from = json_object_get(json, "sampling");
    const char *sampler = json_string_value(json_object_get(from, "sampler"));
    char *to = (char *)&model->sampling;
    bool good = true;
    if (from == NULL) {
        return THIELE_OK;
    }
    for (int i = 0; i < COUNTS; i++) {
        const json_t *value = json_object_get(from, counts[i].name);
        int64_t count = json_integer_value(value);
        *(int64_t *)(void *)(to + counts[i].at) = count;
        good = good && json_is_integer(value) && count >= counts[i].low && count <= counts[i].high;
    }
    for (int i = 0; i < NUMBERS; i++) {
        const json_t *value = json_object_get(from, numbers[i].name);
        double x = json_is_number(value) ? json_number_value(value) : NAN;
        *(double *)(void *)(to + numbers[i].at) = x;
        good = good && (json_is_null(value) || (x >= numbers[i].low && x <= numbers[i].high));
    }
    /* Every draw that was kept is a component. */
    if (!good || !is_by(model, sampler) || model->sampling.kept != model->components) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'sampling' makes no sense");
    }
    return thi_strdup(ctx, &model->sampling.sampler, sampler);
}

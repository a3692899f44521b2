/* A model as JSON, and back from JSON that nobody vouches for. */
#include "model/describe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const thi_stop_names[THIELE_STOP_FIXED + 1] = {"converged", "iterations", "deadline", "cancelled", "fixed"};

const thi_score_field thi_score_fields[THI_SCORE_FIELDS] = {
    {"rmse", offsetof(thiele_scores, rmse)},
    {"mae", offsetof(thiele_scores, mae)},
    {"smse", offsetof(thiele_scores, smse)},
    {"nlpd", offsetof(thiele_scores, nlpd)},
    {"msll", offsetof(thiele_scores, msll)},
    {"crps", offsetof(thiele_scores, crps)},
    {"coverage50", offsetof(thiele_scores, coverage50)},
    {"coverage90", offsetof(thiele_scores, coverage90)},
    {"coverage95", offsetof(thiele_scores, coverage95)},
};

thiele_status thi_json_text(thiele_context *ctx, json_t *json, size_t flags, char **text)
{
    *text = NULL;
    char *dump = json != NULL ? json_dumps(json, flags | JSON_REAL_PRECISION(17)) : NULL;
    thiele_status status = dump != NULL ? thi_strdup(ctx, text, dump)
                                        : thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while JSON was written");
    free(dump);
    return status;
}

/* A number, or null for one that JSON cannot hold. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *scores_to_json(const thiele_scores *scores)
{
    json_t *json = json_pack("{s:I}", "rows", (json_int_t)scores->rows);
    int failed = json == NULL;
    for (int i = 0; i < THI_SCORE_FIELDS; i++) {
        double value = *(const double *)(const void *)((const char *)scores + thi_score_fields[i].offset);
        failed |= json_object_set_new(json, thi_score_fields[i].name, number(value));
    }
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static bool scores_from_json(const json_t *json, thiele_scores *scores)
{
    const json_t *rows = json_object_get(json, "rows");
    scores->rows = json_integer_value(rows);
    bool fits = json_is_integer(rows) && scores->rows >= 0;
    for (int i = 0; i < THI_SCORE_FIELDS; i++) {
        const json_t *value = json_object_get(json, thi_score_fields[i].name);
        fits = fits && (json_is_real(value) || json_is_null(value));
        *(double *)(void *)((char *)scores + thi_score_fields[i].offset) =
            json_is_null(value) ? NAN : json_real_value(value);
    }
    return fits;
}

static json_t *learned_to_json(const thiele_model *model)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int i = 0; i < model->learned_count; i++) {
        const thi_learned *p = &model->learned[i];
        failed |= json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:b, s:b}", "name", p->name, "value",
                                                        number(p->value), "fixed", (int)p->fixed, "redundant",
                                                        (int)p->redundant, "standardised", (int)p->standardised));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *worst_to_json(const thiele_model *model)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int i = 0; i < model->worst_count; i++) {
        failed |= json_array_append_new(
            list, json_pack("{s:I, s:o}", "row", (json_int_t)model->worst_row[i] + 1, "z", number(model->worst_z[i])));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *thi_model_to_json(const thiele_model *model)
{
    /* json_pack takes over what 'o' is given, also when it fails; a NULL makes it fail. */
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "method",
                     model->method, "why", model->why, "kernel", model->kernel, "mean",
                     thi_mean_name(model->predictor.mean), "stop", thi_stop_names[model->stop], "rows",
                     (json_int_t)model->rows, "evaluations", (json_int_t)model->evaluations, "iterations",
                     model->iterations, "noise", number(model->noise), "log_marginal_likelihood",
                     number(model->log_marginal), "jitter", number(model->jitter), "parameters", learned_to_json(model),
                     "loo", scores_to_json(&model->loo), "worst", worst_to_json(model), "holdout",
                     scores_to_json(&model->holdout), "columns", thi_encoder_to_json(&model->encoder));
}

/* --- and back --------------------------------------------------------------------------------------------------------
 */

static thiele_status bad(thiele_context *ctx, const char *field)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field '%s' is absent or makes no sense", field);
}

static thiele_status take_text(thiele_context *ctx, const json_t *json, const char *field, char **out)
{
    const char *text = json_string_value(json_object_get(json, field));
    return text != NULL ? thi_strdup(ctx, out, text) : bad(ctx, field);
}

static thiele_status take_number(thiele_context *ctx, const json_t *json, const char *field, double low, double *out)
{
    const json_t *value = json_object_get(json, field);
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= low ? THIELE_OK : bad(ctx, field);
}

static thiele_status take_count(thiele_context *ctx, const json_t *json, const char *field, int64_t high, int64_t *out)
{
    const json_t *value = json_object_get(json, field);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0 && *out <= high ? THIELE_OK : bad(ctx, field);
}

static thiele_status take_stop(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "stop"));
    for (int stop = 0; name != NULL && stop <= THIELE_STOP_FIXED; stop++) {
        if (strcmp(name, thi_stop_names[stop]) == 0) {
            model->stop = (thiele_stop)stop;
            return THIELE_OK;
        }
    }
    return bad(ctx, "stop");
}

static thiele_status take_learned(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *list = json_object_get(json, "parameters");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count < 2 || count > 1000000) {
        return bad(ctx, "parameters");
    }
    thiele_status status = thi_alloc(ctx, &model->learned, count, sizeof *model->learned);
    for (size_t i = 0; status == THIELE_OK && i < count; i++) {
        const json_t *entry = json_array_get(list, i);
        thi_learned *p = &model->learned[i];
        status = take_text(ctx, entry, "name", &p->name);
        model->learned_count = (int)i + 1;
        if (status == THIELE_OK) {
            status = take_number(ctx, entry, "value", -INFINITY, &p->value);
            p->fixed = json_is_true(json_object_get(entry, "fixed"));
            p->redundant = json_is_true(json_object_get(entry, "redundant"));
            p->standardised = json_is_true(json_object_get(entry, "standardised"));
        }
    }
    return status;
}

static thiele_status take_worst(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *list = json_object_get(json, "worst");
    if (!json_is_array(list) || json_array_size(list) > THI_WORST_MAX) {
        return bad(ctx, "worst");
    }
    model->worst_count = (int)json_array_size(list);
    for (int i = 0; i < model->worst_count; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        model->worst_row[i] = json_integer_value(json_object_get(entry, "row")) - 1;
        model->worst_z[i] = json_real_value(json_object_get(entry, "z"));
        if (model->worst_row[i] < 0) {
            return bad(ctx, "worst");
        }
    }
    return THIELE_OK;
}

thiele_status thi_model_from_json(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    int64_t iterations = 0;
    thiele_status status;
    THI_TRY(take_text(ctx, json, "method", &model->method));
    THI_TRY(take_text(ctx, json, "why", &model->why));
    THI_TRY(take_text(ctx, json, "kernel", &model->kernel));
    THI_TRY(take_stop(model, ctx, json));
    THI_TRY(take_count(ctx, json, "rows", INT32_MAX, &model->rows));
    THI_TRY(take_count(ctx, json, "evaluations", INT64_MAX, &model->evaluations));
    THI_TRY(take_count(ctx, json, "iterations", INT32_MAX, &iterations));
    model->iterations = (int)iterations;
    THI_TRY(take_number(ctx, json, "noise", 0.0, &model->noise));
    THI_TRY(take_number(ctx, json, "log_marginal_likelihood", -INFINITY, &model->log_marginal));
    THI_TRY(take_number(ctx, json, "jitter", 0.0, &model->jitter));
    THI_TRY(take_learned(model, ctx, json));
    THI_TRY(take_worst(model, ctx, json));
    if (!scores_from_json(json_object_get(json, "loo"), &model->loo) ||
        !scores_from_json(json_object_get(json, "holdout"), &model->holdout)) {
        THI_TRY(bad(ctx, "loo"));
    }
    THI_TRY(thi_encoder_from_json(&model->encoder, ctx, json_object_get(json, "columns")));
out:
    return status;
}

/* The learned kernel in the units of the data. */
static thiele_status learned_kernel(const thiele_model *model, thiele_context *ctx, char **text)
{
    thiele_kernel *copy = NULL;
    *text = NULL;
    thiele_status status = thi_kernel_copy(&copy, ctx, model->predictor.kernel);
    if (status == THIELE_OK) {
        thi_kernel_rescale(copy, model->encoder.scale, model->encoder.target_scale, 1);
        status = thiele_kernel_print(copy, ctx, 1, text);
    }
    thiele_kernel_destroy(copy);
    return status;
}

thiele_status thiele_model_describe(const thiele_model *model, thiele_context *ctx, char **text)
{
    char *kernel = NULL;
    json_t *json = NULL;
    *text = NULL;
    thiele_status status;
    THI_TRY(learned_kernel(model, ctx, &kernel));
    json = thi_model_to_json(model);
    double noise = model->noise * model->encoder.target_scale * model->encoder.target_scale;
    if (json == NULL || json_object_set_new(json, "learned_kernel", json_string(kernel)) != 0 ||
        json_object_set_new(json, "noise", json_real(noise)) != 0 ||
        json_object_set_new(json, "version", json_string(thiele_version())) != 0) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while the model was described"));
    }
    THI_TRY(thi_json_text(ctx, json, JSON_INDENT(2), text));
out:
    thi_free(kernel);
    json_decref(json);
    return status;
}

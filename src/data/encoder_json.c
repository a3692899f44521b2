/*
 * The encoder as JSON, in the header of a model file:
 *   {"inputs": [{"name": "age", "center": 41.5, "scale": 9.2}, {"name": "site", "levels": ["north", "south"]}],
 *    "target": {"name": "strength", "center": ..., "scale": ..., "mean": ..., "variance": ...}}
 * Reading trusts nothing: every name, level and number is checked before it is used.
 */
#include <math.h>
#include <string.h>

#include "data/encoder.h"

/* --- writing ---------------------------------------------------------------------------------------------------- */

static json_t *input_to_json(const thi_encoder *encoder, const thi_input *input)
{
    if (input->levels == 0) {
        return json_pack("{s:s, s:f, s:f}", "name", input->name, "center", encoder->center[input->first], "scale",
                         encoder->scale[input->first]);
    }
    json_t *levels = json_array();
    for (int l = 0; l < input->levels && levels != NULL; l++) {
        if (json_array_append_new(levels, json_string(input->level[l])) != 0) {
            json_decref(levels);
            levels = NULL;
        }
    }
    return levels != NULL ? json_pack("{s:s, s:o}", "name", input->name, "levels", levels) : NULL;
}

json_t *thi_encoder_to_json(const thi_encoder *encoder)
{
    json_t *json = json_object(), *inputs = json_array(), *target = NULL;
    int failed = json == NULL || inputs == NULL;
    for (int i = 0; i < encoder->inputs && !failed; i++) {
        failed = json_array_append_new(inputs, input_to_json(encoder, &encoder->input[i]));
    }
    if (encoder->target != NULL && !failed) {
        target =
            json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", encoder->target, "center", encoder->target_center, "scale",
                      encoder->target_scale, "mean", encoder->target_mean, "variance", encoder->target_variance);
        failed = json_object_set_new(json, "target", target);
    }
    if (encoder->missing != NULL && !failed) {
        failed = json_object_set_new(json, "missing", json_string(encoder->missing));
    }
    if (failed || json_object_set(json, "inputs", inputs) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(inputs);
    return json;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

enum { INPUTS_MAX = 1000000 };

static thiele_status bad(thiele_context *ctx, const char *what)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "the model's description of its columns is damaged: %s", what);
}

static thiele_status get_text(thiele_context *ctx, const json_t *json, char **out)
{
    const char *text = json_string_value(json);
    /* a zero byte inside would make two names of one */
    if (text == NULL || *text == '\0' || strlen(text) != json_string_length(json)) {
        return bad(ctx, "a name is missing");
    }
    return thi_strdup(ctx, out, text);
}

static thiele_status get_number(thiele_context *ctx, const json_t *object, const char *key, bool positive, double *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_number_value(value);
    if (!json_is_number(value) || !isfinite(*out) || (positive && !(*out > 0))) {
        return bad(ctx, "a number is missing or out of range");
    }
    return THIELE_OK;
}

static thiele_status get_levels(thi_input *input, thiele_context *ctx, const json_t *levels)
{
    const size_t count = json_array_size(levels);
    if (count < 1 || count > THI_LEVELS_MAX) {
        return bad(ctx, "a column has no levels or too many");
    }
    thiele_status status = thi_alloc(ctx, &input->level, count, sizeof *input->level);
    for (size_t l = 0; l < count && status == THIELE_OK; l++) {
        status = get_text(ctx, json_array_get(levels, l), &input->level[l]);
        if (status != THIELE_OK) {
            break;
        }
        input->levels++;
        if (l > 0 && strcmp(input->level[l - 1], input->level[l]) >= 0) {
            status = bad(ctx, "levels are not in order");
        }
    }
    return status;
}

static thiele_status get_inputs(thi_encoder *encoder, thiele_context *ctx, const json_t *inputs)
{
    const size_t count = json_array_size(inputs);
    thiele_status status;
    if (count < 1 || count > INPUTS_MAX) {
        return bad(ctx, "it has no inputs or too many");
    }
    THI_TRY(thi_encoder_alloc(encoder, ctx, (int)count));
    for (size_t i = 0; i < count; i++) {
        const json_t *json = json_array_get(inputs, i);
        const json_t *levels = json_object_get(json, "levels");
        THI_TRY(get_text(ctx, json_object_get(json, "name"), &encoder->input[i].name));
        if (levels != NULL) {
            THI_TRY(get_levels(&encoder->input[i], ctx, levels));
        }
    }
    THI_TRY(thi_encoder_place(encoder, ctx));
    for (size_t i = 0; i < count; i++) {
        const thi_input *input = &encoder->input[i];
        if (input->levels == 0) {
            const json_t *json = json_array_get(inputs, i);
            THI_TRY(get_number(ctx, json, "center", false, &encoder->center[input->first]));
            THI_TRY(get_number(ctx, json, "scale", true, &encoder->scale[input->first]));
        }
    }
out:
    return status;
}

static thiele_status get_target(thi_encoder *encoder, thiele_context *ctx, const json_t *target)
{
    thiele_status status;
    THI_TRY(get_text(ctx, json_object_get(target, "name"), &encoder->target));
    THI_TRY(get_number(ctx, target, "center", false, &encoder->target_center));
    THI_TRY(get_number(ctx, target, "scale", true, &encoder->target_scale));
    THI_TRY(get_number(ctx, target, "mean", false, &encoder->target_mean));
    THI_TRY(get_number(ctx, target, "variance", true, &encoder->target_variance));
out:
    return status;
}

/* Names must differ: columns are found by them. */
static thiele_status check_names(thiele_context *ctx, const thi_encoder *encoder)
{
    json_t *seen = json_object();
    int failed = seen == NULL;
    bool twice = false;
    if (encoder->target != NULL && !failed) {
        failed = json_object_set_new(seen, encoder->target, json_null());
    }
    for (int i = 0; i < encoder->inputs && !failed && !twice; i++) {
        twice = json_object_get(seen, encoder->input[i].name) != NULL;
        failed = json_object_set_new(seen, encoder->input[i].name, json_null());
    }
    json_decref(seen);
    if (failed) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory");
    }
    return twice ? bad(ctx, "two columns have the same name") : THIELE_OK;
}

thiele_status thi_encoder_from_json(thi_encoder *encoder, thiele_context *ctx, const json_t *json)
{
    const json_t *target = json_object_get(json, "target");
    thiele_status status;
    *encoder = (thi_encoder){0};
    THI_TRY(get_inputs(encoder, ctx, json_object_get(json, "inputs")));
    if (target == NULL) {
        THI_TRY(bad(ctx, "it has no target"));
    }
    THI_TRY(get_target(encoder, ctx, target));
    if (json_object_get(json, "missing") != NULL) {
        THI_TRY(get_text(ctx, json_object_get(json, "missing"), &encoder->missing));
    }
    THI_TRY(check_names(ctx, encoder));
    return THIELE_OK;
out:
    thi_encoder_clear(encoder);
    return status;
}

/*
 * The encoder from JSON (encoder_json.c) that nobody vouches for: every name, level, label and number is checked before
 * it is used. Fields that came later are optional, and say what was done before where they are absent.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/encoder.h"

enum { COLUMNS_MAX = 1000000 };

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

typedef enum range { ANY, NOT_NEGATIVE, POSITIVE } range;

static thiele_status get_number(thiele_context *ctx, const json_t *object, const char *key, range allowed, double *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_number_value(value);
    if (!json_is_number(value) || !isfinite(*out) || (allowed == NOT_NEGATIVE && *out < 0) ||
        (allowed == POSITIVE && !(*out > 0))) {
        return bad(ctx, "a number is missing or out of range");
    }
    return THIELE_OK;
}

static thiele_status get_levels(thi_input *input, thiele_context *ctx, const json_t *levels, size_t most)
{
    const size_t count = json_array_size(levels);
    if (count < 1 || count > most) {
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

static thiele_status get_dates(thi_input *input, thiele_context *ctx, const json_t *json)
{
    static const double furthest = 1e7; /* days: the years of four digits are nearer */
    const char *name = json_string_value(json_object_get(json, "dates"));
    if (input->levels > 0) {
        return bad(ctx, "a column has levels and dates");
    }
    input->dates.form = name != NULL ? thi_date_form_named(name) : THI_NO_DATE;
    thiele_status status = get_number(ctx, json, "from", ANY, &input->dates.from);
    if (status == THIELE_OK && (input->dates.form == THI_NO_DATE || fabs(input->dates.from) > furthest)) {
        status = bad(ctx, "the dates of a column make no sense");
    }
    return status;
}

/* What stands for missing values: files from before there was such a thing lack it. */
static thiele_status get_fill(thi_input *input, thiele_context *ctx, const json_t *json)
{
    const json_t *fill = json_object_get(json, "fill");
    input->fills = fill != NULL;
    if (input->levels > 0) {
        return fill == NULL || json_is_true(fill) ? THIELE_OK : bad(ctx, "a category is filled in by something");
    }
    return fill == NULL ? THIELE_OK : get_number(ctx, json, "fill", ANY, &input->fill);
}

/* What fills in a column must be an input like others. */
static thiele_status check_fill(const thi_encoder *encoder, thiele_context *ctx, const thi_input *input)
{
    double x = (input->fill - encoder->center[input->first]) / encoder->scale[input->first];
    return !input->fills || fabs(x) <= THI_INPUT_MAX ? THIELE_OK : bad(ctx, "what fills in a column is too large");
}

/* What came to the levels of a column later: files from before then lack it. */
static thiele_status get_level_flags(thi_input *input, thiele_context *ctx, const json_t *json)
{
    const json_t *others = json_object_get(json, "others"), *one_scale = json_object_get(json, "one_scale");
    const json_t *rare = json_object_get(json, "rare");
    if ((others != NULL || one_scale != NULL || rare != NULL) && input->levels == 0) {
        return bad(ctx, "a column without levels has others");
    }
    if ((others != NULL && !json_is_boolean(others)) || (one_scale != NULL && !json_is_boolean(one_scale))) {
        return bad(ctx, "a yes or no is something else");
    }
    if (rare != NULL &&
        (!json_is_true(others) || !(json_integer_value(rare) >= 1) || json_integer_value(rare) > THI_KEYS_MAX)) {
        return bad(ctx, "a column has rare values that make no sense");
    }
    input->others = json_is_true(others);
    input->rare = (int)json_integer_value(rare);
    input->one_scale = json_is_true(one_scale);
    return THIELE_OK;
}

/* key: the partition, or NULL. */
static thiele_status get_inputs(thi_encoder *encoder, thiele_context *ctx, const json_t *inputs, const json_t *key)
{
    const size_t count = json_array_size(inputs);
    thiele_status status;
    if (count < 1 || count > COLUMNS_MAX) {
        return bad(ctx, "it has no inputs or too many");
    }
    THI_TRY(thi_encoder_alloc(encoder, ctx, (int)count));
    for (size_t i = 0; i < count; i++) {
        const json_t *json = json_array_get(inputs, i);
        const json_t *levels = json_object_get(json, "levels");
        THI_TRY(get_text(ctx, json_object_get(json, "name"), &encoder->input[i].name));
        if (levels != NULL) {
            THI_TRY(get_levels(&encoder->input[i], ctx, levels, THI_LEVELS_MAX));
        }
        THI_TRY(get_level_flags(&encoder->input[i], ctx, json));
        THI_TRY(get_fill(&encoder->input[i], ctx, json));
        if (json_object_get(json, "dates") != NULL) {
            THI_TRY(get_dates(&encoder->input[i], ctx, json));
        }
    }
    if (key != NULL) {
        THI_TRY(get_text(ctx, json_object_get(key, "name"), &encoder->key.name));
        THI_TRY(get_levels(&encoder->key, ctx, json_object_get(key, "levels"), THI_KEYS_MAX));
    }
    THI_TRY(thi_encoder_place(encoder, ctx));
    for (size_t i = 0; i < count; i++) {
        const thi_input *input = &encoder->input[i];
        if (input->levels == 0) {
            const json_t *json = json_array_get(inputs, i);
            THI_TRY(get_number(ctx, json, "center", ANY, &encoder->center[input->first]));
            THI_TRY(get_number(ctx, json, "scale", POSITIVE, &encoder->scale[input->first]));
            THI_TRY(check_fill(encoder, ctx, input));
        }
    }
out:
    return status;
}

static thiele_status get_flag(thiele_context *ctx, const json_t *object, const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_is_true(value);
    return json_is_boolean(value) ? THIELE_OK : bad(ctx, "a yes or no is missing");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A label that stands there twice would be two classes at once; of numbers the value counts. */
static thiele_status check_distinct(thiele_context *ctx, const thi_target *target)
{
    char *text[THI_LEVELS_MAX];
    double value[THI_LEVELS_MAX];
    const size_t count = (size_t)target->levels;
    bool twice = false;
    memcpy(text, target->level, count * sizeof *text);
    qsort(text, count, sizeof *text, compare_texts);
    if (target->level_value != NULL) {
        memcpy(value, target->level_value, count * sizeof *value);
        qsort(value, count, sizeof *value, compare_numbers);
    }
    for (size_t l = 1; l < count; l++) {
        twice = twice || strcmp(text[l - 1], text[l]) == 0 || (target->level_value != NULL && value[l - 1] == value[l]);
    }
    return twice ? bad(ctx, "a label is there twice") : THIELE_OK;
}

static thiele_status get_labels(thi_target *target, thiele_context *ctx, const json_t *json, const json_t *labels)
{
    const size_t count = json_array_size(labels);
    bool numeric;
    thiele_status status;
    if (count < 2 || count > THI_LEVELS_MAX || target->center != 0 || target->scale != 1) {
        return bad(ctx, "a target has fewer than two labels, too many, or a scale beside them");
    }
    THI_TRY(get_flag(ctx, json, "numeric", &numeric));
    THI_TRY(thi_alloc(ctx, &target->level, count, sizeof *target->level));
    if (numeric) {
        THI_TRY(thi_alloc(ctx, &target->level_value, count, sizeof *target->level_value));
    }
    for (size_t l = 0; l < count; l++) {
        THI_TRY(get_text(ctx, json_array_get(labels, l), &target->level[l]));
        target->levels++;
        if (numeric && (!thi_parse_number(target->level[l], strlen(target->level[l]), &target->level_value[l]) ||
                        !isfinite(target->level_value[l]))) {
            THI_TRY(bad(ctx, "a label should be a number"));
        }
    }
    THI_TRY(check_distinct(ctx, target));
out:
    return status;
}

static thiele_status get_target(thi_target *target, thiele_context *ctx, const json_t *json)
{
    const json_t *labels = json_object_get(json, "labels");
    thiele_status status;
    THI_TRY(get_text(ctx, json_object_get(json, "name"), &target->name));
    THI_TRY(get_number(ctx, json, "center", ANY, &target->center));
    THI_TRY(get_number(ctx, json, "scale", POSITIVE, &target->scale));
    THI_TRY(get_number(ctx, json, "mean", ANY, &target->mean));
    THI_TRY(get_number(ctx, json, "variance", NOT_NEGATIVE, &target->variance));
    if (labels != NULL) {
        THI_TRY(get_labels(target, ctx, json, labels));
    }
out:
    return status;
}

static thiele_status get_targets(thi_encoder *encoder, thiele_context *ctx, const json_t *json)
{
    const json_t *targets = json_object_get(json, "targets");
    const size_t count = json_array_size(targets);
    thiele_status status;
    if (count < 1 || count > COLUMNS_MAX) {
        return bad(ctx, "it has no targets or too many");
    }
    THI_TRY(thi_encoder_alloc_targets(encoder, ctx, (int)count));
    for (size_t p = 0; p < count; p++) {
        THI_TRY(get_target(&encoder->target[p], ctx, json_array_get(targets, p)));
        if (count > 1 && encoder->target[p].levels > 0) {
            THI_TRY(bad(ctx, "it has labels and several targets"));
        }
    }
    THI_TRY(get_flag(ctx, json, "signs", &encoder->signs));
    THI_TRY(get_flag(ctx, json, "partial", &encoder->partial));
    if (encoder->signs && encoder->target[0].levels != 2) {
        THI_TRY(bad(ctx, "its targets contradict what is said of them"));
    }
out:
    return status;
}

/* The columns that were left out, where there were any. */
static thiele_status get_dropped(thi_encoder *encoder, thiele_context *ctx, const json_t *dropped)
{
    const size_t count = json_array_size(dropped);
    thiele_status status;
    if (dropped == NULL) {
        return THIELE_OK;
    }
    if (!json_is_array(dropped) || count < 1 || count > COLUMNS_MAX) {
        return bad(ctx, "the list of columns that were left out makes no sense");
    }
    THI_TRY(thi_alloc(ctx, &encoder->dropped_name, count, sizeof *encoder->dropped_name));
    for (size_t i = 0; i < count; i++) {
        THI_TRY(get_text(ctx, json_array_get(dropped, i), &encoder->dropped_name[i]));
        encoder->dropped++;
    }
out:
    return status;
}

/* Adds a name; *twice when it was there already. */
static int add_name(json_t *seen, const char *name, bool *twice)
{
    *twice = *twice || json_object_get(seen, name) != NULL;
    return json_object_set_new(seen, name, json_null());
}

/* Names must differ: columns are found by them. */
static thiele_status check_names(thiele_context *ctx, const thi_encoder *encoder)
{
    json_t *seen = json_object();
    int failed = seen == NULL;
    bool twice = false;
    for (int p = 0; p < encoder->targets && !failed; p++) {
        failed = add_name(seen, encoder->target[p].name, &twice);
    }
    for (int i = 0; i < encoder->inputs && !failed; i++) {
        failed = add_name(seen, encoder->input[i].name, &twice);
    }
    if (encoder->exposure != NULL && !failed) {
        failed = add_name(seen, encoder->exposure, &twice);
    }
    if (encoder->weights != NULL && !failed) {
        failed = add_name(seen, encoder->weights, &twice);
    }
    json_decref(seen);
    if (failed) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory");
    }
    return twice ? bad(ctx, "two columns have the same name") : THIELE_OK;
}

thiele_status thi_encoder_from_json(thi_encoder *encoder, thiele_context *ctx, const json_t *json)
{
    thiele_status status;
    *encoder = (thi_encoder){0};
    THI_TRY(get_inputs(encoder, ctx, json_object_get(json, "inputs"), json_object_get(json, "partition")));
    THI_TRY(get_targets(encoder, ctx, json));
    if (json_object_get(json, "exposure") != NULL) {
        THI_TRY(get_text(ctx, json_object_get(json, "exposure"), &encoder->exposure));
    }
    if (json_object_get(json, "weights") != NULL) {
        THI_TRY(get_text(ctx, json_object_get(json, "weights"), &encoder->weights));
    }
    if (json_object_get(json, "missing") != NULL) {
        THI_TRY(get_text(ctx, json_object_get(json, "missing"), &encoder->missing));
    }
    THI_TRY(get_dropped(encoder, ctx, json_object_get(json, "dropped")));
    THI_TRY(check_names(ctx, encoder));
    return THIELE_OK;
out:
    thi_encoder_clear(encoder);
    return status;
}

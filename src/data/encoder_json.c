/*
 * The encoder as JSON, in the header of a model file:
 *   {"inputs": [{"name": "age", "center": 41.5, "scale": 9.2},
 *               {"name": "site", "levels": ["north", "south"], "others": true, "rare": 3, "one_scale": true},
 *               {"name": "day", "center": 180, "scale": 100, "dates": "year-month-day", "from": 19723,
 *                "since": "2024-01-01"},
 *               {"name": "weight", "center": 70, "scale": 9, "fill": 70}],
 *    "targets": [{"name": "grade", "center": 0, "scale": 1, "mean": ..., "variance": ..., "labels": ["1", "2"],
 *                 "numeric": true}],
 *    "signs": false, "partial": false, "exposure": "hours", "weights": "copies", "dropped": ["unit"],
 *    "partition": {"name": "station", "levels": ["1", "2"]}}
 * encoder_read.c reads it back.
 */
#include "data/encoder.h"

static json_t *texts_to_json(char *const *text, int count)
{
    json_t *texts = json_array();
    for (int i = 0; i < count && texts != NULL; i++) {
        if (json_array_append_new(texts, json_string(text[i])) != 0) {
            json_decref(texts);
            texts = NULL;
        }
    }
    return texts;
}

/* "since" is for people: "from" has all digits. */
static json_t *add_dates(json_t *json, const thi_dates *dates)
{
    char since[THI_DATE_MAX];
    thi_date_write(dates->from, dates->form, since);
    if (json_object_set_new(json, "dates", json_string(thi_date_form_names[dates->form])) != 0 ||
        json_object_set_new(json, "from", json_real(dates->from)) != 0 ||
        json_object_set_new(json, "since", json_string(since)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* Of a category there is nothing to fill in. */
static json_t *add_fill(json_t *json, json_t *fill)
{
    if (json_object_set_new(json, "fill", fill) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *input_to_json(const thi_encoder *encoder, const thi_input *input)
{
    if (input->levels == 0) {
        json_t *json = json_pack("{s:s, s:f, s:f}", "name", input->name, "center", encoder->center[input->first],
                                 "scale", encoder->scale[input->first]);
        json = json != NULL && input->fills ? add_fill(json, json_real(input->fill)) : json;
        return json != NULL && input->dates.form != THI_NO_DATE ? add_dates(json, &input->dates) : json;
    }
    json_t *levels = texts_to_json(input->level, input->levels);
    json_t *json = levels != NULL ? json_pack("{s:s, s:o}", "name", input->name, "levels", levels) : NULL;
    int failed = json == NULL;
    failed = failed || (input->others && json_object_set_new(json, "others", json_true()) != 0);
    failed = failed || (input->rare > 0 && json_object_set_new(json, "rare", json_integer(input->rare)) != 0);
    failed = failed || (input->one_scale && json_object_set_new(json, "one_scale", json_true()) != 0);
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return input->fills ? add_fill(json, json_true()) : json;
}

static json_t *target_to_json(const thi_target *target)
{
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", target->name, "center", target->center, "scale",
                             target->scale, "mean", target->mean, "variance", target->variance);
    if (json != NULL && target->levels > 0 &&
        (json_object_set_new(json, "labels", texts_to_json(target->level, target->levels)) != 0 ||
         json_object_set_new(json, "numeric", json_boolean(target->level_value != NULL)) != 0)) {
        json_decref(json);
        json = NULL;
    }
    return json;
}

json_t *thi_encoder_to_json(const thi_encoder *encoder)
{
    json_t *inputs = json_array(), *targets = json_array();
    int failed = inputs == NULL || targets == NULL;
    for (int i = 0; i < encoder->inputs && !failed; i++) {
        failed = json_array_append_new(inputs, input_to_json(encoder, &encoder->input[i]));
    }
    for (int p = 0; p < encoder->targets && !failed; p++) {
        failed = json_array_append_new(targets, target_to_json(&encoder->target[p]));
    }
    json_t *json = failed ? NULL
                          : json_pack("{s:O, s:O, s:b, s:b}", "inputs", inputs, "targets", targets, "signs",
                                      encoder->signs, "partial", encoder->partial);
    failed = json == NULL;
    if (encoder->exposure != NULL && !failed) {
        failed = json_object_set_new(json, "exposure", json_string(encoder->exposure));
    }
    if (encoder->weights != NULL && !failed) {
        failed = json_object_set_new(json, "weights", json_string(encoder->weights));
    }
    if (encoder->key.name != NULL && !failed) {
        failed = json_object_set_new(json, "partition", input_to_json(encoder, &encoder->key));
    }
    if (encoder->missing != NULL && !failed) {
        failed = json_object_set_new(json, "missing", json_string(encoder->missing));
    }
    if (encoder->dropped > 0 && !failed) {
        failed = json_object_set_new(json, "dropped", texts_to_json(encoder->dropped_name, encoder->dropped));
    }
    if (failed) {
        json_decref(json);
        json = NULL;
    }
    json_decref(inputs);
    json_decref(targets);
    return json;
}

/* A model's calibration and the tails of its residuals: in its description, in its file, and for those who ask. */
#include <math.h>

#include "likelihood/normal_quantile.h"
#include "model/describe.h"

void thiele_model_calibration(const thiele_model *model, thiele_calibration *out)
{
    THI_NEED_OR(, model && out);
    const thi_calibration *c = &(model->parts > 0 ? model->part[0] : model)->calibration;
    *out = (thiele_calibration){c->rows, c->left_out, c->temperature};
}

double thiele_model_stretch(const thiele_model *model, int target, double level)
{
    THI_NEED_OR(NAN, model);
    if (model->parts > 0) {
        const thiele_model *part = thiele_model_part(model, target);
        return part != NULL ? thiele_model_stretch(part, 0, level) : NAN;
    }
    const thi_calibration *c = &model->calibration;
    if (target < 0 || target >= model->encoder.targets || !(level > 0.0 && level < 1.0) ||
        thi_model_has_classes(model)) {
        return NAN;
    }
    double z = thi_normal_quantile(0.5 + 0.5 * level);
    return c->law != NULL ? thi_residual_quantile(&c->law[target], z) / z : 1.0;
}

/* --- to JSON ---------------------------------------------------------------------------------------------------------
 */

static json_t *law_to_json(const thi_residual_law *law)
{
    json_t *level = json_array(), *scores = json_array();
    int failed = level == NULL || scores == NULL;
    for (int k = 0; k < law->count; k++) {
        failed |= json_array_append_new(level, json_real(law->level[k]));
        failed |= json_array_append_new(scores, json_real(law->t[k]));
    }
    json_t *json = json_pack("{s:o, s:o}", "levels", level, "scores", scores);
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *laws_to_json(const thiele_model *model)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int p = 0; p < model->encoder.targets; p++) {
        failed |= json_array_append_new(list, law_to_json(&model->calibration.law[p]));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static int add_calibration(const thiele_model *model, json_t *json)
{
    const thi_calibration *c = &model->calibration;
    if (c->rows == 0) {
        return 0;
    }
    json_t *own = json_pack("{s:I, s:b}", "rows", (json_int_t)c->rows, "left_out", (int)c->left_out);
    int failed = c->law != NULL ? json_object_set_new(own, "targets", laws_to_json(model))
                                : json_object_set_new(own, "temperature", json_real(c->temperature));
    return json_object_set_new(json, "calibration", own) | failed;
}

int thi_calibration_to_json(const thiele_model *model, json_t *json)
{
    if (add_calibration(model, json) != 0) {
        return -1;
    }
    if (model->tails == NULL) {
        return 0;
    }
    json_t *list = json_array();
    int failed = list == NULL;
    for (int p = 0; p < model->encoder.targets; p++) {
        const thi_tails *t = &model->tails[p];
        failed |= json_array_append_new(list, json_pack("{s:I, s:I, s:f, s:b}", "rows", (json_int_t)t->rows, "beyond",
                                                        (json_int_t)t->beyond, "expected", t->expected, "heavy",
                                                        (int)t->heavy));
    }
    return json_object_set_new(json, "tails", list) | failed;
}

/* --- and back --------------------------------------------------------------------------------------------------------
 */

static thiele_status bad(thiele_context *ctx, const char *field)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field '%s' makes no sense", field);
}

static bool law_from_json(thi_residual_law *law, const json_t *json)
{
    const json_t *level = json_object_get(json, "levels"), *scores = json_object_get(json, "scores");
    size_t count = json_array_size(level);
    if (!json_is_array(level) || count > THI_KNOTS_MAX || json_array_size(scores) != count) {
        return false;
    }
    *law = (thi_residual_law){.count = (int)count};
    for (size_t k = 0; k < count; k++) {
        law->level[k] = json_number_value(json_array_get(level, k));
        law->t[k] = json_number_value(json_array_get(scores, k));
    }
    return thi_residual_law_finish(law);
}

static bool count_from_json(const json_t *json, const char *field, int64_t *out)
{
    const json_t *value = json_object_get(json, field);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

static thiele_status take_calibration(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    thi_calibration *c = &model->calibration;
    const json_t *list = json_object_get(json, "targets");
    int targets = model->encoder.targets;
    bool labels = thi_model_has_classes(model);
    c->left_out = json_is_true(json_object_get(json, "left_out"));
    c->temperature = json_number_value(json_object_get(json, "temperature"));
    if (!count_from_json(json, "rows", &c->rows) || c->rows < 1 || labels != (list == NULL) ||
        labels != (c->temperature > 0.0) || !isfinite(c->temperature)) {
        return bad(ctx, "calibration");
    }
    if (labels) {
        return THIELE_OK;
    }
    thiele_status status = thi_alloc(ctx, &c->law, (size_t)targets, sizeof *c->law);
    bool good = json_array_size(list) == (size_t)targets;
    for (int p = 0; status == THIELE_OK && good && p < targets; p++) {
        good = law_from_json(&c->law[p], json_array_get(list, (size_t)p));
    }
    return status == THIELE_OK && !good ? bad(ctx, "calibration") : status;
}

static thiele_status take_tails(thiele_model *model, thiele_context *ctx, const json_t *list)
{
    int targets = model->encoder.targets;
    thiele_status status = thi_alloc(ctx, &model->tails, (size_t)targets, sizeof *model->tails);
    bool good = json_array_size(list) == (size_t)targets;
    for (int p = 0; status == THIELE_OK && good && p < targets; p++) {
        const json_t *json = json_array_get(list, (size_t)p);
        thi_tails *t = &model->tails[p];
        t->expected = json_number_value(json_object_get(json, "expected"));
        t->heavy = json_is_true(json_object_get(json, "heavy"));
        good = count_from_json(json, "rows", &t->rows) && count_from_json(json, "beyond", &t->beyond) &&
               t->expected >= 0.0 && isfinite(t->expected);
    }
    return status == THIELE_OK && !good ? bad(ctx, "tails") : status;
}

thiele_status thi_calibration_from_json(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *calibration = json_object_get(json, "calibration"), *tails = json_object_get(json, "tails");
    thiele_status status = calibration != NULL ? take_calibration(model, ctx, calibration) : THIELE_OK;
    return status == THIELE_OK && tails != NULL ? take_tails(model, ctx, tails) : status;
}

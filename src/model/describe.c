/* A model as JSON, and back from JSON that nobody vouches for. */
#include "model/describe.h"
#include "model/kept_rows.h"
#include "model/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/json.h"
#include "model/methods.h"
#include "model/predictors.h"
#include "model/units.h"

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
    {"error_rate", offsetof(thiele_scores, error_rate)},
    {"nlp", offsetof(thiele_scores, nlp)},
    {"brier", offsetof(thiele_scores, brier)},
    {"auc", offsetof(thiele_scores, auc)},
};

/* A number, or null for one that JSON cannot hold. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *thi_scores_to_json(const thiele_scores *scores)
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

bool thi_scores_from_json(const json_t *json, thiele_scores *scores)
{
    const json_t *rows = json_object_get(json, "rows");
    scores->rows = json_integer_value(rows);
    bool fits = json_is_integer(rows) && scores->rows >= 0;
    for (int i = 0; i < THI_SCORE_FIELDS; i++) {
        const json_t *value = json_object_get(json, thi_score_fields[i].name);
        bool none = value == NULL || json_is_null(value); /* files of older versions lack the newer scores */
        fits = fits && (none || json_is_real(value));
        *(double *)(void *)((char *)scores + thi_score_fields[i].offset) = none ? NAN : json_real_value(value);
    }
    return fits;
}

static json_t *learned_to_json(const thiele_model *model)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int i = 0; i < model->learned_count; i++) {
        const thi_learned *p = &model->learned[i];
        /* "s*" leaves out a prior that there is not. */
        failed |= json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:b, s:b, s:s*}", "name", p->name, "value",
                                                        number(p->value), "fixed", (int)p->fixed, "redundant",
                                                        (int)p->redundant, "standardised", (int)p->standardised,
                                                        "prior", p->prior));
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

/* A list of what `one` makes of 0 .. count - 1. */
static json_t *make_list(const thiele_model *model, int count, json_t *(*one)(const thiele_model *model, int index))
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int i = 0; i < count; i++) {
        failed |= json_array_append_new(list, one(model, i));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *latent_to_json(const thiele_model *model, int index)
{
    return thi_predictor_to_json(&model->latent[index], index > 0 ? model->latent : NULL);
}

static json_t *holdout_to_json(const thiele_model *model, int index)
{
    return thi_scores_to_json(&model->holdout[index]);
}

static json_t *weight_to_json(const thiele_model *model, int index)
{
    return number(model->weight[index]);
}

static json_t *own_to_json(const thiele_model *model, int index)
{
    return number(model->lik != NULL ? model->lik->value[index] : model->own_value[index]);
}

/*
 * What the value is: the evidence itself; that of another model, which may be more or less (FITC and its kin, sums with
 * them); or a lower bound (SoR and DTC have Titsias').
 */
static const char *value_name(const char *name)
{
    const thi_method *method = thi_method_named(name);
    return method != NULL ? method->evidence : "bound";
}

/* The likelihood: its name, the text that makes it again (model units), or the values of the user's own. */
static int add_likelihood(const thiele_model *model, thiele_context *ctx, json_t *json)
{
    int failed = json_object_set_new(json, "expectation", json_string(model->expectation));
    if (model->own != NULL) {
        int count = model->lik != NULL ? model->lik->parameters : model->own_count;
        failed |= json_object_set_new(json, "likelihood", json_string(model->own));
        return failed | json_object_set_new(json, "own", make_list(model, count, own_to_json));
    }
    thi_text text;
    thi_text_init(&text, ctx);
    thi_likelihood_print(model->lik, &text);
    failed |= text.status != THIELE_OK || json_object_set_new(json, "likelihood_text", json_string(text.data)) != 0;
    thi_text_clear(&text);
    return failed | json_object_set_new(json, "likelihood", json_string(thiele_likelihood_name(model->lik)));
}

/* How many basis functions the mean has. */
static int64_t mean_functions(const thi_predictor *p)
{
    return p->mean_basis != NULL ? p->mean_n : p->n;
}

/* How a sparse method went about it. */
static int add_sparse(const thiele_model *model, json_t *json)
{
    return model->optimizer == NULL
               ? 0
               : json_object_set_new(json, "sparse",
                                     json_pack("{s:s, s:s*, s:s, s:I, s:I, s:I, s:o}", "posterior", model->posterior,
                                               "entropy", model->entropy, "optimizer", model->optimizer, "inducing",
                                               (json_int_t)model->latent->n, "mean_inducing",
                                               (json_int_t)mean_functions(model->latent), "batch",
                                               (json_int_t)model->batch, "epochs", number(model->epochs)));
}

/* How a fit by blocks went. */
static int add_blocks(const thiele_model *model, json_t *json)
{
    const thi_blocks_report *b = &model->blocks;
    /* "o*" leaves out what there is not. */
    json_t *borders = b->borders == 0 ? NULL
                                      : json_pack("{s:I, s:f, s:f}", "points", (json_int_t)b->borders, "median",
                                                  b->jump_median, "largest", b->jump_largest);
    if (b->borders > 0 && borders == NULL) {
        return -1;
    }
    return b->blocks == 0
               ? 0
               : json_object_set_new(json, "blocks",
                                     json_pack("{s:b, s:I, s:I, s:I, s:o, s:I, s:b, s:o, s:o*, s:s*}", "anytime",
                                               (int)b->anytime, "blocks", (json_int_t)b->blocks, "largest",
                                               (json_int_t)b->largest, "inducing", (json_int_t)b->inducing, "passes",
                                               number(b->passes), "evidence_rows", (json_int_t)b->evidence_rows,
                                               "estimate", (int)b->estimate, "held_out_rmse", number(b->held_out),
                                               "jumps", borders, "partition", model->encoder.key.name));
}

/* What the fit chose, and by what. */
static int add_choices(const thiele_model *model, json_t *json)
{
    int failed = 0;
    if (model->kernel_why != NULL) {
        failed |= json_object_set_new(json, "kernel_why", json_string(model->kernel_why));
    }
    if (model->noise_why != NULL) {
        failed |= json_object_set_new(json, "noise_why", json_string(model->noise_why));
    }
    return failed;
}

static json_t *one_to_json(const thiele_model *model, thiele_context *ctx)
{
    /* json_pack takes over what 'o' is given, also when it fails; a NULL makes it fail. */
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "method",
        model->method, "why", model->why, "kernel", model->kernel, "mean", thi_mean_name(model->latent->mean), "stop",
        thi_stop_names[model->stop], "rows", (json_int_t)model->rows, "evaluations", (json_int_t)model->evaluations,
        "iterations", model->iterations, value_name(model->method), number(model->value), "jitter",
        number(model->jitter), "parameters", learned_to_json(model), "loo", thi_scores_to_json(&model->loo), "worst",
        worst_to_json(model), "holdout", make_list(model, model->encoder.targets, holdout_to_json), "groups",
        model->groups, "latents", make_list(model, model->latents, latent_to_json), "weights",
        make_list(model, model->components, weight_to_json), "columns", thi_encoder_to_json(&model->encoder));
    if (json != NULL && (add_likelihood(model, ctx, json) != 0 || add_choices(model, json) != 0 ||
                         add_sparse(model, json) != 0 || add_blocks(model, json) != 0 ||
                         thi_sampling_to_json(model, json) != 0 || thi_stream_to_json(model, json) != 0 ||
                         thi_kept_to_json(model, json) != 0 || thi_calibration_to_json(model, json) != 0)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

json_t *thi_model_to_json(const thiele_model *model, thiele_context *ctx)
{
    json_t *list = model->parts > 0 ? json_array() : NULL;
    int failed = list == NULL;
    if (model->parts == 0) {
        return one_to_json(model, ctx);
    }
    for (int p = 0; p < model->parts; p++) {
        failed |= json_array_append_new(list, one_to_json(model->part[p], ctx));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return json_pack("{s:o}", "parts", list);
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

static thiele_status take_optional(thiele_context *ctx, const json_t *json, const char *field, char **out)
{
    return json_object_get(json, field) != NULL ? take_text(ctx, json, field, out) : THIELE_OK;
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

static thiele_status take_flag(thiele_context *ctx, const json_t *json, const char *field, bool *out)
{
    const json_t *value = json_object_get(json, field);
    *out = json_is_true(value);
    return json_is_boolean(value) ? THIELE_OK : bad(ctx, field);
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

static thiele_status take_parameter(thi_learned *p, thiele_context *ctx, const json_t *json)
{
    thiele_status status;
    THI_TRY(take_text(ctx, json, "name", &p->name));
    THI_TRY(take_number(ctx, json, "value", -INFINITY, &p->value));
    THI_TRY(take_flag(ctx, json, "fixed", &p->fixed));
    THI_TRY(take_flag(ctx, json, "redundant", &p->redundant));
    THI_TRY(take_flag(ctx, json, "standardised", &p->standardised));
    if (json_object_get(json, "prior") != NULL) {
        THI_TRY(take_text(ctx, json, "prior", &p->prior));
    }
out:
    return status;
}

static thiele_status take_learned(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *list = json_object_get(json, "parameters");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count < 1 || count > 1000000) {
        return bad(ctx, "parameters");
    }
    thiele_status status = thi_alloc(ctx, &model->learned, count, sizeof *model->learned);
    for (size_t i = 0; status == THIELE_OK && i < count; i++) {
        status = take_parameter(&model->learned[i], ctx, json_array_get(list, i));
        model->learned_count = (int)i + 1;
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
        int64_t row = json_integer_value(json_object_get(entry, "row"));
        model->worst_row[i] = row - (row > 0);
        model->worst_z[i] = json_real_value(json_object_get(entry, "z"));
        if (row < 1) {
            return bad(ctx, "worst");
        }
    }
    return THIELE_OK;
}

/* A weight is a share of 1. */
static thiele_status take_weights(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    enum { MOST = 1000 };
    const json_t *list = json_object_get(json, "weights");
    size_t count = json_array_size(list);
    double sum = 0.0;
    if (count < 1 || count > MOST) {
        return bad(ctx, "weights");
    }
    thiele_status status = thi_alloc(ctx, &model->weight, count, sizeof *model->weight);
    for (size_t k = 0; status == THIELE_OK && k < count; k++) {
        model->weight[k] = json_number_value(json_array_get(list, k));
        sum += model->weight[k];
        status = model->weight[k] >= 0.0 ? THIELE_OK : bad(ctx, "weights");
    }
    model->components = (int)count;
    return status == THIELE_OK && !(fabs(sum - 1.0) < 1e-6) ? bad(ctx, "weights") : status;
}

static thiele_status take_holdout(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *list = json_object_get(json, "holdout");
    size_t count = (size_t)model->encoder.targets;
    if (json_array_size(list) != count) {
        return bad(ctx, "holdout");
    }
    thiele_status status = thi_alloc(ctx, &model->holdout, count, sizeof *model->holdout);
    for (size_t p = 0; status == THIELE_OK && p < count; p++) {
        status = thi_scores_from_json(json_array_get(list, p), &model->holdout[p]) ? THIELE_OK : bad(ctx, "holdout");
    }
    return status;
}

/* The user's own is not made here: a file brings no code. Its numbers wait for it. */
static thiele_status take_own(thiele_model *model, thiele_context *ctx, const json_t *json, const json_t *values)
{
    enum { MOST = 100000 };
    size_t count = json_array_size(values);
    thiele_status status;
    if (!json_is_array(values) || count > MOST) {
        return bad(ctx, "own");
    }
    THI_TRY(take_text(ctx, json, "likelihood", &model->own));
    THI_TRY(thi_alloc(ctx, &model->own_value, count, sizeof *model->own_value));
    model->own_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        model->own_value[i] = json_number_value(json_array_get(values, i));
    }
out:
    return status;
}

enum { LATENTS_MAX = 100000 };

static thiele_status take_likelihood(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *own = json_object_get(json, "own");
    const char *text = json_string_value(json_object_get(json, "likelihood_text"));
    const thi_encoder *encoder = &model->encoder;
    int64_t groups = 0;
    thiele_status status;
    THI_TRY(take_text(ctx, json, "expectation", &model->expectation));
    THI_TRY(take_count(ctx, json, "groups", INT32_MAX, &groups));
    model->latents = (int)json_array_size(json_object_get(json, "latents"));
    if (own != NULL) {
        THI_TRY(take_own(model, ctx, json, own));
    } else if (text == NULL) {
        THI_TRY(bad(ctx, "likelihood_text"));
    } else {
        THI_TRY(thiele_likelihood_parse(&model->lik, ctx, text, encoder->targets, encoder->target->levels));
    }
    if (model->lik != NULL &&
        (model->lik->latents != model->latents || model->lik->outputs != encoder->targets ||
         (model->lik->ops->support == THI_SUPPORT_BINARY) != (encoder->target->levels == 2 && encoder->signs) ||
         (model->lik->ops->support == THI_SUPPORT_CLASS) != (encoder->target->levels > 0 && !encoder->signs))) {
        THI_TRY(bad(ctx, "likelihood_text"));
    }
    model->groups = (int)groups;
    if (model->latents < 1 || model->latents > LATENTS_MAX || (model->groups != 1 && model->groups != model->latents)) {
        THI_TRY(bad(ctx, "groups"));
    }
out:
    return status;
}

static thiele_status take_sparse(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *sparse = json_object_get(json, "sparse");
    thiele_status status = THIELE_OK;
    if (sparse == NULL) {
        return THIELE_OK;
    }
    THI_TRY(take_text(ctx, sparse, "posterior", &model->posterior));
    THI_TRY(take_optional(ctx, sparse, "entropy", &model->entropy));
    THI_TRY(take_text(ctx, sparse, "optimizer", &model->optimizer));
    THI_TRY(take_count(ctx, sparse, "batch", INT64_MAX, &model->batch));
    THI_TRY(take_number(ctx, sparse, "epochs", 0.0, &model->epochs));
out:
    return status;
}

static thiele_status take_blocks(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *blocks = json_object_get(json, "blocks");
    thi_blocks_report *b = &model->blocks;
    thiele_status status = THIELE_OK;
    if (blocks == NULL) {
        return THIELE_OK;
    }
    b->held_out = NAN;
    THI_TRY(take_flag(ctx, blocks, "anytime", &b->anytime));
    THI_TRY(take_flag(ctx, blocks, "estimate", &b->estimate));
    THI_TRY(take_count(ctx, blocks, "blocks", INT64_MAX, &b->blocks));
    THI_TRY(take_count(ctx, blocks, "largest", INT64_MAX, &b->largest));
    THI_TRY(take_count(ctx, blocks, "inducing", INT64_MAX, &b->inducing));
    THI_TRY(take_count(ctx, blocks, "evidence_rows", INT64_MAX, &b->evidence_rows));
    THI_TRY(take_number(ctx, blocks, "passes", 0.0, &b->passes));
    if (!json_is_null(json_object_get(blocks, "held_out_rmse"))) {
        THI_TRY(take_number(ctx, blocks, "held_out_rmse", 0.0, &b->held_out));
    }
    const json_t *jumps = json_object_get(blocks, "jumps");
    if (jumps != NULL) {
        THI_TRY(take_count(ctx, jumps, "points", INT64_MAX, &b->borders));
        THI_TRY(take_number(ctx, jumps, "median", 0.0, &b->jump_median));
        THI_TRY(take_number(ctx, jumps, "largest", 0.0, &b->jump_largest));
    }
out:
    return status;
}

static thiele_status take_value(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    return take_number(ctx, json, value_name(model->method), -INFINITY, &model->value);
}

thiele_status thi_model_from_json(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    int64_t iterations = 0;
    thiele_status status;
    THI_TRY(take_text(ctx, json, "method", &model->method));
    THI_TRY(take_text(ctx, json, "why", &model->why));
    THI_TRY(take_text(ctx, json, "kernel", &model->kernel));
    THI_TRY(take_optional(ctx, json, "kernel_why", &model->kernel_why));
    THI_TRY(take_optional(ctx, json, "noise_why", &model->noise_why));
    THI_TRY(take_stop(model, ctx, json));
    THI_TRY(take_count(ctx, json, "rows", INT64_MAX / 64, &model->rows));
    THI_TRY(take_count(ctx, json, "evaluations", INT64_MAX, &model->evaluations));
    THI_TRY(take_count(ctx, json, "iterations", INT32_MAX, &iterations));
    model->iterations = (int)iterations;
    THI_TRY(take_value(model, ctx, json));
    THI_TRY(take_number(ctx, json, "jitter", 0.0, &model->jitter));
    THI_TRY(take_learned(model, ctx, json));
    THI_TRY(take_worst(model, ctx, json));
    THI_TRY(take_weights(model, ctx, json));
    if (!thi_scores_from_json(json_object_get(json, "loo"), &model->loo) ||
        (model->loo.rows != 0 && model->loo.rows != model->rows)) {
        THI_TRY(bad(ctx, "loo"));
    }
    THI_TRY(thi_encoder_from_json(&model->encoder, ctx, json_object_get(json, "columns")));
    if (model->encoder.targets < 1) {
        THI_TRY(bad(ctx, "columns"));
    }
    THI_TRY(take_holdout(model, ctx, json));
    THI_TRY(take_likelihood(model, ctx, json));
    THI_TRY(take_sparse(model, ctx, json));
    THI_TRY(take_blocks(model, ctx, json));
    THI_TRY(thi_sampling_from_json(model, ctx, json));
    THI_TRY(thi_stream_from_json(model, ctx, json));
    THI_TRY(thi_kept_from_json(model, ctx, json));
    THI_TRY(thi_calibration_from_json(model, ctx, json));
out:
    return status;
}

/* A model's description for those who read it: what its file says, with values in the units of the data. */
#include <math.h>

#include "model/describe.h"
#include "model/json.h"
#include "model/relevance.h"
#include "model/units.h"

/* One learned kernel in the units of the data, appended. */
static thiele_status add_kernel(const thiele_model *model, thiele_context *ctx, int latent, thi_text *list)
{
    thiele_kernel *copy = NULL;
    char *text = NULL;
    double unit = 1.0;
    double offset;
    thiele_status status;
    THI_TRY(thi_kernel_copy(&copy, ctx, model->latent[latent].kernel));
    if (model->lik != NULL) {
        thi_latent_unit(model->lik, &model->encoder, latent, &unit, &offset);
    }
    thi_kernel_rescale(copy, model->encoder.scale, unit, 1);
    for (int p = 0; p < copy->parameters; p++) {
        copy->value[p] = copy->parameter[p].fixed ? thi_as_written(copy->value[p], copy->value[p]) : copy->value[p];
    }
    THI_TRY(thiele_kernel_print(copy, ctx, 1, &text));
    thi_text_add(list, "%s%s", latent > 0 ? "; " : "", text);
out:
    thi_free(text);
    thiele_kernel_destroy(copy);
    return status;
}

static thiele_status learned_kernels(const thiele_model *model, thiele_context *ctx, char **text)
{
    thi_text list;
    thi_text_init(&list, ctx);
    *text = NULL;
    for (int g = 0; g < model->groups; g++) {
        thiele_status status = add_kernel(model, ctx, g, &list);
        if (status != THIELE_OK) {
            thi_text_clear(&list);
            return status;
        }
    }
    return thi_text_take(&list, text);
}

/* The noise of a Gaussian likelihood in the units of the data: the last of what was learned. */
static int add_noise(const thiele_model *model, json_t *json)
{
    return thi_model_is_gaussian(model)
               ? json_object_set_new(json, "noise", json_real(model->learned[model->learned_count - 1].value))
               : 0;
}

/* Scores of no rows are for the file only, and so are the weights of draws, which are equal. */
static void leave_out(const thiele_model *model, json_t *json)
{
    if (model->sampling.sampler != NULL) {
        json_object_del(json, "weights");
    }
    if (model->holdout[0].rows == 0) {
        json_object_del(json, "holdout");
    }
    if (model->loo.rows == 0) {
        json_object_del(json, "loo");
    }
}

static thiele_status out_of_memory(thiele_context *ctx)
{
    return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while the model was described");
}

static thiele_status describe_one(const thiele_model *model, thiele_context *ctx, json_t **out)
{
    char *kernel = NULL;
    thiele_status status = learned_kernels(model, ctx, &kernel);
    *out = NULL;
    if (status != THIELE_OK) {
        return status;
    }
    *out = thi_model_to_json(model, ctx);
    leave_out(model, *out);
    if (*out == NULL || add_noise(model, *out) != 0 || thi_contents_to_json(model, *out) != 0 ||
        json_object_set_new(*out, "learned_kernel", json_string(kernel)) != 0) {
        status = out_of_memory(ctx);
    }
    status = status == THIELE_OK ? thi_relevance_to_json(model, ctx, *out) : status;
    thi_free(kernel);
    return status;
}

/* Where each target has a model, one description of each. */
static thiele_status describe_parts(const thiele_model *model, thiele_context *ctx, json_t **out)
{
    json_t *list = json_array(), *one = NULL;
    thiele_status status = THIELE_OK;
    for (int p = 0; p < model->parts && status == THIELE_OK; p++) {
        status = describe_one(model->part[p], ctx, &one);
        status = json_array_append_new(list, one) != 0 && status == THIELE_OK ? out_of_memory(ctx) : status;
    }
    *out = json_pack("{s:o}", "parts", list);
    return status;
}

thiele_status thiele_model_describe(const thiele_model *model, thiele_context *ctx, char **text)
{
    THI_NEED_OUT(text, ctx, model && ctx);
    json_t *json = NULL;
    thiele_status status;
    THI_TRY(model->parts > 0 ? describe_parts(model, ctx, &json) : describe_one(model, ctx, &json));
    if (json_object_set_new(json, "version", json_string(thiele_version())) != 0) {
        THI_TRY(out_of_memory(ctx));
    }
    THI_TRY(thi_json_text(ctx, json, JSON_INDENT(2), text));
out:
    json_decref(json);
    return status;
}

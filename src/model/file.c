/*
 * Models to and from files (docs/file-format.md). The JSON says what there is; tensors hold the numbers of each latent
 * function: inputs, weights, factor, theta, mean, and where there are such scale and plus.K. Those of the second latent
 * function and on are called f2.inputs and so on; inputs, factor and scale that equal the first one's are left out, and
 * the JSON says so. Where each target has a model, the tensors of the p-th are called tP.inputs and so on. What is
 * written is read before it takes the old file's place.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/describe.h"
#include "model/json.h"
#include "model/kept_rows.h"
#include "model/parts.h"
#include "model/predictors.h"
#include "model/tensors.h"

static thiele_status read_model(thiele_model **out, thiele_context *ctx, thi_tensors *tensors);

/* --- saving ----------------------------------------------------------------------------------------------------------
 */

/* "t2." before the names of what belongs to the second part. */
enum { PREFIX_MAX = 16 };
static const char *part_prefix(char text[PREFIX_MAX], int part)
{
    snprintf(text, PREFIX_MAX, "t%d.", part + 1);
    return text;
}

static thiele_status list_one(const thiele_model *model, thi_tensor_list *list)
{
    thi_tensor mean = {.dims = 1, .shape = {model->rows}, .data = model->loo_mean}, variance = mean;
    thiele_status status = THIELE_OK;
    variance.data = model->loo_variance;
    for (int j = 0; j < model->latents; j++) {
        THI_TRY(thi_predictor_list(list, &model->latent[j], j > 0 ? &model->latent[0] : NULL, j));
    }
    if (model->loo_mean != NULL) {
        THI_TRY(thi_tensor_add(list, -1, "loo.mean", mean));
        THI_TRY(thi_tensor_add(list, -1, "loo.variance", variance));
    }
    THI_TRY(thi_kept_list(model, list));
out:
    return status;
}

static thiele_status list_model(const thiele_model *model, thi_tensor_list *list)
{
    char prefix[PREFIX_MAX];
    thiele_status status = model->parts > 0 ? THIELE_OK : list_one(model, list);
    for (int p = 0; p < model->parts && status == THIELE_OK; p++) {
        list->prefix = part_prefix(prefix, p);
        status = list_one(model->part[p], list);
    }
    list->prefix = NULL;
    return status;
}

/*
 * Reads what was written as a reader would, its numbers aside: whoever can't load a model must not lose the old one to
 * it. A device or standard output has taken the bytes and gives none back.
 */
static thiele_status try_reading(thiele_context *ctx, thi_file *file, int count, const thi_tensor *tensor)
{
    thi_tensors tensors = {0};
    thiele_model *model = NULL;
    thiele_status status = THIELE_OK;
    if (file->temporary == NULL) {
        return THIELE_OK;
    }
    THI_TRY(thi_tensors_reread(&tensors, ctx, file, count, tensor));
    THI_TRY(read_model(&model, ctx, &tensors));
out:
    thi_tensors_clear(&tensors);
    thiele_model_destroy(model);
    return status == THIELE_ERROR_FORMAT || status == THIELE_ERROR_ARGUMENT
               ? thi_fail_in(ctx, THIELE_ERROR_FORMAT, "the model was not saved, because it could not be loaded again")
               : status;
}

static thiele_status write_model(const thiele_model *model, thiele_context *ctx, thi_file *file, const char *json)
{
    thi_tensor_list list = {.ctx = ctx};
    thiele_status status;
    THI_TRY(list_model(model, &list));
    const thi_tensor *tensor = thi_tensor_list_named(&list);
    THI_TRY(thi_tensors_check(ctx, list.count, tensor));
    THI_TRY(thi_tensors_write(ctx, file, json, list.count, tensor));
    THI_TRY(try_reading(ctx, file, list.count, tensor));
out:
    thi_tensor_list_clear(&list);
    return status;
}

static thiele_status save(const thiele_model *model, thiele_context *ctx, const char *path, thi_origin *origin)
{
    THI_NEED(ctx, model && ctx && path);
    thi_file file = {0};
    char *text = NULL;
    json_t *json = thi_model_to_json(model, ctx);
    thiele_status status;
    THI_TRY(thi_json_text(ctx, json, JSON_COMPACT, &text));
    json_decref(json);
    json = NULL;
    THI_TRY(thi_file_begin(&file, ctx, path));
    if (origin != NULL && origin->path != NULL && file.path != NULL && strcmp(origin->path, file.path) == 0) {
        file.stamp = &origin->stamp;
    }
    THI_TRY(write_model(model, ctx, &file, text));
    THI_TRY(thi_file_commit(&file, ctx));
out:
    thi_file_abandon(&file);
    json_decref(json);
    thi_free(text);
    return status;
}

thiele_status thiele_model_save(const thiele_model *model, thiele_context *ctx, const char *path)
{
    return save(model, ctx, path, NULL);
}

thiele_status thi_model_save_again(thiele_model *model, thiele_context *ctx, const char *path)
{
    return save(model, ctx, path, &model->origin);
}

/* --- loading ---------------------------------------------------------------------------------------------------------
 */

static thiele_status read_loo(thiele_model *model, thiele_context *ctx, thi_tensors *tensors)
{
    thiele_status status = THIELE_OK;
    if (model->loo.rows == 0) {
        return THIELE_OK;
    }
    THI_TRY(thi_tensors_take(tensors, ctx, "loo.mean", 1, &model->rows, &model->loo_mean));
    THI_TRY(thi_tensors_take(tensors, ctx, "loo.variance", 1, &model->rows, &model->loo_variance));
    for (int64_t i = 0; i < model->rows; i++) {
        if (!(model->loo_variance[i] > 0.0)) {
            THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "a leave-one-out variance is not positive"));
        }
    }
out:
    return status;
}

/* Networks and mixing had one noise for all outputs once: it becomes that of each, in the units of its target. */
static thiele_status spread_noise(thiele_model *model, thiele_context *ctx)
{
    int outputs = model->encoder.targets, at = 0;
    thi_learned *old = model->learned, *learned = NULL;
    thiele_status status;
    while (at < model->learned_count && strcmp(old[at].name, "noise") != 0) {
        at++;
    }
    if (at == model->learned_count || model->lik->parameters < outputs) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &learned, (size_t)(model->learned_count + outputs - 1), sizeof *learned));
    memcpy(learned, old, (size_t)at * sizeof *old);
    memcpy(learned + at + outputs, old + at + 1, (size_t)(model->learned_count - at - 1) * sizeof *old);
    thi_free(old[at].name);
    thi_free(old[at].prior);
    for (int p = 0; p < outputs; p++) {
        double scale = model->encoder.target[p].scale;
        learned[at + p] = (thi_learned){.value = model->lik->value[p] * scale * scale, .fixed = old[at].fixed};
    }
    thi_free(old);
    model->learned = learned;
    model->learned_count += outputs - 1;
    for (int p = 0; p < outputs; p++) {
        THI_TRY(thi_strdup(ctx, &learned[at + p].name, model->lik->phi[p].name));
    }
out:
    return status;
}

/* The reported parameters are those of each group's kernel and mean, and the likelihood's, in that order. */
static thiele_status match_learned(thiele_model *model, thiele_context *ctx)
{
    int64_t count = model->lik != NULL ? model->lik->parameters : model->own_count;
    for (int g = 0; g < model->groups; g++) {
        const thi_predictor *p = &model->latent[g];
        count += p->kernel->parameters + thi_mean_parameters(p->mean, p->kernel->dims);
    }
    if (model->lik != NULL && model->learned_count < count &&
        model->learned_count + model->encoder.targets - 1 == count) {
        thiele_status status = spread_noise(model, ctx);
        if (status != THIELE_OK) {
            return status;
        }
    }
    if (model->learned_count != count) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its parameters are not those of its kernels, means and likelihood");
    }
    const thi_learned *learned = model->learned;
    for (int j = 0; j < model->latents; j++) {
        thiele_kernel *kernel = model->latent[j].kernel;
        for (int i = 0; i < kernel->parameters; i++) {
            kernel->parameter[i].fixed = learned[i].fixed;
        }
        learned +=
            model->groups > 1 ? kernel->parameters + thi_mean_parameters(model->latent[j].mean, kernel->dims) : 0;
    }
    return THIELE_OK;
}

static thiele_status read_latents(thiele_model *model, thiele_context *ctx, thi_tensors *tensors, const json_t *json)
{
    const char *mean = json_string_value(json_object_get(json, "mean"));
    const json_t *list = json_object_get(json, "latents");
    thi_kernel_columns columns = {0};
    thi_latents latents = {0};
    thiele_status status;
    if (mean == NULL || model->encoder.dims < 1 || (int)json_array_size(list) != model->latents) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "it describes a model that this version does not know");
    }
    THI_TRY(thi_kernel_columns_make(&columns, ctx, &model->encoder));
    THI_TRY(thi_latents_make(&latents, ctx, model->kernel, mean, &columns.view, model->latents, model->groups == 1));
    THI_TRY(thi_alloc(ctx, &model->latent, (size_t)model->latents, sizeof *model->latent));
    for (int j = 0; j < model->latents; j++) {
        THI_TRY(thi_predictor_read(model->latent, ctx, tensors, j, &latents.prior[latents.group[j]], model->components,
                                   json_array_get(list, (size_t)j)));
    }
    THI_TRY(match_learned(model, ctx));
    THI_TRY(read_loo(model, ctx, tensors));
    THI_TRY(thi_kept_read(model, ctx, tensors));
out:
    thi_kernel_columns_clear(&columns);
    thi_latents_clear(&latents);
    return status;
}

/* Version 1 was read with whatever else it had. What has just been written has no numbers to be described. */
static thiele_status refuse_unknown(const thiele_model *model, thiele_context *ctx, const thi_tensors *tensors,
                                    const json_t *json)
{
    if (tensors->version == 1 || tensors->values == NULL) {
        return THIELE_OK;
    }
    json_t *known = thi_model_to_json(model, ctx);
    thiele_status status = known != NULL ? thi_json_known(ctx, json, known)
                                         : thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while a model was read");
    json_decref(known);
    return status;
}

/* One model of all its targets, or a part of a whole. */
static thiele_status read_one(thiele_model **out, thiele_context *ctx, thi_tensors *tensors, const json_t *json)
{
    thiele_status status;
    THI_TRY(thi_alloc(ctx, out, 1, sizeof **out));
    THI_TRY(thi_model_from_json(*out, ctx, json));
    THI_TRY(read_latents(*out, ctx, tensors, json));
out:
    return status;
}

static thiele_status read_parts(thiele_model **out, thiele_context *ctx, thi_tensors *tensors, const json_t *list)
{
    enum { MOST = 65536 };
    char prefix[PREFIX_MAX];
    size_t count = json_array_size(list);
    thiele_status status =
        count >= 2 && count <= MOST
            ? thi_parts_alloc(out, ctx, (int)count)
            : thi_fail(ctx, THIELE_ERROR_FORMAT, "the number of its parts differs from that of its targets");
    for (int p = 0; p < (int)count && status == THIELE_OK; p++) {
        tensors->prefix = part_prefix(prefix, p);
        status = read_one(&(*out)->part[p], ctx, tensors, json_array_get(list, (size_t)p));
    }
    tensors->prefix = NULL;
    return status == THIELE_OK ? thi_parts_gather(*out, ctx) : status;
}

/* A model from a file that is whole; what there is of it when that fails. */
static thiele_status read_model(thiele_model **out, thiele_context *ctx, thi_tensors *tensors)
{
    thi_json json = {0};
    const char *text = tensors->model_json;
    thiele_status status;
    THI_TRY(thi_json_parse(&json, ctx, text, strlen(text), "its description"));
    const json_t *parts = json_object_get(json.root, "parts");
    THI_TRY(parts != NULL ? read_parts(out, ctx, tensors, parts) : read_one(out, ctx, tensors, json.root));
    THI_TRY(thi_tensors_all_used(tensors, ctx));
    THI_TRY(refuse_unknown(*out, ctx, tensors, json.root));
out:
    thi_json_clear(&json);
    return status;
}

thiele_status thi_model_parse(thiele_model **out, thiele_context *ctx, const char *source, const unsigned char *bytes,
                              size_t length)
{
    thi_tensors tensors;
    thiele_model *model = NULL;
    *out = NULL;
    thiele_status status = thi_tensors_read(&tensors, ctx, source, bytes, length);
    if (status != THIELE_OK) {
        return status;
    }
    status = read_model(&model, ctx, &tensors);
    thi_tensors_clear(&tensors);
    if (status == THIELE_OK) {
        *out = model;
        return THIELE_OK;
    }
    thiele_model_destroy(model);
    /* What is wrong inside a file is a matter of its format, whoever noticed. */
    bool format = status == THIELE_ERROR_ARGUMENT || status == THIELE_ERROR_FORMAT;
    return format ? thi_fail_in(ctx, THIELE_ERROR_FORMAT, "%s is not a usable model file", source) : status;
}

static thiele_status no_file(thiele_context *ctx, const char *path)
{
    return errno == ENOMEM ? thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while model %s was opened", path)
                           : thi_fail(ctx, THIELE_ERROR_IO, "cannot read model %s: %s", path, strerror(errno));
}

/* The whole file; the size is asked first, so that a short read is noticed. */
static thiele_status read_file(thiele_context *ctx, const char *path, FILE *stream, unsigned char **bytes,
                               size_t *length)
{
    struct stat info;
    if (fstat(fileno(stream), &info) != 0) {
        return no_file(ctx, path);
    }
    if (!S_ISREG(info.st_mode)) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read model %s: it is not a file", path);
    }
    *length = (size_t)info.st_size;
    thiele_status status = thi_alloc_bare(ctx, bytes, *length, 1);
    if (status == THIELE_OK && fread(*bytes, 1, *length, stream) != *length) {
        status = thi_fail(ctx, THIELE_ERROR_IO, "cannot read model %s: it has become shorter", path);
    }
    return status;
}

/* Where it came from, links resolved. */
static thiele_status keep_origin(thiele_model *model, thiele_context *ctx, const char *path, const thi_stamp *stamp)
{
    char *resolved = realpath(path, NULL);
    model->origin.stamp = *stamp;
    thiele_status status = resolved != NULL ? thi_strdup(ctx, &model->origin.path, resolved) : THIELE_OK;
    free(resolved);
    return status;
}

thiele_status thiele_model_load(thiele_model **out, thiele_context *ctx, const char *path)
{
    THI_NEED_OUT(out, ctx, ctx && path);
    unsigned char *bytes = NULL;
    size_t length = 0;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return no_file(ctx, path);
    }
    thiele_status status = read_file(ctx, path, stream, &bytes, &length);
    thi_stamp stamp;
    bool known = thi_stamp_take(&stamp, fileno(stream));
    fclose(stream);
    if (status == THIELE_OK) {
        status = thi_model_parse(out, ctx, path, bytes, length);
    }
    if (status == THIELE_OK && known) {
        status = keep_origin(*out, ctx, path, &stamp);
    }
    if (status != THIELE_OK) {
        thiele_model_destroy(*out);
        *out = NULL;
    }
    thi_free(bytes);
    return status;
}

/*
 * Models to and from files. Tensors beside the JSON (docs/file-format.md): inputs (rows x D), weights, factor (the
 * lower triangle, packed by columns), theta (logs), mean, loo.mean, loo.variance. The kernel's text gives its
 * structure, theta its exact values.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "model/describe.h"
#include "model/tensors.h"

static int64_t packed_size(int64_t n)
{
    return n * (n + 1) / 2;
}

static void unpack(const double *packed, thi_matrix L)
{
    for (int64_t j = 0; j < L.cols; j++) {
        size_t length = (size_t)(L.rows - j);
        memcpy(L.data + j + j * L.ld, packed, length * sizeof *packed);
        packed += length;
    }
}

/* --- saving ----------------------------------------------------------------------------------------------------------
 */

static thiele_status write_model(const thiele_model *model, thiele_context *ctx, thi_file *file, const char *json)
{
    const thi_predictor *p = &model->predictor;
    int64_t D = p->kernel->dims;
    thi_tensor tensor[] = {
        {"inputs", 2, {p->n, D}, p->basis, {0}},
        {"weights", 1, {p->n}, p->a, {0}},
        {"factor", 1, {packed_size(p->n)}, NULL, p->L},
        {"theta", 1, {p->kernel->parameters}, p->kernel->log_value, {0}},
        {"mean", 1, {thi_mean_parameters(p->mean, (int)D)}, p->mean_parameter, {0}},
        {"loo.mean", 1, {model->rows}, model->loo_mean, {0}},
        {"loo.variance", 1, {model->rows}, model->loo_variance, {0}},
    };
    return thi_tensors_write(ctx, file, json, sizeof tensor / sizeof *tensor, tensor);
}

thiele_status thiele_model_save(const thiele_model *model, thiele_context *ctx, const char *path)
{
    thi_file file = {0};
    char *text = NULL;
    json_t *json = thi_model_to_json(model);
    thiele_status status;
    THI_TRY(thi_json_text(ctx, json, JSON_COMPACT, &text));
    THI_TRY(thi_file_begin(&file, ctx, path));
    THI_TRY(write_model(model, ctx, &file, text));
    THI_TRY(thi_file_commit(&file, ctx));
out:
    thi_file_abandon(&file);
    json_decref(json);
    thi_free(text);
    return status;
}

/* --- loading ---------------------------------------------------------------------------------------------------------
 */

static thiele_status read_factor(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors)
{
    const double *packed = NULL;
    int64_t size = packed_size(p->n);
    thiele_status status;
    THI_TRY(thi_tensors_view(tensors, ctx, "factor", 1, &size, &packed));
    THI_TRY(thi_matrix_alloc(&p->L, ctx, p->n, p->n));
    unpack(packed, p->L);
    for (int64_t i = 0; i < p->n; i++) {
        if (!(p->L.data[i + i * p->L.ld] > 0.0)) {
            THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "its factor has a diagonal that is not positive"));
        }
    }
out:
    return status;
}

static thiele_status read_kernel(thiele_model *model, thiele_context *ctx, const thi_tensors *tensors)
{
    thi_predictor *p = &model->predictor;
    thi_kernel_columns columns = {0};
    double *theta = NULL;
    thiele_status status;
    THI_TRY(thi_kernel_columns_make(&columns, ctx, &model->encoder));
    THI_TRY(thi_kernel_parse(&p->kernel, ctx, model->kernel, &columns.view));
    int64_t count = p->kernel->parameters;
    THI_TRY(thi_tensors_take(tensors, ctx, "theta", 1, &count, &theta));
    for (int64_t i = 0; i < count; i++) {
        if (fabs(theta[i]) > 300.0) {
            THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "its kernel parameters are out of all proportion"));
        }
    }
    thiele_kernel_set(p->kernel, theta);
out:
    thi_kernel_columns_clear(&columns);
    thi_free(theta);
    return status;
}

/* The reported parameters are the kernel's, the mean's and the noise, in that order. */
static thiele_status match_learned(thiele_model *model, thiele_context *ctx, int64_t means)
{
    thiele_kernel *kernel = model->predictor.kernel;
    if (model->learned_count != kernel->parameters + means + 1) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its parameters are not those of its kernel and mean");
    }
    for (int i = 0; i < kernel->parameters; i++) {
        kernel->parameter[i].fixed = model->learned[i].fixed;
    }
    return THIELE_OK;
}

static thiele_status read_predictor(thiele_model *model, thiele_context *ctx, const thi_tensors *tensors,
                                    const json_t *json)
{
    thi_predictor *p = &model->predictor;
    int D = model->encoder.dims;
    const char *mean = json_string_value(json_object_get(json, "mean"));
    thiele_status status;
    if (mean == NULL || D < 1 || model->rows < 1 || strcmp(model->method, "exact") != 0) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "it describes no model that this version knows"));
    }
    p->n = model->rows;
    int64_t shape[2] = {p->n, D};
    THI_TRY(thi_mean_find(ctx, mean, &p->mean));
    int64_t means = thi_mean_parameters(p->mean, D);
    THI_TRY(thi_tensors_take(tensors, ctx, "inputs", 2, shape, &p->basis));
    THI_TRY(thi_tensors_take(tensors, ctx, "weights", 1, shape, &p->a));
    THI_TRY(thi_tensors_take(tensors, ctx, "mean", 1, &means, &p->mean_parameter));
    THI_TRY(thi_tensors_take(tensors, ctx, "loo.mean", 1, shape, &model->loo_mean));
    THI_TRY(thi_tensors_take(tensors, ctx, "loo.variance", 1, shape, &model->loo_variance));
    THI_TRY(read_kernel(model, ctx, tensors));
    THI_TRY(match_learned(model, ctx, means));
    THI_TRY(read_factor(p, ctx, tensors));
    for (int64_t i = 0; i < p->n; i++) {
        if (!(model->loo_variance[i] > 0.0)) {
            THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "a leave-one-out variance is not positive"));
        }
    }
    THI_TRY(thi_predictor_finish(p, ctx));
out:
    return status;
}

/* The parts of a model from a file that is whole. */
static thiele_status read_model(thiele_model *model, thiele_context *ctx, const thi_tensors *tensors)
{
    json_error_t error = {0};
    json_t *json = json_loads(tensors->model_json, JSON_REJECT_DUPLICATES, &error);
    thiele_status status;
    if (json == NULL && json_error_code(&error) == json_error_out_of_memory) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while a model was read");
    }
    if (!json_is_object(json)) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "its description is damaged"));
    }
    THI_TRY(thi_model_from_json(model, ctx, json));
    THI_TRY(read_predictor(model, ctx, tensors, json));
out:
    json_decref(json);
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
    status = thi_alloc(ctx, &model, 1, sizeof *model);
    if (status == THIELE_OK) {
        status = read_model(model, ctx, &tensors);
    }
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
    return thi_fail(ctx, THIELE_ERROR_IO, "cannot read model %s: %s", path, strerror(errno));
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
    thiele_status status = thi_alloc(ctx, bytes, *length, 1);
    if (status == THIELE_OK && fread(*bytes, 1, *length, stream) != *length) {
        status = thi_fail(ctx, THIELE_ERROR_IO, "cannot read model %s: it is shorter than it was a moment ago", path);
    }
    return status;
}

thiele_status thiele_model_load(thiele_model **out, thiele_context *ctx, const char *path)
{
    unsigned char *bytes = NULL;
    size_t length = 0;
    *out = NULL;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return no_file(ctx, path);
    }
    thiele_status status = read_file(ctx, path, stream, &bytes, &length);
    fclose(stream);
    if (status == THIELE_OK) {
        status = thi_model_parse(out, ctx, path, bytes, length);
    }
    thi_free(bytes);
    return status;
}

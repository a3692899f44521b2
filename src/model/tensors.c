/*
 * Reading and writing the safetensors layout. Writing is deterministic: the same model gives the same bytes. Reading
 * checks every length and offset against the file before it is used, and a CRC-32 over the model text and the tensors.
 */
#include "model/tensors.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FORMAT_NAME    "thiele"
#define FORMAT_VERSION "1"

enum { HEADER_MAX = 64 << 20, ALIGN = 64 };

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "model files are little-endian: byte swapping is needed on this processor"
#endif

static int64_t elements(const thi_tensor *tensor)
{
    int64_t product = 1;
    for (int d = 0; d < tensor->dims; d++) {
        product *= tensor->shape[d];
    }
    return product;
}

/* --- writing ---------------------------------------------------------------------------------------------------------
 */

/* Calls fn for each contiguous run of a tensor's numbers, in the order of the file; stops when it says false. */
static bool each_run(const thi_tensor *tensor, bool (*fn)(void *arg, const double *run, size_t length), void *arg)
{
    if (tensor->lower.data == NULL) {
        return fn(arg, tensor->data, (size_t)elements(tensor));
    }
    thi_matrix L = tensor->lower;
    for (int64_t j = 0; j < L.cols; j++) {
        if (!fn(arg, L.data + j + j * L.ld, (size_t)(L.rows - j))) {
            return false;
        }
    }
    return true;
}

static bool add_to_crc(void *arg, const double *run, size_t length)
{
    uLong *crc = arg;
    *crc = crc32_z(*crc, (const void *)run, length * sizeof *run);
    return true;
}

static bool write_run(void *arg, const double *run, size_t length)
{
    return fwrite(run, sizeof *run, length, arg) == length;
}

static bool is_finite(void *arg, const double *run, size_t length)
{
    (void)arg;
    for (size_t i = 0; i < length; i++) {
        if (!isfinite(run[i])) {
            return false;
        }
    }
    return true;
}

thiele_status thi_tensors_check(thiele_context *ctx, int count, const thi_tensor *tensor)
{
    for (int t = 0; t < count; t++) {
        if (!each_run(&tensor[t], is_finite, NULL)) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                            "the model's tensor '%s' holds a number that is not finite: it was not saved",
                            tensor[t].name);
        }
    }
    return THIELE_OK;
}

/* NULL when memory is out. */
static json_t *tensor_entry(const thi_tensor *tensor, int64_t offset)
{
    json_t *shape = json_array();
    int failed = shape == NULL;
    for (int d = 0; d < tensor->dims; d++) {
        failed |= json_array_append_new(shape, json_integer(tensor->shape[d]));
    }
    if (failed) {
        json_decref(shape);
        return NULL;
    }
    int64_t end = offset + 8 * elements(tensor);
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F64", "shape", shape, "data_offsets", (json_int_t)offset,
                     (json_int_t)end);
}

/* The header as text, padded with spaces so that the data start at a multiple of ALIGN; NULL when memory is out. */
static char *make_header(const char *model_json, int count, const thi_tensor *tensor, size_t *length)
{
    uLong crc = crc32_z(0, (const void *)model_json, strlen(model_json));
    for (int t = 0; t < count; t++) {
        each_run(&tensor[t], add_to_crc, &crc);
    }
    char crc_text[16];
    snprintf(crc_text, sizeof crc_text, "%08lx", (unsigned long)crc);
    json_t *header = json_pack("{s:{s:s, s:s, s:s, s:s}}", "__metadata__", "format", FORMAT_NAME, "version",
                               FORMAT_VERSION, "crc32", crc_text, "model", model_json);
    int64_t offset = 0;
    bool complete = header != NULL;
    for (int t = 0; complete && t < count; t++) {
        complete = json_object_set_new(header, tensor[t].name, tensor_entry(&tensor[t], offset)) == 0;
        offset += 8 * elements(&tensor[t]);
    }
    char *text = complete ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    *length = text != NULL ? strlen(text) : 0;
    return text;
}

thiele_status thi_tensors_write(thiele_context *ctx, thi_file *file, const char *model_json, int count,
                                const thi_tensor *tensor)
{
    FILE *stream = file->stream;
    static const char blanks[ALIGN] = "                                                               ";
    size_t length;
    char *header = make_header(model_json, count, tensor, &length);
    if (header == NULL) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while the model's header was made");
    }
    size_t padding = (ALIGN - (8 + length) % ALIGN) % ALIGN;
    uint64_t size = length + padding;
    bool written = fwrite(&size, sizeof size, 1, stream) == 1 && fwrite(header, 1, length, stream) == length &&
                   fwrite(blanks, 1, padding, stream) == padding;
    for (int t = 0; written && t < count; t++) {
        written = each_run(&tensor[t], write_run, stream);
    }
    free(header);
    return written ? THIELE_OK : thi_file_failed(file, ctx);
}

/* --- reading ---------------------------------------------------------------------------------------------------------
 */

static thiele_status bad(thiele_context *ctx, const char *source, const char *what)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s is not a usable model file: %s", source, what);
}

static bool read_shape(const json_t *json, thi_tensor *tensor)
{
    if (!json_is_array(json) || json_array_size(json) > THI_TENSOR_DIMS_MAX) {
        return false;
    }
    tensor->dims = (int)json_array_size(json);
    int64_t product = 1;
    for (int d = 0; d < tensor->dims; d++) {
        const json_t *extent = json_array_get(json, (size_t)d);
        tensor->shape[d] = json_integer_value(extent);
        if (!json_is_integer(extent) || tensor->shape[d] < 0 ||
            (tensor->shape[d] > 0 && product > INT64_MAX / 64 / tensor->shape[d])) {
            return false;
        }
        product *= tensor->shape[d];
    }
    return true;
}

/* For one more, twice as many each time. */
static thiele_status make_room(thi_tensors *t, thiele_context *ctx)
{
    enum { FIRST = 32 };
    bool full = t->count == 0 || (t->count >= FIRST && (t->count & (t->count - 1)) == 0);
    size_t room = t->count == 0 ? FIRST : 2 * (size_t)t->count;
    thiele_status status = full ? thi_grow(ctx, &t->tensor, room, sizeof *t->tensor) : THIELE_OK;
    return status == THIELE_OK && full ? thi_grow(ctx, &t->name, room, sizeof(char *)) : status;
}

static thiele_status read_entry(thi_tensors *t, thiele_context *ctx, const char *source, const char *name,
                                const json_t *entry, int64_t *offset, size_t data_length)
{
    if (t->count >= THI_TENSORS_MAX) {
        return bad(ctx, source, "it has too many tensors");
    }
    thiele_status status = make_room(t, ctx);
    if (status != THIELE_OK) {
        return status;
    }
    thi_tensor *tensor = &t->tensor[t->count];
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *range = json_object_get(entry, "data_offsets");
    bool fits = dtype != NULL && strcmp(dtype, "F64") == 0 && read_shape(json_object_get(entry, "shape"), tensor) &&
                json_array_size(range) == 2;
    int64_t begin = fits ? json_integer_value(json_array_get(range, 0)) : -1;
    int64_t end = fits ? json_integer_value(json_array_get(range, 1)) : -1;
    if (!fits || begin != *offset || end < begin || end - begin != 8 * elements(tensor) ||
        (uint64_t)end > data_length) {
        return bad(ctx, source, "the table of its tensors does not fit its data (cut short or altered?)");
    }
    status = thi_strdup(ctx, &t->name[t->count], name);
    if (status == THIELE_OK) {
        tensor->name = t->name[t->count];
        tensor->data = t->values + begin / 8;
        t->count++;
        *offset = end;
    }
    return status;
}

static const char *metadata_text(const json_t *header, const char *key)
{
    return json_string_value(json_object_get(json_object_get(header, "__metadata__"), key));
}

static thiele_status read_header(thi_tensors *t, thiele_context *ctx, const char *source, json_t *header,
                                 size_t data_length)
{
    const char *format = metadata_text(header, "format");
    const char *version = metadata_text(header, "version");
    const char *crc_text = metadata_text(header, "crc32");
    const char *model = metadata_text(header, "model");
    if (format == NULL || strcmp(format, FORMAT_NAME) != 0 || version == NULL || crc_text == NULL || model == NULL) {
        return bad(ctx, source, "its header is not one that thiele writes");
    }
    if (strcmp(version, FORMAT_VERSION) != 0) {
        return thi_fail(
            ctx, THIELE_ERROR_FORMAT,
            "%s has format version %.20s and this program reads version %s: fit again, or use a newer thiele", source,
            version, FORMAT_VERSION);
    }
    uLong crc = crc32_z(0, (const void *)model, strlen(model));
    crc = crc32_z(crc, (const void *)t->values, data_length);
    char expected[16];
    snprintf(expected, sizeof expected, "%08lx", (unsigned long)crc);
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    if (strcmp(expected, crc_text) != 0) {
        return bad(ctx, source, "its checksum does not match, so it was altered or damaged (copy or fit it again)");
    }
#endif
    const char *name;
    json_t *entry;
    int64_t offset = 0;
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            continue;
        }
        thiele_status status = read_entry(t, ctx, source, name, entry, &offset, data_length);
        if (status != THIELE_OK) {
            return status;
        }
    }
    if ((uint64_t)offset != data_length) {
        return bad(ctx, source, "there are bytes after its last tensor");
    }
    return thi_strdup(ctx, &t->model_json, model);
}

thiele_status thi_tensors_read(thi_tensors *tensors, thiele_context *ctx, const char *source,
                               const unsigned char *bytes, size_t length)
{
    *tensors = (thi_tensors){0};
    uint64_t header_length = 0;
    if (length >= sizeof header_length) {
        memcpy(&header_length, bytes, sizeof header_length);
    }
    if (length <= sizeof header_length || header_length < 2 || header_length > HEADER_MAX || bytes[8] != '{') {
        return bad(ctx, source, "it does not begin like one");
    }
    if (header_length > length - 8) {
        return bad(ctx, source, "it is cut short");
    }
    size_t data_length = length - 8 - (size_t)header_length;
    json_error_t error;
    json_t *header = json_loadb((const char *)bytes + 8, (size_t)header_length, JSON_REJECT_DUPLICATES, &error);
    if (header == NULL) {
        return bad(ctx, source, "its header is damaged");
    }
    tensors->values = (const double *)(const void *)(bytes + 8 + header_length);
    thiele_status status = (uintptr_t)tensors->values % sizeof(double) == 0
                               ? read_header(tensors, ctx, source, header, data_length)
                               : bad(ctx, source, "its data are not aligned");
    json_decref(header);
    if (status != THIELE_OK) {
        thi_tensors_clear(tensors);
    }
    return status;
}

void thi_tensors_clear(thi_tensors *tensors)
{
    for (int t = 0; t < tensors->count; t++) {
        thi_free(tensors->name[t]);
    }
    thi_free(tensors->name);
    thi_free(tensors->tensor);
    thi_free(tensors->model_json);
    *tensors = (thi_tensors){0};
}

static const thi_tensor *find(const thi_tensors *tensors, const char *name)
{
    for (int t = 0; t < tensors->count; t++) {
        if (strcmp(tensors->name[t], name) == 0) {
            return &tensors->tensor[t];
        }
    }
    return NULL;
}

bool thi_tensors_have(const thi_tensors *tensors, const char *name)
{
    return find(tensors, name) != NULL;
}

thiele_status thi_tensors_view(const thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, const double **out)
{
    const thi_tensor *tensor = find(tensors, name);
    bool fits = tensor != NULL && tensor->dims == dims;
    for (int d = 0; fits && d < dims; d++) {
        fits = tensor->shape[d] == shape[d];
    }
    if (!fits) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%s' is absent or of another shape", name);
    }
    int64_t count = elements(tensor);
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(tensor->data[i])) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%s' holds a number that is not finite", name);
        }
    }
    *out = tensor->data;
    return THIELE_OK;
}

thiele_status thi_tensors_take(const thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, double **out)
{
    const double *data = NULL;
    *out = NULL;
    thiele_status status = thi_tensors_view(tensors, ctx, name, dims, shape, &data);
    size_t count = 1;
    for (int d = 0; d < dims; d++) {
        count *= (size_t)shape[d];
    }
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, out, count, sizeof **out);
    }
    if (status == THIELE_OK && count > 0) {
        memcpy(*out, data, count * sizeof **out);
    }
    return status;
}

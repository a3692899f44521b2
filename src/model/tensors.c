/*
 * Reading the safetensors layout. Every length and offset is checked against the file before it is used, and a CRC-32:
 * of the whole file, or in format version 1 of the model text and the tensors.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "model/json.h"
#include "model/tensors_internal.h"

enum { HEADER_MAX = 64 << 20, CRC_DIGITS = 8 };

/* A file on its way in: its header's text, and how many bytes of data follow. */
typedef struct reading {
    thi_tensors *to;
    thiele_context *ctx;
    const char *source;
    const char *text;
    size_t length, data_length;
} reading;

static thiele_status bad(const reading *r, const char *what)
{
    return thi_fail(r->ctx, THIELE_ERROR_FORMAT, "%s is not a usable model file: %s", r->source, what);
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
    if (status == THIELE_OK && full) {
        status = thi_grow(ctx, &t->name, room, sizeof(char *));
    }
    return status == THIELE_OK && full ? thi_grow(ctx, &t->used, room, sizeof *t->used) : status;
}

static thiele_status read_entry(const reading *r, const char *name, const json_t *entry, int64_t *offset)
{
    thi_tensors *t = r->to;
    if (t->count >= THI_TENSORS_MAX) {
        return bad(r, "it has too many tensors");
    }
    thiele_status status = make_room(t, r->ctx);
    if (status != THIELE_OK) {
        return status;
    }
    thi_tensor *tensor = &t->tensor[t->count];
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *range = json_object_get(entry, "data_offsets");
    bool fits = json_object_size(entry) == 3 && dtype != NULL && strcmp(dtype, "F64") == 0 &&
                read_shape(json_object_get(entry, "shape"), tensor) && json_array_size(range) == 2;
    int64_t begin = fits ? json_integer_value(json_array_get(range, 0)) : -1;
    int64_t end = fits ? json_integer_value(json_array_get(range, 1)) : -1;
    if (!fits || begin != *offset || end < begin || end - begin != 8 * thi_tensor_elements(tensor) ||
        (uint64_t)end > r->data_length) {
        return bad(r, "the table of its tensors does not fit its data (cut short or altered?)");
    }
    status = thi_strdup(r->ctx, &t->name[t->count], name);
    if (status == THIELE_OK) {
        tensor->name = t->name[t->count];
        tensor->data = t->values != NULL ? t->values + begin / 8 : NULL;
        t->count++;
        *offset = end;
    }
    return status;
}

/* In the order of the file, without gaps, to the last byte. */
static thiele_status read_table(const reading *r, const json_t *header)
{
    const char *name;
    json_t *entry;
    int64_t offset = 0;
    json_object_foreach((json_t *)(uintptr_t)header, name, entry)
    {
        thiele_status status = strcmp(name, "__metadata__") == 0 ? THIELE_OK : read_entry(r, name, entry, &offset);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return (uint64_t)offset == r->data_length ? THIELE_OK : bad(r, "there are bytes after its last tensor");
}

/* The checksum so far goes on over the data; true when it is the one that was written. */
static bool ends_in(uLong crc, const reading *r, const char *written)
{
    char expected[16];
    crc = crc32_z(crc, (const void *)r->to->values, r->data_length);
    snprintf(expected, sizeof expected, "%08lx", (unsigned long)crc);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return true;
#endif
    return strncmp(expected, written, CRC_DIGITS) == 0;
}

static thiele_status altered(const reading *r)
{
    return bad(r, "its checksum does not match, so it was altered or damaged (copy or fit it again)");
}

/* The format's version from how the header begins; 1 is told from others later. Of later ones nothing is looked at
 * before their checksum, that of all bytes, is found right. */
static thiele_status check_bytes(const reading *r)
{
    size_t at = strlen(THI_HEADER_START), digit = strlen(THI_HEADER_VERSION);
    bool present = r->length > at + CRC_DIGITS && memcmp(r->text, THI_HEADER_START, digit) == 0 &&
                   (r->text[digit] == '2' || r->text[digit] == '3') &&
                   memcmp(r->text + digit + 1, THI_HEADER_START + digit + 1, at - digit - 1) == 0;
    r->to->version = present ? r->text[digit] - '0' : 1;
    return present && r->to->values != NULL && !ends_in(thi_header_crc(r->text, r->length), r, r->text + at)
               ? altered(r)
               : THIELE_OK;
}

static thiele_status read_header(const reading *r, const json_t *header)
{
    const json_t *about = json_object_get(header, "__metadata__");
    const char *format = json_string_value(json_object_get(about, "format"));
    const char *version = json_string_value(json_object_get(about, "version"));
    const char *crc_text = json_string_value(json_object_get(about, "crc32"));
    const char *model = json_string_value(json_object_get(about, "model"));
    if (format == NULL || strcmp(format, THI_FORMAT_NAME) != 0 || version == NULL) {
        return bad(r, "its header is not one that thiele writes");
    }
    if (strlen(version) != 1 || version[0] < '1' || version[0] > '0' + THI_FORMAT_VERSION) {
        return thi_fail(r->ctx, THIELE_ERROR_FORMAT,
                        "%s has format version %.20s and this program reads 1 to %d: use a newer thiele, or fit again",
                        r->source, version, THI_FORMAT_VERSION);
    }
    if (crc_text == NULL || model == NULL || json_object_size(about) != 4 || version[0] - '0' != r->to->version) {
        return bad(r, "its header is not one that thiele writes");
    }
    if (r->to->version == 1 &&
        (strlen(crc_text) != CRC_DIGITS || !ends_in(crc32_z(0, (const void *)model, strlen(model)), r, crc_text))) {
        return altered(r);
    }
    thiele_status status = read_table(r, header);
    return status == THIELE_OK ? thi_strdup(r->ctx, &r->to->model_json, model) : status;
}

static thiele_status read_text(const reading *r)
{
    thi_json header = {0};
    thiele_status status;
    THI_TRY(check_bytes(r));
    status = thi_json_parse(&header, r->ctx, r->text, r->length, "its header");
    if (status == THIELE_ERROR_FORMAT) {
        status = bad(r, "its header is damaged");
    }
    THI_TRY(status);
    THI_TRY(read_header(r, header.root));
out:
    thi_json_clear(&header);
    if (status != THIELE_OK) {
        thi_tensors_clear(r->to);
    }
    return status;
}

/* The header's length from the first bytes, checked against the file's. */
static thiele_status read_length(reading *r, const unsigned char *first, size_t file_length)
{
    uint64_t length = 0;
    if (file_length >= sizeof length) {
        memcpy(&length, first, sizeof length);
    }
    if (file_length <= sizeof length || length < 2) {
        return bad(r, "it does not begin like one");
    }
    if (length > HEADER_MAX) {
        return thi_fail(r->ctx, THIELE_ERROR_FORMAT,
                        "%s is not a usable model file: its header has %.1f MB and the most is %d MB", r->source,
                        1e-6 * (double)length, HEADER_MAX >> 20);
    }
    if (length > file_length - sizeof length) {
        return bad(r, "it is cut short");
    }
    r->length = (size_t)length;
    r->data_length = file_length - sizeof length - (size_t)length;
    return THIELE_OK;
}

thiele_status thi_tensors_read(thi_tensors *tensors, thiele_context *ctx, const char *source,
                               const unsigned char *bytes, size_t length)
{
    reading r = {.to = tensors, .ctx = ctx, .source = source};
    *tensors = (thi_tensors){0};
    if (length > sizeof(uint64_t) && bytes[sizeof(uint64_t)] != '{') {
        return bad(&r, "it does not begin like one");
    }
    thiele_status status = read_length(&r, bytes, length);
    if (status != THIELE_OK) {
        return status;
    }
    r.text = (const char *)bytes + sizeof(uint64_t);
    tensors->values = (const double *)(const void *)(r.text + r.length);
    return (uintptr_t)tensors->values % sizeof(double) == 0 ? read_text(&r) : bad(&r, "its data are not aligned");
}

/* --- what has just been written ------------------------------------------------------------------------------------
 */

static thiele_status read_at(const reading *r, int descriptor, void *to, size_t count, off_t at)
{
    char *next = to;
    while (count > 0) {
        ssize_t got = pread(descriptor, next, count, at);
        if (got <= 0) {
            return thi_fail(r->ctx, THIELE_ERROR_IO, "cannot write %s: it cannot be read back: %s", r->source,
                            got < 0 ? strerror(errno) : "it is too short");
        }
        next += got;
        at += got;
        count -= (size_t)got;
    }
    return THIELE_OK;
}

/* The numbers of each tensor are the ones that were written under its name. */
static thiele_status lend_numbers(const reading *r, int count, const thi_tensor *tensor)
{
    for (int t = 0; t < count; t++) {
        if (r->to->count != count || strcmp(r->to->name[t], tensor[t].name) != 0) {
            return bad(r, "its tensors are not those that were written");
        }
        r->to->tensor[t].data = tensor[t].data;
        r->to->tensor[t].lower = tensor[t].lower;
    }
    return THIELE_OK;
}

thiele_status thi_tensors_reread(thi_tensors *tensors, thiele_context *ctx, thi_file *file, int count,
                                 const thi_tensor *tensor)
{
    reading r = {.to = tensors, .ctx = ctx, .source = file->path};
    unsigned char first[sizeof(uint64_t)] = {0};
    char *text = NULL;
    struct stat info;
    thiele_status status;
    *tensors = (thi_tensors){0};
    if (fflush(file->stream) != 0 || ferror(file->stream) || fstat(fileno(file->stream), &info) != 0) {
        return thi_file_failed(file, ctx);
    }
    int descriptor = fileno(file->stream);
    THI_TRY(read_at(&r, descriptor, first, sizeof first, 0));
    THI_TRY(read_length(&r, first, (size_t)info.st_size));
    THI_TRY(thi_alloc_bare(ctx, &text, r.length, 1));
    THI_TRY(read_at(&r, descriptor, text, r.length, sizeof first));
    r.text = text;
    THI_TRY(read_text(&r));
    THI_TRY(lend_numbers(&r, count, tensor));
out:
    thi_free(text);
    if (status != THIELE_OK) {
        thi_tensors_clear(tensors);
    }
    return status;
}

/* --- using it ------------------------------------------------------------------------------------------------------
 */

void thi_tensors_clear(thi_tensors *tensors)
{
    for (int t = 0; t < tensors->count; t++) {
        thi_free(tensors->name[t]);
    }
    thi_free(tensors->name);
    thi_free(tensors->tensor);
    thi_free(tensors->used);
    thi_free(tensors->model_json);
    *tensors = (thi_tensors){0};
}

/* The index of the named tensor, or -1. */
static int find(thi_tensors *tensors, const char *name)
{
    size_t before = tensors->prefix != NULL ? strlen(tensors->prefix) : 0;
    for (int i = 0; i < tensors->count; i++) {
        int t = (tensors->next + i) % tensors->count;
        const char *own = tensors->name[t];
        if ((before == 0 || strncmp(own, tensors->prefix, before) == 0) && strcmp(own + before, name) == 0) {
            tensors->next = t + 1;
            return t;
        }
    }
    return -1;
}

bool thi_tensors_have(thi_tensors *tensors, const char *name)
{
    return find(tensors, name) >= 0;
}

thiele_status thi_tensors_find(thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, const thi_tensor **out)
{
    int t = find(tensors, name);
    *out = t >= 0 ? &tensors->tensor[t] : NULL;
    bool fits = t >= 0 && tensors->tensor[t].dims == dims;
    for (int d = 0; fits && d < dims; d++) {
        fits = tensors->tensor[t].shape[d] == shape[d];
    }
    if (!fits) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%s' is absent or of another shape", name);
    }
    if (!tensors->used[t] && !thi_tensor_finite(*out)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%s' holds a number that is not finite", name);
    }
    tensors->used[t] = true;
    return THIELE_OK;
}

thiele_status thi_tensors_take(thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, double **out)
{
    const thi_tensor *tensor = NULL;
    *out = NULL;
    thiele_status status = thi_tensors_find(tensors, ctx, name, dims, shape, &tensor);
    if (status != THIELE_OK) {
        return status;
    }
    size_t count = (size_t)thi_tensor_elements(tensor);
    status = thi_alloc(ctx, out, count, sizeof **out);
    if (status == THIELE_OK && count > 0) {
        memcpy(*out, tensor->data, count * sizeof **out);
    }
    return status;
}

thiele_status thi_tensors_all_used(const thi_tensors *tensors, thiele_context *ctx)
{
    for (int t = 0; t < tensors->count; t++) {
        if (!tensors->used[t]) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%.40s' is not one of this model's",
                            tensors->name[t]);
        }
    }
    return THIELE_OK;
}

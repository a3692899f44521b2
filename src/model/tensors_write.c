/* Writing the safetensors layout, deterministically: the same model gives the same bytes. */
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "model/json.h"
#include "model/tensors_internal.h"

/* Calls fn for each contiguous run of a tensor's numbers, in the order of the file; stops when it says false. */
static bool each_run(const thi_tensor *tensor, bool (*fn)(void *arg, const double *run, size_t length), void *arg)
{
    if (tensor->lower.data == NULL) {
        return fn(arg, tensor->data, (size_t)thi_tensor_elements(tensor));
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

bool thi_tensor_finite(const thi_tensor *tensor)
{
    return each_run(tensor, is_finite, NULL);
}

double thi_tensor_diagonal(const thi_tensor *tensor, int64_t n, int64_t j)
{
    return tensor->lower.data != NULL ? tensor->lower.data[j + j * tensor->lower.ld]
                                      : tensor->data[j * n - j * (j - 1) / 2];
}

thiele_status thi_tensors_check(thiele_context *ctx, int count, const thi_tensor *tensor)
{
    for (int t = 0; t < count; t++) {
        if (!thi_tensor_finite(&tensor[t])) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                            "the model's tensor '%s' holds a number that is not finite: it was not saved",
                            tensor[t].name);
        }
    }
    return THIELE_OK;
}

static void add_entry(thi_text *header, const thi_tensor *tensor, int64_t *offset)
{
    thi_text_add_bytes(header, ",", 1);
    thi_json_quote(header, tensor->name);
    thi_text_add(header, ":{\"dtype\":\"F64\",\"shape\":[");
    for (int d = 0; d < tensor->dims; d++) {
        thi_text_add(header, "%s%lld", d > 0 ? "," : "", (long long)tensor->shape[d]);
    }
    int64_t end = *offset + 8 * thi_tensor_elements(tensor);
    thi_text_add(header, "],\"data_offsets\":[%lld,%lld]}", (long long)*offset, (long long)end);
    *offset = end;
}

/* The header as text, padded with spaces so that the data start at a multiple of 64, its checksum still to come. */
static thiele_status make_header(thi_text *header, const char *model_json, int count, const thi_tensor *tensor)
{
    static const char blanks[] = "                                                               ";
    enum { ALIGN = sizeof blanks };
    int64_t offset = 0;
    thi_text_add(header, "%s%s%s", THI_HEADER_START, THI_NO_CHECKSUM, THI_HEADER_MODEL);
    thi_json_quote(header, model_json);
    thi_text_add_bytes(header, "}", 1);
    for (int t = 0; t < count; t++) {
        add_entry(header, &tensor[t], &offset);
    }
    thi_text_add_bytes(header, "}", 1);
    thi_text_add_bytes(header, blanks, (ALIGN - (sizeof(uint64_t) + header->length) % ALIGN) % ALIGN);
    return header->status;
}

unsigned long thi_header_crc(const char *header, size_t length)
{
    uint64_t size = length;
    size_t at = strlen(THI_HEADER_START), end = at + strlen(THI_NO_CHECKSUM);
    uLong crc = crc32_z(0, (const void *)&size, sizeof size);
    crc = crc32_z(crc, (const void *)header, at);
    crc = crc32_z(crc, (const void *)THI_NO_CHECKSUM, end - at);
    return crc32_z(crc, (const void *)(header + end), length - end);
}

thiele_status thi_tensors_write(thiele_context *ctx, thi_file *file, const char *model_json, int count,
                                const thi_tensor *tensor)
{
    FILE *stream = file->stream;
    thi_text header;
    thi_text_init(&header, ctx);
    thiele_status status;
    THI_TRY(make_header(&header, model_json, count, tensor));
    uLong crc = thi_header_crc(header.data, header.length);
    for (int t = 0; t < count; t++) {
        each_run(&tensor[t], add_to_crc, &crc);
    }
    char digits[16];
    snprintf(digits, sizeof digits, "%08lx", (unsigned long)crc);
    memcpy(header.data + strlen(THI_HEADER_START), digits, strlen(THI_NO_CHECKSUM));
    uint64_t size = header.length;
    bool written =
        fwrite(&size, sizeof size, 1, stream) == 1 && fwrite(header.data, 1, header.length, stream) == header.length;
    for (int t = 0; written && t < count; t++) {
        written = each_run(&tensor[t], write_run, stream);
    }
    THI_TRY(written ? THIELE_OK : thi_file_failed(file, ctx));
out:
    thi_text_clear(&header);
    return status;
}

/* Elements of Arrow arrays as numbers and as texts. O(1) for each element; texts are looked up by their hash. */
#include <math.h>
#include <string.h>

#include "data/arrow.h"
#include "data/encoder.h"

static bool bit_at(const void *bits, int64_t at)
{
    return (((const uint8_t *)bits)[at / 8] >> (at % 8) & 1) != 0;
}

static bool is_there(const thi_arrow_part *part, int64_t i)
{
    return part->type->layout != THI_ARROW_NULLS && (part->valid == NULL || bit_at(part->valid, part->offset + i));
}

static bool is_text(const thi_arrow_part *part)
{
    return part->type->layout >= THI_ARROW_TEXTS;
}

bool thi_arrow_is_plain(const thi_arrow_part *part)
{
    return part->type->plain && part->valid == NULL;
}

static double number_at(const thi_arrow_part *part, int64_t i)
{
    const thi_arrow_type *type = part->type;
    if (!is_there(part, i)) {
        return NAN;
    }
    const int64_t at = part->offset + i;
    return type->layout == THI_ARROW_BITS ? (double)bit_at(part->values, at)
                                          : type->number((const char *)part->values + at * type->bytes) / type->per;
}

void thi_arrow_numbers(const thi_arrow_part *part, double *out)
{
    for (int64_t i = 0; i < part->length; i++) {
        out[i] = number_at(part, i);
    }
}

/* --- texts ------------------------------------------------------------------------------------------------------- */

static thiele_status damaged(const thi_arrow_part *part, thiele_context *ctx, int64_t i, const char *why)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "column '%s', element %lld of its Arrow array: %s", part->name,
                    (long long)i + 1, why);
}

/* Where a text begins in the bytes; offsets are 32 or 64 bits wide. */
static int64_t begin_of(const thi_arrow_part *part, int64_t at)
{
    if (part->type->layout == THI_ARROW_LARGE) {
        int64_t begin;
        memcpy(&begin, (const char *)part->values + at * (int64_t)sizeof begin, sizeof begin);
        return begin;
    }
    int32_t begin;
    memcpy(&begin, (const char *)part->values + at * (int64_t)sizeof begin, sizeof begin);
    return begin;
}

/* A view: 4 bytes of length, then up to 12 bytes of text, or 4 of it, the number of a buffer and where it begins. */
static thiele_status view_at(const thi_arrow_part *part, thiele_context *ctx, int64_t i, const char **text,
                             size_t *length)
{
    enum { SHORT = 12 };
    const char *view = (const char *)part->values + (part->offset + i) * part->type->bytes;
    int32_t size, buffer, begin;
    memcpy(&size, view, sizeof size);
    memcpy(&buffer, view + 8, sizeof buffer);
    memcpy(&begin, view + 12, sizeof begin);
    *text = view + 4;
    *length = (size_t)size;
    if (size >= 0 && size <= SHORT) {
        return THIELE_OK;
    }
    if (size < 0 || buffer < 0 || buffer >= part->buffers || begin < 0 || (int64_t)begin + size > part->size[buffer]) {
        return damaged(part, ctx, i, "a text that is not in its buffer");
    }
    *text = part->buffer[buffer] + begin;
    return THIELE_OK;
}

static thiele_status text_at(const thi_arrow_part *part, thiele_context *ctx, int64_t i, const char **text,
                             size_t *length)
{
    if (part->type->layout == THI_ARROW_VIEWS) {
        return view_at(part, ctx, i, text, length);
    }
    const int64_t begin = begin_of(part, part->offset + i), end = begin_of(part, part->offset + i + 1);
    if (begin < 0 || end < begin || (end > begin && part->bytes == NULL)) {
        return damaged(part, ctx, i, "a text that ends before it begins");
    }
    *text = end > begin ? part->bytes + begin : "";
    *length = (size_t)(end - begin);
    return THIELE_OK;
}

/* Of a number as it is written. */
static thiele_status written_at(const thi_arrow_part *part, int64_t i, thi_text *buffer, const char **text,
                                size_t *length)
{
    char date[THI_DATE_MAX] = "";
    buffer->length = 0;
    if (part->type->dates != THI_NO_DATE) {
        thi_date_write(number_at(part, i), part->type->dates, date);
        thi_text_add(buffer, "%s", date);
    } else {
        thi_text_add_number(buffer, number_at(part, i));
    }
    *text = buffer->data;
    *length = buffer->length;
    return buffer->status;
}

/* The code of one element that is there; a text of no length is a missing value. */
static thiele_status code_at(const thi_arrow_part *part, thiele_context *ctx, int64_t i, thi_texts *texts,
                             thi_text *buffer, int32_t *code)
{
    const char *text = "";
    size_t length = 0;
    thiele_status status;
    THI_TRY(is_text(part) ? text_at(part, ctx, i, &text, &length) : written_at(part, i, buffer, &text, &length));
    if (length > 0 && memchr(text, '\0', length) != NULL) {
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "column '%s', element %lld of its Arrow array: a text holds a zero character, which no text "
                        "may",
                        part->name, (long long)i + 1);
    }
    *code = -1;
    if (length > 0) {
        THI_TRY(thi_texts_add(texts, ctx, text, length, code));
    }
out:
    return status;
}

static thiele_status codes_of(const thi_arrow_part *part, thiele_context *ctx, thi_texts *texts, int32_t *out)
{
    thiele_status status = THIELE_OK;
    thi_text buffer;
    thi_text_init(&buffer, ctx);
    for (int64_t i = 0; i < part->length && status == THIELE_OK; i++) {
        out[i] = -1;
        if (is_there(part, i)) {
            status = code_at(part, ctx, i, texts, &buffer, &out[i]);
        }
        status = status == THIELE_OK ? thi_look_up_row(ctx, i, part->length) : status;
    }
    thi_text_clear(&buffer);
    return status;
}

/* Indices into a dictionary, which is looked up once: each array may have another one. */
static thiele_status codes_of_dictionary(const thi_arrow_part *part, thiele_context *ctx, thi_texts *texts,
                                         int32_t *out)
{
    thi_arrow_type type;
    thi_arrow_part values;
    int32_t *code = NULL;
    thiele_status status;
    THI_TRY(thi_arrow_read_type(&type, ctx, part->name, part->type->category));
    if (type.category != NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "column '%s' has a dictionary of dictionaries: decode it first",
                        part->name);
    }
    const int64_t length = part->dictionary->length;
    THI_TRY(thi_arrow_open_part(&values, ctx, part->name, &type, part->dictionary, 0, length));
    THI_TRY(thi_alloc_bare(ctx, &code, (size_t)length, sizeof *code));
    THI_TRY(codes_of(&values, ctx, texts, code));
    for (int64_t i = 0; i < part->length; i++) {
        const double index = number_at(part, i);
        if (index >= 0 && index < (double)length) {
            out[i] = code[(int64_t)index];
        } else if (isnan(index)) {
            out[i] = -1;
        } else {
            status = damaged(part, ctx, i, "an index that its dictionary does not have");
            goto out;
        }
    }
out:
    thi_free(code);
    return status;
}

thiele_status thi_arrow_codes(const thi_arrow_part *part, thiele_context *ctx, thi_texts *texts, int32_t *out)
{
    return part->type->category != NULL ? codes_of_dictionary(part, ctx, texts, out) : codes_of(part, ctx, texts, out);
}

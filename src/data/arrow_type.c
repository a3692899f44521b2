/*
 * Format strings of the Arrow C data interface, and whether an array can be what its format says: how many buffers,
 * which of them must be there, and lengths and offsets that a 64-bit count can hold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/arrow.h"

/* --- numbers of all widths --------------------------------------------------------------------------------------- */

#define READER(name, type)                                                                                             \
    static double name(const void *at)                                                                                 \
    {                                                                                                                  \
        type value;                                                                                                    \
        memcpy(&value, at, sizeof value);                                                                              \
        return (double)value;                                                                                          \
    }
READER(int8, int8_t)
READER(uint8, uint8_t)
READER(int16, int16_t)
READER(uint16, uint16_t)
READER(int32, int32_t)
READER(uint32, uint32_t)
READER(int64, int64_t)
READER(uint64, uint64_t)
READER(single, float)
READER(twice, double)
__extension__ typedef __int128 wide;
READER(int128, wide)

/* IEEE 754 binary16. */
static double half(const void *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction != 0 ? NAN : INFINITY) : ldexp(fraction + 1024, exponent - 25);
    size = exponent == 0 ? ldexp(fraction, -24) : size;
    return (bits >> 15 & 1) != 0 ? -size : size;
}

/* --- formats ----------------------------------------------------------------------------------------------------- */

typedef struct format {
    const char *text; /* one that ends with a colon is followed by something */
    thi_arrow_type type;
} format;

#define NUMBER(reader, size, units, form, index)                                                                       \
    {                                                                                                                  \
        .layout = THI_ARROW_NUMBERS, .bytes = (size), .number = (reader), .per = (units), .dates = (form),             \
        .whole = (index)                                                                                               \
    }
#define DAY 86400.0

static const format formats[] = {
    {"n", {.layout = THI_ARROW_NULLS}},
    {"b", {.layout = THI_ARROW_BITS}},
    {"c", NUMBER(int8, 1, 1, THI_NO_DATE, true)},
    {"C", NUMBER(uint8, 1, 1, THI_NO_DATE, true)},
    {"s", NUMBER(int16, 2, 1, THI_NO_DATE, true)},
    {"S", NUMBER(uint16, 2, 1, THI_NO_DATE, true)},
    {"i", NUMBER(int32, 4, 1, THI_NO_DATE, true)},
    {"I", NUMBER(uint32, 4, 1, THI_NO_DATE, true)},
    {"l", NUMBER(int64, 8, 1, THI_NO_DATE, true)},
    {"L", NUMBER(uint64, 8, 1, THI_NO_DATE, true)},
    {"e", NUMBER(half, 2, 1, THI_NO_DATE, false)},
    {"f", NUMBER(single, 4, 1, THI_NO_DATE, false)},
    {"g", {.layout = THI_ARROW_NUMBERS, .bytes = 8, .number = twice, .per = 1, .plain = true}},
    {"u", {.layout = THI_ARROW_TEXTS}},
    {"U", {.layout = THI_ARROW_LARGE}},
    {"vu", {.layout = THI_ARROW_VIEWS, .bytes = 16}},
    {"tdD", NUMBER(int32, 4, 1, THI_YEAR_FIRST, false)},
    {"tdm", NUMBER(int64, 8, DAY * 1e3, THI_YEAR_FIRST, false)},
    {"tss:", NUMBER(int64, 8, DAY, THI_YEAR_FIRST, false)},
    {"tsm:", NUMBER(int64, 8, DAY * 1e3, THI_YEAR_FIRST, false)},
    {"tsu:", NUMBER(int64, 8, DAY * 1e6, THI_YEAR_FIRST, false)},
    {"tsn:", NUMBER(int64, 8, DAY * 1e9, THI_YEAR_FIRST, false)},
    {"tts", NUMBER(int32, 4, DAY, THI_TIME_OF_DAY, false)},
    {"ttm", NUMBER(int32, 4, DAY * 1e3, THI_TIME_OF_DAY, false)},
    {"ttu", NUMBER(int64, 8, DAY * 1e6, THI_TIME_OF_DAY, false)},
    {"ttn", NUMBER(int64, 8, DAY * 1e9, THI_TIME_OF_DAY, false)},
};

static const struct {
    const char *start, *what, *advice;
} refused[] = {
    {"z", "bytes", "cast it to text or leave it out"},
    {"Z", "bytes", "cast it to text or leave it out"},
    {"vz", "bytes", "cast it to text or leave it out"},
    {"w:", "bytes", "cast it to text or leave it out"},
    {"d:", "decimals of an unusual width", "cast it to 64-bit floats"},
    {"tD", "durations", "cast it to a number of seconds or days"},
    {"ti", "intervals", "cast it to a number of days"},
    {"+r", "runs of equal values", "decode it first"},
    {"+s", "structs", "make columns of their fields or leave it out"},
    {"+m", "maps", "make columns of their values or leave it out"},
    {"+u", "unions", "cast it to one type or leave it out"},
    {"+", "lists", "make columns of their elements or leave it out"},
};

static thiele_status refuse(thiele_context *ctx, const char *name, const char *text)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (strncmp(text, refused[i].start, strlen(refused[i].start)) == 0) {
            return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "column '%s' holds %s, which nothing is learned from: %s",
                            name, refused[i].what, refused[i].advice);
        }
    }
    char shown[THI_SHOWN_MAX];
    thi_show_text(shown, text, strlen(text));
    return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                    "column '%s' has the Arrow format '%s', which is not known here: cast it to numbers or text", name,
                    shown);
}

/* "d:19,4" or "d:19,4,64": digits, those behind the point, bits. */
static bool take_decimal(thi_arrow_type *type, const char *text)
{
    enum { MOST = 76 };
    long part[3] = {0, 0, 128};
    char *end;
    if (strncmp(text, "d:", 2) != 0) {
        return false;
    }
    text += 2;
    for (int i = 0; i < 3; i++) {
        part[i] = strtol(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0') || (i == 0 && *end == '\0')) {
            return false;
        }
        if (*end == '\0') {
            break;
        }
        text = end + 1;
    }
    if (*end != '\0' || labs(part[1]) > MOST || (part[2] != 32 && part[2] != 64 && part[2] != 128)) {
        return false;
    }
    double (*const reader)(const void *) = part[2] == 32 ? int32 : part[2] == 64 ? int64 : int128;
    *type = (thi_arrow_type)NUMBER(reader, (int)part[2] / 8, pow(10.0, (double)part[1]), THI_NO_DATE, false);
    return true;
}

static bool find_format(thi_arrow_type *type, const char *text)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t length = strlen(formats[i].text);
        const bool open = formats[i].text[length - 1] == ':';
        if (open ? strncmp(text, formats[i].text, length) == 0 : strcmp(text, formats[i].text) == 0) {
            *type = formats[i].type;
            return true;
        }
    }
    return take_decimal(type, text);
}

thiele_status thi_arrow_read_type(thi_arrow_type *type, thiele_context *ctx, const char *name,
                                  const struct ArrowSchema *schema)
{
    if (schema == NULL || schema->format == NULL || schema->release == NULL) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "column '%s' has no Arrow format", name);
    }
    if (!find_format(type, schema->format)) {
        return refuse(ctx, name, schema->format);
    }
    if (schema->dictionary != NULL && !type->whole) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "column '%s' has a dictionary whose indices are not whole numbers",
                        name);
    }
    type->category = schema->dictionary;
    return THIELE_OK;
}

/* --- arrays ------------------------------------------------------------------------------------------------------ */

static thiele_status damaged(thiele_context *ctx, const char *name, const char *why)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "column '%s': %s", name, why);
}

/* The buffers of each layout beside the bitmap: those that a length above zero needs. */
static const int least_buffers[] = {[THI_ARROW_NULLS] = 0, [THI_ARROW_BITS] = 2,  [THI_ARROW_NUMBERS] = 2,
                                    [THI_ARROW_TEXTS] = 3, [THI_ARROW_LARGE] = 3, [THI_ARROW_VIEWS] = 3};

/* Views have any number of buffers between themselves and the list of those buffers' sizes. */
static thiele_status open_views(thi_arrow_part *part, thiele_context *ctx, const struct ArrowArray *array)
{
    part->buffers = array->n_buffers - 3;
    part->buffer = (const char *const *)(array->buffers + 2);
    part->size = array->buffers[array->n_buffers - 1];
    for (int64_t i = 0; i < part->buffers; i++) {
        if (part->size == NULL || part->size[i] < 0 || (part->buffer[i] == NULL && part->size[i] > 0)) {
            return damaged(ctx, part->name, "a buffer of its Arrow array is missing");
        }
    }
    return THIELE_OK;
}

static thiele_status open_buffers(thi_arrow_part *part, thiele_context *ctx, const struct ArrowArray *array)
{
    const thi_arrow_layout layout = part->type->layout;
    const bool views = layout == THI_ARROW_VIEWS;
    if (array->n_buffers < least_buffers[layout] || (!views && array->n_buffers > 3) || array->buffers == NULL) {
        return damaged(ctx, part->name, "its Arrow array has another number of buffers than its format says");
    }
    part->valid = array->null_count != 0 ? array->buffers[0] : NULL;
    part->values = array->buffers[1];
    if (array->null_count > 0 && part->valid == NULL) {
        return damaged(ctx, part->name, "its Arrow array has nulls and nothing that says where");
    }
    if (part->length > 0 && part->values == NULL) {
        return damaged(ctx, part->name, "a buffer of its Arrow array is missing");
    }
    part->bytes = layout == THI_ARROW_TEXTS || layout == THI_ARROW_LARGE ? array->buffers[2] : NULL;
    return views ? open_views(part, ctx, array) : THIELE_OK;
}

thiele_status thi_arrow_open_part(thi_arrow_part *part, thiele_context *ctx, const char *name,
                                  const thi_arrow_type *type, const struct ArrowArray *array, int64_t first,
                                  int64_t length)
{
    const int64_t most = INT64_MAX / 64; /* so that no count of bytes or bits overflows */
    if (array == NULL || array->release == NULL || array->length < 0 || array->offset < 0 || array->length > most ||
        array->offset > most || array->null_count < -1 || array->null_count > array->length || array->n_children != 0) {
        return damaged(ctx, name, "length, offset or children of its Arrow array make no sense");
    }
    if (first > array->length || length > array->length - first) {
        return damaged(ctx, name, "its Arrow array is shorter than the table");
    }
    if ((type->category != NULL) != (array->dictionary != NULL)) {
        return damaged(ctx, name, "its Arrow array and its format do not agree about a dictionary");
    }
    *part = (thi_arrow_part){
        .type = type, .name = name, .offset = array->offset + first, .length = length, .dictionary = array->dictionary};
    return type->layout == THI_ARROW_NULLS ? THIELE_OK : open_buffers(part, ctx, array);
}

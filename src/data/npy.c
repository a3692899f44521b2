/*
 * NPY tables (numpy.lib.format, versions 1 to 3): a short header, a Python dictionary in text, and the numbers of one
 * array. Numbers are read and converted as they are asked for, so a table may be larger than memory. The file is not
 * mapped: one that is cut short meanwhile then gives a sentence, not a signal. The header is read as untrusted data.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"

/* Bytes read in one go, unless one row's are more; of the header at most. */
enum { PIECE = 1 << 20, HEADER_MAX = 1 << 16 };

/* Converts `count` numbers that stand `step` bytes apart; out[i * out_step]. */
typedef void (*convert_fn)(const unsigned char *from, size_t step, int64_t count, bool swap, double *out, int out_step);

typedef struct npy_type {
    const char *code;
    size_t size;
    convert_fn convert;
} npy_type;

typedef struct npy_table {
    thiele_table base;
    const npy_type *type;
    bool swap; /* the bytes of a number are in the other order than the machine's */
    bool by_column;
    int file;
    size_t length;                /* of the file */
    size_t data;                  /* where the numbers begin */
    size_t row_step, column_step; /* bytes */
} npy_table;

/* --- numbers ---------------------------------------------------------------------------------------------------- */

static void copy_bytes(void *to, const unsigned char *from, size_t size, bool swap)
{
    if (!swap) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *)to)[i] = from[size - 1 - i];
    }
}

/* X(code, C type): what an array may hold. Boolean bytes are taken as they are. */
#define NPY_TYPES(X)                                                                                                   \
    X(f4, float)                                                                                                       \
    X(f8, double)                                                                                                      \
    X(i1, int8_t)                                                                                                      \
    X(i2, int16_t)                                                                                                     \
    X(i4, int32_t)                                                                                                     \
    X(i8, int64_t)                                                                                                     \
    X(u1, uint8_t)                                                                                                     \
    X(u2, uint16_t)                                                                                                    \
    X(u4, uint32_t)                                                                                                    \
    X(u8, uint64_t)                                                                                                    \
    X(b1, uint8_t)

#define NPY_CONVERT(code, ctype)                                                                                       \
    static void convert_##code(const unsigned char *from, size_t step, int64_t count, bool swap, double *out,          \
                               int out_step)                                                                           \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++, from += step, out += out_step) {                                           \
            ctype value;                                                                                               \
            copy_bytes(&value, from, sizeof value, swap);                                                              \
            *out = (double)value;                                                                                      \
        }                                                                                                              \
    }
NPY_TYPES(NPY_CONVERT)

#define NPY_ENTRY(code, ctype) {#code, sizeof(ctype), convert_##code},
static const npy_type npy_types[] = {NPY_TYPES(NPY_ENTRY)};

static thiele_status read_bytes(const npy_table *npy, thiele_context *ctx, size_t from, size_t length, void *out)
{
    char *at = out;
    while (length > 0) {
        ssize_t got = pread(npy->file, at, length, (off_t)from);
        if (got == 0) {
            return thi_fail(ctx, THIELE_ERROR_IO, "%s is shorter than it was when it was opened: it was cut off",
                            thi_table_source(&npy->base));
        }
        if (got < 0 && errno != EINTR) {
            return thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: %s", thi_table_source(&npy->base), strerror(errno));
        }
        got = got > 0 ? got : 0;
        at += got;
        from += (size_t)got;
        length -= (size_t)got;
    }
    return THIELE_OK;
}

/* Rows one behind the other: from the first to the last of the columns asked for, some rows at a time. */
static thiele_status read_rows(const npy_table *npy, thiele_context *ctx, int64_t first, int64_t count,
                               const int *column, int columns, double *out)
{
    int low = column[0], high = column[0];
    for (int j = 1; j < columns; j++) {
        low = column[j] < low ? column[j] : low;
        high = column[j] > high ? column[j] : high;
    }
    const size_t step = npy->row_step, width = (size_t)(high - low + 1) * npy->type->size;
    int64_t rows = step < PIECE ? (int64_t)(PIECE / step) : 1;
    rows = rows < count ? rows : count;
    unsigned char *bytes;
    thiele_status status = thi_alloc_bare(ctx, &bytes, (size_t)(rows - 1) * step + width, 1);
    for (int64_t at = 0; at < count && status == THIELE_OK; at += rows) {
        int64_t now = count - at < rows ? count - at : rows;
        size_t from = npy->data + (size_t)(first + at) * step + (size_t)low * npy->type->size;
        status = read_bytes(npy, ctx, from, (size_t)(now - 1) * step + width, bytes);
        for (int j = 0; j < columns && status == THIELE_OK; j++) {
            npy->type->convert(bytes + (size_t)(column[j] - low) * npy->type->size, step, now, npy->swap,
                               out + at * columns + j, columns);
        }
        status = status == THIELE_OK ? thi_look_up(ctx, first + at, npy->base.rows) : status;
    }
    thi_free(bytes);
    return status;
}

/* Columns one behind the other. */
static thiele_status read_columns(const npy_table *npy, thiele_context *ctx, int64_t first, int64_t count,
                                  const int *column, int columns, double *out)
{
    const size_t size = npy->type->size;
    int64_t rows = count < PIECE / (int64_t)size ? count : PIECE / (int64_t)size;
    unsigned char *bytes;
    thiele_status status = thi_alloc_bare(ctx, &bytes, (size_t)rows, size);
    for (int64_t at = 0; at < count && status == THIELE_OK; at += rows) {
        int64_t now = count - at < rows ? count - at : rows;
        for (int j = 0; j < columns && status == THIELE_OK; j++) {
            size_t from = npy->data + (size_t)column[j] * npy->column_step + (size_t)(first + at) * size;
            status = read_bytes(npy, ctx, from, (size_t)now * size, bytes);
            if (status == THIELE_OK) {
                npy->type->convert(bytes, size, now, npy->swap, out + at * columns + j, columns);
                status = thi_look_up(ctx, first + at, npy->base.rows);
            }
        }
    }
    thi_free(bytes);
    return status;
}

static thiele_status npy_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                 const int *column, int columns, double *out)
{
    const npy_table *npy = (const npy_table *)table;
    if (count < 1 || columns < 1) {
        return THIELE_OK;
    }
    return (npy->by_column ? read_columns : read_rows)(npy, ctx, first, count, column, columns, out);
}

static void npy_destroy(thiele_table *table)
{
    npy_table *npy = (npy_table *)table;
    if (npy->file >= 0) {
        close(npy->file);
    }
    thi_table_clear(table);
    thi_free(npy);
}

static const thi_table_ops npy_ops = {.numbers = npy_numbers, .destroy = npy_destroy};

/* --- the header ------------------------------------------------------------------------------------------------- */

typedef struct npy_header {
    char type[8];
    int fortran; /* -1 until it is met */
    int dims;    /* -1 until they are met */
    int64_t shape[2];
} npy_header;

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) {
        c->at++;
    }
}

/* Moves over `word`, and blanks before it, if it comes next. */
static bool take(cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

/* A string in single or double quotes, without escapes, shorter than capacity. */
static bool take_string(cursor *c, char *out, size_t capacity)
{
    skip_blanks(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) {
        return false;
    }
    const char *start = c->at + 1;
    const char *stop = memchr(start, *c->at, (size_t)(c->end - start));
    if (stop == NULL || (size_t)(stop - start) >= capacity) {
        return false;
    }
    memcpy(out, start, (size_t)(stop - start));
    out[stop - start] = '\0';
    c->at = stop + 1;
    return true;
}

static bool take_count(cursor *c, int64_t *value)
{
    skip_blanks(c);
    const char *start = c->at;
    *value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (*value > (INT64_MAX - 9) / 10) {
            return false;
        }
        *value = *value * 10 + (*c->at - '0');
    }
    return c->at > start;
}

/* (), (n,), (n, m), ...; dimensions beyond the second are counted only. */
static bool take_shape(cursor *c, npy_header *header)
{
    if (!take(c, "(")) {
        return false;
    }
    header->dims = 0;
    while (!take(c, ")")) {
        int64_t size;
        if (!take_count(c, &size) || (!take(c, ",") && (c->at >= c->end || *c->at != ')'))) {
            return false;
        }
        if (header->dims < 2) {
            header->shape[header->dims] = size;
        }
        header->dims++;
    }
    return true;
}

static bool take_entry(cursor *c, npy_header *header)
{
    char key[16];
    if (!take_string(c, key, sizeof key) || !take(c, ":")) {
        return false;
    }
    if (strcmp(key, "descr") == 0) {
        return header->type[0] == '\0' && take_string(c, header->type, sizeof header->type);
    }
    if (strcmp(key, "fortran_order") == 0 && header->fortran < 0) {
        header->fortran = take(c, "True") ? 1 : take(c, "False") ? 0 : -1;
        return header->fortran >= 0;
    }
    return strcmp(key, "shape") == 0 && header->dims < 0 && take_shape(c, header);
}

/* {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } and blanks: these three keys in any order, no others. */
static bool parse_dictionary(cursor c, npy_header *header)
{
    *header = (npy_header){.fortran = -1, .dims = -1, .shape = {1, 1}};
    if (!take(&c, "{")) {
        return false;
    }
    while (!take(&c, "}")) {
        if (!take_entry(&c, header) || (!take(&c, ",") && (c.at >= c.end || *c.at != '}'))) {
            return false;
        }
    }
    skip_blanks(&c);
    return c.at == c.end && header->type[0] != '\0' && header->fortran >= 0 && header->dims >= 0;
}

/* Finds the dictionary and, behind it, the data; bytes: the beginning of the file. */
static bool parse_header(npy_table *npy, const unsigned char *bytes, size_t known, npy_header *header)
{
    if (known < 12 || bytes[6] < 1 || bytes[6] > 3) {
        return false;
    }
    size_t start = bytes[6] == 1 ? 10 : 12;
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > known - start) {
        return false;
    }
    const char *text = (const char *)bytes + start;
    npy->data = start + length;
    return parse_dictionary((cursor){text, text + length}, header);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* "<f8": byte order, kind, size. */
static thiele_status set_type(npy_table *npy, thiele_context *ctx, const char *path, const char *type)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    bool ordered = strchr("<>|=", type[0]) != NULL;
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++) {
        if (strcmp(npy_types[i].code, type + ordered) == 0) {
            npy->type = &npy_types[i];
        }
    }
    if (npy->type == NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "%s holds numbers of type '%s': save it with .astype('float64') (integers, booleans and 32 or "
                        "64-bit reals can be read)",
                        path, type);
    }
    npy->swap = (type[0] == '>' && little) || (type[0] == '<' && !little);
    return THIELE_OK;
}

static thiele_status set_shape(npy_table *npy, thiele_context *ctx, const char *path, const npy_header *header)
{
    int64_t rows = header->shape[0], columns = header->shape[1];
    if (header->dims < 1 || header->dims > 2) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "%s has %d dimensions: a table has one or two", path,
                        header->dims);
    }
    size_t data_size = npy->length - npy->data;
    size_t expected;
    if (__builtin_mul_overflow((size_t)rows, (size_t)columns, &expected) ||
        __builtin_mul_overflow(expected, npy->type->size, &expected) || expected != data_size) {
        return thi_fail(
            ctx, THIELE_ERROR_FORMAT,
            "%s has %zu bytes of numbers, which does not fit its shape of %lld x %lld: it is damaged or cut "
            "off",
            path, data_size, (long long)rows, (long long)columns);
    }
    npy->by_column = header->fortran != 0;
    npy->row_step = npy->type->size * (header->fortran ? 1 : (size_t)columns);
    npy->column_step = npy->type->size * (header->fortran ? (size_t)rows : 1);
    return thi_table_init(&npy->base, ctx, path, rows, columns);
}

/* Opens the file and reads its header. */
static thiele_status open_file(npy_table *npy, thiele_context *ctx, const char *path, npy_header *header)
{
    struct stat info;
    unsigned char *bytes = NULL;
    thiele_status status;
    npy->file = open(path, O_RDONLY | O_CLOEXEC);
    if (npy->file < 0 || fstat(npy->file, &info) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    npy->length = (size_t)info.st_size;
    const size_t known = npy->length < HEADER_MAX ? npy->length : HEADER_MAX;
    THI_TRY(thi_alloc(ctx, &bytes, known, 1));
    THI_TRY(read_bytes(npy, ctx, 0, known, bytes));
    if (!parse_header(npy, bytes, known, header)) {
        status = thi_fail(
            ctx, THIELE_ERROR_FORMAT,
            "%s begins as an NPY file, but its header is damaged, or describes something other than plain numbers",
            path);
    }
out:
    thi_free(bytes);
    return status;
}

thiele_status thi_table_open_npy(thiele_table **out, thiele_context *ctx, const char *path,
                                 const thiele_table_options *options)
{
    (void)options;
    *out = NULL;
    npy_table *npy;
    npy_header header;
    thiele_status status = thi_alloc(ctx, &npy, 1, sizeof *npy);
    if (status != THIELE_OK) {
        return status;
    }
    npy->base.ops = &npy_ops;
    npy->file = -1;
    THI_TRY(open_file(npy, ctx, path, &header));
    THI_TRY(set_type(npy, ctx, path, header.type));
    THI_TRY(set_shape(npy, ctx, path, &header));
    THI_TRY(thi_table_number_names(&npy->base, ctx));
    *out = &npy->base;
    return THIELE_OK;
out:
    thiele_table_destroy(&npy->base);
    return status;
}

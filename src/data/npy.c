/*
 * NPY tables (numpy.lib.format, versions 1 to 3): a short header, a Python dictionary in text, and the numbers of one
 * array. The file is mapped and numbers are converted as they are asked for, so a table may be larger than memory;
 * cutting the file short meanwhile is as bad here as for any mapped file. The header is read as untrusted data.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"

typedef struct npy_table npy_table;
typedef struct npy_type {
    const char *code;
    size_t size;
    void (*gather)(const npy_table *npy, int64_t first, int64_t count, const int *column, int columns, double *out);
} npy_type;

struct npy_table {
    thiele_table base;
    const npy_type *type;
    bool swap; /* the bytes of a number are in the other order than the machine's */
    unsigned char *map;
    size_t map_size;
    const unsigned char *data;
    size_t row_step, column_step; /* bytes */
};

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

#define NPY_GATHER(code, ctype)                                                                                        \
    static void gather_##code(const npy_table *npy, int64_t first, int64_t count, const int *column, int columns,      \
                              double *out)                                                                             \
    {                                                                                                                  \
        const unsigned char *row = npy->data + (size_t)first * npy->row_step;                                          \
        for (int64_t r = 0; r < count; r++, row += npy->row_step) {                                                    \
            for (int j = 0; j < columns; j++) {                                                                        \
                ctype value;                                                                                           \
                copy_bytes(&value, row + (size_t)column[j] * npy->column_step, sizeof value, npy->swap);               \
                *out++ = (double)value;                                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }
NPY_TYPES(NPY_GATHER)

#define NPY_ENTRY(code, ctype) {#code, sizeof(ctype), gather_##code},
static const npy_type npy_types[] = {NPY_TYPES(NPY_ENTRY)};

static thiele_status npy_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                 const int *column, int columns, double *out)
{
    (void)ctx;
    const npy_table *npy = (const npy_table *)table;
    npy->type->gather(npy, first, count, column, columns, out);
    return THIELE_OK;
}

static void npy_destroy(thiele_table *table)
{
    npy_table *npy = (npy_table *)table;
    if (npy->map != NULL) {
        munmap(npy->map, npy->map_size);
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

/* Finds the dictionary and, behind it, the data. */
static bool parse_header(npy_table *npy, npy_header *header)
{
    const unsigned char *bytes = npy->map;
    if (npy->map_size < 12 || bytes[6] < 1 || bytes[6] > 3) {
        return false;
    }
    size_t start = bytes[6] == 1 ? 10 : 12;
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > npy->map_size - start) {
        return false;
    }
    const char *text = (const char *)bytes + start;
    npy->data = bytes + start + length;
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
    size_t data_size = npy->map_size - (size_t)(npy->data - npy->map);
    size_t expected;
    if (__builtin_mul_overflow((size_t)rows, (size_t)columns, &expected) ||
        __builtin_mul_overflow(expected, npy->type->size, &expected) || expected != data_size) {
        return thi_fail(
            ctx, THIELE_ERROR_FORMAT,
            "%s has %zu bytes of numbers, which does not fit its shape of %lld x %lld: it is damaged or cut "
            "off",
            path, data_size, (long long)rows, (long long)columns);
    }
    npy->row_step = npy->type->size * (header->fortran ? 1 : (size_t)columns);
    npy->column_step = npy->type->size * (header->fortran ? (size_t)rows : 1);
    return thi_table_init(&npy->base, ctx, path, rows, columns);
}

static thiele_status map_file(npy_table *npy, thiele_context *ctx, const char *path)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *map = MAP_FAILED;
    if (file >= 0 && fstat(file, &info) == 0) {
        npy->map_size = (size_t)info.st_size;
        map = mmap(NULL, npy->map_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    int reason = errno;
    if (file >= 0) {
        close(file);
    }
    if (map == MAP_FAILED) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: %s", path, strerror(reason));
    }
    npy->map = map;
    return THIELE_OK;
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
    THI_TRY(map_file(npy, ctx, path));
    if (!parse_header(npy, &header)) {
        status =
            thi_fail(ctx, THIELE_ERROR_FORMAT,
                     "%s begins as an NPY file, but its header is damaged, or describes more than plain numbers", path);
        goto out;
    }
    THI_TRY(set_type(npy, ctx, path, header.type));
    THI_TRY(set_shape(npy, ctx, path, &header));
    THI_TRY(thi_table_number_names(&npy->base, ctx));
    *out = &npy->base;
    return THIELE_OK;
out:
    thiele_table_destroy(&npy->base);
    return status;
}

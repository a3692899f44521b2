/*
 * What all tables share: opening by content, names and finding them, and the defaults of optional operations.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"

enum { NAMES_LISTED = 10, NAMES_SUGGESTED = 3 };

/* HDF5 in a process of its own. */
static thiele_status open_hdf5(thiele_table **out, thiele_context *ctx, const char *path,
                               const thiele_table_options *options)
{
    return thi_table_open_apart(out, ctx, path, options, thi_table_open_hdf5);
}

/* The HDF5 signature may stand behind a user block: at 0, 512, 1024, 2048, ... (HDF5 file format, section II.A). */
static bool is_hdf5(int file, off_t size)
{
    for (off_t at = 0; at + 8 <= size; at = at == 0 ? 512 : 2 * at) {
        char bytes[8];
        if (pread(file, bytes, sizeof bytes, at) == sizeof bytes && memcmp(bytes, "\x89HDF\r\n\x1a\n", 8) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_npy(int file)
{
    char bytes[6];
    return pread(file, bytes, sizeof bytes, 0) == sizeof bytes && memcmp(bytes, "\x93NUMPY", 6) == 0;
}

/* Only a regular file is looked into: what is read from a pipe is gone. */
static thiele_status recognise(thi_table_open_fn **open_table, thiele_context *ctx, const char *path)
{
    *open_table = thi_table_open_csv;
    if (strcmp(path, "-") == 0) {
        return THIELE_OK;
    }
    struct stat info;
    if (stat(path, &info) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: it is a folder, not a file", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return THIELE_OK;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    }
    if (is_npy(file)) {
        *open_table = thi_table_open_npy;
    } else if (is_hdf5(file, info.st_size)) {
        *open_table = open_hdf5;
    }
    close(file);
    return THIELE_OK;
}

thiele_status thiele_table_open(thiele_table **out, thiele_context *ctx, const char *path,
                                const thiele_table_options *options)
{
    THI_NEED_OUT(out, ctx, ctx);
    thiele_table_options taken;
    if (path == NULL || *path == '\0') {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no file was named");
    }
    thi_table_open_fn *open_table;
    thiele_status status = thi_take_options(ctx, "thiele_table_options", &taken, sizeof taken, options);
    if (status == THIELE_OK) {
        status = recognise(&open_table, ctx, path);
    }
    if (status != THIELE_OK) {
        return status;
    }
    thi_watch watch = thi_watch_begin(ctx, strcmp(path, "-") == 0 ? "standard input" : path, 0.0);
    status = open_table(out, ctx, path, &taken);
    thi_watch_end(ctx, watch);
    return status;
}

void thiele_table_destroy(thiele_table *table)
{
    if (table != NULL) {
        table->ops->destroy(table);
    }
}

int64_t thiele_table_rows(const thiele_table *table)
{
    THI_NEED_OR(0, table);
    return table->rows;
}

int thiele_table_columns(const thiele_table *table)
{
    THI_NEED_OR(0, table);
    return table->columns;
}

const char *thiele_table_column_name(const thiele_table *table, int column)
{
    THI_NEED_OR(NULL, table);
    return column >= 0 && column < table->columns ? table->name[column] : NULL;
}

/* --- finding a column ------------------------------------------------------------------------------------------- */

int thi_table_column(const thiele_table *table, const char *name)
{
    return thi_table_column_from(table, name, 0);
}

int thi_table_column_from(const thiele_table *table, const char *name, int first)
{
    for (int i = 0, c = first; i < table->columns; i++, c++) {
        c = c < table->columns ? c : 0;
        if (strcmp(table->name[c], name) == 0) {
            return c;
        }
    }
    return -1;
}

/* "3" is the third column, "-1" the last; -1 for anything else. */
static int column_of_position(const thiele_table *table, const char *text)
{
    char *end;
    errno = 0;
    long position = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        return -1;
    }
    if (position >= 1 && position <= table->columns) {
        return (int)position - 1;
    }
    return position < 0 && position >= -(long)table->columns ? table->columns + (int)position : -1;
}

/* ", did you mean ..." with the names nearest to this one; false when none is near. */
static bool suggest_names(const thiele_table *table, const char *name, thi_text *text)
{
    int limit = (int)(strlen(name) / 3) + 1;
    limit = limit > 3 ? 3 : limit;
    int best = limit + 1;
    for (int c = 0; c < table->columns; c++) {
        int distance = thi_edit_distance(name, table->name[c], limit);
        best = distance < best ? distance : best;
    }
    if (best > limit || best >= (int)strlen(name)) {
        return false;
    }
    int named = 0;
    for (int c = 0; c < table->columns && named < NAMES_SUGGESTED; c++) {
        if (thi_edit_distance(name, table->name[c], limit) == best) {
            thi_text_add(text, "%s'%s'", named++ == 0 ? "; did you mean " : " or ", table->name[c]);
        }
    }
    thi_text_add(text, "?");
    return true;
}

static void list_names(const thiele_table *table, thi_text *text)
{
    thi_text_add(text, "; it has ");
    for (int c = 0; c < table->columns && c < NAMES_LISTED; c++) {
        thi_text_add(text, "%s'%s'", c == 0 ? "" : ", ", table->name[c]);
    }
    if (table->columns > NAMES_LISTED) {
        thi_text_add(text, ", ... (%d columns)", table->columns);
    }
}

static thiele_status no_column(const thiele_table *table, thiele_context *ctx, const char *name)
{
    thi_text rest;
    thi_text_init(&rest, ctx);
    if (!suggest_names(table, name, &rest)) {
        list_names(table, &rest);
    }
    thiele_status status = rest.status;
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_COLUMN, "no column '%s' in %s%s", name, thi_table_source(table), rest.data);
    }
    thi_text_clear(&rest);
    return status;
}

thiele_status thiele_table_find_column(const thiele_table *table, thiele_context *ctx, const char *name, int *column)
{
    THI_NEED(ctx, ctx && table && column);
    *column = -1;
    if (name == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no column was named");
    }
    *column = thi_table_column(table, name);
    if (*column < 0) {
        *column = column_of_position(table, name);
    }
    return *column >= 0 ? THIELE_OK : no_column(table, ctx, name);
}

/* --- operations and their defaults
 * ------------------------------------------------------------------------------------ */

static const thiele_table *whole_table(const thiele_table *table)
{
    while (table->whole != NULL || table->from != NULL) {
        table = table->whole != NULL ? table->whole : table->from;
    }
    return table;
}

const char *thi_table_missing(const thiele_table *table)
{
    return whole_table(table)->missing;
}

void thi_table_census(const thiele_table *table, int column, int64_t *text, int64_t *missing)
{
    table = whole_table(table);
    *text = 0;
    *missing = 0;
    if (table->ops->census != NULL) {
        table->ops->census(table, column, text, missing);
    }
}

thiele_status thi_table_lacks(const thiele_table *table, thiele_context *ctx, int column, bool *lacks)
{
    double value[THI_TABLE_BLOCK];
    int64_t texts, missing;
    thiele_status status = THIELE_OK;
    table = whole_table(table);
    thi_table_census(table, column, &texts, &missing);
    *lacks = missing > 0;
    for (int64_t first = 0; table->ops->census == NULL && first < table->rows && !*lacks && status == THIELE_OK;
         first += THI_TABLE_BLOCK) {
        int64_t count = table->rows - first < THI_TABLE_BLOCK ? table->rows - first : THI_TABLE_BLOCK;
        status = table->ops->numbers(table, ctx, first, count, &column, 1, value);
        for (int64_t i = 0; i < count && status == THIELE_OK; i++) {
            *lacks = *lacks || isnan(value[i]);
        }
        status = status == THIELE_OK ? thi_look_up(ctx, first, table->rows) : status;
    }
    return status;
}

bool thi_table_is_written(const thiele_table *table, int column)
{
    int64_t text, missing;
    thi_table_census(table, column, &text, &missing);
    return whole_table(table)->ops->written || text > 0;
}

bool thi_table_is_category(const thiele_table *table, int column)
{
    table = whole_table(table);
    return table->ops->category != NULL && table->ops->category(table, column);
}

int thiele_table_column_is_category(const thiele_table *table, int column)
{
    THI_NEED_OR(0, table);
    return column >= 0 && column < table->columns && thi_table_is_category(table, column);
}

bool thi_table_is_text(const thiele_table *table, int column)
{
    int64_t text, missing;
    thi_table_census(table, column, &text, &missing);
    return text > (whole_table(table)->rows - missing) / 2;
}

static thiele_status number_as_text(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                                    thi_text *buffer, const char **text, size_t *length)
{
    double value;
    thiele_status status = table->ops->numbers(table, ctx, row, 1, &column, 1, &value);
    if (status != THIELE_OK) {
        return status;
    }
    buffer->length = 0;
    if (value == value) {
        thi_text_add_number(buffer, value);
        *text = buffer->data;
        *length = buffer->length;
    }
    return buffer->status;
}

thiele_status thi_table_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column, thi_text *buffer,
                             const char **text, size_t *length)
{
    *text = "";
    *length = 0;
    return (table->ops->cell != NULL ? table->ops->cell : number_as_text)(table, ctx, row, column, buffer, text,
                                                                          length);
}

thiele_status thiele_table_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column, char *buffer,
                                size_t capacity)
{
    THI_NEED(ctx, ctx && table && buffer);
    if (row < 0 || row >= table->rows || column < 0 || column >= table->columns || capacity == 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no cell in row %lld, column %d: the table is %lld by %d",
                        (long long)row + 1, column + 1, (long long)table->rows, table->columns);
    }
    thi_text scratch;
    const char *text;
    size_t length;
    thi_text_init(&scratch, ctx);
    thiele_status status = thi_table_cell(table, ctx, row, column, &scratch, &text, &length);
    length = status != THIELE_OK ? 0 : length < capacity ? length : capacity - 1;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    thi_text_clear(&scratch);
    return status;
}

int64_t thi_table_block(const thiele_table *table, int64_t numbers)
{
    enum { NUMBERS = 1 << 21 };
    int64_t rows = NUMBERS / (numbers > 0 ? numbers : 1);
    rows = rows > THI_TABLE_BLOCK ? THI_TABLE_BLOCK : rows;
    rows = rows < table->rows ? rows : table->rows;
    return rows > 0 ? rows : 1;
}

/* The table that was read, of which a row is. */
static const thiele_table *find_part(const thiele_table *table, int64_t *row)
{
    while (table->ops->part != NULL) {
        table = table->ops->part(table, row);
    }
    return table;
}

long long thi_table_row_number(const thiele_table *table, int64_t row)
{
    table = find_part(table, &row);
    return 1 + (long long)(table->ops->origin != NULL ? table->ops->origin(table, row) : row);
}

const char *thi_table_row_source(const thiele_table *table, int64_t row)
{
    return thi_table_source(find_part(table, &row));
}

const char *thi_table_name_row(const thiele_table *table, int64_t row, char name[THI_ROW_MAX])
{
    const char *source = thi_table_row_source(table, row);
    bool one = strcmp(source, thi_table_source(table)) == 0;
    snprintf(name, THI_ROW_MAX, "%lld%s%.120s", thi_table_row_number(table, row), one ? "" : " of ", one ? "" : source);
    return name;
}

const char *thi_table_source(const thiele_table *table)
{
    return table->source != NULL && *table->source != '\0' ? table->source : "the table";
}

void thi_show_text(char shown[THI_SHOWN_MAX], const char *text, size_t length)
{
    const size_t most = THI_SHOWN_MAX - 8;
    size_t kept = 0;
    while (kept < length && kept < most && text[kept] != '\n' && text[kept] != '\r' && text[kept] != '\0') {
        kept++;
    }
    while (kept > 0 && kept < length && ((unsigned char)text[kept] & 0xC0) == 0x80) {
        kept--;
    }
    memcpy(shown, text, kept);
    strcpy(shown + kept, kept < length ? "..." : "");
}

void thi_trim(const char **text, size_t *length)
{
    while (*length > 0 && (**text == ' ' || **text == '\t')) {
        ++*text;
        --*length;
    }
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t')) {
        --*length;
    }
}

bool thi_has_decimal_comma(const char *text, size_t length)
{
    char copy[64];
    double value;
    const char *comma = memchr(text, ',', length);
    if (comma == NULL || length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[comma - text] = '.';
    return thi_parse_number(copy, length, &value);
}

/* --- making and freeing
 * ------------------------------------------------------------------------------------------------- */

thiele_status thi_table_init(thiele_table *table, thiele_context *ctx, const char *source, int64_t rows,
                             int64_t columns)
{
    if (rows < 1 || columns < 1) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "%s has no %s", *source != '\0' ? source : "the table",
                        rows < 1 ? "rows" : "columns");
    }
    if (columns > INT_MAX) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "%s has %lld columns, which is too many", source,
                        (long long)columns);
    }
    thiele_status status = thi_strdup(ctx, &table->source, source);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &table->name, (size_t)columns, sizeof *table->name);
    }
    if (status == THIELE_OK) {
        table->rows = rows;
        table->columns = (int)columns;
    }
    return status;
}

thiele_status thi_table_number_names(thiele_table *table, thiele_context *ctx)
{
    for (int c = 0; c < table->columns; c++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", c + 1);
        thiele_status status = thi_strdup(ctx, &table->name[c], name);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

thiele_status thi_table_check_names(const thiele_table *table, thiele_context *ctx)
{
    char **sorted;
    thiele_status status = thi_alloc(ctx, &sorted, (size_t)table->columns, sizeof *sorted);
    if (status != THIELE_OK) {
        return status;
    }
    memcpy(sorted, table->name, (size_t)table->columns * sizeof *sorted);
    qsort(sorted, (size_t)table->columns, sizeof *sorted, compare_names);
    for (int c = 1; c < table->columns && status == THIELE_OK; c++) {
        if (strcmp(sorted[c - 1], sorted[c]) == 0) {
            status = thi_fail(ctx, THIELE_ERROR_FORMAT, "%s has two columns named '%s': rename one of them",
                              thi_table_source(table), sorted[c]);
        }
    }
    thi_free(sorted);
    return status;
}

void thi_table_clear(thiele_table *table)
{
    thi_free(table->missing);
    for (int c = 0; c < table->columns; c++) {
        thi_free(table->name[c]);
    }
    thi_free(table->name);
    thi_free(table->source);
}

/*
 * CSV tables: read once, kept as numbers (row-major, so that a block of rows is one run of memory) and as the text
 * itself, with the place where each row starts, for cells that are wanted as text. Such a cell is found by reading its
 * row again; numbers are copied. csv_read.c makes the table; any number of threads may read one at the same time.
 */
#include "data/csv.h"

#include <math.h>
#include <string.h>

static void find_field(const thi_csv_table *csv, int64_t row, int column, thi_csv_field *field)
{
    const char *at = csv->text + csv->start[row], *end = csv->text + csv->length;
    at = thi_csv_read_field(&csv->format, at, end, field);
    for (int c = 0; c < column; c++) {
        at = thi_csv_read_field(&csv->format, at + 1, end, field);
    }
}

static thiele_status csv_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column, thi_text *buffer,
                              const char **text, size_t *length)
{
    (void)ctx;
    const thi_csv_table *csv = (const thi_csv_table *)table;
    double value = csv->value[row * table->columns + column];
    if (isnan(value) && !thi_csv_is_text(value)) {
        return THIELE_OK;
    }
    thi_csv_field field;
    find_field(csv, row, column, &field);
    if (!field.escaped) {
        *text = field.start;
        *length = field.length;
        return THIELE_OK;
    }
    buffer->length = 0;
    thi_csv_unescape(&field, buffer);
    *text = buffer->data;
    *length = buffer->length;
    return buffer->status;
}

static thiele_status not_a_number(const thiele_table *table, thiele_context *ctx, int64_t row, int column)
{
    thi_text buffer;
    const char *text = "";
    size_t length = 0;
    thi_text_init(&buffer, ctx);
    thiele_status status = csv_cell(table, ctx, row, column, &buffer, &text, &length);
    if (status == THIELE_OK) {
        char shown[THI_SHOWN_MAX], advice[THI_SHOWN_MAX + 48], column_name[THI_SHOWN_MAX];
        thi_show_text(shown, text, length);
        thi_show_text(column_name, table->name[column], strlen(table->name[column]));
        snprintf(advice, sizeof advice, "use `missing` %s to treat it as missing", shown);
        bool comma = thi_has_decimal_comma(text, length);
        bool plain = strlen(shown) == length && strpbrk(shown, " \t,;'\"$*?\\&|<>()") == NULL;
        status = thi_fail(ctx, THIELE_ERROR_DATA, "column '%s', row %s: '%s' is not a number (%s%s%s)",
                          table->name[column], THI_ROW(table, row), shown,
                          comma   ? "decimal commas are not supported: write a point"
                          : plain ? advice
                                  : "use `missing` to name what means a missing value",
                          comma ? "" : "; list columns of categories with `categorical` ", comma ? "" : column_name);
    }
    thi_text_clear(&buffer);
    return status;
}

static thiele_status csv_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                 const int *column, int columns, double *out)
{
    const double *row = ((const thi_csv_table *)table)->value + first * table->columns;
    for (int64_t r = 0; r < count; r++, row += table->columns) {
        for (int j = 0; j < columns; j++) {
            double value = row[column[j]];
            if (isnan(value) && thi_csv_is_text(value)) {
                return not_a_number(table, ctx, first + r, column[j]);
            }
            *out++ = value;
        }
    }
    return THIELE_OK;
}

static void csv_census(const thiele_table *table, int column, int64_t *text, int64_t *missing)
{
    const thi_csv_table *csv = (const thi_csv_table *)table;
    *text = csv->text_cells[column];
    *missing = csv->missing_cells[column];
}

static int64_t csv_origin(const thiele_table *table, int64_t row)
{
    return row + ((const thi_csv_table *)table)->rows_before;
}

static int64_t csv_line(const thiele_table *table, int64_t row)
{
    const thi_csv_table *csv = (const thi_csv_table *)table;
    return 1 + csv->lines_before + thi_csv_count_lines(csv->text, csv->text + csv->start[row]);
}

static void csv_destroy(thiele_table *table)
{
    thi_csv_table *csv = (thi_csv_table *)table;
    thi_free(csv->text);
    thi_free(csv->value);
    thi_free(csv->start);
    thi_free(csv->text_cells);
    thi_free(csv->missing_cells);
    thi_table_clear(table);
    thi_free(csv);
}

const thi_table_ops thi_csv_ops = {
    .numbers = csv_numbers,
    .census = csv_census,
    .cell = csv_cell,
    .origin = csv_origin,
    .line = csv_line,
    .written = true,
    .destroy = csv_destroy,
};

thiele_status thi_table_open_csv(thiele_table **out, thiele_context *ctx, const char *path,
                                 const thiele_table_options *options)
{
    char *text;
    size_t length;
    *out = NULL;
    thiele_status status = thi_read_text(ctx, path, &text, &length);
    if (status != THIELE_OK) {
        return status;
    }
    return thi_csv_take_text(out, ctx, text, length, strcmp(path, "-") == 0 ? "standard input" : path, options);
}

thiele_status thi_table_parse_csv(thiele_table **out, thiele_context *ctx, const char *bytes, size_t length,
                                  const char *source, const thiele_table_options *options)
{
    static const thiele_table_options defaults = THIELE_TABLE_OPTIONS_INIT;
    char *text;
    *out = NULL;
    thiele_status status = thi_strndup(ctx, &text, bytes, length);
    if (status != THIELE_OK) {
        return status;
    }
    return thi_csv_take_text(out, ctx, text, length, source != NULL ? source : "",
                             options != NULL ? options : &defaults);
}

/*
 * A table over columns in memory, which are borrowed from the caller or from an owner that the table releases: numbers
 * a fixed number of bytes apart, so that columns of row-major and of column-major matrices serve as they are, days that
 * are shown as dates, and texts as indices into a list of the different ones. What is kept beside them is a number for
 * each different text and two counts for each column.
 */
#include <math.h>
#include <string.h>

#include "data/data.h"

typedef struct column_text {
    double number; /* NaN: it is missing, or a text */
    bool is_text;
} column_text;

typedef struct borrowed_column {
    thiele_column borrowed;
    column_text *text; /* of each of the texts; NULL: a column of numbers */
    thi_date_form dates;
    bool category;
    int64_t texts, missing;
} borrowed_column;

typedef struct columns_table {
    thiele_table base;
    borrowed_column *column;
    void (*release)(void *owner); /* NULL: the caller keeps what is borrowed */
    void *owner;
} columns_table;

static const borrowed_column *column_of(const thiele_table *table, int column)
{
    return &((const columns_table *)table)->column[column];
}

/* Any stride is allowed, also one after which a number does not lie where the processor likes it: hence the copies. */
static double value_at(const borrowed_column *c, int64_t row)
{
    double value;
    memcpy(&value, (const char *)c->borrowed.values + row * c->borrowed.stride, sizeof value);
    return value;
}

/* The index of a row's text, -1 where it is missing. */
static int32_t code_at(const borrowed_column *c, int64_t row)
{
    int32_t code;
    memcpy(&code, (const char *)c->borrowed.codes + row * c->borrowed.stride, sizeof code);
    return code;
}

/* --- operations ------------------------------------------------------------------------------------------------------
 */

static void write_value(const borrowed_column *c, double value, thi_text *buffer)
{
    char date[THI_DATE_MAX] = "";
    if (c->dates == THI_NO_DATE) {
        thi_text_add_number(buffer, value);
        return;
    }
    thi_date_write(value, c->dates, date);
    thi_text_add(buffer, "%s", date);
}

static thiele_status columns_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                                  thi_text *buffer, const char **text, size_t *length)
{
    const borrowed_column *c = column_of(table, column);
    (void)ctx;
    *text = "";
    if (c->text == NULL) {
        double value = value_at(c, row);
        buffer->length = 0;
        if (!isnan(value)) {
            write_value(c, value, buffer);
            *text = buffer->status == THIELE_OK ? buffer->data : "";
        }
    } else if (code_at(c, row) >= 0) {
        *text = c->borrowed.texts[code_at(c, row)];
    }
    *length = strlen(*text);
    return buffer->status;
}

static thiele_status not_a_number(const thiele_table *table, thiele_context *ctx, int64_t row, int column)
{
    thi_text buffer;
    const char *text;
    size_t length;
    char shown[THI_SHOWN_MAX];
    thi_text_init(&buffer, ctx);
    thiele_status status = columns_cell(table, ctx, row, column, &buffer, &text, &length);
    if (status == THIELE_OK) {
        thi_show_text(shown, text, length);
        status = thi_fail(ctx, THIELE_ERROR_DATA,
                          "column '%s', row %s: '%s' is not a number (list columns of categories with `categorical`)",
                          table->name[column], THI_ROW(table, row), shown);
    }
    thi_text_clear(&buffer);
    return status;
}

/* One column into every columns-th place. */
static thiele_status read_texts(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                int column, int columns, double *out)
{
    const borrowed_column *c = column_of(table, column);
    for (int64_t r = 0; r < count; r++) {
        int32_t code = code_at(c, first + r);
        if (code >= 0 && c->text[code].is_text) {
            return not_a_number(table, ctx, first + r, column);
        }
        out[r * columns] = code >= 0 ? c->text[code].number : NAN;
    }
    return THIELE_OK;
}

static thiele_status columns_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                     const int *column, int columns, double *out)
{
    thiele_status status = THIELE_OK;
    for (int j = 0; j < columns && status == THIELE_OK; j++) {
        const borrowed_column *c = column_of(table, column[j]);
        if (c->text != NULL) {
            status = read_texts(table, ctx, first, count, column[j], columns, out + j);
            continue;
        }
        for (int64_t r = 0; r < count; r++) {
            out[r * columns + j] = value_at(c, first + r);
            if (c->dates != THI_NO_DATE && !isnan(out[r * columns + j])) {
                return not_a_number(table, ctx, first + r, column[j]);
            }
        }
    }
    return status;
}

static void columns_census(const thiele_table *table, int column, int64_t *text, int64_t *missing)
{
    *text = column_of(table, column)->texts;
    *missing = column_of(table, column)->missing;
}

static bool columns_category(const thiele_table *table, int column)
{
    return column_of(table, column)->category;
}

static void columns_destroy(thiele_table *table)
{
    columns_table *t = (columns_table *)table;
    for (int c = 0; c < table->columns && t->column != NULL; c++) {
        thi_free(t->column[c].text);
    }
    thi_free(t->column);
    if (t->release != NULL) {
        t->release(t->owner);
    }
    thi_table_clear(table);
    thi_free(t);
}

static const thi_table_ops columns_ops = {
    .numbers = columns_numbers,
    .census = columns_census,
    .cell = columns_cell,
    .category = columns_category,
    .destroy = columns_destroy,
};

/* --- making ----------------------------------------------------------------------------------------------------------
 */

static thiele_status number_texts(borrowed_column *c, thiele_context *ctx)
{
    thiele_status status = thi_alloc(ctx, &c->text, (size_t)c->borrowed.text_count, sizeof *c->text);
    for (int32_t i = 0; i < c->borrowed.text_count && status == THIELE_OK; i++) {
        const char *text = c->borrowed.texts[i];
        size_t length = strlen(text);
        thi_trim(&text, &length);
        c->text[i].number = NAN;
        c->text[i].is_text = length > 0 && !thi_parse_number(text, length, &c->text[i].number);
    }
    return status;
}

/* Counts what is missing and what is a text. Error: an index that no text has. */
static thiele_status count_cells(const columns_table *t, thiele_context *ctx, int column)
{
    borrowed_column *c = &t->column[column];
    const int64_t rows = t->base.rows;
    for (int64_t r = 0; r < rows; r++) {
        if (c->text == NULL) {
            const bool gone = isnan(value_at(c, r)) != 0;
            c->missing += gone;
            c->texts += !gone && c->dates != THI_NO_DATE;
            continue;
        }
        int32_t code = code_at(c, r);
        if (code < -1 || code >= c->borrowed.text_count) {
            return thi_fail(
                ctx, THIELE_ERROR_ARGUMENT,
                "column '%s', row %lld: there is no text of index %d: they go from 0 to %d, and -1 is missing",
                t->base.name[column], (long long)r + 1, (int)code, (int)c->borrowed.text_count - 1);
        }
        c->texts += code >= 0 && c->text[code].is_text;
        c->missing += code < 0 || (!c->text[code].is_text && isnan(c->text[code].number));
    }
    return THIELE_OK;
}

static thiele_status take(columns_table *t, thiele_context *ctx, int column, const thi_memory_column *from)
{
    borrowed_column *c = &t->column[column];
    const thiele_column *given = &from->column;
    thiele_status status;
    if (given->name == NULL || (given->values == NULL) == (given->codes == NULL) || given->text_count < 0 ||
        (given->codes != NULL && given->texts == NULL && given->text_count > 0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "column %d needs a name, and either values or codes with their texts", column + 1);
    }
    c->borrowed = *given;
    c->dates = from->dates;
    c->category = from->category;
    if (given->stride == 0) {
        c->borrowed.stride = (ptrdiff_t)(given->values != NULL ? sizeof *given->values : sizeof *given->codes);
    }
    THI_TRY(thi_strdup(ctx, &t->base.name[column], given->name));
    c->borrowed.name = t->base.name[column];
    if (given->codes != NULL) {
        THI_TRY(number_texts(c, ctx));
    }
    status = count_cells(t, ctx, column);
out:
    return status;
}

thiele_status thi_table_over_columns(thiele_table **out, thiele_context *ctx, int64_t rows, int columns,
                                     const thi_memory_column *column, void (*release)(void *owner), void *owner)
{
    columns_table *t;
    thiele_status status = thi_alloc(ctx, &t, 1, sizeof *t);
    if (status != THIELE_OK) {
        return status;
    }
    t->base.ops = &columns_ops;
    THI_TRY(thi_table_init(&t->base, ctx, "", rows, columns));
    THI_TRY(thi_alloc(ctx, &t->column, (size_t)columns, sizeof *t->column));
    for (int c = 0; c < columns; c++) {
        THI_TRY(take(t, ctx, c, &column[c]));
    }
    THI_TRY(thi_table_check_names(&t->base, ctx));
    t->release = release;
    t->owner = owner;
    *out = &t->base;
    return THIELE_OK;
out:
    thiele_table_destroy(&t->base);
    return status;
}

thiele_status thiele_table_from_columns(thiele_table **out, thiele_context *ctx, int64_t rows, int columns,
                                        const thiele_column *column)
{
    THI_NEED_OUT(out, ctx, ctx && column);
    thi_memory_column *plain;
    thiele_status status = thi_alloc(ctx, &plain, (size_t)(columns > 0 ? columns : 0), sizeof *plain);
    for (int c = 0; c < columns && status == THIELE_OK; c++) {
        plain[c].column = column[c];
    }
    if (status == THIELE_OK) {
        status = thi_table_over_columns(out, ctx, rows, columns, plain, NULL, NULL);
    }
    thi_free(plain);
    return status;
}

/*
 * Writes a table as CSV (RFC 4180), block by block: numbers by the shortest text that reads back the same, text as it
 * stands, in quotes where it must be. What was written reads back as the same table.
 */
#include <math.h>
#include <string.h>

#include "data/data.h"

typedef struct writer {
    const thiele_table *table;
    thiele_context *ctx;
    thi_file file;
    thi_text out, cell;
    int *number; /* the columns without text, in order */
    int numbers;
    int64_t block; /* rows at a time */
    double *value; /* their numbers */
} writer;

/* Also what the guess of a delimiter would stumble over, and blanks that reading would cut off. */
static bool needs_quotes(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr(",;\t\"\r\n", text[i]) != NULL) {
            return true;
        }
    }
    return length > 0 && (text[0] == ' ' || text[length - 1] == ' ');
}

void thi_csv_add_field(thi_text *out, const char *text, size_t length)
{
    const char *quote;
    if (!needs_quotes(text, length)) {
        thi_text_add_bytes(out, text, length);
        return;
    }
    thi_text_add_bytes(out, "\"", 1);
    while ((quote = memchr(text, '"', length)) != NULL) {
        size_t part = (size_t)(quote - text) + 1;
        thi_text_add_bytes(out, text, part);
        thi_text_add_bytes(out, "\"", 1);
        text += part;
        length -= part;
    }
    thi_text_add_bytes(out, text, length);
    thi_text_add_bytes(out, "\"", 1);
}

static void add_number(thi_text *out, double value)
{
    if (!isnan(value)) {
        thi_text_add_number(out, value);
    }
}

/* One row; `value` holds the numbers of its columns without text. */
static thiele_status add_row(writer *w, int64_t row, const double *value)
{
    const int columns = w->table->columns;
    const size_t before = w->out.length;
    int number = 0;
    for (int c = 0; c < columns; c++) {
        thi_text_add_bytes(&w->out, ",", c > 0);
        if (number < w->numbers && w->number[number] == c) {
            add_number(&w->out, value[number++]);
            continue;
        }
        const char *text;
        size_t length;
        thiele_status status = thi_table_cell(w->table, w->ctx, row, c, &w->cell, &text, &length);
        if (status != THIELE_OK) {
            return status;
        }
        thi_csv_add_field(&w->out, text, length);
    }
    /* A row of nothing at all would be a blank line. */
    thi_text_add_bytes(&w->out, "\"\"", w->out.length == before ? 2 : 0);
    thi_text_add_bytes(&w->out, "\n", 1);
    return w->out.status;
}

/* Passes the text so far on to the file. A full disk shows here or at the end, where its reason is told. */
static void flush_text(writer *w)
{
    if (w->out.status == THIELE_OK && w->out.length > 0) {
        fwrite(w->out.data, 1, w->out.length, w->file.stream);
        w->out.length = 0;
    }
}

static void add_header(writer *w)
{
    for (int c = 0; c < w->table->columns; c++) {
        thi_text_add_bytes(&w->out, ",", c > 0);
        thi_csv_add_field(&w->out, w->table->name[c], strlen(w->table->name[c]));
    }
    thi_text_add_bytes(&w->out, "\n", 1);
}

static thiele_status add_rows(writer *w)
{
    const thiele_table *table = w->table;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < table->rows && !ferror(w->file.stream); first += w->block) {
        int64_t count = table->rows - first < w->block ? table->rows - first : w->block;
        THI_TRY(thi_look_up(w->ctx, first, table->rows));
        THI_TRY(table->ops->numbers(table, w->ctx, first, count, w->number, w->numbers, w->value));
        for (int64_t r = 0; r < count; r++) {
            THI_TRY(add_row(w, first + r, w->value + r * w->numbers));
        }
        flush_text(w);
    }
out:
    return status;
}

static thiele_status prepare(writer *w)
{
    const size_t columns = (size_t)w->table->columns;
    thiele_status status;
    THI_TRY(thi_alloc(w->ctx, &w->number, columns, sizeof *w->number));
    for (int c = 0; c < w->table->columns; c++) {
        int64_t text, missing;
        thi_table_census(w->table, c, &text, &missing);
        if (text == 0) {
            w->number[w->numbers++] = c;
        }
    }
    w->block = thi_table_block(w->table, w->table->columns);
    THI_TRY(thi_alloc(w->ctx, &w->value, (size_t)w->block, columns * sizeof *w->value));
out:
    return status;
}

thiele_status thiele_table_write(const thiele_table *table, thiele_context *ctx, const char *path)
{
    THI_NEED(ctx, ctx && table && path);
    writer w = {.table = table, .ctx = ctx};
    thiele_status status;
    thi_watch watch = thi_watch_begin(ctx, thi_table_source(table), 0.0);
    thi_text_init(&w.out, ctx);
    thi_text_init(&w.cell, ctx);
    THI_TRY(prepare(&w));
    THI_TRY(thi_file_begin(&w.file, ctx, path));
    add_header(&w);
    THI_TRY(add_rows(&w));
    flush_text(&w);
    THI_TRY(w.out.status);
    THI_TRY(thi_file_commit(&w.file, ctx));
out:
    thi_watch_end(ctx, watch);
    thi_file_abandon(&w.file);
    thi_text_clear(&w.out);
    thi_text_clear(&w.cell);
    thi_free(w.number);
    thi_free(w.value);
    return status;
}

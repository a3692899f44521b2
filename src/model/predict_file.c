/* Predictions as a CSV file, written as they come and renamed when complete. */
#include <math.h>
#include <string.h>

#include "model/model.h"

typedef struct writer {
    thiele_context *ctx;
    const thiele_table *table;
    const thiele_predict_options *options;
    thi_file file;
    int *id; /* columns to copy */
    int ids;
    thi_text line, cell;
    bool begun; /* the header is written */
} writer;

static thiele_status add_id(void *arg, const char *name, size_t length)
{
    writer *w = arg;
    char *text = NULL;
    int column = 0;
    thiele_status status;
    THI_TRY(thi_strndup(w->ctx, &text, name, length));
    THI_TRY(thiele_table_find_column(w->table, w->ctx, text, &column));
    THI_TRY(thi_grow(w->ctx, &w->id, (size_t)w->ids + 1, sizeof *w->id));
    w->id[w->ids++] = column;
out:
    thi_free(text);
    return status;
}

static void add_field(writer *w, const char *text, size_t length)
{
    thi_text_add_bytes(&w->line, ",", w->line.length > 0);
    thi_csv_add_field(&w->line, text, length);
}

static void add_name(writer *w, const char *name)
{
    add_field(w, name, strlen(name));
}

static void add_number(writer *w, double value)
{
    char text[THI_NUMBER_MAX];
    int length = thi_format_number(text, value);
    add_field(w, text, (size_t)length);
}

static thiele_status end_line(writer *w)
{
    thi_text_add_bytes(&w->line, "\n", 1);
    if (w->line.status != THIELE_OK) {
        return w->line.status;
    }
    size_t length = w->line.length;
    w->line.length = 0;
    return fwrite(w->line.data, 1, length, w->file.stream) == length ? THIELE_OK : thi_file_failed(&w->file, w->ctx);
}

/* Once, before the first row, so that a table that is refused leaves nothing behind. */
static thiele_status write_header(writer *w)
{
    if (w->begun) {
        return THIELE_OK;
    }
    w->begun = true;
    char name[THI_NUMBER_MAX + 8];
    for (int i = 0; i < w->ids; i++) {
        add_name(w, w->table->name[w->id[i]]);
    }
    add_name(w, "mean");
    add_name(w, "sd");
    for (int q = 0; q < w->options->quantile_count; q++) {
        name[0] = 'q';
        thi_format_number(name + 1, w->options->quantiles[q]);
        add_name(w, name);
    }
    for (int s = 0; s < w->options->samples; s++) {
        snprintf(name, sizeof name, "s%d", s + 1);
        add_name(w, name);
    }
    return end_line(w);
}

static thiele_status write_block(const thiele_prediction *block, void *user)
{
    writer *w = user;
    int Q = w->options->quantile_count;
    int S = w->options->samples;
    thiele_status begun = write_header(w);
    if (begun != THIELE_OK) {
        return begun;
    }
    for (int64_t i = 0; i < block->rows; i++) {
        for (int c = 0; c < w->ids; c++) {
            const char *text;
            size_t length;
            w->cell.length = 0;
            thiele_status status = thi_table_cell(w->table, w->ctx, block->row[i], w->id[c], &w->cell, &text, &length);
            if (status != THIELE_OK) {
                return status;
            }
            add_field(w, text, length);
        }
        add_number(w, block->mean[i]);
        add_number(w, sqrt(block->variance[i]));
        for (int q = 0; q < Q; q++) {
            add_number(w, block->quantiles[i * Q + q]);
        }
        for (int s = 0; s < S; s++) {
            add_number(w, block->samples[i * S + s]);
        }
        thiele_status status = end_line(w);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

thiele_status thiele_model_predict_file(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                        const thiele_predict_options *options, const char *path)
{
    static const thiele_predict_options defaults = THIELE_PREDICT_OPTIONS_INIT;
    writer w = {.ctx = ctx, .table = table, .options = options != NULL ? options : &defaults};
    thi_text_init(&w.line, ctx);
    thi_text_init(&w.cell, ctx);
    thiele_status status;
    THI_TRY(thi_split_list(w.options->id, add_id, &w));
    THI_TRY(thi_file_begin(&w.file, ctx, path));
    THI_TRY(thiele_model_predict(model, ctx, table, w.options, write_block, &w));
    THI_TRY(write_header(&w));
    THI_TRY(thi_file_commit(&w.file, ctx));
out:
    thi_file_abandon(&w.file);
    thi_text_clear(&w.line);
    thi_text_clear(&w.cell);
    thi_free(w.id);
    return status;
}

/* Predictions as a CSV file, written as they come and renamed when complete. */
#include <math.h>
#include <string.h>

#include "model/predict_pass.h"

typedef struct writer {
    thiele_context *ctx;
    const thiele_model *model;
    const thiele_table *table;
    const thiele_predict_options *options;
    const thiele_model *own; /* whose columns are being written: the model or a part of it */
    int parts;               /* how many such there are */
    int classes;             /* of them: 0 unless labels are predicted */
    int quantiles;           /* likewise: labels without order have none */
    thi_file file;
    int *id; /* columns to copy */
    int ids;
    thi_text line, cell;
    bool begun;        /* the header is written */
    bool naming;       /* the names of predictions are being written */
    const char *twice; /* one that two columns would have */
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

/* A name of the header. One that an `id` column has as well would make two columns of that name. */
static void add_name(writer *w, const char *name)
{
    for (int i = 0; i < w->ids && w->naming; i++) {
        if (strcmp(w->table->name[w->id[i]], name) == 0) {
            w->twice = w->table->name[w->id[i]];
        }
    }
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
    if (w->line.status != THIELE_OK || w->cell.status != THIELE_OK) {
        return w->line.status != THIELE_OK ? w->line.status : w->cell.status;
    }
    size_t length = w->line.length;
    w->line.length = 0;
    return fwrite(w->line.data, 1, length, w->file.stream) == length ? THIELE_OK : thi_file_failed(&w->file, w->ctx);
}

/* Turns to the model that part p of the columns comes from. */
static void turn_to(writer *w, int p)
{
    w->own = w->model->parts > 0 ? w->model->part[p] : w->model;
    w->classes = w->options->latent ? 0 : thiele_model_classes(w->own);
    w->quantiles = w->options->latent || thi_model_has_order(w->own) ? w->options->quantile_count : 0;
}

/* "p.yes", where each target has a model "p.species.yes". */
static void add_suffixed(writer *w, const char *name, const char *suffix)
{
    bool part = w->model->parts > 0;
    w->cell.length = 0;
    thi_text_add(&w->cell, "%s%s%s", name, part ? "." : "", part ? w->own->encoder.target->name : "");
    thi_text_add(&w->cell, "%s%s", suffix != NULL ? "." : "", suffix != NULL ? suffix : "");
    if (w->cell.status == THIELE_OK) {
        add_name(w, w->cell.data);
    }
}

/* "mean" of the only output, "mean.height" or "mean.f2" of several. */
static void add_output_name(writer *w, const char *name, int output)
{
    bool latent = w->options->latent != 0;
    bool only = w->classes > 0 || thi_model_outputs(w->own, latent) == 1;
    char number[24];
    snprintf(number, sizeof number, "f%d", output + 1);
    add_suffixed(w, name, only ? NULL : latent ? number : w->own->encoder.target[output].name);
}

/* Labels and their probabilities, or means and standard deviations. */
static void name_moments(writer *w)
{
    int outputs = w->classes > 0 ? 0 : thi_model_outputs(w->own, w->options->latent != 0);
    if (w->classes > 0) {
        add_suffixed(w, "label", NULL);
    }
    for (int c = 0; c < w->classes; c++) {
        add_suffixed(w, "p", w->own->encoder.target->level[c]);
    }
    for (int p = 0; p < outputs; p++) {
        add_output_name(w, "mean", p);
        add_output_name(w, "sd", p);
    }
}

static void name_draws(writer *w)
{
    char name[THI_NUMBER_MAX + 8];
    int outputs = w->classes > 0 ? 1 : thi_model_outputs(w->own, w->options->latent != 0);
    for (int p = 0; p < outputs; p++) {
        for (int q = 0; q < w->quantiles; q++) {
            name[0] = 'q';
            thi_format_number(name + 1, w->options->quantiles[q]);
            add_output_name(w, name, p);
        }
        for (int s = 0; s < w->options->samples; s++) {
            snprintf(name, sizeof name, "s%d", s + 1);
            add_output_name(w, name, p);
        }
    }
}

static void each_part(writer *w, void (*fn)(writer *w))
{
    for (int p = 0; p < w->parts; p++) {
        turn_to(w, p);
        fn(w);
    }
}

/* Once, before the first row, so that a table that is refused leaves nothing behind. */
static thiele_status write_header(writer *w)
{
    if (w->begun) {
        return THIELE_OK;
    }
    w->begun = true;
    for (int i = 0; i < w->ids; i++) {
        for (int j = 0; j < i; j++) {
            w->twice = w->id[i] == w->id[j] ? w->table->name[w->id[i]] : w->twice;
        }
        add_name(w, w->table->name[w->id[i]]);
    }
    w->naming = true;
    each_part(w, name_moments);
    each_part(w, name_draws);
    w->naming = false;
    if (w->twice != NULL) {
        return thi_fail(w->ctx, THIELE_ERROR_COLUMN,
                        "the output would have two columns called '%s': rename the one that `id` copies", w->twice);
    }
    return end_line(w);
}

static thiele_status write_ids(writer *w, int64_t row)
{
    for (int c = 0; c < w->ids; c++) {
        const char *text;
        size_t length;
        w->cell.length = 0;
        thiele_status status = thi_table_cell(w->table, w->ctx, row, w->id[c], &w->cell, &text, &length);
        if (status != THIELE_OK) {
            return status;
        }
        add_field(w, text, length);
    }
    return THIELE_OK;
}

static void write_label(writer *w, int index)
{
    add_name(w, w->own->encoder.target->level[index]);
}

/* The most probable label, and how probable each is. */
static void write_classes(writer *w, const thiele_prediction *block, int64_t i)
{
    const double *probability = block->probability + i * block->classes;
    int best = 0;
    for (int c = 1; c < block->classes; c++) {
        best = probability[c] > probability[best] ? c : best;
    }
    write_label(w, best);
    for (int c = 0; c < block->classes; c++) {
        add_number(w, probability[c]);
    }
}

static void write_moments(writer *w, const thiele_prediction *block, int64_t i)
{
    if (block->classes > 0) {
        write_classes(w, block, i);
        return;
    }
    for (int64_t at = i * block->outputs; at < (i + 1) * block->outputs; at++) {
        add_number(w, block->mean[at]);
        add_number(w, sqrt(block->variance[at]));
    }
}

/* A number, or the label of one. */
static void write_value(writer *w, double value)
{
    if (w->classes > 0) {
        write_label(w, (int)value);
    } else {
        add_number(w, value);
    }
}

static void write_draws(writer *w, const thiele_prediction *block, int64_t i)
{
    int Q = w->quantiles, S = w->options->samples;
    for (int64_t at = i * block->outputs; at < (i + 1) * block->outputs; at++) {
        for (int q = 0; q < Q; q++) {
            write_value(w, block->quantiles[at * Q + q]);
        }
        for (int s = 0; s < S; s++) {
            write_value(w, block->samples[at * S + s]);
        }
    }
}

static void write_row(writer *w, const thiele_prediction *block, int64_t i)
{
    const thiele_prediction *part = block->parts > 0 ? block->part : block;
    for (int p = 0; p < w->parts; p++) {
        turn_to(w, p);
        write_moments(w, &part[p], i);
    }
    for (int p = 0; p < w->parts; p++) {
        turn_to(w, p);
        write_draws(w, &part[p], i);
    }
}

static thiele_status write_block(const thiele_prediction *block, void *user)
{
    writer *w = user;
    thiele_status status = write_header(w);
    for (int64_t i = 0; status == THIELE_OK && i < block->rows; i++) {
        status = write_ids(w, block->row[i]);
        if (status != THIELE_OK) {
            return status;
        }
        write_row(w, block, i);
        status = end_line(w);
    }
    return status;
}

thiele_status thiele_model_predict_file(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                        const thiele_predict_options *options, const char *path)
{
    THI_NEED(ctx, model && ctx && table && path);
    thiele_predict_options taken;
    writer w = {.ctx = ctx, .model = model, .table = table, .options = &taken};
    w.parts = model->parts > 0 ? model->parts : 1;
    thi_text_init(&w.line, ctx);
    thi_text_init(&w.cell, ctx);
    thiele_status status;
    THI_TRY(thi_predict_take(ctx, options, &taken));
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

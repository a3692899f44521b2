/*
 * Matches an encoder's columns to a table's by name: inputs, targets and exposure. All that are absent are named at
 * once.
 */
#include <string.h>

#include "data/encoder.h"

/* The names of columns that the table does not have. */
typedef struct absence {
    thi_text list;
    int count;
    int next; /* behind the column that was found last */
} absence;

static bool is_needed(const thi_encoder *encoder, const char *name)
{
    for (int i = 0; i < encoder->inputs; i++) {
        if (strcmp(encoder->input[i].name, name) == 0) {
            return true;
        }
    }
    for (int p = 0; p < encoder->targets; p++) {
        if (strcmp(encoder->target[p].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The table's column that may be meant by a name it does not have: the nearest that no other part of the model is. */
static const char *nearest(const thi_reader *reader, const char *name)
{
    enum { FURTHEST = 3 };
    int most = (int)(strlen(name) + 2) / 3;
    int limit = most < FURTHEST ? most : FURTHEST;
    const char *found = NULL;
    for (int c = 0; c < reader->table->columns; c++) {
        int distance = thi_edit_distance(name, reader->table->name[c], limit);
        if (distance <= limit && distance < (int)strlen(name) && !is_needed(reader->encoder, reader->table->name[c])) {
            found = reader->table->name[c];
            limit = distance - 1;
        }
    }
    return found;
}

/* The table's column of this name, or -1, which is noted with what the column is for. */
static int match(const thi_reader *reader, const char *name, const char *what, absence *absent)
{
    enum { NAMED = 10 };
    int column = thi_table_column_from(reader->table, name, absent->next);
    absent->next = column + 1;
    if (column < 0 && absent->count++ < NAMED) {
        const char *near = nearest(reader, name);
        thi_text_add(&absent->list, "%s'%s'%s", absent->count > 1 ? ", " : "", name, what);
        if (near != NULL) {
            thi_text_add(&absent->list, " (is it '%s'?)", near);
        }
    } else if (column < 0 && absent->count == NAMED + 1) {
        thi_text_add(&absent->list, ", ...");
    }
    return column;
}

static void match_inputs(thi_reader *reader, absence *absent)
{
    const thi_encoder *encoder = reader->encoder;
    for (int i = 0; i < encoder->inputs; i++) {
        const thi_input *input = &encoder->input[i];
        int column = match(reader, input->name, "", absent);
        reader->column[i] = column;
        reader->dates_as_text[i] =
            input->dates.form != THI_NO_DATE && column >= 0 && thi_table_is_written(reader->table, column);
        if (input->levels == 0 && !reader->dates_as_text[i]) {
            reader->numeric[reader->numerics++] = i;
            reader->source[reader->width++] = column;
        }
    }
}

/* Labels are read as numbers where they are numbers and the column has nothing else, as texts otherwise. */
static void match_targets(thi_reader *reader, absence *absent)
{
    const thi_encoder *encoder = reader->encoder;
    const char *what = encoder->targets > 1 ? " (a target)" : " (the target)";
    for (int p = 0; p < encoder->targets; p++) {
        const thi_target *target = &encoder->target[p];
        int64_t texts = 0, missing;
        int column = match(reader, target->name, what, absent);
        if (column >= 0 && target->level_value != NULL) {
            thi_table_census(reader->table, column, &texts, &missing);
        }
        if (target->levels > 0 && (target->level_value == NULL || texts > 0)) {
            reader->label_column = column;
        } else {
            reader->source[reader->width++] = column;
            reader->targets++;
        }
    }
}

static void match_exposure(thi_reader *reader, thiele_context *ctx, absence *absent)
{
    const char *name = reader->encoder->exposure;
    if (reader->how.target) {
        reader->exposure = match(reader, name, " (the exposure)", absent);
    } else {
        reader->exposure = thi_table_column(reader->table, name);
    }
    if (reader->exposure >= 0) {
        reader->source[reader->width++] = reader->exposure;
    } else if (!reader->how.target) {
        thi_log(ctx, THIELE_LOG_WARNING, "%s has no column '%s' (the exposure): it counts as 1 in every row",
                thi_table_source(reader->table), name);
    }
}

/* Predictions can do without it: by the nearest block. */
static void match_key(thi_reader *reader, thiele_context *ctx, absence *absent)
{
    const char *name = reader->encoder->key.name;
    reader->key =
        reader->how.target ? match(reader, name, " (the partition)", absent) : thi_table_column(reader->table, name);
    if (reader->key < 0 && !reader->how.target) {
        thi_log(ctx, THIELE_LOG_WARNING, "%s has no column '%s' (the partition): each row goes by the nearest block",
                thi_table_source(reader->table), name);
    }
}

static thiele_status match_columns(thi_reader *reader, thiele_context *ctx)
{
    absence absent = {.count = 0};
    thi_text_init(&absent.list, ctx);
    match_inputs(reader, &absent);
    if (reader->how.target) {
        match_targets(reader, &absent);
    }
    if (reader->how.target && reader->how.weighted && reader->encoder->weights != NULL) {
        reader->weights = match(reader, reader->encoder->weights, " (the weights)", &absent);
        reader->source[reader->width++] = reader->weights;
    }
    if (reader->encoder->exposure != NULL) {
        match_exposure(reader, ctx, &absent);
    }
    if (reader->encoder->key.name != NULL) {
        match_key(reader, ctx, &absent);
    }
    thiele_status status = absent.list.status;
    if (status == THIELE_OK && absent.count > 0) {
        status = thi_fail(ctx, THIELE_ERROR_COLUMN, "%s has no column %s: the model needs %s",
                          thi_table_source(reader->table), absent.list.data, absent.count > 1 ? "them" : "it");
    }
    thi_text_clear(&absent.list);
    return status;
}

thiele_status thi_reader_open(thi_reader *reader, thiele_context *ctx, const thi_encoder *encoder,
                              const thiele_table *table, const thi_reading *how)
{
    const size_t inputs = (size_t)encoder->inputs, most = inputs + (size_t)encoder->targets + 2;
    *reader = (thi_reader){.encoder = encoder,
                           .table = table,
                           .how = *how,
                           .exposure = -1,
                           .weights = -1,
                           .key = -1,
                           .label_column = -1,
                           .known_from = "those that the model knows"};
    thiele_status status;
    if (how->target && encoder->targets == 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the model has no target column");
    }
    THI_TRY(thi_alloc(ctx, &reader->column, inputs, sizeof *reader->column));
    THI_TRY(thi_alloc(ctx, &reader->dates_as_text, inputs, sizeof *reader->dates_as_text));
    THI_TRY(thi_alloc(ctx, &reader->numeric, inputs, sizeof *reader->numeric));
    THI_TRY(thi_alloc(ctx, &reader->told, inputs, sizeof *reader->told));
    THI_TRY(thi_alloc(ctx, &reader->source, most, sizeof *reader->source));
    THI_TRY(match_columns(reader, ctx));
    reader->block = thi_table_block(table, reader->width > encoder->dims ? reader->width : encoder->dims);
    THI_TRY(thi_alloc(ctx, &reader->scratch, (size_t)reader->block, (size_t)reader->width * sizeof *reader->scratch));
    if (how->target && encoder->target[0].levels > 0) {
        THI_TRY(thi_label_index(&reader->label, ctx, encoder));
        reader->labels = encoder->target[0].levels;
    }
    return THIELE_OK;
out:
    thi_reader_close(reader);
    return status;
}

void thi_reader_close(thi_reader *reader)
{
    thi_free(reader->column);
    thi_free(reader->dates_as_text);
    thi_free(reader->numeric);
    thi_free(reader->told);
    thi_free(reader->source);
    thi_free(reader->scratch);
    thi_free(reader->label);
    *reader = (thi_reader){.exposure = -1, .weights = -1, .key = -1, .label_column = -1};
}

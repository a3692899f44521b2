/*
 * Encodes rows of a table as columns of X: numbers centred and scaled, levels as indicators. Numbers of a block are
 * read in one go with a row's numbers together, so each column of X is written from one run of memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

static thiele_status absent_columns(const thi_reader *reader, thiele_context *ctx, bool with_target)
{
    const thi_encoder *encoder = reader->encoder;
    enum { NAMED = 10 };
    thi_text list;
    int absent = 0;
    thi_text_init(&list, ctx);
    for (int i = 0; i < encoder->inputs; i++) {
        if (reader->column[i] < 0 && absent++ < NAMED) {
            thi_text_add(&list, "%s'%s'", absent > 1 ? ", " : "", encoder->input[i].name);
        }
    }
    if (with_target && reader->target < 0) {
        thi_text_add(&list, "%s'%s' (the target)", absent++ > 0 ? ", " : "", encoder->target);
    }
    thiele_status status = list.status;
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_COLUMN, "%s has no column %s%s: the model needs %s",
                          thi_table_source(reader->table), list.data, absent > NAMED ? ", ..." : "",
                          absent > 1 ? "them" : "it");
    }
    thi_text_clear(&list);
    return status;
}

/* Finds the columns; false when one is absent. */
static bool match_columns(thi_reader *reader, bool with_target)
{
    const thi_encoder *encoder = reader->encoder;
    bool all = true;
    for (int i = 0; i < encoder->inputs; i++) {
        int column = thi_table_column(reader->table, encoder->input[i].name);
        all = all && column >= 0;
        reader->column[i] = column;
        if (encoder->input[i].levels == 0) {
            reader->numeric[reader->numerics] = i;
            reader->source[reader->numerics++] = column;
        }
    }
    reader->target = with_target && encoder->target != NULL ? thi_table_column(reader->table, encoder->target) : -1;
    if (with_target) {
        all = all && reader->target >= 0;
        reader->source[reader->numerics] = reader->target;
    }
    return all;
}

thiele_status thi_reader_open(thi_reader *reader, thiele_context *ctx, const thi_encoder *encoder,
                              const thiele_table *table, bool with_target, bool unseen_zero, bool drop_missing)
{
    const size_t inputs = (size_t)encoder->inputs;
    *reader = (thi_reader){
        .encoder = encoder, .table = table, .target = -1, .unseen_zero = unseen_zero, .drop_missing = drop_missing};
    thiele_status status;
    if (with_target && encoder->target == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the model has no target column");
    }
    THI_TRY(thi_alloc(ctx, &reader->column, inputs, sizeof *reader->column));
    THI_TRY(thi_alloc(ctx, &reader->numeric, inputs, sizeof *reader->numeric));
    THI_TRY(thi_alloc(ctx, &reader->source, inputs + 1, sizeof *reader->source));
    if (!match_columns(reader, with_target)) {
        THI_TRY(absent_columns(reader, ctx, with_target));
    }
    THI_TRY(thi_alloc(ctx, &reader->scratch, THI_TABLE_BLOCK,
                      ((size_t)reader->numerics + with_target) * sizeof *reader->scratch));
    return THIELE_OK;
out:
    thi_reader_close(reader);
    return status;
}

void thi_reader_close(thi_reader *reader)
{
    thi_free(reader->column);
    thi_free(reader->numeric);
    thi_free(reader->source);
    thi_free(reader->scratch);
    *reader = (thi_reader){.target = -1};
}

/* --- one row ---------------------------------------------------------------------------------------------------- */

/* What became of a row. */
typedef enum row_fate { ROW_KEPT, ROW_DROPPED } row_fate;

static thiele_status no_value(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, row_fate *fate)
{
    if (reader->drop_missing) {
        *fate = ROW_DROPPED;
        return THIELE_OK;
    }
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %lld: no value (fill it in, or use --drop-missing to leave such rows out)",
                    reader->table->name[column], thi_table_row_number(reader->table, row));
}

/* Looks at one number; it is of use when *fate stays ROW_KEPT. */
static thiele_status check_number(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, double value,
                                  row_fate *fate)
{
    if (isfinite(value)) {
        return THIELE_OK;
    }
    if (isnan(value)) {
        return no_value(reader, ctx, row, column, fate);
    }
    return thi_fail(
        ctx, THIELE_ERROR_DATA,
        "column '%s', row %lld: the value is infinite (or too large to be held); correct it or leave the row "
        "out",
        reader->table->name[column], thi_table_row_number(reader->table, row));
}

typedef struct level_key {
    const char *text;
    size_t length;
} level_key;

static int compare_level(const void *key, const void *element)
{
    const level_key *k = key;
    const char *level = *(char *const *)element;
    int order = strncmp(k->text, level, k->length);
    return order != 0 ? order : -(level[k->length] != '\0');
}

/* The index of a level; -1 when the model does not know it. */
static int find_level(const thi_input *input, const char *text, size_t length)
{
    const level_key key = {text, length};
    char **found = bsearch(&key, input->level, (size_t)input->levels, sizeof *input->level, compare_level);
    return found != NULL ? (int)(found - input->level) : -1;
}

static thiele_status unseen_level(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, const char *text,
                                  size_t length)
{
    enum { NAMED = 10 };
    const thi_input *input = &reader->encoder->input[i];
    char shown[THI_SHOWN_MAX];
    thi_text list;
    thi_show_text(shown, text, length);
    thi_text_init(&list, ctx);
    for (int l = 0; l < input->levels && l < NAMED; l++) {
        thi_text_add(&list, "%s%s", l > 0 ? ", " : "", input->level[l]);
    }
    thi_text_add(&list, "%s", input->levels > NAMED ? ", ..." : "");
    thiele_status status = list.status;
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_DATA,
                          "column '%s', row %lld: level '%s' was not seen in training (it knows: %s; use --unseen zero "
                          "to treat it as none of them)",
                          input->name, thi_table_row_number(reader->table, row), shown, list.data);
    }
    thi_text_clear(&list);
    return status;
}

/* Sets the indicators of input i in x, a column of X that is zero there. */
static thiele_status encode_level(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, thi_text *buffer,
                                  double *x, row_fate *fate)
{
    const thi_input *input = &reader->encoder->input[i];
    const char *text;
    size_t length;
    thiele_status status = thi_table_cell(reader->table, ctx, row, reader->column[i], buffer, &text, &length);
    if (status != THIELE_OK) {
        return status;
    }
    thi_trim(&text, &length);
    if (length == 0) {
        return no_value(reader, ctx, row, reader->column[i], fate);
    }
    int level = find_level(input, text, length);
    if (level >= 0) {
        x[input->first + level] = 1;
    }
    return level >= 0 || reader->unseen_zero ? THIELE_OK : unseen_level(reader, ctx, row, i, text, length);
}

/* x, a column of X, from the row's numbers (target last) and texts. */
static thiele_status encode_table_row(const thi_reader *reader, thiele_context *ctx, int64_t row, const double *number,
                                      thi_text *buffer, double *x, row_fate *fate)
{
    const thi_encoder *encoder = reader->encoder;
    const int numbers = reader->numerics + (reader->target >= 0);
    thiele_status status = THIELE_OK;
    *fate = ROW_KEPT;
    for (int j = 0; j < numbers && status == THIELE_OK && *fate == ROW_KEPT; j++) {
        status = check_number(reader, ctx, row, reader->source[j], number[j], fate);
    }
    if (status != THIELE_OK || *fate != ROW_KEPT) {
        return status;
    }
    memset(x, 0, (size_t)encoder->dims * sizeof *x);
    for (int j = 0; j < reader->numerics; j++) {
        int d = encoder->input[reader->numeric[j]].first;
        x[d] = (number[j] - encoder->center[d]) / encoder->scale[d];
        if (!(fabs(x[d]) <= THI_INPUT_MAX)) {
            return thi_fail(
                ctx, THIELE_ERROR_DATA,
                "column '%s', row %lld: %g is too large to work with: correct it, change the column's unit, or "
                "leave the row out",
                reader->table->name[reader->source[j]], thi_table_row_number(reader->table, row), number[j]);
        }
    }
    for (int i = 0; i < encoder->inputs && status == THIELE_OK && *fate == ROW_KEPT; i++) {
        if (encoder->input[i].levels > 0) {
            status = encode_level(reader, ctx, row, i, buffer, x, fate);
        }
    }
    return status;
}

thiele_status thi_reader_read(thi_reader *reader, thiele_context *ctx, int64_t first, int64_t count, double *X,
                              double *y, int64_t *row, int64_t *kept)
{
    const thi_encoder *encoder = reader->encoder;
    const int width = reader->numerics + (reader->target >= 0);
    thi_text buffer;
    *kept = 0;
    thi_text_init(&buffer, ctx);
    thiele_status status =
        reader->table->ops->numbers(reader->table, ctx, first, count, reader->source, width, reader->scratch);
    for (int64_t r = 0; r < count && status == THIELE_OK; r++) {
        const double *number = reader->scratch + r * width;
        row_fate fate;
        status = encode_table_row(reader, ctx, first + r, number, &buffer, X + *kept * encoder->dims, &fate);
        if (status != THIELE_OK || fate != ROW_KEPT) {
            continue;
        }
        if (y != NULL && reader->target >= 0) {
            y[*kept] = (number[reader->numerics] - encoder->target_center) / encoder->target_scale;
        }
        if (row != NULL) {
            row[*kept] = first + r;
        }
        ++*kept;
    }
    thi_text_clear(&buffer);
    return status;
}

thiele_status thi_encode_row(const thi_encoder *encoder, thiele_context *ctx, const double *x, double *X)
{
    memset(X, 0, (size_t)encoder->dims * sizeof *X);
    for (int i = 0; i < encoder->inputs; i++) {
        const thi_input *input = &encoder->input[i];
        if (!isfinite(x[i])) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "column '%s': a value that is missing or infinite",
                            input->name);
        }
        if (input->levels == 0) {
            X[input->first] = (x[i] - encoder->center[input->first]) / encoder->scale[input->first];
            if (!(fabs(X[input->first]) <= THI_INPUT_MAX)) {
                return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "column '%s': %g is too large to work with", input->name,
                                x[i]);
            }
        } else if (x[i] >= 0 && x[i] < input->levels && x[i] == floor(x[i])) {
            X[input->first + (int)x[i]] = 1;
        } else {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "column '%s': no level %g (there are %d, counted from 0)",
                            input->name, x[i], input->levels);
        }
    }
    return THIELE_OK;
}

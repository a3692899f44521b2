/*
 * Encodes rows of a table as columns of X: numbers centred and scaled, levels as indicators. Numbers of a block are
 * read in one go with a row's numbers together, so each column of X is written from one run of memory. Targets become
 * y, exposures their logs, in the same pass.
 */
#include <math.h>
#include <string.h>

#include "data/encoder.h"

/* --- one row ---------------------------------------------------------------------------------------------------- */

/* What became of a row. */
typedef enum row_fate { ROW_KEPT, ROW_DROPPED } row_fate;

/* input: of an input that cannot be filled in. */
static thiele_status no_value(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, bool input,
                              row_fate *fate)
{
    if (reader->how.drop_missing || (input && reader->how.drop_inputs)) {
        *fate = ROW_DROPPED;
        return THIELE_OK;
    }
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %s: no value (fill it in, or use `drop_missing` to leave such rows out)%s",
                    reader->table->name[column], THI_ROW(reader->table, row),
                    input ? "; a model fills in only columns with gaps in its training table" : "");
}

/* Whether the value that input i lacks is filled in; x is zero there. */
static bool fill_in(const thi_reader *reader, int i, double *x)
{
    const thi_encoder *encoder = reader->encoder;
    const thi_input *input = &encoder->input[i];
    if (reader->how.keep_missing) {
        x[input->first] = NAN;
        return true;
    }
    if (!input->fills || reader->how.drop_missing || reader->how.drop_inputs) {
        return false;
    }
    thi_encode_missing(encoder, input, x);
    return true;
}

/* A number that is not finite: missing or too large. */
static thiele_status bad_number(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, double value,
                                row_fate *fate)
{
    if (isnan(value)) {
        return no_value(reader, ctx, row, column, false, fate);
    }
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %s: the value is infinite (or too large to be held); correct it or leave the row "
                    "out",
                    reader->table->name[column], THI_ROW(reader->table, row));
}

static thiele_status unseen_level(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, const char *text,
                                  size_t length)
{
    const thi_input *input = &reader->encoder->input[i];
    char shown[THI_SHOWN_MAX];
    thi_text list;
    thi_show_text(shown, text, length);
    thi_text_init(&list, ctx);
    thi_text_add_levels(&list, input->level, input->levels);
    thiele_status status = list.status;
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_DATA,
                          "column '%s', row %s: level '%s' was not seen in training (known: %s; use `unseen` zero "
                          "to treat it as none of them)",
                          input->name, THI_ROW(reader->table, row), shown, list.data);
    }
    thi_text_clear(&list);
    return status;
}

/* What stands in a cell, without blanks around it; *fate says whether something does. */
static thiele_status read_text(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, thi_text *buffer,
                               const char **text, size_t *length, row_fate *fate)
{
    thiele_status status = thi_table_cell(reader->table, ctx, row, column, buffer, text, length);
    if (status != THIELE_OK) {
        return status;
    }
    thi_trim(text, length);
    if (*length == 0 && column == reader->label_column && reader->encoder->partial) {
        *fate = ROW_DROPPED; /* other targets may have a value */
        return THIELE_OK;
    }
    return *length > 0 ? THIELE_OK : no_value(reader, ctx, row, column, false, fate);
}

/* The same of input i; where it has none and that is all right, *length is 0. */
static thiele_status read_input(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, thi_text *buffer,
                                const char **text, size_t *length, double *x, row_fate *fate)
{
    const int column = reader->column[i];
    thiele_status status = thi_table_cell(reader->table, ctx, row, column, buffer, text, length);
    if (status != THIELE_OK) {
        return status;
    }
    thi_trim(text, length);
    return *length > 0 || fill_in(reader, i, x) ? THIELE_OK : no_value(reader, ctx, row, column, true, fate);
}

/* Sets the indicators of input i in x, a column of X that is zero there. */
static thiele_status encode_level(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, thi_text *buffer,
                                  double *x, row_fate *fate)
{
    const thi_input *input = &reader->encoder->input[i];
    const char *text;
    size_t length;
    thiele_status status = read_input(reader, ctx, row, i, buffer, &text, &length, x, fate);
    if (status != THIELE_OK || *fate != ROW_KEPT || length == 0) {
        return status;
    }
    bool found;
    int level = thi_level_place(input->level, input->levels, text, length, &found);
    const bool silent = reader->how.unseen_error || reader->how.unseen_zero || reader->told[i];
    if (!found && input->others && input->rare == 0 && !silent) {
        reader->told[i] = true;
        thi_log(
            ctx, THIELE_LOG_WARNING,
            "column '%s' has values that training never saw: they count as 'other', about which the model has learned "
            "nothing (`unseen` error refuses them)",
            input->name);
    }
    const bool other = !found && input->others && !reader->how.unseen_error;
    if (found || other) {
        x[input->first + (found ? level : input->levels)] = 1;
    }
    const bool zero = reader->how.unseen_zero && !reader->how.unseen_error;
    return found || other || zero ? THIELE_OK : unseen_level(reader, ctx, row, i, text, length);
}

static thiele_status bad_date(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, const char *text,
                              size_t length)
{
    static const char *const like[THI_DATE_FORMS] = {"", "2024-01-31", "31/01/2024 or 2024-01-31",
                                                     "01/31/2024 or 2024-01-31", "13:05 or 13:05:59"};
    const thi_input *input = &reader->encoder->input[i];
    char shown[THI_SHOWN_MAX];
    thi_show_text(shown, text, length);
    return thi_fail(
        ctx, THIELE_ERROR_DATA,
        "column '%s', row %s: '%s' is not a %s that can be read (write it like %s, or use `missing` to name "
        "what means a missing value)",
        input->name, THI_ROW(reader->table, row), shown, input->dates.form == THI_TIME_OF_DAY ? "time" : "date",
        like[input->dates.form]);
}

/* Input i, a date, as a number in x. */
static thiele_status encode_date(const thi_reader *reader, thiele_context *ctx, int64_t row, int i, thi_text *buffer,
                                 double *x, row_fate *fate)
{
    const thi_encoder *encoder = reader->encoder;
    const thi_input *input = &encoder->input[i];
    const int d = input->first;
    const char *text;
    size_t length;
    double days;
    thiele_status status = read_input(reader, ctx, row, i, buffer, &text, &length, x, fate);
    if (status != THIELE_OK || *fate != ROW_KEPT || length == 0) {
        return status;
    }
    if (!thi_date_read(text, length, input->dates.form, &days)) {
        return bad_date(reader, ctx, row, i, text, length);
    }
    x[d] = (days - input->dates.from - encoder->center[d]) / encoder->scale[d];
    return THIELE_OK;
}

/* The number of the row's block in x; without such a column that of none. */
static thiele_status encode_key(const thi_reader *reader, thiele_context *ctx, int64_t row, thi_text *buffer, double *x,
                                row_fate *fate)
{
    const thi_input *key = &reader->encoder->key;
    const char *text;
    size_t length;
    bool found = false;
    int level = 0;
    thiele_status status = THIELE_OK;
    if (reader->key >= 0) {
        status = read_text(reader, ctx, row, reader->key, buffer, &text, &length, fate);
        if (status == THIELE_OK && *fate == ROW_KEPT) {
            level = thi_level_place(key->level, key->levels, text, length, &found);
        }
    }
    x[key->first] = (found ? level : -1) / reader->encoder->scale[key->first];
    return status;
}

static thiele_status too_large(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, double value)
{
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %s: %g is too large to work with: correct it, change the column's unit, or "
                    "leave the row out",
                    reader->table->name[column], THI_ROW(reader->table, row), value);
}

/* x, a column of X, from the row's numbers and texts. */
static thiele_status encode_inputs(const thi_reader *reader, thiele_context *ctx, int64_t row, const double *number,
                                   thi_text *buffer, double *x, row_fate *fate)
{
    const thi_encoder *encoder = reader->encoder;
    thiele_status status = THIELE_OK;
    memset(x, 0, (size_t)encoder->dims * sizeof *x);
    for (int j = 0; j < reader->numerics; j++) {
        if (isnan(number[j])) {
            if (fill_in(reader, reader->numeric[j], x)) {
                continue;
            }
            return no_value(reader, ctx, row, reader->source[j], true, fate);
        }
        if (!isfinite(number[j])) {
            return bad_number(reader, ctx, row, reader->source[j], number[j], fate);
        }
        int d = encoder->input[reader->numeric[j]].first;
        x[d] = (number[j] - encoder->center[d]) / encoder->scale[d];
        if (!(fabs(x[d]) <= THI_INPUT_MAX)) {
            return too_large(reader, ctx, row, reader->source[j], number[j]);
        }
    }
    for (int i = 0; i < encoder->inputs && status == THIELE_OK && *fate == ROW_KEPT; i++) {
        if (encoder->input[i].levels > 0) {
            status = encode_level(reader, ctx, row, i, buffer, x, fate);
        } else if (reader->dates_as_text[i]) {
            status = encode_date(reader, ctx, row, i, buffer, x, fate);
        }
    }
    if (encoder->key.name != NULL && status == THIELE_OK && *fate == ROW_KEPT) {
        status = encode_key(reader, ctx, row, buffer, x, fate);
    }
    return status;
}

/* --- targets and exposure of one row ----------------------------------------------------------------------------- */

static thiele_status refused(const thi_reader *reader, thiele_context *ctx, int64_t row, int column, double value,
                             const char *why)
{
    const char *likelihood = reader->how.likelihood;
    char shown[THI_NUMBER_MAX];
    thi_format_number(shown, value);
    return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s', row %s: %s: %s%s%s%s", reader->table->name[column],
                    THI_ROW(reader->table, row), shown, why, likelihood != NULL ? " (likelihood '" : "",
                    likelihood != NULL ? likelihood : "", likelihood != NULL ? "')" : "");
}

/* Of several targets one is enough; where each has a reader of its own, the others' rows are none of its own. */
static thiele_status no_target(const thi_reader *reader, thiele_context *ctx, int64_t row, row_fate *fate)
{
    if (reader->how.drop_missing || reader->encoder->targets == 1) {
        *fate = ROW_DROPPED;
        return THIELE_OK;
    }
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "row %s: all %d targets ('%s' and the others) are missing (fill one in, or use "
                    "`drop_missing` to leave such rows out)",
                    THI_ROW(reader->table, row), reader->targets, reader->encoder->target[0].name);
}

/* y: P numbers from the row's targets. */
static thiele_status encode_targets(const thi_reader *reader, thiele_context *ctx, int64_t row, const double *number,
                                    double *y, row_fate *fate)
{
    const thi_encoder *encoder = reader->encoder;
    const int *source = reader->source + reader->numerics;
    int present = 0;
    for (int p = 0; p < reader->targets; p++) {
        const double value = number[p];
        y[p] = NAN;
        if (isnan(value) && encoder->partial) {
            continue;
        }
        if (!isfinite(value)) {
            return bad_number(reader, ctx, row, source[p], value, fate);
        }
        const char *why = reader->how.refuses != NULL ? reader->how.refuses(reader->how.user, value) : NULL;
        if (why != NULL) {
            return refused(reader, ctx, row, source[p], value, why);
        }
        y[p] = (value - encoder->target[p].center) / encoder->target[p].scale;
        if (!isfinite(y[p])) {
            return too_large(reader, ctx, row, source[p], value);
        }
        present++;
    }
    return present > 0 ? THIELE_OK : no_target(reader, ctx, row, fate);
}

static thiele_status unknown_label(const thi_reader *reader, thiele_context *ctx, int64_t row, const char *text,
                                   size_t length)
{
    const thi_target *target = &reader->encoder->target[0];
    char shown[THI_SHOWN_MAX];
    thi_text list;
    thi_show_text(shown, text, length);
    thi_text_init(&list, ctx);
    thi_text_add_levels(&list, target->level, target->levels);
    thiele_status status = list.status;
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_DATA, "column '%s', row %s: '%s' is not one of the classes %s (%s)",
                          target->name, THI_ROW(reader->table, row), shown, list.data, reader->known_from);
    }
    thi_text_clear(&list);
    return status;
}

/* y: the code of a label that is read as a number. */
static thiele_status encode_numeric_label(const thi_reader *reader, thiele_context *ctx, int64_t row, double value,
                                          double *y, row_fate *fate)
{
    if (isnan(value) && reader->encoder->partial) {
        return no_target(reader, ctx, row, fate);
    }
    if (!isfinite(value)) {
        return bad_number(reader, ctx, row, reader->source[reader->numerics], value, fate);
    }
    const thi_label *label = thi_find_label_value(reader->label, reader->labels, value);
    if (label == NULL) {
        char text[THI_NUMBER_MAX];
        int length = thi_format_number(text, value);
        return unknown_label(reader, ctx, row, text, (size_t)length);
    }
    *y = label->code;
    return THIELE_OK;
}

static thiele_status encode_text_label(const thi_reader *reader, thiele_context *ctx, int64_t row, thi_text *buffer,
                                       double *y, row_fate *fate)
{
    const bool numeric = reader->encoder->target[0].level_value != NULL;
    const char *text;
    size_t length;
    double value;
    thiele_status status = read_text(reader, ctx, row, reader->label_column, buffer, &text, &length, fate);
    if (status != THIELE_OK || *fate != ROW_KEPT) {
        return status;
    }
    const thi_label *label = NULL;
    if (!numeric) {
        label = thi_find_label_text(reader->label, reader->labels, text, length);
    } else if (thi_parse_number(text, length, &value) && isfinite(value)) {
        label = thi_find_label_value(reader->label, reader->labels, value);
    }
    if (label == NULL) {
        return unknown_label(reader, ctx, row, text, length);
    }
    *y = label->code;
    return THIELE_OK;
}

static thiele_status encode_exposure(const thi_reader *reader, thiele_context *ctx, int64_t row, double value,
                                     double *offset, row_fate *fate)
{
    if (!isfinite(value)) {
        return bad_number(reader, ctx, row, reader->exposure, value, fate);
    }
    if (!(value > 0)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s', row %s: %g: an exposure must be a positive number",
                        reader->table->name[reader->exposure], THI_ROW(reader->table, row), value);
    }
    *offset = log(value);
    return THIELE_OK;
}

bool thi_is_weight(double value)
{
    return value == 0.0 || (value >= 1e-12 && value <= 1e12);
}

thiele_status thi_weight_refused(thiele_context *ctx, const thiele_table *table, int64_t row, int column, double value)
{
    char shown[THI_NUMBER_MAX];
    thi_format_number(shown, value);
    const char *name = table->name[column];
    if (isnan(value)) {
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "column '%s', row %s: no weight (fill it in; a weight of 0 leaves a row out)", name,
                        THI_ROW(table, row));
    }
    if (value > 0.0 && isfinite(value)) {
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "column '%s', row %s: %s: a weight must be 0 or between 1e-12 and 1e12 (divide all of them by "
                        "the same number)",
                        name, THI_ROW(table, row), shown);
    }
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %s: %s: a weight must be a finite number and not negative", name,
                    THI_ROW(table, row), shown);
}

/* What stands beside the inputs of a row. */
typedef struct aside {
    double weight, log_exposure;
} aside;

static thiele_status encode_weight(const thi_reader *reader, thiele_context *ctx, int64_t row, double value,
                                   double *weight, row_fate *fate)
{
    *weight = value;
    *fate = value == 0.0 ? ROW_DROPPED : *fate;
    return thi_is_weight(value) ? THIELE_OK : thi_weight_refused(ctx, reader->table, row, reader->weights, value);
}

static thiele_status encode_table_row(const thi_reader *reader, thiele_context *ctx, int64_t row, const double *number,
                                      thi_text *buffer, double *x, double *y, aside *beside, row_fate *fate)
{
    thiele_status status = THIELE_OK;
    *fate = ROW_KEPT;
    *beside = (aside){.weight = 1.0};
    if (reader->weights >= 0) {
        status = encode_weight(reader, ctx, row, number[reader->numerics + reader->targets], &beside->weight, fate);
    }
    if (status == THIELE_OK && *fate == ROW_KEPT) {
        status = encode_inputs(reader, ctx, row, number, buffer, x, fate);
    }
    if (status == THIELE_OK && *fate == ROW_KEPT && reader->exposure >= 0) {
        status = encode_exposure(reader, ctx, row, number[reader->width - 1], &beside->log_exposure, fate);
    }
    if (status != THIELE_OK || *fate != ROW_KEPT || !reader->how.target) {
        return status;
    }
    if (reader->label_column >= 0) {
        return encode_text_label(reader, ctx, row, buffer, y, fate);
    }
    number += reader->numerics;
    return reader->labels > 0 ? encode_numeric_label(reader, ctx, row, *number, y, fate)
                              : encode_targets(reader, ctx, row, number, y, fate);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

static thiele_status read_block(thi_reader *reader, thiele_context *ctx, int64_t first, int64_t count,
                                const thi_room *out, int64_t *kept)
{
    const int D = reader->encoder->dims, P = reader->encoder->targets;
    thi_text buffer;
    thi_text_init(&buffer, ctx);
    thiele_status status =
        reader->table->ops->numbers(reader->table, ctx, first, count, reader->source, reader->width, reader->scratch);
    for (int64_t r = 0; r < count && status == THIELE_OK; r++) {
        const double *number = reader->scratch + r * reader->width;
        aside beside;
        row_fate fate;
        status = encode_table_row(reader, ctx, first + r, number, &buffer, out->X + *kept * D,
                                  out->y != NULL ? out->y + *kept * P : NULL, &beside, &fate);
        if (status != THIELE_OK || fate != ROW_KEPT) {
            continue;
        }
        if (out->offset != NULL) {
            out->offset[*kept] = beside.log_exposure;
        }
        if (out->weight != NULL) {
            out->weight[*kept] = beside.weight;
        }
        if (out->row != NULL) {
            out->row[*kept] = first + r;
        }
        ++*kept;
    }
    thi_text_clear(&buffer);
    return status;
}

thiele_status thi_reader_fill(thi_reader *reader, thiele_context *ctx, int64_t first, int64_t count,
                              const thi_room *room, int64_t *kept)
{
    thiele_status status = THIELE_OK;
    int64_t rows = 0;
    for (int64_t at = 0; at < count && status == THIELE_OK; at += reader->block) {
        status = read_block(reader, ctx, first + at, thi_least(count - at, reader->block), room, &rows);
        if (status == THIELE_OK) {
            status = thi_look_up(ctx, first + at, reader->table->rows);
        }
    }
    *kept = rows;
    return status;
}

thiele_status thi_reader_read(thi_reader *reader, thiele_context *ctx, int64_t first, int64_t count, double *X,
                              double *y, double *offset, int64_t *row, int64_t *kept)
{
    const thi_room room = {.X = X, .y = y, .offset = offset, .row = row};
    return thi_reader_fill(reader, ctx, first, count, &room, kept);
}

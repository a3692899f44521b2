/*
 * Forgetting by time: what was learned counts half as much a half-life later. The rows of a batch count alike, as of
 * its last one, so that a batch spans no more than a part of the half-life. Time does not run backwards: a row that is
 * older than those before it counts as of theirs. O(1) for a row.
 */
#include <math.h>
#include <string.h>

#include "data/dates.h"
#include "model/learner.h"

/* Of the half-life, what a batch may span: after it the first row counts 0.84 times as much as the last one. */
static const double SPAN = 0.25;

thiele_status thi_learner_set_clock(thiele_learner *l, thiele_context *ctx)
{
    thi_stream_report *s = &l->model->stream;
    const char *column = l->options.time;
    bool same = column != NULL && s->time != NULL && strcmp(column, s->time) == 0;
    s->half_life = l->options.half_life;
    s->clock = same ? s->clock : NAN;
    if (same) {
        return THIELE_OK;
    }
    thi_free(s->time);
    s->time = NULL;
    return column != NULL ? thi_strdup(ctx, &s->time, column) : THIELE_OK;
}

/* A cell of a text table as a number or a date; *length 0: it is empty. */
static bool read_cell(const char *text, size_t length, double *time)
{
    return thi_parse_number(text, length, time) || thi_date_read(text, length, THI_YEAR_FIRST, time);
}

/* The time of a row; NaN: it has none. */
static thiele_status time_of(const thiele_table *table, thiele_context *ctx, int column, int64_t row, double *time)
{
    char shown[THI_SHOWN_MAX];
    const char *text;
    size_t length;
    thi_text buffer;
    thiele_status status;
    *time = NAN;
    if (!thi_table_is_written(table, column)) {
        return table->ops->numbers(table, ctx, row, 1, &column, 1, time);
    }
    thi_text_init(&buffer, ctx);
    THI_TRY(thi_table_cell(table, ctx, row, column, &buffer, &text, &length));
    if (length > 0 && !read_cell(text, length, time)) {
        thi_show_text(shown, text, length);
        status = thi_fail(ctx, THIELE_ERROR_DATA,
                          "column '%s', row %s: '%s' is neither a number nor a date such as 2024-01-31T06:30:00, and "
                          "cannot be a time",
                          table->name[column], THI_ROW(table, row), shown);
    }
out:
    thi_text_clear(&buffer);
    return status;
}

static thiele_status finite_time(const thiele_table *table, thiele_context *ctx, int column, int64_t row, double *time)
{
    thiele_status status = time_of(table, ctx, column, row, time);
    if (status != THIELE_OK || isfinite(*time)) {
        return status;
    }
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %s: there is no time; forgetting by time needs one of every row: "
                    "correct it or leave the row out",
                    table->name[column], THI_ROW(table, row));
}

thiele_status thi_learner_clock(thiele_learner *l, thiele_context *ctx, const thiele_table *table, int64_t first,
                                int64_t *count, double *left)
{
    thi_stream_report *s = &l->model->stream;
    double now = s->clock, begin = 0.0, time;
    int column;
    int64_t taken = 0;
    thiele_status status = THIELE_OK;
    *left = 1.0;
    if (l->options.time == NULL) {
        return THIELE_OK;
    }
    THI_TRY(thiele_table_find_column(table, ctx, l->options.time, &column));
    for (; taken < *count; taken++) {
        status = finite_time(table, ctx, column, first + taken, &time);
        if (status == THIELE_ERROR_DATA && taken > 0) { /* those before it come first */
            thi_recover(ctx);
            status = THIELE_OK;
            break;
        }
        THI_TRY(status);
        time = isfinite(now) ? fmax(now, time) : time;
        begin = taken == 0 ? time : begin;
        if (time - begin > SPAN * s->half_life) {
            break;
        }
        now = time;
    }
    *left = isfinite(s->clock) ? exp2((s->clock - now) / s->half_life) : 1.0;
    s->clock = now;
    *count = taken;
out:
    return status;
}

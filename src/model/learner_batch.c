/* One batch of a learner: its rows are read, predicted by what was learned before them, scored, and learned. */
#include <math.h>
#include <string.h>

#include "fit/judge.h"
#include "model/describe.h"
#include "model/learner.h"

thiele_status thi_learner_name_line(thiele_context *ctx, thiele_status status, const thiele_table *table, int64_t row)
{
    return table->ops->line == NULL ? status
                                    : thi_fail_in(ctx, status, "%s, line %lld", thi_table_source(table),
                                                  (long long)table->ops->line(table, row));
}

/* Standardised targets whose squares, and sums of them, would leave the range of numbers. */
static const double FAR_TARGET = 1e100;

/* The first target of the rows from `first` on that is that far out; -1: none. */
static int64_t far_target(const thi_rows *rows, int64_t first)
{
    for (int64_t k = first * rows->outputs; k < rows->n * rows->outputs; k++) {
        if (fabs(rows->y[k]) > FAR_TARGET) {
            return k;
        }
    }
    return -1;
}

/* The row that was read last, refused for a target. */
static thiele_status refuse_far(const thiele_learner *l, thiele_context *ctx, const thiele_table *table, int64_t k)
{
    const thi_target *target = &l->model->encoder.target[k % l->rows.outputs];
    return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s', row %s: %g is too far from the targets of the fit",
                    target->name, THI_ROW(table, l->row[k / l->rows.outputs]),
                    target->center + target->scale * l->rows.y[k]);
}

/* Row by row: what a row is refused for must not keep the others out. Those before the first error are there. */
static thiele_status read_singly(thiele_learner *l, thiele_context *ctx, thi_reader *reader, int64_t first,
                                 int64_t count)
{
    thi_rows *rows = &l->rows;
    rows->n = 0;
    for (int64_t r = first; r < first + count; r++) {
        int64_t kept = 0;
        thiele_status status =
            thi_reader_read(reader, ctx, r, 1, rows->X + rows->n * rows->dims, rows->y + rows->n * rows->outputs,
                            rows->offset + rows->n, l->row + rows->n, &kept);
        rows->n += status == THIELE_OK ? kept : 0;
        int64_t far = status == THIELE_OK && kept > 0 ? far_target(rows, rows->n - 1) : -1;
        if (far >= 0) {
            rows->n--;
            status = refuse_far(l, ctx, reader->table, far);
        }
        if (status == THIELE_ERROR_DATA && l->options.skip_bad) {
            thi_recover(ctx);
            l->model->stream.skipped++;
            continue;
        }
        if (status != THIELE_OK) {
            l->bad = r;
            return thi_learner_name_line(ctx, status, reader->table, r);
        }
    }
    return THIELE_OK;
}

/* A table that is slow to read can be stopped; what was learned before stays. */
static thiele_status read_together(thiele_learner *l, thiele_context *ctx, thi_reader *reader, int64_t first,
                                   int64_t count)
{
    thi_rows *rows = &l->rows;
    thi_watch watch = thi_driver_watch(&l->driver, thi_table_source(reader->table));
    thiele_status status = thi_reader_read(reader, ctx, first, count, rows->X, rows->y, rows->offset, l->row, &rows->n);
    thi_watch_end(ctx, watch);
    return status;
}

thiele_status thi_learner_read(thiele_learner *l, thiele_context *ctx, thi_reader *reader, int64_t first, int64_t count)
{
    thi_rows *rows = &l->rows;
    thiele_status status = read_together(l, ctx, reader, first, count);
    if (status == THIELE_ERROR_DATA || (status == THIELE_OK && far_target(rows, 0) >= 0)) {
        thi_recover(ctx);
        return read_singly(l, ctx, reader, first, count);
    }
    rows->n = status == THIELE_OK ? rows->n : 0;
    return status;
}

/* Scores of rows that have not been learned yet, added to all and to the window. */
static thiele_status score_batch(thiele_learner *l, thiele_context *ctx)
{
    thi_stream_report *s = &l->model->stream;
    int targets = l->model->encoder.targets;
    thiele_status status;
    l->scorer.rows = 0;
    THI_TRY(thi_scorer_add(&l->scorer, ctx, l->rows.n, l->rows.y, l->mu, l->v));
    THI_TRY(thi_scorer_finish(&l->scorer, ctx, l->part));
    for (int p = 0; p < targets; p++) {
        thiele_scores all[2] = {s->all[p], l->part[p]}, window[2] = {l->filling[p], l->part[p]};
        /* Over the variance of the batch's own targets: not to be averaged. */
        all[1].smse = window[1].smse = NAN;
        thi_scores_pool(all, 2, &s->all[p]);
        thi_scores_pool(window, 2, &l->filling[p]);
    }
    bool whole = l->filling->rows >= l->window;
    if (whole || !l->filled) {
        memcpy(s->recent, l->filling, (size_t)targets * sizeof *s->recent);
    }
    for (int p = 0; whole && p < targets; p++) {
        l->filling[p] = thi_no_scores;
    }
    l->filled = l->filled || whole;
out:
    return status;
}

static thiele_status check_marginals(thiele_learner *l, thiele_context *ctx, const thiele_table *table)
{
    int Q = l->model->latents;
    for (int64_t i = 0; i < l->rows.n * Q * l->model->components; i++) {
        if (!isfinite(l->mu[i]) || !isfinite(l->v[i])) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                            "row %s: its inputs are so extreme that the prediction overflows; correct them or leave "
                            "out the row",
                            THI_ROW(table, l->row[i / Q % l->rows.n]));
        }
    }
    return THIELE_OK;
}

/* Marginals of the batch that was read, by what was learned before it. */
static thiele_status predict_batch(thiele_learner *l, thiele_context *ctx)
{
    const thi_rows *rows = &l->rows;
    return l->blocks != NULL ? thi_latent_marginals(ctx, l->model->latents, l->model->latent, rows, l->mu, l->v)
                             : thi_online_mixture_predict(&l->online, ctx, rows->n, rows->X, rows->offset, l->mu, l->v);
}

static thiele_status learn_batch(thiele_learner *l, thiele_context *ctx)
{
    return l->blocks != NULL ? thi_blocks_online_learn(l->blocks, ctx, &l->rows)
                             : thi_online_mixture_learn(&l->online, ctx, l->lasting, l->rows.y, l->model->stream.rows);
}

thiele_status thi_learner_take(thiele_learner *l, thiele_context *ctx, const thiele_table *table)
{
    const thi_rows *rows = &l->rows;
    thi_stream_report *s = &l->model->stream;
    thiele_status status = THIELE_OK;
    if (rows->n == 0) {
        return THIELE_OK;
    }
    THI_TRY(predict_batch(l, ctx));
    THI_TRY(check_marginals(l, ctx, table));
    THI_TRY(score_batch(l, ctx));
    THI_TRY(learn_batch(l, ctx));
    s->rows += rows->n;
    l->learned += rows->n;
    l->unsaved += rows->n;
    THI_TRY(thi_learner_keep(l, ctx));
    l->lasting = 1.0;
out:
    return status;
}

/*
 * Learners (include/thiele/stream.h): tables are read in batches; each batch is scored by the posterior so far and then
 * learned (fit/online.h). The learner's own copy of the model gets the posterior when it is asked for, not for every
 * batch.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fit/blocks.h"
#include "fit/blocks_online.h"
#include "fit/judge.h"
#include "fit/online_mixture.h"
#include "model/describe.h"
#include "model/methods.h"
#include "model/parts.h"
#include "model/score.h"
#include "posterior/local.h"
#include <thiele/stream.h>

enum { BATCH = 1024, WINDOW = 10000 };
static const double SNAPSHOT_EVERY = 10.0; /* seconds */
/* Of the rows that are not forgotten, the part that a batch may be. */
static const double BATCH_SHARE = 0.25;

static const thiele_update_options defaults = THIELE_UPDATE_OPTIONS_INIT;

struct thiele_learner {
    thiele_model *model; /* a copy; its posterior is that of the last refresh */
    int parts;           /* targets that have a model, and then a learner, each; 0: this is one learner */
    thiele_learner **of;
    thiele_update_options options;
    char *snapshot;
    int64_t batch, window;
    thi_online_mixture online;
    thi_blocks_online *blocks; /* in its place where the model has local parts, which are then always those of now */
    thi_scorer scorer;
    thi_rows rows; /* of a batch, as are the arrays below */
    int64_t *row;
    double *mu, *v;
    thiele_scores *part, *filling; /* of a batch, and of the window that is being filled; one a target */
    bool filled;                   /* there was a whole window */
    int64_t learned, unsaved;      /* rows since the opening; since the last snapshot */
    int64_t bad;                   /* the table's row that the last batch ended before */
    double saved;
    thi_driver driver;
};

/* --- opening ---------------------------------------------------------------------------------------------------------
 */

static thiele_status check_options(thiele_context *ctx, const thiele_update_options *o)
{
    if (o->size != sizeof *o) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "update options must be initialised with THIELE_UPDATE_OPTIONS_INIT");
    }
    if (o->batch < 0 || o->batch > THI_TABLE_BLOCK || o->window < 0 || !(o->deadline >= 0.0) ||
        !(o->snapshot_every >= 0.0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "a batch has at most %d rows; batch, window, deadline and the seconds between snapshots must "
                        "not be negative",
                        THI_TABLE_BLOCK);
    }
    if (!(o->forget == 0.0 || (o->forget >= 1.0 && isfinite(o->forget)))) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "the rows that are not forgotten must be 1 at least, or 0 to forget nothing");
    }
    return THIELE_OK;
}

static thiele_status check_model(thiele_context *ctx, const thiele_model *model)
{
    const thi_method *method = thi_method_named(model->method);
    bool draws = model->sampling.sampler != NULL && method != NULL;
    const char *why = draws ? thi_method_lacks(method, THI_CAN_UPDATE) : NULL;
    bool local = model->latent->local != NULL;
    for (int j = 0; why == NULL && !local && j < model->latents; j++) {
        why = thi_online_refuses(&model->latent[j]);
    }
    why = why == NULL && local ? thi_blocks_online_refuses(model->latents, model->latent) : why;
    return why == NULL ? thi_model_need_likelihood(model, ctx)
                       : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "a model by method '%s' cannot be updated: %s",
                                  model->method, why);
}

/* Rows that a block may have: what the fit allowed. A partition of the user's own is never cut. */
static int64_t most_of_block(const thiele_model *model)
{
    const thi_blocks_report *b = &model->blocks;
    if (model->latent->local->partition.mark != NULL) {
        return 0;
    }
    int64_t blocks = thi_most(1, b->blocks);
    return thi_most(b->largest, THI_PARTITION_LARGEST * ((model->rows + blocks - 1) / blocks));
}

static thiele_status open_blocks(thiele_learner *l, thiele_context *ctx)
{
    const thiele_model *model = l->model;
    bool sites = model->latent->local->lambda != NULL;
    const thi_blocks_online_settings settings = {.lik = model->lik,
                                                 .expectation = model->expectation,
                                                 .most = most_of_block(model),
                                                 .exposed = model->encoder.exposure != NULL,
                                                 .anew =
                                                     !sites && (model->blocks.estimate || model->blocks.passes < 1.0)};
    if (l->options.forget > 0.0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "a model by method '%s' keeps its rows and forgets none of them: fit by --method pitc or fitc "
                        "instead",
                        model->method);
    }
    return thi_blocks_online_open(&l->blocks, ctx, model->latents, l->model->latent, &settings);
}

static thiele_status open_online(thiele_learner *l, thiele_context *ctx)
{
    const thiele_model *model = l->model;
    thi_online_settings settings = {
        .capacity = l->batch, .forget = l->options.forget, .expectation = model->expectation};
    thi_blocks_form form = {.weight = {[THI_RESIDUAL_NONE] = 1.0}};
    thiele_status status = THIELE_OK;
    if (thi_blocks_is_form(model->method)) {
        status = thi_blocks_form_parse(&form, ctx, model->method);
    }
    memcpy(settings.weight, form.weight, sizeof settings.weight);
    return status == THIELE_OK ? thi_online_mixture_open(&l->online, ctx, model->latents, model->latent, model->weight,
                                                         model->lik, &settings)
                               : status;
}

static thiele_status open_scores(thiele_learner *l, thiele_context *ctx)
{
    thi_stream_report *s = &l->model->stream;
    size_t targets = (size_t)l->model->encoder.targets;
    bool first = s->all == NULL;
    thiele_status status = THIELE_OK;
    if (first) {
        THI_TRY(thi_alloc(ctx, &s->all, targets, sizeof *s->all));
        THI_TRY(thi_alloc(ctx, &s->recent, targets, sizeof *s->recent));
    }
    THI_TRY(thi_alloc(ctx, &l->part, targets, sizeof *l->part));
    THI_TRY(thi_alloc(ctx, &l->filling, targets, sizeof *l->filling));
    for (size_t p = 0; p < targets; p++) {
        l->filling[p] = thi_no_scores;
        if (first) {
            s->all[p] = s->recent[p] = thi_no_scores;
        }
    }
    THI_TRY(thi_scorer_open(&l->scorer, ctx, l->model, l->batch, true));
out:
    return status;
}

/* The learner's own model, in the form that it will be frozen into. */
static thiele_status open_model(thiele_learner *l, thiele_context *ctx, const thiele_model *model)
{
    thiele_status status;
    THI_TRY(thi_model_copy(&l->model, ctx, model));
    for (int j = 0; j < model->latents; j++) {
        THI_TRY(thi_online_prepare(&l->model->latent[j], ctx));
    }
    if (model->posterior != NULL && model->latent[0].mean_basis == NULL) {
        char family[32] = "full";
        if (model->components > 1) {
            snprintf(family, sizeof family, "mixture-full:%d", model->components);
        }
        thi_free(l->model->posterior);
        l->model->posterior = NULL;
        THI_TRY(thi_strdup(ctx, &l->model->posterior, family));
    }
out:
    return status;
}

static thiele_status learner_start(thiele_learner *l, thiele_context *ctx, const thiele_model *model)
{
    const thi_encoder *encoder = &model->encoder;
    size_t latents = (size_t)l->batch * (size_t)(model->latents * model->components);
    thiele_status status;
    THI_TRY(open_model(l, ctx, model));
    if (l->options.snapshot != NULL) {
        THI_TRY(thi_strdup(ctx, &l->snapshot, l->options.snapshot));
    }
    THI_TRY(thi_rows_alloc(&l->rows, ctx, l->batch, encoder->dims, encoder->targets, true));
    THI_TRY(thi_alloc(ctx, &l->row, (size_t)l->batch, sizeof *l->row));
    THI_TRY(thi_alloc(ctx, &l->mu, latents, sizeof *l->mu));
    THI_TRY(thi_alloc(ctx, &l->v, latents, sizeof *l->v));
    THI_TRY(open_scores(l, ctx));
    THI_TRY(l->model->latent->local != NULL ? open_blocks(l, ctx) : open_online(l, ctx));
out:
    return status;
}

/* A learner for each part; the whole lends them its model's. */
static thiele_status open_parts(thiele_learner *l, thiele_context *ctx, const thiele_model *model)
{
    thiele_update_options options = l->options;
    thiele_status status;
    options.snapshot = NULL;
    THI_TRY(thi_parts_alloc(&l->model, ctx, model->parts));
    THI_TRY(thi_alloc(ctx, &l->of, (size_t)model->parts, sizeof(thiele_learner *)));
    l->parts = model->parts;
    for (int p = 0; p < l->parts; p++) {
        THI_TRY(thiele_learner_open(&l->of[p], ctx, model->part[p], &options));
        l->model->part[p] = l->of[p]->model;
    }
    if (model->origin.path != NULL) {
        THI_TRY(thi_strdup(ctx, &l->model->origin.path, model->origin.path));
        l->model->origin.stamp = model->origin.stamp;
    }
    if (l->options.snapshot != NULL) {
        THI_TRY(thi_strdup(ctx, &l->snapshot, l->options.snapshot));
    }
    THI_TRY(thi_parts_gather(l->model, ctx));
out:
    return status;
}

thiele_status thiele_learner_open(thiele_learner **out, thiele_context *ctx, const thiele_model *model,
                                  const thiele_update_options *options)
{
    THI_NEED_OUT(out, ctx, ctx && model);
    thiele_learner *l = NULL;
    options = options != NULL ? options : &defaults;
    thiele_status status;
    THI_TRY(check_options(ctx, options));
    if (model->parts == 0) {
        THI_TRY(check_model(ctx, model));
    }
    THI_TRY(thi_alloc(ctx, &l, 1, sizeof *l));
    l->options = *options;
    l->batch = options->batch > 0 ? options->batch : BATCH;
    if (options->forget > 0.0 && (double)l->batch > BATCH_SHARE * options->forget) {
        l->batch = (int64_t)ceil(BATCH_SHARE * options->forget);
    }
    l->window = options->window > 0 ? options->window : WINDOW;
    l->saved = thi_seconds();
    thi_driver_start(&l->driver, ctx, options->deadline);
    thi_driver_phase(&l->driver, "stream", 0);
    THI_TRY(model->parts > 0 ? open_parts(l, ctx, model) : learner_start(l, ctx, model));
    *out = l;
out:
    if (status != THIELE_OK) {
        thiele_learner_close(l);
    }
    return status;
}

void thiele_learner_close(thiele_learner *l)
{
    if (l == NULL) {
        return;
    }
    for (int p = 0; p < l->parts; p++) {
        l->model->part[p] = NULL;
        thiele_learner_close(l->of[p]);
    }
    thi_free(l->of);
    thi_online_mixture_close(&l->online);
    thi_blocks_online_close(l->blocks);
    thi_scorer_close(&l->scorer);
    thi_rows_free(&l->rows);
    thi_free(l->row);
    thi_free(l->mu);
    thi_free(l->v);
    thi_free(l->part);
    thi_free(l->filling);
    thi_free(l->snapshot);
    thiele_model_destroy(l->model);
    thi_free(l);
}

/* --- a batch ---------------------------------------------------------------------------------------------------------
 */

/* "standard input, line 1042" before a message about a row. */
static thiele_status name_line(thiele_context *ctx, thiele_status status, const thiele_table *table, int64_t row)
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
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s', row %lld: %g is too far from the targets that the model was fitted to", target->name,
                    (long long)thi_table_row_number(table, l->row[k / l->rows.outputs]),
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
            return name_line(ctx, status, reader->table, r);
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

static thiele_status read_batch(thiele_learner *l, thiele_context *ctx, thi_reader *reader, int64_t first,
                                int64_t count)
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
                            "row %lld: its inputs are so far out that the prediction overflows; correct them or leave "
                            "the row out",
                            thi_table_row_number(table, l->row[i / Q % l->rows.n]));
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
                             : thi_online_mixture_learn(&l->online, ctx, l->rows.y, l->model->stream.rows);
}

/* Predicts the batch that was read, scores it, learns it. */
static thiele_status take_batch(thiele_learner *l, thiele_context *ctx, const thiele_table *table)
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
out:
    return status;
}

/* The learners of a table: those of the parts, or the only one. */
typedef struct learners {
    int count;
    thiele_learner **each;
    thi_reader *reader;
} learners;

/*
 * A batch with an error in it: what came before is learned, and the error is the last word. Of several learners none
 * gets ahead of the others.
 */
static thiele_status add_batch(const learners *all, thiele_context *ctx, int64_t first, int64_t count)
{
    char message[THI_MESSAGE_MAX];
    int64_t end = first + count;
    thiele_status status = THIELE_OK, error = THIELE_OK;
    for (int i = 0; i < all->count; i++) {
        status = read_batch(all->each[i], ctx, &all->reader[i], first, end - first);
        if (status == THIELE_ERROR_DATA) {
            error = status;
            end = all->each[i]->bad;
            memcpy(message, ctx->message, sizeof message);
            thi_recover(ctx);
        } else if (status != THIELE_OK) {
            return status;
        }
    }
    for (int i = 0; i < all->count; i++) {
        thiele_learner *l = all->each[i];
        while (l->rows.n > 0 && l->row[l->rows.n - 1] >= end) {
            l->rows.n--;
        }
        THI_TRY(take_batch(l, ctx, all->reader[i].table));
    }
    status = error == THIELE_OK ? THIELE_OK : thi_fail(ctx, error, "%s", message);
out:
    return status;
}

/* --- tables ----------------------------------------------------------------------------------------------------------
 */

/* The error that people watch: of the last rows, of the first target. */
static double recent_error(const thiele_learner *l)
{
    const thiele_model *model = l->parts > 0 ? l->of[0]->model : l->model;
    const thiele_scores *recent = model->stream.recent;
    return thi_model_has_classes(model) ? recent->error_rate : recent->rmse;
}

/* Progress, the deadline, and a snapshot when it is due. */
static thiele_status look_around(thiele_learner *l, thiele_context *ctx)
{
    double every = l->options.snapshot_every > 0.0 ? l->options.snapshot_every : SNAPSHOT_EVERY;
    l->driver.held_out = recent_error(l);
    thi_driver_rows(&l->driver, l->learned - l->driver.done);
    thi_driver_stopped(&l->driver);
    if (l->snapshot == NULL || l->unsaved == 0 || thi_seconds() - l->saved < every) {
        return THIELE_OK;
    }
    return thiele_learner_save(l, ctx, l->snapshot);
}

/* What the whole has of its parts. */
static thiele_status gather(thiele_learner *l, thiele_context *ctx)
{
    int64_t learned = l->learned;
    for (int p = 0; p < l->parts; p++) {
        l->learned = thi_most(l->learned, l->of[p]->learned);
    }
    l->unsaved += l->learned - learned;
    return l->parts > 0 ? thi_parts_gather(l->model, ctx) : THIELE_OK;
}

static thiele_status open_readers(learners *all, thiele_context *ctx, const thiele_table *table)
{
    thiele_status status = thi_alloc(ctx, &all->reader, (size_t)all->count, sizeof *all->reader);
    for (int i = 0; i < all->count && status == THIELE_OK; i++) {
        thiele_learner *l = all->each[i];
        thi_reading how = thi_model_reading(l->model, true, l->options.unseen_zero != 0, l->options.drop_missing != 0);
        l->driver.ctx = ctx;
        status = thi_reader_open(&all->reader[i], ctx, &l->model->encoder, table, &how);
    }
    return status;
}

thiele_status thiele_learner_add(thiele_learner *l, thiele_context *ctx, const thiele_table *table)
{
    THI_NEED(ctx, l && ctx);
    l->driver.ctx = ctx;
    if (table == NULL) {
        return look_around(l, ctx);
    }
    learners all = {.count = l->parts > 0 ? l->parts : 1, .each = l->parts > 0 ? l->of : &l};
    thiele_status status, error;
    THI_TRY(open_readers(&all, ctx, table));
    for (int64_t first = 0; first < table->rows && !l->driver.stopped; first += l->batch) {
        int64_t count = table->rows - first < l->batch ? table->rows - first : l->batch;
        error = add_batch(&all, ctx, first, count);
        THI_TRY(gather(l, ctx));
        THI_TRY(error);
        THI_TRY(look_around(l, ctx));
    }
out:
    for (int i = 0; all.reader != NULL && i < all.count; i++) {
        thi_reader_close(&all.reader[i]);
    }
    thi_free(all.reader);
    return status;
}

int64_t thiele_learner_batch(const thiele_learner *l)
{
    THI_NEED_OR(0, l);
    return l->batch;
}

thiele_stop thiele_learner_stop(const thiele_learner *l)
{
    THI_NEED_OR(THIELE_STOP_FIXED, l);
    return l->driver.stopped ? l->driver.reason : THIELE_STOP_CONVERGED;
}

/* --- models ----------------------------------------------------------------------------------------------------------
 */

/* The posterior so far into the learner's model. */
static void refresh(thiele_learner *l)
{
    for (int p = 0; p < l->parts; p++) {
        refresh(l->of[p]);
        l->of[p]->model->stream.stop = thiele_learner_stop(l);
    }
    if (l->parts > 0) {
        l->model->stream.forget = l->options.forget;
        l->model->stream.stop = thiele_learner_stop(l);
        return;
    }
    if (l->blocks == NULL) {
        thi_online_mixture_freeze(&l->online);
    }
    l->model->stream.forget = l->options.forget;
    l->model->stream.stop = thiele_learner_stop(l);
}

thiele_status thiele_learner_model(thiele_learner *l, thiele_context *ctx, thiele_model **out)
{
    THI_NEED_OUT(out, ctx, l && ctx);
    refresh(l);
    return thi_model_copy(out, ctx, l->model);
}

thiele_status thiele_learner_save(thiele_learner *l, thiele_context *ctx, const char *path)
{
    THI_NEED(ctx, l && ctx && path);
    thiele_status status;
    refresh(l);
    THI_TRY(thi_model_save_again(l->model, ctx, path));
    l->unsaved = 0;
    l->saved = thi_seconds();
out:
    return status;
}

void thiele_learner_facts(const thiele_learner *l, thiele_stream_facts *facts)
{
    THI_NEED_OR(, l && facts);
    thiele_model_stream(l->model, facts);
    facts->forget = l->options.forget;
    facts->stop = thiele_learner_stop(l);
}

thiele_status thiele_model_update(thiele_model **out, thiele_context *ctx, const thiele_model *model,
                                  const thiele_table *table, const thiele_update_options *options)
{
    THI_NEED_OUT(out, ctx, ctx && model && table);
    thiele_learner *l = NULL;
    thiele_status status;
    THI_TRY(thiele_learner_open(&l, ctx, model, options));
    THI_TRY(thiele_learner_add(l, ctx, table));
    if (l->snapshot != NULL && l->unsaved > 0) {
        THI_TRY(thiele_learner_save(l, ctx, l->snapshot));
    }
    THI_TRY(thiele_learner_model(l, ctx, out));
out:
    thiele_learner_close(l);
    return status;
}

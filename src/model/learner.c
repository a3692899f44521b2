/*
 * Learners (include/thiele/stream.h): tables are read in batches; each batch is scored by the posterior so far and then
 * learned (fit/online.h). The learner's own copy of the model gets the posterior when it is asked for, not for every
 * batch.
 */
#include "model/learner.h"

#include <math.h>
#include <string.h>

#include "model/describe.h"
#include "model/parts.h"

static const double SNAPSHOT_EVERY = 10.0; /* seconds */

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
        status = thi_learner_read(all->each[i], ctx, &all->reader[i], first, end - first);
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
        THI_TRY(thi_learner_take(l, ctx, all->reader[i].table));
    }
    status = error == THIELE_OK ? THIELE_OK : thi_fail(ctx, error, "%s", message);
out:
    return status;
}

/* The time of rows, which may become fewer. One that has none is left out or an error, as asked. */
static thiele_status keep_time(const learners *all, thiele_context *ctx, int64_t first, int64_t *count, bool *skip)
{
    const thiele_table *table = all->reader->table;
    double left;
    thiele_status status = thi_learner_clock(all->each[0], ctx, table, first, count, &left);
    *skip = status == THIELE_ERROR_DATA && all->each[0]->options.skip_bad;
    if (*skip) {
        thi_recover(ctx);
        *count = 1;
    } else if (status != THIELE_OK) {
        return thi_learner_name_line(ctx, status, table, first);
    }
    for (int i = 0; i < all->count; i++) {
        thi_stream_report *s = &all->each[i]->model->stream;
        all->each[i]->lasting *= left;
        s->clock = all->each[0]->model->stream.clock;
        s->skipped += *skip;
    }
    return THIELE_OK;
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
    double every = l->options.snapshot > 0.0 ? l->options.snapshot : SNAPSHOT_EVERY;
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
        thi_reading how = thi_model_reading(l->model, true, l->options.unseen, l->options.drop_missing != 0);
        l->driver.ctx = ctx;
        status = thi_refuse_weights(l->model, ctx, table, "an update");
        if (status == THIELE_OK) {
            status = thi_reader_open(&all->reader[i], ctx, &l->model->encoder, table, &how);
        }
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
    for (int64_t first = 0, count; first < table->rows && !l->driver.stopped; first += count) {
        bool skip;
        count = thi_least(table->rows - first, l->batch);
        THI_TRY(keep_time(&all, ctx, first, &count, &skip));
        error = skip ? THIELE_OK : add_batch(&all, ctx, first, count);
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

thiele_status thiele_learner_settle(thiele_learner *l, thiele_context *ctx)
{
    THI_NEED(ctx, l && ctx);
    thiele_status status = l->parts > 0 ? THIELE_OK : thi_learner_settle(l, ctx);
    for (int p = 0; p < l->parts && status == THIELE_OK; p++) {
        status = thi_learner_settle(l->of[p], ctx);
    }
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
    THI_TRY(thiele_learner_settle(l, ctx));
    if (l->snapshot != NULL && l->unsaved > 0) {
        THI_TRY(thiele_learner_save(l, ctx, l->snapshot));
    }
    THI_TRY(thiele_learner_model(l, ctx, out));
out:
    thiele_learner_close(l);
    return status;
}

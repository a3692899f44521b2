/*
 * Public sums over rows (include/thiele/sums.h): a model's rows into exact sums (fit/online_tally.h), as bytes, and a
 * model that is conditioned on them.
 */
#include <math.h>
#include <string.h>

#include "fit/blocks.h"
#include "model/sums_bytes.h"

/* --- which models ------------------------------------------------------------------------------------------------- */

static thiele_status form_of(thiele_context *ctx, const thiele_model *model, thi_blocks_form *form)
{
    *form = (thi_blocks_form){.weight = {[THI_RESIDUAL_NONE] = 1.0}};
    return thi_blocks_is_form(model->method) ? thi_blocks_form_parse(form, ctx, model->method) : THIELE_OK;
}

/* Why what a row adds depends on other rows or on q, or NULL. */
static const char *refuses(const thiele_model *model, const thi_blocks_form *form)
{
    const thi_predictor *p = model->latent;
    if (!thi_is_gaussian(model->lik) && !model->lik->ops->separate) {
        return "its noise is not Gaussian, so that what a row says depends on all others";
    }
    if (model->sampling.sampler != NULL || model->components > 1) {
        return "its posterior is not a single Gaussian";
    }
    if (p->mean_basis != NULL) {
        return "its mean has inducing inputs of its own (fit by `method` collapsed or variational instead)";
    }
    if (p->local != NULL || form->weight[THI_RESIDUAL_BLOCK] > 0.0) {
        return "rows of a block belong together (fit by `method` fitc instead)";
    }
    return form->weight[THI_RESIDUAL_NONE] > 0.0 && form->weight[THI_RESIDUAL_DIAGONAL] > 0.0
               ? "it is a mixture of two kinds of noise (fit by `method` fitc or dtc alone)"
               : thi_online_refuses(p);
}

static thiele_status check_model(thiele_context *ctx, const thiele_model *model, thi_blocks_form *form)
{
    thiele_status status;
    if (model->parts > 0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "sums are of one model, and each target of this one has a model of its own: fit them one by "
                        "one");
    }
    THI_TRY(thi_model_need_likelihood(model, ctx));
    THI_TRY(form_of(ctx, model, form));
    const char *why = refuses(model, form);
    status = why == NULL ? THIELE_OK
                         : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "rows of a model by method '%s' have no sums: %s",
                                    model->method, why);
out:
    return status;
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

static thiele_status open_tallies(thi_tally **out, thiele_context *ctx, const thiele_sums *sums)
{
    thiele_status status;
    THI_TRY(thi_alloc(ctx, out, (size_t)sums->model->latents, sizeof **out));
    for (int j = 0; j < sums->model->latents; j++) {
        THI_TRY(thi_online_tally_open(&sums->online, ctx, j, &(*out)[j]));
    }
out:
    return status;
}

static void close_tallies(thi_tally *tally, int count)
{
    for (int j = 0; tally != NULL && j < count; j++) {
        thi_tally_close(&tally[j]);
    }
    thi_free(tally);
}

/* A copy that is conditioned on nothing of what its own fit saw, and says nothing of it. */
static thiele_status open_model(thiele_sums *sums, thiele_context *ctx, const thiele_model *model)
{
    thiele_status status;
    THI_TRY(thi_model_copy(&sums->model, ctx, model));
    for (int j = 0; j < model->latents; j++) {
        THI_TRY(thi_online_prepare(&sums->model->latent[j], ctx));
    }
    thi_kept_close(&sums->model->kept);
    thi_stream_report *stream = &sums->model->stream;
    thi_free(stream->all);
    thi_free(stream->recent);
    *stream = (thi_stream_report){0};
    thi_free(sums->model->tails);
    thi_free(sums->model->origin.path);
    sums->model->tails = NULL;
    sums->model->origin = (thi_origin){0};
    for (int p = 0; p < model->encoder.targets; p++) {
        sums->model->holdout[p].rows = 0;
    }
    if (model->posterior != NULL) {
        thi_free(sums->model->posterior);
        sums->model->posterior = NULL;
        THI_TRY(thi_strdup(ctx, &sums->model->posterior, "full"));
    }
out:
    return status;
}

thiele_status thiele_sums_open(thiele_sums **out, thiele_context *ctx, const thiele_model *model)
{
    THI_NEED_OUT(out, ctx, ctx && model);
    thiele_sums *sums = NULL;
    thi_online_settings settings = {.capacity = THI_ONLINE_TALLY_BATCH};
    thi_blocks_form form;
    thiele_status status;
    THI_TRY(check_model(ctx, model, &form));
    THI_TRY(thi_alloc(ctx, &sums, 1, sizeof *sums));
    THI_TRY(open_model(sums, ctx, model));
    memcpy(settings.weight, form.weight, sizeof settings.weight);
    THI_TRY(thi_online_open(&sums->online, ctx, model->latents, sums->model->latent, sums->model->lik, &settings));
    THI_TRY(thi_sums_mark(sums, ctx));
    THI_TRY(open_tallies(&sums->tally, ctx, sums));
    *out = sums;
out:
    if (status != THIELE_OK) {
        thiele_sums_close(sums);
    }
    return status;
}

void thiele_sums_close(thiele_sums *sums)
{
    if (sums == NULL) {
        return;
    }
    int latents = sums->model != NULL ? sums->model->latents : 0;
    close_tallies(sums->tally, latents);
    thi_online_close(&sums->online);
    thiele_model_destroy(sums->model);
    thi_free(sums);
}

int64_t thiele_sums_rows(const thiele_sums *sums)
{
    THI_NEED_OR(0, sums);
    int64_t rows = 0;
    for (int j = 0; j < sums->model->latents; j++) {
        rows = thi_most(rows, sums->tally[j].rows);
    }
    return rows;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* A pass over a table. */
typedef struct adding {
    thiele_sums *sums;
    thi_tally *tally;    /* of this table */
    thi_tally_desk desk; /* for the largest basis */
    thi_reader reader;
    thi_rows rows;
    int64_t *row;
} adding;

static thiele_status open_adding(adding *a, thiele_context *ctx, const thiele_table *table,
                                 const thiele_sums_options *options)
{
    thiele_sums *sums = a->sums;
    const thi_encoder *encoder = &sums->model->encoder;
    thi_reading how = thi_model_reading(sums->model, true, options->unseen, options->drop_missing != 0);
    thiele_status status;
    THI_TRY(thi_reader_open(&a->reader, ctx, encoder, table, &how));
    THI_TRY(thi_rows_alloc(&a->rows, ctx, THI_ONLINE_TALLY_BATCH, encoder->dims, encoder->targets,
                           (thi_aside){.offset = true}));
    THI_TRY(thi_alloc(ctx, &a->row, THI_ONLINE_TALLY_BATCH, sizeof *a->row));
    THI_TRY(open_tallies(&a->tally, ctx, sums));
out:
    return status;
}

static void close_adding(adding *a)
{
    close_tallies(a->tally, a->sums->model->latents);
    thi_tally_desk_close(&a->desk);
    thi_reader_close(&a->reader);
    thi_rows_free(&a->rows);
    thi_free(a->row);
}

/* The last batch is filled up with copies of its first row, which are not added. */
static void fill_up(thi_rows *rows)
{
    for (int64_t i = rows->n; i < THI_ONLINE_TALLY_BATCH; i++) {
        memcpy(rows->X + i * rows->dims, rows->X, (size_t)rows->dims * sizeof *rows->X);
        rows->offset[i] = rows->offset[0];
    }
}

static thiele_status add_latent(adding *a, thiele_context *ctx, int j)
{
    thiele_sums *sums = a->sums;
    int64_t bad = 0, M = a->tally[j].M;
    thiele_status status = THIELE_OK;
    if (a->desk.product.rows != M) {
        thi_tally_desk_close(&a->desk);
        status = thi_tally_desk_open(&a->desk, ctx, M, THI_ONLINE_TALLY_BATCH);
    }
    if (status == THIELE_OK) {
        status = thi_online_tally_add(&sums->online, ctx, j, a->rows.n, a->rows.y, &a->desk, &a->tally[j], &bad);
    }
    return status == THIELE_ERROR_DATA
               ? thi_fail(ctx, status, "row %lld of %s: its inputs or its target are too far out for this model",
                          thi_table_row_number(a->reader.table, a->row[bad]),
                          thi_table_row_source(a->reader.table, a->row[bad]))
               : status;
}

static thiele_status add_batch(adding *a, thiele_context *ctx, int64_t first, int64_t count)
{
    thi_rows *rows = &a->rows;
    thiele_status status;
    THI_TRY(thi_reader_read(&a->reader, ctx, first, count, rows->X, rows->y, rows->offset, a->row, &rows->n));
    if (rows->n == 0) {
        return THIELE_OK;
    }
    fill_up(rows);
    THI_TRY(thi_online_tally_load(&a->sums->online, ctx, rows->X, rows->offset));
    for (int j = 0; j < a->sums->model->latents; j++) {
        THI_TRY(add_latent(a, ctx, j));
    }
out:
    return status;
}

static thiele_status add_table(adding *a, thiele_context *ctx, const thiele_table *table)
{
    thi_watch watch = thi_watch_begin(ctx, thi_table_source(table), 0.0);
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < table->rows && status == THIELE_OK; first += THI_ONLINE_TALLY_BATCH) {
        status = thi_look_up(ctx, first, table->rows);
        if (status == THIELE_OK) {
            status = add_batch(a, ctx, first, thi_least(table->rows - first, THI_ONLINE_TALLY_BATCH));
        }
    }
    thi_watch_end(ctx, watch);
    return status;
}

thiele_status thi_sums_join(thiele_sums *sums, thiele_context *ctx, const thi_tally *tally)
{
    thiele_status status = THIELE_OK;
    int done = 0;
    while (done < sums->model->latents && status == THIELE_OK) {
        status = thi_tally_join(&sums->tally[done], ctx, &tally[done]);
        done += status == THIELE_OK;
    }
    for (int j = 0; j < done && status != THIELE_OK; j++) {
        thi_tally_leave(&sums->tally[j], &tally[j]);
    }
    return status;
}

thiele_status thiele_sums_add(thiele_sums *sums, thiele_context *ctx, const thiele_table *table,
                              const thiele_sums_options *options)
{
    THI_NEED(ctx, sums && ctx && table);
    adding a = {.sums = sums};
    thiele_status status;
    thiele_sums_options taken;
    THI_TRY(thi_take_options(ctx, "thiele_sums_options", &taken, sizeof taken, options));
    THI_TRY(thi_refuse_weights(sums->model, ctx, table, "sums"));
    THI_TRY(open_adding(&a, ctx, table, &taken));
    THI_TRY(add_table(&a, ctx, table));
    THI_TRY(thi_sums_join(sums, ctx, a.tally));
out:
    close_adding(&a);
    return status;
}

thiele_status thiele_sums_combine(thiele_sums *sums, thiele_context *ctx, const thiele_sums *other)
{
    THI_NEED(ctx, sums && ctx && other);
    return other->mark == sums->mark ? thi_sums_join(sums, ctx, other->tally) : thi_sums_refuse_mark(ctx);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

thiele_status thiele_sums_model(thiele_sums *sums, thiele_context *ctx, thiele_model **out)
{
    THI_NEED_OUT(out, ctx, sums && ctx);
    thiele_model *model = NULL;
    thiele_status status;
    if (thiele_sums_rows(sums) == 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "sums of no rows: there is nothing to condition the model on");
    }
    THI_TRY(thi_model_copy(&model, ctx, sums->model));
    model->value = 0.0;
    for (int j = 0; j < model->latents; j++) {
        double evidence;
        THI_TRY(thi_online_tally_put(&sums->online, ctx, j, &sums->tally[j], &evidence));
        thi_online_freeze(&sums->online, j, &model->latent[j]);
        model->value += evidence - (double)sums->tally[j].rows * log(model->encoder.target[j].scale);
    }
    model->rows = thiele_sums_rows(sums);
    model->stop = THIELE_STOP_FIXED;
    if (model->blocks.blocks > 0) {
        model->blocks.evidence_rows = model->rows;
        model->blocks.estimate = false;
    }
    *out = model;
    model = NULL;
out:
    thiele_model_destroy(model);
    return status;
}

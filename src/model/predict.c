/* Prediction of tables: rows are read, encoded, predicted and handed on in blocks, so that no table is too long. */
#include <math.h>
#include <string.h>

#include "model/outputs.h"
#include "model/parts.h"
#include "model/score.h"

static const thiele_predict_options defaults = THIELE_PREDICT_OPTIONS_INIT;

/* Limits that keep a block's arrays small. */
enum { QUANTILES_MAX = 1000, SAMPLES_MAX = 100000 };
/* Rows at a time: fewer where each has many numbers. Multiples of THI_PREDICT_BLOCK, so that no bit depends on it. */
enum { BLOCK = 4 * THI_PREDICT_BLOCK, BLOCK_WIDE = THI_PREDICT_BLOCK, WIDE = 2000 };
/* What the rows of a window may take, and the share of the memory that it stays within when that is less. */
static const double WINDOW_BYTES = 64e6, WINDOW_SHARE = 0.05;

static thiele_status check_options(thiele_context *ctx, const thiele_predict_options *options)
{
    if (options->size != sizeof *options) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "predict options must be initialised with THIELE_PREDICT_OPTIONS_INIT");
    }
    if (options->quantile_count < 0 || options->quantile_count > QUANTILES_MAX || options->samples < 0 ||
        options->samples > SAMPLES_MAX) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there can be %d quantiles and %d samples a row at most",
                        QUANTILES_MAX, SAMPLES_MAX);
    }
    for (int q = 0; q < options->quantile_count; q++) {
        if (options->quantiles == NULL || !(options->quantiles[q] > 0.0 && options->quantiles[q] < 1.0)) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "quantiles must lie between 0 and 1");
        }
    }
    return THIELE_OK;
}

/* What a pass over a table needs, allocated once; where each target has a model, each has a pass, block by block. */
typedef struct pass {
    const thiele_model *model;
    thiele_context *ctx;
    int64_t block; /* rows at a time */
    int64_t kept;  /* of the block that was read */
    thi_reader reader;
    thi_model_batch batch;
    double *X, *y, *offset, *mu, *v;
    int64_t *row;
    int64_t clipped;
    thi_driver driver;
    thi_stop stop;
} pass;

/* Why a target cannot be, for the reader. */
static const char *refuses(const void *lik, double y)
{
    return thi_likelihood_refuses(lik, y);
}

thi_reading thi_model_reading(const thiele_model *model, bool with_target, bool unseen_zero, bool drop_missing)
{
    bool numbers = with_target && model->lik != NULL && !thi_model_has_classes(model);
    return (thi_reading){.target = with_target,
                         .unseen_zero = unseen_zero,
                         .drop_missing = drop_missing,
                         .likelihood = model->lik != NULL ? thiele_likelihood_name(model->lik) : model->own,
                         .refuses = numbers ? refuses : NULL,
                         .user = model->lik};
}

static thi_reading reading_of(const thiele_model *model, const thiele_predict_options *options, bool with_target)
{
    return thi_model_reading(model, with_target, options->unseen_zero != 0, options->drop_missing != 0);
}

/* Of PIC: the more rows are together, the more are of one block. */
static int64_t rows_at_a_time(const thiele_model *model, thiele_context *ctx, int numbers)
{
    int64_t block = numbers > WIDE ? BLOCK_WIDE : BLOCK;
    double bytes = 8.0 * (numbers + model->encoder.dims + 12);
    double most = fmin(WINDOW_SHARE * (double)thi_memory_limit(ctx), WINDOW_BYTES) / bytes;
    while (model->latent->local != NULL && 2.0 * (double)block <= most && block < THI_PREDICT_WINDOW) {
        block *= 2;
    }
    return block;
}

static thiele_status pass_open(pass *p, const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                               const thiele_predict_options *options, bool with_target)
{
    *p = (pass){.model = model, .ctx = ctx};
    thi_driver_start(&p->driver, ctx, 0.0);
    thi_driver_phase(&p->driver, "predict", table->rows);
    thiele_status status = check_options(ctx, options);
    if (status != THIELE_OK) {
        return status;
    }
    int numbers = thi_model_outputs(model, options->latent != 0) * (options->quantile_count + options->samples);
    p->block = rows_at_a_time(model, ctx, numbers);
    p->block = p->block < table->rows ? p->block : (table->rows > 0 ? table->rows : 1);
    size_t rows = (size_t)p->block;
    size_t latents = rows * (size_t)(model->latents * model->components);
    thi_reading how = reading_of(model, options, with_target);
    THI_TRY(thi_reader_open(&p->reader, ctx, &model->encoder, table, &how));
    thi_sight sight = options->blend ? THI_SEES_BLEND : options->own_block ? THI_SEES_BLOCK : THI_SEES_NEAREST;
    THI_TRY(thi_model_batch_open(&p->batch, ctx, model, table->rows, sight));
    THI_TRY(thi_alloc(ctx, &p->X, rows * (size_t)model->encoder.dims, sizeof *p->X));
    THI_TRY(thi_alloc(ctx, &p->y, rows * (size_t)model->encoder.targets, sizeof *p->y));
    THI_TRY(thi_alloc(ctx, &p->offset, rows, sizeof *p->offset));
    THI_TRY(thi_alloc(ctx, &p->mu, latents, sizeof *p->mu));
    THI_TRY(thi_alloc(ctx, &p->v, latents, sizeof *p->v));
    THI_TRY(thi_alloc(ctx, &p->row, rows, sizeof *p->row));
out:
    return status;
}

static void pass_close(pass *p)
{
    thi_reader_close(&p->reader);
    thi_model_batch_close(&p->batch);
    thi_free(p->X);
    thi_free(p->y);
    thi_free(p->offset);
    thi_free(p->mu);
    thi_free(p->v);
    thi_free(p->row);
}

static thiele_status stopped(thiele_context *ctx, int64_t done, int64_t total)
{
    return thi_fail(ctx, THIELE_ERROR_CANCELLED, "stopped after %lld of %lld rows; nothing was written",
                    (long long)done, (long long)total);
}

static thiele_status too_far(thiele_context *ctx, long long row)
{
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "row %lld: its inputs are so far out that the prediction overflows; correct them or leave the row "
                    "out",
                    row);
}

/* Gets the marginals of every block of the passes' table, with the targets where they were read. */
typedef thiele_status (*block_fn)(void *arg, pass *p, int passes);

/* Whoever waits for a slow table may ask to stop. */
static thiele_status read_rows(pass *p, int64_t first, int64_t count)
{
    thi_watch watch = thi_driver_watch(&p->driver, thi_table_source(p->reader.table));
    double *y = p->reader.how.target ? p->y : NULL;
    thiele_status status = thi_reader_read(&p->reader, p->ctx, first, count, p->X, y, p->offset, p->row, &p->kept);
    thi_watch_end(p->ctx, watch);
    return status;
}

static bool has_row(const pass *p, int64_t row)
{
    int64_t low = 0, high = p->kept;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        low = p->row[middle] < row ? middle + 1 : low;
        high = p->row[middle] < row ? high : middle;
    }
    return low < p->kept && p->row[low] == row;
}

/* Passes that leave rows out may leave out different ones, where the inputs are not the same: those of all stay. */
static void keep_common(pass *p, int passes)
{
    for (int i = 0; i < passes; i++) {
        size_t D = (size_t)p[i].model->encoder.dims;
        int64_t kept = 0;
        for (int64_t r = 0; r < p[i].kept; r++) {
            bool common = true;
            for (int k = 0; common && k < passes; k++) {
                common = k == i || has_row(&p[k], p[i].row[r]);
            }
            if (common && kept < r) {
                memcpy(p[i].X + (size_t)kept * D, p[i].X + (size_t)r * D, D * sizeof *p[i].X);
                p[i].offset[kept] = p[i].offset[r];
                p[i].row[kept] = p[i].row[r];
            }
            kept += common;
        }
        p[i].kept = kept;
    }
}

static thiele_status find_marginals(pass *p)
{
    int Q = p->model->latents;
    thiele_status status = THIELE_OK;
    if (p->kept > 0) {
        status = thi_model_batch_next(&p->batch, p->ctx, p->kept, p->X, p->offset, p->mu, p->v, &p->clipped);
    }
    for (int64_t i = 0; status == THIELE_OK && i < p->kept * Q * p->model->components; i++) {
        if (!isfinite(p->mu[i]) || !isfinite(p->v[i])) {
            status = too_far(p->ctx, thi_table_row_number(p->reader.table, p->row[i / Q % p->kept]));
        }
    }
    return status;
}

static thiele_status one_block(pass *p, int passes, int64_t first, int64_t count, block_fn fn, void *arg)
{
    thiele_status status = THIELE_OK;
    for (int i = 0; i < passes && status == THIELE_OK; i++) {
        status = read_rows(&p[i], first, count);
    }
    if (status == THIELE_OK && passes > 1) {
        keep_common(p, passes);
    }
    for (int i = 0; i < passes && status == THIELE_OK; i++) {
        status = find_marginals(&p[i]);
    }
    return status == THIELE_OK ? fn(arg, p, passes) : status;
}

static thiele_status each_block(pass *p, int passes, block_fn fn, void *arg)
{
    int64_t rows = p->reader.table->rows, block = p->block, clipped = 0;
    for (int i = 1; i < passes; i++) {
        block = p[i].block < block ? p[i].block : block;
    }
    for (int64_t first = 0; first < rows; first += block) {
        int64_t count = rows - first < block ? rows - first : block;
        thiele_progress progress = thi_driver_progress(&p->driver);
        thi_stop_begin(&p->stop, p->ctx, &progress);
        thiele_status status = one_block(p, passes, first, count, fn, arg);
        bool asked = atomic_load(&p->stop.asked_for);
        thi_stop_end(p->ctx);
        if (status == THIELE_OK) {
            thi_driver_rows(&p->driver, count);
            status = thi_driver_stopped(&p->driver) ? stopped(p->ctx, first + count, rows) : THIELE_OK;
        }
        if (status != THIELE_OK) {
            return status == THIELE_ERROR_CANCELLED && asked ? stopped(p->ctx, first, rows) : status;
        }
    }
    for (int i = 0; i < passes; i++) {
        clipped = p[i].clipped > clipped ? p[i].clipped : clipped;
    }
    if (clipped > 0) {
        thi_log(p->ctx, THIELE_LOG_WARNING, "rounding made the variance of %lld rows negative; it was set to zero",
                (long long)clipped);
    }
    return THIELE_OK;
}

/* --- to a callback ---------------------------------------------------------------------------------------------------
 */

typedef struct sink_call {
    thi_outputs *outputs; /* of each pass, as are options and blocks */
    thiele_predict_options *options;
    thiele_prediction *block;
    thiele_prediction_fn sink;
    void *user;
} sink_call;

static thiele_status make_block(thi_outputs *o, pass *p, thiele_prediction *block)
{
    thiele_status status = thi_outputs_make(o, p->ctx, p->kept, p->row, p->mu, p->v);
    for (int64_t i = 0; status == THIELE_OK && o->classes == 0 && i < p->kept * o->outputs; i++) {
        /* A mean that does not exist (Student-t with nu <= 1) is NaN. */
        if (isinf(o->mean[i])) {
            status = too_far(p->ctx, thi_table_row_number(p->reader.table, p->row[i / o->outputs]));
        }
    }
    *block = (thiele_prediction){.rows = p->kept,
                                 .outputs = o->outputs,
                                 .classes = o->classes,
                                 .row = p->row,
                                 .mean = o->mean,
                                 .variance = o->variance,
                                 .probability = o->probability,
                                 .quantiles = o->options->quantile_count > 0 ? o->quantiles : NULL,
                                 .samples = o->samples};
    return status;
}

static thiele_status call_sink(void *arg, pass *p, int passes)
{
    sink_call *call = arg;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < passes && status == THIELE_OK; i++) {
        status = make_block(&call->outputs[i], &p[i], &call->block[i]);
    }
    if (status != THIELE_OK) {
        return status;
    }
    thi_stop_end(p->ctx); /* the sink's time is its own */
    thi_recover(p->ctx);
    thiele_prediction all = {.rows = p->kept, .row = p->row, .parts = passes, .part = call->block};
    status = call->sink(passes > 1 ? &all : call->block, call->user);
    return status == THIELE_OK || p->ctx->message[0] != '\0'
               ? status
               : thi_fail(p->ctx, status, "the receiver of the predictions stopped them at table row %lld: %s",
                          p->kept > 0 ? (long long)thi_table_row_number(p->reader.table, p->row[0]) : 0LL,
                          thiele_status_meaning(status));
}

thiele_status thiele_model_predict(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                   const thiele_predict_options *options, thiele_prediction_fn sink, void *user)
{
    THI_NEED(ctx, model && ctx && table && sink);
    int passes = model->parts > 0 ? model->parts : 1;
    pass *p = NULL;
    sink_call call = {.sink = sink, .user = user};
    options = options != NULL ? options : &defaults;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &p, (size_t)passes, sizeof *p));
    THI_TRY(thi_alloc(ctx, &call.outputs, (size_t)passes, sizeof *call.outputs));
    THI_TRY(thi_alloc(ctx, &call.options, (size_t)passes, sizeof *call.options));
    THI_TRY(thi_alloc(ctx, &call.block, (size_t)passes, sizeof *call.block));
    for (int i = 0; i < passes; i++) {
        const thiele_model *own = model->parts > 0 ? model->part[i] : model;
        call.options[i] = *options;
        if (passes > 1 && !options->latent && !thi_model_has_order(own)) {
            call.options[i].quantile_count = 0; /* those of the other targets make sense */
        }
        THI_TRY(pass_open(&p[i], own, ctx, table, &call.options[i], false));
        THI_TRY(thi_outputs_open(&call.outputs[i], ctx, own, &call.options[i], p[i].block));
    }
    THI_TRY(each_block(p, passes, call_sink, &call));
out:
    for (int i = 0; i < passes; i++) {
        if (p != NULL) {
            pass_close(&p[i]);
        }
        if (call.outputs != NULL) {
            thi_outputs_close(&call.outputs[i]);
        }
    }
    thi_free(call.block);
    thi_free(call.options);
    thi_free(call.outputs);
    thi_free(p);
    return status;
}

/* --- to scores -------------------------------------------------------------------------------------------------------
 */

static thiele_status collect(void *arg, pass *p, int passes)
{
    (void)passes;
    return thi_scorer_add(arg, p->ctx, p->kept, p->y, p->mu, p->v);
}

static thiele_status score_parts(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thiele_scores *scores)
{
    thiele_status status = THIELE_OK;
    for (int i = 0; i < model->parts && status == THIELE_OK; i++) {
        status = thiele_model_score(model->part[i], ctx, table, options, &scores[i]);
    }
    return status;
}

/* confusion: NULL, or classes x classes. */
static thiele_status score_table(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thiele_scores *scores, int64_t *confusion)
{
    pass p = {0};
    thi_scorer scorer = {0};
    thiele_status status;
    THI_TRY(pass_open(&p, model, ctx, table, options != NULL ? options : &defaults, true));
    THI_TRY(thi_scorer_open(&scorer, ctx, model, table->rows, false));
    THI_TRY(each_block(&p, 1, collect, &scorer));
    THI_TRY(thi_scorer_finish(&scorer, ctx, scores));
    if (confusion != NULL) {
        thi_scorer_confusion(&scorer, confusion);
    }
out:
    pass_close(&p);
    thi_scorer_close(&scorer);
    return status;
}

thiele_status thiele_model_score(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thiele_scores *scores)
{
    THI_NEED(ctx, model && ctx && table && scores);
    return model->parts > 0 ? score_parts(model, ctx, table, options, scores)
                            : score_table(model, ctx, table, options, scores, NULL);
}

thiele_status thiele_model_confusion(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                     const thiele_predict_options *options, thiele_scores *scores, int64_t *confusion)
{
    THI_NEED(ctx, model && ctx && table && scores && confusion);
    if (thiele_model_classes(model) == 0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "the target '%s' is not one of labels: there is no confusion of them",
                        thiele_model_target(model, 0));
    }
    return score_table(model, ctx, table, options, scores, confusion);
}

thiele_status thi_model_score_rows(const thiele_model *model, thiele_context *ctx, const thi_rows *rows, bool quick,
                                   thiele_scores *scores)
{
    size_t latents = (size_t)rows->n * (size_t)(model->latents * model->components);
    thi_scorer scorer = {0};
    double *mu = NULL;
    double *v = NULL;
    int64_t clipped = 0;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &mu, latents, sizeof *mu));
    THI_TRY(thi_alloc(ctx, &v, latents, sizeof *v));
    THI_TRY(thi_scorer_open(&scorer, ctx, model, rows->n, quick));
    THI_TRY(thi_model_marginals(model, ctx, rows->n, rows->X, rows->offset, mu, v, &clipped));
    THI_TRY(thi_scorer_add(&scorer, ctx, rows->n, rows->y, mu, v));
    THI_TRY(thi_scorer_finish(&scorer, ctx, scores));
out:
    thi_scorer_close(&scorer);
    thi_free(mu);
    thi_free(v);
    return status;
}

/* --- all rows together -----------------------------------------------------------------------------------------------
 */

static thiele_status check_joint(const thiele_model *model, thiele_context *ctx, const thiele_predict_options *options)
{
    if (options->drop_missing) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a joint prediction is of all rows: it can leave none out");
    }
    if (options->blend && model->latent->local != NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "blended predictions are mixtures of what several blocks say of each row by itself, which "
                        "have no joint distribution");
    }
    if (model->latents > 1) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "a joint prediction is of one function; this model has %d latent functions", model->latents);
    }
    if (!options->latent && !thi_model_is_gaussian(model)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "observations that are not Gaussian have no joint covariance to write: ask for the latent "
                        "function (`latent`)");
    }
    return THIELE_OK;
}

thiele_status thiele_model_predict_joint(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                         const thiele_predict_options *options, double *mean, double *covariance)
{
    THI_NEED(ctx, model && ctx && table && mean && covariance);
    options = options != NULL ? options : &defaults;
    thi_reader reader = {0};
    thi_rows rows = {0};
    double unit = 1.0;
    double offset = 0.0;
    thiele_status status;
    THI_TRY(check_options(ctx, options));
    THI_TRY(thi_parts_refuse(model, ctx, "a joint prediction is of one function"));
    THI_TRY(check_joint(model, ctx, options));
    thi_reading how = reading_of(model, options, false);
    THI_TRY(thi_reader_open(&reader, ctx, &model->encoder, table, &how));
    THI_TRY(thi_read_all(ctx, &reader, &rows, NULL));
    THI_TRY(thi_predictor_joint_mixture(model->latent, ctx, model->weight, rows.n, rows.X, mean, covariance));
    if (model->lik != NULL) {
        thi_latent_unit(model->lik, &model->encoder, 0, &unit, &offset);
    }
    for (int64_t i = 0; i < rows.n; i++) {
        double shift = rows.offset != NULL ? rows.offset[i] : 0.0;
        mean[i] = offset + unit * (mean[i] + shift);
        covariance[i * (rows.n + 1)] += options->latent ? 0.0 : model->lik->value[0];
    }
    double scale = options->latent || model->calibration.rows == 0 ? 1.0 : model->calibration.law->square;
    for (int64_t i = 0; i < rows.n * rows.n; i++) {
        covariance[i] *= scale * unit * unit;
    }
out:
    thi_reader_close(&reader);
    thi_rows_free(&rows);
    return status;
}

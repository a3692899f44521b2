/*
 * A pass over a table in blocks, so that no table is too long; where each target has a model of its own, passes that go
 * block by block together.
 */
#include "model/predict_pass.h"

#include <math.h>
#include <string.h>

/* Limits that keep a block's arrays small. */
enum { QUANTILES_MAX = 1000, SAMPLES_MAX = 100000 };
/* Rows at a time: fewer where each has many numbers. Multiples of THI_PREDICT_BLOCK, so that no bit depends on it. */
enum { BLOCK = 4 * THI_PREDICT_BLOCK, BLOCK_WIDE = THI_PREDICT_BLOCK, WIDE = 2000 };
/* What the rows of a window may take, and the share of the memory that it stays within when that is less. */
static const double WINDOW_BYTES = 64e6, WINDOW_SHARE = 0.05;

thiele_status thi_predict_take(thiele_context *ctx, const thiele_predict_options *given, thiele_predict_options *out)
{
    const thiele_predict_options *options = out;
    thiele_status status = thi_take_options(ctx, "thiele_predict_options", out, sizeof *out, given);
    if (status != THIELE_OK) {
        return status;
    }
    if (options->quantile_count < 0 || options->quantile_count > QUANTILES_MAX || options->samples < 0 ||
        options->samples > SAMPLES_MAX) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "at most %d quantiles and %d samples per row are allowed",
                        QUANTILES_MAX, SAMPLES_MAX);
    }
    for (int q = 0; q < options->quantile_count; q++) {
        if (options->quantiles == NULL || !(options->quantiles[q] > 0.0 && options->quantiles[q] < 1.0)) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "quantiles must lie between 0 and 1");
        }
    }
    return THIELE_OK;
}

/* Why a target cannot be, for the reader. */
static const char *refuses(const void *lik, double y)
{
    return thi_likelihood_refuses(lik, y);
}

thiele_status thi_refuse_weights(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const char *what)
{
    const char *name = model->encoder.weights;
    return name == NULL || thi_table_column(table, name) < 0
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                          "%s has the column '%s' of weights, and rows of %s count once each: leave the column out, or "
                          "fit a model to all rows",
                          thi_table_source(table), name, what);
}

thi_reading thi_model_reading(const thiele_model *model, bool with_target, int unseen, bool drop_missing)
{
    bool numbers = with_target && model->lik != NULL && !thi_model_has_classes(model);
    return (thi_reading){.target = with_target,
                         .unseen_zero = unseen == THIELE_UNSEEN_ZERO,
                         .unseen_error = unseen == THIELE_UNSEEN_ERROR,
                         .drop_missing = drop_missing,
                         .likelihood = model->lik != NULL ? thiele_likelihood_name(model->lik) : model->own,
                         .refuses = numbers ? refuses : NULL,
                         .user = model->lik};
}

thi_reading thi_predict_reading(const thiele_model *model, const thiele_predict_options *options, bool with_target)
{
    return thi_model_reading(model, with_target, options->unseen, options->drop_missing != 0);
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

thiele_status thi_predict_pass_open(thi_predict_pass *p, const thiele_model *model, thiele_context *ctx,
                                    const thiele_table *table, const thiele_predict_options *options, bool with_target)
{
    *p = (thi_predict_pass){.model = model, .ctx = ctx};
    thi_driver_start(&p->driver, ctx, 0.0);
    thi_driver_phase(&p->driver, "predict", table->rows);
    thiele_status status;
    int numbers = thi_model_outputs(model, options->latent != 0) * (options->quantile_count + options->samples);
    p->block = rows_at_a_time(model, ctx, numbers);
    p->block = p->block < table->rows ? p->block : (table->rows > 0 ? table->rows : 1);
    size_t rows = (size_t)p->block;
    size_t latents = rows * (size_t)(model->latents * model->components);
    thi_reading how = thi_predict_reading(model, options, with_target);
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

void thi_predict_pass_close(thi_predict_pass *p)
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

thiele_status thi_predict_too_far(thiele_context *ctx, const char *row)
{
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "row %s: its inputs are so extreme that the prediction overflows; correct them or leave out the "
                    "row",
                    row);
}

/* Whoever waits for a slow table may ask to stop. */
static thiele_status read_rows(thi_predict_pass *p, int64_t first, int64_t count)
{
    thi_watch watch = thi_driver_watch(&p->driver, thi_table_source(p->reader.table));
    double *y = p->reader.how.target ? p->y : NULL;
    thiele_status status = thi_reader_read(&p->reader, p->ctx, first, count, p->X, y, p->offset, p->row, &p->kept);
    thi_watch_end(p->ctx, watch);
    return status;
}

static bool has_row(const thi_predict_pass *p, int64_t row)
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
static void keep_common(thi_predict_pass *p, int passes)
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

static thiele_status find_marginals(thi_predict_pass *p)
{
    int Q = p->model->latents;
    thiele_status status = THIELE_OK;
    if (p->kept > 0) {
        status = thi_model_batch_next(&p->batch, p->ctx, p->kept, p->X, p->offset, p->mu, p->v, &p->clipped);
    }
    for (int64_t i = 0; status == THIELE_OK && i < p->kept * Q * p->model->components; i++) {
        if (!isfinite(p->mu[i]) || !isfinite(p->v[i])) {
            status = thi_predict_too_far(p->ctx, THI_ROW(p->reader.table, p->row[i / Q % p->kept]));
        }
    }
    return status;
}

static thiele_status one_block(thi_predict_pass *p, int passes, int64_t first, int64_t count, thi_predict_block_fn fn,
                               void *arg)
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

thiele_status thi_predict_each_block(thi_predict_pass *p, int passes, thi_predict_block_fn fn, void *arg)
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

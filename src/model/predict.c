/* Prediction of tables: rows are read, encoded, predicted and handed on in blocks, so that no table is too long. */
#include <math.h>
#include <string.h>

#include "likelihood/gaussian.h"
#include "model/model.h"

static const thiele_predict_options defaults = THIELE_PREDICT_OPTIONS_INIT;

/* Limits that keep a block's arrays small. */
enum { QUANTILES_MAX = 1000, SAMPLES_MAX = 100000, BLOCK = THI_PREDICT_BLOCK };

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

/* What a pass over a table needs, allocated once. */
typedef struct pass {
    const thiele_model *model;
    thiele_context *ctx;
    const thiele_predict_options *options;
    thi_reader reader;
    double *X, *y, *mean, *variance, *quantiles, *samples;
    double *z; /* the standard normal's quantiles */
    int64_t *row;
    int64_t clipped;
    double started;
} pass;

static thiele_status pass_open(pass *p, const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                               const thiele_predict_options *options, bool with_target)
{
    *p = (pass){.model = model, .ctx = ctx, .options = options, .started = thi_seconds()};
    size_t D = (size_t)model->encoder.dims;
    thiele_status status;
    THI_TRY(check_options(ctx, options));
    THI_TRY(thi_reader_open(&p->reader, ctx, &model->encoder, table, with_target, options->unseen_zero != 0,
                            options->drop_missing != 0));
    THI_TRY(thi_alloc(ctx, &p->X, BLOCK * D, sizeof *p->X));
    THI_TRY(thi_alloc(ctx, &p->y, BLOCK, sizeof *p->y));
    THI_TRY(thi_alloc(ctx, &p->mean, BLOCK, sizeof *p->mean));
    THI_TRY(thi_alloc(ctx, &p->variance, BLOCK, sizeof *p->variance));
    THI_TRY(thi_alloc(ctx, &p->row, BLOCK, sizeof *p->row));
    THI_TRY(thi_alloc(ctx, &p->quantiles, BLOCK * (size_t)options->quantile_count, sizeof *p->quantiles));
    THI_TRY(thi_alloc(ctx, &p->z, (size_t)options->quantile_count, sizeof *p->z));
    for (int q = 0; q < options->quantile_count; q++) {
        p->z[q] = thi_normal_quantile(options->quantiles[q]);
    }
    THI_TRY(thi_alloc(ctx, &p->samples, BLOCK * (size_t)options->samples, sizeof *p->samples));
out:
    return status;
}

static void pass_close(pass *p)
{
    thi_reader_close(&p->reader);
    thi_free(p->X);
    thi_free(p->y);
    thi_free(p->mean);
    thi_free(p->variance);
    thi_free(p->row);
    thi_free(p->quantiles);
    thi_free(p->z);
    thi_free(p->samples);
}

/* Quantiles and draws of each row, from its mean and variance; a draw depends on the seed and the row alone. */
static void elaborate(pass *p, int64_t n)
{
    int Q = p->options->quantile_count;
    int S = p->options->samples;
    for (int64_t i = 0; i < n; i++) {
        double sd = sqrt(p->variance[i]);
        thi_stream stream = {p->ctx->seed, THI_RANDOM_SAMPLE, (uint64_t)p->row[i]};
        for (int q = 0; q < Q; q++) {
            p->quantiles[i * Q + q] = p->mean[i] + sd * p->z[q];
        }
        for (int s = 0; s < S; s++) {
            p->samples[i * S + s] = p->mean[i] + sd * thi_random_normal(stream, (uint64_t)s);
        }
    }
}

static thiele_status tell_progress(pass *p, int64_t done, int64_t total)
{
    thiele_context *ctx = p->ctx;
    if (ctx->progress == NULL) {
        return THIELE_OK;
    }
    double elapsed = thi_seconds() - p->started;
    thiele_progress progress = {"predict", done, total, NAN, elapsed, elapsed * (double)(total - done) / (double)done};
    return ctx->progress(&progress, ctx->progress_user) == 0
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_CANCELLED, "stopped after %lld of %lld rows; nothing was written",
                          (long long)done, (long long)total);
}

/* Gets every predicted block of the pass's table, with the targets where they were read. */
typedef thiele_status (*block_fn)(void *arg, const pass *p, int64_t kept);

static thiele_status each_block(pass *p, block_fn fn, void *arg)
{
    int64_t rows = p->reader.table->rows;
    for (int64_t first = 0; first < rows; first += BLOCK) {
        int64_t count = rows - first < BLOCK ? rows - first : BLOCK;
        int64_t kept;
        thiele_status status =
            thi_reader_read(&p->reader, p->ctx, first, count, p->X, p->reader.target >= 0 ? p->y : NULL, p->row, &kept);
        if (status == THIELE_OK && kept > 0) {
            status =
                thi_predictor_marginals(&p->model->predictor, p->ctx, kept, p->X, p->mean, p->variance, &p->clipped);
        }
        if (status != THIELE_OK) {
            return status;
        }
        thi_model_to_data_units(p->model, p->options->latent != 0, kept, p->mean, p->variance);
        for (int64_t i = 0; i < kept; i++) {
            if (!isfinite(p->mean[i]) || !isfinite(p->variance[i])) {
                return thi_fail(
                    p->ctx, THIELE_ERROR_NUMERIC,
                    "row %lld: its inputs are so far out that the prediction overflows; correct them or leave the "
                    "row out",
                    (long long)thi_table_row_number(p->reader.table, p->row[i]));
            }
        }
        elaborate(p, kept);
        status = fn(arg, p, kept);
        if (status == THIELE_OK) {
            status = tell_progress(p, first + count, rows);
        }
        if (status != THIELE_OK) {
            return status;
        }
    }
    if (p->clipped > 0) {
        thi_log(p->ctx, THIELE_LOG_WARNING, "rounding made the variance of %lld rows negative; it was set to zero",
                (long long)p->clipped);
    }
    return THIELE_OK;
}

/* --- to a callback ---------------------------------------------------------------------------------------------------
 */

typedef struct sink_call {
    thiele_prediction_fn sink;
    void *user;
} sink_call;

static thiele_status call_sink(void *arg, const pass *p, int64_t kept)
{
    const sink_call *call = arg;
    thiele_prediction block = {kept, p->row, p->mean, p->variance, p->quantiles, p->samples};
    return call->sink(&block, call->user);
}

thiele_status thiele_model_predict(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                   const thiele_predict_options *options, thiele_prediction_fn sink, void *user)
{
    pass p;
    sink_call call = {sink, user};
    thiele_status status = pass_open(&p, model, ctx, table, options != NULL ? options : &defaults, false);
    if (status == THIELE_OK) {
        status = each_block(&p, call_sink, &call);
    }
    pass_close(&p);
    return status;
}

/* --- to scores -------------------------------------------------------------------------------------------------------
 */

/* All rows' targets and predictions. */
typedef struct collected {
    double *y, *mean, *variance;
    int64_t n;
} collected;

static thiele_status collect(void *arg, const pass *p, int64_t kept)
{
    collected *all = arg;
    const thi_encoder *encoder = &p->model->encoder;
    for (int64_t i = 0; i < kept; i++) {
        all->y[all->n + i] = encoder->target_center + encoder->target_scale * p->y[i];
        all->mean[all->n + i] = p->mean[i];
        all->variance[all->n + i] = p->variance[i];
    }
    all->n += kept;
    return THIELE_OK;
}

thiele_status thiele_model_score(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thiele_scores *scores)
{
    pass p;
    collected all = {0};
    size_t rows = (size_t)thiele_table_rows(table);
    thiele_status status;
    THI_TRY(pass_open(&p, model, ctx, table, options != NULL ? options : &defaults, true));
    THI_TRY(thi_alloc(ctx, &all.y, rows, sizeof *all.y));
    THI_TRY(thi_alloc(ctx, &all.mean, rows, sizeof *all.mean));
    THI_TRY(thi_alloc(ctx, &all.variance, rows, sizeof *all.variance));
    THI_TRY(each_block(&p, collect, &all));
    if (all.n == 0) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_DATA, "no row is left to score"));
    }
    THI_TRY(thiele_score_gaussian(ctx, all.n, all.y, all.mean, all.variance, model->encoder.target_mean,
                                  model->encoder.target_variance, scores));
out:
    pass_close(&p);
    thi_free(all.y);
    thi_free(all.mean);
    thi_free(all.variance);
    return status;
}

/* --- rows given as numbers, and all rows together
 * --------------------------------------------------------------------- */

thiele_status thiele_model_predict_rows(const thiele_model *model, thiele_context *ctx, int64_t n, const double *x,
                                        int latent, double *mean, double *variance)
{
    int D = model->encoder.dims;
    int inputs = model->encoder.inputs;
    double *X;
    int64_t clipped = 0;
    if (n < 0 || x == NULL || mean == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "predicting rows needs their number, their values and room for the means");
    }
    thiele_status status = thi_alloc(ctx, &X, (size_t)n * (size_t)D, sizeof *X);
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        status = thi_encode_row(&model->encoder, ctx, x + i * inputs, X + i * D);
    }
    if (status == THIELE_OK) {
        status = thi_predictor_marginals(&model->predictor, ctx, n, X, mean, variance, &clipped);
    }
    if (status == THIELE_OK) {
        thi_model_to_data_units(model, latent != 0, n, mean, variance);
    }
    thi_free(X);
    return status;
}

thiele_status thiele_model_predict_joint(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                         const thiele_predict_options *options, double *mean, double *covariance)
{
    options = options != NULL ? options : &defaults;
    thi_reader reader = {0};
    double *X = NULL;
    double *y = NULL;
    int64_t n;
    double scale = model->encoder.target_scale;
    thiele_status status;
    THI_TRY(check_options(ctx, options));
    if (options->drop_missing) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a joint prediction is of all rows: it can leave none out"));
    }
    THI_TRY(thi_reader_open(&reader, ctx, &model->encoder, table, false, options->unseen_zero != 0, false));
    THI_TRY(thi_read_all(ctx, &reader, &X, &y, NULL, &n));
    THI_TRY(thi_predictor_joint(&model->predictor, ctx, n, X, mean, covariance));
    thi_model_to_data_units(model, true, n, mean, NULL);
    for (int64_t i = 0; i < n && !options->latent; i++) {
        covariance[i * (n + 1)] += model->noise;
    }
    for (int64_t i = 0; i < n * n; i++) {
        covariance[i] *= scale * scale;
    }
out:
    thi_reader_close(&reader);
    thi_free(X);
    thi_free(y);
    return status;
}

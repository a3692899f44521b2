/* Predictions of a table, to a callback or of all rows together. */
#include <math.h>
#include <string.h>

#include "model/parts.h"
#include "model/predict_pass.h"

/* --- to a callback ---------------------------------------------------------------------------------------------------
 */

typedef struct sink_call {
    thi_outputs *outputs; /* of each pass, as are options and blocks */
    thiele_predict_options *options;
    thiele_prediction *block;
    thiele_prediction_fn sink;
    void *user;
} sink_call;

static thiele_status make_block(thi_outputs *o, thi_predict_pass *p, thiele_prediction *block)
{
    thiele_status status = thi_outputs_make(o, p->ctx, p->kept, p->row, p->mu, p->v);
    for (int64_t i = 0; status == THIELE_OK && o->classes == 0 && i < p->kept * o->outputs; i++) {
        /* A mean that does not exist (Student-t with nu <= 1) is NaN. */
        if (isinf(o->mean[i])) {
            status = thi_predict_too_far(p->ctx, THI_ROW(p->reader.table, p->row[i / o->outputs]));
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

static thiele_status call_sink(void *arg, thi_predict_pass *p, int passes)
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
               : thi_fail(p->ctx, status, "the receiver of the predictions stopped at table row %s: %s",
                          p->kept > 0 ? THI_ROW(p->reader.table, p->row[0]) : 0LL, thiele_status_meaning(status));
}

thiele_status thiele_model_predict(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                   const thiele_predict_options *options, thiele_prediction_fn sink, void *user)
{
    THI_NEED(ctx, model && ctx && table && sink);
    int passes = model->parts > 0 ? model->parts : 1;
    thi_predict_pass *p = NULL;
    sink_call call = {.sink = sink, .user = user};
    thiele_predict_options taken;
    thiele_status status;
    THI_TRY(thi_predict_take(ctx, options, &taken));
    THI_TRY(thi_alloc(ctx, &p, (size_t)passes, sizeof *p));
    THI_TRY(thi_alloc(ctx, &call.outputs, (size_t)passes, sizeof *call.outputs));
    THI_TRY(thi_alloc(ctx, &call.options, (size_t)passes, sizeof *call.options));
    THI_TRY(thi_alloc(ctx, &call.block, (size_t)passes, sizeof *call.block));
    for (int i = 0; i < passes; i++) {
        const thiele_model *own = model->parts > 0 ? model->part[i] : model;
        call.options[i] = taken;
        if (passes > 1 && !taken.latent && !thi_model_has_order(own)) {
            call.options[i].quantile_count = 0; /* those of the other targets make sense */
        }
        THI_TRY(thi_predict_pass_open(&p[i], own, ctx, table, &call.options[i], false));
        THI_TRY(thi_outputs_open(&call.outputs[i], ctx, own, &call.options[i], p[i].block));
    }
    THI_TRY(thi_predict_each_block(p, passes, call_sink, &call));
out:
    for (int i = 0; i < passes; i++) {
        if (p != NULL) {
            thi_predict_pass_close(&p[i]);
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

/* --- all rows together -----------------------------------------------------------------------------------------------
 */

static thiele_status check_joint(const thiele_model *model, thiele_context *ctx, const thiele_predict_options *options)
{
    if (options->drop_missing) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a joint prediction covers all rows: none can be left out");
    }
    if (options->blend && model->latent->local != NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "blended predictions mix those of several blocks row by row, and have "
                        "no joint distribution");
    }
    if (model->latents > 1) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "a joint prediction needs a single latent function; this model has %d", model->latents);
    }
    if (!options->latent && !thi_model_is_gaussian(model)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "observations that are not Gaussian have no joint covariance: predict the latent function "
                        "instead (`latent`)");
    }
    return THIELE_OK;
}

thiele_status thiele_model_predict_joint(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                         const thiele_predict_options *options, double *mean, double *covariance)
{
    THI_NEED(ctx, model && ctx && table && mean && covariance);
    thiele_predict_options taken;
    thi_reader reader = {0};
    thi_rows rows = {0};
    double unit = 1.0;
    double offset = 0.0;
    thiele_status status;
    THI_TRY(thi_predict_take(ctx, options, &taken));
    options = &taken;
    THI_TRY(thi_parts_refuse(model, ctx, "a joint prediction is of one function"));
    THI_TRY(check_joint(model, ctx, options));
    thi_reading how = thi_predict_reading(model, options, false);
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

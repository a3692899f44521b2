/* Predictions of rows that are given as numbers, without a table. */
#include <string.h>

#include "model/outputs.h"
#include "model/parts.h"

static const thiele_predict_options defaults = THIELE_PREDICT_OPTIONS_INIT;
static const char OF_NUMBERS[] = "rows given as numbers need a single model";

/* Marginals of rows given as numbers; mu and v are allocated here (v NULL when not wanted). */
static thiele_status marginals_of(const thiele_model *model, thiele_context *ctx, int64_t n, const double *x,
                                  bool with_variance, double **mu, double **v)
{
    int D = model->encoder.dims;
    size_t latents = (size_t)n * (size_t)(model->latents * model->components);
    double *X = NULL;
    int64_t clipped = 0;
    *mu = *v = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &X, (size_t)n * (size_t)D, sizeof *X));
    THI_TRY(thi_alloc(ctx, mu, latents, sizeof **mu));
    if (with_variance) {
        THI_TRY(thi_alloc(ctx, v, latents, sizeof **v));
    }
    for (int64_t i = 0; i < n; i++) {
        THI_TRY(thi_encode_row(&model->encoder, ctx, x + i * thi_row_numbers(&model->encoder), X + i * D));
    }
    THI_TRY(thi_model_marginals(model, ctx, n, X, NULL, *mu, *v, &clipped));
out:
    thi_free(X);
    return status;
}

/* Moments, or probabilities, of rows given as numbers. */
static thiele_status predict_numbers(const thiele_model *model, thiele_context *ctx, int64_t n, const double *x,
                                     thi_outputs *o, const thiele_predict_options *options)
{
    double *mu = NULL;
    double *v = NULL;
    thiele_status status;
    THI_TRY(thi_outputs_open(o, ctx, model, options, n));
    THI_TRY(marginals_of(model, ctx, n, x, true, &mu, &v));
    THI_TRY(thi_outputs_make(o, ctx, n, NULL, mu, v));
out:
    thi_free(mu);
    thi_free(v);
    return status;
}

/* The mean of a Gaussian needs no variance: the part that costs most. */
static thiele_status mean_only(const thiele_model *model, thiele_context *ctx, int64_t n, const double *x, double *mean)
{
    const thi_target *target = model->encoder.target;
    double *mu = NULL;
    double *none = NULL;
    thiele_status status = marginals_of(model, ctx, n, x, false, &mu, &none);
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        mean[i] = target->center + target->scale * mu[i];
    }
    thi_free(mu);
    return status;
}

thiele_status thiele_model_predict_rows(const thiele_model *model, thiele_context *ctx, int64_t n, const double *x,
                                        int latent, double *mean, double *variance)
{
    THI_NEED(ctx, model && ctx);
    if (model->parts > 0) {
        return thi_parts_refuse(model, ctx, OF_NUMBERS);
    }
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    thi_outputs o = {0};
    options.latent = latent;
    if (n < 0 || x == NULL || mean == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "predicting rows needs their number, their values and an array for the means");
    }
    if (!latent && thi_model_has_classes(model)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "column '%s' holds labels: predict their probabilities",
                        model->encoder.target->name);
    }
    if (variance == NULL && thi_model_is_gaussian(model) && model->components == 1) {
        return mean_only(model, ctx, n, x, mean);
    }
    thiele_status status = predict_numbers(model, ctx, n, x, &o, &options);
    if (status == THIELE_OK) {
        memcpy(mean, o.mean, (size_t)(n * o.outputs) * sizeof *mean);
    }
    if (status == THIELE_OK && variance != NULL) {
        memcpy(variance, o.variance, (size_t)(n * o.outputs) * sizeof *variance);
    }
    thi_outputs_close(&o);
    return status;
}

thiele_status thiele_model_predict_probabilities(const thiele_model *model, thiele_context *ctx, int64_t n,
                                                 const double *x, double *probability)
{
    THI_NEED(ctx, model && ctx);
    if (model->parts > 0) {
        return thi_parts_refuse(model, ctx, OF_NUMBERS);
    }
    thi_outputs o = {0};
    if (n < 0 || x == NULL || probability == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "predicting rows needs their number, their values and an array for the probabilities");
    }
    if (!thi_model_has_classes(model)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "column '%s' holds numbers: it has no classes",
                        model->encoder.target->name);
    }
    thiele_status status = predict_numbers(model, ctx, n, x, &o, &defaults);
    if (status == THIELE_OK) {
        memcpy(probability, o.probability, (size_t)(n * o.classes) * sizeof *probability);
    }
    thi_outputs_close(&o);
    return status;
}

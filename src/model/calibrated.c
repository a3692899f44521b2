/* Predictions after calibration: moments, quantiles, draws and class probabilities of a block of rows. */
#include <math.h>

#include "likelihood/normal_quantile.h"
#include "model/outputs.h"

bool thi_outputs_calibrated(const thi_outputs *o)
{
    return !o->latent && !o->bare && o->model->calibration.rows > 0;
}

bool thi_model_is_normal(const thiele_model *model)
{
    return model->components == 1 && (thi_is_gaussian(model->lik) || model->lik->ops->separate);
}

/*
 * Quantiles of mixtures take a search over all components each. Any place and spread serve for scaled residuals, as
 * long as they are the same for all rows; a law without a variance has none in any row.
 */
static bool has_cheap_moments(const thi_outputs *o, int64_t first, int64_t count)
{
    bool finite = o->model->components > 1 && o->model->lik->ops->support == THI_SUPPORT_REAL;
    for (int64_t i = first * o->outputs; finite && i < first * o->outputs + count; i++) {
        finite = isfinite(o->mean[i]) && isfinite(o->variance[i]) && o->variance[i] > 0.0;
    }
    return finite;
}

thiele_status thi_outputs_spread(thi_outputs *o, thi_expect *expect, thiele_context *ctx, const thi_marginals *part,
                                 int64_t first)
{
    /* Phi(-1), 1/2, Phi(1) */
    static const double ends[] = {0.15865525393145705, 0.5, 0.84134474606854295};
    enum { ENDS = sizeof ends / sizeof *ends };
    thi_spread *spread = o->spread + first * o->outputs;
    int64_t count = part->n * o->outputs;
    double quantile[ENDS * THI_EXPECT_BLOCK];
    thi_support support = o->model->lik->ops->support;
    if (thi_model_is_normal(o->model) || has_cheap_moments(o, first, count)) {
        for (int64_t i = 0; i < count; i++) {
            double sd = sqrt(o->variance[first * o->outputs + i]);
            spread[i] = (thi_spread){sd, o->mean[first * o->outputs + i], sd};
        }
        return THIELE_OK;
    }
    double *all = quantile;
    thiele_status status = THIELE_OK;
    if (o->outputs > 1) {
        status = thi_alloc(ctx, &all, (size_t)(ENDS * count), sizeof *all);
    }
    if (status == THIELE_OK) {
        status = thi_mixture_quantiles(expect, ctx, part, ENDS, ends, all);
    }
    for (int64_t i = 0; status == THIELE_OK && i < count; i++) {
        spread[i] = (thi_spread){all[ENDS * i], all[ENDS * i + 1], all[ENDS * i + 2]};
        thi_spread_finish(&spread[i], support);
    }
    if (o->outputs > 1) {
        thi_free(all);
    }
    return status;
}

/* --- numbers ---------------------------------------------------------------------------------------------------------
 */

/* Output `at` of the block, whose moments and quantiles are in the units of the model yet; draws never are. */
static void calibrate_number(thi_outputs *o, thiele_context *ctx, int64_t at, int64_t row)
{
    int p = (int)(at % o->outputs), Qs = o->options->quantile_count, S = o->options->samples;
    const thi_residual_law *law = &o->model->calibration.law[p];
    const thi_target *target = &o->model->encoder.target[p];
    const thi_spread *spread = &o->spread[at];
    thi_support support = o->model->lik->ops->support;
    const thi_stream stream = {ctx->seed, THI_RANDOM_SAMPLE, (uint64_t)row * (uint64_t)o->outputs + (uint64_t)p};
    o->variance[at] = thi_calibrated_variance(law, spread, support, o->variance[at]);
    for (int q = 0; q < Qs; q++) {
        double z = thi_normal_quantile(o->options->quantiles[q]);
        o->quantiles[at * Qs + q] = thi_calibrated_value(law, spread, support, z);
    }
    for (int s = 0; s < S; s++) {
        double z = thi_random_normal(stream, (uint64_t)s);
        o->samples[at * S + s] = target->center + target->scale * thi_calibrated_value(law, spread, support, z);
    }
}

/* --- labels ----------------------------------------------------------------------------------------------------------
 */

/* Draws of the labels of a row, as the codes of the model. */
static void draw_labels(thi_outputs *o, thiele_context *ctx, int64_t at, int64_t row)
{
    const double *probability = o->probability + at * o->classes;
    const thi_stream stream = {ctx->seed, THI_RANDOM_SAMPLE, (uint64_t)row};
    for (int s = 0; s < o->options->samples; s++) {
        double left = thi_random_uniform(stream, (uint64_t)s) - probability[0];
        int c = 0;
        while (left >= 0.0 && c < o->classes - 1) {
            left -= probability[++c];
        }
        o->samples[at * o->options->samples + s] = o->model->encoder.signs ? 2 * c - 1 : c;
    }
}

void thi_outputs_calibrate(thi_outputs *o, thiele_context *ctx, const int64_t *row, int64_t first, int64_t n)
{
    if (o->classes > 0) {
        thi_temper(o->model->calibration.temperature, n, o->classes, o->probability + first * o->classes);
        for (int64_t i = first; o->options->samples > 0 && i < first + n; i++) {
            draw_labels(o, ctx, i, row[i]);
        }
        return;
    }
    for (int64_t at = first * o->outputs; at < (first + n) * o->outputs; at++) {
        calibrate_number(o, ctx, at, row != NULL ? row[at / o->outputs] : 0);
    }
}

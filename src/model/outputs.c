/* Predictions of y by the likelihood, and of the latent functions by themselves; blocks of rows on all threads. */
#include "model/outputs.h"

#include <math.h>
#include <string.h>

#include "expect/parallel.h"
#include "likelihood/normal_quantile.h"

/* Doubles of a row of a mixture's gathered marginals. */
static size_t gathered_size(const thiele_model *model)
{
    return 2 * (size_t)model->latents * (size_t)model->components;
}

int thi_model_outputs(const thiele_model *model, bool latent)
{
    return latent ? model->latents : model->encoder.targets;
}

static thiele_status check_classes(const thi_outputs *o, thiele_context *ctx)
{
    return o->options->quantile_count == 0 || thi_model_has_order(o->model)
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                          "the labels of column '%s' have no order and so no quantiles: use "
                          "their probabilities",
                          o->model->encoder.target->name);
}

/* A calibrated law is that of one output by itself. */
static thiele_status check_draws(const thi_outputs *o, thiele_context *ctx)
{
    bool together = o->outputs > 1 && !o->model->lik->ops->separate;
    return o->options->samples == 0 || !together || !thi_outputs_calibrated(o)
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                          "the targets of this model were calibrated one by one, but likelihood '%s' draws all of "
                          "them together: draw the latent functions (`latent`), or fit without `calibrate`",
                          thiele_likelihood_name(o->model->lik));
}

static thiele_status open(thi_outputs *o, thiele_context *ctx, const thiele_model *model,
                          const thiele_predict_options *options, int64_t rows, bool bare)
{
    bool latent = options->latent != 0;
    bool classes = !latent && thi_model_has_classes(model);
    *o = (thi_outputs){.model = model,
                       .options = options,
                       .latent = latent,
                       .bare = bare,
                       .outputs = thi_model_outputs(model, latent),
                       .classes = classes ? model->encoder.target->levels : 0};
    size_t numbers = (size_t)rows * (size_t)o->outputs;
    thiele_status status = THIELE_OK;
    if (!latent) {
        THI_TRY(thi_model_need_likelihood(model, ctx));
        o->providers = (thi_providers){.lik = model->lik, .method = thi_model_draws(model)};
    }
    if (!classes && (bare || thi_outputs_calibrated(o))) {
        THI_TRY(check_draws(o, ctx));
        THI_TRY(thi_alloc(ctx, &o->spread, numbers, sizeof *o->spread));
    }
    if (classes) {
        THI_TRY(check_classes(o, ctx));
        THI_TRY(thi_alloc(ctx, &o->probability, (size_t)rows * (size_t)o->classes, sizeof *o->probability));
    } else {
        THI_TRY(thi_alloc(ctx, &o->mean, numbers, sizeof *o->mean));
        THI_TRY(thi_alloc(ctx, &o->variance, numbers, sizeof *o->variance));
    }
    THI_TRY(thi_alloc(ctx, &o->quantiles, numbers * (size_t)options->quantile_count, sizeof *o->quantiles));
    THI_TRY(thi_alloc(ctx, &o->samples, numbers * (size_t)options->samples, sizeof *o->samples));
    if (model->components > 1) {
        THI_TRY(thi_alloc(ctx, &o->gathered, (size_t)rows * gathered_size(model), sizeof *o->gathered));
    }
out:
    return status;
}

thiele_status thi_outputs_open(thi_outputs *o, thiele_context *ctx, const thiele_model *model,
                               const thiele_predict_options *options, int64_t rows)
{
    return open(o, ctx, model, options, rows, false);
}

thiele_status thi_outputs_open_bare(thi_outputs *o, thiele_context *ctx, const thiele_model *model,
                                    const thiele_predict_options *options, int64_t rows)
{
    return open(o, ctx, model, options, rows, true);
}

void thi_outputs_close(thi_outputs *o)
{
    thi_free(o->mean);
    thi_free(o->variance);
    thi_free(o->probability);
    thi_free(o->quantiles);
    thi_free(o->samples);
    thi_free(o->gathered);
    thi_free(o->spread);
    thi_providers_close(&o->providers);
    *o = (thi_outputs){0};
}

double *thi_gathered_part(const thi_outputs *o, int64_t first)
{
    return o->gathered == NULL ? NULL : o->gathered + (size_t)first * gathered_size(o->model);
}

void thi_marginals_part(thi_marginals *part, const thiele_model *model, int64_t n, const double *mu, const double *v,
                        int64_t first, int64_t count, double *gathered)
{
    int Q = model->latents;
    int K = model->components;
    *part = (thi_marginals){count, K, model->weight, mu + Q * first, v + Q * first};
    if (K == 1) {
        return;
    }
    int64_t size = Q * count;
    for (int k = 0; k < K; k++) {
        memcpy(gathered + k * size, mu + Q * (k * n + first), (size_t)size * sizeof *mu);
        memcpy(gathered + (K + k) * size, v + Q * (k * n + first), (size_t)size * sizeof *v);
    }
    part->mu = gathered;
    part->v = gathered + K * size;
}

/* --- observations ----------------------------------------------------------------------------------------------------
 */

/* What a block of rows works on. */
typedef struct job {
    thi_outputs *o;
    int64_t n;
    const int64_t *row;
    const double *mu, *v;
} job;

/* Moments and quantiles of targets to the units of the data. */
static void to_data_units(thi_outputs *o, int64_t first, int64_t n)
{
    int P = o->outputs;
    int Qs = o->options->quantile_count;
    for (int64_t i = first * P; i < (first + n) * P; i++) {
        const thi_target *target = &o->model->encoder.target[i % P];
        o->mean[i] = target->center + target->scale * o->mean[i];
        o->variance[i] *= target->scale * target->scale;
        for (int q = 0; q < Qs; q++) {
            o->quantiles[i * Qs + q] = target->center + target->scale * o->quantiles[i * Qs + q];
        }
    }
}

/* The codes -1 and +1 become the numbers of the classes, 0 and 1. */
static void to_classes(const thi_outputs *o, int64_t count, double *codes)
{
    for (int64_t i = 0; o->model->encoder.signs && i < count; i++) {
        codes[i] = codes[i] > 0.0 ? 1.0 : 0.0;
    }
}

/* Draws come with the outputs of one draw together; they are handed on by output. */
static thiele_status draw(thi_outputs *o, thi_expect *expect, thiele_context *ctx, const thi_marginals *part,
                          const int64_t *row, int64_t first)
{
    int P = o->outputs;
    int64_t S = o->options->samples;
    double *draws;
    thiele_status status = thi_alloc(ctx, &draws, (size_t)(P * S * part->n), sizeof *draws);
    if (status == THIELE_OK) {
        status = thi_mixture_samples(expect, ctx, part, row, 0, S, draws);
    }
    for (int64_t i = 0; status == THIELE_OK && i < part->n; i++) {
        for (int p = 0; p < P; p++) {
            const thi_target *target = &o->model->encoder.target[p];
            double *to = o->samples + ((first + i) * P + p) * S;
            for (int64_t s = 0; s < S; s++) {
                to[s] = target->center + target->scale * draws[(i * S + s) * P + p];
            }
        }
    }
    thi_free(draws);
    return status;
}

static thiele_status observe(thi_expect *expect, thiele_context *ctx, int64_t first, int64_t n, const void *arg)
{
    const job *j = arg;
    thi_outputs *o = j->o;
    int Qs = o->options->quantile_count;
    double *gathered = thi_gathered_part(o, first);
    thi_marginals part;
    thi_marginals_part(&part, o->model, j->n, j->mu, j->v, first, n, gathered);
    double *quantiles = o->quantiles + first * o->outputs * Qs;
    bool calibrated = thi_outputs_calibrated(o);
    thiele_status status;
    if (o->classes > 0) {
        THI_TRY(thi_mixture_probabilities(expect, ctx, &part, o->probability + first * o->classes));
    } else {
        THI_TRY(
            thi_mixture_predict(expect, ctx, &part, o->mean + first * o->outputs, o->variance + first * o->outputs));
    }
    if (o->spread != NULL) {
        THI_TRY(thi_outputs_spread(o, expect, ctx, &part, first));
    }
    if (Qs > 0 && !calibrated) {
        THI_TRY(thi_mixture_quantiles(expect, ctx, &part, Qs, o->options->quantiles, quantiles));
    }
    if (o->options->samples > 0 && !calibrated) {
        THI_TRY(draw(o, expect, ctx, &part, j->row + first, first));
    }
    if (calibrated) {
        thi_outputs_calibrate(o, ctx, j->row, first, n);
    }
    if (o->classes == 0) {
        to_data_units(o, first, n);
    } else {
        to_classes(o, n * Qs, quantiles);
        to_classes(o, n * o->options->samples, o->samples + first * o->options->samples);
    }
out:
    return status;
}

thiele_status thi_outputs_observe(thi_outputs *o, thi_expect *expect, thiele_context *ctx, int64_t n,
                                  const int64_t *row, const double *mu, const double *v)
{
    job j = {o, n, row, mu, v};
    return observe(expect, ctx, 0, n, &j);
}

/* --- latent functions ------------------------------------------------------------------------------------------------
 */

/* P(f <= x) of a mixture of normals. */
static double mixture_cdf(const thiele_model *model, int64_t stride, const double *mu, const double *v, double x)
{
    double sum = 0.0;
    for (int k = 0; k < model->components; k++) {
        sum += model->weight[k] * 0.5 * erfc((mu[k * stride] - x) / sqrt(2.0 * v[k * stride]));
    }
    return sum;
}

/* The quantile of a mixture lies between the smallest and the largest of its components'. */
static double mixture_quantile(const thiele_model *model, int64_t stride, const double *mu, const double *v, double p,
                               double z)
{
    enum { HALVINGS = 100 };
    double low = INFINITY;
    double high = -INFINITY;
    for (int k = 0; k < model->components; k++) {
        double q = mu[k * stride] + z * sqrt(v[k * stride]);
        low = fmin(low, q);
        high = fmax(high, q);
    }
    for (int i = 0; i < HALVINGS && high - low > 1e-15 * fmax(fabs(low), fabs(high)); i++) {
        double middle = 0.5 * (low + high);
        if (mixture_cdf(model, stride, mu, v, middle) < p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

/* The component that a draw comes from. */
static int pick(const thiele_model *model, double u)
{
    int k = 0;
    for (double sum = model->weight[0]; k + 1 < model->components && u > sum; k++) {
        sum += model->weight[k + 1];
    }
    return k;
}

static void draw_latent(const thi_outputs *o, thiele_context *ctx, int64_t row, int latent, int64_t stride,
                        const double *mu, const double *v, double *out)
{
    const thi_stream stream = {ctx->seed, THI_RANDOM_SAMPLE, (uint64_t)row * (uint64_t)o->outputs + (uint64_t)latent};
    for (int s = 0; s < o->options->samples; s++) {
        int k = o->model->components > 1 ? pick(o->model, thi_random_uniform(stream, (uint64_t)s + (1ULL << 32))) : 0;
        out[s] = mu[k * stride] + sqrt(v[k * stride]) * thi_random_normal(stream, (uint64_t)s);
    }
}

/* One latent function at one row; mu and v point to its first component, the others follow at `stride`. */
static void latent_one(const thi_outputs *o, thiele_context *ctx, int64_t at, int64_t row, int64_t stride,
                       const double *mu, const double *v)
{
    const thiele_model *model = o->model;
    int latent = (int)(at % o->outputs);
    int Qs = o->options->quantile_count;
    int S = o->options->samples;
    double unit = 1.0;
    double offset = 0.0;
    double mean = 0.0;
    double second = 0.0;
    if (model->lik != NULL) {
        thi_latent_unit(model->lik, &model->encoder, latent, &unit, &offset);
    }
    for (int k = 0; k < model->components; k++) {
        mean += model->weight[k] * mu[k * stride];
    }
    for (int k = 0; k < model->components; k++) {
        double d = mu[k * stride] - mean;
        second += model->weight[k] * (v[k * stride] + d * d);
    }
    o->mean[at] = offset + unit * mean;
    o->variance[at] = unit * unit * second;
    for (int q = 0; q < Qs; q++) {
        double p = o->options->quantiles[q];
        double z = thi_normal_quantile(p);
        double value = model->components == 1 ? mean + z * sqrt(second) : mixture_quantile(model, stride, mu, v, p, z);
        o->quantiles[at * Qs + q] = offset + unit * value;
    }
    draw_latent(o, ctx, row, latent, stride, mu, v, o->samples + at * S);
    for (int s = 0; s < S; s++) {
        o->samples[at * S + s] = offset + unit * o->samples[at * S + s];
    }
}

thiele_status thi_outputs_make(thi_outputs *o, thiele_context *ctx, int64_t n, const int64_t *row, const double *mu,
                               const double *v)
{
    if (!o->latent) {
        job j = {o, n, row, mu, v};
        return thi_providers_rows(&o->providers, ctx, n, observe, &j);
    }
    int Q = o->outputs;
    for (int64_t at = 0; at < n * Q; at++) {
        latent_one(o, ctx, at, row != NULL ? row[at / Q] : at / Q, n * Q, mu + at, v + at);
    }
    return THIELE_OK;
}

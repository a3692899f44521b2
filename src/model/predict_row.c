/*
 * Predictions of single rows (thiele/predictor.h): encode, marginals of each latent function by posterior/single.h, and
 * from there as for tables, all in buffers that were made once. The context of the calls is a copy of that which the
 * predictor was made with, for one thread and with a message of its own; its heap lives as long as the predictor does.
 */
#include <string.h>

#include "base/blis_memory.h"
#include "model/outputs.h"
#include "model/parts.h"
#include "posterior/single.h"
#include <thiele/predictor.h>

struct thiele_predictor {
    thiele_context ctx;
    const thiele_model *model;
    thiele_predict_options options;
    thi_outputs outputs;
    thi_expect expect;     /* of observations */
    thi_single **latent;   /* one each */
    bool plain;            /* the mean needs no variance */
    bool reserved;         /* memory for one thread inside BLIS: the context that had it may be gone */
    double *X;             /* D: x in the units of the model */
    double *mu, *v, *each; /* marginals, latents x components; those of one latent function */
};

static thiele_status open_latents(thiele_predictor *p, thiele_context *ctx)
{
    const thiele_model *model = p->model;
    size_t Q = (size_t)model->latents, K = (size_t)model->components;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &p->X, (size_t)model->encoder.dims, sizeof *p->X));
    THI_TRY(thi_alloc(ctx, &p->mu, Q * K, sizeof *p->mu));
    THI_TRY(thi_alloc(ctx, &p->v, Q * K, sizeof *p->v));
    THI_TRY(thi_alloc(ctx, &p->each, 2 * K, sizeof *p->each));
    THI_TRY(thi_alloc(ctx, &p->latent, Q, sizeof(thi_single *)));
    for (size_t j = 0; j < Q; j++) {
        THI_TRY(thi_single_open(&p->latent[j], ctx, &model->latent[j], true));
    }
out:
    return status;
}

thiele_status thiele_predictor_open(thiele_predictor **out, thiele_context *ctx, const thiele_model *model,
                                    thiele_predict_what what)
{
    THI_NEED_OUT(out, ctx, ctx && model);
    thiele_predictor *p = NULL;
    bool latent = what == THIELE_PREDICT_LATENT;
    thiele_status status = thi_parts_refuse(model, ctx, "a predictor is of one model");
    if (status != THIELE_OK) {
        return status;
    }
    if (!latent && what != THIELE_PREDICT_OBSERVATION) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a predictor predicts observations or latent functions");
    }
    THI_TRY(thi_alloc(ctx, &p, 1, sizeof *p));
    p->model = model;
    p->options = (thiele_predict_options)THIELE_PREDICT_OPTIONS_INIT;
    p->options.latent = latent;
    p->plain = latent || (thi_model_is_gaussian(model) && model->components == 1);
    THI_TRY(thi_outputs_open(&p->outputs, ctx, model, &p->options, 1));
    if (!latent) {
        THI_TRY(thi_expect_open(&p->expect, ctx, model->lik, thi_model_draws(model)));
    }
    THI_TRY(open_latents(p, ctx));
    p->reserved = thi_blis_reserve(1);
    if (!p->reserved) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory: a predictor takes some 20 MB"));
    }
    p->ctx = *ctx;
    p->ctx.threads = 1;
    p->ctx.pool = NULL;
    p->ctx.log = NULL;
    p->ctx.progress = NULL;
    p->ctx.message[0] = '\0';
    *out = p;
    return THIELE_OK;
out:
    thiele_predictor_destroy(p);
    return status;
}

void thiele_predictor_destroy(thiele_predictor *predictor)
{
    thiele_predictor *p = predictor;
    if (p == NULL) {
        return;
    }
    for (int j = 0; p->latent != NULL && j < p->model->latents; j++) {
        thi_single_close(p->latent[j]);
    }
    thi_outputs_close(&p->outputs);
    thi_expect_close(&p->expect);
    thi_free(p->latent);
    thi_free(p->X);
    thi_free(p->mu);
    thi_free(p->v);
    thi_free(p->each);
    thi_blis_release(p->reserved);
    thi_free(p);
}

int thiele_predictor_outputs(const thiele_predictor *predictor)
{
    THI_NEED_OR(0, predictor);
    return predictor->outputs.outputs;
}

const char *thiele_predictor_message(const thiele_predictor *predictor)
{
    return predictor != NULL ? thiele_context_message(&predictor->ctx) : "the predictor could not be made";
}

/* mu and, where it is wanted, v (latents x components). */
static thiele_status marginals(thiele_predictor *p, const double *x, bool with_variance)
{
    int Q = p->model->latents, K = p->model->components;
    double *variance = with_variance ? p->each + K : NULL;
    thiele_status status = thi_encode_row(&p->model->encoder, &p->ctx, x, p->X);
    for (int j = 0; j < Q && status == THIELE_OK; j++) {
        status = thi_single_marginals(p->latent[j], &p->ctx, p->X, p->each, variance);
        for (int k = 0; k < K && status == THIELE_OK; k++) {
            p->mu[k * Q + j] = p->each[k];
            p->v[k * Q + j] = with_variance ? variance[k] : 0.0;
        }
    }
    return status;
}

/* From marginals to the moments or probabilities of the outputs. */
static thiele_status observe(thiele_predictor *p)
{
    static const int64_t row = 0;
    return p->options.latent ? thi_outputs_make(&p->outputs, &p->ctx, 1, &row, p->mu, p->v)
                             : thi_outputs_observe(&p->outputs, &p->expect, &p->ctx, 1, &row, p->mu, p->v);
}

thiele_status thiele_predictor_row(thiele_predictor *predictor, const double *x, double *mean, double *variance)
{
    THI_NEED(NULL, predictor);
    thiele_predictor *p = predictor;
    if (x == NULL || mean == NULL) {
        return thi_fail(&p->ctx, THIELE_ERROR_ARGUMENT, "predicting a row needs its values and an array for the means");
    }
    if (p->outputs.classes > 0) {
        return thi_fail(&p->ctx, THIELE_ERROR_UNSUPPORTED, "column '%s' holds labels: predict their probabilities",
                        p->model->encoder.target->name);
    }
    thiele_status status = marginals(p, x, variance != NULL || !p->plain);
    if (status == THIELE_OK) {
        status = observe(p);
    }
    for (int o = 0; status == THIELE_OK && o < p->outputs.outputs; o++) {
        mean[o] = p->outputs.mean[o];
        if (variance != NULL) {
            variance[o] = p->outputs.variance[o];
        }
    }
    return status;
}

thiele_status thiele_predictor_probabilities(thiele_predictor *predictor, const double *x, double *probability)
{
    THI_NEED(NULL, predictor);
    thiele_predictor *p = predictor;
    if (x == NULL || probability == NULL) {
        return thi_fail(&p->ctx, THIELE_ERROR_ARGUMENT,
                        "predicting a row needs its values and an array for the probabilities");
    }
    if (p->outputs.classes == 0) {
        return thi_fail(&p->ctx, THIELE_ERROR_UNSUPPORTED, "this predictor predicts numbers, which have no classes");
    }
    thiele_status status = marginals(p, x, true);
    if (status == THIELE_OK) {
        status = observe(p);
    }
    if (status == THIELE_OK) {
        memcpy(probability, p->outputs.probability, (size_t)p->outputs.classes * sizeof *probability);
    }
    return status;
}

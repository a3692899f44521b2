/* Marginals of all latent functions and components, in the layout that likelihoods take. */
#include "model/model.h"

/* One latent function's n x K numbers into row `latent` of Q x n x K. */
static void place(const thiele_model *model, int latent, int64_t n, const double *from, double *to)
{
    int Q = model->latents;
    for (int64_t i = 0; i < n * model->components; i++) {
        to[i * Q + latent] = from[i];
    }
}

thiele_status thi_model_batch_open(thi_model_batch *batch, thiele_context *ctx, const thiele_model *model, int64_t rows,
                                   thi_sight sight)
{
    *batch = (thi_model_batch){.model = model};
    thiele_status status = thi_alloc(ctx, &batch->latent, (size_t)model->latents, sizeof *batch->latent);
    for (int j = 0; j < model->latents && status == THIELE_OK; j++) {
        batch->latent[j] = (thi_batch){.p = &model->latent[j], .rows = rows, .sight = sight};
    }
    for (int j = 0; j < model->latents && status == THIELE_OK && model->components == 1;) {
        j += thi_batch_twins(&batch->latent[j], model->latents - j);
    }
    return status;
}

void thi_model_batch_close(thi_model_batch *batch)
{
    for (int j = 0; batch->latent != NULL && j < batch->model->latents; j++) {
        thi_batch_clear(&batch->latent[j]);
    }
    thi_free(batch->latent);
    *batch = (thi_model_batch){0};
}

thiele_status thi_model_batch_next(thi_model_batch *batch, thiele_context *ctx, int64_t n, const double *X,
                                   const double *offset, double *mu, double *v, int64_t *clipped)
{
    const thiele_model *model = batch->model;
    int K = model->components;
    int Q = model->latents;
    /* At the rows of sampled draws the variance is zero but for rounding: that is no news. */
    int64_t expected = 0;
    double *block;
    thiele_status status = thi_alloc(ctx, &block, (size_t)(2 * n * K * Q), sizeof *block);
    double *variance = v != NULL ? block + n * K * Q : NULL;
    for (int j = 0, twins; status == THIELE_OK && j < Q; j += twins) {
        twins = batch->latent[j].twins > 0 ? batch->latent[j].twins : 1;
        status = thi_batch_marginals(&batch->latent[j], ctx, n, X, block, variance,
                                     model->sampling.sampler != NULL ? &expected : clipped);
        for (int k = 0; k < twins && status == THIELE_OK; k++) {
            place(model, j + k, n, block + k * n * K, mu);
            if (v != NULL) {
                place(model, j + k, n, variance + k * n * K, v);
            }
        }
    }
    for (int64_t i = 0; status == THIELE_OK && offset != NULL && i < n * K; i++) {
        mu[i * Q] += offset[i % n];
    }
    thi_free(block);
    return status;
}

thiele_status thi_model_marginals(const thiele_model *model, thiele_context *ctx, int64_t n, const double *X,
                                  const double *offset, double *mu, double *v, int64_t *clipped)
{
    thi_model_batch batch;
    thiele_status status = thi_model_batch_open(&batch, ctx, model, n, THI_SEES_NEAREST);
    if (status == THIELE_OK) {
        status = thi_model_batch_next(&batch, ctx, n, X, offset, mu, v, clipped);
    }
    thi_model_batch_close(&batch);
    return status;
}

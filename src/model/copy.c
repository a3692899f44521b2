/* A second model like a first: of its own, so that it can go on learning while the first is used. */
#include <string.h>

#include "model/describe.h"
#include "model/parts.h"
#include "posterior/local.h"

static thiele_status copy_text(thiele_context *ctx, char **out, const char *text)
{
    return text != NULL ? thi_strdup(ctx, out, text) : THIELE_OK;
}

static thiele_status copy_block(thiele_context *ctx, void *out, const void *from, size_t count, size_t size)
{
    void *block = NULL;
    thiele_status status = from != NULL ? thi_alloc(ctx, &block, count, size) : THIELE_OK;
    if (block != NULL && count > 0) {
        memcpy(block, from, count * size);
    }
    *(void **)out = block;
    return status;
}

/* What a decoupled posterior has beyond the others; its weights are of the mean's basis. */
static thiele_status copy_mean_basis(thiele_context *ctx, thi_predictor *to, const thi_predictor *from)
{
    size_t D = (size_t)from->kernel->dims, mean_n = (size_t)from->mean_n;
    thiele_status status;
    to->mean_n = from->mean_n;
    THI_TRY(copy_block(ctx, &to->mean_basis, from->mean_basis, D * mean_n, sizeof *to->mean_basis));
    THI_TRY(copy_block(ctx, &to->mean_log_c, from->mean_log_c, D * mean_n, sizeof *to->mean_log_c));
    THI_TRY(copy_block(ctx, &to->log_c, from->log_c, D * (size_t)from->n, sizeof *to->log_c));
    THI_TRY(thi_grow(ctx, &to->a, mean_n * (size_t)from->components, sizeof *to->a));
    THI_TRY(thi_predictor_finish(to, ctx));
out:
    return status;
}

/* The rows that predictions of PIC look at; first: a copy that holds the same, or NULL. */
static thiele_status copy_local(thiele_context *ctx, thi_predictor *to, const thi_local *first, const thi_local *from)
{
    size_t bytes = (size_t)from->partition.n * sizeof *from->nu;
    thiele_status status;
    if (first != NULL) {
        THI_TRY(thi_local_share(&to->local, ctx, first));
        thi_local_renew(to->local, from->noise);
    } else {
        THI_TRY(thi_local_attach(to, ctx, &from->partition, from->X, from->y, from->noise));
    }
    to->local->cache_most = from->cache_most;
    if (from->lambda != NULL) {
        THI_TRY(thi_local_hold_sites(to->local, ctx));
        memcpy(to->local->lambda, from->lambda, bytes);
        memcpy(to->local->nu, from->nu, bytes);
    }
out:
    return status;
}

static thiele_status copy_predictor(thiele_context *ctx, thi_predictor *to, const thi_predictor *from,
                                    const thi_local *first)
{
    thi_prior prior = {from->kernel, from->mean, from->mean_parameter};
    size_t n = (size_t)from->n, weights = from->mean_basis != NULL ? (size_t)from->mean_n : n;
    thiele_status status;
    THI_TRY(thi_predictor_begin(to, ctx, &prior, from->n, from->basis, from->components));
    if (from->mean_basis != NULL) {
        THI_TRY(copy_mean_basis(ctx, to, from));
    }
    to->plus = from->plus;
    to->conditional = from->conditional;
    to->noise = from->noise;
    to->tau = from->tau;
    memcpy(to->a, from->a, weights * (size_t)from->components * sizeof *to->a);
    memcpy(to->L.data, from->L.data, n * n * sizeof *to->L.data);
    THI_TRY(copy_block(ctx, &to->scale, from->scale, n, sizeof *to->scale));
    if (from->local != NULL) {
        THI_TRY(copy_local(ctx, to, first, from->local));
    }
    if (from->R == NULL) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &to->R, (size_t)from->components, sizeof *to->R));
    for (int k = 0; k < from->components; k++) {
        const thi_matrix *R = &from->R[k];
        THI_TRY(thi_matrix_alloc(&to->R[k], ctx, R->rows, R->cols));
        memcpy(to->R[k].data, R->data, (size_t)(R->rows * R->cols) * sizeof *R->data);
    }
out:
    return status;
}

static thiele_status copy_latents(thiele_context *ctx, thiele_model *to, const thiele_model *from)
{
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &to->latent, (size_t)from->latents, sizeof *to->latent));
    for (int j = 0; j < from->latents; j++) {
        const thi_local *own = from->latent[j].local, *one = from->latent->local;
        bool shared = j > 0 && own != NULL && one != NULL && own->holders == one->holders;
        THI_TRY(copy_predictor(ctx, &to->latent[j], &from->latent[j], shared ? to->latent->local : NULL));
    }
out:
    return status;
}

static thiele_status copy_learned(thiele_context *ctx, thiele_model *to, const thiele_model *from)
{
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &to->learned, (size_t)from->learned_count, sizeof *to->learned));
    for (int i = 0; i < from->learned_count; i++) {
        thi_learned *p = &to->learned[to->learned_count++];
        *p = from->learned[i];
        p->name = p->prior = NULL;
        THI_TRY(thi_strdup(ctx, &p->name, from->learned[i].name));
        THI_TRY(copy_text(ctx, &p->prior, from->learned[i].prior));
    }
out:
    return status;
}

static thiele_status copy_encoder(thiele_context *ctx, thi_encoder *to, const thi_encoder *from)
{
    json_t *json = thi_encoder_to_json(from);
    thiele_status status = json != NULL ? thi_encoder_from_json(to, ctx, json)
                                        : thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while a model was copied");
    json_decref(json);
    return status;
}

/* Everything that is owned; the caller has copied the rest. */
static thiele_status copy_parts(thiele_context *ctx, thiele_model *to, const thiele_model *from)
{
    size_t targets = (size_t)from->encoder.targets;
    thiele_status status;
    THI_TRY(copy_text(ctx, &to->origin.path, from->origin.path));
    THI_TRY(copy_encoder(ctx, &to->encoder, &from->encoder));
    if (from->lik != NULL) {
        THI_TRY(thi_likelihood_copy(&to->lik, ctx, from->lik));
    }
    THI_TRY(copy_text(ctx, &to->own, from->own));
    THI_TRY(copy_block(ctx, &to->own_value, from->own_value, (size_t)from->own_count, sizeof *to->own_value));
    THI_TRY(copy_text(ctx, &to->expectation, from->expectation));
    THI_TRY(copy_text(ctx, &to->method, from->method));
    THI_TRY(copy_text(ctx, &to->why, from->why));
    THI_TRY(copy_text(ctx, &to->kernel_why, from->kernel_why));
    THI_TRY(copy_text(ctx, &to->noise_why, from->noise_why));
    THI_TRY(copy_text(ctx, &to->kernel, from->kernel));
    THI_TRY(copy_text(ctx, &to->posterior, from->posterior));
    THI_TRY(copy_text(ctx, &to->entropy, from->entropy));
    THI_TRY(copy_text(ctx, &to->optimizer, from->optimizer));
    THI_TRY(copy_text(ctx, &to->sampling.sampler, from->sampling.sampler));
    THI_TRY(copy_block(ctx, &to->weight, from->weight, (size_t)from->components, sizeof *to->weight));
    THI_TRY(copy_block(ctx, &to->holdout, from->holdout, targets, sizeof *to->holdout));
    THI_TRY(copy_block(ctx, &to->tails, from->tails, targets, sizeof *to->tails));
    THI_TRY(copy_block(ctx, &to->calibration.law, from->calibration.law, targets, sizeof *to->calibration.law));
    THI_TRY(copy_text(ctx, &to->stream.time, from->stream.time));
    THI_TRY(copy_block(ctx, &to->stream.all, from->stream.all, targets, sizeof *to->stream.all));
    THI_TRY(copy_block(ctx, &to->stream.recent, from->stream.recent, targets, sizeof *to->stream.recent));
    THI_TRY(thi_kept_copy(&to->kept, ctx, &from->kept));
    THI_TRY(copy_latents(ctx, to, from));
    THI_TRY(copy_learned(ctx, to, from));
out:
    return status;
}

/* Where each target has a model: all of them. */
static thiele_status copy_whole(thiele_model **out, thiele_context *ctx, const thiele_model *model)
{
    thiele_model *copy = NULL;
    thiele_status status;
    THI_TRY(thi_parts_alloc(&copy, ctx, model->parts));
    for (int p = 0; p < model->parts; p++) {
        THI_TRY(thi_model_copy(&copy->part[p], ctx, model->part[p]));
    }
    THI_TRY(copy_text(ctx, &copy->origin.path, model->origin.path));
    copy->origin.stamp = model->origin.stamp;
    THI_TRY(thi_parts_gather(copy, ctx));
    *out = copy;
    return THIELE_OK;
out:
    thiele_model_destroy(copy);
    return status;
}

thiele_status thi_model_copy(thiele_model **out, thiele_context *ctx, const thiele_model *model)
{
    thiele_model *copy = NULL;
    *out = NULL;
    if (model->parts > 0) {
        return copy_whole(out, ctx, model);
    }
    thiele_status status = thi_alloc(ctx, &copy, 1, sizeof *copy);
    if (status != THIELE_OK) {
        return status;
    }
    *copy = *model;
    copy->origin.path = NULL;
    copy->encoder = (thi_encoder){0};
    copy->lik = NULL;
    copy->own = copy->expectation = copy->method = copy->why = copy->kernel = copy->posterior = copy->optimizer = NULL;
    copy->kernel_why = copy->noise_why = copy->sampling.sampler = copy->entropy = NULL;
    copy->own_value = copy->weight = copy->loo_mean = copy->loo_variance = NULL;
    copy->loo = (thiele_scores){0};
    copy->holdout = copy->stream.all = copy->stream.recent = NULL;
    copy->stream.time = NULL;
    copy->kept = (thi_kept){0};
    copy->tails = NULL;
    copy->calibration.law = NULL;
    copy->latent = NULL;
    copy->learned = NULL;
    copy->learned_count = 0;
    status = copy_parts(ctx, copy, model);
    if (status != THIELE_OK) {
        thiele_model_destroy(copy);
        return status;
    }
    *out = copy;
    return THIELE_OK;
}

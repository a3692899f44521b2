/* Opening a learner: what it refuses, its own model, its workspaces. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fit/blocks.h"
#include "model/describe.h"
#include "model/learner.h"
#include "model/methods.h"
#include "model/parts.h"
#include "posterior/local.h"

enum { BATCH = 1024, WINDOW = 10000 };
/* Of the rows that are not forgotten, the part that a batch may be. */
static const double BATCH_SHARE = 0.25;

static thiele_status take_options(thiele_context *ctx, const thiele_update_options *given, thiele_update_options *out)
{
    const thiele_update_options *o = out;
    thiele_status status = thi_take_options(ctx, "thiele_update_options", out, sizeof *out, given);
    if (status != THIELE_OK) {
        return status;
    }
    if (o->batch < 0 || o->batch > THI_TABLE_BLOCK || o->window < 0 || !(o->deadline >= 0.0) || !(o->snapshot >= 0.0)) {
        return thi_fail(
            ctx, THIELE_ERROR_ARGUMENT,
            "a batch can have at most %d rows; batch, window, deadline and the seconds between snapshots must "
            "not be negative",
            THI_TABLE_BLOCK);
    }
    if (!(o->forget == 0.0 || (o->forget >= 1.0 && isfinite(o->forget)))) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "the number of rows to remember must be at least 1, or 0 to forget nothing");
    }
    if (!(o->half_life >= 0.0) || !isfinite(o->half_life) || (o->half_life > 0.0) != (o->time != NULL)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "forgetting by time needs both the column of times and a positive half-life in their units");
    }
    return THIELE_OK;
}

static thiele_status check_model(thiele_context *ctx, const thiele_model *model)
{
    const thi_method *method = thi_method_named(model->method);
    bool draws = model->sampling.sampler != NULL && method != NULL;
    const char *why = draws ? thi_method_lacks(method, THI_CAN_UPDATE) : NULL;
    bool local = model->latent->local != NULL;
    for (int j = 0; why == NULL && !local && j < model->latents; j++) {
        why = thi_online_refuses(&model->latent[j]);
    }
    why = why == NULL && local ? thi_blocks_online_refuses(model->latents, model->latent) : why;
    return why == NULL ? thi_model_need_likelihood(model, ctx)
                       : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "a model by method '%s' cannot be updated: %s",
                                  model->method, why);
}

/* Rows that a block may have: what the fit allowed. A partition of the user's own is never cut. */
static int64_t most_of_block(const thiele_model *model)
{
    const thi_blocks_report *b = &model->blocks;
    if (model->latent->local->partition.mark != NULL) {
        return 0;
    }
    int64_t blocks = thi_most(1, b->blocks);
    return thi_most(b->largest, THI_PARTITION_LARGEST * ((model->rows + blocks - 1) / blocks));
}

static thiele_status open_blocks(thiele_learner *l, thiele_context *ctx)
{
    const thiele_model *model = l->model;
    bool sites = model->latent->local->lambda != NULL;
    const thi_blocks_online_settings settings = {.lik = model->lik,
                                                 .expectation = model->expectation,
                                                 .most = most_of_block(model),
                                                 .exposed = model->encoder.exposure != NULL,
                                                 .weighted = model->encoder.weights != NULL,
                                                 .anew =
                                                     !sites && (model->blocks.estimate || model->blocks.passes < 1.0)};
    if (l->options.forget > 0.0 || l->options.time != NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "a model by method '%s' keeps all its rows and cannot forget any: fit by `method` pitc or fitc "
                        "instead",
                        model->method);
    }
    return thi_blocks_online_open(&l->blocks, ctx, model->latents, l->model->latent, &settings);
}

static thiele_status open_online(thiele_learner *l, thiele_context *ctx)
{
    const thiele_model *model = l->model;
    thi_online_settings settings = {
        .capacity = l->batch, .forget = l->options.forget, .expectation = model->expectation};
    thi_blocks_form form = {.weight = {[THI_RESIDUAL_NONE] = 1.0}};
    thiele_status status = THIELE_OK;
    if (thi_blocks_is_form(model->method)) {
        status = thi_blocks_form_parse(&form, ctx, model->method);
    }
    memcpy(settings.weight, form.weight, sizeof settings.weight);
    return status == THIELE_OK ? thi_online_mixture_open(&l->online, ctx, model->latents, model->latent, model->weight,
                                                         model->lik, &settings)
                               : status;
}

static thiele_status open_scores(thiele_learner *l, thiele_context *ctx)
{
    thi_stream_report *s = &l->model->stream;
    size_t targets = (size_t)l->model->encoder.targets;
    bool first = s->all == NULL;
    thiele_status status = THIELE_OK;
    if (first) {
        THI_TRY(thi_alloc(ctx, &s->all, targets, sizeof *s->all));
        THI_TRY(thi_alloc(ctx, &s->recent, targets, sizeof *s->recent));
    }
    THI_TRY(thi_alloc(ctx, &l->part, targets, sizeof *l->part));
    THI_TRY(thi_alloc(ctx, &l->filling, targets, sizeof *l->filling));
    for (size_t p = 0; p < targets; p++) {
        l->filling[p] = thi_no_scores;
        if (first) {
            s->all[p] = s->recent[p] = thi_no_scores;
        }
    }
    THI_TRY(thi_scorer_open(&l->scorer, ctx, l->model, l->batch, THI_SCORE_QUICKLY));
out:
    return status;
}

/* The learner's own model, in the form that it will be frozen into. */
static thiele_status open_model(thiele_learner *l, thiele_context *ctx, const thiele_model *model)
{
    thiele_status status;
    THI_TRY(thi_model_copy(&l->model, ctx, model));
    for (int j = 0; j < model->latents; j++) {
        THI_TRY(thi_online_prepare(&l->model->latent[j], ctx));
    }
    if (model->posterior != NULL && model->latent[0].mean_basis == NULL) {
        char family[32] = "full";
        if (model->components > 1) {
            snprintf(family, sizeof family, "mixture-full:%d", model->components);
        }
        thi_free(l->model->posterior);
        l->model->posterior = NULL;
        THI_TRY(thi_strdup(ctx, &l->model->posterior, family));
    }
out:
    return status;
}

static thiele_status learner_start(thiele_learner *l, thiele_context *ctx, const thiele_model *model)
{
    const thi_encoder *encoder = &model->encoder;
    size_t latents = (size_t)l->batch * (size_t)(model->latents * model->components);
    thiele_status status;
    THI_TRY(open_model(l, ctx, model));
    if (l->options.snapshot_file != NULL) {
        THI_TRY(thi_strdup(ctx, &l->snapshot, l->options.snapshot_file));
    }
    THI_TRY(thi_rows_alloc(&l->rows, ctx, l->batch, encoder->dims, encoder->targets, (thi_aside){.offset = true}));
    THI_TRY(thi_alloc(ctx, &l->row, (size_t)l->batch, sizeof *l->row));
    THI_TRY(thi_alloc(ctx, &l->mu, latents, sizeof *l->mu));
    THI_TRY(thi_alloc(ctx, &l->v, latents, sizeof *l->v));
    THI_TRY(open_scores(l, ctx));
    THI_TRY(thi_learner_set_clock(l, ctx));
    l->options.time = l->model->stream.time;
    THI_TRY(l->model->latent->local != NULL ? open_blocks(l, ctx) : open_online(l, ctx));
    THI_TRY(thi_learner_open_kept(l, ctx));
out:
    return status;
}

/* A learner for each part; the whole lends them its model's. */
static thiele_status open_parts(thiele_learner *l, thiele_context *ctx, const thiele_model *model)
{
    thiele_update_options options = l->options;
    thiele_status status;
    options.snapshot_file = NULL;
    THI_TRY(thi_parts_alloc(&l->model, ctx, model->parts));
    THI_TRY(thi_alloc(ctx, &l->of, (size_t)model->parts, sizeof(thiele_learner *)));
    l->parts = model->parts;
    for (int p = 0; p < l->parts; p++) {
        THI_TRY(thiele_learner_open(&l->of[p], ctx, model->part[p], &options));
        l->model->part[p] = l->of[p]->model;
    }
    if (model->origin.path != NULL) {
        THI_TRY(thi_strdup(ctx, &l->model->origin.path, model->origin.path));
        l->model->origin.stamp = model->origin.stamp;
    }
    if (l->options.snapshot_file != NULL) {
        THI_TRY(thi_strdup(ctx, &l->snapshot, l->options.snapshot_file));
    }
    THI_TRY(thi_parts_gather(l->model, ctx));
out:
    return status;
}

thiele_status thiele_learner_open(thiele_learner **out, thiele_context *ctx, const thiele_model *model,
                                  const thiele_update_options *options)
{
    THI_NEED_OUT(out, ctx, ctx && model);
    thiele_learner *l = NULL;
    thiele_update_options taken;
    thiele_status status;
    THI_TRY(take_options(ctx, options, &taken));
    if (model->parts == 0) {
        THI_TRY(check_model(ctx, model));
    }
    THI_TRY(thi_alloc(ctx, &l, 1, sizeof *l));
    l->options = taken;
    l->batch = taken.batch > 0 ? taken.batch : BATCH;
    if (taken.forget > 0.0 && (double)l->batch > BATCH_SHARE * taken.forget) {
        l->batch = (int64_t)ceil(BATCH_SHARE * taken.forget);
    }
    l->window = taken.window > 0 ? taken.window : WINDOW;
    l->saved = thi_seconds();
    l->lasting = 1.0;
    thi_driver_start(&l->driver, ctx, taken.deadline);
    thi_driver_phase(&l->driver, "stream", 0);
    THI_TRY(model->parts > 0 ? open_parts(l, ctx, model) : learner_start(l, ctx, model));
    *out = l;
out:
    if (status != THIELE_OK) {
        thiele_learner_close(l);
    }
    return status;
}

void thiele_learner_close(thiele_learner *l)
{
    if (l == NULL) {
        return;
    }
    for (int p = 0; p < l->parts; p++) {
        l->model->part[p] = NULL;
        thiele_learner_close(l->of[p]);
    }
    thi_free(l->of);
    thi_online_mixture_close(&l->online);
    thi_blocks_online_close(l->blocks);
    thi_scorer_close(&l->scorer);
    thi_rows_free(&l->rows);
    thi_free(l->row);
    thi_free(l->mu);
    thi_free(l->v);
    thi_free(l->part);
    thi_free(l->filling);
    thi_free(l->snapshot);
    thiele_model_destroy(l->model);
    thi_free(l);
}

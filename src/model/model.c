/* What a model answers about itself. */
#include "model/model.h"

#include <string.h>

void thi_model_clear_learned(thiele_model *model)
{
    for (int i = 0; i < model->learned_count; i++) {
        thi_free(model->learned[i].name);
        thi_free(model->learned[i].prior);
    }
    thi_free(model->learned);
    model->learned = NULL;
    model->learned_count = 0;
}

void thiele_model_destroy(thiele_model *model)
{
    if (model == NULL) {
        return;
    }
    for (int p = 0; p < model->parts; p++) {
        thiele_model_destroy(model->part[p]);
    }
    thi_free(model->part);
    thi_model_clear_learned(model);
    thi_free(model->origin.path);
    thi_free(model->method);
    thi_free(model->why);
    thi_free(model->kernel_why);
    thi_free(model->noise_why);
    thi_free(model->kernel);
    thi_free(model->loo_mean);
    thi_free(model->loo_variance);
    thi_free(model->holdout);
    thi_free(model->tails);
    thi_free(model->calibration.law);
    thi_free(model->expectation);
    thi_free(model->posterior);
    thi_free(model->entropy);
    thi_free(model->optimizer);
    thi_free(model->sampling.sampler);
    thi_kept_close(&model->kept);
    thi_free(model->stream.time);
    thi_free(model->stream.all);
    thi_free(model->stream.recent);
    thi_free(model->weight);
    thi_free(model->own);
    thi_free(model->own_value);
    for (int j = 0; model->latent != NULL && j < model->latents; j++) {
        thi_predictor_clear(&model->latent[j]);
    }
    thi_free(model->latent);
    thiele_likelihood_destroy(model->lik);
    thi_encoder_clear(&model->encoder);
    thi_free(model);
}

thiele_stop thiele_model_stop(const thiele_model *model)
{
    THI_NEED_OR(THIELE_STOP_FIXED, model);
    return model->stop;
}

int thiele_model_targets(const thiele_model *model)
{
    THI_NEED_OR(0, model);
    return model->parts > 0 ? model->parts : model->encoder.targets;
}

const char *thiele_model_target(const thiele_model *model, int index)
{
    THI_NEED_OR(NULL, model);
    const thiele_model *part = thiele_model_part(model, index);
    return part != NULL                                   ? part->encoder.target->name
           : index >= 0 && index < model->encoder.targets ? model->encoder.target[index].name
                                                          : NULL;
}

const thiele_model *thiele_model_part(const thiele_model *model, int target)
{
    THI_NEED_OR(NULL, model);
    return target >= 0 && target < model->parts ? model->part[target] : NULL;
}

/* Where what the parts have in common is. */
static const thiele_model *first_part(const thiele_model *model)
{
    return model->parts > 0 ? model->part[0] : model;
}

bool thi_model_has_classes(const thiele_model *model)
{
    return model->encoder.target->levels > 0;
}

const char *thi_model_draws(const thiele_model *model)
{
    const char *way = model->expectation;
    return way != NULL && thi_expect_is_drawn(model->lik, way) ? way : NULL;
}

bool thi_model_has_order(const thiele_model *model)
{
    return !thi_model_has_classes(model) || (model->lik != NULL && model->lik->ops->ordered);
}

bool thi_model_is_gaussian(const thiele_model *model)
{
    return model->lik != NULL && thi_is_gaussian(model->lik);
}

int thiele_model_classes(const thiele_model *model)
{
    THI_NEED_OR(0, model);
    return model->parts > 0 ? 0 : model->encoder.target->levels;
}

const char *thiele_model_class(const thiele_model *model, int index)
{
    THI_NEED_OR(NULL, model);
    return index >= 0 && index < thiele_model_classes(model) ? model->encoder.target->level[index] : NULL;
}

int thiele_model_latents(const thiele_model *model)
{
    THI_NEED_OR(0, model);
    return model->latents;
}

const char *thiele_model_missing(const thiele_model *model)
{
    THI_NEED_OR(NULL, model);
    return first_part(model)->encoder.missing;
}

int thiele_model_inputs(const thiele_model *model)
{
    THI_NEED_OR(0, model);
    return thi_row_numbers(&first_part(model)->encoder);
}

const char *thiele_model_input_name(const thiele_model *model, int index)
{
    THI_NEED_OR(NULL, model);
    const thi_encoder *encoder = &first_part(model)->encoder;
    return index == encoder->inputs                ? encoder->key.name
           : index >= 0 && index < encoder->inputs ? encoder->input[index].name
                                                   : NULL;
}

int thiele_model_parameters(const thiele_model *model)
{
    THI_NEED_OR(0, model);
    return model->learned_count;
}

thiele_status thiele_model_parameter(const thiele_model *model, int index, const char **name, double *value)
{
    THI_NEED(NULL, model && name && value);
    if (index < 0 || index >= model->learned_count) {
        return THIELE_ERROR_ARGUMENT;
    }
    *name = model->learned[index].name;
    *value = model->learned[index].value;
    return THIELE_OK;
}

int64_t thiele_model_loo(const thiele_model *model, const double **mean, const double **variance)
{
    THI_NEED_OR(0, model && mean && variance);
    *mean = model->loo_mean;
    *variance = model->loo_variance;
    return model->loo_mean != NULL ? model->rows : 0;
}

const thiele_scores *thiele_model_holdout(const thiele_model *model)
{
    THI_NEED_OR(NULL, model);
    return model->holdout;
}

/* --- the user's own likelihood ---------------------------------------------------------------------------------------
 */

const char *thiele_model_needs_likelihood(const thiele_model *model)
{
    THI_NEED_OR(NULL, model);
    const char *name = model->lik == NULL ? model->own : NULL;
    for (int p = 0; p < model->parts && name == NULL; p++) {
        name = thiele_model_needs_likelihood(model->part[p]);
    }
    return name;
}

thiele_status thi_model_need_likelihood(const thiele_model *model, thiele_context *ctx)
{
    return model->lik != NULL
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                          "the model's likelihood is '%s', which is not built in: give it again (`likelihood` "
                          "plugin:FILE.so); without it, only the latent functions can be predicted (`latent`)",
                          model->own);
}

/* Whether a likelihood can be the one that the model was fitted with. */
static thiele_status check_own(const thiele_model *model, thiele_context *ctx, const thiele_likelihood *lik)
{
    if (strcmp(thiele_likelihood_name(lik), model->own) != 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the model was fitted with likelihood '%s', not '%s'", model->own,
                        thiele_likelihood_name(lik));
    }
    const thi_encoder *encoder = &model->encoder;
    int labels = encoder->target->levels;
    bool same_labels = lik->ops->support == THI_SUPPORT_BINARY  ? labels == 2 && encoder->signs
                       : lik->ops->support == THI_SUPPORT_CLASS ? labels == lik->classes && !encoder->signs
                                                                : labels == 0;
    if (lik->parameters != model->own_count || lik->latents != model->latents || lik->outputs != encoder->targets ||
        !same_labels) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%s' differs in outputs, classes, latent functions or parameters from the one that "
                        "the model was fitted with",
                        model->own);
    }
    return THIELE_OK;
}

/* A value that a y may take, so that one that crashes does so in a process of its own. */
static thiele_status try_attached(const thiele_likelihood *lik, thiele_context *ctx)
{
    static const double possible[THI_SUPPORTS] = {
        [THI_SUPPORT_REAL] = 0.0,  [THI_SUPPORT_POSITIVE] = 1.0, [THI_SUPPORT_UNIT] = 0.5,
        [THI_SUPPORT_COUNT] = 0.0, [THI_SUPPORT_BINARY] = 1.0,   [THI_SUPPORT_CLASS] = 0.0,
    };
    double *y;
    thiele_status status = thi_alloc(ctx, &y, (size_t)lik->outputs, sizeof *y);
    for (int p = 0; status == THIELE_OK && p < lik->outputs; p++) {
        y[p] = possible[lik->ops->support];
    }
    if (status == THIELE_OK) {
        status = thiele_likelihood_try(lik, ctx, 1, y);
    }
    thi_free(y);
    return status;
}

/* To each part that lacks the one of this name; where none does, the first that lacks any says so. */
static thiele_status attach_parts(thiele_model *model, thiele_context *ctx, const thiele_likelihood *likelihood)
{
    thiele_model *last = model->part[0];
    thiele_status status = THIELE_OK;
    int attached = 0;
    for (int p = 0; p < model->parts && status == THIELE_OK; p++) {
        const char *name = thiele_model_needs_likelihood(model->part[p]);
        bool fits = name != NULL && strcmp(name, thiele_likelihood_name(likelihood)) == 0;
        status = fits ? thiele_model_attach(model->part[p], ctx, likelihood) : THIELE_OK;
        last = name != NULL ? model->part[p] : last;
        attached += fits;
    }
    return status == THIELE_OK && attached == 0 ? thiele_model_attach(last, ctx, likelihood) : status;
}

thiele_status thiele_model_attach(thiele_model *model, thiele_context *ctx, const thiele_likelihood *likelihood)
{
    THI_NEED(ctx, model && ctx && likelihood);
    if (model->parts > 0) {
        return attach_parts(model, ctx, likelihood);
    }
    if (model->own == NULL || model->lik != NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the model already has its likelihood");
    }
    thiele_likelihood *lik = NULL;
    thiele_status status;
    THI_TRY(check_own(model, ctx, likelihood));
    THI_TRY(thi_likelihood_copy(&lik, ctx, likelihood));
    for (int i = 0; i < model->own_count; i++) {
        THI_TRY(thi_likelihood_set_phi(lik, ctx, i, model->own_value[i]));
    }
    if (lik->library != NULL) {
        THI_TRY(try_attached(lik, ctx));
    }
    model->lik = lik;
    lik = NULL;
out:
    thiele_likelihood_destroy(lik);
    return status;
}

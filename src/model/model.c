/* What a model answers about itself. */
#include "model/model.h"

void thiele_model_destroy(thiele_model *model)
{
    if (model == NULL) {
        return;
    }
    for (int i = 0; i < model->learned_count; i++) {
        thi_free(model->learned[i].name);
    }
    thi_free(model->learned);
    thi_free(model->method);
    thi_free(model->why);
    thi_free(model->kernel);
    thi_free(model->loo_mean);
    thi_free(model->loo_variance);
    thi_predictor_clear(&model->predictor);
    thi_encoder_clear(&model->encoder);
    thi_free(model);
}

thiele_stop thiele_model_stop(const thiele_model *model)
{
    return model->stop;
}

const char *thiele_model_target(const thiele_model *model)
{
    return model->encoder.target;
}

const char *thiele_model_missing(const thiele_model *model)
{
    return model->encoder.missing;
}

int thiele_model_inputs(const thiele_model *model)
{
    return model->encoder.inputs;
}

const char *thiele_model_input_name(const thiele_model *model, int index)
{
    return index >= 0 && index < model->encoder.inputs ? model->encoder.input[index].name : NULL;
}

int thiele_model_parameters(const thiele_model *model)
{
    return model->learned_count;
}

thiele_status thiele_model_parameter(const thiele_model *model, int index, const char **name, double *value)
{
    if (index < 0 || index >= model->learned_count) {
        return THIELE_ERROR_ARGUMENT;
    }
    *name = model->learned[index].name;
    *value = model->learned[index].value;
    return THIELE_OK;
}

int64_t thiele_model_loo(const thiele_model *model, const double **mean, const double **variance)
{
    *mean = model->loo_mean;
    *variance = model->loo_variance;
    return model->rows;
}

const thiele_scores *thiele_model_holdout(const thiele_model *model)
{
    return &model->holdout;
}

void thi_model_to_data_units(const thiele_model *model, bool latent, int64_t n, double *mean, double *variance)
{
    double scale = model->encoder.target_scale;
    for (int64_t i = 0; i < n; i++) {
        mean[i] = model->encoder.target_center + scale * mean[i];
        if (variance != NULL) {
            variance[i] = scale * scale * (variance[i] + (latent ? 0.0 : model->noise));
        }
    }
}

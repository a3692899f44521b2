/* Sampling the posterior at learned hyperparameters, and what the model keeps of how it went. */
#ifndef THI_SAMPLING_H
#define THI_SAMPLING_H

#include <jansson.h>

#include "model/specify.h"

/* Forgets draws that were taken. */
void thi_sampling_clear(thiele_model *model);
/* Draws from the posterior of these rows; the predictors become mixtures of the draws. */
thiele_status thi_sample(thi_fitting *f, const thi_rows *rows);

/* --- fit.c --- */
void thi_model_clear_predictors(thiele_model *model);

/* The field "sampling" of a model's description; nothing where there was none. 0 on success. */
int thi_sampling_to_json(const thiele_model *model, json_t *json);
/* Error: FORMAT. */
thiele_status thi_sampling_from_json(thiele_model *model, thiele_context *ctx, const json_t *json);

#endif

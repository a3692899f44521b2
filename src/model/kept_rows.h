/* The rows that a model keeps for updates: from a fit, and to and from files. */
#ifndef THI_KEPT_ROWS_H
#define THI_KEPT_ROWS_H

#include <jansson.h>

#include "model/predictors.h"
#include "model/specify.h"

/* Rows that a model may keep. */
enum { THI_KEPT_MOST = 1000000 };

/* Of a fit, where an update could use them. */
thiele_status thi_keep_rows(thi_fitting *f);
/* Nothing where there are none. */
int thi_kept_to_json(const thiele_model *model, json_t *json);
/* Numbers first, then the tensors. Error: FORMAT. */
thiele_status thi_kept_from_json(thiele_model *model, thiele_context *ctx, const json_t *json);
thiele_status thi_kept_list(const thiele_model *model, thi_tensor_list *list);
thiele_status thi_kept_read(thiele_model *model, thiele_context *ctx, thi_tensors *tensors);

#endif

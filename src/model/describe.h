/* A model's facts as JSON: the part that is stored in its file, and the part that is shown. */
#ifndef THI_DESCRIBE_H
#define THI_DESCRIBE_H

#include <jansson.h>

#include "model/model.h"

/* What the file needs beside the tensors. NULL when memory is out. */
json_t *thi_model_to_json(const thiele_model *model, thiele_context *ctx);
/* Fills the model's fields from untrusted JSON; tensors come later. Error: FORMAT. */
thiele_status thi_model_from_json(thiele_model *model, thiele_context *ctx, const json_t *json);

/* The numbers of thiele_scores, so that they are read, written and pooled in one place. */
typedef struct thi_score_field {
    const char *name;
    size_t offset;
} thi_score_field;
enum { THI_SCORE_FIELDS = 13 };
extern const thi_score_field thi_score_fields[THI_SCORE_FIELDS];
json_t *thi_scores_to_json(const thiele_scores *scores);
bool thi_scores_from_json(const json_t *json, thiele_scores *scores);
/* The mean of `count` scores, each with the weight of its rows; those that have none of a score are left out. */
void thi_scores_pool(const thiele_scores *each, int count, thiele_scores *overall);

/* --- stream_report.c: the part about what was learned since the fit; nothing where there is none --- */
int thi_stream_to_json(const thiele_model *model, json_t *json);
thiele_status thi_stream_from_json(thiele_model *model, thiele_context *ctx, const json_t *json);

/* --- calibration_json.c: the same for calibration and the tails of residuals --- */
int thi_calibration_to_json(const thiele_model *model, json_t *json);
/* After the columns and the likelihood. */
thiele_status thi_calibration_from_json(thiele_model *model, thiele_context *ctx, const json_t *json);

/* --- contents.c: for the description only; training rows that the model holds, and the size of the file it is from ---
 */
int thi_contents_to_json(const thiele_model *model, json_t *json);

extern const char *const thi_stop_names[THIELE_STOP_FIXED + 1];

#endif

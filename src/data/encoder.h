/* What the files of the encoder share: encoder.c, levels.c, moments.c, encoder_json.c. */
#ifndef THI_ENCODER_H
#define THI_ENCODER_H

#include "data/data.h"

/* JSON and the model file hold UTF-8 only. */
bool thi_is_utf8(const char *text, size_t length);
/* Makes room for `inputs` inputs in a zeroed encoder. */
thiele_status thi_encoder_alloc(thi_encoder *encoder, thiele_context *ctx, int inputs);
/* Places the inputs' dimensions one behind the other, and makes center 0 and scale 1 for each. */
thiele_status thi_encoder_place(thi_encoder *encoder, thiele_context *ctx);

/* levels.c: all levels of one column of a table. Error: DATA (more than THI_LEVELS_MAX, not UTF-8). */
thiele_status thi_learn_levels(thi_input *input, thiele_context *ctx, const thiele_table *table, int column);

/* moments.c: how the kept rows of a table spread, for each dimension and, last, the target. */
typedef struct thi_moments {
    int dims;              /* D + 1 */
    int64_t count;         /* rows */
    double *mean, *square; /* square: sum of squared distances from the mean */
    double *low, *high;
} thi_moments;
/* Reads the whole table through an encoder that centres and scales nothing. */
thiele_status thi_learn_moments(thi_moments *moments, thiele_context *ctx, const thi_encoder *encoder,
                                const thiele_table *table, bool drop_missing);
void thi_moments_clear(thi_moments *moments);

#endif

/* A pass over a table: rows are read, encoded and predicted in blocks, and what is made of a block is the caller's. */
#ifndef THI_PREDICT_PASS_H
#define THI_PREDICT_PASS_H

#include "model/outputs.h"

/* What a pass over a table needs, allocated once; where each target has a model, each has a pass, block by block. */
typedef struct thi_predict_pass {
    const thiele_model *model;
    thiele_context *ctx;
    int64_t block; /* rows at a time */
    int64_t kept;  /* of the block that was read */
    thi_reader reader;
    thi_model_batch batch;
    double *X, *y, *offset, *mu, *v;
    int64_t *row;
    int64_t clipped;
    thi_driver driver;
    thi_stop stop;
} thi_predict_pass;

/* Gets the marginals of every block of the passes' table, with the targets where they were read. */
typedef thiele_status (*thi_predict_block_fn)(void *arg, thi_predict_pass *p, int passes);

/* The options of a call of the API, checked; NULL: the defaults. */
thiele_status thi_predict_take(thiele_context *ctx, const thiele_predict_options *given, thiele_predict_options *out);
thi_reading thi_predict_reading(const thiele_model *model, const thiele_predict_options *options, bool with_target);
/* The sentence of a row whose prediction overflows. */
thiele_status thi_predict_too_far(thiele_context *ctx, const char *row);
/* May be closed after an error. */
thiele_status thi_predict_pass_open(thi_predict_pass *p, const thiele_model *model, thiele_context *ctx,
                                    const thiele_table *table, const thiele_predict_options *options, bool with_target);
void thi_predict_pass_close(thi_predict_pass *p);
thiele_status thi_predict_each_block(thi_predict_pass *p, int passes, thi_predict_block_fn fn, void *arg);

#endif

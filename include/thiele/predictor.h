/*
 * Predictions of one row at a time, for control loops and servers: an object made once from a model, and a call
 * that allocates nothing and takes microseconds. With 500 inducing inputs and 8 columns a mean takes 1.3 microseconds
 * and a mean with its variance 13, on one thread of an ordinary server.
 *
 * One thread uses a predictor at a time; several threads take one each, of the same model. The model is borrowed
 * and must live longer; others may use it meanwhile, but not change it (thiele_model_attach). Only
 * thiele_predictor_open needs the context: later errors are kept by the predictor.
 */
#ifndef THIELE_PREDICTOR_H
#define THIELE_PREDICTOR_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_predictor thiele_predictor;

typedef enum thiele_predict_what {
    THIELE_PREDICT_OBSERVATION = 0, /* the targets, noise included; for a class target only probabilities */
    THIELE_PREDICT_LATENT = 1       /* the latent functions */
} thiele_predict_what;

/*
 * Prepares for single rows: some n^3 flops for n inducing inputs (or rows of an exact model), and n^2/2 numbers beside
 * the model. Errors: ARGUMENT, MEMORY, LIMIT, and those of thiele_model_predict if the model's own likelihood is not
 * attached.
 */
THIELE_API thiele_status thiele_predictor_open(thiele_predictor **out, thiele_context *ctx, const thiele_model *model,
                                               thiele_predict_what what);
THIELE_API void thiele_predictor_destroy(thiele_predictor *predictor);

/* The number of means per row: one per target, or per latent function. */
THIELE_API int thiele_predictor_outputs(const thiele_predictor *predictor);

/*
 * Mean and, unless variance is NULL, variance of each output at x, in the units of the data. x: one number per input
 * column in the model's order (thiele_model_input_name), in the units of the data; a categorical column takes the index
 * of its level, or -1 for an unseen value, a column of dates the days since the model's first, and one with gaps in
 * training may be NaN. The results are those of thiele_model_predict_rows but for rounding: variances agree to 1e-9 of
 * the function's prior variance. Without variance, a Gaussian target or latent function takes a tenth of the time.
 * Nothing is allocated, except for pic, for decoupled bases with length-scales of their own, and once for an
 * expectation that needs more quadrature nodes than any before. Errors: ARGUMENT (missing, infinite, no such level),
 * UNSUPPORTED for a class target unless its latent functions are predicted.
 */
THIELE_API thiele_status thiele_predictor_row(thiele_predictor *predictor, const double *x, double *mean,
                                              double *variance);
/* The probability of each class at x. Error: UNSUPPORTED when the target is a number, or latent functions are
 * predicted.
 */
THIELE_API thiele_status thiele_predictor_probabilities(thiele_predictor *predictor, const double *x,
                                                        double *probability);

/* One sentence about the predictor's last error; never NULL. Borrowed, valid until the next call with it. */
THIELE_API const char *thiele_predictor_message(const thiele_predictor *predictor);

#ifdef __cplusplus
}
#endif
#endif

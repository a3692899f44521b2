/*
 * Predictions of one row at a time, for control loops and servers: an object that is made once from a model, and a call
 * that allocates nothing and takes microseconds. With 500 inducing inputs and 8 columns a mean takes 1.3 microseconds
 * and a mean with its variance 13, on one thread of an ordinary server.
 *
 * One thread uses a predictor at a time; several threads take one each, of the same model. The model is borrowed and
 * must live longer; it may be used by others meanwhile, but not be changed (thiele_model_attach). The context is needed
 * by thiele_predictor_open alone: errors of later calls are the predictor's own.
 */
#ifndef THIELE_PREDICTOR_H
#define THIELE_PREDICTOR_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_predictor thiele_predictor;

typedef enum thiele_predict_what {
    THIELE_PREDICT_OBSERVATION = 0, /* the targets, noise included; of a class target only probabilities */
    THIELE_PREDICT_LATENT = 1       /* the latent functions */
} thiele_predict_what;

/*
 * Prepares for single rows: some n^3 flops for n inducing inputs (or rows of an exact model), and n^2/2 numbers beside
 * the model. Errors: ARGUMENT, MEMORY, LIMIT; as thiele_model_predict where the model's own likelihood is not attached.
 */
THIELE_API thiele_status thiele_predictor_open(thiele_predictor **out, thiele_context *ctx, const thiele_model *model,
                                               thiele_predict_what what);
THIELE_API void thiele_predictor_destroy(thiele_predictor *predictor);

/* How many numbers a row of means has: the model's targets, or its latent functions. */
THIELE_API int thiele_predictor_outputs(const thiele_predictor *predictor);

/*
 * Mean and, unless variance is NULL, variance of each output at x, in the units of the data. x: one number per input
 * column in the model's order (thiele_model_input_name), in the units of the data; a categorical column takes the index
 * of its level, or -1 for a value that is none of them, one of dates the days since the model's first, and one that
 * training lacked in some rows may be NaN. The numbers are those of thiele_model_predict_rows but for rounding:
 * variances agree to 1e-9 of that of the function before any row was seen. Without variance a Gaussian target or latent
 * function takes a tenth of the time. Nothing is allocated, but for models that are not made of points: "pic", and
 * "decoupled" with length-scales of its own; an expectation that needs more nodes of quadrature than any before makes
 * them once. Errors: ARGUMENT (missing, infinite, no such level), UNSUPPORTED for a class target unless its latent
 * functions are predicted.
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

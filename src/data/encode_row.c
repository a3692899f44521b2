/* One row of numbers, as a program gives it, as a column of X; and what stands there for a value that is missing. */
#include <math.h>
#include <string.h>

#include "data/encoder.h"

void thi_encode_missing(const thi_encoder *encoder, const thi_input *input, double *x)
{
    const int d = input->first;
    x[d] = input->levels > 0 ? 0 : (input->fill - encoder->center[d]) / encoder->scale[d];
    x[d + thi_input_width(input) - 1] = 1;
}

thiele_status thi_encode_row(const thi_encoder *encoder, thiele_context *ctx, const double *x, double *X)
{
    memset(X, 0, (size_t)encoder->dims * sizeof *X);
    for (int i = 0; i < encoder->inputs; i++) {
        const thi_input *input = &encoder->input[i];
        if (isnan(x[i]) && input->fills) {
            thi_encode_missing(encoder, input, X);
            continue;
        }
        if (!isfinite(x[i])) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "column '%s': a value is missing or infinite", input->name);
        }
        if (input->levels == 0) {
            X[input->first] = (x[i] - encoder->center[input->first]) / encoder->scale[input->first];
            if (!(fabs(X[input->first]) <= THI_INPUT_MAX)) {
                return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "column '%s': %g is too large to work with", input->name,
                                x[i]);
            }
        } else if (x[i] >= 0 && x[i] < input->levels && x[i] == floor(x[i])) {
            X[input->first + (int)x[i]] = 1;
        } else if (x[i] == -1 && input->others) {
            X[input->first + input->levels] = 1;
        } else {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "column '%s': no level %g (there are %d, counted from 0)",
                            input->name, x[i], input->levels);
        }
    }
    const thi_input *key = &encoder->key;
    if (key->name != NULL) {
        double level = x[encoder->inputs];
        if (!(level >= -1 && level < key->levels && level == floor(level))) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                            "column '%s': no level %g (there are %d, counted from 0; -1 is none of them)", key->name,
                            level, key->levels);
        }
        X[key->first] = level / encoder->scale[key->first];
    }
    return THIELE_OK;
}

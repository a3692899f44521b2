/* libFuzzer: any bytes as a model file. What loads must also describe itself and predict. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.memory_limit = (size_t)1 << 30;
    thiele_context *ctx;
    thiele_model *model;
    unsigned char *copy;
    if (thiele_context_create(&ctx, &options) != THIELE_OK) {
        return 0;
    }
    if (thi_alloc(ctx, &copy, length, 1) == THIELE_OK) {
        memcpy(copy, bytes, length);
        if (thi_model_parse(&model, ctx, "fuzz", copy, length) == THIELE_OK) {
            char *text = NULL;
            double x[64] = {0};
            double mean[64];
            double variance[64];
            bool small = thiele_model_inputs(model) <= 64 && thiele_model_targets(model) <= 64 &&
                         thiele_model_latents(model) <= 64 && thiele_model_classes(model) <= 64;
            if (thiele_model_describe(model, ctx, &text) == THIELE_OK && small) {
                (void)thiele_model_predict_rows(model, ctx, 1, x, 0, mean, variance);
                (void)thiele_model_predict_rows(model, ctx, 1, x, 1, mean, variance);
                (void)thiele_model_predict_probabilities(model, ctx, 1, x, mean);
            }
            thiele_free(text);
            thiele_model_destroy(model);
        }
        thi_free(copy);
    }
    thiele_context_destroy(ctx);
    return 0;
}

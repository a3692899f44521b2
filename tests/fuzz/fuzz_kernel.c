/*
 * A kernel from any text, over three columns with names or without. What parses is printed, the print parses to the
 * same print, and its matrix is symmetric.
 */
#include "texts.h"

#include <thiele/kernel.h>

static void same_again(const thiele_kernel *kernel, thiele_context *ctx, const char *const *names, int with_values)
{
    char *text = NULL, *again = NULL;
    thiele_kernel *copy = NULL;
    if (thiele_kernel_print(kernel, ctx, with_values, &text) != THIELE_OK ||
        thiele_kernel_parse(&copy, ctx, text, 3, names) != THIELE_OK ||
        thiele_kernel_print(copy, ctx, with_values, &again) != THIELE_OK || strcmp(text, again) != 0) {
        abort();
    }
    thiele_kernel_destroy(copy);
    thiele_free(text);
    thiele_free(again);
}

static void look_at_matrix(const thiele_kernel *kernel, thiele_context *ctx)
{
    static const double X[] = {0.0, 0.0, 0.0, 1.0, -2.0, 0.5, 3.0, 0.25, -1.0};
    double K[9];
    if (thiele_kernel_matrix(kernel, ctx, 3, X, 3, NULL, K) == THIELE_OK && K[1] != K[3] && K[1] == K[1]) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const known[] = {"age", "a b", "1x"};
    thiele_context *ctx = fuzz_context();
    thiele_kernel *kernel = NULL;
    char *text = NULL;
    if (size == 0 || ctx == NULL || thi_strndup(ctx, &text, (const char *)data + 1, size - 1) != THIELE_OK) {
        thiele_context_destroy(ctx);
        return 0;
    }
    const char *const *names = data[0] & 1 ? known : NULL;
    thiele_status status = thiele_kernel_parse(&kernel, ctx, text, 3, names);
    if (status == THIELE_OK) {
        same_again(kernel, ctx, names, 0);
        same_again(kernel, ctx, names, 1);
        look_at_matrix(kernel, ctx);
    }
    thiele_kernel_destroy(kernel);
    thi_free(text);
    fuzz_done(ctx, status);
    return 0;
}

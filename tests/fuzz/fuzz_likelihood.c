/*
 * A likelihood from any text for one to four targets or classes, and after a line break how its expectation is to be
 * had. What parses has a density and an expectation or a sentence; its print parses to the same print.
 */
#include "texts.h"

#include "likelihood/likelihood.h"

enum { MOST = 64 }; /* latent functions and parameters that are looked at */

static void same_again(const thiele_likelihood *lik, thiele_context *ctx, int outputs, int classes)
{
    thiele_likelihood *copy = NULL;
    thi_text text, again;
    thi_text_init(&text, ctx);
    thi_text_init(&again, ctx);
    thi_likelihood_print(lik, &text);
    if (text.status != THIELE_OK || thiele_likelihood_parse(&copy, ctx, text.data, outputs, classes) != THIELE_OK) {
        abort();
    }
    thi_likelihood_print(copy, &again);
    if (again.status != THIELE_OK || strcmp(text.data, again.data) != 0) {
        abort();
    }
    thiele_likelihood_destroy(copy);
    thi_text_clear(&text);
    thi_text_clear(&again);
}

static thiele_status expect(const thiele_likelihood *lik, thiele_context *ctx, const char *method)
{
    double y[4] = {1.0, 1.0, 1.0, 1.0}, mu[MOST] = {0.0}, v[MOST], E, g[MOST], h[MOST], dphi[MOST], density;
    for (int j = 0; j < MOST; j++) {
        v[j] = 0.5;
    }
    if (thiele_likelihood_latents(lik) > MOST || thiele_likelihood_parameters(lik) > MOST) {
        return THIELE_OK;
    }
    thiele_likelihood_log_density(lik, 1, y, mu, &density);
    return thiele_likelihood_expect(lik, ctx, method, 1, y, mu, v, &E, g, h, dphi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    thiele_context *ctx = fuzz_context();
    thiele_likelihood *lik = NULL;
    char *text = NULL;
    if (size == 0 || ctx == NULL || thi_strndup(ctx, &text, (const char *)data + 1, size - 1) != THIELE_OK) {
        thiele_context_destroy(ctx);
        return 0;
    }
    int outputs = 1 + (data[0] & 3), classes = (data[0] >> 2) & 3;
    char *method = strchr(text, '\n');
    if (method != NULL) {
        *method++ = '\0';
    }
    thiele_status status = thiele_likelihood_parse(&lik, ctx, text, outputs, classes);
    if (status == THIELE_OK) {
        same_again(lik, ctx, outputs, classes);
        status = expect(lik, ctx, method);
    }
    thiele_likelihood_destroy(lik);
    thi_free(text);
    fuzz_done(ctx, status);
    return 0;
}

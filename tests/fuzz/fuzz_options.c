/*
 * The texts of a fit's options, one on each line in the order of `field`; an empty line leaves an option alone. They
 * are those of a small table, with hardly any work: whatever they say, there is a model that describes itself, or a
 * sentence.
 */
#include "texts.h"

#include <thiele/thiele.h>

static const size_t field[] = {
    offsetof(thiele_fit_options, columns.target),      offsetof(thiele_fit_options, columns.inputs),
    offsetof(thiele_fit_options, prior.kernel),        offsetof(thiele_fit_options, prior.set),
    offsetof(thiele_fit_options, prior.prior),         offsetof(thiele_fit_options, prior.mean),
    offsetof(thiele_fit_options, model.likelihood),    offsetof(thiele_fit_options, model.expectation),
    offsetof(thiele_fit_options, model.method),        offsetof(thiele_fit_options, inducing.posterior),
    offsetof(thiele_fit_options, optimiser.optimiser), offsetof(thiele_fit_options, columns.classes),
    offsetof(thiele_fit_options, columns.ignore),      offsetof(thiele_fit_options, columns.categorical),
    offsetof(thiele_fit_options, columns.exposure),    offsetof(thiele_fit_options, blocks.schedule),
};
enum { FIELDS = sizeof field / sizeof *field };

/* "mc:100000": a step with so many draws takes seconds, and a fit has some in any case. */
static bool draws_many(const char *expectation)
{
    const char *count = expectation != NULL ? strchr(expectation, ':') : NULL;
    return count != NULL && strlen(count) > 5;
}

/* Those that sample take their time, and plug-ins are programs. */
static bool is_allowed(const thiele_fit_options *options)
{
    static const char *const slow[] = {"gibbs", "ess", "hmc", "mh"};
    bool allowed = options->model.likelihood == NULL || strstr(options->model.likelihood, "plugin") == NULL;
    for (size_t i = 0; i < sizeof slow / sizeof *slow && options->model.method != NULL; i++) {
        allowed = allowed && strcmp(options->model.method, slow[i]) != 0;
    }
    return allowed && !draws_many(options->model.expectation);
}

static thiele_status fit(thiele_context *ctx, const thiele_fit_options *options)
{
    static const char *const names[] = {"a", "b", "y", "n"};
    static const double values[] = {0.1, 1.0,  0.3, 1.0, 1.2, -0.5, 1.4, 0.0, 2.2, 0.3,  2.0, 1.0,
                                    3.1, -1.0, 3.3, 2.0, 4.0, 0.7,  3.9, 0.0, 5.2, -0.2, 5.0, 1.0};
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    char *text = NULL;
    thiele_status status;
    THI_TRY(thiele_table_from_rows(&table, ctx, 6, 4, values, names));
    THI_TRY(thiele_model_fit(&model, ctx, table, options));
    THI_TRY(thiele_model_describe(model, ctx, &text));
out:
    thiele_free(text);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_context *ctx = fuzz_context();
    char *text = NULL;
    if (ctx == NULL || thi_strndup(ctx, &text, (const char *)data, size) != THIELE_OK) {
        thiele_context_destroy(ctx);
        return 0;
    }
    char *line = text;
    for (int i = 0; i < FIELDS && line != NULL; i++) {
        char *next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (*line != '\0') {
            *(const char **)(void *)((char *)&options + field[i]) = line;
        }
        line = next;
    }
    options.stopping.iterations = -1;
    options.stopping.deadline = 1.0;
    options.stopping.epochs = 1;
    thiele_status status = is_allowed(&options) ? fit(ctx, &options) : THIELE_OK;
    thi_free(text);
    fuzz_done(ctx, status);
    return 0;
}

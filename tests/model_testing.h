/* What the tests of models share: a folder for files, the demonstration data, a fit that must succeed. */
#ifndef THI_MODEL_TESTING_H
#define THI_MODEL_TESTING_H

#include "testing.h"

#include <thiele/thiele.h>

#include "model/model.h"

static char folder[] = "/tmp/thiele-test-model-XXXXXX";

static inline const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static inline thiele_table *demo(thiele_context *ctx, int64_t rows, uint64_t seed)
{
    thiele_table *table = NULL;
    assert_ok(ctx, thiele_table_generate(&table, ctx, rows, seed));
    return table;
}

static inline thiele_fit_options demo_options(void)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.target = "strength";
    options.ignore = "row";
    return options;
}

static inline thiele_model *fitted(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options)
{
    thiele_model *model = NULL;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, options));
    return model;
}

#endif

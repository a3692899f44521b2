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
    options.columns.target = "strength";
    options.columns.ignore = "row";
    return options;
}

/* Saved and loaded, a model predicts the same bits. */
static inline void assert_survives(thiele_context *ctx, const thiele_model *model)
{
    char path[] = "/tmp/thiele-test-survives-XXXXXX";
    size_t count = (size_t)model->latents * (size_t)model->components;
    double *x = NULL, *before = NULL, *after = NULL;
    thiele_model *loaded = NULL;
    int64_t clipped = 0;
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    close(handle);
    assert_ok(ctx, thiele_model_save(model, ctx, path));
    /* In a context of its own: that of the test may have just enough memory for one. */
    thiele_context *own = test_context(1);
    assert_ok(own, thiele_model_load(&loaded, own, path));
    assert_int_equal(unlink(path), 0);
    assert_ok(ctx, thi_alloc(ctx, &x, (size_t)model->encoder.dims, sizeof *x));
    assert_ok(ctx, thi_alloc(ctx, &before, 2 * count, sizeof *before));
    assert_ok(ctx, thi_alloc(ctx, &after, 2 * count, sizeof *after));
    assert_ok(ctx, thi_model_marginals(model, ctx, 1, x, NULL, before, before + count, &clipped));
    assert_ok(own, thi_model_marginals(loaded, own, 1, x, NULL, after, after + count, &clipped));
    assert_memory_equal(before, after, 2 * count * sizeof *before);
    thi_free(x);
    thi_free(before);
    thi_free(after);
    thiele_model_destroy(loaded);
    thiele_context_destroy(own);
}

static inline thiele_model *fitted(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options)
{
    thiele_model *model = NULL;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, options));
    assert_survives(ctx, model);
    return model;
}

#endif

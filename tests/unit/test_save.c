/*
 * What is saved can be loaded: models beyond what the reader takes are refused before the old file goes. What is loaded
 * is within the memory limit, and says so when it isn't. Two learners of one file.
 */
#include "model_testing.h"

#include <jansson.h>
#include <malloc.h>
#include <thiele/stream.h>

#include "model/json.h"

static thiele_model *small_model(thiele_context *ctx, const char *method)
{
    thiele_table *table = demo(ctx, 30, 1);
    thiele_fit_options options = demo_options();
    options.columns.inputs = "x1,x2";
    options.columns.ignore = NULL;
    options.model.method = method;
    options.model.likelihood = strcmp(method, "hmc") == 0 ? "student-t" : NULL;
    options.inducing.inducing = strcmp(method, "collapsed") == 0 ? 6 : 0;
    options.stopping.iterations = 2;
    options.sampling.chains = strcmp(method, "hmc") == 0 ? 2 : 0;
    options.sampling.draws = strcmp(method, "hmc") == 0 ? 4 : 0;
    thiele_model *model = fitted(ctx, table, &options);
    thiele_table_destroy(table);
    return model;
}

/* A save that is refused with a message about `what`; the file at path is as it was. */
static void assert_not_saved(thiele_context *ctx, const thiele_model *model, const char *what)
{
    thiele_model *old = NULL;
    assert_fails(ctx, thiele_model_save(model, ctx, in_folder("m.thiele")), THIELE_ERROR_FORMAT, what);
    assert_non_null(strstr(thiele_context_message(ctx), "was not saved"));
    assert_ok(ctx, thiele_model_load(&old, ctx, in_folder("m.thiele")));
    thiele_model_destroy(old);
}

static void test_refused(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = small_model(ctx, "hmc");
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("m.thiele")));
    double kept = model->sampling.mixing.rhat;
    model->sampling.mixing.rhat = 2e9;
    assert_not_saved(ctx, model, "'sampling'");
    model->sampling.mixing.rhat = kept;
    kept = model->learned[0].value;
    model->learned[0].value = INFINITY;
    assert_not_saved(ctx, model, "'value'");
    model->learned[0].value = kept;
    kept = model->latent->kernel->log_value[0];
    ((double *)(uintptr_t)model->latent->kernel->log_value)[0] = 301.0;
    assert_not_saved(ctx, model, "kernel parameters");
    ((double *)(uintptr_t)model->latent->kernel->log_value)[0] = kept;
    kept = model->latent->L.data[0];
    model->latent->L.data[0] = -kept;
    assert_not_saved(ctx, model, "'factor'");
    model->latent->L.data[0] = kept;
    /* A header above the most that the reader takes. */
    enum { LONG = 65 << 20 };
    char *why = model->why;
    assert_ok(ctx, thi_alloc(ctx, &model->why, LONG + 1, 1));
    memset(model->why, 'x', LONG);
    assert_not_saved(ctx, model, "the most is 64 MB");
    thi_free(model->why);
    model->why = why;
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("m.thiele")));
    thiele_model_destroy(model);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* A chain that hardly moves has an R-hat beyond all bounds: it is written as the largest that is read. */
static void test_stuck_chains(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y"};
    double values[2 * 12];
    thiele_context *ctx = test_context(1);
    thiele_table *table = NULL;
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    for (int i = 0; i < 12; i++) {
        values[2 * i] = i;
        values[2 * i + 1] = 1e9 + 1e7 * (i % 5);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, 12, 2, values, names));
    options.columns.target = "y";
    options.model.likelihood = "poisson";
    options.model.method = "hmc";
    options.stopping.iterations = 2;
    options.sampling.chains = 2;
    options.sampling.draws = 20;
    options.sampling.step = 1e-12;
    thiele_model *model = fitted(ctx, table, &options); /* which saves and loads it */
    assert_true(model->sampling.mixing.rhat == 1e9);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static size_t json_held, json_most;

static void *counting_malloc(size_t size)
{
    void *block = malloc(size);
    json_held += malloc_usable_size(block) + sizeof(size_t);
    json_most = json_held > json_most ? json_held : json_most;
    return block;
}

static void counting_free(void *block)
{
    json_held -= block != NULL ? malloc_usable_size(block) + sizeof(size_t) : 0;
    free(block);
}

/* `unit` so many times, between brackets or braces. */
static char *repeated(thiele_context *ctx, const char *brackets, const char *unit, int times)
{
    thi_text text;
    char *out = NULL;
    thi_text_init(&text, ctx);
    thi_text_add_bytes(&text, brackets, 1);
    for (int i = 0; i < times; i++) {
        thi_text_add(&text, i > 0 ? "," : "");
        thi_text_add(&text, unit, i);
    }
    thi_text_add_bytes(&text, brackets + 1, 1);
    assert_ok(ctx, thi_text_take(&text, &out));
    return out;
}

/* What a tree takes is never more than was counted for it. */
static void test_counted(void **state)
{
    (void)state;
    static const struct {
        const char *brackets, *unit;
    } cases[] = {
        {"[]", "%d"},
        {"[]", "{}"},
        {"[]", "[]"},
        {"[]", "\"\""},
        {"[]", "[[[%d]]]"},
        {"[]", "%d.5"},
        {"{}", "\"%d\":0"},
        {"{}", "\"%d\":{}"},
        {"{}", "\"%d\":\"a,b\""},
        {"[]", "{\"a\":{\"b\":[]}}"},
        {"[]", "null"},
        {"[]", "\"\\u00e9%d\""},
        {"{}", "\"%d\":[true]"},
        {"[]", "{\"name\":\"x\",\"value\":%d.25}"},
    };
    thiele_context *ctx = test_context(1);
    json_set_alloc_funcs(counting_malloc, counting_free);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int times = 0; times < 3000; times = 3 * times + 1) {
            char *text = repeated(ctx, cases[i].brackets, cases[i].unit, times);
            thi_json json;
            json_held = json_most = 0;
            assert_ok(ctx, thi_json_parse(&json, ctx, text, strlen(text), "a text"));
            if (json_most > json.counted) {
                fail_msg("%d times %s: %zu bytes, counted as %zu", times, cases[i].unit, json_most, json.counted);
            }
            thi_json_clear(&json);
            thi_free(text);
            assert_int_equal(json_held, 0);
        }
    }
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* Loaded under every limit: it is there, or the limit is what is said; never that the file is damaged. */
static void test_limits(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = small_model(ctx, "collapsed");
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("limit.thiele")));
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
    bool loaded = false;
    for (size_t limit = 1000; !loaded; limit += 1000) {
        thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
        options.memory_limit = limit;
        assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
        thiele_status status = thiele_model_load(&model, ctx, in_folder("limit.thiele"));
        loaded = status == THIELE_OK;
        if (!loaded && (status != THIELE_ERROR_LIMIT || strstr(thiele_context_message(ctx), "a limit of") == NULL)) {
            fail_msg("%zu: %s", limit, thiele_context_message(ctx));
        }
        thiele_model_destroy(model);
        thiele_context_destroy(ctx);
        assert_true(limit < 10000000);
    }
}

/* --- learners ----------------------------------------------------------------------------------------------------- */

static thiele_learner *learner_of(thiele_context *ctx, const char *path, const thiele_table *table)
{
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_model *model = NULL;
    thiele_learner *learner = NULL;
    assert_ok(ctx, thiele_model_load(&model, ctx, path));
    assert_ok(ctx, thiele_learner_open(&learner, ctx, model, &options));
    assert_ok(ctx, thiele_learner_add(learner, ctx, table));
    thiele_model_destroy(model);
    return learner;
}

static void test_two_learners(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = small_model(ctx, "collapsed");
    thiele_table *rows = demo(ctx, 40, 2);
    const char *path = in_folder("two.thiele");
    assert_ok(ctx, thiele_model_save(model, ctx, path));
    thiele_learner *first = learner_of(ctx, path, rows), *second = learner_of(ctx, path, rows);
    assert_ok(ctx, thiele_learner_save(first, ctx, path));
    assert_ok(ctx, thiele_learner_save(first, ctx, path));
    assert_fails(ctx, thiele_learner_save(second, ctx, path), THIELE_ERROR_IO, "replaced by another program");
    /* Elsewhere it may go, and where there is no file any more. */
    char other[300];
    snprintf(other, sizeof other, "%s.other", path);
    assert_ok(ctx, thiele_learner_save(second, ctx, other));
    assert_int_equal(unlink(path), 0);
    assert_ok(ctx, thiele_learner_save(second, ctx, path));
    thiele_learner_close(first);
    thiele_learner_close(second);
    thiele_table_destroy(rows);
    thiele_model_destroy(model);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_stuck_chains), cmocka_unit_test(test_counted),
        cmocka_unit_test(test_limits),  cmocka_unit_test(test_two_learners),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

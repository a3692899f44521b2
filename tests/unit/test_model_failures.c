/* Every allocation of a small fit, save, load and predict failing in turn: ours, and those of the JSON library. */
#include "model_testing.h"

#include <errno.h>
#include <jansson.h>

/* jansson's allocations fail together with ours. */
static int64_t json_countdown = -1;
static bool json_failed;

static void *failing_malloc(size_t size)
{
    if (json_countdown == 0) {
        json_failed = true;
        errno = ENOMEM; /* as malloc does */
        return NULL;
    }
    json_countdown -= json_countdown > 0;
    return malloc(size);
}

/* A small fit, save, load, predict and score; everything is released whatever happens. */
static thiele_status whole_run(thiele_context *ctx)
{
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_model *loaded = NULL;
    char *text = NULL;
    thiele_scores scores;
    thiele_fit_options options = demo_options();
    options.stopping.iterations = 2;
    options.result.holdout = 0.25;
    options.result.calibrate = 1;
    options.prior.kernel = "se(ard)*periodic(p~3, dims=1) + linear";
    options.prior.mean = "linear";
    options.prior.prior = "noise gamma(2, 0.5)";
    thiele_predict_options predict_options = THIELE_PREDICT_OPTIONS_INIT;
    double quantiles[] = {0.05, 0.95};
    predict_options.quantiles = quantiles;
    predict_options.quantile_count = 2;
    predict_options.samples = 2;
    predict_options.id = "row,site";
    static double mean[24], covariance[24 * 24];
    thiele_status status;
    THI_TRY(thiele_table_generate(&table, ctx, 24, 1));
    THI_TRY(thiele_table_write(table, ctx, in_folder("f.csv")));
    thiele_table_destroy(table);
    table = NULL;
    THI_TRY(thiele_table_open(&table, ctx, in_folder("f.csv"), NULL));
    THI_TRY(thiele_model_fit(&model, ctx, table, &options));
    THI_TRY(thiele_model_save(model, ctx, in_folder("f.thiele")));
    THI_TRY(thiele_model_load(&loaded, ctx, in_folder("f.thiele")));
    THI_TRY(thiele_model_describe(loaded, ctx, &text));
    THI_TRY(thiele_model_predict_file(loaded, ctx, table, &predict_options, in_folder("f-out.csv")));
    THI_TRY(thiele_model_score(loaded, ctx, table, NULL, &scores));
    THI_TRY(thiele_model_predict_joint(loaded, ctx, table, NULL, mean, covariance));
out:
    thiele_free(text);
    thiele_model_destroy(model);
    thiele_model_destroy(loaded);
    thiele_table_destroy(table);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, whole_run(ctx));
    int64_t count = thi_allocations(ctx) - before;
    size_t held = thi_memory_held(ctx);
    print_message("%lld allocations\n", (long long)count);
    for (int64_t nth = 1; nth <= count; nth++) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = whole_run(ctx);
        thi_fail_allocation(ctx, 0, false);
        if (status != THIELE_ERROR_MEMORY) {
            fail_msg("allocation %lld: %s: %s", (long long)nth, thiele_status_name(status),
                     thiele_context_message(ctx));
        }
        assert_non_null(strstr(thiele_context_message(ctx), "out of memory"));
        assert_int_equal(thi_memory_held(ctx), held);
    }
    /* No temporary file is left behind by a save that failed. */
    char command[300];
    snprintf(command, sizeof command, "! ls %s | grep -q tmp", folder);
    assert_int_equal(system(command), 0);
    thiele_context_destroy(ctx);
}

/* The same for other kinds of target and method, in steps that grow so that it stays short. */
static thiele_status short_run(thiele_context *ctx, const thiele_fit_options *options)
{
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_model *loaded = NULL;
    thiele_scores scores[2];
    double density[32];
    thiele_predict_options predict_options = THIELE_PREDICT_OPTIONS_INIT;
    predict_options.samples = 2;
    thiele_status status;
    THI_TRY(thiele_table_generate(&table, ctx, 16, 1));
    THI_TRY(thiele_model_fit(&model, ctx, table, options));
    THI_TRY(thiele_model_save(model, ctx, in_folder("g.thiele")));
    THI_TRY(thiele_model_load(&loaded, ctx, in_folder("g.thiele")));
    THI_TRY(thiele_model_predict_file(loaded, ctx, table, &predict_options, in_folder("g-out.csv")));
    THI_TRY(thiele_model_score(loaded, ctx, table, NULL, scores));
    THI_TRY(thiele_model_log_densities(loaded, ctx, table, NULL, density));
    const thiele_model *both[] = {model, loaded};
    thiele_comparison compared[2];
    THI_TRY(thiele_compare(ctx, 2, both, table, NULL, NULL, compared));
out:
    thiele_model_destroy(model);
    thiele_model_destroy(loaded);
    thiele_table_destroy(table);
    return status;
}

static void test_failing_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *target, *likelihood, *method, *posterior;
    } kinds[] = {
        {"site", "softmax", "dense", NULL},
        {"strength,x2", "mixing(latents=2)", "dense", NULL},
        {"strength", NULL, "collapsed", NULL},
        {"site", "softmax", "variational", "mixture:2"},
    };
    thiele_context *ctx = test_context(1);
    size_t held = thi_memory_held(ctx);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
        options.columns.target = kinds[k].target;
        options.columns.inputs = "x1";
        options.model.likelihood = kinds[k].likelihood;
        options.model.method = kinds[k].method;
        options.inducing.posterior = kinds[k].posterior;
        options.stopping.iterations = 1;
        int64_t before = thi_allocations(ctx);
        assert_ok(ctx, short_run(ctx, &options));
        int64_t count = thi_allocations(ctx) - before;
        for (int64_t nth = 1; nth <= count; nth += 1 + nth / 60) {
            thi_fail_allocation(ctx, nth, nth % 2 == 0);
            thiele_status status = short_run(ctx, &options);
            thi_fail_allocation(ctx, 0, false);
            if (status != THIELE_ERROR_MEMORY) {
                fail_msg("%s, allocation %lld: %s", kinds[k].method, (long long)nth, thiele_context_message(ctx));
            }
            assert_int_equal(thi_memory_held(ctx), held);
        }
    }
    thiele_context_destroy(ctx);
}

static void test_failing_json(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    json_set_alloc_funcs(failing_malloc, free);
    for (int64_t nth = 0; nth < 100000; nth++) {
        json_countdown = nth;
        json_failed = false;
        thiele_status status = whole_run(ctx);
        json_countdown = -1;
        if (!json_failed) {
            assert_int_equal(status, THIELE_OK);
            break;
        }
        if (status != THIELE_ERROR_MEMORY || strstr(thiele_context_message(ctx), "out of memory") == NULL) {
            fail_msg("JSON allocation %lld: %s: %s", (long long)nth, thiele_status_name(status),
                     thiele_context_message(ctx));
        }
        nth += nth / 50;
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_failing_kinds),
        cmocka_unit_test(test_failing_json),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

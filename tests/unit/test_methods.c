/*
 * What every method must do, for each row of the list: fit, save, load, predict; and what it says it can do and no
 * more. A toy method (tests/toy) is on the list by one file and one row, and goes through all of it.
 */
#include "model/methods.h"
#include "testing.h"

#include "thiele/thiele.h"

enum { ROWS = 120 };

static thiele_table *make_table(thiele_context *ctx, int64_t rows)
{
    static const char *const names[] = {"a", "b", "y"};
    double *values = malloc((size_t)rows * 3 * sizeof *values);
    thiele_table *table = NULL;
    assert_non_null(values);
    for (int64_t i = 0; i < rows; i++) {
        double a = 6.0 * thi_random_uniform((thi_stream){1, 2, 3}, (uint64_t)(2 * i)) - 3.0;
        double b = 6.0 * thi_random_uniform((thi_stream){1, 2, 3}, (uint64_t)(2 * i + 1)) - 3.0;
        values[3 * i] = a;
        values[3 * i + 1] = b;
        values[3 * i + 2] = sin(a) + 0.3 * b + 0.1 * thi_random_normal((thi_stream){1, 2, 4}, (uint64_t)i);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, 3, values, names));
    free(values);
    return table;
}

static thiele_fit_options options_for(const thi_method *method)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.model.method = method->name;
    options.model.likelihood = method->steps != NULL ? "laplace" : "gaussian";
    options.stopping.iterations = 10;
    if (method->sampler != NULL) {
        options.sampling.draws = 1000;
    }
    if ((method->takes & THI_TAKES_BASIS) != 0 && method->objective == NULL) {
        options.inducing.inducing = 20;
    }
    return options;
}

/* What each row's density is is what the score is the mean of. */
static void check_densities(thiele_context *ctx, const thiele_model *model, const thiele_table *table, double nlpd)
{
    int64_t rows = thiele_table_rows(table);
    double *density = malloc((size_t)rows * sizeof *density);
    double sum = 0.0;
    assert_non_null(density);
    assert_ok(ctx, thiele_model_log_densities(model, ctx, table, NULL, density));
    for (int64_t i = 0; i < rows; i++) {
        sum += density[i];
    }
    assert_near(-sum / (double)rows, nlpd, 1e-9, 1e-9);
    free(density);
}

static void check_predictions(thiele_context *ctx, const thiele_model *model, const thiele_table *table)
{
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    thiele_scores scores;
    assert_ok(ctx, thiele_model_score(model, ctx, table, &options, &scores));
    assert_true(scores.smse < 0.5);
    assert_true(isfinite(scores.nlpd));
    check_densities(ctx, model, table, scores.nlpd);
}

static void check_file(thiele_context *ctx, const thi_method *method, const thiele_model *model,
                       const thiele_table *table)
{
    char path[] = "/tmp/thiele-test-methods-XXXXXX";
    char *json = NULL;
    thiele_model *again = NULL;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(ctx, thiele_model_save(model, ctx, path));
    assert_ok(ctx, thiele_model_load(&again, ctx, path));
    check_predictions(ctx, again, table);
    assert_ok(ctx, thiele_model_describe(again, ctx, &json));
    assert_non_null(strstr(json, method->evidence));
    thiele_free(json);
    thiele_model_destroy(again);
    unlink(path);
}

static bool updates(thiele_context *ctx, const thiele_model *model, const thiele_table *table)
{
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_learner *learner = NULL;
    thiele_status status = thiele_learner_open(&learner, ctx, model, &options);
    if (status == THIELE_OK) {
        assert_ok(ctx, thiele_learner_add(learner, ctx, table));
    } else {
        assert_int_equal(status, THIELE_ERROR_UNSUPPORTED);
    }
    thiele_learner_close(learner);
    return status == THIELE_OK;
}

static bool predicts_jointly(thiele_context *ctx, const thiele_model *model)
{
    enum { FEW = 5 };
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    double mean[FEW], covariance[FEW * FEW];
    thiele_table *table = make_table(ctx, FEW);
    options.latent = 1;
    thiele_status status = thiele_model_predict_joint(model, ctx, table, &options, mean, covariance);
    assert_true(status == THIELE_OK || status == THIELE_ERROR_UNSUPPORTED || status == THIELE_ERROR_ARGUMENT);
    for (int i = 0; status == THIELE_OK && i < FEW; i++) {
        assert_true(covariance[i * FEW + i] >= 0.0);
    }
    thiele_table_destroy(table);
    return status == THIELE_OK;
}

static void test_every_method(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = make_table(ctx, ROWS);
    for (int i = 0; i < thi_method_count; i++) {
        const thi_method *method = thi_methods[i];
        thiele_fit_options options = options_for(method);
        thiele_model *model = NULL;
        print_message("%s\n", method->name);
        assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
        check_predictions(ctx, model, table);
        check_file(ctx, method, model, table);
        assert_int_equal(updates(ctx, model, table), (method->can & THI_CAN_UPDATE) != 0);
        assert_int_equal(predicts_jointly(ctx, model), (method->can & THI_CAN_JOINT) != 0);
        thiele_model_destroy(model);
    }
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* Another likelihood than Gaussian noise is taken, or refused by name. */
static void test_likelihoods(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = make_table(ctx, 60);
    for (int i = 0; i < thi_method_count; i++) {
        const thi_method *method = thi_methods[i];
        thiele_fit_options options = options_for(method);
        thiele_model *model = NULL;
        options.model.likelihood = "laplace";
        if ((method->can & THI_CAN_LIKELIHOODS) != 0) {
            assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
        } else {
            assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_ARGUMENT,
                         "is for Gaussian noise");
            assert_non_null(strstr(thiele_context_message(ctx), method->name));
        }
        thiele_model_destroy(model);
    }
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* Options of each kind are refused by the methods that do not understand them, with the names of those that do. */
static void test_options(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = make_table(ctx, 30);
    for (int i = 0; i < thi_method_count; i++) {
        const thi_method *method = thi_methods[i];
        const struct {
            unsigned group;
            thiele_fit_options options;
            const char *named;
        } tries[] = {
            {THI_TAKES_BLOCKS, {.blocks.blocks = 2}, "pic"},
            {THI_TAKES_CHAINS, {.sampling.draws = 20}, "hmc"},
            {THI_TAKES_MEAN, {.decoupled.mean_inducing = 5}, "decoupled"},
            {THI_TAKES_LEAPS, {.sampling.leaps = 3}, "hmc"},
            {THI_TAKES_RATE, {.optimiser.rate = 0.1}, "variational"},
        };
        for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
            thiele_fit_options options = tries[k].options;
            thiele_model *model = NULL;
            options.size = sizeof options;
            options.columns.target = "y";
            options.model.method = method->name;
            options.model.likelihood = options_for(method).model.likelihood;
            if ((method->takes & tries[k].group) == 0 && method != &thi_method_augmented_dense) {
                assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_ARGUMENT, "has no ");
                assert_non_null(strstr(thiele_context_message(ctx), tries[k].named));
            }
        }
    }
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

static void test_lists(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    char *list = NULL, *matrix = NULL;
    assert_ok(ctx, thi_methods_listed(ctx, 0, THI_TAKES_LEAPS, &list));
    assert_string_equal(list, "hmc");
    thi_free(list);
    assert_ok(ctx, thi_methods_listed(ctx, 0, 0, &list));
    assert_non_null(strstr(list, "toy, exact"));
    thi_free(list);
    assert_ok(ctx, thi_methods_matrix(ctx, &matrix));
    assert_non_null(strstr(matrix, "| `toy` | exact regression of the first rows |"));
    thi_free(matrix);
    assert_ptr_equal(thi_method_named("toy"), &thi_method_toy);
    assert_ptr_equal(thi_method_named("0.3 fitc + 0.7 dtc"), &thi_method_fitc);
    assert_null(thi_method_named("nonsense"));
    assert_non_null(strstr(thi_method_lacks(&thi_method_exact, THI_CAN_LIKELIHOODS), "closed form"));
    thiele_context_destroy(ctx);
}

/* docs/methods.md has the table that the rows make, but for the toy. */
static void test_docs(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    char *matrix = NULL, page[30000];
    FILE *file = fopen(TESTS_FOLDER "/../docs/methods.md", "r");
    assert_non_null(file);
    size_t length = fread(page, 1, sizeof page - 1, file);
    page[length] = '\0';
    fclose(file);
    assert_ok(ctx, thi_methods_matrix(ctx, &matrix));
    char *toy = strstr(matrix, "| `toy`"), *rest = strchr(toy, '\n') + 1;
    memmove(toy, rest, strlen(rest) + 1);
    assert_null(strstr(matrix, "|  |")); /* what a method cannot do has a reason */
    if (strstr(page, matrix) == NULL) {
        fputs(matrix, stderr);
        fail_msg("docs/methods.md should have the table above");
    }
    thi_free(matrix);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method), cmocka_unit_test(test_likelihoods), cmocka_unit_test(test_options),
        cmocka_unit_test(test_lists),        cmocka_unit_test(test_docs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

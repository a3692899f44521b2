/* Every public function with NULL for each of the pointers that it needs: an error with a sentence, or nothing. */
#include "model_testing.h"

static thiele_context *ctx;
static thiele_table *table;
static thiele_model *model;
static thiele_kernel *kernel;
static thiele_likelihood *lik;

static void refused_at(thiele_status status, const char *call, int line)
{
    if (status != THIELE_ERROR_ARGUMENT) {
        print_error("line %d: %s gave %s: %s\n", line, call, thiele_status_name(status), thiele_context_message(ctx));
        _fail(__FILE__, line);
    }
}
#define refused(call) refused_at(call, #call, __LINE__)

static int open_all(void **state)
{
    (void)state;
    make_folder(state);
    ctx = test_context(1);
    table = demo(ctx, 12, 1);
    thiele_fit_options options = demo_options();
    options.stopping.iterations = -1;
    options.model.method = "collapsed";
    options.inducing.inducing = 3;
    model = fitted(ctx, table, &options);
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "se", 2, NULL));
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "gaussian", 1, 0));
    return 0;
}

static int close_all(void **state)
{
    thiele_likelihood_destroy(lik);
    thiele_kernel_destroy(kernel);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
    return remove_folder(state);
}

static void test_context_and_kernel(void **state)
{
    (void)state;
    refused(thiele_context_create(NULL, NULL));
    thiele_context_destroy(NULL);
    assert_int_equal(thiele_context_threads(NULL), 0);
    assert_non_null(thiele_context_message(NULL));
    thiele_free(NULL);
    thiele_device device;
    assert_int_equal(thiele_device_count(NULL), 0);
    refused(thiele_device_describe(NULL, 0, &device));
    refused(thiele_device_describe(ctx, 0, NULL));
    thiele_kernel *k = kernel;
    refused(thiele_kernel_parse(NULL, ctx, "se", 1, NULL));
    refused(thiele_kernel_parse(&k, NULL, "se", 1, NULL));
    assert_null(k);
    refused(thiele_kernel_parse(&k, ctx, NULL, 1, NULL));
    assert_non_null(strstr(thiele_context_message(ctx), "thiele_kernel_parse was given NULL"));
    thiele_kernel_destroy(NULL);
    char *text;
    double x[4] = {0, 1, 2, 3}, K[4];
    refused(thiele_kernel_print(NULL, ctx, 0, &text));
    refused(thiele_kernel_print(kernel, NULL, 0, &text));
    refused(thiele_kernel_print(kernel, ctx, 0, NULL));
    assert_int_equal(thiele_kernel_dims(NULL), 0);
    assert_int_equal(thiele_kernel_parameters(NULL), 0);
    assert_null(thiele_kernel_parameter_name(NULL, 0));
    thiele_kernel_get(NULL, x);
    thiele_kernel_get(kernel, NULL);
    thiele_kernel_set(NULL, x);
    thiele_kernel_set(kernel, NULL);
    refused(thiele_kernel_matrix(NULL, ctx, 2, x, 0, NULL, K));
    refused(thiele_kernel_matrix(kernel, NULL, 2, x, 0, NULL, K));
    refused(thiele_kernel_matrix(kernel, ctx, 2, NULL, 0, NULL, K));
    refused(thiele_kernel_matrix(kernel, ctx, 2, x, 0, NULL, NULL));
    refused(thiele_kernel_diagonal(NULL, ctx, 2, x, K));
    refused(thiele_kernel_diagonal(kernel, NULL, 2, x, K));
    refused(thiele_kernel_diagonal(kernel, ctx, 2, NULL, K));
    refused(thiele_kernel_diagonal(kernel, ctx, 2, x, NULL));
    refused(thiele_kernel_adjoint(NULL, ctx, 2, x, 0, NULL, K, K, NULL));
    refused(thiele_kernel_adjoint(kernel, NULL, 2, x, 0, NULL, K, K, NULL));
    refused(thiele_kernel_adjoint(kernel, ctx, 2, NULL, 0, NULL, K, K, NULL));
    refused(thiele_kernel_adjoint(kernel, ctx, 2, x, 0, NULL, NULL, K, NULL));
    refused(thiele_kernel_adjoint(kernel, ctx, 2, x, 0, NULL, K, NULL, NULL));
}

static void test_likelihood(void **state)
{
    (void)state;
    thiele_likelihood *l = lik;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    double a[2] = {1, 1}, b[2] = {1, 1}, c[2] = {1, 1}, E[2], g[2], h[2];
    refused(thiele_likelihood_parse(NULL, ctx, "gaussian", 1, 0));
    refused(thiele_likelihood_parse(&l, NULL, "gaussian", 1, 0));
    assert_null(l);
    refused(thiele_likelihood_parse(&l, ctx, NULL, 1, 0));
    refused(thiele_likelihood_custom(NULL, ctx, &spec));
    refused(thiele_likelihood_custom(&l, NULL, &spec));
    refused(thiele_likelihood_custom(&l, ctx, NULL));
    refused(thiele_likelihood_load(NULL, ctx, "x.so"));
    refused(thiele_likelihood_load(&l, NULL, "x.so"));
    refused(thiele_likelihood_load(&l, ctx, NULL));
    refused(thiele_likelihood_try(NULL, ctx, 1, a));
    refused(thiele_likelihood_try(lik, NULL, 1, a));
    refused(thiele_likelihood_try(lik, ctx, 1, NULL));
    thiele_likelihood_destroy(NULL);
    assert_null(thiele_likelihood_name(NULL));
    assert_int_equal(thiele_likelihood_outputs(NULL), 0);
    assert_int_equal(thiele_likelihood_latents(NULL), 0);
    assert_int_equal(thiele_likelihood_parameters(NULL), 0);
    assert_null(thiele_likelihood_parameter_name(NULL, 0));
    assert_true(isnan(thiele_likelihood_get_parameter(NULL, 0)));
    assert_null(thiele_likelihood_best_method(NULL));
    refused(thiele_likelihood_set_parameter(NULL, ctx, 0, 1));
    refused(thiele_likelihood_set_parameter(lik, NULL, 0, 1));
    thiele_likelihood_log_density(NULL, 1, a, b, E);
    thiele_likelihood_log_density(lik, 1, NULL, b, E);
    thiele_likelihood_log_density(lik, 1, a, NULL, E);
    thiele_likelihood_log_density(lik, 1, a, b, NULL);
    refused(thiele_likelihood_expect(NULL, ctx, NULL, 1, a, b, c, E, g, h, NULL));
    refused(thiele_likelihood_expect(lik, NULL, NULL, 1, a, b, c, E, g, h, NULL));
    refused(thiele_likelihood_expect(lik, ctx, NULL, 1, NULL, b, c, E, g, h, NULL));
    refused(thiele_likelihood_expect(lik, ctx, NULL, 1, a, NULL, c, E, g, h, NULL));
    refused(thiele_likelihood_expect(lik, ctx, NULL, 1, a, b, NULL, E, g, h, NULL));
    refused(thiele_likelihood_expect(lik, ctx, NULL, 1, a, b, c, NULL, g, h, NULL));
    refused(thiele_likelihood_expect(lik, ctx, NULL, 1, a, b, c, E, NULL, h, NULL));
    refused(thiele_likelihood_expect(lik, ctx, NULL, 1, a, b, c, E, g, NULL, NULL));
    refused(thiele_likelihood_predict(NULL, ctx, 1, b, c, g, h));
    refused(thiele_likelihood_predict(lik, NULL, 1, b, c, g, h));
    refused(thiele_likelihood_predict(lik, ctx, 1, NULL, c, g, h));
    refused(thiele_likelihood_predict(lik, ctx, 1, b, NULL, g, h));
    refused(thiele_likelihood_predict(lik, ctx, 1, b, c, NULL, h));
    refused(thiele_likelihood_predict(lik, ctx, 1, b, c, g, NULL));
    refused(thiele_likelihood_log_predictive(NULL, ctx, 1, a, b, c, g));
    refused(thiele_likelihood_log_predictive(lik, NULL, 1, a, b, c, g));
    refused(thiele_likelihood_log_predictive(lik, ctx, 1, NULL, b, c, g));
    refused(thiele_likelihood_log_predictive(lik, ctx, 1, a, NULL, c, g));
    refused(thiele_likelihood_log_predictive(lik, ctx, 1, a, b, NULL, g));
    refused(thiele_likelihood_log_predictive(lik, ctx, 1, a, b, c, NULL));
}

static void test_tables(void **state)
{
    (void)state;
    thiele_table *t = table;
    double values[2] = {1, 2};
    int64_t rows[1] = {0};
    int column;
    char cell[8];
    const char *path = "x";
    refused(thiele_table_open(NULL, ctx, "x", NULL));
    refused(thiele_table_open(&t, NULL, "x", NULL));
    assert_null(t);
    refused(thiele_table_open(&t, ctx, NULL, NULL));
    refused(thiele_table_open_files(NULL, ctx, &path, 1, NULL));
    refused(thiele_table_open_files(&t, NULL, &path, 1, NULL));
    refused(thiele_table_open_files(&t, ctx, NULL, 1, NULL));
    refused(thiele_table_from_rows(NULL, ctx, 1, 2, values, NULL));
    refused(thiele_table_from_rows(&t, NULL, 1, 2, values, NULL));
    refused(thiele_table_from_rows(&t, ctx, 1, 2, NULL, NULL));
    const thiele_column one = {.name = "a", .values = values};
    refused(thiele_table_from_columns(NULL, ctx, 1, 1, &one));
    refused(thiele_table_from_columns(&t, NULL, 1, 1, &one));
    refused(thiele_table_from_columns(&t, ctx, 1, 1, NULL));
    struct ArrowArrayStream stream = {0};
    struct ArrowSchema schema = {0};
    struct ArrowArray batch = {0};
    refused(thiele_table_from_arrow(NULL, ctx, &stream));
    refused(thiele_table_from_arrow(&t, NULL, &stream));
    refused(thiele_table_from_arrow(&t, ctx, NULL));
    refused(thiele_table_from_arrow(&t, ctx, &stream));
    refused(thiele_table_from_arrow_batch(NULL, ctx, &schema, &batch));
    refused(thiele_table_from_arrow_batch(&t, NULL, &schema, &batch));
    refused(thiele_table_from_arrow_batch(&t, ctx, NULL, &batch));
    refused(thiele_table_from_arrow_batch(&t, ctx, &schema, NULL));
    refused(thiele_table_from_arrow_batch(&t, ctx, &schema, &batch));
    assert_int_equal(thiele_table_column_is_category(NULL, 0), 0);
    refused(thiele_table_generate(NULL, ctx, 2, 0));
    refused(thiele_table_generate(&t, NULL, 2, 0));
    refused(thiele_table_select(NULL, ctx, table, rows, 1));
    refused(thiele_table_select(&t, NULL, table, rows, 1));
    refused(thiele_table_select(&t, ctx, NULL, rows, 1));
    refused(thiele_table_select(&t, ctx, table, NULL, 1));
    thiele_table_destroy(NULL);
    assert_int_equal(thiele_table_rows(NULL), 0);
    assert_int_equal(thiele_table_columns(NULL), 0);
    assert_null(thiele_table_column_name(NULL, 0));
    refused(thiele_table_find_column(NULL, ctx, "x1", &column));
    refused(thiele_table_find_column(table, NULL, "x1", &column));
    refused(thiele_table_find_column(table, ctx, NULL, &column));
    refused(thiele_table_find_column(table, ctx, "x1", NULL));
    refused(thiele_table_cell(NULL, ctx, 0, 0, cell, sizeof cell));
    refused(thiele_table_cell(table, NULL, 0, 0, cell, sizeof cell));
    refused(thiele_table_cell(table, ctx, 0, 0, NULL, sizeof cell));
    refused(thiele_table_write(NULL, ctx, in_folder("x")));
    refused(thiele_table_write(table, NULL, in_folder("x")));
    refused(thiele_table_write(table, ctx, NULL));
}

static thiele_status sink(const thiele_prediction *block, void *user)
{
    (void)block;
    (void)user;
    return THIELE_OK;
}

static void test_models(void **state)
{
    (void)state;
    thiele_model *m = model;
    thiele_fit_options options = demo_options();
    thiele_scores scores;
    char *text;
    const char *name;
    double x[12] = {0}, mean[12], covariance[144];
    const double *loo;
    int label[1] = {0};
    refused(thiele_model_fit(NULL, ctx, table, &options));
    refused(thiele_model_fit(&m, NULL, table, &options));
    assert_null(m);
    refused(thiele_model_fit(&m, ctx, NULL, &options));
    refused(thiele_model_fit(&m, ctx, table, NULL));
    thiele_model_destroy(NULL);
    refused(thiele_model_save(NULL, ctx, in_folder("x")));
    refused(thiele_model_save(model, NULL, in_folder("x")));
    refused(thiele_model_save(model, ctx, NULL));
    refused(thiele_model_load(NULL, ctx, "x"));
    refused(thiele_model_load(&m, NULL, "x"));
    refused(thiele_model_load(&m, ctx, NULL));
    refused(thiele_model_describe(NULL, ctx, &text));
    refused(thiele_model_describe(model, NULL, &text));
    refused(thiele_model_describe(model, ctx, NULL));
    thiele_model_stop(NULL);
    assert_int_equal(thiele_model_targets(NULL), 0);
    assert_null(thiele_model_target(NULL, 0));
    assert_null(thiele_model_part(NULL, 0));
    assert_int_equal(thiele_model_classes(NULL), 0);
    assert_null(thiele_model_class(NULL, 0));
    assert_int_equal(thiele_model_latents(NULL), 0);
    assert_null(thiele_model_needs_likelihood(NULL));
    refused(thiele_model_attach(NULL, ctx, lik));
    refused(thiele_model_attach(model, NULL, lik));
    refused(thiele_model_attach(model, ctx, NULL));
    assert_null(thiele_model_missing(NULL));
    assert_int_equal(thiele_model_inputs(NULL), 0);
    assert_null(thiele_model_input_name(NULL, 0));
    assert_int_equal(thiele_model_parameters(NULL), 0);
    refused(thiele_model_parameter(NULL, 0, &name, x));
    refused(thiele_model_parameter(model, 0, NULL, x));
    refused(thiele_model_parameter(model, 0, &name, NULL));
    assert_int_equal(thiele_model_loo(NULL, &loo, &loo), 0);
    assert_int_equal(thiele_model_loo(model, NULL, &loo), 0);
    assert_int_equal(thiele_model_loo(model, &loo, NULL), 0);
    assert_null(thiele_model_holdout(NULL));
    thiele_calibration calibration;
    thiele_model_calibration(NULL, &calibration);
    thiele_model_calibration(model, NULL);
    assert_true(isnan(thiele_model_stretch(NULL, 0, 0.9)));
    refused(thiele_model_predict(NULL, ctx, table, NULL, sink, NULL));
    refused(thiele_model_predict(model, NULL, table, NULL, sink, NULL));
    refused(thiele_model_predict(model, ctx, NULL, NULL, sink, NULL));
    refused(thiele_model_predict(model, ctx, table, NULL, NULL, NULL));
    refused(thiele_model_predict_file(NULL, ctx, table, NULL, in_folder("x")));
    refused(thiele_model_predict_file(model, NULL, table, NULL, in_folder("x")));
    refused(thiele_model_predict_file(model, ctx, NULL, NULL, in_folder("x")));
    refused(thiele_model_predict_file(model, ctx, table, NULL, NULL));
    refused(thiele_model_predict_rows(NULL, ctx, 1, x, 0, mean, NULL));
    refused(thiele_model_predict_rows(model, NULL, 1, x, 0, mean, NULL));
    refused(thiele_model_predict_rows(model, ctx, 1, NULL, 0, mean, NULL));
    refused(thiele_model_predict_rows(model, ctx, 1, x, 0, NULL, NULL));
    refused(thiele_model_predict_probabilities(NULL, ctx, 1, x, mean));
    refused(thiele_model_predict_probabilities(model, NULL, 1, x, mean));
    refused(thiele_model_predict_probabilities(model, ctx, 1, NULL, mean));
    refused(thiele_model_predict_probabilities(model, ctx, 1, x, NULL));
    refused(thiele_model_predict_joint(NULL, ctx, table, NULL, mean, covariance));
    refused(thiele_model_predict_joint(model, NULL, table, NULL, mean, covariance));
    refused(thiele_model_predict_joint(model, ctx, NULL, NULL, mean, covariance));
    refused(thiele_model_predict_joint(model, ctx, table, NULL, NULL, covariance));
    refused(thiele_model_predict_joint(model, ctx, table, NULL, mean, NULL));
    refused(thiele_model_score(NULL, ctx, table, NULL, &scores));
    refused(thiele_model_score(model, NULL, table, NULL, &scores));
    refused(thiele_model_score(model, ctx, NULL, NULL, &scores));
    refused(thiele_model_score(model, ctx, table, NULL, NULL));
    refused(thiele_model_log_densities(NULL, ctx, table, NULL, mean));
    refused(thiele_model_log_densities(model, NULL, table, NULL, mean));
    refused(thiele_model_log_densities(model, ctx, NULL, NULL, mean));
    refused(thiele_model_log_densities(model, ctx, table, NULL, NULL));
    int64_t confusion[4];
    refused(thiele_model_confusion(NULL, ctx, table, NULL, &scores, confusion));
    refused(thiele_model_confusion(model, NULL, table, NULL, &scores, confusion));
    refused(thiele_model_confusion(model, ctx, NULL, NULL, &scores, confusion));
    refused(thiele_model_confusion(model, ctx, table, NULL, NULL, confusion));
    refused(thiele_model_confusion(model, ctx, table, NULL, &scores, NULL));
    const thiele_model *both[] = {model, NULL};
    thiele_comparison compared[2];
    refused(thiele_compare(NULL, 1, both, table, NULL, NULL, compared));
    refused(thiele_compare(ctx, 0, both, table, NULL, NULL, compared));
    refused(thiele_compare(ctx, 2, both, table, NULL, NULL, compared));
    refused(thiele_compare(ctx, 1, NULL, table, NULL, NULL, compared));
    refused(thiele_compare(ctx, 1, both, NULL, NULL, NULL, compared));
    refused(thiele_compare(ctx, 1, both, table, NULL, NULL, NULL));
    refused(thiele_compare(ctx, 1, both, table, NULL, "nothing", compared));
    thiele_sums *sums, *none;
    thiele_model *conditioned;
    unsigned char *bytes;
    size_t length;
    assert_ok(ctx, thiele_sums_open(&sums, ctx, model));
    refused(thiele_sums_open(NULL, ctx, model));
    refused(thiele_sums_open(&none, NULL, model));
    refused(thiele_sums_open(&none, ctx, NULL));
    refused(thiele_sums_add(NULL, ctx, table, NULL));
    refused(thiele_sums_add(sums, NULL, table, NULL));
    refused(thiele_sums_add(sums, ctx, NULL, NULL));
    refused(thiele_sums_combine(sums, ctx, NULL));
    refused(thiele_sums_combine(NULL, ctx, sums));
    refused(thiele_sums_pack(NULL, ctx, &bytes, &length));
    refused(thiele_sums_pack(sums, ctx, NULL, &length));
    refused(thiele_sums_pack(sums, ctx, &bytes, NULL));
    refused(thiele_sums_unpack(NULL, ctx, (const unsigned char *)"", 0));
    refused(thiele_sums_unpack(sums, ctx, NULL, 0));
    refused(thiele_sums_save(sums, ctx, NULL));
    refused(thiele_sums_save(NULL, ctx, "some.sums"));
    refused(thiele_sums_load(sums, ctx, NULL));
    refused(thiele_sums_load(NULL, ctx, "some.sums"));
    refused(thiele_sums_model(NULL, ctx, &conditioned));
    refused(thiele_sums_model(sums, ctx, NULL));
    assert_int_equal(thiele_sums_rows(NULL), 0);
    thiele_sums_close(NULL);
    thiele_sums_close(sums);
    thiele_fit_options *made;
    refused(thiele_fit_options_create(NULL, ctx));
    refused(thiele_fit_options_create(&made, NULL));
    refused(thiele_fit_options_set_own(NULL, ctx, lik));
    refused(thiele_cross_validate(NULL, table, &options, 2, NULL, &scores));
    refused(thiele_cross_validate(ctx, NULL, &options, 2, NULL, &scores));
    refused(thiele_cross_validate(ctx, table, NULL, 2, NULL, &scores));
    refused(thiele_cross_validate(ctx, table, &options, 2, NULL, NULL));
    refused(thiele_score_gaussian(NULL, 1, x, mean, mean, 0, 1, &scores));
    refused(thiele_score_gaussian(ctx, 1, NULL, x, x, 0, 1, &scores));
    refused(thiele_score_gaussian(ctx, 1, x, NULL, x, 0, 1, &scores));
    refused(thiele_score_gaussian(ctx, 1, x, x, NULL, 0, 1, &scores));
    refused(thiele_score_gaussian(ctx, 1, x, x, x, 0, 1, NULL));
    refused(thiele_score_classes(NULL, 1, 1, label, x, mean, mean));
    refused(thiele_score_classes(ctx, 1, 1, NULL, x, mean, mean));
    refused(thiele_score_classes(ctx, 1, 1, label, NULL, mean, mean));
    refused(thiele_score_classes(ctx, 1, 1, label, x, NULL, mean));
    refused(thiele_score_classes(ctx, 1, 1, label, x, mean, NULL));
}

static void test_predictors(void **state)
{
    (void)state;
    thiele_predictor *p = NULL;
    double x[8] = {0}, mean[2];
    refused(thiele_predictor_open(NULL, ctx, model, THIELE_PREDICT_LATENT));
    refused(thiele_predictor_open(&p, NULL, model, THIELE_PREDICT_LATENT));
    refused(thiele_predictor_open(&p, ctx, NULL, THIELE_PREDICT_LATENT));
    assert_int_equal(thiele_predictor_outputs(NULL), 0);
    refused(thiele_predictor_row(NULL, x, mean, NULL));
    refused(thiele_predictor_probabilities(NULL, x, mean));
    assert_non_null(thiele_predictor_message(NULL));
    thiele_predictor_destroy(NULL);
    assert_ok(ctx, thiele_predictor_open(&p, ctx, model, THIELE_PREDICT_LATENT));
    refused(thiele_predictor_row(p, NULL, mean, NULL));
    refused(thiele_predictor_row(p, x, NULL, NULL));
    refused(thiele_predictor_probabilities(p, NULL, mean));
    refused(thiele_predictor_probabilities(p, x, NULL));
    thiele_predictor_destroy(p);
}

static void test_streams(void **state)
{
    (void)state;
    thiele_feed *feed = NULL;
    thiele_table *rows;
    thiele_learner *learner = NULL;
    thiele_model *m;
    thiele_stream_facts facts;
    refused(thiele_feed_open(NULL, ctx, "-", NULL, NULL));
    refused(thiele_feed_open(&feed, NULL, "-", NULL, NULL));
    refused(thiele_feed_open(&feed, ctx, NULL, NULL, NULL));
    thiele_feed_close(NULL);
    assert_int_equal(thiele_feed_ended(NULL), 1);
    assert_int_equal(thiele_feed_rows(NULL), 0);
    assert_int_equal(thiele_feed_skipped(NULL), 0);
    assert_ok(ctx, thiele_feed_open(&feed, ctx, "/dev/null", NULL, NULL));
    refused(thiele_feed_next(NULL, ctx, 0, 1, 0, &rows));
    refused(thiele_feed_next(feed, NULL, 0, 1, 0, &rows));
    refused(thiele_feed_next(feed, ctx, 0, 1, 0, NULL));
    thiele_feed_close(feed);
    refused(thiele_learner_open(NULL, ctx, model, NULL));
    refused(thiele_learner_open(&learner, NULL, model, NULL));
    refused(thiele_learner_open(&learner, ctx, NULL, NULL));
    thiele_learner_close(NULL);
    refused(thiele_learner_add(NULL, ctx, table));
    assert_int_equal(thiele_learner_batch(NULL), 0);
    thiele_learner_stop(NULL);
    refused(thiele_learner_model(NULL, ctx, &m));
    refused(thiele_learner_save(NULL, ctx, in_folder("x")));
    thiele_learner_facts(NULL, &facts);
    thiele_model_stream(NULL, &facts);
    thiele_model_stream(model, NULL);
    assert_ok(ctx, thiele_learner_open(&learner, ctx, model, NULL));
    refused(thiele_learner_add(learner, NULL, table));
    refused(thiele_learner_model(learner, NULL, &m));
    refused(thiele_learner_model(learner, ctx, NULL));
    refused(thiele_learner_save(learner, NULL, in_folder("x")));
    refused(thiele_learner_save(learner, ctx, NULL));
    thiele_learner_facts(learner, NULL);
    thiele_learner_close(learner);
    refused(thiele_model_update(NULL, ctx, model, table, NULL));
    refused(thiele_model_update(&m, NULL, model, table, NULL));
    refused(thiele_model_update(&m, ctx, NULL, table, NULL));
    refused(thiele_model_update(&m, ctx, model, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context_and_kernel),
        cmocka_unit_test(test_likelihood),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_predictors),
        cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* Reports: the statistics in them, leave-one-out by cavities, threads, failing allocations, bad arguments. */
#include "model_testing.h"

#include <jansson.h>

#include "pareto.h"
#include "report/pareto.h"
#include "report/report.h"
#include "report/statistic.h"

/* --- statistics -----------------------------------------------------------------------------------------------------
 */

static double choose(int n, int k)
{
    return exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0));
}

static void test_binomial(void **state)
{
    (void)state;
    static const double p[] = {0.01, 0.3, 0.9};
    for (int c = 0; c < 3; c++) {
        for (int n = 1; n <= 40; n += 13) {
            double below = 0.0;
            for (int k = 0; k <= n; k++) {
                double own = choose(n, k) * pow(p[c], k) * pow(1.0 - p[c], n - k);
                assert_near(thi_binomial_upper(n, k, p[c]), 1.0 - below, 1e-9, 1e-11);
                below += own;
                assert_near(thi_binomial_lower(n, k, p[c]), below, 1e-9, 1e-11);
            }
            int64_t low, high;
            thi_binomial_band(n, p[c], 0.1, &low, &high);
            assert_true(thi_binomial_lower(n, low - 1, p[c]) <= 0.05 && thi_binomial_upper(n, high + 1, p[c]) <= 0.05);
            assert_true(thi_binomial_lower(n, low, p[c]) > 0.05 && thi_binomial_upper(n, high, p[c]) > 0.05);
        }
    }
}

/* P(D > d) of one number is 2 (1 - d), d > 1/2: Stephens' correction is to within 0.03 there, and 0.01 of 20. */
static void test_kolmogorov(void **state)
{
    (void)state;
    enum { ROWS = 20, TIMES = 4000 };
    static const double quantile = 0.29408; /* 5% of 20 numbers exceed it (Miller 1956) */
    assert_near(thi_kolmogorov_tail(1.0, 0.9), 0.2, 0.0, 0.03);
    assert_near(thi_kolmogorov_tail(ROWS, quantile), 0.05, 0.0, 1e-3);
    assert_near(thi_kolmogorov_quantile(ROWS, 0.05), quantile, 3e-3, 0.0);
    int beyond = 0;
    for (int t = 0; t < TIMES; t++) {
        double u[ROWS];
        for (int i = 0; i < ROWS; i++) {
            u[i] = thi_random_uniform((thi_stream){5, 1, (uint64_t)t}, (uint64_t)i);
        }
        for (int i = 1; i < ROWS; i++) {
            for (int j = i; j > 0 && u[j] < u[j - 1]; j--) {
                double swap = u[j];
                u[j] = u[j - 1];
                u[j - 1] = swap;
            }
        }
        beyond += thi_ks_uniform(ROWS, u) > quantile;
    }
    assert_near((double)beyond / TIMES, 0.05, 0.0, 0.012); /* 3.5 standard errors */
    static const double a[] = {1, 2, 2, 3}, b[] = {2, 3, 4, 5};
    assert_near(thi_ks_two(4, a, 4, b), 0.5, 0.0, 1e-15);
    assert_near(thi_chi_square_tail(2.0, 3.0), exp(-1.5), 1e-13, 0.0);
}

/* ArviZ on the same weights (bench/pareto.py). */
static void test_pareto(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof pareto_cases / sizeof *pareto_cases; c++) {
        const struct pareto_case *own = &pareto_cases[c];
        double weight[400], sum = 0.0;
        memcpy(weight, own->weight, (size_t)own->n * sizeof *weight);
        double k = thi_pareto_smooth(own->n, weight);
        for (int i = 0; i < own->n; i++) {
            sum += weight[i];
        }
        print_message("%s: k %.4f\n", own->name, k);
        assert_near(k, own->k, 1e-6, 1e-9);
        assert_near(weight[own->n - 1], own->largest, 1e-6, 1e-9);
        assert_near(sum, own->sum, 1e-9, 1e-9);
    }
    double flat[100] = {0.0};
    assert_true(isinf(thi_pareto_smooth(100, flat)));
    assert_near(thi_pareto_threshold(2000), 0.6971, 0.0, 1e-4);
    assert_near(thi_pareto_threshold(100000), 0.7, 0.0, 0.0);
}

/* --- documents ------------------------------------------------------------------------------------------------------
 */

static json_t *report_on(thiele_context *ctx, const thiele_model *model, const thiele_table *table)
{
    char *text = NULL;
    assert_ok(ctx, thiele_model_report(model, ctx, table, NULL, NULL, &text));
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    thiele_free(text);
    return json;
}

static thiele_model *fitted_by(thiele_context *ctx, const char *method, int64_t inducing)
{
    thiele_table *table = demo(ctx, 60, 1);
    thiele_fit_options options = demo_options();
    options.model.method = method;
    options.prior.kernel = "se(ard)";
    options.prior.set = "lengthscale=1.5,variance=90,noise=2";
    options.inducing.inducing = inducing;
    options.inducing.fix_inducing = inducing > 0;
    thiele_model *model = fitted(ctx, table, &options);
    thiele_table_destroy(table);
    return model;
}

/* With an inducing input at each row a sparse posterior is the exact one, and its sites are the rows. */
static void test_cavities_are_exact(void **state)
{
    (void)state;
    static const char *const scores[] = {"rmse", "nlpd", "crps", "coverage90"};
    thiele_context *ctx = test_context(1);
    thiele_model *exact = fitted_by(ctx, "exact", 0), *sparse = fitted_by(ctx, "collapsed", 60);
    json_t *one = report_on(ctx, exact, NULL), *other = report_on(ctx, sparse, NULL);
    assert_string_equal(
        thi_value_at(one, "inference.loo.by") != NULL ? json_string_value(thi_value_at(one, "inference.loo.by")) : "",
        "exact");
    assert_string_equal(json_string_value(thi_value_at(other, "inference.loo.by")), "cavities");
    for (size_t k = 0; k < sizeof scores / sizeof *scores; k++) {
        char path[64];
        snprintf(path, sizeof path, "inference.loo.scores.%s", scores[k]);
        assert_near(thi_number_at(other, path), thi_number_at(one, path), 1e-8, 0.0);
    }
    json_decref(one);
    json_decref(other);
    thiele_model_destroy(exact);
    thiele_model_destroy(sparse);
    thiele_context_destroy(ctx);
}

/* What scores say elsewhere they say here. */
static void test_numbers_agree(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_model *model = fitted_by(ctx, "exact", 0);
    thiele_table *table = demo(ctx, 150, 3);
    thiele_scores scores;
    assert_ok(ctx, thiele_model_score(model, ctx, table, NULL, &scores));
    json_t *json = report_on(ctx, model, table);
    assert_near(thi_number_at(json, "scores.rmse.value"), scores.rmse, 1e-12, 0.0);
    assert_near(thi_number_at(json, "scores.nlpd.value"), scores.nlpd, 1e-12, 0.0);
    assert_near(thi_number_at(json, "calibration.coverage90"), scores.coverage90, 0.0, 1e-12);
    assert_near(thi_number_at(json, "calibration.coverage50"), scores.coverage50, 0.0, 1e-12);
    assert_true(thi_number_at(json, "scores.rmse.low") < scores.rmse &&
                scores.rmse < thi_number_at(json, "scores.rmse.high"));
    double sum = 0.0;
    const json_t *counts = thi_value_at(json, "calibration.pit.counts");
    for (size_t k = 0; k < json_array_size(counts); k++) {
        sum += json_number_value(json_array_get(counts, k));
    }
    assert_near(sum, 150.0, 0.0, 0.0);
    assert_int_equal(json_array_size(thi_value_at(json, "errors.worst")), 10);
    const json_t *first = json_array_get(thi_value_at(json, "effects.permutation"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "input")), "x1");
    json_decref(json);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static char *page_of(thiele_context *ctx, const thiele_model *model, const thiele_table *table, const char *path)
{
    char *text = NULL;
    assert_ok(ctx, thiele_model_report(model, ctx, table, NULL, path, &text));
    return text;
}

static void test_same_bytes(void **state)
{
    (void)state;
    thiele_context *one = test_context(1), *three = test_context(3);
    thiele_model *model = fitted_by(one, "collapsed", 20);
    thiele_table *table = demo(one, 700, 4);
    char first[256], second[256], command[600];
    snprintf(first, sizeof first, "%s", in_folder("one.html"));
    snprintf(second, sizeof second, "%s", in_folder("three.html"));
    char *a = page_of(one, model, table, first), *b = page_of(three, model, table, second);
    assert_string_equal(a, b);
    snprintf(command, sizeof command, "cmp %s %s", first, second);
    assert_int_equal(system(command), 0);
    thiele_free(a);
    thiele_free(b);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    thiele_context_destroy(one);
    thiele_context_destroy(three);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = fitted_by(ctx, "exact", 0);
    thiele_table *few = demo(ctx, 9, 3), *table = demo(ctx, 30, 3);
    thiele_report_options options = THIELE_REPORT_OPTIONS_INIT;
    char *text = (char *)model;
    assert_fails(ctx, thiele_model_report(NULL, ctx, NULL, NULL, NULL, &text), THIELE_ERROR_ARGUMENT, "NULL");
    assert_null(text);
    assert_fails(ctx, thiele_model_report(model, ctx, few, NULL, NULL, &text), THIELE_ERROR_DATA, "10 at least");
    options.target = "weight";
    assert_fails(ctx, thiele_model_report(model, ctx, NULL, &options, NULL, NULL), THIELE_ERROR_ARGUMENT, "'weight'");
    options.target = "strength";
    assert_ok(ctx, thiele_model_report(model, ctx, NULL, &options, NULL, NULL));
    options.size = 3;
    assert_fails(ctx, thiele_model_report(model, ctx, NULL, &options, NULL, NULL), THIELE_ERROR_ARGUMENT, "INIT");
    assert_fails(ctx, thiele_model_report(model, ctx, table, NULL, "/nowhere/at/all.html", NULL), THIELE_ERROR_IO,
                 "/nowhere/at/all.html");
    thiele_table_destroy(few);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = fitted_by(ctx, "collapsed", 6);
    thiele_table *table = demo(ctx, 12, 3);
    int64_t before = thi_allocations(ctx);
    char *text = NULL;
    assert_ok(ctx, thiele_model_report(model, ctx, table, NULL, in_folder("f.html"), &text));
    thiele_free(text);
    int64_t count = thi_allocations(ctx) - before;
    size_t held = thi_memory_held(ctx);
    print_message("%lld allocations\n", (long long)count);
    for (int64_t nth = 1; nth <= count; nth++) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = thiele_model_report(model, ctx, table, NULL, in_folder("f.html"), &text);
        thi_fail_allocation(ctx, 0, false);
        if (status != THIELE_ERROR_MEMORY) {
            fail_msg("allocation %lld: %s: %s", (long long)nth, thiele_status_name(status),
                     thiele_context_message(ctx));
        }
        assert_null(text);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binomial),      cmocka_unit_test(test_kolmogorov),
        cmocka_unit_test(test_pareto),        cmocka_unit_test(test_cavities_are_exact),
        cmocka_unit_test(test_numbers_agree), cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_bad_arguments), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/*
 * Relevance of inputs: of linear functions it is the share of squared slopes times variances; levels, indicators of
 * missing values and dates count with their column; in order, on any number of threads, through a file, for any method.
 */
#include <jansson.h>
#include <math.h>

#include "model/relevance.h"
#include "model_testing.h"

enum { N = 200 };

/* y = 3 a + b + noise, c for nothing, site for 2 where it is north. */
static thiele_table *linear_table(thiele_context *ctx, double site)
{
    static const char *const sites[] = {"north", "south", "east"};
    double values[4 * N];
    thi_text text;
    thiele_table *table;
    test_normals(4 * N, 3, values);
    thi_text_init(&text, ctx);
    thi_text_add(&text, "c,b,site,a,y\n");
    for (int i = 0; i < N; i++) {
        const double *v = values + 4 * i;
        thi_text_add(&text, "%.9g,%.9g,%s,%.9g,%.9g\n", v[2], 10 * v[1], sites[i % 3], v[0],
                     3 * v[0] + v[1] + (i % 3 == 0 ? site : 0) + 0.05 * v[3]);
    }
    assert_ok(ctx, thi_table_parse_csv(&table, ctx, text.data, text.length, "t.csv", NULL));
    thi_text_clear(&text);
    return table;
}

static thiele_model *fit(thiele_context *ctx, const thiele_table *table, const char *method)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.model.method = method;
    options.prior.kernel = "se(ard)";
    options.inducing.inducing = strcmp(method, "exact") == 0 ? 0 : 60;
    options.stopping.iterations = 60;
    return fitted(ctx, table, &options);
}

/* Steps between rows are those of the pairs, not of all rows: a few percent. */
static void test_linear(void **state)
{
    (void)state;
    static const char *const methods[] = {"exact", "collapsed", "pic"};
    thiele_context *ctx = test_context(2);
    thiele_table *table = linear_table(ctx, 2);
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        thiele_model *model = fit(ctx, table, methods[m]);
        double share[4], total = 9 + 1 + 4 * 2.0 / 9;
        int64_t pairs;
        assert_ok(ctx, thi_relevance(model, ctx, share, &pairs));
        assert_true(pairs >= 32);
        assert_near(share[0], 0, 0, 0.002);
        assert_near(share[1], 1 / total, 0, 0.03);
        assert_near(share[2], 4 * 2.0 / 9 / total, 0, 0.03);
        assert_near(share[3], 9 / total, 0, 0.04);
        assert_near(share[0] + share[1] + share[2] + share[3], 1, 1e-12, 0);
        thiele_model_destroy(model);
    }
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

static char *described(thiele_context *ctx, const thiele_model *model, json_t **relevance)
{
    char *text;
    assert_ok(ctx, thiele_model_describe(model, ctx, &text));
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    *relevance = json_incref(json_object_get(json, "relevance"));
    json_decref(json);
    return text;
}

static void expect_place(const json_t *relevance, size_t place, const char *name, const char *word)
{
    const json_t *input = json_array_get(json_object_get(relevance, "inputs"), place);
    assert_string_equal(json_string_value(json_object_get(input, "name")), name);
    assert_string_equal(json_string_value(json_object_get(input, "matters")), word);
}

static void test_description(void **state)
{
    (void)state;
    thiele_context *one = test_context(1), *two = test_context(2);
    thiele_table *table = linear_table(one, 0.3);
    thiele_model *model = fit(one, table, "exact"), *loaded;
    json_t *relevance, *again;
    char *first = described(one, model, &relevance), *second;
    expect_place(relevance, 0, "a", "most");
    expect_place(relevance, 1, "b", "much");
    expect_place(relevance, 3, "c", "hardly");
    assert_string_equal(json_string_value(json_object_get(relevance, "of")), "training rows");
    assert_ok(one, thiele_model_save(model, one, in_folder("m.thiele")));
    assert_ok(two, thiele_model_load(&loaded, two, in_folder("m.thiele")));
    second = described(two, loaded, &again);
    assert_true(json_equal(relevance, again));
    json_decref(relevance);
    json_decref(again);
    thiele_free(first);
    thiele_free(second);
    thiele_model_destroy(loaded);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(one);
    thiele_context_destroy(two);
}

/* Probabilities of classes; an input that lacks values counts with its indicator; a model that predicts one number. */
static void test_kinds(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thi_text text;
    thiele_table *table;
    thiele_model *model;
    json_t *relevance;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "x,w,day,z\n");
    for (int i = 0; i < 80; i++) {
        bool lacks = i % 4 == 1;
        thi_text_add(&text, i % 4 == 1 ? "%g,,2024-01-%02d,%s\n" : "%g,1,2024-01-%02d,%s\n", sin(i), i % 28 + 1,
                     lacks ? "yes" : "no");
    }
    assert_ok(ctx, thi_table_parse_csv(&table, ctx, text.data, text.length, "t.csv", NULL));
    thi_text_clear(&text);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "z";
    options.prior.kernel = "se(ard)";
    options.stopping.iterations = 20;
    model = fitted(ctx, table, &options);
    thiele_free(described(ctx, model, &relevance));
    expect_place(relevance, 0, "w", "most");
    json_decref(relevance);
    thiele_model_destroy(model);
    options.prior.set = "lengthscale=1e9";
    options.model.method = "dense";
    model = fitted(ctx, table, &options);
    double share[3];
    int64_t pairs;
    assert_ok(ctx, thi_relevance(model, ctx, share, &pairs));
    for (int i = 0; i < 3; i++) {
        assert_true(isfinite(share[i]) && share[i] >= 0 && share[i] <= 1);
    }
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

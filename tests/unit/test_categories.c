/*
 * Categories: a length-scale for all levels of a column or one for each, what is rare or was never seen, the way
 * through JSON, and descriptions that lie.
 */
#include <math.h>

#include "encoder_testing.h"
#include "model/model.h"

/* 200 rows: site a 117, b 80, c 2, d 1. */
static thiele_table *make_table(void)
{
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "x,site,y\n");
    for (int i = 0; i < 200; i++) {
        const char *site = i == 50 ? "d" : i == 60 || i == 70 ? "c" : i % 5 < 3 ? "a" : "b";
        thi_text_add(&text, "%g,%s,%g\n", sin(i), site, cos(3 * i));
    }
    thiele_table *table = parse(text.data);
    thi_text_clear(&text);
    return table;
}

static thi_encoder learn(bool one_scale, int64_t rare)
{
    thi_encoder encoder;
    thiele_table *table = make_table();
    thi_column_options options = options_for("y");
    options.one_scale = one_scale;
    options.rare = rare;
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    thiele_table_destroy(table);
    return encoder;
}

static void test_rare(void **state)
{
    (void)state;
    static const struct {
        bool one_scale;
        int64_t rare;
        const char *dims;
        int count;
    } cases[] = {
        {false, 0, "x site=a site=b site=c site=d", 0},
        {true, 0, "x site=a site=b site=c site=d site=(other)", 0},
        {true, THI_RARE_AUTO, "x site=a site=b site=c site=(other)", 1}, /* a hundredth of 200 rows is 2 */
        {false, THI_RARE_AUTO, "x site=a site=b site=c site=(other)", 1},
        {true, 3, "x site=a site=b site=(other)", 2},
        {false, 81, "x site=a site=(other)", 3},
        {true, 1000, "x site=a site=b site=c site=d site=(other)", 0}, /* nothing is rare where everything is */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thi_encoder encoder = learn(cases[i].one_scale, cases[i].rare);
        assert_dims(&encoder, cases[i].dims);
        assert_int_equal(encoder.input[1].rare, cases[i].count);
        thi_encoder_clear(&encoder);
    }
}

static thiele_status read_site(const thi_encoder *encoder, const char *site, thi_reading how, double *X)
{
    char text[64];
    thi_reader reader;
    int64_t kept;
    snprintf(text, sizeof text, "x,site\n1,%s\n", site);
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_reader_open(&reader, ctx, encoder, table, &how));
    thiele_status status = thi_reader_read(&reader, ctx, 0, 1, X, NULL, NULL, NULL, &kept);
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    return status;
}

static void test_unseen(void **state)
{
    (void)state;
    thi_encoder learned = learn(true, 2), encoder;
    json_t *json = thi_encoder_to_json(&learned);
    double X[5];
    assert_ok(ctx, thi_encoder_from_json(&encoder, ctx, json));
    json_decref(json);
    assert_int_equal(encoder.dims, 5);
    assert_true(encoder.input[1].others && encoder.input[1].one_scale && encoder.input[1].rare == 1);
    static const char *const others[] = {"d", "mars"};
    for (int i = 0; i < 2; i++) {
        assert_ok(ctx, read_site(&encoder, others[i], (thi_reading){0}, X));
        assert_true(X[1] == 0 && X[2] == 0 && X[3] == 0 && X[4] == 1);
        assert_ok(ctx, read_site(&encoder, others[i], (thi_reading){.unseen_zero = true}, X));
        assert_true(X[4] == 1);
        assert_fails(ctx, read_site(&encoder, others[i], (thi_reading){.unseen_error = true}, X), THIELE_ERROR_DATA,
                     "was not seen in training");
    }
    assert_ok(ctx, read_site(&encoder, "c", (thi_reading){.unseen_error = true}, X));
    assert_true(X[3] == 1 && X[4] == 0);
    assert_ok(ctx, thi_encode_row(&encoder, ctx, (const double[]){1, -1}, X));
    assert_true(X[1] == 0 && X[2] == 0 && X[3] == 0 && X[4] == 1);
    assert_fails(ctx, thi_encode_row(&encoder, ctx, (const double[]){1, 3}, X), THIELE_ERROR_ARGUMENT, "no level 3");
    thi_encoder_clear(&encoder);
    thi_encoder_clear(&learned);
    encoder = learn(false, 0);
    assert_fails(ctx, thi_encode_row(&encoder, ctx, (const double[]){1, -1}, X), THIELE_ERROR_ARGUMENT, "no level -1");
    assert_fails(ctx, read_site(&encoder, "mars", (thi_reading){0}, X), THIELE_ERROR_DATA, "'mars' was not seen");
    thi_encoder_clear(&encoder);
}

static thiele_kernel *kernel_of(const thi_encoder *encoder, const char *text)
{
    thi_kernel_columns columns;
    thiele_kernel *kernel;
    assert_ok(ctx, thi_kernel_columns_make(&columns, ctx, encoder));
    assert_ok(ctx, thi_kernel_parse(&kernel, ctx, text, &columns.view));
    thi_kernel_columns_clear(&columns);
    return kernel;
}

/* One name and one value for all levels; a copy is the same kernel. */
static void test_one_scale(void **state)
{
    (void)state;
    thi_encoder encoder = learn(true, 0);
    thiele_kernel *kernel = kernel_of(&encoder, "matern52(ard, lengthscale=[2,3])*periodic(ard)"), *copy;
    assert_int_equal(kernel->parameters, 2 + 1 + 2 + 2);
    assert_string_equal(thiele_kernel_parameter_name(kernel, 0), "matern52.lengthscale[x]");
    assert_string_equal(thiele_kernel_parameter_name(kernel, 1), "matern52.lengthscale[site]");
    for (int d = 1; d < 6; d++) {
        assert_true(thi_leaf_lengthscale(&kernel->leaf[0], d) == 3);
    }
    assert_ok(ctx, thi_kernel_copy(&copy, ctx, kernel));
    assert_true(thi_kernel_is_same(kernel, copy));
    const double scale[6] = {7, 1, 1, 1, 1, 1};
    thi_kernel_rescale(copy, scale, 1, 1);
    assert_near(copy->value[0], 14, 1e-15, 0);
    assert_near(copy->value[1], 3, 1e-15, 0);
    thiele_kernel_destroy(copy);
    thiele_kernel_destroy(kernel);
    thi_encoder_clear(&encoder);
    encoder = learn(false, 0);
    kernel = kernel_of(&encoder, "matern52(ard)");
    assert_int_equal(kernel->parameters, 5 + 1);
    assert_string_equal(thiele_kernel_parameter_name(kernel, 1), "matern52.lengthscale[site=a]");
    thiele_kernel_destroy(kernel);
    thi_encoder_clear(&encoder);
}

static double weighted(const thiele_kernel *kernel, int64_t n, const double *X, const double *W)
{
    double K[64], sum = 0;
    thi_inputs A;
    assert_ok(ctx, thi_inputs_make(&A, ctx, kernel, n, X));
    assert_ok(ctx, thi_kernel_fill(kernel, ctx, &A, &A, (thi_matrix){K, n, n, n}, false));
    for (int64_t i = 0; i < n * n; i++) {
        sum += W[i] * K[i];
    }
    thi_inputs_clear(&A);
    return sum;
}

/* The gradient in a length-scale that levels share is the sum of theirs: against central differences. */
static void test_gradient(void **state)
{
    (void)state;
    enum { N = 6, D = 6 };
    static const char *const texts[] = {"matern52(ard)", "se(ard)*linear(ard)", "periodic(ard) + rq(ard)"};
    const double step = 1e-5;
    thi_encoder encoder = learn(true, 0);
    double X[N * D], W[N * N];
    test_normals(N * D, 1, X);
    test_normals(N * N, 2, W);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        thiele_kernel *kernel = kernel_of(&encoder, texts[t]);
        double bar[16] = {0};
        thi_inputs A;
        assert_ok(ctx, thi_inputs_make(&A, ctx, kernel, N, X));
        assert_ok(ctx, thi_kernel_pull(kernel, ctx, &A, &A, (thi_matrix){W, N, N, N}, false, bar, NULL));
        thi_inputs_clear(&A);
        for (int p = 0; p < kernel->parameters; p++) {
            const double at = kernel->log_value[p];
            thi_kernel_set_one(kernel, p, at + step);
            double above = weighted(kernel, N, X, W);
            thi_kernel_set_one(kernel, p, at - step);
            double below = weighted(kernel, N, X, W);
            thi_kernel_set_one(kernel, p, at);
            assert_near(bar[p], (above - below) / (2 * step), 1e-6, 1e-6);
        }
        thiele_kernel_destroy(kernel);
    }
    thi_encoder_clear(&encoder);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const lies[] = {
        "\"others\":true",
        "\"one_scale\":true",
        "\"levels\":[\"a\"],\"others\":1",
        "\"levels\":[\"a\"],\"one_scale\":\"yes\"",
        "\"levels\":[\"a\"],\"rare\":1",
        "\"levels\":[\"a\"],\"others\":true,\"rare\":0",
        "\"levels\":[\"a\"],\"others\":true,\"rare\":1e300",
        "\"levels\":[\"a\"],\"others\":true,\"rare\":10001",
        "\"rare\":1,\"others\":true",
    };
    assert_lies_refused(lies, sizeof lies / sizeof *lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rare),     cmocka_unit_test(test_unseen),  cmocka_unit_test(test_one_scale),
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

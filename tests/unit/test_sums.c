/*
 * Public sums over rows (include/thiele/sums.h): parts of any cut and order make the model of one pass to the bit, on
 * any number of threads; it is that of a fit that is conditioned on the same rows; bytes and files; what has no sums;
 * bad rows; failing allocations.
 */
#include "model_testing.h"

#include <thiele/sums.h>

static thiele_context *ctx;

static int set_up(void **state)
{
    ctx = test_context(2);
    return make_folder(state);
}

static int tear_down(void **state)
{
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return remove_folder(state);
}

enum { ROWS = 5000, COLUMNS = 3 };
static double values[ROWS * COLUMNS];

static void make_values(void)
{
    for (int64_t i = 0; i < ROWS; i++) {
        thi_stream s = {11, THI_RANDOM_DEMO, (uint64_t)i};
        double *row = values + COLUMNS * i;
        row[0] = 4.0 * thi_random_uniform(s, 0) - 2.0;
        row[1] = 30.0 * thi_random_uniform(s, 1) + 7.0;
        row[2] = 100.0 + 10.0 * sin(2.0 * row[0]) + 0.3 * row[1] + thi_random_normal(s, 2);
    }
}

/* Rows first, first + step, ... below end. */
static thiele_table *table_of(thiele_context *own, int64_t first, int64_t end, int64_t step)
{
    static const char *const names[] = {"x1", "x2", "y"};
    double *rows = malloc(sizeof values);
    thiele_table *table = NULL;
    int64_t count = 0;
    for (int64_t i = first; i < end; i += step, count++) {
        memcpy(rows + COLUMNS * count, values + COLUMNS * i, COLUMNS * sizeof *rows);
    }
    assert_ok(own, thiele_table_from_rows(&table, own, count, COLUMNS, rows, names));
    free(rows);
    return table;
}

static thiele_model *fit(const char *method, const char *kernel, int64_t rows, const char *likelihood)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_table *table = table_of(ctx, 0, rows, 1);
    options.columns.target = "y";
    options.model.method = method;
    options.prior.kernel = kernel;
    options.prior.mean = "linear";
    options.model.likelihood = likelihood;
    options.inducing.inducing = strcmp(method, "exact") == 0 ? 0 : 31;
    options.stopping.iterations = 5;
    thiele_model *model = NULL;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    thiele_table_destroy(table);
    return model;
}

static void add(thiele_sums *sums, thiele_context *own, int64_t first, int64_t end, int64_t step)
{
    thiele_table *table = table_of(own, first, end, step);
    assert_ok(own, thiele_sums_add(sums, own, table, NULL));
    thiele_table_destroy(table);
}

static void assert_same_bytes(const thiele_sums *a, const thiele_sums *b)
{
    unsigned char *one, *two;
    size_t length, other;
    assert_ok(ctx, thiele_sums_pack(a, ctx, &one, &length));
    assert_ok(ctx, thiele_sums_pack(b, ctx, &two, &other));
    assert_int_equal(length, other);
    assert_memory_equal(one, two, length);
    thiele_free(one);
    thiele_free(two);
}

static void assert_same_models(thiele_sums *a, thiele_sums *b)
{
    thiele_model *one, *two;
    assert_ok(ctx, thiele_sums_model(a, ctx, &one));
    assert_ok(ctx, thiele_sums_model(b, ctx, &two));
    int64_t M = one->latent->n;
    assert_memory_equal(one->latent->a, two->latent->a, (size_t)M * sizeof(double));
    assert_memory_equal(one->latent->R->data, two->latent->R->data, (size_t)(M * M) * sizeof(double));
    assert_true(one->value == two->value && one->rows == two->rows);
    assert_survives(ctx, one);
    thiele_model_destroy(one);
    thiele_model_destroy(two);
}

/* In parts of so many rows, last part first, each in bytes; or every so manieth row. */
static void check_cut(const thiele_model *model, thiele_sums *whole, int64_t width, bool stripes, int threads)
{
    thiele_context *own = test_context(threads);
    thiele_sums *all;
    assert_ok(own, thiele_sums_open(&all, own, model));
    int64_t parts = (ROWS + width - 1) / width;
    for (int64_t k = parts - 1; k >= 0; k--) {
        thiele_sums *part;
        unsigned char *bytes;
        size_t length;
        assert_ok(own, thiele_sums_open(&part, own, model));
        int64_t first = stripes ? k : k * width, end = stripes ? ROWS : thi_least(ROWS, (k + 1) * width);
        add(part, own, first, end, stripes ? parts : 1);
        if (k % 2 == 0) {
            assert_ok(own, thiele_sums_pack(part, own, &bytes, &length));
            assert_ok(own, thiele_sums_unpack(all, own, bytes, length));
            thiele_free(bytes);
        } else {
            assert_ok(own, thiele_sums_combine(all, own, part));
        }
        thiele_sums_close(part);
    }
    assert_int_equal(thiele_sums_rows(all), ROWS);
    assert_same_bytes(whole, all);
    assert_same_models(whole, all);
    thiele_sums_close(all);
    thiele_context_destroy(own);
}

static void test_any_cut(void **state)
{
    (void)state;
    static const char *const methods[] = {"collapsed", "fitc"}, *const kernels[] = {"se(ard)", "se + linear"};
    for (int m = 0; m < 2; m++) {
        thiele_model *model = fit(methods[m], kernels[m], 600, NULL);
        thiele_sums *whole;
        assert_ok(ctx, thiele_sums_open(&whole, ctx, model));
        add(whole, ctx, 0, ROWS, 1);
        check_cut(model, whole, 50, false, 1); /* a hundred parts */
        check_cut(model, whole, 2017, false, 3);
        check_cut(model, whole, 777, true, 1);
        thiele_sums_close(whole);
        thiele_model_destroy(model);
    }
}

/* Of the rows that a model was fitted to: the same predictions and evidence, up to rounding. */
static void test_is_the_fit(void **state)
{
    (void)state;
    static const char *const methods[] = {"collapsed", "sor", "dtc", "fitc", "fic"};
    for (int m = 0; m < 5; m++) {
        thiele_model *model = fit(methods[m], "se(ard)", 600, NULL), *again;
        thiele_sums *sums;
        assert_ok(ctx, thiele_sums_open(&sums, ctx, model));
        assert_fails(ctx, thiele_sums_model(sums, ctx, &again), THIELE_ERROR_ARGUMENT, "no rows");
        add(sums, ctx, 0, 600, 1);
        assert_ok(ctx, thiele_sums_model(sums, ctx, &again));
        const double x[] = {-1.0, 10.0, 0.3, 20.0, 5.0, 60.0};
        double mean[2][3], variance[2][3];
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 3, x, 0, mean[0], variance[0]));
        assert_ok(ctx, thiele_model_predict_rows(again, ctx, 3, x, 0, mean[1], variance[1]));
        assert_all_near(mean[1], mean[0], 3, 1e-6, 0.0);
        assert_all_near(variance[1], variance[0], 3, 1e-6, 0.0);
        assert_near(again->value, model->value, 1e-6, 1e-4);
        assert_int_equal(again->rows, 600);
        thiele_model_destroy(again);
        thiele_sums_close(sums);
        thiele_model_destroy(model);
    }
}

static void test_files(void **state)
{
    (void)state;
    thiele_model *model = fit("collapsed", "se", 400, NULL), *other = fit("collapsed", "se", 500, NULL);
    thiele_sums *sums, *back, *others;
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("some.sums"));
    assert_ok(ctx, thiele_sums_open(&sums, ctx, model));
    assert_ok(ctx, thiele_sums_open(&back, ctx, model));
    assert_ok(ctx, thiele_sums_open(&others, ctx, other));
    add(sums, ctx, 0, 700, 1);
    assert_ok(ctx, thiele_sums_save(sums, ctx, path));
    assert_ok(ctx, thiele_sums_load(back, ctx, path));
    assert_same_bytes(sums, back);
    assert_fails(ctx, thiele_sums_load(others, ctx, path), THIELE_ERROR_DATA, "another model");
    assert_fails(ctx, thiele_sums_combine(others, ctx, sums), THIELE_ERROR_DATA, "another model");
    assert_fails(ctx, thiele_sums_load(back, ctx, in_folder("absent")), THIELE_ERROR_IO, "No such file");
    unsigned char *bytes;
    size_t length;
    assert_ok(ctx, thiele_sums_pack(sums, ctx, &bytes, &length));
    for (size_t cut = 0; cut < length; cut += 1 + length / 50) {
        assert_fails(ctx, thiele_sums_unpack(back, ctx, bytes, cut), THIELE_ERROR_FORMAT, "damaged");
        bytes[cut] ^= 1;
        assert_fails(ctx, thiele_sums_unpack(back, ctx, bytes, length), THIELE_ERROR_FORMAT, "damaged");
        bytes[cut] ^= 1;
    }
    assert_same_bytes(sums, back);
    thiele_free(bytes);
    thiele_sums_close(sums);
    thiele_sums_close(back);
    thiele_sums_close(others);
    thiele_model_destroy(model);
    thiele_model_destroy(other);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *method, *likelihood, *part;
    } cases[] = {{"exact", NULL, "keeps its training rows"},
                 {"pic", NULL, "belong together"},
                 {"pitc", NULL, "belong together"},
                 {"0.3 fitc + 0.7 dtc", NULL, "mixture of two kinds"},
                 {"decoupled", NULL, "inducing inputs of its own"},
                 {"variational", "student-t", "not Gaussian"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        thiele_model *model = fit(cases[k].method, "se", 300, cases[k].likelihood);
        thiele_sums *sums;
        assert_fails(ctx, thiele_sums_open(&sums, ctx, model), THIELE_ERROR_UNSUPPORTED, cases[k].part);
        assert_null(sums);
        thiele_model_destroy(model);
    }
}

/* A bad row names itself, and the sums are as they were. */
static void test_bad_rows(void **state)
{
    (void)state;
    thiele_model *model = fit("collapsed", "se", 400, NULL);
    thiele_sums *sums, *same;
    assert_ok(ctx, thiele_sums_open(&sums, ctx, model));
    assert_ok(ctx, thiele_sums_open(&same, ctx, model));
    add(sums, ctx, 0, 3000, 1);
    add(same, ctx, 0, 3000, 1);
    const double bad[] = {NAN, 1e12};
    static const char *const says[] = {"row 2501", "too far out"};
    for (int k = 0; k < 2; k++) {
        double *at = &values[2500 * COLUMNS + 2], old = *at;
        *at = bad[k];
        thiele_table *table = table_of(ctx, 0, 3000, 1);
        *at = old;
        assert_fails(ctx, thiele_sums_add(sums, ctx, table, NULL), THIELE_ERROR_DATA, says[k]);
        assert_non_null(strstr(thiele_context_message(ctx), "2501"));
        assert_same_bytes(sums, same);
        thiele_table_destroy(table);
    }
    thiele_sums_close(sums);
    thiele_sums_close(same);
    thiele_model_destroy(model);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_model *model = fit("collapsed", "se", 300, NULL);
    thiele_table *table = table_of(ctx, 0, 100, 1);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        thiele_sums *sums = NULL, *back = NULL;
        thiele_model *made = NULL;
        unsigned char *bytes = NULL;
        size_t length;
        thi_fail_allocation(ctx, nth, false);
        THI_TRY(thiele_sums_open(&sums, ctx, model));
        THI_TRY(thiele_sums_open(&back, ctx, model));
        THI_TRY(thiele_sums_add(sums, ctx, table, NULL));
        THI_TRY(thiele_sums_pack(sums, ctx, &bytes, &length));
        THI_TRY(thiele_sums_unpack(back, ctx, bytes, length));
        THI_TRY(thiele_sums_model(back, ctx, &made));
    out:
        thi_fail_allocation(ctx, 0, false);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        thiele_free(bytes);
        thiele_model_destroy(made);
        thiele_sums_close(sums);
        thiele_sums_close(back);
    }
    thiele_table_destroy(table);
    thiele_model_destroy(model);
}

int main(void)
{
    make_values();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut),  cmocka_unit_test(test_is_the_fit), cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_bad_rows),   cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

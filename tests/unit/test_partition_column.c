/*
 * Blocks by a column of the table (`partition`): each value is a block, no kernel sees it, predictions and further rows
 * look theirs up, what was never seen goes by the nearest centre; files, tables beyond memory, refusals, failures.
 */
#include "model_testing.h"

#include "posterior/local.h"
#include <thiele/stream.h>

enum { ROWS = 240, STATIONS = 4, TESTS = 9 };

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

/* Stations overlap in x, and each has a course of its own in t; those from `first` on. */
static thiele_table *make_table(int64_t rows, uint64_t seed, int first)
{
    static const char *const names[] = {"station", "x", "t", "y"};
    double *values = malloc((size_t)rows * 4 * sizeof *values);
    thiele_table *table = NULL;
    for (int64_t i = 0; i < rows; i++) {
        thi_stream s = {seed, THI_RANDOM_DEMO, (uint64_t)i};
        double *row = values + 4 * i, station = first + floor(STATIONS * thi_random_uniform(s, 0));
        row[0] = 10.0 * station;
        row[1] = station + thi_random_normal(s, 1);
        row[2] = 6.0 * thi_random_uniform(s, 2);
        row[3] = sin(row[1]) + sin(2.0 * row[2] + station) + 0.1 * thi_random_normal(s, 3);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, 4, values, names));
    free(values);
    return table;
}

static thiele_fit_options options_of(const char *method)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.columns.partition = "station";
    options.model.method = method;
    options.prior.kernel = "se(ard)";
    options.inducing.inducing = 15;
    options.stopping.iterations = 10;
    return options;
}

/* Latent means at TESTS rows of a station given by its level; -1: none. */
static void predict(const thiele_model *model, double level, double *mean, double *variance)
{
    double x[3 * TESTS];
    for (int i = 0; i < TESTS; i++) {
        x[3 * i] = 0.4 * i;
        x[3 * i + 1] = 0.6 * i;
        x[3 * i + 2] = level;
    }
    assert_ok(ctx, thiele_model_predict_rows(model, ctx, TESTS, x, 1, mean, variance));
}

static void test_blocks(void **state)
{
    (void)state;
    thiele_table *table = make_table(ROWS, 1, 0);
    thiele_fit_options options = options_of("pic"), plain = options_of("pic");
    thiele_model *model = fitted(ctx, table, &options), *loaded = NULL;
    const thi_partition *p = &model->latent->local->partition;
    double mean[STATIONS + 1][TESTS], variance[TESTS], again[TESTS];
    assert_int_equal(p->blocks, STATIONS);
    assert_int_equal(model->encoder.inputs, 2);
    assert_int_equal(thiele_model_inputs(model), 3);
    assert_string_equal(thiele_model_input_name(model, 2), "station");
    /* Length-scales of x and t, a variance, noise: nothing of the station. */
    assert_int_equal(thiele_model_parameters(model), 4);
    for (int64_t b = 0; b < p->blocks; b++) {
        for (int64_t i = p->start[b]; i < p->start[b + 1]; i++) {
            assert_true(model->latent->local->X[3 * i + 2] * THI_KEY_SCALE == (double)b);
        }
    }
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("p.thiele")));
    assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("p.thiele")));
    for (int level = -1; level < STATIONS; level++) {
        predict(model, level, mean[level + 1], variance);
        predict(loaded, level, again, variance);
        assert_memory_equal(mean[level + 1], again, sizeof again);
    }
    /* The same place at two stations; without one it is that of some station. */
    for (int i = 0; i < TESTS; i++) {
        bool some = false;
        for (int level = 0; level < STATIONS; level++) {
            some = some || fabs(mean[0][i] - mean[1 + level][i]) < 1e-9;
        }
        assert_true(some && mean[1][i] != mean[2][i]);
    }
    /* Of the values of x and t alone, blocks of near rows cannot tell the stations apart. */
    plain.columns.partition = NULL;
    plain.columns.ignore = "station";
    plain.blocks.blocks = STATIONS;
    thiele_model *other = fitted(ctx, table, &plain);
    thiele_table *test = make_table(200, 2, 0);
    thiele_scores by_column, by_place;
    assert_ok(ctx, thiele_model_score(model, ctx, test, NULL, &by_column));
    assert_ok(ctx, thiele_model_score(other, ctx, test, NULL, &by_place));
    print_message("RMSE %g by column, %g by place\n", by_column.rmse, by_place.rmse);
    assert_true(by_column.rmse < 0.9 * by_place.rmse);
    thiele_model_destroy(model);
    thiele_model_destroy(loaded);
    thiele_model_destroy(other);
    thiele_table_destroy(table);
    thiele_table_destroy(test);
}

/* Further rows join the block of their station, however large it gets; those of new stations the nearest. */
static void test_update(void **state)
{
    (void)state;
    thiele_table *table = make_table(ROWS, 1, 0), *more = make_table(700, 3, 1);
    thiele_fit_options options = options_of("pic");
    thiele_model *model = fitted(ctx, table, &options), *new = NULL;
    assert_ok(ctx, thiele_model_update(&new, ctx, model, more, NULL));
    const thi_local *local = new->latent->local;
    const thi_partition *p = &local->partition;
    int64_t unseen = 0;
    assert_int_equal(p->blocks, STATIONS);
    assert_int_equal(p->n, ROWS + 700);
    for (int64_t b = 0; b < p->blocks; b++) {
        for (int64_t i = p->start[b]; i < p->start[b + 1]; i++) {
            double level = local->X[3 * i + 2] * THI_KEY_SCALE;
            unseen += level == -1.0;
            assert_true(level == (double)b || level == -1.0);
        }
    }
    assert_true(unseen > 100 && unseen < 300);
    thiele_model_destroy(model);
    thiele_model_destroy(new);
    thiele_table_destroy(table);
    thiele_table_destroy(more);
}

/* The column is an input where it is listed as one; a model by pitc needs it for nothing but the fit. */
static void test_columns(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "t"};
    static const double rows[] = {0.0, 1.0, 2.0, 3.0};
    thiele_table *table = make_table(ROWS, 1, 0), *bare = NULL;
    thiele_predict_options how = THIELE_PREDICT_OPTIONS_INIT;
    thiele_fit_options options = options_of("pic");
    options.columns.inputs = "station,x,t";
    options.prior.mean = "linear";
    thiele_model *model = fitted(ctx, table, &options);
    assert_int_equal(model->encoder.inputs, 3);
    assert_int_equal(model->encoder.dims, 4);
    assert_int_equal(model->latent->local->partition.blocks, STATIONS);
    thiele_model_destroy(model);
    options = options_of("pitc");
    model = fitted(ctx, table, &options);
    assert_int_equal(model->blocks.blocks, STATIONS);
    assert_ok(ctx, thiele_table_from_rows(&bare, ctx, 2, 2, rows, names));
    assert_ok(ctx, thiele_model_predict_file(model, ctx, bare, &how, in_folder("p.csv")));
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_table_destroy(bare);
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_table *table = make_table(ROWS, 1, 0);
    static const struct {
        const char *method, *partition;
        int64_t blocks;
        thiele_status status;
        const char *part;
    } cases[] = {
        {"fitc", "station", 0, THIELE_ERROR_ARGUMENT, "a partition is for pitc and pic"},
        {"collapsed", "station", 0, THIELE_ERROR_ARGUMENT, "has no blocks"},
        {"pic", "station", 7, THIELE_ERROR_ARGUMENT, "not both"},
        {"pic", "y", 0, THIELE_ERROR_ARGUMENT, "is already a target and cannot also be the partition"},
        {"pic", "nowhere", 0, THIELE_ERROR_COLUMN, "nowhere"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_fit_options options = options_of(cases[i].method);
        thiele_model *model = NULL;
        options.columns.partition = cases[i].partition;
        options.blocks.blocks = cases[i].blocks;
        assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), cases[i].status, cases[i].part);
    }
    thiele_table_destroy(table);
}

/* By itself the method that has such blocks is taken, also for few rows and other likelihoods. */
static void test_auto(void **state)
{
    (void)state;
    thiele_table *table = make_table(ROWS, 1, 0);
    static const char *const likelihoods[] = {NULL, "student-t"};
    for (int i = 0; i < 2; i++) {
        thiele_fit_options options = options_of(NULL);
        options.model.likelihood = likelihoods[i];
        thiele_model *model = fitted(ctx, table, &options);
        assert_string_equal(model->method, "pic");
        assert_int_equal(model->latent->local->partition.blocks, STATIONS);
        thiele_model_destroy(model);
    }
    thiele_table_destroy(table);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_table *table = make_table(60, 1, 0);
    thiele_fit_options options = options_of("pic");
    thiele_model *model = NULL;
    options.stopping.iterations = -1;
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    int64_t count = thi_allocations(ctx) - before;
    thiele_model_destroy(model);
    size_t held = thi_memory_held(ctx);
    for (int64_t nth = 1; nth <= count; nth += 1 + nth / 60) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = thiele_model_fit(&model, ctx, table, &options);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal(status, THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),   cmocka_unit_test(test_update), cmocka_unit_test(test_columns),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_auto),   cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

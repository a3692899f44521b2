/*
 * Forgetting by time (model/learner_clock.c): as much as by rows where times say so; nothing where no time passes; the
 * clock goes on from one update, and one file, to the next; dates; times that run backwards or are not there; several
 * targets; kept rows' weights in files; failing allocations. And parameters that a change of the function has led into
 * noise find back.
 */
#include "model_testing.h"

#include <thiele/stream.h>

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

/* Row i has the time from + i * step; y and z are functions of x with this sign, with noise. */
static thiele_table *make_table(int64_t rows, uint64_t seed, double from, double step, double sign)
{
    static const char *const names[] = {"t", "x", "y", "z"};
    double *values = malloc((size_t)rows * 4 * sizeof *values);
    thiele_table *table = NULL;
    for (int64_t i = 0; i < rows; i++) {
        thi_stream s = {seed, THI_RANDOM_DEMO, (uint64_t)i};
        double *row = values + 4 * i;
        row[0] = from + (double)i * step;
        row[1] = 6.0 * thi_random_uniform(s, 0) - 3.0;
        row[2] = sign * sin(2.0 * row[1]) + 0.1 * thi_random_normal(s, 1);
        row[3] = sign * cos(row[1]) + 0.1 * thi_random_normal(s, 3);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, 4, values, names));
    free(values);
    return table;
}

static thiele_model *fit_rows(const thiele_table *table, const char *target)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = target;
    options.columns.inputs = "x";
    options.model.method = "collapsed";
    options.prior.kernel = "se";
    options.inducing.inducing = 15;
    return fitted(ctx, table, &options);
}

static thiele_update_options by_time(double half_life)
{
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    options.time = half_life > 0.0 ? "t" : NULL;
    options.half_life = half_life;
    options.batch = 50;
    options.freeze = 1;
    return options;
}

static thiele_model *update(const thiele_model *model, const thiele_table *table, const thiele_update_options *options)
{
    thiele_model *out = NULL;
    assert_ok(ctx, thiele_model_update(&out, ctx, model, table, options));
    return out;
}

enum { TESTS = 5 };

static void assert_same(const thiele_model *a, const thiele_model *b, double tolerance)
{
    double x[TESTS] = {-2.5, -1.0, 0.1, 1.3, 2.9}, mean[2][2 * TESTS], variance[2][2 * TESTS];
    int64_t count = TESTS * thiele_model_latents(a);
    assert_ok(ctx, thiele_model_predict_rows(a, ctx, TESTS, x, 1, mean[0], variance[0]));
    assert_ok(ctx, thiele_model_predict_rows(b, ctx, TESTS, x, 1, mean[1], variance[1]));
    assert_all_near(mean[0], mean[1], count, tolerance, tolerance);
    assert_all_near(variance[0], variance[1], count, tolerance, tolerance);
}

/* Four batches of 50 rows, 50 time units apart, halve as often by time as they fade by rows. */
static void test_as_by_rows(void **state)
{
    (void)state;
    static const char *const targets[] = {"y", "y,z"};
    const double forget = 300.0;
    for (int k = 0; k < 2; k++) {
        thiele_table *first = make_table(100, 1, 0.0, 1.0, 1.0), *clock = make_table(50, 2, 100.0, 0.0, 1.0);
        thiele_model *fit = fit_rows(first, targets[k]);
        thiele_update_options time = by_time(forget * log(2.0)), rows = by_time(0.0);
        thiele_model *timed = update(fit, clock, &time), *counted = update(fit, clock, &rows);
        rows.forget = forget;
        for (int i = 1; i <= 4; i++) {
            thiele_table *more = make_table(50, (uint64_t)i + 2, 100.0 + 50.0 * i, 0.0, -1.0);
            thiele_model *a = update(timed, more, &time), *b = update(counted, more, &rows), *loaded = NULL;
            assert_same(a, b, 1e-9);
            assert_ok(ctx, thiele_model_save(a, ctx, in_folder("m.thiele")));
            assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("m.thiele")));
            thiele_model_destroy(timed);
            thiele_model_destroy(counted);
            thiele_model_destroy(a);
            timed = loaded;
            counted = b;
            thiele_table_destroy(more);
        }
        thiele_model_destroy(timed);
        thiele_model_destroy(counted);
        thiele_model_destroy(fit);
        thiele_table_destroy(first);
        thiele_table_destroy(clock);
    }
}

/* However a table is cut into updates and batches at equal times; and where time stands still or runs back. */
static void test_cuts(void **state)
{
    (void)state;
    thiele_table *first = make_table(100, 1, 0.0, 1.0, 1.0), *still = make_table(200, 2, 7.0, 0.0, -1.0);
    thiele_table *back = make_table(200, 2, 7.0, -3.0, -1.0);
    thiele_model *fit = fit_rows(first, "y");
    thiele_update_options time = by_time(10.0), rows = by_time(0.0);
    thiele_model *none = update(fit, still, &rows);
    thiele_model *stands = update(fit, still, &time), *runs = update(fit, back, &time);
    thiele_stream_facts facts;
    assert_same(none, stands, 0.0);
    assert_same(none, runs, 0.0);
    thiele_model_stream(runs, &facts);
    assert_string_equal(facts.time, "t");
    assert_true(facts.clock == 7.0 && facts.half_life == 10.0);
    thiele_model_stream(none, &facts);
    assert_true(facts.time == NULL && isnan(facts.clock));
    thiele_model_destroy(none);
    thiele_model_destroy(stands);
    thiele_model_destroy(runs);
    thiele_model_destroy(fit);
    thiele_table_destroy(first);
    thiele_table_destroy(still);
    thiele_table_destroy(back);
}

/* After 40 half-lives only the last rows are known; a batch spans a quarter of one, however many rows it may have. */
static void test_fades(void **state)
{
    (void)state;
    thiele_table *first = make_table(200, 1, 0.0, 0.0, 1.0), *now = make_table(1, 3, 0.0, 1.0, 1.0);
    thiele_table *later = make_table(400, 2, 400.0, 0.01, -1.0);
    thiele_model *fit = fit_rows(first, "y");
    thiele_update_options time = by_time(10.0);
    thiele_model *clocked = update(fit, now, &time), *changed = update(clocked, later, &time);
    thiele_scores scores;
    assert_ok(ctx, thiele_model_score(changed, ctx, later, NULL, &scores));
    assert_true(scores.rmse < 0.13);
    assert_ok(ctx, thiele_model_score(fit, ctx, later, NULL, &scores));
    assert_true(scores.rmse > 1.0);
    thiele_model_destroy(fit);
    thiele_model_destroy(clocked);
    thiele_model_destroy(changed);
    thiele_table_destroy(first);
    thiele_table_destroy(now);
    thiele_table_destroy(later);
}

static thiele_table *parse(const char *text)
{
    thiele_table *table = NULL;
    assert_ok(ctx, thi_table_parse_csv(&table, ctx, text, strlen(text), "t.csv", NULL));
    return table;
}

/* Dates count as days; a row without a time ends an update, or is left out. */
static void test_dates(void **state)
{
    (void)state;
    thiele_table *first = make_table(100, 1, 0.0, 1.0, 1.0);
    thiele_table *dates = parse("t,x,y,z\n2024-01-31T12:00:00,1,1,1\n2024-02-01,2,1,1\n");
    thiele_table *bad = parse("t,x,y,z\n2024-01-31,1,1,1\nsoon,2,1,1\n,3,1,1\n2024-02-02,2,1,1\n");
    thiele_update_options time = by_time(0.5);
    thiele_model *fit = fit_rows(first, "y,z"), *out = update(fit, dates, &time);
    thiele_learner *learner = NULL;
    thiele_stream_facts facts;
    thiele_model_stream(out, &facts);
    assert_near(facts.clock, 19754.0, 0.0, 0.0);
    thiele_model_destroy(out);
    assert_ok(ctx, thiele_learner_open(&learner, ctx, fit, &time));
    assert_fails(ctx, thiele_learner_add(learner, ctx, bad), THIELE_ERROR_DATA,
                 "t.csv, line 3: column 't', row 2: 'soon' is neither a number nor a date");
    thiele_learner_facts(learner, &facts);
    assert_int_equal(facts.rows, 1);
    thiele_learner_close(learner);
    time.skip_bad = 1;
    out = update(fit, bad, &time);
    thiele_model_stream(out, &facts);
    assert_int_equal(facts.rows, 2);
    assert_int_equal(facts.skipped, 2);
    assert_near(facts.clock, 19755.0, 0.0, 0.0);
    thiele_model_destroy(out);
    thiele_model_destroy(fit);
    thiele_table_destroy(first);
    thiele_table_destroy(dates);
    thiele_table_destroy(bad);
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_table *first = make_table(60, 1, 0.0, 1.0, 1.0);
    thiele_model *fit = fit_rows(first, "y"), *out = NULL;
    thiele_update_options time = by_time(5.0);
    time.time = "when";
    assert_fails(ctx, thiele_model_update(&out, ctx, fit, first, &time), THIELE_ERROR_COLUMN, "'when'");
    time.time = NULL;
    assert_fails(ctx, thiele_model_update(&out, ctx, fit, first, &time), THIELE_ERROR_ARGUMENT, "both");
    time = by_time(INFINITY);
    assert_fails(ctx, thiele_model_update(&out, ctx, fit, first, &time), THIELE_ERROR_ARGUMENT, "half-life");
    time = by_time(5.0);
    time.half_life = 0.0;
    assert_fails(ctx, thiele_model_update(&out, ctx, fit, first, &time), THIELE_ERROR_ARGUMENT, "both");
    thiele_model_destroy(fit);
    thiele_table_destroy(first);
}

/* Parameters are learned from rows that count; what is kept goes on from a file as it does without one. */
static void test_kept_weights(void **state)
{
    (void)state;
    thiele_table *first = make_table(300, 1, 0.0, 1.0, 1.0), *more[2];
    thiele_model *fit = fit_rows(first, "y"), *loaded = NULL;
    thiele_update_options time = by_time(800.0);
    time.freeze = 0;
    more[0] = make_table(2000, 2, 300.0, 1.0, -1.0);
    more[1] = make_table(1500, 3, 2300.0, 1.0, -1.0);
    thiele_model *half = update(fit, more[0], &time);
    assert_true(half->kept.rows.n >= 1024 && half->kept.rows.n < 2300);
    assert_true(half->kept.weight[0] < 0.6);
    assert_ok(ctx, thiele_model_save(half, ctx, in_folder("h.thiele")));
    assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("h.thiele")));
    thiele_model *a = update(half, more[1], &time), *b = update(loaded, more[1], &time);
    assert_same(a, b, 0.0);
    loaded->kept.weight[3] = 1.5;
    assert_fails(ctx, thiele_model_save(loaded, ctx, in_folder("f.thiele")), THIELE_ERROR_FORMAT, "'kept.weights'");
    thiele_model_destroy(a);
    thiele_model_destroy(b);
    thiele_model_destroy(half);
    thiele_model_destroy(loaded);
    thiele_model_destroy(fit);
    thiele_table_destroy(first);
    thiele_table_destroy(more[0]);
    thiele_table_destroy(more[1]);
}

/*
 * Where the function changes its sign half of the kept rows contradict the others: all is noise, and the length-scale
 * leaves for where it has no slope. Rows of the new function alone lead back.
 */
static void test_leaves_noise(void **state)
{
    (void)state;
    thiele_table *first = make_table(1000, 1, 0.0, 1.0, 1.0), *same = make_table(4000, 2, 0.0, 1.0, 1.0);
    thiele_table *other = make_table(8000, 3, 0.0, 1.0, -1.0), *test = make_table(1000, 4, 0.0, 1.0, -1.0);
    thiele_model *fit = fit_rows(first, "y");
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_scores scores;
    options.forget = 2000.0;
    options.batch = 500;
    thiele_model *before = update(fit, same, &options), *after = update(before, other, &options);
    assert_ok(ctx, thiele_model_score(after, ctx, test, NULL, &scores));
    assert_true(scores.rmse < 0.11);
    assert_true(scores.nlpd < -0.75);
    thiele_model_destroy(fit);
    thiele_model_destroy(before);
    thiele_model_destroy(after);
    thiele_table_destroy(first);
    thiele_table_destroy(same);
    thiele_table_destroy(other);
    thiele_table_destroy(test);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_table *first = make_table(60, 1, 0.0, 1.0, 1.0);
    thiele_table *more = parse("t,x,y,z\n2024-01-31,1,1,1\n2024-02-02,2,1,1\n,2,1,1\n2024-02-03,1.5,1,1\n");
    thiele_model *fit = fit_rows(first, "y"), *out = NULL;
    thiele_update_options time = by_time(2.0);
    time.skip_bad = 1;
    size_t held = thi_memory_held(ctx);
    int64_t before = thi_allocations(ctx);
    out = update(fit, more, &time);
    int64_t count = thi_allocations(ctx) - before;
    thiele_model_destroy(out);
    for (int64_t nth = 1; nth <= count; nth++) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = thiele_model_update(&out, ctx, fit, more, &time);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal(status, THIELE_ERROR_MEMORY);
        assert_null(out);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_model_destroy(fit);
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_by_rows),   cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_fades),        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_kept_weights),
        cmocka_unit_test(test_leaves_noise), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

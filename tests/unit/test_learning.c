/*
 * Parameters that are learned while rows arrive (model/learner_parameters.c): updates end where one fit does; changes
 * of length-scale and noise are followed; a file in the middle and the number of threads make no difference; what is
 * fixed stays; kept rows in files that nobody vouches for; failing allocations.
 */
#include "model_testing.h"

#include <jansson.h>
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

/* y = f(x) + noise, f a draw of a Gaussian process with a squared exponential kernel by random features. */
enum { FEATURES = 300 };
typedef struct source {
    double lengthscale, noise;
    uint64_t seed;
} source;

static double function(const source *s, double x)
{
    double sum = 0.0;
    for (uint64_t k = 0; k < FEATURES; k++) {
        thi_stream stream = {s->seed, THI_RANDOM_DEMO, 1000000 + k};
        sum +=
            cos(thi_random_normal(stream, 0) * x / s->lengthscale + 6.283185307179586 * thi_random_uniform(stream, 5));
    }
    return sum * sqrt(2.0 / FEATURES);
}

static thiele_table *make_table(int64_t rows, uint64_t seed, const source *s)
{
    static const char *const names[] = {"x", "y"};
    double *values = malloc((size_t)rows * 2 * sizeof *values);
    thiele_table *table = NULL;
    for (int64_t i = 0; i < rows; i++) {
        thi_stream stream = {seed, THI_RANDOM_DEMO, (uint64_t)i};
        values[2 * i] = 20.0 * thi_random_uniform(stream, 0);
        values[2 * i + 1] = function(s, values[2 * i]) + s->noise * thi_random_normal(stream, 3);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, 2, values, names));
    free(values);
    return table;
}

static thiele_table *part_of(const thiele_table *table, int64_t first, int64_t count)
{
    int64_t order[1000];
    thiele_table *out = NULL;
    for (int64_t i = 0; i < count; i++) {
        order[i] = first + i;
    }
    assert_ok(ctx, thiele_table_select(&out, ctx, table, order, count));
    return out;
}

static thiele_model *fit_table(const thiele_table *table, const char *method, int64_t inducing, const char *set)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.model.method = method;
    options.prior.kernel = "se";
    options.inducing.inducing = inducing;
    options.decoupled.mean_inducing = strcmp(method, "decoupled") == 0 ? 60 : 0;
    options.prior.set = set;
    return fitted(ctx, table, &options);
}

static thiele_model *update(thiele_context *c, const thiele_model *model, const thiele_table *table, int64_t keep)
{
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_model *out = NULL;
    options.keep = keep;
    options.batch = 100;
    assert_ok(c, thiele_model_update(&out, c, model, table, &options));
    return out;
}

static double parameter(const thiele_model *model, const char *name)
{
    for (int i = 0; i < model->learned_count; i++) {
        if (strstr(model->learned[i].name, name) != NULL) {
            return model->learned[i].value;
        }
    }
    fail_msg("no parameter %s", name);
    return NAN;
}

/* --- where it ends ---------------------------------------------------------------------------------------------------
 */

/* 150 + 450 rows with too few inducing inputs for them to stay where 150 rows put them. */
static void test_as_one_fit(void **state)
{
    (void)state;
    static const char *const methods[] = {"collapsed", "variational", "decoupled"};
    const source s = {0.7, 0.2, 3};
    thiele_table *all = make_table(600, 1, &s), *test = make_table(1000, 4, &s);
    thiele_table *first = part_of(all, 0, 150), *more = part_of(all, 150, 450);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        thiele_model *model = fit_table(first, methods[i], 16, NULL), *one = fit_table(all, methods[i], 16, NULL);
        thiele_model *updated = update(ctx, model, more, 0);
        thiele_scores got, want;
        assert_ok(ctx, thiele_model_score(updated, ctx, test, NULL, &got));
        assert_ok(ctx, thiele_model_score(one, ctx, test, NULL, &want));
        assert_true(got.rmse < 1.02 * want.rmse);
        assert_true(got.nlpd < want.nlpd + 0.02);
        assert_survives(ctx, updated);
        thiele_model_destroy(model);
        thiele_model_destroy(one);
        thiele_model_destroy(updated);
    }
    thiele_table_destroy(first);
    thiele_table_destroy(more);
    thiele_table_destroy(all);
    thiele_table_destroy(test);
}

/* --- changes ---------------------------------------------------------------------------------------------------------
 */

/* Length-scale and noise change, and the function with them: both become those of a fit of the new rows alone. */
static void check_change(const source *before, const source *after)
{
    thiele_table *first = make_table(400, 1, before), *old = make_table(1500, 2, before);
    thiele_table *new = make_table(4000, 3, after);
    thiele_model *model = fit_table(first, "collapsed", 40, NULL);
    thiele_model *same = update(ctx, model, old, 800), *changed = update(ctx, same, new, 800);
    thiele_model *want = fit_table(new, "collapsed", 40, NULL);
    assert_near(parameter(same, "lengthscale"), parameter(model, "lengthscale"), 0.2, 0.0);
    assert_near(sqrt(parameter(same, "noise")), before->noise, 0.1, 0.0);
    assert_near(parameter(changed, "lengthscale"), parameter(want, "lengthscale"), 0.2, 0.0);
    assert_near(sqrt(parameter(changed, "noise")), after->noise, 0.1, 0.0);
    thiele_model_destroy(want);
    thiele_model_destroy(model);
    thiele_model_destroy(same);
    thiele_model_destroy(changed);
    thiele_table_destroy(first);
    thiele_table_destroy(old);
    thiele_table_destroy(new);
}

static void test_changes(void **state)
{
    (void)state;
    const source smooth = {1.6, 0.3, 5}, rough = {0.8, 0.1, 6};
    check_change(&smooth, &rough);
    check_change(&rough, &smooth);
}

/* What the fit was told to leave alone stays, and so does all of it with --freeze. */
static void test_fixed(void **state)
{
    (void)state;
    const source s = {0.7, 0.2, 3}, other = {1.5, 0.4, 4};
    thiele_table *first = make_table(200, 1, &s), *more = make_table(800, 2, &other);
    thiele_model *model = fit_table(first, "collapsed", 20, "noise=0.05");
    thiele_model *learned = update(ctx, model, more, 300), *frozen = update(ctx, model, more, -1);
    assert_true(parameter(learned, "noise") == parameter(model, "noise"));
    assert_true(parameter(learned, "lengthscale") != parameter(model, "lengthscale"));
    assert_true(parameter(frozen, "lengthscale") == parameter(model, "lengthscale"));
    assert_int_equal(learned->kept.rows.n, 300);
    assert_int_equal(frozen->kept.rows.n, 0);
    thiele_model_destroy(model);
    thiele_model_destroy(learned);
    thiele_model_destroy(frozen);
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

/* --- bits and files --------------------------------------------------------------------------------------------------
 */

static void assert_same(thiele_context *c, const thiele_model *a, const thiele_model *b)
{
    double x[9], mean[2][9], variance[2][9];
    for (int i = 0; i < 9; i++) {
        x[i] = 2.2 * i;
    }
    assert_ok(c, thiele_model_predict_rows(a, c, 9, x, 0, mean[0], variance[0]));
    assert_ok(c, thiele_model_predict_rows(b, c, 9, x, 0, mean[1], variance[1]));
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
}

/* The same on one thread and on three, and from a file as from memory; all rows kept, and some of them. */
static void test_bits(void **state)
{
    (void)state;
    static const char *const methods[] = {"collapsed", "decoupled"};
    static const int64_t keep[] = {0, 150};
    const source s = {0.7, 0.2, 3};
    thiele_context *other = test_context(3), *alone = test_context(1);
    thiele_table *first = make_table(200, 1, &s), *more = make_table(700, 2, &s);
    for (int i = 0; i < 4; i++) {
        thiele_model *model = fit_table(first, methods[i / 2], 12, NULL), *loaded = NULL;
        assert_ok(ctx, thiele_model_save(model, ctx, in_folder("m.thiele")));
        assert_ok(other, thiele_model_load(&loaded, other, in_folder("m.thiele")));
        thiele_model *one = update(alone, model, more, keep[i % 2]), *two = update(other, loaded, more, keep[i % 2]);
        assert_same(ctx, one, two);
        thiele_model_destroy(one);
        thiele_model_destroy(two);
        thiele_model_destroy(model);
        thiele_model_destroy(loaded);
    }
    thiele_table_destroy(first);
    thiele_table_destroy(more);
    thiele_context_destroy(other);
    thiele_context_destroy(alone);
}

/* Facts about kept rows that make no sense are refused. */
static void test_forged(void **state)
{
    (void)state;
    static const struct {
        int64_t most, next, begun;
    } cases[] = {{149, 0, 0}, {150, 150, 0}, {150, -1, 0}, {200, 7, 0}, {2000000, 0, 0}, {150, 3, -4}};
    const source s = {0.7, 0.2, 3};
    thiele_table *first = make_table(150, 1, &s);
    thiele_model *model = fit_table(first, "collapsed", 12, NULL), *loaded = NULL;
    assert_int_equal(model->kept.rows.n, 150);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thi_kept kept = model->kept;
        model->kept.most = cases[i].most;
        model->kept.next = cases[i].next;
        model->schedule.begun = cases[i].begun;
        assert_fails(ctx, thiele_model_save(model, ctx, in_folder("f.thiele")), THIELE_ERROR_FORMAT, "'kept'");
        model->kept = kept;
        model->schedule.begun = 0;
    }
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("f.thiele")));
    assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("f.thiele")));
    assert_int_equal(loaded->kept.rows.n, 150);
    thiele_model_destroy(model);
    thiele_model_destroy(loaded);
    thiele_table_destroy(first);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    const source s = {0.7, 0.2, 3}, other = {1.5, 0.4, 4};
    thiele_table *first = make_table(60, 1, &s), *more = make_table(150, 2, &other);
    thiele_model *model = fit_table(first, "collapsed", 8, NULL), *out = NULL;
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    options.keep = 60;
    size_t held = thi_memory_held(ctx);
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, thiele_model_update(&out, ctx, model, more, &options));
    int64_t count = thi_allocations(ctx) - before;
    thiele_model_destroy(out);
    for (int64_t nth = 1; nth <= count; nth += 1 + nth / 60) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = thiele_model_update(&out, ctx, model, more, &options);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal(status, THIELE_ERROR_MEMORY);
        assert_null(out);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_model_destroy(model);
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_one_fit), cmocka_unit_test(test_changes), cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_bits),       cmocka_unit_test(test_forged),  cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

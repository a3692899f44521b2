/*
 * Predictors of single rows through the public API against predictions of many rows: models of every kind, what a call
 * allocates, tables long and short, errors, several threads, a context that is gone, failing allocations.
 */
#include "model_testing.h"

#include <pthread.h>

enum { ROWS = 60 };

/* A fit to the demonstration data, and what it takes of the options. */
typedef struct kind {
    const char *name;
    thiele_fit_options options;
    bool allocates; /* it is not made of points */
} kind;

#define FIT(...)                                                                                                       \
    {                                                                                                                  \
        .size = sizeof(thiele_fit_options), .columns.target = "strength", .columns.ignore = "row",                     \
        .stopping.iterations = 2, __VA_ARGS__                                                                          \
    }

static const kind kinds[] = {
    {"exact", FIT(.model.method = "exact"), false},
    {"exact, composite", FIT(.model.method = "exact", .prior.kernel = "se(dims=1) + linear*matern32 + white"), false},
    {"linear mean", FIT(.model.method = "exact", .prior.mean = "linear"), false},
    {"collapsed", FIT(.model.method = "collapsed", .inducing.inducing = 20), false},
    {"sor", FIT(.model.method = "sor", .inducing.inducing = 20), false},
    {"fic", FIT(.model.method = "fic", .inducing.inducing = 20), false},
    /* Blocks by a column are those of single rows and of tables alike. */
    {"pic", FIT(.model.method = "pic", .inducing.inducing = 20, .columns.partition = "site"), true},
    {"dense student-t", FIT(.model.method = "dense", .model.likelihood = "student_t(nu=4)"), false},
    {"variational", FIT(.model.method = "variational", .inducing.inducing = 20, .model.likelihood = "laplace"), false},
    {"mixture", FIT(.model.method = "variational", .inducing.inducing = 20, .inducing.posterior = "mixture:2"), false},
    {"full mixture",
     FIT(.model.method = "variational", .inducing.inducing = 20, .inducing.posterior = "mixture-full:2"), false},
    {"decoupled", FIT(.model.method = "decoupled", .inducing.inducing = 10, .decoupled.mean_inducing = 30), false},
    {"decoupled, own scales",
     FIT(.model.method = "decoupled", .prior.kernel = "se(ard)", .inducing.inducing = 10, .decoupled.mean_inducing = 30,
         .decoupled.own_scales = 1),
     true},
};

static thiele_predictor *opened(thiele_context *ctx, const thiele_model *model, thiele_predict_what what)
{
    thiele_predictor *predictor = NULL;
    assert_ok(ctx, thiele_predictor_open(&predictor, ctx, model, what));
    return predictor;
}

/* x1, x2 and the number of a level of `site`. */
static void take_rows(double *x)
{
    for (int i = 0; i < ROWS; i++) {
        x[3 * i] = -3.0 + 6.0 * i / ROWS;
        x[3 * i + 1] = 2.0 * sin(3.0 * i);
        x[3 * i + 2] = i % 2;
    }
}

static void check_rows(thiele_context *ctx, const thiele_model *model, thiele_predict_what what, bool allocates)
{
    double x[3 * ROWS], want[2][ROWS], mean, alone, variance;
    thiele_predictor *predictor = opened(ctx, model, what);
    take_rows(x);
    assert_int_equal(thiele_predictor_outputs(predictor), 1);
    assert_ok(ctx, thiele_model_predict_rows(model, ctx, ROWS, x, what == THIELE_PREDICT_LATENT, want[0], want[1]));
    /* Once more of all rows: what quadrature needed first is there then. */
    for (int run = 0; run < 2; run++) {
        int64_t before = thi_allocations(ctx);
        for (int i = 0; i < ROWS; i++) {
            assert_int_equal(thiele_predictor_row(predictor, x + 3 * i, &mean, &variance), THIELE_OK);
            assert_int_equal(thiele_predictor_row(predictor, x + 3 * i, &alone, NULL), THIELE_OK);
            assert_near(mean, want[0][i], 1e-8, 1e-8);
            assert_near(variance, want[1][i], 1e-8, 1e-8);
            assert_near(alone, mean, 1e-14, 0.0);
        }
        assert_true(run == 0 || allocates || thi_allocations(ctx) == before);
    }
    thiele_predictor_destroy(predictor);
}

static void test_kinds(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_table *train = demo(ctx, 120, 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        print_message("%s\n", kinds[i].name);
        thiele_model *model = fitted(ctx, train, &kinds[i].options);
        check_rows(ctx, model, THIELE_PREDICT_OBSERVATION, kinds[i].allocates);
        check_rows(ctx, model, THIELE_PREDICT_LATENT, kinds[i].allocates);
        thiele_model_destroy(model);
    }
    thiele_table_destroy(train);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- classes and several outputs -------------------------------------------------------------------------------------
 */

/* Three columns: x, a class of three by where x is, and its square. */
static thiele_table *classes_table(thiele_context *ctx)
{
    static const char *const names[] = {"x", "class", "square"};
    double values[3 * 90];
    thiele_table *table = NULL;
    for (int i = 0; i < 90; i++) {
        double x = -3.0 + 6.0 * ((i * 37) % 90) / 90.0;
        values[3 * i] = x;
        values[3 * i + 1] = x < -1.0 ? 1.0 : x < 1.2 ? 2.0 : 3.0;
        values[3 * i + 2] = x * x + 0.1 * sin(50.0 * x);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, 90, 3, values, names));
    return table;
}

static void test_classes(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = classes_table(ctx);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "class";
    options.columns.inputs = "x";
    options.model.likelihood = "softmax";
    options.model.method = "variational";
    options.inducing.inducing = 6;
    options.stopping.epochs = 2;
    options.stopping.iterations = 5;
    thiele_model *model = fitted(ctx, table, &options);
    thiele_predictor *labels = opened(ctx, model, THIELE_PREDICT_OBSERVATION);
    thiele_predictor *latents = opened(ctx, model, THIELE_PREDICT_LATENT);
    assert_int_equal(thiele_predictor_outputs(latents), 3);
    for (int i = 0; i < 5; i++) {
        double x = -3.0 + 1.2 * i, got[3], want[3], spread[2][3];
        assert_int_equal(thiele_predictor_probabilities(labels, &x, got), THIELE_OK);
        assert_ok(ctx, thiele_model_predict_probabilities(model, ctx, 1, &x, want));
        assert_all_near(got, want, 3, 1e-9, 1e-9);
        assert_int_equal(thiele_predictor_row(latents, &x, got, spread[0]), THIELE_OK);
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 1, &x, 1, want, spread[1]));
        assert_all_near(got, want, 3, 1e-9, 1e-9);
        assert_all_near(spread[0], spread[1], 3, 1e-8, 1e-9);
    }
    double x = 0.0, out[3];
    assert_int_equal(thiele_predictor_row(labels, &x, out, NULL), THIELE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(thiele_predictor_message(labels), "probabilities"));
    assert_int_equal(thiele_predictor_probabilities(latents, &x, out), THIELE_ERROR_UNSUPPORTED);
    thiele_predictor_destroy(labels);
    thiele_predictor_destroy(latents);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- tables ----------------------------------------------------------------------------------------------------------
 */

typedef struct column {
    int64_t rows;
    double *mean, *variance;
} column;

static thiele_status append(const thiele_prediction *block, void *user)
{
    column *c = user;
    memcpy(c->mean + c->rows, block->mean, (size_t)block->rows * sizeof *c->mean);
    memcpy(c->variance + c->rows, block->variance, (size_t)block->rows * sizeof *c->variance);
    c->rows += block->rows;
    return THIELE_OK;
}

static column predicted(thiele_context *ctx, const thiele_model *model, const thiele_table *table)
{
    column c = {0};
    assert_ok(ctx, thi_alloc(ctx, &c.mean, (size_t)thiele_table_rows(table), sizeof *c.mean));
    assert_ok(ctx, thi_alloc(ctx, &c.variance, (size_t)thiele_table_rows(table), sizeof *c.variance));
    assert_ok(ctx, thiele_model_predict(model, ctx, table, NULL, append, &c));
    assert_int_equal(c.rows, thiele_table_rows(table));
    return c;
}

static void forget(column *c)
{
    thi_free(c->mean);
    thi_free(c->variance);
}

/* Rows of a table that pays for one triangle, which is read in windows, and the same at the head of one that doesn't;
 * in units of the prior the variances differ by 1e-10 at most, and the prior's is some times the data's. */
static void test_tables(void **state)
{
    (void)state;
    enum { LONG = 7000, SHORT = THI_PREDICT_BLOCK };
    thiele_context *ctx = test_context(2), *other = test_context(5);
    thiele_table *train = demo(ctx, 300, 1), *all = demo(ctx, LONG, 2), *head = demo(ctx, SHORT, 2);
    thiele_fit_options options = demo_options();
    options.model.method = "collapsed";
    options.inducing.inducing = 80;
    options.stopping.iterations = 3;
    thiele_model *model = fitted(ctx, train, &options);
    column a = predicted(ctx, model, all), b = predicted(ctx, model, head), c = predicted(other, model, all);
    assert_all_near(a.mean, b.mean, SHORT, 1e-13, 1e-13);
    assert_all_near(a.variance, b.variance, SHORT, 1e-8, 1e-8);
    assert_true(memcmp(a.variance, b.variance, SHORT * sizeof *a.variance) != 0);
    assert_memory_equal(a.mean, c.mean, LONG * sizeof *a.mean);
    assert_memory_equal(a.variance, c.variance, LONG * sizeof *a.variance);
    forget(&a);
    forget(&b);
    forget(&c);
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_table_destroy(all);
    thiele_table_destroy(head);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    thiele_context_destroy(other);
}

/* --- errors ----------------------------------------------------------------------------------------------------------
 */

static void test_errors(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *train = demo(ctx, 50, 1);
    thiele_fit_options options = demo_options();
    options.stopping.iterations = -1;
    thiele_model *model = fitted(ctx, train, &options);
    thiele_predictor *none = NULL, *predictor = opened(ctx, model, THIELE_PREDICT_OBSERVATION);
    double mean, variance, good[] = {0.5, 0.5, 1.0};
    const struct {
        double x[3];
        const char *why;
    } bad[] = {{{NAN, 0.0, 0.0}, "'x1'"}, {{0.0, INFINITY, 0.0}, "'x2'"}, {{0.0, 0.0, 7.0}, "level 7"}};
    assert_string_equal(thiele_predictor_message(predictor), thiele_context_message(ctx));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(thiele_predictor_row(predictor, bad[i].x, &mean, &variance), THIELE_ERROR_ARGUMENT);
        assert_non_null(strstr(thiele_predictor_message(predictor), bad[i].why));
    }
    assert_int_equal(thiele_predictor_row(predictor, NULL, &mean, NULL), THIELE_ERROR_ARGUMENT);
    assert_int_equal(thiele_predictor_row(predictor, good, NULL, NULL), THIELE_ERROR_ARGUMENT);
    assert_int_equal(thiele_predictor_probabilities(predictor, good, &mean), THIELE_ERROR_UNSUPPORTED);
    assert_fails(ctx, thiele_predictor_open(&none, ctx, model, (thiele_predict_what)7), THIELE_ERROR_ARGUMENT,
                 "observations or latent");
    assert_null(none);
    thiele_predictor_destroy(NULL);
    assert_non_null(thiele_predictor_message(NULL));
    /* The context may go before the predictor. */
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
    assert_int_equal(thiele_predictor_row(predictor, bad[0].x, &mean, &variance), THIELE_ERROR_ARGUMENT);
    assert_int_equal(thiele_predictor_row(predictor, good, &mean, &variance), THIELE_OK);
    assert_true(variance > 0.0);
    thiele_predictor_destroy(predictor);
    thiele_model_destroy(model);
}

static void test_failures(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *train = demo(ctx, 60, 1);
    thiele_model *model = fitted(ctx, train, &kinds[3].options);
    size_t held = thi_memory_held(ctx);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        thiele_predictor *predictor;
        thi_fail_allocation(ctx, nth, false);
        status = thiele_predictor_open(&predictor, ctx, model, THIELE_PREDICT_OBSERVATION);
        assert_true(status == THIELE_OK || (status == THIELE_ERROR_MEMORY && predictor == NULL));
        thiele_predictor_destroy(predictor);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thi_fail_allocation(ctx, 0, false);
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

/* --- threads ---------------------------------------------------------------------------------------------------------
 */

typedef struct share {
    thiele_predictor *predictor;
    double mean[ROWS], variance[ROWS];
    int failed;
} share;

static void *predict_share(void *arg)
{
    share *s = arg;
    double x[3 * ROWS];
    take_rows(x);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < ROWS; i++) {
            s->failed += thiele_predictor_row(s->predictor, x + 3 * i, &s->mean[i], &s->variance[i]) != THIELE_OK;
        }
    }
    return NULL;
}

/* Each thread has its own, of one model; all see the same bits. */
static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    static const char *const methods[] = {"exact", "pic"};
    thiele_context *ctx = test_context(2);
    thiele_table *train = demo(ctx, 80, 1);
    for (int m = 0; m < 2; m++) {
        thiele_fit_options options = demo_options();
        options.model.method = methods[m];
        options.inducing.inducing = m > 0 ? 20 : 0;
        options.stopping.iterations = 3;
        thiele_model *model = fitted(ctx, train, &options);
        share shares[THREADS] = {0};
        pthread_t thread[THREADS];
        for (int t = 0; t < THREADS; t++) {
            shares[t].predictor = opened(ctx, model, THIELE_PREDICT_OBSERVATION);
        }
        for (int t = 0; t < THREADS; t++) {
            assert_int_equal(pthread_create(&thread[t], NULL, predict_share, &shares[t]), 0);
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(thread[t], NULL);
            assert_int_equal(shares[t].failed, 0);
            assert_memory_equal(shares[t].mean, shares[0].mean, sizeof shares[t].mean);
            assert_memory_equal(shares[t].variance, shares[0].variance, sizeof shares[t].variance);
            thiele_predictor_destroy(shares[t].predictor);
        }
        thiele_model_destroy(model);
    }
    thiele_table_destroy(train);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),  cmocka_unit_test(test_classes),  cmocka_unit_test(test_tables),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_failures), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

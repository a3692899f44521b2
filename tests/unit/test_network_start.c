/*
 * Where regression networks begin (model/choose_network.c): with outputs coupled as they are, with none where they are
 * not, and better than independent fits where one output is mostly missing; the same on any number of threads.
 */
#include "model_testing.h"

#include "likelihood/likelihood.h"

enum { ROWS = 240, COLUMNS = 4 };
static const char *const names[COLUMNS] = {"x", "z", "a", "b"};

static double uniform(int64_t i, uint64_t index)
{
    return thi_random_uniform((thi_stream){11, THI_RANDOM_DEMO, (uint64_t)i}, index);
}

/*
 * a is a function of x and z; b is `coupling` times a, and a smooth function of its own. Of each row from `hidden` on
 * three in four have no b.
 */
static thiele_table *arm(thiele_context *ctx, int64_t first, double coupling, int64_t hidden)
{
    double *values = calloc(ROWS * COLUMNS, sizeof *values);
    thiele_table *table = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t row = first + i;
        double *v = values + i * COLUMNS, x = 4.0 * uniform(row, 0), z = 4.0 * uniform(row, 1);
        double e = 0.02 * thi_random_normal((thi_stream){12, THI_RANDOM_DEMO, (uint64_t)row}, 0);
        double d = 0.02 * thi_random_normal((thi_stream){12, THI_RANDOM_DEMO, (uint64_t)row}, 1);
        double shared = sin(3.0 * x) * cos(2.0 * z);
        v[0] = x;
        v[1] = z;
        v[2] = shared + e;
        v[3] = coupling * shared + 0.5 * cos(x + 0.5 * z) + d;
        v[3] = i >= hidden && i % 4 != 0 ? NAN : v[3];
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, ROWS, COLUMNS, values, names));
    free(values);
    return table;
}

static thiele_model *fit_both(thiele_context *ctx, const thiele_table *table, const char *likelihood)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "a,b";
    options.model.likelihood = likelihood;
    options.model.method = "pic";
    options.prior.kernel = "se(ard)";
    return fitted(ctx, table, &options);
}

/* The learned mean of a latent function, from 1. */
static double loading(const thiele_model *model, int latent)
{
    char name[32];
    snprintf(name, sizeof name, "f%d.mean.constant", latent);
    for (int i = 0; i < model->learned_count; i++) {
        if (strcmp(model->learned[i].name, name) == 0) {
            return model->learned[i].value;
        }
    }
    fail_msg("no %s", name);
    return NAN;
}

static void test_coupling(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_table *train = arm(ctx, 0, 1.0, 0), *test = arm(ctx, ROWS, 1.0, ROWS);
    thiele_model *network = fit_both(ctx, train, "gprn"), *apart = fit_both(ctx, train, "gaussian");
    thiele_scores together[2], alone[2];
    assert_ok(ctx, thiele_model_score(network, ctx, test, NULL, together));
    assert_ok(ctx, thiele_model_score(apart, ctx, test, NULL, alone));
    /* Latents: two nodes, then the weights row by row. What b has of a, in standard deviations of both. */
    double ratio = network->encoder.target[1].scale / network->encoder.target[0].scale;
    assert_true(loading(network, 3) == 1.0 && loading(network, 4) == 0.0 && loading(network, 6) == 1.0);
    assert_near(loading(network, 5) * ratio, 1.0, 0.0, 0.1);
    /* 60 rows cannot tell these waves; 240 can. */
    assert_true(together[1].smse < 0.5 * alone[1].smse);
    assert_true(together[0].smse < 1.1 * alone[0].smse);
    thiele_model_destroy(network);
    thiele_model_destroy(apart);
    thiele_table_destroy(train);
    thiele_table_destroy(test);
    thiele_context_destroy(ctx);
}

/* Outputs that have nothing in common, and the same bits on any number of threads. */
static void test_no_coupling(void **state)
{
    (void)state;
    thiele_scores scores[2][2];
    memset(scores, 0, sizeof scores);
    for (int t = 0; t < 2; t++) {
        thiele_context *ctx = test_context(1 + t);
        thiele_table *train = arm(ctx, 0, 0.0, ROWS), *test = arm(ctx, ROWS, 0.0, ROWS);
        thiele_model *network = fit_both(ctx, train, "gprn");
        assert_near(loading(network, 5), 0.0, 0.0, 0.05);
        assert_ok(ctx, thiele_model_score(network, ctx, test, NULL, scores[t]));
        assert_true(scores[t][1].smse < 0.02);
        thiele_model_destroy(network);
        thiele_table_destroy(train);
        thiele_table_destroy(test);
        thiele_context_destroy(ctx);
    }
    assert_true(scores[0][0].smse == scores[1][0].smse && scores[0][1].nlpd == scores[1][1].nlpd);
}

/* Nodes are guessed by the weights that a network has before y, missing outputs left out. */
static void test_guess(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "gprn(noise=1e-8)", 2, 0));
    assert_int_equal(lik->latents, 6);
    double y[] = {0.7, -1.2}, f[] = {0, 0, 1, 0, 0.8, 1};
    lik->ops->guess(lik, y, f);
    assert_near(f[0], 0.7, 0.0, 1e-6);
    assert_near(f[1], -1.2 - 0.8 * 0.7, 0.0, 1e-6);
    assert_true(f[2] == 1 && f[3] == 0 && f[4] == 0.8 && f[5] == 1);
    double some[] = {0.7, NAN}, g[6] = {0};
    lik->ops->guess(lik, some, g); /* no weights are known: each output its own node */
    assert_near(g[0], 0.7, 0.0, 1e-6);
    assert_true(g[1] == 0 && g[2] == 1 && g[3] == 0 && g[4] == 0 && g[5] == 1);
    thiele_likelihood_destroy(lik);
    thiele_context_destroy(ctx);
}

static thiele_status short_fit(thiele_context *ctx)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_table *all = NULL;
    thiele_model *model = NULL;
    options.columns.target = "strength,x2";
    options.columns.inputs = "x1";
    options.model.likelihood = "gprn";
    options.model.method = "pic";
    options.prior.kernel = "se";
    options.inducing.inducing = 8;
    thiele_status status;
    THI_TRY(thiele_table_generate(&all, ctx, 64, 1));
    THI_TRY(thiele_model_fit(&model, ctx, all, &options));
out:
    thiele_model_destroy(model);
    thiele_table_destroy(all);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    size_t held = thi_memory_held(ctx);
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, short_fit(ctx));
    int64_t count = thi_allocations(ctx) - before;
    for (int64_t nth = 1; nth <= count; nth += 1 + nth / 12) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = short_fit(ctx);
        thi_fail_allocation(ctx, 0, false);
        if (status != THIELE_ERROR_MEMORY) {
            fail_msg("allocation %lld: %s", (long long)nth, thiele_context_message(ctx));
        }
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_coupling),
        cmocka_unit_test(test_no_coupling),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

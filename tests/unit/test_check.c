/* Checks by simulation: ranks are uniform where inference is exact, and not where it is wrong on purpose. */
#include "chains_testing.h"
#include "model_testing.h"

#include <jansson.h>
#include <thiele/report.h>

#include "model/methods.h"
#include "report/sbc.h"
#include "report/statistic.h"

enum { SIMULATIONS = 400, ROWS = 14, BINS = 10 };

/* The p-value of a chi-square over ranks of one quantity. */
static double p_value(const thi_sbc *sbc, int quantity)
{
    double square = 0.0, expected = (double)sbc->simulations / BINS;
    int count[BINS] = {0};
    for (int64_t s = 0; s < sbc->simulations; s++) {
        int rank = sbc->rank[quantity + s * THI_SBC_QUANTITIES];
        assert_in_range(rank, 0, THI_SBC_DRAWS);
        count[rank * BINS / (THI_SBC_DRAWS + 1)]++;
    }
    for (int b = 0; b < BINS; b++) {
        square += (count[b] - expected) * (count[b] - expected) / expected;
    }
    return thi_chi_square_tail(BINS - 1.0, square);
}

/* The least of all quantities' p-values; noise: what is conditioned by, in place of the truth's; 0: the same. */
static double least(const char *method, const char *likelihood, double noise)
{
    thiele_context *ctx = test_context(1);
    chain_setting truth, other;
    int rank[THI_SBC_QUANTITIES * SIMULATIONS];
    double found = 1.0;
    open_chain_setting(&truth, ctx, likelihood, 1, 0, "se(lengthscale=1.2,variance=2)", "zero", ROWS, 1);
    open_chain_setting(&other, ctx, likelihood, 1, 0, "se(lengthscale=1.2,variance=2)", "zero", ROWS, 1);
    if (noise > 0.0) {
        assert_ok(ctx, thi_likelihood_set_phi(other.spec.lik, ctx, 0, noise));
    }
    const thi_sbc sbc = {thi_method_named(method), &truth.spec, &other.spec, &truth.rows, SIMULATIONS, rank};
    other.spec.steps = sbc.method->steps;
    assert_true(thi_sbc_can(sbc.method));
    assert_ok(ctx, thi_sbc_run(&sbc, ctx));
    for (int k = 0; k < THI_SBC_QUANTITIES; k++) {
        char name[32];
        double p = p_value(&sbc, k);
        thi_sbc_name(&sbc, k, name);
        print_message("%s %s, %s: p %.3g\n", method, likelihood, name, p);
        found = fmin(found, p);
    }
    close_chain_setting(&truth);
    close_chain_setting(&other);
    thiele_context_destroy(ctx);
    return found;
}

/* At a level of 1% for all of them together: the first step of Holm's correction decides whether there is any. */
enum { FAMILY = 4 };
static const double LEVEL = 0.01 / (FAMILY * THI_SBC_QUANTITIES);

static void test_exact_is_uniform(void **state)
{
    (void)state;
    assert_true(least("exact", "gaussian(noise=0.5)", 0.0) > LEVEL);
}

static void test_samplers_are_uniform(void **state)
{
    (void)state;
    static const char *const samplers[] = {"gibbs", "ess", "hmc"};
    for (size_t k = 0; k < sizeof samplers / sizeof *samplers; k++) {
        assert_true(least(samplers[k], "logistic", 0.0) > LEVEL);
    }
}

static void test_wrong_noise_is_found(void **state)
{
    (void)state;
    assert_true(least("exact", "gaussian(noise=0.5)", 0.25) < 1e-6);
    assert_true(least("exact", "gaussian(noise=0.5)", 1.0) < 1e-6);
}

/* --- models ---------------------------------------------------------------------------------------------------------
 */

static thiele_model *model_by(thiele_context *ctx, const char *method)
{
    thiele_table *table = demo(ctx, 40, 1);
    thiele_fit_options options = demo_options();
    options.model.method = method;
    options.prior.kernel = "se(ard)";
    options.prior.set = "lengthscale=1.5,variance=90,noise=2";
    options.inducing.inducing = strcmp(method, "exact") == 0 ? 0 : 10;
    thiele_model *model = fitted(ctx, table, &options);
    thiele_table_destroy(table);
    return model;
}

static void test_model(void **state)
{
    (void)state;
    thiele_context *one = test_context(1), *three = test_context(3);
    thiele_model *model = model_by(one, "exact");
    thiele_table *table = demo(one, 30, 2);
    thiele_check_options options = THIELE_CHECK_OPTIONS_INIT;
    char *a = NULL, *b = NULL;
    options.simulations = 40;
    options.rows = 20;
    for (int k = 0; k < 2; k++) {
        assert_ok(one, thiele_model_check(model, one, k == 0 ? NULL : table, &options, &a));
        assert_ok(three, thiele_model_check(model, three, k == 0 ? NULL : table, &options, &b));
        assert_string_equal(a, b);
        json_t *json = json_loads(a, 0, NULL);
        assert_non_null(json);
        assert_true(json_is_true(json_object_get(json, "uniform")));
        assert_int_equal(json_integer_value(json_object_get(json, "rows")), 20);
        const json_t *quantities = json_object_get(json, "quantities");
        assert_int_equal(json_array_size(quantities), THI_SBC_QUANTITIES);
        int64_t sum = 0;
        const json_t *counts = json_object_get(json_array_get(quantities, 0), "counts");
        for (size_t i = 0; i < json_array_size(counts); i++) {
            sum += json_integer_value(json_array_get(counts, i));
        }
        assert_int_equal(sum, 40);
        json_decref(json);
        thiele_free(a);
        thiele_free(b);
    }
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    thiele_context_destroy(one);
    thiele_context_destroy(three);
}

static int stop_soon(const thiele_progress *progress, void *user)
{
    (void)user;
    return progress->done >= 3;
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = model_by(ctx, "exact"), *sparse = model_by(ctx, "collapsed");
    thiele_table *few = demo(ctx, 5, 2);
    thiele_check_options options = THIELE_CHECK_OPTIONS_INIT;
    char *json;
    assert_fails(ctx, thiele_model_check(sparse, ctx, NULL, NULL, &json), THIELE_ERROR_UNSUPPORTED, "collapsed");
    assert_fails(ctx, thiele_model_check(model, ctx, few, NULL, &json), THIELE_ERROR_DATA, "5 rows");
    options.rows = 201;
    assert_fails(ctx, thiele_model_check(model, ctx, NULL, &options, &json), THIELE_ERROR_ARGUMENT, "10 to 200 rows");
    options = (thiele_check_options)THIELE_CHECK_OPTIONS_INIT;
    options.target = "weight";
    assert_fails(ctx, thiele_model_check(model, ctx, NULL, &options, &json), THIELE_ERROR_ARGUMENT, "'weight'");
    assert_null(json);
    ctx->progress = stop_soon;
    assert_fails(ctx, thiele_model_check(model, ctx, NULL, NULL, &json), THIELE_ERROR_CANCELLED, "3 of 200");
    assert_true(ctx->progress == stop_soon);
    thiele_table_destroy(few);
    thiele_model_destroy(sparse);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_model *model = model_by(ctx, "exact");
    thiele_check_options options = THIELE_CHECK_OPTIONS_INIT;
    char *json = NULL;
    options.simulations = 20;
    options.rows = 10;
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, thiele_model_check(model, ctx, NULL, &options, &json));
    thiele_free(json);
    int64_t count = thi_allocations(ctx) - before;
    size_t held = thi_memory_held(ctx);
    for (int64_t nth = 1; nth <= count; nth += nth < 100 ? 1 : 13) { /* simulations are alike */
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = thiele_model_check(model, ctx, NULL, &options, &json);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal(status, THIELE_ERROR_MEMORY);
        assert_null(json);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_is_uniform),
        cmocka_unit_test(test_samplers_are_uniform),
        cmocka_unit_test(test_wrong_noise_is_found),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

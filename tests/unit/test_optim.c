/* L-BFGS: known minima, walls of NaN and errors, limits, stopping; and the vector loops and quantiles against libm. */
#include "testing.h"

#include "likelihood/normal_quantile.h"
#include "linalg/vector.h"
#include "optim/lbfgs.h"

typedef struct problem {
    thiele_context *ctx;
    int calls, stop_after;
    bool walls;
    thiele_status failure;
    int fail_at;
} problem;

/* Rosenbrock's valley; with walls it cannot be evaluated beyond x0 > 1.3. */
static thiele_status rosenbrock(void *arg, const double *x, double *value, double *gradient)
{
    problem *p = arg;
    p->calls++;
    if (p->fail_at == p->calls) {
        return thi_fail(p->ctx, p->failure, "told to");
    }
    if (p->walls && x[0] > 1.3) {
        *value = p->calls % 2 != 0 ? NAN : INFINITY;
        return p->calls % 3 != 0 ? THIELE_OK : THIELE_ERROR_NUMERIC;
    }
    double a = x[1] - x[0] * x[0];
    double b = 1.0 - x[0];
    *value = 100.0 * a * a + b * b;
    gradient[0] = -400.0 * a * x[0] - 2.0 * b;
    gradient[1] = 200.0 * a;
    return THIELE_OK;
}

static bool enough(void *arg)
{
    problem *p = arg;
    return p->stop_after > 0 && p->calls >= p->stop_after;
}

static void test_minimum(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_lbfgs_options options = {200, 1e-8, 1e-14, enough, NULL};
    thi_lbfgs_result result;
    for (int walls = 0; walls < 2; walls++) {
        problem p = {.ctx = ctx, .walls = walls};
        double x[2] = {-1.2, 1.0};
        assert_ok(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result));
        assert_near(x[0], 1.0, 1e-5, 0.0);
        assert_near(x[1], 1.0, 1e-5, 0.0);
        assert_true(result.converged);
        assert_int_equal(result.evaluations, p.calls);
    }
    thiele_context_destroy(ctx);
}

static void keep_left(void *arg, double *x)
{
    (void)arg;
    x[0] = fmin(x[0], 0.5);
}

/* A minimum on a limit: the other number is the best there, whether the search begins on the limit or not. */
static void test_limits(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_lbfgs_options options = {200, 1e-8, 1e-14, enough, keep_left};
    thi_lbfgs_result result;
    for (int start = 0; start < 2; start++) {
        problem p = {.ctx = ctx};
        double x[2] = {start == 0 ? -1.2 : 0.5, 1.0};
        assert_ok(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result));
        assert_true(x[0] <= 0.5);
        assert_near(x[0], 0.5, 1e-5, 0.0);
        assert_near(x[1], 0.25, 1e-5, 0.0);
        assert_near(result.value, 0.25, 1e-6, 0.0);
    }
    thiele_context_destroy(ctx);
}

static void test_ends(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_lbfgs_options options = {200, 1e-8, 1e-14, enough, NULL};
    thi_lbfgs_result result;
    problem p = {.ctx = ctx, .stop_after = 5};
    double x[2] = {-1.2, 1.0};
    assert_ok(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result));
    assert_int_equal(p.calls, 5);
    assert_false(result.converged);
    assert_true(result.value < 24.2);
    options.iterations = 3;
    p = (problem){.ctx = ctx};
    assert_ok(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result));
    assert_int_equal(result.iterations, 3);
    assert_false(result.converged);
    /* The first point must be good; later numerical failures are steps too far; other failures end it. */
    p = (problem){.ctx = ctx, .failure = THIELE_ERROR_NUMERIC, .fail_at = 1};
    assert_fails(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result), THIELE_ERROR_NUMERIC, "told to");
    p = (problem){.ctx = ctx, .failure = THIELE_ERROR_NUMERIC, .fail_at = 4};
    assert_ok(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result));
    p = (problem){.ctx = ctx, .failure = THIELE_ERROR_MEMORY, .fail_at = 2};
    assert_fails(ctx, thi_lbfgs(ctx, 2, x, rosenbrock, &p, &options, &result), THIELE_ERROR_MEMORY, "told to");
    thiele_context_destroy(ctx);
}

extern const thi_vector_ops thi_vector_portable;

/* The best set and the portable one against libm, at lengths that leave every tail; 4 ulp. */
static void test_vectors(void **state)
{
    (void)state;
    enum { N = 37 };
    const thi_vector_ops *sets[2] = {thi_vector(), &thi_vector_portable};
    double t[N], y[N];
    for (int i = 0; i < N; i++) {
        t[i] = i == 0 ? 0.0 : exp(6.0 * thi_random_uniform((thi_stream){1, 1, 1}, (uint64_t)i) - 4.0);
    }
    for (int s = 0; s < 2; s++) {
        for (int n = 0; n <= N; n++) {
            sets[s]->exp(n, t, y);
            for (int i = 0; i < n; i++) {
                assert_near(y[i], exp(t[i]), 1e-15, 0.0);
            }
            sets[s]->log(n, t, y);
            for (int i = 1; i < n; i++) {
                assert_near(y[i], log(t[i]), 1e-15, 1e-16);
            }
        }
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    assert_near(thi_normal_quantile(0.5), 0.0, 0.0, 1e-16);
    assert_near(thi_normal_quantile(0.95), 1.6448536269514722, 1e-15, 0.0);
    assert_near(thi_normal_quantile(0.975), 1.9599639845400545, 1e-15, 0.0);
    for (double p = 1e-300; p < 0.5; p *= 1.7) {
        double z = thi_normal_quantile(p);
        /* A relative error d of z moves p by z^2 d. */
        assert_near(0.5 * erfc(-z * M_SQRT1_2), p, 1e-15 * (4.0 + 2.0 * z * z), 0.0);
        if (p > 1e-10) {
            assert_near(thi_normal_quantile(1.0 - p), -z, 1e-5, 0.0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimum), cmocka_unit_test(test_limits),    cmocka_unit_test(test_ends),
        cmocka_unit_test(test_vectors), cmocka_unit_test(test_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

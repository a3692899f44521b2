/* Anderson's acceleration: a linear map is solved in as many points as it has eigenvalues, others sooner than without.
 */
#include "testing_context.h"

#include "optim/anderson.h"

enum { N = 12 };

/* T(x) = b + A x with `kinds` distinct eigenvalues below 1; x* = b / (1 - eigenvalue) in these coordinates. */
static double eigenvalue(int i, int kinds)
{
    return 0.95 - 0.4 * (i % kinds);
}

static void test_linear(void **state)
{
    (void)state;
    for (int kinds = 1; kinds <= 4; kinds++) {
        thi_anderson a;
        double x[N] = {0}, f[N], next[N];
        assert_ok(ctx, thi_anderson_open(&a, ctx, N, N));
        for (int k = 0; k <= kinds; k++) {
            for (int i = 0; i < N; i++) {
                f[i] = 1.0 + i + eigenvalue(i, kinds) * x[i] - x[i];
            }
            thi_anderson_add(&a, x, f, f);
            bool any = thi_anderson_next(&a, 1.0, next);
            assert_true(any == (k > 0));
            for (int i = 0; i < N; i++) {
                x[i] = any ? next[i] : x[i] + f[i];
            }
        }
        for (int i = 0; i < N; i++) {
            assert_near(x[i], (1.0 + i) / (1.0 - eigenvalue(i, kinds)), 1e-5, 0.0);
        }
        thi_anderson_close(&a);
    }
}

/* x <- cos(x) on N coordinates with slopes of their own: to 1e-10 in a third of the points. */
static int points_until(bool accelerated, double rho)
{
    thi_anderson a;
    double x[N] = {0}, f[N], next[N], length = 1.0;
    int points = 0;
    assert_ok(ctx, thi_anderson_open(&a, ctx, N, N));
    for (; length > 1e-20 && points < 1000; points++) {
        length = 0.0;
        for (int i = 0; i < N; i++) {
            f[i] = cos(x[i] + 0.05 * i) - x[i];
            length += f[i] * f[i];
        }
        thi_anderson_add(&a, x, f, f);
        bool any = accelerated && thi_anderson_next(&a, rho, next);
        for (int i = 0; i < N; i++) {
            x[i] = any ? next[i] : x[i] + f[i];
        }
    }
    thi_anderson_close(&a);
    return points;
}

static void test_nonlinear(void **state)
{
    (void)state;
    int plain = points_until(false, 1.0);
    assert_true(plain < 200);
    assert_true(3 * points_until(true, 1.0) < plain);
    assert_true(3 * points_until(true, 0.5) < plain);
}

/* Equal points twice, a reset, and failing allocations. */
static void test_edges(void **state)
{
    (void)state;
    thi_anderson a;
    double x[2] = {1.0, 2.0}, f[2] = {0.5, -0.5}, next[2];
    assert_ok(ctx, thi_anderson_open(&a, ctx, 2, 2));
    assert_false(thi_anderson_next(&a, 1.0, next));
    thi_anderson_add(&a, x, f, f);
    thi_anderson_add(&a, x, f, f);
    assert_false(thi_anderson_next(&a, 1.0, next));
    thi_anderson_reset(&a);
    thi_anderson_add(&a, x, f, f);
    assert_false(thi_anderson_next(&a, 1.0, next));
    thi_anderson_close(&a);
    for (int64_t nth = 1; nth <= 6; nth++) {
        thi_fail_allocation(ctx, nth, false);
        assert_int_equal(thi_anderson_open(&a, ctx, 2, 2), THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(ctx), 0);
    }
    thi_fail_allocation(ctx, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_nonlinear),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Gauss-Hermite rules: moments, symmetry, closed forms, and an integral that is known. */
#include "testing_context.h"

#include <float.h>

#include "linalg/linalg.h"

enum { MOST = 512 };

static void test_closed_forms(void **state)
{
    (void)state;
    double x[3], w[3];
    assert_ok(ctx, thi_gauss_hermite(ctx, 1, x, w));
    assert_true(x[0] == 0 && w[0] == 1);
    assert_ok(ctx, thi_gauss_hermite(ctx, 2, x, w));
    assert_all_near(x, ((double[]){-1, 1}), 2, 4 * DBL_EPSILON, 0);
    assert_all_near(w, ((double[]){0.5, 0.5}), 2, 4 * DBL_EPSILON, 0);
    assert_ok(ctx, thi_gauss_hermite(ctx, 3, x, w));
    assert_all_near(x, ((double[]){-sqrt(3), 0, sqrt(3)}), 3, 4 * DBL_EPSILON, 0);
    assert_all_near(w, ((double[]){1 / 6.0, 2 / 3.0, 1 / 6.0}), 3, 8 * DBL_EPSILON, 0);
}

/* E[Z^k] = (k-1)!! for even k: all moments that are exact, up to degree 60 (beyond it the numbers say little new). */
static void check_moments(int n, const double *x, const double *w)
{
    double exact = 1;
    for (int k = 2; k <= 2 * n - 1 && k <= 60; k += 2) {
        exact *= k - 1;
        double sum = 0;
        for (int i = 0; i < n; i++) {
            sum += w[i] * pow(x[i], k);
        }
        assert_near(sum, exact, 1e-12, 0);
    }
}

static void test_rules(void **state)
{
    (void)state;
    static double x[MOST], w[MOST];
    for (int n = 1; n <= MOST; n = n < 40 ? n + 1 : n + 59) {
        assert_ok(ctx, thi_gauss_hermite(ctx, n, x, w));
        double sum = 0, cosine = 0;
        for (int i = 0; i < n; i++) {
            assert_true(isfinite(x[i]) && w[i] >= 0);
            assert_true(x[i] == -x[n - 1 - i] && w[i] == w[n - 1 - i]);
            assert_true(i == 0 || x[i] > x[i - 1]);
            sum += w[i];
            cosine += w[i] * cos(x[i]);
        }
        assert_near(sum, 1, 1e-14, 0);
        if (n >= 16) {
            assert_near(cosine, exp(-0.5), 1e-13, 0);
        }
        check_moments(n, x, w);
    }
}

/* Roots of successive polynomials interlace; a missed or doubled root would show. */
static void test_interlacing(void **state)
{
    (void)state;
    static double a[MOST], b[MOST], w[MOST];
    for (int n = 2; n <= MOST; n = 2 * n) {
        assert_ok(ctx, thi_gauss_hermite(ctx, n - 1, a, w));
        assert_ok(ctx, thi_gauss_hermite(ctx, n, b, w));
        for (int i = 0; i < n - 1; i++) {
            assert_true(b[i] < a[i] && a[i] < b[i + 1]);
        }
    }
}

static void test_arguments(void **state)
{
    (void)state;
    double x[1], w[1];
    assert_fails(ctx, thi_gauss_hermite(ctx, 0, x, w), THIELE_ERROR_ARGUMENT, "1 to 512");
    assert_fails(ctx, thi_gauss_hermite(ctx, 513, x, w), THIELE_ERROR_ARGUMENT, "513");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_interlacing),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

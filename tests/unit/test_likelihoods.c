/*
 * What every likelihood must do, for each row of the list: its density adds up to 1 over y and has the moments and the
 * distribution function that it says; derivatives are those of the density; the bound of auxiliary variables lies below
 * E[log p]; predictions have the moments of their draws; blocks are their rows, missing values are nothing, far values
 * give no NaN; text and back. Providers of (E, g, h) are compared in test_expect.c, quantiles and draws in
 * test_expect_law.c, times at extremes in test_extremes.c, all over the same list. A toy likelihood (tests/toy) is on
 * it by one file and one row, and goes through all of it.
 */
#include "likelihood_testing.h"

#include "expect/expect.h"
#include "likelihood/augment.h"

enum { OUTPUTS = 2, LATENTS = 8, PARAMETERS = 32 };

static const double some_f[][LATENTS] = {{0.3, 0.2, -0.4, 0.1, 0.5, -0.2, 0.3, 0.7},
                                         {-2, -1.5, 0.6, 1, -0.3, 0.2, -1, 0.4},
                                         {1.6, 1, -0.8, -0.1, 0.9, 1.2, -0.6, 0.5}};
enum { SOME_F = sizeof some_f / sizeof *some_f };

static double log_p(const thiele_likelihood *lik, const double *y, const double *f)
{
    double out;
    lik->ops->log_density(lik, 1, y, f, &out);
    return out;
}

/* Of one output by itself, the others missing. */
static double log_p_of(const thiele_likelihood *lik, int output, double value, const double *f)
{
    double y[OUTPUTS] = {NAN, NAN};
    y[output] = value;
    return log_p(lik, y, f);
}

/* --- the density over y ----------------------------------------------------------------------------------------------
 */

/* Sum, mean and variance of one output given f. */
typedef struct sums {
    double mass, first, second;
} sums;

static void add(sums *s, double y, double weight)
{
    s->mass += weight;
    s->first += weight * y;
    s->second += weight * y * y;
}

/* Two values, classes, counts: term by term. */
static sums sum_terms(const thiele_likelihood *lik, int output, const double *f)
{
    sums s = {0};
    bool binary = lik->ops->support == THI_SUPPORT_BINARY;
    double y = binary ? -1 : 0, p = 1;
    while (thi_likelihood_refuses(lik, y) == NULL && !(s.mass > 0.5 && p < 1e-17)) {
        p = exp(log_p_of(lik, output, y, f));
        add(&s, y, p);
        y += binary ? 2 : 1;
    }
    return s;
}

/*
 * Reals, positive ones and those of the unit interval: the trapezium rule in t, with y = c -+ e^t around the first
 * latent, e^t, and the logistic function of t. For a density without edges it converges faster than any power of the
 * step; at 1/128 nothing is left of it for features wider than 0.1 of their distance from c.
 */
static sums integrate(const thiele_likelihood *lik, int output, const double *f)
{
    const double step = 1.0 / 128;
    thi_support support = lik->ops->support;
    sums s = {0};
    for (int side = support == THI_SUPPORT_REAL ? -1 : 1; side <= 1; side += 2) {
        for (double t = -37; t < 37; t += step) {
            double y = side * exp(t), slope = exp(t);
            if (support == THI_SUPPORT_REAL) {
                y += f[0];
            } else if (support == THI_SUPPORT_UNIT) {
                y = 1 / (1 + exp(-t));
                slope = y * y * exp(-t);
            }
            if (thi_likelihood_refuses(lik, y) == NULL) {
                add(&s, y, step * slope * exp(log_p_of(lik, output, y, f)));
            }
        }
    }
    return s;
}

/* P(Y <= y) rises by p(y), or by its integral: Simpson's rule over a short way, which has an error of its fifth power.
 */
static void check_cdf(const thiele_likelihood *lik, const double *f, bool discrete)
{
    for (int row = 0; row < TEST_ORDINARY; row++) {
        double y[OUTPUTS];
        test_ordinary(lik, row, y);
        double h = lik->ops->support == THI_SUPPORT_UNIT ? 1e-4 * y[0] * (1 - y[0]) : 1e-3 * fmin(1, fabs(y[0]));
        double way = discrete ? lik->ops->support == THI_SUPPORT_BINARY ? 2 : 1 : h;
        double rise = lik->ops->cdf(lik, y[0], f) - lik->ops->cdf(lik, y[0] - way, f), want = exp(log_p(lik, y, f));
        if (!discrete) {
            want += exp(log_p_of(lik, 0, y[0] - h, f)) + 4 * exp(log_p_of(lik, 0, y[0] - 0.5 * h, f));
            want *= h / 6;
        }
        assert_near(rise, want, 1e-9, 1e-14);
    }
    assert_near(lik->ops->cdf(lik, -1e300, f), 0, 0, 1e-15);
}

static void density_of(thiele_likelihood *lik)
{
    thi_support support = lik->ops->support;
    assert_true(lik->outputs <= OUTPUTS && lik->latents <= LATENTS && lik->parameters <= PARAMETERS);
    bool discrete = support == THI_SUPPORT_COUNT || support == THI_SUPPORT_CLASS || support == THI_SUPPORT_BINARY;
    for (int i = 0; i < SOME_F * lik->outputs && !lik->ops->pseudo; i++) {
        const double *f = some_f[i / lik->outputs];
        int output = i % lik->outputs;
        double mean[OUTPUTS], variance[OUTPUTS];
        sums s = (discrete ? sum_terms : integrate)(lik, output, f);
        assert_near(s.mass, 1, 0, 1e-9);
        if (lik->ops->conditional != NULL && support != THI_SUPPORT_CLASS) {
            lik->ops->conditional(lik, 1, f, mean, variance);
            assert_near(mean[output], s.first, 1e-8, 1e-8);
            assert_near(variance[output], s.second - s.first * s.first, 1e-6, 1e-8);
        }
        if (lik->ops->cdf != NULL) {
            check_cdf(lik, f, discrete);
        }
        if (lik->ops->probabilities != NULL) {
            double prob[3], y[] = {0, 1, 2}, sign[] = {-1, 1};
            int classes = support == THI_SUPPORT_BINARY ? 2 : lik->classes;
            lik->ops->probabilities(lik, 1, f, prob);
            for (int c = 0; c < classes; c++) {
                assert_near(prob[c], exp(log_p(lik, classes == 2 ? &sign[c] : &y[c], f)), 1e-12, 0);
            }
        }
    }
}

static void test_density(void **state)
{
    (void)state;
    test_all_likelihoods(density_of);
}

/* --- derivatives -----------------------------------------------------------------------------------------------------
 */

/* Five points: error of order step^4. */
static double slope_of(const double at[5], double step)
{
    return (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * step);
}

static void check_latents(const thiele_likelihood *lik, const double *y, const double *at_f)
{
    const double step = 1e-3;
    double f[LATENTS], d1[LATENTS], d2[LATENTS];
    memcpy(f, at_f, sizeof f);
    lik->ops->derivatives(lik, 1, y, f, d1, d2);
    for (int q = 0; q < lik->latents; q++) {
        double value[5], slope[5], size = 1 + fabs(log_p(lik, y, f)) + fabs(d1[q]) + fabs(d2[q]);
        for (int k = 0; k < 5; k++) {
            double one[LATENTS], two[LATENTS];
            f[q] = at_f[q] + (k - 2) * step;
            value[k] = log_p(lik, y, f);
            lik->ops->derivatives(lik, 1, y, f, one, two);
            slope[k] = one[q];
        }
        f[q] = at_f[q];
        assert_near(d1[q], slope_of(value, step), 1e-7, 1e-9 * size);
        assert_near(d2[q], slope_of(slope, step), 1e-7, 1e-9 * size);
    }
}

/* In log phi for positive parameters; one that is not learned need not be differentiable. */
static void check_parameters(thiele_likelihood *lik, const double *y, const double *f)
{
    const double step = 1e-3;
    double dphi[PARAMETERS];
    lik->ops->phi_derivatives(lik, 1, y, f, dphi);
    for (int j = 0; j < lik->parameters; j++) {
        double before = lik->value[j], at[5];
        for (int k = 0; k < 5; k++) {
            double move = (k - 2) * step;
            lik->value[j] = lik->phi[j].positive ? before * exp(move) : before + move;
            at[k] = log_p(lik, y, f);
        }
        lik->value[j] = before;
        if (!lik->phi[j].fixed) {
            assert_near(dphi[j], slope_of(at, step), 1e-7, 1e-9 * (1 + fabs(at[2])));
        }
    }
}

static void derivatives_of(thiele_likelihood *lik)
{
    for (int i = 0; i < SOME_F * TEST_ORDINARY; i++) {
        double y[OUTPUTS];
        test_ordinary(lik, i / SOME_F, y);
        if (lik->ops->derivatives != NULL) {
            check_latents(lik, y, some_f[i % SOME_F]);
        }
        if (lik->ops->phi_derivatives != NULL) {
            check_parameters(lik, y, some_f[i % SOME_F]);
        }
    }
}

static void test_derivatives(void **state)
{
    (void)state;
    test_all_likelihoods(derivatives_of);
}

/* --- auxiliary variables ---------------------------------------------------------------------------------------------
 */

/* Central differences of the bound, which is log p itself where f is known. */
static void bound_of(thiele_likelihood *lik)
{
    const double none[LATENTS] = {0};
    for (int i = 0; i < SOME_F * TEST_ORDINARY && thi_is_augmented(lik); i++) {
        double y[OUTPUTS], mu[LATENTS], v[LATENTS], E, bound, g[LATENTS], h[LATENTS], unused[LATENTS];
        memcpy(mu, some_f[i % SOME_F], sizeof mu);
        test_ordinary(lik, i / SOME_F, y);
        thi_augmented_expectation(lik, 1, y, mu, none, &bound, g, h, NULL);
        assert_near(bound, log_p(lik, y, mu), 1e-12, 1e-13);
        for (int q = 0; q < LATENTS; q++) {
            v[q] = 0.3 + 0.1 * q;
        }
        assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, y, mu, v, &E, g, h, NULL));
        assert_ok(ctx, thiele_likelihood_expect(lik, ctx, "augmented", 1, y, mu, v, &bound, g, h, NULL));
        assert_true(bound < E);
        for (int k = 0; k < 2 * lik->latents; k++) {
            double *x = k % 2 ? &v[k / 2] : &mu[k / 2], now = *x, at[2], slope = k % 2 ? h[k / 2] : g[k / 2];
            for (int side = 0; side < 2; side++) {
                *x = now + (side ? 1e-5 : -1e-5);
                thi_augmented_expectation(lik, 1, y, mu, v, &at[side], unused, unused, NULL);
            }
            *x = now;
            assert_near(slope, (at[1] - at[0]) / 2e-5, 1e-7, 1e-8 * (1 + fabs(E)));
        }
    }
}

static void test_bounds(void **state)
{
    (void)state;
    test_all_likelihoods(bound_of);
}

/* --- predictions -----------------------------------------------------------------------------------------------------
 */

/* Mean and variance against draws, within five standard errors. */
static void moments_of(thiele_likelihood *lik)
{
    enum { DRAWS = 4000 };
    static double y[OUTPUTS * DRAWS];
    int P = lik->outputs;
    double v[LATENTS], mean[OUTPUTS], variance[OUTPUTS];
    const int64_t row = 5;
    thi_expect expect;
    for (int q = 0; q < LATENTS; q++) {
        v[q] = 0.2 + 0.05 * q;
    }
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    for (int i = 0; i < SOME_F && lik->ops->support != THI_SUPPORT_CLASS; i++) {
        assert_ok(ctx, thi_predict_block(&expect, ctx, 1, some_f[i], v, mean, variance));
        assert_ok(ctx, thi_sample_block(&expect, ctx, 1, &row, some_f[i], v, DRAWS, y));
        for (int p = 0; p < P; p++) {
            double sum = 0, square = 0, fourth = 0;
            for (int k = 0; k < DRAWS; k++) {
                double rest = y[k * P + p] - mean[p];
                sum += rest / DRAWS;
                square += rest * rest / DRAWS;
                fourth += rest * rest * rest * rest / DRAWS;
            }
            assert_near(sum, 0, 0, 5 * sqrt(variance[p] / DRAWS));
            assert_near(square, variance[p], 0, 5 * sqrt((fourth - square * square) / DRAWS));
        }
    }
    thi_expect_close(&expect);
}

static void test_moments(void **state)
{
    (void)state;
    test_all_likelihoods(moments_of);
}

/* --- rows, missing values, far values --------------------------------------------------------------------------------
 */

/* A block gives what its rows give, bit by bit, wherever they stand; a missing y gives zeros. */
static void rows_of(thiele_likelihood *lik)
{
    enum { N = 301 };
    static double y[OUTPUTS * N], f[LATENTS * N], out[N], d1[LATENTS * N], d2[LATENTS * N];
    int P = lik->outputs, Q = lik->latents;
    test_normals(LATENTS * N, 3, f);
    for (int i = 0; i < N; i++) {
        test_ordinary(lik, i % TEST_ORDINARY, y + i * P);
        for (int p = 0; p < P && i % 10 == 7; p++) {
            y[i * P + p] = NAN;
        }
    }
    lik->ops->log_density(lik, N, y, f, out);
    if (lik->ops->derivatives != NULL) {
        lik->ops->derivatives(lik, N, y, f, d1, d2);
    }
    for (int i = 0; i < N; i++) {
        double one[LATENTS], two[LATENTS], value = log_p(lik, y + i * P, f + i * Q);
        assert_true(value == out[i] && (i % 10 != 7 || value == 0));
        if (lik->ops->derivatives != NULL) {
            lik->ops->derivatives(lik, 1, y + i * P, f + i * Q, one, two);
        }
        if (lik->ops->log_predictive != NULL && i % 10 == 7) {
            double spread[LATENTS] = {0};
            lik->ops->log_predictive(lik, 1, y + i * P, f + i * Q, spread, &value);
            assert_true(value == 0);
        }
        for (int q = 0; q < Q && lik->ops->derivatives != NULL; q++) {
            assert_true(one[q] == d1[i * Q + q] && two[q] == d2[i * Q + q] && (i % 10 != 7 || one[q] == 0));
        }
    }
}

/* A density of zero may be minus infinity, never NaN; what y may not be is refused and has none. */
static void far_of(thiele_likelihood *lik)
{
    static const double far[] = {-1e4, -700, -50, 0, 50, 700, 1e4};
    for (int i = 0; i < 7 * 7 * TEST_ORDINARY; i++) {
        double y[OUTPUTS], f[LATENTS], d1[LATENTS] = {0}, d2[LATENTS] = {0};
        test_ordinary(lik, i / 49, y);
        for (int q = 0; q < LATENTS; q++) {
            f[q] = far[q % 2 ? i % 7 : i / 7 % 7];
        }
        assert_true(log_p(lik, y, f) < INFINITY);
        if (lik->ops->derivatives != NULL) {
            lik->ops->derivatives(lik, 1, y, f, d1, d2);
        }
        for (int q = 0; q < lik->latents; q++) {
            assert_false(isnan(d1[q]) || isnan(d2[q]));
        }
    }
    static const double outside[THI_SUPPORTS] = {
        [THI_SUPPORT_REAL] = INFINITY, [THI_SUPPORT_POSITIVE] = -1, [THI_SUPPORT_UNIT] = 1,
        [THI_SUPPORT_COUNT] = 0.5,     [THI_SUPPORT_BINARY] = 0,    [THI_SUPPORT_CLASS] = 3};
    assert_non_null(thi_likelihood_refuses(lik, outside[lik->ops->support]));
    assert_null(thi_likelihood_refuses(lik, NAN));
}

static void test_rows(void **state)
{
    (void)state;
    test_all_likelihoods(rows_of);
    test_all_likelihoods(far_of);
}

/* --- text and copies -------------------------------------------------------------------------------------------------
 */

static void assert_same_likelihood(const thiele_likelihood *a, const thiele_likelihood *b)
{
    assert_ptr_equal(a->ops, b->ops);
    assert_int_equal(a->latents, b->latents);
    assert_int_equal(a->parameters, b->parameters);
    for (int p = 0; p < a->parameters; p++) {
        assert_string_equal(a->phi[p].name, b->phi[p].name);
        assert_true(a->value[p] == b->value[p] && a->phi[p].fixed == b->phi[p].fixed);
    }
}

static void text_of(thiele_likelihood *lik)
{
    thi_text text;
    thiele_likelihood *again = NULL, *copy = NULL;
    thi_text_init(&text, ctx);
    thi_likelihood_print(lik, &text);
    char *printed = NULL;
    assert_ok(ctx, thi_text_take(&text, &printed));
    assert_ok(ctx, thiele_likelihood_parse(&again, ctx, printed, lik->outputs, lik->classes));
    assert_same_likelihood(lik, again);
    assert_ok(ctx, thi_likelihood_copy(&copy, ctx, lik));
    assert_same_likelihood(lik, copy);
    thi_free(printed);
    thiele_likelihood_destroy(again);
    thiele_likelihood_destroy(copy);
}

static void test_text(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    test_all_likelihoods(text_of);
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "something else", 1, 0), THIELE_ERROR_ARGUMENT,
                 "there are: toy, gaussian");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_density), cmocka_unit_test(test_derivatives), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_moments), cmocka_unit_test(test_rows),        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

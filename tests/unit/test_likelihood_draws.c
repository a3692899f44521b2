/*
 * Draws from likelihoods against their distribution functions and moments, with fixed seeds: the Kolmogorov-Smirnov
 * distance times sqrt(n) is below 2.2 but once in 8000 (conservative for discrete laws), moments lie within five
 * standard errors. And the functions under them: incomplete gamma and beta, differences of log Gamma.
 */
#include "testing_context.h"

#include <thiele/likelihood.h>

#include "likelihood/incomplete.h"
#include "likelihood/likelihood.h"
#include "likelihood/special.h"
#include "likelihood/stirling.h"

enum { DRAWS = 20000 };
static const struct draw_case {
    const char *text;
    int classes;
    double f;
} cases[] = {
    {"poisson", 0, -3},
    {"poisson(offset=0.5)", 0, 1.5},
    {"poisson", 0, 2.4}, /* just above where rejection begins */
    {"poisson", 0, 4},
    {"poisson", 0, 12},
    {"poisson", 0, 25}, /* rounded normal */
    {"negative-binomial(r=0.3)", 0, 1},
    {"negative-binomial(r=7)", 0, 5},
    {"binomial(trials=1)", 0, 0.7},
    {"binomial(trials=30)", 0, -2},
    {"binomial(trials=30)", 0, 0.1},
    {"binomial(trials=5000)", 0, 1.3},
    {"gamma(shape=0.2)", 0, 0.4},
    {"gamma(shape=1)", 0, -2},
    {"gamma(shape=40)", 0, 3},
    {"exponential", 0, 1},
    {"beta(precision=0.8)", 0, -0.5},
    {"beta(precision=25)", 0, 1.5},
    {"ordinal", 5, 0.4},
    {"warped", 0, 0.4},
    {"warped(terms=1, noise=2.5, a1=4, b1=6, c1=0.3)", 0, -1},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest gap between the empirical and the true distribution function, at and just before the draws. */
static double distance_of(const thiele_likelihood *lik, double f, const double *y)
{
    bool discrete = lik->ops->support == THI_SUPPORT_COUNT || lik->ops->support == THI_SUPPORT_CLASS;
    double worst = 0, last = NAN, below = 0, at = 0;
    for (int i = 0; i < DRAWS; i++) {
        if (y[i] != last) {
            last = y[i];
            at = lik->ops->cdf(lik, last, &f);
            below = discrete ? lik->ops->cdf(lik, last - 1, &f) : at;
            worst = fmax(worst, fabs(below - (double)i / DRAWS));
        }
        if (i == DRAWS - 1 || y[i + 1] != last) {
            worst = fmax(worst, fabs(at - (i + 1.0) / DRAWS));
        }
    }
    return worst;
}

static void test_draws(void **state)
{
    (void)state;
    static double y[DRAWS];
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = NULL;
        double f = cases[c].f, mean, variance, sum = 0, square = 0, fourth = 0;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[c].text, 1, cases[c].classes));
        lik->ops->conditional(lik, 1, &f, &mean, &variance);
        for (int i = 0; i < DRAWS; i++) {
            lik->ops->sample(lik, (thi_stream){11, THI_RANDOM_SAMPLE, (uint64_t)c}, (uint64_t)i, &f, &y[i]);
            assert_null(thi_likelihood_refuses(lik, y[i]));
            double rest = y[i] - mean;
            sum += rest / DRAWS;
            square += rest * rest / DRAWS;
            fourth += rest * rest * rest * rest / DRAWS;
        }
        assert_near(sum, 0, 0, 5 * sqrt(variance / DRAWS));
        assert_near(square, variance, 0, 5 * sqrt((fourth - square * square) / DRAWS));
        qsort(y, DRAWS, sizeof *y, ascending);
        if (distance_of(lik, f, y) * sqrt(DRAWS) > 2.2) {
            fail_msg("%s at f = %g: distance %g", cases[c].text, f, distance_of(lik, f, y) * sqrt(DRAWS));
        }
        thiele_likelihood_destroy(lik);
    }
}

static void test_softmax_draws(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    double f[] = {0.3, -1, 2, 0.5}, prob[4], share[4] = {0, 0, 0, 0}, y;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "softmax", 1, 4));
    lik->ops->probabilities(lik, 1, f, prob);
    for (int i = 0; i < DRAWS; i++) {
        lik->ops->sample(lik, (thi_stream){5, THI_RANDOM_SAMPLE, 0}, (uint64_t)i, f, &y);
        share[(int)y] += 1.0 / DRAWS;
    }
    for (int k = 0; k < 4; k++) {
        assert_near(share[k], prob[k], 0, 5 * sqrt(prob[k] * (1 - prob[k]) / DRAWS));
    }
    thiele_likelihood_destroy(lik);
}

/* A draw depends on its number only, and far latents give no NaN. */
static void test_far_draws(void **state)
{
    (void)state;
    static const double far[] = {-1e4, -50, 50, 700, 1e4};
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[c].text, 1, cases[c].classes));
        for (int k = 0; k < 5; k++) {
            thi_stream stream = {1, THI_RANDOM_SAMPLE, 9};
            double y, again;
            lik->ops->sample(lik, stream, (uint64_t)k, &far[k], &y);
            lik->ops->sample(lik, stream, (uint64_t)k, &far[k], &again);
            assert_true(!isnan(y) && y == again);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* P + Q = 1; P(a + 1, x) = P(a, x) - x^a e^-x / Gamma(a + 1), across all the ways they are computed. */
static void test_incomplete_gamma(void **state)
{
    (void)state;
    for (double a = 1e-3; a < 1e7; a *= 1.7) {
        for (int k = -6; k <= 6; k++) {
            double x = a + 0.7 * k * sqrt(a) + (a < 1 ? 0.3 * (k + 6) : 0);
            if (x <= 0) {
                continue;
            }
            double P = thi_gamma_lower(a, x), next = thi_gamma_lower(a + 1, x);
            double term = exp(a * log(x / a) + (a - x) + thi_lgamma_gap(a) - log(a));
            assert_near(P + thi_gamma_upper(a, x), 1, 0, 1e-15);
            assert_near(next, P - term, 0, 1e-13 + 4e-16 * a);
        }
    }
    assert_near(thi_gamma_lower(1, 0.3), -expm1(-0.3), 1e-15, 0);
    assert_near(thi_gamma_upper(1, 30), exp(-30), 1e-13, 0);
    assert_near(thi_gamma_upper(0.5, 2.25), erfc(1.5), 1e-14, 0);
    assert_near(thi_gamma_upper(1e5, 1e5), thi_gamma_upper(1e5 * (1 + 1e-15), 1e5), 0, 1e-12); /* where methods meet */
}

/* I_x(a, b) = 1 - I_y(b, a), and I_x(a + 1, b) = I_x(a, b) - x^a y^b / (a B(a, b)). */
static void test_incomplete_beta(void **state)
{
    (void)state;
    for (double a = 0.02; a < 1e6; a *= 4.1) {
        for (double b = 0.03; b < 1e6; b *= 5.3) {
            for (int k = -3; k <= 3; k++) {
                double x = thi_sigmoid(log(a / b) + k * sqrt(1 / a + 1 / b));
                double y = thi_sigmoid(log(b / a) - k * sqrt(1 / a + 1 / b));
                double I = thi_beta_lower(a, b, x, y), r = a + b;
                double gaps = thi_lgamma_gap(a) + thi_lgamma_gap(b) - thi_lgamma_gap(r);
                double term = exp(a * log(x * r / a) + b * log(y * r / b) + gaps - log(a));
                bool large = fmin(a, b) > 1e4; /* one term of an expansion in 1/a there */
                assert_near(I, 1 - thi_beta_lower(b, a, y, x), 0, 1e-14);
                assert_near(thi_beta_lower(a + 1, b, x, y), I - term, 0, large ? 1e-10 : 1e-13 + 1e-15 * r);
            }
        }
    }
    assert_near(thi_beta_lower(1, 3, 0.2, 0.8), 1 - 0.8 * 0.8 * 0.8, 1e-14, 0);
    assert_near(thi_beta_lower(0.015, 0.035, 1e-12, 1 - 1e-12) * 1.0,
                thi_beta_lower(0.015, 0.035, 1e-13, 1 - 1e-13) * pow(10, 0.015), 1e-10, 0);
}

/* Recurrences of Gamma, at places where Stirling's series takes over and where plain differences fail. */
static void test_stirling(void **state)
{
    (void)state;
    for (double x = 0.01; x < 1e10; x *= 1.9) {
        assert_near(thi_lgamma_rise(x, 1), log(x), 1e-14, 1e-14);
        assert_near(thi_lgamma_rise(x, 3), log(x) + log(x + 1) + log(x + 2), 1e-14, 1e-14);
        assert_near(thi_digamma_rise(x, 2), 1 / x + 1 / (x + 1), 1e-14, 3e-15);
        assert_near(thi_lgamma_gap(x), x * log(x) - x - thi_lgamma(x), 1e-14, 1e-14 + 1e-15 * x * fabs(log(x)));
        assert_near(x * (log(x) - thi_digamma_gap(x)), x * thi_digamma(x), 1e-14, 1e-14);
    }
    assert_near(thi_log_choose(50, 3), log(19600), 1e-14, 0);
    assert_near(thi_log_choose(1e12, 1), log(1e12), 1e-14, 0);
    assert_true(thi_log_choose(7, 0) == 0 && thi_log_choose(7, 7) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),           cmocka_unit_test(test_softmax_draws),
        cmocka_unit_test(test_far_draws),       cmocka_unit_test(test_incomplete_gamma),
        cmocka_unit_test(test_incomplete_beta), cmocka_unit_test(test_stirling),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

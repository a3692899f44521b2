/*
 * (E, g, h) and class probabilities of the softmax by its one-dimensional integral: against the logistic (two classes
 * are one latent f_1 - f_2, and so are one uncertain class and any number of certain ones), tensor quadrature of three
 * and four classes, differences of E, and what must add up; extremes; missing rows; blocks.
 */
#include "testing_context.h"

#include "expect/expect.h"
#include "likelihood/softmax_expectation.h"
#include "linalg/linalg.h"

enum { MOST = 100 };

static thiele_likelihood *make(const char *text, int classes)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, 1, classes));
    return lik;
}

typedef struct answer {
    double E, g[MOST], h[MOST];
} answer;

static answer expect(const thiele_likelihood *lik, const char *method, double y, const double *mu, const double *v)
{
    answer a;
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, method, 1, &y, mu, v, &a.E, a.g, a.h, NULL));
    return a;
}

static double log_predictive(const thiele_likelihood *lik, double y, const double *mu, const double *v)
{
    double out;
    assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y, mu, v, &out));
    return out;
}

/* Row `row` of means within -+width and variances that are log-uniform. */
static void draw(int C, uint64_t row, double width, double least, double largest, double *mu, double *v)
{
    thi_stream stream = {11, THI_RANDOM_DEMO, row};
    for (int c = 0; c < C; c++) {
        mu[c] = width * (2.0 * thi_random_uniform(stream, (uint64_t)(2 * c)) - 1.0);
        v[c] = least * pow(largest / least, thi_random_uniform(stream, (uint64_t)(2 * c + 1)));
    }
}

static void test_choice(void **state)
{
    (void)state;
    static const int classes[] = {2, 3, 4, 1000};
    for (int i = 0; i < 4; i++) {
        thiele_likelihood *lik = make("softmax", classes[i]);
        assert_string_equal(thiele_likelihood_best_method(lik), "closed");
        thiele_likelihood_destroy(lik);
    }
}

/* --- the logistic ------------------------------------------------------------------------------------------------- */

/* The values between which the rules for phi change are among them: 0.01 and 1600. */
static const double variances[] = {0, 1e-12, 1e-4, 0.0099, 0.0101, 0.05, 0.3, 1, 4, 30, 200, 1590, 1610, 1e4};
enum { VARIANCES = sizeof variances / sizeof *variances };

/* 1e-9 for v up to 4; beyond, the error of E is relative to its size, some sqrt(v). */
static void compare_two(const thiele_likelihood *two, const thiele_likelihood *logistic, double m, const double *v)
{
    double mu[2] = {m + 7.0, 7.0}, sum = v[0] + v[1], one = 1, zero = 0;
    double tolerance = sum <= 8 ? 1e-9 : 1e-8;
    answer a = expect(two, "closed", 0, mu, v), b = expect(logistic, "quadrature", 1, &m, &sum);
    assert_near(a.E, b.E, tolerance, tolerance);
    assert_near(a.g[0], b.g[0], 0, tolerance);
    assert_near(a.g[1], -b.g[0], 0, tolerance);
    assert_near(a.h[0], b.h[0], 0, tolerance);
    assert_near(a.h[1], b.h[0], 0, tolerance);
    assert_near(log_predictive(two, zero, mu, v), log_predictive(logistic, one, &m, &sum), tolerance, tolerance);
}

static void test_two_classes(void **state)
{
    (void)state;
    static const double means[] = {-100, -50, -12, -0.4, 0, 2, 30};
    thiele_likelihood *two = make("softmax", 2), *logistic = make("bernoulli", 0);
    for (int a = 0; a < VARIANCES; a++) {
        for (int b = a == 0 ? 1 : a; b < VARIANCES; b++) {
            for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
                compare_two(two, logistic, means[k], (const double[]){variances[a], variances[b]});
            }
        }
    }
    thiele_likelihood_destroy(two);
    thiele_likelihood_destroy(logistic);
}

/* K classes whose f is known to be 0 and one with f ~ N(m, v): a logistic of f - log K. */
static void test_one_uncertain(void **state)
{
    (void)state;
    thiele_likelihood *logistic = make("bernoulli", 0);
    static const int classes[] = {3, 10, MOST};
    for (int i = 0; i < 3; i++) {
        int C = classes[i];
        thiele_likelihood *lik = make("softmax", C);
        for (int a = 1; a < VARIANCES; a++) {
            double mu[MOST] = {0}, v[MOST] = {0}, m = 1.5, odds = m - log(C - 1);
            mu[C / 2] = m;
            v[C / 2] = variances[a];
            answer got = expect(lik, "closed", C / 2, mu, v),
                   want = expect(logistic, "quadrature", 1, &odds, &v[C / 2]);
            assert_near(got.E, want.E, 1e-8, 1e-9);
            assert_near(got.g[C / 2], want.g[0], 0, 1e-9);
            assert_near(got.h[C / 2], want.h[0], 0, 1e-9);
            assert_near(got.g[0], -want.g[0] / (C - 1), 0, 1e-9);
            assert_near(log_predictive(lik, C / 2, mu, v), log_predictive(logistic, 1, &odds, &v[C / 2]), 0, 1e-8);
        }
        thiele_likelihood_destroy(lik);
    }
    thiele_likelihood_destroy(logistic);
}

/* --- tensors of Gauss-Hermite nodes ------------------------------------------------------------------------------- */

static void test_three_classes(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("softmax", 3);
    for (uint64_t row = 0; row < 60; row++) {
        double mu[3], v[3], p[3];
        draw(3, row, 3, row % 2 == 0 ? 1e-4 : 0.1, 4, mu, v);
        answer a = expect(lik, "closed", (double)(row % 3), mu, v);
        answer b = expect(lik, "quadrature:70", (double)(row % 3), mu, v);
        assert_near(a.E, b.E, 0, 1e-9);
        assert_all_near(a.g, b.g, 3, 0, 1e-9);
        assert_all_near(a.h, b.h, 3, 0, 1e-9);
        thi_softmax_probabilities(lik, 1, mu, v, p);
        for (int c = 0; c < 3; c++) {
            assert_near(p[c], (c == (int)(row % 3)) - a.g[c], 0, 1e-10);
        }
    }
    thiele_likelihood_destroy(lik);
}

/* E, g and h from the nodes; 24 of them are good for 1e-9 at variances up to a half. */
static answer by_tensor(const thiele_likelihood *lik, double y, const double *mu, const double *v)
{
    enum { NODES = 24, C = 4 };
    double node[NODES], weight[NODES], f[C], l, d1[C], d2[C];
    answer a = {0};
    assert_ok(ctx, thi_gauss_hermite(ctx, NODES, node, weight));
    for (int k = 0; k < NODES * NODES * NODES * NODES; k++) {
        double w = 1;
        for (int c = 0, rest = k; c < C; c++, rest /= NODES) {
            f[c] = mu[c] + sqrt(v[c]) * node[rest % NODES];
            w *= weight[rest % NODES];
        }
        if (w < 1e-22) {
            continue;
        }
        lik->ops->log_density(lik, 1, &y, f, &l);
        lik->ops->derivatives(lik, 1, &y, f, d1, d2);
        a.E += w * l;
        for (int c = 0; c < C; c++) {
            a.g[c] += w * d1[c];
            a.h[c] += 0.5 * w * d2[c];
        }
    }
    return a;
}

static void test_four_classes(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("softmax", 4);
    for (uint64_t row = 0; row < 4; row++) {
        double mu[4], v[4];
        draw(4, 100 + row, 2, 1e-3, 0.5, mu, v);
        answer a = expect(lik, NULL, (double)row, mu, v), b = by_tensor(lik, (double)row, mu, v);
        assert_near(a.E, b.E, 0, 1e-9);
        assert_all_near(a.g, b.g, 4, 0, 1e-9);
        assert_all_near(a.h, b.h, 4, 0, 1e-9);
    }
    thiele_likelihood_destroy(lik);
}

/* --- identities --------------------------------------------------------------------------------------------------- */

/* dE/dmu = g and dE/dv = h; steps in proportion to the spread, differences good for 1e-7 of the values. */
static void check_slopes(const thiele_likelihood *lik, double y, double *mu, double *v)
{
    answer a = expect(lik, NULL, y, mu, v);
    for (int c = 0; c < lik->classes; c++) {
        double old_mu = mu[c], old_v = v[c], step = 1e-3 * sqrt(1 + v[c]), part = 2e-3 * v[c];
        mu[c] = old_mu + step;
        double up = expect(lik, NULL, y, mu, v).E;
        mu[c] = old_mu - step;
        double down = expect(lik, NULL, y, mu, v).E;
        mu[c] = old_mu;
        assert_near((up - down) / (2 * step), a.g[c], 1e-6, 2e-7);
        v[c] = old_v + part;
        up = expect(lik, NULL, y, mu, v).E;
        v[c] = old_v - part;
        down = expect(lik, NULL, y, mu, v).E;
        v[c] = old_v;
        /* Rounding of E, 1e-13 of its size, over the step. */
        assert_near((up - down) / (2 * part), a.h[c], 1e-5, 1e-6 + 1e-11 * (1 + fabs(a.E)) / part);
    }
}

static void test_slopes(void **state)
{
    (void)state;
    static const int classes[] = {2, 3, 7, 20};
    for (int i = 0; i < 4; i++) {
        thiele_likelihood *lik = make("softmax", classes[i]);
        double mu[MOST], v[MOST];
        draw(classes[i], 200 + (uint64_t)i, 2, 0.02, 4, mu, v);
        check_slopes(lik, 1, mu, v);
        draw(classes[i], 210 + (uint64_t)i, 20, 1e-3, 1e3, mu, v);
        check_slopes(lik, 0, mu, v);
        thiele_likelihood_destroy(lik);
    }
}

/* Each probability is an integral of its own (log_predictive does not scale them): they add up to 1. */
static void check_sums(const thiele_likelihood *lik, const double *mu, const double *v, double tolerance)
{
    int C = lik->classes;
    double p[MOST], sum = 0, slopes = 0, density = 0;
    answer a = expect(lik, NULL, C - 1, mu, v);
    thi_softmax_probabilities(lik, 1, mu, v, p);
    for (int c = 0; c < C; c++) {
        double own = exp(log_predictive(lik, c, mu, v));
        assert_near(own, p[c], 0, tolerance);
        assert_true(p[c] >= 0 && a.h[c] <= 0 && a.h[c] >= -0.125 - 1e-9);
        sum += p[c];
        slopes += a.g[c];
        density += own;
    }
    assert_near(sum, 1, 0, 1e-12);
    assert_near(density, 1, 0, tolerance);
    assert_near(slopes, 0, 0, 1e-12);
    assert_true(a.E <= log(p[C - 1]) + 1e-9 * (1 + fabs(a.E))); /* Jensen */
}

static void test_sums(void **state)
{
    (void)state;
    static const int classes[] = {2, 3, 10, MOST};
    for (int i = 0; i < 4; i++) {
        thiele_likelihood *lik = make("softmax", classes[i]);
        for (uint64_t row = 0; row < 6; row++) {
            double mu[MOST], v[MOST];
            draw(classes[i], 300 + row, 3, 1e-2, 4, mu, v);
            check_sums(lik, mu, v, 1e-10);
            draw(classes[i], 320 + row, 50, 1e-12, 1e4, mu, v);
            check_sums(lik, mu, v, 1e-8);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* A shift of all means changes nothing; a class out of reach is as good as none; order does not matter. */
static void test_invariance(void **state)
{
    (void)state;
    thiele_likelihood *five = make("softmax", 5), *six = make("softmax", 6);
    for (uint64_t row = 0; row < 20; row++) {
        double mu[6], v[6], shifted[6], turned_mu[5], turned_v[5];
        draw(5, 400 + row, 10, 1e-6, 1e3, mu, v);
        mu[5] = -1e9;
        v[5] = 0.5;
        for (int c = 0; c < 5; c++) {
            shifted[c] = mu[c] + 1000;
            turned_mu[c] = mu[4 - c];
            turned_v[c] = v[4 - c];
        }
        answer a = expect(five, NULL, 2, mu, v), b = expect(five, NULL, 2, shifted, v), c = expect(six, NULL, 2, mu, v);
        answer d = expect(five, NULL, 2, turned_mu, turned_v);
        assert_near(b.E, a.E, 1e-10, 1e-10);
        assert_near(c.E, a.E, 1e-10, 1e-10);
        assert_near(d.E, a.E, 1e-10, 1e-10);
        assert_all_near(b.g, a.g, 5, 0, 1e-10);
        assert_all_near(c.g, a.g, 5, 0, 1e-10);
        assert_all_near(c.h, a.h, 5, 0, 1e-10);
        assert_near(d.g[0], a.g[4], 0, 1e-10);
    }
    thiele_likelihood_destroy(five);
    thiele_likelihood_destroy(six);
}

/* --- extremes ----------------------------------------------------------------------------------------------------- */

/* No variance: log p itself, and its derivatives, which keep their digits where they are small. */
static void test_certain(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("softmax", 3);
    static const double rows[][3] = {{0.3, -1, 2}, {50, -50, 0}, {-50, 49, 50}, {1e5, -1e5, 0}, {40, 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v[3] = {0, 1e-300, 1e-12}, y = 0, l, d1[3], d2[3];
        lik->ops->log_density(lik, 1, &y, rows[i], &l);
        lik->ops->derivatives(lik, 1, &y, rows[i], d1, d2);
        answer a = expect(lik, NULL, 0, rows[i], v);
        assert_near(a.E, l, 1e-12, 1e-10);
        assert_near(log_predictive(lik, 0, rows[i], v), l, 1e-12, 1e-10);
        for (int c = 0; c < 3; c++) {
            assert_near(a.g[c], d1[c], 1e-9, 1e-300);
            assert_near(a.h[c], 0.5 * d2[c], 1e-9, 1e-300);
        }
    }
    thiele_likelihood_destroy(lik);
}

/* As far as numbers go. With variances v the winner of three is one in three, and E = mu_y - E[max] in units of sd:
 * the largest of three standard normal variables has mean 3/(2 sqrt(pi)). */
static void test_far(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("softmax", 3);
    static const double spreads[] = {1e4, 1e8, 1e12, 1e200, 1e300};
    for (int i = 0; i < 5; i++) {
        double s = spreads[i], v[3] = {s, s, s}, mu[3] = {0, 0, 0}, third = 1.0 / 3.0;
        answer a = expect(lik, NULL, 0, mu, v);
        assert_near(a.E, -1.5 / sqrt(acos(-1.0)) * sqrt(s), 1e-3, 0);
        assert_near(a.g[0], 1 - third, 0, 1e-9);
        assert_near(log_predictive(lik, 1, mu, v), log(third), 0, 1e-8);
        const double mixed[3] = {s, 1e-12, 3}, far[3] = {-1e300, 1e300, 1e299};
        a = expect(lik, NULL, 1, mu, mixed);
        assert_near(a.g[0], -0.5, 0, 0.02);
        expect(lik, NULL, 0, far, mixed);
        assert_true(isfinite(log_predictive(lik, 0, far, mixed)));
        assert_near(log_predictive(lik, 1, far, mixed), 0, 0, 1e-9);
    }
    /* Beyond the smallest numbers: P(y) = exp(mu_y + v_y/2) E[1/S]. */
    const double mu[3] = {-2000, 0, -3000}, v[3] = {0.6, 0.8, 0.1};
    assert_near(log_predictive(lik, 0, mu, v), -2000 + 0.3 + 0.4, 1e-12, 0);
    thiele_likelihood_destroy(lik);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void test_rows(void **state)
{
    (void)state;
    enum { C = 5, N = 40 };
    static double y[N], mu[C * N], v[C * N], E[N], g[C * N], h[C * N], p[N];
    thiele_likelihood *lik = make("softmax", C);
    for (int i = 0; i < N; i++) {
        draw(C, 500 + (uint64_t)i, 5, 1e-4, 100, mu + C * i, v + C * i);
        y[i] = i % 7 == 3 ? (double)NAN : (double)(i % C);
    }
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, "closed", N, y, mu, v, E, g, h, NULL));
    assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, N, y, mu, v, p));
    for (int i = 0; i < N; i++) {
        answer one = expect(lik, "closed", y[i], mu + C * i, v + C * i);
        assert_true(one.E == E[i] && memcmp(one.g, g + C * i, C * sizeof *g) == 0 &&
                    memcmp(one.h, h + C * i, C * sizeof *h) == 0);
        if (isnan(y[i])) {
            assert_true(E[i] == 0 && g[C * i] == 0 && h[C * i + C - 1] == 0 && p[i] == 0);
        }
    }
    double all[C * N], exact[C * N];
    thi_expect provider;
    assert_ok(ctx, thi_expect_open(&provider, ctx, lik, NULL));
    assert_ok(ctx, thi_probabilities_block(&provider, ctx, N, mu, v, all));
    thi_expect_close(&provider);
    thi_softmax_probabilities(lik, N, mu, v, exact);
    assert_all_near(all, exact, C * N, 0, 1e-10);
    double wrong = C, out[1];
    assert_fails(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, &wrong, mu, v, E, g, h, NULL), THIELE_ERROR_NUMERIC,
                 "not finite");
    lik->ops->log_predictive(lik, 1, &wrong, mu, v, out);
    assert_true(out[0] == -INFINITY);
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),        cmocka_unit_test(test_two_classes),  cmocka_unit_test(test_one_uncertain),
        cmocka_unit_test(test_three_classes), cmocka_unit_test(test_four_classes), cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_sums),          cmocka_unit_test(test_invariance),   cmocka_unit_test(test_certain),
        cmocka_unit_test(test_far),           cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/*
 * Predictions from a likelihood and marginals: moments, densities, class probabilities, quantiles and draws. What the
 * likelihoods know exactly against what is computed without that knowledge (operations are taken away from a copy),
 * sums and integrals over y, and a dense trapezium rule in far tails.
 */
#include "testing_context.h"

#include "expect/expect.h"
#include "likelihood/normal_quantile.h"

static thiele_likelihood *make(const char *text, int outputs, int classes)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, outputs, classes));
    return lik;
}

static double log_predictive(const thiele_likelihood *lik, double y, double mu, double v)
{
    double out;
    assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y, &mu, &v, &out));
    return out;
}

static const double means[] = {-50, -8, -0.6, 0, 0.9, 8, 50}, variances[] = {1e-12, 1e-4, 0.3, 4, 100, 1e4};
enum { MEANS = sizeof means / sizeof *means, VARIANCES = sizeof variances / sizeof *variances };

/* 1e-8 is what quadrature must agree with the exact forms to, for variances up to 4. */
static void test_moments(void **state)
{
    (void)state;
    static const char *const texts[] = {"bernoulli-probit", "poisson(offset=0.3)", "negative-binomial(r=2)",
                                        "gamma(shape=2)",   "student-t(nu=5)",     "laplace",
                                        "matern32",         "ordinal(sigma=0.5)",  "gaussian(noise=1e-6)",
                                        "exponential",      "heteroscedastic"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        thiele_likelihood *lik = make(texts[t], 1, 4);
        thi_likelihood_ops poorer = *lik->ops;
        assert_non_null(poorer.predictive);
        assert_non_null(poorer.conditional);
        for (int a = 1; a < MEANS - 1; a++) {
            for (int b = 0; b < 4; b++) {
                double mu[] = {means[a], 0.3}, v[] = {variances[b], 0.5 * variances[b]}, exact[2], got[2];
                lik->ops->predictive(lik, 1, mu, v, &exact[0], &exact[1]);
                const thi_likelihood_ops *ops = lik->ops;
                poorer.predictive = NULL;
                lik->ops = &poorer;
                assert_ok(ctx, thiele_likelihood_predict(lik, ctx, 1, mu, v, &got[0], &got[1]));
                lik->ops = ops;
                assert_near(got[0], exact[0], 1e-8, 1e-10);
                assert_near(got[1], exact[1], 1e-7, 1e-10);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* Exact densities against the search and the panels, wherever the mass of the product lies. */
static void test_log_densities(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int classes;
        double y[3];
    } table[] = {
        {"gaussian(noise=0.01)", 0, {-3, 0.2, 40}},
        {"bernoulli-probit", 0, {-1, 1, 1}},
        {"svm", 0, {-1, 1, 1}},
        {"laplace(beta=0.01)", 0, {-3, 0.2, 40}},
        {"laplace(beta=2)", 0, {-3, 0.2, 40}},
        {"matern32(rho=0.02)", 0, {-3, 0.2, 40}},
        {"ordinal(sigma=0.1)", 4, {0, 1, 3}},
        {"warped(noise=0.05)", 0, {-3, 0.2, 40}},
    };
    double worst = 0;
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        thiele_likelihood *lik = make(table[t].text, 1, table[t].classes);
        thi_likelihood_ops poorer = *lik->ops;
        const thi_likelihood_ops *ops = lik->ops;
        assert_non_null(ops->log_predictive);
        poorer.log_predictive = NULL;
        for (int i = 0; i < 3 * MEANS * VARIANCES; i++) {
            double y = table[t].y[i % 3], mu = means[i / 3 % MEANS], v = variances[i / 3 / MEANS];
            double exact = log_predictive(lik, y, mu, v);
            lik->ops = &poorer;
            double got = log_predictive(lik, y, mu, v);
            lik->ops = ops;
            /* A relative error of eps in f - mu is one of eps |z|^2 in the exponent. */
            assert_near(got, exact, 1e-8, 1e-8);
            worst = fmax(worst, fabs(got - exact) / (1 + fabs(exact)));
        }
        thiele_likelihood_destroy(lik);
    }
    print_message("largest error of a log predictive density: %.1e\n", worst);
}

/* log of the sum over a fine grid of f around [low, high]: no search, no adaptation. */
static double trapezium(const thiele_likelihood *lik, double y, double mu, double v, double low, double high)
{
    enum { STEPS = 400000 };
    double largest = -INFINITY, sum = 0, step = (high - low) / STEPS;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i <= STEPS; i++) {
            double f = low + step * i, l;
            lik->ops->log_density(lik, 1, &y, &f, &l);
            l -= 0.5 * (f - mu) * (f - mu) / v;
            largest = pass == 0 ? fmax(largest, l) : largest;
            sum += pass == 1 ? exp(l - largest) : 0;
        }
    }
    return largest + log(sum * step) - 0.5 * log(2 * M_PI * v);
}

static void test_far_tails(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double y, mu, v, low, high;
    } table[] = {
        {"poisson", 1e6, 0, 1, 13.7, 13.9},
        {"poisson", 1e6, -50, 0.5, 13.7, 13.9},
        {"poisson", 0, 9, 1, -5, 15},
        {"negative-binomial(r=0.7)", 60, -9, 2, -25, 15},
        {"negative-binomial(r=1e4)", 60, 1, 9, 3, 5},
        {"bernoulli", 1, -25, 9, -60, 20},
        {"bernoulli", -1, 50, 1e-4, 49.5, 50.5},
        {"gamma(shape=200)", 1e-6, 0, 1, -15, -12},
        {"exponential", 1e8, 3, 1, 10, 25},
        {"beta(precision=500)", 0.999, -3, 1, 3, 10},
        {"student-t(nu=3, scale=0.01)", 8, 0, 1, -6, 9},
        {"student-t(nu=3, scale=0.01)", 3, 0, 1, -9, 9},
        {"binomial(trials=1000)", 1000, -5, 1, -3, 15},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        thiele_likelihood *lik = make(table[t].text, 1, 0);
        double got = log_predictive(lik, table[t].y, table[t].mu, table[t].v);
        double want = trapezium(lik, table[t].y, table[t].mu, table[t].v, table[t].low, table[t].high);
        assert_near(got, want, 1e-9, 1e-8);
        thiele_likelihood_destroy(lik);
    }
}

/* y ~ N(f_1, exp(f_2)): given f_2, y is Gaussian; what is left is a sum over f_2. */
static double heteroscedastic(double y, const double *mu, const double *v)
{
    enum { STEPS = 40000 };
    double low = mu[1] - 40 * sqrt(v[1]) - 1, step = (80 * sqrt(v[1]) + 2) / STEPS, largest = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i <= STEPS; i++) {
            double f = low + step * i, s = v[0] + exp(f), l = -0.5 * (log(s) + (y - mu[0]) * (y - mu[0]) / s);
            l -= 0.5 * (f - mu[1]) * (f - mu[1]) / v[1];
            largest = pass == 0 ? fmax(largest, l) : largest;
            sum += pass == 1 ? exp(l - largest) : 0;
        }
    }
    return largest + log(sum * step) - log(2 * M_PI) - 0.5 * log(v[1]);
}

static void test_two_latents(void **state)
{
    (void)state;
    static const double y[] = {0.3, -2, 9, 40}, mean[] = {0, 3}, variance[] = {0.01, 0.5, 2};
    thiele_likelihood *lik = make("heteroscedastic", 1, 0);
    thi_likelihood_ops poorer = *lik->ops;
    poorer.log_predictive = NULL;
    lik->ops = &poorer;
    double worst = 0;
    for (int i = 0; i < 24; i++) {
        double mu[] = {mean[i % 2], -1}, v[] = {variance[i / 2 % 3], variance[(i + 1) % 3]}, got;
        assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y[i / 6], mu, v, &got));
        double want = heteroscedastic(y[i / 6], mu, v);
        /* Where both variances are large the density is a ridge that no product of rules follows well. */
        assert_near(got, want, 0, v[0] * v[1] < 1 && y[i / 6] < 10 ? 1e-8 : 1e-3);
        worst = fmax(worst, fabs(got - want));
    }
    print_message("largest error with two latents: %.1e\n", worst);
    thiele_likelihood_destroy(lik);
}

enum { PLACES = 12000 };

/* sum_i w_i exp(log predictive density at y_i) */
static double weighted_sum(const thiele_likelihood *lik, int n, const double *y, const double *w, double mu, double v)
{
    static double all_mu[PLACES], all_v[PLACES], density[PLACES];
    double sum = 0;
    for (int i = 0; i < n; i++) {
        all_mu[i] = mu;
        all_v[i] = v;
    }
    assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, n, y, all_mu, all_v, density));
    for (int i = 0; i < n; i++) {
        sum += w[i] * exp(density[i]);
    }
    return sum;
}

/* The predictive distribution of a count or a real y sums to 1. */
static void test_sums(void **state)
{
    (void)state;
    static const char *const counts[] = {"poisson(offset=0.3)", "negative-binomial(r=2)", "binomial(trials=12)"};
    static const double v[] = {1e-6, 0.3, 1.5};
    static double y[PLACES], w[PLACES];
    for (int i = 0; i < PLACES; i++) {
        y[i] = i;
        w[i] = 1;
    }
    for (int t = 0; t < 3; t++) {
        thiele_likelihood *lik = make(counts[t], 1, 0);
        for (int b = 0; b < 3; b++) {
            assert_near(weighted_sum(lik, t == 2 ? 13 : 3000, y, w, 0.4, v[b]), 1, t == 2 ? 1e-9 : 1e-6, 0);
        }
        thiele_likelihood_destroy(lik);
    }
    static const struct {
        const char *text;
        double low, v; /* the axis of x starts here; y is x, exp(x) or the logistic of x */
        int map;
    } reals[] = {{"student-t(nu=4, scale=0.3)", -300, 0.8, 0},
                 {"gamma(shape=2)", -60, 0.8, 1},
                 {"exponential", -60, 0.8, 1},
                 {"beta(precision=6)", -30, 0.1, 2}};
    for (int t = 0; t < 4; t++) {
        thiele_likelihood *lik = make(reals[t].text, 1, 0);
        int n = 0;
        for (double x = reals[t].low, step = 0.05; x < -reals[t].low && n < PLACES; x += step, n++) {
            double odds = 1 / (1 + exp(-x));
            y[n] = reals[t].map == 0 ? x : reals[t].map == 1 ? exp(x) : odds;
            w[n] = step * (reals[t].map == 0 ? 1 : reals[t].map == 1 ? y[n] : odds * (1 - odds));
        }
        assert_near(weighted_sum(lik, n, y, w, 0.4, reals[t].v), 1, 1e-6, 0);
        thiele_likelihood_destroy(lik);
    }
}

static void probabilities(const thiele_likelihood *lik, const double *mu, const double *v, double *out)
{
    thi_expect expect;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    assert_ok(ctx, thi_probabilities_block(&expect, ctx, 1, mu, v, out));
    thi_expect_close(&expect);
}

static void test_classes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int classes;
        double tolerance;
    } table[] = {{"bernoulli", 2, 1e-9}, {"bernoulli-probit", 2, 1e-9},   {"softmax", 2, 1e-7},
                 {"softmax", 3, 1e-6},   {"ordinal(sigma=0.4)", 5, 1e-9}, {"softmax", 6, 3e-3},
                 {"svm", 2, 1e-9}};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        thiele_likelihood *lik = make(table[t].text, 1, table[t].classes);
        double mu[] = {0.7, -0.9, 0.1, 1.5, -2, 0}, v[] = {0.5, 2, 3, 0.1, 1, 1e-3}, got[6], density, sum = 0, Z = 0;
        bool binary = lik->ops->support == THI_SUPPORT_BINARY;
        probabilities(lik, mu, v, got);
        for (int pass = 0; pass < 2; pass++) {
            for (int c = 0; c < table[t].classes; c++) {
                double y = binary ? 2 * c - 1 : c;
                assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y, mu, v, &density));
                Z += pass == 0 ? exp(density) : 0;
                sum += pass == 0 ? got[c] : 0;
                if (pass == 1) {
                    assert_near(got[c], exp(density) / Z, table[t].tolerance, 0);
                }
            }
        }
        assert_near(sum, 1, 1e-7, 0);
        assert_near(Z, t < 6 ? 1 : Z, 1e-6, 0);
        thiele_likelihood_destroy(lik);
    }
    thiele_likelihood *lik = make("gaussian", 1, 0);
    thi_expect expect;
    double mu = 0, v = 1, out[2];
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    assert_fails(ctx, thi_probabilities_block(&expect, ctx, 1, &mu, &v, out), THIELE_ERROR_UNSUPPORTED,
                 "does not predict classes");
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

/* --- quantiles and draws ------------------------------------------------------------------------------------------ */

enum { DRAWS = 20000 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The empirical distribution of draws passes through the quantiles, and has the moments that are predicted. */
static void check_draws(thi_expect *expect, const double *mu, const double *v)
{
    static double y[DRAWS];
    static const double levels[] = {0.05, 0.5, 0.9};
    double mean, variance, sum = 0;
    assert_ok(ctx, thi_likelihood_sample(expect, ctx, 3, mu, v, 0, DRAWS, y));
    for (int i = 0; i < DRAWS; i++) {
        sum += y[i] / DRAWS;
    }
    if (expect->lik->ops->conditional != NULL) {
        assert_ok(ctx, thi_predict_block(expect, ctx, 1, mu, v, &mean, &variance));
        assert_near(sum, mean, 0, 4.5 * sqrt(variance / DRAWS));
    }
    qsort(y, DRAWS, sizeof *y, ascending);
    for (int k = 0; k < 3; k++) {
        double q;
        int below = 0, up_to = 0;
        assert_ok(ctx, thi_likelihood_quantile(expect, ctx, mu, v, levels[k], &q));
        for (int i = 0; i < DRAWS; i++) {
            below += y[i] < q;
            up_to += y[i] <= q;
        }
        /* P(Y < q) <= p <= P(Y <= q), each within 4.5 standard deviations. */
        double slack = 4.5 * sqrt(levels[k] * (1 - levels[k]) / DRAWS);
        assert_true(below <= DRAWS * (levels[k] + slack));
        assert_true(up_to >= DRAWS * (levels[k] - slack));
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int classes;
    } table[] = {
        {"gaussian(noise=0.3)", 0}, {"student-t(nu=4)", 0},   {"laplace", 0},     {"matern32", 0},
        {"bernoulli", 0},           {"bernoulli-probit", 0},  {"poisson", 0},     {"negative-binomial(r=2)", 0},
        {"binomial(trials=9)", 0},  {"gamma(shape=2)", 0},    {"exponential", 0}, {"beta(precision=6)", 0},
        {"ordinal(sigma=0.5)", 4},  {"warped(noise=0.2)", 0}, {"softmax", 5},     {"heteroscedastic", 0}};
    static const double mu[] = {0.4, -0.3, 0.2, 0.9, -1}, v[] = {0.8, 0.1, 1, 0.5, 2};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        thiele_likelihood *lik = make(table[t].text, 1, table[t].classes);
        thi_expect expect;
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
        check_draws(&expect, mu, v);
        thi_expect_close(&expect);
        thiele_likelihood_destroy(lik);
    }
}

/* A Gaussian's quantiles are known; narrow and wide marginals, far levels. */
static void test_gaussian_quantiles(void **state)
{
    (void)state;
    static const double levels[] = {1e-6, 0.025, 0.5, 0.8, 0.999};
    thiele_likelihood *lik = make("gaussian(noise=0.25)", 1, 0);
    thi_expect expect;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    for (int a = 0; a < MEANS; a++) {
        for (int b = 0; b < VARIANCES; b++) {
            for (int k = 0; k < 5; k++) {
                double q, sd = sqrt(variances[b] + 0.25);
                assert_ok(ctx, thi_likelihood_quantile(&expect, ctx, &means[a], &variances[b], levels[k], &q));
                assert_near(q, means[a] + sd * thi_normal_quantile(levels[k]), 1e-8, 1e-6 * sd);
            }
        }
    }
    double q;
    assert_fails(ctx, thi_likelihood_quantile(&expect, ctx, &means[0], &variances[0], 1, &q), THIELE_ERROR_ARGUMENT,
                 "between 0 and 1");
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

/* A quantile of a y in (0, 1) or above 0 is one, however close to the end all mass lies. */
static void test_quantiles_at_the_end(void **state)
{
    (void)state;
    static const char *const texts[] = {"beta(precision=3)", "beta(precision=1e6)", "gamma(shape=0.01)"};
    static const double means_there[] = {-800, -60, 60}, levels[] = {0.001, 0.5, 0.999};
    for (int t = 0; t < 3; t++) {
        thiele_likelihood *lik = make(texts[t], 1, 0);
        thi_expect expect;
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
        for (int i = 0; i < 3; i++) {
            double v = 0.5, q[3];
            assert_ok(ctx, thi_quantile_block(&expect, ctx, 1, &means_there[i], &v, 3, levels, q));
            for (int k = 0; k < 3; k++) {
                assert_null(thi_likelihood_refuses(lik, q[k]));
                assert_true(k == 0 || q[k] >= q[k - 1]);
            }
        }
        thi_expect_close(&expect);
        thiele_likelihood_destroy(lik);
    }
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static double own(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    return f[0] > 2 ? NAN : -fabs(y[0] - f[0]) - 0.693147180559945;
}

static void test_errors(void **state)
{
    (void)state;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    thiele_likelihood *lik = NULL;
    thi_expect expect;
    double y = 0.5, mu = 0, v = 1, a, b;
    spec.name = "own";
    spec.log_density = own;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    assert_fails(ctx, thiele_likelihood_predict(lik, ctx, 1, &mu, &v, &a, &b), THIELE_ERROR_NUMERIC, "not a number");
    assert_fails(ctx, thi_likelihood_quantile(&expect, ctx, &mu, &v, 0.5, &a), THIELE_ERROR_NUMERIC, "not a number");
    assert_fails(ctx, thi_likelihood_sample(&expect, ctx, 0, &mu, &v, 0, 1, &a), THIELE_ERROR_NUMERIC, "not a number");
    assert_fails(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y, &mu, &v, &a), THIELE_ERROR_NUMERIC,
                 "predictive density of y = 0.5");
    v = 1e-4;
    assert_near(log_predictive(lik, y, mu, v), -0.5 - 0.693147180559945 + 0.5 * v, 0, 1e-9);
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
    lik = make("poisson", 1, 0);
    y = -3;
    assert_true(log_predictive(lik, y, mu, v) == -INFINITY); /* impossible, not an error */
    y = NAN;
    assert_true(log_predictive(lik, y, mu, v) == 0);
    thiele_likelihood_destroy(lik);
}

static void test_allocations(void **state)
{
    (void)state;
    static const char *const texts[] = {"negative-binomial(r=2)", "softmax", "softmax"};
    static const int classes[] = {0, 3, 5};
    for (int t = 0; t < 3; t++) {
        thiele_likelihood *lik = make(texts[t], 1, classes[t]);
        int64_t held = (int64_t)thi_memory_held(ctx);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth++) {
            double y[] = {0, 2}, mu[10] = {0.3, -20, 9}, v[10] = {0.5, 3, 1, 1, 1, 1, 1, 1, 1, 1}, out[2], q;
            thi_expect expect;
            thi_fail_allocation(ctx, nth, true);
            status = thiele_likelihood_log_predictive(lik, ctx, 2, y, mu, v, out);
            if (status == THIELE_OK) {
                status = thi_expect_open(&expect, ctx, lik, NULL);
                status = status == THIELE_OK ? thi_likelihood_quantile(&expect, ctx, mu, v, 0.7, &q) : status;
                thi_expect_close(&expect);
            }
            thi_fail_allocation(ctx, 0, false);
            assert_int_equal((int64_t)thi_memory_held(ctx), held);
        }
        assert_int_equal(status, THIELE_OK);
        thiele_likelihood_destroy(lik);
    }
}

/* P(Y <= y) by 4,001 trapezoids over ten standard deviations of f. */
static double count_cdf(const thiele_likelihood *lik, double y, double mu, double v)
{
    enum { HALF = 2000 };
    double sum = 0.0;
    double weights = 0.0;
    for (int k = -HALF; k <= HALF; k++) {
        double z = 10.0 * k / HALF;
        double f = mu + sqrt(v) * z;
        double w = exp(-0.5 * z * z);
        sum += w * lik->ops->cdf(lik, y, &f);
        weights += w;
    }
    return sum / weights;
}

/* A quantile of a count is the first whose distribution function reaches the level; large counts are nearly steps in f.
 */
static void test_count_quantiles(void **state)
{
    (void)state;
    static const char *const texts[] = {"poisson", "negative-binomial(r=3)", "binomial(trials=100000)"};
    static const double levels[] = {0.05, 0.3, 0.4, 0.9};
    static const double centres[] = {0.0, 5.0, 9.0};
    for (int t = 0; t < 3; t++) {
        thiele_likelihood *lik = NULL;
        thi_expect expect;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, texts[t], 1, 0));
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
        for (int m = 0; m < 3; m++) {
            for (int k = 0; k < 4; k++) {
                double mu = t == 2 ? 0.1 * centres[m] : centres[m];
                double v = 0.25;
                double q;
                assert_ok(ctx, thi_likelihood_quantile(&expect, ctx, &mu, &v, levels[k], &q));
                assert_true(count_cdf(lik, q, mu, v) >= levels[k] - 1e-6);
                assert_true(q == 0.0 || count_cdf(lik, q - 1.0, mu, v) < levels[k] + 1e-6);
            }
        }
        thi_expect_close(&expect);
        thiele_likelihood_destroy(lik);
    }
}

/* A peak 13 standard deviations from mu, where no rule about mu has a node: against 20,001 trapezoids. */
static void test_far_peak(void **state)
{
    (void)state;
    enum { HALF = 10000 };
    thiele_likelihood *lik = NULL;
    double y = 1e-6, mu = 12.0, v = 1.0, out;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "beta(precision=10)", 1, 0));
    assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y, &mu, &v, &out));
    double top = -INFINITY;
    double sum = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = -HALF; k <= HALF; k++) {
            double z = 40.0 * k / HALF;
            double f = mu + z;
            double log_p;
            thiele_likelihood_log_density(lik, 1, &y, &f, &log_p);
            double psi = log_p - 0.5 * z * z;
            top = fmax(top, psi);
            sum += pass == 1 ? exp(psi - top) * 40.0 / HALF : 0.0;
        }
    }
    assert_near(out, top + log(sum) - 0.5 * log(2.0 * M_PI), 1e-8, 0.0);
    thiele_likelihood_destroy(lik);
}

static double not_a_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)y, (void)f, (void)phi, (void)user;
    return NAN;
}

static void test_nan_density(void **state)
{
    (void)state;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "nothing";
    spec.log_density = not_a_density;
    thiele_likelihood *lik = NULL;
    double y = 0.0, mu = 0.0, v = 1.0, out;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    assert_fails(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, &y, &mu, &v, &out), THIELE_ERROR_NUMERIC,
                 "nothing");
    double g, h;
    assert_fails(ctx, thiele_likelihood_expect(lik, ctx, "quadrature:3", 1, &y, &mu, &v, &out, &g, &h, NULL),
                 THIELE_ERROR_ARGUMENT, "too few");
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_quantiles),
        cmocka_unit_test(test_nan_density),
        cmocka_unit_test(test_far_peak),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_log_densities),
        cmocka_unit_test(test_far_tails),
        cmocka_unit_test(test_two_latents),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_gaussian_quantiles),
        cmocka_unit_test(test_quantiles_at_the_end),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

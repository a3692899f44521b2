/*
 * Predictions from a log density alone: built-in likelihoods dressed as a user's own, which hides all but their
 * density, against what they know of themselves; sums and integrals over each kind of y, several outputs, tails without
 * moments, densities that do not add up to 1; and mixtures of marginals against sums over their components.
 */
#include "likelihood_testing.h"

#include "expect/expect.h"
#include "likelihood/normal_quantile.h"
#include "likelihood/special.h"

static thiele_likelihood *make(const char *text, int outputs, int classes)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, outputs, classes));
    return lik;
}

/* The density of another likelihood, e^3 times too large. */
static double borrowed(const double *y, const double *f, const double *phi, void *user)
{
    const thiele_likelihood *lik = user;
    double out;
    (void)phi;
    lik->ops->log_density(lik, 1, y, f, &out);
    return out + 3;
}

static thiele_likelihood_spec dress(thiele_likelihood *lik)
{
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "dressed";
    spec.outputs = lik->outputs;
    spec.latents = lik->latents;
    spec.log_density = borrowed;
    spec.support = (thiele_support)lik->ops->support;
    spec.classes = lik->classes;
    spec.user = lik;
    return spec;
}

typedef struct both {
    thiele_likelihood_spec spec;
    thiele_likelihood *known, *dressed;
    thi_expect by_known, by_density;
} both;

static void open_both(both *b, const char *text, int outputs, int classes)
{
    b->known = make(text, outputs, classes);
    b->spec = dress(b->known);
    assert_ok(ctx, thiele_likelihood_custom(&b->dressed, ctx, &b->spec));
    assert_ok(ctx, thi_expect_open(&b->by_known, ctx, b->known, NULL));
    assert_ok(ctx, thi_expect_open(&b->by_density, ctx, b->dressed, NULL));
}

static void close_both(both *b)
{
    thi_expect_close(&b->by_known);
    thi_expect_close(&b->by_density);
    thiele_likelihood_destroy(b->dressed);
    thiele_likelihood_destroy(b->known);
}

static const double levels[] = {0.01, 0.05, 0.3, 0.5, 0.9, 0.999};
enum { LEVELS = sizeof levels / sizeof *levels };

/* Log densities are integrated over f to 1e-9, those of cells to 1e-9: 1e-6 leaves room for both in the tails. */
static void one_output(void **state)
{
    (void)state;
    static const char *const texts[] = {"gaussian(noise=0.3)",
                                        "gaussian(noise=1e-4)",
                                        "student-t(nu=6)",
                                        "laplace(beta=0.5)",
                                        "matern32",
                                        "warped(noise=0.2)",
                                        "poisson(offset=0.4)",
                                        "poisson(offset=7)",
                                        "negative-binomial(r=2)",
                                        "binomial(trials=9)",
                                        "gamma(shape=2)",
                                        "gamma(shape=0.6)",
                                        "exponential",
                                        "beta(precision=12)",
                                        "beta(precision=100)",
                                        "negative-binomial(r=0.5)",
                                        "binomial(trials=20000)",
                                        "heteroscedastic"};
    static const double mus[][2] = {{0.4, -0.3}, {-2, 0.2}, {3, 0.1}},
                        vs[][2] = {{0.05, 0.1}, {0.6, 0.05}, {1e-8, 1e-8}};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        both b;
        open_both(&b, texts[t], 1, 0);
        bool counts = b.known->ops->support == THI_SUPPORT_COUNT;
        for (int i = 0; i < 3; i++) {
            double mean[2], variance[2], want[LEVELS], got[LEVELS];
            assert_ok(ctx, thi_predict_block(&b.by_known, ctx, 1, mus[i], vs[i], &mean[0], &variance[0]));
            assert_ok(ctx, thi_predict_block(&b.by_density, ctx, 1, mus[i], vs[i], &mean[1], &variance[1]));
            assert_near(mean[1], mean[0], 1e-7, 1e-7 * sqrt(variance[0]));
            assert_near(variance[1], variance[0], 1e-6, 0);
            assert_ok(ctx, thi_quantile_block(&b.by_known, ctx, 1, mus[i], vs[i], LEVELS, levels, want));
            assert_ok(ctx, thi_quantile_block(&b.by_density, ctx, 1, mus[i], vs[i], LEVELS, levels, got));
            for (int k = 0; k < LEVELS; k++) {
                assert_near(got[k], want[k], counts ? 0 : 1e-6, counts ? 0 : 1e-5 * sqrt(variance[0]));
            }
        }
        close_both(&b);
    }
}

/* Each output by itself is what its density says when the others are missing. */
static void several_outputs(void **state)
{
    (void)state;
    static const double mu[] = {0.4, -1.5}, v[] = {0.02, 0.04};
    enum { DRAWS = 40 };
    static double y[2 * DRAWS];
    double mean[2][3], variance[2][3], want[3 * LEVELS], got[3 * LEVELS];
    both b;
    open_both(&b, "mixing(latents=2, noise=0.2, w_1_1=1, w_1_2=0.5, w_2_1=-1, w_2_2=2, w_3_1=0.3, w_3_2=0)", 3, 0);
    assert_ok(ctx, thi_predict_block(&b.by_known, ctx, 1, mu, v, mean[0], variance[0]));
    assert_ok(ctx, thi_predict_block(&b.by_density, ctx, 1, mu, v, mean[1], variance[1]));
    /* No product of rules follows the ridge of two latents well. */
    assert_all_near(mean[1], mean[0], 3, 1e-4, 1e-5);
    assert_all_near(variance[1], variance[0], 3, 1e-4, 0);
    assert_ok(ctx, thi_quantile_block(&b.by_known, ctx, 1, mu, v, LEVELS, levels, want));
    assert_ok(ctx, thi_quantile_block(&b.by_density, ctx, 1, mu, v, LEVELS, levels, got));
    assert_all_near(got, want, 3 * LEVELS, 1e-4, 1e-4);
    close_both(&b);
    /* A draw's outputs belong together: the product of two has the mean that their covariance says. */
    open_both(&b, "mixing(latents=1, noise=0.01, w_1_1=1, w_2_1=-2)", 2, 0);
    assert_ok(ctx, thi_likelihood_sample(&b.by_density, ctx, 5, mu, v, 0, DRAWS, y));
    double sum[3] = {0, 0, 0};
    for (int i = 0; i < DRAWS; i++) {
        double first = y[2 * i] - 0.4, second = y[2 * i + 1] + 0.8;
        sum[0] += first / DRAWS;
        sum[1] += second / DRAWS;
        sum[2] += first * second / DRAWS;
    }
    assert_near(sum[0], 0, 0, 4.5 * sqrt(0.03 / DRAWS));
    assert_near(sum[1], 0, 0, 4.5 * sqrt(0.09 / DRAWS));
    assert_near(sum[2], -0.04, 0, 4.5 * sqrt((0.03 * 0.09 + 0.0016) / DRAWS));
    close_both(&b);
}

/* Moments that the tails do not allow are said to be so, those that they do are found. */
static void tails(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool mean, variance;
    } table[] = {{"student-t(nu=0.8, scale=0.3)", false, false},
                 {"student-t(nu=1.6, scale=0.3)", true, false},
                 {"student-t(nu=2.8, scale=0.3)", true, true}};
    for (int t = 0; t < 3; t++) {
        double mu = 0.7, v = 0.01, mean, variance, q[2], p = 0.02;
        both b;
        open_both(&b, table[t].text, 1, 0);
        assert_ok(ctx, thi_predict_block(&b.by_density, ctx, 1, &mu, &v, &mean, &variance));
        assert_int_equal(!isnan(mean), table[t].mean);
        assert_int_equal(isfinite(variance), table[t].variance);
        if (table[t].variance) {
            assert_near(variance, 0.01 + 0.09 * 2.8 / 0.8, 1e-4, 0);
        }
        assert_ok(ctx, thi_likelihood_quantile(&b.by_known, ctx, &mu, &v, p, &q[0]));
        assert_ok(ctx, thi_likelihood_quantile(&b.by_density, ctx, &mu, &v, p, &q[1]));
        assert_near(q[1], q[0], 1e-5, 0);
        close_both(&b);
    }
}

static double whole_numbers(const double *y, const double *f, const double *phi, void *user)
{
    (void)f, (void)phi, (void)user;
    return y[0] == floor(y[0]) && y[0] >= 0 && y[0] < 4 ? -log(4) : -INFINITY;
}

static double everywhere(const double *y, const double *f, const double *phi, void *user)
{
    (void)y, (void)f, (void)phi, (void)user;
    return 0;
}

static double nowhere(const double *y, const double *f, const double *phi, void *user)
{
    (void)y, (void)f, (void)phi, (void)user;
    return -INFINITY;
}

/* Jumps: uniform on (f - 4.1, f - 4). */
static double one_piece(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi, (void)user;
    return y[0] - f[0] > -4.1 && y[0] - f[0] < -4 ? -log(0.1) : -INFINITY;
}

/* Two narrow modes far apart: a quarter about f - 4.05, the rest about f + 7.15. */
static double two_pieces(const double *y, const double *f, const double *phi, void *user)
{
    double low = (y[0] - f[0] + 4.05) / 0.05, high = (y[0] - f[0] - 7.15) / 0.1;
    (void)phi, (void)user;
    return thi_log_add(log(0.25 / 0.05) - 0.5 * low * low, log(0.75 / 0.1) - 0.5 * high * high);
}

static void strange_densities(void **state)
{
    (void)state;
    static const struct {
        double (*density)(const double *, const double *, const double *, void *);
        thiele_support support;
        const char *part; /* of the message; NULL: none is expected */
    } table[] = {{whole_numbers, THIELE_SUPPORT_REAL, "declare the values of y"},
                 {whole_numbers, THIELE_SUPPORT_COUNT, NULL},
                 {everywhere, THIELE_SUPPORT_REAL, "no finite sum"},
                 {everywhere, THIELE_SUPPORT_UNIT, NULL},
                 {nowhere, THIELE_SUPPORT_POSITIVE, "no y with positive density was found"},
                 {nowhere, THIELE_SUPPORT_BINARY, "no class is possible"},
                 {one_piece, THIELE_SUPPORT_REAL, NULL},
                 {two_pieces, THIELE_SUPPORT_REAL, NULL}};
    static const double want[][2] = {
        {0, 0}, {1.5, 1.25}, {0, 0}, {0.5, 1.0 / 12}, {0, 0}, {0, 0}, {-4.05, 0.01 / 12}, {4.35, 23.5281250000}};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
        thiele_likelihood *lik = NULL;
        double mu = 0, v = 1e-10, mean, variance;
        spec.name = "strange";
        spec.log_density = table[t].density;
        spec.support = table[t].support;
        assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
        if (table[t].part != NULL) {
            assert_fails(ctx, thiele_likelihood_predict(lik, ctx, 1, &mu, &v, &mean, &variance), THIELE_ERROR_NUMERIC,
                         table[t].part);
        } else {
            assert_ok(ctx, thiele_likelihood_predict(lik, ctx, 1, &mu, &v, &mean, &variance));
        }
        if (table[t].part == NULL) {
            assert_near(mean, want[t][0], 1e-7, 0);
            assert_near(variance, want[t][1], 1e-6, 0);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* A user's own classes and two values: probabilities, quantiles and draws from the density. */
static void own_classes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int classes;
    } table[] = {{"bernoulli", 2}, {"softmax", 3}, {"ordinal(sigma=0.4)", 4}, {"svm", 2}};
    static const double mu[] = {0.7, -0.3, 0.2}, v[] = {0.5, 0.9, 0.1};
    enum { DRAWS = 4000 };
    static double y[DRAWS];
    for (int t = 0; t < 4; t++) {
        double want[4], got[4], q[2][LEVELS], share[4] = {0};
        both b;
        open_both(&b, table[t].text, 1, table[t].classes == 2 ? 0 : table[t].classes);
        bool binary = b.known->ops->support == THI_SUPPORT_BINARY;
        assert_ok(ctx, thi_probabilities_block(&b.by_known, ctx, 1, mu, v, want));
        assert_ok(ctx, thi_probabilities_block(&b.by_density, ctx, 1, mu, v, got));
        assert_all_near(got, want, table[t].classes, 1e-5, 0);
        assert_ok(ctx, thi_quantile_block(&b.by_known, ctx, 1, mu, v, LEVELS, levels, q[0]));
        assert_ok(ctx, thi_quantile_block(&b.by_density, ctx, 1, mu, v, LEVELS, levels, q[1]));
        assert_all_near(q[1], q[0], LEVELS, 0, 0);
        thi_expect *const by[] = {&b.by_known, &b.by_density};
        for (int which = 0; which < 2; which++) {
            assert_ok(ctx, thi_likelihood_sample(by[which], ctx, 2, mu, v, 0, DRAWS, y));
            memset(share, 0, sizeof share);
            for (int i = 0; i < DRAWS; i++) {
                share[binary ? y[i] > 0 : (int)y[i]] += 1.0 / DRAWS;
            }
            for (int c = 0; c < table[t].classes; c++) {
                assert_near(share[c], want[c], 0, 4.5 * sqrt(want[c] * (1 - want[c]) / DRAWS));
            }
        }
        close_both(&b);
    }
    both b;
    double mean, variance, probability[2];
    open_both(&b, "bernoulli-probit", 1, 0);
    assert_ok(ctx, thi_predict_block(&b.by_density, ctx, 1, mu, v, &mean, &variance));
    assert_ok(ctx, thi_probabilities_block(&b.by_known, ctx, 1, mu, v, probability));
    assert_near(mean, probability[1] - probability[0], 1e-8, 0);
    assert_near(variance, 1 - mean * mean, 1e-8, 0);
    close_both(&b);
    open_both(&b, "softmax", 1, 3);
    assert_fails(ctx, thi_predict_block(&b.by_density, ctx, 1, mu, v, &mean, &variance), THIELE_ERROR_UNSUPPORTED,
                 "no mean");
    close_both(&b);
}

/* --- mixtures ----------------------------------------------------------------------------------------------------- */

enum { ROWS = 3, K = 3, MOST = 8 };
static const double weight[K] = {0.5, 0.3, 0.2};

/* Q x ROWS x K numbers around zero, and positive ones. */
static void fill_marginals(int Q, double *mu, double *v)
{
    test_normals(Q * ROWS * K, 11, mu);
    test_normals(Q * ROWS * K, 12, v);
    for (int i = 0; i < Q * ROWS * K; i++) {
        v[i] = 0.05 + 0.3 * v[i] * v[i];
    }
}

/* Density, moments and probabilities are sums over the components; one component is the plain block. */
static void mixture_of(thiele_likelihood *lik)
{
    int P = lik->outputs, Q = lik->latents;
    double mu[MOST * ROWS * K], v[MOST * ROWS * K], y[MOST * ROWS], got[2][MOST * ROWS], one[2][MOST * ROWS];
    thi_expect expect;
    fill_marginals(Q, mu, v);
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    thi_marginals m = {ROWS, K, weight, mu, v};
    const int64_t row[] = {0, 1, 2};
    assert_ok(ctx, thi_mixture_samples(&expect, ctx, &m, row, 0, 1, y));
    double sum[2][MOST * ROWS] = {{0}};
    bool moments = lik->ops->conditional != NULL;
    for (int k = 0; k < K; k++) {
        const double *mu_k = mu + k * Q * ROWS, *v_k = v + k * Q * ROWS;
        assert_ok(ctx, thi_log_predictive_block(&expect, ctx, ROWS, y, mu_k, v_k, one[0]));
        for (int i = 0; i < ROWS; i++) {
            sum[0][i] += weight[k] * exp(one[0][i]);
        }
    }
    assert_ok(ctx, thi_mixture_log_predictive(&expect, ctx, &m, y, got[0]));
    for (int i = 0; i < ROWS; i++) {
        assert_near(exp(got[0][i]), sum[0][i], 1e-12, 0);
    }
    memset(sum, 0, sizeof sum);
    for (int k = 0; k < K && moments; k++) {
        const double *mu_k = mu + k * Q * ROWS, *v_k = v + k * Q * ROWS;
        assert_ok(ctx, thi_predict_block(&expect, ctx, ROWS, mu_k, v_k, one[0], one[1]));
        for (int i = 0; i < ROWS * P; i++) {
            sum[0][i] += weight[k] * one[0][i];
            sum[1][i] += weight[k] * (one[1][i] + one[0][i] * one[0][i]);
        }
    }
    if (moments) {
        assert_ok(ctx, thi_mixture_predict(&expect, ctx, &m, got[0], got[1]));
        for (int i = 0; i < ROWS * P; i++) {
            assert_near(got[0][i], sum[0][i], 1e-12, 1e-14);
            assert_near(got[1][i] + got[0][i] * got[0][i], sum[1][i], 1e-12, 0);
        }
    }
    thi_expect_close(&expect);
}

static void mixture_sums(void **state)
{
    (void)state;
    test_all_likelihoods(mixture_of);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws of every family, from one component and from three, fall around its quantiles as they should. */
static void draws_of(thiele_likelihood *lik)
{
    enum { DRAWS = 6000 };
    static double y[MOST * DRAWS * ROWS], own[DRAWS];
    const int64_t row[] = {4, 0, 9};
    for (int t = 0; t < 2; t++) {
        int P = lik->outputs, Q = lik->latents;
        double mu[MOST * ROWS * K], v[MOST * ROWS * K], q[LEVELS * MOST * ROWS];
        thi_expect expect;
        fill_marginals(Q, mu, v);
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
        thi_marginals m = {ROWS, t % 2 ? K : 1, weight, mu, v};
        assert_ok(ctx, thi_mixture_samples(&expect, ctx, &m, row, 0, DRAWS, y));
        assert_ok(ctx, thi_mixture_quantiles(&expect, ctx, &m, LEVELS, levels, q));
        for (int c = 0; c < ROWS * P; c++) {
            for (int i = 0; i < DRAWS; i++) {
                own[i] = y[(c / P * DRAWS + i) * P + c % P];
                assert_null(thi_likelihood_refuses(lik, own[i]));
            }
            qsort(own, DRAWS, sizeof *own, ascending);
            for (int k = 0; k < LEVELS; k++) {
                int below = 0, up_to = 0;
                double at = q[c * LEVELS + k], slack = 4.5 * sqrt(levels[k] * (1 - levels[k]) / DRAWS);
                for (int i = 0; i < DRAWS; i++) {
                    below += own[i] < at;
                    up_to += own[i] <= at;
                }
                if (!(below <= DRAWS * (levels[k] + slack)) || !(up_to >= DRAWS * (levels[k] - slack))) {
                    fail_msg("%s, %d components, output %d, level %g: %g", thiele_likelihood_name(lik), m.components, c,
                             levels[k], at);
                }
            }
        }
        thi_expect_close(&expect);
    }
}

static void quantiles_and_draws(void **state)
{
    (void)state;
    test_all_likelihoods(draws_of);
}

/* Quantiles in order and, like draws, values that y may have, for marginals far out, narrow and wide. */
static void extremes_of(thiele_likelihood *lik)
{
    static const double means[] = {-50, 0.3, 50}, variances[] = {1e-12, 1, 100};
    const int64_t row = 3;
    for (int t = 0; t < 9; t++) {
        double mu[MOST], v[MOST], q[LEVELS * MOST], y[10 * MOST];
        thi_expect expect;
        for (int i = 0; i < MOST; i++) {
            mu[i] = means[t % 3] * (i % 2 ? 0.1 : 1);
            v[i] = variances[t / 3 % 3] * (i % 2 ? 0.1 : 1);
        }
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
        assert_ok(ctx, thi_quantile_block(&expect, ctx, 1, mu, v, LEVELS, levels, q));
        assert_ok(ctx, thi_sample_block(&expect, ctx, 1, &row, mu, v, 10, y));
        for (int k = 0; k < LEVELS * lik->outputs; k++) {
            assert_null(thi_likelihood_refuses(lik, q[k]));
            assert_true(!isnan(q[k]) && (k % LEVELS == 0 || q[k] >= q[k - 1]));
        }
        for (int k = 0; k < 10 * lik->outputs; k++) {
            assert_null(thi_likelihood_refuses(lik, y[k]));
        }
        thi_expect_close(&expect);
    }
}

static void extremes(void **state)
{
    (void)state;
    test_all_likelihoods(extremes_of);
}

/* The mixture's distribution function at its quantiles, by the known form of its parts. */
static void exact_quantiles(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("gaussian(noise=0.2)", 1, 0);
    double mu[ROWS * K], v[ROWS * K], q[LEVELS * ROWS], one;
    thi_expect expect;
    fill_marginals(1, mu, v);
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    thi_marginals m = {ROWS, K, weight, mu, v};
    assert_ok(ctx, thi_mixture_quantiles(&expect, ctx, &m, LEVELS, levels, q));
    for (int i = 0; i < ROWS * LEVELS; i++) {
        double cdf = 0, p = levels[i % LEVELS];
        for (int k = 0; k < K; k++) {
            int at = k * ROWS + i / LEVELS;
            cdf += weight[k] * thi_normal_cdf((q[i] - mu[at]) / sqrt(v[at] + 0.2));
        }
        assert_near(cdf, p, 1e-6 * fmin(1, (1 - p) / p), 0);
    }
    assert_ok(ctx, thi_quantile_block(&expect, ctx, ROWS, mu, v, LEVELS, levels, q));
    for (int i = 0; i < ROWS * LEVELS; i++) {
        double sd = sqrt(v[i / LEVELS] + 0.2);
        assert_near(q[i], mu[i / LEVELS] + sd * thi_normal_quantile(levels[i % LEVELS]), 1e-15, 1e-15);
    }
    assert_fails(ctx, thi_quantile_block(&expect, ctx, 1, mu, v, 1, &(double){1}, &one), THIELE_ERROR_ARGUMENT,
                 "between 0 and 1");
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

/*
 * A network with one node and weights without spread is Gaussian; with both spread, P(Y <= y) is the mean of a normal
 * distribution function over the node: 4,001 trapezoids.
 */
static void network_quantiles(void **state)
{
    (void)state;
    enum { HALF = 2000 };
    static const double mu[] = {0.6, 1.2, -0.4}, v[] = {0.5, 0.3, 0.8}, flat[] = {0.5, 0, 0};
    thiele_likelihood *lik = make("gprn(nodes=1, noise=0.05)", 2, 0);
    double q[2 * LEVELS];
    thi_expect expect;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    assert_ok(ctx, thi_quantile_block(&expect, ctx, 1, mu, flat, LEVELS, levels, q));
    for (int k = 0; k < 2 * LEVELS; k++) {
        double w = mu[1 + k / LEVELS], sd = sqrt(w * w * 0.5 + 0.05);
        assert_near(q[k], w * 0.6 + sd * thi_normal_quantile(levels[k % LEVELS]), 1e-7, 1e-7);
    }
    assert_ok(ctx, thi_quantile_block(&expect, ctx, 1, mu, v, LEVELS, levels, q));
    for (int k = 0; k < 2 * LEVELS; k++) {
        double sum = 0, weights = 0, m = mu[1 + k / LEVELS], u = v[1 + k / LEVELS], p = levels[k % LEVELS];
        for (int j = -HALF; j <= HALF; j++) {
            double z = 9.0 * j / HALF, f = mu[0] + sqrt(v[0]) * z;
            sum += exp(-0.5 * z * z) * thi_normal_cdf((q[k] - m * f) / sqrt(u * f * f + 0.05));
            weights += exp(-0.5 * z * z);
        }
        assert_near(sum / weights, p, 0, 1e-7 * fmin(p, 1 - p));
    }
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    both b;
    open_both(&b, "gamma(shape=2)", 1, 0);
    int64_t held = (int64_t)thi_memory_held(ctx);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth++) {
        double mu[] = {0.3, 0.5}, v[] = {0.5, 0.1}, q, y[2], mean, variance;
        const int64_t row = 0;
        thi_marginals m = {1, 2, weight, mu, v};
        thi_expect expect;
        thi_fail_allocation(ctx, nth, true);
        status = thi_expect_open(&expect, ctx, b.dressed, NULL);
        status = status == THIELE_OK ? thi_mixture_quantiles(&expect, ctx, &m, 1, levels, &q) : status;
        status = status == THIELE_OK ? thi_mixture_predict(&expect, ctx, &m, &mean, &variance) : status;
        status = status == THIELE_OK ? thi_mixture_samples(&expect, ctx, &m, &row, 0, 2, y) : status;
        thi_expect_close(&expect);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal((int64_t)thi_memory_held(ctx), held);
    }
    assert_int_equal(status, THIELE_OK);
    close_both(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_output),
        cmocka_unit_test(several_outputs),
        cmocka_unit_test(tails),
        cmocka_unit_test(strange_densities),
        cmocka_unit_test(own_classes),
        cmocka_unit_test(mixture_sums),
        cmocka_unit_test(exact_quantiles),
        cmocka_unit_test(quantiles_and_draws),
        cmocka_unit_test(network_quantiles),
        cmocka_unit_test(allocations_may_fail),
        cmocka_unit_test(extremes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

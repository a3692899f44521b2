/*
 * The likelihoods of a real or binary y against brute force: a dense composite Gauss-Legendre rule whose panels shrink
 * towards the kink and around the Gaussian. Normalisation, derivatives, closed expectations and predictive densities,
 * distribution functions, draws, extremes, with parameters small, usual and large. What every likelihood must do is in
 * test_likelihoods.c.
 */
#include "testing_context.h"

#include "likelihood/likelihood.h"
#include "linalg/linalg.h"

static thiele_likelihood *make(const char *text)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, 1, 0));
    return lik;
}

static bool is_binary(const thiele_likelihood *lik)
{
    return lik->ops->support == THI_SUPPORT_BINARY;
}

static double density(const thiele_likelihood *lik, double y, const double *f)
{
    double out;
    lik->ops->log_density(lik, 1, &y, f, &out);
    return out;
}

static const char *const all[] = {"gaussian(noise=0.3)",
                                  "gaussian(noise=1e-4)",
                                  "heteroscedastic",
                                  "student-t(nu=4, scale=0.5)",
                                  "student-t(nu=1.5, scale=2)",
                                  "student-t(nu=0.6, scale=0.1)",
                                  "student-t(nu=500, scale=0.7)",
                                  "laplace(beta=0.6)",
                                  "laplace(beta=0.01)",
                                  "matern32(rho=0.5)",
                                  "matern32(rho=20)",
                                  "bernoulli",
                                  "bernoulli-probit",
                                  "svm"};
enum { ALL = sizeof all / sizeof all[0] };

/* --- brute force -----------------------------------------------------------------------------------------------------
 */

enum { GL = 16 };
static double gl_node[GL], gl_weight[GL];

/* Newton on the Legendre recurrence from the usual cosine. */
static void gauss_legendre(void)
{
    for (int i = 0; i < GL; i++) {
        double x = cos(M_PI * (i + 0.75) / (GL + 0.5)), slope = 1;
        for (int step = 0; step < 20; step++) {
            double before = 1, now = x;
            for (int k = 2; k <= GL; k++) {
                double next = ((2 * k - 1) * x * now - (k - 1) * before) / k;
                before = now;
                now = next;
            }
            slope = GL * (x * now - before) / (x * x - 1);
            x -= now / slope;
        }
        gl_node[i] = x;
        gl_weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ends of panels around mu in units of s, and around `at` in powers of two of `width`. */
enum { PANELS = 2400 };
static int panel_ends(double mu, double s, double at, double width, double *end)
{
    int n = 0;
    for (int k = -400; k <= 400; k++) {
        end[n++] = mu + 0.25 * k * s;
    }
    end[n++] = at;
    double low = mu - 100 * s, high = mu + 100 * s;
    for (int k = -80; k <= 400; k++) {
        double step = width * exp2(0.25 * k);
        if (at - step > low && at - step < high) {
            end[n++] = at - step;
        }
        if (at + step > low && at + step < high) {
            end[n++] = at + step;
        }
    }
    qsort(end, (size_t)n, sizeof *end, ascending);
    return n;
}

typedef struct brute {
    double E, g, h, dphi[2], log_predictive;
} brute;

/* Sums log p - log p(mu), so that the scores of a narrow Gaussian do not cancel more than they must. */
static brute brute_force(const thiele_likelihood *lik, double y, double mu, double v, double width)
{
    static double end[PANELS];
    double s = sqrt(v), centre = density(lik, y, &mu), E = 0, g = 0, h = 0, dphi[2] = {0, 0};
    double peak = -INFINITY, sum = 0;
    int ends = panel_ends(mu, s, y, width, end);
    for (int j = 0; j < (ends - 1) * GL; j++) {
        double a = end[j / GL], b = end[j / GL + 1];
        double f = 0.5 * (a + b) + 0.5 * (b - a) * gl_node[j % GL], z = (f - mu) / s;
        double logw = -0.5 * z * z - 0.5 * log(2 * M_PI) + log(0.5 * (b - a) / s * gl_weight[j % GL]);
        if (!(b > a)) {
            continue;
        }
        double w = exp(logw), l = density(lik, y, &f), slope[2] = {0, 0};
        if (lik->parameters > 0) {
            lik->ops->phi_derivatives(lik, 1, &y, &f, slope);
        }
        dphi[0] += w * slope[0];
        dphi[1] += w * slope[1];
        E += w * (l - centre);
        g += w * z / s * (l - centre);
        h += 0.5 * w * (z * z - 1) / v * (l - centre);
        double most = fmax(peak, logw + l);
        sum = sum * exp(peak - most) + exp(logw + l - most);
        peak = most;
    }
    return (brute){E + centre, g, h, {dphi[0], dphi[1]}, peak + log(sum)};
}

static double bend_width(const thiele_likelihood *lik)
{
    return lik->parameters > 0 ? lik->value[lik->parameters - 1] : 1;
}

/* --- densities -------------------------------------------------------------------------------------------------------
 */

/* The k-th moment about f of y given f, k = 0 or 2: both sides by y = f +- e^t. */
static double moment(const thiele_likelihood *lik, const double *f, double scale, int k)
{
    double sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        for (int j = 0; j < 1600 * GL; j++) {
            double t = -40 + (j / GL + 0.5 + 0.5 * gl_node[j % GL]) * 0.1, size = scale * exp(t);
            sum += 0.05 * gl_weight[j % GL] * size * pow(size, k) * exp(density(lik, f[0] + side * size, f));
        }
    }
    return sum;
}

static void densities_sum_to_one(void **state)
{
    (void)state;
    const double f[][2] = {{0, 0}, {-3.2, -4}, {7, 3}};
    for (int l = 0; l < ALL; l++) {
        thiele_likelihood *lik = make(all[l]);
        for (int i = 0; i < 3; i++) {
            if (is_binary(lik)) {
                double total = exp(density(lik, 1, f[i])) + exp(density(lik, -1, f[i]));
                assert_true(strcmp(lik->ops->name, "svm") == 0 || fabs(total - 1) < 4e-16);
                continue;
            }
            double scale = lik->latents == 2 ? exp(0.5 * f[i][1]) : bend_width(lik);
            assert_near(moment(lik, f[i], scale, 0), 1, 0, 1e-10);
            double mean, variance;
            lik->ops->conditional(lik, 1, f[i], &mean, &variance);
            if (isfinite(variance)) {
                assert_near(moment(lik, f[i], scale, 2), variance, 1e-9, 0);
                assert_near(mean, f[i][0], 0, 0);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

static void student_without_moments(void **state)
{
    (void)state;
    double f = 2, mean, variance;
    const struct {
        const char *text;
        bool mean;
    } cases[] = {{"student-t(nu=2)", true}, {"student-t(nu=1.2)", true}, {"student-t(nu=1)", false}};
    for (int i = 0; i < 3; i++) {
        thiele_likelihood *lik = make(cases[i].text);
        lik->ops->conditional(lik, 1, &f, &mean, &variance);
        assert_true(isinf(variance) && isnan(mean) != cases[i].mean);
        thiele_likelihood_destroy(lik);
    }
}

/* The density of the row with latent q at f + step. */
static double shifted(const thiele_likelihood *lik, double y, const double *f, int q, double step)
{
    double at[2] = {f[0], f[1]};
    at[q] += step;
    return density(lik, y, at);
}

static double shifted_slope(const thiele_likelihood *lik, double y, const double *f, int q, double step)
{
    double at[2] = {f[0], f[1]}, d1[2], d2[2];
    at[q] += step;
    lik->ops->derivatives(lik, 1, &y, at, d1, d2);
    return d1[q];
}

static double at_phi(thiele_likelihood *lik, int index, double factor, double y, const double *f)
{
    double value = lik->value[index];
    lik->value[index] = value * factor;
    double out = density(lik, y, f);
    lik->value[index] = value;
    return out;
}

/* Central differences of step 1e-5: 1e-10 by truncation, 1e-11 |value| by rounding, times curvature. */
static void derivatives_match_differences(void **state)
{
    (void)state;
    const double step = 1e-5, fs[][2] = {{0.3, 0.2}, {-2, -1.5}, {4, 1}}, ys[] = {-1, 1};
    for (int c = 0; c < ALL * 6; c++) {
        thiele_likelihood *lik = make(all[c / 6]);
        const double *f = fs[c % 3];
        double y = ys[c / 3 % 2], d1[2], d2[2], dphi[2];
        for (int q = 0; q < lik->latents && lik->ops->derivatives != NULL; q++) {
            lik->ops->derivatives(lik, 1, &y, f, d1, d2);
            double slope = (shifted(lik, y, f, q, step) - shifted(lik, y, f, q, -step)) / (2 * step);
            double curve = (shifted_slope(lik, y, f, q, step) - shifted_slope(lik, y, f, q, -step)) / (2 * step);
            assert_near(d1[q], slope, 1e-6, 1e-7);
            assert_near(d2[q], curve, 1e-6, 1e-7);
        }
        for (int k = 0; k < lik->parameters; k++) {
            lik->ops->phi_derivatives(lik, 1, &y, f, dphi);
            double slope = (at_phi(lik, k, exp(step), y, f) - at_phi(lik, k, exp(-step), y, f)) / (2 * step);
            assert_near(dphi[k], slope, 1e-7, 1e-7);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- under a Gaussian ------------------------------------------------------------------------------------------------
 */

static const double means[] = {-50, -3, 0, 0.7, 50}, variances[] = {1e-12, 1e-4, 0.3, 4, 1e4}, values[] = {-2, 0.7, 10};

static void check_row(const thiele_likelihood *lik, double y, double mu, double v)
{
    brute want = brute_force(lik, y, mu, v, bend_width(lik));
    double E, g, h, dphi[2] = {0, 0}, out, rounding = 1e-15 * (1 + fabs(want.E));
    if (lik->ops->expectation != NULL) {
        lik->ops->expectation(lik, 1, &y, &mu, &v, &E, &g, &h, dphi);
        assert_near(E, want.E, 1e-9, 1e-9);
        assert_near(g, want.g, 1e-9, 1e-9 + rounding / sqrt(v));
        assert_near(h, want.h, 1e-9, 1e-9 + rounding / v);
        for (int k = 0; k < lik->parameters; k++) {
            assert_near(dphi[k], want.dphi[k], 1e-9, 1e-9);
        }
    }
    if (lik->ops->log_predictive != NULL) {
        lik->ops->log_predictive(lik, 1, &y, &mu, &v, &out);
        assert_near(out, want.log_predictive, 1e-9, 1e-9);
    }
}

/* Brute force sees 100 deviations: beyond, what a steep likelihood pulls there is not in its sum. */
static bool in_sight(const thiele_likelihood *lik, double y, double mu, double v)
{
    double s = sqrt(v);
    return fabs(y - mu) < 50 * s || s < 10 * bend_width(lik);
}

static void closed_forms_match_brute_force(void **state)
{
    (void)state;
    static const char *const one[] = {
        "gaussian(noise=0.3)", "laplace(beta=0.6)", "matern32(rho=0.5)", "bernoulli-probit", "svm", "laplace(beta=3)"};
    for (size_t l = 0; l < sizeof one / sizeof one[0]; l++) {
        thiele_likelihood *lik = make(one[l]);
        for (int c = 0; c < 75; c++) {
            double mu = means[c % 5], v = variances[c / 5 % 5], y = is_binary(lik) ? c % 2 * 2 - 1 : values[c / 25];
            if (in_sight(lik, y, mu, v)) {
                check_row(lik, y, mu, v);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* E is a polynomial in f_1 and an exponential in f_2: 64 Gauss-Hermite nodes in each are exact to rounding. */
static void heteroscedastic_expectation(void **state)
{
    (void)state;
    enum { NODES = 64 };
    double node[NODES], weight[NODES];
    assert_ok(ctx, thi_gauss_hermite(ctx, NODES, node, weight));
    thiele_likelihood *lik = make("heteroscedastic");
    for (int c = 0; c < 27; c++) {
        double mu[2] = {means[c % 3], means[c / 3 % 3] / 10}, v[2] = {variances[1 + c % 3], variances[1 + c / 9]};
        double y = 0.4, E = 0, g[2] = {0, 0}, h[2] = {0, 0}, got, got_g[2], got_h[2], d1[2], d2[2];
        for (int j = 0; j < NODES * NODES; j++) {
            double f[2] = {mu[0] + sqrt(v[0]) * node[j % NODES], mu[1] + sqrt(v[1]) * node[j / NODES]};
            double w = weight[j % NODES] * weight[j / NODES];
            lik->ops->derivatives(lik, 1, &y, f, d1, d2);
            E += w * density(lik, y, f);
            for (int q = 0; q < 2; q++) {
                g[q] += w * d1[q];
                h[q] += 0.5 * w * d2[q];
            }
        }
        lik->ops->expectation(lik, 1, &y, mu, v, &got, got_g, got_h, NULL);
        assert_near(got, E, 1e-9, 1e-9);
        assert_all_near(got_g, g, 2, 1e-9, 1e-9);
        assert_all_near(got_h, h, 2, 1e-9, 1e-9);
    }
    thiele_likelihood_destroy(lik);
}

/* Over f_1 by hand, over f_2 by an even grid so fine and wide that it needs no thought. */
static double mixture_by_grid(double y, const double *mu, const double *v)
{
    double peak = -INFINITY, sum = 0, s = sqrt(v[1]);
    double low = mu[1] - v[1] - 10 * s, high = fmax(mu[1], 2 * log(fabs(y - mu[0]) + 1)) + 10 * s;
    enum { GRID = 2000000 };
    double step = (high - low) / GRID;
    for (int k = 0; k <= GRID; k++) {
        double x = low + k * step, d = (x - mu[1]) / s, r = y - mu[0], variance = v[0] + exp(x);
        double term = -0.5 * (d * d + r * r / variance + log(variance));
        if (term > peak) {
            sum *= exp(peak - term);
            peak = term;
        }
        sum += exp(term - peak);
    }
    return peak + log(sum * step / s) - log(2 * M_PI);
}

static void heteroscedastic_log_predictive(void **state)
{
    (void)state;
    const double rows[][5] = {{0.3, 0, 0.5, 0, 1},      {5, 0, 0.01, -4, 0.5},  {300, 0, 1e-6, -1, 0.05},
                              {1000, 1, 0, 0, 1e-4},    {0, 0, 1e-12, -3, 100}, {40, 0, 0.01, -6, 60},
                              {-2, 50, 1e4, -50, 1e-4}, {0.1, 0, 0, 2, 9},      {1e4, 0, 1, 0, 4},
                              {20, 0, 0.0025, -12, 9}};
    thiele_likelihood *lik = make("heteroscedastic");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double *row = rows[i], mu[2] = {row[1], row[3]}, v[2] = {row[2], row[4]};
        double out;
        lik->ops->log_predictive(lik, 1, row, mu, v, &out);
        assert_near(out, mixture_by_grid(row[0], mu, v), 1e-9, 1e-9);
    }
    thiele_likelihood_destroy(lik);
}

/* Moments of a real y are those of f plus the noise; those of a sign follow from the probability of +1. */
static void predictive_moments(void **state)
{
    (void)state;
    for (int l = 0; l < ALL; l++) {
        thiele_likelihood *lik = make(all[l]);
        for (int c = 0; c < 15 && lik->ops->predictive != NULL && lik->latents == 1; c++) {
            double mu = means[1 + c % 3], v = variances[c / 3], mean, variance, at, noise, up = 1, down = -1;
            lik->ops->predictive(lik, 1, &mu, &v, &mean, &variance);
            if (is_binary(lik)) {
                double plus, minus;
                lik->ops->log_predictive(lik, 1, &up, &mu, &v, &plus);
                lik->ops->log_predictive(lik, 1, &down, &mu, &v, &minus);
                double p = exp(plus) / (exp(plus) + exp(minus));
                assert_near(mean, 2 * p - 1, 0, 1e-13);
                assert_near(variance, 4 * p * (1 - p), 0, 1e-13);
            } else {
                lik->ops->conditional(lik, 1, &mu, &at, &noise);
                assert_true(isnan(mean) ? isnan(at) : mean == mu);
                assert_true(variance == noise + v);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* Nothing is NaN, and E, g, h are finite, wherever a fit may come. */
static void extremes_stay_finite(void **state)
{
    (void)state;
    const double fs[] = {-1e4, -700, -50, 0, 50, 700, 1e4}, vs[] = {0, 1e-300, 1e-12, 1, 1e4};
    for (int l = 0; l < ALL; l++) {
        thiele_likelihood *lik = make(all[l]);
        for (int c = 0; c < 7 * 7 * 5; c++) {
            double f[2] = {fs[c % 7], fs[c / 7 % 7]}, v[2] = {vs[c / 49], vs[c / 49]}, y = fs[c / 7 % 7];
            y = is_binary(lik) ? (y < 0 ? -1 : 1) : y;
            double out, E, g[2], h[2], dphi[2], d[4] = {0}, mean, variance;
            assert_true(density(lik, y, f) < 1e6);
            if (lik->ops->derivatives != NULL) {
                lik->ops->derivatives(lik, 1, &y, f, d, d + 2);
                assert_true(isfinite(d[0]) && isfinite(d[2]) && isfinite(d[1]) && isfinite(d[3]));
            }
            if (lik->ops->expectation != NULL) {
                lik->ops->expectation(lik, 1, &y, f, v, &E, g, h, dphi);
                assert_true(isfinite(E) && isfinite(g[0]) && isfinite(h[0]) && isfinite(g[lik->latents - 1]));
            }
            if (lik->ops->log_predictive != NULL) {
                lik->ops->log_predictive(lik, 1, &y, f, v, &out);
                assert_false(isnan(out));
            }
            if (lik->ops->predictive != NULL) {
                lik->ops->predictive(lik, 1, f, v, &mean, &variance);
                assert_true(variance >= 0);
            }
            double below = lik->ops->cdf(lik, y, f);
            assert_true(below >= 0 && below <= 1);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- distribution functions and draws --------------------------------------------------------------------------------
 */

static void distribution_functions(void **state)
{
    (void)state;
    const double f[2] = {0.4, -0.5}, step = 1e-5;
    for (int l = 0; l < ALL; l++) {
        thiele_likelihood *lik = make(all[l]);
        double before = 0, scale = lik->latents == 2 || is_binary(lik) ? 1 : bend_width(lik);
        assert_near(lik->ops->cdf(lik, -INFINITY, f), 0, 0, 0);
        assert_near(lik->ops->cdf(lik, INFINITY, f), 1, 0, 0);
        for (int k = -200; k <= 200; k++) {
            double y = f[0] + 0.05 * (k + 0.5) * scale, here = lik->ops->cdf(lik, y, f);
            assert_true(here >= before && here <= 1);
            before = here;
            if (!is_binary(lik)) {
                double h = step * scale;
                double slope = (lik->ops->cdf(lik, y + h, f) - lik->ops->cdf(lik, y - h, f)) / (2 * h);
                assert_near(slope * scale, scale * exp(density(lik, y, f)), 1e-7, 1e-9);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* The share of draws below three points, and the mean, within five standard errors. */
static void draws_follow_the_law(void **state)
{
    (void)state;
    enum { N = 40000 };
    const double f[2] = {0.4, -0.5};
    for (int l = 0; l < ALL; l++) {
        thiele_likelihood *lik = make(all[l]);
        double spread = lik->latents == 2 || is_binary(lik) ? 1 : bend_width(lik), sum = 0, mean, variance, y;
        double below[3] = {0, 0, 0}, edge[3] = {f[0] - spread, f[0] + 0.2 * spread, f[0] + 2 * spread};
        thi_stream stream = {11, THI_RANDOM_SAMPLE, (uint64_t)l};
        for (uint64_t i = 0; i < N; i++) {
            lik->ops->sample(lik, stream, i, f, &y);
            sum += y;
            for (int k = 0; k < 3; k++) {
                below[k] += y <= edge[k];
            }
        }
        for (int k = 0; k < 3; k++) {
            double p = lik->ops->cdf(lik, edge[k], f);
            assert_near(below[k] / N, p, 0, 5 * sqrt(p * (1 - p) / N));
        }
        lik->ops->conditional(lik, 1, f, &mean, &variance);
        if (isfinite(variance)) {
            assert_near(sum / N, mean, 0, 5 * sqrt(variance / N));
        }
        thiele_likelihood_destroy(lik);
    }
}

static void binary_probabilities(void **state)
{
    (void)state;
    for (int l = 0; l < ALL; l++) {
        thiele_likelihood *lik = make(all[l]);
        for (int k = -35; k <= 35 && is_binary(lik); k += 5) {
            double f = k, prob[2], mean, variance;
            lik->ops->probabilities(lik, 1, &f, prob);
            lik->ops->conditional(lik, 1, &f, &mean, &variance);
            double odds = density(lik, 1, &f) - density(lik, -1, &f);
            assert_near(log(prob[1] / prob[0]), odds, 1e-12, 1e-12);
            assert_near(prob[0] + prob[1], 1, 0, 4e-16);
            assert_near(mean, prob[1] - prob[0], 0, 4e-16);
            assert_near(variance, 4 * prob[0] * prob[1], 1e-14, 0);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* With many degrees of freedom a Student-t is a Gaussian, to 1/nu. */
static void student_becomes_gaussian(void **state)
{
    (void)state;
    for (double nu = 1e6; nu <= 1e18; nu *= 1e4) {
        char text[64];
        thiele_likelihood *lik = NULL;
        double y = 2.0, f = 0.0, out;
        snprintf(text, sizeof text, "student-t(nu=%.17g, scale=1)", nu);
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, 1, 0));
        thiele_likelihood_log_density(lik, 1, &y, &f, &out);
        assert_near(out, -2.0 - 0.5 * log(2.0 * M_PI), 0.0, 4.0 / nu + 1e-14);
        thiele_likelihood_destroy(lik);
    }
}

int main(void)
{
    gauss_legendre();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(student_becomes_gaussian),       cmocka_unit_test(densities_sum_to_one),
        cmocka_unit_test(student_without_moments),        cmocka_unit_test(derivatives_match_differences),
        cmocka_unit_test(closed_forms_match_brute_force), cmocka_unit_test(heteroscedastic_expectation),
        cmocka_unit_test(heteroscedastic_log_predictive), cmocka_unit_test(predictive_moments),
        cmocka_unit_test(extremes_stay_finite),           cmocka_unit_test(distribution_functions),
        cmocka_unit_test(draws_follow_the_law),           cmocka_unit_test(binary_probabilities),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

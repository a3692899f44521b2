/*
 * Likelihoods of counts, positive and bounded values, classes and warped values: they add up to one, their derivatives
 * are those of the log density, closed expectations and predictions are the integrals they stand for, and nothing
 * breaks at the edges. Brute force is the trapezium rule, which for a Gaussian times an analytic function converges
 * faster than any power of its step; steps are chosen so that halving them changes nothing. Parameters are at their
 * edges here; what every likelihood must do is in test_likelihoods.c.
 */
#include "testing_context.h"

#include <thiele/likelihood.h>

#include "likelihood/likelihood.h"

static thiele_likelihood *make(const char *text, int outputs, int classes)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, outputs, classes));
    return lik;
}

/* One output, one latent: settings, and values of y that include the edges. */
typedef struct scalar_case {
    const char *text;
    int classes, count;
    double y[4];
} scalar_case;
static const scalar_case scalars[] = {
    {"poisson", 0, 3, {0, 1, 7}},
    {"poisson(offset=-1.3)", 0, 4, {0, 2, 40, 1e6}},
    {"negative-binomial(r=0.7)", 0, 4, {0, 1, 60, 3000}},
    {"negative-binomial(r=50)", 0, 3, {0, 5, 80}},
    {"negative-binomial(r=1e8)", 0, 3, {0, 5, 80}},
    {"binomial(trials=1)", 0, 2, {0, 1}},
    {"binomial(trials=12)", 0, 3, {0, 5, 12}},
    {"gamma(shape=0.4)", 0, 3, {1e-300, 0.7, 50}},
    {"gamma(shape=2.9442)", 0, 3, {1e-5, 1, 30}},
    {"gamma(shape=1e4)", 0, 2, {0.999, 1.001}},
    {"exponential", 0, 3, {1e-300, 0.5, 20}},
    {"beta(precision=2)", 0, 3, {1e-300, 0.5, 1 - 1e-16}},
    {"beta(precision=30)", 0, 3, {1e-12, 0.3, 0.999}},
    {"ordinal", 2, 2, {0, 1}},
    {"ordinal(sigma=0.513, cut1~-0.8871, gap2~0.8114, gap3~1.3206)", 4, 4, {0, 1, 2, 3}},
    {"ordinal(sigma=1, cut1~3, gap2~0.001)", 3, 3, {0, 1, 2}},
    {"warped", 0, 2, {-1, 2.5}},
    {"warped(terms=1, noise=0.03, a1=4, b1=6, c1=0.3)", 0, 4, {-3, -0.3, 0.2, 40}},
    {"warped(noise=0.4985, a=[0.6089,0.85], b=[0.5452,0.4914], c=[-0.5158,0.0141])", 0, 3, {-1, 0.2, 3}},
};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };
static const double some_f[] = {-2.1, -0.4, 0, 0.9, 3.2};
enum { SOME_F = 5 };

static double log_p(const thiele_likelihood *lik, double y, double f)
{
    double out;
    lik->ops->log_density(lik, 1, &y, &f, &out);
    return out;
}

/* --- they add up to one, and the distribution function is their sum --- */

static void check_discrete(const thiele_likelihood *lik, double f)
{
    double sum = 0;
    for (int k = 0; k < 100000 && !(sum > 0.5 && exp(log_p(lik, k, f)) < 1e-17); k++) {
        double p = exp(log_p(lik, k, f));
        sum += p;
        if (k < 200) {
            assert_near(lik->ops->cdf(lik, k, &f), sum, 1e-11, 1e-12);
            assert_near(lik->ops->cdf(lik, k + 0.5, &f), sum, 1e-11, 1e-12);
        }
    }
    assert_near(sum, 1, 0, 1e-11);
    assert_true(lik->ops->cdf(lik, -1, &f) == 0);
}

/*
 * A variable s on the whole line with y = e^s, the logistic of s, or s itself: the range and step that hold all of p dy
 * for the settings above.
 */
static const struct range {
    double low, high, step;
} ranges[THI_SUPPORTS] = {
    [THI_SUPPORT_REAL] = {-45, 45, 1.0 / 512},
    [THI_SUPPORT_POSITIVE] = {-100, 30, 1.0 / 512},
    [THI_SUPPORT_UNIT] = {-300, 300, 1.0 / 64},
};

/* p(y | f) dy/ds. Beta: p(y | f) = p(1 - y | -f), so that y never comes near 1. */
static double density_along(const thiele_likelihood *lik, double s, double f, double *y)
{
    if (lik->ops->support == THI_SUPPORT_REAL) {
        *y = s;
        return exp(log_p(lik, s, f));
    }
    if (lik->ops->support == THI_SUPPORT_POSITIVE) {
        *y = exp(s);
        return exp(log_p(lik, *y, f) + s);
    }
    double small = exp(-fabs(s)) / (1 + exp(-fabs(s)));
    *y = s < 0 ? small : 1 - small;
    return exp(log_p(lik, small, s < 0 ? f : -f)) * small * (1 - small);
}

static void check_continuous(const thiele_likelihood *lik, double f)
{
    struct range r = ranges[lik->ops->support];
    double sum = 0, first = 0, second = 0, mean, variance, y;
    for (double s = r.low; s <= r.high; s += r.step) {
        double mass = r.step * density_along(lik, s, f, &y);
        if (fabs(s) <= 2 && fmod(s, 0.25) == 0) { /* half a step belongs to either side; Euler-Maclaurin for the rest */
            double before = density_along(lik, s - r.step, f, &y), after = density_along(lik, s + r.step, f, &y);
            double want = sum + 0.5 * mass + r.step * (before - after) / 24;
            density_along(lik, s, f, &y);
            assert_near(lik->ops->cdf(lik, y, &f), want, 1e-5, 1e-5);
        }
        density_along(lik, s, f, &y);
        sum += mass;
        first += mass * y;
        second += mass * y * y;
    }
    lik->ops->conditional(lik, 1, &f, &mean, &variance);
    assert_near(sum, 1, 0, 1e-9);
    assert_near(mean, first, 1e-9, 1e-9);
    assert_near(variance, second - first * first, 1e-7, 1e-9);
}

static void test_normalised(void **state)
{
    (void)state;
    for (int i = 0; i < SCALARS; i++) {
        thiele_likelihood *lik = make(scalars[i].text, 1, scalars[i].classes);
        bool discrete = lik->ops->support == THI_SUPPORT_COUNT || lik->ops->support == THI_SUPPORT_CLASS;
        for (int k = 0; k < SOME_F; k++) {
            (discrete ? check_discrete : check_continuous)(lik, some_f[k]);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- derivatives --- */

/* Five points: error of order step^4. */
static double slope_of(const double at[5], double step)
{
    return (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * step);
}

static void check_derivatives(const thiele_likelihood *lik, double y, double f)
{
    double at[5], slopes[5], d2[5], step = 2e-3;
    for (int k = 0; k < 5; k++) {
        double x = f + (k - 2) * step;
        at[k] = log_p(lik, y, x);
        lik->ops->derivatives(lik, 1, &y, &x, &slopes[k], &d2[k]);
    }
    double size = fabs(at[2]) + fabs(slopes[2]) + fabs(d2[2]) + 1;
    assert_near(slopes[2], slope_of(at, step), 1e-8, 1e-10 * size);
    assert_near(d2[2], slope_of(slopes, step), 1e-8, 1e-10 * size);
}

static void check_phi(thiele_likelihood *lik, double y, double f)
{
    double dphi[32];
    lik->ops->phi_derivatives(lik, 1, &y, &f, dphi);
    for (int j = 0; j < lik->parameters; j++) {
        double before = lik->value[j], at[5], step = 1e-3;
        for (int k = 0; k < 5; k++) {
            double move = (k - 2) * step;
            lik->value[j] = lik->phi[j].positive ? before * exp(move) : before + move;
            at[k] = log_p(lik, y, f);
        }
        lik->value[j] = before;
        bool whole = strcmp(lik->ops->name, "binomial") == 0 && y == before; /* fewer trials than successes */
        if (!whole) {
            assert_near(dphi[j], slope_of(at, step), 1e-7, 1e-9 * (fabs(at[2]) + 1 + before * 1e-6));
        }
    }
}

static void test_derivatives(void **state)
{
    (void)state;
    for (int i = 0; i < SCALARS; i++) {
        thiele_likelihood *lik = make(scalars[i].text, 1, scalars[i].classes);
        for (int k = 0; k < scalars[i].count * SOME_F; k++) {
            double y = scalars[i].y[k / SOME_F], f = some_f[k % SOME_F];
            check_derivatives(lik, y, f);
            if (lik->parameters > 0) {
                check_phi(lik, y, f);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

static void test_softmax_derivatives(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("softmax", 1, 3);
    double f[] = {0.4, -1.2, 2, 700, -700, 699, 0, 0, 1e4}, y[] = {1, 2, 0}, d1[9], d2[9];
    lik->ops->derivatives(lik, 3, y, f, d1, d2);
    for (int c = 0; c < 3; c++) {
        double at[5], slopes[5], step = 2e-3;
        for (int k = 0; k < 5; k++) {
            double x[3] = {f[0], f[1], f[2]}, g[3], h[3];
            x[c] += (k - 2) * step;
            lik->ops->log_density(lik, 1, y, x, &at[k]);
            lik->ops->derivatives(lik, 1, y, x, g, h);
            slopes[k] = g[c];
        }
        assert_near(d1[c], slope_of(at, step), 1e-9, 1e-10);
        assert_near(d2[c], slope_of(slopes, step), 1e-9, 1e-10);
    }
    for (int k = 3; k < 9; k++) {
        assert_true(isfinite(d1[k]) && isfinite(d2[k]));
    }
    double prob[9], log_density[3];
    lik->ops->probabilities(lik, 3, f, prob);
    lik->ops->log_density(lik, 3, y, f, log_density);
    for (int i = 0; i < 3; i++) {
        assert_near(prob[3 * i] + prob[3 * i + 1] + prob[3 * i + 2], 1, 0, 1e-15);
        assert_near(prob[3 * i + (int)y[i]], exp(log_density[i]), 1e-13, 0);
    }
    assert_near(log_density[2], -1e4, 1e-15, 0);
    thiele_likelihood_destroy(lik);
}

/* --- expectations --- */

/* E[q(f)] for the four quantities log p, d1, d2/2 and the first dphi, f ~ N(mu, v). */
static void brute_force(const thiele_likelihood *lik, double y, double mu, double v, double *out)
{
    double sd = sqrt(v), step = 1.0 / 32, reach = 12 + 2 * sd;
    memset(out, 0, 4 * sizeof *out);
    for (double z = -reach; z <= reach; z += step) {
        double f = mu + sd * z, weight = step * exp(-0.5 * z * z) / sqrt(2 * M_PI), d1, d2, dphi[16] = {0};
        if (weight == 0) {
            continue;
        }
        lik->ops->derivatives(lik, 1, &y, &f, &d1, &d2);
        if (lik->ops->phi_derivatives) {
            lik->ops->phi_derivatives(lik, 1, &y, &f, dphi);
        }
        out[0] += weight * log_p(lik, y, f);
        out[1] += weight * d1;
        out[2] += 0.5 * weight * d2;
        out[3] += weight * dphi[0];
    }
}

static void test_expectations(void **state)
{
    (void)state;
    static const double mus[] = {-50, -3, 0, 2, 50}, vs[] = {1e-12, 0.05, 2, 30};
    for (int i = 0; i < SCALARS; i++) {
        thiele_likelihood *lik = make(scalars[i].text, 1, scalars[i].classes);
        for (int k = 0; lik->ops->expectation && k < scalars[i].count * 20; k++) {
            double y = scalars[i].y[k / 20], mu = mus[k / 4 % 5], v = vs[k % 4], want[4], got[3], dphi[16] = {0};
            brute_force(lik, y, mu, v, want);
            lik->ops->expectation(lik, 1, &y, &mu, &v, &got[0], &got[1], &got[2], dphi);
            /* Sums of large terms that cancel: the size of what was summed is what rounding is relative to. */
            double size = 1 + fabs(log_p(lik, y, mu)) + fabs(got[2]) * (1 + v);
            for (int j = 0; j < 3; j++) {
                assert_near(got[j], want[j], 1e-9, 1e-12 * size);
            }
            assert_near(dphi[0], want[3], 1e-9, 1e-12 * size);
            double E, g, h;
            lik->ops->expectation(lik, 1, &y, &mu, &v, &E, &g, &h, NULL);
            assert_true(E == got[0] && g == got[1] && h == got[2]);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- predictions --- */

/* E[y], Var[y] from the conditional moments, and the integral of p(y | f). */
static void brute_force_predictions(const thiele_likelihood *lik, double y, double mu, double v, double *out)
{
    double sd = sqrt(v), step = 1.0 / 64, sum = 0, first = 0, second = 0, within = 0;
    for (double z = -35; z <= 35; z += step) {
        double f = mu + sd * z, weight = step * exp(-0.5 * z * z) / sqrt(2 * M_PI), mean, variance;
        lik->ops->conditional(lik, 1, &f, &mean, &variance);
        sum += weight * exp(log_p(lik, y, f));
        first += weight * mean;
        second += weight * mean * mean;
        within += weight * variance;
    }
    out[0] = first;
    out[1] = within + second - first * first;
    out[2] = log(sum);
}

static void test_predictions(void **state)
{
    (void)state;
    static const double mus[] = {-2, 0.3, 1.5}, vs[] = {1e-12, 0.4, 2.5};
    for (int i = 0; i < SCALARS; i++) {
        thiele_likelihood *lik = make(scalars[i].text, 1, scalars[i].classes);
        bool offered = lik->ops->predictive != NULL;
        assert_true(offered || lik->ops->log_predictive == NULL);
        for (int k = 0; offered && k < 9; k++) {
            double mu = mus[k / 3], v = vs[k % 3], y = scalars[i].y[k % scalars[i].count], want[3], mean, variance,
                   log_density;
            brute_force_predictions(lik, y, mu, v, want);
            lik->ops->predictive(lik, 1, &mu, &v, &mean, &variance);
            assert_near(mean, want[0], 1e-9, 1e-12);
            assert_near(variance, want[1], 1e-8, 1e-11 * want[0] * want[0]);
            if (lik->ops->log_predictive) {
                lik->ops->log_predictive(lik, 1, &y, &mu, &v, &log_density);
                assert_near(log_density, want[2], 1e-9, 1e-9);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- edges --- */

static void test_extremes(void **state)
{
    (void)state;
    static const double far[] = {-1e4, -50, 50, 1e4}, vs[] = {1e-12, 1e4};
    for (int i = 0; i < SCALARS; i++) {
        thiele_likelihood *lik = make(scalars[i].text, 1, scalars[i].classes);
        for (int k = 0; k < 8 * scalars[i].count; k++) {
            double y = scalars[i].y[k / 8], f = far[k / 2 % 4], v = vs[k % 2], d1, d2, E, mean, variance, F;
            double dphi[16] = {0};
            assert_true(log_p(lik, y, f) < INFINITY);
            lik->ops->derivatives(lik, 1, &y, &f, &d1, &d2);
            assert_true(!isnan(d1) && d2 <= 1e-9 * fabs(d1));
            if (lik->ops->phi_derivatives) {
                lik->ops->phi_derivatives(lik, 1, &y, &f, dphi);
                assert_true(!isnan(dphi[0]));
            }
            if (lik->ops->expectation) {
                lik->ops->expectation(lik, 1, &y, &f, &v, &E, &d1, &d2, dphi);
                assert_true(E < INFINITY && !isnan(d1) && d2 <= 0 && !isnan(dphi[0]));
            }
            lik->ops->conditional(lik, 1, &f, &mean, &variance);
            assert_true(!isnan(mean) && variance >= 0);
            if (lik->ops->predictive) {
                lik->ops->predictive(lik, 1, &f, &v, &mean, &variance);
                assert_true(!isnan(mean) && variance >= 0);
            }
            if (lik->ops->log_predictive) {
                lik->ops->log_predictive(lik, 1, &y, &f, &v, &E);
                assert_true(E < INFINITY);
            }
            F = lik->ops->cdf(lik, y, &f);
            assert_true(F >= 0 && F <= 1);
        }
        thiele_likelihood_destroy(lik);
    }
    thiele_likelihood *beta = make("beta(precision=0.6)", 1, 0);
    assert_near(log_p(beta, 0.5, -1e4), -1e4, 1e-3, 0);
    thiele_likelihood_destroy(beta);
}

/*
 * A beta density at large precisions, where log Gamma of it has lost its digits: values of the density and of its
 * derivative in log precision to 60 digits. A relative error of eps in y is one of sqrt(precision) eps in either.
 */
static void test_precise_beta(void **state)
{
    (void)state;
    static const struct {
        double precision, f, y, log_p, slope;
    } table[] = {{1e8, 0.2, 0.54987, 8.7277129352813048621, 0.2381577295787620943},
                 {1e8, -3, 0.04744, 9.6188737099033710418, 0.27916755179925868838},
                 {1e12, 0.2, 0.549834, 13.594696304735016683, 0.4999854095121402129},
                 {1e10, -22, 3e-10, 21.483908546902469682, 0.52194480732309810168},
                 {1e10, 20, 0.9999999981373549, 20.589003258086863264, 0.40183290926817946772}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        thiele_likelihood *lik = make("beta", 1, 0);
        double slope;
        assert_ok(ctx, thiele_likelihood_set_parameter(lik, ctx, 0, table[i].precision));
        assert_near(log_p(lik, table[i].y, table[i].f), table[i].log_p, 0, 1e-15 * sqrt(table[i].precision) + 1e-10);
        lik->ops->phi_derivatives(lik, 1, &table[i].y, &table[i].f, &slope);
        assert_near(slope, table[i].slope, 0, 1e-15 * sqrt(table[i].precision) + 1e-10);
        thiele_likelihood_destroy(lik);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "ordinal", 1, 1), THIELE_ERROR_ARGUMENT, "two classes");
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "softmax", 1, 0), THIELE_ERROR_ARGUMENT, "classes");
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "logistic-softmax", 1, 0), THIELE_ERROR_ARGUMENT, "classes");
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "binomial(trials=2.5)", 1, 0), THIELE_ERROR_ARGUMENT, "whole");
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "binomial(trials~2)", 1, 0), THIELE_ERROR_ARGUMENT, "known");
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "warped(terms=17)", 1, 0), THIELE_ERROR_ARGUMENT, "terms");
    assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, "mixing(latents=65)", 2, 0), THIELE_ERROR_ARGUMENT, "latents");
    lik = make("binomial(trials=3)", 1, 0);
    assert_non_null(thi_likelihood_refuses(lik, 4));
    assert_null(thi_likelihood_refuses(lik, 3));
    assert_true(log_p(lik, 4, 0) == -INFINITY);
    thiele_likelihood_destroy(lik);
    lik = make("poisson", 1, 0);
    assert_true(lik->phi[0].fixed);
    thiele_likelihood_destroy(lik);
}

/* Whichever allocation fails, nothing leaks and nothing is left behind. */
static void test_allocation_failures(void **state)
{
    (void)state;
    static const char *const texts[] = {"ordinal", "warped(terms=3)", "mixing(latents=2)", "gprn", "poisson"};
    for (int i = 0; i < 5; i++) {
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status != THIELE_OK; nth++) {
            thiele_likelihood *lik = NULL;
            size_t held = thi_memory_held(ctx);
            thi_fail_allocation(ctx, nth, false);
            status = thiele_likelihood_parse(&lik, ctx, texts[i], i == 2 || i == 3 ? 3 : 1, i == 0 ? 5 : 0);
            thi_fail_allocation(ctx, 0, false);
            assert_true(status == THIELE_OK ? lik != NULL : status == THIELE_ERROR_MEMORY && lik == NULL);
            thiele_likelihood_destroy(lik);
            assert_int_equal(thi_memory_held(ctx), held);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalised),          cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_softmax_derivatives), cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_predictions),         cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_precise_beta),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/*
 * CRPS of every likelihood: against closed forms where the latents are known (Jordan, Krueger and Lerch 2019,
 * "Evaluating probabilistic forecasts with scoringRules", appendix A) and for mixtures of normals, against the mean
 * pinball loss of the quantiles, and by the identity dCRPS/dy = 2 F(y) - 1; far from the law and where the law is a
 * point; from a density alone; with outputs that are missing.
 */
#include "likelihood_testing.h"

#include "expect/crps.h"
#include "expect/predictive_cdf.h"
#include "likelihood/special.h"

static const double weight[] = {0.3, 0.7};

static double crps_of(thiele_likelihood *lik, const thi_marginals *m, double y)
{
    thi_expect expect;
    double out = NAN;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    assert_ok(ctx, thi_mixture_crps(&expect, ctx, m, &y, &out));
    thi_expect_close(&expect);
    return out;
}

static thiele_likelihood *make(const char *text, int outputs)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, outputs, 0));
    return lik;
}

/* --- closed forms ------------------------------------------------------------------------------------------------- */

static double log_beta(double a, double b)
{
    return lgamma(a) + lgamma(b) - lgamma(a + b);
}

/* nu = 4: F(z) and f(z) are elementary. */
static double student_form(double y, double f)
{
    double z = y - f, s = z / sqrt(4 + z * z), F = 0.5 + 0.75 * (s - s * s * s / 3);
    double density = 12 / pow(4 + z * z, 2.5);
    double spread = 2 * 2.0 / 3 * exp(log_beta(0.5, 3.5) - 2 * log_beta(0.5, 2));
    return z * (2 * F - 1) + 2 * density * (4 + z * z) / 3 - spread;
}

static double laplace_form(double y, double f)
{
    double z = fabs(y - f) / 0.5;
    return 0.5 * (z + exp(-z) - 0.75);
}

static double exponential_form(double y, double f)
{
    double mean = exp(f);
    return y - 2 * mean * -expm1(-y / mean) + 0.5 * mean;
}

/* Shape 2 and mean exp(f): F of shape 2 and of shape 3. */
static double gamma_form(double y, double f)
{
    double rate = 2 * exp(-f), x = rate * y, two = 1 - exp(-x) * (1 + x), three = two - 0.5 * x * x * exp(-x);
    return y * (2 * two - 1) - 2 / rate * (2 * three - 1) - exp(-log_beta(0.5, 2)) / rate;
}

/* Sums of the mass; means of at most 1000. */
static double poisson_form(double y, double f)
{
    double F = 0, sum = 0, mean = exp(f);
    for (int k = 0; k < 4000; k++) {
        F += exp(k * f - mean - lgamma(k + 1.0));
        sum += (F - (k >= y)) * (F - (k >= y));
    }
    return sum;
}

static double binomial_form(double y, double f)
{
    double F = 0, sum = 0, p = thi_sigmoid(f);
    for (int k = 0; k <= 9; k++) {
        F += exp(-log_beta(k + 1, 10 - k) - log(10) + k * log(p) + (9 - k) * log1p(-p));
        sum += (F - (k >= y)) * (F - (k >= y));
    }
    return sum;
}

static void known_latents(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double (*form)(double y, double f);
        double y[4];
    } cases[] = {{"student-t(nu=4, scale=1)", student_form, {-30, 0.1, 2, 1e5}},
                 {"laplace(beta=0.5)", laplace_form, {-30, 0.1, 2, 1e5}},
                 {"exponential", exponential_form, {1e-9, 0.3, 5, 1e4}},
                 {"gamma(shape=2)", gamma_form, {1e-9, 0.3, 5, 1e4}},
                 {"poisson(offset=0)", poisson_form, {0, 1, 30, 900}},
                 {"binomial(trials=9)", binomial_form, {0, 3, 5, 9}}};
    static const double latents[] = {-1, 0.4, 3, 6};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        thiele_likelihood *lik = make(cases[c].text, 1);
        for (int i = 0; i < 16; i++) {
            double y = cases[c].y[i % 4], f = latents[i / 4], v = 0;
            thi_marginals m = {1, 1, NULL, &f, &v};
            assert_near(crps_of(lik, &m, y), cases[c].form(y, f), 2e-7, 0);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* A(mu, s^2) = E|X| of a normal; CRPS = sum w A(y - mu, s^2) - 1/2 sum sum w w A(mu - mu', s^2 + s'^2) (Grimit 2006).
 */
static double distance(double mu, double variance)
{
    return thi_normal_crps(mu, variance) + sqrt(variance) * THI_ONE_OVER_SQRT_PI;
}

static double mixture_form(const double *mu, const double *v, double y)
{
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        sum += weight[k] * distance(y - mu[k], v[k]);
        for (int l = 0; l < 2; l++) {
            sum -= 0.5 * weight[k] * weight[l] * distance(mu[k] - mu[l], v[k] + v[l]);
        }
    }
    return sum;
}

static void mixtures_of_normals(void **state)
{
    (void)state;
    static const double noise = 0.01, mus[][2] = {{0.4, 0.4}, {-1, 3}, {0, 1e4}}, vs[][2] = {{1, 1}, {1e-4, 2}, {0, 0}};
    static const double ys[] = {0.4, -1.02, 2, -1e6};
    thiele_likelihood *lik = make("gaussian(noise=0.01)", 1);
    for (int i = 0; i < 36; i++) {
        const double *mu = mus[i % 3], *v = vs[i / 3 % 3], all[] = {v[0] + noise, v[1] + noise};
        double y = ys[i / 9], want = mixture_form(mu, all, y);
        thi_marginals m = {1, 2, weight, mu, v}, one = {1, 1, NULL, mu, v};
        assert_near(crps_of(lik, &m, y), want, 3e-7, 0);
        assert_near(crps_of(lik, &one, y), thi_normal_crps(y - mu[0], all[0]), 1e-15, 0);
    }
    thiele_likelihood_destroy(lik);
}

/* A law that is nearly a point has the distance from it. */
static void points(void **state)
{
    (void)state;
    static const double mu[] = {2, 2}, v[] = {0, 0}, ys[] = {2.5, -300, 2 + 1e-9};
    thiele_likelihood *lik = make("gaussian(noise=1e-24)", 1);
    for (int i = 0; i < 3; i++) {
        thi_marginals m = {1, 2, weight, mu, v};
        assert_near(crps_of(lik, &m, ys[i]), fabs(ys[i] - 2), 1e-6, 2e-12);
    }
    thiele_likelihood_destroy(lik);
}

/* --- every likelihood --------------------------------------------------------------------------------------------- */

enum { LATENTS = 8, STEPS = 200 };
static const double mus[2 * LATENTS] = {0.3, -0.4, 0.2, 0.1, -0.2, 0.5, 0.1, -0.3,
                                        0.8, 0.1,  0.3, 0.4, 0.2,  0.1, 0.3, 0.2};
static const double vs[2 * LATENTS] = {0.3, 0.2, 0.1, 0.2, 0.15, 0.1, 0.3, 0.2, 0.5, 0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.1};

/* Twice the pinball loss over p = Phi(z), by trapezoids in z from -5 to 5: 1e-3 for the kink at y and the tails, 2% for
 * the jumps of counts. */
static double by_quantiles(const double *quantile, double y)
{
    double sum = 0;
    for (int k = 0; k <= STEPS; k++) {
        double z = 10.0 * k / STEPS - 5, off = y - quantile[k];
        double pinball = off > 0 ? thi_normal_cdf(z) * off : -thi_normal_cdf(-z) * off;
        sum += 2 * pinball * thi_normal_density(z) * 10 / STEPS;
    }
    return sum;
}

static double cdf_of(thi_expect *expect, const thi_marginals *m, int output, double y)
{
    thi_row_cdf cdf = {.expect = expect, .output = output};
    double p = NAN;
    assert_ok(ctx, thi_gather(expect->space, ctx, m, 0, &cdf.row));
    assert_ok(ctx, thi_row_cdf_prepare(&cdf, ctx));
    assert_ok(ctx, thi_row_cdf_at(&cdf, ctx, y, &p));
    return p;
}

/* CRPS(y + h) - CRPS(y - h) = 2 h (2 F(y) - 1) up to h^3; of counts CRPS(y + 1) - CRPS(y) = 2 F(y) - 1. */
static void check_slope(thi_expect *expect, const thi_marginals *m, const double *y, double width)
{
    bool counts = expect->lik->ops->support == THI_SUPPORT_COUNT;
    double h = 1e-3 * width, out[2][2];
    for (int p = 0; p < expect->lik->outputs; p++) {
        double at[2][2] = {{y[0], y[1]}, {y[0], y[1]}};
        at[0][p] -= counts ? 0 : h;
        at[1][p] += counts ? 1 : h;
        assert_ok(ctx, thi_mixture_crps(expect, ctx, m, at[0], out[0]));
        assert_ok(ctx, thi_mixture_crps(expect, ctx, m, at[1], out[1]));
        double slope = (out[1][p] - out[0][p]) / (counts ? 1 : 2 * h);
        assert_near(slope, 2 * cdf_of(expect, m, p, y[p]) - 1, 0, counts ? 2e-6 : 2e-4);
    }
}

static void check_all(thiele_likelihood *lik, const thi_marginals *m)
{
    double rough = lik->ops->support == THI_SUPPORT_COUNT ? 2e-2 : 1e-3;
    double level[STEPS + 1], quantile[2 * (STEPS + 1)], y[2], out[2];
    thi_expect expect;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    for (int k = 0; k <= STEPS; k++) {
        level[k] = thi_normal_cdf(10.0 * k / STEPS - 5);
    }
    assert_ok(ctx, thi_mixture_quantiles(&expect, ctx, m, STEPS + 1, level, quantile));
    for (int row = 0; row < TEST_ORDINARY; row++) {
        test_ordinary(lik, row, y);
        assert_ok(ctx, thi_mixture_crps(&expect, ctx, m, y, out));
        double width = INFINITY;
        for (int p = 0; p < lik->outputs; p++) {
            const double *own = quantile + p * (STEPS + 1);
            double spread = own[STEPS * 6 / 10] - own[STEPS * 4 / 10];
            width = fmin(width, spread);
            assert_true(isnan(y[p]) ? isnan(out[p]) : out[p] > 0);
            if (!isnan(y[p])) {
                assert_near(out[p], by_quantiles(own, y[p]), rough, rough * spread);
            }
        }
        if (!isnan(y[lik->outputs - 1]) && !isnan(y[0])) {
            check_slope(&expect, m, y, fmin(width, 1));
        }
    }
    thi_expect_close(&expect);
}

static void one_likelihood(thiele_likelihood *lik)
{
    if (lik->ops->support >= THI_SUPPORT_BINARY) {
        double y = 1, out;
        thi_expect expect;
        thi_marginals m = {1, 1, NULL, mus, vs};
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
        assert_fails(ctx, thi_mixture_crps(&expect, ctx, &m, &y, &out), THIELE_ERROR_UNSUPPORTED, "CRPS");
        thi_expect_close(&expect);
        return;
    }
    thi_marginals one = {1, 1, NULL, mus, vs}, two = {1, 2, weight, mus, vs};
    assert_true(lik->latents <= LATENTS);
    check_all(lik, &one);
    check_all(lik, &two);
}

static void every_likelihood(void **state)
{
    (void)state;
    test_all_likelihoods(one_likelihood);
}

/* --- a density alone ---------------------------------------------------------------------------------------------- */

static double borrowed(const double *y, const double *f, const double *phi, void *user)
{
    const thiele_likelihood *lik = user;
    double out;
    (void)phi;
    lik->ops->log_density(lik, 1, y, f, &out);
    return out;
}

static void density_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {"student-t(nu=6)", "gamma(shape=2)", "beta(precision=12)",
                                        "poisson(offset=0.4)", "poisson(offset=7)"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        thiele_likelihood *known = make(texts[t], 1), *own = NULL;
        thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
        spec.name = "own";
        spec.outputs = spec.latents = 1;
        spec.log_density = borrowed;
        spec.support = (thiele_support)known->ops->support;
        spec.user = known;
        assert_ok(ctx, thiele_likelihood_custom(&own, ctx, &spec));
        for (int row = 0; row < TEST_ORDINARY; row++) {
            double y;
            thi_marginals m = {1, 2, weight, mus, vs};
            test_ordinary(known, row, &y);
            assert_near(crps_of(own, &m, y), crps_of(known, &m, y), 1e-6, 0);
        }
        thiele_likelihood_destroy(own);
        thiele_likelihood_destroy(known);
    }
}

static void allocations_may_fail(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("student-t(nu=6)", 1);
    int64_t held = (int64_t)thi_memory_held(ctx);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth++) {
        double y = 1, out;
        thi_marginals m = {1, 2, weight, mus, vs};
        thi_expect expect;
        thi_fail_allocation(ctx, nth, true);
        status = thi_expect_open(&expect, ctx, lik, NULL);
        status = status == THIELE_OK ? thi_mixture_crps(&expect, ctx, &m, &y, &out) : status;
        thi_expect_close(&expect);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal((int64_t)thi_memory_held(ctx), held);
    }
    assert_int_equal(status, THIELE_OK);
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_latents), cmocka_unit_test(mixtures_of_normals),
        cmocka_unit_test(points),        cmocka_unit_test(every_likelihood),
        cmocka_unit_test(density_alone), cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

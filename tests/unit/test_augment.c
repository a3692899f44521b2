/*
 * Augmented likelihoods: with v = 0 the bound is log p itself, with v > 0 it lies below E[log p] and closes in as v
 * falls; g, h and derivatives in the parameters against central differences; omega's moments against stored numbers,
 * complex steps and limits from r = 0 to 1e12; the site drawn given f has the site of the bound as its mean, and a
 * Gibbs sampler of one f has the posterior by quadrature as its law.
 */
#include "testing_context.h"

#include <thiele/likelihood.h>

#include "likelihood/augment.h"
#include "likelihood/inversion.h"

typedef struct augmented_case {
    const char *text;
    int classes;
    double y[3];
} augmented_case;

static const augmented_case cases[] = {
    {"student-t(nu=4.5, scale=0.6)", 0, {0.3, -4, 250}},
    {"student-t(nu=0.7, scale=1.3)", 0, {0.3, -4, 2}},
    {"student-t(nu=1e5, scale=0.2)", 0, {0.3, -1, 2}},
    {"laplace(beta=0.4)", 0, {0.3, -4, 250}},
    {"matern32(rho=0.8)", 0, {0.3, -4, 250}},
    {"bernoulli", 0, {1, -1, 1}},
    {"svm", 0, {1, -1, 1}},
    {"binomial(trials=12)", 0, {0, 5, 12}},
    {"negative-binomial(r=2.3)", 0, {0, 3, 60}},
    {"negative-binomial(r=0.2)", 0, {0, 3, 60}},
    {"sigmoid-poisson(rate=7)", 0, {0, 3, 15}},
    {"sigmoid-poisson(rate=0.3)", 0, {0, 1, 2}},
    {"logistic-softmax", 2, {0, 1, 1}},
    {"logistic-softmax", 3, {0, 1, 2}},
};
enum { CASES = sizeof cases / sizeof cases[0], MOST = 3 };

static thiele_likelihood *make(int c)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[c].text, 1, cases[c].classes));
    assert_true(thi_is_augmented(lik));
    return lik;
}

/* Latents that differ a little: f, f - 0.4, f - 0.8. */
static void spread(const thiele_likelihood *lik, double f, double *out)
{
    for (int q = 0; q < lik->latents; q++) {
        out[q] = f - 0.4 * q;
    }
}

static double bound(const thiele_likelihood *lik, double y, const double *mu, const double *v)
{
    double E, g[MOST], h[MOST];
    thi_augmented_expectation(lik, 1, &y, mu, v, &E, g, h, NULL);
    return E;
}

static void bound_is_exact_without_variance(void **state)
{
    (void)state;
    static const double at[] = {-700, -30, -3, -0.5, 0, 1e-9, 0.3, 2, 25, 250, 900};
    const double none[MOST] = {0};
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        for (int i = 0; i < 3 * 11; i++) {
            double y = cases[c].y[i % 3], f[MOST], want;
            spread(lik, at[i / 3], f);
            thiele_likelihood_log_density(lik, 1, &y, f, &want);
            /* Terms as large as y f take part in the sum. */
            assert_near(bound(lik, y, f, none), want, 1e-13, 2e-15 * (10 + fabs(y) + 12) * (1 + fabs(f[0])));
        }
        thiele_likelihood_destroy(lik);
    }
}

/* The gap is nonnegative and falls like v; quadrature is good to 1e-8 for one or two latents. */
static void bound_is_below(void **state)
{
    (void)state;
    static const double at[] = {-2.5, -0.1, 0.4, 3}, variances[] = {9, 1, 1e-2, 1e-4, 1e-8};
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        for (int i = 0; i < 3 * 4 * 5; i++) {
            double y = cases[c].y[i % 3], mu[MOST], v[MOST], g[MOST], h[MOST], E;
            spread(lik, at[i / 3 % 4], mu);
            for (int q = 0; q < lik->latents; q++) {
                v[q] = variances[i / 12] * (1 + 0.3 * q);
            }
            assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, &y, mu, v, &E, g, h, NULL));
            double gap = E - bound(lik, y, mu, v);
            assert_true(gap > -2e-7 * (1 + fabs(E)));
            if (v[0] <= 1e-8) {
                assert_near(gap, 0, 0, 1e-6 * (1 + fabs(E)));
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

static void derivatives_in_the_marginal(void **state)
{
    (void)state;
    static const double at[] = {-2.5, -0.1, 0.4, 3}, variances[] = {4, 0.3, 1e-2};
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        for (int i = 0; i < 3 * 4 * 3; i++) {
            double y = cases[c].y[i % 3], mu[MOST], v[MOST], g[MOST], h[MOST], E;
            spread(lik, at[i / 3 % 4], mu);
            for (int q = 0; q < lik->latents; q++) {
                v[q] = variances[i / 12] * (1 + 0.3 * q);
            }
            thi_augmented_expectation(lik, 1, &y, mu, v, &E, g, h, NULL);
            double slack = 1e-8 * (1 + fabs(E));
            for (int q = 0; q < lik->latents; q++) {
                double step = 1e-5 * sqrt(v[q]), now = mu[q];
                mu[q] = now + step;
                double up = bound(lik, y, mu, v);
                mu[q] = now - step;
                double down = bound(lik, y, mu, v);
                mu[q] = now;
                assert_near(g[q] * sqrt(v[q]), (up - down) / 2e-5, 1e-7, slack);
                now = v[q];
                v[q] = now * (1 + 1e-5);
                up = bound(lik, y, mu, v);
                v[q] = now * (1 - 1e-5);
                down = bound(lik, y, mu, v);
                v[q] = now;
                assert_near(h[q] * now, (up - down) / 2e-5, 1e-7, slack);
                assert_true(h[q] < 0);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

static void derivatives_in_the_parameters(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        for (int i = 0; i < 9 && lik->parameters > 0; i++) {
            double y = cases[c].y[i % 3], mu = -1 + i / 3, v = 0.4, E, g, h, dphi[2];
            thi_augmented_expectation(lik, 1, &y, &mu, &v, &E, &g, &h, dphi);
            for (int p = 0; p < lik->parameters; p++) {
                double now = lik->value[p], step = 1e-4;
                lik->value[p] = now * exp(step);
                double up = bound(lik, y, &mu, &v);
                lik->value[p] = now * exp(-step);
                double down = bound(lik, y, &mu, &v);
                lik->value[p] = now;
                assert_near(dphi[p], (up - down) / (2 * step), 1e-6, 1e-7 * (1 + fabs(E)));
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

static void missing_rows_are_zero(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        double y[2] = {NAN, cases[c].y[1]}, mu[2 * MOST], v[2 * MOST], E[2], g[2 * MOST], h[2 * MOST], dphi[4];
        double lambda[MOST], nu[MOST];
        for (int i = 0; i < 2 * MOST; i++) {
            mu[i] = 0.2;
            v[i] = 0.5;
        }
        thi_augmented_expectation(lik, 2, y, mu, v, E, g, h, dphi);
        thi_augmented_sites(lik, 1, (thi_stream){1, THI_RANDOM_DEMO, 0}, 3, y, mu, lambda, nu);
        assert_true(E[0] == 0 && E[1] == bound(lik, y[1], mu, v));
        for (int q = 0; q < lik->latents; q++) {
            assert_true(g[q] == 0 && h[q] == 0 && lambda[q] == 0 && nu[q] == 0);
        }
        for (int p = 0; p < lik->parameters; p++) {
            assert_true(dphi[p] == 0);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- omega -----------------------------------------------------------------------------------------------------------
 */

static const struct stored {
    const char *text;
    double y, r, log_phi, mean, variance;
} stored[] = {
    {"svm", 1, 1e-8, -0.0001, 5000, 249999999999.99997},
    {"svm", 1, 400, -20, 0.025, 3.125e-05},
    {"laplace(beta=0.4145)", 0, 1e-4, -0.024125452352231607, 120.62726176115801, 603136.30880579003},
    {"laplace(beta=0.4145)", 0, 25, -12.062726176115802, 0.24125452352231608, 0.0048250904704463205},
    {"bernoulli", 1, 1e-8, -1.2499999924031613e-09, 0.12499999989583334, 0.010416666645833331},
    {"bernoulli", 1, 0.1, -0.012448261274898509, 0.12396864565038923, 0.010211453356337982},
    {"bernoulli", -1, 4, -0.43378083048302718, 0.095199269494470606, 0.00533780959908967},
    {"bernoulli", -1, 400, -9.3068528215012076, 0.012499999948471159, 1.5624998647367937e-05},
    {"matern32(rho=0.8528)", 0, 1e-8, -2.0622346359901568e-08, 2.0620950452023887, 20936.492301586572},
    {"matern32(rho=0.8528)", 0, 25, -7.743186936728538, 0.18489454731258845, 0.0033663926296840139},
    {"student-t(nu=3.9356, scale=0.5907)", 0, 1e-8, -6.2704543064965261e-09, 0.62704542985302003, 0.15932651393936248},
    {"student-t(nu=3.9356, scale=0.5907)", 0, 400, -11.428855892277504, 0.0061093897145980689, 1.5124662729895726e-05},
};

static void omega_is_as_stored(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        thiele_likelihood *lik = NULL;
        thi_omega omega;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, stored[i].text, 1, 0));
        thi_augmented_omega(lik, stored[i].y, stored[i].r, &omega);
        assert_near(omega.log_phi, stored[i].log_phi, 1e-13, 1e-16);
        assert_near(omega.mean, stored[i].mean, 1e-13, 0);
        assert_near(omega.variance, stored[i].variance, 1e-12, 0);
        thiele_likelihood_destroy(lik);
    }
}

typedef struct form_law {
    const thiele_likelihood *lik;
    double y;
} form_law;

static double complex form_log_phi(const void *arg, double complex r)
{
    const form_law *at = arg;
    return at->lik->ops->augmentation->form->log_phi(at->lik, at->y, r);
}

/* Closed moments against the complex step, and nothing odd at r = 0 and far out. */
static void omega_agrees_with_its_transform(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        form_law at = {lik, cases[c].y[1]};
        thi_omega omega, last = {0, INFINITY, INFINITY};
        for (int e = -13; e <= 12 && lik->ops->augmentation->form != NULL; e++) {
            double r = e == -13 ? 0 : pow(10, e);
            thi_augmented_omega(lik, at.y, r, &omega);
            assert_true(isfinite(omega.log_phi) && isfinite(omega.mean) && omega.mean > 0 && omega.variance > 0);
            assert_true(omega.mean <= last.mean && omega.log_phi <= last.log_phi && omega.variance <= last.variance);
            last = omega;
            if (e > -6) {
                double complex far = form_log_phi(&at, r);
                assert_near(creal(far), omega.log_phi, 1e-12, 1e-14);
                assert_near(thi_omega_mean(form_log_phi, &at, r), omega.mean, 1e-11, 0);
                assert_near(thi_omega_variance(form_log_phi, &at, r), omega.variance, 1e-5, 0);
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* --- sites -----------------------------------------------------------------------------------------------------------
 */

/* E[lambda | f] = -2 h and E[nu | f] = g - 2 h f of the bound at v = 0. */
static void sites_have_the_right_means(void **state)
{
    (void)state;
    enum { DRAWS = 3000 };
    static const double at[] = {-1.2, 0.1, 2};
    const double none[MOST] = {0};
    for (int c = 0; c < CASES; c++) {
        thiele_likelihood *lik = make(c);
        for (int i = 0; i < 9; i++) {
            double y = cases[c].y[i % 3], f[MOST], E, g[MOST], h[MOST], lambda[MOST], nu[MOST];
            double sum[2][MOST] = {{0}}, square[2][MOST] = {{0}};
            spread(lik, at[i / 3], f);
            thi_augmented_expectation(lik, 1, &y, f, none, &E, g, h, NULL);
            for (int k = 0; k < DRAWS / (lik->parameters > 0 && lik->value[0] < 3 ? 5 : 1); k++) {
                thi_augmented_sites(lik, 1, (thi_stream){2, THI_RANDOM_DEMO, (uint64_t)(c * 9 + i)}, (uint64_t)k, &y, f,
                                    lambda, nu);
                for (int q = 0; q < lik->latents; q++) {
                    sum[0][q] += lambda[q];
                    square[0][q] += lambda[q] * lambda[q];
                    sum[1][q] += nu[q];
                    square[1][q] += nu[q] * nu[q];
                }
            }
            double n = DRAWS / (lik->parameters > 0 && lik->value[0] < 3 ? 5 : 1);
            for (int q = 0; q < lik->latents; q++) {
                double want[2] = {-2 * h[q], g[q] - 2 * h[q] * f[q]};
                for (int k = 0; k < 2; k++) {
                    double mean = sum[k][q] / n, variance = fmax(0, square[k][q] / n - mean * mean);
                    assert_near(mean, want[k], 1e-12, 5 * sqrt(variance / n));
                }
            }
        }
        thiele_likelihood_destroy(lik);
    }
}

/* Mean and variance of p(f | y) with f ~ N(0, 2), by the trapezoid rule. */
static void posterior_by_sum(const thiele_likelihood *lik, double y, double *mean, double *variance)
{
    double total = 0, first = 0, second = 0, top;
    thiele_likelihood_log_density(lik, 1, &y, &(double){0}, &top);
    for (double f = -12; f <= 12; f += 0.005) {
        double value;
        thiele_likelihood_log_density(lik, 1, &y, &f, &value);
        double w = exp(value - top - f * f / 4);
        total += w;
        first += w * f;
        second += w * f * f;
    }
    *mean = first / total;
    *variance = second / total - *mean * *mean;
}

/* f given the site is N(nu/(1/2 + lambda), 1/(1/2 + lambda)). The chain's mean of f and of (f - mean)^2 by batches. */
static void gibbs_finds_the_posterior(void **state)
{
    (void)state;
    enum { BATCHES = 25, LENGTH = 120 };
    static const char *const texts[] = {"student-t(nu=4.5, scale=0.6)",
                                        "laplace(beta=0.4)",
                                        "matern32(rho=0.8)",
                                        "bernoulli",
                                        "svm",
                                        "binomial(trials=12)",
                                        "negative-binomial(r=2)",
                                        "sigmoid-poisson(rate=7)",
                                        "negative-binomial(r=0.5)"};
    for (size_t c = 0; c < sizeof texts / sizeof texts[0]; c++) {
        thiele_likelihood *lik = NULL;
        double y = 1, f = 0, mean, variance, sum[2] = {0}, square[2] = {0};
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, texts[c], 1, 0));
        posterior_by_sum(lik, y, &mean, &variance);
        for (int b = 0; b < BATCHES; b++) {
            double part[2] = {0};
            for (int i = 0; i < LENGTH; i++) {
                uint64_t k = (uint64_t)(b * LENGTH + i);
                double lambda, nu;
                thi_augmented_sites(lik, 1, (thi_stream){3, THI_RANDOM_DEMO, c}, k, &y, &f, &lambda, &nu);
                double z = thi_random_normal((thi_stream){3, THI_RANDOM_DEMO, 1000 + c}, k), precision = 0.5 + lambda;
                f = nu / precision + z / sqrt(precision);
                part[0] += (f - mean) / LENGTH;
                part[1] += (f - mean) * (f - mean) / LENGTH;
            }
            for (int k = 0; k < 2; k++) {
                sum[k] += part[k] / BATCHES;
                square[k] += part[k] * part[k] / BATCHES;
            }
        }
        for (int k = 0; k < 2; k++) {
            double error = sqrt((square[k] - sum[k] * sum[k]) / (BATCHES - 1));
            assert_near(sum[k], k == 0 ? 0 : variance, 0, 4.5 * error);
        }
        thiele_likelihood_destroy(lik);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_exact_without_variance), cmocka_unit_test(bound_is_below),
        cmocka_unit_test(derivatives_in_the_marginal),     cmocka_unit_test(derivatives_in_the_parameters),
        cmocka_unit_test(missing_rows_are_zero),           cmocka_unit_test(omega_is_as_stored),
        cmocka_unit_test(omega_agrees_with_its_transform), cmocka_unit_test(sites_have_the_right_means),
        cmocka_unit_test(gibbs_finds_the_posterior),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

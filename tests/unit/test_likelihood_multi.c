/*
 * Likelihoods of several outputs: networks (gprn) and linear mixing. Their log densities are of degree two in each
 * latent and each weight, so that three Gauss-Hermite nodes a latent and plain differences are exact but for rounding.
 */
#include "testing_context.h"

#include <thiele/likelihood.h>

#include "likelihood/likelihood.h"
#include "linalg/linalg.h"

static thiele_likelihood *make(const char *text, int outputs)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, outputs, 0));
    return lik;
}

/* E, g, h and dphi by the tensor rule of three nodes a latent. */
static void tensor_rule(const thiele_likelihood *lik, const double *y, const double *mu, const double *v, double *E,
                        double *g, double *h, double *dphi)
{
    int Q = lik->latents, points = 1;
    double node[3], weight[3], f[16], d1[16], d2[16], d[32], log_density;
    assert_ok(ctx, thi_gauss_hermite(ctx, 3, node, weight));
    *E = 0;
    memset(g, 0, (size_t)Q * sizeof *g);
    memset(h, 0, (size_t)Q * sizeof *h);
    memset(dphi, 0, (size_t)lik->parameters * sizeof *dphi);
    for (int q = 0; q < Q; q++) {
        points *= 3;
    }
    for (int k = 0; k < points; k++) {
        double w = 1;
        for (int q = 0, rest = k; q < Q; q++, rest /= 3) {
            f[q] = mu[q] + sqrt(v[q]) * node[rest % 3];
            w *= weight[rest % 3];
        }
        lik->ops->log_density(lik, 1, y, f, &log_density);
        lik->ops->derivatives(lik, 1, y, f, d1, d2);
        lik->ops->phi_derivatives(lik, 1, y, f, d);
        *E += w * log_density;
        for (int q = 0; q < Q; q++) {
            g[q] += w * d1[q];
            h[q] += 0.5 * w * d2[q];
        }
        for (int j = 0; j < lik->parameters; j++) {
            dphi[j] += w * d[j];
        }
    }
}

static void check_multi_derivatives(const thiele_likelihood *lik, const double *y, const double *f)
{
    double d1[16], d2[16];
    lik->ops->derivatives(lik, 1, y, f, d1, d2);
    for (int q = 0; q < lik->latents; q++) {
        double at[3], x[16], step = 1e-2;
        memcpy(x, f, (size_t)lik->latents * sizeof *x);
        for (int k = 0; k < 3; k++) {
            x[q] = f[q] + (k - 1) * step;
            lik->ops->log_density(lik, 1, y, x, &at[k]);
        }
        assert_near(d1[q], (at[2] - at[0]) / (2 * step), 1e-9, 1e-10 * (1 + fabs(at[1])));
        assert_near(d2[q], (at[2] - 2 * at[1] + at[0]) / (step * step), 1e-7, 1e-8 * (1 + fabs(at[1])));
    }
}

/* Weights plainly; noise in its log, where five points leave an error of order step^4. */
static void check_phi(thiele_likelihood *lik, const double *y, const double *f)
{
    double dphi[32];
    lik->ops->phi_derivatives(lik, 1, y, f, dphi);
    for (int j = 0; j < lik->parameters; j++) {
        double before = lik->value[j], at[5], step = 1e-3;
        for (int k = 0; k < 5; k++) {
            double move = (k - 2) * step;
            lik->value[j] = lik->phi[j].positive ? before * exp(move) : before + move;
            lik->ops->log_density(lik, 1, y, f, &at[k]);
        }
        lik->value[j] = before;
        double slope = (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * step);
        assert_near(dphi[j], slope, 1e-8, 1e-10 * (1 + fabs(at[2])));
    }
}

static const struct multi_case {
    const char *text;
    int outputs;
    double y[4];
} multis[] = {
    {"gaussian(noise~[0.314,2])", 2, {-1.479, 0.6365}},
    {"gaussian(noise~0.3)", 3, {1.2, NAN, -0.4}},
    {"gprn(nodes=1, noise~0.314)", 2, {-1.479, 0.6365}},
    {"gprn(nodes=2, noise~0.05)", 2, {0.3, -1.2}},
    {"gprn(nodes=2, noise~0.05)", 2, {0.3, NAN}},
    {"gprn(nodes=1, noise~2)", 1, {4}},
    {"gprn(nodes=1)", 3, {NAN, NAN, NAN}},
    {"mixing(noise~0.2)", 3, {1, -0.5, 2}},
    {"mixing(latents=2, noise~0.2, w=[0.3,-1,0.8,0.1,-2,0.6])", 3, {1, -0.5, 2}},
    {"mixing(latents=2, noise~1e-6, w=[0.3,-1,0.8,0.1,-2,0.6])", 3, {1, NAN, 2}},
    {"mixing(latents=4, noise~0.2)", 2, {1, -0.5}},
};
enum { MULTIS = sizeof multis / sizeof multis[0] };

static void test_multi(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * MULTIS; i++) {
        thiele_likelihood *lik = make(multis[i / 2].text, multis[i / 2].outputs);
        double mu[16], v[16], E, g[16], h[16], dphi[32], wantE, want_g[16], want_h[16], want_phi[32];
        const double *y = multis[i / 2].y;
        test_normals(16, (uint64_t)i, mu);
        for (int q = 0; q < 16; q++) {
            v[q] = i % 2 ? 1e-12 : exp(mu[15 - q]);
            mu[q] *= i % 2 ? 50 : 1;
        }
        tensor_rule(lik, y, mu, v, &wantE, want_g, want_h, want_phi);
        lik->ops->expectation(lik, 1, y, mu, v, &E, g, h, dphi);
        assert_near(E, wantE, 1e-11, 1e-12);
        assert_all_near(g, want_g, lik->latents, 1e-9, 1e-11 * (1 + fabs(E)));
        assert_all_near(h, want_h, lik->latents, 1e-10, 1e-12);
        assert_all_near(dphi, want_phi, lik->parameters, 1e-9, 1e-11 * (1 + fabs(E)));
        lik->ops->expectation(lik, 1, y, mu, v, &wantE, want_g, want_h, NULL);
        assert_true(wantE == E);
        if (i % 2 == 0) {
            check_multi_derivatives(lik, y, mu);
            check_phi(lik, y, mu);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* A missing output is as if it had never been there. */
static void test_missing(void **state)
{
    (void)state;
    thiele_likelihood *two = make("mixing(latents=1, noise~0.3, w=[0.7,-1.1])", 2);
    thiele_likelihood *one = make("mixing(latents=1, noise~0.3, w_1_1~0.7)", 1);
    double y[] = {0.4, NAN}, mu = 0.2, v = 0.8, a, b, g, h;
    two->ops->log_predictive(two, 1, y, &mu, &v, &a);
    one->ops->log_predictive(one, 1, y, &mu, &v, &b);
    assert_near(a, b, 1e-15, 0);
    two->ops->expectation(two, 1, y, &mu, &v, &a, &g, &h, NULL);
    one->ops->expectation(one, 1, y, &mu, &v, &b, &g, &h, NULL);
    assert_near(a, b, 1e-15, 0);
    thiele_likelihood_destroy(two);
    thiele_likelihood_destroy(one);
}

/* Of mixing: against the bivariate normal density written out. */
static void test_mixing_predictive(void **state)
{
    (void)state;
    thiele_likelihood *lik = make("mixing(noise~[0.1,0.4], w=[0.3,-1,0.8,0.4])", 2);
    const double *w = lik->value + 2;
    double y[] = {0.7, -0.3}, mu[] = {0.5, 1.1}, v[] = {0.6, 2}, got, mean[2], variance[2];
    double a = w[0] * w[0] * v[0] + w[1] * w[1] * v[1] + 0.1, b = w[2] * w[2] * v[0] + w[3] * w[3] * v[1] + 0.4;
    double c = w[0] * w[2] * v[0] + w[1] * w[3] * v[1], det = a * b - c * c;
    double r = y[0] - w[0] * mu[0] - w[1] * mu[1], s = y[1] - w[2] * mu[0] - w[3] * mu[1];
    lik->ops->log_predictive(lik, 1, y, mu, v, &got);
    assert_near(got, -log(2 * M_PI) - 0.5 * log(det) - 0.5 * (b * r * r - 2 * c * r * s + a * s * s) / det, 1e-13, 0);
    lik->ops->predictive(lik, 1, mu, v, mean, variance);
    assert_near(mean[0], y[0] - r, 1e-14, 0);
    assert_near(mean[1], y[1] - s, 1e-14, 0);
    assert_near(variance[0], a, 1e-14, 0);
    assert_near(variance[1], b, 1e-14, 0);
    thiele_likelihood_destroy(lik);
}

/* E[y] and Var[y] of a network by Monte Carlo over its latents and its noise, within five standard errors. */
static void test_gprn_predictive(void **state)
{
    (void)state;
    enum { DRAWS = 40000 };
    thiele_likelihood *lik = make("gprn(nodes=2, noise~0.2)", 2);
    double mu[] = {0.5, -1, 0.7, 0.2, -0.4, 1}, v[] = {0.3, 0.6, 0.2, 0.5, 0.1, 0.4}, mean[2], variance[2];
    double sum[2] = {0, 0}, square[2] = {0, 0}, fourth[2] = {0, 0};
    lik->ops->predictive(lik, 1, mu, v, mean, variance);
    for (int i = 0; i < DRAWS; i++) {
        double f[6], y[2];
        test_normals(6, (uint64_t)i, f);
        for (int q = 0; q < 6; q++) {
            f[q] = mu[q] + sqrt(v[q]) * f[q];
        }
        lik->ops->sample(lik, (thi_stream){3, THI_RANDOM_SAMPLE, 0}, (uint64_t)i, f, y);
        for (int p = 0; p < 2; p++) {
            double rest = y[p] - mean[p];
            sum[p] += rest / DRAWS;
            square[p] += rest * rest / DRAWS;
            fourth[p] += rest * rest * rest * rest / DRAWS;
        }
    }
    for (int p = 0; p < 2; p++) {
        assert_near(sum[p], 0, 0, 5 * sqrt(variance[p] / DRAWS));
        assert_near(square[p], variance[p], 0, 5 * sqrt((fourth[p] - square[p] * square[p]) / DRAWS));
    }
    thiele_likelihood_destroy(lik);
}

/* The guess explains y where it can, whatever the numbers of nodes and outputs. */
static void test_guess(void **state)
{
    (void)state;
    static const char *const texts[] = {"gprn(nodes=1)", "gprn(nodes=3)", "gprn(nodes=5)", "mixing",
                                        "mixing(latents=5)"};
    for (int i = 0; i < 5; i++) {
        thiele_likelihood *lik = make(texts[i], 3);
        double y[] = {1, 1, 1}, f[32] = {0}, mean[3], variance[3];
        lik->ops->guess(lik, y, f);
        lik->ops->conditional(lik, 1, f, mean, variance);
        assert_all_near(mean, y, 3, 1e-15, 0);
        thiele_likelihood_destroy(lik);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multi),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_mixing_predictive),
        cmocka_unit_test(test_gprn_predictive),
        cmocka_unit_test(test_guess),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

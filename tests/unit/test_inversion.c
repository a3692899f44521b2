/*
 * Numerical inversion of Laplace transforms: distribution functions and densities against closed forms (gamma, inverse
 * Gaussian) from far tails to narrow laws, quantiles against the distribution function, moments by complex step, and
 * the stored aaci_cdf numbers through the built-in forms.
 */
#include "testing_context.h"

#include "likelihood/augment.h"
#include "likelihood/incomplete.h"
#include "likelihood/inversion.h"
#include "likelihood/plane.h"
#include "likelihood/special.h"

static double complex log_phi_gamma(const void *shape, double complex r)
{
    return -*(const double *)shape * clog(1.0 + r);
}

static double complex log_phi_root(const void *b, double complex r)
{
    return -csqrt(r) / *(const double *)b;
}

static double complex log_phi_cosh(const void *b, double complex r)
{
    return -*(const double *)b * thi_plane_log_cosh(0.5 * csqrt(r));
}

/* Phi(a (x/m - 1)) + exp(2 l/m) Phi(-a (x/m + 1)), a = sqrt(l/x) */
static double inverse_gaussian_cdf(double x, double over, double shape)
{
    double a = sqrt(shape / x);
    return exp(thi_log_phi(a * (x * over - 1))) + exp(2 * shape * over + thi_log_phi(-a * (x * over + 1)));
}

/* Absolute errors below 1e-9; relative ones below 1e-8 down to 1e-16. */
static void inverse_gaussian_laws(void **state)
{
    (void)state;
    static const double scales[] = {1, 0.4, 20}, roots[] = {0, 1e-6, 0.3, 1, 2.5, 30, 1e3, 1e6};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 8; j++) {
            thi_omega_law law;
            double b = scales[i], c = roots[j], over = 2 * b * fmax(c, 1e-10), shape = 0.5 / (b * b);
            thi_omega_law_open(&law, log_phi_root, &b, c * c);
            assert_near(law.mean, 1 / over, 1e-12, 0);
            assert_near(law.sd, sqrt(1 / (over * over * over * shape)), 1e-8, 0);
            double ratio = 1 / (over * shape), width = sqrt(log1p(fmin(ratio, 30)));
            for (double z = -8; z <= 8; z += 0.5) {
                double x = 1 / over / sqrt(1 + fmin(ratio, 1e15)) * exp(width * z), density;
                double F = thi_omega_law_cdf(&law, x, &density, NULL), want = inverse_gaussian_cdf(x, over, shape);
                if (want > 1e-16) {
                    assert_near(F, want, 1e-8, 0);
                }
                double d = x * over - 1;
                double p = sqrt(shape / (2 * M_PI * x * x * x)) * exp(-0.5 * shape * d * d / x);
                double unit = fmin(x, law.sd);
                assert_near(density * unit, p * unit, 1e-6, 3e-6);
            }
        }
    }
}

static void gamma_laws(void **state)
{
    (void)state;
    static const double shapes[] = {0.02, 0.3, 1, 4, 40, 400, 1e4, 1e6};
    for (int i = 0; i < 8; i++) {
        thi_omega_law law;
        double a = shapes[i];
        thi_omega_law_open(&law, log_phi_gamma, &a, 0);
        assert_near(law.mean, a, 1e-12, 0);
        assert_near(law.sd, sqrt(a), 1e-5, 0);
        for (double z = -7; z <= 7; z += 0.5) {
            double root = 1 - 1 / (9 * a) + z / (3 * sqrt(a)), x = a * root * root * root;
            if (root > 0) {
                double want = thi_gamma_lower(a, x);
                /* thi_gamma_lower itself has absolute errors of 1e-13, and 1e-10 for large shapes. */
                assert_near(thi_omega_law_cdf(&law, x, NULL, NULL), want, 1e-8, a > 1e5 ? 1e-9 : 1e-12);
            }
        }
    }
}

/* F(quantile) is what was asked for, at any shape and tilt. */
static void quantiles(void **state)
{
    (void)state;
    static const double bs[] = {0.02, 0.3, 1, 7.5, 400, 1e4}, tilts[] = {0, 1e-6, 1, 1e3, 1e6, 1e12};
    for (int i = 0; i < 36; i++) {
        thi_omega_law law;
        double b = bs[i / 6], last = 0;
        thi_omega_law_open(&law, log_phi_cosh, &b, tilts[i % 6]);
        for (double z = -6; z <= 6; z += 1.5) {
            double x = thi_omega_law_at(&law, z);
            assert_true(x > last);
            /* A rounding of log phi(r) is one of F, and counts up to fifty times in the right tail. */
            double slack = 1e-7 + 1e-13 * fabs(law.at_r);
            assert_near(thi_omega_law_cdf(&law, x, NULL, NULL), thi_normal_cdf(z), slack, 1e-9);
            last = x;
        }
    }
}

/* A law that is one point, or next to one. */
static double complex log_phi_point(const void *arg, double complex r)
{
    (void)arg;
    return -0.7 * r;
}

static void narrow_laws(void **state)
{
    (void)state;
    thi_omega_law law;
    thi_omega_law_open(&law, log_phi_point, NULL, 2);
    assert_near(thi_omega_law_at(&law, 1), 0.7, 1e-5, 0);
    /* Gamma's quantiles by Wilson and Hilferty: their error falls like 1/a. */
    static const double shapes[] = {2e7, 1e9, 1e12}, tilts[] = {0, 1e3};
    for (int i = 0; i < 6; i++) {
        double a = shapes[i / 2], r = tilts[i % 2];
        thi_omega_law_open(&law, log_phi_gamma, &a, r);
        for (double z = -5; z <= 5; z += 2.5) {
            double root = 1 - 1 / (9 * a) + z / (3 * sqrt(a)), want = a * root * root * root / (1 + r);
            assert_near((thi_omega_law_at(&law, z) - want) / (sqrt(a) / (1 + r)), 0, 0, 1e-4 * fmax(1, fabs(z)));
        }
    }
}

static const struct stored {
    const char *text;
    double y, c;
    double x[3], F[3];
} stored[] = {
    {"svm", 1, 0.3, {0.1667, 1.5, 5}, {0.11125717439000435, 0.72538608530575177, 0.92404542723506622}},
    {"svm", 1, 2.5, {0.02, 0.18, 0.6}, {6.2159740802681565e-06, 0.54824045487230455, 0.98540327681094175}},
    {"laplace(beta=0.4145)",
     0,
     1,
     {0.1206, 1.0856, 3.6188},
     {8.9804075935613299e-06, 0.55119036315573555, 0.98439049571878956}},
    {"laplace(beta=0.4145)",
     0,
     2.5,
     {0.0483, 0.4343, 1.4475},
     {2.5925508374200837e-12, 0.47349393428734887, 0.99893995831823745}},
    {"bernoulli", 1, 0.3, {0.0124, 0.1117, 0.3722}, {0.0030275624731284484, 0.58056324537496429, 0.96867283915984104}},
    {"bernoulli", -1, 2.5, {0.0085, 0.0763, 0.2545}, {0.00045252687629019803, 0.5701961492333375, 0.97566181386624673}},
    {"matern32(rho=0.8528)",
     0,
     0.3,
     {0.1282, 1.1535, 3.8449},
     {0.0012302970611635612, 0.66851577083518532, 0.94930598734306859}},
    {"matern32(rho=0.8528)",
     0,
     2.5,
     {0.0339, 0.3054, 1.0181},
     {8.3526803889682558e-12, 0.49088998886059854, 0.99755772159747536}},
    {"student-t(nu=3.9356, scale=0.5907)",
     0,
     1,
     {0.05, 0.45, 1.5},
     {0.0082882769061455881, 0.52109859213279097, 0.98929030238596793}},
};

static void stored_distribution_functions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, stored[i].text, 1, 0));
        for (int k = 0; k < 3; k++) {
            double F = thi_augmented_cdf(lik, stored[i].y, stored[i].c * stored[i].c, stored[i].x[k]);
            assert_near(F, stored[i].F[k], 1e-8, 1e-14);
        }
        thiele_likelihood_destroy(lik);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_gaussian_laws),
        cmocka_unit_test(gamma_laws),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(narrow_laws),
        cmocka_unit_test(stored_distribution_functions),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

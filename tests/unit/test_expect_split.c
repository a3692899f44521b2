/*
 * (E, g, h) of densities with kinks or narrow features, by quadrature split into panels: against brute force in
 * extended precision, and against closed forms, for marginals from far narrower to far wider than the feature.
 */
#include "testing_context.h"

#include <thiele/likelihood.h>

typedef struct jet {
    long double l, d1, d2;
} jet;
typedef jet (*density_fn)(long double y, long double f);

static jet logistic(long double y, long double f)
{
    long double x = y * f, s = 1 / (1 + expl(x));
    return (jet){x > 0 ? -log1pl(expl(-x)) : x - log1pl(expl(x)), y * s, -s / (1 + expl(-x))};
}

/* nu = 3, scale = 0.01 */
static jet student(long double y, long double f)
{
    long double nu = 3, s = 0.01L, r = y - f, d = nu * s * s + r * r;
    long double constant = lgammal((nu + 1) / 2) - lgammal(nu / 2) - 0.5L * logl(nu * acosl(-1)) - logl(s);
    return (jet){constant - (nu + 1) / 2 * log1pl(r * r / (nu * s * s)), (nu + 1) * r / d,
                 (nu + 1) * (r * r - nu * s * s) / (d * d)};
}

/* rho = 0.02 */
static jet matern(long double y, long double f)
{
    long double a = sqrtl(3) / 0.02L, r = y - f, u = a * fabsl(r);
    return (jet){logl(a / 4) + log1pl(u) - u, a * a * r / (1 + u), -a * a / ((1 + u) * (1 + u))};
}

enum { PARTS = 8 };

/* Composite 8-point Gauss-Legendre on a panel. */
static jet panel(density_fn fn, long double y, long double mu, long double sd, long double a, long double b)
{
    static const long double node[] = {0.1834346424956498049394761L, 0.5255324099163289858177390L,
                                       0.7966664774136267395915539L, 0.9602898564975362316835609L};
    static const long double weight[] = {0.3626837833783619829651504L, 0.3137066458778872873379622L,
                                         0.2223810344533744705443560L, 0.1012285362903762591525314L};
    jet sum = {0, 0, 0};
    for (int k = 0; k < PARTS; k++) {
        long double z = 0.5L * (a + b) + 0.5L * (b - a) * (k % 2 ? node[k / 2] : -node[k / 2]);
        long double w = 0.5L * (b - a) * weight[k / 2] * expl(-z * z / 2) / sqrtl(2 * acosl(-1));
        jet j = fn(y, mu + sd * z);
        sum.l += w * j.l;
        sum.d1 += w * j.d1;
        sum.d2 += w * j.d2 / 2;
    }
    return sum;
}

/* Panels no wider than 1/8, shrinking towards z = at from both sides by a factor 0.7. */
static jet brute(density_fn fn, double y, double mu, double v, double at)
{
    long double sd = sqrtl(v), z0 = (at - (long double)mu) / sd;
    jet sum = {0, 0, 0};
    long double a = -14;
    while (a < 14) {
        long double gap = fabsl(a - z0), b = a + 0.125L;
        if (a < z0) {
            long double step = 0.3L * gap;
            b = step < 1e-15L * (1 + fabsl(z0)) ? z0 : fminl(b, a + step);
        } else {
            b = fminl(b, a + fmaxl(0.4L * gap, 1e-15L * (1 + fabsl(z0))));
        }
        jet j = panel(fn, y, mu, sd, a, b);
        sum = (jet){sum.l + j.l, sum.d1 + j.d1, sum.d2 + j.d2};
        a = b;
    }
    return sum;
}

static void test_sharp_features(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        density_fn fn;
        double y, bend;
    } table[] = {
        {"bernoulli", logistic, 1, 0},
        {"student-t(nu=3, scale=0.01)", student, 0.7, 0.7},
        {"matern32(rho=0.02)", matern, 0.7, 0.7},
    };
    static const double mean[] = {-50, -3, 0, 0.7, 0.70001, 8, 50};
    static const double variance[] = {1e-12, 1e-8, 1e-4, 0.1, 1, 10, 100, 1e4};
    double worst = 0;
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, table[t].text, 1, 0));
        for (size_t a = 0; a < sizeof mean / sizeof *mean; a++) {
            for (size_t b = 0; b < sizeof variance / sizeof *variance; b++) {
                double E, g, h;
                assert_ok(ctx, thiele_likelihood_expect(lik, ctx, "quadrature", 1, &table[t].y, &mean[a], &variance[b],
                                                        &E, &g, &h, NULL));
                jet want = brute(table[t].fn, table[t].y, mean[a], variance[b], table[t].bend);
                assert_near(E, (double)want.l, 1e-8, 1e-12);
                assert_near(g, (double)want.d1, 1e-8, 1e-12);
                assert_near(h, (double)want.d2, 1e-8, 1e-12);
                worst = fmax(worst, fabs(h - (double)want.d2) / (fabs((double)want.d2) + 1e-4));
            }
        }
        thiele_likelihood_destroy(lik);
    }
    print_message("largest relative error of h around sharp features: %.1e\n", worst);
}

/* The kinks of Laplace and SVM densities, closed against panels by scores, from the narrowest to the widest. */
static void test_kinks(void **state)
{
    (void)state;
    static const double mean[] = {-50, -0.9, 0.2, 0.2000003, 1, 50}, variance[] = {1e-12, 1e-8, 1e-4, 1, 100, 1e4};
    static const struct {
        const char *text;
        double y;
    } table[] = {{"laplace(beta=0.6)", -1.3}, {"laplace(beta=0.6)", 0.2}, {"svm", -1}, {"svm", 1}};
    for (int i = 0; i < 4 * 36; i++) {
        thiele_likelihood *lik = NULL;
        double y = table[i / 36].y, mu = mean[i % 6], v = variance[i / 6 % 6], want[3], got[3];
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, table[i / 36].text, 1, 0));
        assert_ok(ctx,
                  thiele_likelihood_expect(lik, ctx, "closed", 1, &y, &mu, &v, &want[0], &want[1], &want[2], NULL));
        assert_ok(ctx,
                  thiele_likelihood_expect(lik, ctx, "quadrature", 1, &y, &mu, &v, &got[0], &got[1], &got[2], NULL));
        /* Rounding of l, of order eps |l|, is divided by the spread for g and by its square for h. */
        double sd = fmax(sqrt(v), fmin(2e-4, fabs(mu - y) / 12)), noise = 4e-16 * (1 + fabs(want[0]));
        assert_near(got[0], want[0], 1e-8, 1e-12);
        assert_near(got[1], want[1], 1e-8, 1e-12 + noise / sd);
        assert_near(got[2], want[2], 1e-8, 1e-12 + 5 * noise / (sd * sd));
        thiele_likelihood_destroy(lik);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sharp_features), cmocka_unit_test(test_kinks)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

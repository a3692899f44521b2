/*
 * Densities whose logarithms the host takes by the loops of linalg/vector.h, against the formulas that another compiler
 * takes with its own functions.
 */
#include "testing.h"

#include "likelihood/formulas.h"
#include "likelihood/rows.h"

enum { N = 600 };

typedef double (*density_fn)(thi_values phi, double y, double f);

static double logit(thi_values phi, double y, double f)
{
    (void)phi;
    return thi_logit_density(y, f);
}

static double probit(thi_values phi, double y, double f)
{
    (void)phi;
    return thi_probit_density(y, f);
}

static double student(thi_values phi, double y, double f)
{
    double nu = phi.value[0], scale = phi.value[1];
    double log_ratio = log1p(thi_student_ratio(nu, scale, y, f));
    return thi_student_density(thi_student_constant(nu, scale), nu, log_ratio);
}

static double matern(thi_values phi, double y, double f)
{
    double a = THI_SQRT3 / phi.value[0], u = thi_matern_size(a, y, f);
    return thi_matern_density(log(0.25 * a), u, log1p(u));
}

/* log(1 + u) by the loops loses u's last digits, relative to 1 and not to u: 2 ulp of the largest term. */
static void test_densities(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        density_fn density;
        bool sign;
    } cases[] = {{"bernoulli", logit, true},
                 {"bernoulli-probit", probit, true},
                 {"student-t", student, false},
                 {"student-t(nu=5000)", student, false},
                 {"matern32", matern, false}};
    thiele_context *ctx = test_context(1);
    double y[N], f[N], out[N];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        thiele_likelihood *lik;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[k].text, 1, 0));
        for (int i = 0; i < N; i++) {
            f[i] = 0.05 * (i - N / 2);
            y[i] = cases[k].sign ? (i % 2 ? 1.0 : -1.0) : 0.01 * (i % 7);
        }
        lik->ops->log_density(lik, N, y, f, out);
        for (int i = 0; i < N; i++) {
            assert_near(out[i], cases[k].density(thi_values_of(lik), y[i], f[i]), 1e-13, 4e-16);
        }
        thiele_likelihood_destroy(lik);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_densities)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

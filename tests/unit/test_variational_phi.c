/*
 * Parameters of the likelihood at fixed q: the expectations that are asked for again are those of the evaluation, their
 * gradient is that of central differences, and turns with natural steps end where the bound is flat in them, far from a
 * first guess that was much too small.
 */
#include "testing_context.h"

#include "fit/variational_state.h"

enum { N = 400, M = 25 };

typedef struct setting {
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    thi_source source;
    thi_driver driver;
    thi_variational_settings settings;
    thi_variational_result result;
    thi_vfit fit;
} setting;

/* A wave with noise of standard deviation 1, several times the first guess of every scale. */
static void open_setting(setting *s, const char *likelihood, const char *expectation)
{
    static double unit = 1.0;
    thi_target target = {.scale = 1.0};
    thi_encoder encoder = {.dims = 1, .scale = &unit, .targets = 1, .target = &target};
    thi_columns columns = {.dims = 1, .columns = 1};
    double Z[M];
    *s = (setting){.settings = {.components = 1, .fixed_Z = true}};
    assert_ok(ctx, thiele_likelihood_parse(&s->spec.lik, ctx, likelihood, 1, 0));
    s->spec.expectation = expectation;
    assert_ok(ctx, thi_latents_make(&s->spec.latents, ctx, "se", "zero", &columns, 1, false));
    assert_ok(ctx, thi_hypers_make(&s->hypers, ctx, &s->spec, &encoder, "lengthscale=0.7, variance=2", NULL));
    assert_ok(ctx, thi_hypers_apply(&s->hypers, ctx, &s->spec));
    assert_ok(ctx, thi_rows_alloc(&s->rows, ctx, N, 1, 1, (thi_aside){0}));
    test_normals(N, 1, s->rows.X);
    test_normals(N, 2, s->rows.y);
    for (int i = 0; i < N; i++) {
        s->rows.y[i] += 2.0 * sin(2.0 * s->rows.X[i]);
    }
    for (int j = 0; j < M; j++) {
        Z[j] = -3.0 + 6.0 * j / (M - 1);
    }
    thi_source_of_rows(&s->source, &s->rows);
    thi_driver_start(&s->driver, ctx, 0.0);
    s->fit = (thi_vfit){.problem = {ctx, &s->driver, &s->spec, &s->source, &s->hypers},
                        .settings = &s->settings,
                        .result = &s->result,
                        .natural = true,
                        .tolerance = 1e-5,
                        .passes = INFINITY};
    assert_ok(ctx, thi_vfit_open(&s->fit, M, Z, 100, true));
}

static void close_setting(setting *s)
{
    thi_vfit_close(&s->fit);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thi_rows_free(&s->rows);
}

static const struct {
    const char *likelihood, *expectation;
} cases[] = {{"student-t", "augmented"}, {"student-t", "quadrature"}, {"laplace", "augmented"},
             {"laplace", "closed"},      {"matern32", "augmented"},   {"matern32", "quadrature"}};
enum { CASES = sizeof cases / sizeof *cases };

/* E at the marginals of the last evaluation when parameter i is moved by this much. */
static double expected_at(thi_vfit *fit, int64_t i, double step)
{
    double x[2];
    int64_t size = thi_vfit_size(fit);
    assert_true(size <= 2);
    memcpy(x, fit->vector.x, (size_t)size * sizeof *x);
    x[i] += step;
    assert_ok(ctx, thi_vfit_take(fit, x));
    assert_ok(ctx, thi_vfit_expect_again(fit));
    x[i] -= step;
    double expected = fit->pass.at.expected;
    assert_ok(ctx, thi_vfit_take(fit, x));
    return expected;
}

static void test_again(void **state)
{
    (void)state;
    const double step = 1e-4;
    for (int c = 0; c < CASES; c++) {
        setting s;
        double gradient[2];
        open_setting(&s, cases[c].likelihood, cases[c].expectation);
        assert_ok(ctx, thi_vfit_evaluate(&s.fit, &thi_all_rows, (thi_wanted){.step = true}));
        double expected = s.fit.pass.at.expected;
        assert_ok(ctx, thi_vfit_expect_again(&s.fit));
        assert_near(s.fit.pass.at.expected, expected, 1e-12, 0.0);
        memcpy(gradient, s.fit.vector.bar, (size_t)thi_vfit_size(&s.fit) * sizeof *gradient);
        for (int64_t i = 0; i < thi_vfit_size(&s.fit); i++) {
            double slope = (expected_at(&s.fit, i, step) - expected_at(&s.fit, i, -step)) / (2.0 * step);
            /* The error of central differences is step^2 times a third derivative of the order of E. */
            assert_near(gradient[i], slope, 0.0, 1e-6 * fabs(expected));
        }
        close_setting(&s);
    }
}

static void test_first(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        setting s;
        open_setting(&s, cases[c].likelihood, cases[c].expectation);
        int last = s.spec.lik->parameters - 1;
        double guess = s.spec.lik->value[last];
        assert_ok(ctx, thi_vfit_first_phi(&s.fit));
        assert_true(s.spec.lik->value[last] > 1.8 * guess);
        assert_ok(ctx, thi_vfit_evaluate(&s.fit, &thi_all_rows, (thi_wanted){.step = true}));
        assert_ok(ctx, thi_vfit_expect_again(&s.fit));
        /* The slope of a log scale is -N where it is far too large; a few hundredths off, the same share of that. */
        assert_true(fabs(s.fit.vector.bar[last]) < 0.1 * N);
        close_setting(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_again), cmocka_unit_test(test_first)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

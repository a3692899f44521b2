/*
 * (E, g, h) from log densities alone by designs: exact where the density is a polynomial that their terms span,
 * whatever the signs and the turn that a row sees; elsewhere the error of several latents is a fraction of that of the
 * paper's control variate, and grows with their number no faster than they are coupled.
 */
#include "testing_context.h"

#include "expect/integrate.h"

enum { ROWS = 96, MOST = 16 };

typedef struct table {
    double y[ROWS * MOST], mu[ROWS * MOST], v[ROWS * MOST], E[ROWS], g[ROWS * MOST], h[ROWS * MOST], dphi[ROWS * MOST];
} table;

static double normal(int64_t i, uint64_t index)
{
    return thi_random_normal((thi_stream){7, THI_RANDOM_DEMO, (uint64_t)i}, index);
}

static void fill(table *t, const thiele_likelihood *lik, double spread)
{
    for (int64_t i = 0; i < ROWS * lik->outputs; i++) {
        t->y[i] = lik->classes > 0 ? (double)(i % lik->classes) : normal(i, 0);
    }
    for (int64_t i = 0; i < ROWS * lik->latents; i++) {
        t->mu[i] = 0.7 * normal(i, 1);
        t->v[i] = spread * exp(0.5 * normal(i, 2));
    }
}

static void ask(table *t, const thiele_likelihood *lik, const char *method)
{
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, method, ROWS, t->y, t->mu, t->v, t->E, t->g, t->h,
                                            lik->parameters > 0 ? t->dphi : NULL));
}

/* The largest difference, relative to the largest number. */
static double error_of(int64_t n, const double *a, const double *b)
{
    double most = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        size = fmax(size, fabs(b[i]));
    }
    return most / size;
}

/*
 * Networks of two nodes are quartics of 6, 10 and 16 latents. Of the latter there are 2,892 terms of the kinds that
 * occur in one, and 211 of latents that occur together.
 */
static void test_exact(void **state)
{
    (void)state;
    static const char *const methods[] = {"mc:500", "qmc:512", "mc:2000"};
    static const int outputs[] = {2, 4, 7};
    static table want, got;
    for (int k = 0; k < 9; k++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "gprn(nodes=2, noise=0.05)", outputs[k / 3], 0));
        fill(&want, lik, 0.3);
        ask(&want, lik, "closed");
        got = want;
        ask(&got, lik, methods[k % 3]);
        /* Sums of 500 terms with weights of some tens, in eps. */
        assert_true(error_of(ROWS, got.E, want.E) < 1e-11);
        assert_true(error_of(ROWS * lik->latents, got.g, want.g) < 1e-10);
        assert_true(error_of(ROWS * lik->latents, got.h, want.h) < 1e-10);
        assert_true(error_of(ROWS * lik->outputs, got.dphi, want.dphi) < 1e-8); /* differences in phi, or derivatives */
        thiele_likelihood_destroy(lik);
    }
}

/* A quartic of two latents, but where the first is large. */
static double kinked(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double rest = y[0] - f[0] * f[1];
    return -0.5 * rest * rest - fmax(0.0, f[0] - 20.0);
}

/* What fewer points are enough for has them; a row that has more to say, among others that do not, has all. */
static void test_brief(void **state)
{
    (void)state;
    static const thiele_likelihood_spec spec = {.size = sizeof spec,
                                                .version = THIELE_LIKELIHOOD_VERSION,
                                                .name = "kinked",
                                                .outputs = 1,
                                                .latents = 2,
                                                .log_density = kinked};
    thiele_likelihood *lik = NULL;
    thi_expect expect;
    double y[] = {0.3, 0.3}, mu[] = {1.0, 0.5, 20.0, 0.1}, v[] = {0.2, 0.3, 1.0, 0.1}, E[2], g[4], h[4];
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, "mc:500"));
    assert_ok(ctx, thi_expect_block(&expect, ctx, 0, 1, y, mu, v, E, g, h, NULL));
    assert_int_equal(expect.space->brief_points, 100);
    assert_true(expect.space->designs[0].pairs == 0 && expect.space->brief[0].pairs == 50);
    /* E (y - f0 f1)^2 = y^2 - 2 y mu0 mu1 + (mu0^2 + v0)(mu1^2 + v1) */
    assert_near(E[0], -0.5 * (0.09 - 0.3 + 1.2 * 0.55), 1e-12, 0);
    assert_ok(ctx, thi_expect_block(&expect, ctx, 0, 2, y, mu, v, E, g, h, NULL));
    assert_int_equal(expect.space->designs[0].pairs, 250);
    /* E max(0, z) = 1/sqrt(2 pi), a bend in the middle of the draws. */
    assert_near(E[1], -0.5 * (0.09 - 1.2 + 401.0 * 0.11) - 0.3989422804014327, 0, 0.02);
    assert_near(g[2], 0.3 * 0.1 - 20.0 * 0.11 - 0.5, 0, 0.05);
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

/* One output that sees two nodes of three, whose parameter is zero to begin with; the others are by themselves. */
static double some_together(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double rest = y[0] - f[0] - phi[0] * f[1] * f[2];
    return -0.5 * rest * rest - 0.5 * f[3] * f[3];
}

static void test_couplings(void **state)
{
    (void)state;
    static const thiele_likelihood_parameter weight = {"weight", 0.0, 0};
    static const thiele_likelihood_spec spec = {.size = sizeof spec,
                                                .version = THIELE_LIKELIHOOD_VERSION,
                                                .name = "some-together",
                                                .outputs = 1,
                                                .latents = 4,
                                                .parameters = 1,
                                                .parameter = &weight,
                                                .log_density = some_together};
    static const bool want[] = {0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0};
    thiele_likelihood *lik = NULL;
    thi_expect expect;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, "mc:500"));
    assert_ok(ctx, thi_couplings_find(expect.space, ctx));
    assert_true(expect.space->apart);
    assert_memory_equal(expect.space->coupled, want, sizeof want);
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "softmax", 1, 5));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, "mc:500"));
    assert_ok(ctx, thi_couplings_find(expect.space, ctx));
    assert_false(expect.space->apart);
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

typedef struct size {
    double E, g, h;
} size;

/* Root mean squares of the errors. */
static size errors(const thiele_likelihood *lik, const table *want, const char *method, bool control)
{
    static table got;
    thi_expect expect;
    size sum = {0, 0, 0};
    int64_t Q = lik->latents;
    got = *want;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, method));
    expect.reparameterised = false;
    expect.antithetic = !control;
    assert_ok(ctx, thi_expect_block(&expect, ctx, 0, ROWS, got.y, got.mu, got.v, got.E, got.g, got.h, NULL));
    thi_expect_close(&expect);
    for (int64_t i = 0; i < ROWS * Q; i++) {
        double dE = got.E[i / Q] - want->E[i / Q], dg = got.g[i] - want->g[i], dh = got.h[i] - want->h[i];
        sum.E += dE * dE;
        sum.g += dg * dg;
        sum.h += dh * dh;
    }
    double n = (double)(ROWS * Q);
    return (size){sqrt(sum.E / n), sqrt(sum.g / n), sqrt(sum.h / n)};
}

static void test_against_control(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int outputs, classes;
        double share; /* of the error that the control variate leaves */
    } cases[] = {{"heteroscedastic", 1, 0, 0.02}, {"softmax", 1, 3, 0.01},       {"softmax", 1, 10, 0.05},
                 {"gprn(nodes=2)", 2, 0, 1e-6},   {"gprn(nodes=2)", 4, 0, 1e-6}, {"gprn(nodes=2)", 7, 0, 1e-6}};
    static table want;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[i].text, cases[i].outputs, cases[i].classes));
        fill(&want, lik, 0.1);
        ask(&want, lik, "closed");
        size old = errors(lik, &want, "mc:500", true), mc = errors(lik, &want, "mc:500", false),
             qmc = errors(lik, &want, "qmc:512", false);
        print_message("%-16s %2d latents: control %.1e %.1e %.1e, mc:500 %.1e %.1e %.1e, qmc:512 %.1e %.1e %.1e\n",
                      cases[i].text, lik->latents, old.E, old.g, old.h, mc.E, mc.g, mc.h, qmc.E, qmc.g, qmc.h);
        double share = cases[i].share;
        assert_true(mc.E < share * old.E && mc.g < share * old.g && mc.h < share * old.h);
        assert_true(qmc.E < share * old.E && qmc.g < share * old.g && qmc.h < share * old.h);
        thiele_likelihood_destroy(lik);
    }
}

/* The weights: exact for the scores themselves, in pairs of opposite points. */
static void test_weights(void **state)
{
    (void)state;
    for (int Q = 1; Q <= 12; Q += 11) {
        thi_design d = {0};
        assert_ok(ctx, thi_design_make(&d, ctx, &(thi_design_plan){.seed = 3, .quasi = Q == 1, .points = 400, .Q = Q}));
        assert_int_equal(d.pairs, 200);
        double one = 0, half = 0, square = 0, line = 0, cross = 0;
        for (int64_t k = 0; k < d.pairs; k++) {
            double z = d.z[k * Q];
            one += d.even[k];
            half += 2 * d.half[k];
            square += d.even[d.pairs + k] * (z * z - 1) / sqrt(2);
            line += d.odd[k] * z;
            cross += d.even[k] * z * d.z[k * Q + Q - 1];
        }
        assert_near(one, 1, 1e-12, 0);
        assert_near(half, 1, 1e-12, 0);
        assert_near(square, 1, 1e-12, 0);
        assert_near(line, 1, 1e-12, 0);
        assert_near(cross, Q == 1 ? 1 : 0, 0, 1e-12);
        thi_design_clear(&d);
    }
    assert_false(thi_designs_fit(14, 2));
    assert_true(thi_designs_fit(15, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_exact),
                                       cmocka_unit_test(test_couplings), cmocka_unit_test(test_brief),
                                       cmocka_unit_test(test_against_control)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

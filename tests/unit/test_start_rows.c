/*
 * First guesses where signs are open: of a network in closed form and of the same density as a user's own, which must
 * find the loadings that the rows were made with, up to what no row can tell; guesses of rows beside given means; and
 * densities of which nothing is open.
 */
#include "testing_context.h"

#include "fit/start.h"

enum { N = 200, P = 3, Q = 4 };
static const double loading[P] = {1.0, -2.0, 0.5};

static double normal(int64_t i, uint64_t index)
{
    return thi_random_normal((thi_stream){11, THI_RANDOM_DEMO, (uint64_t)i}, index);
}

/* One node, a weight for each output; the noise has a variance of 0.01. */
static double network(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double sum = 0.0;
    for (int p = 0; p < P; p++) {
        double rest = y[p] - f[0] * f[1 + p];
        sum += isnan(rest) ? 0.0 : -50.0 * rest * rest + 0.5 * log(100.0 / (2.0 * M_PI));
    }
    return sum;
}

static const thiele_likelihood_spec own = {.size = sizeof own,
                                           .version = THIELE_LIKELIHOOD_VERSION,
                                           .name = "own-network",
                                           .outputs = P,
                                           .latents = Q,
                                           .log_density = network};

/* One value is missing: rows need not be whole. */
static void fill(thi_rows *rows)
{
    assert_ok(ctx, thi_rows_alloc(rows, ctx, N, 1, P, (thi_aside){0}));
    for (int64_t i = 0; i < N; i++) {
        rows->X[i] = 0.01 * (double)i;
        for (int p = 0; p < P; p++) {
            rows->y[i * P + p] = loading[p] * normal(i, 0) + 0.1 * normal(i, 1 + (uint64_t)p);
        }
    }
    rows->y[P + 1] = NAN;
}

static void start(thiele_likelihood *lik, const thi_rows *rows, const char *mean, double *c, double *s2, bool *found)
{
    thi_spec spec = {.lik = lik};
    thi_columns columns = {.dims = 1, .columns = 1};
    assert_ok(ctx, thi_latents_make(&spec.latents, ctx, "se", mean, &columns, lik->latents, false));
    assert_ok(ctx, thi_start_rows(ctx, &spec, rows, c, s2, found));
    thi_latents_clear(&spec.latents);
}

/* E[(f w_p) (f w_r)] under the means and variances of independent latents. */
static double product(const double *c, const double *s2, int p, int r)
{
    double f2 = c[0] * c[0] + s2[0];
    return f2 * (c[1 + p] * c[1 + r] + (p == r ? s2[1 + p] : 0.0));
}

static void loadings_are_found(void **state)
{
    (void)state;
    thi_rows rows = {0};
    thiele_likelihood *lik[2] = {NULL, NULL};
    double c[2][Q], s2[2][Q];
    bool found;
    fill(&rows);
    assert_ok(ctx, thiele_likelihood_parse(&lik[0], ctx, "gprn(nodes=1, noise=0.01)", P, 0));
    assert_ok(ctx, thiele_likelihood_custom(&lik[1], ctx, &own));
    for (int k = 0; k < 2; k++) {
        start(lik[k], &rows, "constant", c[k], s2[k], &found);
        assert_true(found);
        for (int p = 0; p < P; p++) {
            for (int r = 0; r < P; r++) {
                /* 200 draws of a normal have a second moment that is good to a tenth. */
                assert_near(product(c[k], s2[k], p, r), loading[p] * loading[r], 0.2, 0.02);
            }
        }
        start(lik[k], &rows, "zero", c[k], s2[k], &found);
        assert_false(found); /* a start without means would have none */
        thiele_likelihood_destroy(lik[k]);
    }
    thi_rows_free(&rows);
}

/* Both are the same function of the rows: the closed form, and draws that are exact for a quartic. */
static void draws_find_the_same(void **state)
{
    (void)state;
    thi_rows rows = {0};
    thiele_likelihood *lik[2] = {NULL, NULL};
    double c[2][Q], s2[2][Q];
    bool found;
    fill(&rows);
    assert_ok(ctx, thiele_likelihood_parse(&lik[0], ctx, "gprn(nodes=1, noise=0.01)", P, 0));
    assert_ok(ctx, thiele_likelihood_custom(&lik[1], ctx, &own));
    for (int k = 0; k < 2; k++) {
        start(lik[k], &rows, "constant", c[k], s2[k], &found);
        thiele_likelihood_destroy(lik[k]);
    }
    for (int q = 0; q < Q; q++) {
        assert_near(c[1][q], c[0][q], 1e-6, 1e-6);
        assert_near(s2[1][q], s2[0][q], 1e-6, 1e-6);
    }
    thi_rows_free(&rows);
}

/* Beside means that say the signs, a row's node follows its outputs; without them the guess is the density's own. */
static void rows_follow_means(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    double y[P] = {0.7, -1.4, 0.35}, prior[Q] = {0.0, 1.0, -2.0, 0.5}, f[Q], v[Q] = {1.0, 0.01, 0.01, 0.01};
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &own));
    thi_first_guess(lik, y, prior, f, v);
    assert_near(f[0], 0.7, 0.01, 0);
    for (int p = 0; p < P; p++) {
        assert_near(f[1 + p], loading[p], 0.01, 0);
        assert_true(v[1 + p] <= 0.01);
    }
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loadings_are_found), cmocka_unit_test(draws_find_the_same),
                                       cmocka_unit_test(rows_follow_means)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/*
 * How a user's own log densities of many points are called: thousands of points a call, rows together, for expectations
 * and for log predictive densities; and what comes out is what the same density gives row by row.
 */
#include <string.h>

#include "expect/parallel.h"
#include "likelihood/likelihood.h"
#include "testing.h"

#include "thiele/thiele.h"

enum { N = 500 };
static struct {
    long calls, points;
} seen;

static double student(double y, double f, double scale)
{
    double r = (y - f) / scale;
    return -log(scale) - 2.5 * log1p(0.25 * r * r) - 0.9808292530117262; /* log of 8/3 */
}

static double one(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    return student(*y, *f, *phi);
}

static void many(int64_t n, const double *y, const double *f, const double *phi, double *out, void *user)
{
    (void)user;
    seen.calls++;
    seen.points += n;
    for (int64_t i = 0; i < n; i++) {
        out[i] = student(y[i], f[i], *phi);
    }
}

static const thiele_likelihood_parameter scale = {"scale", 0.3, 1};

static thiele_likelihood *make(thiele_context *ctx, thiele_likelihood_spec *spec, bool batched)
{
    thiele_likelihood *lik = NULL;
    *spec = (thiele_likelihood_spec)THIELE_LIKELIHOOD_SPEC_INIT;
    spec->name = "student";
    spec->outputs = spec->latents = spec->parameters = 1;
    spec->parameter = &scale;
    spec->log_density = batched ? NULL : one;
    spec->log_densities = batched ? many : NULL;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, spec));
    return lik;
}

static thiele_status score(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    double *const *v = arg; /* y, mu, v, out */
    return thi_log_predictive_block(expect, ctx, n, v[0] + row, v[1] + row, v[2] + row, v[3] + row);
}

static void test_calls(void **state)
{
    (void)state;
    static double y[N], mu[N], v[N], E[2][N], g[2][N], h[2][N], dphi[2][N], log_p[2][N];
    thiele_context *ctx = test_context(2);
    test_normals(N, 1, y);
    test_normals(N, 2, mu);
    for (int i = 0; i < N; i++) {
        mu[i] = y[i] + 0.3 * mu[i];
        v[i] = 0.01 + 0.0002 * i;
    }
    for (int batched = 0; batched < 2; batched++) {
        thiele_likelihood_spec spec;
        thiele_likelihood *lik = make(ctx, &spec, batched == 1);
        double *const at[] = {y, mu, v, log_p[batched]};
        memset(&seen, 0, sizeof seen);
        assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, N, y, mu, v, E[batched], g[batched], h[batched],
                                                dphi[batched]));
        assert_true(batched == 0 || seen.points > 500 * seen.calls);
        memset(&seen, 0, sizeof seen);
        assert_ok(ctx, thi_expect_rows(lik, ctx, NULL, N, score, at));
        assert_true(batched == 0 || seen.points > 200 * seen.calls);
        thiele_likelihood_destroy(lik);
    }
    for (int i = 0; i < N; i++) {
        assert_true(E[0][i] == E[1][i] && g[0][i] == g[1][i] && h[0][i] == h[1][i] && dphi[0][i] == dphi[1][i]);
        assert_true(log_p[0][i] == log_p[1][i]);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

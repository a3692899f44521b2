/*
 * Diagnostics of chains: every number against sums written out, independent draws, autoregressive chains whose
 * autocorrelation is known, chains that disagree, stand still or alternate. Stored numbers are an oracle case.
 */
#include "testing_context.h"

#include "fit/diagnostics.h"

enum { CHAINS = 4, DRAWS = 20000 };

/* x_i = rho x_{i-1} + sqrt(1 - rho^2) e_i, started in its stationary law, so that corr(x_i, x_{i+t}) = rho^t. */
static void autoregressive(int64_t n, uint64_t row, double rho, double *x)
{
    test_normals(n, row, x);
    for (int64_t i = 1; i < n; i++) {
        x[i] = rho * x[i - 1] + sqrt(1.0 - rho * rho) * x[i];
    }
}

static double *chains(int m, int64_t n, double rho)
{
    double *x = malloc((size_t)(m * n) * sizeof *x);
    for (int j = 0; j < m; j++) {
        autoregressive(n, 10 + (uint64_t)j, rho, x + j * n);
    }
    return x;
}

/* The definitions, each written as it is read, with no regard for cost. */
static double mean_of(int64_t n, const double *x)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] / (double)n;
    }
    return sum;
}

static double covariance(int64_t n, const double *x, const double *y)
{
    double a = mean_of(n, x), b = mean_of(n, y), sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += (x[i] - a) * (y[i] - b) / (double)(n - 1);
    }
    return sum;
}

static double lagged(int64_t n, const double *x, int64_t t)
{
    double m = mean_of(n, x), above = 0.0, below = 0.0;
    for (int64_t i = 0; i < n; i++) {
        above += i + t < n ? (x[i] - m) * (x[i + t] - m) : 0.0;
        below += (x[i] - m) * (x[i] - m);
    }
    return above / below;
}

static void as_defined(void **state)
{
    (void)state;
    enum { M = 3, N = 60 };
    double *x = chains(M, N, 0.6), mean[M], square[M], variance[M], ess[M];
    x[N] += 2.0;
    for (int j = 0; j < M; j++) {
        mean[j] = mean_of(N, x + j * N);
        square[j] = mean[j] * mean[j];
        variance[j] = covariance(N, x + j * N, x + j * N);
    }
    double n = N, W = mean_of(M, variance), B = n * covariance(M, mean, mean);
    double plus = (n - 1.0) / n * W + B / n, V = plus + B / (M * n);
    double var_V = pow((n - 1.0) / n, 2.0) / M * covariance(M, variance, variance) +
                   pow((M + 1.0) / (M * n), 2.0) * 2.0 / (M - 1.0) * B * B +
                   2.0 * (M + 1.0) * (n - 1.0) / (M * n * n) * n / M *
                       (covariance(M, variance, square) - 2.0 * mean_of(M, mean) * covariance(M, variance, mean));
    double df = 2.0 * V * V / var_V, together = -1.0, each[M];
    bool on[M + 1] = {true, true, true, true};
    for (int j = 0; j < M; j++) {
        each[j] = -1.0;
    }
    for (int64_t t = 0; t < N; t += 2) {
        double pair = 2.0 - 2.0 * W / plus;
        for (int j = 0; j < M; j++) {
            double own = lagged(N, x + j * N, t) + lagged(N, x + j * N, t + 1);
            on[j] = on[j] && own > 0.0;
            each[j] += on[j] ? 2.0 * own : 0.0;
            pair += variance[j] * own / M / plus;
        }
        on[M] = on[M] && pair > 0.0;
        together += on[M] ? 2.0 * pair : 0.0;
    }
    double lag1 = (lagged(N, x, 1) + lagged(N, x + N, 1) + lagged(N, x + 2 * N, 1)) / M;
    thi_diagnosis d;
    thi_diagnose(M, N, x, &d, ess);
    const double got[] = {d.within, d.between, d.pooled, d.spread, d.df, d.lag1, ess[0], ess[1], ess[2]};
    const double want[] = {W, B, plus, V, df, lag1, n / each[0], n / each[1], n / each[2]};
    assert_all_near(got, want, 9, 1e-11, 0.0);
    assert_near(d.rhat, sqrt(V / W), 1e-12, 0.0);
    assert_near(d.rhat_plain, sqrt(plus / W), 1e-12, 0.0);
    assert_near(d.rhat_corrected, sqrt((df + 3.0) / (df + 1.0) * V / W), 1e-12, 0.0);
    assert_near(d.ess, ess[0] + ess[1] + ess[2], 1e-14, 0.0);
    assert_near(d.ess_multichain, M * n / together, 1e-11, 0.0);
    free(x);
}

/* Autoregressive chains: lag 1 is rho, and tau (1 + rho)/(1 - rho), within what so many draws tell of them. */
static void known_autocorrelation(void **state)
{
    (void)state;
    static const double rhos[] = {0.0, 0.3, 0.9, -0.3};
    for (size_t k = 0; k < sizeof rhos / sizeof *rhos; k++) {
        double rho = rhos[k], *x = chains(CHAINS, DRAWS, rho), want = CHAINS * DRAWS * (1.0 - rho) / (1.0 + rho);
        thi_diagnosis d;
        thi_diagnose(CHAINS, DRAWS, x, &d, NULL);
        /* The deviation of an estimated rho_1 is sqrt((1 - rho^2)/draws) to first order; 4 of them. */
        assert_near(d.lag1, rho, 0.0, 4.0 * sqrt((1.0 - rho * rho) / (CHAINS * DRAWS)) + 1e-4);
        assert_near(thi_autocorrelation(DRAWS, x, 3), rho * rho * rho, 0.0, 0.05);
        assert_near(d.ess, want, 0.1, 0.0);
        assert_near(d.ess_multichain, want, 0.1, 0.0);
        assert_near(d.rhat, 1.0, 0.0, 0.005);
        assert_true(d.rhat >= d.rhat_plain && d.rhat_corrected >= d.rhat);
        free(x);
    }
}

/* A shift and a scale change no ratio. */
static void units(void **state)
{
    (void)state;
    enum { N = 500 };
    double *x = chains(CHAINS, N, 0.5), *y = chains(CHAINS, N, 0.5);
    for (int64_t i = 0; i < CHAINS * N; i++) {
        y[i] = 1e6 + 250.0 * y[i];
    }
    thi_diagnosis a, b;
    thi_diagnose(CHAINS, N, x, &a, NULL);
    thi_diagnose(CHAINS, N, y, &b, NULL);
    const double got[] = {b.rhat, b.rhat_plain, b.lag1, b.ess, b.ess_multichain};
    const double want[] = {a.rhat, a.rhat_plain, a.lag1, a.ess, a.ess_multichain};
    assert_all_near(got, want, 5, 1e-7, 0.0);
    assert_near(b.within, 62500.0 * a.within, 1e-9, 0.0);
    free(x);
    free(y);
}

static void disagreement(void **state)
{
    (void)state;
    enum { N = 2000 };
    double *x = chains(CHAINS, N, 0.0), *one = chains(1, N, 0.0);
    thi_diagnosis d, before;
    thi_diagnose(CHAINS, N, x, &before, NULL);
    for (int64_t i = 0; i < N; i++) {
        x[i] += 3.0;
        one[i] += i < N / 2 ? 3.0 : 0.0;
    }
    thi_diagnose(CHAINS, N, x, &d, NULL);
    assert_true(d.rhat > 1.5);
    assert_near(d.ess, before.ess, 1e-9, 0.0); /* each chain by itself knows nothing of it */
    assert_true(d.ess_multichain < 10.0);      /* all together do */
    thi_diagnose(1, N, one, &d, NULL);
    assert_true(d.rhat > 1.5); /* of the halves */
    assert_true(isnan(d.df));
    free(x);
    free(one);
}

static void odd_chains(void **state)
{
    (void)state;
    enum { N = 1000 };
    double *x = calloc(2 * N, sizeof *x), ess[2];
    thi_diagnosis d;
    for (int i = 0; i < 2 * N; i++) {
        x[i] = 0.1;
    }
    thi_diagnose(2, N, x, &d, ess);
    assert_near(d.rhat, 1.0, 0.0, 0.0);
    assert_near(d.lag1, 1.0, 0.0, 0.0);
    assert_near(ess[0], 1.0, 0.0, 0.0);
    for (int i = 0; i < 2 * N; i++) {
        x[i] = i < N ? 0.1 : 0.3;
    }
    thi_diagnose(2, N, x, &d, NULL);
    assert_true(isinf(d.rhat));
    /* Draws that alternate are worth more than independent ones, but not infinitely many. */
    for (int i = 0; i < 2 * N; i++) {
        x[i] = i % 2 ? 1.0 : -1.0;
    }
    thi_diagnose(2, N, x, &d, ess);
    assert_near(ess[0], 3.0 * N, 1e-12, 0.0);
    free(x);
}

static void many(void **state)
{
    (void)state;
    thi_diagnosis d[4] = {{.rhat = 1.0, .lag1 = 0.1, .ess_multichain = 30.0},
                          {.rhat = 1.2, .lag1 = 0.2, .ess_multichain = 10.0},
                          {.rhat = 1.04, .lag1 = 0.3, .ess_multichain = 40.0},
                          {.rhat = 1.06, .lag1 = 0.4, .ess_multichain = 20.0}};
    thi_mixing m;
    thi_mixing_of(4, d, &m);
    const double got[] = {m.rhat, m.share, m.lag1, m.ess_least, m.ess_median};
    const double want[] = {1.2, 0.5, 0.25, 10.0, 25.0};
    assert_all_near(got, want, 5, 1e-14, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_defined), cmocka_unit_test(known_autocorrelation),
        cmocka_unit_test(units),      cmocka_unit_test(disagreement),
        cmocka_unit_test(odd_chains), cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

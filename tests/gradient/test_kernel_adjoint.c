/*
 * Kernels where digits are at stake (tiles, rows that nearly meet, far offsets, outliers, far periods), and means. What
 * every kernel must do is in test_kernels.c.
 */
#include "testing.h"

#include "kernel/kernel.h"
#include "kernel/mean.h"

enum { D = 3 };

/* Values away from 1, so that no derivative hides behind a symmetry. */
static void stir(thiele_kernel *kernel)
{
    double theta[64];
    thiele_kernel_get(kernel, theta);
    for (int p = 0; p < thiele_kernel_parameters(kernel); p++) {
        theta[p] += 0.2 * sin(1.0 + p);
    }
    thiele_kernel_set(kernel, theta);
}

static double value(const thiele_kernel *kernel, thiele_context *ctx, int n, const double *X, int n2, const double *X2,
                    const double *Kbar, double *K)
{
    int cols = X2 == NULL ? n : n2;
    assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, n, X, n2, X2, K));
    double sum = 0.0;
    for (int i = 0; i < n * cols; i++) {
        sum += Kbar[i] * K[i];
    }
    return sum;
}

/* Central differences with h = 1e-5 are good to about h^2 and eps/h: 1e-9 of the size of the terms. */
static void check_kernel(thiele_context *ctx, const char *text, int n, int n2, bool symmetric)
{
    thiele_kernel *kernel = NULL;
    int cols = symmetric ? n : n2;
    double *X = calloc((size_t)(D * n), sizeof *X);
    double *X2 = calloc((size_t)(D * cols), sizeof *X2);
    double *Kbar = calloc((size_t)(n * cols), sizeof *Kbar);
    double *K = calloc((size_t)(n * cols), sizeof *K);
    double theta[64];
    double theta_bar[64] = {0};
    double *X2bar = calloc((size_t)(D * cols), sizeof *X2bar);
    const double *second = symmetric ? NULL : X2;
    double *moved = symmetric ? X : X2;
    test_normals(D * n, 1, X);
    test_normals(D * cols, 2, X2);
    test_normals(n * cols, 3, Kbar);
    for (int i = 0; symmetric && i < n; i++) {
        for (int j = 0; j < i; j++) {
            Kbar[j + i * n] = Kbar[i + j * n];
        }
    }
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, text, D, NULL));
    stir(kernel);
    assert_ok(ctx, thiele_kernel_adjoint(kernel, ctx, n, X, n2, second, Kbar, theta_bar, X2bar));
    double size = n * cols;
    thiele_kernel_get(kernel, theta);
    for (int p = 0; p < thiele_kernel_parameters(kernel); p++) {
        double h = 1e-5;
        double kept = theta[p];
        theta[p] = kept + h;
        thiele_kernel_set(kernel, theta);
        double up = value(kernel, ctx, n, X, n2, second, Kbar, K);
        theta[p] = kept - h;
        thiele_kernel_set(kernel, theta);
        double down = value(kernel, ctx, n, X, n2, second, Kbar, K);
        theta[p] = kept;
        thiele_kernel_set(kernel, theta);
        assert_near(theta_bar[p], (up - down) / (2 * h), 1e-6, 1e-8 * size);
    }
    for (int i = 0; i < D * cols; i += 1 + D * cols / 40) {
        double h = 1e-5;
        double kept = moved[i];
        moved[i] = kept + h;
        double up = value(kernel, ctx, n, X, n2, second, Kbar, K);
        moved[i] = kept - h;
        double down = value(kernel, ctx, n, X, n2, second, Kbar, K);
        moved[i] = kept;
        assert_near(X2bar[i], (up - down) / (2 * h), 1e-6, 1e-8 * size);
    }
    thiele_kernel_destroy(kernel);
    free(X);
    free(X2);
    free(Kbar);
    free(K);
    free(X2bar);
}

/* Sizes that cross tile borders in both directions. */
static void test_tiles(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    check_kernel(ctx, "se(ard)", THI_TILE_ROWS + 3, THI_TILE_COLS + 2, false);
    check_kernel(ctx, "matern52(ard) + linear*periodic(p~7, dims=1)", THI_TILE_ROWS + 3, THI_TILE_COLS + 2, false);
    check_kernel(ctx, "(se + constant)*(matern32(dims=2) + linear(dims=1))*rq + white", THI_TILE_ROWS + 5, 0, true);
    thiele_context_destroy(ctx);
}

/* Equal and nearly equal rows far from the origin keep their digits: 1e8 away, h = 2^-20 apart. */
static void test_cancellation(void **state)
{
    (void)state;
    enum { N = 70 };
    thiele_context *ctx = test_context(1);
    static double X[D * N], K[N * N];
    thiele_kernel *kernel = NULL;
    double step = 0x1p-20;
    for (int i = 0; i < N; i++) {
        for (int d = 0; d < D; d++) {
            X[i * D + d] = 0x1p26 + step * (i % 35) * (d == 1);
        }
    }
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "matern12", D, NULL));
    assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, K));
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            double want = exp(-step * abs(i % 35 - j % 35));
            assert_near(K[i + j * N], want, 4e-16, 0.0);
        }
    }
    thiele_kernel_destroy(kernel);
    thiele_context_destroy(ctx);
}

/* Rows that nearly meet: the adjoint in the length-scale is a sum of W d^2 that must not be lost among terms of size W.
 */
static void test_near_adjoint(void **state)
{
    (void)state;
    enum { N = 40 };
    thiele_context *ctx = test_context(1);
    static double X[D * N], Kbar[N * N];
    test_normals(D * N / 2, 12, X);
    test_normals(N * N, 13, Kbar);
    for (int i = 0; i < N / 2; i++) {
        for (int d = 0; d < D; d++) {
            X[(i + N / 2) * D + d] = X[i * D + d] + 1e-6 * sin(i + d);
        }
    }
    static const char *const texts[] = {"matern12(ard)", "matern32(ard)", "se(ard)", "rq(ard)"};
    for (int k = 0; k < 4; k++) {
        thiele_kernel *kernel = NULL;
        double theta_bar[8] = {0};
        double X2bar[D * N] = {0};
        assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, texts[k], D, NULL));
        assert_ok(ctx, thiele_kernel_adjoint(kernel, ctx, N, X, N, X, Kbar, theta_bar, X2bar));
        for (int d = 0; d < D; d++) {
            double want = 0.0;
            for (int j = 0; j < N; j++) {
                double slope = 0.0;
                for (int i = 0; i < N; i++) {
                    double r2 = 0.0;
                    for (int e = 0; e < D; e++) {
                        r2 += (X[i * D + e] - X[j * D + e]) * (X[i * D + e] - X[j * D + e]);
                    }
                    double r = sqrt(r2);
                    double dk[4] = {r > 0.0 ? -0.5 * exp(-r) / r : 0.0, -1.5 * exp(-sqrt(3.0) * r),
                                    -0.5 * exp(-0.5 * r2), -0.5 / ((1.0 + 0.5 * r2) * (1.0 + 0.5 * r2))};
                    double difference = X[i * D + d] - X[j * D + d];
                    want -= 2.0 * Kbar[i + j * N] * dk[k] * difference * difference;
                    slope -= 2.0 * Kbar[i + j * N] * dk[k] * difference;
                }
                assert_near(X2bar[j * D + d], slope, 1e-12, 1e-12);
            }
            assert_near(theta_bar[d], want, 1e-12, 1e-12);
        }
        thiele_kernel_destroy(kernel);
    }
    thiele_context_destroy(ctx);
}

/* One row out of all proportion harms no other: k(far, near) = 0 and the rest is as without it. NaN is passed on. */
static void test_outlier(void **state)
{
    (void)state;
    enum { N = 10 };
    static const char *const texts[] = {"se", "matern12", "matern32", "matern52", "rq"};
    static const double far[] = {1e20, 1e160, 1e308, NAN};
    thiele_context *ctx = test_context(1);
    double X[D * N], K[N * N], without[N * N];
    test_normals(D * N, 14, X);
    for (int k = 0; k < 5; k++) {
        thiele_kernel *kernel = NULL;
        assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, texts[k], D, NULL));
        X[D * N - 1] = 0.0;
        assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, without));
        for (int v = 0; v < 4; v++) {
            X[D * N - 1] = far[v];
            assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, K));
            for (int j = 0; j < N - 1; j++) {
                assert_all_near(K + j * N, without + j * N, N - 1, 1e-13, 0.0);
                assert_true(isnan(far[v]) ? isnan(K[N - 1 + j * N]) : K[N - 1 + j * N] <= 1e-19);
            }
        }
        thiele_kernel_destroy(kernel);
    }
    thiele_context_destroy(ctx);
}

/* A period is a period wherever the data lie. */
static void test_far_periods(void **state)
{
    (void)state;
    enum { N = 20 };
    static const char *const texts[] = {"periodic(p=0.75)", "cosine(lengthscale=0.75)"};
    thiele_context *ctx = test_context(1);
    double X[N], K[N * N], near[N * N];
    for (int k = 0; k < 2; k++) {
        thiele_kernel *kernel = NULL;
        assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, texts[k], 1, NULL));
        for (int far = 0; far < 2; far++) {
            for (int i = 0; i < N; i++) {
                X[i] = i * 0x1p-6 + far * 0x3p30; /* whole periods away, exactly */
            }
            assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, far ? K : near));
        }
        assert_all_near(K, near, N * N, 1e-14, 1e-14);
        thiele_kernel_destroy(kernel);
    }
    thiele_context_destroy(ctx);
}

static void test_means(void **state)
{
    (void)state;
    enum { N = 11 };
    double X[D * N], mbar[N], m[N];
    test_normals(D * N, 10, X);
    test_normals(N, 11, mbar);
    for (int mean = 0; mean < THI_MEAN_COUNT; mean++) {
        double parameter[D + 1] = {0.3, -0.5, 0.7, 1.1};
        double parameter_bar[D + 1] = {0};
        double Xbar[D * N] = {0};
        thi_mean_pull((thi_mean)mean, parameter, N, D, X, mbar, parameter_bar, Xbar);
        /* Means are linear in parameters and inputs alike: differences are exact but for rounding. */
        for (int i = 0; i < thi_mean_parameters((thi_mean)mean, D) + D * N; i++) {
            int p = i - D * N;
            double *at = p < 0 ? &X[i] : &parameter[p];
            double want = 0.0;
            for (int sign = -1; sign <= 1; sign += 2) {
                *at += 0.5 * sign;
                thi_mean_fill((thi_mean)mean, parameter, N, D, X, m);
                for (int n = 0; n < N; n++) {
                    want += sign * mbar[n] * m[n];
                }
                *at -= 0.5 * sign;
            }
            assert_near(p < 0 ? Xbar[i] : parameter_bar[p], want, 1e-13, 1e-13);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),        cmocka_unit_test(test_means),   cmocka_unit_test(test_cancellation),
        cmocka_unit_test(test_near_adjoint), cmocka_unit_test(test_outlier), cmocka_unit_test(test_far_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The gradient of the collapsed bound at fixed sites, log Z + sum R_n(mu_n, v_n) for a made-up smooth R, in the logs of
 * the kernel's parameters, against central differences: sites positive, weak, zero and negative.
 */
#include "testing_context.h"

#include "posterior/dense.h"

enum { N = 45, D = 2, MOST = 8 };

typedef struct setting {
    thiele_kernel *kernel;
    thi_prior prior;
    thi_dense dense;
    double X[D * N], y[N], lambda[N], nu[N], mu[N], v[N];
} setting;

/* R_n = b_n (sin(mu + n) + mu v/3 + log(1 + v)), with its slopes; with_v = 0 leaves v out. */
static double residual(int n, double mu, double v, double with_v, double *g, double *h)
{
    double b = 0.4 + 0.3 * cos(n);
    *g = b * (cos(mu + n) + with_v * v / 3.0);
    *h = with_v * b * (mu / 3.0 + 1.0 / (1.0 + v));
    return b * (sin(mu + n) + with_v * (mu * v / 3.0 + log1p(v)));
}

static double bound(setting *s, double weight, double with_v, double *g, double *h)
{
    assert_ok(ctx, thi_dense_prior(&s->dense, ctx, &s->prior));
    assert_ok(ctx, thi_dense_condition(&s->dense, ctx, s->lambda, s->nu, s->mu, s->v));
    double sum = s->dense.log_z;
    for (int n = 0; n < N; n++) {
        sum += weight * residual(n, s->mu[n], s->v[n], with_v, &g[n], &h[n]);
        g[n] *= weight;
        h[n] *= weight;
    }
    return sum;
}

/* Steps of 1e-5 leave about 1e-10 of the terms' size, which is some hundreds. */
static void check(setting *s, double weight, double with_v)
{
    double theta[MOST], theta_bar[MOST] = {0}, g[N], h[N], step = 1e-5;
    bound(s, weight, with_v, g, h);
    assert_ok(ctx, thi_dense_gradient(&s->dense, ctx, &s->prior, weight != 0.0 ? g : NULL, with_v != 0.0 ? h : NULL,
                                      theta_bar));
    thiele_kernel_get(s->kernel, theta);
    for (int p = 0; p < thiele_kernel_parameters(s->kernel); p++) {
        double kept = theta[p], value[2];
        for (int side = 0; side < 2; side++) {
            theta[p] = kept + (side == 0 ? step : -step);
            thiele_kernel_set(s->kernel, theta);
            value[side] = bound(s, weight, with_v, g, h);
        }
        theta[p] = kept;
        thiele_kernel_set(s->kernel, theta);
        assert_near(theta_bar[p], (value[0] - value[1]) / (2.0 * step), 1e-6, 1e-6);
    }
}

static void open_setting(setting *s, const char *kernel)
{
    test_normals(D * N, 1, s->X);
    test_normals(N, 2, s->y);
    assert_ok(ctx, thiele_kernel_parse(&s->kernel, ctx, kernel, D, NULL));
    s->prior = (thi_prior){s->kernel, THI_MEAN_ZERO, NULL};
    assert_ok(ctx, thi_dense_open(&s->dense, ctx, N, s->X, NULL, NULL));
}

static void close_setting(setting *s)
{
    thi_dense_close(&s->dense);
    thiele_kernel_destroy(s->kernel);
}

/* Every third site weak or zero, and every `negative`-th (0: none) negative. */
static void make_sites(setting *s, int negative)
{
    for (int i = 0; i < N; i++) {
        s->lambda[i] = i % 3 == 0 ? 1e-4 * (i % 2) : 2.0 + sin(i);
        s->lambda[i] = negative > 0 && i % negative == 1 ? -0.15 : s->lambda[i];
        s->nu[i] = s->y[i] * (0.5 + fabs(s->lambda[i]));
    }
}

static void test_gradient(void **state)
{
    (void)state;
    static const char *const kernels[] = {"matern52(ard, lengthscale~[0.8,1.5])", "se(lengthscale~0.7) + white",
                                          "rq + linear(variance~0.3)"};
    static setting s;
    for (int k = 0; k < 3; k++) {
        open_setting(&s, kernels[k]);
        for (int negative = 0; negative <= 7; negative += 7) {
            make_sites(&s, negative);
            check(&s, 0.0, 0.0);
            check(&s, 1.0, 0.0);
            check(&s, 1.0, 1.0);
        }
        close_setting(&s);
    }
}

/* Over several blocks of columns. */
static void test_blocks(void **state)
{
    (void)state;
    enum { BIG = 530 };
    static double X[D * BIG], lambda[BIG], nu[BIG], mu[BIG], v[BIG], g[BIG], h[BIG], value[2];
    thiele_kernel *kernel;
    thi_dense dense;
    double theta[MOST], theta_bar[MOST] = {0}, step = 1e-5;
    test_normals(D * BIG, 5, X);
    test_normals(BIG, 6, nu);
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "matern32(lengthscale~0.4)", D, NULL));
    thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    assert_ok(ctx, thi_dense_open(&dense, ctx, BIG, X, NULL, NULL));
    for (int i = 0; i < BIG; i++) {
        lambda[i] = i % 17 == 3 ? -0.1 : 0.6 + 0.5 * sin(i);
    }
    thiele_kernel_get(kernel, theta);
    for (int side = 0; side < 3; side++) {
        theta[0] += side == 0 ? step : side == 1 ? -2.0 * step : step;
        thiele_kernel_set(kernel, theta);
        assert_ok(ctx, thi_dense_prior(&dense, ctx, &prior));
        assert_ok(ctx, thi_dense_condition(&dense, ctx, lambda, nu, mu, v));
        double sum = dense.log_z;
        for (int i = 0; i < BIG; i++) {
            sum += residual(i, mu[i], v[i], 1.0, &g[i], &h[i]);
        }
        if (side < 2) {
            value[side] = sum;
        }
    }
    assert_ok(ctx, thi_dense_gradient(&dense, ctx, &prior, g, h, theta_bar));
    assert_near(theta_bar[0], (value[0] - value[1]) / (2.0 * step), 1e-6, 1e-6);
    thi_dense_close(&dense);
    thiele_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradient), cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

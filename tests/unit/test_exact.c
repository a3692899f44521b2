/*
 * Exact regression against identities: gradients by differences, the evidence by the chain rule of its conditionals,
 * leave-one-out by leaving out, predictions at the training rows, joint covariance against marginals, one thread and
 * many.
 */
#include "testing.h"

#include "posterior/predictor.h"

enum { N = 150, D = 3, M = 40 };

typedef struct fixture {
    thiele_context *ctx;
    thiele_kernel *kernel;
    double X[D * N], y[N], Xtest[D * M];
    double mean_parameter[D + 1];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->ctx = test_context(2);
    test_normals(D * N, 1, f->X);
    test_normals(N, 2, f->y);
    test_normals(D * M, 3, f->Xtest);
    for (int i = 0; i < N; i++) {
        f->y[i] = sin(2.0 * f->X[i * D]) + 0.3 * f->X[i * D + 1] + 0.2 * f->y[i];
    }
    for (int d = 0; d <= D; d++) {
        f->mean_parameter[d] = 0.1 * (d + 1);
    }
    assert_ok(f->ctx, thiele_kernel_parse(&f->kernel, f->ctx,
                                          "matern52(ard, lengthscale~[0.8,1.5,2.5]) + linear(variance~0.2)", D, NULL));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    thiele_kernel_destroy(f->kernel);
    thiele_context_destroy(f->ctx);
    free(f);
    return 0;
}

static thi_prior prior_of(const fixture *f)
{
    return (thi_prior){f->kernel, THI_MEAN_LINEAR, f->mean_parameter};
}

static double evidence(fixture *f, int n, double noise)
{
    thi_exact exact;
    thi_prior prior = prior_of(f);
    assert_ok(f->ctx, thi_exact_open(&exact, f->ctx, n, f->X, f->y));
    assert_ok(f->ctx, thi_exact_condition(&exact, f->ctx, &prior, noise));
    double value = exact.log_marginal;
    thi_exact_close(&exact);
    return value;
}

static void test_gradient(void **state)
{
    fixture *f = *state;
    double noise = 0.07;
    double theta[16];
    double theta_bar[16] = {0};
    double mean_bar[D + 1] = {0};
    double noise_bar = 0.0;
    double h = 1e-5;
    thi_exact exact;
    thi_prior prior = prior_of(f);
    assert_ok(f->ctx, thi_exact_open(&exact, f->ctx, N, f->X, f->y));
    assert_ok(f->ctx, thi_exact_condition(&exact, f->ctx, &prior, noise));
    assert_ok(f->ctx, thi_exact_gradient(&exact, f->ctx, &prior, theta_bar, mean_bar, &noise_bar));
    thi_exact_close(&exact);
    thiele_kernel_get(f->kernel, theta);
    for (int p = 0; p < thiele_kernel_parameters(f->kernel); p++) {
        double kept = theta[p];
        theta[p] = kept + h;
        thiele_kernel_set(f->kernel, theta);
        double up = evidence(f, N, noise);
        theta[p] = kept - h;
        thiele_kernel_set(f->kernel, theta);
        double down = evidence(f, N, noise);
        theta[p] = kept;
        thiele_kernel_set(f->kernel, theta);
        assert_near(theta_bar[p], (up - down) / (2 * h), 1e-6, 1e-6);
    }
    for (int d = 0; d <= D; d++) {
        f->mean_parameter[d] += h;
        double up = evidence(f, N, noise);
        f->mean_parameter[d] -= 2 * h;
        double down = evidence(f, N, noise);
        f->mean_parameter[d] += h;
        assert_near(mean_bar[d], (up - down) / (2 * h), 1e-6, 1e-6);
    }
    double difference = evidence(f, N, noise * exp(h)) - evidence(f, N, noise * exp(-h));
    assert_near(noise_bar, difference / (2 * h), 1e-6, 1e-6);
}

/* Value and gradient of several targets with one prior are the sums of theirs. */
static void test_targets(void **state)
{
    fixture *f = *state;
    enum { TARGETS = 3, NUMBERS = 32 };
    double all[TARGETS * N], one[N], sums[NUMBERS] = {0}, together[NUMBERS] = {0};
    thi_prior prior = prior_of(f);
    test_normals(TARGETS * N, 8, all);
    for (int p = 0; p <= TARGETS; p++) {
        double *to = p < TARGETS ? sums : together;
        for (int i = 0; i < N && p < TARGETS; i++) {
            one[i] = all[i * TARGETS + p];
        }
        thi_exact_shape shape = {N, p < TARGETS ? 1 : TARGETS, f->X, p < TARGETS ? one : all, NULL};
        thi_exact exact;
        assert_ok(f->ctx, thi_exact_open_shape(&exact, f->ctx, &shape));
        assert_ok(f->ctx, thi_exact_condition(&exact, f->ctx, &prior, 0.3));
        to[0] += exact.log_marginal;
        assert_ok(f->ctx, thi_exact_gradient(&exact, f->ctx, &prior, to + 2, to + 20, to + 1));
        thi_exact_close(&exact);
    }
    for (int k = 0; k < NUMBERS; k++) {
        assert_near(together[k], sums[k], 1e-10, 1e-10);
    }
}

/* A predictor on the first n rows. */
static thi_predictor predictor_on(fixture *f, int n, const double *X, const double *y, double noise)
{
    thi_exact exact;
    thi_predictor predictor;
    thi_prior prior = prior_of(f);
    assert_ok(f->ctx, thi_exact_open(&exact, f->ctx, n, X, y));
    assert_ok(f->ctx, thi_exact_condition(&exact, f->ctx, &prior, noise));
    assert_ok(f->ctx, thi_predictor_freeze(&predictor, f->ctx, &exact, &prior));
    return predictor;
}

/* log p(y_1 .. y_n+1) - log p(y_1 .. y_n) = log p(y_n+1 | y_1 .. y_n) */
static void test_chain_rule(void **state)
{
    fixture *f = *state;
    double noise = 0.07;
    for (int n = 60; n < 140; n += 37) {
        thi_predictor predictor = predictor_on(f, n, f->X, f->y, noise);
        double mean;
        double variance;
        int64_t clipped = 0;
        assert_ok(f->ctx, thi_predictor_marginals(&predictor, f->ctx, 1, f->X + n * D, &mean, &variance, &clipped));
        variance += noise;
        double z = f->y[n] - mean;
        double conditional = -0.5 * (log(2.0 * M_PI * variance) + z * z / variance);
        assert_near(evidence(f, n + 1, noise) - evidence(f, n, noise), conditional, 1e-9, 1e-9);
        thi_predictor_clear(&predictor);
    }
}

static void test_leave_one_out(void **state)
{
    fixture *f = *state;
    double noise = 0.07;
    double mean[N];
    double variance[N];
    thi_exact exact;
    thi_prior prior = prior_of(f);
    assert_ok(f->ctx, thi_exact_open(&exact, f->ctx, N, f->X, f->y));
    assert_ok(f->ctx, thi_exact_condition(&exact, f->ctx, &prior, noise));
    assert_ok(f->ctx, thi_exact_loo(&exact, f->ctx, mean, variance));
    thi_exact_close(&exact);
    for (int left = 0; left < N; left += 29) {
        double X[D * N];
        double y[N];
        int kept = 0;
        for (int i = 0; i < N; i++) {
            if (i != left) {
                memcpy(X + kept * D, f->X + i * D, sizeof(double) * D);
                y[kept++] = f->y[i];
            }
        }
        thi_predictor predictor = predictor_on(f, kept, X, y, noise);
        double m;
        double v;
        int64_t clipped = 0;
        assert_ok(f->ctx, thi_predictor_marginals(&predictor, f->ctx, 1, f->X + left * D, &m, &v, &clipped));
        assert_near(mean[left], m, 1e-9, 1e-10);
        assert_near(variance[left], v + noise, 1e-9, 0.0);
        thi_predictor_clear(&predictor);
    }
}

/* Of several targets those of each by itself. */
static void test_leave_one_out_of_several(void **state)
{
    fixture *f = *state;
    enum { P = 3 };
    double noise = 0.07, y[P * N], mean[P * N], variance[N], alone_y[N], alone_mean[N], alone_variance[N];
    thi_exact exact = {0}, alone;
    thi_prior prior = prior_of(f);
    for (int k = 0; k < P * N; k++) {
        y[k] = f->y[k / P] * (1 + k % P) + sin(k % P * f->X[k / P * D]);
    }
    const thi_exact_shape shape = {N, P, f->X, y, NULL};
    assert_ok(f->ctx, thi_exact_open_shape(&exact, f->ctx, &shape));
    assert_ok(f->ctx, thi_exact_condition(&exact, f->ctx, &prior, noise));
    assert_ok(f->ctx, thi_exact_loo(&exact, f->ctx, mean, variance));
    thi_exact_close(&exact);
    for (int p = 0; p < P; p++) {
        for (int i = 0; i < N; i++) {
            alone_y[i] = y[i * P + p];
        }
        assert_ok(f->ctx, thi_exact_open(&alone, f->ctx, N, f->X, alone_y));
        assert_ok(f->ctx, thi_exact_condition(&alone, f->ctx, &prior, noise));
        assert_ok(f->ctx, thi_exact_loo(&alone, f->ctx, alone_mean, alone_variance));
        thi_exact_close(&alone);
        for (int i = 0; i < N; i++) {
            assert_near(mean[i * P + p], alone_mean[i], 1e-10, 1e-10);
            assert_near(variance[i], alone_variance[i], 1e-12, 0.0);
        }
    }
}

static void test_joint(void **state)
{
    fixture *f = *state;
    double mean[M], joint_mean[M], variance[M];
    static double covariance[M * M];
    int64_t clipped = 0;
    thi_predictor predictor = predictor_on(f, N, f->X, f->y, 0.07);
    assert_ok(f->ctx, thi_predictor_marginals(&predictor, f->ctx, M, f->Xtest, mean, variance, &clipped));
    assert_ok(f->ctx, thi_predictor_joint(&predictor, f->ctx, 0, M, f->Xtest, joint_mean, covariance));
    assert_all_near(joint_mean, mean, M, 1e-12, 1e-12);
    for (int i = 0; i < M; i++) {
        assert_near(covariance[i + i * M], variance[i], 1e-10, 1e-12);
        for (int j = 0; j < i; j++) {
            assert_true(covariance[i + j * M] == covariance[j + i * M]);
        }
    }
    /* Rows one at a time and all together agree to rounding. */
    for (int i = 0; i < M; i++) {
        double m;
        double v;
        assert_ok(f->ctx, thi_predictor_marginals(&predictor, f->ctx, 1, f->Xtest + i * D, &m, &v, &clipped));
        assert_near(m, mean[i], 1e-12, 1e-13);
        assert_near(v, variance[i], 1e-11, 1e-13);
    }
    thi_predictor_clear(&predictor);
}

/* With almost no noise the predictor returns the training targets, with almost no variance. */
static void test_interpolation(void **state)
{
    fixture *f = *state;
    double mean[N];
    double variance[N];
    int64_t clipped = 0;
    thi_predictor predictor = predictor_on(f, N, f->X, f->y, 1e-10);
    assert_ok(f->ctx, thi_predictor_marginals(&predictor, f->ctx, N, f->X, mean, variance, &clipped));
    for (int i = 0; i < N; i++) {
        assert_near(mean[i], f->y[i], 1e-6, 1e-6);
        assert_true(variance[i] >= 0.0 && variance[i] < 1e-8);
    }
    thi_predictor_clear(&predictor);
}

static void test_threads(void **state)
{
    fixture *f = *state;
    enum { BIG = 700 };
    double *X = calloc(D * BIG, sizeof *X);
    double *y = calloc(BIG, sizeof *y);
    double result[2][16] = {{0}, {0}};
    test_normals(D * BIG, 4, X);
    test_normals(BIG, 5, y);
    for (int run = 0; run < 2; run++) {
        thiele_context *ctx = test_context(run == 0 ? 1 : 3);
        double mean_bar[D + 1] = {0};
        thi_exact exact;
        thi_prior prior = prior_of(f);
        assert_ok(ctx, thi_exact_open(&exact, ctx, BIG, X, y));
        assert_ok(ctx, thi_exact_condition(&exact, ctx, &prior, 0.2));
        result[run][15] = exact.log_marginal;
        assert_ok(ctx, thi_exact_gradient(&exact, ctx, &prior, result[run], mean_bar, &result[run][14]));
        thi_exact_close(&exact);
        thiele_context_destroy(ctx);
    }
    assert_memory_equal(result[0], result[1], sizeof result[0]);
    free(X);
    free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gradient, setup, teardown),
        cmocka_unit_test_setup_teardown(test_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain_rule, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leave_one_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leave_one_out_of_several, setup, teardown),
        cmocka_unit_test_setup_teardown(test_joint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interpolation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

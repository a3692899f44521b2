/*
 * Gaussian sites at the data rows: against exact regression, against explicit inverses, against the frozen predictor at
 * the training rows; improper sites, one thread and many, failing allocations.
 */
#include "testing_context.h"

#include "posterior/dense.h"

enum { N = 14, BIG = 600, D = 2 };

/* Inverts A (n x n) in place by Gauss-Jordan with row pivoting; returns log|det A|. */
static double invert(int n, double *A)
{
    double log_det = 0.0;
    double *I = calloc((size_t)(n * n), sizeof *I);
    for (int i = 0; i < n; i++) {
        I[i + i * n] = 1.0;
    }
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int r = c + 1; r < n; r++) {
            pivot = fabs(A[r + c * n]) > fabs(A[pivot + c * n]) ? r : pivot;
        }
        log_det += log(fabs(A[pivot + c * n]));
        double scale = 1.0 / A[pivot + c * n];
        for (int j = 0; j < n; j++) {
            double a = A[pivot + j * n], b = I[pivot + j * n];
            A[pivot + j * n] = A[c + j * n];
            I[pivot + j * n] = I[c + j * n];
            A[c + j * n] = a * scale;
            I[c + j * n] = b * scale;
        }
        for (int r = 0; r < n; r++) {
            double f = r != c ? A[r + c * n] : 0.0;
            for (int j = 0; j < n && f != 0.0; j++) {
                A[r + j * n] -= f * A[c + j * n];
                I[r + j * n] -= f * I[c + j * n];
            }
        }
    }
    memcpy(A, I, (size_t)(n * n) * sizeof *A);
    free(I);
    return log_det;
}

/* What can be asked of a posterior, for comparing whole answers. */
typedef struct answer {
    double mu[BIG], v[BIG], log_z, kl, theta_bar[8];
} answer;

typedef struct setting {
    thiele_kernel *kernel;
    thi_prior prior;
    thi_dense dense;
    double X[D * BIG], y[BIG], lambda[BIG], nu[BIG], mean[1];
} setting;

static void open_setting(setting *s, thiele_context *c, const char *kernel, int n)
{
    memset(s, 0, sizeof *s);
    test_normals(D * n, 1, s->X);
    test_normals(n, 2, s->y);
    s->mean[0] = 0.3;
    assert_ok(c, thiele_kernel_parse(&s->kernel, c, kernel, D, NULL));
    s->prior = (thi_prior){s->kernel, THI_MEAN_CONSTANT, s->mean};
    assert_ok(c, thi_dense_open(&s->dense, c, n, s->X, NULL, NULL));
    assert_ok(c, thi_dense_prior(&s->dense, c, &s->prior));
}

static void close_setting(setting *s)
{
    thi_dense_close(&s->dense);
    thiele_kernel_destroy(s->kernel);
}

/* Sites of all sorts; every `negative`-th (0: none) takes back some of what its neighbours said. */
static void make_sites(setting *s, int n, int negative)
{
    static const double strength[] = {3.0, 1e-12, 0.0, 0.4, 1e-5, 80.0, 2e-3, 1.0};
    for (int i = 0; i < n; i++) {
        s->lambda[i] = strength[i % 8] * (1.0 + 0.3 * sin(i));
        if (negative > 0 && i % negative == 1) {
            s->lambda[i] = -0.2 - 0.1 * sin(3.0 * i);
        }
        s->nu[i] = s->y[i] * (0.5 + fabs(s->lambda[i]));
    }
}

/* --- a Gaussian likelihood is exact regression ------------------------------------------------------------------- */

static void test_exact_regression(void **state)
{
    (void)state;
    static const double noises[] = {1e-4, 0.1, 2.0, 1e5};
    static setting s;
    open_setting(&s, ctx, "matern52(ard, lengthscale~[0.8,1.5]) + linear(variance~0.2)", 150);
    for (int k = 0; k < 4; k++) {
        double noise = noises[k], constant = 0.0, mu[150], v[150], mean[150], variance[150];
        double theta_bar[8] = {0}, exact_bar[8] = {0}, mean_bar = 0.0, noise_bar = 0.0;
        int64_t clipped = 0;
        for (int i = 0; i < 150; i++) {
            double r = s.y[i] - s.mean[0];
            s.lambda[i] = 1.0 / noise;
            s.nu[i] = r / noise;
            constant -= 0.5 * (log(2.0 * M_PI * noise) + r * r / noise);
        }
        thi_exact exact;
        thi_predictor predictor;
        assert_ok(ctx, thi_exact_open(&exact, ctx, 150, s.X, s.y));
        assert_ok(ctx, thi_exact_condition(&exact, ctx, &s.prior, noise));
        assert_ok(ctx, thi_exact_gradient(&exact, ctx, &s.prior, exact_bar, &mean_bar, &noise_bar));
        assert_ok(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v));
        assert_ok(ctx, thi_dense_gradient(&s.dense, ctx, &s.prior, NULL, NULL, theta_bar));
        assert_near(s.dense.log_z + constant, exact.log_marginal, 1e-9, 0.0);
        /* C and a a' are of size 1/noise and nearly cancel, in both. */
        assert_all_near(theta_bar, exact_bar, thiele_kernel_parameters(s.kernel), 1e-9, 1e-9 + 1e-11 / noise);
        assert_ok(ctx, thi_exact_condition(&exact, ctx, &s.prior, noise));
        assert_ok(ctx, thi_predictor_freeze(&predictor, ctx, &exact, &s.prior));
        assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, 150, s.X, mean, variance, &clipped));
        for (int i = 0; i < 150; i++) {
            assert_near(mu[i] + s.mean[0], mean[i], 1e-9, 1e-9);
            assert_near(v[i], variance[i], 1e-9, 1e-13); /* exact regression loses digits of small variances */
        }
        thi_predictor_clear(&predictor);
    }
    close_setting(&s);
}

/* --- explicit inverses ------------------------------------------------------------------------------------------- */

static void check_explicit(setting *s)
{
    double P[N * N], S[N * N], K[N * N], mu[N], v[N], want_mu[N], want_v[N], trace = 0.0, square = 0.0, fit = 0.0;
    for (int i = 0; i < N * N; i++) {
        P[i] = K[i] = s->dense.K.data[i];
    }
    double log_K = invert(N, P);
    for (int i = 0; i < N * N; i++) {
        S[i] = P[i] + (i % (N + 1) == 0 ? s->lambda[i / (N + 1)] : 0.0);
    }
    double log_S = -invert(N, S);
    for (int i = 0; i < N; i++) {
        want_mu[i] = 0.0;
        want_v[i] = S[i + i * N];
        for (int j = 0; j < N; j++) {
            want_mu[i] += S[i + j * N] * s->nu[j];
        }
    }
    for (int i = 0; i < N; i++) {
        fit += s->nu[i] * want_mu[i];
        for (int j = 0; j < N; j++) {
            trace += P[i + j * N] * S[j + i * N];
            square += want_mu[i] * P[i + j * N] * want_mu[j];
        }
    }
    assert_ok(ctx, thi_dense_condition(&s->dense, ctx, s->lambda, s->nu, mu, v));
    assert_all_near(mu, want_mu, N, 1e-9, 1e-10);
    assert_all_near(v, want_v, N, 1e-9, 1e-12);
    assert_near(s->dense.log_z, 0.5 * (log_S - log_K + fit), 1e-10, 1e-10);
    assert_near(thi_dense_kl(&s->dense, s->lambda, v), 0.5 * (square + trace - N + log_K - log_S), 1e-10, 1e-9);
    for (int i = 0; i < N; i++) {
        assert_near(s->dense.a[i], s->nu[i] - s->lambda[i] * mu[i], 1e-9, 1e-9);
    }
}

static void test_explicit(void **state)
{
    (void)state;
    static setting s;
    open_setting(&s, ctx, "matern12(lengthscale~0.7, variance~1.4)", N);
    for (int negative = 0; negative < 5; negative++) {
        make_sites(&s, N, negative);
        check_explicit(&s);
    }
    for (int i = 0; i < N; i++) {
        s.lambda[i] = -0.05;
    }
    check_explicit(&s);
    close_setting(&s);
}

static void test_improper(void **state)
{
    (void)state;
    static setting s;
    double mu[N], v[N];
    open_setting(&s, ctx, "se", N);
    make_sites(&s, N, 0);
    s.lambda[1] = -1e4;
    assert_fails(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v), THIELE_ERROR_NUMERIC, "not proper");
    for (int i = 0; i < N; i++) {
        s.lambda[i] = -1.0;
    }
    assert_fails(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v), THIELE_ERROR_NUMERIC, "not proper");
    s.lambda[0] = NAN;
    assert_fails(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v), THIELE_ERROR_NUMERIC, "not finite");
    make_sites(&s, N, 0);
    s.nu[3] = INFINITY;
    assert_fails(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v), THIELE_ERROR_NUMERIC, "too large");
    make_sites(&s, N, 0); /* and nothing of it lingers */
    assert_ok(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v));
    close_setting(&s);
}

/* Weak sites (no information) and strong ones (no freedom) have variances to all their digits. */
static void test_extremes(void **state)
{
    (void)state;
    static setting s;
    double mu[N], v[N];
    open_setting(&s, ctx, "matern12(lengthscale~0.7, variance~1.4)", N);
    for (int i = 0; i < N; i++) {
        s.lambda[i] = 1e-14;
        s.nu[i] = 0.5;
    }
    assert_ok(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v));
    for (int i = 0; i < N; i++) {
        double sum = 0.0;
        for (int j = 0; j < N; j++) {
            sum += 0.5 * s.dense.K.data[i + j * N];
        }
        assert_near(v[i], 1.4, 1e-12, 0.0);
        assert_near(mu[i], sum, 1e-12, 0.0);
        s.lambda[i] = 1e12;
        s.nu[i] = 1e12 * s.y[i];
    }
    assert_ok(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, mu, v));
    for (int i = 0; i < N; i++) {
        assert_near(v[i], 1e-12, 1e-10, 0.0); /* 1/lambda up to a relative 1/(lambda k) */
        assert_near(mu[i], s.y[i], 1e-10, 1e-10);
    }
    close_setting(&s);
}

/* --- the predictor ----------------------------------------------------------------------------------------------- */

/* Over several blocks of weak rows and with some fifty negative sites. */
static void test_frozen(void **state)
{
    (void)state;
    static setting s;
    static answer got, want;
    open_setting(&s, ctx, "matern32(lengthscale~0.5)", BIG);
    for (int negative = 0; negative <= 11; negative += 11) {
        int64_t clipped = 0;
        thi_predictor predictor;
        make_sites(&s, BIG, negative);
        assert_ok(ctx, thi_dense_condition(&s.dense, ctx, s.lambda, s.nu, want.mu, want.v));
        assert_ok(ctx, thi_dense_freeze(&s.dense, ctx, &s.prior, &predictor));
        assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, BIG, s.X, got.mu, got.v, &clipped));
        for (int i = 0; i < BIG; i++) {
            assert_near(got.mu[i], want.mu[i] + s.mean[0], 1e-9, 1e-9);
        }
        assert_all_near(got.v, want.v, BIG, 1e-9, 1e-11);
        thi_predictor_clear(&predictor);
    }
    close_setting(&s);
}

/* --- threads, memory, lenders ------------------------------------------------------------------------------------ */

static void answer_on(thiele_context *c, setting *s, answer *to)
{
    memset(to, 0, sizeof *to);
    assert_ok(c, thi_dense_condition(&s->dense, c, s->lambda, s->nu, to->mu, to->v));
    to->log_z = s->dense.log_z;
    to->kl = thi_dense_kl(&s->dense, s->lambda, to->v);
    assert_ok(c, thi_dense_gradient(&s->dense, c, &s->prior, to->mu, to->v, to->theta_bar));
}

static void test_threads(void **state)
{
    (void)state;
    static setting s;
    static answer results[3];
    for (int threads = 1; threads <= 3; threads++) {
        thiele_context *own = test_context(threads);
        open_setting(&s, own, "matern32(ard, lengthscale~[0.5,0.7])", BIG);
        make_sites(&s, BIG, 11);
        answer_on(own, &s, &results[threads - 1]);
        close_setting(&s);
        assert_int_equal(thi_memory_held(own), 0);
        thiele_context_destroy(own);
    }
    assert_memory_equal(&results[0], &results[1], sizeof results[0]);
    assert_memory_equal(&results[0], &results[2], sizeof results[0]);
}

/* Posteriors that share their work matrix and K are what they are alone. */
static void test_lender(void **state)
{
    (void)state;
    static setting s;
    static answer alone, together;
    double other[N], other_mu[N], other_v[N];
    thi_dense second;
    open_setting(&s, ctx, "se(lengthscale~0.6)", N);
    make_sites(&s, N, 5);
    answer_on(ctx, &s, &alone);
    assert_ok(ctx, thi_dense_open(&second, ctx, N, s.X, &s.dense, &s.dense));
    assert_ok(ctx, thi_dense_prior(&second, ctx, &s.prior));
    memset(&together, 0, sizeof together);
    assert_ok(ctx, thi_dense_condition(&second, ctx, s.lambda, s.nu, together.mu, together.v));
    for (int i = 0; i < N; i++) {
        other[i] = 1.0 + 0.1 * i;
    }
    assert_ok(ctx, thi_dense_condition(&s.dense, ctx, other, s.nu, other_mu, other_v));
    together.log_z = second.log_z;
    together.kl = thi_dense_kl(&second, s.lambda, together.v);
    assert_ok(ctx, thi_dense_gradient(&second, ctx, &s.prior, together.mu, together.v, together.theta_bar));
    assert_memory_equal(&alone, &together, sizeof alone);
    thi_dense_close(&second);
    close_setting(&s);
}

static thiele_status use_all(thiele_context *c, setting *s)
{
    double mu[N], v[N], theta_bar[8] = {0};
    thi_predictor predictor = {0};
    thiele_status status;
    THI_TRY(thi_dense_open(&s->dense, c, N, s->X, NULL, NULL));
    THI_TRY(thi_dense_prior(&s->dense, c, &s->prior));
    THI_TRY(thi_dense_condition(&s->dense, c, s->lambda, s->nu, mu, v));
    THI_TRY(thi_dense_freeze(&s->dense, c, &s->prior, &predictor));
    THI_TRY(thi_dense_gradient(&s->dense, c, &s->prior, mu, v, theta_bar));
out:
    thi_predictor_clear(&predictor);
    thi_dense_close(&s->dense);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    static setting s;
    open_setting(&s, ctx, "matern12", N);
    make_sites(&s, N, 5);
    thi_dense_close(&s.dense);
    size_t held = thi_memory_held(ctx);
    for (int64_t nth = 1;; nth++) {
        thi_fail_allocation(ctx, nth, false);
        thiele_status status = use_all(ctx, &s);
        assert_int_equal(thi_memory_held(ctx), held);
        if (status == THIELE_OK) {
            assert_true(nth > 10);
            break;
        }
        assert_int_equal(status, THIELE_ERROR_MEMORY);
    }
    thi_fail_allocation(ctx, 0, false);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_regression), cmocka_unit_test(test_explicit),    cmocka_unit_test(test_improper),
        cmocka_unit_test(test_extremes),         cmocka_unit_test(test_frozen),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_lender),           cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

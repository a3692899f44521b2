/*
 * Gibbs with inducing inputs: the posterior of u under the prior of FITC with Gaussian sites, by the covariance of all
 * rows; with Z = X the posterior of the dense model; the same moments as dense Gibbs where inducing inputs leave
 * nothing; threads, the predictor, failing allocations.
 */
#include "testing_context.h"

#include "chains_testing.h"

enum { N = 24, M = 6, DIMS = 2 };

static const double NOISE = 0.3;

static void open_gaussian(chain_setting *s, thiele_context *c, int64_t n)
{
    open_chain_setting(s, c, "gaussian(noise=0.3)", 1, 0, "se(lengthscale=1.2, variance=2)", "constant", n, DIMS);
    test_normals(n, 2, s->rows.y);
    test_normals(n, 3, s->rows.offset);
    s->rows.y[n / 2] = NAN;
    s->spec.latents.mean_parameter[0] = 0.7;
    augment_gaussian(s);
}

static double kernel(const double *a, const double *b)
{
    double square = 0;
    for (int d = 0; d < DIMS; d++) {
        square += (a[d] - b[d]) * (a[d] - b[d]);
    }
    return 2 * exp(-0.5 * square / (1.2 * 1.2));
}

/* B = Kzz^-1 K(Z, X), columns of rows; what is left of each row's variance. */
static void explain(const chain_setting *s, const double *Z, int64_t count, thi_matrix Kzz, thi_matrix KzX,
                    thi_matrix B, double *left)
{
    for (int64_t j = 0; j < count; j++) {
        for (int64_t i = 0; i < count; i++) {
            Kzz.data[i + j * count] = kernel(Z + i * DIMS, Z + j * DIMS);
        }
        for (int64_t i = 0; i < s->rows.n; i++) {
            KzX.data[j + i * count] = kernel(Z + j * DIMS, s->rows.X + i * DIMS);
        }
    }
    double factor[N * N], jitter;
    thi_matrix L = thi_matrix_view(factor, count, count, count);
    memcpy(factor, Kzz.data, (size_t)(count * count) * sizeof *factor);
    assert_ok(ctx, thi_chol_jitter(ctx, L, &jitter));
    memcpy(B.data, KzX.data, (size_t)(count * s->rows.n) * sizeof(double));
    assert_ok(ctx, thi_tri_solve(ctx, THI_N, L, B));
    assert_ok(ctx, thi_tri_solve(ctx, THI_T, L, B));
    for (int64_t i = 0; i < s->rows.n; i++) {
        left[i] = fmax(0, 2 - thi_blas_dot(count, B.data + i * count, KzX.data + i * count));
    }
}

/* u given y: the rows that were seen have the covariance C = B'KzX + diag(left + noise). */
static void exact_moments(const chain_setting *s, const double *Z, int64_t count, double *mean, double *v)
{
    double kzz[N * N], kzx[N * N], b[N * N], c[N * N], left[N], target[N];
    int64_t n = s->rows.n, seen = 0;
    explain(s, Z, count, thi_matrix_view(kzz, count, count, count), thi_matrix_view(kzx, count, n, count),
            thi_matrix_view(b, count, n, count), left);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(s->rows.y[i])) {
            continue;
        }
        memmove(kzx + seen * count, kzx + i * count, (size_t)count * sizeof *kzx);
        memmove(b + seen * count, b + i * count, (size_t)count * sizeof *b);
        left[seen] = left[i];
        target[seen++] = s->rows.y[i] - 0.7 - s->rows.offset[i];
    }
    for (int64_t j = 0; j < seen; j++) {
        for (int64_t i = 0; i < seen; i++) {
            c[i + j * seen] = thi_blas_dot(count, b + i * count, kzx + j * count) + (i == j ? left[i] + NOISE : 0);
        }
    }
    thi_matrix C = thi_matrix_view(c, seen, seen, seen);
    assert_ok(ctx, thi_chol(ctx, C));
    thi_blas_trsv(THI_N, C, target);
    for (int64_t j = 0; j < count; j++) {
        double k[N];
        for (int64_t i = 0; i < seen; i++) {
            k[i] = kzx[j + i * count];
        }
        thi_blas_trsv(THI_N, C, k);
        mean[j] = 0.7 + thi_blas_dot(seen, k, target);
        v[j] = 2 - thi_blas_dot(seen, k, k);
    }
}

static void known_posterior(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        chain_setting s;
        thi_chains_result r;
        double Z[N * DIMS], mean[N], v[N];
        int64_t count = all ? N : M;
        open_gaussian(&s, ctx, N);
        test_normals(M * DIMS, 8, Z);
        if (all) {
            memcpy(Z, s.rows.X, sizeof Z);
        }
        exact_moments(&s, Z, count, mean, v);
        thi_chains_settings settings = keep_all("gibbs", 4000);
        settings.basis = (thi_chains_basis){Z, count};
        assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
        assert_int_equal(r.n, count);
        assert_true(r.mixing.rhat < 1.02 && fabs(r.mixing.lag1) < 0.03); /* nothing to alternate with */
        assert_moments(&r, mean, NULL, v);
        /* The predictor at Z is the draws. */
        thi_predictor frozen;
        int64_t clipped = 0;
        assert_ok(ctx, thi_chains_freeze(&r, ctx, &s.spec, &s.rows, &frozen));
        double *m = malloc((size_t)(count * r.kept) * sizeof *m), *w = malloc((size_t)(count * r.kept) * sizeof *w);
        assert_ok(ctx, thi_predictor_marginals(&frozen, ctx, count, Z, m, w, &clipped));
        for (int64_t i = 0; i < count * r.kept; i++) {
            assert_near(m[i], r.f[i], 0, 1e-6);
        }
        free(m);
        free(w);
        thi_predictor_clear(&frozen);
        thi_chains_clear(&r);
        close_chain_setting(&s);
    }
}

/* Drawn sites: with Z = X all rows' moments are those of the dense sampler. */
static void same_as_dense(void **state)
{
    (void)state;
    static const char *const likelihoods[] = {"student-t(nu=3, scale=0.5)", "laplace(beta=0.3)", "logistic-softmax"};
    for (size_t k = 0; k < sizeof likelihoods / sizeof *likelihoods; k++) {
        chain_setting s;
        thi_chains_result a, b;
        int classes = k == 2 ? 3 : 0;
        open_chain_setting(&s, ctx, likelihoods[k], 1, classes, "matern32(lengthscale=1.5, variance=1)", "zero", N,
                           DIMS);
        test_normals(N, 2, s.rows.y);
        for (int64_t i = 0; i < N && classes > 0; i++) {
            s.rows.y[i] = (double)(i % 3);
        }
        thi_chains_settings dense = keep_all("gibbs", 3000), sparse = dense;
        double *Z = malloc((size_t)(N * DIMS * s.spec.latents.groups) * sizeof *Z);
        for (int g = 0; g < s.spec.latents.groups; g++) {
            memcpy(Z + g * N * DIMS, s.rows.X, N * DIMS * sizeof *Z);
        }
        sparse.basis = (thi_chains_basis){Z, N};
        assert_ok(ctx, run_chains(&s, ctx, &dense, &a));
        assert_ok(ctx, run_chains(&s, ctx, &sparse, &b));
        double zero[3 * N] = {0};
        for (int64_t i = 0; i < a.n * a.latents; i++) {
            for (int64_t j = -1; j <= i; j += i + 1) {
                double e1, e2, m1 = estimate(&a, zero, i, j, &e1), m2 = estimate(&b, zero, i, j, &e2);
                assert_near(m1, m2, 0.0, 4.2 * hypot(e1, e2));
            }
        }
        free(Z);
        thi_chains_clear(&a);
        thi_chains_clear(&b);
        close_chain_setting(&s);
    }
}

static void threads(void **state)
{
    (void)state;
    thi_chains_result result[3];
    double Z[M * DIMS];
    test_normals(M * DIMS, 8, Z);
    for (int t = 0; t < 3; t++) {
        thiele_context *c = test_context(t + 1);
        chain_setting s;
        open_gaussian(&s, c, 700);
        thi_chains_settings settings = {.sampler = "gibbs", .chains = 3, .draws = 6, .keep = 18, .basis = {Z, M}};
        assert_ok(c, run_chains(&s, c, &settings, &result[t]));
        close_chain_setting(&s);
        assert_memory_equal(result[t].f, result[0].f, (size_t)(result[0].kept * M) * sizeof *result[0].f);
        thiele_context_destroy(c);
    }
    for (int t = 0; t < 3; t++) {
        thi_chains_clear(&result[t]);
    }
}

static void refusals(void **state)
{
    (void)state;
    double Z[M * DIMS];
    chain_setting s;
    thi_chains_result r;
    test_normals(M * DIMS, 8, Z);
    open_gaussian(&s, ctx, N);
    thi_chains_settings settings = {.sampler = "hmc", .basis = {Z, M}};
    assert_fails(ctx, run_chains(&s, ctx, &settings, &r), THIELE_ERROR_ARGUMENT, "not a sampler of inducing inputs");
    close_chain_setting(&s);
}

static void allocations(void **state)
{
    (void)state;
    thiele_context *c = test_context(1);
    chain_setting s;
    double Z[M * DIMS];
    test_normals(M * DIMS, 8, Z);
    open_gaussian(&s, c, N);
    size_t held = thi_memory_held(c);
    thi_chains_settings settings = {.sampler = "gibbs", .chains = 2, .draws = 5, .basis = {Z, M}};
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        thi_chains_result r = {0};
        thi_predictor frozen = {0};
        thi_fail_allocation(c, nth, false);
        status = run_chains(&s, c, &settings, &r);
        if (status == THIELE_OK) {
            status = thi_chains_freeze(&r, c, &s.spec, &s.rows, &frozen);
        }
        thi_chains_clear(&r);
        thi_predictor_clear(&frozen);
        thi_fail_allocation(c, 0, false);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(c), held);
        assert_true(nth < 200);
    }
    close_chain_setting(&s);
    thiele_context_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_posterior), cmocka_unit_test(same_as_dense), cmocka_unit_test(threads),
        cmocka_unit_test(refusals),        cmocka_unit_test(allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

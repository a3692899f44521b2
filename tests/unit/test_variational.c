/*
 * Variational posteriors by identities: with Z = X and a Gaussian likelihood one natural step is exact regression;
 * families, coordinates and sites that must agree do; equal components are one.
 */
#include "variational_testing.h"

#include "posterior/exact.h"

static void scale_all(double *x, int64_t n, double by)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] *= by;
    }
}

static thi_shape shape_of(int latents, int components, int64_t M, int64_t capacity)
{
    return (thi_shape){
        .latents = latents, .components = components, .inducing = M, .capacity = capacity, .whitened = true};
}

/* --- exact regression --------------------------------------------------------------------------------------------- */

enum { N = 60 };
static const double noise = 0.1;

/* E of N(y; f, noise), with its g and h. */
static double gaussian(int64_t n, const double *y, const double *mu, const double *v, double *g, double *h)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double e = y[i] - mu[i];
        sum += -0.5 * (log(2.0 * acos(-1.0) * noise) + (e * e + v[i]) / noise);
        g[i] = e / noise;
        h[i] = -0.5 / noise;
    }
    return sum;
}

/* The bound at the present sites, with a natural step of size 1 after it. */
static double regress(const world *w, thiele_context *ctx, const double *y, thi_sites *sites, bool fresh, double *mu,
                      double *v)
{
    double g[N], h[N], kl;
    thi_prior prior[WORLD_GROUPS];
    world_prior(w, prior);
    assert_ok(ctx, thi_variational_begin(w->v, ctx, prior, (const double *const *)w->Z, NULL, sites, fresh));
    assert_ok(ctx, thi_variational_marginals(w->v, ctx, N, w->X, mu, v));
    double expected = gaussian(N, y, mu, v, g, h);
    assert_ok(ctx, thi_variational_pull(w->v, ctx, g, h));
    assert_ok(ctx, thi_variational_end(w->v, ctx, NULL, &kl, NULL));
    thi_variational_step(w->v, 1.0, sites);
    return expected - kl;
}

static void test_exact(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    thi_sites sites;
    double y[N], mu[N], v[N], mean[N], variance[N];
    int64_t clipped = 0;
    world_open(&w, ctx, shape_of(1, 1, N, N), N);
    memcpy(w.Z[0], w.X, N * WORLD_DIMS * sizeof(double));
    test_normals(N, 5, y);
    assert_ok(ctx, thi_sites_alloc(&sites, ctx, N));
    regress(&w, ctx, y, &sites, true, mu, v);
    double bound = regress(&w, ctx, y, &sites, false, mu, v);
    double again = regress(&w, ctx, y, &sites, false, mean, variance);
    /* The optimum is a fixed point. */
    assert_near(again, bound, 1e-9, 0.0);
    thi_exact exact;
    thi_predictor predictor;
    thi_prior prior[WORLD_GROUPS];
    world_prior(&w, prior);
    assert_ok(ctx, thi_exact_open(&exact, ctx, N, w.X, y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, prior, noise));
    assert_near(bound, exact.log_marginal, 1e-8, 0.0);
    assert_ok(ctx, thi_predictor_freeze(&predictor, ctx, &exact, prior));
    assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, N, w.X, mean, variance, &clipped));
    assert_all_near(mu, mean, N, 1e-8, 1e-8);
    assert_all_near(v, variance, N, 1e-8, 1e-9);
    thi_predictor_clear(&predictor);
    thi_sites_free(&sites);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* Rows as inducing points twice, or of no use: Kzz is singular, and the bound is that without them. */
static void test_duplicates(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w, single;
    thi_sites sites, own;
    double y[N], mu[N], v[N], mu_single[N], v_single[N];
    enum { HALF = 10 };
    world_open(&w, ctx, shape_of(1, 1, 2 * HALF, N), N);
    world_open(&single, ctx, shape_of(1, 1, HALF, N), N);
    memcpy(w.Z[0] + HALF * WORLD_DIMS, single.Z[0], HALF * WORLD_DIMS * sizeof(double));
    memcpy(w.Z[0], single.Z[0], HALF * WORLD_DIMS * sizeof(double));
    test_normals(N, 5, y);
    assert_ok(ctx, thi_sites_alloc(&sites, ctx, 2 * HALF));
    assert_ok(ctx, thi_sites_alloc(&own, ctx, HALF));
    double bound = 0.0, want = 0.0;
    for (int step = 0; step < 2; step++) {
        bound = regress(&w, ctx, y, &sites, true, mu, v);
        want = regress(&single, ctx, y, &own, true, mu_single, v_single);
    }
    assert_true(thi_variational_jitter(w.v) > 0.0);
    /* The jitter moves things by some 1e-12 over the noise. */
    assert_near(bound, want, 1e-7, 0.0);
    assert_all_near(mu, mu_single, N, 1e-6, 1e-6);
    assert_all_near(v, v_single, N, 1e-6, 1e-6);
    thi_sites_free(&sites);
    thi_sites_free(&own);
    world_close(&w);
    world_close(&single);
    thiele_context_destroy(ctx);
}

/* --- families and coordinates ------------------------------------------------------------------------------------- */

/* K components with the numbers of one: nothing is lost; by Jensen's bound M (1 - log 2)/2 a latent. */
static void check_equal_components(bool diagonal, bool whitened, bool jensen)
{
    thiele_context *ctx = test_context(1);
    world one, many;
    thi_shape shape = shape_of(2, 1, 6, 30);
    shape.diagonal = diagonal;
    shape.whitened = whitened;
    world_open(&one, ctx, shape, 20);
    shape.components = 3;
    shape.jensen = jensen;
    world_open(&many, ctx, shape, 20);
    int64_t size = thi_variational_size(&one.shape);
    for (int k = 0; k < 3; k++) {
        memcpy(many.q + thi_variational_offset(&many.shape, k, 0), one.q, (size_t)size * sizeof(double));
    }
    double gap = jensen ? 2 * 6 * (1.0 - log(2.0)) / 2 : 0.0;
    assert_near(world_bound(&many, ctx, NULL, NULL), world_bound(&one, ctx, NULL, NULL) - gap, 1e-11, 0.0);
    world_close(&one);
    world_close(&many);
    thiele_context_destroy(ctx);
}

static void test_equal_components(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        check_equal_components(i % 2 == 0, i / 2 % 2 == 0, i / 4 == 0);
    }
}

/* Numbers of a full family with the means and deviations of a diagonal one. */
static void fill_from_diagonal(const world *diagonal, world *full)
{
    int64_t M = full->shape.inducing;
    int K = full->shape.components;
    memcpy(full->q, diagonal->q, (size_t)(K > 1 ? K : 0) * sizeof(double));
    for (int k = 0; k < K; k++) {
        for (int j = 0; j < full->shape.latents; j++) {
            const double *from = diagonal->q + thi_variational_offset(&diagonal->shape, k, j);
            double *to = full->q + thi_variational_offset(&full->shape, k, j);
            memcpy(to, from, (size_t)M * sizeof(double));
            to += M;
            memset(to, 0, (size_t)(M * (M + 1) / 2) * sizeof(double));
            for (int64_t c = 0; c < M; c++) {
                *to = from[M + c];
                to += M - c;
            }
        }
    }
}

/* A diagonal S is a full one with nothing off its diagonal, in either coordinates and for mixtures. */
static void test_diagonal_is_full(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < 4; i++) {
        world diagonal, full;
        thi_shape shape = shape_of(2, 1 + i / 2, 6, 30);
        shape.whitened = i % 2 == 0;
        world_open(&full, ctx, shape, 20);
        shape.diagonal = true;
        world_open(&diagonal, ctx, shape, 20);
        fill_from_diagonal(&diagonal, &full);
        world_gradient bar, want;
        world_gradient_open(&diagonal, &bar);
        world_gradient_open(&full, &want);
        assert_near(world_bound(&diagonal, ctx, NULL, &bar), world_bound(&full, ctx, NULL, &want), 1e-11, 0.0);
        for (int g = 0; g < 2; g++) {
            int parameters = thiele_kernel_parameters(full.kernel[g]);
            assert_all_near(bar.theta[g], want.theta[g], parameters, 1e-8, 1e-8);
            assert_all_near(bar.mean[g], want.mean[g], g == 0 ? 3 : 1, 1e-10, 1e-10);
            assert_all_near(bar.Z[g], want.Z[g], 6 * WORLD_DIMS, 1e-8, 1e-8);
        }
        world_gradient_close(&diagonal, &bar);
        world_gradient_close(&full, &want);
        world_close(&diagonal);
        world_close(&full);
    }
    thiele_context_destroy(ctx);
}

/* The factor of Kzz of one group. */
static void factor_of(const world *w, thiele_context *ctx, int g, thi_matrix L)
{
    assert_ok(ctx, thiele_kernel_matrix(w->kernel[g], ctx, (int)L.rows, w->Z[g], 0, NULL, L.data));
    assert_ok(ctx, thi_chol(ctx, L));
}

/* Numbers in w become those of the same q in u. */
static void unwhiten(const world *w, thiele_context *ctx, double *q)
{
    int64_t M = w->shape.inducing;
    thi_matrix L, Ls;
    assert_ok(ctx, thi_matrix_alloc(&L, ctx, M, M));
    assert_ok(ctx, thi_matrix_alloc(&Ls, ctx, M, M));
    for (int k = 0; k < w->shape.components; k++) {
        for (int j = 0; j < w->shape.latents; j++) {
            double *own = q + thi_variational_offset(&w->shape, k, j);
            factor_of(w, ctx, w->shape.group != NULL ? w->shape.group[j] : j, L);
            thi_blas_trmm(THI_LEFT, THI_N, 1.0, L, thi_matrix_view(own, M, 1, M));
            double *packed = own + M;
            for (int64_t c = 0; c < M; c++, packed += M - c + 1) {
                memcpy(Ls.data + c + c * M, packed, (size_t)(M - c) * sizeof(double));
                Ls.data[c + c * M] = exp(packed[0]);
            }
            thi_blas_trmm(THI_LEFT, THI_N, 1.0, L, Ls);
            packed = own + M;
            for (int64_t c = 0; c < M; c++, packed += M - c + 1) {
                memcpy(packed, Ls.data + c + c * M, (size_t)(M - c) * sizeof(double));
                packed[0] = log(packed[0]);
            }
        }
    }
    thi_free(L.data);
    thi_free(Ls.data);
}

static void test_plain_is_whitened(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int K = 1; K <= 2; K++) {
        world plain, whitened;
        thi_shape shape = shape_of(2, K, 6, 30);
        world_open(&whitened, ctx, shape, 20);
        shape.whitened = false;
        world_open(&plain, ctx, shape, 20);
        unwhiten(&plain, ctx, plain.q);
        assert_near(world_bound(&plain, ctx, NULL, NULL), world_bound(&whitened, ctx, NULL, NULL), 1e-11, 0.0);
        world_close(&plain);
        world_close(&whitened);
    }
    thiele_context_destroy(ctx);
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

/* q as packed numbers from sites: S = (I + T)^-1 the long way. */
static void pack_sites(thiele_context *ctx, const thi_sites *sites, double *q)
{
    int64_t M = sites->sum.T.rows;
    thi_matrix S;
    assert_ok(ctx, thi_matrix_alloc(&S, ctx, M, M));
    memcpy(S.data, sites->sum.T.data, (size_t)(M * M) * sizeof(double));
    for (int64_t i = 0; i < M; i++) {
        S.data[i + i * M] += 1.0;
    }
    assert_ok(ctx, thi_chol(ctx, S));
    assert_ok(ctx, thi_chol_inverse(ctx, S));
    thi_symmetrise(S);
    thi_blas_gemv(THI_N, 1.0, S, sites->sum.t, 0.0, q);
    assert_ok(ctx, thi_chol(ctx, S));
    double *packed = q + M;
    for (int64_t c = 0; c < M; c++, packed += M - c + 1) {
        memcpy(packed, S.data + c + c * M, (size_t)(M - c) * sizeof(double));
        packed[0] = log(packed[0]);
    }
    thi_free(S.data);
}

static void test_sites(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_sites sites;
    world_gradient bar;
    world_open(&w, ctx, shape_of(1, 1, 130, 50), 60);
    world_gradient_open(&w, &bar);
    assert_ok(ctx, thi_sites_alloc(&sites, ctx, 130));
    for (int step = 0; step < 2; step++) {
        world_bound(&w, ctx, &sites, &bar);
        thi_variational_step(w.v, 0.5, &sites);
    }
    double bound = world_bound(&w, ctx, &sites, NULL);
    pack_sites(ctx, &sites, w.q);
    assert_near(world_bound(&w, ctx, NULL, NULL), bound, 1e-10, 0.0);
    /* A bound that grows with h > 0 far enough has no proper posterior. */
    for (int64_t i = 0; i < 130; i++) {
        sites.sum.T.data[i + i * 130] -= 10.0;
    }
    thi_prior prior[WORLD_GROUPS];
    world_prior(&w, prior);
    assert_fails(ctx, thi_variational_begin(w.v, ctx, prior, (const double *const *)w.Z, NULL, &sites, false),
                 THIELE_ERROR_NUMERIC, "not positive definite");
    thi_sites_free(&sites);
    world_gradient_close(&w, &bar);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* q(u) stays what it is when the kernel changes: S_u = (Kzz^-1 + T_u)^-1 with T_u = L^-T T L^-1, the long way. */
static void test_sites_move(void **state)
{
    (void)state;
    enum { M = 7 };
    thiele_context *ctx = test_context(1);
    world w;
    thi_sites sites;
    thi_matrix L, T;
    double t[M];
    world_gradient bar;
    world_open(&w, ctx, shape_of(1, 1, M, 50), 40);
    world_gradient_open(&w, &bar);
    assert_ok(ctx, thi_sites_alloc(&sites, ctx, M));
    assert_ok(ctx, thi_matrix_alloc(&L, ctx, M, M));
    assert_ok(ctx, thi_matrix_alloc(&T, ctx, M, M));
    world_bound(&w, ctx, &sites, &bar);
    thi_variational_step(w.v, 0.7, &sites);
    for (int turn = 0; turn < 2; turn++) {
        /* (T_u, t_u), before and after. */
        double was[M * M + M];
        factor_of(&w, ctx, 0, L);
        for (int after = 0; after < 2; after++) {
            memcpy(T.data, sites.sum.T.data, sizeof(double) * M * M);
            memcpy(t, sites.sum.t, sizeof t);
            thi_symmetrise(T);
            thi_blas_trsm(THI_LEFT, THI_T, 1.0, L, T);
            thi_blas_trsm(THI_RIGHT, THI_N, 1.0, L, T);
            thi_blas_trsv(THI_T, L, t);
            if (after) {
                assert_all_near(T.data, was, M * M, 1e-7, 1e-7);
                assert_all_near(t, was + M * M, M, 1e-7, 1e-7);
            } else {
                memcpy(was, T.data, sizeof(double) * M * M);
                memcpy(was + M * M, t, sizeof t);
                thi_kernel_set_one(w.kernel[0], turn, 0.3);
                world_bound(&w, ctx, &sites, NULL);
                factor_of(&w, ctx, 0, L);
            }
        }
    }
    thi_free(L.data);
    thi_free(T.data);
    thi_sites_free(&sites);
    world_gradient_close(&w, &bar);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* A component of no weight, and one far away: everything stays finite. */
static void test_extreme_weights(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    world_gradient bar;
    world_open(&w, ctx, shape_of(1, 2, 6, 30), 20);
    world_gradient_open(&w, &bar);
    w.q[0] = 0.0;
    w.q[1] = -2000.0;
    scale_all(w.q + thi_variational_offset(&w.shape, 1, 0), 6, 1e3);
    assert_true(isfinite(world_bound(&w, ctx, NULL, &bar)));
    for (int64_t i = 0; i < thi_variational_size(&w.shape); i++) {
        assert_true(isfinite(bar.q[i]));
    }
    world_gradient_close(&w, &bar);
    world_close(&w);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_equal_components),
        cmocka_unit_test(test_diagonal_is_full),
        cmocka_unit_test(test_plain_is_whitened),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_sites_move),
        cmocka_unit_test(test_extreme_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

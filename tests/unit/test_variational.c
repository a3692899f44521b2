/*
 * Variational posteriors by identities: with Z = X and a Gaussian likelihood one natural step is exact regression;
 * families, coordinates, sites, groups, chunks, orders of rows and numbers of threads that must agree do; equal
 * components are one; a frozen predictor predicts the same.
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

/* K components with the numbers of one: the bound is less by M (1 - log 2)/2 a latent. */
static void check_equal_components(bool diagonal, bool whitened)
{
    thiele_context *ctx = test_context(1);
    world one, many;
    thi_shape shape = shape_of(2, 1, 6, 30);
    shape.diagonal = diagonal;
    shape.whitened = whitened;
    world_open(&one, ctx, shape, 20);
    shape.components = 3;
    world_open(&many, ctx, shape, 20);
    int64_t size = thi_variational_size(&one.shape);
    for (int k = 0; k < 3; k++) {
        memcpy(many.q + thi_variational_offset(&many.shape, k, 0), one.q, (size_t)size * sizeof(double));
    }
    double gap = 2 * 6 * (1.0 - log(2.0)) / 2;
    assert_near(world_bound(&many, ctx, NULL, NULL), world_bound(&one, ctx, NULL, NULL) - gap, 1e-11, 0.0);
    world_close(&one);
    world_close(&many);
    thiele_context_destroy(ctx);
}

static void test_equal_components(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        check_equal_components(i % 2 == 0, i / 2 == 0);
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
    int64_t M = sites->T.rows;
    thi_matrix S;
    assert_ok(ctx, thi_matrix_alloc(&S, ctx, M, M));
    memcpy(S.data, sites->T.data, (size_t)(M * M) * sizeof(double));
    for (int64_t i = 0; i < M; i++) {
        S.data[i + i * M] += 1.0;
    }
    assert_ok(ctx, thi_chol(ctx, S));
    assert_ok(ctx, thi_chol_inverse(ctx, S));
    thi_symmetrise(S);
    thi_blas_gemv(THI_N, 1.0, S, sites->t, 0.0, q);
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
        sites.T.data[i + i * 130] -= 10.0;
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
            memcpy(T.data, sites.T.data, sizeof(double) * M * M);
            memcpy(t, sites.t, sizeof t);
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

/* --- groups, rows, threads ---------------------------------------------------------------------------------------- */

/* Three latents with one kernel and Z, as one group and each for itself. */
static void test_groups(void **state)
{
    (void)state;
    static const int together[] = {0, 0, 0};
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < 4; i++) {
        world one, separate;
        thi_shape shape = shape_of(3, 2, 6, 11);
        shape.diagonal = i % 2 == 1;
        shape.whitened = i / 2 == 0;
        world_open(&separate, ctx, shape, 20);
        shape.group = together;
        world_open(&one, ctx, shape, 20);
        world_gradient bar, parts;
        world_gradient_open(&one, &bar);
        world_gradient_open(&separate, &parts);
        thi_prior prior[WORLD_GROUPS];
        world_prior(&one, prior);
        prior[1] = prior[2] = prior[0];
        const double *Z[] = {one.Z[0], one.Z[0], one.Z[0]};
        double expected[2], kl, other;
        assert_ok(ctx, thi_variational_begin(separate.v, ctx, prior, Z, separate.q, NULL, true));
        world_rows(&separate, ctx, true, expected);
        /* All Z gradients into one array. */
        double *into[] = {parts.Z[0], parts.Z[0], parts.Z[0]},
               *theta[] = {parts.theta[0], parts.theta[0], parts.theta[0]};
        thi_adjoints adjoints = {parts.q, theta, NULL, into};
        assert_ok(ctx, thi_variational_end(separate.v, ctx, expected, &kl, &adjoints));
        assert_ok(ctx, thi_variational_begin(one.v, ctx, prior, Z, one.q, NULL, true));
        world_rows(&one, ctx, true, expected);
        adjoints = (thi_adjoints){bar.q, bar.theta, NULL, bar.Z};
        assert_ok(ctx, thi_variational_end(one.v, ctx, expected, &other, &adjoints));
        assert_near(other, kl, 1e-13, 0.0);
        assert_all_near(bar.q, parts.q, thi_variational_size(&one.shape), 1e-9, 1e-10);
        assert_all_near(bar.theta[0], parts.theta[0], thiele_kernel_parameters(one.kernel[0]), 1e-9, 1e-9);
        assert_all_near(bar.Z[0], parts.Z[0], 6 * WORLD_DIMS, 1e-9, 1e-9);
        world_gradient_close(&one, &bar);
        world_gradient_close(&separate, &parts);
        world_close(&one);
        world_close(&separate);
    }
    thiele_context_destroy(ctx);
}

/* Bound and gradients one after the other, as one array. */
static double *everything(thiele_context *ctx, thi_shape shape, int64_t n, bool backwards, int64_t *size)
{
    world w;
    world_gradient bar;
    world_open(&w, ctx, shape, n);
    for (int64_t i = 0; backwards && i < n / 2; i++) {
        for (int d = 0; d < WORLD_DIMS; d++) {
            double *a = &w.X[i * WORLD_DIMS + d], *b = &w.X[(n - 1 - i) * WORLD_DIMS + d], kept = *a;
            *a = *b;
            *b = kept;
        }
    }
    world_gradient_open(&w, &bar);
    int64_t q = thi_variational_size(&shape), Z = shape.inducing * WORLD_DIMS;
    int theta = thiele_kernel_parameters(w.kernel[0]);
    *size = 1 + q + Z + theta + WORLD_DIMS + 1;
    double *all = world_zeros(*size);
    all[0] = world_bound(&w, ctx, NULL, &bar);
    memcpy(all + 1, bar.q, (size_t)q * sizeof(double));
    memcpy(all + 1 + q, bar.Z[0], (size_t)Z * sizeof(double));
    memcpy(all + 1 + q + Z, bar.theta[0], (size_t)theta * sizeof(double));
    memcpy(all + 1 + q + Z + theta, bar.mean[0], (WORLD_DIMS + 1) * sizeof(double));
    world_gradient_close(&w, &bar);
    world_close(&w);
    return all;
}

static void test_threads(void **state)
{
    (void)state;
    for (int family = 0; family < 4; family++) {
        double *want = NULL;
        for (int threads = 1; threads <= 3; threads++) {
            thiele_context *ctx = test_context(threads);
            thi_shape shape = shape_of(1, family < 2 ? 1 : 2, 150, 400);
            shape.diagonal = family % 2 == 1;
            shape.whitened = family % 2 == 0;
            int64_t size;
            double *got = everything(ctx, shape, 700, false, &size);
            if (want == NULL) {
                want = got;
            } else {
                assert_memory_equal(got, want, (size_t)size * sizeof(double));
                free(got);
            }
            thiele_context_destroy(ctx);
        }
        free(want);
    }
}

/* Largest difference, relative to the largest of the whole part. */
static double distance(const double *a, const double *b, int64_t n)
{
    double most = 0.0, scale = 0.0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        scale = fmax(scale, fabs(b[i]));
    }
    return most / scale;
}

static void test_rows(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (int family = 0; family < 4; family++) {
        thi_shape shape = shape_of(1, 1, 20, 700);
        shape.diagonal = family % 2 == 1;
        shape.whitened = family / 2 == 1;
        int64_t size;
        double *want = everything(ctx, shape, 700, false, &size);
        double *turned = everything(ctx, shape, 700, true, &size);
        shape.capacity = 57;
        double *cut = everything(ctx, shape, 700, false, &size);
        assert_near(turned[0], want[0], 1e-11, 0.0);
        assert_near(cut[0], want[0], 1e-11, 0.0);
        assert_true(distance(turned, want, size) < 1e-10);
        assert_true(distance(cut, want, size) < 1e-10);
        free(want);
        free(turned);
        free(cut);
    }
    thiele_context_destroy(ctx);
}

/* Without the gradients of the prior that of q is the same, and so are the steps. */
static void test_narrow(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < 4; i++) {
        world w;
        world_gradient bar, narrow;
        thi_shape shape = shape_of(2, 1, 6, 30);
        shape.diagonal = i % 2 == 1;
        shape.whitened = i / 2 == 0;
        world_open(&w, ctx, shape, 20);
        world_gradient_open(&w, &bar);
        world_gradient_open(&w, &narrow);
        double bound = world_bound(&w, ctx, NULL, &bar);
        thi_variational_narrow(w.v, true);
        assert_true(bound == world_bound(&w, ctx, NULL, &narrow));
        assert_memory_equal(bar.q, narrow.q, (size_t)thi_variational_size(&w.shape) * sizeof(double));
        world_gradient_close(&w, &bar);
        world_gradient_close(&w, &narrow);
        world_close(&w);
    }
    thiele_context_destroy(ctx);
}

/* --- predictors, memory ------------------------------------------------------------------------------------------- */

static void check_freeze(thiele_context *ctx, thi_shape shape)
{
    enum { ROWS = 20, Q = 2, K = 2 };
    static const int together[] = {0, 0};
    world w;
    double mu[ROWS * Q * K], v[ROWS * Q * K], mean[ROWS * K], variance[ROWS * K];
    shape.group = together;
    world_open(&w, ctx, shape, ROWS);
    world_bound(&w, ctx, NULL, NULL);
    assert_ok(ctx, thi_variational_marginals(w.v, ctx, ROWS, w.X, mu, v));
    for (int j = 0; j < Q; j++) {
        thi_predictor predictor;
        int64_t clipped = 0;
        assert_ok(ctx, thi_variational_freeze(w.v, ctx, j, &predictor));
        assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, ROWS, w.X, mean, variance, &clipped));
        for (int64_t i = 0; i < ROWS * K; i++) {
            assert_near(mu[i * Q + j], mean[i], 1e-10, 1e-10);
            assert_near(v[i * Q + j], variance[i], 1e-9, 1e-10);
        }
        thi_predictor_clear(&predictor);
    }
    world_close(&w);
}

static void test_freeze(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < 4; i++) {
        thi_shape shape = shape_of(2, 2, 7, 30);
        shape.diagonal = i % 2 == 1;
        shape.whitened = i / 2 == 1;
        check_freeze(ctx, shape);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* An evaluation fits into what is left when that is less than half a rows x M matrix. */
static void test_memory(void **state)
{
    (void)state;
    enum { M = 200, CAPACITY = 8000 };
    size_t matrix = (size_t)M * CAPACITY * sizeof(double), held = 0;
    for (int turn = 0; turn < 2; turn++) {
        thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
        thiele_context *ctx = NULL;
        options.threads = 1;
        options.memory_limit = turn == 0 ? 0 : held + matrix / 2;
        assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
        world w;
        world_gradient bar;
        world_open(&w, ctx, shape_of(1, 1, M, CAPACITY), 1000);
        held = thi_memory_held(ctx);
        world_gradient_open(&w, &bar);
        w.n = CAPACITY;
        w.X = realloc(w.X, sizeof(double) * CAPACITY * WORLD_DIMS);
        test_normals(CAPACITY * WORLD_DIMS, 1, w.X);
        world_bound(&w, ctx, NULL, &bar);
        world_gradient_close(&w, &bar);
        world_close(&w);
        thiele_context_destroy(ctx);
    }
}

/* Everything that is allocated fails once; nothing is lost, and it works the next time. */
static thiele_status run_once(thiele_context *ctx, thi_shape shape, const world *w, thi_sites *sites)
{
    thi_variational *v = NULL;
    thi_predictor predictor = {0};
    thi_prior prior[WORLD_GROUPS];
    double mu[40], variance[40], ones[40], expected[2] = {0.0}, kl, bar[400] = {0.0}, Zbar[2][16] = {{0.0}};
    double *const Z_bar[] = {Zbar[0], Zbar[1]};
    thi_adjoints adjoints = {sites == NULL ? bar : NULL, NULL, NULL, Z_bar};
    thiele_status status = THIELE_OK;
    world_prior(w, prior);
    for (int i = 0; i < 40; i++) {
        ones[i] = -1.0;
    }
    THI_TRY(thi_variational_open(&v, ctx, &shape));
    THI_TRY(
        thi_variational_begin(v, ctx, prior, (const double *const *)w->Z, sites == NULL ? w->q : NULL, sites, true));
    THI_TRY(thi_variational_marginals(v, ctx, 10, w->X, mu, variance));
    THI_TRY(thi_variational_pull(v, ctx, ones, ones));
    THI_TRY(thi_variational_end(v, ctx, expected, &kl, &adjoints));
    THI_TRY(thi_variational_freeze(v, ctx, 0, &predictor));
out:
    thi_predictor_clear(&predictor);
    thi_variational_close(v);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int family = 0; family < 5; family++) {
        world w;
        thi_sites sites[2];
        thi_shape shape = shape_of(2, family == 4 ? 1 : 2, 5, 10);
        shape.diagonal = family % 2 == 1;
        shape.whitened = family / 2 != 0;
        world_open(&w, ctx, shape, 10);
        shape.dims = WORLD_DIMS;
        for (int j = 0; j < 2; j++) {
            assert_ok(ctx, thi_sites_alloc(&sites[j], ctx, 5));
        }
        size_t held = thi_memory_held(ctx);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status != THIELE_OK && nth < 1000; nth++) {
            thi_fail_allocation(ctx, nth, false);
            status = run_once(ctx, shape, &w, family == 4 ? sites : NULL);
            thi_fail_allocation(ctx, 0, false);
            assert_int_equal(thi_memory_held(ctx), held);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        }
        assert_int_equal(status, THIELE_OK);
        thi_sites_free(&sites[0]);
        thi_sites_free(&sites[1]);
        world_close(&w);
    }
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
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_freeze),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_extreme_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

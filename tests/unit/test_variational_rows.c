/*
 * Variational posteriors over rows: groups of latents, chunks, orders of rows and numbers of threads that must agree
 * do; a frozen predictor predicts the same; work matrices are made once, and any allocation may fail.
 */
#include "variational_testing.h"

static thi_shape shape_of(int latents, int components, int64_t M, int64_t capacity)
{
    return (thi_shape){
        .latents = latents, .components = components, .inducing = M, .capacity = capacity, .whitened = true};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_freeze),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

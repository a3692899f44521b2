/*
 * Products with Kzz^-1 in place of solves: the same bound, gradients and natural steps where Kzz is well conditioned,
 * the very same bits where it is not, and the same bits on any number of threads.
 */
#include "variational_testing.h"

#include "posterior/variational_internal.h"

enum { ROWS = 90, CAPACITY = 50, LATENTS = 3 };

static const int shared[] = {0, 0, 1};

static thi_shape shape_of(int64_t M, int components, bool whitened, bool quick)
{
    return (thi_shape){.latents = LATENTS,
                       .components = components,
                       .inducing = M,
                       .capacity = CAPACITY,
                       .whitened = whitened,
                       .quick = quick,
                       .group = shared};
}

/* Inducing inputs are spread out by this factor: beyond 2 no two of them are near. */
static void open_spread(world *w, thiele_context *ctx, thi_shape shape, double spread)
{
    world_open(w, ctx, shape, ROWS);
    for (int g = 0; g < w->groups; g++) {
        for (int64_t i = 0; i < shape.inducing * WORLD_DIMS; i++) {
            w->Z[g][i] *= spread;
        }
    }
}

static void assert_same(int64_t n, const double *a, const double *b, double tolerance)
{
    double scale = 0.0, off = 0.0;
    for (int64_t i = 0; i < n; i++) {
        scale = fmax(scale, fabs(b[i]));
        off = fmax(off, fabs(a[i] - b[i]));
    }
    assert_true(off <= tolerance * scale);
}

static void assert_same_gradient(const world *w, const world_gradient *a, const world_gradient *b, double tolerance)
{
    assert_same(thi_variational_size(&w->shape), a->q, b->q, tolerance);
    for (int g = 0; g < w->groups; g++) {
        assert_same(thiele_kernel_parameters(w->kernel[g]), a->theta[g], b->theta[g], tolerance);
        assert_same(WORLD_DIMS + 1, a->mean[g], b->mean[g], tolerance);
        assert_same(w->shape.inducing * WORLD_DIMS, a->Z[g], b->Z[g], tolerance);
    }
}

/* Both ways, from q or from the same sites; tolerance 0: the same bits. */
static void compare(int64_t M, int components, bool whitened, bool by_sites, double spread, bool raw, double tolerance)
{
    thiele_context *ctx = test_context(2);
    world w[2];
    world_gradient bar[2];
    thi_sites sites[2][LATENTS];
    double bound[2] = {0.0};
    memset(sites, 0, sizeof sites);
    for (int i = 0; i < 2; i++) {
        open_spread(&w[i], ctx, shape_of(M, components, whitened, i == 0), spread);
        world_gradient_open(&w[i], &bar[i]);
        for (int j = 0; by_sites && j < LATENTS; j++) {
            assert_ok(ctx, thi_sites_alloc(&sites[i][j], ctx, M));
        }
        for (int step = 0; step < (by_sites ? 3 : 1); step++) {
            bound[i] = world_bound(&w[i], ctx, by_sites ? sites[i] : NULL, &bar[i]);
            if (by_sites) {
                thi_variational_step(w[i].v, 0.5, sites[i]);
            }
        }
    }
    assert_true(w[0].v->raw == raw);
    assert_near(bound[0], bound[1], tolerance, 0.0);
    assert_same_gradient(&w[0], &bar[0], &bar[1], tolerance);
    for (int j = 0; by_sites && j < LATENTS; j++) {
        assert_same(M, sites[0][j].sum.t, sites[1][j].sum.t, tolerance);
    }
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < LATENTS; j++) {
            thi_sites_free(&sites[i][j]);
        }
        world_gradient_close(&w[i], &bar[i]);
        world_close(&w[i]);
    }
    thiele_context_destroy(ctx);
}

/* eps tr(Kzz^-1) k is below 1e-12 here: 1e-9 leaves room for the cancelling of gradients. */
static void test_same(void **state)
{
    (void)state;
    compare(7, 1, true, false, 3.0, true, 1e-9);
    compare(7, 1, false, false, 3.0, true, 1e-9);
    compare(7, 2, true, false, 3.0, true, 1e-9);
    compare(130, 1, true, false, 40.0, true, 1e-9); /* more than one band */
}

static void test_sites(void **state)
{
    (void)state;
    compare(7, 1, true, true, 3.0, true, 1e-9);
    compare(130, 1, true, true, 40.0, true, 1e-9);
}

/* Many inducing inputs close together: as if it had not been asked for. */
static void test_badly_conditioned(void **state)
{
    (void)state;
    compare(40, 1, true, false, 0.1, false, 0.0);
    compare(40, 1, true, true, 0.1, false, 0.0);
}

static void test_threads(void **state)
{
    (void)state;
    world w[2];
    world_gradient bar[2];
    double bound[2];
    thiele_context *ctx[2];
    for (int i = 0; i < 2; i++) {
        thi_shape shape = shape_of(150, 1, true, true);
        shape.capacity = ROWS;
        ctx[i] = test_context(1 + 2 * i);
        open_spread(&w[i], ctx[i], shape, 40.0);
        world_gradient_open(&w[i], &bar[i]);
        bound[i] = world_bound(&w[i], ctx[i], NULL, &bar[i]);
    }
    assert_true(w[0].v->raw && bound[0] == bound[1]);
    assert_same_gradient(&w[0], &bar[0], &bar[1], 0.0);
    for (int i = 0; i < 2; i++) {
        world_gradient_close(&w[i], &bar[i]);
        world_close(&w[i]);
        thiele_context_destroy(ctx[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_badly_conditioned),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

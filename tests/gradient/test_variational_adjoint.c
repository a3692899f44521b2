/*
 * Gradients of variational bounds in all that they depend on (means, factors and deviations of q, weights of a mixture,
 * kernels, prior means, inducing inputs) against central differences, for every family, with several latents of which
 * some share kernel and Z, and with more rows than fit at a time; and those of the collapsed bound at fixed sites.
 */
#include "variational_testing.h"

enum { M = 5, ROWS = 23, CAPACITY = 10 };

/* Differences with step 1e-5 are good to some 1e-9 of the bound (of size 1e2): 1e-6 leaves room. */
static void check(double got, double up, double down, const char *what, int64_t i)
{
    double want = (up - down) / 2e-5;
    if (!(fabs(got - want) <= 2e-6 * (1.0 + fabs(want)))) {
        fail_msg("%s %lld: got %.12g, differences give %.12g", what, (long long)i, got, want);
    }
}

static thi_sites *copy_sites(thiele_context *ctx, const thi_sites *from, int count)
{
    thi_sites *sites = calloc((size_t)count, sizeof *sites);
    for (int j = 0; from != NULL && j < count; j++) {
        assert_ok(ctx, thi_sites_alloc(&sites[j], ctx, M));
        memcpy(sites[j].sum.T.data, from[j].sum.T.data, M * M * sizeof(double));
        memcpy(sites[j].L.data, from[j].L.data, M * M * sizeof(double));
        memcpy(sites[j].sum.t, from[j].sum.t, M * sizeof(double));
    }
    return sites;
}

static void free_sites(thi_sites *sites, int count)
{
    for (int j = 0; j < count; j++) {
        thi_sites_free(&sites[j]);
    }
    free(sites);
}

/* The bound with the sites as they are: an evaluation may move them. */
static double bound_of(const world *w, thiele_context *ctx, const thi_sites *sites, const world_gradient *bar)
{
    thi_sites *copy = copy_sites(ctx, sites, w->shape.latents);
    double bound = world_bound(w, ctx, sites != NULL ? copy : NULL, bar);
    free_sites(copy, w->shape.latents);
    return bound;
}

static void check_array(const world *w, thiele_context *ctx, const thi_sites *sites, double *x, int64_t n,
                        const double *bar, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        double kept = x[i];
        x[i] = kept + 1e-5;
        double up = bound_of(w, ctx, sites, NULL);
        x[i] = kept - 1e-5;
        double down = bound_of(w, ctx, sites, NULL);
        x[i] = kept;
        check(bar[i], up, down, what, i);
    }
}

static void check_kernel(const world *w, thiele_context *ctx, const thi_sites *sites, int g, const double *bar)
{
    double theta[16];
    thiele_kernel_get(w->kernel[g], theta);
    for (int p = 0; p < thiele_kernel_parameters(w->kernel[g]); p++) {
        double kept = theta[p];
        thi_kernel_set_one(w->kernel[g], p, kept + 1e-5);
        double up = bound_of(w, ctx, sites, NULL);
        thi_kernel_set_one(w->kernel[g], p, kept - 1e-5);
        double down = bound_of(w, ctx, sites, NULL);
        thi_kernel_set_one(w->kernel[g], p, kept);
        check(bar[p], up, down, "theta", p);
    }
}

static void check_all(world *w, thiele_context *ctx, const thi_sites *sites)
{
    world_gradient bar;
    world_gradient_open(w, &bar);
    bound_of(w, ctx, sites, &bar);
    if (sites == NULL) {
        check_array(w, ctx, NULL, w->q, thi_variational_size(&w->shape), bar.q, "q");
    }
    for (int g = 0; g < w->groups; g++) {
        check_kernel(w, ctx, sites, g, bar.theta[g]);
        check_array(w, ctx, sites, w->mean[g], g % 2 == 0 ? WORLD_DIMS + 1 : 1, bar.mean[g], "mean");
        check_array(w, ctx, sites, w->Z[g], M * WORLD_DIMS, bar.Z[g], "Z");
    }
    world_gradient_close(w, &bar);
}

static const int shared[] = {0, 0, 1};

static void check_shape(int latents, int components, bool diagonal, bool whitened, bool jensen, const int *group)
{
    thiele_context *ctx = test_context(1);
    world w;
    thi_shape shape = {.latents = latents,
                       .components = components,
                       .inducing = M,
                       .capacity = CAPACITY,
                       .diagonal = diagonal,
                       .whitened = whitened,
                       .jensen = jensen,
                       .group = group};
    world_open(&w, ctx, shape, ROWS);
    check_all(&w, ctx, NULL);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* By either bound on the entropy, where there are several components. */
static void check_family(int latents, int components, bool diagonal, bool whitened, const int *group)
{
    check_shape(latents, components, diagonal, whitened, false, group);
    if (components > 1) {
        check_shape(latents, components, diagonal, whitened, true, group);
    }
}

static void test_full(void **state)
{
    (void)state;
    check_family(1, 1, false, true, NULL);
    check_family(1, 1, false, false, NULL);
    check_family(3, 1, false, true, shared);
    check_family(3, 1, false, false, shared);
}

static void test_diagonal(void **state)
{
    (void)state;
    check_family(1, 1, true, true, NULL);
    check_family(1, 1, true, false, NULL);
    check_family(3, 1, true, true, shared);
    check_family(3, 1, true, false, shared);
}

static void test_full_mixture(void **state)
{
    (void)state;
    check_family(1, 3, false, true, NULL);
    check_family(1, 2, false, false, NULL);
    check_family(3, 2, false, true, shared);
}

static void test_diagonal_mixture(void **state)
{
    (void)state;
    check_family(1, 3, true, true, NULL);
    check_family(1, 3, true, false, NULL);
    check_family(3, 2, true, false, shared);
}

/* Sites that came from two damped steps, so that they are not at a fixed point, and then from those of another kernel.
 */
static void test_sites(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_shape shape = {
        .latents = 3, .components = 1, .inducing = M, .capacity = CAPACITY, .whitened = true, .group = shared};
    world_open(&w, ctx, shape, ROWS);
    thi_sites sites[3] = {0};
    for (int j = 0; j < 3; j++) {
        assert_ok(ctx, thi_sites_alloc(&sites[j], ctx, M));
    }
    world_gradient bar;
    world_gradient_open(&w, &bar);
    for (int step = 0; step < 2; step++) {
        world_bound(&w, ctx, sites, &bar);
        thi_variational_step(w.v, 0.4, sites);
    }
    check_all(&w, ctx, sites);
    thi_kernel_set_one(w.kernel[0], 0, 0.4);
    thi_kernel_set_one(w.kernel[1], 1, 0.3);
    check_all(&w, ctx, sites);
    world_gradient_close(&w, &bar);
    for (int j = 0; j < 3; j++) {
        thi_sites_free(&sites[j]);
    }
    world_close(&w);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),         cmocka_unit_test(test_diagonal),
        cmocka_unit_test(test_full_mixture), cmocka_unit_test(test_diagonal_mixture),
        cmocka_unit_test(test_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

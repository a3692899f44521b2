/*
 * Gradients of the bound of block posteriors at fixed sites by central differences, in the kernel's parameters, the
 * mean's and the inducing inputs: away from the fixed point of the sites, where some are negative, and at it.
 */
#include "sites_testing.h"

/* Of differences of step 1e-5: rounding of the value over the step, and the third derivative times its square. */
#define STEP       1e-5
#define RELATIVE   2e-6
#define ABSOLUTE   4e-6
#define PARAMETERS 8

static const char *const kernels[] = {"se(ard, lengthscale~[1.1,1.6], variance~0.9)",
                                      "matern52(lengthscale~1.3) + linear(variance~0.3)"};
static const char *const likelihoods[] = {"bernoulli", "student-t(nu=4, scale=0.3)"};

typedef struct gradient {
    double theta[PARAMETERS], mean[DIMS + 1], Z[DIMS * INDUCING];
} gradient;

/* whole: the bound; else log Z alone. */
static double value_at(sited *s, thiele_context *ctx, bool whole)
{
    world_prepare(&s->w, ctx);
    sited_sum(s, ctx);
    if (!whole) {
        return thi_sparse_evidence(&s->w.sparse, &s->w.sums);
    }
    sited_look(s, ctx);
    return sited_bound(s);
}

static double difference(sited *s, thiele_context *ctx, bool whole, double *x)
{
    double kept = *x;
    *x = kept + STEP;
    double above = value_at(s, ctx, whole);
    *x = kept - STEP;
    double below = value_at(s, ctx, whole);
    *x = kept;
    return (above - below) / (2.0 * STEP);
}

static void check_theta(sited *s, thiele_context *ctx, bool whole, const double *bar)
{
    double theta[PARAMETERS];
    thiele_kernel_get(s->w.kernel, theta);
    for (int i = 0; i < thiele_kernel_parameters(s->w.kernel); i++) {
        double kept = theta[i], value[2];
        for (int side = 0; side < 2; side++) {
            theta[i] = kept + (side == 0 ? STEP : -STEP);
            thiele_kernel_set(s->w.kernel, theta);
            value[side] = value_at(s, ctx, whole);
        }
        theta[i] = kept;
        thiele_kernel_set(s->w.kernel, theta);
        assert_near(bar[i], (value[0] - value[1]) / (2.0 * STEP), RELATIVE, ABSOLUTE);
    }
}

/* The gradient, with g and h or without. Its value is log Z once the divergence of q(w) is taken away. */
static void pull(sited *s, thiele_context *ctx, bool whole, gradient *g)
{
    thi_block block[BLOCKS];
    double value = 0.0, none = 0.0;
    thi_sparse_bar bar = {g->theta, g->mean, &none, g->Z};
    memset(g, 0, sizeof *g);
    memcpy(block, s->block, sizeof block);
    for (int b = 0; b < BLOCKS && !whole; b++) {
        block[b].at.g = block[b].at.h = NULL;
    }
    value_at(s, ctx, true);
    assert_ok(ctx, thi_sparse_pull(&s->w.sparse, ctx, s->count, block, 1.0, &value, &bar));
    assert_near(value - thi_sparse_divergence(&s->w.sparse), thi_sparse_evidence(&s->w.sparse, &s->w.sums), 1e-9, 1e-9);
    assert_true(none == 0.0);
}

static void check_all(sited *s, thiele_context *ctx, bool whole)
{
    gradient g;
    pull(s, ctx, whole, &g);
    check_theta(s, ctx, whole, g.theta);
    for (int i = 0; whole && i < thi_mean_parameters(s->w.mean, DIMS); i++) {
        assert_near(g.mean[i], difference(s, ctx, whole, &s->w.mean_parameter[i]), RELATIVE, ABSOLUTE);
    }
    for (int i = 0; i < DIMS * INDUCING; i++) {
        assert_near(g.Z[i], difference(s, ctx, whole, &s->w.Z[i]), RELATIVE, ABSOLUTE);
    }
}

/* At the fixed point g and h say nothing that the sites do not. */
static void check_fixed_point(sited *s, thiele_context *ctx)
{
    gradient with, without;
    for (int i = 0; i < 150; i++) {
        sited_step(s, ctx, 0.5);
    }
    pull(s, ctx, true, &with);
    pull(s, ctx, false, &without);
    assert_all_near(with.theta, without.theta, PARAMETERS, 1e-7, 1e-7);
    assert_all_near(with.mean, without.mean, DIMS + 1, 1e-7, 1e-7);
    assert_all_near(with.Z, without.Z, DIMS * INDUCING, 1e-7, 1e-7);
}

static void test_gradients(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int k = 0; k < 2; k++) {
        for (int l = 0; l < 2; l++) {
            for (int kind = THI_RESIDUAL_DIAGONAL; kind <= THI_RESIDUAL_BLOCK; kind++) {
                sited_setting set = {kernels[k],         likelihoods[l], l == 0 ? THI_MEAN_LINEAR : THI_MEAN_CONSTANT,
                                     (thi_residual)kind, BLOCKS,         INDUCING};
                sited s;
                sited_open(&s, ctx, &set);
                sited_scatter(&s);
                check_all(&s, ctx, true);
                check_all(&s, ctx, false);
                value_at(&s, ctx, true);
                check_fixed_point(&s, ctx);
                sited_close(&s);
            }
        }
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

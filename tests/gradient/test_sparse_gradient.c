/*
 * Gradients of sparse regression by central differences: the log evidence, and the bound at a q(w) that is not the best
 * one, in the kernel's parameters, the mean's, the log noise and the inducing inputs.
 */
#include "sparse_testing.h"

/* Of differences of step 1e-5: rounding of the value over the step, and the third derivative times its square. */
#define STEP       1e-5
#define RELATIVE   2e-6
#define ABSOLUTE   2e-6
#define PARAMETERS 8

static const char *const kernels[] = {"se(ard, lengthscale~[1.1,1.6], variance~0.9)",
                                      "matern52(lengthscale~1.3) + linear(variance~0.3)"};
static const struct {
    double none, diagonal, block;
    thi_penalty penalty;
} models[] = {
    {1.0, 0.0, 0.0, THI_PENALTY_NONE}, {1.0, 0.0, 0.0, THI_PENALTY_TRACE}, {1.0, 0.0, 0.0, THI_PENALTY_LOG},
    {0.0, 1.0, 0.0, THI_PENALTY_NONE}, {0.0, 0.0, 1.0, THI_PENALTY_NONE},  {0.2, 0.3, 0.5, THI_PENALTY_LOG},
};
enum { KERNELS = sizeof kernels / sizeof *kernels, MODELS = sizeof models / sizeof *models };

typedef struct gradient {
    double theta[PARAMETERS], mean[DIMS + 1], log_noise, Z[DIMS * INDUCING];
} gradient;

/* best: q follows the parameters; else it stays what it is. */
static double value_at(world *w, thiele_context *ctx, bool best)
{
    world_prepare(w, ctx);
    if (best) {
        return world_fit(w, ctx);
    }
    gradient unused = {0};
    double value = 0.0;
    thi_sparse_bar bar = {unused.theta, unused.mean, &unused.log_noise, unused.Z};
    assert_ok(ctx, thi_sparse_pull(&w->sparse, ctx, BLOCKS, w->block, 1.0, &value, &bar));
    return value - thi_sparse_divergence(&w->sparse);
}

static double difference(world *w, thiele_context *ctx, bool best, double *x)
{
    double kept = *x;
    *x = kept + STEP;
    double above = value_at(w, ctx, best);
    *x = kept - STEP;
    double below = value_at(w, ctx, best);
    *x = kept;
    return (above - below) / (2.0 * STEP);
}

static void check_theta(world *w, thiele_context *ctx, bool best, const double *bar)
{
    double theta[PARAMETERS];
    int count = thiele_kernel_parameters(w->kernel);
    thiele_kernel_get(w->kernel, theta);
    for (int i = 0; i < count; i++) {
        double kept = theta[i], value[2];
        for (int side = 0; side < 2; side++) {
            theta[i] = kept + (side == 0 ? STEP : -STEP);
            thiele_kernel_set(w->kernel, theta);
            value[side] = value_at(w, ctx, best);
        }
        theta[i] = kept;
        thiele_kernel_set(w->kernel, theta);
        assert_near(bar[i], (value[0] - value[1]) / (2.0 * STEP), RELATIVE, ABSOLUTE);
    }
}

static void check_noise(world *w, thiele_context *ctx, bool best, double bar)
{
    double kept = w->noise;
    w->noise = kept * exp(STEP);
    double above = value_at(w, ctx, best);
    w->noise = kept * exp(-STEP);
    double below = value_at(w, ctx, best);
    w->noise = kept;
    assert_near(bar, (above - below) / (2.0 * STEP), RELATIVE, ABSOLUTE);
}

static void check_all(world *w, thiele_context *ctx, bool best)
{
    gradient g = {0};
    double value = 0.0;
    thi_sparse_bar bar = {g.theta, g.mean, &g.log_noise, g.Z};
    world_prepare(w, ctx);
    double evidence = world_fit(w, ctx);
    if (!best) {
        /* q of one block that counts twice */
        thi_natural_zero(&w->sums);
        assert_ok(ctx, thi_sparse_sum(&w->sparse, ctx, 1, w->block, 2.0, &w->sums));
        assert_ok(ctx, thi_sparse_set(&w->sparse, ctx, &w->sums));
    }
    assert_ok(ctx, thi_sparse_pull(&w->sparse, ctx, BLOCKS, w->block, 1.0, &value, &bar));
    value -= thi_sparse_divergence(&w->sparse);
    assert_true(best ? fabs(value - evidence) < 1e-9 * fabs(evidence) : value < evidence);
    check_theta(w, ctx, best, g.theta);
    check_noise(w, ctx, best, g.log_noise);
    for (int i = 0; i < thi_mean_parameters(w->mean, DIMS); i++) {
        assert_near(g.mean[i], difference(w, ctx, best, &w->mean_parameter[i]), RELATIVE, ABSOLUTE);
    }
    for (int i = 0; i < DIMS * INDUCING; i++) {
        assert_near(g.Z[i], difference(w, ctx, best, &w->Z[i]), RELATIVE, ABSOLUTE);
    }
}

static void sweep(bool best)
{
    thiele_context *ctx = test_context(1);
    for (int k = 0; k < KERNELS; k++) {
        for (int m = 0; m < MODELS; m++) {
            world w;
            world_open(&w, ctx, kernels[k], m % 2 == 0 ? THI_MEAN_LINEAR : THI_MEAN_CONSTANT);
            world_engine(&w, ctx, models[m].none, models[m].diagonal, models[m].block);
            w.sparse.shape.penalty = models[m].penalty;
            check_all(&w, ctx, best);
            world_close(&w);
        }
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_evidence(void **state)
{
    (void)state;
    sweep(true);
}

static void test_bound(void **state)
{
    (void)state;
    sweep(false);
}

/* Where the gradient in Z is not wanted, the others are the same but for the order of a kernel's sums. */
static void test_without_inducing(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    gradient g = {0}, less = {0};
    double value = 0.0;
    thi_sparse_bar bar = {g.theta, g.mean, &g.log_noise, g.Z}, part = {less.theta, less.mean, &less.log_noise, NULL};
    world_open(&w, ctx, kernels[0], THI_MEAN_LINEAR);
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    world_fit(&w, ctx);
    assert_ok(ctx, thi_sparse_pull(&w.sparse, ctx, BLOCKS, w.block, 1.0, &value, &bar));
    assert_ok(ctx, thi_sparse_pull(&w.sparse, ctx, BLOCKS, w.block, 1.0, &value, &part));
    assert_all_near(less.theta, g.theta, PARAMETERS, 1e-12, 1e-12);
    assert_memory_equal(g.mean, less.mean, sizeof g.mean);
    assert_true(g.log_noise == less.log_noise);
    world_close(&w);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_without_inducing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

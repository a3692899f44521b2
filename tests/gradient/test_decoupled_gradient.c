/*
 * Gradients of decoupled posteriors by central differences, both forms, plain and generalised bases, one latent and
 * several, with all columns of K_alpha; and those from single columns, whose average over all columns is the exact one.
 */
#include "decoupled_testing.h"

/* Of differences of step 1e-5: rounding of the value over the step, and the third derivative times its square. */
#define STEP     1e-5
#define RELATIVE 2e-6
#define ABSOLUTE 2e-6

static const struct {
    const char *kernel;
    bool orthogonal, general, tight;
    int latents;
} models[] = {
    {SE_KERNEL, false, false, false, 1},
    {SE_KERNEL, false, true, false, 1},
    {SE_KERNEL, true, false, false, 1},
    {SE_KERNEL, true, true, false, 1},
    {SE_KERNEL, true, false, true, 1},
    {SE_KERNEL, true, true, true, 1},
    {"se(lengthscale~1.2, variance~0.8)", true, true, false, 1},
    {"matern52(lengthscale~1.3) + linear(variance~0.3)", false, false, false, 1},
    {"matern52(lengthscale~1.3) + linear(variance~0.3)", true, false, false, 1},
    {"matern52(lengthscale~1.3) + linear(variance~0.3)", true, false, true, 1},
    {"se(dims=2, lengthscale~1.1)", true, true, false, 1},
    {"matern52(ard, lengthscale~[0.9,1.4], variance~1.3)", true, true, true, 1},
    {"matern32(lengthscale~1.2, variance~0.8)", false, true, false, 1},
    {"matern12(dims=2, lengthscale~1.1)", true, true, true, 1},
    {SE_KERNEL, false, true, false, 2},
    {SE_KERNEL, true, true, true, 3},
    {"matern52(lengthscale~1.3) + linear(variance~0.3)", true, false, false, 2},
};
enum { MODELS = sizeof models / sizeof *models };

static void check_numbers(world *w, thiele_context *ctx, int count, double *x, const double *bar)
{
    for (int i = 0; i < count; i++) {
        double kept = x[i];
        x[i] = kept + STEP;
        double above = world_bound(w, ctx, NULL);
        x[i] = kept - STEP;
        double below = world_bound(w, ctx, NULL);
        x[i] = kept;
        assert_near(bar[i], (above - below) / (2.0 * STEP), RELATIVE, ABSOLUTE);
    }
}

static void check_theta(world *w, thiele_context *ctx, const double *bar)
{
    double theta[PARAMETERS];
    thiele_kernel_get(w->kernel, theta);
    for (int i = 0; i < thiele_kernel_parameters(w->kernel); i++) {
        double kept = theta[i], value[2];
        for (int side = 0; side < 2; side++) {
            theta[i] = kept + (side == 0 ? STEP : -STEP);
            thiele_kernel_set(w->kernel, theta);
            value[side] = world_bound(w, ctx, NULL);
        }
        theta[i] = kept;
        thiele_kernel_set(w->kernel, theta);
        assert_near(bar[i], (value[0] - value[1]) / (2.0 * STEP), RELATIVE, ABSOLUTE);
    }
}

static void test_differences(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int k = 0; k < MODELS; k++) {
        world w;
        gradient g = {0};
        world_open_many(&w, ctx, models[k].kernel, models[k].orthogonal, models[k].general, models[k].latents);
        w.tight = models[k].tight;
        thi_decoupled_bar bar = gradient_bar(&g, &w);
        world_bound(&w, ctx, &bar);
        check_theta(&w, ctx, g.theta);
        check_numbers(&w, ctx, DIMS + 1, w.mean_parameter, g.mean);
        check_numbers(&w, ctx, ALPHA * w.latents, w.a, g.a);
        check_numbers(&w, ctx, DIMS * ALPHA, w.alpha, g.alpha);
        check_numbers(&w, ctx, DIMS * BETA, w.beta, g.beta);
        if (models[k].general) {
            check_numbers(&w, ctx, DIMS * ALPHA, w.log_c_alpha, g.log_c_alpha);
            check_numbers(&w, ctx, DIMS * BETA, w.log_c_beta, g.log_c_beta);
        }
        for (int j = 0; j < BETA * w.latents && !models[k].orthogonal; j++) {
            int at = j % BETA + j * BETA;
            check_numbers(&w, ctx, BETA - j % BETA, w.factor + at, g.L + at);
        }
        world_close(&w);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* The mean over single columns is what all columns give, to rounding: value and every gradient. */
static void test_unbiased(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int k = 0; k < MODELS; k++) {
        world w;
        gradient whole = {0}, sum = {0};
        double total = 0.0, *all = (double *)&whole, *one = (double *)&sum;
        world_open_many(&w, ctx, models[k].kernel, models[k].orthogonal, models[k].general, models[k].latents);
        w.tight = models[k].tight;
        thi_decoupled_bar bar = gradient_bar(&whole, &w);
        double exact = world_bound(&w, ctx, &bar);
        bar = gradient_bar(&sum, &w);
        for (int64_t i = 0; i < ALPHA; i++) {
            double value = 0.0;
            assert_ok(ctx, world_value(&w, ctx, (thi_decoupled_columns){1, &i}, &value, &bar));
            total += value / ALPHA;
        }
        assert_near(total, exact, 1e-13, 1e-12);
        for (size_t i = 0; i < sizeof whole / sizeof(double); i++) {
            assert_near(one[i] / ALPHA, all[i], 1e-10, 1e-10);
        }
        world_close(&w);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences), cmocka_unit_test(test_unbiased)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The tighter collapsed bound: what it loses for R by its formula, and its place between Titsias' bound of 2009 and the
 * log evidence in a thousand random cases.
 */
#include "sparse_testing.h"

enum { CASES = 1000 };

static double bound_of(world *w, thiele_context *ctx, thi_penalty penalty)
{
    w->sparse.shape.penalty = penalty;
    return world_fit(w, ctx);
}

static double evidence_of(const world *w, thiele_context *ctx)
{
    thi_exact exact;
    thi_prior prior = world_prior(w);
    assert_ok(ctx, thi_exact_open(&exact, ctx, ROWS, w->X, w->y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, &prior, w->noise));
    double evidence = exact.log_marginal;
    thi_exact_close(&exact);
    return evidence;
}

static void test_formula(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    double *K = dense_kernel(&w, ctx, ROWS, w.X, ROWS, w.X), *Q = dense_q(&w, ctx, ROWS, w.X, ROWS, w.X);
    double want = bound_of(&w, ctx, THI_PENALTY_NONE);
    for (int i = 0; i < ROWS; i++) {
        want -= 0.5 * log1p((K[i * ROWS + i] - Q[i * ROWS + i]) / w.noise);
    }
    assert_near(bound_of(&w, ctx, THI_PENALTY_LOG), want, 1e-10, 1e-10);
    free(K);
    free(Q);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* Kernels, inducing inputs, targets and noises over several powers of ten. */
static void test_between(void **state)
{
    (void)state;
    static const char *const kernels[] = {"se", "matern32", "matern52(ard)", "matern12", "rq"};
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < CASES; i++) {
        double z[ROWS + 16], theta[8];
        world w;
        world_open(&w, ctx, kernels[i % 5], THI_MEAN_ZERO);
        test_normals(ROWS + 16, 100 + (uint64_t)i, z);
        test_normals(DIMS * INDUCING, 5000 + (uint64_t)i, w.Z);
        int parameters = thiele_kernel_parameters(w.kernel);
        for (int k = 0; k < parameters; k++) {
            theta[k] = 0.7 * z[k];
        }
        thiele_kernel_set(w.kernel, theta);
        w.noise = exp(-2.0 + 1.5 * z[8]);
        for (int n = 0; n < ROWS; n++) {
            w.y[n] = w.y[n] + 0.3 * z[16 + n];
        }
        world_engine(&w, ctx, 1.0, 0.0, 0.0);
        double old = bound_of(&w, ctx, THI_PENALTY_TRACE), tight = bound_of(&w, ctx, THI_PENALTY_LOG);
        double evidence = evidence_of(&w, ctx);
        assert_true(old <= tight);
        assert_true(tight <= evidence + 1e-9 * fabs(evidence));
        world_close(&w);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formula), cmocka_unit_test(test_between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * No density takes long, however extreme its arguments: every likelihood at y, mu and v that are tiny, huge and far
 * apart, each of what is computed from it (expectation, log predictive density, moments, quantiles) with a limit on its
 * time. What comes out may be an error with a sentence; it may not be NaN where there is none, and may not take for
 * ever.
 */
#include "likelihood_testing.h"

#include <time.h>

#include "expect/expect.h"

/* Processor seconds for one row; a usual one takes microseconds to a millisecond. */
static const double LIMIT = 1.5;

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A value of y of the kind that the support has, from one of any size. */
static double observation(const thiele_likelihood *lik, double size)
{
    switch (lik->ops->support) {
    case THI_SUPPORT_POSITIVE:
        return fmax(fabs(size), 1e-300);
    case THI_SUPPORT_UNIT:
        return size < 0 ? 1e-12 : size > 1 ? 1 - 1e-12 : fmax(size, 1e-9);
    case THI_SUPPORT_COUNT:
        return floor(fmin(fabs(size), 1e15));
    case THI_SUPPORT_BINARY:
        return size < 0 ? -1 : 1;
    case THI_SUPPORT_CLASS:
        return size < 0 ? 0 : 1;
    default:
        return size;
    }
}

typedef struct worst {
    double seconds[4];
    char where[4][160];
} worst;

static const char *const tasks[] = {"expectation", "log predictive density", "moments", "quantiles"};

static void note(worst *w, int task, double seconds, const char *name, double y, double mu, double v)
{
    if (seconds > w->seconds[task]) {
        w->seconds[task] = seconds;
        snprintf(w->where[task], sizeof w->where[task], "%s of %s at y = %g, mu = %g, v = %g took %.3f s", tasks[task],
                 name, y, mu, v, seconds);
    }
}

/* What does not depend on y is done for the first of them. */
static void one_row(thi_expect *expect, double size, bool first, double mu_each, double v_each, worst *w)
{
    const thiele_likelihood *lik = expect->lik;
    double y[4], mu[8], v[8], E, g[8], h[8], dphi[16], mean[4], variance[4], out[12];
    static const double p[] = {0.05, 0.5, 0.95};
    for (int o = 0; o < lik->outputs; o++) {
        y[o] = observation(lik, size);
    }
    for (int q = 0; q < lik->latents; q++) {
        mu[q] = q == 0 ? mu_each : 0.3 * mu_each;
        v[q] = v_each;
    }
    const char *name = thiele_likelihood_name(lik);
    bool refused = thi_likelihood_refuses(lik, y[0]) != NULL;
    for (int task = 0; task < (first ? 4 : 2); task++) {
        thiele_status status = THIELE_OK;
        double start = processor_seconds();
        if (task == 0 && !refused) {
            status = thi_expect_block(expect, ctx, 0, 1, y, mu, v, &E, g, h, dphi);
        } else if (task == 1 && !refused) {
            status = thi_log_predictive_block(expect, ctx, 1, y, mu, v, out);
        } else if (task == 2 && lik->ops->support != THI_SUPPORT_CLASS) {
            status = thi_predict_block(expect, ctx, 1, mu, v, mean, variance);
        } else if (task == 3) {
            status = thi_quantile_block(expect, ctx, 1, mu, v, 3, p, out);
        }
        note(w, task, processor_seconds() - start, name, y[0], mu_each, v_each);
        if (status != THIELE_OK && strlen(thiele_context_message(ctx)) < 10) {
            fail_msg("%s of %s: %s", tasks[task], name, thiele_context_message(ctx));
        }
    }
}

static void one_family(thiele_likelihood *lik)
{
    static const double sizes[] = {0, 1e-9, 1, -3, 50, -1e4, 1e9, 1e15}, means[] = {0, 1, -30, 200, -1e6, 1e9};
    static const double variances[] = {1e-16, 1e-6, 1, 1e4, 1e12};
    double limit = LIMIT;
#if defined(__SANITIZE_ADDRESS__)
    limit *= 10;
#endif
    thi_expect expect;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    worst w = {0};
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) {
        for (size_t b = 0; b < sizeof means / sizeof *means; b++) {
            for (size_t c = 0; c < sizeof variances / sizeof *variances; c++) {
                one_row(&expect, sizes[a], a == 0, means[b], variances[c], &w);
            }
        }
    }
    for (int task = 0; task < 4; task++) {
        if (w.seconds[task] > limit) {
            fail_msg("%s", w.where[task]);
        }
    }
    thi_expect_close(&expect);
}

static void test_every_family(void **state)
{
    (void)state;
    test_all_likelihoods(one_family);
}

/* Far from the defaults. */
static void test_settings(void **state)
{
    (void)state;
    static const char *const texts[] = {"student-t(nu=2.1, scale=1e-3)", "gamma(shape=1e4)", "laplace(beta=0.01)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, texts[i], 1, 0));
        one_family(lik);
        thiele_likelihood_destroy(lik);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_family), cmocka_unit_test(test_settings)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

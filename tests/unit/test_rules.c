/* Step rules against their formulas, held segments, refused gradients, threads; schedules; the monitor on noise. */
#include "testing_context.h"

#include "optim/monitor.h"
#include "optim/rules.h"

static const char *const names[] = {"adam", "adadelta", "momentum"};
enum { RULES = 3 };

static thi_schedule constant_rate(double rate)
{
    thi_schedule schedule;
    assert_ok(ctx, thi_schedule_make(&schedule, ctx, "constant", rate, 0.0, 0.0));
    return schedule;
}

static void test_schedules(void **state)
{
    (void)state;
    thi_schedule s;
    assert_ok(ctx, thi_schedule_make(&s, ctx, "constant", 0.3, 0.0, 0.0));
    assert_near(thi_schedule_rate(&s, 1000), 0.3, 0.0, 0.0);
    assert_ok(ctx, thi_schedule_make(&s, ctx, "decay", 0.5, 0.1, 0.75));
    assert_near(thi_schedule_rate(&s, 0), 0.5, 0.0, 0.0);
    assert_near(thi_schedule_rate(&s, 40), 0.5 / pow(3.0, 0.75), 1e-15, 0.0);
    assert_ok(ctx, thi_schedule_make(&s, ctx, "power", 1.0, 10.0, 0.6));
    assert_near(thi_schedule_rate(&s, 90), pow(100.0, -0.6), 1e-15, 0.0);
    assert_ok(ctx, thi_schedule_make(&s, ctx, "sqrt", 0.1, 0.0, 0.0));
    assert_near(thi_schedule_rate(&s, 0), 0.1, 0.0, 0.0);
    assert_near(thi_schedule_rate(&s, 100), 0.05, 1e-15, 0.0);
    assert_fails(ctx, thi_schedule_make(&s, ctx, "cosine", 1.0, 0.0, 0.0), THIELE_ERROR_ARGUMENT, "'cosine'");
    assert_fails(ctx, thi_schedule_make(&s, ctx, "constant", 0.0, 0.0, 0.0), THIELE_ERROR_ARGUMENT, "positive");
    assert_fails(ctx, thi_schedule_make(&s, ctx, "sqrt", NAN, 0.0, 0.0), THIELE_ERROR_ARGUMENT, "positive");
    assert_fails(ctx, thi_schedule_make(&s, ctx, "power", 1.0, 0.0, 0.5), THIELE_ERROR_ARGUMENT, "tau > 0");
    assert_fails(ctx, thi_schedule_make(&s, ctx, "decay", 1.0, 1.0, -0.5), THIELE_ERROR_ARGUMENT, "kappa");
}

/* The papers' recursions for one number, written out. */
static double by_hand(const char *name, int steps, double rate, double x, const double *g)
{
    double a = 0.0;
    double b = 0.0;
    for (int t = 1; t <= steps; t++) {
        double gt = g[t - 1];
        if (strcmp(name, "adam") == 0) {
            a = 0.9 * a + 0.1 * gt;
            b = 0.999 * b + 0.001 * gt * gt;
            x -= rate * (a / (1.0 - pow(0.9, t))) / (sqrt(b / (1.0 - pow(0.999, t))) + 1e-8);
        } else if (strcmp(name, "adadelta") == 0) {
            a = 0.95 * a + 0.05 * gt * gt;
            double delta = sqrt(b + 1e-6) / sqrt(a + 1e-6) * gt;
            b = 0.95 * b + 0.05 * delta * delta;
            x -= rate * delta;
        } else {
            a = 0.9 * a + gt;
            x -= rate * a;
        }
    }
    return x;
}

static void test_formulas(void **state)
{
    (void)state;
    enum { STEPS = 50 };
    double g[STEPS];
    test_normals(STEPS, 1, g);
    thi_schedule schedule = constant_rate(0.02);
    int64_t length = 1;
    for (int k = 0; k < RULES; k++) {
        thi_rule rule;
        double x = 1.5;
        assert_ok(ctx, thi_rule_open(&rule, ctx, names[k], &schedule, 1, &length));
        for (int t = 0; t < STEPS; t++) {
            assert_ok(ctx, thi_rule_step(&rule, ctx, &x, g + t, NULL));
            assert_near(x, by_hand(names[k], t + 1, 0.02, 1.5, g), 1e-13, 0.0);
        }
        thi_rule_close(&rule);
    }
    /* Adam's first step has the size of the rate whatever the gradient; a lower factor takes as much less. */
    for (double size = 1e-3; size < 1e9; size *= 1e3) {
        thi_rule rule;
        double x = 0.0;
        assert_ok(ctx, thi_rule_open(&rule, ctx, "adam", &schedule, 1, &length));
        rule.factor = 0.25;
        assert_ok(ctx, thi_rule_step(&rule, ctx, &x, &size, NULL));
        assert_near(x, -0.25 * 0.02, 1e-4, 0.0);
        thi_rule_close(&rule);
    }
}

/* All of them find the bottom of a bowl with axes of 1 to 100. A falling rate, since AdaDelta ends in a cycle of 0.03
 * around it at rate 1. */
static void test_minimise(void **state)
{
    (void)state;
    enum { D = 5, STEPS = 4000 };
    const double rate[RULES] = {0.05, 1.0, 0.005};
    int64_t length = D;
    for (int k = 0; k < RULES; k++) {
        thi_rule rule;
        thi_schedule schedule;
        assert_ok(ctx, thi_schedule_make(&schedule, ctx, "sqrt", rate[k], 0.0, 0.0));
        double x[D] = {1.0, -1.0, 0.5, 2.0, -2.0};
        assert_ok(ctx, thi_rule_open(&rule, ctx, names[k], &schedule, 1, &length));
        for (int t = 0; t < STEPS; t++) {
            double g[D];
            for (int d = 0; d < D; d++) {
                g[d] = pow(100.0, d / (D - 1.0)) * x[d];
            }
            assert_ok(ctx, thi_rule_step(&rule, ctx, x, g, NULL));
        }
        for (int d = 0; d < D; d++) {
            assert_true(fabs(x[d]) < 0.02);
        }
        thi_rule_close(&rule);
    }
}

/* Segments that take turns move as if each had a rule of its own, and garbage in a held gradient is not looked at. */
static void test_segments(void **state)
{
    (void)state;
    enum { S = 3, N = 20000 + 1 + 300, STEPS = 12 };
    const int64_t length[S] = {20000, 1, 300};
    const int64_t first[S] = {0, 20000, 20001};
    static double x[N], alone[N], g[N];
    thi_schedule schedule;
    assert_ok(ctx, thi_schedule_make(&schedule, ctx, "decay", 0.05, 1.0, 0.7));
    for (int k = 0; k < RULES; k++) {
        thi_rule rule, own[S];
        test_normals(N, 3, x);
        memcpy(alone, x, sizeof x);
        assert_ok(ctx, thi_rule_open(&rule, ctx, names[k], &schedule, S, length));
        for (int s = 0; s < S; s++) {
            assert_ok(ctx, thi_rule_open(&own[s], ctx, names[k], &schedule, 1, &length[s]));
        }
        for (int t = 0; t < STEPS; t++) {
            bool active[S] = {t % 2 == 0, t % 3 == 0, t > 5};
            test_normals(N, 100 + (uint64_t)t, g);
            for (int s = 0; s < S; s++) {
                if (active[s]) {
                    assert_ok(ctx, thi_rule_step(&own[s], ctx, alone + first[s], g + first[s], NULL));
                } else {
                    g[first[s]] = NAN;
                }
            }
            assert_ok(ctx, thi_rule_step(&rule, ctx, x, g, active));
            assert_memory_equal(x, alone, sizeof x);
        }
        for (int s = 0; s < S; s++) {
            assert_int_equal(rule.taken[s], own[s].taken[0]);
            thi_rule_close(&own[s]);
        }
        thi_rule_close(&rule);
    }
}

static void test_refused(void **state)
{
    (void)state;
    enum { N = 30000 };
    static double x[N], before[N], g[N], memory[2 * N];
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const int64_t where[] = {0, 7, 8191, 8192, N - 1};
    thi_schedule schedule = constant_rate(0.1);
    int64_t length = N;
    for (int k = 0; k < RULES; k++) {
        thi_rule rule;
        test_normals(N, 1, x);
        assert_ok(ctx, thi_rule_open(&rule, ctx, names[k], &schedule, 1, &length));
        test_normals(N, 2, g);
        assert_ok(ctx, thi_rule_step(&rule, ctx, x, g, NULL));
        memcpy(before, x, sizeof x);
        memcpy(memory, rule.state, sizeof memory);
        for (int i = 0; i < 15; i++) {
            double good = g[where[i / 3]];
            g[where[i / 3]] = bad[i % 3];
            assert_fails(ctx, thi_rule_step(&rule, ctx, x, g, NULL), THIELE_ERROR_NUMERIC, "not finite");
            g[where[i / 3]] = good;
            assert_memory_equal(x, before, sizeof x);
            assert_memory_equal(rule.state, memory, sizeof memory);
            assert_int_equal(rule.taken[0], 1);
        }
        /* Large, but finite. */
        g[5] = 1e150;
        assert_ok(ctx, thi_rule_step(&rule, ctx, x, g, NULL));
        thi_rule_close(&rule);
    }
}

static void test_threads(void **state)
{
    (void)state;
    enum { N = 200001 };
    static double g[N], x[3][N];
    thi_schedule schedule = constant_rate(0.1);
    const int64_t length[2] = {77777, N - 77777};
    for (int k = 0; k < RULES; k++) {
        for (int threads = 1; threads <= 3; threads++) {
            thiele_context *own = test_context(threads);
            thi_rule rule;
            memset(x[threads - 1], 0, sizeof x[0]);
            assert_ok(own, thi_rule_open(&rule, own, names[k], &schedule, 2, length));
            for (uint64_t t = 0; t < 3; t++) {
                test_normals(N, t, g);
                assert_ok(own, thi_rule_step(&rule, own, x[threads - 1], g, NULL));
            }
            assert_memory_equal(x[0], x[threads - 1], sizeof x[0]);
            thi_rule_close(&rule);
            thiele_context_destroy(own);
        }
    }
}

static void test_open_failures(void **state)
{
    (void)state;
    thi_rule rule;
    thi_schedule schedule = constant_rate(0.1);
    int64_t length[2] = {10, 0};
    assert_fails(ctx, thi_rule_open(&rule, ctx, "newton", &schedule, 2, length), THIELE_ERROR_ARGUMENT, "'newton'");
    thi_rule_close(&rule);
    for (int64_t nth = 1; nth <= 3; nth++) {
        thi_fail_allocation(ctx, nth, false);
        assert_int_equal(thi_rule_open(&rule, ctx, "adam", &schedule, 2, length), THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(ctx), 0);
    }
    thi_fail_allocation(ctx, 0, false);
    assert_ok(ctx, thi_rule_open(&rule, ctx, "adam", &schedule, 2, length));
    thi_rule_close(&rule);
}

/* --- The monitor ------------------------------------------------------------------------------------------------ */

enum { WINDOW = 50 };

/* Feeds f(t) = drift t + walk of unit steps + unit noise until it stops, at most `most` windows; returns how many. */
static int windows_until_stop(thi_monitor *m, double drift, double walk, uint64_t seed, int most)
{
    double wandered = 0.0;
    thi_monitor_open(m, WINDOW, 0.0);
    for (int64_t t = 0; t < (int64_t)most * WINDOW; t++) {
        wandered += walk * thi_random_normal((thi_stream){seed, THI_RANDOM_DEMO, 1}, (uint64_t)t);
        double noise = thi_random_normal((thi_stream){seed, THI_RANDOM_DEMO, 2}, (uint64_t)t);
        if (thi_monitor_add(m, 1e4 + drift * (double)t + wandered + noise) == THI_SIGNAL_STOP) {
            return (int)(t / WINDOW) + 1;
        }
    }
    return most;
}

/* Pure noise and random walks end; a trend that is a small part of a window's noise goes on. */
static void test_monitor_trends(void **state)
{
    (void)state;
    enum { RUNS = 50, MOST = 200 };
    thi_monitor m;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        int windows = windows_until_stop(&m, 0.0, 0.0, seed, MOST);
        assert_in_range(windows, 32, 64);
        assert_true(m.converged);
        assert_true(m.slowed <= 4);
        assert_near(m.smoothed, 1e4, 0.0, 1.0);
        /* A third of the standard error of a window's mean in each window. */
        assert_int_equal(windows_until_stop(&m, -0.33 / sqrt(WINDOW) / WINDOW, 0.0, seed, MOST), MOST);
        assert_true(m.slowed <= 1);
        assert_true(windows_until_stop(&m, 0.0, 1.0, seed, 1000) < 1000);
    }
    /* What only rises is slowed down at every turn, and does not count as converged. */
    windows_until_stop(&m, 0.1, 0.0, 1, MOST);
    assert_false(m.converged);
    assert_int_equal(m.slowed, 30);
}

/* Without noise the tolerance decides. */
static void test_monitor_exact(void **state)
{
    (void)state;
    thi_monitor m;
    double loose = 0.0;
    for (double tolerance = 1e-2; tolerance > 1e-7; tolerance *= 0.1) {
        thi_monitor_open(&m, 10, tolerance);
        int t = 0;
        while (thi_monitor_add(&m, 5.0 + exp(-0.05 * t)) != THI_SIGNAL_STOP) {
            t++;
            assert_true(t < 2000);
        }
        assert_true(m.converged);
        /* It did not stop before what is left is less than the tolerance, and later for a smaller one. */
        assert_true(exp(-0.05 * t) < tolerance);
        assert_true(t > loose);
        loose = t;
    }
    /* Values that are not finite: slower each time, and an end. */
    thi_monitor_open(&m, 10, 0.0);
    for (int i = 0; i < 29; i++) {
        assert_int_equal(thi_monitor_add(&m, i % 2 == 0 ? NAN : INFINITY), THI_SIGNAL_SLOWER);
    }
    assert_int_equal(thi_monitor_add(&m, NAN), THI_SIGNAL_STOP);
    assert_false(m.converged);
    assert_int_equal(m.seen, 0);
}

/* A bowl with axes of 0.01 to 1 and noisy gradients and values, from any rate over four decades. */
static double descend(const char *name, double rate, uint64_t seed, int *steps)
{
    enum { D = 20 };
    double x[D], axis[D];
    int64_t length = D;
    thi_rule rule;
    thi_monitor m;
    thi_schedule schedule = constant_rate(rate);
    assert_ok(ctx, thi_rule_open(&rule, ctx, name, &schedule, 1, &length));
    thi_monitor_open(&m, WINDOW, 1e-6);
    for (int d = 0; d < D; d++) {
        x[d] = 3.0;
        axis[d] = pow(10.0, -2.0 * d / (D - 1.0));
    }
    for (*steps = 0; *steps < 50000; ++*steps) {
        double g[D];
        uint64_t t = (uint64_t)*steps;
        double value = 0.3 * thi_random_normal((thi_stream){seed, THI_RANDOM_DEMO, 99}, t);
        for (int d = 0; d < D; d++) {
            double noise = 0.1 * thi_random_normal((thi_stream){seed, THI_RANDOM_DEMO, (uint64_t)d}, t);
            value += (0.5 * axis[d] * x[d] + noise) * x[d];
            g[d] = axis[d] * x[d] + noise;
        }
        thi_signal signal = thi_monitor_add(&m, value);
        if (signal == THI_SIGNAL_STOP) {
            break;
        }
        rule.factor *= signal == THI_SIGNAL_SLOWER ? 0.5 : 1.0;
        assert_ok(ctx, thi_rule_step(&rule, ctx, x, g, NULL));
    }
    thi_rule_close(&rule);
    assert_true(m.converged);
    double left = 0.0;
    for (int d = 0; d < D; d++) {
        left += 0.5 * axis[d] * x[d] * x[d];
    }
    return left;
}

static void test_monitor_descent(void **state)
{
    (void)state;
    int steps;
    for (uint64_t seed = 0; seed < 5; seed++) {
        /* From 18.8 at the start; the noise of a window's mean is 0.04 and more. */
        for (double rate = 0.01; rate < 200.0; rate *= 10.0) {
            assert_true(descend("adam", rate, seed, &steps) < 0.1);
            assert_true(steps < 20000);
        }
        for (double rate = 0.01; rate < 2.0; rate *= 10.0) {
            assert_true(descend("momentum", rate, seed, &steps) < 0.1);
            assert_true(steps < 20000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),     cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_minimise),      cmocka_unit_test(test_segments),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_open_failures), cmocka_unit_test(test_monitor_trends),
        cmocka_unit_test(test_monitor_exact), cmocka_unit_test(test_monitor_descent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

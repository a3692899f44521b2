/*
 * Scores: by identities (units, permutations, known cases, CRPS against its defining integral), at the edges of the
 * intervals, over a million rows, and with arguments that must be refused.
 */
#include "testing.h"

#include <float.h>
#include <thiele/metrics.h>

enum { N = 200 };

typedef struct sample {
    double y[N], mean[N], variance[N];
} sample;

static void draw(sample *s)
{
    double noise[N];
    test_normals(N, 1, s->y);
    test_normals(N, 2, s->mean);
    test_normals(N, 3, noise);
    for (int i = 0; i < N; i++) {
        s->variance[i] = exp(noise[i]);
        s->y[i] += 3.0;
        s->mean[i] = 3.0 + 0.5 * s->mean[i];
    }
}

static thiele_scores score(thiele_context *ctx, const sample *s, double train_mean, double train_variance)
{
    thiele_scores scores;
    assert_ok(ctx, thiele_score_gaussian(ctx, N, s->y, s->mean, s->variance, train_mean, train_variance, &scores));
    return scores;
}

/* CRPS = integral of (F(x) - [x >= y])^2 dx: trapezoids of width h, error O(h^2) on each smooth side of y. */
static double crps_by_integral(double y, double mean, double sd)
{
    const int steps = 20000;
    double reach = fabs(y - mean) + 12.0 * sd, h = reach / steps, sum = 0.0;
    for (int i = 0; i <= steps; i++) {
        double weight = i == 0 || i == steps ? 0.5 : 1.0;
        double below = 0.5 * erfc(-(y - i * h - mean) / sd * M_SQRT1_2);
        double above = 0.5 * erfc((y + i * h - mean) / sd * M_SQRT1_2);
        sum += weight * (below * below + above * above);
    }
    return sum * h;
}

static void crps_is_its_integral(void **state)
{
    (void)state;
    const double y[] = {0.0, 0.3, -1.7, 4.0, 25.0};
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        assert_near(thiele_crps_gaussian(y[i], 0.2, 1.7 * 1.7), crps_by_integral(y[i], 0.2, 1.7), 1e-6, 0.0);
    }
}

static void crps_limits(void **state)
{
    (void)state;
    assert_true(thiele_crps_gaussian(2.5, 1.0, 0.0) == 1.5);
    assert_near(thiele_crps_gaussian(2.5, 1.0, 1e-30), 1.5, 1e-15, 0.0);
    assert_near(thiele_crps_gaussian(-1e200, 0.0, 1.0), 1e200, 1e-15, 0.0);
    assert_near(thiele_crps_gaussian(0.0, 0.0, 4.0), 2.0 * (sqrt(2.0) - 1.0) / sqrt(M_PI), 1e-15, 0.0);
    assert_true(thiele_crps_gaussian(1.3, 0.5, 2.0) == thiele_crps_gaussian(-1.3, -0.5, 2.0));
    assert_true(isnan(thiele_crps_gaussian(0.0, 0.0, -1.0)));
}

static void known_gaussian(void **state)
{
    thiele_context *ctx = *state;
    const double y[] = {1.0, 3.0}, mean[] = {2.0, 2.0}, variance[] = {1.0, 1.0};
    thiele_scores s;
    assert_ok(ctx, thiele_score_gaussian(ctx, 2, y, mean, variance, 2.0, 1.0, &s));
    assert_int_equal(s.rows, 2);
    assert_true(s.rmse == 1.0 && s.mae == 1.0 && s.smse == 1.0 && s.msll == 0.0);
    assert_near(s.nlpd, 0.5 * log(2.0 * M_PI) + 0.5, 4 * DBL_EPSILON, 0.0);
    assert_near(s.crps, thiele_crps_gaussian(1.0, 2.0, 1.0), 4 * DBL_EPSILON, 0.0);
    assert_true(s.coverage50 == 0.0 && s.coverage90 == 1.0 && s.coverage95 == 1.0);
}

/* y -> a y + b: errors scale by |a|, the density by 1/|a|, the rest stays. */
static void change_of_units(void **state)
{
    thiele_context *ctx = *state;
    sample s, t;
    draw(&s);
    const double a = -40.0, b = 17.0;
    for (int i = 0; i < N; i++) {
        t.y[i] = a * s.y[i] + b;
        t.mean[i] = a * s.mean[i] + b;
        t.variance[i] = a * a * s.variance[i];
    }
    thiele_scores p = score(ctx, &s, 3.0, 1.2), q = score(ctx, &t, a * 3.0 + b, a * a * 1.2);
    const double tolerance = 1e-13; /* a few hundred roundings of numbers near 1 */
    assert_near(q.rmse, 40.0 * p.rmse, tolerance, 0.0);
    assert_near(q.mae, 40.0 * p.mae, tolerance, 0.0);
    assert_near(q.crps, 40.0 * p.crps, tolerance, 0.0);
    assert_near(q.nlpd, p.nlpd + log(40.0), tolerance, 0.0);
    assert_near(q.smse, p.smse, tolerance, 0.0);
    assert_near(q.msll, p.msll, tolerance, tolerance);
    assert_true(q.coverage50 == p.coverage50 && q.coverage90 == p.coverage90 && q.coverage95 == p.coverage95);
}

static void order_of_rows(void **state)
{
    thiele_context *ctx = *state;
    sample s, t;
    draw(&s);
    for (int i = 0; i < N; i++) {
        t.y[i] = s.y[N - 1 - i];
        t.mean[i] = s.mean[N - 1 - i];
        t.variance[i] = s.variance[N - 1 - i];
    }
    thiele_scores p = score(ctx, &s, 3.0, 1.2), q = score(ctx, &t, 3.0, 1.2);
    assert_near(p.nlpd, q.nlpd, 4 * DBL_EPSILON, 0.0);
    assert_near(p.rmse, q.rmse, 4 * DBL_EPSILON, 0.0);
    assert_near(p.crps, q.crps, 4 * DBL_EPSILON, 0.0);
    assert_near(p.smse, q.smse, 8 * DBL_EPSILON, 0.0);
}

/* A target exactly at the end of an interval is inside it, the next number outside. */
static void edges_of_intervals(void **state)
{
    thiele_context *ctx = *state;
    const double z[] = {0.67448975019608171, 1.6448536269514722, 1.9599639845400545};
    const double zero = 0.0, four = 4.0;
    for (int i = 0; i < 3; i++) {
        double inside = -2.0 * z[i], outside = nextafter(inside, -10.0);
        thiele_scores p, q;
        assert_ok(ctx, thiele_score_gaussian(ctx, 1, &inside, &zero, &four, NAN, NAN, &p));
        assert_ok(ctx, thiele_score_gaussian(ctx, 1, &outside, &zero, &four, NAN, NAN, &q));
        const double in[] = {p.coverage50, p.coverage90, p.coverage95};
        const double out[] = {q.coverage50, q.coverage90, q.coverage95};
        assert_true(in[i] == 1.0);
        assert_true(out[i] == 0.0);
    }
}

/* Draws from the prediction itself: coverage is nominal within four standard errors, E[CRPS] = sd/sqrt(pi). */
static void calibrated_draws(void **state)
{
    thiele_context *ctx = *state;
    const int64_t n = 1000000;
    double *y = malloc((size_t)n * sizeof *y), *mean = calloc((size_t)n, sizeof *mean);
    double *variance = malloc((size_t)n * sizeof *variance);
    assert_true(y && mean && variance);
    test_normals(n, 4, y);
    for (int64_t i = 0; i < n; i++) {
        variance[i] = 1.0;
    }
    thiele_scores s;
    assert_ok(ctx, thiele_score_gaussian(ctx, n, y, mean, variance, 0.0, 1.0, &s));
    double error = 4.0 / sqrt((double)n);
    assert_near(s.coverage50, 0.50, 0.0, error * 0.50);
    assert_near(s.coverage90, 0.90, 0.0, error * 0.30);
    assert_near(s.coverage95, 0.95, 0.0, error * 0.22);
    assert_near(s.crps, 1.0 / sqrt(M_PI), 0.0, error);
    assert_near(s.nlpd, 0.5 * log(2.0 * M_PI) + 0.5, 0.0, error);
    assert_true(s.msll == 0.0);
    free(y);
    free(mean);
    free(variance);
}

/* A million equal terms: their mean is the term to the last bits, and constant targets have no variance. */
static void sums_keep_their_digits(void **state)
{
    thiele_context *ctx = *state;
    const int64_t n = 1000000;
    double *y = malloc((size_t)n * sizeof *y), *mean = malloc((size_t)n * sizeof *mean);
    assert_true(y && mean);
    for (int64_t i = 0; i < n; i++) {
        y[i] = 0.1;
        mean[i] = 0.3;
    }
    thiele_scores one, all;
    assert_ok(ctx, thiele_score_gaussian(ctx, 1, y, mean, mean, 0.7, 0.2, &one));
    assert_ok(ctx, thiele_score_gaussian(ctx, n, y, mean, mean, 0.7, 0.2, &all));
    assert_near(all.nlpd, one.nlpd, 2 * DBL_EPSILON, 0.0);
    assert_near(all.mae, one.mae, 2 * DBL_EPSILON, 0.0);
    assert_near(all.rmse, one.rmse, 2 * DBL_EPSILON, 0.0);
    assert_near(all.crps, one.crps, 2 * DBL_EPSILON, 0.0);
    assert_near(all.msll, one.msll, 4 * DBL_EPSILON, 0.0);
    assert_true(isnan(all.smse));
    free(y);
    free(mean);
}

static void no_training_statistics(void **state)
{
    thiele_context *ctx = *state;
    sample s;
    draw(&s);
    assert_true(isnan(score(ctx, &s, NAN, NAN).msll));
    assert_true(isnan(score(ctx, &s, NAN, 1.0).msll));
    assert_true(isnan(score(ctx, &s, 0.0, 0.0).msll));
    assert_false(isnan(score(ctx, &s, NAN, NAN).nlpd));
}

static void gaussian_refuses(void **state)
{
    thiele_context *ctx = *state;
    const double bad[] = {0.0, -1.0, NAN, INFINITY};
    thiele_scores scores;
    sample s;
    draw(&s);
    assert_fails(ctx, thiele_score_gaussian(ctx, 0, s.y, s.mean, s.variance, 0.0, 1.0, &scores), THIELE_ERROR_ARGUMENT,
                 "no predictions");
    for (int i = 0; i < 4; i++) {
        draw(&s);
        s.variance[6] = bad[i];
        assert_fails(ctx, thiele_score_gaussian(ctx, N, s.y, s.mean, s.variance, 0.0, 1.0, &scores),
                     THIELE_ERROR_ARGUMENT, "prediction 7");
    }
    draw(&s);
    s.mean[2] = NAN;
    assert_fails(ctx, thiele_score_gaussian(ctx, N, s.y, s.mean, s.variance, 0.0, 1.0, &scores), THIELE_ERROR_ARGUMENT,
                 "prediction 3");
    draw(&s);
    s.y[0] = INFINITY;
    assert_fails(ctx, thiele_score_gaussian(ctx, N, s.y, s.mean, s.variance, 0.0, 1.0, &scores), THIELE_ERROR_ARGUMENT,
                 "prediction 1");
}

static void known_classes(void **state)
{
    thiele_context *ctx = *state;
    const int label[] = {0, 1, 2, 2};
    const double probability[] = {0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.25, 0.25, 0.5, 0.5, 0.25, 0.25};
    double error_rate, nlp;
    assert_ok(ctx, thiele_score_classes(ctx, 4, 3, label, probability, &error_rate, &nlp));
    assert_true(error_rate == 0.5); /* the tie of row 2 goes to class 0, row 4 is plainly wrong */
    assert_near(nlp, 5.0 * log(2.0) / 4.0, 4 * DBL_EPSILON, 0.0);
    assert_ok(ctx, thiele_score_classes(ctx, 1, 3, label + 2, probability, &error_rate, &nlp));
    assert_true(error_rate == 1.0 && isinf(nlp) && nlp > 0.0);
    assert_ok(ctx, thiele_score_classes(ctx, 1, 1, label, (const double[]){1.0}, &error_rate, &nlp));
    assert_true(error_rate == 0.0 && nlp == 0.0);
}

/* Squares of what is off, over all classes: 0 when it is certain and right, 2 when wrong. */
static void brier_scores(void **state)
{
    (void)state;
    static const double sure[] = {0.0, 1.0, 0.0}, even[] = {0.25, 0.25, 0.25, 0.25}, two[] = {0.3, 0.7};
    assert_true(thiele_brier(3, 1, sure) == 0.0 && thiele_brier(3, 2, sure) == 2.0);
    assert_true(thiele_brier(4, 2, even) == 0.75);
    assert_near(thiele_brier(2, 1, two), 2.0 * 0.3 * 0.3, 4 * DBL_EPSILON, 0.0);
}

/* Pairs by hand, ties counting half; what does not depend on the order of rows or a rising transformation. */
static void areas(void **state)
{
    thiele_context *ctx = *state;
    enum { ROWS = 40 };
    static const int two[] = {0, 0, 1, 1}, same[] = {1, 1, 1, 1};
    static const double p[] = {0.9, 0.1, 0.4, 0.6, 0.6, 0.4, 0.1, 0.9},
                        even[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    double auc, again, probability[3 * ROWS], bent[3 * ROWS];
    int label[ROWS];
    assert_ok(ctx,
              thiele_score_auc(ctx, 4, 2, two, p, &auc)); /* of (0.4, 0.9) against (0.1, 0.6) three pairs of four */
    assert_true(auc == 0.75);
    assert_ok(ctx, thiele_score_auc(ctx, 4, 2, two, even, &auc));
    assert_true(auc == 0.5);
    assert_ok(ctx, thiele_score_auc(ctx, 4, 2, same, p, &auc));
    assert_true(isnan(auc));
    for (int i = 0; i < ROWS; i++) {
        label[i] = i % 3;
        for (int c = 0; c < 3; c++) {
            probability[3 * i + c] = (double)((i * 7 + c * 11) % 19) / 19.0;
            bent[3 * (ROWS - 1 - i) + c] = probability[3 * i + c] * probability[3 * i + c];
        }
    }
    assert_ok(ctx, thiele_score_auc(ctx, ROWS, 3, label, probability, &auc));
    double pairs[3] = {0}, count[3] = {0};
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < ROWS * ROWS; i++) {
            double a = probability[3 * (i / ROWS) + c], b = probability[3 * (i % ROWS) + c];
            bool counts = label[i / ROWS] == c && label[i % ROWS] != c;
            pairs[c] += counts ? (a > b) + 0.5 * (a == b) : 0.0;
            count[c] += counts;
        }
    }
    assert_near(auc, (pairs[0] / count[0] + pairs[1] / count[1] + pairs[2] / count[2]) / 3, 4 * DBL_EPSILON, 0.0);
    for (int i = 0; i < ROWS; i++) {
        label[i] = (ROWS - 1 - i) % 3;
    }
    assert_ok(ctx, thiele_score_auc(ctx, ROWS, 3, label, bent, &again));
    assert_true(again == auc);
    assert_fails(ctx, thiele_score_auc(ctx, 0, 3, label, bent, &again), THIELE_ERROR_ARGUMENT, "no predictions");
}

static void classes_refuse(void **state)
{
    thiele_context *ctx = *state;
    const int label[] = {0, 2}, low[] = {0, -1};
    const double good[] = {0.5, 0.5, 0.5, 0.5}, bad[] = {NAN, -0.1, 1.1};
    double e, p;
    assert_fails(ctx, thiele_score_classes(ctx, 0, 2, label, good, &e, &p), THIELE_ERROR_ARGUMENT, "no predictions");
    assert_fails(ctx, thiele_score_classes(ctx, 2, 2, label, good, &e, &p), THIELE_ERROR_ARGUMENT,
                 "prediction 2: the label 2");
    assert_fails(ctx, thiele_score_classes(ctx, 2, 2, low, good, &e, &p), THIELE_ERROR_ARGUMENT,
                 "prediction 2: the label -1");
    for (int i = 0; i < 3; i++) {
        const double row[] = {0.5, bad[i]};
        assert_fails(ctx, thiele_score_classes(ctx, 1, 2, label, row, &e, &p), THIELE_ERROR_ARGUMENT, "prediction 1");
    }
}

static int setup(void **state)
{
    *state = test_context(1);
    return 0;
}

static int teardown(void **state)
{
    thiele_context_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crps_is_its_integral),   cmocka_unit_test(crps_limits),
        cmocka_unit_test(known_gaussian),         cmocka_unit_test(change_of_units),
        cmocka_unit_test(order_of_rows),          cmocka_unit_test(edges_of_intervals),
        cmocka_unit_test(calibrated_draws),       cmocka_unit_test(sums_keep_their_digits),
        cmocka_unit_test(no_training_statistics), cmocka_unit_test(gaussian_refuses),
        cmocka_unit_test(known_classes),          cmocka_unit_test(classes_refuse),
        cmocka_unit_test(brier_scores),           cmocka_unit_test(areas),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

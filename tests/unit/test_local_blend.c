/* Predictions of PIC across blocks: weights, continuity where blocks meet, and nothing else where they do not. */
#include "sparse_testing.h"

enum { STEPS = 4001 };

/* Points of a segment through all blocks. */
static void segment(double *X)
{
    for (int i = 0; i < STEPS; i++) {
        double t = 2.0 * i / (STEPS - 1) - 1.0;
        X[DIMS * i] = 1.7 * t;
        X[DIMS * i + 1] = 0.4 - 1.1 * t;
    }
}

static double largest_step(const double *values)
{
    double most = 0.0;
    for (int i = 1; i < STEPS; i++) {
        most = fmax(most, fabs(values[i] - values[i - 1]));
    }
    return most;
}

static void test_weights(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    double X[DIMS * STEPS], last[BLOCKS] = {0};
    int64_t block[STEPS];
    int several = 0;
    pic_open(&w, ctx, &p);
    segment(X);
    assert_ok(ctx, thi_partition_find(&w.partition, ctx, STEPS, X, block));
    for (int i = 0; i < STEPS; i++) {
        int64_t own[THI_LOCAL_BLENDED];
        double weight[THI_LOCAL_BLENDED], sum = 0.0, all[BLOCKS] = {0};
        int count = thi_local_weights(&w.partition, X + DIMS * i, own, weight);
        assert_in_range(count, 1, THI_LOCAL_BLENDED);
        assert_int_equal(own[0], block[i]); /* the nearest first */
        for (int k = 0; k < count; k++) {
            assert_true(weight[k] > 0.0 && weight[k] <= weight[0] && all[own[k]] == 0.0);
            all[own[k]] = weight[k];
            sum += weight[k];
        }
        assert_near(sum, 1.0, 1e-15, 1e-15);
        /* A step is 1e-3 long at most, and no weight goes from 0 to 1 in less than a tenth. */
        for (int b = 0; b < BLOCKS && i > 0; b++) {
            assert_true(fabs(all[b] - last[b]) < 0.01);
        }
        memcpy(last, all, sizeof all);
        several += count > 1;
    }
    assert_true(several > STEPS / 20 && several < STEPS);
    /* At a centre its block is alone. */
    for (int b = 0; b < BLOCKS; b++) {
        double x[DIMS], weight[THI_LOCAL_BLENDED];
        int64_t own[THI_LOCAL_BLENDED];
        for (int d = 0; d < DIMS; d++) {
            x[d] = w.partition.centre[b * DIMS + d] / w.partition.scale[d];
        }
        assert_int_equal(thi_local_weights(&w.partition, x, own, weight), 1);
        assert_true(own[0] == b && weight[0] == 1.0);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

static void predict(const thi_predictor *p, thiele_context *ctx, bool blend, int64_t n, const double *X, double *mean,
                    double *variance)
{
    thi_batch batch = {.p = p, .rows = n, .sight = blend ? THI_SEES_BLEND : THI_SEES_BLOCK};
    int64_t clipped = 0;
    assert_ok(ctx, thi_batch_marginals(&batch, ctx, n, X, mean, variance, &clipped));
    thi_batch_clear(&batch);
}

static void test_continuous(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2), *one = test_context(1);
    world w;
    thi_predictor p;
    double X[DIMS * STEPS], mean[2][STEPS], variance[2][STEPS], alone[STEPS], again[STEPS];
    int inside = 0;
    pic_open(&w, ctx, &p);
    segment(X);
    for (int blend = 0; blend < 2; blend++) {
        predict(&p, ctx, blend == 1, STEPS, X, mean[blend], variance[blend]);
    }
    /* Its own block's predictions jump; blended ones have the slope of a function of this length-scale at most. */
    assert_true(largest_step(mean[0]) > 0.03 && largest_step(variance[0]) > 0.003);
    assert_true(largest_step(mean[1]) < 0.004 && largest_step(variance[1]) < 0.002);
    for (int i = 0; i < STEPS; i++) {
        int64_t block[THI_LOCAL_BLENDED];
        double weight[THI_LOCAL_BLENDED];
        if (thi_local_weights(&w.partition, X + DIMS * i, block, weight) == 1) {
            assert_near(mean[1][i], mean[0][i], 1e-12, 1e-12);
            assert_near(variance[1][i], variance[0][i], 1e-12, 1e-12);
            inside++;
        }
        assert_true(variance[1][i] > 0.0);
    }
    assert_true(inside > 0 && inside < STEPS);
    /* Without variances, and on one thread, the same. */
    predict(&p, one, true, STEPS, X, alone, again);
    assert_memory_equal(alone, mean[1], sizeof alone);
    assert_memory_equal(again, variance[1], sizeof again);
    predict(&p, one, true, STEPS, X, alone, NULL);
    assert_memory_equal(alone, mean[1], sizeof alone);
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    thiele_context_destroy(one);
}

/* The moments of the mixture, from what the blocks say one by one. */
static void test_mixture(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    double mean[TESTS], variance[TESTS];
    int64_t clipped = 0;
    pic_open(&w, ctx, &p);
    predict(&p, ctx, true, TESTS, w.Xtest, mean, variance);
    for (int i = 0; i < TESTS; i++) {
        int64_t block[THI_LOCAL_BLENDED];
        double weight[THI_LOCAL_BLENDED], total = 0.0, first = 0.0, second = 0.0;
        int count = thi_local_weights(&w.partition, w.Xtest + DIMS * i, block, weight);
        for (int k = 0; k < count; k++) {
            double m, v;
            assert_ok(ctx, thi_local_marginals(&p, ctx, 1, w.Xtest + DIMS * i, &block[k], &m, &v, &clipped));
            total += weight[k] / v;
            first += weight[k] / v * m;
            second += weight[k] / v * (v + m * m);
        }
        assert_near(mean[i], first / total, 1e-11, 1e-11);
        assert_near(variance[i], second / total - first * first / (total * total), 1e-10, 1e-10);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* With one block there is nothing to blend, and with centres out of reach nothing breaks. */
static void test_alone(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    int64_t start[] = {0, ROWS};
    double mean[2][TESTS], variance[2][TESTS], zeros[2 * DIMS] = {0};
    thi_partition partition = {DIMS, ROWS, 1, zeros, zeros + DIMS, start, NULL, NULL};
    pic_open(&w, ctx, &p);
    for (int i = 0; i < DIMS * BLOCKS; i++) {
        p.local->partition.centre[i] = 1e300;
    }
    predict(&p, ctx, true, TESTS, w.Xtest, mean[0], variance[0]);
    assert_true(isfinite(mean[0][0]) && isfinite(variance[0][0]));
    thi_predictor_clear(&p);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &p));
    assert_ok(ctx, thi_local_attach(&p, ctx, &partition, w.X, w.y, w.noise));
    for (int blend = 0; blend < 2; blend++) {
        predict(&p, ctx, blend == 1, TESTS, w.Xtest, mean[blend], variance[blend]);
    }
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
    predict(&p, ctx, true, 0, w.Xtest, mean[0], variance[0]);
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_failures(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    double mean[TESTS], variance[TESTS];
    int64_t clipped = 0;
    thiele_status status;
    pic_open(&w, ctx, &p);
    for (int near = 0; near < 2; near++) {
        status = THIELE_ERROR_MEMORY;
        for (int nth = 1; status != THIELE_OK && nth < 2000; nth++) {
            thi_local_renew(p.local, w.noise);
            size_t before = thi_memory_held(ctx);
            thi_fail_allocation(ctx, nth, false);
            status = (near ? thi_local_near : thi_local_blend)(&p, ctx, TESTS, w.Xtest, mean, variance, &clipped);
            thi_fail_allocation(ctx, 0, false);
            thi_local_renew(p.local, w.noise);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            assert_int_equal(thi_memory_held(ctx), before);
        }
        assert_int_equal(status, THIELE_OK);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/*
 * Where the nearest rows are all rows, and all blocks are searched, a prediction is that of one block of all rows with
 * the same q(w), targets or sites; on any number of threads, with the same bits.
 */
static void test_nearest(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(3), *one = test_context(1);
    world w;
    thi_predictor p, q;
    int64_t start[] = {0, ROWS}, clipped = 0;
    double mean[3][TESTS], variance[3][TESTS], zeros[2 * DIMS] = {0};
    thi_partition partition = {DIMS, ROWS, 1, zeros, zeros + DIMS, start, NULL, NULL};
    assert_in_range(ROWS, 1, THI_LOCAL_NEAR);
    assert_in_range(BLOCKS, 1, THI_LOCAL_SEARCHED);
    pic_open(&w, ctx, &p);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &q));
    assert_ok(ctx, thi_local_attach(&q, ctx, &partition, p.local->X, p.local->y, p.local->noise));
    for (int sites = 0; sites < 2; sites++) {
        thi_local *const parts[] = {p.local, q.local};
        for (int k = 0; k < 2 && sites == 1; k++) {
            assert_ok(ctx, thi_local_hold_sites(parts[k], ctx));
            for (int i = 0; i < ROWS; i++) {
                parts[k]->lambda[i] = i % 7 == 0 ? 0.0 : 1.0 / w.noise;
                parts[k]->nu[i] = p.local->y[i] * parts[k]->lambda[i];
            }
            thi_local_renew(parts[k], w.noise);
        }
        assert_ok(ctx, thi_local_marginals(&q, ctx, TESTS, w.Xtest, NULL, mean[0], variance[0], &clipped));
        assert_ok(ctx, thi_local_near(&p, ctx, TESTS, w.Xtest, mean[1], variance[1], &clipped));
        assert_ok(one, thi_local_near(&p, one, TESTS, w.Xtest, mean[2], variance[2], &clipped));
        for (int i = 0; i < TESTS; i++) {
            assert_near(mean[1][i], mean[0][i], 1e-9, 1e-9);
            assert_near(variance[1][i], variance[0][i], 1e-9, 1e-9);
        }
        assert_memory_equal(mean[1], mean[2], sizeof mean[1]);
        assert_memory_equal(variance[1], variance[2], sizeof variance[1]);
    }
    assert_int_equal(clipped, 0);
    thi_predictor_clear(&p);
    thi_predictor_clear(&q);
    world_close(&w);
    thiele_context_destroy(one);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights), cmocka_unit_test(test_continuous), cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_alone),   cmocka_unit_test(test_failures),   cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The local correction of PIC: exact regression where it is that, dense formulas, means with and without variances, the
 * joint covariance, one thread and many, any way of batching, the cache with little room and from two threads, failing
 * allocations.
 */
#include <pthread.h>

#include "sparse_testing.h"

/* --- formulas --------------------------------------------------------------------------------------------------------
 */

/* PIC with one block is exact regression, wherever the inducing inputs are. */
static void test_one_block(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    thi_exact exact;
    thi_predictor p, dense;
    pic_answer got, want;
    double got_joint[TESTS * TESTS], want_joint[TESTS * TESTS], mean[TESTS];
    int64_t start[] = {0, ROWS}, clipped = 0;
    double centre[DIMS] = {0}, scale[DIMS] = {0};
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    thi_block all = {.n = ROWS, .X = w.X, .y = w.y};
    thi_partition partition = {DIMS, ROWS, 1, scale, centre, start, NULL, NULL};
    thi_prior prior = world_prior(&w);
    assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, 1, &all, 1.0, &w.sums));
    assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &p));
    assert_ok(ctx, thi_local_attach(&p, ctx, &partition, w.X, w.y, w.noise));
    assert_ok(ctx, thi_exact_open(&exact, ctx, ROWS, w.X, w.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, &prior, w.noise));
    assert_near(thi_sparse_evidence(&w.sparse, &w.sums), exact.log_marginal, 1e-11, 1e-11);
    assert_ok(ctx, thi_predictor_freeze(&dense, ctx, &exact, &prior));
    pic_predict(&p, ctx, w.Xtest, &got);
    assert_ok(ctx, thi_predictor_marginals(&dense, ctx, TESTS, w.Xtest, want.mean, want.variance, &clipped));
    assert_all_near(got.mean, want.mean, TESTS, 1e-10, 1e-10);
    assert_all_near(got.variance, want.variance, TESTS, 1e-10, 1e-10);
    assert_ok(ctx, thi_predictor_joint(&p, ctx, 0, TESTS, w.Xtest, mean, got_joint));
    assert_ok(ctx, thi_predictor_joint(&dense, ctx, 0, TESTS, w.Xtest, mean, want_joint));
    assert_all_near(got_joint, want_joint, (int64_t)TESTS * TESTS, 1e-9, 1e-10);
    thi_predictor_clear(&p);
    thi_predictor_clear(&dense);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_dense(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    thi_predictor p;
    pic_answer got;
    int64_t block[TESTS];
    double mean[TESTS], covariance[TESTS * TESTS], joint_mean[TESTS], joint[TESTS * TESTS], alone[TESTS];
    double noise[ROWS], r[ROWS];
    pic_open(&w, ctx, &p);
    assert_ok(ctx, thi_partition_find(&w.partition, ctx, TESTS, w.Xtest, block));
    residuals(&w, r);
    for (int i = 0; i < ROWS; i++) {
        noise[i] = w.noise;
    }
    pic_dense(&w, ctx, block, noise, r, mean, covariance);
    pic_predict(&p, ctx, w.Xtest, &got);
    assert_all_near(got.mean, mean, TESTS, 1e-10, 1e-10);
    assert_ok(ctx, thi_predictor_joint(&p, ctx, 0, TESTS, w.Xtest, joint_mean, joint));
    assert_all_near(joint_mean, mean, TESTS, 1e-10, 1e-10);
    assert_all_near(joint, covariance, (int64_t)TESTS * TESTS, 1e-9, 1e-10);
    int together = 0;
    for (int i = 0; i < TESTS; i++) {
        assert_near(got.variance[i], covariance[i * TESTS + i], 1e-10, 1e-10);
        for (int j = 0; j < TESTS; j++) {
            assert_true(joint[i * TESTS + j] == joint[j * TESTS + i]);
            together += i != j && block[i] == block[j];
        }
    }
    assert_true(together > 0 && together < TESTS * (TESTS - 1));
    /* A mean is the same whether or not its variance is wanted, and whatever is in the cache. */
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, TESTS, w.Xtest, alone, NULL, NULL));
    assert_memory_equal(alone, got.mean, sizeof alone);
    thi_local_renew(p.local, w.noise);
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, TESTS, w.Xtest, alone, NULL, NULL));
    assert_memory_equal(alone, got.mean, sizeof alone);
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* One projection serves another q(w) too; and blocks can be said. */
static void test_project(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    thi_predictor p, second;
    pic_answer want;
    double mean[TESTS], variance[TESTS], B[INDUCING * TESTS], SB[INDUCING * TESTS];
    int64_t block[TESTS];
    thi_matrix b = thi_matrix_view(B, INDUCING, TESTS, INDUCING), Sb = thi_matrix_view(SB, INDUCING, TESTS, INDUCING);
    pic_open(&w, ctx, &p);
    assert_ok(ctx, thi_partition_find(&w.partition, ctx, TESTS, w.Xtest, block));
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            thi_natural_mix(&w.sums, 0.5, &w.sums, 0.0);
            assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
        }
        assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &second));
        assert_ok(ctx, thi_local_attach(&second, ctx, &w.partition, w.X, w.y, w.noise));
        pic_predict(&second, ctx, w.Xtest, &want);
        thi_predictor_clear(&second);
        assert_ok(ctx, thi_local_project(&p, ctx, TESTS, w.Xtest, round == 0 ? NULL : block, mean, b, variance));
        thi_blas_gemv(THI_T, 1.0, b, w.sparse.m, 1.0, mean);
        thi_blas_gemm(THI_N, THI_N, 1.0, w.sparse.S, b, 0.0, Sb);
        for (int i = 0; i < TESTS; i++) {
            variance[i] += thi_blas_dot(INDUCING, B + i * INDUCING, SB + i * INDUCING);
        }
        assert_all_near(mean, want.mean, TESTS, 1e-10, 1e-10);
        assert_all_near(variance, want.variance, TESTS, 1e-10, 1e-10);
    }
    block[3] = BLOCKS;
    assert_fails(ctx, thi_local_project(&p, ctx, TESTS, w.Xtest, block, mean, b, variance), THIELE_ERROR_ARGUMENT,
                 "row 3 is of block 5");
    assert_ok(ctx,
              thi_local_project(&p, ctx, 0, w.Xtest, NULL, mean, thi_matrix_view(B, INDUCING, 0, INDUCING), variance));
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_no_centres(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_partition random;
    thi_local *local;
    assert_ok(ctx, thi_partition_random(&random, ctx, ROWS, BLOCKS));
    assert_fails(ctx, thi_local_create(&local, ctx, &random), THIELE_ERROR_ARGUMENT, "without centres");
    assert_null(local);
    thi_partition_clear(&random);
    thiele_context_destroy(ctx);
}

/* --- threads and batches ---------------------------------------------------------------------------------------------
 */

static void test_threads(void **state)
{
    (void)state;
    pic_answer one, many;
    double mean[TESTS], first[TESTS * TESTS], joint[TESTS * TESTS];
    for (int threads = 1; threads <= 5; threads += threads == 1 ? 1 : 3) {
        thiele_context *ctx = test_context(threads);
        world w;
        thi_predictor p;
        pic_open(&w, ctx, &p);
        pic_predict(&p, ctx, w.Xtest, threads == 1 ? &one : &many);
        assert_ok(ctx, thi_predictor_joint(&p, ctx, 0, TESTS, w.Xtest, mean, threads == 1 ? first : joint));
        if (threads > 1) {
            assert_memory_equal(&one, &many, sizeof one);
            assert_memory_equal(first, joint, sizeof joint);
        }
        thi_predictor_clear(&p);
        world_close(&w);
        thiele_context_destroy(ctx);
    }
}

/* Rows given at once or window by window have the same bits, and those of a row do not depend much on its company. */
static void test_windows(void **state)
{
    (void)state;
    enum { COUNT = THI_PREDICT_WINDOW + 700 };
    thiele_context *ctx = test_context(2);
    world w;
    thi_predictor p;
    int64_t clipped = 0;
    double *X = malloc(DIMS * COUNT * sizeof *X), *all = malloc(2 * COUNT * sizeof *all);
    double *parts = malloc(2 * COUNT * sizeof *parts), one[2];
    test_normals((int64_t)DIMS * COUNT, 9, X);
    pic_open(&w, ctx, &p);
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, COUNT, X, all, all + COUNT, &clipped));
    for (int64_t first = 0; first < COUNT; first += THI_PREDICT_WINDOW) {
        int64_t count = COUNT - first < THI_PREDICT_WINDOW ? COUNT - first : THI_PREDICT_WINDOW;
        assert_ok(ctx, thi_predictor_marginals(&p, ctx, count, X + first * DIMS, parts + first, parts + COUNT + first,
                                               &clipped));
    }
    assert_memory_equal(all, parts, 2 * COUNT * sizeof *all);
    for (int64_t i = 0; i < COUNT; i += 997) {
        assert_ok(ctx, thi_predictor_marginals(&p, ctx, 1, X + i * DIMS, one, one + 1, &clipped));
        assert_near(one[0], all[i], 1e-11, 1e-11);
        assert_near(one[1], all[COUNT + i], 1e-11, 1e-11);
    }
    free(X);
    free(all);
    free(parts);
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* --- the cache -------------------------------------------------------------------------------------------------------
 */

static thiele_context *limited(size_t bytes)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.memory_limit = bytes;
    thiele_context *ctx = NULL;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
    return ctx;
}

/* Whatever is kept, the numbers are the same; and no more is kept than may be. */
static void test_small_cache(void **state)
{
    (void)state;
    static const double shares[] = {0.0, 0.3, 0.6, 1.0};
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    pic_answer want, got;
    pic_open(&w, ctx, &p);
    pic_predict(&p, ctx, w.Xtest, &want);
    double whole = thi_local_cache_held(p.local->cache);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        thiele_context *other = test_context(1);
        thi_local_renew(p.local, w.noise);
        p.local->cache_most = shares[i] * whole;
        for (int round = 0; round < 3; round++) {
            pic_predict(&p, other, w.Xtest, &got);
            assert_memory_equal(&got, &want, sizeof got);
            double held = thi_local_cache_held(p.local->cache), counted = (double)thi_memory_held(other);
            assert_true(held <= p.local->cache_most && (held > 0.0) == (shares[i] > 0.0));
            /* A context holds what it keeps there, and nothing else. */
            assert_true(counted >= held && counted <= held + 8192.0);
        }
        thiele_context_destroy(other); /* what it kept stays */
        pic_predict(&p, ctx, w.Xtest, &got);
        assert_memory_equal(&got, &want, sizeof got);
    }
    assert_true(thi_local_cache_held(p.local->cache) == whole);
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* A context with little memory keeps no more than its share. */
static void test_small_context(void **state)
{
    (void)state;
    static const size_t limits[] = {450000, 2000000};
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    pic_answer got;
    int64_t start[] = {0, ROWS};
    double zeros[2 * DIMS] = {0};
    thi_partition partition = {DIMS, ROWS, 1, zeros, zeros + DIMS, start, NULL, NULL};
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_ZERO);
    w.M = ROWS;
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    world_fit(&w, ctx);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &p));
    assert_ok(ctx, thi_local_attach(&p, ctx, &partition, w.X, w.y, w.noise));
    for (int i = 0; i < 2; i++) {
        thiele_context *small = limited(limits[i]);
        pic_predict(&p, small, w.Xtest, &got);
        assert_true((thi_local_cache_held(p.local->cache) > 0.0) == (i == 1));
        thiele_context_destroy(small);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static thi_local_factor *touch(const thi_predictor *p, thiele_context *ctx, int64_t block, bool whole)
{
    thi_local_factor *f;
    assert_ok(ctx, thi_local_acquire(p, ctx, block, whole, &f));
    thi_local_release(p->local->cache, f);
    return f;
}

/* What was not used for longest goes first, and what is in use stays. */
static void test_oldest(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    thi_local_factor *held;
    double bytes[4];
    pic_open(&w, ctx, &p);
    for (int64_t b = 0; b < 4; b++) {
        bytes[b] = touch(&p, ctx, b, true)->bytes;
    }
    thi_local_renew(p.local, w.noise);
    for (int64_t b = 0; b < 3; b++) {
        touch(&p, ctx, b, true);
    }
    assert_true(thi_local_cache_held(p.local->cache) == bytes[0] + bytes[1] + bytes[2]);
    /* Block 1 is in use and block 0 is asked for once more: block 2 goes. */
    assert_ok(ctx, thi_local_acquire(&p, ctx, 1, true, &held));
    thi_local_factor *zero = touch(&p, ctx, 0, false);
    assert_true(zero->whole); /* serves for means too */
    p.local->cache_most = bytes[0] + bytes[1] + bytes[3];
    touch(&p, ctx, 3, true);
    assert_true(thi_local_cache_held(p.local->cache) == p.local->cache_most);
    assert_ptr_equal(touch(&p, ctx, 0, true), zero);
    assert_ptr_equal(touch(&p, ctx, 1, true), held);
    /* No room beside what is in use. */
    p.local->cache_most = bytes[1];
    touch(&p, ctx, 0, false);
    touch(&p, ctx, 2, true);
    assert_true(thi_local_cache_held(p.local->cache) == bytes[1]);
    assert_ptr_equal(touch(&p, ctx, 1, true), held);
    thi_local_release(p.local->cache, held);
    /* Means need little. */
    p.local->cache_most = THI_LOCAL_CACHE_BYTES;
    thi_local_renew(p.local, w.noise);
    thi_local_factor *mean = touch(&p, ctx, 2, false);
    assert_true(!mean->whole && mean->bytes < 0.5 * bytes[2]);
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

typedef struct reader {
    const world *w;
    const thi_predictor *p;
    const pic_answer *want;
    int wrong;
} reader;

/* No assertions here: cmocka's are for the main thread. */
static void *read_often(void *arg)
{
    reader *r = arg;
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx = NULL;
    pic_answer got;
    int64_t clipped = 0;
    options.threads = 1;
    r->wrong = thiele_context_create(&ctx, &options) != THIELE_OK;
    for (int i = 0; i < 200 && r->wrong == 0; i++) {
        r->wrong |= thi_predictor_marginals(r->p, ctx, TESTS, r->w->Xtest, got.mean, got.variance, &clipped);
        r->wrong |= memcmp(&got, r->want, sizeof got) != 0;
        r->wrong |= thi_predictor_marginals(r->p, ctx, TESTS, r->w->Xtest, got.mean, NULL, NULL);
        r->wrong |= memcmp(got.mean, r->want->mean, sizeof got.mean) != 0;
    }
    thiele_context_destroy(ctx);
    return NULL;
}

static void test_two_readers(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    pic_answer want;
    pic_open(&w, ctx, &p);
    pic_predict(&p, ctx, w.Xtest, &want);
    /* Room for about half of the blocks: both readers drop what the other one made. */
    p.local->cache_most = 0.5 * thi_local_cache_held(p.local->cache);
    thi_local_renew(p.local, w.noise);
    reader readers[2] = {{&w, &p, &want, 0}, {&w, &p, &want, 0}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, read_often, &readers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(readers[i].wrong, 0);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static thiele_status attempt(const world *w, thiele_context *ctx)
{
    thi_predictor p = {0};
    double mean[TESTS], variance[TESTS], joint[TESTS * TESTS], B[INDUCING * TESTS];
    int64_t clipped = 0;
    thiele_status status;
    THI_TRY(thi_sparse_freeze(&w->sparse, ctx, THI_CONDITIONAL_FULL, &p));
    THI_TRY(thi_local_attach(&p, ctx, &w->partition, w->X, w->y, w->noise));
    THI_TRY(thi_predictor_marginals(&p, ctx, TESTS, w->Xtest, mean, NULL, NULL));
    THI_TRY(thi_predictor_marginals(&p, ctx, TESTS, w->Xtest, mean, variance, &clipped));
    THI_TRY(thi_predictor_joint(&p, ctx, 0, TESTS, w->Xtest, mean, joint));
    thi_local_renew(p.local, w->noise);
    THI_TRY(thi_local_project(&p, ctx, TESTS, w->Xtest, NULL, mean, thi_matrix_view(B, INDUCING, TESTS, INDUCING),
                              variance));
out:
    thi_predictor_clear(&p);
    return status;
}

static void test_failures(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    world_fit(&w, ctx);
    size_t before = thi_memory_held(ctx);
    thiele_status status = THIELE_ERROR_MEMORY;
    int tries = 0;
    for (int nth = 1; status != THIELE_OK && nth < 3000; nth++) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        status = attempt(&w, ctx);
        thi_fail_allocation(ctx, 0, false);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(ctx), before);
        tries = nth;
    }
    assert_true(status == THIELE_OK && tries > 100);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* Centres so far off that distances overflow still give some block. */
static void test_far_centres(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    double mean[TESTS], variance[TESTS];
    int64_t clipped = 0;
    pic_open(&w, ctx, &p);
    for (int i = 0; i < DIMS * BLOCKS; i++) {
        p.local->partition.centre[i] = 1e300 * (i % 2 == 0 ? 1.0 : -1.0);
    }
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, TESTS, w.Xtest, mean, variance, &clipped));
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, 1, w.Xtest, mean, variance, &clipped));
    assert_true(isfinite(mean[0]) && isfinite(variance[0]));
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_block),   cmocka_unit_test(test_dense),         cmocka_unit_test(test_project),
        cmocka_unit_test(test_no_centres),  cmocka_unit_test(test_threads),       cmocka_unit_test(test_windows),
        cmocka_unit_test(test_small_cache), cmocka_unit_test(test_small_context), cmocka_unit_test(test_oldest),
        cmocka_unit_test(test_two_readers), cmocka_unit_test(test_failures),      cmocka_unit_test(test_far_centres),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

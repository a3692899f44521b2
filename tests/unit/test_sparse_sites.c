/*
 * Block posteriors under sites by identities: one block is the dense posterior, Gaussian sites are the closed form of
 * PIC and FITC, FITC with Z = X is dense, and any blocks are dense algebra with the block prior; steps that would be
 * improper; the same bits on any number of threads.
 */
#include "sites_testing.h"

#include "posterior/dense.h"

#define SMOOTH PIC_KERNEL
/* Rough enough that the kernel matrix of all rows needs no jitter. */
#define ROUGH "matern12(ard, lengthscale~[0.7,0.9], variance~1.3)"

/* --- against the dense posterior -------------------------------------------------------------------------------------
 */

/* Predictions of two predictors at the test rows, and their joint covariance. */
static void compare_predictors(thiele_context *ctx, const world *w, const thi_predictor *a, const thi_predictor *b,
                               double tolerance)
{
    double mean[2][TESTS], variance[2][TESTS], joint[2][TESTS * TESTS], alone[TESTS];
    int64_t clipped = 0;
    for (int i = 0; i < 2; i++) {
        const thi_predictor *p = i == 0 ? a : b;
        assert_ok(ctx, thi_predictor_marginals(p, ctx, TESTS, w->Xtest, mean[i], variance[i], &clipped));
        assert_ok(ctx, thi_predictor_joint(p, ctx, 0, TESTS, w->Xtest, alone, joint[i]));
        assert_all_near(alone, mean[i], TESTS, 1e-12, 1e-12);
    }
    assert_int_equal(clipped, 0);
    assert_all_near(mean[0], mean[1], TESTS, tolerance, tolerance);
    assert_all_near(variance[0], variance[1], TESTS, tolerance, tolerance);
    assert_all_near(joint[0], joint[1], TESTS * TESTS, tolerance, tolerance);
}

/* The posterior of s at its sites against the dense one at the same. */
static void compare_dense(sited *s, thiele_context *ctx, bool predict)
{
    thi_dense dense;
    thi_prior prior = world_prior(&s->w);
    double mu[ROWS], v[ROWS], slack = 0.0;
    assert_ok(ctx, thi_dense_open(&dense, ctx, ROWS, s->w.X, NULL, NULL));
    assert_ok(ctx, thi_dense_prior(&dense, ctx, &prior));
    assert_ok(ctx, thi_dense_condition(&dense, ctx, s->lambda, s->nu, mu, v));
    sited_sum(s, ctx);
    sited_look(s, ctx);
    assert_all_near(s->mu, mu, ROWS, 1e-8, 1e-8);
    assert_all_near(s->v, v, ROWS, 1e-8, 1e-8);
    double log_z = thi_sparse_evidence(&s->w.sparse, &s->w.sums);
    assert_near(log_z, dense.log_z, 1e-8, 1e-8);
    for (int64_t b = 0; b < s->count; b++) {
        slack += thi_block_slack(&s->block[b], NULL);
    }
    assert_near(-log_z - slack, thi_dense_kl(&dense, s->lambda, v), 1e-8, 1e-8);
    if (predict) {
        thi_predictor a = {0}, b = {0};
        sited_freeze(s, ctx, &a);
        assert_ok(ctx, thi_dense_freeze(&dense, ctx, &prior, &b));
        compare_predictors(ctx, &s->w, &a, &b, 1e-8);
        thi_predictor_clear(&a);
        thi_predictor_clear(&b);
    }
    thi_dense_close(&dense);
}

/* At sites that are none's fixed point, some negative, and at Bernoulli's. */
static void check_dense(const sited_setting *set)
{
    thiele_context *ctx = test_context(1);
    sited s;
    sited_open(&s, ctx, set);
    sited_scatter(&s);
    compare_dense(&s, ctx, true);
    double before = sited_bound(&s), after = before;
    for (int i = 0; i < 60; i++) {
        sited_step(&s, ctx, 1.0);
    }
    compare_dense(&s, ctx, true);
    after = sited_bound(&s);
    assert_true(after > before);
    for (int i = 0; i < ROWS; i++) {
        assert_near(s.lambda[i], -2.0 * s.h[i], 1e-8, 1e-10);
        assert_near(s.nu[i], s.g[i] - 2.0 * s.h[i] * s.mu[i], 1e-8, 1e-10);
    }
    sited_close(&s);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_one_block_is_dense(void **state)
{
    (void)state;
    check_dense(&(sited_setting){SMOOTH, "bernoulli", THI_MEAN_LINEAR, THI_RESIDUAL_BLOCK, 1, INDUCING});
}

/* Several blocks: rows together, by the dense prior that the model stands for. */
static void test_joint(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    sited s;
    thi_predictor p = {0};
    int64_t block[TESTS];
    double noise[ROWS], r[ROWS], mean[2][TESTS], joint[2][TESTS * TESTS];
    sited_open(&s, ctx, &(sited_setting){SMOOTH, "bernoulli", THI_MEAN_LINEAR, THI_RESIDUAL_BLOCK, BLOCKS, INDUCING});
    sited_scatter(&s);
    sited_sum(&s, ctx);
    for (int i = 0; i < 60; i++) {
        sited_step(&s, ctx, 1.0);
    }
    sited_sum(&s, ctx);
    for (int i = 0; i < ROWS; i++) {
        assert_true(s.lambda[i] > 0.0);
        noise[i] = 1.0 / s.lambda[i];
        r[i] = s.nu[i] / s.lambda[i];
    }
    sited_freeze(&s, ctx, &p);
    assert_ok(ctx, thi_partition_find(&s.w.partition, ctx, TESTS, s.w.Xtest, block));
    pic_dense(&s.w, ctx, block, noise, r, mean[0], joint[0]);
    assert_ok(ctx, thi_predictor_joint(&p, ctx, 0, TESTS, s.w.Xtest, mean[1], joint[1]));
    assert_all_near(mean[1], mean[0], TESTS, 1e-8, 1e-8);
    assert_all_near(joint[1], joint[0], TESTS * TESTS, 1e-8, 1e-8);
    thi_predictor_clear(&p);
    sited_close(&s);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_fitc_at_rows_is_dense(void **state)
{
    (void)state;
    check_dense(&(sited_setting){ROUGH, "bernoulli", THI_MEAN_LINEAR, THI_RESIDUAL_DIAGONAL, BLOCKS, ROWS});
}

/* --- against algebra with the block prior ----------------------------------------------------------------------------
 */

/* Sigma = (P^-1 + Lambda)^-1 = P - P (P + Lambda^-1)^-1 P by a general inverse: the sites are not zero. */
static void check_algebra(thi_residual kind)
{
    thiele_context *ctx = test_context(1);
    sited s;
    sited_open(&s, ctx, &(sited_setting){SMOOTH, "bernoulli", THI_MEAN_ZERO, kind, BLOCKS, INDUCING});
    sited_scatter(&s);
    sited_sum(&s, ctx);
    sited_look(&s, ctx);
    double *Q = dense_q(&s.w, ctx, ROWS, s.w.X, ROWS, s.w.X), *K = dense_kernel(&s.w, ctx, ROWS, s.w.X, ROWS, s.w.X);
    double precision_det, prior_det;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < ROWS; j++) {
            bool own = i == j || (kind == THI_RESIDUAL_BLOCK && block_of(&s.w, i) == block_of(&s.w, j));
            Q[i * ROWS + j] = own ? K[i * ROWS + j] : Q[i * ROWS + j];
        }
    }
    double *P = dense_inverse(ROWS, Q, &prior_det);
    for (int i = 0; i < ROWS; i++) {
        P[i * ROWS + i] += s.lambda[i];
    }
    double *Sigma = dense_inverse(ROWS, P, &precision_det), *mu = dense_product(ROWS, ROWS, 1, Sigma, s.nu);
    double fit = 0.0;
    for (int i = 0; i < ROWS; i++) {
        assert_near(s.mu[i], mu[i], 1e-8, 1e-8);
        assert_near(s.v[i], Sigma[i * ROWS + i], 1e-8, 1e-8);
        fit += s.nu[i] * mu[i];
    }
    assert_near(thi_sparse_evidence(&s.w.sparse, &s.w.sums), 0.5 * (fit - prior_det - precision_det), 1e-8, 1e-8);
    double *const all[] = {Q, K, P, Sigma, mu};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
    sited_close(&s);
    thiele_context_destroy(ctx);
}

static void test_algebra(void **state)
{
    (void)state;
    check_algebra(THI_RESIDUAL_DIAGONAL);
    check_algebra(THI_RESIDUAL_BLOCK);
}

/* --- Gaussian noise --------------------------------------------------------------------------------------------------
 */

/* One step of size 1 from sites that are nothing leads to the closed form, whose bound is the evidence. */
static void check_gaussian(thi_residual kind)
{
    thiele_context *ctx = test_context(1);
    sited s;
    world w;
    thi_predictor a = {0}, b = {0};
    sited_open(&s, ctx, &(sited_setting){SMOOTH, "gaussian(noise=0.11)", THI_MEAN_LINEAR, kind, BLOCKS, INDUCING});
    world_open(&w, ctx, SMOOTH, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 0.0, kind == THI_RESIDUAL_DIAGONAL, kind == THI_RESIDUAL_BLOCK);
    double evidence = world_fit(&w, ctx);
    sited_sum(&s, ctx);
    assert_true(sited_step(&s, ctx, 1.0) == 1.0);
    sited_look(&s, ctx);
    assert_near(sited_bound(&s), evidence, 1e-9, 1e-9);
    assert_all_near(s.w.sparse.m, w.sparse.m, INDUCING, 1e-9, 1e-9);
    assert_all_near(s.w.sparse.S.data, w.sparse.S.data, INDUCING * INDUCING, 1e-9, 1e-9);
    sited_freeze(&s, ctx, &a);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &b));
    if (kind == THI_RESIDUAL_BLOCK) {
        assert_ok(ctx, thi_local_attach(&b, ctx, &w.partition, w.X, w.y, w.noise));
    }
    compare_predictors(ctx, &w, &a, &b, 1e-9);
    sited_scatter(&s);
    sited_sum(&s, ctx);
    sited_look(&s, ctx);
    assert_true(sited_bound(&s) < evidence);
    thi_predictor_clear(&a);
    thi_predictor_clear(&b);
    world_close(&w);
    sited_close(&s);
    thiele_context_destroy(ctx);
}

static void test_gaussian(void **state)
{
    (void)state;
    check_gaussian(THI_RESIDUAL_DIAGONAL);
    check_gaussian(THI_RESIDUAL_BLOCK);
}

/* --- steps -----------------------------------------------------------------------------------------------------------
 */

/* Two blocks move: the sums are those at the new sites, and the bound at another q(w) is below that at its own. */
static void check_some_blocks(thi_residual kind)
{
    thiele_context *ctx = test_context(1);
    sited s;
    double taken = 0.0;
    sited_open(&s, ctx,
               &(sited_setting){SMOOTH, "student-t(nu=4, scale=0.2)", THI_MEAN_CONSTANT, kind, BLOCKS, INDUCING});
    sited_scatter(&s);
    sited_sum(&s, ctx);
    sited_look(&s, ctx);
    thi_natural_zero(&s.part);
    assert_ok(ctx, thi_sparse_marginals(&s.w.sparse, 1, ctx, 2, s.block + 1, &s.part));
    assert_near(s.part.rows, (double)(s.block[1].n + s.block[2].n), 0.0, 0.0);
    assert_ok(ctx, thi_sparse_step(&s.w.sparse, 1, ctx, 2, s.block + 1, 0.3, &s.part, &s.w.sums, &taken));
    double moved = thi_sparse_evidence(&s.w.sparse, &s.w.sums);
    sited_sum(&s, ctx);
    assert_near(thi_sparse_evidence(&s.w.sparse, &s.w.sums), moved, 1e-10, 1e-10);
    assert_near(s.w.sums.rows, ROWS, 0.0, 0.0);
    sited_close(&s);
    thiele_context_destroy(ctx);
}

static void test_some_blocks(void **state)
{
    (void)state;
    check_some_blocks(THI_RESIDUAL_DIAGONAL);
    check_some_blocks(THI_RESIDUAL_BLOCK);
}

/* Twins have the marginals, steps and sums that each has by itself, to the last bit: positive sites, and others. */
static void check_twins(thi_residual kind)
{
    enum { TWINS = 2 };
    thiele_context *ctx = test_context(2);
    sited s;
    thi_sparse twin[TWINS] = {0};
    thi_natural part[TWINS], sums[TWINS];
    thi_block block[TWINS * BLOCKS];
    double sites[TWINS][2][ROWS], at[TWINS][2][ROWS], taken;
    sited_open(&s, ctx, &(sited_setting){SMOOTH, "bernoulli", THI_MEAN_ZERO, kind, BLOCKS, INDUCING});
    sited_scatter(&s);
    sited_sum(&s, ctx);
    sited_look(&s, ctx); /* g and h of both */
    thi_prior prior = world_prior(&s.w);
    thi_sparse_shape shape = s.w.sparse.shape;
    for (int q = 0; q < TWINS; q++) {
        shape.twin = q > 0;
        assert_ok(ctx, thi_sparse_open(&twin[q], ctx, &shape, DIMS));
        assert_ok(ctx, thi_sparse_prepare(&twin[q], ctx, &prior, s.w.Z, 0.0));
        assert_ok(ctx, thi_natural_open(&part[q], ctx, INDUCING));
        assert_ok(ctx, thi_natural_open(&sums[q], ctx, INDUCING));
        for (int i = 0; i < ROWS; i++) {
            sites[q][0][i] = q == 0 ? fabs(s.lambda[i]) : s.lambda[i];
            sites[q][1][i] = s.nu[i] + q;
        }
        for (int64_t b = 0, first = 0; b < BLOCKS; first += s.block[b++].n) {
            block[q * BLOCKS + b] = s.block[b];
            block[q * BLOCKS + b].at = (thi_block_sites){&sites[q][0][first], &sites[q][1][first], &at[q][0][first],
                                                         &at[q][1][first],    s.g + first,         s.h + first};
        }
        assert_ok(ctx, thi_sparse_sum(&twin[q], ctx, BLOCKS, block + q * BLOCKS, 1.0, &sums[q]));
        assert_ok(ctx, thi_sparse_set(&twin[q], ctx, &sums[q]));
    }
    double kept[TWINS][2][ROWS];
    memcpy(kept, sites, sizeof kept);
    assert_ok(ctx, thi_sparse_marginals(twin, TWINS, ctx, BLOCKS, block, part));
    assert_ok(ctx, thi_sparse_step(twin, TWINS, ctx, BLOCKS, block, 0.1, part, sums, &taken));
    for (int q = 0; q < TWINS; q++) {
        memcpy(s.lambda, kept[q][0], sizeof s.lambda);
        memcpy(s.nu, kept[q][1], sizeof s.nu);
        sited_sum(&s, ctx);
        thi_natural_zero(&s.part);
        assert_ok(ctx, thi_sparse_marginals(&s.w.sparse, 1, ctx, BLOCKS, s.block, &s.part));
        assert_memory_equal(s.mu, at[q][0], sizeof s.mu);
        assert_memory_equal(s.v, at[q][1], sizeof s.v);
        assert_ok(ctx, thi_sparse_step(&s.w.sparse, 1, ctx, BLOCKS, s.block, 0.1, &s.part, &s.w.sums, &taken));
        assert_memory_equal(s.lambda, sites[q][0], sizeof s.lambda);
        assert_memory_equal(s.w.sums.t, sums[q].t, INDUCING * sizeof(double));
        assert_memory_equal(s.w.sums.T.data, sums[q].T.data, INDUCING * INDUCING * sizeof(double));
    }
    for (int q = 0; q < TWINS; q++) {
        thi_natural_close(&part[q]);
        thi_natural_close(&sums[q]);
        thi_sparse_close(&twin[q]);
    }
    sited_close(&s);
    thiele_context_destroy(ctx);
}

static void test_twins(void **state)
{
    (void)state;
    check_twins(THI_RESIDUAL_DIAGONAL);
    check_twins(THI_RESIDUAL_BLOCK);
}

/* Targets with lambda = -2 h far below zero: of one row, which its own block refuses while the others go all the way,
 * or of all. */
static void check_improper(thi_residual kind, bool all)
{
    thiele_context *ctx = test_context(2);
    sited s;
    double taken = 0.0, before[ROWS];
    sited_open(&s, ctx, &(sited_setting){SMOOTH, "bernoulli", THI_MEAN_ZERO, kind, BLOCKS, INDUCING});
    sited_sum(&s, ctx);
    sited_look(&s, ctx);
    for (int i = 0; i < ROWS; i++) {
        s.h[i] = all ? 0.4 : i == 7 ? 1e4 : s.h[i];
    }
    double others = -2.0 * s.h[ROWS - 1];
    assert_ok(ctx, thi_sparse_step(&s.w.sparse, 1, ctx, BLOCKS, s.block, 1.0, &s.part, &s.w.sums, &taken));
    assert_true(taken > 0.0 && taken < 1.0);
    sited_look(&s, ctx);
    for (int i = 0; i < ROWS; i++) {
        assert_true(s.v[i] > 0.0 && isfinite(s.mu[i]));
    }
    if (!all) {
        assert_true(s.lambda[7] < 0.0 && s.lambda[ROWS - 1] == others);
    }
    /* A target that is not finite moves nothing. */
    memcpy(before, s.lambda, sizeof before);
    s.h[3] = NAN;
    assert_ok(ctx, thi_sparse_step(&s.w.sparse, 1, ctx, 1, s.block, 1.0, &s.part, &s.w.sums, &taken));
    assert_true(taken == 0.0);
    assert_memory_equal(before, s.lambda, sizeof before);
    sited_close(&s);
    thiele_context_destroy(ctx);
}

static void test_improper(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        check_improper(THI_RESIDUAL_DIAGONAL, all);
        check_improper(THI_RESIDUAL_BLOCK, all);
    }
}

/* Sites that are improper as they are: a block's own, and all together. */
static void test_improper_sites(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int kind = THI_RESIDUAL_DIAGONAL; kind <= THI_RESIDUAL_BLOCK; kind++) {
        sited s;
        sited_open(&s, ctx, &(sited_setting){SMOOTH, "bernoulli", THI_MEAN_ZERO, (thi_residual)kind, BLOCKS, INDUCING});
        s.lambda[4] = -1e6;
        assert_fails(ctx, thi_sparse_sum(&s.w.sparse, ctx, BLOCKS, s.block, 1.0, &s.w.sums), THIELE_ERROR_NUMERIC,
                     "not proper");
        sited_close(&s);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* Weighted sums of models, and what has no R, are no prior. */
static void test_no_prior(void **state)
{
    (void)state;
    static const double weights[][THI_RESIDUAL_KINDS] = {{1.0, 0.0, 0.0}, {0.0, 0.3, 0.7}, {0.5, 0.5, 0.0}};
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < 3; i++) {
        thi_sparse_shape shape = {.M = INDUCING, .largest = ROWS, .sites = true};
        thi_sparse sparse;
        memcpy(shape.weight, weights[i], sizeof shape.weight);
        assert_fails(ctx, thi_sparse_open(&sparse, ctx, &shape, DIMS), THIELE_ERROR_ARGUMENT, "need Gaussian noise");
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- threads, failures -----------------------------------------------------------------------------------------------
 */

typedef struct outcome {
    double lambda[ROWS], nu[ROWS], mu[ROWS], v[ROWS], bound, theta[8], mean[DIMS + 1], Z[DIMS * INDUCING];
    double predicted[TESTS], variance[TESTS];
} outcome;

static void run(int threads, thi_residual kind, outcome *o)
{
    thiele_context *ctx = test_context(threads);
    sited s;
    thi_predictor p = {0};
    int64_t clipped = 0;
    double noise = 0.0;
    memset(o, 0, sizeof *o);
    thi_sparse_bar bar = {o->theta, o->mean, &noise, o->Z};
    sited_open(&s, ctx,
               &(sited_setting){SMOOTH, "student-t(nu=4, scale=0.2)", THI_MEAN_LINEAR, kind, BLOCKS, INDUCING});
    sited_scatter(&s);
    sited_sum(&s, ctx);
    for (int i = 0; i < 3; i++) {
        sited_step(&s, ctx, 0.5);
    }
    sited_look(&s, ctx);
    assert_ok(ctx, thi_sparse_pull(&s.w.sparse, ctx, BLOCKS, s.block, 1.0, &o->bound, &bar));
    o->bound += sited_bound(&s);
    sited_freeze(&s, ctx, &p);
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, TESTS, s.w.Xtest, o->predicted, o->variance, &clipped));
    memcpy(o->lambda, s.lambda, sizeof o->lambda);
    memcpy(o->nu, s.nu, sizeof o->nu);
    memcpy(o->mu, s.mu, sizeof o->mu);
    memcpy(o->v, s.v, sizeof o->v);
    thi_predictor_clear(&p);
    sited_close(&s);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_threads(void **state)
{
    (void)state;
    static const int counts[] = {2, 5};
    for (int kind = THI_RESIDUAL_DIAGONAL; kind <= THI_RESIDUAL_BLOCK; kind++) {
        outcome one, many;
        run(1, (thi_residual)kind, &one);
        for (int i = 0; i < 2; i++) {
            run(counts[i], (thi_residual)kind, &many);
            assert_memory_equal(&one, &many, sizeof one);
        }
    }
}

static thiele_status attempt(sited *s, thiele_context *ctx)
{
    double bars[64] = {0}, value = 0.0, taken, mean[TESTS], variance[TESTS];
    thi_sparse_bar bar = {bars, bars + 8, bars + 16, bars + 17};
    thi_sparse sparse = {0};
    thi_predictor p = {0};
    thi_prior prior = world_prior(&s->w);
    int64_t clipped = 0;
    thiele_status status;
    thi_natural_zero(&s->part);
    thi_natural_zero(&s->w.sums);
    sited_scatter(s);
    THI_TRY(thi_sparse_open(&sparse, ctx, &s->w.sparse.shape, DIMS));
    THI_TRY(thi_sparse_prepare(&sparse, ctx, &prior, s->w.Z, 0.0));
    THI_TRY(thi_sparse_sum(&sparse, ctx, BLOCKS, s->block, 1.0, &s->w.sums));
    THI_TRY(thi_sparse_set(&sparse, ctx, &s->w.sums));
    THI_TRY(thi_sparse_marginals(&sparse, 1, ctx, BLOCKS, s->block, &s->part));
    THI_TRY(thi_sparse_pull(&sparse, ctx, BLOCKS, s->block, 1.0, &value, &bar));
    THI_TRY(thi_sparse_step(&sparse, 1, ctx, BLOCKS, s->block, 0.1, &s->part, &s->w.sums, &taken));
    THI_TRY(thi_sparse_freeze(&sparse, ctx, THI_CONDITIONAL_FULL, &p));
    THI_TRY(thi_local_attach(&p, ctx, &s->w.partition, s->w.X, s->w.y, 0.0));
    THI_TRY(thi_local_hold_sites(p.local, ctx));
    memcpy(p.local->lambda, s->lambda, sizeof s->lambda);
    THI_TRY(thi_predictor_marginals(&p, ctx, TESTS, s->w.Xtest, mean, variance, &clipped));
out:
    thi_predictor_clear(&p);
    thi_sparse_close(&sparse);
    return status;
}

static void test_failures(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    sited s;
    sited_open(&s, ctx, &(sited_setting){SMOOTH, "bernoulli", THI_MEAN_LINEAR, THI_RESIDUAL_BLOCK, BLOCKS, INDUCING});
    sited_scatter(&s);
    sited_sum(&s, ctx);
    sited_look(&s, ctx);
    size_t before = thi_memory_held(ctx);
    thiele_status status = THIELE_ERROR_MEMORY;
    int tries = 0;
    for (int nth = 1; status != THIELE_OK && nth < 3000; nth++) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        status = attempt(&s, ctx);
        thi_fail_allocation(ctx, 0, false);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(ctx), before);
        tries = nth;
    }
    assert_true(status == THIELE_OK && tries > 100);
    sited_close(&s);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_block_is_dense),
        cmocka_unit_test(test_joint),
        cmocka_unit_test(test_fitc_at_rows_is_dense),
        cmocka_unit_test(test_algebra),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_some_blocks),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_improper),
        cmocka_unit_test(test_improper_sites),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_prior),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

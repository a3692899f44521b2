/*
 * Sparse regression against identities: dense formulas, exact regression where it is that, models that must agree, the
 * stochastic sums and gradients against those of all blocks, one thread and many, failing allocations.
 */
#include "sparse_testing.h"

#define KERNEL "matern52(ard, lengthscale~[1.1,1.6], variance~0.9)"

/* --- dense formulas --------------------------------------------------------------------------------------------------
 */

/* The covariance of the targets: Q + Gamma of one kind. */
static double *dense_covariance(const world *w, thiele_context *ctx, thi_residual kind)
{
    double *K = dense_kernel(w, ctx, ROWS, w->X, ROWS, w->X), *Q = dense_q(w, ctx, ROWS, w->X, ROWS, w->X);
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t j = 0; j < ROWS; j++) {
            bool own =
                kind == THI_RESIDUAL_BLOCK ? block_of(w, i) == block_of(w, j) : kind == THI_RESIDUAL_DIAGONAL && i == j;
            Q[i * ROWS + j] = (own ? K : Q)[i * ROWS + j] + (i == j ? w->noise : 0.0);
        }
    }
    free(K);
    return Q;
}

static double dense_evidence(const world *w, thiele_context *ctx, thi_residual kind)
{
    double r[ROWS], log_det, fit = 0.0;
    double *A = dense_covariance(w, ctx, kind), *inverse = dense_inverse(ROWS, A, &log_det);
    residuals(w, r);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < ROWS; j++) {
            fit += r[i] * inverse[i * ROWS + j] * r[j];
        }
    }
    free(A);
    free(inverse);
    return -0.5 * (fit + log_det + ROWS * log(2.0 * M_PI));
}

/* tr(K - Q) */
static double dense_trace(const world *w, thiele_context *ctx)
{
    double *K = dense_kernel(w, ctx, ROWS, w->X, ROWS, w->X), *Q = dense_q(w, ctx, ROWS, w->X, ROWS, w->X);
    double trace = 0.0;
    for (int i = 0; i < ROWS; i++) {
        trace += K[i * ROWS + i] - Q[i * ROWS + i];
    }
    free(K);
    free(Q);
    return trace;
}

static void one_kind(world *w, thiele_context *ctx, thi_residual kind)
{
    world_engine(w, ctx, kind == THI_RESIDUAL_NONE, kind == THI_RESIDUAL_DIAGONAL, kind == THI_RESIDUAL_BLOCK);
}

static void test_evidence(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (int kind = 0; kind < THI_RESIDUAL_KINDS; kind++) {
        world w;
        world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
        one_kind(&w, ctx, (thi_residual)kind);
        assert_near(world_fit(&w, ctx), dense_evidence(&w, ctx, (thi_residual)kind), 1e-10, 1e-10);
        world_close(&w);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* With the penalty the evidence of kind NONE is Titsias' bound. */
static void test_penalty(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    world_open(&w, ctx, KERNEL, THI_MEAN_CONSTANT);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    w.sparse.shape.penalty = THI_PENALTY_TRACE;
    double want = dense_evidence(&w, ctx, THI_RESIDUAL_NONE) - 0.5 * dense_trace(&w, ctx) / w.noise;
    assert_near(world_fit(&w, ctx), want, 1e-10, 1e-10);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* --- models that agree -----------------------------------------------------------------------------------------------
 */

/* FITC with the rows as inducing inputs is exact regression. Kzz is not far from singular: some digits go. */
static void test_exact(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
    w.M = ROWS;
    memcpy(w.Z, w.X, sizeof w.X);
    world_engine(&w, ctx, 0.0, 1.0, 0.0);
    double evidence = world_fit(&w, ctx);
    thi_exact exact;
    thi_predictor sparse, dense;
    thi_prior prior = world_prior(&w);
    assert_ok(ctx, thi_exact_open(&exact, ctx, ROWS, w.X, w.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, &prior, w.noise));
    assert_near(evidence, exact.log_marginal, 1e-9, 1e-9);
    assert_ok(ctx, thi_predictor_freeze(&dense, ctx, &exact, &prior));
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &sparse));
    double mean[2][TESTS], variance[2][TESTS];
    int64_t clipped = 0;
    assert_ok(ctx, thi_predictor_marginals(&sparse, ctx, TESTS, w.Xtest, mean[0], variance[0], &clipped));
    assert_ok(ctx, thi_predictor_marginals(&dense, ctx, TESTS, w.Xtest, mean[1], variance[1], &clipped));
    assert_all_near(mean[0], mean[1], TESTS, 1e-8, 1e-8);
    assert_all_near(variance[0], variance[1], TESTS, 1e-8, 1e-8);
    thi_predictor_clear(&sparse);
    thi_predictor_clear(&dense);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void near_sums(const thi_natural *got, const thi_natural *want, double tolerance)
{
    int64_t M = got->T.rows;
    for (int64_t j = 0; j < M; j++) {
        assert_all_near(got->T.data + j + j * M, want->T.data + j + j * M, M - j, tolerance, tolerance);
    }
    assert_all_near(got->t, want->t, M, tolerance, tolerance);
    assert_near(got->constant, want->constant, tolerance, tolerance);
}

/* Q + Gamma of a block's rows, or Gamma alone, or Q alone. */
static double *block_covariance(const world *w, thiele_context *ctx, const thi_block *block, double q, double gamma)
{
    int64_t n = block->n;
    double *K = dense_kernel(w, ctx, n, block->X, n, block->X), *Q = dense_q(w, ctx, n, block->X, n, block->X);
    for (int64_t i = 0; i < n * n; i++) {
        Q[i] = q * Q[i] + gamma * (K[i] - Q[i] + (i % (n + 1) == 0 ? w->noise : 0.0));
    }
    free(K);
    return Q;
}

/* A row without itself, the block being among the sums: by the inverse of the whole covariance. */
static void test_leave_out(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    double r[ROWS], gap[ROWS], variance[ROWS], log_det;
    world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
    for (int kind = THI_RESIDUAL_DIAGONAL; kind <= THI_RESIDUAL_BLOCK; kind++) {
        one_kind(&w, ctx, (thi_residual)kind);
        world_fit(&w, ctx);
        residuals(&w, r);
        double *A = dense_covariance(&w, ctx, (thi_residual)kind), *C = dense_inverse(ROWS, A, &log_det);
        for (int b = 0; b < BLOCKS; b++) {
            int64_t start = w.partition.start[b];
            assert_ok(ctx, thi_sparse_leave_out(&w.sparse, ctx, &w.block[b], true, gap + start, variance + start));
        }
        for (int i = 0; i < ROWS; i++) {
            double own = C[i * ROWS + i], sum = 0.0;
            for (int j = 0; j < ROWS; j++) {
                sum += C[i * ROWS + j] * r[j];
            }
            assert_near(gap[i], sum / own, 1e-9, 1e-9);
            assert_near(variance[i], 1.0 / own, 1e-9, 1e-9);
        }
        free(A);
        free(C);
    }
    world_close(&w);
    thiele_context_destroy(ctx);
}

/*
 * And of a block that is not among the sums, of which there are none here, so that w ~ N(0, I): the others of the block
 * predict row i by weights a = Gamma_-i^-1 R_-i,i, and w counts through V_i - V_-i a.
 */
static void test_leave_out_new(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    double r[ROWS], gap[ROWS], variance[ROWS], log_det;
    world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
    one_kind(&w, ctx, THI_RESIDUAL_BLOCK);
    thi_natural_zero(&w.sums);
    assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
    residuals(&w, r);
    const thi_block *block = &w.block[1];
    int64_t n = block->n;
    assert_ok(ctx, thi_sparse_leave_out(&w.sparse, ctx, block, false, gap, variance));
    double *gamma = block_covariance(&w, ctx, block, 0.0, 1.0), *Q = block_covariance(&w, ctx, block, 1.0, 0.0);
    double *C = dense_inverse(n, gamma, &log_det);
    for (int64_t i = 0; i < n; i++) {
        double mean = 0.0, through_w = 0.0, own = C[i * n + i];
        for (int64_t j = 0; j < n; j++) { /* 1 for row i, -a for the others */
            mean += C[i * n + j] / own * r[w.partition.start[1] + j];
            for (int64_t k = 0; k < n; k++) {
                through_w += C[i * n + j] / own * Q[j * n + k] * C[k * n + i] / own;
            }
        }
        assert_near(gap[i], mean, 1e-9, 1e-9);
        assert_near(variance[i], 1.0 / own + through_w, 1e-9, 1e-9);
    }
    free(gamma);
    free(Q);
    free(C);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* PITC with blocks of one row is FITC. */
static void test_single_rows(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    thi_natural other;
    world_open(&w, ctx, KERNEL, THI_MEAN_CONSTANT);
    assert_ok(ctx, thi_natural_open(&other, ctx, w.M));
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, ROWS, w.single, 1.0, &other));
    world_engine(&w, ctx, 0.0, 1.0, 0.0);
    world_fit(&w, ctx);
    near_sums(&other, &w.sums, 1e-11);
    thi_natural_close(&other);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* 0.3 FITC + 0.7 DTC, and some PITC: the natural parameters are the weighted sums of theirs. */
static void test_combination(void **state)
{
    (void)state;
    static const double weights[][THI_RESIDUAL_KINDS] = {{0.7, 0.3, 0.0}, {0.2, 0.3, 0.5}};
    thiele_context *ctx = test_context(2);
    for (int i = 0; i < 2; i++) {
        world w;
        thi_natural want;
        world_open(&w, ctx, KERNEL, THI_MEAN_CONSTANT);
        assert_ok(ctx, thi_natural_open(&want, ctx, w.M));
        for (int kind = 0; kind < THI_RESIDUAL_KINDS; kind++) {
            one_kind(&w, ctx, (thi_residual)kind);
            world_fit(&w, ctx);
            thi_natural_mix(&want, 1.0, &w.sums, weights[i][kind]);
        }
        world_engine(&w, ctx, weights[i][0], weights[i][1], weights[i][2]);
        world_fit(&w, ctx);
        near_sums(&w.sums, &want, 1e-11);
        thi_natural_close(&want);
        world_close(&w);
    }
    thiele_context_destroy(ctx);
}

/* --- q ---------------------------------------------------------------------------------------------------------------
 */

typedef struct gradient {
    double value, theta[8], mean[DIMS + 1], log_noise, Z[DIMS * INDUCING];
} gradient;

static void pull(world *w, thiele_context *ctx, int64_t count, const thi_block *block, double scale, gradient *g)
{
    thi_sparse_bar bar = {g->theta, g->mean, &g->log_noise, g->Z};
    assert_ok(ctx, thi_sparse_pull(&w->sparse, ctx, count, block, scale, &g->value, &bar));
}

/* The bound is tight at q*. */
static void test_bound(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (int kind = 0; kind < THI_RESIDUAL_KINDS; kind++) {
        world w;
        gradient g = {0}, less = {0};
        world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
        one_kind(&w, ctx, (thi_residual)kind);
        double evidence = world_fit(&w, ctx);
        pull(&w, ctx, BLOCKS, w.block, 1.0, &g);
        assert_near(g.value - thi_sparse_divergence(&w.sparse), evidence, 1e-11, 1e-11);
        /* and below it elsewhere */
        thi_natural_mix(&w.sums, 0.6, &w.sums, 0.0);
        assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
        pull(&w, ctx, BLOCKS, w.block, 1.0, &less);
        assert_true(less.value - thi_sparse_divergence(&w.sparse) < evidence - 1e-3);
        world_close(&w);
    }
    thiele_context_destroy(ctx);
}

/* One step of size 1 over all blocks ends at q* from anywhere, to the last bit. */
static void test_fixed_point(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    thi_natural from;
    world_open(&w, ctx, KERNEL, THI_MEAN_CONSTANT);
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    assert_ok(ctx, thi_natural_open(&from, ctx, w.M));
    assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, 2, w.block, 1.7, &from));
    world_fit(&w, ctx);
    thi_natural_mix(&from, 0.0, &w.sums, 1.0);
    near_sums(&from, &w.sums, 0.0);
    thi_natural_close(&from);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* Averaged over all choices of a block, P times that block's sums, bound and gradient are those of all blocks. */
static void test_unbiased(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (int kind = 0; kind < THI_RESIDUAL_KINDS; kind++) {
        world w;
        thi_natural average;
        gradient all = {0}, mean = {0};
        world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
        one_kind(&w, ctx, (thi_residual)kind);
        assert_ok(ctx, thi_natural_open(&average, ctx, w.M));
        /* q is not q*: it is that of two blocks. */
        assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, 2, w.block, 2.0, &w.sums));
        assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
        thi_natural_zero(&w.sums);
        assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, BLOCKS, w.block, 1.0, &w.sums));
        pull(&w, ctx, BLOCKS, w.block, 1.0, &all);
        for (int b = 0; b < BLOCKS; b++) {
            gradient one = {0};
            thi_natural part;
            assert_ok(ctx, thi_natural_open(&part, ctx, w.M));
            assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, 1, &w.block[b], BLOCKS, &part));
            thi_natural_mix(&average, 1.0, &part, 1.0 / BLOCKS);
            thi_natural_close(&part);
            pull(&w, ctx, 1, &w.block[b], BLOCKS, &one);
            for (size_t i = 0; i < sizeof one / sizeof(double); i++) {
                ((double *)&mean)[i] += ((double *)&one)[i] / BLOCKS;
            }
        }
        near_sums(&average, &w.sums, 1e-12);
        assert_all_near((double *)&mean, (double *)&all, sizeof all / sizeof(double), 1e-10, 1e-10);
        thi_natural_close(&average);
        world_close(&w);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- predictions -----------------------------------------------------------------------------------------------------
 */

typedef struct answer {
    double mean[TESTS], variance[TESTS], joint_mean[TESTS], covariance[TESTS * TESTS];
} answer;

static void predict(world *w, thiele_context *ctx, thi_conditional conditional, answer *a)
{
    thi_predictor predictor;
    int64_t clipped = 0;
    assert_ok(ctx, thi_sparse_freeze(&w->sparse, ctx, conditional, &predictor));
    assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, TESTS, w->Xtest, a->mean, a->variance, &clipped));
    assert_ok(ctx, thi_predictor_joint(&predictor, ctx, 0, TESTS, w->Xtest, a->joint_mean, a->covariance));
    assert_int_equal(clipped, 0);
    thi_predictor_clear(&predictor);
}

/* FIC and FITC differ in covariances alone; SoR leaves out K - Q altogether. */
static void test_conditionals(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    static answer full, diagonal, none;
    world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 0.0, 1.0, 0.0);
    world_fit(&w, ctx);
    predict(&w, ctx, THI_CONDITIONAL_FULL, &full);
    predict(&w, ctx, THI_CONDITIONAL_DIAGONAL, &diagonal);
    predict(&w, ctx, THI_CONDITIONAL_NONE, &none);
    assert_memory_equal(full.mean, diagonal.mean, sizeof full.mean);
    assert_memory_equal(full.mean, none.mean, sizeof full.mean);
    assert_memory_equal(full.variance, diagonal.variance, sizeof full.variance);
    assert_memory_equal(full.joint_mean, diagonal.joint_mean, sizeof full.joint_mean);
    double *K = dense_kernel(&w, ctx, TESTS, w.Xtest, TESTS, w.Xtest);
    double *Q = dense_q(&w, ctx, TESTS, w.Xtest, TESTS, w.Xtest);
    for (int i = 0; i < TESTS; i++) {
        for (int j = 0; j < TESTS; j++) {
            int at = i * TESTS + j;
            double left = K[at] - Q[at];
            assert_near(full.covariance[at], none.covariance[at] + left, 1e-9, 1e-11);
            assert_near(diagonal.covariance[at], none.covariance[at] + (i == j ? left : 0.0), 1e-9, 1e-11);
        }
        assert_near(full.covariance[i * TESTS + i], full.variance[i], 1e-12, 1e-12);
        assert_near(diagonal.covariance[i * TESTS + i], full.variance[i], 1e-12, 1e-12);
        assert_near(none.covariance[i * TESTS + i], none.variance[i], 1e-12, 1e-12);
    }
    free(K);
    free(Q);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* The triangle of a predictor: its inverse is R, R'R = S. */
static void test_root(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p;
    world_open(&w, ctx, KERNEL, THI_MEAN_ZERO);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    world_fit(&w, ctx);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &p));
    thi_matrix R;
    assert_ok(ctx, thi_predictor_invert_root(&p, ctx, 0, &R));
    for (int64_t i = 0; i < w.M; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = thi_blas_dot(w.M, R.data + i * w.M, R.data + j * w.M);
            assert_near(sum, w.sparse.S.data[i + j * w.M], 1e-12, 1e-14);
        }
    }
    thi_free(R.data);
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

/* --- threads, failures -----------------------------------------------------------------------------------------------
 */

typedef struct everything {
    double evidence;
    gradient g;
    answer a;
} everything;

static void run_all(int threads, everything *e)
{
    thiele_context *ctx = test_context(threads);
    world w;
    world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 0.2, 0.3, 0.5);
    e->evidence = world_fit(&w, ctx);
    /* More blocks than lanes. */
    pull(&w, ctx, ROWS, w.single, 1.0, &e->g);
    pull(&w, ctx, BLOCKS, w.block, 0.3, &e->g);
    predict(&w, ctx, THI_CONDITIONAL_FULL, &e->a);
    world_close(&w);
    thiele_context_destroy(ctx);
}

static void test_threads(void **state)
{
    (void)state;
    static everything one, many;
    run_all(1, &one);
    for (int threads = 2; threads <= 5; threads += 3) {
        memset(&many, 0, sizeof many);
        run_all(threads, &many);
        assert_memory_equal(&one, &many, sizeof one);
    }
}

/* Adds blocks first .. end - 1, `step` at a time, to a tree of the engine's basis. */
static void keep_blocks(world *w, thiele_context *ctx, int64_t first, int64_t end, int64_t step, thi_natural_tree *tree)
{
    for (; first < end; first += step) {
        int64_t count = end - first < step ? end - first : step;
        assert_ok(ctx, thi_sparse_sum(&w->sparse, ctx, count, w->single + first, 1.0, &w->sums));
        assert_ok(ctx, thi_sparse_keep(&w->sparse, ctx, first, count, tree));
    }
}

/* Blocks summed in two places, each with its own threads and steps, and joined from bytes: the bits of one run. */
static void test_halves(void **state)
{
    (void)state;
    enum { CUT = 27 };
    thiele_context *one = test_context(1), *two = test_context(2);
    world w, other;
    thi_natural_tree whole, half, joined;
    thi_natural want, got;
    unsigned char *bytes[2];
    size_t length[2];
    world_open(&w, one, KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, one, 0.3, 0.0, 0.7);
    world_open(&other, two, KERNEL, THI_MEAN_LINEAR);
    world_engine(&other, two, 0.3, 0.0, 0.7);
    assert_ok(one, thi_natural_open(&want, one, w.M));
    assert_ok(one, thi_natural_open(&got, one, w.M));
    thi_natural_tree_open(&whole, w.M, w.sparse.basis);
    keep_blocks(&w, one, 0, ROWS, THI_SPARSE_LANES, &whole);
    assert_ok(one, thi_natural_tree_sum(&whole, one, &want));
    for (int k = 0; k < 2; k++) {
        thi_natural_tree_open(&half, w.M, w.sparse.basis);
        keep_blocks(k == 0 ? &w : &other, k == 0 ? one : two, k * CUT, k == 0 ? CUT : ROWS, 3 + k, &half);
        assert_ok(one, thi_natural_tree_pack(&half, one, &bytes[k], &length[k]));
        thi_natural_tree_close(&half);
    }
    thi_natural_tree_open(&joined, w.M, w.sparse.basis);
    for (int k = 1; k >= 0; k--) {
        assert_ok(one, thi_natural_tree_unpack(&joined, one, bytes[k], length[k]));
    }
    assert_ok(one, thi_natural_tree_sum(&joined, one, &got));
    for (int64_t j = 0; j < w.M; j++) {
        size_t size = (size_t)(w.M - j) * sizeof(double);
        assert_memory_equal(got.T.data + j * (w.M + 1), want.T.data + j * (w.M + 1), size);
    }
    assert_memory_equal(got.t, want.t, (size_t)w.M * sizeof(double));
    assert_true(got.constant == want.constant && got.rows == ROWS);
    thi_natural_tree_close(&joined);
    /* Bytes that were altered, and those of another noise. */
    thi_natural_tree_open(&joined, w.M, w.sparse.basis);
    bytes[0][length[0] / 2] ^= 1;
    assert_fails(one, thi_natural_tree_unpack(&joined, one, bytes[0], length[0]), THIELE_ERROR_FORMAT, "damaged");
    w.noise *= 1.5;
    world_prepare(&w, one);
    thi_natural_tree_open(&half, w.M, w.sparse.basis);
    assert_fails(one, thi_natural_tree_unpack(&half, one, bytes[1], length[1]), THIELE_ERROR_ARGUMENT,
                 "a different basis");
    thi_natural_tree_close(&whole);
    thi_natural_close(&want);
    thi_natural_close(&got);
    thi_free(bytes[0]);
    thi_free(bytes[1]);
    world_close(&w);
    world_close(&other);
    assert_int_equal(thi_memory_held(one), 0);
    thiele_context_destroy(one);
    thiele_context_destroy(two);
}

static thiele_status attempt(world *w, thiele_context *ctx)
{
    thi_sparse_shape shape = {.M = w->M, .largest = ROWS, .weight = {0.5, 0.0, 0.5}, .gradients = true};
    thi_prior prior = world_prior(w);
    thi_sparse sparse = {0};
    thi_natural sums = {0};
    thi_predictor predictor = {0};
    gradient g = {0};
    thi_sparse_bar bar = {g.theta, g.mean, &g.log_noise, g.Z};
    thiele_status status;
    THI_TRY(thi_sparse_open(&sparse, ctx, &shape, DIMS));
    THI_TRY(thi_natural_open(&sums, ctx, w->M));
    THI_TRY(thi_sparse_prepare(&sparse, ctx, &prior, w->Z, w->noise));
    THI_TRY(thi_sparse_sum(&sparse, ctx, BLOCKS, w->block, 1.0, &sums));
    THI_TRY(thi_sparse_set(&sparse, ctx, &sums));
    THI_TRY(thi_sparse_pull(&sparse, ctx, BLOCKS, w->block, 1.0, &g.value, &bar));
    THI_TRY(thi_sparse_freeze(&sparse, ctx, THI_CONDITIONAL_FULL, &predictor));
out:
    thi_predictor_clear(&predictor);
    thi_natural_close(&sums);
    thi_sparse_close(&sparse);
    return status;
}

static void test_failures(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        thiele_context *ctx = test_context(threads);
        world w;
        world_open(&w, ctx, KERNEL, THI_MEAN_LINEAR);
        size_t before = thi_memory_held(ctx);
        thiele_status status = THIELE_ERROR_MEMORY;
        int tries = 0;
        for (int nth = 1; status != THIELE_OK && nth < 2000; nth++) {
            thi_fail_allocation(ctx, nth, nth % 2 == 0);
            status = attempt(&w, ctx);
            thi_fail_allocation(ctx, 0, false);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            assert_int_equal(thi_memory_held(ctx), before);
            tries = nth;
        }
        assert_true(status == THIELE_OK && tries > 20);
        world_close(&w);
        assert_int_equal(thi_memory_held(ctx), 0);
        thiele_context_destroy(ctx);
    }
}

/* A block whose kernel matrix has a bad entry is reported, from whichever thread. */
static void test_bad_numbers(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    world w;
    world_open(&w, ctx, KERNEL, THI_MEAN_ZERO);
    world_engine(&w, ctx, 0.0, 0.0, 1.0);
    w.X[DIMS * (ROWS - 1)] = NAN;
    assert_int_equal(thi_sparse_sum(&w.sparse, ctx, BLOCKS, w.block, 1.0, &w.sums), THIELE_ERROR_NUMERIC);
    assert_true(strlen(thiele_context_message(ctx)) > 20);
    world_close(&w);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evidence),      cmocka_unit_test(test_penalty),     cmocka_unit_test(test_exact),
        cmocka_unit_test(test_single_rows),   cmocka_unit_test(test_combination), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_fixed_point),   cmocka_unit_test(test_unbiased),    cmocka_unit_test(test_conditionals),
        cmocka_unit_test(test_root),          cmocka_unit_test(test_threads),     cmocka_unit_test(test_halves),
        cmocka_unit_test(test_failures),      cmocka_unit_test(test_bad_numbers), cmocka_unit_test(test_leave_out),
        cmocka_unit_test(test_leave_out_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

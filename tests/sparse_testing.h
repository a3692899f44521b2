/* What the tests of sparse regression share: a small problem cut into blocks, and dense algebra without the library. */
#ifndef THI_SPARSE_TESTING_H
#define THI_SPARSE_TESTING_H

#include "testing.h"

#include "posterior/local.h"
#include "posterior/sparse.h"

enum { DIMS = 2, ROWS = 60, INDUCING = 9, BLOCKS = 5, TESTS = 17, MOST = ROWS };

typedef struct world {
    thiele_kernel *kernel;
    thi_mean mean;
    double mean_parameter[DIMS + 1];
    double X[DIMS * ROWS], y[ROWS], Z[DIMS * MOST], Xtest[DIMS * TESTS];
    double noise;
    int64_t M;
    thi_partition partition;
    thi_block block[BLOCKS];
    thi_block single[ROWS]; /* each row by itself */
    thi_sparse sparse;
    thi_natural sums;
} world;

static inline thiele_status world_fetch(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, double *X)
{
    (void)ctx;
    for (int64_t i = 0; i < count; i++) {
        memcpy(X + i * DIMS, (const double *)arg + row[i] * DIMS, DIMS * sizeof *X);
    }
    return THIELE_OK;
}

/* Rows in the order of their blocks. */
static inline void world_cut(world *w, thiele_context *ctx)
{
    static const double scale[DIMS] = {1.0, 0.7};
    double X[DIMS * ROWS], y[ROWS];
    memcpy(X, w->X, sizeof X);
    memcpy(y, w->y, sizeof y);
    thi_partition_rows rows = {DIMS, ROWS, X, world_fetch};
    assert_ok(ctx, thi_partition_make(&w->partition, ctx, &rows, BLOCKS, scale, 0.0));
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t row = w->partition.order[i];
        memcpy(w->X + i * DIMS, X + row * DIMS, DIMS * sizeof *X);
        w->y[i] = y[row];
        w->single[i] = (thi_block){.n = 1, .X = w->X + i * DIMS, .y = w->y + i};
    }
    for (int b = 0; b < BLOCKS; b++) {
        int64_t first = w->partition.start[b];
        w->block[b] = (thi_block){.n = w->partition.start[b + 1] - first, .X = w->X + first * DIMS, .y = w->y + first};
    }
}

static inline void world_open(world *w, thiele_context *ctx, const char *kernel, thi_mean mean)
{
    *w = (world){.mean = mean, .mean_parameter = {0.3, -0.2, 0.15}, .noise = 0.11, .M = INDUCING};
    assert_ok(ctx, thiele_kernel_parse(&w->kernel, ctx, kernel, DIMS, NULL));
    test_normals(DIMS * ROWS, 1, w->X);
    test_normals(ROWS, 2, w->y);
    test_normals(DIMS * TESTS, 3, w->Xtest);
    test_normals(DIMS * MOST, 4, w->Z);
    for (int i = 0; i < ROWS; i++) {
        w->y[i] = sin(2.0 * w->X[i * DIMS]) + 0.4 * w->X[i * DIMS + 1] + 0.3 * w->y[i];
    }
    world_cut(w, ctx);
}

static inline thi_prior world_prior(const world *w)
{
    return (thi_prior){w->kernel, w->mean, w->mean_parameter};
}

static inline void world_prepare(world *w, thiele_context *ctx)
{
    thi_prior prior = world_prior(w);
    assert_ok(ctx, thi_sparse_prepare(&w->sparse, ctx, &prior, w->Z, w->noise));
}

/* An engine with these weights of none, diagonal, block. */
static inline void world_engine(world *w, thiele_context *ctx, double none, double diagonal, double block)
{
    thi_sparse_shape shape = {.M = w->M, .largest = ROWS, .weight = {none, diagonal, block}, .gradients = true};
    thi_sparse_close(&w->sparse);
    thi_natural_close(&w->sums);
    assert_ok(ctx, thi_sparse_open(&w->sparse, ctx, &shape, DIMS));
    assert_ok(ctx, thi_natural_open(&w->sums, ctx, w->M));
    world_prepare(w, ctx);
}

/* Sums over all blocks, q* from them, and the log evidence. */
static inline double world_fit(world *w, thiele_context *ctx)
{
    thi_natural_zero(&w->sums);
    assert_ok(ctx, thi_sparse_sum(&w->sparse, ctx, BLOCKS, w->block, 1.0, &w->sums));
    assert_ok(ctx, thi_sparse_set(&w->sparse, ctx, &w->sums));
    return thi_sparse_evidence(&w->sparse, &w->sums);
}

static inline void world_close(world *w)
{
    thi_sparse_close(&w->sparse);
    thi_natural_close(&w->sums);
    thi_partition_clear(&w->partition);
    thiele_kernel_destroy(w->kernel);
}

/* --- dense algebra, row-major, without the library ---------------------------------------------------------------- */

/* k(A, B), a x b */
static inline double *dense_kernel(const world *w, thiele_context *ctx, int64_t a, const double *A, int64_t b,
                                   const double *B)
{
    thi_inputs left, right;
    double *column = malloc((size_t)(a * b) * sizeof *column), *K = malloc((size_t)(a * b) * sizeof *K);
    bool same = A == B && a == b;
    assert_ok(ctx, thi_inputs_make(&left, ctx, w->kernel, a, A));
    assert_ok(ctx, thi_inputs_make(&right, ctx, w->kernel, b, B));
    assert_ok(ctx,
              thi_kernel_fill(w->kernel, ctx, &left, same ? &left : &right, thi_matrix_view(column, a, b, a), same));
    for (int64_t i = 0; i < a; i++) {
        for (int64_t j = 0; j < b; j++) {
            K[i * b + j] = same && j > i ? column[j + i * a] : column[i + j * a];
        }
    }
    thi_inputs_clear(&left);
    thi_inputs_clear(&right);
    free(column);
    return K;
}

static inline double *dense_product(int64_t a, int64_t b, int64_t c, const double *A, const double *B)
{
    double *C = calloc((size_t)(a * c), sizeof *C);
    for (int64_t i = 0; i < a; i++) {
        for (int64_t k = 0; k < b; k++) {
            for (int64_t j = 0; j < c; j++) {
                C[i * c + j] += A[i * b + k] * B[k * c + j];
            }
        }
    }
    return C;
}

static inline double *dense_transpose(int64_t a, int64_t b, const double *A)
{
    double *T = malloc((size_t)(a * b) * sizeof *T);
    for (int64_t i = 0; i < a; i++) {
        for (int64_t j = 0; j < b; j++) {
            T[j * a + i] = A[i * b + j];
        }
    }
    return T;
}

/* The inverse of a positive definite A by Gauss-Jordan, and log|A|. */
static inline double *dense_inverse(int64_t n, const double *A, double *log_det)
{
    double *B = malloc((size_t)(n * n) * sizeof *B), *I = calloc((size_t)(n * n), sizeof *I);
    memcpy(B, A, (size_t)(n * n) * sizeof *B);
    *log_det = 0.0;
    for (int64_t i = 0; i < n; i++) {
        I[i * n + i] = 1.0;
    }
    for (int64_t k = 0; k < n; k++) {
        double pivot = B[k * n + k];
        *log_det += log(pivot);
        for (int64_t j = 0; j < n; j++) {
            B[k * n + j] /= pivot;
            I[k * n + j] /= pivot;
        }
        for (int64_t i = 0; i < n; i++) {
            double times = B[i * n + k];
            for (int64_t j = 0; i != k && j < n; j++) {
                B[i * n + j] -= times * B[k * n + j];
                I[i * n + j] -= times * I[k * n + j];
            }
        }
    }
    free(B);
    return I;
}

/* Q = k(A, Z) Kzz^-1 k(Z, B) */
static inline double *dense_q(const world *w, thiele_context *ctx, int64_t a, const double *A, int64_t b,
                              const double *B)
{
    double log_det;
    double *Kzz = dense_kernel(w, ctx, w->M, w->Z, w->M, w->Z), *inverse = dense_inverse(w->M, Kzz, &log_det);
    double *left = dense_kernel(w, ctx, a, A, w->M, w->Z), *right = dense_kernel(w, ctx, w->M, w->Z, b, B);
    double *half = dense_product(a, w->M, w->M, left, inverse), *Q = dense_product(a, w->M, b, half, right);
    free(Kzz);
    free(inverse);
    free(left);
    free(right);
    free(half);
    return Q;
}

static inline int block_of(const world *w, int64_t row)
{
    int b = 0;
    while (w->partition.start[b + 1] <= row) {
        b++;
    }
    return b;
}

/* y - m(x) of the training rows. */
static inline void residuals(const world *w, double *r)
{
    thi_mean_fill(w->mean, w->mean_parameter, ROWS, DIMS, w->X, r);
    for (int i = 0; i < ROWS; i++) {
        r[i] = w->y[i] - r[i];
    }
}

/* --- PIC ---------------------------------------------------------------------------------------------------------- */

#define PIC_KERNEL "matern52(ard, lengthscale~[1.1,1.6], variance~0.9)"

/* PITC's q* of a world of blocks, with the local part. */
static inline void pic_open(world *w, thiele_context *ctx, thi_predictor *p)
{
    world_open(w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(w, ctx, 0.0, 0.0, 1.0);
    world_fit(w, ctx);
    assert_ok(ctx, thi_sparse_freeze(&w->sparse, ctx, THI_CONDITIONAL_FULL, p));
    assert_ok(ctx, thi_local_attach(p, ctx, &w->partition, w->X, w->y, w->noise));
}

typedef struct pic_answer {
    double mean[TESTS], variance[TESTS];
} pic_answer;

static inline void pic_predict(const thi_predictor *p, thiele_context *ctx, const double *X, pic_answer *a)
{
    int64_t clipped = 0;
    assert_ok(ctx, thi_predictor_marginals(p, ctx, TESTS, X, a->mean, a->variance, &clipped));
    assert_int_equal(clipped, 0);
}

/* The prior covariance that PIC stands for: K within a block, Q across; rows of both kinds, training ones first. */
static inline double *pic_prior(const world *w, thiele_context *ctx, const int64_t *test_block)
{
    enum { ALL = ROWS + TESTS };
    double X[DIMS * ALL];
    memcpy(X, w->X, sizeof w->X);
    memcpy(X + DIMS * ROWS, w->Xtest, sizeof w->Xtest);
    double *K = dense_kernel(w, ctx, ALL, X, ALL, X), *Q = dense_q(w, ctx, ALL, X, ALL, X);
    for (int64_t i = 0; i < ALL; i++) {
        for (int64_t j = 0; j < ALL; j++) {
            int64_t a = i < ROWS ? block_of(w, i) : test_block[i - ROWS];
            int64_t b = j < ROWS ? block_of(w, j) : test_block[j - ROWS];
            if (a == b) {
                Q[i * ALL + j] = K[i * ALL + j];
            }
        }
    }
    free(K);
    return Q;
}

/* Conditions that prior on targets r above their prior mean with noise of these variances; covariance is TESTS x TESTS.
 */
static inline void pic_dense(const world *w, thiele_context *ctx, const int64_t *block, const double *noise,
                             const double *r, double *mean, double *covariance)
{
    enum { ALL = ROWS + TESTS };
    double log_det, *prior = pic_prior(w, ctx, block);
    double *A = malloc(ROWS * ROWS * sizeof *A), *cross = malloc(TESTS * ROWS * sizeof *cross);
    for (int i = 0; i < ROWS; i++) {
        memcpy(A + i * ROWS, prior + i * ALL, ROWS * sizeof *A);
        A[i * ROWS + i] += noise[i];
    }
    for (int i = 0; i < TESTS; i++) {
        memcpy(cross + i * ROWS, prior + (ROWS + i) * ALL, ROWS * sizeof *cross);
    }
    double *inverse = dense_inverse(ROWS, A, &log_det), *gain = dense_product(TESTS, ROWS, ROWS, cross, inverse);
    double *turned = dense_transpose(TESTS, ROWS, cross), *less = dense_product(TESTS, ROWS, TESTS, gain, turned);
    thi_mean_fill(w->mean, w->mean_parameter, TESTS, DIMS, w->Xtest, mean);
    for (int i = 0; i < TESTS; i++) {
        for (int j = 0; j < ROWS; j++) {
            mean[i] += gain[i * ROWS + j] * r[j];
        }
        for (int j = 0; j < TESTS; j++) {
            covariance[i * TESTS + j] = prior[(ROWS + i) * ALL + ROWS + j] - less[i * TESTS + j];
        }
    }
    free(prior);
    free(A);
    free(cross);
    free(inverse);
    free(gain);
    free(turned);
    free(less);
}

#endif

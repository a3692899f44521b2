/*
 * Bits do not depend on threads: the BLAS called from several threads at once gives what it gives to one alone, and the
 * functions that use all threads give the same on one, two, three and four.
 */
#include "testing.h"

#include <pthread.h>

#include "linalg/linalg.h"

enum { WORKERS = 4, LARGEST = 200, ROUNDS = 25, MOST_THREADS = 4 };

/* Sizes around those where BLAS libraries change their method. */
static const int64_t sizes[] = {1, 2, 5, 8, 17, 24, 31, 48, 64, 65, 96, 100, 128, 144, 199};
enum { SIZES = sizeof sizes / sizeof sizes[0], KERNELS = 6, AREA = LARGEST * LARGEST };

typedef struct worker {
    pthread_t thread;
    int index;
    double *A, *L; /* shared inputs: LARGEST x LARGEST */
    double **want; /* KERNELS x SIZES results of one thread */
    double *got;
    int64_t differed; /* results with other bits */
} worker;

typedef void (*kernel_fn)(thi_matrix A, thi_matrix L, thi_matrix C);

static void gemm(thi_matrix A, thi_matrix L, thi_matrix C)
{
    thi_blas_gemm(THI_N, THI_T, 1, A, L, 0.5, C);
}

static void gemmt(thi_matrix A, thi_matrix L, thi_matrix C)
{
    thi_blas_gemmt(THI_T, THI_N, 1, A, L, 0.5, C);
}

static void syrk(thi_matrix A, thi_matrix L, thi_matrix C)
{
    (void)L;
    thi_blas_syrk(THI_N, -1, A, 1, C);
}

static void trsm(thi_matrix A, thi_matrix L, thi_matrix C)
{
    (void)A;
    thi_blas_trsm(THI_RIGHT, THI_T, 1, L, C);
}

static void trmm(thi_matrix A, thi_matrix L, thi_matrix C)
{
    (void)A;
    thi_blas_trmm(THI_LEFT, THI_T, 1, L, C);
}

static void symm(thi_matrix A, thi_matrix L, thi_matrix C)
{
    thi_blas_symm(THI_LEFT, 1, L, A, 0, C);
}

static const kernel_fn kernels[KERNELS] = {gemm, gemmt, syrk, trsm, trmm, symm};

/* One call on the leading n x n parts; the result in c, which begins as a. */
static void call(int kernel, int64_t n, double *a, double *l, double *c)
{
    memcpy(c, a, AREA * sizeof(double));
    kernels[kernel](thi_matrix_view(a, n, n, LARGEST), thi_matrix_view(l, n, n, LARGEST),
                    thi_matrix_view(c, n, n, LARGEST));
}

static void *hammer(void *arg)
{
    worker *w = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < KERNELS * SIZES; k++) {
            /* Each thread goes its own way through the list, so that unlike calls meet. */
            int which = (k * 7 + w->index * 23 + round) % (KERNELS * SIZES);
            call(which / SIZES, sizes[which % SIZES], w->A, w->L, w->got);
            w->differed += memcmp(w->got, w->want[which], AREA * sizeof(double)) != 0;
        }
    }
    return NULL;
}

static double *numbers(uint64_t row)
{
    double *x = malloc(AREA * sizeof *x);
    assert_non_null(x);
    test_normals(AREA, row, x);
    return x;
}

static void test_hammer(void **state)
{
    (void)state;
    double *A = numbers(1), *L = numbers(2), *want[KERNELS * SIZES];
    for (int i = 0; i < LARGEST; i++) {
        L[i + i * LARGEST] = 20;
    }
    for (int k = 0; k < KERNELS * SIZES; k++) {
        want[k] = malloc(AREA * sizeof(double));
        assert_non_null(want[k]);
        call(k / SIZES, sizes[k % SIZES], A, L, want[k]);
    }
    worker workers[WORKERS];
    for (int t = 0; t < WORKERS; t++) {
        workers[t] = (worker){.index = t, .A = A, .L = L, .want = want, .got = numbers(3), .differed = 0};
        assert_int_equal(pthread_create(&workers[t].thread, NULL, hammer, &workers[t]), 0);
    }
    for (int t = 0; t < WORKERS; t++) {
        assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
        assert_int_equal(workers[t].differed, 0);
        free(workers[t].got);
    }
    for (int k = 0; k < KERNELS * SIZES; k++) {
        free(want[k]);
    }
    free(A);
    free(L);
}

/* What every parallel function makes of K, one after the other, in `out` (n x n each). */
enum { RESULTS = 9 };

static void compute_all(int threads, int64_t n, const double *K, double *out)
{
    thiele_context *ctx = test_context(threads);
    thi_matrix R[RESULTS];
    for (int r = 0; r < RESULTS; r++) {
        R[r] = thi_matrix_view(out + r * n * n, n, n, n);
        memcpy(R[r].data, K, (size_t)(n * n) * sizeof(double));
    }
    thi_matrix L = R[0];
    double jitter;
    assert_ok(ctx, thi_chol(ctx, L));
    for (int64_t i = 0; i < n; i++) {
        R[1].data[i + i * n] -= 1e-3; /* nearly singular now: some rungs of the ladder */
    }
    assert_ok(ctx, thi_chol_jitter(ctx, R[1], &jitter));
    assert_true(jitter > 0);
    assert_ok(ctx, thi_chol_jitter(ctx, R[2], &jitter));
    memcpy(R[3].data, L.data, (size_t)(n * n) * sizeof(double));
    assert_ok(ctx, thi_tri_inverse(ctx, R[3]));
    memcpy(R[4].data, L.data, (size_t)(n * n) * sizeof(double));
    assert_ok(ctx, thi_chol_inverse(ctx, R[4]));
    assert_ok(ctx, thi_tri_solve(ctx, THI_T, L, R[5]));
    assert_ok(ctx, thi_tri_multiply(ctx, THI_N, L, R[6]));
    assert_ok(ctx, thi_multiply(ctx, THI_N, THI_T, 1, R[5], R[6], 0.5, R[7], n % 2 == 0));
    thi_matrix work;
    assert_ok(ctx, thi_matrix_alloc(&work, ctx, n, n));
    assert_ok(ctx, thi_chol_adjoint(ctx, L, R[8], work));
    thi_free(work.data);
    thiele_context_destroy(ctx);
}

static void test_same_bits(void **state)
{
    (void)state;
    const int64_t orders[] = {33, 100, 241, 300, 577, 1250};
    for (int s = 0; s < 6; s++) {
        int64_t n = orders[s], area = n * n;
        double *K = malloc((size_t)area * sizeof *K), *want = malloc((size_t)(RESULTS * area) * sizeof *want);
        double *got = malloc((size_t)(RESULTS * area) * sizeof *got);
        assert_true(K != NULL && want != NULL && got != NULL);
        for (int64_t i = 0; i < area; i++) {
            double r = (double)(i % n - i / n) / 20;
            K[i] = exp(-0.5 * r * r) + (i % n == i / n ? 1e-3 : 0);
        }
        compute_all(1, n, K, want);
        for (int threads = 2; threads <= MOST_THREADS; threads++) {
            compute_all(threads, n, K, got);
            for (int r = 0; r < RESULTS; r++) {
                assert_memory_equal(got + r * area, want + r * area, (size_t)area * sizeof(double));
            }
        }
        free(K);
        free(want);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hammer),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * BLIS never asks for more memory than contexts and threads have reserved for it, whatever the kernel, the shape and
 * the processor that it believes to be on; and a reservation that cannot be had is an error, not the end of the
 * process.
 */
#include "testing.h"

#include <blis.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/blis_memory.h"
#include "linalg/linalg.h"

enum { THREADS = 3, SHAPES = 5, CALLS = 6 };

/* Small, beyond one block of A, beyond one of k, thin, and wider than one panel of B. */
static const int64_t shapes[SHAPES][3] = {{7, 5, 3}, {700, 90, 300}, {90, 90, 900}, {600, 8, 600}, {40, 5000, 20}};

typedef struct problem {
    double *a, *b, *c; /* one set a thread */
} problem;

enum { AREA = 5000 * 900 };

/* Every kernel with C of m x n and inner dimension k; triangles are the identity, so that nothing grows. */
static thiele_status call(void *arg, int64_t block, int thread)
{
    problem *p = (problem *)arg + thread;
    int64_t m = shapes[block / CALLS % SHAPES][0], n = shapes[block / CALLS % SHAPES][1];
    int64_t k = shapes[block / CALLS % SHAPES][2], least = m < n ? m : n;
    thi_matrix A = thi_matrix_view(p->a, m, k, m), B = thi_matrix_view(p->b, k, n, k),
               C = thi_matrix_view(p->c, m, n, m);
    thi_matrix S = thi_matrix_view(p->b, m, m, m), square = thi_matrix_view(p->c, m, m, m);
    switch (block % CALLS) {
    case 0:
        thi_blas_gemm(THI_N, THI_N, 1, A, B, 0, C);
        break;
    case 1:
        thi_blas_gemmt(THI_N, THI_T, 1, A, A, 0, square);
        break;
    case 2:
        thi_blas_syrk(THI_N, 1, A, 0, square);
        break;
    case 3:
        thi_blas_symm(THI_LEFT, 1, thi_matrix_view(p->b, m, m, m), C, 0, thi_matrix_view(p->a, m, n, m));
        break;
    case 4:
        thi_blas_trmm(least == m ? THI_LEFT : THI_RIGHT, THI_N, 1, thi_matrix_view(p->b, least, least, least), C);
        break;
    default:
        for (int64_t i = 0; i < m; i++) {
            S.data[i + i * m] = 1e3;
        }
        thi_blas_trsm(THI_LEFT, THI_T, 1, S, C);
    }
    return THIELE_OK;
}

static int64_t run_all(void)
{
    thiele_context *ctx = test_context(THREADS);
    problem p[THREADS];
    for (int t = 0; t < THREADS; t++) {
        p[t] = (problem){calloc(AREA, sizeof(double)), calloc(AREA, sizeof(double)), calloc(AREA, sizeof(double))};
        assert_true(p[t].a != NULL && p[t].b != NULL && p[t].c != NULL);
    }
    assert_ok(ctx, thi_parallel(ctx, (int64_t)4 * CALLS * SHAPES, call, p));
    for (int t = 0; t < THREADS; t++) {
        free(p[t].a);
        free(p[t].b);
        free(p[t].c);
    }
    thiele_context_destroy(ctx);
    return thi_blis_shortfalls();
}

/* In a child, because BLIS looks at its processor once. */
static void run_on(int arch)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", arch);
        setenv("BLIS_ARCH_TYPE", text, 1);
        _exit(run_all() != 0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void test_reserved_is_enough(void **state)
{
    (void)state;
    run_on(BLIS_ARCH_GENERIC);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        run_on(BLIS_ARCH_HASWELL);
        run_on(BLIS_ARCH_ZEN);
    }
    if (__builtin_cpu_supports("avx512dq")) {
        run_on(BLIS_ARCH_SKX);
    }
#endif
    assert_int_equal(run_all(), 0);
}

/* Contexts until the address space is full: the last one is refused. */
static int fill_up(void)
{
    struct rlimit limit = {200 << 20, 200 << 20};
    setrlimit(RLIMIT_AS, &limit);
    for (int i = 0; i < 1000; i++) {
        thiele_context *ctx;
        thiele_status status = thiele_context_create(&ctx, NULL);
        if (status != THIELE_OK) {
            return status == THIELE_ERROR_MEMORY && ctx == NULL && i > 2 ? 0 : 1;
        }
    }
    return 2;
}

static void test_refused(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(fill_up());
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* Portable kernels are for processors without vectors, not for those that are newer than BLIS. */
static void test_kernels_suit_the_processor(void **state)
{
    (void)state;
    assert_true(thi_blis_reserve(1));
#if defined(__x86_64__)
    if (getenv("BLIS_ARCH_TYPE") == NULL && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        assert_int_not_equal(bli_arch_query_id(), BLIS_ARCH_GENERIC);
    }
#endif
    thi_blis_release(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reserved_is_enough),
                                       cmocka_unit_test(test_kernels_suit_the_processor),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

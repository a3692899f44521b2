/*
 * Speed of the dense linear algebra in GF/s against the bare matrix product of the BLAS.
 *
 *   bench-linalg [largest size [numbers of threads...]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linalg/linalg.h"

typedef struct workbench {
    thiele_context *ctx;
    thi_matrix K, L, A, B; /* n x n each: positive definite, its factor, two to work on */
} workbench;

typedef struct operation {
    const char *name;
    double flops; /* in n^3 */
    void (*prepare)(workbench *w);
    thiele_status (*run)(workbench *w);
} operation;

static void copy(thi_matrix from, thi_matrix to)
{
    memcpy(to.data, from.data, (size_t)(from.rows * from.cols) * sizeof(double));
}

static void prepare_none(workbench *w)
{
    (void)w;
}

static void prepare_matrix(workbench *w)
{
    copy(w->K, w->A);
}

static void prepare_factor(workbench *w)
{
    copy(w->L, w->A);
}

static thiele_status run_multiply(workbench *w)
{
    return thi_multiply(w->ctx, THI_N, THI_N, 1, w->K, w->L, 0, w->A, false);
}

static thiele_status run_multiply_lower(workbench *w)
{
    return thi_multiply(w->ctx, THI_N, THI_T, 1, w->L, w->L, 0, w->A, true);
}

static thiele_status run_chol(workbench *w)
{
    return thi_chol(w->ctx, w->A);
}

static thiele_status run_chol_jitter(workbench *w)
{
    double jitter;
    return thi_chol_jitter(w->ctx, w->A, &jitter);
}

static thiele_status run_tri_inverse(workbench *w)
{
    return thi_tri_inverse(w->ctx, w->A);
}

static thiele_status run_chol_inverse(workbench *w)
{
    return thi_chol_inverse(w->ctx, w->A);
}

static thiele_status run_tri_solve(workbench *w)
{
    return thi_tri_solve(w->ctx, THI_N, w->L, w->A);
}

static thiele_status run_tri_multiply(workbench *w)
{
    return thi_tri_multiply(w->ctx, THI_T, w->L, w->A);
}

static thiele_status run_adjoint(workbench *w)
{
    return thi_chol_adjoint(w->ctx, w->L, w->A, w->B);
}

static const operation operations[] = {
    {"multiply", 2, prepare_none, run_multiply},
    {"multiply, lower", 1, prepare_none, run_multiply_lower},
    {"chol", 1 / 3.0, prepare_matrix, run_chol},
    {"chol_jitter", 1 / 3.0, prepare_matrix, run_chol_jitter},
    {"tri_inverse", 1 / 3.0, prepare_factor, run_tri_inverse},
    {"chol_inverse", 2 / 3.0, prepare_factor, run_chol_inverse},
    {"tri_solve", 1, prepare_matrix, run_tri_solve},
    {"tri_multiply", 1, prepare_matrix, run_tri_multiply},
    {"chol_adjoint", 5 / 3.0, prepare_factor, run_adjoint},
};

static void check(thiele_context *ctx, thiele_status status)
{
    if (status != THIELE_OK) {
        fprintf(stderr, "%s: %s\n", thiele_status_name(status), ctx != NULL ? thiele_context_message(ctx) : "");
        exit(1);
    }
}

/* The best of several runs, in seconds. */
static double best_time(const operation *op, workbench *w)
{
    double best = 1e300, total = 0;
    for (int run = 0; run < 5 || (total < 0.3 && run < 500); run++) {
        op->prepare(w);
        double start = thi_seconds();
        check(w->ctx, op->run(w));
        double taken = thi_seconds() - start;
        best = taken < best ? taken : best;
        total += taken;
    }
    return best;
}

/* The rate of the bare product, `threads` of them at once. */
static thiele_status one_gemm(void *arg, int64_t block, int thread)
{
    (void)thread;
    thi_matrix *m = (thi_matrix *)arg + 3 * block;
    thi_blas_gemm(THI_N, THI_N, 1, m[0], m[1], 0, m[2]);
    return THIELE_OK;
}

static double gemm_rate(thiele_context *ctx, int threads)
{
    enum { N = 2000 };
    thi_matrix *m = calloc((size_t)(3 * threads), sizeof *m);
    for (int k = 0; k < 3 * threads; k++) {
        check(ctx, thi_matrix_alloc(&m[k], ctx, N, N));
        for (int64_t i = 0; i < N * N; i++) {
            m[k].data[i] = thi_random_uniform((thi_stream){1, THI_RANDOM_DEMO, (uint64_t)k}, (uint64_t)i);
        }
    }
    double best = 1e300;
    for (int run = 0; run < 3; run++) {
        double start = thi_seconds();
        check(ctx, thi_parallel(ctx, threads, one_gemm, m));
        double taken = thi_seconds() - start;
        best = taken < best ? taken : best;
    }
    for (int k = 0; k < 3 * threads; k++) {
        thi_free(m[k].data);
    }
    free(m);
    return threads * 2e-9 * N * N * N / best;
}

static void fill(workbench *w, int64_t n)
{
    check(w->ctx, thi_matrix_alloc(&w->K, w->ctx, n, n));
    check(w->ctx, thi_matrix_alloc(&w->L, w->ctx, n, n));
    check(w->ctx, thi_matrix_alloc(&w->A, w->ctx, n, n));
    check(w->ctx, thi_matrix_alloc(&w->B, w->ctx, n, n));
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            double r = (double)(i - j) / 7;
            w->K.data[i + j * n] = 1 / (1 + r * r) + (i == j ? 1 : 0);
        }
    }
    copy(w->K, w->L);
    check(w->ctx, thi_chol(w->ctx, w->L));
}

static void measure(int64_t n, int threads, double peak)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    workbench w = {0};
    check(NULL, thiele_context_create(&w.ctx, &options));
    fill(&w, n);
    for (size_t k = 0; k < sizeof operations / sizeof operations[0]; k++) {
        double seconds = best_time(&operations[k], &w);
        double rate = 1e-9 * operations[k].flops * (double)n * (double)n * (double)n / seconds;
        printf("%-16s n = %5lld  threads = %d  %9.3f ms  %7.1f GF/s  %5.1f%%\n", operations[k].name, (long long)n,
               threads, 1e3 * seconds, rate, 100 * rate / peak);
    }
    thi_free(w.K.data);
    thi_free(w.L.data);
    thi_free(w.A.data);
    thi_free(w.B.data);
    thiele_context_destroy(w.ctx);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {50, 100, 200, 300, 500, 1000, 2000, 4000};
    int64_t largest = argc > 1 ? atoll(argv[1]) : 2000;
    int runs = argc > 2 ? argc - 2 : 2;
    for (int run = 0; run < runs; run++) {
        int threads = argc > 2 ? atoi(argv[2 + run]) : run + 1;
        thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
        options.threads = threads;
        thiele_context *ctx;
        check(NULL, thiele_context_create(&ctx, &options));
        double peak = gemm_rate(ctx, threads);
        thiele_context_destroy(ctx);
        printf("bare product, 2000^3 on each of %d threads: %.1f GF/s\n", threads, peak);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0] && sizes[k] <= largest; k++) {
            measure(sizes[k], threads, peak);
        }
    }
    return 0;
}

/*
 * bench-kernel_fill [N D]: time to fill an N x N squared-exponential matrix on one thread, against a bare dgemm of the
 * same shape plus a bare vector exp over the same entries. Interleaved; medians; one line a measurement and the ratio
 * last.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

enum { REPEATS = 15 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds)
{
    qsort(seconds, REPEATS, sizeof *seconds, ascending);
    return seconds[REPEATS / 2];
}

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? atoi(argv[1]) : 2000;
    int D = argc > 2 ? atoi(argv[2]) : 8;
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    thiele_context *ctx;
    thiele_kernel *kernel;
    if (n < 1 || D < 1 || thiele_context_create(&ctx, &options) != THIELE_OK ||
        thiele_kernel_parse(&kernel, ctx, "se(ard)", D, NULL) != THIELE_OK) {
        fprintf(stderr, "usage: bench-kernel_fill [N D]\n");
        return 2;
    }
    double *X;
    thi_matrix K;
    thi_matrix E;
    thi_inputs A;
    thi_inputs B;
    if (thi_alloc(ctx, &X, (size_t)(n * D), sizeof *X) != THIELE_OK || thi_matrix_alloc(&K, ctx, n, n) != THIELE_OK ||
        thi_matrix_alloc(&E, ctx, n, n) != THIELE_OK) {
        fprintf(stderr, "bench-kernel_fill: %s\n", thiele_context_message(ctx));
        return 1;
    }
    for (int64_t i = 0; i < n * D; i++) {
        X[i] = thi_random_normal((thi_stream){0, THI_RANDOM_DEMO, 0}, (uint64_t)i);
    }
    for (int64_t i = 0; i < n * n; i++) {
        E.data[i] = -5.0 * thi_random_uniform((thi_stream){0, THI_RANDOM_DEMO, 1}, (uint64_t)i);
    }
    double fill[REPEATS];
    double gemm[REPEATS];
    double exponential[REPEATS];
    for (int r = -1; r < REPEATS; r++) {
        int at = r < 0 ? 0 : r;
        double t0 = thi_seconds();
        if (thi_inputs_make(&A, ctx, kernel, n, X) != THIELE_OK ||
            thi_inputs_make(&B, ctx, kernel, n, X) != THIELE_OK ||
            thi_kernel_fill(kernel, ctx, &A, &B, K, false) != THIELE_OK) {
            fprintf(stderr, "bench-kernel_fill: %s\n", thiele_context_message(ctx));
            return 1;
        }
        thi_inputs_clear(&A);
        thi_inputs_clear(&B);
        double t1 = thi_seconds();
        thi_matrix view = thi_matrix_view(X, D, n, D);
        thi_blas_gemm(THI_T, THI_N, 1.0, view, view, 0.0, K);
        double t2 = thi_seconds();
        thi_vector()->exp(n * n, E.data, K.data);
        double t3 = thi_seconds();
        fill[at] = t1 - t0;
        gemm[at] = t2 - t1;
        exponential[at] = t3 - t2;
    }
    double f = median(fill);
    double g = median(gemm);
    double e = median(exponential);
    printf("fill %.2f ms, dgemm %.2f ms, exp %.2f ms (%.0f M/s, %s), ratio %.3f\n", 1e3 * f, 1e3 * g, 1e3 * e,
           1e-6 * (double)(n * n) / e, thi_vector()->name, f / (g + e));
    thi_free(X);
    thi_free(K.data);
    thi_free(E.data);
    thiele_kernel_destroy(kernel);
    thiele_context_destroy(ctx);
    return 0;
}

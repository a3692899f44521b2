/*
 * What the benchmarks share: the rate that they measure against, of the BLAS' bare matrix product, one of 1500^3 on
 * each thread at once; memory; numbers.
 */
#ifndef THI_BENCH_PRODUCT_H
#define THI_BENCH_PRODUCT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linalg/linalg.h"

static inline void check(thiele_context *ctx, thiele_status status)
{
    if (status != THIELE_OK) {
        fprintf(stderr, "%s: %s\n", thiele_status_name(status), ctx != NULL ? thiele_context_message(ctx) : "");
        exit(1);
    }
}

/* n draws of a normal with this deviation, which depend on `row` alone. */
static inline double *numbers(thiele_context *ctx, int64_t n, uint64_t row, double scale)
{
    double *x;
    check(ctx, thi_alloc(ctx, &x, (size_t)n, sizeof *x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = scale * thi_random_normal((thi_stream){1, THI_RANDOM_DEMO, row}, (uint64_t)i);
    }
    return x;
}

/* The most bytes the process has held. Not by getrusage: its maximum is inherited from the one that started this. */
static inline double most_memory(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double kilobytes = NAN;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kilobytes = atof(line + 6);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return 1024.0 * kilobytes;
}

/* Matrices for the product, three a thread. */
typedef struct product {
    thiele_context *ctx;
    thi_matrix *m;
} product;

enum { PRODUCT_SIDE = 1500 };

static inline product product_open(thiele_context *ctx)
{
    product p = {ctx, NULL};
    check(ctx, thi_alloc(ctx, &p.m, (size_t)(3 * ctx->threads), sizeof *p.m));
    for (int k = 0; k < 3 * ctx->threads; k++) {
        p.m[k] = thi_matrix_view(numbers(ctx, PRODUCT_SIDE * PRODUCT_SIDE, (uint64_t)k, 1.0), PRODUCT_SIDE,
                                 PRODUCT_SIDE, PRODUCT_SIDE);
    }
    return p;
}

static inline void product_close(product *p)
{
    for (int k = 0; k < 3 * p->ctx->threads; k++) {
        thi_free(p->m[k].data);
    }
    thi_free(p->m);
}

static inline thiele_status product_one(void *arg, int64_t block, int thread)
{
    (void)thread;
    thi_matrix *m = (thi_matrix *)arg + 3 * block;
    thi_blas_gemm(THI_N, THI_N, 1.0, m[0], m[1], 0.0, m[2]);
    return THIELE_OK;
}

/* GF/s of all threads together, the best of some runs. */
static inline double product_rate(const product *p, int runs)
{
    double best = 1e300, side = PRODUCT_SIDE;
    for (int run = 0; run < runs; run++) {
        double start = thi_seconds();
        check(p->ctx, thi_parallel(p->ctx, p->ctx->threads, product_one, p->m));
        double taken = thi_seconds() - start;
        best = taken < best ? taken : best;
    }
    return p->ctx->threads * 2e-9 * side * side * side / best;
}

#endif

/*
 * bench-variational [numbers of threads...]: one step of a sparse variational regression, value and all gradients (q,
 * kernel with ARD, inducing inputs), D = 8, against the bare matrix product of the BLAS on as many threads: 5 B M^2 + 4
 * M^3 flops a step (math.md section 2) over the time over the rate of the product. Then mixtures of K diagonal
 * Gaussians, whose cost beyond the solves that all components share grows as K B M. Then how much faster a step at
 * (4096, 500) is on two threads than on one, beside the product (--scaling: that alone).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "posterior/variational.h"
#include "product.h"

enum { D = 8 };

static double gemm_rate(thiele_context *ctx, int runs)
{
    product p = product_open(ctx);
    double rate = product_rate(&p, runs);
    product_close(&p);
    return rate;
}

typedef struct workbench {
    thiele_context *ctx;
    int64_t B, M;
    int K;
    thiele_kernel *kernel;
    thi_prior prior;
    thi_variational *v;
    double *X, *y, *Z, *q, *q_bar, *theta_bar, *Z_bar, *mu, *variance, *g, *h;
} workbench;

/* Seconds of the parts of a step: begin, marginals, pull, end. */
enum { PARTS = 4 };

static void step(workbench *w, double *part)
{
    const double *Z = w->Z, noise = 0.1;
    double kl, at[PARTS + 1], expected[16] = {0.0};
    thi_adjoints adjoints = {w->q_bar, &w->theta_bar, NULL, &w->Z_bar};
    at[0] = thi_seconds();
    check(w->ctx, thi_variational_begin(w->v, w->ctx, &w->prior, &Z, w->q, NULL, true));
    at[1] = thi_seconds();
    check(w->ctx, thi_variational_marginals(w->v, w->ctx, w->B, w->X, w->mu, w->variance));
    for (int64_t i = 0; i < w->B * w->K; i++) {
        w->g[i] = (w->y[i % w->B] - w->mu[i]) / noise / w->K;
        w->h[i] = -0.5 / noise / w->K;
    }
    at[2] = thi_seconds();
    check(w->ctx, thi_variational_pull(w->v, w->ctx, w->g, w->h));
    at[3] = thi_seconds();
    check(w->ctx, thi_variational_end(w->v, w->ctx, expected, &kl, &adjoints));
    at[4] = thi_seconds();
    for (int p = 0; p < PARTS; p++) {
        part[p] = at[p + 1] - at[p];
    }
}

enum { ARRAYS = 11 };

/* The arrays of a workbench, and how long each is. */
static void list_arrays(workbench *w, int64_t size, double **arrays[ARRAYS], int64_t length[ARRAYS])
{
    const int64_t all = w->B * w->K;
    double **const array[ARRAYS] = {&w->X,     &w->y,  &w->Z,        &w->q, &w->q_bar, &w->theta_bar,
                                    &w->Z_bar, &w->mu, &w->variance, &w->g, &w->h};
    const int64_t lengths[ARRAYS] = {D * w->B, w->B, D * w->M, size, size, D + 1, D * w->M, all, all, all, all};
    memcpy(arrays, array, sizeof array);
    memcpy(length, lengths, sizeof lengths);
}

/* K = 0: one full Gaussian; else K diagonal ones, in u. */
static workbench *bench_open(thiele_context *ctx, int64_t B, int64_t M, int K)
{
    workbench *w;
    thi_shape shape = {.latents = 1,
                       .components = K > 0 ? K : 1,
                       .dims = D,
                       .inducing = M,
                       .capacity = B,
                       .diagonal = K > 0,
                       .whitened = K == 0,
                       .quick = K == 0 && B >= 2 * M};
    double **arrays[ARRAYS];
    int64_t length[ARRAYS];
    check(ctx, thi_alloc(ctx, &w, 1, sizeof *w));
    *w = (workbench){.ctx = ctx, .B = B, .M = M, .K = shape.components};
    check(ctx, thiele_kernel_parse(&w->kernel, ctx, "matern52(ard, lengthscale~2)", D, NULL));
    check(ctx, thi_variational_open(&w->v, ctx, &shape));
    w->prior = (thi_prior){w->kernel, THI_MEAN_ZERO, NULL};
    list_arrays(w, thi_variational_size(&shape), arrays, length);
    for (int i = 0; i < ARRAYS; i++) {
        *arrays[i] = numbers(ctx, length[i], (uint64_t)i, i == 3 ? 0.01 : 1.0);
    }
    return w;
}

static void bench_close(workbench *w)
{
    double **arrays[ARRAYS];
    int64_t length[ARRAYS];
    list_arrays(w, 0, arrays, length);
    for (int i = 0; i < ARRAYS; i++) {
        thi_free(*arrays[i]);
    }
    thi_variational_close(w->v);
    thiele_kernel_destroy(w->kernel);
    thi_free(w);
}

/* Seconds of a step, the best of some, with its parts. */
static double best_step(workbench *w, double parts[PARTS], int least, int most)
{
    double best = 1e300, total = 0.0;
    for (int run = 0; run < least || (total < 1.0 && run < most); run++) {
        double part[PARTS], taken = 0.0;
        step(w, part);
        for (int p = 0; p < PARTS; p++) {
            taken += part[p];
        }
        if (taken < best) {
            memcpy(parts, part, sizeof part);
        }
        best = taken < best ? taken : best;
        total += taken;
    }
    return best;
}

static void measure(thiele_context *ctx, int64_t B, int64_t M, int K, double peak)
{
    workbench *w = bench_open(ctx, B, M, K);
    double parts[PARTS] = {0.0}, best = best_step(w, parts, 5, 400);
    double m = (double)M, flops = 5.0 * (double)B * m * m + 4.0 * m * m * m;
    printf("B = %5lld  M = %5lld  threads = %d  %9.3f ms  ", (long long)B, (long long)M, thiele_context_threads(ctx),
           1e3 * best);
    if (K > 0) {
        printf("%d diagonal", K);
    } else {
        printf("%5.1f%% of the product", 100.0 * flops / best * 1e-9 / peak);
    }
    printf("   (begin %.3f, marginals %.3f, pull %.3f, end %.3f)\n", 1e3 * parts[0], 1e3 * parts[1], 1e3 * parts[2],
           1e3 * parts[3]);
    bench_close(w);
}

/* --- how a step scales ----------------------------------------------------------------------------------------------
 */

static thiele_context *context_of(int threads)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx = NULL;
    options.threads = threads;
    check(NULL, thiele_context_create(&ctx, &options));
    return ctx;
}

/*
 * How many times as fast as on one thread: a step, and the bare product. The four are taken in turn, the best of each:
 * what else the machine does hits them alike.
 */
static void scaling(int64_t B, int64_t M, int threads)
{
    enum { ROUNDS = 12 };
    thiele_context *ctx[2] = {context_of(1), context_of(threads)};
    workbench *w[2];
    product p[2];
    double seconds[2] = {1e300, 1e300}, rate[2] = {0.0, 0.0}, parts[PARTS];
    for (int i = 0; i < 2; i++) {
        w[i] = bench_open(ctx[i], B, M, 0);
        p[i] = product_open(ctx[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            seconds[i] = fmin(seconds[i], best_step(w[i], parts, 2, 2));
            rate[i] = fmax(rate[i], product_rate(&p[i], 1));
        }
    }
    double step_gain = seconds[0] / seconds[1], gain = rate[1] / rate[0];
    printf("B = %5lld  M = %5lld  1 -> %d threads: a step x %.3f, the product x %.3f: %.1f%% of it\n", (long long)B,
           (long long)M, threads, step_gain, gain, 100.0 * step_gain / gain);
    for (int i = 0; i < 2; i++) {
        bench_close(w[i]);
        product_close(&p[i]);
        thiele_context_destroy(ctx[i]);
    }
}

int main(int argc, char **argv)
{
    static const int64_t shapes[][2] = {{256, 100}, {1000, 200}, {1000, 1000}, {4096, 500}};
    bool given = argc > 1 && strcmp(argv[1], "--scaling") != 0;
    int runs = argc > 1 ? argc - 1 : 2;
    for (int run = 0; run < runs && (given || argc == 1); run++) {
        thiele_context *ctx = context_of(argc > 1 ? atoi(argv[1 + run]) : run + 1);
        double peak = gemm_rate(ctx, 4);
        printf("bare product, 1500^3 on each of %d threads: %.1f GF/s\n", thiele_context_threads(ctx), peak);
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            measure(ctx, shapes[k][0], shapes[k][1], 0, peak);
        }
        for (int K = 1; K <= 9; K += 4) {
            measure(ctx, 1000, 200, K, peak);
        }
        thiele_context_destroy(ctx);
    }
    if (!given) {
        scaling(4096, 500, 2);
    }
    return 0;
}

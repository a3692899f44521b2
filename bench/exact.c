/*
 * bench-exact N D THREADS [REPEATS]: times one evaluation of the log marginal likelihood with its gradient (Matern-5/2,
 * ARD) on generated data, at the length-scales and noise given below, and prints one JSON object with value, gradient
 * and seconds. bench/sklearn_exact.py runs it beside its peer on the same numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "posterior/exact.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* x_id = sin(1 + i d') stretched over [-2, 2], y = sum of sines: the same formula can be written in any language. */
static void make_data(int n, int D, double *X, double *y)
{
    for (int i = 0; i < n; i++) {
        y[i] = 0.1 * sin(12.9898 * (i + 1));
        for (int d = 0; d < D; d++) {
            double x = 2.0 * sin((i + 1) * (d + 1.37) * 0.7310);
            X[(size_t)i * (size_t)D + (size_t)d] = x;
            y[i] += sin(x * (d + 1) * 0.5) / D;
        }
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2000;
    int D = argc > 2 ? atoi(argv[2]) : 8;
    int repeats = argc > 4 ? atoi(argv[4]) : 7;
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = argc > 3 ? atoi(argv[3]) : 0;
    thiele_context *ctx;
    thiele_kernel *kernel;
    if (n < 1 || D < 1 || repeats < 1 || thiele_context_create(&ctx, &options) != THIELE_OK) {
        fprintf(stderr, "usage: bench-exact N D THREADS [REPEATS]\n");
        return 2;
    }
    double *X = malloc((size_t)n * (size_t)D * sizeof *X);
    double *y = malloc((size_t)n * sizeof *y);
    double *seconds = malloc((size_t)repeats * sizeof *seconds);
    double *theta_bar = malloc((size_t)(D + 1) * sizeof *theta_bar);
    double noise_bar = 0.0;
    make_data(n, D, X, y);
    thi_exact exact;
    if (thiele_kernel_parse(&kernel, ctx, "matern52(ard, lengthscale~1.5)", D, NULL) != THIELE_OK ||
        thi_exact_open(&exact, ctx, n, X, y) != THIELE_OK) {
        fprintf(stderr, "bench-exact: %s\n", thiele_context_message(ctx));
        return 1;
    }
    thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    for (int r = -1; r < repeats; r++) { /* the first one warms up */
        double start = thi_seconds();
        noise_bar = 0.0;
        for (int p = 0; p <= D; p++) {
            theta_bar[p] = 0.0;
        }
        if (thi_exact_condition(&exact, ctx, &prior, 0.1) != THIELE_OK ||
            thi_exact_gradient(&exact, ctx, &prior, theta_bar, NULL, &noise_bar) != THIELE_OK) {
            fprintf(stderr, "bench-exact: %s\n", thiele_context_message(ctx));
            return 1;
        }
        if (r >= 0) {
            seconds[r] = thi_seconds() - start;
        }
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, ascending);
    printf("{\"n\": %d, \"d\": %d, \"threads\": %d, \"value\": %.17g, \"seconds\": %.6f, \"gflops\": %.2f, "
           "\"gradient\": [",
           n, D, thiele_context_threads(ctx), exact.log_marginal, seconds[repeats / 2],
           1e-9 * n * (double)n * n / seconds[repeats / 2]);
    for (int p = 0; p <= D; p++) {
        printf("%.17g, ", theta_bar[p]);
    }
    printf("%.17g]}\n", noise_bar);
    thi_exact_close(&exact);
    thiele_kernel_destroy(kernel);
    thiele_context_destroy(ctx);
    free(X);
    free(y);
    free(seconds);
    free(theta_bar);
    return 0;
}

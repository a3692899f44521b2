/*
 * bench-cuda [MOST]: exact regression (Matern-5/2, ARD, 8 columns) on the first CUDA card beside the CPU: seconds of a
 * value with its gradient at sizes up to MOST rows (default: 100,000, as far as the card's memory goes), and how far
 * the two agree. Prints the page docs/results/cuda.md, which `make test-cuda` writes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "posterior/device.h"
#include "posterior/engine.h"

enum { D = 8, NUMBERS = D + 2, CPU_MOST = 8000, SHORT = 8000, REPEATS = 3 };
static const double NOISE = 0.1;

typedef struct measured {
    double value, bar[NUMBERS];
    double first, seconds; /* of the value, and with the gradient */
    bool done;
} measured;

/* The rows of bench/exact.c. */
static void make_data(int64_t n, double *X, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = 0.1 * sin(12.9898 * (double)(i + 1));
        for (int d = 0; d < D; d++) {
            double x = 2.0 * sin((double)(i + 1) * (d + 1.37) * 0.7310);
            X[i * D + d] = x;
            y[i] += sin(x * (d + 1) * 0.5) / D;
        }
    }
}

static thiele_status evaluate(thiele_context *ctx, const thi_engine *engine, void *self, const thi_prior *prior,
                              measured *out)
{
    double kl, started = thi_seconds();
    thiele_status status;
    memset(out->bar, 0, sizeof out->bar);
    const thi_exact_bar bar = {out->bar, NULL, out->bar + NUMBERS - 1};
    THI_TRY(engine->begin(self, ctx, prior, &NOISE));
    out->first = thi_seconds() - started;
    THI_TRY(engine->end(self, ctx, NULL, &kl, &bar));
    out->value = -kl;
    out->seconds = thi_seconds() - started;
    out->done = true;
out:
    return status;
}

/* The quickest of some evaluations after one that warms up; of large ones the only one. */
static thiele_status measure(thiele_context *ctx, const thi_engine *engine, const thi_exact_shape *shape,
                             const thi_prior *prior, measured *out)
{
    void *self = NULL;
    int repeats = shape->n <= SHORT ? REPEATS + 1 : shape->n <= 5 * SHORT ? 2 : 1;
    thiele_status status;
    *out = (measured){0};
    THI_TRY(engine->open(&self, ctx, shape));
    for (int r = 0; r < repeats; r++) {
        measured once = {0};
        THI_TRY(evaluate(ctx, engine, self, prior, &once));
        if (r <= 1 || once.seconds < out->seconds) {
            *out = once;
        }
    }
out:
    engine->close(self);
    return status;
}

/* The largest difference of the gradients, over the largest of them. */
static double gradient_gap(const measured *a, const measured *b)
{
    double most = 0.0, gap = 0.0;
    for (int i = 0; i < NUMBERS; i++) {
        most = fmax(most, fabs(b->bar[i]));
        gap = fmax(gap, fabs(a->bar[i] - b->bar[i]));
    }
    return gap / most;
}

/* Over the value, which is no more than its terms' absolute values together. */
static double value_gap(const measured *a, const measured *b)
{
    return fabs(a->value - b->value) / fabs(b->value);
}

static thiele_status row(thiele_context *ctx, const thi_prior *prior, const thi_exact_shape *shape)
{
    measured card, cpu = {0};
    double flops = (double)shape->n * (double)shape->n * (double)shape->n;
    thiele_status status;
    THI_TRY(measure(ctx, &thi_engine_exact_device, shape, prior, &card));
    printf("| %lld | %.4f | %.4f | %.1f ", (long long)shape->n, card.first, card.seconds, 1e-12 * flops / card.seconds);
    fflush(stdout);
    if (shape->n <= CPU_MOST) {
        THI_TRY(measure(ctx, &thi_engine_exact, shape, prior, &cpu));
        printf("| %.4f | %.1e | %.1e |\n", cpu.seconds, value_gap(&card, &cpu), gradient_gap(&card, &cpu));
    } else {
        printf("| | | |\n");
    }
    fflush(stdout);
out:
    return status;
}

static thiele_status head(thiele_context *ctx)
{
    thiele_device card;
    char day[32];
    time_t now = time(NULL);
    thiele_status status = thiele_device_describe(ctx, 1, &card);
    if (status == THIELE_OK) {
        strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
        printf("# On a CUDA card\n\n<!-- Written by make test-cuda (bench/cuda.c). -->\n\n"
               "%s, %.1f GiB, compute capability %d.%d, driver for CUDA %d.%d; Thiele %s; CPU: %d threads; %s.\n\n",
               card.model, (double)card.memory / 1073741824.0, card.major, card.minor, card.driver / 1000,
               card.driver % 1000 / 10, thiele_version(), thiele_context_threads(ctx), day);
        printf("Exact regression, Matern-5/2 with a length-scale for each of %d columns, double: a value of the log "
               "evidence with its\nwhole gradient, n^3 flops. Agreement: the difference of the values over the value, "
               "and the largest difference of the\ngradients over the largest of them.\n\n"
               "| rows | value, s | with gradient, s | TF/s | CPU, s | values | gradients |\n"
               "|---:|---:|---:|---:|---:|---:|---:|\n",
               D);
    }
    return status;
}

static thiele_status table(thiele_context *ctx, int64_t most, double *X, double *y)
{
    static const int64_t sizes[] = {250, 500, 1000, 2000, 4000, 8000, 16000, 36000, 64000, 100000};
    thiele_kernel *kernel = NULL;
    thiele_status status;
    make_data(most, X, y);
    THI_TRY(head(ctx));
    THI_TRY(thiele_kernel_parse(&kernel, ctx, "matern52(ard, lengthscale~1.5)", D, NULL));
    const thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= most; i++) {
        THI_TRY(row(ctx, &prior, &(thi_exact_shape){sizes[i], 1, X, y, NULL}));
    }
out:
    thiele_kernel_destroy(kernel);
    return status;
}

int main(int argc, char **argv)
{
    int64_t most = argc > 1 ? atoll(argv[1]) : 100000;
    thiele_context *ctx;
    if (most < 1 || thiele_context_create(&ctx, NULL) != THIELE_OK) {
        fprintf(stderr, "usage: bench-cuda [MOST]\n");
        return 2;
    }
    double *X = malloc((size_t)most * D * sizeof *X), *y = malloc((size_t)most * sizeof *y);
    thiele_status status = X != NULL && y != NULL ? table(ctx, most, X, y) : THIELE_ERROR_MEMORY;
    if (status != THIELE_OK) {
        printf("\n");
        fprintf(stderr, "bench-cuda: %s\n", thiele_context_message(ctx));
    }
    free(X);
    free(y);
    thiele_context_destroy(ctx);
    return status == THIELE_OK ? 0 : 1;
}

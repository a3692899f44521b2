/*
 * bench-expect [ROWS]: (E, g, h) on one thread, in million evaluations of log p a second.
 *   bernoulli by quadrature:20, with derivatives (the bound to keep: 100 M/s)
 *   a black box (a logistic density in plain C, one call a node) by quadrature:20, against a bare loop over the same
 *   calls (the bound: 20% more)
 *   for comparison, what the adaptive rule, panels, Monte Carlo and quasi-random points cost a row
 *   and what a softmax does (the bounds: 30 us for 3 classes, 100 us for 10).
 * Interleaved; medians.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "expect/expect.h"

enum { REPEATS = 15, NODES = 20 };

typedef struct workbench {
    thiele_context *ctx;
    int64_t n;
    double *y, *mu, *v, *wide, *E, *g, *h;
} workbench;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds)
{
    qsort(seconds, REPEATS, sizeof *seconds, ascending);
    return seconds[REPEATS / 2];
}

static double black_box(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double x = y[0] * f[0];
    return x > 0 ? -log1p(exp(-x)) : x - log1p(exp(x));
}

static void check(const workbench *b, thiele_status status)
{
    if (status != THIELE_OK) {
        fprintf(stderr, "bench-expect: %s\n", thiele_context_message(b->ctx));
        exit(1);
    }
}

/* Seconds for all rows through one provider, not counting its nodes. */
static double time_rows(const workbench *b, const thiele_likelihood *lik, const char *method, const double *v)
{
    thi_expect expect;
    check(b, thi_expect_open(&expect, b->ctx, lik, method));
    check(b, thi_expect_block(&expect, b->ctx, 0, 1, b->y, b->mu, v, b->E, b->g, b->h, NULL));
    double start = thi_seconds();
    for (int64_t row = 0; row < b->n; row += THI_EXPECT_BLOCK) {
        int64_t count = b->n - row < THI_EXPECT_BLOCK ? b->n - row : THI_EXPECT_BLOCK;
        check(b, thi_expect_block(&expect, b->ctx, row, count, b->y + row, b->mu + row, v + row, b->E + row, b->g + row,
                                  b->h + row, NULL));
    }
    double seconds = thi_seconds() - start;
    thi_expect_close(&expect);
    return seconds;
}

/* The calls alone, through the same kind of pointer. */
static double time_calls(const workbench *b)
{
    double (*volatile call)(const double *, const double *, const double *, void *) = black_box;
    double (*fn)(const double *, const double *, const double *, void *) = call;
    double sum = 0, start = thi_seconds();
    for (int64_t i = 0; i < b->n; i++) {
        double sd = sqrt(b->v[i]);
        for (int k = 0; k < NODES; k++) {
            double f = b->mu[i] + sd * (0.75 * k - 7.125);
            sum += fn(b->y + i, &f, NULL, NULL);
        }
    }
    b->E[0] = sum;
    return thi_seconds() - start;
}

static void compare(const workbench *b, const thiele_likelihood *bernoulli, const thiele_likelihood *own)
{
    double fast[REPEATS], boxed[REPEATS], bare[REPEATS];
    double evaluations = (double)b->n * NODES;
    for (int r = -1; r < REPEATS; r++) {
        int at = r < 0 ? 0 : r;
        fast[at] = time_rows(b, bernoulli, "quadrature:20", b->v);
        boxed[at] = time_rows(b, own, "quadrature:20", b->v);
        bare[at] = time_calls(b);
    }
    double f = median(fast), o = median(boxed), c = median(bare);
    printf("bernoulli quadrature:20   %7.1f M evaluations/s\n", 1e-6 * evaluations / f);
    printf("black box quadrature:20   %7.1f M evaluations/s, its calls alone %.1f M/s: %+.1f%%\n",
           1e-6 * evaluations / o, 1e-6 * evaluations / c, 100 * (o / c - 1));
}

static void costs(const workbench *b, const thiele_likelihood *lik, const char *name)
{
    const struct {
        const char *method, *label;
        const double *v;
    } rows[] = {{"quadrature", "adaptive", b->v},
                {"quadrature", "panels (v = 1e4)", b->wide},
                {"mc:512", "mc:512", b->v},
                {"qmc:512", "qmc:512", b->v}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("%-10s %-18s %7.2f us a row\n", name, rows[i].label,
               1e6 * time_rows(b, lik, rows[i].method, rows[i].v) / (double)b->n);
    }
}

/* Microseconds a row of a softmax over C classes; the numbers of n rows serve for n/C. */
static void classes(const workbench *b, int C, const double *v, const char *label)
{
    thiele_likelihood *lik = NULL;
    thi_expect expect;
    double y[THI_EXPECT_BLOCK], seconds[REPEATS];
    int64_t n = b->n / C;
    check(b, thiele_likelihood_parse(&lik, b->ctx, "softmax", 1, C));
    check(b, thi_expect_open(&expect, b->ctx, lik, NULL));
    for (int64_t i = 0; i < THI_EXPECT_BLOCK; i++) {
        y[i] = (double)(i % C);
    }
    for (int r = 0; r < REPEATS; r++) {
        double start = thi_seconds();
        for (int64_t row = 0; row < n; row += THI_EXPECT_BLOCK) {
            int64_t count = n - row < THI_EXPECT_BLOCK ? n - row : THI_EXPECT_BLOCK;
            check(b, thi_expect_block(&expect, b->ctx, row, count, y, b->mu + row * C, v + row * C, b->E + row,
                                      b->g + row * C, b->h + row * C, NULL));
        }
        seconds[r] = thi_seconds() - start;
    }
    printf("softmax %-3d %-17s %7.2f us a row\n", C, label, 1e6 * median(seconds) / (double)n);
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

int main(int argc, char **argv)
{
    workbench b = {.n = argc > 1 ? atoi(argv[1]) : 16384};
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    thiele_likelihood *bernoulli = NULL, *own = NULL;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "logistic";
    spec.log_density = black_box;
    if (b.n < 1 || thiele_context_create(&b.ctx, &options) != THIELE_OK) {
        fprintf(stderr, "usage: bench-expect [ROWS]\n");
        return 2;
    }
    check(&b, thiele_likelihood_parse(&bernoulli, b.ctx, "bernoulli", 1, 0));
    check(&b, thiele_likelihood_custom(&own, b.ctx, &spec));
    double **const arrays[] = {&b.y, &b.mu, &b.v, &b.wide, &b.E, &b.g, &b.h};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        check(&b, thi_alloc(b.ctx, arrays[i], (size_t)b.n, sizeof(double)));
    }
    for (int64_t i = 0; i < b.n; i++) {
        b.y[i] = thi_random_uniform((thi_stream){0, THI_RANDOM_DEMO, 0}, (uint64_t)i) < 0.5 ? -1 : 1;
        b.mu[i] = thi_random_normal((thi_stream){0, THI_RANDOM_DEMO, 1}, (uint64_t)i);
        b.v[i] = 0.1 + thi_random_uniform((thi_stream){0, THI_RANDOM_DEMO, 2}, (uint64_t)i);
        b.wide[i] = 1e4;
    }
    compare(&b, bernoulli, own);
    costs(&b, bernoulli, "bernoulli");
    costs(&b, own, "black box");
    static const int counts[] = {2, 3, 10, 100};
    for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= b.n; i++) {
        classes(&b, counts[i], b.v, "v = 0.1 to 1.1");
        classes(&b, counts[i], b.wide, "v = 1e4");
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        thi_free(*arrays[i]);
    }
    thiele_likelihood_destroy(bernoulli);
    thiele_likelihood_destroy(own);
    thiele_context_destroy(b.ctx);
    return 0;
}

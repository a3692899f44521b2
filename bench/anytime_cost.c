/*
 * bench-anytime_cost [STEPS]: the time of one anytime step on one block (gathering its rows, their share of the sums,
 * moving the natural parameters) on one thread, of the processor. Blocks of 1,300 rows at random, six inputs, 512
 * inducing inputs, a squared exponential with a length-scale per input.
 *   - against the number of rows, from 10,400 to 2,000,700: largest over smallest, to be at most 1.2
 *   - at two million rows against what the paper needed (Hoang, Hoang and Low 2015, section 5), by parts: PIC to take
 * at most a tenth of 1.53 s, FITC a thirtieth of 1.15 s, DTC an eighth of 0.32 s; as a share of the rate of the bare
 *     product of the BLAS in the same run. Flops: 2 M^2 n, and of PIC n^3/3 + 2 M n^2 more.
 * Steps of all sizes are taken in turns, and the median of STEPS (21) counts. The last line is PASS or FAIL.
 */
#include <string.h>

#include "anytime.h"
#include "data/batches.h"

enum { D = 6, M = 512, ROWS = 1300, SIZES = 4, MOST_STEPS = 1000 };
static const int64_t block_counts[SIZES] = {8, 77, 769, 1539};
static const double RATIO = 1.2;
static const struct {
    const char *name;
    double most; /* seconds of a step */
} forms[] = {{"pic", 1.53 / 10.0}, {"fitc", 1.15 / 30.0}, {"dtc", 0.32 / 8.0}};
enum { FORMS = sizeof forms / sizeof *forms };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int n, double *x)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

/* GF/s of the bare product, the best of some. */
static double product_rate(thiele_context *ctx)
{
    enum { N = 1024, RUNS = 7 };
    thi_matrix m[3];
    double best = 1e300;
    for (int k = 0; k < 3; k++) {
        check(ctx, thi_matrix_alloc(&m[k], ctx, N, N));
        for (int64_t i = 0; i < N * N; i++) {
            m[k].data[i] = thi_random_uniform((thi_stream){1, THI_RANDOM_DEMO, (uint64_t)k}, (uint64_t)i);
        }
    }
    for (int run = 0; run < RUNS; run++) {
        double started = now(ctx);
        thi_blas_gemm(THI_N, THI_N, 1.0, m[0], m[1], 0.0, m[2]);
        best = fmin(best, now(ctx) - started);
    }
    for (int k = 0; k < 3; k++) {
        thi_free(m[k].data);
    }
    return 2e-9 * N * N * N / best;
}

/* --- a fit with a table of so many rows --------------------------------------------------------------------------- */

typedef struct bench {
    thiele_context *ctx;
    thi_rows rows[SIZES]; /* views of the first rows of one table */
    thi_source source[SIZES];
    thi_partition partition[SIZES];
    thi_spec spec;
    thi_rows buffer;
    double *Z;
} bench;

static void make_table(bench *b)
{
    int64_t n = block_counts[SIZES - 1] * ROWS;
    thi_rows all;
    check(b->ctx, thi_rows_alloc(&all, b->ctx, n, D, 1, (thi_aside){0}));
    for (int64_t i = 0; i < n * D; i++) {
        all.X[i] = 3.5 * (thi_random_uniform((thi_stream){1, THI_RANDOM_DEMO, 0}, (uint64_t)i) - 0.5);
    }
    for (int64_t i = 0; i < n; i++) {
        all.y[i] = sin(all.X[i * D]) + all.X[i * D + 1] +
                   0.3 * thi_random_normal((thi_stream){1, THI_RANDOM_DEMO, 1}, (uint64_t)i);
    }
    check(b->ctx, thi_alloc(b->ctx, &b->Z, D * M, sizeof *b->Z));
    memcpy(b->Z, all.X, D * M * sizeof *b->Z);
    for (int k = 0; k < SIZES; k++) {
        b->rows[k] = all;
        b->rows[k].n = block_counts[k] * ROWS;
        thi_source_of_rows(&b->source[k], &b->rows[k]);
        check(b->ctx, thi_partition_random(&b->partition[k], b->ctx, b->rows[k].n, block_counts[k]));
    }
    check(b->ctx, thi_rows_alloc(&b->buffer, b->ctx, THI_SPARSE_LANES * ROWS, D, 1, (thi_aside){0}));
}

static void make_model(bench *b)
{
    thi_columns columns = {.dims = D, .columns = D};
    check(b->ctx, thiele_likelihood_parse(&b->spec.lik, b->ctx, "gaussian(noise=0.1)", 1, 0));
    check(b->ctx, thi_latents_make(&b->spec.latents, b->ctx, "se(ard, lengthscale=1.5, variance=1)", "zero", &columns,
                                   1, false));
}

/* What a fit of one latent function has of each. */
typedef struct one_of_each {
    thi_sparse engine;
    thi_natural sums, step;
} one_of_each;

static void open_fit(bench *b, const thi_blocks_settings *settings, thi_bfit *fit, one_of_each *own)
{
    *own = (one_of_each){0};
    thi_sparse_shape shape = {.M = M, .largest = ROWS, .penalty = THI_PENALTY_TRACE};
    memcpy(shape.weight, settings->form.weight, sizeof shape.weight);
    *fit = (thi_bfit){.problem = {.ctx = b->ctx, .spec = &b->spec},
                      .settings = settings,
                      .Z = b->Z,
                      .M = M,
                      .buffer = b->buffer,
                      .latents = 1,
                      .closed = true,
                      .engine = &own->engine,
                      .sums = &own->sums,
                      .step = &own->step};
    check(b->ctx, thi_natural_open(fit->sums, b->ctx, M));
    check(b->ctx, thi_natural_open(fit->step, b->ctx, M));
    check(b->ctx, thi_sparse_open(fit->engine, b->ctx, &shape, D));
    check(b->ctx, thi_bfit_prepare(fit));
}

static void close_fit(thi_bfit *fit)
{
    thi_sparse_close(fit->engine);
    thi_natural_close(fit->sums);
    thi_natural_close(fit->step);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

enum { GATHER, SHARE, MOVE, PARTS };

/* One step as src/fit/blocks_steps.c takes it; seconds of its parts. */
static void step(bench *b, thi_bfit *fit, int size, int64_t t, double *part)
{
    thi_shuffle order;
    int64_t rows, P = block_counts[size];
    double at[PARTS + 1];
    thi_shuffle_open(&order, (thi_stream){1, THI_RANDOM_SUBSET, (uint64_t)(t / P)}, P);
    fit->problem.source = &b->source[size];
    fit->partition = b->partition[size];
    int64_t block = thi_shuffle_at(&order, t % P);
    at[0] = now(b->ctx);
    check(b->ctx, thi_bfit_load(fit, 1, &block, &rows));
    at[1] = now(b->ctx);
    thi_natural_zero(fit->step);
    check(b->ctx, thi_sparse_sum(fit->engine, b->ctx, 1, fit->block, 1.0, fit->step));
    at[2] = now(b->ctx);
    thi_natural_mix(fit->sums, 1.0, fit->step, 1.0);
    at[3] = now(b->ctx);
    for (int p = 0; p < PARTS; p++) {
        part[p] = at[p + 1] - at[p];
    }
}

static double flops_of(const thi_blocks_form *form)
{
    double n = ROWS, m = M;
    return 2.0 * m * m * n + (form->weight[THI_RESIDUAL_BLOCK] > 0.0 ? n * n * n / 3.0 + 2.0 * m * n * n : 0.0);
}

/* Seconds of making q, median of some. */
static double time_set(bench *b, thi_bfit *fit)
{
    enum { RUNS = 7 };
    double seconds[RUNS];
    for (int run = 0; run < RUNS; run++) {
        double started = now(b->ctx);
        check(b->ctx, thi_sparse_set(fit->engine, b->ctx, fit->sums));
        seconds[run] = now(b->ctx) - started;
    }
    return median(RUNS, seconds);
}

static bool measure(bench *b, int form, int steps)
{
    static double whole[SIZES][MOST_STEPS], parts[PARTS][MOST_STEPS];
    thi_blocks_settings settings = {0};
    thi_bfit fit;
    double typical[SIZES], low = INFINITY, high = 0.0;
    check(b->ctx, thi_blocks_form_parse(&settings.form, b->ctx, forms[form].name));
    one_of_each own;
    open_fit(b, &settings, &fit, &own);
    for (int t = -1; t < steps; t++) {
        for (int k = 0; k < SIZES; k++) {
            double part[PARTS];
            step(b, &fit, k, t < 0 ? 0 : t, part);
            for (int p = 0; p < PARTS && t >= 0 && k == SIZES - 1; p++) {
                parts[p][t] = part[p];
            }
            if (t >= 0) {
                whole[k][t] = part[GATHER] + part[SHARE] + part[MOVE];
            }
        }
    }
    printf("%-4s  ms a step at", forms[form].name);
    for (int k = 0; k < SIZES; k++) {
        typical[k] = median(steps, whole[k]);
        low = fmin(low, typical[k]);
        high = fmax(high, typical[k]);
        printf("%s %lld rows %.2f", k > 0 ? "," : "", (long long)(block_counts[k] * ROWS), 1e3 * typical[k]);
    }
    bool constant = high <= RATIO * low, fast = typical[SIZES - 1] <= forms[form].most;
    printf("; ratio %.3f, at most %g: %s\n", high / low, RATIO, constant ? "pass" : "FAIL");
    double flops = flops_of(&settings.form), rate = product_rate(b->ctx);
    printf("%-4s  a step of %.2f GF: %.1f ms (rows %.2f, sums %.2f, move %.2f), at most %.1f: %s; %.1f GF/s, %.0f%% of "
           "the "
           "product's %.1f; q of it %.1f ms\n",
           forms[form].name, 1e-9 * flops, 1e3 * typical[SIZES - 1], 1e3 * median(steps, parts[GATHER]),
           1e3 * median(steps, parts[SHARE]), 1e3 * median(steps, parts[MOVE]), 1e3 * forms[form].most,
           fast ? "pass" : "FAIL", 1e-9 * flops / typical[SIZES - 1], 100.0 * 1e-9 * flops / typical[SIZES - 1] / rate,
           rate, 1e3 * time_set(b, &fit));
    fflush(stdout);
    close_fit(&fit);
    return constant && fast;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 21;
    bool good = true;
    bench b = {0};
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    if (steps < 1 || steps > MOST_STEPS) {
        fprintf(stderr, "Usage: bench-anytime_cost [STEPS, at most %d]\n", MOST_STEPS);
        return 2;
    }
    options.threads = 1;
    check(NULL, thiele_context_create(&b.ctx, &options));
    make_table(&b);
    make_model(&b);
    for (int form = 0; form < FORMS; form++) {
        good = measure(&b, form, steps) && good;
    }
    printf("%s\n", good ? "PASS" : "FAIL");
    for (int k = 0; k < SIZES; k++) {
        thi_partition_clear(&b.partition[k]);
    }
    thi_rows_free(&b.rows[0]);
    thi_rows_free(&b.buffer);
    thi_free(b.Z);
    thi_latents_clear(&b.spec.latents);
    thiele_likelihood_destroy(b.spec.lik);
    thiele_context_destroy(b.ctx);
    return good ? 0 : 1;
}

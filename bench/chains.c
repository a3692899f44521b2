/*
 * bench-chains TABLE LIKELIHOOD SAMPLER [NAME=VALUE...]: chains of one sampler over the latents at the rows of a table,
 * whose last column is y and whose other columns are inputs, all as they are (standardised before). The prior is a
 * squared exponential of variance 1 whose length-scale is the median distance between rows; nothing is learned. One
 * line of JSON comes out: seconds of a sample (one draw of one chain on its thread), lag-1 autocorrelation averaged
 * over all f_i, the largest R-hat, accepted share, effective draws, divergences. bench/aaci_samplers.py asks for it.
 *
 *   chains=5 draws=10000 burn-in=1000 (0: none) thin=1 step=0 (found in burn-in) leaps=0 (what suits) threads=2 seed=0
 *   lengthscale=0 (the median) variance=1
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "fit/chains.h"

typedef struct options {
    double chains, draws, burn_in, thin, step, leaps, threads, seed, lengthscale, variance;
} options;

static const struct {
    const char *name;
    size_t at;
} names[] = {{"chains", offsetof(options, chains)},     {"draws", offsetof(options, draws)},
             {"burn-in", offsetof(options, burn_in)},   {"thin", offsetof(options, thin)},
             {"step", offsetof(options, step)},         {"leaps", offsetof(options, leaps)},
             {"threads", offsetof(options, threads)},   {"seed", offsetof(options, seed)},
             {"variance", offsetof(options, variance)}, {"lengthscale", offsetof(options, lengthscale)}};

static void check(thiele_context *ctx, thiele_status status)
{
    if (status != THIELE_OK) {
        fprintf(stderr, "bench-chains: %s: %s\n", thiele_status_name(status),
                ctx != NULL ? thiele_context_message(ctx) : "");
        exit(1);
    }
}

static void read_option(options *o, const char *text)
{
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double *value = (double *)(void *)((char *)o + names[i].at);
        if (strlen(names[i].name) == length && strncmp(text, names[i].name, length) == 0 && text[length] == '=' &&
            thi_parse_number(text + length + 1, strlen(text + length + 1), value)) {
            return;
        }
    }
    fprintf(stderr, "bench-chains: '%s' is none of its settings\n", text);
    exit(2);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void read_rows(thiele_context *ctx, const char *path, thi_rows *rows)
{
    thiele_table *table;
    check(ctx, thiele_table_open(&table, ctx, path, NULL));
    int64_t n = thiele_table_rows(table);
    int columns = thiele_table_columns(table), dims = columns - 1, *column;
    check(ctx, thi_rows_alloc(rows, ctx, n, dims, 1, (thi_aside){0}));
    check(ctx, thi_alloc(ctx, &column, (size_t)columns, sizeof *column));
    for (int i = 0; i < columns; i++) {
        column[i] = i;
    }
    check(ctx, table->ops->numbers(table, ctx, 0, n, column, dims, rows->X));
    check(ctx, table->ops->numbers(table, ctx, 0, n, column + dims, 1, rows->y));
    thi_free(column);
    thiele_table_destroy(table);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of all pairs of rows. */
static double median_distance(thiele_context *ctx, const thi_rows *rows)
{
    int64_t pairs = rows->n * (rows->n - 1) / 2, k = 0;
    double *distance, median;
    check(ctx, thi_alloc(ctx, &distance, (size_t)pairs, sizeof *distance));
    for (int64_t i = 0; i < rows->n; i++) {
        for (int64_t j = 0; j < i; j++, k++) {
            for (int d = 0; d < rows->dims; d++) {
                distance[k] = hypot(distance[k], rows->X[d + i * rows->dims] - rows->X[d + j * rows->dims]);
            }
        }
    }
    qsort(distance, (size_t)pairs, sizeof *distance, ascending);
    median = 0.5 * (distance[(pairs - 1) / 2] + distance[pairs / 2]);
    thi_free(distance);
    return median;
}

/* --- the chains --------------------------------------------------------------------------------------------------- */

/* JSON has no infinity and no NaN. */
static void print_number(const char *name, double value)
{
    char text[THI_NUMBER_MAX];
    thi_format_number(text, value);
    printf(", \"%s\": %s", name, isfinite(value) ? text : "null");
}

static void print_result(const thi_chains_result *r, const options *o, double seconds)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {{"n", (double)r->n},
                  {"lengthscale", o->lengthscale},
                  {"chains", r->chains},
                  {"draws", (double)r->draws},
                  {"burn_in", (double)(r->steps - r->draws * (int64_t)o->thin)},
                  {"leaps", o->leaps},
                  {"step", r->step},
                  {"seconds_per_sample", r->seconds},
                  {"lag1", r->mixing.lag1},
                  {"rhat", r->mixing.rhat},
                  {"share_unmixed", r->mixing.share},
                  {"ess_least", r->mixing.ess_least},
                  {"ess_median", r->mixing.ess_median},
                  {"acceptance", r->acceptance},
                  {"divergences", (double)r->divergences},
                  {"watched", (double)r->watched},
                  {"jitter", r->jitter},
                  {"seconds", seconds}};
    printf("{\"sampler\": \"%s\"", r->sampler);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        print_number(fields[i].name, fields[i].value);
    }
    printf("}\n");
}

static void run(thiele_context *ctx, const thi_rows *rows, const char *likelihood, const char *sampler,
                const options *o)
{
    thi_chains_settings settings = {.sampler = sampler,
                                    .chains = (int)o->chains,
                                    .draws = (int64_t)o->draws,
                                    .burn_in = o->burn_in == 0 ? -1 : (int64_t)o->burn_in,
                                    .thin = (int64_t)o->thin,
                                    .step = o->step,
                                    .leaps = (int)o->leaps};
    thi_columns columns = {.dims = rows->dims, .columns = rows->dims};
    thi_spec spec = {0};
    thi_chains_result result;
    thi_driver driver;
    char kernel[128];
    snprintf(kernel, sizeof kernel, "se(lengthscale=%.17g, variance=%.17g)", o->lengthscale, o->variance);
    check(ctx, thiele_likelihood_parse(&spec.lik, ctx, likelihood, 1, 0));
    check(ctx, thi_latents_make(&spec.latents, ctx, kernel, "zero", &columns, spec.lik->latents, false));
    thi_driver_start(&driver, ctx, 0.0);
    double started = thi_seconds();
    check(ctx, thi_chains_run(ctx, &driver, &spec, rows, &settings, &result));
    print_result(&result, o, thi_seconds() - started);
    thi_chains_clear(&result);
    thi_latents_clear(&spec.latents);
    thiele_likelihood_destroy(spec.lik);
}

int main(int argc, char **argv)
{
    options o = {.chains = 5, .draws = 10000, .burn_in = 1000, .thin = 1, .threads = 2, .variance = 1};
    thiele_context_options context = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx = NULL;
    thi_rows rows;
    if (argc < 4) {
        fprintf(stderr, "Usage: bench-chains TABLE LIKELIHOOD SAMPLER [NAME=VALUE...]\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        read_option(&o, argv[i]);
    }
    context.threads = (int)o.threads;
    context.seed = (uint64_t)o.seed;
    check(NULL, thiele_context_create(&ctx, &context));
    read_rows(ctx, argv[1], &rows);
    o.lengthscale = o.lengthscale > 0 ? o.lengthscale : median_distance(ctx, &rows);
    run(ctx, &rows, argv[2], argv[3], &o);
    thi_rows_free(&rows);
    thiele_context_destroy(ctx);
    return 0;
}

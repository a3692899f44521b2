/*
 * bench-predict [--json] [--rows N] [--threads LIST] [--thiele PATH]: predictions of a sparse regression with M = 500
 * inducing inputs and D = 8 columns, Matern-5/2 with a length-scale each, through the public C API, against its
 * targets.
 *
 * - row: one row at a time, warm: mean; mean and variance; the best and the median of many calls.
 * - table: N (a million) rows, mean and variance, on each number of threads (1,2), beside the BLAS' bare product on as
 *   many threads in the same run. Flops: 2 D M a row for k, M^2 for C k (posterior/triangle.h).
 * - start, with --thiele: from the start of `thiele predict MODEL ONE_ROW.csv` to the first byte of its output.
 *
 * --json: one JSON object a line in place of the text. Exit status 1 when a target is missed.
 */
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "product.h"
#include <thiele/thiele.h>

enum { D = 8, M = 500, TRAIN = 4000, CALLS = 20000, STARTS = 100, THREADS_MAX = 16 };

extern char **environ;

typedef struct bench {
    bool json;
    int64_t rows;
    int threads[THREADS_MAX], thread_counts;
    const char *thiele;
    thiele_context *ctx; /* of one thread */
    thiele_model *model;
    int missed;
} bench;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sums of sines with noise; no column is of more use than another. */
static thiele_model *make_model(thiele_context *ctx)
{
    double *values = numbers(ctx, TRAIN * (D + 1), 1, 1.0);
    thiele_fit_options fit = THIELE_FIT_OPTIONS_INIT;
    thiele_table *table;
    thiele_model *model;
    for (int64_t i = 0; i < TRAIN; i++) {
        double *row = values + i * (D + 1), sum = 0.3 * row[D];
        for (int d = 0; d < D; d++) {
            sum += sin(row[d] * (1.0 + 0.2 * d));
        }
        row[D] = sum;
    }
    fit.columns.target = "-1";
    fit.model.method = "collapsed";
    fit.inducing.inducing = M;
    fit.inducing.inducing_from = "random";
    fit.inducing.fix_inducing = 1;
    fit.stopping.iterations = -1;
    check(ctx, thiele_table_from_rows(&table, ctx, TRAIN, D + 1, values, NULL));
    check(ctx, thiele_model_fit(&model, ctx, table, &fit));
    thiele_table_destroy(table);
    thi_free(values);
    return model;
}

/* --- reports ---------------------------------------------------------------------------------------------------------
 */

/* A time that is to be short, in its unit; target 0: it is there to compare with. */
static void report_time(bench *b, const char *name, const char *unit, double best, double median, double target)
{
    bool met = target == 0.0 || median <= target;
    b->missed += !met;
    if (b->json) {
        printf("{\"bench\": \"predict\", \"case\": \"%s\", \"m\": %d, \"d\": %d, \"threads\": 1, \"unit\": \"%s\", "
               "\"best\": %.4g, \"median\": %.4g",
               name, M, D, unit, best, median);
    } else {
        printf("%-32s best %8.2f %s, median %8.2f %s", name, best, unit, median, unit);
    }
    if (target > 0.0 && b->json) {
        printf(", \"target\": %g, \"met\": %s", target, met ? "true" : "false");
    } else if (target > 0.0) {
        printf(", target %g: %s", target, met ? "met" : "MISSED");
    }
    printf(b->json ? "}\n" : "\n");
    fflush(stdout);
}

static double *timer(thiele_context *ctx, int64_t count)
{
    double *seconds;
    check(ctx, thi_alloc(ctx, &seconds, (size_t)count, sizeof *seconds));
    return seconds;
}

/* --- one row ---------------------------------------------------------------------------------------------------------
 */

static void rows_alone(bench *b, thiele_predictor *predictor, const char *name, bool with_variance, double target)
{
    double *x = numbers(b->ctx, D * CALLS, 2, 1.0), *seconds = timer(b->ctx, CALLS), mean, variance;
    for (int run = 0; run < 2; run++) { /* the first one warms up */
        for (int64_t i = 0; i < CALLS; i++) {
            double start = thi_seconds();
            thiele_status status =
                predictor != NULL ? thiele_predictor_row(predictor, x + i * D, &mean, with_variance ? &variance : NULL)
                                  : thiele_model_predict_rows(b->model, b->ctx, 1, x + i * D, 0, &mean,
                                                              with_variance ? &variance : NULL);
            seconds[i] = thi_seconds() - start;
            check(b->ctx, status);
        }
    }
    qsort(seconds, CALLS, sizeof *seconds, ascending);
    report_time(b, name, "us", 1e6 * seconds[0], 1e6 * seconds[CALLS / 2], target);
    thi_free(x);
    thi_free(seconds);
}

static void measure_rows(bench *b)
{
    thiele_predictor *predictor;
    size_t held = thi_memory_held(b->ctx);
    double start = thi_seconds();
    check(b->ctx, thiele_predictor_open(&predictor, b->ctx, b->model, THIELE_PREDICT_OBSERVATION));
    double seconds = thi_seconds() - start;
    if (!b->json) {
        printf("a predictor of single rows: made in %.1f ms, %.2f MB beside the model's %.2f\n", 1e3 * seconds,
               1e-6 * (double)(thi_memory_held(b->ctx) - held), 1e-6 * (double)held);
    }
    rows_alone(b, predictor, "row, mean", false, 5.0);
    rows_alone(b, predictor, "row, mean and variance", true, 25.0);
    rows_alone(b, NULL, "predict_rows, mean", false, 0.0);
    rows_alone(b, NULL, "predict_rows, mean and variance", true, 0.0);
    thiele_predictor_destroy(predictor);
}

/* --- many rows -------------------------------------------------------------------------------------------------------
 */

static void measure_table(bench *b, int threads)
{
    enum { PARTS = 10 };
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx;
    options.threads = threads;
    check(NULL, thiele_context_create(&ctx, &options));
    product p = product_open(ctx);
    int64_t part = b->rows / PARTS > 0 ? b->rows / PARTS : 1;
    double *x = numbers(ctx, D * part, 3, 1.0), *mean = timer(ctx, part), *variance = timer(ctx, part);
    double seconds = 0.0, best = 1e300, peak = 0.0, flops = 2.0 * D * M + 1.0 * M * M;
    /* In parts, with the product between them: what else the machine does hits both alike. */
    for (int i = 0; i < PARTS; i++) {
        peak = fmax(peak, product_rate(&p, 1));
        double start = thi_seconds();
        check(ctx, thiele_model_predict_rows(b->model, ctx, part, x, 0, mean, variance));
        double taken = thi_seconds() - start;
        seconds += taken;
        best = fmin(best, taken);
    }
    double rate = 1e-9 * flops * (double)part / best, share = rate / peak;
    b->missed += share < 0.6;
    if (b->json) {
        printf("{\"bench\": \"predict\", \"case\": \"table\", \"m\": %d, \"d\": %d, \"rows\": %lld, \"threads\": %d, "
               "\"seconds\": %.4g, \"rows_per_second\": %.5g, \"gflops\": %.4g, \"product_gflops\": %.4g, \"share\": "
               "%.4g, \"target\": 0.6, \"met\": %s, \"peak_memory_mb\": %.1f}\n",
               M, D, (long long)(part * PARTS), threads, seconds, (double)part / best, rate, peak, share,
               share >= 0.6 ? "true" : "false", 1e-6 * most_memory());
    } else {
        printf("table, %d threads: %lld rows in %.2f s; best part %.0f rows/s, %.1f GF/s of %.1f, %.1f%% of the "
               "product, target 60: %s; memory at most %.0f MB\n",
               threads, (long long)(part * PARTS), seconds, (double)part / best, rate, peak, 100.0 * share,
               share >= 0.6 ? "met" : "MISSED", 1e-6 * most_memory());
    }
    fflush(stdout);
    thi_free(x);
    thi_free(mean);
    thi_free(variance);
    product_close(&p);
    thiele_context_destroy(ctx);
}

/* --- from the start of a process -------------------------------------------------------------------------------------
 */

/* Seconds until the first byte of its output, the rest of which is dropped; *busy: of processor time until its end. */
static double first_byte(const char *thiele, const char *model, const char *data, double *busy)
{
    char *arguments[] = {(char *)thiele, (char *)"predict", (char *)model, (char *)data, NULL};
    char buffer[4096];
    int pipes[2], status;
    pid_t pid;
    struct rusage usage;
    posix_spawn_file_actions_t actions;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        perror("pipe");
        exit(1);
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
    double start = thi_seconds();
    int failed = posix_spawn(&pid, thiele, &actions, NULL, arguments, environ);
    close(pipes[1]);
    ssize_t got = failed == 0 ? read(pipes[0], buffer, sizeof buffer) : -1;
    double taken = thi_seconds() - start;
    while (got > 0) {
        got = read(pipes[0], buffer, sizeof buffer);
    }
    close(pipes[0]);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0 || wait4(pid, &status, 0, &usage) != pid || status != 0) {
        fprintf(stderr, "bench-predict: %s predict failed\n", thiele);
        exit(1);
    }
    *busy = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return taken;
}

static void write_row(thiele_context *ctx, const char *path)
{
    double x[D];
    thiele_table *table;
    for (int d = 0; d < D; d++) {
        x[d] = 0.1 * d - 0.3;
    }
    check(ctx, thiele_table_from_rows(&table, ctx, 1, D, x, NULL));
    check(ctx, thiele_table_write(table, ctx, path));
    thiele_table_destroy(table);
}

static void measure_start(bench *b)
{
    char folder[] = "/tmp/bench-predict-XXXXXX", model[64], data[64];
    double seconds[STARTS], busy[STARTS];
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(1);
    }
    snprintf(model, sizeof model, "%s/model.thiele", folder);
    snprintf(data, sizeof data, "%s/row.csv", folder);
    check(b->ctx, thiele_model_save(b->model, b->ctx, model));
    write_row(b->ctx, data);
    (void)first_byte(b->thiele, model, data, busy);
    for (int i = 0; i < STARTS; i++) {
        seconds[i] = first_byte(b->thiele, model, data, &busy[i]);
    }
    qsort(seconds, STARTS, sizeof *seconds, ascending);
    qsort(busy, STARTS, sizeof *busy, ascending);
    report_time(b, "start to first output", "ms", 1e3 * seconds[0], 1e3 * seconds[STARTS / 2], 15.0);
    report_time(b, "its processor time", "ms", 1e3 * busy[0], 1e3 * busy[STARTS / 2], 0.0);
    unlink(model);
    unlink(data);
    rmdir(folder);
}

/* --- the program -----------------------------------------------------------------------------------------------------
 */

static void take_threads(bench *b, const char *list)
{
    b->thread_counts = 0;
    for (const char *at = list; at != NULL && b->thread_counts < THREADS_MAX; at = strchr(at, ',')) {
        at += *at == ',';
        b->threads[b->thread_counts++] = atoi(at) > 0 ? atoi(at) : 1;
    }
}

static bool take_arguments(bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            b->json = true;
        } else if (strcmp(argv[i], "--rows") == 0 && more) {
            b->rows = atoll(argv[++i]);
        } else if (strcmp(argv[i], "--threads") == 0 && more) {
            take_threads(b, argv[++i]);
        } else if (strcmp(argv[i], "--thiele") == 0 && more) {
            b->thiele = argv[++i];
        } else {
            return false;
        }
    }
    return b->rows >= 0;
}

int main(int argc, char **argv)
{
    bench b = {.rows = 1000000, .threads = {1, 2}, .thread_counts = 2};
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    if (!take_arguments(&b, argc, argv)) {
        fprintf(stderr, "usage: bench-predict [--json] [--rows N] [--threads LIST] [--thiele PATH]\n");
        return 2;
    }
    check(NULL, thiele_context_create(&b.ctx, &options));
    b.model = make_model(b.ctx);
    measure_rows(&b);
    for (int i = 0; b.rows > 0 && i < b.thread_counts; i++) {
        measure_table(&b, b.threads[i]);
    }
    if (b.thiele != NULL) {
        measure_start(&b);
    }
    thiele_model_destroy(b.model);
    thiele_context_destroy(b.ctx);
    return b.missed > 0;
}

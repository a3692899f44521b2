/*
 * How fast CSV text becomes a table: about 100 MB of digits, of short numbers and of 17-digit ones are written to a
 * temporary file and opened, on one core. Prints MB/s of text: the best of three, file in the page cache.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include <thiele/table.h>

enum { COLUMNS = 10, TARGET_BYTES = 100 * 1000 * 1000, REPEATS = 3 };

/* whole: integers from 0 to whole - 1; 0: normal numbers */
static long write_file(const char *path, const char *format, int whole)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return -1;
    }
    for (int c = 0; c < COLUMNS; c++) {
        fprintf(file, "%sx%d", c > 0 ? "," : "", c + 1);
    }
    for (uint64_t row = 0; ftell(file) < TARGET_BYTES; row++) {
        for (uint64_t c = 0; c < COLUMNS; c++) {
            fputc(c > 0 ? ',' : '\n', file);
            double value = thi_random_normal((thi_stream){1, THI_RANDOM_DEMO, row}, c);
            fprintf(file, format, whole > 0 ? floor(fmod(fabs(1e4 * value), whole)) : value);
        }
    }
    fputc('\n', file);
    long size = ftell(file);
    return fclose(file) == 0 ? size : -1;
}

static int measure(thiele_context *ctx, const char *path, const char *label, const char *format, int whole)
{
    long size = write_file(path, format, whole);
    double best = 1e300;
    int64_t rows = 0;
    for (int i = 0; i < REPEATS && size > 0; i++) {
        thiele_table *table;
        double start = thi_seconds();
        if (thiele_table_open(&table, ctx, path, NULL) != THIELE_OK) {
            fprintf(stderr, "%s\n", thiele_context_message(ctx));
            return 1;
        }
        double seconds = thi_seconds() - start;
        best = seconds < best ? seconds : best;
        rows = thiele_table_rows(table);
        thiele_table_destroy(table);
    }
    if (size > 0) {
        printf("%-16s %7.1f MB %9lld rows %8.3f s %7.0f MB/s\n", label, (double)size * 1e-6, (long long)rows, best,
               (double)size * 1e-6 / best);
    }
    return size > 0 ? 0 : 1;
}

int main(void)
{
    char path[] = "/tmp/thiele-csv-XXXXXX";
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx;
    options.threads = 1;
    int descriptor = mkstemp(path);
    if (descriptor < 0 || close(descriptor) != 0 || thiele_context_create(&ctx, &options) != THIELE_OK) {
        return 1;
    }
    int failed = measure(ctx, path, "one digit", "%.0f", 10) || measure(ctx, path, "to three digits", "%.0f", 1000) ||
                 measure(ctx, path, "quoted digits", "\"%.0f\"", 1000) ||
                 measure(ctx, path, "short numbers", "%.4g", 0) || measure(ctx, path, "17 digits", "%.17g", 0);
    unlink(path);
    thiele_context_destroy(ctx);
    return failed;
}

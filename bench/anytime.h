/* What the benchmarks of sparse regression by blocks share: failures, the clock, tables, numbers of JSON. */
#ifndef BENCH_ANYTIME_H
#define BENCH_ANYTIME_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fit/blocks_state.h"

static inline void check(thiele_context *ctx, thiele_status status)
{
    if (status != THIELE_OK) {
        fprintf(stderr, "%s: %s\n", thiele_status_name(status), ctx != NULL ? thiele_context_message(ctx) : "");
        exit(1);
    }
}

/*
 * Seconds: on one thread those of the processor, which do not grow when others want it too; else those of the clock on
 * the wall.
 */
static inline double now(thiele_context *ctx)
{
    struct timespec at;
    if (thiele_context_threads(ctx) > 1 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at) != 0) {
        return thi_seconds();
    }
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* JSON has no infinity and no NaN. */
static inline void print_number(const char *name, double value)
{
    char text[THI_NUMBER_MAX];
    thi_format_number(text, value);
    printf(", \"%s\": %s", name, isfinite(value) ? text : "null");
}

/* All rows of a table, the target last. */
static inline void read_rows(thiele_context *ctx, const char *path, thi_rows *rows)
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

/* Mean and standard deviation of n numbers that are `step` apart; 1 where they are all equal. */
static inline void moments(int64_t n, const double *x, int64_t step, double *center, double *scale)
{
    double total = 0.0, square = 0.0;
    for (int64_t i = 0; i < n; i++) {
        total += x[i * step];
    }
    *center = total / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double gap = x[i * step] - *center;
        square += gap * gap;
    }
    *scale = square > 0.0 ? sqrt(square / (double)n) : 1.0;
}

#endif

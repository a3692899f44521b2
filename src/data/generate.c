/*
 * The data set of the demonstration: a known function of two inputs and a level, with noise that grows with |x1|, and a
 * column that has nothing to do with it. A row depends on the seed and its number only, and is made when it is asked
 * for: no number of rows takes memory. Numbers have four decimals, so that text and table are the same.
 */
#include <math.h>
#include <string.h>

#include "data/data.h"

enum { ROW, X1, X2, SITE, STRENGTH, COLUMNS };
static const char *const names[COLUMNS] = {"row", "x1", "x2", "site", "strength"};
static const char *const sites[] = {"north", "south", "east"};

typedef struct demo_table {
    thiele_table base;
    uint64_t seed;
} demo_table;

static double rounded(double value)
{
    return round(value * 1e4) / 1e4;
}

/* The numbers of one row; of the site its place in the list. */
static void make_row(const thiele_table *table, int64_t row, double value[COLUMNS])
{
    const thi_stream stream = {((const demo_table *)table)->seed, THI_RANDOM_DEMO, (uint64_t)row};
    double x1 = rounded(6 * thi_random_uniform(stream, 0) - 3);
    double x2 = rounded(4 * thi_random_uniform(stream, 1) - 2);
    int site = (int)(3 * thi_random_uniform(stream, 2));
    double noise = (0.8 + 0.5 * fabs(x1)) * thi_random_normal(stream, 3);
    value[ROW] = (double)row + 1;
    value[X1] = x1;
    value[X2] = x2;
    value[SITE] = site;
    value[STRENGTH] = rounded(40 + 12 * sin(1.5 * x1) + 4 * x2 + 3 * (site == 0) + noise);
}

static thiele_status demo_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                  const int *column, int columns, double *out)
{
    for (int64_t r = first; r < first + count; r++) {
        double value[COLUMNS];
        make_row(table, r, value);
        for (int j = 0; j < columns; j++) {
            if (column[j] == SITE) {
                return thi_fail(ctx, THIELE_ERROR_DATA,
                                "column 'site', row %lld: '%s' is not a number (an input of categories is listed with "
                                "`categorical` site)",
                                (long long)r + 1, sites[(int)value[SITE]]);
            }
            *out++ = value[column[j]];
        }
    }
    return THIELE_OK;
}

static void demo_census(const thiele_table *table, int column, int64_t *text, int64_t *missing)
{
    *text = column == SITE ? table->rows : 0;
    *missing = 0;
}

static thiele_status demo_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                               thi_text *buffer, const char **text, size_t *length)
{
    (void)ctx;
    double value[COLUMNS];
    make_row(table, row, value);
    buffer->length = 0;
    if (column == SITE) {
        *text = sites[(int)value[SITE]];
        *length = strlen(*text);
        return THIELE_OK;
    }
    thi_text_add_number(buffer, value[column]);
    *text = buffer->data;
    *length = buffer->length;
    return buffer->status;
}

static void demo_destroy(thiele_table *table)
{
    thi_table_clear(table);
    thi_free(table);
}

static const thi_table_ops demo_ops = {
    .numbers = demo_numbers,
    .census = demo_census,
    .cell = demo_cell,
    .destroy = demo_destroy,
};

thiele_status thiele_table_generate(thiele_table **out, thiele_context *ctx, int64_t rows, uint64_t seed)
{
    THI_NEED_OUT(out, ctx, ctx);
    demo_table *demo;
    if (rows < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a table needs at least one row, not %lld", (long long)rows);
    }
    thiele_status status = thi_alloc(ctx, &demo, 1, sizeof *demo);
    if (status != THIELE_OK) {
        return status;
    }
    demo->base.ops = &demo_ops;
    demo->seed = seed;
    THI_TRY(thi_table_init(&demo->base, ctx, "", rows, COLUMNS));
    for (int c = 0; c < COLUMNS; c++) {
        THI_TRY(thi_strdup(ctx, &demo->base.name[c], names[c]));
    }
    *out = &demo->base;
    return THIELE_OK;
out:
    thiele_table_destroy(&demo->base);
    return status;
}

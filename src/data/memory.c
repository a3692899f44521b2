/* A table over numbers in memory: a copy, row-major, so that a block of rows is one run of memory. */
#include <math.h>
#include <string.h>

#include "data/data.h"

typedef struct memory_table {
    thiele_table base;
    double *value;    /* value[row * columns + column] */
    int64_t *missing; /* of each column */
} memory_table;

static thiele_status memory_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                    const int *column, int columns, double *out)
{
    (void)ctx;
    const double *row = ((const memory_table *)table)->value + first * table->columns;
    for (int64_t r = 0; r < count; r++, row += table->columns) {
        for (int j = 0; j < columns; j++) {
            *out++ = row[column[j]];
        }
    }
    return THIELE_OK;
}

static void memory_census(const thiele_table *table, int column, int64_t *text, int64_t *missing)
{
    *text = 0;
    *missing = ((const memory_table *)table)->missing[column];
}

static void memory_destroy(thiele_table *table)
{
    memory_table *memory = (memory_table *)table;
    thi_free(memory->value);
    thi_free(memory->missing);
    thi_table_clear(table);
    thi_free(memory);
}

static const thi_table_ops memory_ops = {
    .numbers = memory_numbers,
    .census = memory_census,
    .destroy = memory_destroy,
};

static thiele_status copy_names(thiele_table *table, thiele_context *ctx, const char *const *names)
{
    thiele_status status = THIELE_OK;
    if (names == NULL) {
        return thi_table_number_names(table, ctx);
    }
    for (int c = 0; c < table->columns && status == THIELE_OK; c++) {
        status = thi_strdup(ctx, &table->name[c], names[c]);
    }
    return status != THIELE_OK ? status : thi_table_check_names(table, ctx);
}

static void count_missing(memory_table *memory)
{
    const double *value = memory->value;
    for (int64_t r = 0; r < memory->base.rows; r++) {
        for (int c = 0; c < memory->base.columns; c++) {
            memory->missing[c] += isnan(*value++) != 0;
        }
    }
}

thiele_status thiele_table_from_rows(thiele_table **out, thiele_context *ctx, int64_t rows, int columns,
                                     const double *values, const char *const *names)
{
    THI_NEED_OUT(out, ctx, ctx);
    if (rows < 1 || columns < 1 || values == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a table of %lld rows and %d columns cannot be made",
                        (long long)rows, columns);
    }
    memory_table *memory;
    thiele_status status = thi_alloc(ctx, &memory, 1, sizeof *memory);
    if (status != THIELE_OK) {
        return status;
    }
    memory->base.ops = &memory_ops;
    THI_TRY(thi_table_init(&memory->base, ctx, "", rows, columns));
    THI_TRY(copy_names(&memory->base, ctx, names));
    THI_TRY(thi_alloc(ctx, &memory->missing, (size_t)columns, sizeof *memory->missing));
    THI_TRY(thi_alloc(ctx, &memory->value, (size_t)rows, (size_t)columns * sizeof *memory->value));
    memcpy(memory->value, values, (size_t)rows * (size_t)columns * sizeof *values);
    count_missing(memory);
    *out = &memory->base;
    return THIELE_OK;
out:
    thiele_table_destroy(&memory->base);
    return status;
}

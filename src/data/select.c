/*
 * Some rows of another table, in a given order, without a copy: the other table is asked for each run of neighbouring
 * rows. Names are the other table's.
 */
#include <string.h>

#include "data/data.h"

typedef struct selection {
    thiele_table base;
    int64_t *row; /* of the other table, for each row of this one */
} selection;

/* How many rows from `first` on, at most `count`, are neighbours in the other table. */
static int64_t run_length(const selection *chosen, int64_t first, int64_t count)
{
    int64_t n = 1;
    while (n < count && chosen->row[first + n] == chosen->row[first] + n) {
        n++;
    }
    return n;
}

static thiele_status select_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                    const int *column, int columns, double *out)
{
    const selection *chosen = (const selection *)table;
    const thiele_table *from = table->whole;
    thiele_status status = THIELE_OK;
    while (count > 0 && status == THIELE_OK) {
        int64_t run = run_length(chosen, first, count);
        status = from->ops->numbers(from, ctx, chosen->row[first], run, column, columns, out);
        out += run * columns;
        first += run;
        count -= run;
    }
    return status;
}

static thiele_status select_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                                 thi_text *buffer, const char **text, size_t *length)
{
    const selection *chosen = (const selection *)table;
    return thi_table_cell(table->whole, ctx, chosen->row[row], column, buffer, text, length);
}

static const thiele_table *select_part(const thiele_table *table, int64_t *row)
{
    *row = ((const selection *)table)->row[*row];
    return table->whole;
}

static void select_destroy(thiele_table *table)
{
    thi_free(((selection *)table)->row);
    thi_free(table);
}

static const thi_table_ops select_ops = {
    .numbers = select_numbers,
    .cell = select_cell,
    .part = select_part,
    .destroy = select_destroy,
};

thiele_status thiele_table_select(thiele_table **out, thiele_context *ctx, const thiele_table *table,
                                  const int64_t *rows, int64_t count)
{
    THI_NEED_OUT(out, ctx, ctx && table && rows);
    if (count < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a selection needs at least one row");
    }
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= table->rows) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "row %lld cannot be selected: %s has %lld rows",
                            (long long)rows[i] + 1, thi_table_source(table), (long long)table->rows);
        }
    }
    selection *chosen;
    thiele_status status = thi_alloc(ctx, &chosen, 1, sizeof *chosen);
    if (status != THIELE_OK) {
        return status;
    }
    /* source, columns and names are borrowed */
    chosen->base = *table;
    chosen->base.ops = &select_ops;
    chosen->base.rows = count;
    chosen->base.whole = table;
    status = thi_alloc(ctx, &chosen->row, (size_t)count, sizeof *chosen->row);
    if (status != THIELE_OK) {
        thiele_table_destroy(&chosen->base);
        return status;
    }
    memcpy(chosen->row, rows, (size_t)count * sizeof *rows);
    *out = &chosen->base;
    return THIELE_OK;
}

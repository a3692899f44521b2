/*
 * Rows of a table beside a slice: a sample of them, evenly spaced, for the medians at which the other inputs stay, for
 * the range of the one that moves, and for the rows that belong to the slice. Those are the ones whose own prediction
 * is near the slice's at the same place: what their other inputs do is then little or nothing to the model. It takes no
 * measure of distance between inputs, and an input that does not matter does not count.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "slice.h"

enum { TEXT_MAX = 512 };

/* The labels of the target, NULL when it is a number. */
static const json_t *labels_of(const cli_slice *slice)
{
    const json_t *targets = json_object_get(json_object_get(slice->own, "columns"), "targets");
    return json_object_get(json_array_get(targets, (size_t)slice->output), "labels");
}

/* The column of a name, or -1: a table need not have the target. */
static int find(const thiele_table *table, const char *name)
{
    for (int c = 0; c < thiele_table_columns(table); c++) {
        if (strcmp(thiele_table_column_name(table, c), name) == 0) {
            return c;
        }
    }
    return -1;
}

static thiele_status read_cells(cli_slice *slice)
{
    const slice_column labels = {.levels = labels_of(slice)};
    for (int c = 0; c <= slice->columns; c++) {
        bool target = c == slice->columns;
        int column = find(slice->sample, target ? slice->target : slice->column[c].name);
        for (int i = 0; i < slice->rows; i++) {
            char text[TEXT_MAX] = "";
            thiele_status status =
                column < 0 ? THIELE_OK
                           : thiele_table_cell(slice->sample, slice->settings->ctx, i, column, text, sizeof text);
            if (status != THIELE_OK) {
                return status;
            }
            if (target) {
                slice->y[i] = slice_value(&labels, text);
            } else {
                slice->cell[i * slice->columns + c] = slice_value(&slice->column[c], text);
            }
        }
    }
    return THIELE_OK;
}

static thiele_status take_sample(cli_slice *slice, const thiele_table *table)
{
    int64_t all = thiele_table_rows(table), *row;
    slice->rows = (int)(all < SLICE_ROWS ? all : SLICE_ROWS);
    row = malloc((size_t)slice->rows * sizeof *row);
    slice->cell = malloc((size_t)slice->rows * (size_t)slice->columns * sizeof *slice->cell);
    slice->y = malloc((size_t)slice->rows * sizeof *slice->y);
    thiele_status status = row != NULL && slice->cell != NULL && slice->y != NULL ? THIELE_OK : THIELE_ERROR_MEMORY;
    for (int i = 0; i < slice->rows && status == THIELE_OK; i++) {
        row[i] = all * i / slice->rows;
    }
    if (status == THIELE_OK) {
        status = thiele_table_select(&slice->sample, slice->settings->ctx, table, row, slice->rows);
    }
    free(row);
    return status == THIELE_OK ? read_cells(slice) : status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle one of sorted values that are there (levels: the one that is there most often). */
static double middle(const double *sorted, int n, bool levels)
{
    int best = 0, run = 0, most = 0;
    for (int i = 0; i < n && levels; i++) {
        run = i > 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        best = run > most ? i : best;
        most = run > most ? run : most;
    }
    return levels ? sorted[best] : n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

/* sorted: room for a column. */
static void take_middles(cli_slice *slice, double *sorted)
{
    for (int c = 0; c < slice->columns; c++) {
        slice_column *column = &slice->column[c];
        int n = 0;
        for (int i = 0; i < slice->rows; i++) {
            double value = slice->cell[i * slice->columns + c];
            if (!isnan(value)) {
                sorted[n++] = value;
            }
        }
        qsort(sorted, (size_t)n, sizeof *sorted, compare);
        if (n > 0 && !column->chosen) {
            column->value = middle(sorted, n, column->levels != NULL);
        }
        if (n > 0 && c == slice->over && slice->settings->plot.range == NULL && sorted[0] < sorted[n - 1]) {
            slice->from = sorted[0];
            slice->to = sorted[n - 1];
        }
    }
}

int slice_read_rows(cli_slice *slice, const thiele_table *table)
{
    thiele_status status = take_sample(slice, table);
    double *sorted = malloc((size_t)(slice->rows + 1) * sizeof *sorted);
    status = status == THIELE_OK && sorted == NULL ? THIELE_ERROR_MEMORY : status;
    if (status == THIELE_OK) {
        take_middles(slice, sorted);
    }
    free(sorted);
    return status == THIELE_OK ? CLI_DONE : cli_finish(slice->settings, status);
}

/* --- rows that belong to the slice ----------------------------------------------------------------------------------
 */

/* A row of the law at x, between its places. NaN outside of them. */
static double between(const cli_slice *slice, const double *value, int series, double x)
{
    const slice_law *law = &slice->law;
    double at = (x - slice->x[0]) / (slice->x[law->n - 1] - slice->x[0]) * (law->n - 1);
    if (law->n == 1 || !(at >= 0.0 && at <= law->n - 1)) {
        return law->n == 1 && x == slice->x[0] ? value[series] : NAN;
    }
    int left = at >= law->n - 1 ? law->n - 2 : (int)at;
    double share = at - left;
    return (1.0 - share) * value[left * slice->series + series] + share * value[(left + 1) * slice->series + series];
}

/* What a rate is multiplied by to be that of the slice's exposure. */
static double exposure_ratio(const cli_slice *slice, int row)
{
    int last = slice->columns - 1;
    return slice->exposure != NULL ? slice->column[last].value / slice->cell[row * slice->columns + last] : 1.0;
}

static bool is_near(const cli_slice *slice, int row)
{
    static const double NEAR = 0.5 /* standard deviations */, NEAR_PROBABILITY = 0.1, WIDTH_90 = 3.2897;
    double x = slice->cell[row * slice->columns + slice->over], ratio = exposure_ratio(slice, row);
    bool near = !isnan(slice->y[row]);
    for (int c = 0; c < slice->series && near; c++) {
        double here = slice->row_law.mean[row * slice->series + c] * ratio;
        double there = between(slice, slice->law.mean, c, x), limit = NEAR_PROBABILITY;
        if (slice->classes == 0) {
            double low = between(slice, slice->law.quantile[0], c, x);
            limit = NEAR * (between(slice, slice->law.quantile[SLICE_QUANTILES - 1], c, x) - low) / WIDTH_90;
        }
        near = fabs(here - there) <= limit;
    }
    return near;
}

void slice_choose_near(cli_slice *slice)
{
    for (int i = 0; i < slice->rows; i++) {
        if (is_near(slice, i)) {
            slice->near_x[slice->nears] = slice->cell[i * slice->columns + slice->over];
            slice->near_y[slice->nears++] = slice->y[i] * exposure_ratio(slice, i);
        }
    }
}

/*
 * Several files as one table: their rows one after another, without a copy. Each request is cut where files meet; a
 * column's census is the sum of theirs. The files belong to the table.
 */
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

typedef struct joined {
    thiele_table base;
    thi_table_ops ops; /* those below that all of the files have */
    int parts;
    thiele_table **part;
    int64_t *first; /* row of this table, for each part; then the number of rows */
} joined;

/* The part that a row lies in: the last one that begins at it or before. */
static int find_part(const joined *j, int64_t row)
{
    int low = 0, high = j->parts;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (j->first[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static thiele_status joined_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                    const int *column, int columns, double *out)
{
    const joined *j = (const joined *)table;
    for (int p = find_part(j, first); count > 0; p++) {
        const thiele_table *part = j->part[p];
        int64_t run = thi_least(count, j->first[p + 1] - first);
        thiele_status status = part->ops->numbers(part, ctx, first - j->first[p], run, column, columns, out);
        if (status != THIELE_OK) {
            return status == THIELE_ERROR_DATA ? thi_fail_in(ctx, status, "%s", thi_table_source(part)) : status;
        }
        out += run * columns;
        first += run;
        count -= run;
    }
    return THIELE_OK;
}

static void joined_census(const thiele_table *table, int column, int64_t *text, int64_t *missing)
{
    const joined *j = (const joined *)table;
    for (int p = 0; p < j->parts; p++) {
        int64_t texts, lacking;
        thi_table_census(j->part[p], column, &texts, &lacking);
        *text += texts;
        *missing += lacking;
    }
}

static const thiele_table *joined_part(const thiele_table *table, int64_t *row)
{
    const joined *j = (const joined *)table;
    int p = find_part(j, *row);
    *row -= j->first[p];
    return j->part[p];
}

static thiele_status joined_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                                 thi_text *buffer, const char **text, size_t *length)
{
    const thiele_table *part = joined_part(table, &row);
    return thi_table_cell(part, ctx, row, column, buffer, text, length);
}

static void joined_destroy(thiele_table *table)
{
    joined *j = (joined *)table;
    for (int p = 0; p < j->parts; p++) {
        thiele_table_destroy(j->part[p]);
    }
    thi_free(j->part);
    thi_free(j->first);
    thi_table_clear(table);
    thi_free(j);
}

/* --- opening --------------------------------------------------------------------------------------------------------
 */

/* What a census says, and whether texts can be had, is known of all files or of none. */
static bool is_same_kind(const thiele_table *a, const thiele_table *b)
{
    return (a->ops->census != NULL) == (b->ops->census != NULL) && a->ops->written == b->ops->written;
}

static thiele_status compare(const thiele_table *first, const thiele_table *part, thiele_context *ctx)
{
    const char *source[] = {thi_table_source(first), thi_table_source(part)};
    if (!is_same_kind(first, part)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s and %s are files of two kinds: convert one of them", source[0],
                        source[1]);
    }
    for (int c = 0; c < first->columns && c < part->columns; c++) {
        if (strcmp(first->name[c], part->name[c]) != 0) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT,
                            "column %d of %s is '%s', and that of %s is '%s': the files of one table have the same "
                            "columns in the same order",
                            c + 1, source[1], part->name[c], source[0], first->name[c]);
        }
    }
    if (first->columns != part->columns) {
        bool more = part->columns > first->columns;
        return thi_fail(ctx, THIELE_ERROR_FORMAT,
                        "%s has a column '%s', and %s has none: the files of one table have the same columns in the "
                        "same order",
                        source[more], (more ? part : first)->name[more ? first->columns : part->columns],
                        source[!more]);
    }
    return THIELE_OK;
}

static thiele_status open_parts(joined *j, thiele_context *ctx, const char *const *path, int count,
                                const thiele_table_options *options)
{
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &j->part, (size_t)count, sizeof(thiele_table *)));
    THI_TRY(thi_alloc(ctx, &j->first, (size_t)count + 1, sizeof *j->first));
    for (int p = 0; p < count; p++) {
        THI_TRY(thiele_table_open(&j->part[p], ctx, path[p], options));
        j->parts = p + 1;
        j->first[p + 1] = j->first[p] + j->part[p]->rows;
        THI_TRY(compare(j->part[0], j->part[p], ctx));
    }
out:
    return status;
}

/* "the table of a.csv and b.csv", "the table of a.csv and 7 more files", and the names of the first one. */
static thiele_status name_table(joined *j, thiele_context *ctx)
{
    const thiele_table *first = j->part[0];
    thi_text source;
    thiele_status status;
    thi_text_init(&source, ctx);
    thi_text_add(&source, "the table of %s and ", thi_table_source(first));
    if (j->parts == 2) {
        thi_text_add(&source, "%s", thi_table_source(j->part[1]));
    } else {
        thi_text_add(&source, "%d more files", j->parts - 1);
    }
    THI_TRY(source.status);
    THI_TRY(thi_table_init(&j->base, ctx, source.data, j->first[j->parts], first->columns));
    for (int c = 0; c < first->columns; c++) {
        THI_TRY(thi_strdup(ctx, &j->base.name[c], first->name[c]));
    }
    if (first->missing != NULL) {
        THI_TRY(thi_strdup(ctx, &j->base.missing, first->missing));
    }
out:
    thi_text_clear(&source);
    return status;
}

thiele_status thiele_table_open_files(thiele_table **out, thiele_context *ctx, const char *const *path, int count,
                                      const thiele_table_options *options)
{
    THI_NEED_OUT(out, ctx, ctx && path);
    joined *j = NULL;
    thiele_status status;
    if (count < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no file was named");
    }
    if (count == 1) {
        return thiele_table_open(out, ctx, path[0], options);
    }
    THI_TRY(thi_alloc(ctx, &j, 1, sizeof *j));
    j->base.ops = &j->ops;
    j->ops =
        (thi_table_ops){.numbers = joined_numbers, .cell = joined_cell, .part = joined_part, .destroy = joined_destroy};
    THI_TRY(open_parts(j, ctx, path, count, options));
    THI_TRY(name_table(j, ctx));
    j->ops.census = j->part[0]->ops->census != NULL ? joined_census : NULL;
    j->ops.written = j->part[0]->ops->written;
    *out = &j->base;
    return THIELE_OK;
out:
    if (j != NULL) {
        joined_destroy(&j->base);
    }
    return status;
}

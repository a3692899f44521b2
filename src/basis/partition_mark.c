/* Blocks that the rows name themselves: one for each value of their last column. */
#include <stdlib.h>
#include <string.h>

#include "basis/partition_internal.h"

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* In place: each number once. Returns how many there are. */
static int64_t distinct(int64_t n, double *number)
{
    int64_t count = 0;
    qsort(number, (size_t)n, sizeof *number, ascending);
    for (int64_t i = 0; i < n; i++) {
        if (count == 0 || number[i] != number[count - 1]) {
            number[count++] = number[i];
        }
    }
    return count;
}

/* A pass over the rows, THI_PARTITION_CHUNK of them at a time. */
typedef struct pass {
    thiele_context *ctx;
    const thi_partition_rows *rows;
    double *X;
    int64_t *row, first, count;
} pass;

static thiele_status pass_open(pass *w, thiele_context *ctx, const thi_partition_rows *rows)
{
    size_t room = (size_t)thi_least(rows->n, THI_PARTITION_CHUNK);
    thiele_status status;
    *w = (pass){.ctx = ctx, .rows = rows};
    THI_TRY(thi_alloc_bare(ctx, &w->X, room * (size_t)rows->D, sizeof *w->X));
    THI_TRY(thi_alloc_bare(ctx, &w->row, room, sizeof *w->row));
out:
    return status;
}

/* The next rows; count 0: that was all, and the next time it begins again. */
static thiele_status pass_next(pass *w)
{
    w->first += w->count;
    w->count = thi_least(w->rows->n - w->first, THI_PARTITION_CHUNK);
    for (int64_t i = 0; i < w->count; i++) {
        w->row[i] = w->first + i;
    }
    if (w->count == 0) {
        w->first = 0;
        return THIELE_OK;
    }
    return w->rows->fetch(w->rows->arg, w->ctx, w->count, w->row, w->X);
}

static void pass_close(pass *w)
{
    thi_free(w->X);
    thi_free(w->row);
}

/* p->mark and p->blocks. */
static thiele_status find_marks(thi_partition *p, pass *w)
{
    thiele_status status = THIELE_OK;
    THI_TRY(thi_alloc_bare(w->ctx, &p->mark, (size_t)p->n, sizeof *p->mark));
    do {
        THI_TRY(pass_next(w));
        for (int64_t i = 0; i < w->count; i++) {
            p->mark[w->first + i] = w->X[(i + 1) * p->D - 1];
        }
    } while (w->count > 0);
    p->blocks = distinct(p->n, p->mark);
    THI_TRY(thi_grow(w->ctx, &p->mark, (size_t)p->blocks, sizeof *p->mark));
out:
    return status;
}

/* The block of each row, and the centres. */
static thiele_status fill_blocks(thi_partition *p, pass *w, int64_t *label)
{
    const int D = p->D;
    thiele_status status = THIELE_OK;
    do {
        THI_TRY(pass_next(w));
        for (int64_t i = 0; i < w->count; i++) {
            const double *at = bsearch(&w->X[(i + 1) * D - 1], p->mark, (size_t)p->blocks, sizeof *at, ascending);
            int64_t b = label[w->first + i] = at - p->mark;
            thi_scale_columns(D, p->scale, 1, w->X + i * D, w->X + i * D);
            for (int d = 0; d < D; d++) {
                p->centre[b * D + d] += w->X[i * D + d];
            }
        }
    } while (w->count > 0);
    thi_sort_by_label(p->n, label, p->blocks, p->start, p->order);
    for (int64_t k = 0; k < p->blocks * D; k++) {
        p->centre[k] /= (double)(p->start[k / D + 1] - p->start[k / D]);
    }
out:
    return status;
}

thiele_status thi_partition_by_mark(thi_partition *p, thiele_context *ctx, const thi_partition_rows *rows,
                                    const double *scale)
{
    pass w = {0};
    int64_t *label = NULL;
    thiele_status status;
    *p = (thi_partition){.D = rows->D, .n = rows->n};
    THI_TRY(pass_open(&w, ctx, rows));
    THI_TRY(find_marks(p, &w));
    THI_TRY(thi_alloc(ctx, &p->scale, (size_t)p->D, sizeof *p->scale));
    THI_TRY(thi_alloc(ctx, &p->centre, (size_t)(p->D * p->blocks), sizeof *p->centre));
    THI_TRY(thi_alloc(ctx, &p->start, (size_t)p->blocks + 1, sizeof *p->start));
    THI_TRY(thi_alloc_bare(ctx, &p->order, (size_t)p->n, sizeof *p->order));
    THI_TRY(thi_alloc_bare(ctx, &label, (size_t)p->n, sizeof *label));
    memcpy(p->scale, scale, (size_t)p->D * sizeof *p->scale);
    THI_TRY(fill_blocks(p, &w, label));
out:
    pass_close(&w);
    thi_free(label);
    if (status != THIELE_OK) {
        thi_partition_clear(p);
    }
    return status;
}

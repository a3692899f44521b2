/* A partition to which rows are added: they join blocks, and blocks that grow too large are cut (partition_cut.c). */
#include <string.h>

#include "basis/partition_internal.h"

typedef struct growth {
    thi_partition *out;
    thi_scaled_rows rows;
    int64_t most;
    int64_t *label; /* of each row */
} growth;

/* Whether more rows have made a block of p too large. */
static bool is_cut(const growth *g, const thi_partition *p, int64_t b)
{
    int64_t n = g->out->start[b + 1] - g->out->start[b];
    return g->most > 0 && n > g->most && n > p->start[b + 1] - p->start[b];
}

/* Cuts block b, whose rows get other labels: its own, and *blocks, *blocks + 1, ... */
static thiele_status cut_block(growth *g, int64_t b, int64_t *blocks)
{
    thi_partition *out = g->out;
    const int D = out->D;
    int64_t range[2] = {0, out->start[b + 1] - out->start[b]};
    thi_portions block = {.count = 1, .start = range, .order = out->order + out->start[b]}, pieces = {0};
    thiele_status status;
    THI_TRY(thi_portions_cut(&pieces, &g->rows, &block, 0, g->most));
    THI_TRY(thi_grow(g->rows.ctx, &out->centre, (size_t)((*blocks + pieces.count - 1) * D), sizeof *out->centre));
    for (int64_t k = 0; k < pieces.count; k++) {
        int64_t to = k == 0 ? b : (*blocks)++, n = pieces.start[k + 1] - pieces.start[k];
        for (int d = 0; d < D; d++) {
            out->centre[to * D + d] = pieces.sum[k * D + d] / (double)n;
        }
        for (int64_t i = pieces.start[k]; i < pieces.start[k + 1]; i++) {
            g->label[pieces.order[i]] = to;
        }
    }
out:
    thi_portions_clear(&pieces);
    return status;
}

static thiele_status cut_blocks(growth *g, const thi_partition *p)
{
    thi_partition *out = g->out;
    int64_t blocks = p->blocks;
    thiele_status status = THIELE_OK;
    thi_sort_by_label(out->n, g->label, p->blocks, out->start, out->order);
    for (int64_t b = 0; b < p->blocks; b++) {
        if (is_cut(g, p, b)) {
            THI_TRY(cut_block(g, b, &blocks));
        }
    }
    if (blocks > p->blocks) {
        THI_TRY(thi_grow(g->rows.ctx, &out->start, (size_t)blocks + 1, sizeof *out->start));
        thi_sort_by_label(out->n, g->label, blocks, out->start, out->order);
        out->blocks = blocks;
    }
out:
    return status;
}

thiele_status thi_partition_grow(thi_partition *out, thiele_context *ctx, const thi_partition *p,
                                 const thi_partition_rows *rows, const int64_t *block, int64_t most)
{
    size_t D = (size_t)p->D, P = (size_t)p->blocks, n = (size_t)rows->n;
    growth g = {.out = out, .rows = {ctx, rows, p->scale}, .most = most};
    thiele_status status;
    *out = (thi_partition){.D = p->D, .n = rows->n, .blocks = p->blocks};
    if (p->centre == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a partition without centres has no place for more rows");
    }
    THI_TRY(thi_alloc_bare(ctx, &g.label, n, sizeof *g.label));
    THI_TRY(thi_alloc_bare(ctx, &out->scale, D, sizeof *out->scale));
    THI_TRY(thi_alloc_bare(ctx, &out->centre, D * P, sizeof *out->centre));
    THI_TRY(thi_alloc_bare(ctx, &out->start, P + 1, sizeof *out->start));
    THI_TRY(thi_alloc_bare(ctx, &out->order, n, sizeof *out->order));
    if (p->mark != NULL) {
        THI_TRY(thi_alloc_bare(ctx, &out->mark, P, sizeof *out->mark));
        memcpy(out->mark, p->mark, P * sizeof *out->mark);
        g.most = 0;
    }
    memcpy(out->scale, p->scale, D * sizeof *out->scale);
    memcpy(out->centre, p->centre, D * P * sizeof *out->centre);
    for (int64_t b = 0; b < p->blocks; b++) {
        for (int64_t i = p->start[b]; i < p->start[b + 1]; i++) {
            g.label[i] = b;
        }
    }
    memcpy(g.label + p->n, block, (n - (size_t)p->n) * sizeof *block);
    THI_TRY(cut_blocks(&g, p));
out:
    thi_free(g.label);
    if (status != THIELE_OK) {
        thi_partition_clear(out);
    }
    return status;
}

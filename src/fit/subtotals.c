/* Sums over blocks in a fixed tree, over processes: see subtotals.h. */
#include "fit/subtotals.h"

#include <string.h>

void thi_subtotals_open(thi_subtotals *subtotals, int64_t length)
{
    *subtotals = (thi_subtotals){.length = length};
}

void thi_subtotals_close(thi_subtotals *subtotals)
{
    for (int i = 0; i < subtotals->count; i++) {
        thi_free(subtotals->node[i].sum);
    }
    for (int i = 0; i < subtotals->spare_count; i++) {
        thi_free(subtotals->spare[i]);
    }
    thi_free(subtotals->node);
    thi_free(subtotals->spare);
    *subtotals = (thi_subtotals){.length = subtotals->length};
}

void thi_subtotals_range(const thiele_context *ctx, int64_t blocks, int64_t *first, int64_t *end)
{
    const thiele_ranks *r = &ctx->ranks;
    *first = blocks / r->count * r->rank + thi_least(r->rank, blocks % r->count);
    *end = *first + blocks / r->count + (r->rank < blocks % r->count);
}

/* --- the tree ----------------------------------------------------------------------------------------------------- */

static void add(int64_t length, double *to, const double *from)
{
    for (int64_t i = 0; i < length; i++) {
        to[i] += from[i];
    }
}

static void drop_last(thi_subtotals *s)
{
    s->spare[s->spare_count++] = s->node[--s->count].sum;
}

/* The last nodes become their parents as long as they are siblings: the left one has an even number. */
static void join(thi_subtotals *s)
{
    while (s->count > 1) {
        thi_subtotal *left = &s->node[s->count - 2], *right = left + 1;
        if (left->level != right->level || left->index % 2 != 0 || right->index != left->index + 1) {
            return;
        }
        add(s->length, left->sum, right->sum);
        drop_last(s);
        left->level++;
        left->index /= 2;
    }
}

static thiele_status make_room(thi_subtotals *s, thiele_context *ctx)
{
    thiele_status status;
    if (s->count < s->room) {
        return THIELE_OK;
    }
    int room = 2 * s->room + 8;
    THI_TRY(thi_grow(ctx, &s->node, (size_t)room, sizeof *s->node));
    THI_TRY(thi_grow(ctx, &s->spare, (size_t)room, sizeof *s->spare));
    s->room = room;
out:
    return status;
}

static thiele_status push(thi_subtotals *s, thiele_context *ctx, int level, int64_t index, double **numbers)
{
    double *sum = NULL;
    thiele_status status = make_room(s, ctx);
    if (status == THIELE_OK && s->spare_count > 0) {
        sum = s->spare[--s->spare_count];
    } else if (status == THIELE_OK) {
        status = thi_alloc_bare(ctx, &sum, (size_t)s->length, sizeof *sum);
    }
    if (status == THIELE_OK) {
        s->node[s->count++] = (thi_subtotal){level, index, sum};
        *numbers = sum;
    }
    return status;
}

thiele_status thi_subtotals_next(thi_subtotals *s, thiele_context *ctx, int64_t block, double **numbers)
{
    join(s);
    return push(s, ctx, 0, block, numbers);
}

/* --- between processes -------------------------------------------------------------------------------------------- */

/* How a process fared, and what comes after. */
typedef struct outcome {
    int64_t status, nodes;
    char message[THI_MESSAGE_MAX];
} outcome;

static thiele_status send_nodes(const thi_subtotals *s, thiele_context *ctx, const outcome *how, int to)
{
    thiele_status status;
    THI_TRY(thi_ranks_send(ctx, how, sizeof *how, to));
    for (int i = 0; i < how->nodes; i++) {
        const int64_t place[2] = {s->node[i].level, s->node[i].index};
        THI_TRY(thi_ranks_send(ctx, place, sizeof place, to));
        THI_TRY(thi_ranks_send(ctx, s->node[i].sum, (size_t)s->length * sizeof(double), to));
    }
out:
    return status;
}

/* Nodes of the blocks behind those that are here. After a failure on either side they are thrown away. */
static thiele_status receive_nodes(thi_subtotals *s, thiele_context *ctx, outcome *how, int from)
{
    outcome other;
    int64_t place[2];
    thiele_status status;
    THI_TRY(thi_ranks_receive(ctx, &other, sizeof other, from));
    for (int64_t i = 0; i < other.nodes; i++) {
        double *numbers;
        THI_TRY(thi_ranks_receive(ctx, place, sizeof place, from));
        join(s);
        THI_TRY(push(s, ctx, (int)place[0], place[1], &numbers));
        THI_TRY(thi_ranks_receive(ctx, numbers, (size_t)s->length * sizeof *numbers, from));
    }
    if (how->status == THIELE_OK && other.status != THIELE_OK) {
        *how = other;
    }
out:
    return status;
}

/* Up a tree of processes: each gets what the one `step` behind it has gathered. */
static thiele_status gather(thi_subtotals *s, thiele_context *ctx, outcome *how)
{
    const thiele_ranks *r = &ctx->ranks;
    thiele_status status = THIELE_OK;
    for (int step = 1; step < r->count && status == THIELE_OK; step *= 2) {
        if (r->rank % (2 * step) == step) {
            join(s);
            how->nodes = how->status == THIELE_OK ? s->count : 0;
            return send_nodes(s, ctx, how, r->rank - step);
        }
        if (r->rank + step < r->count) {
            status = receive_nodes(s, ctx, how, r->rank + step);
        }
    }
    return status;
}

/* From the last node to the first, as in a tree whose missing blocks are left out. */
static void sum_up(thi_subtotals *s, double *out)
{
    memset(out, 0, (size_t)s->length * sizeof *out);
    join(s);
    while (s->count > 0) {
        add(s->length, out, s->node[s->count - 1].sum);
        drop_last(s);
    }
}

thiele_status thi_subtotals_total(thi_subtotals *s, thiele_context *ctx, thiele_status own, double *out)
{
    outcome how = {.status = own};
    thiele_status status = THIELE_OK;
    memcpy(how.message, ctx->message, sizeof how.message);
    if (thi_ranks_many(ctx)) {
        THI_TRY(gather(s, ctx, &how));
        THI_TRY(thi_ranks_broadcast(ctx, &how, sizeof how));
    }
    sum_up(s, out);
    if (how.status == THIELE_OK) {
        THI_TRY(thi_ranks_broadcast(ctx, out, (size_t)s->length * sizeof *out));
        return THIELE_OK;
    }
    status = own == THIELE_OK ? thi_fail(ctx, (thiele_status)how.status, "%s", how.message) : own;
    memcpy(ctx->message, how.message, sizeof how.message);
    status = (thiele_status)how.status;
out:
    return status;
}

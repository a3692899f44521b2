/*
 * Large blocks cut into even pieces: each cut is at a quantile of the column in which the piece is widest, ties by row
 * number, so that equal rows are cut too. O(rows of large blocks D log(pieces)).
 */
#include <math.h>
#include <string.h>

#include "basis/partition_internal.h"

void thi_portions_clear(thi_portions *portions)
{
    thi_free(portions->start);
    thi_free(portions->sum);
    *portions = (thi_portions){0};
}

static int64_t size_of(const thi_portions *b, int64_t k)
{
    return b->start[k + 1] - b->start[k];
}

/* --- Into how many pieces --------------------------------------------------------------------------------------- */

static int64_t pieces_within(int64_t size, int64_t bound)
{
    return size / bound + (size % bound != 0);
}

static int64_t count_within(const thi_portions *b, int64_t bound)
{
    int64_t count = 0;
    for (int64_t k = 0; k < b->count; k++) {
        count += pieces_within(size_of(b, k), bound);
    }
    return count;
}

/*
 * parts (of each block): as many as the bound `most` asks for; when that makes fewer than P, because centres were equal
 * or lost their rows, more of the largest until there are P. Returns the total.
 */
static int64_t choose_parts(const thi_portions *b, int64_t P, int64_t most, int64_t *parts)
{
    int64_t missing = P - count_within(b, most);
    if (missing > 0) {
        /* The least bound that makes at most P; with one less there would be more. */
        int64_t fewer = 0;
        while (most - fewer > 1) {
            int64_t middle = fewer + (most - fewer) / 2;
            *(count_within(b, middle) <= P ? &most : &fewer) = middle;
        }
        missing = P - count_within(b, most);
    }
    int64_t total = 0;
    for (int64_t k = 0; k < b->count; k++) {
        int64_t size = size_of(b, k);
        parts[k] = pieces_within(size, most);
        if (missing > 0) {
            int64_t more = thi_least(missing, pieces_within(size, most - 1) - parts[k]);
            parts[k] += more;
            missing -= more;
        }
        total += parts[k];
    }
    return total;
}

/* --- Cutting ---------------------------------------------------------------------------------------------------- */

typedef struct key {
    double value;
    int64_t row;
} key;

static bool before(key a, key b)
{
    return a.value < b.value || (a.value == b.value && a.row < b.row);
}

/* Quickselect (Hoare 1961): the `rank` smallest keys come first. Keys are different, because their rows are. */
static void select_smallest(key *keys, int64_t n, int64_t rank)
{
    int64_t low = 0;
    int64_t high = n - 1;
    while (low < high) {
        key pivot = keys[low + (high - low) / 2];
        int64_t i = low;
        int64_t j = high;
        while (i <= j) {
            while (before(keys[i], pivot)) {
                i++;
            }
            while (before(pivot, keys[j])) {
                j--;
            }
            if (i <= j) {
                key held = keys[i];
                keys[i++] = keys[j];
                keys[j--] = held;
            }
        }
        /* Now keys[low .. j] < keys between < keys[i .. high]. */
        if (rank <= j) {
            high = j;
        } else if (rank >= i) {
            low = i;
        } else {
            return;
        }
    }
}

typedef struct cutter {
    const thi_scaled_rows *s;
    thi_portions *pieces; /* count: those done */
    key *keys;            /* rows of the largest block */
    double *X;            /* D x THI_PARTITION_CHUNK */
    double *low, *high;   /* D: range of each column */
} cutter;

static thiele_status fetch_some(const cutter *c, int64_t begin, int64_t end, int64_t *count)
{
    *count = thi_least(THI_PARTITION_CHUNK, end - begin);
    return thi_scaled_fetch(c->s, *count, c->pieces->order + begin, c->X);
}

/* The column in which rows order[begin .. end-1] are widest. Leaves the rows in X when they fit. */
static thiele_status widest_column(cutter *c, int64_t begin, int64_t end, int *column)
{
    const int D = c->s->rows->D;
    for (int d = 0; d < D; d++) {
        c->low[d] = INFINITY;
        c->high[d] = -INFINITY;
    }
    for (int64_t count; begin < end; begin += count) {
        thiele_status status = fetch_some(c, begin, end, &count);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < count; i++) {
            for (int d = 0; d < D; d++) {
                double x = c->X[i * D + d];
                c->low[d] = x < c->low[d] ? x : c->low[d];
                c->high[d] = x > c->high[d] ? x : c->high[d];
            }
        }
    }
    *column = 0;
    for (int d = 1; d < D; d++) {
        *column = c->high[d] - c->low[d] > c->high[*column] - c->low[*column] ? d : *column;
    }
    return THIELE_OK;
}

/* Reorders rows order[begin .. end-1] so that those before `middle` are the smaller ones in their widest column. */
static thiele_status cut_in_two(cutter *c, int64_t begin, int64_t middle, int64_t end)
{
    const int D = c->s->rows->D;
    int64_t *order = c->pieces->order;
    int column = 0;
    thiele_status status = widest_column(c, begin, end, &column);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t first = begin, count; first < end; first += count) {
        count = end - begin;
        if (count > THI_PARTITION_CHUNK) {
            status = fetch_some(c, first, end, &count);
            if (status != THIELE_OK) {
                return status;
            }
        }
        for (int64_t i = 0; i < count; i++) {
            double value = c->X[i * D + column];
            /* A value that is no number would have no place in an order. */
            c->keys[first - begin + i] = (key){isnan(value) ? 0.0 : value, order[first + i]};
        }
    }
    select_smallest(c->keys, end - begin, middle - begin);
    for (int64_t i = begin; i < end; i++) {
        order[i] = c->keys[i - begin].row;
    }
    return THIELE_OK;
}

/* The next piece, rows up to `end`, with the sum of its rows. */
static thiele_status add_piece(cutter *c, int64_t begin, int64_t end)
{
    const int D = c->s->rows->D;
    double *sum = c->pieces->sum + c->pieces->count * D;
    c->pieces->start[++c->pieces->count] = end;
    for (int64_t count; begin < end; begin += count) {
        thiele_status status = fetch_some(c, begin, end, &count);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < count; i++) {
            for (int d = 0; d < D; d++) {
                sum[d] += c->X[i * D + d];
            }
        }
    }
    return THIELE_OK;
}

/* Depth log2(parts). */
static thiele_status cut(cutter *c, int64_t begin, int64_t end, int64_t parts)
{
    if (parts == 1) {
        return add_piece(c, begin, end);
    }
    int64_t middle = begin + thi_part_start(end - begin, parts, parts / 2);
    thiele_status status = cut_in_two(c, begin, middle, end);
    if (status == THIELE_OK) {
        status = cut(c, begin, middle, parts / 2);
    }
    return status == THIELE_OK ? cut(c, middle, end, parts - parts / 2) : status;
}

static thiele_status cut_all(cutter *c, const thi_portions *b, const int64_t *parts)
{
    const size_t D = (size_t)c->s->rows->D;
    for (int64_t k = 0; k < b->count; k++) {
        if (parts[k] > 1) {
            thiele_status status = cut(c, b->start[k], b->start[k + 1], parts[k]);
            if (status != THIELE_OK) {
                return status;
            }
        } else if (parts[k] == 1) {
            double *sum = c->pieces->sum + (size_t)c->pieces->count * D;
            memcpy(sum, b->sum + (size_t)k * D, D * sizeof *sum);
            c->pieces->start[++c->pieces->count] = b->start[k + 1];
        }
    }
    return THIELE_OK;
}

thiele_status thi_portions_cut(thi_portions *pieces, const thi_scaled_rows *s, const thi_portions *blocks, int64_t P,
                               int64_t most)
{
    const size_t bytes = (size_t)s->rows->D * sizeof(double);
    cutter c = {.s = s, .pieces = pieces};
    int64_t *parts = NULL;
    *pieces = (thi_portions){.order = blocks->order};
    thiele_status status;
    THI_TRY(thi_alloc(s->ctx, &parts, (size_t)blocks->count, sizeof *parts));
    int64_t total = choose_parts(blocks, P, most, parts);
    int64_t longest = 0; /* of the blocks to be cut */
    for (int64_t k = 0; k < blocks->count; k++) {
        longest = parts[k] > 1 && size_of(blocks, k) > longest ? size_of(blocks, k) : longest;
    }
    THI_TRY(thi_alloc(s->ctx, &pieces->start, (size_t)total + 1, sizeof *pieces->start));
    THI_TRY(thi_alloc(s->ctx, &pieces->sum, (size_t)total, bytes));
    THI_TRY(thi_alloc_bare(s->ctx, &c.keys, (size_t)longest, sizeof *c.keys));
    THI_TRY(thi_alloc_bare(s->ctx, &c.X, (size_t)thi_least(longest, THI_PARTITION_CHUNK), bytes));
    THI_TRY(thi_alloc(s->ctx, &c.low, 2, bytes));
    c.high = c.low + s->rows->D;
    THI_TRY(cut_all(&c, blocks, parts));
out:
    thi_free(parts);
    thi_free(c.keys);
    thi_free(c.X);
    thi_free(c.low);
    return status;
}

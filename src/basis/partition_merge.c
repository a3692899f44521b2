/*
 * Pieces merged until P are left: the pair again and again that raises the sum of squared distances to the means least,
 * a b/(a + b) |mean_a - mean_b|^2 (Ward 1963), among those that have no more rows together than a block may. Of more
 * than P pieces the two smallest have less than 2 n/P: there always is such a pair. (The smallest to the nearest that
 * has room is simpler, but left up to twice the sum on heavy tails.) O(pieces^2 D) on all threads.
 */
#include <math.h>
#include <string.h>

#include "basis/partition_internal.h"

/* Pieces that one task looks for the partners of. */
enum { TASK_PIECES = 32 };

typedef struct merger {
    int D;
    int64_t count, largest;
    int64_t *size;    /* 0: gone into another */
    double *centre;   /* D x count */
    int64_t *into;    /* where it went; itself */
    int64_t *partner; /* of each the best to merge with, -1: none has room */
    double *cost;     /* of that */
} merger;

/* |a - b|^2, or what there is of it when it has reached `enough`. */
static double distance2(int D, const double *a, const double *b, double enough)
{
    enum { LANES = 16 }; /* of sums that do not wait for each other */
    double sum = 0.0;
    int d = 0;
    for (; d + LANES <= D && sum < enough; d += LANES) {
        double square[LANES];
        for (int k = 0; k < LANES; k++) {
            square[k] = (a[d + k] - b[d + k]) * (a[d + k] - b[d + k]);
        }
        for (int half = LANES / 2; half > 0; half /= 2) {
            for (int k = 0; k < half; k++) {
                square[k] += square[k + half];
            }
        }
        sum += square[0];
    }
    for (; d < D && sum < enough; d++) {
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    }
    return sum;
}

/* What the sum grows by; no less than `most` where it is that much. */
static double cost_of(const merger *m, int64_t i, int64_t j, double most)
{
    double both = (double)m->size[i] / (double)(m->size[i] + m->size[j]) * (double)m->size[j];
    return both * distance2(m->D, m->centre + i * m->D, m->centre + j * m->D, most / both);
}

static void find_partner(merger *m, int64_t k)
{
    const int64_t most = m->largest - m->size[k];
    m->partner[k] = -1;
    m->cost[k] = INFINITY;
    for (int64_t j = 0; j < m->count; j++) {
        if (j == k || m->size[j] == 0 || m->size[j] > most) {
            continue;
        }
        double cost = cost_of(m, k, j, m->cost[k]);
        if (m->partner[k] < 0 || cost < m->cost[k]) {
            m->cost[k] = cost;
            m->partner[k] = j;
        }
    }
}

static thiele_status find_partners(void *arg, int64_t block, int thread)
{
    (void)thread;
    merger *m = arg;
    int64_t end = thi_least((block + 1) * TASK_PIECES, m->count);
    for (int64_t k = block * TASK_PIECES; k < end; k++) {
        find_partner(m, k);
    }
    return THIELE_OK;
}

/* The piece whose best merger is the cheapest of all. */
static int64_t cheapest(const merger *m)
{
    int64_t best = -1;
    for (int64_t k = 0; k < m->count; k++) {
        bool can = m->size[k] > 0 && m->partner[k] >= 0;
        if (can && (best < 0 || m->cost[k] < m->cost[best])) {
            best = k;
        }
    }
    return best;
}

/*
 * Only pieces whose partner was one of the two need another: for all others the two together cost at least what the
 * cheaper of them did (Ward's cost is reducible), and have less room.
 */
static void merge(merger *m, int64_t from, int64_t to)
{
    double part = (double)m->size[from] / (double)(m->size[from] + m->size[to]);
    for (int d = 0; d < m->D; d++) {
        m->centre[to * m->D + d] += part * (m->centre[from * m->D + d] - m->centre[to * m->D + d]);
    }
    m->size[to] += m->size[from];
    m->size[from] = 0;
    m->into[from] = to;
    for (int64_t k = 0; k < m->count; k++) {
        if (m->size[k] > 0 && (k == to || m->partner[k] == from || m->partner[k] == to)) {
            find_partner(m, k);
        }
    }
}

/* Numbers what is left from 0 on, in order, and sends everything there. */
static void number_blocks(const merger *m, int64_t *into, double *centre)
{
    int64_t blocks = 0;
    for (int64_t k = 0; k < m->count; k++) {
        if (m->size[k] > 0) {
            memcpy(centre + blocks * m->D, m->centre + k * m->D, (size_t)m->D * sizeof *centre);
            into[k] = blocks++;
        }
    }
    for (int64_t k = 0; k < m->count; k++) {
        int64_t end = k;
        while (m->into[end] != end) {
            end = m->into[end];
        }
        into[k] = into[end];
    }
}

static thiele_status merger_open(merger *m, thiele_context *ctx, const thi_portions *pieces)
{
    const int D = m->D;
    const size_t count = (size_t)m->count;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &m->size, count, sizeof *m->size));
    THI_TRY(thi_alloc(ctx, &m->into, count, sizeof *m->into));
    THI_TRY(thi_alloc(ctx, &m->partner, count, sizeof *m->partner));
    THI_TRY(thi_alloc(ctx, &m->cost, count, sizeof *m->cost));
    THI_TRY(thi_alloc(ctx, &m->centre, count, (size_t)D * sizeof *m->centre));
    for (int64_t k = 0; k < m->count; k++) {
        m->size[k] = pieces->start[k + 1] - pieces->start[k];
        m->into[k] = k;
        for (int d = 0; d < D; d++) {
            m->centre[k * D + d] = pieces->sum[k * D + d] / (double)m->size[k];
        }
    }
out:
    return status;
}

thiele_status thi_portions_merge(const thi_portions *pieces, const thi_scaled_rows *s, int64_t P, int64_t *into,
                                 double *centre)
{
    const double count = (double)pieces->count;
    merger m = {.D = s->rows->D, .count = pieces->count, .largest = thi_largest_block(s->rows->n, P)};
    thiele_status status;
    THI_TRY(merger_open(&m, s->ctx, pieces));
    if (m.count > P) {
        int64_t tasks = (m.count + TASK_PIECES - 1) / TASK_PIECES;
        THI_TRY(thi_parallel_work(s->ctx, tasks, count * count * (3.0 * m.D + 10.0), find_partners, &m));
    }
    for (int64_t left = m.count; left > P; left--) {
        int64_t k = cheapest(&m);
        merge(&m, k, m.partner[k]);
    }
    number_blocks(&m, into, centre);
out:
    thi_free(m.size);
    thi_free(m.into);
    thi_free(m.partner);
    thi_free(m.cost);
    thi_free(m.centre);
    return status;
}

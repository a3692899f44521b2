/*
 * Nearest centres by BLAS-3: argmin |x - c|^2 = argmax (x'c - |c|^2/2), one gemm with a row of ones below x. Only the
 * winner's distance is computed, from the difference itself: no digits are lost, and equal vectors are at 0.
 */
#include "basis/clusters.h"

#include <math.h>
#include <string.h>

/* Centres scored at a time: with THI_CLUSTER_ROWS rows 256 KiB of scores, inside a core's own cache. */
enum { CENTRES = 256, TASK_CENTRES = 16 };

void thi_centre_set(thi_centres *centres, const thi_points *points, int64_t centre, const double *x)
{
    const int D = points->D;
    double *c = centres->C + centre * (D + 1);
    double norm2 = 0.0;
    for (int d = 0; d < D; d++) {
        c[d] = x[d] - points->shift[d];
        norm2 += c[d] * c[d];
    }
    c[D] = -0.5 * norm2;
}

double thi_centre_distance(const thi_centres *centres, const thi_points *points, int64_t centre, const double *x)
{
    const double *c = centres->C + centre * (points->D + 1);
    double sum = 0.0;
    for (int d = 0; d < points->D; d++) {
        double off = (x[d] - points->shift[d]) - c[d];
        sum += off * off;
    }
    return sum;
}

static int64_t blocks_of(int64_t n)
{
    return (n + THI_CLUSTER_ROWS - 1) / THI_CLUSTER_ROWS;
}

thiele_status thi_clusters_open(thi_clusters *clusters, thiele_context *ctx, int D, int64_t points, int64_t centres)
{
    thi_clusters *c = clusters;
    /* Rows with their ones, scores, and of each row the best score and its centre. */
    *c = (thi_clusters){.per_thread = THI_CLUSTER_ROWS * ((size_t)D + 1 + CENTRES + 2)};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &c->near, (size_t)points, sizeof *c->near));
    THI_TRY(thi_alloc(ctx, &c->distance, (size_t)points, sizeof *c->distance));
    THI_TRY(thi_alloc(ctx, &c->sum, (size_t)blocks_of(points), sizeof *c->sum));
    THI_TRY(thi_alloc(ctx, &c->start, (size_t)centres + 2, sizeof *c->start));
    THI_TRY(thi_alloc(ctx, &c->member, (size_t)points, sizeof *c->member));
    THI_TRY(thi_alloc(ctx, &c->turned, (size_t)centres, ((size_t)D + 1) * sizeof *c->turned));
    THI_TRY(thi_alloc(ctx, &c->scratch, c->per_thread * (size_t)ctx->threads, sizeof *c->scratch));
out:
    if (status != THIELE_OK) {
        thi_clusters_close(c);
    }
    return status;
}

void thi_clusters_close(thi_clusters *clusters)
{
    thi_free(clusters->near);
    thi_free(clusters->distance);
    thi_free(clusters->sum);
    thi_free(clusters->start);
    thi_free(clusters->member);
    thi_free(clusters->turned);
    thi_free(clusters->scratch);
    *clusters = (thi_clusters){0};
}

/* --- Rows to centres -------------------------------------------------------------------------------------------- */

typedef struct assign_task {
    thi_clusters *clusters;
    const thi_points *points;
    const thi_centres *centres;
    int64_t first;
    bool afresh;
} assign_task;

/* The largest of n scores; eight at a time become vector instructions. */
static double largest(int64_t n, const double *score)
{
    double best[8];
    for (int k = 0; k < 8; k++) {
        best[k] = -INFINITY;
    }
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; k++) {
            best[k] = score[i + k] > best[k] ? score[i + k] : best[k];
        }
    }
    for (; i < n; i++) {
        best[0] = score[i] > best[0] ? score[i] : best[0];
    }
    for (int k = 1; k < 8; k++) {
        best[0] = best[k] > best[0] ? best[k] : best[0];
    }
    return best[0];
}

/* Scores of some rows against one set of centres: where one beats best[row], it is noted with its centre. */
static void note_winners(thi_matrix scores, int64_t first, double *best, int64_t *winner)
{
    for (int64_t i = 0; i < scores.cols; i++) {
        const double *score = scores.data + i * scores.ld;
        double top = largest(scores.rows, score);
        if (top > best[i]) {
            int64_t j = 0;
            while (score[j] != top) {
                j++;
            }
            best[i] = top;
            winner[i] = first + j;
        }
    }
}

/* U (D + 1 x count) = rows less the shift, with a one below. */
static void pack(const thi_points *points, int64_t first, thi_matrix U)
{
    const int D = points->D;
    for (int64_t i = 0; i < U.cols; i++) {
        const double *x = thi_point(points, first + i);
        double *u = U.data + i * U.ld;
        for (int d = 0; d < D; d++) {
            u[d] = x[d] - points->shift[d];
        }
        u[D] = 1.0;
    }
}

static thiele_status assign_block(void *arg, int64_t block, int thread)
{
    const assign_task *t = arg;
    thi_clusters *c = t->clusters;
    const int64_t D1 = t->points->D + 1;
    int64_t row = block * THI_CLUSTER_ROWS;
    int64_t rows = t->points->n - row < THI_CLUSTER_ROWS ? t->points->n - row : THI_CLUSTER_ROWS;
    thi_matrix U = thi_matrix_view(c->scratch + (size_t)thread * c->per_thread, D1, rows, D1);
    double *scores = U.data + THI_CLUSTER_ROWS * D1;
    double *best = scores + THI_CLUSTER_ROWS * CENTRES;
    int64_t winner[THI_CLUSTER_ROWS];
    pack(t->points, row, U);
    for (int64_t i = 0; i < rows; i++) {
        best[i] = -INFINITY;
        winner[i] = t->first;
    }
    for (int64_t m = t->first; m < t->centres->count; m += CENTRES) {
        int64_t count = t->centres->count - m < CENTRES ? t->centres->count - m : CENTRES;
        thi_matrix S = thi_matrix_view(scores, count, rows, count);
        thi_blas_gemm(THI_N, THI_N, 1.0, thi_matrix_view(c->turned + m, count, D1, t->centres->count), U, 0.0, S);
        note_winners(S, m, best, winner);
    }
    c->sum[block] = 0.0;
    for (int64_t i = 0; i < rows; i++) {
        double distance = thi_centre_distance(t->centres, t->points, winner[i], thi_point(t->points, row + i));
        if (t->afresh || distance < c->distance[row + i]) {
            c->distance[row + i] = distance;
            c->near[row + i] = winner[i];
        }
        c->sum[block] += c->distance[row + i];
    }
    return THIELE_OK;
}

/* Centres by rows: that product is twice as fast while D is small. */
static void turn(thi_clusters *clusters, const thi_centres *centres, int64_t D1)
{
    for (int64_t m = 0; m < centres->count; m++) {
        for (int64_t d = 0; d < D1; d++) {
            clusters->turned[m + d * centres->count] = centres->C[m * D1 + d];
        }
    }
}

thiele_status thi_clusters_assign(thi_clusters *clusters, thiele_context *ctx, const thi_points *points,
                                  const thi_centres *centres, int64_t first, bool afresh)
{
    assign_task t = {clusters, points, centres, first, afresh};
    turn(clusters, centres, points->D + 1);
    double flops = 2.0 * (double)points->n * (double)(centres->count - first + 1) * (points->D + 1.0);
    return thi_parallel_work(ctx, blocks_of(points->n), flops, assign_block, &t);
}

double thi_clusters_cost(const thi_clusters *clusters, const thi_points *points)
{
    double cost = 0.0;
    for (int64_t block = 0; block < blocks_of(points->n); block++) {
        cost += clusters->sum[block];
    }
    return cost;
}

/* --- Centres to means ------------------------------------------------------------------------------------------- */

/* Sorts the rows by centre, in their own order within each: start, member. */
static void sort_members(thi_clusters *c, int64_t n, int64_t centres)
{
    /* start[m + 1] is where the next row of centre m goes: in the end, where those of m + 1 begin. */
    memset(c->start, 0, (size_t)(centres + 2) * sizeof *c->start);
    for (int64_t i = 0; i < n; i++) {
        c->start[c->near[i] + 2]++;
    }
    for (int64_t m = 2; m < centres + 2; m++) {
        c->start[m] += c->start[m - 1];
    }
    for (int64_t i = 0; i < n; i++) {
        c->member[c->start[c->near[i] + 1]++] = i;
    }
}

typedef struct update_task {
    const thi_clusters *clusters;
    const thi_points *points;
    thi_centres *centres;
} update_task;

static void move_centre(const update_task *t, int64_t m)
{
    const thi_points *points = t->points;
    const int D = points->D;
    int64_t begin = t->clusters->start[m];
    int64_t end = t->clusters->start[m + 1];
    double *c = t->centres->C + m * (D + 1);
    double weight = t->centres->weight[m] + (double)(end - begin);
    if (begin == end) {
        return;
    }
    for (int d = 0; d < D; d++) {
        c[d] *= t->centres->weight[m];
    }
    for (int64_t k = begin; k < end; k++) {
        const double *x = thi_point(points, t->clusters->member[k]);
        for (int d = 0; d < D; d++) {
            c[d] += x[d] - points->shift[d];
        }
    }
    double norm2 = 0.0;
    for (int d = 0; d < D; d++) {
        c[d] /= weight;
        norm2 += c[d] * c[d];
    }
    c[D] = -0.5 * norm2;
    t->centres->weight[m] = weight;
}

static thiele_status update_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    const update_task *t = arg;
    int64_t end = (block + 1) * TASK_CENTRES;
    end = end < t->centres->count ? end : t->centres->count;
    for (int64_t m = block * TASK_CENTRES; m < end; m++) {
        move_centre(t, m);
    }
    return THIELE_OK;
}

thiele_status thi_clusters_update(thi_clusters *clusters, thiele_context *ctx, const thi_points *points,
                                  thi_centres *centres)
{
    update_task t = {clusters, points, centres};
    sort_members(clusters, points->n, centres->count);
    int64_t blocks = (centres->count + TASK_CENTRES - 1) / TASK_CENTRES;
    return thi_parallel_work(ctx, blocks, 4.0 * (double)points->n * points->D, update_block, &t);
}

void thi_clusters_fill_empty(thi_clusters *clusters, const thi_points *points, thi_centres *centres)
{
    double *distance = clusters->distance;
    for (int64_t m = 0; m < centres->count; m++) {
        if (centres->weight[m] > 0.0) {
            continue;
        }
        int64_t farthest = 0;
        for (int64_t i = 0; i < points->n; i++) {
            farthest = distance[i] > distance[farthest] ? i : farthest;
        }
        thi_centre_set(centres, points, m, thi_point(points, farthest));
        for (int64_t i = 0; i < points->n; i++) {
            distance[i] = fmin(distance[i], thi_centre_distance(centres, points, m, thi_point(points, i)));
        }
    }
}

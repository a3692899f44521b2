/* The parts of k-means: seeds, and the two halves of an iteration of k-means over some rows: each row to its nearest
 * centre, each centre to the mean. */
#ifndef THI_CLUSTERS_H
#define THI_CLUSTERS_H

#include "basis/basis.h"

/* Row i is X[:, index[i]], or X[:, i] without an index. All is computed on x - shift, so that a mean far from 0 costs
 * no digits. */
typedef struct thi_points {
    int D;
    int64_t n;
    const double *X;
    const int64_t *index;
    const double *shift;
} thi_points;

static inline const double *thi_point(const thi_points *points, int64_t i)
{
    return points->X + (points->index != NULL ? points->index[i] : i) * points->D;
}

/* Centres, of which the first `count` are in use. */
typedef struct thi_centres {
    int64_t count;
    double *C;      /* (D + 1) x capacity: c - shift, then -|c - shift|^2 / 2 */
    double *weight; /* rows that each is the mean of, so far */
} thi_centres;

/* c = x, a raw vector. */
void thi_centre_set(thi_centres *centres, const thi_points *points, int64_t centre, const double *x);
/* |x - c|^2, exactly 0 when c was set to x */
double thi_centre_distance(const thi_centres *centres, const thi_points *points, int64_t centre, const double *x);

/* Where the points stand. Opened for at most `points` rows and `centres` centres. */
typedef struct thi_clusters {
    int64_t *near;    /* of each row: its nearest centre */
    double *distance; /* to it, squared */
    double *sum;      /* of the distances of each block of THI_CLUSTER_ROWS rows */
    int64_t *start;   /* centres + 1: where each centre's rows begin in `member` */
    int64_t *member;  /* rows by centre */
    double *turned;   /* the centres of an assignment, transposed */
    double *scratch;
    size_t per_thread;
} thi_clusters;
enum { THI_CLUSTER_ROWS = 128 };

thiele_status thi_clusters_open(thi_clusters *clusters, thiele_context *ctx, int D, int64_t points, int64_t centres);
void thi_clusters_close(thi_clusters *clusters);
/*
 * near and distance of every row that is nearer to one of the centres from `first` on than its distance says; set
 * afresh: than infinity. 2 n m D flops by gemm. Blocks of rows on all threads: the same bits on any number of them.
 */
thiele_status thi_clusters_assign(thi_clusters *clusters, thiele_context *ctx, const thi_points *points,
                                  const thi_centres *centres, int64_t first, bool afresh);
/* Sum of all distances, in a fixed order. */
double thi_clusters_cost(const thi_clusters *clusters, const thi_points *points);
/*
 * Every centre becomes the mean of its rows and of what it was before, with its weight; the weight grows by the rows.
 * O(n D) on all threads. A centre without rows stays where it is.
 */
thiele_status thi_clusters_update(thi_clusters *clusters, thiele_context *ctx, const thi_points *points,
                                  thi_centres *centres);

/* Each centre of weight 0 moves to the row that is now farthest from its own. O(n D) for each of them. */
void thi_clusters_fill_empty(thi_clusters *clusters, const thi_points *points, thi_centres *centres);

/* --- seeds.c ------------------------------------------------------------------------------------------------------ */
/* x becomes the next centre, unless an equal one is in `seeds`: then false. */
bool thi_seeds_add(thi_centres *centres, const thi_points *points, thi_distinct *seeds, const double *x);
/*
 * Up to M centres by k-means++ among the points; centres and seeds are empty and have room for M. Fewer when the points
 * have fewer distinct ones.
 */
thiele_status thi_seeds_draw(thi_centres *centres, thiele_context *ctx, const thi_points *points, int64_t M,
                             thi_stream stream, thi_distinct *seeds, thi_clusters *clusters);

#endif

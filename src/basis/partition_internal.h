/* What the files of the partition share: rows by chunks, centres and the rows near them, blocks in the making. */
#ifndef THI_PARTITION_INTERNAL_H
#define THI_PARTITION_INTERNAL_H

#include "basis/clusters.h"
#include "basis/partition.h"

/* Rows fetched at a time: 0.5 MB of eight columns, and enough blocks of THI_CLUSTER_ROWS for many threads. */
enum { THI_PARTITION_CHUNK = 8192 };

/* Which random numbers serve what: see THI_BASIS_NESTED. */
enum { THI_PARTITION_SAMPLE = 64, THI_PARTITION_DRAWS, THI_PARTITION_ORDER, THI_PARTITION_BATCHES = 1 << 24 };

/* Rows as distances see them. */
typedef struct thi_scaled_rows {
    thiele_context *ctx;
    const thi_partition_rows *rows;
    const double *scale;
} thi_scaled_rows;

/* Where part i of n rows in `parts` even parts begins; sizes differ by one at most. No overflow. */
static inline int64_t thi_part_start(int64_t n, int64_t parts, int64_t i)
{
    return n / parts * i + thi_least(i, n % parts);
}

/* The rows that a block may have: THI_PARTITION_LARGEST n/P rounded down, P <= n. No overflow. */
static inline int64_t thi_largest_block(int64_t n, int64_t P)
{
    return n / P * THI_PARTITION_LARGEST + n % P * THI_PARTITION_LARGEST / P;
}

/* --- partition.c -------------------------------------------------------------------------------------------------- */

/* U = scale x of n columns, 0 where the scale is 0 whatever x is; U may be X. */
void thi_scale_columns(int D, const double *scale, int64_t n, const double *X, double *U);
/* X (D x count) = scale x of those rows */
thiele_status thi_scaled_fetch(const thi_scaled_rows *s, int64_t count, const int64_t *row, double *X);
/* order = rows by label 0..labels-1, ascending within one; start: labels + 1. O(n + labels). */
void thi_sort_by_label(int64_t n, const int64_t *label, int64_t labels, int64_t *start, int64_t *order);

/* --- partition_centres.c ------------------------------------------------------------------------------------------ */

/* Centres and room for the rows that look for the nearest of them. */
typedef struct thi_nearest {
    int D;
    int64_t room;
    double *X;     /* D x room, scaled */
    int64_t *row;  /* room */
    double *shift; /* D */
    thi_centres centres;
    thi_clusters clusters;
} thi_nearest;

thiele_status thi_nearest_open(thi_nearest *near, thiele_context *ctx, int D, int64_t room, int64_t centres);
void thi_nearest_close(thi_nearest *near);
/* clusters.near of the first `count` columns of X */
thiele_status thi_nearest_assign(thi_nearest *near, thiele_context *ctx, int64_t count);

/* Opens `near` with at most P centres by k-means; to be closed also when it failed. */
thiele_status thi_partition_centres(thi_nearest *near, const thi_scaled_rows *s, int64_t P, double seconds);
/* label (n): the nearest centre of every row; sum (D x centres): of the scaled rows of each. */
thiele_status thi_partition_assign(thi_nearest *near, const thi_scaled_rows *s, int64_t *label, double *sum);

/* --- partition_cut.c ---------------------------------------------------------------------------------------------- */

/* Blocks in the making. */
typedef struct thi_portions {
    int64_t count;
    int64_t *start; /* count + 1 */
    int64_t *order; /* borrowed; n */
    double *sum;    /* D x count: of the scaled rows */
} thi_portions;

/*
 * `pieces` = the blocks, empty ones left out, large ones cut so that none has more than `most` rows and there are at
 * least P; order changes inside blocks. To be freed with thi_portions_clear also when it failed.
 */
thiele_status thi_portions_cut(thi_portions *pieces, const thi_scaled_rows *s, const thi_portions *blocks, int64_t P,
                               int64_t most);
void thi_portions_clear(thi_portions *portions);

/* --- partition_merge.c -------------------------------------------------------------------------------------------- */

/* into (count) = the block 0..P-1 that each of the pieces goes to, such that P are left; centre (D x P) = their means.
 */
thiele_status thi_portions_merge(const thi_portions *pieces, const thi_scaled_rows *s, int64_t P, int64_t *into,
                                 double *centre);

#endif

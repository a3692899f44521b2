/*
 * The data cut into P blocks for the block models (PITC, PIC): k-means, then no block larger than THI_PARTITION_LARGEST
 * times the mean size, so that one huge block cannot spoil the cost of them all. Rows are fetched in chunks: the whole
 * of X is never held.
 *
 * What comes out depends on the rows, their order and the context's seed, not on the number of threads or the clock.
 */
#ifndef THI_PARTITION_H
#define THI_PARTITION_H

#include "base/base.h"

/* A block has at most this many times n/P rows (rounded down). 2 is the least for which merging always ends. */
enum { THI_PARTITION_LARGEST = 2 };

/* X (D x count) = those rows of the table, in the order asked for. Called on the calling thread only. */
typedef thiele_status (*thi_partition_fetch)(void *arg, thiele_context *ctx, int64_t count, const int64_t *row,
                                             double *X);
typedef struct thi_partition_rows {
    int D;
    int64_t n;
    void *arg;
    thi_partition_fetch fetch;
} thi_partition_rows;

typedef struct thi_partition {
    int D;
    int64_t n, blocks; /* P */
    double *scale;     /* D: distances are between scale_d x_d; NULL without centres */
    double *centre;    /* D x P: the mean of each block's scaled rows; NULL without centres */
    int64_t *start;    /* P + 1: rows of block i are order[start[i] .. start[i+1]-1], ascending within a block */
    int64_t *order;    /* n row numbers */
    double *mark;      /* P, ascending: what the rows of a block have in their last column; NULL: blocks are by place */
} thi_partition;

/*
 * Exactly min(blocks, n) blocks, none of them empty. A column of scale 0 is left out; when all are, or all rows are
 * equal, the blocks are runs of consecutive rows.
 *
 * n P D for the assignment of all rows, some 1.2 n P nanoseconds on one core for D = 8; k-means is at most about as
 * much as that of 20 max(50 P, 100,000) rows. `seconds` (0: no limit) is about what all of it may take on one core: the
 * effort of k-means is cut down to that, in the end to a tenth of the assignment or, where that is too little to be of
 * use, to centres at random; the assignment is never cut. The time is turned into an amount of work beforehand, not
 * watched on a clock. 8 n bytes beyond the result while it works, and 16 for each row of the largest block.
 *
 * Errors: ARGUMENT (blocks, n or D < 1, a scale that is not finite), MEMORY, LIMIT, those of fetch; p is then empty.
 */
thiele_status thi_partition_make(thi_partition *p, thiele_context *ctx, const thi_partition_rows *rows, int64_t blocks,
                                 const double *scale, double seconds);
/*
 * One block for each value of the last column, whose scale must be 0, in ascending order; their centres as above. Two
 * passes over the rows, n log n comparisons. Errors as above.
 */
thiele_status thi_partition_by_mark(thi_partition *p, thiele_context *ctx, const thi_partition_rows *rows,
                                    const double *scale);
/* Blocks at random, without centres, whose sizes differ by one at most: for models where they are portions of work. */
thiele_status thi_partition_random(thi_partition *p, thiele_context *ctx, int64_t n, int64_t blocks);
/*
 * A partition with centres and more rows (one with marks has no more blocks for them). `rows` are those of p, by
 * blocks, and then rows->n - p->n new ones, of which number i belongs to block[i] (a block of p). A block that more
 * rows make larger than `most` (0: never) is cut in even pieces as above; the first of them keeps its number, and
 * centres of pieces are the means of their rows. The others keep their centres: nothing else moves. O(n), and O(D log
 * pieces) for each row of a block that is cut. Errors as above.
 */
thiele_status thi_partition_grow(thi_partition *out, thiele_context *ctx, const thi_partition *p,
                                 const thi_partition_rows *rows, const int64_t *block, int64_t most);
/*
 * block[i] = the block whose mark column i of X (D x n, not scaled) has or, without one, whose centre is nearest. A few
 * columns cost O(P D) each and no memory. A column equally far from two centres, to rounding, may go to either. Errors:
 * ARGUMENT (no centres), MEMORY, LIMIT.
 */
thiele_status thi_partition_find(const thi_partition *p, thiele_context *ctx, int64_t n, const double *X,
                                 int64_t *block);
/* Harmless on a zeroed one. */
void thi_partition_clear(thi_partition *p);

#endif

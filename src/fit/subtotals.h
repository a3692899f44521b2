/*
 * Sums over blocks of rows in a tree that is fixed by the global numbers of the blocks, whoever works on them: on one
 * process, or on several (thiele/ranks.h) of which each has blocks that lie together. Neighbours first, then pairs of
 * pairs, as in thi_reduce and posterior/natural.h. Between processes there go the nodes whose siblings are elsewhere,
 * at most 2 log2(blocks) vectors, up a tree of the processes, and the sum back to all of them.
 */
#ifndef THI_FIT_SUBTOTALS_H
#define THI_FIT_SUBTOTALS_H

#include "base/ranks.h"

typedef struct thi_subtotal {
    int level;
    int64_t index; /* blocks index * 2^level up to the next multiple */
    double *sum;
} thi_subtotal;

typedef struct thi_subtotals {
    int64_t length;
    int count, room;
    thi_subtotal *node; /* by the first of their blocks */
    int spare_count;
    double **spare; /* vectors that no node has now; room of them */
} thi_subtotals;

/* Of so many numbers a block; nothing is allocated before the first one. */
void thi_subtotals_open(thi_subtotals *subtotals, int64_t length);
void thi_subtotals_close(thi_subtotals *subtotals);
/* Which of so many blocks are this process's: from *first to before *end. */
void thi_subtotals_range(const thiele_context *ctx, int64_t blocks, int64_t *first, int64_t *end);
/* Room for the numbers of a block that comes after those so far, to be filled before the next call. */
thiele_status thi_subtotals_next(thi_subtotals *subtotals, thiele_context *ctx, int64_t block, double **numbers);
/*
 * out (length) becomes the sum over all blocks of all processes, and the tree is empty. status: how it went here; all
 * processes get that of the lowest block that failed, with its message. Collective: all processes call it.
 */
thiele_status thi_subtotals_total(thi_subtotals *subtotals, thiele_context *ctx, thiele_status status, double *out);

#endif

/*
 * How the parallel factorisations cut a matrix into tiles and work through them. The cut depends on the size of the
 * matrix alone, each tile is computed by the same calls in the same order whoever does it: the bits never depend on the
 * number of threads.
 */
#ifndef THI_TILES_H
#define THI_TILES_H

#include "linalg/linalg.h"

/* An n x n matrix in count x count tiles of size x size, the last row and column narrower. */
typedef struct thi_tiling {
    int64_t n, size, count;
} thi_tiling;

/* A matrix of an order up to `whole` is one tile. */
thi_tiling thi_tiling_make(int64_t n, int64_t whole);

/* Where tile i begins; its length. Tile `count` is empty and begins at n. */
static inline int64_t thi_tile_start(thi_tiling t, int64_t i)
{
    return i * t.size < t.n ? i * t.size : t.n;
}

static inline int64_t thi_tile_length(thi_tiling t, int64_t i)
{
    return thi_tile_start(t, i + 1) - thi_tile_start(t, i);
}

/* Tiles i0..i1-1 by j0..j1-1 of A as one view. */
static inline thi_matrix thi_tile_range(thi_tiling t, thi_matrix A, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    int64_t row = thi_tile_start(t, i0), col = thi_tile_start(t, j0);
    return thi_matrix_block(A, row, col, thi_tile_start(t, i1) - row, thi_tile_start(t, j1) - col);
}

static inline thi_matrix thi_tile(thi_tiling t, thi_matrix A, int64_t i, int64_t j)
{
    return thi_tile_range(t, A, i, i + 1, j, j + 1);
}

/* Tile `index` of the lower triangle in column-major order: (0,0), (1,0), ..., (1,1), (2,1), ... */
static inline void thi_tile_of_lower(thi_tiling t, int64_t index, int64_t *i, int64_t *j)
{
    int64_t column = 0;
    while (index >= t.count - column) {
        index -= t.count - column;
        column++;
    }
    *i = column + index;
    *j = column;
}

/*
 * Factorisations on one thread halve a matrix down to the order where plain loops beat BLAS-3. Multiples of 24 fit the
 * register blocks of the common BLAS kernels (6 x 8, 8 x 6, 4 x 12, 24 x 8). Measured with bench/linalg.
 */
enum { THI_LEAF = 72, THI_GRAIN = 24 };
static inline int64_t thi_half(int64_t n)
{
    return (n / 2 + THI_GRAIN - 1) / THI_GRAIN * THI_GRAIN;
}

/* Up to this order a factorisation is done on the calling thread: others would bring little and cost much when busy. */
enum { THI_SERIAL = 288 };

/*
 * For the columns of strip s (THI_STRIP of them from s * THI_STRIP on): copies what is below the diagonal to its mirror
 * image above, or back from there. The diagonal is left alone.
 */
enum { THI_STRIP = 64 };
void thi_mirror_up(thi_matrix A, int64_t strip);
void thi_mirror_down(thi_matrix A, int64_t strip);

/*
 * Tasks 0, 1, ... begun in this order on all threads. A task may wait for counters that tasks before it raise: those
 * have begun already, so there is always one that can go on, on any number of threads.
 */
typedef struct thi_tasks thi_tasks;
/* False ends the whole run: the function keeps the reason in arg. */
typedef bool (*thi_task_fn)(void *arg, thi_tasks *tasks, int64_t task, int thread);

/* Counters begin at zero. Error MEMORY, before anything was done. */
thiele_status thi_tasks_run(thiele_context *ctx, int64_t tasks, int64_t counters, thi_task_fn fn,
                            void *arg) THI_MUST_CHECK;
/* Waits until a counter has reached `value`; what was written before it was raised can then be read. False when the run
 * has been ended: the task then returns false too. */
bool thi_tasks_wait(thi_tasks *tasks, int64_t counter, int64_t value) THI_MUST_CHECK;
void thi_tasks_raise(thi_tasks *tasks, int64_t counter);

#endif

/*
 * Minibatches without replacement: every epoch goes through all rows once, in another order. Row numbers only; the
 * caller gathers the rows. An order is a function, not a list: no memory that grows with the rows, any batch of any
 * epoch at once, the same whoever asks.
 */
#ifndef THI_BATCHES_H
#define THI_BATCHES_H

#include "base/base.h"

enum { THI_SHUFFLE_ROUNDS = 8 };

/* A random order of 0..n-1: position -> number. Constant after opening; may be shared between threads. */
typedef struct thi_shuffle {
    int64_t n, turn;
    int low, high; /* bits of the two halves */
    uint64_t key[THI_SHUFFLE_ROUNDS];
} thi_shuffle;

/* n >= 1. Every stream (seed, purpose, row) gives another order. */
void thi_shuffle_open(thi_shuffle *shuffle, thi_stream stream, int64_t n);
/* What stands at `position`, 0 <= position < n: some 25 ns. */
int64_t thi_shuffle_at(const thi_shuffle *shuffle, int64_t position);

typedef struct thi_batches {
    int64_t rows;
    int64_t per_epoch; /* batches in an epoch */
    int64_t largest;   /* rows in the largest of them, at most what was asked for */
    int64_t run;
    thi_stream stream;
} thi_batches;

/*
 * An epoch of `rows` rows is cut into the fewest batches of at most `batch` rows (both >= 1), of even size: they differ
 * by one row at most, so that none is short and noisy. A batch that is not smaller than the data is all of them, in
 * their own order, every time.
 *
 * run = 1 shuffles single rows: the least noise, but scattered reads. A larger one shuffles runs of that many
 * consecutive rows, whose borders are other ones each epoch: for a table that is streamed, run = some hundred reads at
 * nearly the speed of the file. Rows next to each other then share a batch, which is harmless when the file is in no
 * order and adds noise when it is sorted. A run that crosses the border of two batches is split.
 *
 * Epoch e draws from (stream.seed, stream.purpose, stream.row + e).
 */
void thi_batches_open(thi_batches *batches, thi_stream stream, int64_t rows, int64_t batch, int64_t run);
/*
 * The rows of batch number `step` >= 0, counted on through the epochs (epoch step / per_epoch); returns how many were
 * written to row[0 .. largest-1].
 */
int64_t thi_batches_rows(const thi_batches *batches, int64_t step, int64_t *row);

#endif

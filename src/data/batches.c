/*
 * A random order of 0..n-1 as a keyed bijection: a Feistel network (Luby and Rackoff 1988) on the smallest power of two
 * that holds n, walked until it falls inside 0..n-1 (cycle walking: Black and Rogaway 2002), fewer than two rounds of
 * it on average from n = 33 on. Keys come from Philox, one set an order. A random turn of the positions makes each
 * number exactly equally likely at each position, whatever the network does.
 */
#include "data/batches.h"

/* Smaller networks have too few different orders. */
enum { LEAST_BITS = 6 };

/* Finaliser of splitmix64 (Steele, Lea and Flood 2014; constants of D. Stafford): every bit depends on every bit. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform on 0..n-1; the draws after those of the keys are turns. */
enum { TURN_OF_POSITIONS = THI_SHUFFLE_ROUNDS, TURN_OF_RUNS };
static int64_t turn(thi_stream stream, uint64_t index, int64_t n)
{
    int64_t drawn = (int64_t)(thi_random_uniform(stream, index) * (double)n);
    return drawn < n ? drawn : n - 1;
}

/* (place + by) mod n, without overflow */
static int64_t turned(int64_t place, int64_t by, int64_t n)
{
    return place < n - by ? place + by : place - (n - by);
}

void thi_shuffle_open(thi_shuffle *shuffle, thi_stream stream, int64_t n)
{
    int bits = LEAST_BITS;
    while (bits < 63 && (INT64_C(1) << bits) < n) {
        bits++;
    }
    *shuffle = (thi_shuffle){.n = n, .low = bits / 2, .high = bits - bits / 2};
    for (int round = 0; round < THI_SHUFFLE_ROUNDS; round++) {
        shuffle->key[round] = thi_random_bits(stream, (uint64_t)round);
    }
    shuffle->turn = turn(stream, TURN_OF_POSITIONS, n);
}

/* One pass of the network: each half in turn is changed by a keyed function of the other. */
static uint64_t network(const thi_shuffle *s, uint64_t value)
{
    const uint64_t low_mask = (UINT64_C(1) << s->low) - 1;
    const uint64_t high_mask = (UINT64_C(1) << s->high) - 1;
    uint64_t low = value & low_mask;
    uint64_t high = value >> s->low;
    for (int round = 0; round < THI_SHUFFLE_ROUNDS; round += 2) {
        low ^= mix(high ^ s->key[round]) & low_mask;
        high ^= mix(low ^ s->key[round + 1]) & high_mask;
    }
    return (high << s->low) | low;
}

int64_t thi_shuffle_at(const thi_shuffle *shuffle, int64_t position)
{
    uint64_t value = (uint64_t)turned(position, shuffle->turn, shuffle->n);
    do {
        value = network(shuffle, value);
    } while (value >= (uint64_t)shuffle->n);
    return (int64_t)value;
}

void thi_batches_open(thi_batches *batches, thi_stream stream, int64_t rows, int64_t batch, int64_t run)
{
    int64_t per_epoch = rows / batch + (rows % batch != 0);
    *batches = (thi_batches){.rows = rows,
                             .per_epoch = per_epoch,
                             .largest = rows / per_epoch + (rows % per_epoch != 0),
                             .run = run < rows ? run : rows,
                             .stream = stream};
}

/*
 * Rows of positions first .. first+count-1 of an epoch by runs. The rows are a ring, cut into runs from a random place
 * on; whole runs are shuffled, and what is left over comes last.
 */
static void rows_by_runs(const thi_batches *b, thi_stream stream, int64_t first, int64_t count, int64_t *row)
{
    thi_shuffle order;
    int64_t whole = b->rows / b->run;
    int64_t start = turn(stream, TURN_OF_RUNS, b->rows);
    thi_shuffle_open(&order, stream, whole);
    int64_t run = -1;
    int64_t begin = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t position = first + i;
        if (position / b->run != run) {
            run = position / b->run;
            begin = (run < whole ? thi_shuffle_at(&order, run) : whole) * b->run;
        }
        row[i] = turned(begin + position % b->run, start, b->rows);
    }
}

int64_t thi_batches_rows(const thi_batches *batches, int64_t step, int64_t *row)
{
    int64_t epoch = step / batches->per_epoch;
    int64_t b = step % batches->per_epoch;
    int64_t size = batches->rows / batches->per_epoch;
    int64_t larger = batches->rows % batches->per_epoch;
    int64_t first = b * size + (b < larger ? b : larger);
    int64_t count = size + (b < larger);
    thi_stream stream = batches->stream;
    stream.row += (uint64_t)epoch;
    if (batches->per_epoch == 1) {
        for (int64_t i = 0; i < count; i++) {
            row[i] = i;
        }
    } else if (batches->run > 1) {
        rows_by_runs(batches, stream, first, count, row);
    } else {
        thi_shuffle shuffle;
        thi_shuffle_open(&shuffle, stream, batches->rows);
        for (int64_t i = 0; i < count; i++) {
            row[i] = thi_shuffle_at(&shuffle, first + i);
        }
    }
    return count;
}

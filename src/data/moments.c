/*
 * Means, variances and ranges of the columns of X and of y in one pass by blocks: two passes over each block in memory,
 * then joined to what came before by the formula of T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances" (1979). The order is fixed, so the sums are always the same.
 */
#include <math.h>

#include "data/encoder.h"

/* One block: X is D x count, y count numbers. */
typedef struct block {
    double *X, *y;
    double *mean, *square, *rest; /* D + 1 each */
} block;

static double value_at(const block *b, int dims, int64_t n, int d)
{
    return d < dims - 1 ? b->X[n * (dims - 1) + d] : b->y[n];
}

/* The rounding of the mean shows in the sum of distances from it, and is taken back by it. */
static void block_moments(thi_moments *moments, block *b, int64_t count)
{
    const int dims = moments->dims;
    for (int d = 0; d < dims; d++) {
        b->mean[d] = b->square[d] = b->rest[d] = 0;
    }
    for (int64_t n = 0; n < count; n++) {
        for (int d = 0; d < dims; d++) {
            double value = value_at(b, dims, n, d);
            b->mean[d] += value;
            moments->low[d] = fmin(moments->low[d], value);
            moments->high[d] = fmax(moments->high[d], value);
        }
    }
    for (int d = 0; d < dims; d++) {
        b->mean[d] /= (double)count;
    }
    for (int64_t n = 0; n < count; n++) {
        for (int d = 0; d < dims; d++) {
            double distance = value_at(b, dims, n, d) - b->mean[d];
            b->square[d] += distance * distance;
            b->rest[d] += distance;
        }
    }
    for (int d = 0; d < dims; d++) {
        b->mean[d] += b->rest[d] / (double)count;
        b->square[d] -= b->rest[d] * b->rest[d] / (double)count;
    }
}

static void join_moments(thi_moments *moments, const block *b, int64_t count)
{
    const double before = (double)moments->count, now = (double)count, total = before + now;
    for (int d = 0; d < moments->dims; d++) {
        double step = b->mean[d] - moments->mean[d];
        moments->mean[d] += step * (now / total);
        moments->square[d] += b->square[d] + step * step * (before * now / total);
    }
    moments->count += count;
}

static thiele_status pass(thi_moments *moments, thiele_context *ctx, thi_reader *reader, block *b)
{
    const int64_t rows = reader->table->rows;
    for (int64_t first = 0; first < rows; first += THI_TABLE_BLOCK) {
        int64_t count = rows - first < THI_TABLE_BLOCK ? rows - first : THI_TABLE_BLOCK;
        thiele_status status = thi_reader_read(reader, ctx, first, count, b->X, b->y, NULL, &count);
        if (status != THIELE_OK) {
            return status;
        }
        if (count > 0) {
            block_moments(moments, b, count);
            join_moments(moments, b, count);
        }
    }
    return THIELE_OK;
}

static thiele_status make_room(thi_moments *moments, thiele_context *ctx, block *b, int dims)
{
    const size_t D = (size_t)dims;
    thiele_status status;
    moments->dims = dims + 1;
    THI_TRY(thi_alloc(ctx, &moments->mean, D + 1, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &moments->square, D + 1, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &moments->low, D + 1, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &moments->high, D + 1, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->X, THI_TABLE_BLOCK, D * sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->y, THI_TABLE_BLOCK, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->mean, D + 1, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->square, D + 1, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->rest, D + 1, sizeof(double)));
    for (size_t d = 0; d < D + 1; d++) {
        moments->low[d] = INFINITY;
        moments->high[d] = -INFINITY;
    }
out:
    return status;
}

thiele_status thi_learn_moments(thi_moments *moments, thiele_context *ctx, const thi_encoder *encoder,
                                const thiele_table *table, bool drop_missing)
{
    block b = {0};
    thi_reader reader = {0};
    thiele_status status;
    *moments = (thi_moments){0};
    THI_TRY(thi_reader_open(&reader, ctx, encoder, table, true, false, drop_missing));
    THI_TRY(make_room(moments, ctx, &b, encoder->dims));
    THI_TRY(pass(moments, ctx, &reader, &b));
out:
    thi_free(b.X);
    thi_free(b.y);
    thi_free(b.mean);
    thi_free(b.square);
    thi_free(b.rest);
    thi_reader_close(&reader);
    if (status != THIELE_OK) {
        thi_moments_clear(moments);
    }
    return status;
}

void thi_moments_clear(thi_moments *moments)
{
    thi_free(moments->mean);
    thi_free(moments->square);
    thi_free(moments->low);
    thi_free(moments->high);
    *moments = (thi_moments){0};
}

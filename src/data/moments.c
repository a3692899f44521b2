/*
 * Means, variances and ranges of the columns of X and of y in one pass by blocks: two passes over each block in memory,
 * then joined to what came before by the formula of T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances" (1979). The order is fixed, so the sums are always the same.
 */
#include <math.h>

#include "data/encoder.h"

/* One block: X is D x count, y P x count, with the weights of its rows. */
typedef struct block {
    double *X, *y, *weight;
    int64_t *count;                      /* of each dimension, values that are there */
    double *mean, *square, *rest, *mass; /* max(D, P) each; mass: their weights */
} block;

/*
 * V is dims x rows, NaN where missing. The rounding of the mean shows in the sum of distances from it, and is taken
 * back by it.
 */
static void block_spread(thi_column_spread *spread, block *b, int64_t rows, const double *V)
{
    const int dims = spread->dims;
    for (int d = 0; d < dims; d++) {
        b->mean[d] = b->square[d] = b->rest[d] = b->mass[d] = 0;
        b->count[d] = 0;
    }
    for (int64_t n = 0; n < rows; n++) {
        for (int d = 0; d < dims; d++) {
            double value = V[n * dims + d];
            bool there = !isnan(value);
            b->count[d] += there;
            b->mass[d] += there ? b->weight[n] : 0;
            b->mean[d] += there ? b->weight[n] * value : 0;
            spread->low[d] = value < spread->low[d] ? value : spread->low[d];
            spread->high[d] = value > spread->high[d] ? value : spread->high[d];
        }
    }
    for (int d = 0; d < dims; d++) {
        b->mean[d] /= b->mass[d];
    }
    for (int64_t n = 0; n < rows; n++) {
        for (int d = 0; d < dims; d++) {
            double distance = V[n * dims + d] - b->mean[d];
            distance = isnan(distance) ? 0 : distance;
            b->square[d] += b->weight[n] * distance * distance;
            b->rest[d] += b->weight[n] * distance;
        }
    }
    for (int d = 0; d < dims; d++) {
        b->mean[d] += b->rest[d] / b->mass[d];
        b->square[d] -= b->rest[d] * b->rest[d] / b->mass[d];
    }
}

static void join_spread(thi_column_spread *spread, const block *b)
{
    for (int d = 0; d < spread->dims; d++) {
        const double before = spread->mass[d], now = b->mass[d], total = before + now;
        if (b->count[d] == 0) {
            continue;
        }
        double step = b->mean[d] - spread->mean[d];
        spread->mean[d] += step * (now / total);
        spread->square[d] += b->square[d] + step * step * (before * now / total);
        spread->count[d] += b->count[d];
        spread->mass[d] = total;
    }
}

static void add_block(thi_moments *moments, const thi_encoder *encoder, block *b, int64_t rows)
{
    block_spread(&moments->inputs, b, rows, b->X);
    join_spread(&moments->inputs, b);
    block_spread(&moments->targets, b, rows, b->y);
    join_spread(&moments->targets, b);
    for (int64_t n = 0; n < rows && encoder->target[0].levels > 0; n++) {
        moments->label[encoder->signs ? b->y[n] > 0 : (int)b->y[n]] += b->weight[n];
    }
    moments->rows += rows;
    for (int64_t n = 0; n < rows; n++) {
        moments->mass += b->weight[n];
    }
}

static thiele_status pass(thi_moments *moments, thiele_context *ctx, thi_reader *reader, block *b)
{
    const int64_t rows = reader->table->rows;
    for (int64_t first = 0; first < rows; first += reader->block) {
        int64_t count = rows - first < reader->block ? rows - first : reader->block;
        const thi_room room = {.X = b->X, .y = b->y, .weight = b->weight};
        thiele_status status = thi_reader_fill(reader, ctx, first, count, &room, &count);
        if (status != THIELE_OK) {
            return status;
        }
        if (count > 0) {
            add_block(moments, reader->encoder, b, count);
        }
    }
    return THIELE_OK;
}

static thiele_status make_spread(thi_column_spread *spread, thiele_context *ctx, int dims)
{
    const size_t D = (size_t)dims;
    thiele_status status;
    spread->dims = dims;
    THI_TRY(thi_alloc(ctx, &spread->count, D, sizeof *spread->count));
    THI_TRY(thi_alloc(ctx, &spread->mass, D, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &spread->mean, D, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &spread->square, D, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &spread->low, D, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &spread->high, D, sizeof(double)));
    for (size_t d = 0; d < D; d++) {
        spread->low[d] = INFINITY;
        spread->high[d] = -INFINITY;
    }
out:
    return status;
}

static void clear_spread(thi_column_spread *spread)
{
    thi_free(spread->count);
    thi_free(spread->mass);
    thi_free(spread->mean);
    thi_free(spread->square);
    thi_free(spread->low);
    thi_free(spread->high);
}

static thiele_status make_room(thi_moments *moments, thiele_context *ctx, block *b, const thi_reader *reader)
{
    const size_t D = (size_t)reader->encoder->dims, P = (size_t)reader->encoder->targets, most = D > P ? D : P;
    thiele_status status;
    THI_TRY(make_spread(&moments->inputs, ctx, (int)D));
    THI_TRY(make_spread(&moments->targets, ctx, (int)P));
    THI_TRY(thi_alloc(ctx, &b->X, (size_t)reader->block, D * sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->y, (size_t)reader->block, P * sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->weight, (size_t)reader->block, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->count, most, sizeof *b->count));
    THI_TRY(thi_alloc(ctx, &b->mass, most, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->mean, most, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->square, most, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &b->rest, most, sizeof(double)));
out:
    return status;
}

thiele_status thi_learn_moments(thi_moments *moments, thiele_context *ctx, const thi_encoder *encoder,
                                const thiele_table *table, const thi_reading *how, bool labels_given)
{
    block b = {0};
    thi_reader reader = {0};
    thiele_status status;
    *moments = (thi_moments){0};
    THI_TRY(thi_reader_open(&reader, ctx, encoder, table, how));
    if (labels_given) {
        reader.known_from = "given by `classes`";
    }
    THI_TRY(make_room(moments, ctx, &b, &reader));
    THI_TRY(pass(moments, ctx, &reader, &b));
out:
    thi_free(b.X);
    thi_free(b.y);
    thi_free(b.weight);
    thi_free(b.count);
    thi_free(b.mass);
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
    clear_spread(&moments->inputs);
    clear_spread(&moments->targets);
    *moments = (thi_moments){0};
}

thiele_status thi_find_spread(const thi_column_spread *spread, thiele_context *ctx, int d, const char *name,
                              double *mean, double *deviation)
{
    const double least = 1e-150; /* its square is still a normal number */
    *mean = spread->mean[d];
    *deviation = sqrt(spread->square[d] / spread->mass[d]);
    if (!isfinite(*mean) || !isfinite(*deviation)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s' holds numbers too large to work with: change its unit",
                        name);
    }
    if (!(*deviation >= least)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s' varies too little to work with: change its unit", name);
    }
    return THIELE_OK;
}

/*
 * Centres of the blocks: k-means++ seeds and Lloyd's iterations over a sample of the rows, or minibatches of it
 * (Sculley 2010) when one iteration would be long; then the nearest centre of every row, chunk by chunk.
 */
#include <math.h>
#include <string.h>

#include "basis/partition_internal.h"
#include "data/batches.h"

/* A row among P centres takes about (P (30 + D) + 2500) of these on one core, to within a factor of 1.5 for D = 2..20
 * and P = 50..2,000 (measured, EPYC with AVX-512); 2500 is for fetching it. */
static const double UNIT_SECONDS = 4e-11;
/* Beyond this an iteration over the sample gives way to minibatches. */
static const double FULL_FLOPS = 4e9;
/* k-means may always take this share of what the assignment takes: 6 ms of 60 for 200,000 rows in 200 blocks, where it
 * took 4 (normal, 8 columns) to 67% (heavy tails, 2 columns) off the sum of squares that centres at random leave. */
static const double LEAST_SHARE = 0.1;
/* Lloyd's iterations end when one gains less than this. */
static const double LEAST_GAIN = 1e-3;
/* Of 200,000 rows in 200 blocks within 0.1 and 0.3 s, LEAST_PASSES = 5, 10 and 16 gave much the same sums of squares.
 */
enum {
    SAMPLE_PER_CENTRE = 50,
    LEAST_SAMPLE = 100000,
    PASSES = 20,       /* over the sample, at most; Lloyd's iterations end before */
    SEED_PASSES = 2,   /* what seeds cost */
    LEAST_PASSES = 10, /* a sample shrinks to leave time for so many, seeds included */
    LEAST_A_CENTRE = 8 /* rows of a sample that is still worth while */
};

/* --- Nearest centres -------------------------------------------------------------------------------------------- */

thiele_status thi_nearest_open(thi_nearest *near, thiele_context *ctx, int D, int64_t room, int64_t centres)
{
    const size_t bytes = (size_t)D * sizeof(double);
    *near = (thi_nearest){.D = D, .room = room};
    thiele_status status;
    THI_TRY(thi_alloc_bare(ctx, &near->X, (size_t)room, bytes));
    THI_TRY(thi_alloc_bare(ctx, &near->row, (size_t)room, sizeof *near->row));
    THI_TRY(thi_alloc(ctx, &near->shift, 1, bytes));
    THI_TRY(thi_alloc(ctx, &near->centres.C, (size_t)centres, bytes + sizeof(double)));
    THI_TRY(thi_alloc(ctx, &near->centres.weight, (size_t)centres, sizeof *near->centres.weight));
    THI_TRY(thi_clusters_open(&near->clusters, ctx, D, room, centres));
out:
    return status;
}

void thi_nearest_close(thi_nearest *near)
{
    thi_free(near->X);
    thi_free(near->row);
    thi_free(near->shift);
    thi_free(near->centres.C);
    thi_free(near->centres.weight);
    thi_clusters_close(&near->clusters);
    *near = (thi_nearest){0};
}

static thi_points points_of(const thi_nearest *near, int64_t count)
{
    return (thi_points){.D = near->D, .n = count, .X = near->X, .shift = near->shift};
}

thiele_status thi_nearest_assign(thi_nearest *near, thiele_context *ctx, int64_t count)
{
    thi_points points = points_of(near, count);
    return thi_clusters_assign(&near->clusters, ctx, &points, &near->centres, 0, true);
}

thiele_status thi_partition_assign(thi_nearest *near, const thi_scaled_rows *s, int64_t *label, double *sum)
{
    const int D = near->D;
    for (int64_t first = 0; first < s->rows->n; first += THI_PARTITION_CHUNK) {
        int64_t count = thi_least(THI_PARTITION_CHUNK, s->rows->n - first);
        for (int64_t i = 0; i < count; i++) {
            near->row[i] = first + i;
        }
        thiele_status status = thi_scaled_fetch(s, count, near->row, near->X);
        if (status == THIELE_OK) {
            status = thi_nearest_assign(near, s->ctx, count);
        }
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < count; i++) {
            int64_t k = near->clusters.near[i];
            label[first + i] = k;
            for (int d = 0; d < D; d++) {
                sum[k * D + d] += near->X[i * D + d];
            }
        }
    }
    return THIELE_OK;
}

/* --- How much to do --------------------------------------------------------------------------------------------- */

typedef struct effort {
    int64_t sample; /* rows of it; P: they are the centres */
    int64_t batch;  /* rows of an iteration */
    double rows;    /* that all iterations together may look at */
} effort;

static effort plan(int D, int64_t n, int64_t P, double seconds)
{
    int64_t sample = P < LEAST_SAMPLE / SAMPLE_PER_CENTRE ? LEAST_SAMPLE : thi_least(P, n) * SAMPLE_PER_CENTRE;
    sample = thi_least(sample, n);
    double rows = INFINITY;
    if (seconds > 0.0) {
        rows = seconds / (UNIT_SECONDS * ((double)P * (30.0 + D) + 2500.0)) - (double)n;
        rows = fmax(rows, LEAST_SHARE * (double)n);
        sample = rows < (double)LEAST_PASSES * (double)sample ? (int64_t)fmax(0.0, rows / LEAST_PASSES) : sample;
    }
    if (sample < thi_least(n, LEAST_A_CENTRE * P)) {
        return (effort){.sample = P};
    }
    effort e = {sample, sample, fmin(rows - SEED_PASSES * (double)sample, PASSES * (double)sample)};
    if ((2.0 * D + 10.0) * (double)P * (double)sample > FULL_FLOPS) {
        int64_t batch = 4 * P > 1024 ? 4 * P : 1024;
        e.batch = thi_least(batch, sample);
    }
    return e;
}

/* --- k-means ---------------------------------------------------------------------------------------------------- */

/* One row at random from each of `sample` even parts of the table, in order, and the shift. */
static thiele_status fetch_sample(thi_nearest *near, const thi_scaled_rows *s, int64_t sample)
{
    const int64_t n = s->rows->n;
    const int D = near->D;
    thi_stream stream = thi_basis_stream(s->ctx->seed, THI_PARTITION_SAMPLE);
    for (int64_t i = 0; i < sample; i++) {
        int64_t begin = thi_part_start(n, sample, i);
        int64_t size = thi_part_start(n, sample, i + 1) - begin;
        int64_t drawn = size > 1 ? (int64_t)(thi_random_uniform(stream, (uint64_t)i) * (double)size) : 0;
        near->row[i] = begin + thi_least(drawn, size - 1);
    }
    for (int64_t first = 0; first < sample; first += THI_PARTITION_CHUNK) {
        int64_t count = thi_least(THI_PARTITION_CHUNK, sample - first);
        thiele_status status = thi_scaled_fetch(s, count, near->row + first, near->X + first * D);
        if (status != THIELE_OK) {
            return status;
        }
    }
    for (int64_t i = 0; i < sample; i++) {
        for (int d = 0; d < D; d++) {
            near->shift[d] += near->X[i * D + d] / (double)sample;
        }
    }
    return THIELE_OK;
}

static thiele_status seed(thi_nearest *near, const thi_scaled_rows *s, int64_t P, int64_t sample)
{
    thi_points points = points_of(near, sample);
    thi_distinct seeds;
    thiele_status status = thi_distinct_open(&seeds, s->ctx, near->D, P);
    if (status == THIELE_OK && sample > P) {
        thi_stream stream = thi_basis_stream(s->ctx->seed, THI_PARTITION_DRAWS);
        status = thi_seeds_draw(&near->centres, s->ctx, &points, P, stream, &seeds, &near->clusters);
    } else if (status == THIELE_OK) {
        for (int64_t i = 0; i < sample; i++) {
            thi_seeds_add(&near->centres, &points, &seeds, near->X + i * near->D);
        }
    }
    thi_distinct_close(&seeds);
    return status;
}

/*
 * Iterations over the whole sample forget where a centre was; in minibatches it is the mean of all rows that ever came
 * to it. A centre that loses all its rows stays: its block is left out, and a large one is cut instead.
 */
static thiele_status iterate(thi_nearest *near, const thi_scaled_rows *s, const effort *e)
{
    const bool whole = e->batch == e->sample;
    thi_points points = points_of(near, e->sample);
    thi_batches batches;
    thi_batches_open(&batches, thi_basis_stream(s->ctx->seed, THI_PARTITION_BATCHES), e->sample, e->batch, 1);
    const int64_t count = (int64_t)fmax(0.0, e->rows / (double)batches.largest);
    points.index = whole ? NULL : near->row;
    double before = INFINITY;
    thiele_status status = THIELE_OK;
    for (int64_t b = 0; b < count; b++) {
        if (whole) {
            memset(near->centres.weight, 0, (size_t)near->centres.count * sizeof *near->centres.weight);
        } else {
            points.n = thi_batches_rows(&batches, b, near->row);
        }
        THI_TRY(thi_clusters_assign(&near->clusters, s->ctx, &points, &near->centres, 0, true));
        THI_TRY(thi_clusters_update(&near->clusters, s->ctx, &points, &near->centres));
        double cost = thi_clusters_cost(&near->clusters, &points);
        if (whole && !(cost < (1.0 - LEAST_GAIN) * before)) {
            break;
        }
        before = cost;
    }
out:
    return status;
}

thiele_status thi_partition_centres(thi_nearest *near, const thi_scaled_rows *s, int64_t P, double seconds)
{
    const int64_t n = s->rows->n;
    effort e = plan(s->rows->D, n, P, seconds);
    int64_t chunk = thi_least(n, THI_PARTITION_CHUNK);
    thiele_status status;
    THI_TRY(thi_nearest_open(near, s->ctx, s->rows->D, e.sample > chunk ? e.sample : chunk, P));
    THI_TRY(fetch_sample(near, s, e.sample));
    THI_TRY(seed(near, s, P, e.sample));
    if (e.batch > 0) {
        THI_TRY(iterate(near, s, &e));
    }
out:
    return status;
}

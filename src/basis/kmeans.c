/*
 * k-means as a choice of inducing inputs: k-means++ seeds (Arthur and Vassilvitskii 2007), then Lloyd's iterations over
 * all rows, or minibatches (Sculley 2010) when one iteration would cost more than FULL_FLOPS.
 */
#include "basis/basis.h"

#include <math.h>
#include <string.h>

#include "basis/clusters.h"
#include "data/batches.h"

/* About 0.1 s an iteration on two cores; and what all minibatches together may cost, 5 to 10 s there. */
static const double FULL_FLOPS = 4e9;
static const double BATCH_FLOPS = 4e11;
/* Lloyd's iterations end when one gains less than this: inducing inputs need no optimum, and it is a local one. */
static const double LEAST_GAIN = 1e-4;
enum { ITERATIONS = 100, LEAST_BATCHES = 10, MOST_BATCHES = 200, LEAST_SAMPLE = 20000, SAMPLE_PER_CENTRE = 20 };

typedef struct kmeans {
    thiele_context *ctx;
    const thi_basis_source *source;
    int64_t M;
    double *shift;
    int64_t *index; /* of the rows that seeds are drawn from, or of a batch; NULL: all */
    int64_t indexed;
    thi_centres centres;
    thi_clusters clusters;
    thi_distinct seeds;
} kmeans;

static thi_points points_of(const kmeans *k, bool all)
{
    return (thi_points){.D = k->source->D,
                        .n = all ? k->source->n : k->indexed,
                        .X = k->source->X,
                        .index = all ? NULL : k->index,
                        .shift = k->shift};
}

/* The mean of the points that seeds are drawn from. */
static void find_shift(kmeans *k)
{
    const int D = k->source->D;
    thi_points points = points_of(k, k->index == NULL);
    for (int64_t i = 0; i < points.n; i++) {
        const double *x = thi_point(&points, i);
        for (int d = 0; d < D; d++) {
            k->shift[d] += (x[d] - k->shift[d]) / (double)(i + 1);
        }
    }
}

/* Seeds that the draws did not find, because nearly all rows are equal or as good as equal: rows at random. */
static void fill_seeds(kmeans *k, const thi_points *points)
{
    thi_shuffle order;
    thi_shuffle_open(&order, thi_basis_stream(k->ctx->seed, THI_BASIS_NESTED), k->source->n);
    for (int64_t i = 0; i < k->source->n && k->centres.count < k->M; i++) {
        thi_seeds_add(&k->centres, points, &k->seeds, k->source->X + thi_shuffle_at(&order, i) * points->D);
    }
}

static thiele_status seed(kmeans *k)
{
    thi_points points = points_of(k, k->index == NULL);
    thi_stream stream = thi_basis_stream(k->ctx->seed, THI_BASIS_DRAWS);
    thiele_status status = thi_seeds_draw(&k->centres, k->ctx, &points, k->M, stream, &k->seeds, &k->clusters);
    fill_seeds(k, &points);
    return status;
}

/* --- Iterations ------------------------------------------------------------------------------------------------- */

static thiele_status lloyd(kmeans *k)
{
    thi_points points = points_of(k, true);
    double before = INFINITY;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < ITERATIONS; i++) {
        THI_TRY(thi_clusters_assign(&k->clusters, k->ctx, &points, &k->centres, 0, true));
        memset(k->centres.weight, 0, (size_t)k->M * sizeof *k->centres.weight);
        THI_TRY(thi_clusters_update(&k->clusters, k->ctx, &points, &k->centres));
        thi_clusters_fill_empty(&k->clusters, &points, &k->centres);
        double cost = thi_clusters_cost(&k->clusters, &points);
        if (!(cost < (1.0 - LEAST_GAIN) * before)) {
            break;
        }
        before = cost;
    }
out:
    return status;
}

/* Sculley's steps c += (x - c)/weight, a batch at a time, are weighted means: what thi_clusters_update computes. */
static thiele_status minibatches(kmeans *k, double flops_a_row)
{
    thi_batches batches;
    int64_t size = 4 * k->M < k->indexed ? 4 * k->M : k->indexed;
    size = size > 1024 || k->indexed < 1024 ? size : 1024;
    thi_batches_open(&batches, thi_basis_stream(k->ctx->seed, THI_BASIS_BATCHES), k->source->n, size, 1);
    double count = BATCH_FLOPS / (flops_a_row * (double)size);
    count = fmax(LEAST_BATCHES, fmin(MOST_BATCHES, count));
    for (int64_t b = 0; b < (int64_t)count; b++) {
        k->indexed = thi_batches_rows(&batches, b, k->index);
        thi_points points = points_of(k, false);
        thiele_status status = thi_clusters_assign(&k->clusters, k->ctx, &points, &k->centres, 0, true);
        if (status == THIELE_OK) {
            status = thi_clusters_update(&k->clusters, k->ctx, &points, &k->centres);
        }
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

/* --- The whole -------------------------------------------------------------------------------------------------- */

/* Copies distinct rows to Z, at most M + 1 of them are looked for: *chosen > M when there are more. */
static thiele_status take_distinct(kmeans *k, double *Z, int64_t *chosen)
{
    const thi_basis_source *s = k->source;
    thi_distinct set;
    thiele_status status = thi_distinct_open(&set, k->ctx, s->D, k->M + 1);
    *chosen = 0;
    for (int64_t i = 0; status == THIELE_OK && i < s->n && *chosen <= k->M; i++) {
        if (thi_distinct_add(&set, s->X + i * s->D)) {
            if (*chosen < k->M) {
                memcpy(Z + *chosen * s->D, s->X + i * s->D, (size_t)s->D * sizeof *Z);
            }
            ++*chosen;
        }
    }
    thi_distinct_close(&set);
    return status;
}

static thiele_status kmeans_open(kmeans *k, bool full)
{
    thiele_context *ctx = k->ctx;
    const size_t D = (size_t)k->source->D;
    const int64_t n = k->source->n;
    int64_t sample = SAMPLE_PER_CENTRE * k->M > LEAST_SAMPLE ? SAMPLE_PER_CENTRE * k->M : LEAST_SAMPLE;
    sample = sample < n ? sample : n;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &k->shift, D, sizeof *k->shift));
    THI_TRY(thi_alloc(ctx, &k->centres.C, (D + 1) * (size_t)k->M, sizeof *k->centres.C));
    THI_TRY(thi_alloc(ctx, &k->centres.weight, (size_t)k->M, sizeof *k->centres.weight));
    THI_TRY(thi_distinct_open(&k->seeds, ctx, k->source->D, k->M));
    THI_TRY(thi_clusters_open(&k->clusters, ctx, k->source->D, full ? n : sample, k->M));
    if (!full || sample < n) {
        thi_shuffle order;
        thi_shuffle_open(&order, thi_basis_stream(ctx->seed, THI_BASIS_SAMPLE), n);
        THI_TRY(thi_alloc(ctx, &k->index, (size_t)sample, sizeof *k->index));
        k->indexed = sample;
        for (int64_t i = 0; i < sample; i++) {
            k->index[i] = thi_shuffle_at(&order, i);
        }
    }
    find_shift(k);
out:
    return status;
}

static void kmeans_close(kmeans *k)
{
    thi_free(k->shift);
    thi_free(k->index);
    thi_free(k->centres.C);
    thi_free(k->centres.weight);
    thi_distinct_close(&k->seeds);
    thi_clusters_close(&k->clusters);
}

/* Centres in the units of X; should two have become equal, one of them. */
static thiele_status write_centres(kmeans *k, double *Z, int64_t *chosen)
{
    const int D = k->source->D;
    thi_distinct set;
    thiele_status status = thi_distinct_open(&set, k->ctx, D, k->M);
    *chosen = 0;
    for (int64_t m = 0; status == THIELE_OK && m < k->centres.count; m++) {
        double *z = Z + *chosen * D;
        for (int d = 0; d < D; d++) {
            z[d] = k->centres.C[m * (D + 1) + d] + k->shift[d];
        }
        *chosen += thi_distinct_add(&set, z);
    }
    thi_distinct_close(&set);
    return status;
}

thiele_status thi_basis_kmeans(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                               int64_t *chosen)
{
    kmeans k = {.ctx = ctx, .source = source, .M = M};
    /* A score costs 2 (D + 1) flops and the search for the best as much as some 8. */
    double flops_a_row = (2.0 * source->D + 10.0) * (double)M;
    bool full = flops_a_row * (double)source->n <= FULL_FLOPS;
    thiele_status status;
    THI_TRY(take_distinct(&k, Z, chosen));
    if (*chosen <= M) {
        goto out;
    }
    *chosen = 0;
    THI_TRY(kmeans_open(&k, full));
    THI_TRY(seed(&k));
    THI_TRY(full ? lloyd(&k) : minibatches(&k, flops_a_row));
    THI_TRY(write_centres(&k, Z, chosen));
out:
    kmeans_close(&k);
    return status;
}

/*
 * Seeds by k-means++ (Arthur and Vassilvitskii 2007): each is drawn with probability proportional to its squared
 * distance to the seeds before it. Taken one by one that reads all rows for every seed. Here distances are brought up
 * to date only now and then, by one gemm for all new seeds, and a draw with old distances is kept with probability
 * new / old: the same distribution (rejection, as in Cohen-Addad et al. 2020), at the speed of the gemm. 2 n M D flops.
 */
#include "basis/clusters.h"

#include <math.h>

bool thi_seeds_add(thi_centres *centres, const thi_points *points, thi_distinct *seeds, const double *x)
{
    if (!thi_distinct_add(seeds, x)) {
        return false;
    }
    thi_centre_set(centres, points, centres->count++, x);
    return true;
}

/* The row where the running sum of the distances passes `target`. */
static int64_t find_row(const thi_clusters *c, int64_t n, double target)
{
    int64_t block = 0;
    while ((block + 1) * THI_CLUSTER_ROWS < n && target >= c->sum[block]) {
        target -= c->sum[block++];
    }
    int64_t i = block * THI_CLUSTER_ROWS;
    int64_t end = i + THI_CLUSTER_ROWS < n ? i + THI_CLUSTER_ROWS : n;
    while (i + 1 < end && target >= c->distance[i]) {
        target -= c->distance[i++];
    }
    return i;
}

typedef struct drawing {
    thi_centres *centres;
    const thi_points *points;
    thi_distinct *seeds;
    const thi_clusters *clusters;
    thi_stream stream;
    uint64_t draws; /* random numbers used */
} drawing;

/*
 * Draws seeds from distances that know all seeds so far, until there are `until` of them, or so many draws were refused
 * that new distances are worth while.
 */
static void draw_some(drawing *d, double cost, int64_t until)
{
    const int64_t known = d->centres->count;
    for (int64_t refused = 0; d->centres->count < until && refused < 16 + (until - known);) {
        int64_t row = find_row(d->clusters, d->points->n, cost * thi_random_uniform(d->stream, d->draws++));
        const double *x = thi_point(d->points, row);
        double old = d->clusters->distance[row];
        double now = old;
        for (int64_t m = known; m < d->centres->count; m++) {
            now = fmin(now, thi_centre_distance(d->centres, d->points, m, x));
        }
        bool kept = now > 0.0 && old * thi_random_uniform(d->stream, d->draws++) < now;
        refused += !(kept && thi_seeds_add(d->centres, d->points, d->seeds, x));
    }
}

thiele_status thi_seeds_draw(thi_centres *centres, thiele_context *ctx, const thi_points *points, int64_t M,
                             thi_stream stream, thi_distinct *seeds, thi_clusters *clusters)
{
    drawing d = {centres, points, seeds, clusters, stream, 0};
    int64_t row = (int64_t)(thi_random_uniform(stream, d.draws++) * (double)points->n);
    thi_seeds_add(centres, points, seeds, thi_point(points, row < points->n ? row : points->n - 1));
    for (int64_t known = 0; centres->count < M && known < centres->count;) {
        thiele_status status = thi_clusters_assign(clusters, ctx, points, centres, known, known == 0);
        if (status != THIELE_OK) {
            return status;
        }
        double cost = thi_clusters_cost(clusters, points);
        known = centres->count;
        if (!(cost > 0.0)) {
            break;
        }
        /* A quarter more seeds hardly changes the distances: few draws are refused. */
        int64_t until = known + 1 + known / 4;
        draw_some(&d, cost, until < M ? until : M);
    }
    return THIELE_OK;
}

/* First guesses: the median heuristic for length-scales, shares of the variance for the rest. O(512^2 D) a leaf. */
#include "fit/start.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 512 };

/* A learned noise stays above this fraction of the variance of y: the factorisation needs something to stand on. */
static const double NOISE_FLOOR = 1e-10;
/* And a variance below this multiple of it: beyond, v = k - |w|^2 would lose what the floor of the noise protects. */
static const double VARIANCE_CEILING = 1e5;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double thi_variance(int64_t n, const double *y)
{
    double mean = 0.0;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        mean += y[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += (y[i] - mean) * (y[i] - mean) / (double)n;
    }
    return sum;
}

/* The median of the non-zero distances between rows (every stride-th of them) over the leaf's columns. */
static double median_distance(const thi_leaf *leaf, int64_t n, int D, const double *X, double *distance)
{
    int64_t rows = n < LOOKED_AT ? n : LOOKED_AT;
    size_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double *xi = X + (i * n / rows) * D;
        for (int64_t j = 0; j < i; j++) {
            const double *xj = X + (j * n / rows) * D;
            double sum = 0.0;
            for (int d = 0; d < leaf->dims; d++) {
                double difference = xi[leaf->dim[d]] - xj[leaf->dim[d]];
                sum += difference * difference;
            }
            if (sum > 0.0) {
                distance[count++] = sqrt(sum);
            }
        }
    }
    if (count == 0) {
        return 1.0;
    }
    qsort(distance, count, sizeof *distance, ascending);
    return distance[count / 2];
}

/* The largest range of the leaf's columns. */
static double range_of(const thi_leaf *leaf, int64_t n, int D, const double *X)
{
    double range = 0.0;
    for (int d = 0; d < leaf->dims; d++) {
        double low = INFINITY;
        double high = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            low = fmin(low, X[i * D + leaf->dim[d]]);
            high = fmax(high, X[i * D + leaf->dim[d]]);
        }
        range = fmax(range, high - low);
    }
    return range > 0.0 ? range : 1.0;
}

static void guess(thi_hyper *hyper, double value)
{
    if (!hyper->given && !hyper->fixed) {
        hyper->value = hyper->log ? log(value) : value;
    }
}

/* How many terms the variance of y is shared among. */
static int summands(const thi_node *node)
{
    if (node->type != THI_NODE_SUM) {
        return 1;
    }
    int count = 0;
    for (int c = 0; c < node->children; c++) {
        count += summands(node->child[c]);
    }
    return count;
}

static void guess_leaf(thi_hypers *hypers, const thi_leaf *leaf, double variance, int64_t n, int D, const double *X,
                       double *distance)
{
    bool circle = leaf->kind->map == &thi_features_circle;
    bool phase = leaf->kind->map == &thi_features_phase;
    double lengthscale =
        circle ? 1.0 : (phase ? range_of(leaf, n, D, X) / 3.0 : median_distance(leaf, n, D, X, distance));
    thi_hyper *own = hypers->hyper + leaf->first;
    for (int l = 0; l < leaf->lengthscales; l++) {
        guess(own + l, lengthscale);
    }
    guess(own + leaf->lengthscales, variance);
    own[leaf->lengthscales].ceiling = log(VARIANCE_CEILING * variance);
    if (leaf->kind->extra != NULL) {
        guess(own + leaf->lengthscales + 1, circle ? range_of(leaf, n, D, X) / 3.0 : 1.0);
    }
}

thiele_status thi_start_guess(thi_hypers *hypers, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                              const double *X, const double *y)
{
    double *distance;
    thiele_status status = thi_alloc(ctx, &distance, (size_t)LOOKED_AT * LOOKED_AT / 2, sizeof *distance);
    if (status != THIELE_OK) {
        return status;
    }
    /* Constant targets leave nothing to go by; any scale will do. */
    double variance = fmax(thi_variance(n, y), DBL_MIN);
    double share = variance / summands(kernel->root);
    for (int l = 0; l < kernel->leaves; l++) {
        guess_leaf(hypers, &kernel->leaf[l], share, n, kernel->dims, X, distance);
    }
    double mean = 0.0;
    for (int64_t i = 0; i < n; i++) {
        mean += y[i] / (double)n;
    }
    for (int m = 0; m < hypers->mean; m++) {
        guess(&hypers->hyper[hypers->kernel + m], m == 0 ? mean : 0.0);
    }
    thi_hyper *noise = &hypers->hyper[hypers->count - 1];
    guess(noise, 0.1 * variance);
    if (!noise->fixed) {
        noise->floor = NOISE_FLOOR * variance;
    }
    thi_free(distance);
    return THIELE_OK;
}

void thi_start_variant(thi_hypers *hypers, const thiele_kernel *kernel, double variance, double stretch, double noise)
{
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        for (int d = 0; leaf->kind->family == THI_DISTANCE && d < leaf->lengthscales; d++) {
            thi_hyper *h = &hypers->hyper[leaf->first + d];
            guess(h, exp(h->value) * stretch);
        }
    }
    guess(&hypers->hyper[hypers->count - 1], noise * variance);
}

/* First guesses: the median heuristic for length-scales, shares of the variance for the rest. O(512^2 D) a leaf. */
#include "fit/start.h"

#include <math.h>
#include <string.h>

enum { LOOKED_AT = 512 };

/* A learned noise stays above this fraction of the variance of y: the factorisation needs something to stand on. */
static const double NOISE_FLOOR = 1e-10;
/* And a variance below this multiple of it: beyond, v = k - |w|^2 would lose what the floor of the noise protects. */
static const double VARIANCE_CEILING = 1e5;

/*
 * And the slopes of a warping below this many over the standard deviation of y: rows with equal targets would be given
 * a step of their own, ever steeper, and a density without bound.
 */
static const double STEEPEST = 10.0;

/*
 * Where the mean of y is proportional to exp(f), a y that is far too large pulls at the mean of all f with its whole
 * size: it stays below so many standard deviations of the guesses, of 1 at least, above theirs. A guess from one row is
 * rather too large than too small, so that nothing else comes near.
 */
static const double MEAN_ABOVE = 3.0;

/* A function that seems to be constant may vary more from place to place than from row to row. */
static const double LEAST_OF_PRODUCTS = 0.1;

/* The number that would stand at `wanted` were they sorted (Hoare 1961); they change places. */
static double select_at(double *number, int64_t count, int64_t wanted)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        double pivot = number[wanted];
        int64_t i = low, j = high;
        while (i <= j) {
            while (number[i] < pivot) {
                i++;
            }
            while (number[j] > pivot) {
                j--;
            }
            if (i <= j) {
                double swap = number[i];
                number[i++] = number[j];
                number[j--] = swap;
            }
        }
        low = j < wanted ? i : low;
        high = i > wanted ? j : high;
    }
    return number[wanted];
}

/* The mean and population variance of every stride-th number that is there. */
static void moments(int64_t n, int stride, const double *y, double *mean, double *variance)
{
    double count = 0.0;
    *mean = *variance = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double value = y[i * stride];
        if (!isnan(value)) {
            count += 1.0;
            *mean += (value - *mean) / count;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        double d = y[i * stride] - *mean;
        *variance += isnan(d) ? 0.0 : d * d / count;
    }
}

/* The median of the non-zero distances between rows (every stride-th of them) over the leaf's columns. */
static double median_distance(const thi_leaf *leaf, int64_t n, int D, const double *X, double *distance)
{
    int64_t rows = n < LOOKED_AT ? n : LOOKED_AT;
    int64_t count = 0;
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
    return select_at(distance, count, count / 2);
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

static void guess_leaf(thi_hyper *own, const thi_leaf *leaf, double variance, const thi_rows *rows, double *distance)
{
    int64_t n = rows->n;
    int D = rows->dims;
    const double *X = rows->X;
    bool circle = leaf->kind->map == &thi_features_circle;
    bool phase = leaf->kind->map == &thi_features_phase;
    double lengthscale =
        circle ? 1.0 : (phase ? range_of(leaf, n, D, X) / 3.0 : median_distance(leaf, n, D, X, distance));
    for (int l = 0; l < leaf->lengthscales; l++) {
        guess(own + l, lengthscale);
    }
    guess(own + leaf->lengthscales, variance);
    own[leaf->lengthscales].ceiling = log(VARIANCE_CEILING * variance);
    if (leaf->kind->extra != NULL) {
        guess(own + leaf->lengthscales + 1, circle ? range_of(leaf, n, D, X) / 3.0 : 1.0);
    }
}

/* One group's kernel and mean from the mean and variance that its latent functions seem to have. */
static void guess_group(thi_hypers *hypers, const thi_latents *latents, int group, double mean, double variance,
                        const thi_rows *rows, double *distance)
{
    const thiele_kernel *kernel = latents->kernel[group];
    thi_hyper *own = hypers->hyper + hypers->first[group];
    double share = variance / summands(kernel->root);
    for (int l = 0; l < kernel->leaves; l++) {
        guess_leaf(own + kernel->leaf[l].first, &kernel->leaf[l], share, rows, distance);
    }
    for (int m = 0; m < latents->mean_parameters; m++) {
        guess(own + kernel->parameters + m, m == 0 ? mean : 0.0);
    }
}

/* noise_spread: the variance of y as one of a row of weight 1. */
static void guess_phi(thi_hypers *hypers, const thi_spec *spec, double spread, double noise_spread)
{
    thi_hyper *phi = hypers->hyper + hypers->first[hypers->groups];
    for (int i = 0; i < spec->lik->parameters; i++) {
        int power = spec->lik->phi[i].power;
        guess(&phi[i], thi_hyper_number(&phi[i]) * pow(spread, 0.5 * power));
        if (power < 0) {
            phi[i].ceiling = log(STEEPEST * pow(spread, 0.5 * power));
        }
    }
    if (hypers->noise >= 0) {
        thi_hyper *noise = &hypers->hyper[hypers->noise];
        guess(noise, 0.1 * noise_spread);
        noise->floor = noise->fixed ? 0.0 : NOISE_FLOOR * noise_spread;
    }
}

/* f (Q x n): what the likelihood takes each row's latents to be, without the offset; 0 where it has no idea. */
static void guess_latents(const thi_spec *spec, const thi_rows *rows, double *f)
{
    int Q = spec->latents.count;
    if (spec->lik->ops->guess == NULL) {
        return;
    }
    thi_likelihood_guesses(spec->lik, rows->n, rows->y, f);
    for (int64_t i = 0; i < rows->n; i++) {
        f[i * Q] -= rows->offset != NULL ? rows->offset[i] : 0.0;
    }
}

/* Mean and variance (Q) of what the latents seem to be; *common: by what rows have in common, else row by row. */
static thiele_status guess_moments(thiele_context *ctx, const thi_spec *spec, const thi_rows *rows, double *mean,
                                   double *variance, bool *common)
{
    int Q = spec->latents.count;
    double *f = NULL;
    thiele_status status = thi_start_rows(ctx, spec, rows, mean, variance, common);
    if (status != THIELE_OK || *common) {
        return status;
    }
    THI_TRY(thi_alloc(ctx, &f, (size_t)rows->n * (size_t)Q, sizeof *f));
    guess_latents(spec, rows, f);
    for (int q = 0; q < Q; q++) {
        moments(rows->n, Q, f + q, &mean[q], &variance[q]);
    }
out:
    thi_free(f);
    return status;
}

thiele_status thi_start_guess(thi_hypers *hypers, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows,
                              double *spread)
{
    const thi_latents *latents = &spec->latents;
    double *distance = NULL;
    double *mean = NULL;
    double *variance;
    /* A row of weight w has a w-th of the noise: that of all of them is as much larger as they are heavy. */
    const double heavy = thi_rows_count(rows) / (double)rows->n;
    double middle;
    bool common;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &distance, (size_t)LOOKED_AT * LOOKED_AT / 2, sizeof *distance));
    THI_TRY(thi_alloc(ctx, &mean, 2 * (size_t)latents->count, sizeof *mean));
    variance = mean + latents->count;
    THI_TRY(guess_moments(ctx, spec, rows, mean, variance, &common));
    moments(rows->n, rows->outputs, rows->y, &middle, spread);
    /* Constant targets leave nothing to go by; any scale will do. */
    *spread = *spread > 0.0 ? *spread : 1.0;
    for (int g = 0; g < latents->groups; g++) {
        /* A guess from one row says little of a function that many rows share: unless f is y itself, within reason. */
        bool direct = spec->lik->ops->standardise && variance[g] > 0.0;
        double within = common   ? fmax(variance[g], LEAST_OF_PRODUCTS)
                        : direct ? variance[g]
                                 : fmin(fmax(variance[g], 0.5), 4.0);
        guess_group(hypers, latents, g, mean[g], within, rows, distance);
        if (spec->lik->ops->log_link && latents->mean_parameters > 0) {
            int constant = hypers->first[g] + latents->kernel[g]->parameters;
            hypers->hyper[constant].ceiling = mean[g] + MEAN_ABOVE * sqrt(fmax(variance[g], 1.0));
        }
    }
    guess_phi(hypers, spec, *spread, *spread * heavy);
    *spread *= heavy;
out:
    thi_free(distance);
    thi_free(mean);
    return status;
}

static void stretch_group(thi_hypers *hypers, const thiele_kernel *kernel, int group, double stretch)
{
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        for (int d = 0; leaf->kind->family == THI_DISTANCE && d < leaf->lengthscales; d++) {
            thi_hyper *h = &hypers->hyper[hypers->first[group] + leaf->first + d];
            guess(h, exp(h->value) * stretch);
        }
    }
}

void thi_start_variant(thi_hypers *hypers, const thi_spec *spec, double spread, double stretch, double noise)
{
    for (int g = 0; g < hypers->groups; g++) {
        stretch_group(hypers, spec->latents.kernel[g], g, stretch);
    }
    if (hypers->noise >= 0) {
        guess(&hypers->hyper[hypers->noise], noise * spread);
    }
}

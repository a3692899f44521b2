/*
 * How far predictions by PIC jump where blocks meet. Some blocks b, each with the block c whose centre is nearest: rows
 * of b near the plane between the two centres, moved onto it, are predicted by both. Of all latent functions there,
 * |mean_b - mean_c| over the root of their mean variance.
 *
 * The factors of the blocks are what it costs: as many pairs as a hundredth of the fit's work has room for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

/* Of the work of the fit; and of the time that is left, which is for judging and saving the model. */
static const double SHARE = 0.01, OF_REST = 0.25;
/* How far a row may be from the plane, in distances of the centres. */
static const double NEAR = 0.2;
enum { PAIRS = 100, POINTS = 4 /* of a pair */ };

/* Points on borders, twice: as the one block sees them, and as the other. */
typedef struct borders {
    const thi_partition *partition;
    int64_t n;
    double *X; /* D x n */
    int64_t *block;
} borders;

static int64_t neighbour(const thi_partition *p, int64_t block)
{
    int64_t nearest = block;
    double least = INFINITY;
    for (int64_t b = 0; b < p->blocks; b++) {
        double gap2 = 0.0;
        for (int d = 0; d < p->D; d++) {
            double gap = p->centre[b * p->D + d] - p->centre[block * p->D + d];
            gap2 += gap * gap;
        }
        if (gap2 > 0.0 && gap2 < least) {
            least = gap2;
            nearest = b;
        }
    }
    return nearest;
}

/* to: x on the plane between two centres. Returns how far that is, in units of the distance of the centres. */
static double project(const thi_partition *p, int64_t b, int64_t c, const double *x, double *to)
{
    const double *first = p->centre + b * p->D, *second = p->centre + c * p->D;
    double along = 0.0, length2 = 0.0;
    for (int d = 0; d < p->D; d++) {
        double gap = second[d] - first[d];
        along += gap * (0.5 * (first[d] + second[d]) - p->scale[d] * x[d]);
        length2 += gap * gap;
    }
    for (int d = 0; d < p->D; d++) {
        to[d] = x[d] + (p->scale[d] != 0.0 ? along / length2 * (second[d] - first[d]) / p->scale[d] : 0.0);
    }
    return fabs(along / length2);
}

/* The points of one pair; where a third block is nearer there is no border of theirs. */
static thiele_status add_pair(borders *o, thiele_context *ctx, const double *rows, int64_t b, int64_t c)
{
    const thi_partition *p = o->partition;
    int64_t D = p->D, found, last = o->n + 2 * POINTS;
    for (int64_t i = p->start[b]; i < p->start[b + 1] && o->n < last; i++) {
        double *x = o->X + o->n * D;
        if (project(p, b, c, rows + i * D, x) > NEAR) {
            continue;
        }
        thiele_status status = thi_partition_find(p, ctx, 1, x, &found);
        if (status != THIELE_OK) {
            return status;
        }
        if (found == b || found == c) {
            memcpy(x + D, x, (size_t)D * sizeof *x);
            o->block[o->n++] = b;
            o->block[o->n++] = c;
        }
    }
    return THIELE_OK;
}

static thiele_status find_points(borders *o, thi_bfit *fit, const thi_local *local, int64_t pairs)
{
    const thi_partition *p = &local->partition;
    thi_shuffle order;
    size_t most = 2 * POINTS * (size_t)pairs;
    thiele_status status;
    o->partition = p;
    THI_TRY(thi_alloc(fit->problem.ctx, &o->X, most * (size_t)p->D, sizeof *o->X));
    THI_TRY(thi_alloc(fit->problem.ctx, &o->block, most, sizeof *o->block));
    thi_bfit_order(fit, 0, &order);
    for (int64_t i = 0; i < pairs; i++) {
        int64_t b = thi_shuffle_at(&order, i), c = neighbour(p, b);
        if (c != b) {
            THI_TRY(add_pair(o, fit->problem.ctx, local->X, b, c));
        }
    }
out:
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* numbers: 2 n for means and variances; jump: n/2 for each latent function. */
static thiele_status measure(thi_bfit *fit, const borders *o, const thi_fitted *fitted, double *numbers, double *jump)
{
    int64_t n = o->n, count = 0, clipped = 0;
    double *mean = numbers, *v = numbers + n;
    for (int q = 0; q < fit->latents; q++) {
        thi_local *local = fitted->latent[q].local;
        thiele_status status =
            thi_local_marginals(&fitted->latent[q], fit->problem.ctx, n, o->X, o->block, mean, v, &clipped);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < n; i += 2) {
            double ratio = fabs(mean[i] - mean[i + 1]) / sqrt(0.5 * (v[i] + v[i + 1]));
            if (isfinite(ratio)) {
                jump[count++] = ratio;
            }
        }
        thi_local_renew(local, local->noise); /* the factors would stay as long as the model */
    }
    if (count > 0) {
        qsort(jump, (size_t)count, sizeof *jump, ascending);
        fit->result->borders = count;
        fit->result->jump_median = 0.5 * (jump[(count - 1) / 2] + jump[count / 2]);
        fit->result->jump_largest = jump[count - 1];
    }
    return THIELE_OK;
}

/* By the flops of the fit, so that the same fit says the same; a deadline may leave less. */
static int64_t count_pairs(const thi_bfit *fit)
{
    const thi_driver *driver = fit->problem.driver;
    double evaluation = thi_bfit_sum_flops(fit, 1) + (fit->closed ? thi_bfit_pull_flops(fit, 1) : 0.0);
    double each = 2.0 * fit->latents * thi_bfit_local_flops(fit, 1);
    double room = SHARE * (double)fit->result->fit.evaluations * evaluation / each;
    double time = OF_REST * thi_budget_left(driver) / thi_budget_seconds(driver, each);
    return (int64_t)fmin(fmin(room, time), (double)thi_least(PAIRS, fit->partition.blocks));
}

thiele_status thi_bfit_borders(thi_bfit *fit, const thi_fitted *fitted)
{
    const thi_driver *driver = fit->problem.driver;
    int64_t pairs = count_pairs(fit);
    borders o = {0};
    double *numbers = NULL;
    thiele_status status = THIELE_OK;
    if (fit->partition.blocks < 2 || pairs < 1 || (driver->stopped && driver->reason == THIELE_STOP_CANCELLED)) {
        return THIELE_OK;
    }
    THI_TRY(find_points(&o, fit, fitted->latent->local, pairs));
    THI_TRY(thi_alloc(fit->problem.ctx, &numbers, (size_t)(o.n * (2 + fit->latents)), sizeof *numbers));
    THI_TRY(measure(fit, &o, fitted, numbers, numbers + 2 * o.n));
out:
    thi_free(o.X);
    thi_free(o.block);
    thi_free(numbers);
    return status;
}

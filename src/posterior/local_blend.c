/*
 * Predictions of PIC that are continuous across blocks. Each of the nearest blocks predicts x by itself, N(m_j, v_j),
 * and their mixture is taken by its moments:
 *   mean = sum_j w_j m_j,   var = sum_j w_j (v_j + (m_j - mean)^2),   w_j proportional to s_j / v_j
 * With d_1 <= d_2 <= ... the distances of x from the centres of the partition,
 *   s_j = (1 - d_j / R)^2 where d_j < R, else 0;   R = min((1 + REACH) d_1, d_(BLENDED + 1))
 * All are continuous in x, but where more than BLENDED centres are equally near, and a block is at zero before another
 * takes its place. Well inside its block x is predicted by that alone; elsewhere 1/v_j makes up for a block that knows
 * little of x.
 *
 * Of 20,000 rows in 40 blocks, 30 inducing inputs, the error to the true function was 0.053 without; with REACH = 0.5,
 * 1, 2 it is 0.050, and without 1/v_j 0.050, 0.061, 0.095.
 */
#include <math.h>
#include <string.h>

#include "posterior/local.h"

enum { BLENDED = THI_LOCAL_BLENDED };
static const double REACH = 1.0;
/* No variance is taken to be less. */
static const double LEAST = 1e-300;

/* --- weights ---------------------------------------------------------------------------------------------------------
 */

void thi_local_nearest(const thi_partition *p, const double *x, int count, int64_t *block, double *distance)
{
    for (int k = 0; k < count; k++) {
        block[k] = 0;
        distance[k] = INFINITY;
    }
    for (int64_t b = 0; b < p->blocks; b++) {
        double sum = 0.0;
        int k = count - 1;
        for (int d = 0; d < p->D; d++) {
            double gap = p->scale[d] * x[d] - p->centre[b * p->D + d];
            sum += gap * gap;
        }
        if (!(sum < distance[k])) {
            continue;
        }
        for (; k > 0 && sum < distance[k - 1]; k--) {
            distance[k] = distance[k - 1];
            block[k] = block[k - 1];
        }
        distance[k] = sum;
        block[k] = b;
    }
    for (int k = 0; k < count; k++) {
        distance[k] = sqrt(distance[k]);
    }
}

int thi_local_weights(const thi_partition *partition, const double *x, int64_t block[THI_LOCAL_BLENDED],
                      double weight[THI_LOCAL_BLENDED])
{
    int64_t near[BLENDED + 1];
    double distance[BLENDED + 1], sum = 0.0;
    thi_local_nearest(partition, x, BLENDED + 1, near, distance);
    double reach = fmin((1.0 + REACH) * distance[0], distance[BLENDED]);
    int count = 0;
    for (; count < BLENDED && distance[count] < reach; count++) {
        double share = 1.0 - distance[count] / reach;
        block[count] = near[count];
        weight[count] = share * share;
        sum += weight[count];
    }
    if (count == 0) {
        block[0] = near[0];
        weight[0] = sum = 1.0;
        count = 1;
    }
    for (int k = 0; k < count; k++) {
        weight[k] /= sum;
    }
    return count;
}

/* --- predictions -----------------------------------------------------------------------------------------------------
 */

/* Some rows, each once for every block that predicts it. */
typedef struct shares {
    int64_t count;
    int *blocks;        /* of each row */
    double *X, *weight; /* D x count, count */
    double *mean, *variance;
    int64_t *block;
} shares;

static thiele_status shares_open(shares *s, thiele_context *ctx, int D, int64_t rows)
{
    size_t room = (size_t)(BLENDED * rows);
    thiele_status status;
    THI_TRY(thi_alloc_bare(ctx, &s->blocks, (size_t)rows, sizeof *s->blocks));
    THI_TRY(thi_alloc_bare(ctx, &s->X, room * (size_t)D, sizeof *s->X));
    THI_TRY(thi_alloc_bare(ctx, &s->weight, 3 * room, sizeof *s->weight));
    THI_TRY(thi_alloc_bare(ctx, &s->block, room, sizeof *s->block));
    s->mean = s->weight + room;
    s->variance = s->mean + room;
out:
    return status;
}

static void shares_close(shares *s)
{
    thi_free(s->blocks);
    thi_free(s->X);
    thi_free(s->weight);
    thi_free(s->block);
}

static void share_rows(shares *s, const thi_partition *partition, int64_t n, const double *X)
{
    int D = partition->D;
    s->count = 0;
    for (int64_t i = 0; i < n; i++) {
        s->blocks[i] = thi_local_weights(partition, X + i * D, s->block + s->count, s->weight + s->count);
        for (int k = 0; k < s->blocks[i]; k++) {
            memcpy(s->X + s->count++ * D, X + i * D, (size_t)D * sizeof *X);
        }
    }
}

/* Moments of the mixture at one row, whose blocks begin at `first`. */
static void mix(const shares *s, int blocks, int64_t first, double *mean, double *variance)
{
    const double *m = s->mean + first, *v = s->variance + first;
    double weight[BLENDED], total = 0.0;
    for (int k = 0; k < blocks; k++) {
        weight[k] = s->weight[first + k] / fmax(v[k], LEAST);
        total += weight[k];
    }
    *mean = *variance = 0.0;
    for (int k = 0; k < blocks; k++) {
        *mean += weight[k] / total * m[k];
    }
    for (int k = 0; k < blocks; k++) {
        *variance += weight[k] / total * (v[k] + (m[k] - *mean) * (m[k] - *mean));
    }
}

thiele_status thi_local_blend(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                              double *mean, double *variance, int64_t *clipped)
{
    const thi_partition *partition = &predictor->local->partition;
    int64_t most = THI_PREDICT_WINDOW / BLENDED, unseen = 0;
    shares s = {0};
    thiele_status status;
    THI_TRY(shares_open(&s, ctx, partition->D, n < most ? n : most));
    for (int64_t first = 0; first < n; first += most) {
        int64_t count = n - first < most ? n - first : most, at = 0;
        share_rows(&s, partition, count, X + first * partition->D);
        THI_TRY(thi_local_marginals(predictor, ctx, s.count, s.X, s.block, s.mean, s.variance,
                                    variance != NULL ? clipped : &unseen));
        for (int64_t i = 0; i < count; i++) {
            double spare;
            mix(&s, s.blocks[i], at, &mean[first + i], variance != NULL ? &variance[first + i] : &spare);
            at += s.blocks[i];
        }
    }
out:
    shares_close(&s);
    return status;
}

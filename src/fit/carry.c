/* Rows taken out, and their sites found again beside anchors. See carry.h. */
#include "fit/carry.h"

#include <math.h>
#include <string.h>

/* The old rows' weight is a power of two, to this one at least; none of it is tried too. */
enum { SMALLEST_POWER = -10 };
/* Nats by which less weight must be better than more: it is one more number. */
static const double WORTH = 3.0;

/* As many rows as the learner takes at a time. */
static thi_rows part_of(const thi_online *online, const thi_rows *rows, int64_t first)
{
    thi_rows part = *rows;
    part.n = thi_least(online->settings.capacity, rows->n - first);
    part.X += first * rows->dims;
    part.y += first * rows->outputs;
    part.offset = rows->offset != NULL ? rows->offset + first : NULL;
    return part;
}

static thiele_status load(thi_online *online, thiele_context *ctx, const thi_rows *part)
{
    return thi_online_predict(online, ctx, part->n, part->X, part->offset, online->mu, online->v);
}

static void copy_sites(const thi_online *online, thi_row_sites sites, int64_t first)
{
    int64_t Q = online->latents;
    size_t bytes = (size_t)(online->n * Q) * sizeof(double);
    memcpy(sites.lambda + first * Q, online->lambda, bytes);
    memcpy(sites.nu + first * Q, online->nu, bytes);
}

/* sum -= the sites of rows */
static thiele_status take_out(thi_online *o, thiele_context *ctx, const thi_rows *rows, thi_row_sites sites,
                              thi_natural *sum)
{
    int Q = o->latents;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < rows->n; first += o->settings.capacity) {
        thi_rows part = part_of(o, rows, first);
        THI_TRY(load(o, ctx, &part));
        for (int j = 0; j < Q; j++) {
            THI_TRY(thi_online_take_out(o, ctx, j, sites.lambda + first * Q, sites.nu + first * Q, &sum[j]));
        }
    }
out:
    return status;
}

thiele_status thi_carry_without(thi_online *o, thiele_context *ctx, const thi_rows *rows, thi_row_sites sites,
                                thi_natural *sum)
{
    for (int j = 0; j < o->latents; j++) {
        thi_natural_copy(&sum[j], &o->latent[j].sum);
    }
    return take_out(o, ctx, rows, sites, sum);
}

thiele_status thi_carry_find(thi_online *o, thiele_context *ctx, const thi_rows *rows, thi_row_sites sites)
{
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < rows->n; first += o->settings.capacity) {
        thi_rows part = part_of(o, rows, first);
        THI_TRY(load(o, ctx, &part));
        THI_TRY(thi_online_find_sites(o, ctx, part.y, first));
        copy_sites(o, sites, first);
    }
out:
    return status;
}

/* --- beside anchors ----------------------------------------------------------------------------------------------
 */

/* Of rows that have faded. */
static void weaken(thi_row_sites sites, int64_t n, int latents)
{
    for (int64_t k = 0; sites.weight != NULL && k < n * latents; k++) {
        sites.lambda[k] *= sites.weight[k / latents];
        sites.nu[k] *= sites.weight[k / latents];
    }
}

/* Sites of rows at the present q, and their sum. */
static thiele_status sum_rows(thi_online *o, thiele_context *ctx, const thi_rows *rows, thi_row_sites sites,
                              thi_natural *sum)
{
    thiele_status status;
    THI_TRY(thi_carry_find(o, ctx, rows, sites));
    weaken(sites, rows->n, o->latents);
    for (int j = 0; j < o->latents; j++) {
        thi_natural_zero(&sum[j]);
    }
    THI_TRY(take_out(o, ctx, rows, sites, sum));
    for (int j = 0; j < o->latents; j++) {
        thi_natural_mix(&sum[j], -1.0, &sum[j], 0.0);
    }
out:
    return status;
}

/* Anchors as one latent function after the other sees them, and what rows say beside them. */
typedef struct weighing {
    int latents;
    thi_anchored *seen;
    thi_natural *rows, *old; /* of the rows; of the anchor at a power */
} weighing;

static thiele_status weighing_open(weighing *w, thiele_context *ctx, const thi_online *o, const thi_anchor *anchor)
{
    size_t Q = (size_t)o->latents;
    thiele_status status;
    w->latents = o->latents;
    THI_TRY(thi_alloc(ctx, &w->seen, Q, sizeof *w->seen));
    THI_TRY(thi_alloc(ctx, &w->rows, Q, sizeof *w->rows));
    THI_TRY(thi_alloc(ctx, &w->old, Q, sizeof *w->old));
    for (size_t j = 0; j < Q; j++) {
        int64_t M = o->latent[j].sum.T.rows;
        THI_TRY(thi_anchored_open(&w->seen[j], ctx, &anchor[j], &o->latent[j]));
        THI_TRY(thi_natural_open(&w->rows[j], ctx, M));
        THI_TRY(thi_natural_open(&w->old[j], ctx, M));
    }
out:
    return status;
}

static void weighing_close(weighing *w)
{
    for (int j = 0; w->old != NULL && j < w->latents; j++) {
        thi_anchored_close(&w->seen[j]);
        thi_natural_close(&w->rows[j]);
        thi_natural_close(&w->old[j]);
    }
    thi_free(w->seen);
    thi_free(w->rows);
    thi_free(w->old);
}

/* log p(rows | old ones at a power), up to a constant. */
static thiele_status evidence(const weighing *w, thiele_context *ctx, double power, double *value)
{
    double before, with;
    thiele_status status = THIELE_OK;
    *value = 0.0;
    for (int j = 0; j < w->latents; j++) {
        THI_TRY(thi_anchored_sites(&w->seen[j], ctx, power, &w->old[j]));
        THI_TRY(thi_natural_evidence(&w->old[j], ctx, &before));
        thi_natural_mix(&w->old[j], 1.0, &w->rows[j], 1.0);
        THI_TRY(thi_natural_evidence(&w->old[j], ctx, &with));
        *value += with - before;
    }
out:
    return status;
}

/* The weight of the old rows that makes the others most likely: less only where that says much more. */
static thiele_status choose_power(const weighing *w, thiele_context *ctx, double *power)
{
    double best, value;
    bool any = false;
    thiele_status status = THIELE_OK;
    *power = 1.0;
    for (int j = 0; j < w->latents; j++) {
        any = any || w->seen[j].J.rows > 0;
    }
    if (!any) {
        return status;
    }
    THI_TRY(evidence(w, ctx, 1.0, &best));
    for (int k = -1; k >= SMALLEST_POWER - 1; k--) {
        double other = k >= SMALLEST_POWER ? ldexp(1.0, k) : 0.0;
        THI_TRY(evidence(w, ctx, other, &value));
        if (value > best + WORTH) {
            best = value;
            *power = other;
        }
    }
out:
    return status;
}

thiele_status thi_carry_learn(thi_online *o, thiele_context *ctx, const thi_anchor *anchor, const thi_rows *rows,
                              thi_row_sites sites)
{
    double power;
    weighing w = {0};
    thiele_status status;
    THI_TRY(weighing_open(&w, ctx, o, anchor));
    THI_TRY(sum_rows(o, ctx, rows, sites, w.rows));
    THI_TRY(choose_power(&w, ctx, &power));
    for (int j = 0; j < o->latents; j++) {
        THI_TRY(thi_anchored_sites(&w.seen[j], ctx, power, &w.old[j]));
        thi_natural_mix(&w.old[j], 1.0, &w.rows[j], 1.0);
        THI_TRY(thi_online_put(o, ctx, j, &w.old[j]));
    }
out:
    weighing_close(&w);
    return status;
}

/*
 * Gauss-Hermite quadrature, a tensor product for Q = 2 or 3 latents: n^Q evaluations a row. The number of nodes is
 * given, or found for each row by climbing a ladder until two rules agree; the finer one is then far better than their
 * difference. Rows that never settle (sharp features, wide marginals) are handed to adaptive_panels.c when Q = 1.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

/* --- sums over a rule --------------------------------------------------------------------------------------------- */

void thi_repeat(int64_t P, const double *y, int64_t count, double *out)
{
    if (P == 1) {
        double only = y[0];
        for (int64_t k = 0; k < count; k++) {
            out[k] = only;
        }
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        memcpy(out + k * P, y, (size_t)P * sizeof *y);
    }
}

/* f = mu + sd z for `count` points of row i, as points at, at + 1, ... of the call; y is repeated. */
static void place(thi_space *space, const thi_block_rows *rows, int64_t i, int64_t at, int64_t count, const double *z)
{
    int64_t P = space->P, Q = space->Q;
    const double *mu = rows->mu + i * Q, *sd = rows->sd + i * Q;
    double *f = space->f + at * Q, *y = space->y + at * P;
    if (Q == 1) {
        double m = mu[0], s = sd[0];
        for (int64_t k = 0; k < count; k++) {
            f[k] = m + s * z[k];
        }
    } else {
        for (int64_t k = 0; k < count; k++) {
            for (int64_t q = 0; q < Q; q++) {
                f[k * Q + q] = mu[q] + sd[q] * z[k * Q + q];
            }
        }
    }
    if (rows->y != NULL) {
        thi_repeat(P, rows->y + i * P, count, y);
    }
}

static void sum_up(const thi_integrand *in, const thi_block_rows *rows, int64_t i, thi_points points, double *result)
{
    points.centre = rows->centre == NULL ? NULL : rows->centre + i * in->values;
    in->reduce(in, &points, result + i * in->results);
}

void thi_sweep_add(thi_space *space, const thi_integrand *in, const thi_rule *rule, const thi_block_rows *rows,
                   int64_t i, double *result)
{
    place(space, rows, i, 0, rule->count, rule->z);
    in->evaluate(in, rule->count, space->y, space->f, space->value);
    thi_points points = {rule->count, 0, rule->count, space->value, rule->z, rule->weight, NULL};
    sum_up(in, rows, i, points, result);
}

void thi_sweep(thi_space *space, const thi_integrand *in, const thi_rule *rule, const thi_block_rows *rows,
               double *result)
{
    int64_t Q = space->Q, most = space->points, chunk = rule->count < most ? rule->count : most,
            together = most / chunk;
    for (int64_t r = 0; r < rows->count; r++) {
        memset(result + rows->row[r] * in->results, 0, (size_t)in->results * sizeof *result);
    }
    /* A long rule goes row by row in pieces, a short one for several rows at once. */
    for (int64_t r = 0; r < rows->count && rule->count > most; r++) {
        for (int64_t k = 0; k < rule->count; k += chunk) {
            thi_rule piece = {rule->count - k < chunk ? rule->count - k : chunk, rule->columns, rule->z + k * Q,
                              rule->weight + k * rule->columns};
            thi_sweep_add(space, in, &piece, rows, rows->row[r], result);
        }
    }
    for (int64_t first = 0; first < rows->count && rule->count <= most; first += together) {
        int64_t count = rows->count - first < together ? rows->count - first : together;
        const int *row = rows->row + first;
        for (int64_t r = 0; r < count; r++) {
            place(space, rows, row[r], r * chunk, chunk, rule->z);
        }
        in->evaluate(in, count * chunk, space->y, space->f, space->value);
        for (int64_t r = 0; r < count; r++) {
            thi_points points = {count * chunk, r * chunk, chunk, space->value, rule->z, rule->weight, NULL};
            sum_up(in, rows, row[r], points, result);
        }
    }
}

/* --- the ladder --------------------------------------------------------------------------------------------------- */

/*
 * Nodes a latent, and how closely two rules must agree. The cost grows as n^Q, so more latents start lower and ask for
 * less; what the finer rule gives is some digits better than its agreement with the coarser one. Even and odd numbers
 * take turns: two even rules would agree on 1/2 for a step near the middle.
 */
static const struct {
    int levels, nodes[THI_LEVELS];
    double tolerance;
} ladders[] = {
    {5, {12, 21, 32, 65, 128}, 1e-9},
    {5, {8, 13, 20, 33, 64}, 1e-8},
    {5, {5, 8, 13, 20, 33}, 1e-5},
};

thiele_status thi_space_level(thi_space *space, thiele_context *ctx, int level, const thi_rule **rule)
{
    *rule = NULL;
    if (level >= ladders[space->Q - 1].levels) {
        return THIELE_OK;
    }
    thiele_status status = THIELE_OK;
    if (space->ladder[level].count == 0) {
        status = thi_rule_hermite(&space->ladder[level], ctx, ladders[space->Q - 1].nodes[level], space->Q);
    }
    *rule = &space->ladder[level];
    return status;
}

/* Keeps in `pending` the rows that have not settled, with `now` as their `before`. */
static int64_t keep_unsettled(thi_space *space, const thi_integrand *in, const thi_block_rows *rows, int64_t pending,
                              int climbed, double *result, int *level)
{
    double tolerance = ladders[space->Q - 1].tolerance;
    size_t bytes = (size_t)in->results * sizeof *result;
    int64_t kept = 0;
    for (int64_t r = 0; r < pending; r++) {
        int i = space->pending[r];
        double *before = space->before + i * in->results;
        const double *now = space->now + i * in->results;
        const double *centre = rows->centre == NULL ? NULL : rows->centre + i * in->values;
        if (in->settled(in, tolerance, centre, before, now)) {
            memcpy(result + i * in->results, now, bytes);
            level[i] = climbed;
        } else {
            memcpy(before, now, bytes);
            space->pending[kept++] = i;
        }
    }
    return kept;
}

/* Rows with a kink skip the ladder: their level is THI_LEVELS from the start. */
static int64_t first_pending(thi_space *space, const thi_block_rows *rows, int *level)
{
    int64_t pending = 0;
    for (int64_t r = 0; r < rows->count; r++) {
        int i = rows->row[r];
        bool kink = space->Q == 1 && rows->y != NULL &&
                    thi_has_kink(space->lik, rows->y + i * space->P, rows->mu[i], rows->sd[i]);
        level[i] = THI_LEVELS;
        if (!kink) {
            space->pending[pending++] = i;
        }
    }
    return pending;
}

thiele_status thi_climb(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_block_rows *rows,
                        double *result, int *level)
{
    int top = ladders[space->Q - 1].levels;
    int64_t pending = first_pending(space, rows, level);
    for (int climbed = 0; climbed < top && pending > 0; climbed++) {
        const thi_rule *rule;
        thiele_status status = thi_stop_ask(ctx);
        if (status == THIELE_OK) {
            status = thi_space_level(space, ctx, climbed, &rule);
        }
        if (status != THIELE_OK) {
            return status;
        }
        thi_block_rows some = *rows;
        some.count = pending;
        some.row = space->pending;
        thi_sweep(space, in, rule, &some, climbed == 0 ? space->before : space->now);
        if (climbed > 0) {
            pending = keep_unsettled(space, in, rows, pending, climbed, result, level);
        }
    }
    for (int64_t r = 0; r < pending; r++) {
        int64_t i = space->pending[r];
        memcpy(result + i * in->results, space->before + i * in->results, (size_t)in->results * sizeof *result);
    }
    return THIELE_OK;
}

/* Gathers the rows at a level into space->group. */
static thi_block_rows rows_at(thi_space *space, const thi_block_rows *rows, const int *level, int wanted)
{
    thi_block_rows some = *rows;
    some.count = 0;
    some.row = space->group;
    for (int64_t r = 0; r < rows->count; r++) {
        if (level[rows->row[r]] == wanted) {
            space->group[some.count++] = rows->row[r];
        }
    }
    return some;
}

static thiele_status again_at_levels(thi_space *space, thiele_context *ctx, const thi_integrand *in,
                                     const thi_block_rows *rows, double *result, const int *level)
{
    thiele_status status = THIELE_OK;
    for (int l = 0; l < ladders[space->Q - 1].levels && status == THIELE_OK; l++) {
        thi_block_rows some = rows_at(space, rows, level, l);
        const thi_rule *rule;
        if (some.count > 0) {
            status = thi_space_level(space, ctx, l, &rule);
            if (status == THIELE_OK) {
                thi_sweep(space, in, rule, &some, result);
            }
        }
    }
    return status;
}

thiele_status thi_ladder(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_block_rows *rows,
                         double *result, int *level, bool again)
{
    thiele_status status =
        again ? again_at_levels(space, ctx, in, rows, result, level) : thi_climb(space, ctx, in, rows, result, level);
    thi_block_rows left = rows_at(space, rows, level, THI_LEVELS);
    for (int64_t r = 0; r < left.count && status == THIELE_OK; r++) {
        int64_t i = left.row[r];
        if (space->Q > 1) {
            level[i] = ladders[space->Q - 1].levels - 1; /* the best there is */
            continue;
        }
        thi_line line = {rows->y == NULL ? NULL : rows->y + i * space->P,
                         rows->centre == NULL ? NULL : rows->centre + i * in->values, rows->mu[i], rows->sd[i]};
        status = thi_stop_ask(ctx);
        if (status == THIELE_OK) {
            status = thi_split(space, ctx, in, &line, result + i * in->results);
        }
    }
    return status;
}

/* Sites of some blocks: at their fixed point for the bound of these and its gradient, and of blocks that rows have
 * joined. */
#include <math.h>
#include <string.h>

#include "fit/blocks_sites.h"

enum { ROUNDS = 12, JOINED = 10 /* rounds of blocks that more rows have joined */ };
static const double CLOSE = 3e-5; /* nats per row that are left to gain where the gradient is taken */
static const double ENOUGH_JOINED = 1e-6;

/* --- the bound of some blocks ------------------------------------------------------------------------------------- */

/* Adds what the blocks at hand say at the sites that they have. */
static thiele_status add_at_hand(thi_bfit *fit, int64_t count, const int64_t *block)
{
    thi_block here[THI_SPARSE_LANES];
    int64_t rows;
    thiele_status status = thi_bsites_bring(fit, count, block, &rows);
    for (int q = 0; q < fit->latents && status == THIELE_OK; q++) {
        thi_bsites_look_at(fit, count, q, here);
        status = thi_sparse_sum(&fit->engine[q], fit->problem.ctx, count, here, 1.0, &fit->sums[q]);
    }
    return status;
}

/* Adds what some blocks say to the sums, and makes q of these. */
static thiele_status add_blocks(thi_bfit *fit, int64_t count, const int64_t *block)
{
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        THI_TRY(add_at_hand(fit, thi_bsites_lanes(count, first), block + first));
    }
    for (int q = 0; q < fit->latents; q++) {
        THI_TRY(thi_sparse_set(&fit->engine[q], fit->problem.ctx, &fit->sums[q]));
    }
out:
    return status;
}

thiele_status thi_bsites_converge(thi_bfit *fit, int64_t count, const int64_t *block, double *value)
{
    double gains = 0.0;
    thi_bsites_pace p = thi_bsites_first_pace;
    thiele_status status;
    for (int q = 0; q < fit->latents; q++) {
        thi_natural_zero(&fit->sums[q]);
    }
    THI_TRY(add_blocks(fit, count, block));
    for (int round = 0; round < ROUNDS && (round < 2 || gains > CLOSE * (double)(count * fit->typical)); round++) {
        gains = 0.0;
        for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
            THI_TRY(thi_bsites_visit(fit, thi_bsites_lanes(count, first), block + first, round, p.rho, &gains));
        }
        thi_bsites_adapt(fit, round, gains, &p);
    }
    *value = thi_bsites_log_z(fit);
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        THI_TRY(thi_bsites_slack(fit, thi_bsites_lanes(count, first), block + first, value));
    }
out:
    return status;
}

thiele_status thi_bsites_pull(thi_bfit *fit, int64_t count, const int64_t *block, double *gradient)
{
    const thi_hypers *hypers = fit->problem.hypers;
    thi_block here[THI_SPARSE_LANES];
    int64_t rows;
    double bound = 0.0, none = 0.0;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        int64_t lanes = thi_bsites_lanes(count, first);
        THI_TRY(thi_bsites_bring(fit, lanes, block + first, &rows));
        for (int q = 0; q < fit->latents; q++) {
            double *own = gradient + hypers->first[fit->problem.spec->latents.group[q]];
            thi_sparse_bar bar = {
                .theta = own, .mean = own + thi_bsites_prior(fit, q)->kernel->parameters, .log_noise = &none};
            thi_bsites_look_at(fit, lanes, q, here);
            for (int64_t i = 0; i < lanes; i++) {
                here[i].at.g = here[i].at.h = NULL; /* the sites are at their fixed point */
            }
            THI_TRY(thi_sparse_pull(&fit->engine[q], fit->problem.ctx, lanes, here, 1.0, &bound, &bar));
        }
    }
out:
    return status;
}

/* --- more rows ---------------------------------------------------------------------------------------------------- */

void thi_bsites_take(thi_bfit *fit, const thi_predictor *from, int64_t settled)
{
    thi_bsites *s = fit->sites;
    for (int q = 0; q < fit->latents; q++) {
        const thi_local *local = from[q].local;
        size_t bytes = (size_t)local->partition.n * sizeof *local->nu;
        memcpy(s->all_lambda + q * s->N, local->lambda, bytes);
        memcpy(s->all_nu + q * s->N, local->nu, bytes);
    }
    s->settled = settled;
}

thiele_status thi_bsites_join(thi_bfit *fit, int64_t count, const int64_t *block)
{
    double gains;
    thi_bsites_pace p = thi_bsites_first_pace;
    int64_t rows = 0;
    thiele_status status = THIELE_OK;
    THI_TRY(add_blocks(fit, count, block));
    for (int64_t i = 0; i < count; i++) {
        rows += fit->partition.start[block[i] + 1] - fit->partition.start[block[i]];
    }
    for (int round = 0; round < JOINED; round++) {
        gains = 0.0;
        for (int64_t i = 0; i < count; i += THI_SPARSE_LANES) {
            THI_TRY(thi_bsites_visit(fit, thi_bsites_lanes(count, i), block + i, round, p.rho, &gains));
        }
        if (round > 0 && gains < ENOUGH_JOINED * (double)rows) {
            break;
        }
        thi_bsites_adapt(fit, round, gains, &p);
    }
out:
    return status;
}

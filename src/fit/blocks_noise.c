/*
 * The noise of predictions by some blocks: hyperparameters may be those of a few blocks, or the targets not Gaussian at
 * all. A row sees the others of its block where predictions do (PIC, and FITC, whose blocks are single rows); else the
 * whole block is left out, as if it were new.
 */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/predictive.h"

/* Whether rows have all of what the basis leaves unexplained in their own covariance, as predictions do. */
static bool counts_once(const thi_blocks_form *form)
{
    return form->weight[THI_RESIDUAL_DIAGONAL] == 1.0 || form->weight[THI_RESIDUAL_BLOCK] == 1.0;
}

/* Whether a row stands in its block more than once, target and all. */
static bool has_twin(const thi_block *block, int D, int64_t row)
{
    size_t bytes = (size_t)D * sizeof(double);
    for (int64_t i = 0; i < block->n; i++) {
        if (i != row && block->y[i] == block->y[row] && memcmp(block->X + i * D, block->X + row * D, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Rows that are left out while their twins stay tell nothing: what others do is moved to the front. */
static int64_t drop_twins(const thi_bfit *fit, int64_t n, double *error2, double *v)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        error2[kept] = error2[i];
        v[kept] = v[i];
        kept += !has_twin(fit->block, fit->problem.source->dims, i);
    }
    return kept;
}

/* Squared errors and latent variances of a block's rows, each of them left out of its block. among: the sums have it.
 */
static thiele_status leave_rows(thi_bfit *fit, bool among, int64_t n, double *error2, double *v)
{
    thiele_status status = thi_sparse_leave_out(fit->engine, fit->problem.ctx, fit->block, among, error2, v);
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        error2[i] *= error2[i];
        v[i] = fmax(0.0, v[i] - fit->engine->noise);
    }
    return status;
}

/* The same with the block left out of the sums, of which it is a known part unless they follow a schedule. */
static thiele_status leave_block(thi_bfit *fit, bool among, int64_t n, double *error2, double *v)
{
    thi_predictor rest = {0};
    int64_t clipped = 0;
    thiele_status status;
    thi_natural_zero(fit->step);
    THI_TRY(thi_sparse_sum(fit->engine, fit->problem.ctx, 1, fit->block, 1.0, fit->step));
    thi_natural_mix(fit->step, among && fit->settings->rho_0 == 0.0 ? -1.0 : 0.0, fit->sums, 1.0);
    THI_TRY(thi_sparse_set(fit->engine, fit->problem.ctx, fit->step));
    THI_TRY(thi_sparse_freeze(fit->engine, fit->problem.ctx, fit->settings->form.conditional, &rest));
    THI_TRY(thi_predictor_marginals(&rest, fit->problem.ctx, n, fit->block->X, error2, v, &clipped));
    for (int64_t i = 0; i < n; i++) {
        double gap = fit->block->y[i] - error2[i];
        error2[i] = gap * gap;
    }
out:
    thi_predictor_clear(&rest);
    return status;
}

/*
 * Rows of some blocks; *told: the share that tells. The first blocks of a pass are among the sums wherever the steps
 * ended; where a deadline left others out, these are looked at in proportion, because new rows will lie there too.
 */
static thiele_status look(thi_bfit *fit, bool alone, thi_left_out *out, double *told)
{
    int64_t blocks = fit->partition.blocks, most = thi_least(fit->looked_at, blocks), rows, all = 0;
    int64_t seen = llround(fmin(1.0, fit->result->passes) * (double)blocks);
    int64_t first = llround((double)most * (double)seen / (double)blocks);
    thi_shuffle order;
    thiele_status status = THIELE_OK;
    thi_bfit_order(fit, 0, &order);
    out->n = 0;
    for (int64_t i = 0; i < most; i++) {
        bool among = i < first;
        int64_t block = thi_shuffle_at(&order, among ? i : seen + i - first);
        double *error2 = out->error2 + out->n, *v = out->v + out->n;
        THI_TRY(thi_bfit_load(fit, 1, &block, &rows));
        THI_TRY((alone ? leave_rows : leave_block)(fit, among, rows, error2, v));
        out->n += alone ? drop_twins(fit, rows, error2, v) : rows;
        all += rows;
    }
    *told = (double)out->n / (double)thi_most(all, 1);
out:
    return status;
}

thiele_status thi_bfit_noise(thi_bfit *fit, thi_fitted *fitted)
{
    static const double ENOUGH = 0.1; /* of the rows */
    const thi_blocks_form *form = &fit->settings->form;
    bool alone = form->weight[THI_RESIDUAL_BLOCK] == 0.0 || form->local, several = fit->partition.blocks > 1;
    size_t room = (size_t)thi_least(fit->looked_at, fit->partition.blocks) * (size_t)fit->result->largest;
    thi_left_out out = {0};
    double told;
    thiele_status status;
    if (!counts_once(form) || fit->settings->gradient || (!alone && !several)) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &out.error2, room, sizeof *out.error2));
    THI_TRY(thi_alloc(fit->problem.ctx, &out.v, room, sizeof *out.v));
    THI_TRY(look(fit, alone, &out, &told));
    if (alone && told < ENOUGH && several) {
        THI_TRY(look(fit, false, &out, &told));
    }
    THI_TRY(thi_predictive_choose(fit->problem.ctx, &out, fit->problem.spec, fit->problem.hypers, 0, fitted->latent));
out:
    thi_free(out.error2);
    thi_free(out.v);
    return status;
}

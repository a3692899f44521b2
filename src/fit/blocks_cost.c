/*
 * What the parts of a fit by blocks cost, and whether they can be had before the deadline. Flops are those of the
 * engine's comments.
 */
#include <math.h>

#include "fit/blocks_state.h"
#include "fit/budget.h"

enum { LOOKED_AT_LEAST = 4, LOOKED_AT_MOST = 16 };
enum { PASSES = 6 }; /* of sites */
static const double BYTES_A_SECOND = 1e9;
/* For want of certainty about how long a pass takes. */
static const double SURE = 1.3;

static bool has_blocks(const thi_bfit *fit)
{
    return fit->settings->form.weight[THI_RESIDUAL_BLOCK] != 0.0;
}

/* The kernel of a block and of it with Z: much of all work where there are hundreds of columns. */
static double fill_flops(const thi_bfit *fit)
{
    double M = (double)fit->M, n = (double)fit->typical;
    return 2.0 * fit->problem.source->dims * n * (M + (has_blocks(fit) ? 0.5 * n : 0.0));
}

/* With sites: a step, which takes marginals and then sums, for each latent function. */
static double step_flops(const thi_bfit *fit)
{
    double M = (double)fit->M, n = (double)fit->typical;
    double blocks = has_blocks(fit) ? 8.0 / 3.0 * n * n * n + 8.0 * M * n * n : 0.0;
    return fit->latents * (5.0 * M * M * n + blocks + 2.0 * fill_flops(fit));
}

double thi_bfit_sum_flops(const thi_bfit *fit, int64_t blocks)
{
    double M = (double)fit->M, n = (double)fit->typical;
    if (fit->sites != NULL) {
        return (double)blocks * step_flops(fit) + fit->latents * thi_bfit_set_flops(fit);
    }
    return (double)blocks *
           (2.0 * M * M * n + (has_blocks(fit) ? n * n * n / 3.0 + 2.0 * M * n * n : 0.0) + fill_flops(fit));
}

double thi_bfit_pull_flops(const thi_bfit *fit, int64_t blocks)
{
    double M = (double)fit->M, n = (double)fit->typical;
    double each = 6.0 * M * M * n + (has_blocks(fit) ? n * n * n + 6.0 * M * n * n : 0.0) + 3.0 * fill_flops(fit);
    return fit->latents * ((double)blocks * each + 3.0 * M * M * M);
}

double thi_bfit_set_flops(const thi_bfit *fit)
{
    double M = (double)fit->M;
    return 2.0 * M * M * M;
}

double thi_bfit_local_flops(const thi_bfit *fit, int64_t blocks)
{
    double M = (double)fit->M, n = (double)fit->typical;
    return fit->settings->form.local ? (double)blocks * (M * M * n + M * n * n + n * n * n / 3.0) : 0.0;
}

bool thi_bfit_affords(const thi_bfit *fit, double flops)
{
    return thi_budget_seconds(fit->problem.driver, flops) + fit->closing <= thi_budget_left(fit->problem.driver);
}

void thi_bfit_plan(thi_bfit *fit)
{
    bool local = fit->settings->form.local;
    double bytes = local ? 8.0 * (double)fit->problem.source->n * (fit->problem.source->dims + 1.0) : 0.0;
    /* The predictor, its noise by rows that are left out, and whether it is any good, both by some blocks. */
    double each =
        (fit->sites == NULL ? thi_bfit_sum_flops(fit, 1) : 0.0) + 2.0 * fit->latents * thi_bfit_local_flops(fit, 1);
    double many = thi_budget_flops(fit->problem.driver, THI_SHARE_LOOK) / each;
    fit->looked_at = (int64_t)fmax(LOOKED_AT_LEAST, fmin(fit->sites == NULL ? LOOKED_AT_MOST : 0, many));
    double flops = 2.0 * fit->latents * thi_bfit_set_flops(fit) + (double)fit->looked_at * each;
    fit->closing = thi_budget_seconds(fit->problem.driver, flops) + bytes / BYTES_A_SECOND;
}

double thi_bfit_pass_seconds(const thi_bfit *fit)
{
    double flops = (fit->sites != NULL ? PASSES : 1) * thi_bfit_sum_flops(fit, fit->partition.blocks);
    double pass = thi_budget_seconds(fit->problem.driver, flops);
    return fmin(SURE * pass + fit->result->partition_seconds + fit->closing,
                0.5 * thi_budget_left(fit->problem.driver));
}

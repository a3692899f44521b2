/*
 * What the parts of a fit by blocks cost, and whether they can be had before the deadline. Flops are those of the
 * engine's comments; the rate begins at a cautious guess and is then what the steps show.
 */
#include <math.h>

#include "fit/blocks_state.h"

static const double FIRST_RATE = 2e10, BYTES_A_SECOND = 1e9;
/* How much of a new rate counts. */
static const double SHARE_OF_NEW = 0.3;

static bool has_blocks(const thi_bfit *fit)
{
    return fit->settings->form.weight[THI_RESIDUAL_BLOCK] != 0.0;
}

double thi_bfit_sum_flops(const thi_bfit *fit, int64_t blocks)
{
    double M = (double)fit->M, n = (double)fit->typical;
    return (double)blocks * (2.0 * M * M * n + (has_blocks(fit) ? n * n * n / 3.0 + 2.0 * M * n * n : 0.0));
}

double thi_bfit_pull_flops(const thi_bfit *fit, int64_t blocks)
{
    double M = (double)fit->M, n = (double)fit->typical;
    return (double)blocks * (6.0 * M * M * n + (has_blocks(fit) ? n * n * n + 6.0 * M * n * n : 0.0)) + 3.0 * M * M * M;
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
    const thi_driver *d = fit->driver;
    return d->deadline <= 0.0 || thi_seconds() - d->started + flops / fit->rate + fit->closing <= d->deadline;
}

void thi_bfit_took(thi_bfit *fit, double flops, double seconds)
{
    fit->rate += SHARE_OF_NEW * (flops / fmax(seconds, 1e-9) - fit->rate);
}

void thi_bfit_plan(thi_bfit *fit)
{
    bool local = fit->settings->form.local;
    double bytes = local ? 8.0 * (double)fit->source->n * (fit->source->dims + 1.0) : 0.0;
    fit->rate = FIRST_RATE;
    fit->closing = 2.0 * thi_bfit_set_flops(fit) / fit->rate + bytes / BYTES_A_SECOND;
}

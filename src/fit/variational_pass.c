/* One evaluation of the bound at the present values: what the pass over rows (pass.h) is given, and what is wanted. */
#include "fit/variational_state.h"

#include <string.h>

/* What the engine takes, with q from the sites where they stay in w. */
static thiele_status present(thi_vfit *fit, thi_variational_at *at)
{
    bool white = fit->natural && fit->white;
    *at = (thi_variational_at){.Z = fit->Z_of,
                               .q = white          ? fit->whitened.q
                                    : fit->natural ? NULL
                                                   : fit->vector.x,
                               .sites = fit->sites,
                               .fresh = fit->fresh,
                               .narrow = fit->narrow};
    return white ? thi_white_take(fit) : THIELE_OK;
}

thiele_status thi_vfit_begin(thi_vfit *fit)
{
    thi_variational_at q;
    thiele_status status;
    THI_TRY(present(fit, &q));
    THI_TRY(thi_pass_ready(&fit->pass, &q));
    fit->fresh = false;
out:
    return status;
}

/* Clears the gradient and names what is to be added to it. */
static thiele_status begin_pass(thi_vfit *fit, thi_wanted wanted)
{
    bool any = wanted.q || wanted.prior;
    thi_variational_at q;
    thiele_status status;
    memset(fit->vector.bar, 0, (size_t)thi_vfit_size(fit) * sizeof *fit->vector.bar);
    fit->bar = (thi_adjoints){.q = wanted.q ? fit->vector.bar : NULL,
                              .theta = wanted.prior ? fit->bars.theta : NULL,
                              .mean = wanted.prior ? fit->bars.mean : NULL,
                              .Z = wanted.prior ? fit->bars.Z : NULL};
    fit->narrow = !wanted.prior;
    THI_TRY(present(fit, &q));
    THI_TRY(thi_pass_begin(&fit->pass, &q, any ? &fit->bar : NULL));
    fit->fresh = false;
out:
    return status;
}

/* Where the gradient in hyperparameters goes: NULL where none are learned. */
static double *hypers_of(const thi_vfit *fit)
{
    int64_t first = fit->vector.first[THI_PART_KERNEL];
    return first < fit->vector.first[THI_PART_Z] ? fit->vector.bar + first : NULL;
}

thiele_status thi_vfit_evaluate(thi_vfit *fit, const thi_part *part, thi_wanted wanted)
{
    thiele_status status;
    THI_TRY(begin_pass(fit, wanted));
    THI_TRY(thi_pass_over(&fit->pass, part, wanted));
    THI_TRY(thi_pass_end(&fit->pass, wanted.prior || wanted.phi ? hypers_of(fit) : NULL));
out:
    return status;
}

thiele_status thi_vfit_pull_some(thi_vfit *fit, thi_next_rows next, void *arg)
{
    const thi_wanted wanted = {.step = true};
    thi_pass *pass = &fit->pass;
    int64_t count;
    thiele_status status;
    THI_TRY(begin_pass(fit, wanted));
    while ((count = next(arg, pass->capacity, pass->row)) > 0) {
        THI_TRY(thi_pass_batch(pass, count, pass->row, 1.0, (uint64_t)pass->row[0], wanted));
        pass->rows_done += (double)count;
    }
    THI_TRY(thi_pass_end(pass, NULL));
out:
    return status;
}

thiele_status thi_vfit_expect_again(thi_vfit *fit)
{
    return thi_pass_again(&fit->pass, hypers_of(fit));
}

void thi_vfit_step(thi_vfit *fit, double rho)
{
    thi_pass_step(&fit->pass, rho, &(thi_variational_at){.sites = fit->sites});
}

bool thi_vfit_stopped(const thi_vfit *fit)
{
    return thi_driver_stopped(fit->problem.driver) ||
           fit->pass.rows_done >= fit->passes * (double)fit->problem.source->n;
}

void thi_vfit_report(thi_vfit *fit, double value, double size, int64_t rows)
{
    const thi_found *at = &fit->pass.at;
    thi_step step = {.value = value, .expected = at->expected, .divergence = at->kl, .size = size, .rows = rows};
    thi_driver_step(fit->problem.driver, &step);
}

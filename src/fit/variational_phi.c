/*
 * Parameters of the likelihood by themselves. At fixed q the bound sees them through the rows' expectations alone,
 * which need no matrices: a climb to their optimum costs less than one natural step. By turns with such steps on a few
 * rows it brings a scale of the noise that was guessed from y alone near to that of the residuals, before any search
 * that moves kernels too would explain the difference by them.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

#include "optim/lbfgs.h"

enum { TURNS = 5, STEPS = 2, CLIMB = 10 };
/* Of log parameters: turns that move none of them by more than this are the last. */
static const double NEAR = 0.05;

typedef struct phi_climb {
    thi_vfit *fit;
    double *x; /* the whole vector */
} phi_climb;

static int64_t phi_count(const thi_vfit *fit)
{
    return fit->vector.first[THI_PART_PHI + 1] - fit->vector.first[THI_PART_PHI];
}

static thiele_status objective(void *arg, const double *phi, double *value, double *gradient)
{
    phi_climb *c = arg;
    thi_vfit *fit = c->fit;
    int64_t first = fit->vector.first[THI_PART_PHI], count = phi_count(fit);
    thiele_status status;
    memcpy(c->x + first, phi, (size_t)count * sizeof *phi);
    THI_TRY(thi_vfit_take(fit, c->x));
    THI_TRY(thi_vfit_expect_again(fit));
    *value = -fit->pass.at.expected - fit->pass.at.log_prior;
    for (int64_t i = 0; i < count; i++) {
        gradient[i] = -fit->vector.bar[first + i];
    }
out:
    return status;
}

static bool stop(void *arg)
{
    return thi_vfit_stopped(((phi_climb *)arg)->fit);
}

static void confine(void *arg, double *phi)
{
    phi_climb *c = arg;
    int64_t first = c->fit->vector.first[THI_PART_PHI];
    size_t size = (size_t)phi_count(c->fit) * sizeof *phi;
    memcpy(c->x + first, phi, size);
    thi_vfit_confine(c->fit, c->x);
    memcpy(phi, c->x + first, size);
}

/* To the optimum at the marginals of the rows that were looked at last. *moved: the furthest that a parameter went. */
static thiele_status climb(phi_climb *c, double *phi, double *moved)
{
    thi_vfit *fit = c->fit;
    int64_t first = fit->vector.first[THI_PART_PHI], count = phi_count(fit);
    thi_lbfgs_options options = {CLIMB, 1e-5, fit->tolerance * (double)fit->problem.source->n, stop, confine};
    thi_lbfgs_result run;
    double *before = phi + count;
    thiele_status status;
    *moved = 0.0;
    memcpy(c->x, fit->vector.x, (size_t)thi_vfit_size(fit) * sizeof *c->x);
    memcpy(phi, fit->vector.x + first, (size_t)count * sizeof *phi);
    memcpy(before, phi, (size_t)count * sizeof *phi);
    status = thi_lbfgs(fit->problem.ctx, (int)count, phi, objective, c, &options, &run);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        memcpy(phi, before, (size_t)count * sizeof *phi);
        status = THIELE_OK;
    }
    if (status != THIELE_OK) {
        return status;
    }
    memcpy(c->x + first, phi, (size_t)count * sizeof *phi);
    THI_TRY(thi_vfit_take(fit, c->x));
    for (int64_t i = 0; i < count; i++) {
        *moved = fmax(*moved, fabs(phi[i] - before[i]));
    }
out:
    return status;
}

thiele_status thi_vfit_first_phi(thi_vfit *fit)
{
    phi_climb c = {.fit = fit};
    thi_sites_work work = {0};
    double tolerance = fit->tolerance * (double)fit->problem.source->n, *phi = NULL, moved = INFINITY;
    bool free = phi_count(fit) > 0;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &c.x, (size_t)thi_vfit_size(fit), sizeof *c.x));
    THI_TRY(thi_alloc(fit->problem.ctx, &phi, (size_t)(2 * phi_count(fit)), sizeof *phi));
    THI_TRY(thi_sites_work_open(&work, fit));
    fit->white = true;
    THI_TRY(thi_sites_converge(fit, &thi_all_rows, &work, tolerance, STEPS));
    for (int turn = 0; free && turn < TURNS && moved > NEAR && !thi_vfit_stopped(fit); turn++) {
        THI_TRY(climb(&c, phi, &moved));
        THI_TRY(thi_sites_converge(fit, &thi_all_rows, &work, tolerance, STEPS));
    }
out:
    thi_free(c.x);
    thi_free(phi);
    thi_sites_work_close(&work);
    return status;
}

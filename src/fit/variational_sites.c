/*
 * Sites at fixed kernels and Z: natural-gradient steps over a set of rows to their fixed point (math.md section 3). The
 * step of size 1 from (T, t) leads to sites that (g, h) alone determine; a shorter one is a point on the line between
 * them, so that halving a step takes no further look at the rows where it began. Copies of sites hold the lower
 * triangle of T by columns, then t, for each latent.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

enum { LEAST_STEPS = 8 };
/* Steps below this are not worth a pass: what they cannot improve is taken as converged. */
static const double SMALLEST_STEP = 1.0 / 1024.0;

int64_t thi_sites_size(const thi_shape *shape)
{
    int64_t M = shape->inducing;
    return shape->latents * (M * (M + 1) / 2 + M);
}

/* Calls visit for every stretch of numbers of the sites, in the order of a copy. */
static void walk(const thi_vfit *fit, double *copy, void (*visit)(double *own, double *copy, int64_t count))
{
    int64_t M = fit->shape.inducing;
    for (int q = 0; q < fit->shape.latents; q++) {
        thi_matrix T = fit->sites[q].sum.T;
        for (int64_t j = 0; j < M; j++) {
            visit(T.data + j + j * T.ld, copy, M - j);
            copy += M - j;
        }
        visit(fit->sites[q].sum.t, copy, M);
        copy += M;
    }
}

static void read_stretch(double *own, double *copy, int64_t count)
{
    memcpy(copy, own, (size_t)count * sizeof *own);
}

static void write_stretch(double *own, double *copy, int64_t count)
{
    memcpy(own, copy, (size_t)count * sizeof *own);
}

void thi_sites_keep(const thi_vfit *fit, double *copy)
{
    walk(fit, copy, read_stretch);
}

void thi_sites_put(thi_vfit *fit, const double *copy)
{
    walk(fit, (double *)copy, write_stretch);
}

void thi_sites_clear(thi_vfit *fit)
{
    for (int q = 0; q < fit->shape.latents; q++) {
        thi_natural_zero(&fit->sites[q].sum);
    }
}

void thi_sites_scale(thi_vfit *fit, double factor)
{
    for (int q = 0; q < fit->shape.latents; q++) {
        thi_natural_mix(&fit->sites[q].sum, factor, &fit->sites[q].sum, 0.0);
    }
}

/* Without sites there is nothing to move to the factor of the present values; what was kept belongs to that factor. */
thiele_status thi_sites_return(thi_vfit *fit, const double *copy)
{
    thiele_status status = THIELE_OK;
    if (!fit->white) {
        thi_sites_clear(fit);
        status = thi_vfit_begin(fit);
    }
    if (status == THIELE_OK) {
        thi_sites_put(fit, copy);
    }
    return status;
}

thiele_status thi_sites_work_open(thi_sites_work *work, const thi_vfit *fit)
{
    size_t size = (size_t)thi_sites_size(&fit->shape);
    *work = (thi_sites_work){0};
    thiele_status status = thi_alloc(fit->problem.ctx, &work->from, size, sizeof *work->from);
    return status == THIELE_OK ? thi_alloc(fit->problem.ctx, &work->to, size, sizeof *work->to) : status;
}

void thi_sites_work_close(thi_sites_work *work)
{
    thi_free(work->from);
    thi_free(work->to);
}

/* The sites become from + rho (to - from). `to` holds them afterwards, unless rho = 1 where it stays. */
static void set_between(thi_vfit *fit, const thi_sites_work *work, double rho)
{
    int64_t size = thi_sites_size(&fit->shape);
    if (rho < 1.0) {
        for (int64_t i = 0; i < size; i++) {
            work->to[i] = work->from[i] + rho * (work->to[i] - work->from[i]);
        }
    }
    thi_sites_put(fit, work->to);
}

void thi_sites_mix(thi_vfit *fit, const thi_sites_work *work, double rho)
{
    thi_sites_keep(fit, work->to);
    set_between(fit, work, rho);
}

static const thi_wanted for_step = {.step = true};

static bool was_stopped(const thi_vfit *fit, thiele_status status)
{
    return status == THIELE_ERROR_NUMERIC && fit->pass.may_stop && fit->problem.driver->stopped;
}

/* An evaluation that may fail: *good when it did not, and the bound is at least `least`. */
static thiele_status try_sites(thi_vfit *fit, const thi_part *part, double least, bool *good)
{
    thiele_status status = thi_vfit_evaluate(fit, part, for_step);
    *good = status == THIELE_OK && fit->pass.at.bound >= least;
    if (status == THIELE_ERROR_NUMERIC && !was_stopped(fit, status)) {
        thi_recover(fit->problem.ctx);
        status = THIELE_OK;
    }
    return status;
}

/* One step, after an evaluation that pulled: *rho is what was taken; 0: none was good, and the sites are as before. */
static thiele_status step(thi_vfit *fit, const thi_part *part, const thi_sites_work *work, double tolerance,
                          double *rho)
{
    double least = fit->pass.at.bound - tolerance;
    bool good = false;
    thi_sites_keep(fit, work->from);
    thi_vfit_step(fit, 1.0);
    thi_sites_keep(fit, work->to);
    set_between(fit, work, *rho);
    while (*rho >= SMALLEST_STEP) {
        thiele_status status = try_sites(fit, part, least, &good);
        if (good) {
            return THIELE_OK;
        }
        if (status != THIELE_OK && !was_stopped(fit, status)) {
            return status;
        }
        *rho = status == THIELE_OK ? 0.5 * *rho : 0.0;
        set_between(fit, work, 0.5);
    }
    *rho = 0.0;
    thi_sites_put(fit, work->from);
    return THIELE_OK;
}

/* Where not even q = p can be evaluated (rates under a wide prior): sites at the likelihood's guesses, or a part of
 * them.
 */
static thiele_status start_at_guesses(thi_vfit *fit, const thi_part *part)
{
    enum { HALVINGS = 30 };
    bool good = false;
    fit->pass.guessing = true;
    thiele_status status = thi_vfit_evaluate(fit, part, for_step);
    fit->pass.guessing = false;
    if (status != THIELE_OK) {
        return status;
    }
    thi_vfit_step(fit, 1.0);
    for (int i = 0; i < HALVINGS && status == THIELE_OK && !good; i++) {
        status = try_sites(fit, part, -INFINITY, &good);
        if (!good) {
            thi_sites_scale(fit, 0.5);
        }
    }
    return status == THIELE_OK && !good ? thi_vfit_evaluate(fit, part, for_step) : status;
}

/* Whether q = p. */
static bool is_prior(const thi_vfit *fit)
{
    double sum = 0.0;
    for (int q = 0; q < fit->shape.latents; q++) {
        sum += thi_blas_dot(fit->shape.inducing, fit->sites[q].sum.t, fit->sites[q].sum.t);
    }
    return sum == 0.0;
}

/*
 * At the sites of an earlier call if they are of use, else at q = p; where the likelihood cannot tell f from -f, all
 * slopes vanish there, and it is at its guesses.
 */
static thiele_status start(thi_vfit *fit, const thi_part *part)
{
    bool good;
    if (fit->settings->even && is_prior(fit)) {
        return start_at_guesses(fit, part);
    }
    thiele_status status = try_sites(fit, part, -INFINITY, &good);
    if (status == THIELE_OK && !good) {
        thi_sites_clear(fit);
        status = try_sites(fit, part, -INFINITY, &good);
    }
    return status == THIELE_OK && !good ? start_at_guesses(fit, part) : status;
}

thiele_status thi_sites_converge(thi_vfit *fit, const thi_part *part, const thi_sites_work *work, double tolerance,
                                 int steps)
{
    thiele_status status;
    double rho = 1.0;
    bool afresh = fit->conjugate && part->row == NULL;
    if (afresh) {
        thi_sites_keep(fit, work->from);
        thi_sites_clear(fit);
    }
    status = start(fit, part);
    if (afresh && was_stopped(fit, status)) {
        thi_sites_put(fit, work->from); /* what there was is better than nothing */
    }
    THI_TRY(status);
    if (fit->conjugate) {
        thi_vfit_step(fit, 1.0);
        return THIELE_OK;
    }
    for (int taken = 0; taken < steps; taken++) {
        double before = fit->pass.at.bound, tried = rho;
        THI_TRY(step(fit, part, work, tolerance, &rho));
        /* A stop is heard once there is something to keep: what the first steps gain is most of it. */
        bool enough = fit->pass.may_stop || taken >= LEAST_STEPS;
        if (rho == 0.0 || fabs(fit->pass.at.bound - before) < tolerance * rho || (enough && thi_vfit_stopped(fit))) {
            break;
        }
        rho = rho < tried ? rho : fmin(1.0, 2.0 * rho);
    }
out:
    return status;
}

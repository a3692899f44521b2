/*
 * What a decoupled fit chooses beyond its weights: values of kernel and mean, and how far the mean follows the rows.
 *
 * With few functions in beta a variational fit takes for noise what they cannot follow, and its functions are too
 * smooth for a mean that has many; exact regression on some rows has no such fault, but sees only those. On the way
 * from the former's values to the latter's, kernel and mean in logs where they are logs, the decoupled bound with its
 * weights at their optimum has a maximum: some steps find about where. (A third of the way on Protein, where that took
 * 7% off the error of other training rows.)
 *
 * The noise that the bound likes has what beta leaves unexplained in it, and makes for a mean that is too smooth. The
 * bound is one for any mean: the mean is made with a part of that noise, the part by which held-out rows are predicted
 * best, as long as the bound stays above that of the variational fit.
 */
#include <math.h>
#include <string.h>

#include "fit/decoupled_sweep.h"

enum { TRIALS = 4, PARTS = 4 };
static const double FIRST_STEP = 1.0 / 3.0, PART = 1.0 / 3.0;
/* Standard errors by which held-out rows must gain: the bound pays for it. */
static const double SURELY = 2.0;

/* All that a trial changes. */
typedef struct place {
    double *x, *hypers, *error2, *v;
    int64_t held;
} place;

static thiele_status place_open(place *p, const thi_dfit *fit)
{
    thiele_status status;
    *p = (place){.held = fit->left_out.n};
    THI_TRY(thi_alloc(fit->problem.ctx, &p->x, (size_t)fit->vector.whole, sizeof *p->x));
    THI_TRY(thi_alloc(fit->problem.ctx, &p->hypers, (size_t)fit->problem.hypers->count, sizeof *p->hypers));
    THI_TRY(thi_alloc(fit->problem.ctx, &p->error2, (size_t)p->held, sizeof *p->error2));
    THI_TRY(thi_alloc(fit->problem.ctx, &p->v, (size_t)p->held, sizeof *p->v));
out:
    return status;
}

static void place_close(place *p)
{
    thi_free(p->x);
    thi_free(p->hypers);
    thi_free(p->error2);
    thi_free(p->v);
}

static void place_keep(place *p, const thi_dfit *fit)
{
    size_t held = (size_t)p->held * sizeof(double);
    memcpy(p->x, fit->vector.x, (size_t)fit->vector.whole * sizeof *p->x);
    memcpy(p->error2, fit->left_out.error2, held);
    memcpy(p->v, fit->left_out.v, held);
    thi_hypers_keep(fit->problem.hypers, p->hypers);
}

static thiele_status place_return(const place *p, thi_dfit *fit)
{
    size_t held = (size_t)p->held * sizeof(double);
    memcpy(fit->vector.x, p->x, (size_t)fit->vector.whole * sizeof *p->x);
    memcpy(fit->left_out.error2, p->error2, held);
    memcpy(fit->left_out.v, p->v, held);
    thi_hypers_load(fit->problem.hypers, p->hypers);
    return thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
}

/* The values `share` of the way; the noise is found by itself. */
static thiele_status go_to(thi_dfit *fit, const double *learned, double share)
{
    thi_hypers *hypers = fit->problem.hypers;
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed && i != hypers->noise) {
            hypers->hyper[i].value = learned[i] + share * (fit->explored.value[i] - learned[i]);
        }
    }
    return thi_hypers_apply(hypers, fit->problem.ctx, fit->problem.spec);
}

static double log_prior_of(const thi_dfit *fit)
{
    const thi_hypers *hypers = fit->problem.hypers;
    memset(fit->pass.hyper_bar, 0, (size_t)hypers->count * sizeof *fit->pass.hyper_bar);
    return thi_hypers_log_prior(hypers, fit->pass.hyper_bar);
}

/* Sweeps at other values, as long as they may end above *value; where they cannot be made it is -infinity then. */
static thiele_status try_values(thi_dfit *fit, const thi_course *c, const double *learned, double share, double *value)
{
    thi_course other = *c;
    thiele_status status = go_to(fit, learned, share);
    if (status == THIELE_OK) {
        other.least = *value - log_prior_of(fit);
        status = thi_sweep_course(fit, &other, value);
        *value += log_prior_of(fit);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        *value = -INFINITY;
        return THIELE_OK;
    }
    return status;
}

static thiele_status climb(thi_dfit *fit, const thi_course *c, double value, place *before)
{
    double *learned = NULL, at = 0.0, step = FIRST_STEP, other;
    thiele_status status = THIELE_OK;
    if (fit->explored.count == 0 || thi_hypers_free(fit->problem.hypers) <= 1 || fit->sparse->iterations < 0) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &learned, (size_t)fit->problem.hypers->count, sizeof *learned));
    thi_hypers_keep(fit->problem.hypers, learned);
    value += log_prior_of(fit);
    for (int i = 0; i < TRIALS && at + step <= 1.0 && thi_sweep_has_time(fit, c); i++) {
        place_keep(before, fit);
        other = value;
        THI_TRY(try_values(fit, c, learned, at + step, &other));
        if (other > value) {
            at += step;
            value = other;
        } else {
            THI_TRY(place_return(before, fit));
            THI_TRY(thi_dfit_ready(fit));
            step *= 0.5;
            i = step < 0.5 * FIRST_STEP ? TRIALS : i;
        }
    }
out:
    thi_free(learned);
    return status;
}

/* Whether squared errors of the held-out rows are below those of before, row by row, by more than chance. */
static bool is_surely_closer(const place *before, const thi_left_out *now)
{
    double n = (double)before->held, sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < before->held; i++) {
        double gain = before->error2[i] - now->error2[i];
        sum += gain;
        squares += gain * gain;
    }
    return sum > SURELY * sqrt(fmax(squares - sum * sum / n, 0.0));
}

static thiele_status loosen(thi_dfit *fit, thi_course *c, place *before)
{
    double value;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < PARTS && thi_sweep_has_time(fit, c); i++) {
        thi_course next = *c;
        next.ratio *= PART;
        place_keep(before, fit);
        THI_TRY(thi_sweep_course(fit, &next, &value));
        if (!is_surely_closer(before, &fit->left_out) || value < fit->floor) {
            THI_TRY(place_return(before, fit));
            THI_TRY(thi_dfit_ready(fit));
            break;
        }
        *c = next;
    }
out:
    return status;
}

thiele_status thi_dfit_values(thi_dfit *fit, thi_course *c, double value)
{
    place before;
    thiele_status status;
    THI_TRY(place_open(&before, fit));
    THI_TRY(climb(fit, c, value, &before));
    THI_TRY(loosen(fit, c, &before));
out:
    place_close(&before);
    return status;
}

/*
 * What a decoupled fit chooses beyond its weights: values of kernel and mean, and how far the mean follows the rows.
 *
 * With few functions in beta a variational fit takes for noise what they cannot follow, and its functions are too
 * smooth for a mean that has many; exact regression on some rows has no such fault, but sees only those. On the way
 * from the former's values to the latter's, kernel and mean in logs where they are logs, the decoupled bound with its
 * weights at their optimum has a maximum: some steps find about where, by some rows that are learned from and the
 * errors of held-out ones for all others. (A third of the way on Protein, where that took 5% off the error of other
 * training rows.)
 *
 * The noise that the bound likes has what beta leaves unexplained in it, and makes for a mean that is too smooth. The
 * bound is one for any mean, and near its maximum in the ratio of the mean's noise to its own it is flat while the
 * error is not: the mean is made with a part of that noise, so small that the bound is still above that of the
 * variational fit, where this brings it nearer to held-out rows.
 */
#include <math.h>
#include <string.h>

#include "fit/decoupled_sweep.h"

enum { RATIOS = 3 };
static const double FIRST_RATIO = 0.5;
/* Of the log of a ratio: less is not worth sweeps. */
static const double LEAST_CHANGE = 0.2;

/* All that a trial changes; error2 and v of each latent, one after the other. */
typedef struct place {
    double *x, *hypers, *error2, *v;
    int64_t held;
} place;

/* The mean squared error of held-out rows over all targets. */
static double error_of(const thi_dfit *fit)
{
    double sum = 0.0;
    for (int q = 0; q < fit->latents->count; q++) {
        sum += thi_left_out_error(&fit->left_out[q]);
    }
    return sum / fit->latents->count;
}

static thiele_status place_open(place *p, const thi_dfit *fit)
{
    int64_t held = fit->held * fit->latents->count;
    thiele_status status;
    *p = (place){.held = fit->held};
    THI_TRY(thi_alloc(fit->problem.ctx, &p->x, (size_t)fit->vector.whole, sizeof *p->x));
    THI_TRY(thi_alloc(fit->problem.ctx, &p->hypers, (size_t)fit->problem.hypers->count, sizeof *p->hypers));
    THI_TRY(thi_alloc(fit->problem.ctx, &p->error2, (size_t)held, sizeof *p->error2));
    THI_TRY(thi_alloc(fit->problem.ctx, &p->v, (size_t)held, sizeof *p->v));
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
    for (int q = 0; q < fit->latents->count && p->held > 0; q++) {
        memcpy(p->error2 + q * p->held, fit->left_out[q].error2, held);
        memcpy(p->v + q * p->held, fit->left_out[q].v, held);
    }
    thi_hypers_keep(fit->problem.hypers, p->hypers);
}

static thiele_status place_return(const place *p, thi_dfit *fit)
{
    size_t held = (size_t)p->held * sizeof(double);
    memcpy(fit->vector.x, p->x, (size_t)fit->vector.whole * sizeof *p->x);
    for (int q = 0; q < fit->latents->count && p->held > 0; q++) {
        memcpy(fit->left_out[q].error2, p->error2 + q * p->held, held);
        memcpy(fit->left_out[q].v, p->v + q * p->held, held);
    }
    thi_hypers_load(fit->problem.hypers, p->hypers);
    return thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
}

/* The values `share` of the way; the noise goes on from there, and a mean that is made with little finds little. */
static thiele_status go_to(thi_dfit *fit, const double *learned, double share)
{
    thi_hypers *hypers = fit->problem.hypers;
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed) {
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

/* A mean of no weights: those of other values may be far off in the norm of these. */
static void forget_weights(thi_dfit *fit)
{
    for (int q = 0; q < fit->latents->count; q++) {
        memset(thi_dfit_of(fit, THI_DPART_A, q), 0, (size_t)fit->n_alpha * sizeof(double));
        memset(fit->vector.sites[q].t, 0, (size_t)fit->n_beta * sizeof(double));
    }
}

/* Where the fit stands on the way, and what its bound and log prior are there. */
typedef struct way {
    const thi_course *course;
    double *learned, at, value;
    place before;
} way;

/* Sweeps at other values, as long as they may end above the present ones, which are taken back where they do not. */
static thiele_status attempt(thi_dfit *fit, way *w, double share, bool *better)
{
    thi_course c = *w->course;
    double value = -INFINITY;
    thiele_status status = THIELE_OK;
    *better = false;
    if (!thi_sweep_has_time(fit, &c)) {
        return THIELE_OK;
    }
    place_keep(&w->before, fit);
    THI_TRY(go_to(fit, w->learned, share));
    if (fabs(share - w->at) > 0.5) {
        forget_weights(fit);
    }
    c.least = w->value - log_prior_of(fit);
    status = thi_sweep_course(fit, &c, &value);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        status = THIELE_OK;
        value = -INFINITY;
    }
    THI_TRY(status);
    value += log_prior_of(fit);
    *better = value > w->value;
    if (*better) {
        w->at = share;
        w->value = value;
    } else {
        THI_TRY(place_return(&w->before, fit));
        THI_TRY(thi_dfit_ready(fit));
    }
out:
    return status;
}

/*
 * By thirds as long as the bound rises; a sixth where not even one does; and else the other end, for a small basis may
 * have taken all for noise, where no small step is of use.
 */
static thiele_status climb(thi_dfit *fit, way *w)
{
    bool better = true;
    thiele_status status = THIELE_OK;
    for (int third = 1; better && third <= 3; third++) {
        THI_TRY(attempt(fit, w, third / 3.0, &better));
    }
    if (w->at > 0.0) {
        return THIELE_OK;
    }
    THI_TRY(attempt(fit, w, 1.0 / 6.0, &better));
    if (!better) {
        THI_TRY(attempt(fit, w, 1.0, &better));
    }
    if (w->at == 1.0) {
        THI_TRY(attempt(fit, w, 2.0 / 3.0, &better));
    }
out:
    return status;
}

static double clamp(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* Where the bound, which falls with the square of the log ratio, would have lost most of the margin. */
static double next_ratio(double ratio, double lost, double margin)
{
    static const double MOST = 0.8, CLOSEST = 1.0 / 30.0;
    return clamp(pow(ratio, sqrt(MOST * margin / fmax(lost, 1e-3 * margin))), CLOSEST, 1.0);
}

static thiele_status loosen(thi_dfit *fit, thi_course *c, double value, place *before)
{
    double margin = value - fit->floor, ratio = FIRST_RATIO, other;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < RATIOS && margin > 0.0 && isfinite(margin) && thi_sweep_has_time(fit, c); i++) {
        thi_course next = *c;
        double error = error_of(fit);
        next.ratio = ratio;
        place_keep(before, fit);
        status = thi_sweep_course(fit, &next, &other);
        if (status == THIELE_ERROR_NUMERIC) {
            thi_recover(fit->problem.ctx);
            status = THIELE_OK;
            other = -INFINITY;
        }
        THI_TRY(status);
        if (error_of(fit) < error && other >= fit->floor) {
            *c = next;
        } else {
            THI_TRY(place_return(before, fit));
            THI_TRY(thi_dfit_ready(fit));
        }
        ratio = isfinite(other) ? next_ratio(ratio, value - other, margin) : ratio;
        if (fabs(log(ratio / next.ratio)) < LEAST_CHANGE || ratio >= c->ratio) {
            break;
        }
    }
out:
    return status;
}

thiele_status thi_dfit_climb(thi_dfit *fit, const thi_course *c)
{
    way w = {.course = c};
    thiele_status status = THIELE_OK;
    if (fit->explored.count == 0 || thi_hypers_free(fit->problem.hypers) <= 1 || fit->sparse->iterations < 0) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &w.learned, (size_t)fit->problem.hypers->count, sizeof *w.learned));
    thi_hypers_keep(fit->problem.hypers, w.learned);
    THI_TRY(thi_sweep_course(fit, c, &w.value));
    w.value += log_prior_of(fit);
    THI_TRY(place_open(&w.before, fit));
    THI_TRY(climb(fit, &w));
out:
    place_close(&w.before);
    thi_free(w.learned);
    return status;
}

thiele_status thi_dfit_loosen(thi_dfit *fit, thi_course *c, double value)
{
    place before;
    thiele_status status = place_open(&before, fit);
    if (status == THIELE_OK) {
        status = loosen(fit, c, value, &before);
    }
    place_close(&before);
    return status;
}

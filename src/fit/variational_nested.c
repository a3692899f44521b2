/*
 * L-BFGS over hyperparameters and Z of the bound at its optimal q, over all rows: within each evaluation the sites go
 * to their fixed point, where the gradient at fixed sites is all of it (they are a stationary point). It is the fixed
 * point of the likelihood itself: at that of auxiliary variables, which lead the first sites near to it, value and
 * gradient of the bound would not belong together, and line searches end early. With Gaussian
 * noise one natural step of size 1 from q = p is that point, and the bound is Titsias' collapsed one (2025). An
 * evaluation there is two passes over the rows, else some five to ten.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

#include "optim/lbfgs.h"

enum { INNER_STEPS = 100 };
/*
 * The fixed point is sought to this share of what the search takes for progress, so that its line search sees a smooth
 * function. (A hundredth of it ends at the same bounds, and takes twice as many passes.)
 */
static const double PRECISE = 0.01;
/* With noise (g, h) are not exactly the slopes of E: what smaller steps gain is not there. */
static const double PRECISE_IN_NOISE = 0.1;

typedef struct nested {
    thi_vfit *fit;
    thi_sites_work work;
    double inner;      /* tolerance of the fixed point, nats a step */
    double *best;      /* sites at the best point */
    double best_value; /* bound with log p(theta) there */
    double best_bound;
} nested;

static const thi_wanted value_only = {0}, gradient_too = {.prior = true, .phi = true};

static double outer_tolerance(const thi_vfit *fit)
{
    return fmax(1e-3, fit->tolerance * (double)fit->problem.source->n);
}

static thiele_status evaluate(nested *n, thi_wanted wanted)
{
    thi_vfit *fit = n->fit;
    thiele_status status;
    THI_TRY(thi_sites_converge(fit, &thi_all_rows, &n->work, n->inner, INNER_STEPS));
    THI_TRY(thi_vfit_evaluate(fit, &thi_all_rows, wanted));
out:
    if (status != THIELE_OK) {
        thi_sites_clear(fit);
    }
    return status;
}

static thiele_status objective(void *arg, const double *x, double *value, double *gradient)
{
    nested *n = arg;
    thi_vfit *fit = n->fit;
    thiele_status status;
    THI_TRY(thi_vfit_take(fit, x));
    THI_TRY(evaluate(n, gradient_too));
    double log_p = fit->pass.at.bound + fit->pass.at.log_prior;
    if (log_p > n->best_value) {
        n->best_value = log_p;
        n->best_bound = fit->pass.at.bound;
        thi_sites_keep(fit, n->best);
    }
    *value = -log_p;
    for (int64_t i = 0; i < thi_vfit_size(fit); i++) {
        gradient[i] = -fit->vector.bar[i];
    }
    thi_vfit_report(fit, log_p, NAN, fit->problem.source->n);
    /* The first evaluation gives a state to end with; any further one may be given up. */
    fit->pass.may_stop = true;
out:
    return status;
}

static bool stop(void *arg)
{
    return thi_vfit_stopped(((nested *)arg)->fit);
}

static void confine(void *arg, double *x)
{
    thi_vfit_confine(((nested *)arg)->fit, x);
}

static thiele_status climb(nested *n, int iterations)
{
    thi_vfit *fit = n->fit;
    thi_lbfgs_options options = {iterations, 1e-5, outer_tolerance(fit), stop, confine};
    thi_lbfgs_result run;
    double *x = NULL;
    thiele_status status;
    size_t size = (size_t)thi_vfit_size(fit);
    THI_TRY(thi_alloc(fit->problem.ctx, &x, size, sizeof *x));
    memcpy(x, fit->vector.x, size * sizeof *x);
    THI_TRY(thi_lbfgs(fit->problem.ctx, (int)size, x, objective, n, &options, &run));
    fit->pass.may_stop = false;
    fit->result->fit.iterations += run.iterations;
    fit->result->fit.stop = run.converged ? THIELE_STOP_CONVERGED : THIELE_STOP_ITERATIONS;
    THI_TRY(thi_vfit_take(fit, x));
    THI_TRY(thi_sites_return(fit, n->best));
    THI_TRY(thi_vfit_begin(fit));
    fit->pass.at.bound = n->best_bound;
out:
    thi_free(x);
    return status;
}

/* Of the fixed point, nats. */
static thiele_status find_tolerance(const thi_vfit *fit, bool coarse, double *inner)
{
    const thi_spec *spec = fit->problem.spec;
    bool noisy;
    thiele_status status = thi_expect_noise(fit->problem.ctx, spec->lik, spec->expectation, &noisy);
    *inner = (coarse ? 1.0 : noisy ? PRECISE_IN_NOISE : PRECISE) * outer_tolerance(fit);
    return status;
}

thiele_status thi_vfit_nested(thi_vfit *fit, const char *phase, int iterations, bool coarse)
{
    nested n = {.fit = fit, .best_value = -INFINITY};
    /* At the fixed point it does not matter where sites stay; in w no digits are lost on the way. */
    fit->white = true;
    thiele_status status;
    thi_driver_phase(fit->problem.driver, phase, iterations);
    THI_TRY(find_tolerance(fit, coarse, &n.inner));
    THI_TRY(thi_sites_work_open(&n.work, fit));
    THI_TRY(thi_alloc(fit->problem.ctx, &n.best, (size_t)thi_sites_size(&fit->shape), sizeof *n.best));
    if (fit->pass.leading) {
        THI_TRY(thi_sites_converge(fit, &thi_all_rows, &n.work, outer_tolerance(fit), INNER_STEPS));
        fit->pass.leading = false;
    }
    if (thi_vfit_size(fit) > 0) {
        THI_TRY(climb(&n, iterations));
    } else {
        THI_TRY(evaluate(&n, value_only));
        thi_vfit_report(fit, fit->pass.at.bound + fit->pass.at.log_prior, NAN, fit->problem.source->n);
        fit->result->fit.stop = THIELE_STOP_FIXED;
    }
    fit->result->bound_rows = fit->problem.source->n;
out:
    fit->pass.may_stop = false;
    thi_free(n.best);
    thi_sites_work_close(&n.work);
    return status;
}

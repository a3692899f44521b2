/*
 * A wrapper of liblbfgs. Its quirks are kept here: an infinite value ends its default line search, and some of its
 * return codes depend on the last trial point. So trial points that cannot be evaluated are shown to it as a steep wall
 * that leads back to the best point, the best point is kept here, and what it returns is judged by that.
 */
#include "optim/lbfgs.h"

#include <lbfgs.h>
#include <math.h>
#include <string.h>

enum { HISTORY = 5 };

typedef struct run {
    thiele_context *ctx;
    int n;
    thi_objective_fn objective;
    void *arg;
    const thi_lbfgs_options *options;
    thi_lbfgs_result *result;
    double *best;
    thiele_status status; /* the first error that is not NUMERIC, or of the first point */
    double recent[HISTORY];
    int iterations_before; /* of earlier attempts */
    bool stopped, flat;
} run;

/* A value above the best one, sloping down to it. */
static double wall(const run *r, const double *x, double *gradient)
{
    double height = 1e3 + fabs(r->result->value);
    for (int i = 0; i < r->n; i++) {
        gradient[i] = height * (x[i] - r->best[i]);
    }
    return r->result->value + height;
}

static lbfgsfloatval_t evaluate(void *instance, const lbfgsfloatval_t *x, lbfgsfloatval_t *gradient, const int n,
                                const lbfgsfloatval_t step)
{
    (void)step;
    run *r = instance;
    bool first = r->result->evaluations == 0;
    if (!r->stopped && !first && r->options->stop != NULL) {
        r->stopped = r->options->stop(r->arg);
    }
    if (r->stopped || r->status != THIELE_OK) {
        return wall(r, x, gradient);
    }
    double value = NAN;
    thiele_status status = r->objective(r->arg, x, &value, gradient);
    r->result->evaluations++;
    bool usable = status == THIELE_OK && isfinite(value);
    for (int i = 0; usable && i < n; i++) {
        usable = isfinite(gradient[i]);
    }
    if (!usable && status != THIELE_OK && (first || status != THIELE_ERROR_NUMERIC)) {
        r->status = status;
    } else if (!usable && first) {
        r->status = thi_fail(r->ctx, THIELE_ERROR_NUMERIC, "the objective or its gradient is not finite at the start");
    }
    if (!usable) {
        if (first) {
            r->result->value = 0.0;
            memcpy(r->best, x, (size_t)n * sizeof *x);
        }
        return wall(r, x, gradient);
    }
    if (first || value < r->result->value) {
        r->result->value = value;
        memcpy(r->best, x, (size_t)n * sizeof *x);
    }
    return value;
}

static int progress(void *instance, const lbfgsfloatval_t *x, const lbfgsfloatval_t *g, const lbfgsfloatval_t fx,
                    const lbfgsfloatval_t xnorm, const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k,
                    int ls)
{
    (void)x, (void)g, (void)xnorm, (void)gnorm, (void)step, (void)n, (void)ls;
    run *r = instance;
    r->result->iterations = r->iterations_before + k;
    r->flat = k > HISTORY && r->recent[k % HISTORY] - fx < r->options->value_tolerance;
    r->recent[k % HISTORY] = fx;
    return r->stopped || r->status != THIELE_OK || r->flat;
}

/* One run of liblbfgs from `work`, which it leaves somewhere near the end of its last line search. */
static int descend(run *r, lbfgsfloatval_t *work)
{
    lbfgs_parameter_t parameter;
    lbfgs_parameter_init(&parameter);
    parameter.m = 10;
    parameter.epsilon = r->options->gradient_tolerance;
    parameter.max_iterations = r->options->iterations - r->iterations_before;
    r->flat = false;
    return lbfgs(r->n, work, NULL, evaluate, progress, r, &parameter);
}

/* True where a line search gave up: the curvature it had learned no longer fits. */
static bool gave_up(const run *r, int code)
{
    return code < 0 && code != LBFGSERR_MAXIMUMITERATION && code != LBFGSERR_OUTOFMEMORY && r->status == THIELE_OK &&
           !r->stopped;
}

/*
 * Descends, and begins again from the best point with a clean memory when a line search gives up, as long as that
 * helps: a wall spoils the curvature that the method has gathered.
 */
static int descend_again(run *r, lbfgsfloatval_t *work)
{
    enum { ATTEMPTS = 5 };
    int code = descend(r, work);
    for (int attempt = 1; attempt < ATTEMPTS && gave_up(r, code); attempt++) {
        double before = r->result->value;
        r->iterations_before = r->result->iterations;
        if (r->iterations_before >= r->options->iterations) {
            return LBFGSERR_MAXIMUMITERATION;
        }
        memcpy(work, r->best, (size_t)r->n * sizeof *work);
        code = descend(r, work);
        if (before - r->result->value < r->options->value_tolerance) {
            break;
        }
    }
    return code;
}

thiele_status thi_lbfgs(thiele_context *ctx, int n, double *x, thi_objective_fn objective, void *arg,
                        const thi_lbfgs_options *options, thi_lbfgs_result *result)
{
    *result = (thi_lbfgs_result){0};
    run r = {.ctx = ctx, .n = n, .objective = objective, .arg = arg, .options = options, .result = result};
    thiele_status status = thi_alloc(ctx, &r.best, (size_t)n, sizeof *r.best);
    if (status != THIELE_OK) {
        return status;
    }
    lbfgsfloatval_t *work = lbfgs_malloc(n);
    int code = LBFGSERR_OUTOFMEMORY;
    if (work != NULL) {
        memcpy(work, x, (size_t)n * sizeof *x);
        code = descend_again(&r, work);
        lbfgs_free(work);
    }
    if (code == LBFGSERR_OUTOFMEMORY) {
        r.status = thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory in the optimiser");
    }
    if (r.status == THIELE_OK) {
        memcpy(x, r.best, (size_t)n * sizeof *x);
        result->converged = !r.stopped && code != LBFGSERR_MAXIMUMITERATION;
        thi_recover(ctx);
    }
    thi_free(r.best);
    return r.status;
}

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
    double *inside;       /* the last point within the limits */
    double first;         /* value at the start */
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

/* Value and gradient at the point within the limits that is nearest to x. */
static thiele_status ask(run *r, const double *x, double *value, double *gradient)
{
    memcpy(r->inside, x, (size_t)r->n * sizeof *x);
    if (r->options->confine != NULL) {
        r->options->confine(r->arg, r->inside);
    }
    thiele_status status = r->objective(r->arg, r->inside, value, gradient);
    r->result->evaluations++;
    bool finite = isfinite(*value);
    for (int i = 0; finite && i < r->n; i++) {
        finite = isfinite(gradient[i]);
    }
    return status == THIELE_OK && !finite
               ? thi_fail(r->ctx, THIELE_ERROR_NUMERIC, "the objective or its gradient is not finite")
               : status;
}

/* What lies outside of the limits is as at them, with a gentle slope back. */
static double outside(const run *r, const double *x, double *gradient)
{
    double sum = 0.0;
    for (int i = 0; i < r->n; i++) {
        double beyond = x[i] - r->inside[i];
        if (beyond != 0.0) {
            sum += 0.5 * beyond * beyond;
            gradient[i] = beyond;
        }
    }
    return sum;
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
    thiele_status status = ask(r, x, &value, gradient);
    if (status != THIELE_OK) {
        r->status = first || status != THIELE_ERROR_NUMERIC ? status : r->status;
        return wall(r, x, gradient);
    }
    r->first = first ? value : r->first;
    if (first || value < r->result->value) {
        r->result->value = value;
        memcpy(r->best, r->inside, (size_t)n * sizeof *x);
    }
    return value + outside(r, x, gradient);
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
    parameter.max_linesearch = 20;
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
    if (r->result->iterations == 0 && r->first - r->result->value < r->options->value_tolerance) {
        return code; /* there was no memory to clean */
    }
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
    double *room;
    thiele_status status = thi_alloc(ctx, &room, 2 * (size_t)n, sizeof *room);
    if (status != THIELE_OK) {
        return status;
    }
    r.best = room;
    r.inside = room + n;
    memcpy(r.best, x, (size_t)n * sizeof *x);
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
    thi_free(room);
    return r.status;
}

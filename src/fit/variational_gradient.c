/*
 * Gradient ascent in the parameters of q itself over all rows, by L-BFGS: everything together, or by turns as
 * savigp-jmlr section 9.1 has it (variational parameters, hyperparameters, likelihood parameters, inducing inputs, each
 * to some precision, until a cycle gains less than the tolerance). Any family of q.
 */
#include "fit/variational_state.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "optim/lbfgs.h"

enum { ITERATIONS = 200, CYCLES = 200, CYCLE_ITERATIONS = 20 };
/* The paper's. */
static const double CYCLE_TOLERANCE = 1e-6;
/* How far apart the means of a mixture begin, in prior standard deviations. */
static const double SPREAD = 0.1;

/* --- the beginning of q ------------------------------------------------------------------------------------------- */

/* The factor of the prior's Kzz of a latent: what q = p is in u. */
static thiele_status prior_factor(thi_vfit *fit, int latent, thi_matrix L)
{
    int group = fit->spec->latents.group[latent];
    const thiele_kernel *kernel = fit->spec->latents.kernel[group];
    thi_inputs inputs = {0};
    double jitter;
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, fit->ctx, kernel, L.rows, fit->Z_of[group]));
    THI_TRY(thi_kernel_fill(kernel, fit->ctx, &inputs, &inputs, L, true));
    THI_TRY(thi_chol_jitter(fit->ctx, L, &jitter));
out:
    thi_inputs_clear(&inputs);
    return status;
}

/* Numbers of a factor (or of the diagonal of S = diag(L L')); L without data: the identity. */
static void pack_factor(const thi_shape *shape, thi_matrix L, double *to)
{
    int64_t M = shape->inducing;
    for (int64_t j = 0; j < M; j++) {
        double square = 0.0;
        for (int64_t i = 0; L.data != NULL && i <= j; i++) {
            square += L.data[j + i * L.ld] * L.data[j + i * L.ld];
        }
        if (shape->diagonal) {
            to[j] = L.data != NULL ? 0.5 * log(square) : 0.0;
            continue;
        }
        for (int64_t i = j + 1; i < M; i++) {
            to[i - j] = L.data != NULL ? L.data[i + j * L.ld] : 0.0;
        }
        to[0] = L.data != NULL ? log(L.data[j + j * L.ld]) : 0.0;
        to += M - j;
    }
}

/* m = 0, and for a mixture SPREAD L e, e standard normal. */
static void start_mean(const thi_vfit *fit, int component, int latent, thi_matrix L, double *m)
{
    int64_t M = fit->shape.inducing;
    thi_stream stream = {fit->ctx->seed, THI_RANDOM_START,
                         (UINT64_C(1) << 32) + (uint64_t)(component * fit->shape.latents + latent)};
    for (int64_t i = 0; i < M; i++) {
        m[i] = fit->shape.components > 1 ? SPREAD * thi_random_normal(stream, (uint64_t)i) : 0.0;
    }
    if (L.data != NULL) {
        thi_blas_trmm(THI_LEFT, THI_N, 1.0, L, thi_matrix_view(m, M, 1, M));
    }
}

thiele_status thi_vfit_start_q(thi_vfit *fit)
{
    const thi_shape *shape = &fit->shape;
    int64_t M = shape->inducing;
    thi_matrix L = {0};
    thiele_status status = THIELE_OK;
    if (!shape->whitened) {
        THI_TRY(thi_matrix_alloc(&L, fit->ctx, M, M));
    }
    memset(fit->x, 0, (size_t)fit->first[THI_PART_KERNEL] * sizeof *fit->x);
    for (int j = 0; j < shape->latents; j++) {
        if (!shape->whitened) {
            THI_TRY(prior_factor(fit, j, L));
        }
        for (int k = 0; k < shape->components; k++) {
            double *own = fit->x + thi_variational_offset(shape, k, j);
            start_mean(fit, k, j, L, own);
            pack_factor(shape, L, own + M);
        }
    }
out:
    thi_free(L.data);
    return status;
}

/* --- L-BFGS over a stretch of the vector -------------------------------------------------------------------------- */

typedef struct climb {
    thi_vfit *fit;
    int64_t from, to;
    double *x; /* the whole vector at the best point but for the stretch */
    double *trial;
    double best_value, best_bound;
} climb;

static thiele_status objective(void *arg, const double *stretch, double *value, double *gradient)
{
    climb *c = arg;
    thi_vfit *fit = c->fit;
    thi_wanted wanted = {.pull = true,
                         .q = c->from<fit->first[THI_PART_KERNEL], .prior = c->to> fit->first[THI_PART_KERNEL]};
    thiele_status status;
    memcpy(c->trial, c->x, (size_t)thi_vfit_size(fit) * sizeof *c->x);
    memcpy(c->trial + c->from, stretch, (size_t)(c->to - c->from) * sizeof *stretch);
    THI_TRY(thi_vfit_take(fit, c->trial));
    THI_TRY(thi_vfit_evaluate(fit, &thi_all_rows, wanted));
    double log_p = fit->bound + fit->log_prior;
    if (log_p > c->best_value) {
        c->best_value = log_p;
        c->best_bound = fit->bound;
    }
    *value = -log_p;
    for (int64_t i = c->from; i < c->to; i++) {
        gradient[i - c->from] = -fit->bar[i];
    }
    thi_vfit_report(fit, log_p, NAN, fit->source->n);
    /* The first evaluation of a stretch must end well; any further one may be given up. */
    fit->may_stop = true;
out:
    return status;
}

static bool stop(void *arg)
{
    return thi_driver_stopped(((climb *)arg)->fit->driver);
}

static thiele_status climb_stretch(climb *c, int64_t from, int64_t to, const thi_lbfgs_options *options,
                                   thi_lbfgs_result *run)
{
    thi_vfit *fit = c->fit;
    double *stretch = NULL;
    thiele_status status;
    c->from = from;
    c->to = to;
    fit->may_stop = false;
    THI_TRY(thi_alloc(fit->ctx, &stretch, (size_t)(to - from), sizeof *stretch));
    memcpy(stretch, c->x + from, (size_t)(to - from) * sizeof *stretch);
    THI_TRY(thi_lbfgs(fit->ctx, (int)(to - from), stretch, objective, c, options, run));
    memcpy(c->x + from, stretch, (size_t)(to - from) * sizeof *stretch);
    fit->result->fit.iterations += run->iterations;
out:
    thi_free(stretch);
    return status;
}

static thiele_status climb_open(climb *c, thi_vfit *fit)
{
    size_t size = (size_t)thi_vfit_size(fit);
    *c = (climb){.fit = fit, .best_value = -INFINITY};
    if (size > INT_MAX) {
        return thi_fail(fit->ctx, THIELE_ERROR_LIMIT,
                        "%zu numbers are too many for L-BFGS: use fewer inducing inputs or another optimizer", size);
    }
    thiele_status status;
    THI_TRY(thi_alloc(fit->ctx, &c->x, size, sizeof *c->x));
    THI_TRY(thi_alloc(fit->ctx, &c->trial, size, sizeof *c->trial));
    THI_TRY(thi_vfit_start_q(fit));
    memcpy(c->x, fit->x, size * sizeof *c->x);
out:
    return status;
}

/* To the best point. */
static thiele_status climb_end(climb *c)
{
    thi_vfit *fit = c->fit;
    fit->may_stop = false;
    thiele_status status = thi_vfit_take(fit, c->x);
    if (status == THIELE_OK) {
        status = thi_vfit_begin(fit);
    }
    fit->bound = c->best_bound;
    fit->result->bound_rows = fit->source->n;
    return status;
}

static void climb_close(climb *c)
{
    c->fit->may_stop = false;
    thi_free(c->x);
    thi_free(c->trial);
}

static double tolerance_of(const thi_vfit *fit)
{
    return fmax(1e-3, fit->tolerance * (double)fit->source->n);
}

thiele_status thi_vfit_lbfgs(thi_vfit *fit)
{
    climb c;
    int iterations = fit->settings->iterations > 0 ? fit->settings->iterations : ITERATIONS;
    thi_lbfgs_options options = {iterations, 1e-5, tolerance_of(fit), stop};
    thi_lbfgs_result run;
    thiele_status status;
    thi_driver_phase(fit->driver, "fit", iterations);
    THI_TRY(climb_open(&c, fit));
    THI_TRY(climb_stretch(&c, 0, thi_vfit_size(fit), &options, &run));
    fit->result->fit.stop = run.converged ? THIELE_STOP_CONVERGED : THIELE_STOP_ITERATIONS;
    THI_TRY(climb_end(&c));
out:
    climb_close(&c);
    return status;
}

/* --- by turns ----------------------------------------------------------------------------------------------------- */

static thiele_status cycle(climb *c, const thi_lbfgs_options *options)
{
    const int64_t *first = c->fit->first;
    thi_lbfgs_result run;
    thiele_status status = THIELE_OK;
    for (int p = 0; p < THI_PARTS && status == THIELE_OK; p++) {
        bool stopped = p > 0 && thi_driver_stopped(c->fit->driver);
        if (first[p] < first[p + 1] && !stopped) {
            status = climb_stretch(c, first[p], first[p + 1], options, &run);
        }
    }
    return status;
}

thiele_status thi_vfit_alternate(thi_vfit *fit)
{
    climb c;
    int cycles = fit->settings->iterations > 0 ? fit->settings->iterations : CYCLES;
    double tolerance = fmax(CYCLE_TOLERANCE, fit->settings->tolerance * (double)fit->source->n);
    thi_lbfgs_options options = {CYCLE_ITERATIONS, 1e-5, 0.1 * tolerance, stop};
    thiele_status status;
    fit->result->fit.stop = THIELE_STOP_ITERATIONS;
    thi_driver_phase(fit->driver, "fit", (int64_t)cycles * CYCLE_ITERATIONS);
    THI_TRY(climb_open(&c, fit));
    for (int i = 0; i < cycles && (i == 0 || !thi_driver_stopped(fit->driver)); i++) {
        double before = c.best_value;
        THI_TRY(cycle(&c, &options));
        if (c.best_value - before < tolerance) {
            fit->result->fit.stop = THIELE_STOP_CONVERGED;
            break;
        }
    }
    THI_TRY(climb_end(&c));
out:
    climb_close(&c);
    return status;
}

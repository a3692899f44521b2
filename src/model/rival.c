/*
 * Rivals of a fit: other kinds of noise on the same rows, from the values that it ended with. Each model is judged by
 * rows that it is made without, and the best is kept. A method on all rows at once goes on learning; by blocks a rival
 * only conditions on the rows.
 */
#include <math.h>
#include <string.h>

#include "expect/parallel.h"
#include "fit/budget.h"
#include "model/choose.h"

/* Of a method on all rows at once; fewer where they take more flops than this. */
static const double ITERATIONS = 30.0, LEARNING_FLOPS = 3e11;
/* A rival must be better by so many nats per row and standard errors: one row far off is no reason. */
static const double GAIN = 0.02, ERRORS = 2.0;

/* --- rows that are held out ------------------------------------------------------------------------------------------
 */

/* Up to FEW rows all folds are taken; of more some rows are predicted by some others. */
enum { FOLDS = 5, FEW = 2000, SOME = 6000, HELD = 2000 };

typedef struct loss_job {
    const double *y, *mu, *v;
    int64_t Q;
    double *loss;
} loss_job;

static thiele_status losses(thi_expect *expect, thiele_context *ctx, int64_t first, int64_t n, const void *arg)
{
    const loss_job *j = arg;
    return thi_log_predictive_block(expect, ctx, n, j->y + first, j->mu + first * j->Q, j->v + first * j->Q,
                                    j->loss + first);
}

/* loss: minus the log density of the rows under these predictors. */
static thiele_status predict(const thi_fitting *f, const thi_predictor *latent, const thi_rows *rows, double *loss)
{
    int64_t n = rows->n, Q = f->spec.lik->latents, clipped = 0;
    double *mu = NULL, *v = NULL, *one = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &mu, (size_t)(n * Q), sizeof *mu));
    THI_TRY(thi_alloc(f->ctx, &v, (size_t)(n * Q), sizeof *v));
    THI_TRY(thi_alloc(f->ctx, &one, 2 * (size_t)n, sizeof *one));
    for (int64_t q = 0; q < Q; q++) {
        THI_TRY(thi_predictor_marginals(&latent[q], f->ctx, n, rows->X, one, one + n, &clipped));
        for (int64_t i = 0; i < n; i++) {
            mu[q + i * Q] = one[i] + (q == 0 && rows->offset != NULL ? rows->offset[i] : 0.0);
            v[q + i * Q] = one[n + i];
        }
    }
    THI_TRY(thi_expect_rows(f->spec.lik, f->ctx, NULL, n, losses, &(loss_job){rows->y, mu, v, Q, loss}));
out:
    thi_free(mu);
    thi_free(v);
    thi_free(one);
    return status;
}

/* Rows order[0 .. held - 1] by the posterior of the next `used`. */
static thiele_status hold_out(thi_fitting *f, int64_t held, int64_t used, const int64_t *order)
{
    thi_rows train = {0}, test = {0};
    thi_fitted fitted = {0};
    double *loss = NULL;
    int Q = f->spec.lik->latents;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &fitted.latent, (size_t)Q, sizeof *fitted.latent));
    THI_TRY(thi_alloc(f->ctx, &loss, (size_t)held, sizeof *loss));
    THI_TRY(thi_rows_take(&test, f->ctx, &f->rows, held, order));
    THI_TRY(thi_rows_take(&train, f->ctx, &f->rows, used, order + held));
    THI_TRY(f->method->run(f, &train, false, &fitted));
    THI_TRY(predict(f, fitted.latent, &test, loss));
    for (int64_t i = 0; i < held; i++) {
        f->loss[order[i]] = -loss[i];
    }
out:
    for (int q = 0; fitted.latent != NULL && q < Q; q++) {
        thi_predictor_clear(&fitted.latent[q]);
    }
    thi_free(fitted.latent);
    thi_free(loss);
    thi_rows_free(&train);
    thi_rows_free(&test);
    return status;
}

static thiele_status hold_out_all(thi_fitting *f, int64_t *order)
{
    int64_t n = f->rows.n, most = n > FEW ? HELD : n, held = thi_least(n / FOLDS, most);
    int64_t used = thi_least(n - held, n > FEW ? SOME : n), blocks = f->block_settings.blocks;
    thiele_status status = THIELE_OK;
    f->block_settings.blocks = blocks > 0 ? 1 + (blocks - 1) * used / n : 0; /* of the same size */
    for (int64_t i = 0; i < n; i++) {
        f->loss[i] = NAN;
    }
    thi_random_permutation((thi_stream){f->ctx->seed, THI_RANDOM_SPLIT, 1}, n, order);
    memcpy(order + n, order, (size_t)n * sizeof *order);
    for (int fold = 0; fold < (n > FEW ? 1 : FOLDS) && status == THIELE_OK; fold++) {
        status = hold_out(f, held, used, order + fold * held);
    }
    return status;
}

thiele_status thi_find_losses(thi_fitting *f)
{
    size_t n = (size_t)f->rows.n, hypers = (size_t)f->hypers.count;
    int64_t *order = NULL;
    thi_hyper *hyper = NULL;
    thi_fitting kept = *f;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &hyper, hypers, sizeof *hyper));
    THI_TRY(thi_alloc(f->ctx, &order, 2 * n, sizeof *order));
    THI_TRY(thi_alloc(f->ctx, &kept.loss, n, sizeof *f->loss));
    memcpy(hyper, f->hypers.hyper, hypers * sizeof *hyper);
    f->loss = kept.loss;
    status = hold_out_all(f, order);
    *f = kept;
    memcpy(f->hypers.hyper, hyper, hypers * sizeof *hyper);
    if (thi_driver_stopped(f->driver)) { /* by posteriors of some blocks only: not known */
        thi_free(f->loss);
        f->loss = NULL;
    }
    THI_TRY(status);
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
out:
    thi_free(order);
    thi_free(hyper);
    return status;
}

/*
 * What b gains over a, nats per row that both know; *known: how many these are, *error: of the mean. Minus infinity
 * where b takes what was seen for impossible.
 */
static double gain_of(const thi_fitting *a, const thi_fitting *b, int64_t *known, double *error)
{
    double mean = 0.0, square = 0.0, count = 0.0;
    for (int64_t i = 0; a->loss != NULL && b->loss != NULL && i < a->rows.n; i++) {
        double gain = a->loss[i] - b->loss[i];
        if (b->loss[i] == INFINITY) {
            mean = -INFINITY;
            break;
        }
        if (isfinite(gain)) {
            double step = gain - mean;
            count += 1.0;
            mean += step / count;
            square += step * (gain - mean);
        }
    }
    *known = (int64_t)count;
    *error = sqrt(square) / fmax(count, 1.0);
    return count > 0.0 ? mean : -INFINITY;
}

bool thi_is_better(const thi_fitting *rival)
{
    int64_t known;
    double error, gain = gain_of(rival->favourite, rival, &known, &error);
    return gain > fmax(GAIN, ERRORS * error);
}

/* --- the fits --------------------------------------------------------------------------------------------------------
 */

/* Of the function itself the values that all rows taught; of its noise those that some did. */
static void begin_at(thi_named *values, const thi_fitting *favourite, int latents)
{
    const thi_hypers *hypers = &favourite->hypers;
    for (int i = 0; i < favourite->spec.latents.kernel[0]->parameters; i++) {
        for (int k = 0; k < values->count; k++) {
            const char *name = values->name[k] + (latents > 1 ? strlen("f1.") : 0);
            if (strcmp(name, hypers->hyper[i].name) == 0) {
                values->value[k] = hypers->hyper[i].value;
                break; /* the first function's come first */
            }
        }
    }
}

void thi_rival_sizes(thi_fitting *f)
{
    /* Of a row in a pass, blocks being half as large again as the M inducing inputs, over M^2: blocks_cost.c. */
    static const double FLOPS = 23.0, PASSES = 10.0, PASSING_FLOPS = 6e11, MOST = 300.0, LEAST = 100.0;
    double rows = (double)f->rows.n * f->spec.lik->latents;
    double M = sqrt(thi_budget_work(f->driver, PASSING_FLOPS) / (PASSES * FLOPS * rows));
    if (f->driver->deadline == 0.0 && M < MOST) {
        f->settings.inducing = (int64_t)fmax(M, LEAST);
        f->block_settings.blocks = 1 + f->rows.n / (3 * f->settings.inducing / 2);
    }
}

static int iterations_of(const thi_fitting *f, int latents)
{
    double flops = thi_objective_dense.cubes * latents * pow((double)f->rows.n, 3.0);
    return (int)fmax(1.0, fmin(ITERATIONS, thi_budget_work(f->driver, LEARNING_FLOPS) / flops));
}

static thiele_status fit_rival(const thi_fitting *f, const thiele_table *table, thi_rival *rival,
                               thiele_fit_options *options, thi_fitting *r)
{
    thiele_log_fn log = f->ctx->log;
    thiele_status status;
    options->model.likelihood = rival->likelihood;
    options->prior.kernel = rival->kernels;
    if (rival->augmented && f->method->objective == NULL) {
        options->model.expectation = "augmented"; /* its sites are never negative: passes over blocks need no care */
    }
    options->stopping.iterations = iterations_of(f, strchr(rival->kernels, ';') != NULL ? 2 : 1);
    begin_at(&rival->values, f, strchr(rival->kernels, ';') != NULL ? 2 : 1);
    THI_TRY(thi_alloc(f->ctx, &r->model, 1, sizeof *r->model));
    f->ctx->log = NULL; /* all was said before */
    status = thi_fit_table(r, table);
    f->ctx->log = log;
    if (status == THIELE_ERROR_NUMERIC || status == THIELE_ERROR_LIMIT) { /* it loses */
        thi_recover(f->ctx);
        thi_free(r->loss);
        r->loss = NULL;
        status = THIELE_OK;
    }
out:
    return status;
}

/* The model of the better one, and what it learned, become f's. */
static void take_over(thi_fitting *f, thi_fitting *r)
{
    thi_fitting old = *f;
    char *why = f->model->kernel_why;
    f->model->kernel_why = NULL;
    r->model->kernel_why = why;
    f->model = r->model;
    f->loss = r->loss;
    r->model = old.model;
    r->loss = old.loss;
}

thiele_status thi_try_rivals(thi_fitting *f, const thiele_table *table)
{
    double deadline = f->driver->deadline, beside[THI_RIVALS], best = 0.0;
    int64_t known = 0;
    int taken = -1, tried = 0;
    thi_beside choice;
    thiele_status status = THIELE_OK;
    for (int k = 0; k < f->rivals && !thi_driver_stopped(f->driver) && status == THIELE_OK; k++, tried++) {
        thiele_fit_options options = *f->options;
        thi_fitting r = {.ctx = f->ctx, .options = &options, .driver = f->driver, .begins = &f->rival[k].values};
        r.favourite = f;
        r.result = f->result;
        r.partial = f->partial;
        thi_budget_split(f->driver, f->rivals - k);
        status = fit_rival(f, table, &f->rival[k], &options, &r);
        bool whole = !thi_driver_stopped(f->driver);
        thi_budget_restore(f->driver, deadline);
        double error, gain = gain_of(f, &r, &known, &error);
        beside[k] = best + gain;
        if (status == THIELE_OK && whole && thi_is_better(&r)) {
            take_over(f, &r);
            taken = k;
            best += gain;
        }
        thiele_model_destroy(r.model);
        thi_fitting_clear(&r);
    }
    if (status != THIELE_OK || tried == 0 || known == 0) {
        return status;
    }
    thi_beside_begin(&choice, f->ctx, "predictions", known);
    if (taken >= 0) {
        thi_beside_add(&choice, "gaussian", -best);
    }
    for (int k = 0; k < tried; k++) {
        if (k != taken) {
            thi_beside_add(&choice, f->rival[k].likelihood, beside[k] - best);
        }
    }
    return thi_beside_end(&choice, &f->model->noise_why);
}

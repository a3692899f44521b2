/*
 * Residuals of rows that the model has not seen, scaled by its own spread, and what follows from them: the tails that
 * the summary speaks of, and, where it was asked for, the calibration. Costs three quantiles a row beside the marginals
 * where the law is no Gaussian.
 */
#include "model/calibrate.h"

#include <math.h>
#include <string.h>

#include "model/outputs.h"

/*
 * Rows that calibration holds out by itself: a fifth, and in turn the other fifths too while there are fewer residuals
 * than are wanted. The coverage of 90% intervals has a standard deviation of sqrt(0.09/n): 0.7 points at the most rows.
 */
static const double HELD_SHARE = 0.2;
enum { RESIDUALS_WANTED = 2000, RESIDUALS_LEAST = 20, FOLDS_MOST = 5 };
/* Where they can't be held out in turn: more of a small table. */
static const double HELD_SHARE_ONCE = 1.0 / 3.0;
enum { HELD_ONCE = 1000 };
/* Three standard deviations of a normal law: the ends of the interval that holds 99.73%. */
static const double FAR_ENDS[] = {0.0013498980316300946, 0.9986501019683699};
#define FAR_SHARE  0.0026997960632601890
#define NORMAL_MAD 0.67448975019608171
/* Chance alone calls tails heavy so often; and a share below twice the expected one is nothing to speak of. */
static const double CHANCE = 0.001, NOTABLE = 2.0;

thiele_status thi_check_calibrate(const thi_fitting *f)
{
    const thi_likelihood_ops *ops = f->spec.lik->ops;
    bool ordered = ops->ordered;
    if (!f->options->result.calibrate || (ops->support != THI_SUPPORT_COUNT && !ordered)) {
        return THIELE_OK;
    }
    return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                    "`calibrate` works for continuous numbers and for unordered labels, not for the %s of "
                    "likelihood '%s'",
                    ordered ? "ordered labels" : "counts", thiele_likelihood_name(f->spec.lik));
}

/*
 * Steps and chains that go on until a deadline: a posterior that is made again in a part of the time is not the one
 * that was scored, so that one stays.
 */
static bool until_deadline(const thi_fitting *f)
{
    return f->driver->deadline > 0.0 && f->goes_on;
}

thiele_status thi_held_rows(thi_fitting *f, bool exact)
{
    int64_t n = f->rows.n;
    double holdout = f->options->result.holdout;
    bool calibrate = f->options->result.calibrate != 0;
    f->held = (int64_t)(holdout * (double)n);
    f->folds = f->held > 0 ? 1 : 0;
    if (holdout > 0.0 && (f->held < 1 || n - f->held < 2)) {
        return thi_fail(f->ctx, THIELE_ERROR_DATA, "%lld rows are too few to hold out a fraction of %g", (long long)n,
                        holdout);
    }
    if (calibrate && n < RESIDUALS_LEAST) {
        return thi_fail(f->ctx, THIELE_ERROR_DATA, "%lld rows are too few for `calibrate`: it needs at least %d",
                        (long long)n, RESIDUALS_LEAST);
    }
    if (calibrate && !exact) {
        int64_t fifth = thi_least((int64_t)(HELD_SHARE * (double)n), RESIDUALS_WANTED);
        int64_t once = thi_least((int64_t)(HELD_SHARE_ONCE * (double)n), HELD_ONCE);
        f->keeps = until_deadline(f);
        f->held = f->held > 0 ? f->held : f->keeps && once > fifth ? once : fifth;
        int64_t folds = thi_least((RESIDUALS_WANTED + f->held - 1) / f->held, thi_least(FOLDS_MOST, n / f->held));
        f->folds = f->keeps ? 1 : (int)folds;
    }
    return THIELE_OK;
}

/* --- rows that the model has not seen --------------------------------------------------------------------------------
 */

thiele_status thi_unseen_open(thi_unseen *u, const thi_fitting *f, int64_t capacity)
{
    const thiele_model *model = f->model;
    size_t numbers = (size_t)capacity * (size_t)model->encoder.targets, classes = (size_t)model->encoder.target->levels;
    thiele_status status;
    *u = (thi_unseen){0};
    if (classes > 0) {
        THI_TRY(thi_alloc(f->ctx, &u->label, (size_t)capacity, sizeof *u->label));
        THI_TRY(thi_alloc(f->ctx, &u->probability, (size_t)capacity * classes, sizeof *u->probability));
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(f->ctx, &u->t, numbers, sizeof *u->t));
    THI_TRY(thi_alloc(f->ctx, &u->reach, numbers, sizeof *u->reach));
    THI_TRY(thi_alloc(f->ctx, &u->size, (size_t)capacity, sizeof *u->size));
out:
    return status;
}

void thi_unseen_close(thi_unseen *u)
{
    thi_free(u->label);
    thi_free(u->probability);
    thi_free(u->t);
    thi_free(u->reach);
    thi_free(u->size);
    *u = (thi_unseen){0};
}

static void keep_labels(thi_unseen *u, const thi_outputs *o, const thi_rows *rows)
{
    memcpy(u->probability + u->rows * o->classes, o->probability,
           (size_t)(rows->n * o->classes) * sizeof *o->probability);
    for (int64_t i = 0; i < rows->n; i++) {
        u->label[u->rows + i] = o->model->encoder.signs ? rows->y[i] > 0.0 : (int)rows->y[i];
    }
}

/*
 * The quantiles of the outputs are in the units of the data; where they take a search nothing is said about tails. A
 * target that is missing has no residual.
 */
static void keep_residuals(thi_unseen *u, const thi_outputs *o, const thi_rows *rows)
{
    thi_support support = o->model->lik->ops->support;
    int P = o->outputs;
    for (int64_t i = 0; i < rows->n * P; i++) {
        const thi_target *target = &o->model->encoder.target[i % P];
        double t = isnan(rows->y[i]) ? NAN : thi_spread_residual(&o->spread[i], support, rows->y[i]);
        double *reach = &u->reach[u->rows * P + i];
        u->t[u->rows * P + i] = t;
        *reach = INFINITY;
        if (o->options->quantile_count > 0) {
            double end = (o->quantiles[2 * i + (t > 0.0)] - target->center) / target->scale;
            *reach = fabs(thi_spread_residual(&o->spread[i], support, end));
        }
    }
}

bool thi_has_quantiles(const thiele_model *model)
{
    return model->components == 1 && model->lik->ops->quantiles != NULL;
}

thiele_status thi_unseen_add(thi_unseen *u, const thi_fitting *f, const thi_rows *rows, const double *mu,
                             const double *v)
{
    const thiele_model *model = f->model;
    bool classes = thi_model_has_classes(model);
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    thi_outputs outputs = {0};
    thiele_status status;
    if (!f->options->result.calibrate && (classes || !thi_has_quantiles(model))) {
        return THIELE_OK;
    }
    options.quantiles = FAR_ENDS;
    options.quantile_count = thi_has_quantiles(model) ? sizeof FAR_ENDS / sizeof *FAR_ENDS : 0;
    THI_TRY(thi_outputs_open_bare(&outputs, f->ctx, model, &options, rows->n));
    THI_TRY(thi_outputs_make(&outputs, f->ctx, rows->n, NULL, mu, v));
    (classes ? keep_labels : keep_residuals)(u, &outputs, rows);
    u->rows += rows->n;
out:
    thi_outputs_close(&outputs);
    return status;
}

/* --- what they say ---------------------------------------------------------------------------------------------------
 */

/* P(X >= k) of a Poisson law; of a large one k is twice the mean here, which never happens. */
static double poisson_tail(double mean, int64_t k)
{
    static const double LARGE = 500.0;
    double term = exp(-mean), below = 0.0;
    for (int64_t i = 0; i < k && mean < LARGE; i++) {
        below += term;
        term *= mean / (double)(i + 1);
    }
    return mean < LARGE ? 1.0 - below : 0.0;
}

/* The median of |t| is the typical size: a scale that is wrong in all rows is no matter of tails. size: n of them. */
static thi_tails tails_of(const thi_unseen *u, int P, int p, int64_t n)
{
    thi_tails tails = {.rows = n, .expected = FAR_SHARE * (double)n};
    double typical = n > 0 ? u->size[n / 2] / NORMAL_MAD : 0.0;
    for (int64_t i = 0; i < u->rows; i++) {
        tails.beyond += fabs(u->t[i * P + p]) > typical * u->reach[i * P + p];
    }
    tails.heavy =
        (double)tails.beyond > NOTABLE * tails.expected && poisson_tail(tails.expected, tails.beyond) < CHANCE;
    return tails;
}

/* Those of one target, in ascending order of size; returns how many. */
static int64_t sort_sizes(thi_unseen *u, int P, int p)
{
    int64_t n = 0;
    for (int64_t i = 0; i < u->rows; i++) {
        double t = u->t[i * P + p];
        u->size[n] = fabs(t);
        n += !isnan(t);
    }
    thi_sort(n, u->size);
    return n;
}

thiele_status thi_unseen_learn(thi_unseen *u, thi_fitting *f, bool left_out)
{
    thiele_model *model = f->model;
    thi_calibration *c = &model->calibration;
    int P = model->encoder.targets;
    thiele_status status = THIELE_OK;
    if (u->rows == 0) {
        return THIELE_OK;
    }
    c->rows = f->options->result.calibrate ? u->rows : 0;
    c->left_out = left_out;
    if (u->label != NULL) {
        c->temperature = thi_find_temperature(u->rows, model->encoder.target->levels, u->label, u->probability);
        return THIELE_OK;
    }
    if (model->tails == NULL) {
        THI_TRY(thi_alloc(f->ctx, &model->tails, (size_t)P, sizeof *model->tails));
    }
    if (f->options->result.calibrate && c->law == NULL) {
        THI_TRY(thi_alloc(f->ctx, &c->law, (size_t)P, sizeof *c->law));
    }
    for (int p = 0; p < P; p++) {
        int64_t n = sort_sizes(u, P, p);
        model->tails[p] = thi_has_quantiles(model) ? tails_of(u, P, p, n) : (thi_tails){0};
        if (f->options->result.calibrate) {
            thi_residual_law_make(&c->law[p], n, u->size);
        }
    }
out:
    return status;
}

thiele_status thi_calibrate_left_out(thi_fitting *f, const double *target)
{
    const thiele_model *model = f->model;
    thi_unseen u;
    thiele_status status;
    THI_TRY(thi_unseen_open(&u, f, model->loo.rows));
    for (int64_t i = 0; i < model->loo.rows; i++) {
        u.t[i] = (target[i] - model->loo_mean[i]) / sqrt(model->loo_variance[i]);
        u.reach[i] = 3.0;
    }
    u.rows = model->loo.rows;
    THI_TRY(thi_unseen_learn(&u, f, true));
out:
    thi_unseen_close(&u);
    return status;
}

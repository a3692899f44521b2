/*
 * Fitting: the table is encoded, the specification parsed, the hyperparameters learned, and the posterior frozen into a
 * predictor. With a held-out part the parameters are learned without it, it is scored, and the final model is
 * conditioned on all rows.
 */
#include <math.h>
#include <string.h>

#include "fit/exact.h"
#include "fit/start.h"
#include "model/duplicates.h"
#include "model/model.h"

/* Above this many rows exact regression is not chosen by itself: an evaluation takes minutes. */
enum { EXACT_AUTO_MAX = 10000, ITERATIONS_DEFAULT = 200, RESTARTS_MAX = 1000 };

/* Everything that a fit holds until the model owns it. */
typedef struct fitting {
    thiele_context *ctx;
    const thiele_fit_options *options;
    thiele_model *model;
    thi_driver driver;
    double *X, *y;
    int64_t *row, n;
    thiele_kernel *kernel;
    thi_mean mean;
    double *mean_parameter;
    thi_hypers hypers;
    thi_fit_result result;
} fitting;

thiele_status thi_check_fit_options(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options)
{
    if (options == NULL || options->size != sizeof *options) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "fit options must be initialised with THIELE_FIT_OPTIONS_INIT");
    }
    if (table == NULL || options->target == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a fit needs a table and the name of its target column (--target)");
    }
    if (!(options->holdout >= 0.0 && options->holdout <= 0.9)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the held-out fraction must be between 0 and 0.9");
    }
    if (!(options->deadline >= 0.0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the deadline must be a number of seconds, 0 for none");
    }
    if (options->restarts < 0 || options->restarts > RESTARTS_MAX || options->iterations < -1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "restarts must be 0 to %d, iterations at least -1", RESTARTS_MAX);
    }
    return THIELE_OK;
}

/* Exact regression, or what it would take for this many rows. */
static thiele_status choose_method(fitting *f)
{
    const char *method = f->options->method != NULL ? f->options->method : "auto";
    thiele_context *ctx = f->ctx;
    bool asked = strcmp(method, "exact") == 0;
    if (!asked && strcmp(method, "auto") != 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no method '%s' in this version: it has auto and exact", method);
    }
    double bytes = thi_exact_bytes(f->n);
    if (bytes > (double)(thi_memory_limit(ctx) - thi_memory_held(ctx)) || (!asked && f->n > EXACT_AUTO_MAX)) {
        return thi_fail(
            ctx, THIELE_ERROR_LIMIT,
            "%lld rows are too many for exact regression: it would take %.3g GB of memory and %.2g floating point "
            "operations for each of about 50 evaluations%s; fit to a sample of the rows, or use a sparse method "
            "(variational, fitc, pic) in a version that has them",
            (long long)f->n, bytes * 1e-9, pow((double)f->n, 3.0),
            asked ? "" : " (--method exact insists where the memory is there)");
    }
    thiele_status status = thi_strdup(ctx, &f->model->method, "exact");
    if (status == THIELE_OK) {
        status =
            thi_strdup(ctx, &f->model->why, asked ? "it was asked for" : "the table is small and the noise Gaussian");
    }
    return status;
}

static thiele_status specify(fitting *f)
{
    thiele_context *ctx = f->ctx;
    const thiele_fit_options *options = f->options;
    const thi_encoder *encoder = &f->model->encoder;
    const char *text = options->kernel != NULL ? options->kernel : "matern52(ard)";
    thi_kernel_columns columns = {0};
    thiele_status status;
    THI_TRY(thi_mean_find(ctx, options->mean != NULL ? options->mean : "zero", &f->mean));
    THI_TRY(thi_kernel_columns_make(&columns, ctx, encoder));
    THI_TRY(thi_kernel_parse(&f->kernel, ctx, text, &columns.view));
    THI_TRY(thiele_kernel_print(f->kernel, ctx, 0, &f->model->kernel));
    thi_kernel_fix_redundant(f->kernel);
    THI_TRY(thi_hypers_make(&f->hypers, ctx, f->kernel, f->mean, encoder, options->set, options->prior));
    THI_TRY(thi_alloc(ctx, &f->mean_parameter, (size_t)f->hypers.mean, sizeof *f->mean_parameter));
out:
    thi_kernel_columns_clear(&columns);
    return status;
}

static thiele_status learn(fitting *f, int64_t n, const double *X, const double *y)
{
    thi_fit_settings settings = {f->options->restarts,
                                 f->options->iterations == 0 ? ITERATIONS_DEFAULT : f->options->iterations};
    thiele_status status = thi_start_guess(&f->hypers, f->ctx, f->kernel, n, X, y);
    if (status == THIELE_OK) {
        status = thi_fit_exact(f->ctx, &f->driver, n, X, y, f->kernel, f->mean, &f->hypers, &settings, &f->result);
    }
    return status;
}

/* Conditions on n rows at the learned values and freezes the predictor; leave-one-out predictions when asked. */
static thiele_status freeze(fitting *f, int64_t n, const double *X, const double *y, bool with_loo)
{
    thiele_model *model = f->model;
    thi_prior prior;
    thi_exact exact;
    thi_hypers_apply(&f->hypers, f->kernel, f->mean, f->mean_parameter, &prior);
    thi_predictor_clear(&model->predictor);
    thiele_status status = thi_exact_open(&exact, f->ctx, n, X, y);
    if (status == THIELE_OK) {
        status = thi_exact_condition(&exact, f->ctx, &prior);
    }
    if (status == THIELE_OK && with_loo) {
        status = thi_exact_loo(&exact, f->ctx, model->loo_mean, model->loo_variance);
    }
    if (status != THIELE_OK) {
        thi_exact_close(&exact);
        return status;
    }
    model->noise = prior.noise;
    model->jitter = exact.jitter;
    /* The density of y in its own units: each of the n targets was divided by the scale. */
    model->log_marginal = exact.log_marginal - (double)n * log(model->encoder.target_scale);
    return thi_predictor_freeze(&model->predictor, f->ctx, &exact, &prior);
}

/* --- the held-out part -----------------------------------------------------------------------------------------------
 */

/* X and y with their rows in random order, so that the last ones are a random part. */
static thiele_status shuffled(fitting *f, double **X, double **y)
{
    int D = f->model->encoder.dims;
    int64_t *order = NULL;
    *X = *y = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &order, (size_t)f->n, sizeof *order));
    THI_TRY(thi_alloc(f->ctx, X, (size_t)(f->n * D), sizeof **X));
    THI_TRY(thi_alloc(f->ctx, y, (size_t)f->n, sizeof **y));
    thi_random_permutation((thi_stream){f->ctx->seed, THI_RANDOM_SPLIT, 0}, f->n, order);
    for (int64_t i = 0; i < f->n; i++) {
        memcpy(*X + i * D, f->X + order[i] * D, (size_t)D * sizeof **X);
        (*y)[i] = f->y[order[i]];
    }
out:
    thi_free(order);
    return status;
}

/* Learns without the last `held` of the rows X, y and scores them. */
static thiele_status learn_and_score(fitting *f, const double *X, const double *y, int64_t held)
{
    thiele_context *ctx = f->ctx;
    thi_encoder *encoder = &f->model->encoder;
    int64_t n = f->n - held;
    double *block = NULL;
    int64_t clipped = 0;
    thiele_status status;
    THI_TRY(learn(f, n, X, y));
    THI_TRY(freeze(f, n, X, y, false));
    THI_TRY(thi_alloc(ctx, &block, (size_t)(3 * held), sizeof *block));
    double *mean = block;
    double *variance = block + held;
    double *target = block + 2 * held;
    THI_TRY(thi_predictor_marginals(&f->model->predictor, ctx, held, X + n * encoder->dims, mean, variance, &clipped));
    thi_model_to_data_units(f->model, false, held, mean, variance);
    for (int64_t i = 0; i < held; i++) {
        target[i] = encoder->target_center + encoder->target_scale * y[n + i];
    }
    THI_TRY(thiele_score_gaussian(ctx, held, target, mean, variance, encoder->target_mean, encoder->target_variance,
                                  &f->model->holdout));
out:
    thi_free(block);
    return status;
}

static thiele_status learn_with_holdout(fitting *f)
{
    int64_t held = (int64_t)(f->options->holdout * (double)f->n);
    if (held < 1 || f->n - held < 2) {
        return thi_fail(f->ctx, THIELE_ERROR_DATA, "%lld rows are too few to hold out a fraction of %g",
                        (long long)f->n, f->options->holdout);
    }
    double *X;
    double *y;
    thiele_status status = shuffled(f, &X, &y);
    if (status == THIELE_OK) {
        status = learn_and_score(f, X, y, held);
    }
    thi_free(X);
    thi_free(y);
    return status;
}

/* --- the whole -------------------------------------------------------------------------------------------------------
 */

/* The table's rows as X and y. */
static thiele_status read_table(fitting *f, const thiele_table *table)
{
    thi_reader reader = {0};
    thiele_status status;
    THI_TRY(thi_encoder_learn(&f->model->encoder, f->ctx, table, f->options));
    THI_TRY(thi_reader_open(&reader, f->ctx, &f->model->encoder, table, true, false, f->options->drop_missing != 0));
    THI_TRY(thi_read_all(f->ctx, &reader, &f->X, &f->y, &f->row, &f->n));
out:
    thi_reader_close(&reader);
    return status;
}

/* The rows whose leave-one-out prediction is furthest off, in standard deviations. */
static void find_worst(thiele_model *model, const double *target, const int64_t *row)
{
    for (int64_t i = 0; i < model->loo.rows; i++) {
        double z = (target[i] - model->loo_mean[i]) / sqrt(model->loo_variance[i]);
        bool full = model->worst_count == THI_WORST_MAX;
        if (full && fabs(z) <= fabs(model->worst_z[THI_WORST_MAX - 1])) {
            continue;
        }
        int at = full ? THI_WORST_MAX - 1 : model->worst_count++;
        for (; at > 0 && fabs(z) > fabs(model->worst_z[at - 1]); at--) {
            model->worst_row[at] = model->worst_row[at - 1];
            model->worst_z[at] = model->worst_z[at - 1];
        }
        model->worst_row[at] = row[i];
        model->worst_z[at] = z;
    }
}

static thiele_status report(fitting *f)
{
    thiele_model *model = f->model;
    model->stop = f->result.stop;
    model->rows = f->n;
    model->evaluations = f->result.evaluations;
    model->iterations = f->result.iterations;
    thiele_status status = thi_alloc(f->ctx, &model->learned, (size_t)f->hypers.count, sizeof *model->learned);
    for (int i = 0; status == THIELE_OK && i < f->hypers.count; i++) {
        const thi_hyper *h = &f->hypers.hyper[i];
        bool standardised = i < f->hypers.kernel && !thi_kernel_has_unit(f->kernel, i, model->encoder.scale);
        model->learned[i] = (thi_learned){.value = thi_hyper_data_value(h),
                                          .fixed = h->fixed,
                                          .redundant = h->fixed && !h->given,
                                          .standardised = standardised};
        status = thi_strdup(f->ctx, &model->learned[i].name, h->name);
        model->learned_count = i + 1;
    }
    return status;
}

/* Leave-one-out predictions on all rows, in the units of the data, and what they say. */
static thiele_status cross_check(fitting *f)
{
    thiele_model *model = f->model;
    const thi_encoder *encoder = &model->encoder;
    double *target = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &model->loo_mean, (size_t)f->n, sizeof *model->loo_mean));
    THI_TRY(thi_alloc(f->ctx, &model->loo_variance, (size_t)f->n, sizeof *model->loo_variance));
    THI_TRY(thi_alloc(f->ctx, &target, (size_t)f->n, sizeof *target));
    THI_TRY(freeze(f, f->n, f->X, f->y, true));
    for (int64_t i = 0; i < f->n; i++) {
        target[i] = encoder->target_center + encoder->target_scale * f->y[i];
        model->loo_mean[i] = encoder->target_center + encoder->target_scale * model->loo_mean[i];
        model->loo_variance[i] *= encoder->target_scale * encoder->target_scale;
    }
    THI_TRY(thiele_score_gaussian(f->ctx, f->n, target, model->loo_mean, model->loo_variance, encoder->target_mean,
                                  encoder->target_variance, &model->loo));
    find_worst(model, target, f->row);
out:
    thi_free(target);
    return status;
}

static thiele_status fit(fitting *f, const thiele_table *table)
{
    thiele_context *ctx = f->ctx;
    thiele_model *model = f->model;
    thiele_status status;
    THI_TRY(read_table(f, table));
    THI_TRY(choose_method(f));
    THI_TRY(specify(f));
    THI_TRY(thi_check_replicates(ctx, f->n, model->encoder.dims, f->X, f->y, f->row, f->options->replicates != 0));
    THI_TRY(f->options->holdout > 0.0 ? learn_with_holdout(f) : learn(f, f->n, f->X, f->y));
    THI_TRY(cross_check(f));
    THI_TRY(report(f));
out:
    return status;
}

thiele_status thiele_model_fit(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                               const thiele_fit_options *options)
{
    *out = NULL;
    fitting f = {.ctx = ctx, .options = options};
    thiele_status status = thi_check_fit_options(ctx, table, options);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &f.model, 1, sizeof *f.model);
    }
    if (status == THIELE_OK) {
        thi_driver_start(&f.driver, ctx, options->deadline);
        status = fit(&f, table);
    }
    if (status == THIELE_OK) {
        *out = f.model;
    } else {
        thiele_model_destroy(f.model);
    }
    thi_hypers_clear(&f.hypers);
    thiele_kernel_destroy(f.kernel);
    thi_free(f.mean_parameter);
    thi_free(f.X);
    thi_free(f.y);
    thi_free(f.row);
    return status;
}

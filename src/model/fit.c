/*
 * Fitting: the table is encoded, the specification parsed, the hyperparameters learned, and the posterior frozen into
 * predictors. With a held-out part the parameters are learned without it, it is scored, and the final model is
 * conditioned on all rows.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/predictive.h"
#include "model/calibrate.h"
#include "model/choose.h"
#include "model/held_out.h"
#include "model/kept_rows.h"
#include "model/methods.h"
#include "model/options.h"
#include "model/parts.h"
#include "model/replicates.h"
#include "model/sampling.h"
#include "model/units.h"
#include "model/worth.h"

void thi_model_clear_predictors(thiele_model *model)
{
    for (int j = 0; model->latent != NULL && j < model->latents; j++) {
        thi_predictor_clear(&model->latent[j]);
    }
}

/* The density of y in its own units: each target that is there (of streamed rows: each) was divided by its scale. */
static double in_data_units(const thi_encoder *encoder, const thi_rows *rows, int64_t streamed, double value)
{
    for (int p = 0; p < encoder->targets; p++) {
        int64_t present = streamed;
        for (int64_t i = 0; i < rows->n; i++) {
            present += !isnan(rows->y[i * rows->outputs + p]);
        }
        value -= (double)present * log(encoder->target[p].scale);
    }
    return value;
}

const thi_source *thi_fitting_source(const thi_fitting *f, const thi_rows *rows, thi_source *memory)
{
    thi_source_of_rows(memory, rows);
    return f->streamed ? &f->stream.source : memory;
}

thi_problem thi_fitting_problem(thi_fitting *f, const thi_source *source)
{
    return (thi_problem){f->ctx, f->driver, &f->spec, source, &f->hypers};
}

thiele_status thi_run_one(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    bool samples = f->method->sampler != NULL;
    thiele_status status = learn ? thi_line_guess(f, rows) : THIELE_OK;
    if (status != THIELE_OK) {
        return status;
    }
    double deadline = samples ? thi_budget_lend(f->driver, THI_SHARE_LEARN) : f->driver->deadline;
    status = f->method->run(f, rows, learn, fitted);
    if (samples) {
        thi_budget_restore(f->driver, deadline);
    }
    return status;
}

thiele_status thi_run_method(thi_fitting *f, const thi_rows *rows, bool learn, double *loo_mean, double *loo_variance)
{
    thiele_model *model = f->model;
    thi_model_clear_predictors(model);
    if (f->method->sampler != NULL) {
        thi_sampling_clear(model);
    }
    thi_fitted fitted = {
        .latent = model->latent, .weight = model->weight, .loo_mean = loo_mean, .loo_variance = loo_variance};
    thiele_status status = f->each ? thi_run_each(f, rows, learn, &fitted) : thi_run_one(f, rows, learn, &fitted);
    model->jitter = fitted.jitter;
    model->value = in_data_units(&model->encoder, rows, f->streamed ? f->stream.source.n : 0, fitted.value);
    return status == THIELE_OK && f->method->sampler != NULL ? thi_sample(f, rows) : status;
}

/* --- what is known afterwards ----------------------------------------------------------------------------------------
 */

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

thiele_status thi_report_sparse(thi_fitting *f, const char *posterior)
{
    thiele_model *model = f->model;
    thiele_status status = thi_strdup(f->ctx, &model->optimizer, f->outcome.optimizer);
    model->batch = f->outcome.batch;
    model->epochs = f->outcome.epochs;
    return status == THIELE_OK ? thi_strdup(f->ctx, &model->posterior, posterior) : status;
}

/* "gamma(2, 0.5)"; NULL where there is none, or the value was not learned. */
static thiele_status print_prior(thiele_context *ctx, const thi_hyper *h, char **out)
{
    thi_text text;
    *out = NULL;
    if (h->prior == THI_PRIOR_NONE || h->assumed || h->fixed) {
        return THIELE_OK;
    }
    thi_text_init(&text, ctx);
    thi_text_add(&text, h->prior == THI_PRIOR_GAMMA ? "gamma(" : "lognormal(");
    thi_text_add_number(&text, h->prior_a);
    thi_text_add(&text, ", ");
    thi_text_add_number(&text, h->prior_b);
    thi_text_add(&text, ")");
    return thi_text_take(&text, out);
}

thiele_status thi_report(const thi_fitting *f, const thi_fit_result *result, thiele_model *model)
{
    model->stop = result->stop;
    model->rows = f->streamed ? f->stream.source.n : f->rows.n;
    model->evaluations = result->evaluations;
    model->iterations = result->iterations;
    thiele_status status = thi_alloc(f->ctx, &model->learned, (size_t)f->hypers.count, sizeof *model->learned);
    if (status == THIELE_OK && !isfinite(model->value)) {
        status = thi_fail(f->ctx, THIELE_ERROR_NUMERIC,
                          "the evidence at the end of the fit is not finite: the targets or the values "
                          "that were set are extreme");
    }
    for (int i = 0; status == THIELE_OK && i < f->hypers.count; i++) {
        const thi_hyper *h = &f->hypers.hyper[i];
        model->learned[i] = (thi_learned){.value = thi_units_value(f, i),
                                          .fixed = h->fixed,
                                          .redundant = h->fixed && !h->given,
                                          .standardised = h->standardised};
        status = thi_strdup(f->ctx, &model->learned[i].name, h->name);
        model->learned_count = i + 1;
        if (status == THIELE_OK) {
            status = print_prior(f->ctx, h, &model->learned[i].prior);
        }
    }
    return status;
}

thi_snapshot thi_fitting_snapshot(thi_fitting *f, thiele_status (*save)(void *arg, thi_fitted *fitted))
{
    static const double EVERY = 1.0; /* seconds */
    const thiele_fit_options *o = f->options;
    return (thi_snapshot){o->result.snapshot_file != NULL ? save : NULL, f,
                          o->result.snapshot > 0.0 ? o->result.snapshot : EVERY};
}

thiele_status thi_save_snapshot(const thi_fitting *f, const thi_fit_result *result, const thi_fitted *fitted,
                                thiele_model *model)
{
    thiele_status status;
    model->latent = fitted->latent;
    model->jitter = fitted->jitter;
    model->learned = NULL;
    model->learned_count = 0;
    THI_TRY(thi_report(f, result, model));
    THI_TRY(thiele_model_save(model, f->ctx, f->options->result.snapshot_file));
out:
    thi_model_clear_learned(model);
    return status;
}

double thi_fitting_value(const thi_fitting *f, double value)
{
    return in_data_units(&f->model->encoder, &f->rows, f->streamed ? f->stream.source.n : 0, value);
}

/* Exact regression on all rows with its leave-one-out predictions, in the units of the data, and what they say. */
static thiele_status finish_exact(thi_fitting *f, bool learn)
{
    thiele_model *model = f->model;
    const thi_target *t = model->encoder.target;
    int64_t n = f->rows.n;
    double *target = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &model->loo_mean, (size_t)n, sizeof *model->loo_mean));
    THI_TRY(thi_alloc(f->ctx, &model->loo_variance, (size_t)n, sizeof *model->loo_variance));
    THI_TRY(thi_alloc(f->ctx, &target, (size_t)n, sizeof *target));
    THI_TRY(thi_run_method(f, &f->rows, learn, model->loo_mean, model->loo_variance));
    for (int64_t i = 0; i < n; i++) {
        target[i] = t->center + t->scale * f->rows.y[i];
        model->loo_mean[i] = t->center + t->scale * model->loo_mean[i];
        model->loo_variance[i] *= t->scale * t->scale;
    }
    THI_TRY(thiele_score_gaussian(f->ctx, n, target, model->loo_mean, model->loo_variance, t->mean, t->variance,
                                  &model->loo));
    find_worst(model, target, f->row);
    THI_TRY(thi_calibrate_left_out(f, target));
out:
    thi_free(target);
    return status;
}

/* What the model has room for, and a way of expectation that this likelihood offers. */
static thiele_status prepare(thi_fitting *f)
{
    thiele_model *model = f->model;
    const thiele_likelihood *lik = model->lik;
    const char *way = f->steps != NULL ? f->steps : f->spec.expectation;
    thi_expect expect = {0};
    thiele_status status;
    THI_TRY(thi_expect_open(&expect, f->ctx, lik, way));
    THI_TRY(thi_strdup(f->ctx, &model->expectation, way != NULL ? way : thiele_likelihood_best_method(lik)));
    if (lik->spec != NULL) {
        THI_TRY(thi_strdup(f->ctx, &model->own, thiele_likelihood_name(lik)));
    }
    model->latents = lik->latents;
    model->groups = f->spec.latents.groups;
    model->components = f->settings.components;
    THI_TRY(thi_alloc(f->ctx, &model->latent, (size_t)model->latents, sizeof *model->latent));
    THI_TRY(thi_alloc(f->ctx, &model->weight, (size_t)model->components, sizeof *model->weight));
    THI_TRY(thi_alloc(f->ctx, &model->holdout, (size_t)model->encoder.targets, sizeof *model->holdout));
    model->weight[0] = 1.0;
out:
    thi_expect_close(&expect);
    return status;
}

/* --- a model that is no good -----------------------------------------------------------------------------------------
 */

/* Whether the user left the fit a choice: what was asked for is not replaced. */
static bool may_replace(const thi_fitting *f)
{
    return f->options->prior.set == NULL && f->options->stopping.iterations == 0 && f->spec.lik->spec == NULL &&
           !f->each;
}

/* A dense method on some of the rows in place of a model that no row speaks for. */
static thiele_status replace(thi_fitting *f)
{
    thiele_model *model = f->model;
    thi_source memory;
    thi_rows some = {0};
    thiele_status status;
    f->method = f->hypers.noise >= 0 ? &thi_method_exact : &thi_method_dense;
    f->settings.components = 1;
    thi_budget_extend(f->driver, THI_SHARE_REPLACE);
    model->components = 1;
    model->weight[0] = 1.0;
    thi_free(model->method);
    thi_free(model->expectation);
    model->method = model->expectation = NULL;
    f->spec.expectation = f->options->model.expectation;
    f->spec.steps = NULL;
    thi_source_of_rows(&memory, &f->rows);
    THI_TRY(thi_strdup(f->ctx, &model->method, f->method->name));
    THI_TRY(thi_strdup(f->ctx, &model->expectation,
                       f->spec.expectation != NULL ? f->spec.expectation : thiele_likelihood_best_method(f->spec.lik)));
    THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
    THI_TRY(thi_source_sample(f->streamed ? &f->stream.source : &memory, f->ctx, f->method->objective->subset,
                              THI_SAMPLE_EXPLORE, &some));
    THI_TRY(thi_run_method(f, &some, true, NULL, NULL));
    thi_log(f->ctx, THIELE_LOG_WARNING,
            "the fit ended worse than a constant: a fit to %lld of the rows by method %s replaces it; allow more "
            "time, or try another method",
            (long long)some.n, f->method->name);
out:
    thi_rows_free(&some);
    return status;
}

/* Exact regression of some rows by a prior that explains next to nothing: a constant, and how far targets are from it.
 */
static thiele_status settle(thi_fitting *f)
{
    enum { FEW = 100 };
    static const double NEXT_TO_NOTHING = 1e-6; /* of the targets' variance, 1 */
    thi_rows few = f->rows;
    thiele_status status;
    f->method = &thi_method_exact;
    thi_budget_extend(f->driver, THI_SHARE_REPLACE);
    THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
    for (int i = 0; i < f->hypers.count; i++) {
        thi_hyper *h = &f->hypers.hyper[i];
        bool signal = strstr(h->name, "variance") != NULL;
        h->value = signal ? log(NEXT_TO_NOTHING) : i == f->hypers.noise ? 0.0 : h->value;
    }
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
    few.n = thi_least(few.n, FEW);
    THI_TRY(thi_run_method(f, &few, false, NULL, NULL));
    f->result.stop = THIELE_STOP_FIXED;
    thi_log(f->ctx, THIELE_LOG_WARNING,
            "no fit predicts the rows better than a constant, so the model is a constant: outliers "
            "may be to blame (`likelihood` student-t), or the inputs say nothing about the target");
out:
    return status;
}

/* A model that is worse than a constant at its own rows is replaced or, where nothing may be changed, warned of. */
static thiele_status check_worth(thi_fitting *f)
{
    bool worse, open = may_replace(f);
    thiele_status status;
    THI_TRY(thi_is_worse_than_constant(f, &worse));
    if (worse && !open) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "the model predicts its own rows worse than a constant: the settings or limits do not suit them");
        return THIELE_OK;
    }
    if (worse && (f->method->can & THI_CAN_LEAVE_OUT) == 0) {
        THI_TRY(replace(f));
        THI_TRY(thi_is_worse_than_constant(f, &worse));
    }
    if (worse && f->hypers.noise >= 0 && !f->hypers.hyper[f->hypers.noise].fixed && !f->streamed) {
        THI_TRY(settle(f));
    } else if (worse) {
        status = thi_fail(f->ctx, THIELE_ERROR_NUMERIC,
                          "no model predicts its own rows better than a constant: try another "
                          "likelihood or kernel, or fewer inputs");
    }
out:
    return status;
}

/* --- all of it -------------------------------------------------------------------------------------------------------
 */

/* Learns from the rows, or conditions on them where that was done before. */
static thiele_status learn(thi_fitting *f, bool exact)
{
    double deadline = f->rivals > 0 ? thi_budget_lend(f->driver, THI_SHARE_FAVOURITE) : f->driver->deadline;
    bool held = f->held > 0, conditions = f->begins != NULL && f->method->objective == NULL;
    bool learns = !held && !conditions;
    thiele_status status = THIELE_OK;
    if (conditions) {
        thi_rival_sizes(f);
        THI_TRY(thi_find_losses(f));
        if (!thi_is_better(f)) {
            return THIELE_OK;
        }
    }
    if (held) {
        THI_TRY(thi_learn_with_holdout(f));
    }
    /* Steps that are cancelled before the first would leave less than there is. */
    bool keep = held && f->method->partial && thi_driver_stopped(f->driver);
    if (!keep && !f->keeps) {
        THI_TRY(exact ? finish_exact(f, learns) : thi_run_method(f, &f->rows, learns, NULL, NULL));
    }
    if (f->method->sampler == NULL) {
        THI_TRY(check_worth(f));
    }
out:
    if (f->rivals > 0) { /* before the losses: a posterior that time cuts short says little of its noise */
        thi_budget_restore(f->driver, deadline);
    }
    bool judged = f->rivals > 0 || (f->begins != NULL && !conditions);
    return status == THIELE_OK && judged ? thi_find_losses(f) : status;
}

thiele_status thi_fit_table(thi_fitting *f, const thiele_table *table)
{
    thiele_status status;
    THI_TRY(thi_specify_columns(f, table));
    THI_TRY(thi_check_calibrate(f));
    THI_TRY(thi_specify_method(f, table));
    THI_TRY(thi_specify_rows(f, table));
    THI_TRY(thi_check_ranks(f));
    THI_TRY(thi_specify_prior(f));
    THI_TRY(prepare(f));
    bool leaves_out = (f->method->can & THI_CAN_LEAVE_OUT) != 0, exact = leaves_out && !f->each;
    if (leaves_out && f->each) {
        THI_TRY(thi_check_each(f));
    }
    if (exact) {
        THI_TRY(thi_report_replicates(f->ctx, f->rows.n, f->rows.dims, f->rows.X, f->rows.y, f->model->encoder.target,
                                      f->row));
    }
    THI_TRY(thi_held_rows(f, exact));
    THI_TRY(learn(f, exact));
    if (f->favourite != NULL && !thi_is_better(f)) {
        return THIELE_OK; /* it will not be taken */
    }
    THI_TRY(thi_report(f, &f->result, f->model));
    THI_TRY(thi_keep_rows(f));
    thi_report_limits(f);
    if (f->method->report != NULL) {
        THI_TRY(f->method->report(f));
    }
out:
    return status;
}

void thi_fitting_clear(thi_fitting *f)
{
    for (int k = 0; k < f->rivals; k++) {
        thi_free(f->rival[k].kernels);
        thi_named_clear(&f->rival[k].values);
    }
    thi_hypers_clear(&f->hypers);
    thi_latents_clear(&f->spec.latents);
    thi_table_stream_close(&f->stream);
    thi_rows_free(&f->rows);
    thi_free(f->Z);
    thi_free(f->row);
    thi_free(f->written);
    thi_free(f->loss);
}

thiele_status thi_fit_one(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                          const thiele_fit_options *options, bool partial)
{
    thi_driver driver;
    thi_fitting f = {.ctx = ctx, .options = options, .driver = &driver, .partial = partial};
    thiele_status status = thi_alloc(ctx, &f.model, 1, sizeof *f.model);
    if (status == THIELE_OK) {
        thi_driver_start(&driver, ctx, options->stopping.deadline);
        driver.effort = thi_effort(options->stopping.effort);
        status = thi_fit_table(&f, table);
    }
    if (status == THIELE_OK && f.rivals > 0) {
        status = thi_try_rivals(&f, table);
    }
    if (status == THIELE_OK) {
        *out = f.model;
    } else {
        thiele_model_destroy(f.model);
    }
    thi_fitting_clear(&f);
    return status;
}

thiele_status thiele_model_fit(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                               const thiele_fit_options *options)
{
    THI_NEED_OUT(out, ctx, ctx);
    int parts;
    thiele_fit_options taken;
    thiele_table *merged = NULL;
    thiele_status status;
    THI_TRY(thi_fit_options_take(ctx, options, &taken));
    THI_TRY(thi_check_fit_options(ctx, table, &taken));
    thi_column_options columns = thi_columns_of(&taken);
    THI_TRY(thi_table_merge(&merged, ctx, table, &columns));
    table = merged != NULL ? merged : table;
    THI_TRY(thi_parts_count(ctx, table, &taken, &parts));
    THI_TRY(parts > 0 ? thi_parts_fit(out, ctx, table, &taken, parts) : thi_fit_one(out, ctx, table, &taken, false));
out:
    thiele_table_destroy(merged);
    return status;
}

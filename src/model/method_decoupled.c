/* Fits with bases that grow, decoupled or shared: their settings from the options, and what is said of them. */
#include <string.h>

#include "fit/predictive.h"
#include "model/methods.h"
#include "model/specify.h"

/*
 * Orthogonal unless plain was asked for, also where the mean has fewer functions than the covariance: then the plain
 * form would have sweeps for its mean and nothing for its covariance.
 */
static thiele_status read_form(thi_fitting *f, thi_decoupled_form *form)
{
    const char *text = f->options->decoupled.decoupled;
    bool plain = text != NULL && strcmp(text, "plain") == 0;
    *form = plain ? THI_DECOUPLED_PLAIN : THI_DECOUPLED_ORTHOGONAL;
    if (text != NULL && !plain && strcmp(text, "orthogonal") != 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "'%s' is not a form of decoupled bases: use plain or orthogonal",
                        text);
    }
    return THIELE_OK;
}

/* Options that a form would leave unused are refused. */
static thiele_status check_form(const thi_fitting *f, thi_decoupled_form form, bool shared)
{
    const thiele_fit_options *o = f->options;
    bool plain = form == THI_DECOUPLED_PLAIN;
    if (o->decoupled.own_scales && o->inducing.fix_inducing) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "separate length-scales per basis function are learned, and cannot be fixed");
    }
    if ((plain || shared) && o->inducing.inducing_from != NULL) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "%s come from the rows of each step: only the orthogonal form of decoupled "
                        "bases lets you choose",
                        plain ? "plain decoupled bases" : "incremental basis functions");
    }
    if (!plain && !shared && !o->decoupled.own_scales && o->optimiser.rate > 0.0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "orthogonal decoupled bases have no rate: only the plain form and separate length-scales "
                        "have one");
    }
    return THIELE_OK;
}

static thiele_status snapshot(void *arg, thi_fitted *fitted)
{
    const thi_fitting *f = arg;
    const thi_decoupled_settings *s = &f->decoupled_settings;
    const thi_fit_result so_far = {.stop = THIELE_STOP_ITERATIONS};
    thiele_model model = *f->model;
    model.value = thi_fitting_value(f, fitted->value);
    model.optimizer = s->form == THI_DECOUPLED_PLAIN ? "adam" : "natural";
    model.posterior = s->shared ? "full" : "decoupled";
    return thi_save_snapshot(f, &so_far, fitted, &model);
}

static thiele_status configure(thi_fitting *f)
{
    const thiele_fit_options *o = f->options;
    bool shared = f->method == &thi_method_incremental;
    thi_decoupled_form form;
    thiele_status status = read_form(f, &form);
    if (status == THIELE_OK) {
        status = check_form(f, form, shared);
    }
    if (status != THIELE_OK) {
        return status;
    }
    bool steps_alone = form == THI_DECOUPLED_PLAIN || o->decoupled.own_scales || shared;
    f->decoupled_settings = (thi_decoupled_settings){.alpha = o->decoupled.mean_inducing,
                                                     .beta = o->inducing.inducing,
                                                     .batch = o->optimiser.batch,
                                                     .added = o->decoupled.growth,
                                                     .form = form,
                                                     .shared = shared,
                                                     .median = shared,
                                                     .generalised = o->decoupled.own_scales != 0,
                                                     .learn_basis = o->decoupled.own_scales != 0,
                                                     .sweeps = steps_alone ? -1 : 0,
                                                     .rate = o->optimiser.rate,
                                                     .snapshot = thi_fitting_snapshot(f, snapshot)};
    f->goes_on = true;
    return THIELE_OK;
}

/* Stopped before the first step: what there is would predict as if there were no rows. */
static thiele_status nothing_yet(thi_fitting *f)
{
    return f->driver->reason == THIELE_STOP_CANCELLED
               ? thi_fail(f->ctx, THIELE_ERROR_CANCELLED, "stopped before the first step")
               : thi_fail(f->ctx, THIELE_ERROR_CANCELLED,
                          "the deadline came before the first step: allow more time, or fewer basis functions for the "
                          "covariance (`inducing`)");
}

static thiele_status run(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    thi_variational_settings sparse = f->settings;
    thi_decoupled_result outcome;
    thi_source memory;
    const thi_source *source = thi_fitting_source(f, rows, &memory);
    thi_problem problem = thi_fitting_problem(f, source);
    thiele_status status;
    sparse.condition = !learn;
    THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
    THI_TRY(thi_fit_decoupled(&problem, &sparse, &f->decoupled_settings, &outcome, fitted));
    if (f->driver->stopped && outcome.alpha == 0 && outcome.beta == 0) {
        THI_TRY(nothing_yet(f));
    }
    if (learn || f->driver->stopped) {
        f->result = outcome.fit;
        f->outcome = (thi_variational_result){.fit = outcome.fit,
                                              .batch = outcome.batch,
                                              .optimizer = outcome.orthogonal ? "natural" : "adam",
                                              .epochs = (double)outcome.fit.iterations * (double)outcome.batch /
                                                        (double)source->n};
    }
    if (f->hypers.noise >= 0 && !outcome.judged) {
        THI_TRY(thi_predictive_noise(f->ctx, source, &f->spec, &f->hypers, fitted->latent));
    }
out:
    return status;
}

static thiele_status report(thi_fitting *f)
{
    return thi_report_sparse(f, f->decoupled_settings.shared ? "full" : "decoupled");
}

enum {
    CAN = THI_CAN_LIKELIHOODS | THI_CAN_LATENTS | THI_CAN_TARGETS | THI_CAN_STREAM | THI_CAN_UPDATE | THI_CAN_SNAPSHOT |
          THI_CAN_JOINT | THI_CAN_DEADLINE,
    TAKES = THI_TAKES_BASIS | THI_TAKES_BATCHES | THI_TAKES_RATE | THI_TAKES_EXPECTATION | THI_TAKES_GROWTH |
            THI_TAKES_SNAPSHOT
};

static const thi_lack lacks[] = {
    {THI_CAN_LEAVE_OUT, THI_WHY_EXACT}, {THI_CAN_WEIGHTS, THI_WHY_ONCE}, {THI_CAN_RANKS, THI_WHY_ONE_PROCESS}, {0}};

const thi_method thi_method_decoupled = {.name = "decoupled",
                                         .words = "a large basis for the mean, a small one for the covariance",
                                         .can = CAN,
                                         .lacks = lacks,
                                         .takes = TAKES | THI_TAKES_MEAN,
                                         .evidence = "bound",
                                         .partial = true,
                                         .limited = true,
                                         .apart = true,
                                         .configure = configure,
                                         .run = run,
                                         .report = report};
const thi_method thi_method_incremental = {.name = "incremental",
                                           .words = "one basis that grows with the rows, for comparison",
                                           .can = CAN,
                                           .lacks = lacks,
                                           .takes = TAKES,
                                           .evidence = "bound",
                                           .partial = true,
                                           .limited = true,
                                           .apart = true,
                                           .configure = configure,
                                           .run = run,
                                           .report = report};

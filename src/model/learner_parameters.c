/*
 * Parameters that are learned while rows arrive: kernel, mean, likelihood and inducing inputs from the rows that are
 * kept (fit/kept.h), from where they are. What is known of the function survives: of the rows that are gone as
 * observations in place of them (fit/anchor.h), with as much weight as the kept rows' evidence gives them, and the kept
 * rows are learned anew.
 */
#include <math.h>
#include <string.h>

#include "fit/anchor.h"
#include "fit/predictive.h"
#include "model/learner.h"
#include "model/specify.h"
#include "model/units.h"

/* L-BFGS iterations on the kept rows: while all is new, later on, and at the end of the rows. */
enum { ITERATIONS_YOUNG = 30, ITERATIONS = 10, ITERATIONS_LAST = 200 };
/* Nats a row that five iterations must gain. */
static const double TOLERANCE = 1e-5;
/* The old rows' weight is a power of two, to this one at least; none of it is tried too. */
enum { SMALLEST_POWER = -10 };
/* Nats by which less weight must be better than more: it is one more number. */
static const double WORTH = 3.0;
/* Of the kept rows, how many must be new for a last time of learning. */
static const double NEW_SHARE = 0.125;

/* --- what is learned -------------------------------------------------------------------------------------------------
 */

bool thi_learner_has_parameters(const thiele_model *model)
{
    const thi_predictor *p = model->latent;
    bool own_scales = p->log_c != NULL || p->mean_log_c != NULL;
    bool several = model->latents > 1 && p->mean_basis != NULL;
    return model->components == 1 && p->local == NULL && !thi_blocks_is_form(model->method) && !own_scales && !several;
}

/* "lengthscale[x] gamma(2, 0.5), ..." of the parameters that have one; NULL: none has. */
static thiele_status list_priors(const thiele_model *model, thiele_context *ctx, char **out)
{
    thi_text text;
    bool any = false;
    thi_text_init(&text, ctx);
    for (int i = 0; i < model->learned_count; i++) {
        const thi_learned *p = &model->learned[i];
        if (p->prior != NULL) {
            thi_text_add(&text, "%s%s %s", any ? ", " : "", p->name, p->prior);
            any = true;
        }
    }
    thiele_status status = thi_text_take(&text, out);
    if (status == THIELE_OK && !any) {
        thi_free(*out);
        *out = NULL;
    }
    return status;
}

static void put_number(thi_hyper *h, double number)
{
    static const double LEAST = 1e-3; /* of the floor, above it */
    h->number = number;
    h->value = h->log ? log(fmax(number - h->floor, h->floor > 0.0 ? LEAST * h->floor : number)) : number;
}

/* The model's present values; phi: those of the likelihood. */
static void put_numbers(thi_fitting *f, const double *phi)
{
    const thiele_model *model = f->model;
    const thi_latents *latents = &f->spec.latents;
    thi_hypers *hypers = &f->hypers;
    for (int j = 0; j < latents->count; j++) {
        const thi_predictor *p = &model->latent[j];
        thi_hyper *h = hypers->hyper + hypers->first[latents->group[j]];
        for (int i = 0; i < p->kernel->parameters; i++) {
            put_number(h++, p->kernel->value[i]);
        }
        for (int i = 0; i < latents->mean_parameters; i++) {
            put_number(h++, p->mean_parameter[i]);
        }
    }
    for (int i = 0; i < f->spec.lik->parameters; i++) {
        put_number(&hypers->hyper[hypers->first[hypers->groups] + i], phi[i]);
    }
    if (hypers->noise >= 0 && model->latent->noise > 0.0) {
        put_number(&hypers->hyper[hypers->noise], model->latent->noise);
    }
    for (int i = 0; i < hypers->count; i++) {
        hypers->hyper[i].fixed = model->learned[i].fixed;
        hypers->hyper[i].given = true; /* a value to go on from */
    }
}

/* The specification and hyperparameters of the model, as they are now. */
static thiele_status specify(thi_fitting *f)
{
    thiele_model *model = f->model;
    thiele_likelihood *lik = model->lik;
    size_t parameters = (size_t)lik->parameters;
    thi_kernel_columns columns = {0};
    char *priors = NULL;
    double *phi = NULL;
    thiele_status status;
    f->spec.lik = lik;
    f->spec.expectation = model->expectation;
    THI_TRY(thi_alloc(f->ctx, &phi, parameters, sizeof *phi));
    memcpy(phi, lik->value, parameters * sizeof *phi);
    THI_TRY(list_priors(model, f->ctx, &priors));
    THI_TRY(thi_kernel_columns_make(&columns, f->ctx, &model->encoder));
    THI_TRY(thi_latents_make(&f->spec.latents, f->ctx, model->kernel, thi_mean_name(model->latent->mean), &columns.view,
                             model->latents, model->groups == 1));
    THI_TRY(thi_hypers_make(&f->hypers, f->ctx, &f->spec, &model->encoder, NULL, priors));
    put_numbers(f, phi);
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
out:
    thi_kernel_columns_clear(&columns);
    thi_free(priors);
    thi_free(phi);
    return status;
}

/* Kernels, means, likelihood and bases from the kept rows, into fresh predictors. */
static thiele_status learn_prior(thi_fitting *f, const thi_rows *rows, int iterations, thi_predictor *fresh)
{
    const thi_latents *latents = &f->spec.latents;
    const thi_predictor *first = f->model->latent;
    size_t numbers = (size_t)first->n * (size_t)first->kernel->dims;
    thi_source source;
    thi_source_of_rows(&source, rows);
    thi_problem problem = thi_fitting_problem(f, &source);
    thi_fitted fitted = {.latent = fresh};
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &f->Z, numbers * (size_t)latents->groups, sizeof *f->Z));
    for (int j = 0; j < latents->count; j++) {
        memcpy(f->Z + numbers * (size_t)latents->group[j], f->model->latent[j].basis, numbers * sizeof *f->Z);
    }
    f->settings = (thi_variational_settings){.Z = f->Z,
                                             .Z_count = first->n,
                                             .inducing = first->n,
                                             .all_Z = true,
                                             .components = 1,
                                             .iterations = iterations,
                                             .tolerance = TOLERANCE};
    if (first->mean_basis != NULL) {
        thi_decoupled_result result;
        f->decoupled_settings = (thi_decoupled_settings){
            .alpha = first->mean_n - first->n, .beta = first->n, .form = THI_DECOUPLED_ORTHOGONAL};
        THI_TRY(thi_fit_decoupled(&problem, &f->settings, &f->decoupled_settings, &result, &fitted));
    } else {
        THI_TRY(thi_fit_variational_again(&problem, &f->settings, &f->outcome, &fitted));
    }
    for (int j = 0; j < latents->count; j++) {
        THI_TRY(thi_online_prepare(&fresh[j], f->ctx));
    }
out:
    return status;
}

/* --- what is known ---------------------------------------------------------------------------------------------------
 */

/* A part of the kept rows that a batch holds. */
static thi_rows part_of(const thi_rows *rows, int64_t first, int64_t most)
{
    thi_rows part = *rows;
    part.n = thi_least(most, rows->n - first);
    part.X += first * rows->dims;
    part.y += first * rows->outputs;
    part.offset += first;
    return part;
}

/* What rows before the kept ones say, of each latent function. */
static thiele_status take_anchors(thiele_learner *l, thiele_context *ctx, thi_anchor *anchor)
{
    thi_online *online = &l->online.of[0];
    const thi_kept *kept = &l->model->kept;
    int Q = online->latents;
    bool all = kept->rows.n == l->model->rows + l->model->stream.rows;
    thi_natural *sum = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &sum, (size_t)Q, sizeof *sum));
    for (int j = 0; j < Q; j++) {
        THI_TRY(thi_natural_open(&sum[j], ctx, online->latent[j].sum.T.rows));
        if (!all) {
            thi_natural_copy(&sum[j], &online->latent[j].sum);
        }
    }
    for (int64_t first = 0; !all && first < kept->rows.n; first += l->batch) {
        thi_rows part = part_of(&kept->rows, first, l->batch);
        THI_TRY(thi_online_predict(online, ctx, part.n, part.X, part.offset, l->mu, l->v));
        for (int j = 0; j < Q; j++) {
            THI_TRY(thi_online_take_out(online, ctx, j, kept->lambda + first * Q, kept->nu + first * Q, &sum[j]));
        }
    }
    for (int j = 0; j < Q; j++) {
        THI_TRY(thi_anchor_take(&anchor[j], ctx, &online->latent[j], &sum[j]));
    }
out:
    for (int j = 0; sum != NULL && j < Q; j++) {
        thi_natural_close(&sum[j]);
    }
    thi_free(sum);
    return status;
}

/* What is left of older rows behind n new ones. */
static double kept_share(const thi_online *online, int64_t n)
{
    double forget = online->settings.forget;
    return forget > 0.0 ? exp(-(double)n / forget) : 1.0;
}

/* The kept rows once more, with their sites. */
static thiele_status learn_kept(thiele_learner *l, thiele_context *ctx, thi_online *online)
{
    thi_kept *kept = &l->model->kept;
    int Q = online->latents;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < kept->rows.n; first += l->batch) {
        thi_rows part = part_of(&kept->rows, first, l->batch);
        THI_TRY(thi_online_predict(online, ctx, part.n, part.X, part.offset, l->mu, l->v));
        THI_TRY(thi_online_learn(online, ctx, part.y, first));
        thi_kept_fade(kept, first, kept_share(online, part.n));
        memcpy(kept->lambda + first * Q, online->lambda, (size_t)(part.n * Q) * sizeof *kept->lambda);
        memcpy(kept->nu + first * Q, online->nu, (size_t)(part.n * Q) * sizeof *kept->nu);
    }
out:
    return status;
}

/* Those of rows that the fit had. */
static thiele_status find_sites(thiele_learner *l, thiele_context *ctx)
{
    thi_online *online = &l->online.of[0];
    thi_kept *kept = &l->model->kept;
    int Q = online->latents;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < kept->rows.n; first += l->batch) {
        thi_rows part = part_of(&kept->rows, first, l->batch);
        THI_TRY(thi_online_predict(online, ctx, part.n, part.X, part.offset, l->mu, l->v));
        THI_TRY(thi_online_find_sites(online, ctx, part.y, first));
        memcpy(kept->lambda + first * Q, online->lambda, (size_t)(part.n * Q) * sizeof *kept->lambda);
        memcpy(kept->nu + first * Q, online->nu, (size_t)(part.n * Q) * sizeof *kept->nu);
    }
out:
    return status;
}

/* Anchors as one latent function after the other sees them, and what kept rows say beside them. */
typedef struct weighing {
    thi_anchored *seen;
    thi_natural *rows, *old; /* Q each: of the kept rows; of the anchor at a power */
} weighing;

/* log p(kept rows | old ones at a power), up to a constant. */
static thiele_status evidence(const weighing *w, thiele_context *ctx, int Q, double power, double *value)
{
    double before, with;
    thiele_status status = THIELE_OK;
    *value = 0.0;
    for (int j = 0; j < Q; j++) {
        THI_TRY(thi_anchored_sites(&w->seen[j], ctx, power, &w->old[j]));
        THI_TRY(thi_natural_evidence(&w->old[j], ctx, &before));
        thi_natural_mix(&w->old[j], 1.0, &w->rows[j], 1.0);
        THI_TRY(thi_natural_evidence(&w->old[j], ctx, &with));
        *value += with - before;
    }
out:
    return status;
}

/* The weight of the old rows that makes the kept ones most likely: less only where that says much more. */
static thiele_status choose_power(const weighing *w, thiele_context *ctx, int Q, double *power)
{
    double best, value;
    thiele_status status;
    *power = 1.0;
    THI_TRY(evidence(w, ctx, Q, 1.0, &best));
    for (int k = -1; k >= SMALLEST_POWER - 1; k--) {
        double other = k >= SMALLEST_POWER ? ldexp(1.0, k) : 0.0;
        THI_TRY(evidence(w, ctx, Q, other, &value));
        if (value > best + WORTH) {
            best = value;
            *power = other;
        }
    }
out:
    return status;
}

static thiele_status weighing_open(weighing *w, thiele_context *ctx, const thi_online *online, const thi_anchor *anchor)
{
    size_t Q = (size_t)online->latents;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &w->seen, Q, sizeof *w->seen));
    THI_TRY(thi_alloc(ctx, &w->rows, Q, sizeof *w->rows));
    THI_TRY(thi_alloc(ctx, &w->old, Q, sizeof *w->old));
    for (size_t j = 0; j < Q; j++) {
        int64_t M = online->latent[j].sum.T.rows;
        THI_TRY(thi_anchored_open(&w->seen[j], ctx, &anchor[j], &online->latent[j]));
        THI_TRY(thi_natural_open(&w->rows[j], ctx, M));
        THI_TRY(thi_natural_open(&w->old[j], ctx, M));
    }
out:
    return status;
}

static void weighing_close(weighing *w, int Q)
{
    for (int j = 0; j < Q; j++) {
        if (w->seen != NULL) {
            thi_anchored_close(&w->seen[j]);
        }
        if (w->rows != NULL) {
            thi_natural_close(&w->rows[j]);
        }
        if (w->old != NULL) {
            thi_natural_close(&w->old[j]);
        }
    }
    thi_free(w->seen);
    thi_free(w->rows);
    thi_free(w->old);
}

/* The old rows and the kept ones in a learner of the new parameters. */
static thiele_status know_again(thiele_learner *l, thiele_context *ctx, const thi_anchor *anchor, thi_online *online)
{
    int Q = online->latents;
    double power, left = kept_share(online, l->model->kept.rows.n);
    weighing w = {0};
    thiele_status status;
    THI_TRY(weighing_open(&w, ctx, online, anchor));
    for (int j = 0; j < Q; j++) {
        THI_TRY(thi_anchored_sites(&w.seen[j], ctx, 1.0, &w.old[j]));
        THI_TRY(thi_online_put(online, ctx, j, &w.old[j]));
    }
    THI_TRY(learn_kept(l, ctx, online));
    for (int j = 0; j < Q; j++) {
        thi_natural_copy(&w.rows[j], &online->latent[j].sum);
        thi_natural_mix(&w.rows[j], 1.0, &w.old[j], -left);
    }
    THI_TRY(choose_power(&w, ctx, Q, &power));
    for (int j = 0; j < Q; j++) {
        THI_TRY(thi_anchored_sites(&w.seen[j], ctx, power, &w.old[j]));
        thi_natural_mix(&w.old[j], 1.0, &w.rows[j], 1.0);
        THI_TRY(thi_online_put(online, ctx, j, &w.old[j]));
    }
out:
    weighing_close(&w, Q);
    return status;
}

/* --- both ------------------------------------------------------------------------------------------------------------
 */

/* The noise of predictions, and what the model says of its parameters. */
static thiele_status conclude(thiele_learner *l, thi_fitting *f)
{
    thiele_model *model = f->model;
    thi_source source;
    thiele_status status = THIELE_OK;
    thi_online_mixture_freeze(&l->online);
    thi_source_of_rows(&source, &l->model->kept.rows);
    if (f->hypers.noise >= 0) {
        THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
        THI_TRY(thi_predictive_noise(f->ctx, &source, &f->spec, &f->hypers, model->latent));
        l->online.view->noise = model->latent->noise;
        l->online.view->tau = model->latent->tau;
    }
    for (int i = 0; i < f->hypers.count; i++) {
        if (!f->hypers.hyper[i].fixed) {
            model->learned[i].value = thi_units_value(f, i);
        }
    }
    thi_scorer_close(&l->scorer);
    THI_TRY(thi_scorer_open(&l->scorer, f->ctx, model, l->batch, true));
out:
    return status;
}

/* Fresh predictors take the place of the model's, and a learner of them that of the old one. */
static void replace(thiele_learner *l, thi_predictor *fresh, thi_online_mixture *online)
{
    for (int j = 0; j < l->model->latents; j++) {
        thi_predictor_clear(&l->model->latent[j]);
        l->model->latent[j] = fresh[j];
        fresh[j] = (thi_predictor){0};
    }
    thi_online_mixture_close(&l->online);
    l->online = *online;
    *online = (thi_online_mixture){0};
}

/* *replaced: from there on the old model is gone. */
static thiele_status learn_again(thiele_learner *l, thi_fitting *f, int iterations, thi_predictor *fresh,
                                 thi_anchor *anchor, bool *replaced)
{
    thiele_model *model = l->model;
    thi_online_mixture online = {0};
    thi_online_settings settings = l->online.of[0].settings;
    thiele_status status;
    THI_TRY(take_anchors(l, f->ctx, anchor));
    THI_TRY(specify(f));
    THI_TRY(learn_prior(f, &l->model->kept.rows, iterations, fresh));
    THI_TRY(thi_online_mixture_open(&online, f->ctx, model->latents, fresh, model->weight, model->lik, &settings));
    THI_TRY(know_again(l, f->ctx, anchor, &online.of[0]));
    replace(l, fresh, &online);
    *replaced = true;
    THI_TRY(conclude(l, f));
out:
    thi_online_mixture_close(&online);
    return status;
}

/* What a failure must leave as it was: the likelihood's parameters and the kept rows' sites. */
typedef struct before {
    double *phi, *lambda, *nu;
} before;

static thiele_status remember(before *b, thiele_context *ctx, const thiele_learner *l)
{
    const thi_kept *kept = &l->model->kept;
    size_t sites = (size_t)(kept->rows.n * kept->latents), phi = (size_t)l->model->lik->parameters;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &b->phi, phi, sizeof *b->phi));
    THI_TRY(thi_alloc(ctx, &b->lambda, sites, sizeof *b->lambda));
    THI_TRY(thi_alloc(ctx, &b->nu, sites, sizeof *b->nu));
    memcpy(b->phi, l->model->lik->value, phi * sizeof *b->phi);
    memcpy(b->lambda, kept->lambda, sites * sizeof *b->lambda);
    memcpy(b->nu, kept->nu, sites * sizeof *b->nu);
out:
    return status;
}

static thiele_status restore(const before *b, thiele_context *ctx, thiele_learner *l)
{
    size_t sites = (size_t)(l->model->kept.rows.n * l->model->kept.latents);
    memcpy(l->model->kept.lambda, b->lambda, sites * sizeof *b->lambda);
    memcpy(l->model->kept.nu, b->nu, sites * sizeof *b->nu);
    thiele_status status = THIELE_OK;
    for (int i = 0; i < l->model->lik->parameters && status == THIELE_OK; i++) {
        status = thi_likelihood_set_phi(l->model->lik, ctx, i, b->phi[i]);
    }
    return status;
}

/* Where no proper posterior is found the old parameters stay. */
static thiele_status try_again(thiele_learner *l, thi_fitting *f, int iterations)
{
    size_t Q = (size_t)l->model->latents;
    thi_predictor *fresh = NULL;
    thi_anchor *anchor = NULL;
    before b = {0};
    bool replaced = false;
    thiele_status status;
    THI_TRY(remember(&b, f->ctx, l));
    THI_TRY(thi_alloc(f->ctx, &fresh, Q, sizeof *fresh));
    THI_TRY(thi_alloc(f->ctx, &anchor, Q, sizeof *anchor));
    status = learn_again(l, f, iterations, fresh, anchor, &replaced);
    if (status == THIELE_ERROR_NUMERIC && !replaced) {
        thi_recover(f->ctx);
        status = restore(&b, f->ctx, l);
    }
out:
    thi_free(b.phi);
    thi_free(b.lambda);
    thi_free(b.nu);
    for (size_t j = 0; j < Q; j++) {
        if (fresh != NULL) {
            thi_predictor_clear(&fresh[j]);
        }
        if (anchor != NULL) {
            thi_anchor_close(&anchor[j]);
        }
    }
    thi_free(fresh);
    thi_free(anchor);
    return status;
}

/* Seconds until the learner's deadline; 0: it has none. */
static double seconds_left(const thi_driver *driver)
{
    static const double LEAST = 1e-3;
    double end = driver->started + driver->deadline;
    return driver->deadline > 0.0 ? fmax(LEAST, end - thi_seconds()) : 0.0;
}

static thiele_status relearn(thiele_learner *l, thiele_context *ctx, int iterations)
{
    thi_driver driver;
    thi_fitting f = {.ctx = ctx, .model = l->model, .driver = &driver};
    thi_driver_start(&driver, ctx, seconds_left(&l->driver));
    thiele_status status = thi_kept_sort(&l->model->kept, ctx);
    if (status == THIELE_OK) {
        status = try_again(l, &f, iterations);
    }
    if (driver.stopped) {
        l->driver.stopped = true;
        l->driver.reason = driver.reason;
    }
    thi_fitting_clear(&f);
    thi_schedule_done(&l->model->schedule);
    return status;
}

thiele_status thi_learner_open_kept(thiele_learner *l, thiele_context *ctx)
{
    thiele_model *model = l->model;
    const thi_encoder *encoder = &model->encoder;
    thi_kept *kept = &model->kept;
    int64_t most = l->options.keep > 0 ? l->options.keep : thi_kept_default(encoder->dims + encoder->targets);
    bool first = kept->most == 0, sites = kept->lambda != NULL;
    int64_t rows = model->stream.rows;
    thiele_status status;
    if (l->options.freeze || l->options.keep < 0 || !thi_learner_has_parameters(model)) {
        thi_kept_close(kept);
        return THIELE_OK;
    }
    thi_schedule_begin(&model->schedule, rows, first ? rows : model->schedule.begun,
                       first ? rows : model->schedule.last);
    THI_TRY(thi_kept_resize(kept, ctx, most, encoder->dims, encoder->targets, model->latents));
    if (!sites) {
        THI_TRY(find_sites(l, ctx));
    }
out:
    return status;
}

/* As many rows as the parameters of the fit were learned from, or all that may be kept. */
static bool has_enough(const thiele_learner *l)
{
    return l->model->kept.most > 0 && l->model->kept.rows.n >= thi_least(l->model->kept.most, l->model->rows);
}

thiele_status thi_learner_keep(thiele_learner *l, thiele_context *ctx)
{
    const thi_online *online = &l->online.of[0];
    if (l->model->kept.most == 0) {
        return THIELE_OK;
    }
    thi_kept_fade(&l->model->kept, l->model->kept.rows.n, kept_share(online, l->rows.n));
    thi_kept_add(&l->model->kept, &l->rows, online->lambda, online->nu);
    thi_schedule_batch(&l->model->schedule, l->rows.n, l->part->nlpd);
    if (!thi_schedule_due(&l->model->schedule) || !has_enough(l)) {
        return THIELE_OK;
    }
    bool young = l->model->schedule.rows - l->model->schedule.begun < 4 * l->model->kept.most;
    return relearn(l, ctx, young ? ITERATIONS_YOUNG : ITERATIONS);
}

thiele_status thi_learner_settle(thiele_learner *l, thiele_context *ctx)
{
    double since = (double)(l->model->schedule.rows - l->model->schedule.last);
    bool worth = has_enough(l) && since >= NEW_SHARE * (double)l->model->kept.rows.n && !l->driver.stopped;
    return worth ? relearn(l, ctx, ITERATIONS_LAST) : THIELE_OK;
}

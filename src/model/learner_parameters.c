/*
 * Parameters that are learned while rows arrive, from the rows that are kept (fit/kept.h). What is known survives
 * (fit/carry.h). Unless all rows are kept, every fourth of them is held out at first: the new parameters are taken only
 * where they, with all that is known for them, predict those rows better than the old ones do. What older rows say
 * loses by every change of parameters, and must gain more than that.
 */
#include "model/learner.h"

#include <math.h>
#include <string.h>

#include "fit/carry.h"
#include "fit/judge.h"
#include "fit/predictive.h"
#include "model/units.h"

/* While all is new, once where all rows at hand are new, later on, and at the end of the rows. */
static const thi_learner_effort YOUNG = {30, 1e-3, false, false}, RENEWED = {60, 1e-3, false, true},
                                LATER = {10, 1e-3, false, false}, LAST = {200, 1e-5, true, false};
/* So many times the rows that are kept are new. */
enum { YOUNG_TIMES = 4 };
/* Of the kept rows one in so many is held out. */
enum { FOLDS = 4 };
/*
 * Nats a held-out row that new parameters must gain: 1,000 rows tell less apart by chance. (Without it a basis that is
 * too small for the function lost 2% of RMSE against a frozen one over 50,000 generated rows.)
 */
static const double GAIN = 0.01;
/* A row that weighs less says too little of parameters, but so many rows are needed. */
static const double FAINT = 0.36787944117144233; /* 1/e: as of --forget */
enum { FEWEST = 1024 };
/* Of the kept rows, how many must be new for a last time of learning. */
static const double NEW_SHARE = 0.125;

/* All that one time of learning holds. */
typedef struct attempt {
    thiele_learner *l;
    thi_fitting *f;
    int latents;
    thi_predictor *fresh;
    thi_anchor *anchor;
    thi_natural *sum, *whole; /* one a latent function: work */
    thi_rows train, held;
    thi_row_sites train_sites, held_sites;
    thi_row_sites kept_sites; /* as they were */
    double *phi;              /* likewise, of the likelihood */
    thi_learner_noise noise;
    thi_online_mixture online;
    bool taken, replaced; /* the new parameters are better; they are the model's */
} attempt;

static thi_row_sites sites_of(thi_kept *kept)
{
    return (thi_row_sites){kept->lambda, kept->nu, kept->weight};
}

/* --- the rows that are held out --------------------------------------------------------------------------------------
 */

/* Rows whose number leaves this rest, or leaves another one. */
static thiele_status take_fold(const thi_kept *kept, thiele_context *ctx, bool held, thi_rows *out, int64_t *order)
{
    int64_t count = 0;
    for (int64_t i = 0; i < kept->rows.n; i++) {
        if ((i % FOLDS == FOLDS - 1) == held) {
            order[count++] = i;
        }
    }
    return thi_rows_take(out, ctx, &kept->rows, count, order);
}

static thiele_status split(attempt *a)
{
    const thi_kept *kept = &a->l->model->kept;
    thiele_context *ctx = a->f->ctx;
    size_t Q = (size_t)a->latents;
    int64_t *order = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &order, (size_t)kept->rows.n, sizeof *order));
    THI_TRY(take_fold(kept, ctx, false, &a->train, order));
    THI_TRY(thi_alloc(ctx, &a->train_sites.weight, (size_t)a->train.n, sizeof(double)));
    for (int64_t i = 0; i < a->train.n; i++) {
        a->train_sites.weight[i] = kept->weight[order[i]];
    }
    THI_TRY(take_fold(kept, ctx, true, &a->held, order));
    THI_TRY(thi_alloc(ctx, &a->train_sites.lambda, (size_t)a->train.n * Q, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &a->train_sites.nu, (size_t)a->train.n * Q, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &a->held_sites.lambda, (size_t)a->held.n * Q, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &a->held_sites.nu, (size_t)a->held.n * Q, sizeof(double)));
    for (int64_t i = 0; i < a->held.n; i++) {
        size_t to = (size_t)i * Q, from = (size_t)order[i] * Q;
        memcpy(a->held_sites.lambda + to, kept->lambda + from, Q * sizeof(double));
        memcpy(a->held_sites.nu + to, kept->nu + from, Q * sizeof(double));
    }
out:
    thi_free(order);
    return status;
}

static thiele_status put_all(attempt *a, const thi_natural *sum)
{
    thiele_status status = THIELE_OK;
    for (int j = 0; j < a->latents && status == THIELE_OK; j++) {
        status = thi_online_put(&a->l->online.of[0], a->f->ctx, j, &sum[j]);
    }
    return status;
}

/* How well the present parameters predict the held-out rows without them; -infinity: that would be no posterior. */
static thiele_status judge_old(attempt *a, double *score)
{
    thi_online *online = &a->l->online.of[0];
    thiele_context *ctx = a->f->ctx;
    const thi_spec spec = {.latents = {.count = a->latents}, .lik = a->l->model->lik};
    thiele_status status;
    THI_TRY(thi_carry_without(online, ctx, &a->held, a->held_sites, a->sum));
    for (int j = 0; j < a->latents; j++) {
        thi_natural_copy(&a->whole[j], &online->latent[j].sum);
    }
    status = put_all(a, a->sum);
    if (status == THIELE_OK) {
        thi_online_mixture_freeze(&a->l->online);
        status = thi_judge(ctx, &spec, a->l->model->latent, &a->held, score);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx);
        status = THIELE_OK;
    }
    THI_TRY(status);
    THI_TRY(put_all(a, a->whole));
out:
    return status;
}

/* The noise of predictions by predictors of the new parameters: what the search has held out says, or else these rows.
 */
static thiele_status choose_noise(attempt *a, const thi_rows *rows, thi_predictor *latent)
{
    thi_fitting *f = a->f;
    thi_source source;
    if (f->hypers.noise < 0) {
        return THIELE_OK;
    }
    if (!a->noise.known) {
        thi_source_of_rows(&source, rows);
        return thi_predictive_noise(f->ctx, &source, &f->spec, &f->hypers, latent);
    }
    thi_hyper *noise = &f->hypers.hyper[f->hypers.noise];
    latent->noise = thi_hyper_number(noise);
    latent->tau = a->noise.tau;
    noise->apart = true;
    noise->made = noise->value;
    noise->value = a->noise.value;
    return thi_hypers_apply(&f->hypers, f->ctx, &f->spec);
}

/* The same of the new ones, with all that is known but those rows. */
static thiele_status judge_new(attempt *a, double *score)
{
    thi_fitting *f = a->f;
    thiele_status status;
    THI_TRY(thi_carry_learn(&a->online.of[0], f->ctx, a->anchor, &a->train, a->train_sites));
    thi_online_mixture_freeze(&a->online);
    THI_TRY(choose_noise(a, &a->train, a->fresh));
    THI_TRY(thi_judge(f->ctx, &f->spec, a->fresh, &a->held, score));
    THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
out:
    return status;
}

/* --- one attempt -----------------------------------------------------------------------------------------------------
 */

/* What rows before the kept ones say. */
static thiele_status take_anchors(attempt *a)
{
    thi_online *online = &a->l->online.of[0];
    thi_kept *kept = &a->l->model->kept;
    thiele_status status;
    THI_TRY(thi_carry_without(online, a->f->ctx, &kept->rows, sites_of(kept), a->sum));
    for (int j = 0; j < a->latents; j++) {
        THI_TRY(thi_anchor_take(&a->anchor[j], a->f->ctx, &online->latent[j], &a->sum[j]));
    }
out:
    return status;
}

/* The new parameters from these rows, and a learner of them that knows these rows. */
static thiele_status learn_prior(attempt *a, const thi_rows *rows, const thi_learner_effort *how)
{
    thiele_model *model = a->l->model;
    thi_online_settings settings = a->l->online.of[0].settings;
    thiele_status status;
    THI_TRY(thi_learner_specify(a->f));
    THI_TRY(thi_learner_prior(a->f, rows, how, a->fresh, &a->noise));
    THI_TRY(
        thi_online_mixture_open(&a->online, a->f->ctx, model->latents, a->fresh, model->weight, model->lik, &settings));
out:
    return status;
}

/* Fresh predictors take the place of the model's, and a learner of them that of the old one. */
static void replace(attempt *a)
{
    thiele_learner *l = a->l;
    for (int j = 0; j < a->latents; j++) {
        thi_predictor_clear(&l->model->latent[j]);
        l->model->latent[j] = a->fresh[j];
        a->fresh[j] = (thi_predictor){0};
    }
    thi_online_mixture_close(&l->online);
    l->online = a->online;
    a->online = (thi_online_mixture){0};
    a->replaced = true;
}

/* The noise of predictions, and what the model says of its parameters. */
static thiele_status conclude(attempt *a)
{
    thiele_learner *l = a->l;
    thi_fitting *f = a->f;
    thiele_model *model = l->model;
    thiele_status status = THIELE_OK;
    thi_online_mixture_freeze(&l->online);
    if (f->hypers.noise >= 0) {
        THI_TRY(choose_noise(a, &model->kept.rows, model->latent));
        l->online.view->noise = model->latent->noise;
        l->online.view->tau = model->latent->tau;
    }
    for (int i = 0; i < f->hypers.count; i++) {
        if (!f->hypers.hyper[i].fixed) {
            model->learned[i].value = thi_units_value(f, i);
        }
    }
    thi_scorer_close(&l->scorer);
    THI_TRY(thi_scorer_open(&l->scorer, f->ctx, model, l->batch, THI_SCORE_QUICKLY));
out:
    return status;
}

static thiele_status learn_again(attempt *a, const thi_learner_effort *how)
{
    thiele_model *model = a->l->model;
    thi_kept *kept = &model->kept;
    bool all = kept->rows.n == model->rows + model->stream.rows;
    double before = -INFINITY, after = 0.0;
    thiele_status status = THIELE_OK;
    if (!all) {
        THI_TRY(split(a));
        THI_TRY(judge_old(a, &before));
        THI_TRY(take_anchors(a));
    }
    THI_TRY(learn_prior(a, all ? &kept->rows : &a->train, how));
    if (!all) {
        THI_TRY(judge_new(a, &after));
    }
    a->taken = after > before + GAIN;
    if (a->taken) {
        THI_TRY(thi_carry_learn(&a->online.of[0], a->f->ctx, a->anchor, &kept->rows, sites_of(kept)));
        replace(a);
        THI_TRY(conclude(a));
    }
out:
    return status;
}

static thiele_status attempt_open(attempt *a)
{
    thiele_context *ctx = a->f->ctx;
    thiele_model *model = a->l->model;
    const thi_kept *kept = &model->kept;
    size_t Q = (size_t)a->latents, sites = (size_t)kept->rows.n * Q, phi = (size_t)model->lik->parameters;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &a->fresh, Q, sizeof *a->fresh));
    THI_TRY(thi_alloc(ctx, &a->anchor, Q, sizeof *a->anchor));
    THI_TRY(thi_alloc(ctx, &a->sum, Q, sizeof *a->sum));
    THI_TRY(thi_alloc(ctx, &a->whole, Q, sizeof *a->whole));
    for (size_t j = 0; j < Q; j++) {
        THI_TRY(thi_natural_open(&a->sum[j], ctx, model->latent[j].n));
        THI_TRY(thi_natural_open(&a->whole[j], ctx, model->latent[j].n));
    }
    THI_TRY(thi_alloc(ctx, &a->phi, phi, sizeof *a->phi));
    THI_TRY(thi_alloc(ctx, &a->kept_sites.lambda, sites, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &a->kept_sites.nu, sites, sizeof(double)));
    if (phi > 0) { /* else the likelihood has none, not even an address */
        memcpy(a->phi, model->lik->value, phi * sizeof *a->phi);
    }
    memcpy(a->kept_sites.lambda, kept->lambda, sites * sizeof(double));
    memcpy(a->kept_sites.nu, kept->nu, sites * sizeof(double));
out:
    return status;
}

static void attempt_close(attempt *a)
{
    double *const blocks[] = {a->train_sites.lambda, a->train_sites.nu,    a->train_sites.weight, a->held_sites.lambda,
                              a->held_sites.nu,      a->kept_sites.lambda, a->kept_sites.nu,      a->phi};
    for (int j = 0; a->whole != NULL && j < a->latents; j++) {
        thi_predictor_clear(&a->fresh[j]);
        thi_anchor_close(&a->anchor[j]);
        thi_natural_close(&a->sum[j]);
        thi_natural_close(&a->whole[j]);
    }
    thi_online_mixture_close(&a->online);
    thi_rows_free(&a->train);
    thi_rows_free(&a->held);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    thi_free(a->fresh);
    thi_free(a->anchor);
    thi_free(a->sum);
    thi_free(a->whole);
}

/* What an attempt that came to nothing has touched. */
static thiele_status restore(attempt *a)
{
    thiele_model *model = a->l->model;
    thi_kept *kept = &model->kept;
    size_t bytes = (size_t)(kept->rows.n * a->latents) * sizeof(double);
    thiele_status status = THIELE_OK;
    memcpy(kept->lambda, a->kept_sites.lambda, bytes);
    memcpy(kept->nu, a->kept_sites.nu, bytes);
    for (int i = 0; i < model->lik->parameters && status == THIELE_OK; i++) {
        status = thi_likelihood_set_phi(model->lik, a->f->ctx, i, a->phi[i]);
    }
    return status;
}

/* Where no proper posterior is found, or none that is better, the old parameters stay. */
static thiele_status try_again(thiele_learner *l, thi_fitting *f, const thi_learner_effort *how)
{
    attempt a = {.l = l, .f = f, .latents = l->model->latents};
    thiele_status status = attempt_open(&a);
    if (status == THIELE_OK) {
        status = learn_again(&a, how);
        bool failed = status == THIELE_ERROR_NUMERIC && !a.replaced;
        if (failed) {
            thi_recover(f->ctx);
        }
        if (failed || (status == THIELE_OK && !a.taken)) {
            status = restore(&a);
        }
    }
    attempt_close(&a);
    return status;
}

/* Seconds until the learner's deadline; 0: it has none. */
static double seconds_left(const thi_driver *driver)
{
    static const double LEAST = 1e-3;
    double end = driver->started + driver->deadline;
    return driver->deadline > 0.0 ? fmax(LEAST, end - thi_seconds()) : 0.0;
}

static thiele_status relearn(thiele_learner *l, thiele_context *ctx, const thi_learner_effort *how)
{
    thi_driver driver;
    thi_fitting f = {.ctx = ctx, .model = l->model, .driver = &driver};
    thi_driver_start(&driver, ctx, seconds_left(&l->driver));
    thiele_status status = thi_kept_sort(&l->model->kept, ctx);
    if (status == THIELE_OK) {
        thi_kept_drop(&l->model->kept, FAINT, FEWEST);
        status = try_again(l, &f, how);
    }
    if (driver.stopped) {
        l->driver.stopped = true;
        l->driver.reason = driver.reason;
    }
    thi_fitting_clear(&f);
    thi_schedule_done(&l->model->schedule);
    return status;
}

/* --- what a learner asks for -----------------------------------------------------------------------------------------
 */

thiele_status thi_learner_open_kept(thiele_learner *l, thiele_context *ctx)
{
    thiele_model *model = l->model;
    const thi_encoder *encoder = &model->encoder;
    thi_kept *kept = &model->kept;
    thi_schedule *s = &model->schedule;
    int64_t most = l->options.keep > 0 ? l->options.keep : thi_kept_default(encoder->dims + encoder->targets);
    int64_t rows = model->stream.rows, forget = (int64_t)fmin(l->options.forget, (double)most);
    bool first = kept->most == 0, sites = kept->lambda != NULL;
    thiele_status status;
    if (l->options.freeze || l->options.keep < 0 || !thi_learner_has_parameters(model)) {
        thi_kept_close(kept);
        return THIELE_OK;
    }
    most = forget > 0 ? forget : most; /* what is forgotten says nothing of parameters either */
    thi_schedule_begin(s, rows, first ? rows : s->begun, first ? rows : s->last);
    THI_TRY(thi_kept_resize(kept, ctx, most, encoder->dims, encoder->targets, model->latents));
    if (!sites) {
        THI_TRY(thi_carry_find(&l->online.of[0], ctx, &kept->rows, sites_of(kept)));
    }
out:
    return status;
}

/* As many rows as the parameters of the fit were learned from, all that may be kept, or all that count. */
static bool has_enough(const thiele_learner *l)
{
    const thi_kept *kept = &l->model->kept;
    return kept->most > 0 && (kept->rows.n >= thi_least(kept->most, l->model->rows) || thi_kept_oldest(kept) < FAINT);
}

thiele_status thi_learner_keep(thiele_learner *l, thiele_context *ctx)
{
    thi_kept *kept = &l->model->kept;
    thi_schedule *s = &l->model->schedule;
    const thi_online *online = &l->online.of[0];
    if (kept->most == 0) {
        return THIELE_OK;
    }
    thi_kept_fade(kept, l->lasting * thi_online_share(online));
    thi_kept_add(kept, &l->rows, online->lambda, online->nu);
    thi_schedule_batch(s, l->rows.n, l->part->nlpd);
    if (!thi_schedule_due(s) || !has_enough(l)) {
        return THIELE_OK;
    }
    bool young = s->rows - s->begun < YOUNG_TIMES * kept->most;
    bool renewed = s->rows - s->begun >= kept->rows.n && s->last - s->begun < kept->rows.n && s->begun > 0;
    return relearn(l, ctx, renewed ? &RENEWED : young ? &YOUNG : &LATER);
}

thiele_status thi_learner_settle(thiele_learner *l, thiele_context *ctx)
{
    const thi_schedule *s = &l->model->schedule;
    double since = (double)(s->rows - s->last), needed = NEW_SHARE * (double)l->model->kept.rows.n;
    return has_enough(l) && since >= needed && !l->driver.stopped ? relearn(l, ctx, &LAST) : THIELE_OK;
}

/*
 * Which kernel a table asks for, where nobody said. Each of a few is learned on some rows, half of them random and half
 * near to a few of those, so that both what changes slowly and what changes quickly can be seen; the one whose evidence
 * is best by Schwarz's criterion is taken: log p(y) less half the log of the rows for each parameter.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/start.h"
#include "model/choose.h"

static const char *const candidates[] = {"matern52(ard)", "matern32(ard)", "matern52(ard) + matern12(ard)",
                                         "matern52(ard) + linear", "matern52(ard) + matern12(ard) + linear"};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };
enum { ROWS = 500, LEAST = 100, ITERATIONS = 25, EVALUATIONS = 60 };
static const double TOLERANCE = 0.5; /* nats */
/*
 * Of the log of a length-scale around the median distance, and of a noise around a hundredth of the targets' variance:
 * what a small table does not say is not believed.
 */
static const double SPREAD = 2.0, NOISE_SPREAD = 3.0, NOISE_SHARE = 0.01;

/* Lognormal; the density of a number has its mode below that of its log. */
static void add_prior(thi_hyper *h, double log_centre, double spread)
{
    if (!h->fixed && h->prior == THI_PRIOR_NONE) {
        h->prior = THI_PRIOR_LOGNORMAL;
        h->prior_a = log(h->unit) + log_centre + spread * spread;
        h->prior_b = spread;
        h->assumed = true;
    }
}

/* Weak priors on length-scales and the noise, where nobody gave one. */
static void add_priors(thi_fitting *f)
{
    if (f->hypers.noise >= 0) {
        add_prior(&f->hypers.hyper[f->hypers.noise], log(NOISE_SHARE), NOISE_SPREAD);
    }
    for (int g = 0; g < f->hypers.groups; g++) {
        const thiele_kernel *kernel = f->spec.latents.kernel[g];
        for (int i = 0; i < kernel->parameters; i++) {
            const thi_leaf *leaf = thi_kernel_leaf_of(kernel, i);
            thi_hyper *h = &f->hypers.hyper[f->hypers.first[g] + i];
            bool lengthscale = leaf->kind->family == THI_DISTANCE && i - leaf->first < leaf->lengthscales;
            if (lengthscale) {
                add_prior(h, 0.5 * log(2.0 * kernel->dims), SPREAD);
            }
        }
    }
}

thiele_status thi_make_candidate(thi_fitting *f, const char *kernels)
{
    thiele_status status = thi_make_prior(f, kernels);
    if (status == THIELE_OK) {
        add_priors(f);
        f->hypers.tied = f->tied || (f->favourite != NULL && f->favourite->tied);
    }
    return status;
}

void thi_forget_prior(thi_fitting *f)
{
    thi_hypers_clear(&f->hypers);
    thi_latents_clear(&f->spec.latents);
}

void thi_beside_begin(thi_beside *choice, thiele_context *ctx, const char *by, int64_t rows)
{
    *choice = (thi_beside){0};
    thi_text_init(&choice->text, ctx);
    thi_text_add(&choice->text, "by %s of %lld rows", by, (long long)rows);
}

void thi_beside_add(thi_beside *choice, const char *name, double beside)
{
    thi_text_add(&choice->text, "%s%s %+.3f", choice->count++ == 0 ? " (nats per row compared with it: " : ", ", name,
                 beside);
}

thiele_status thi_beside_end(thi_beside *choice, char **out)
{
    thi_text_add(&choice->text, "%s", choice->count > 0 ? ")" : "");
    return thi_text_take(&choice->text, out);
}

void thi_named_clear(thi_named *values)
{
    for (int i = 0; i < values->count; i++) {
        thi_free(values->name[i]);
    }
    thi_free(values->name);
    thi_free(values->value);
    *values = (thi_named){0};
}

thiele_status thi_named_keep(thi_named *values, thiele_context *ctx, const thi_hypers *hypers)
{
    thiele_status status;
    thi_named_clear(values);
    THI_TRY(thi_alloc(ctx, &values->name, (size_t)hypers->count, sizeof *values->name));
    THI_TRY(thi_alloc(ctx, &values->value, (size_t)hypers->count, sizeof *values->value));
    for (; values->count < hypers->count; values->count++) {
        THI_TRY(thi_strdup(ctx, &values->name[values->count], hypers->hyper[values->count].name));
        values->value[values->count] = hypers->hyper[values->count].value;
    }
out:
    return status;
}

thiele_status thi_named_copy(thi_named *to, thiele_context *ctx, const thi_named *from)
{
    thiele_status status;
    thi_named_clear(to);
    THI_TRY(thi_alloc(ctx, &to->name, (size_t)from->count, sizeof *to->name));
    THI_TRY(thi_alloc(ctx, &to->value, (size_t)from->count, sizeof *to->value));
    for (; to->count < from->count; to->count++) {
        THI_TRY(thi_strdup(ctx, &to->name[to->count], from->name[to->count]));
        to->value[to->count] = from->value[to->count];
    }
out:
    return status;
}

void thi_named_load(const thi_named *values, thi_hypers *hypers)
{
    for (int i = 0; i < hypers->count; i++) {
        for (int k = 0; k < values->count; k++) {
            if (!hypers->hyper[i].fixed && strcmp(hypers->hyper[i].name, values->name[k]) == 0) {
                hypers->hyper[i].value = values->value[k];
            }
        }
    }
}

thiele_status thi_climb_exact(thi_fitting *f, const thi_rows *rows, const thi_named *base, double *value)
{
    thi_problem problem = thi_fitting_problem(f, NULL);
    const thi_objective *objective = &thi_objective_exact;
    thi_fit_result result = {0};
    double spread;
    void *state = NULL;
    thiele_status status;
    THI_TRY(thi_start_guess(&f->hypers, f->ctx, &f->spec, rows, &spread));
    thi_named_load(base, &f->hypers);
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
    THI_TRY(objective->open(&state, f->ctx, &f->spec, rows));
    THI_TRY(thi_search_climb(&problem, objective, state, ITERATIONS, TOLERANCE, &result));
    THI_TRY(objective->evaluate(state, f->ctx, &f->hypers, value, NULL));
out:
    if (state != NULL) {
        objective->close(state);
    }
    return status;
}

static thiele_status search(thi_fitting *f, const thi_rows *rows, double *value)
{
    thi_problem problem = thi_fitting_problem(f, NULL);
    thi_fit_settings settings = {.iterations = ITERATIONS};
    thi_fit_result result;
    thi_predictor latent = {0};
    thi_fitted fitted = {.latent = &latent};
    thiele_status status = thi_search(&problem, &thi_objective_exact, rows, &settings, &result, &fitted);
    *value = fitted.value;
    thi_predictor_clear(&latent);
    return status;
}

/* The criterion of one kernel on these rows; minus infinity where it cannot be had. own gets what it learned. */
static thiele_status judge(thi_fitting *f, const char *kernel, const thi_rows *rows, const thi_named *base,
                           thi_named *own, double *score)
{
    double value;
    thiele_status status;
    *score = -INFINITY;
    THI_TRY(thi_make_candidate(f, kernel));
    THI_TRY(base->count > 0 ? thi_climb_exact(f, rows, base, &value) : search(f, rows, &value));
    THI_TRY(thi_named_keep(own, f->ctx, &f->hypers));
    *score = value - 0.5 * thi_hypers_free(&f->hypers) * log((double)rows->n);
out:
    thi_forget_prior(f);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(f->ctx);
        status = THIELE_OK;
    }
    return status;
}

int64_t thi_choice_rows(const thi_fitting *f, int climbs, int64_t most)
{
    double flops = thi_budget_flops(f->driver, THI_SHARE_KERNEL);
    double rows = cbrt(flops / (climbs * EVALUATIONS * thi_objective_exact.cubes));
    return (int64_t)fmin(rows, thi_budget_rows(f->driver, (double)most));
}

/* How the others did beside the one that was taken. */
static thiele_status give_reason(thi_fitting *f, const double *score, int best, int64_t rows)
{
    thi_beside choice;
    thi_beside_begin(&choice, f->ctx, f->shared_kernel ? "regression of the labels: the evidence" : "the evidence",
                     rows);
    for (int k = 0; k < CANDIDATES; k++) {
        if (k != best) {
            thi_beside_add(&choice, candidates[k], (score[k] - score[best]) / (double)rows);
        }
    }
    return thi_beside_end(&choice, &f->model->kernel_why);
}

thiele_status thi_compare_kernels(thi_fitting *f, const thi_rows *rows, thi_named *winner)
{
    thi_named own[CANDIDATES] = {0};
    double score[CANDIDATES];
    int best = 0;
    thiele_status status = THIELE_OK;
    thi_forget_prior(f);
    for (int k = 0; k < CANDIDATES; k++) {
        double all = thi_budget_split(f->driver, CANDIDATES - k);
        status = judge(f, candidates[k], rows, &own[0], &own[k], &score[k]);
        thi_budget_restore(f->driver, all);
        THI_TRY(status);
        best = score[k] > score[best] ? k : best;
    }
    f->kernels = candidates[best];
    *winner = own[best];
    own[best] = (thi_named){0};
    THI_TRY(give_reason(f, score, best, rows->n));
out:
    for (int k = 0; k < CANDIDATES; k++) {
        thi_named_clear(&own[k]);
    }
    return status;
}

thiele_status thi_take_kernels(thi_fitting *f, const thi_named *winner)
{
    thiele_status status;
    THI_TRY(thi_make_candidate(f, f->kernels));
    thi_named_load(winner, &f->hypers);
    for (int i = 0; i < f->hypers.count; i++) {
        f->hypers.hyper[i].given = true; /* searches go on from here */
    }
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
out:
    return status;
}

static thiele_status choose(thi_fitting *f, const thi_source *source, int64_t count)
{
    thi_rows rows = {0}, all = {0};
    thi_named winner = {0};
    thiele_status status;
    THI_TRY(thi_sample_near(f->ctx, source, count, THI_CHOICE_ANCHORS, &rows));
    THI_TRY(thi_compare_kernels(f, &rows, &winner));
    if (thi_has_many_scales(f)) {
        THI_TRY(thi_source_sample(source, f->ctx, THI_SCALES_ROWS * count, THI_SAMPLE_JUDGE, &all));
        THI_TRY(thi_choose_scales(f, false, &all, &rows, &winner));
    }
    THI_TRY(thi_take_kernels(f, &winner));
out:
    thi_rows_free(&all);
    thi_rows_free(&rows);
    thi_named_clear(&winner);
    return status;
}

bool thi_has_choice(const thi_fitting *f)
{
    const thiele_fit_options *o = f->options;
    return o->prior.set == NULL && o->prior.prior == NULL && o->stopping.iterations == 0 && !f->each &&
           (f->hypers.noise >= 0 || thi_has_labels(f));
}

thiele_status thi_choose_kernel(thi_fitting *f)
{
    thi_source memory;
    double deadline = thi_budget_lend(f->driver, THI_SHARE_KERNEL);
    int64_t count = thi_choice_rows(f, CANDIDATES + (thi_has_many_scales(f) ? THI_SCALES_CLIMBS : 0), ROWS);
    thiele_status status;
    f->kernels = candidates[0];
    THI_TRY(thi_make_prior(f, f->kernels));
    const thi_source *source = thi_fitting_source(f, &f->rows, &memory);
    bool labels = f->hypers.noise < 0;
    if (thi_has_choice(f) && source->n > 1 && (count >= LEAST || count >= source->n) &&
        !(labels && source->beside.offset)) {
        THI_TRY((labels ? thi_choose_for_labels : choose)(f, source, count));
    }
out:
    thi_budget_restore(f->driver, deadline);
    return status;
}

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
#include "model/specify.h"

static const char *const candidates[] = {"matern52(ard)", "matern32(ard)", "matern52(ard) + matern12(ard)",
                                         "matern52(ard) + linear", "matern52(ard) + matern12(ard) + linear"};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };
enum { ROWS = 500, LEAST = 100, ITERATIONS = 25, EVALUATIONS = 60, ANCHORS = 4 };
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

static thiele_status make(thi_fitting *f, const char *kernel)
{
    thiele_status status = thi_make_prior(f, kernel);
    if (status == THIELE_OK) {
        add_priors(f);
    }
    return status;
}

static void forget(thi_fitting *f)
{
    thi_hypers_clear(&f->hypers);
    thi_latents_clear(&f->spec.latents);
}

/* What a kernel learned, by the names of its parameters. */
typedef struct learned {
    char **name;
    double *value;
    int count;
} learned;

static void learned_clear(learned *l)
{
    for (int i = 0; i < l->count; i++) {
        thi_free(l->name[i]);
    }
    thi_free(l->name);
    thi_free(l->value);
    *l = (learned){0};
}

static thiele_status learned_keep(learned *l, thiele_context *ctx, const thi_hypers *hypers)
{
    thiele_status status;
    learned_clear(l);
    THI_TRY(thi_alloc(ctx, &l->name, (size_t)hypers->count, sizeof *l->name));
    THI_TRY(thi_alloc(ctx, &l->value, (size_t)hypers->count, sizeof *l->value));
    for (; l->count < hypers->count; l->count++) {
        THI_TRY(thi_strdup(ctx, &l->name[l->count], hypers->hyper[l->count].name));
        l->value[l->count] = hypers->hyper[l->count].value;
    }
out:
    return status;
}

/* Values of the same name; others stay. */
static void learned_load(const learned *l, thi_hypers *hypers)
{
    for (int i = 0; i < hypers->count; i++) {
        for (int k = 0; k < l->count; k++) {
            if (!hypers->hyper[i].fixed && strcmp(hypers->hyper[i].name, l->name[k]) == 0) {
                hypers->hyper[i].value = l->value[k];
            }
        }
    }
}

/* From where the first kernel ended: what is new begins at its guess. */
static thiele_status climb(thi_fitting *f, const thi_rows *rows, const learned *base, double *value)
{
    thi_problem problem = thi_fitting_problem(f, NULL);
    const thi_objective *objective = &thi_objective_exact;
    thi_fit_result result = {0};
    double spread;
    void *state = NULL;
    thiele_status status;
    THI_TRY(thi_start_guess(&f->hypers, f->ctx, &f->spec, rows, &spread));
    learned_load(base, &f->hypers);
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
static thiele_status judge(thi_fitting *f, const char *kernel, const thi_rows *rows, const learned *base, learned *own,
                           double *score)
{
    double value;
    thiele_status status;
    *score = -INFINITY;
    THI_TRY(make(f, kernel));
    THI_TRY(base->count > 0 ? climb(f, rows, base, &value) : search(f, rows, &value));
    THI_TRY(learned_keep(own, f->ctx, &f->hypers));
    *score = value - 0.5 * thi_hypers_free(&f->hypers) * log((double)rows->n);
out:
    forget(f);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(f->ctx);
        status = THIELE_OK;
    }
    return status;
}

/* Rows that all candidates can be learned from in their share of the time. */
static int64_t affordable(const thi_fitting *f)
{
    double flops = thi_budget_flops(f->driver, THI_SHARE_KERNEL);
    double rows = cbrt(flops / (CANDIDATES * EVALUATIONS * thi_objective_exact.cubes));
    return (int64_t)fmin(rows, ROWS);
}

/* All of them on these rows, each from where the first ended; f has the prior of the best. */
static thiele_status choose(thi_fitting *f, const thi_rows *rows)
{
    learned own[CANDIDATES] = {0};
    double most = -INFINITY, score;
    int best = 0;
    thiele_status status = THIELE_OK;
    for (int k = 0; k < CANDIDATES; k++) {
        double all = thi_budget_split(f->driver, CANDIDATES - k);
        status = judge(f, candidates[k], rows, &own[0], &own[k], &score);
        thi_budget_restore(f->driver, all);
        THI_TRY(status);
        thi_log(f->ctx, THIELE_LOG_INFO, "kernel %s: %.6g", candidates[k], score);
        best = score > most ? k : best;
        most = fmax(most, score);
    }
    THI_TRY(make(f, candidates[best]));
    learned_load(&own[best], &f->hypers);
    for (int i = 0; i < f->hypers.count; i++) {
        f->hypers.hyper[i].given = true; /* searches go on from here */
    }
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
out:
    for (int k = 0; k < CANDIDATES; k++) {
        learned_clear(&own[k]);
    }
    return status;
}

static bool has_choice(const thi_fitting *f)
{
    const thiele_fit_options *o = f->options;
    return o->set == NULL && o->prior == NULL && o->iterations == 0 && f->hypers.noise >= 0 && !f->each;
}

thiele_status thi_choose_kernel(thi_fitting *f)
{
    thi_source memory;
    thi_rows rows = {0};
    double deadline = thi_budget_lend(f->driver, THI_SHARE_KERNEL);
    int64_t count = affordable(f);
    thiele_status status;
    THI_TRY(thi_make_prior(f, candidates[0]));
    const thi_source *source = thi_fitting_source(f, &f->rows, &memory);
    if (has_choice(f) && source->n > 1 && (count >= LEAST || count >= source->n)) {
        forget(f);
        THI_TRY(thi_sample_near(f->ctx, source, count, ANCHORS, &rows));
        THI_TRY(choose(f, &rows));
    }
out:
    thi_budget_restore(f->driver, deadline);
    thi_rows_free(&rows);
    return status;
}

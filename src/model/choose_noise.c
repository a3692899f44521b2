/*
 * What noise a table asks for, where nobody said: Gaussian, with heavy tails, or larger here than there. First the
 * others are learned on some rows, from where Gaussian noise led, and what half of these rows say of the other half is
 * compared (a partial Bayes factor, O'Hagan 1995, of the evidence and of bounds from below, less a nat for each
 * parameter: Akaike 1973). Those that are not clearly worse become rivals (rival.c) of the fit with Gaussian noise.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/start.h"
#include "likelihood/augment.h"
#include "model/choose.h"
#include "model/methods.h"

/* A likelihood, and the kernels of its further latent functions. Those of one likelihood follow each other. */
static const struct {
    const char *likelihood, *more;
} candidates[] = {{"student-t", ""}, {"heteroscedastic", "; matern52"}, {"heteroscedastic", "; matern52(ard)"}};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };
enum { ROWS = 300, LEAST = 50, ITERATIONS = 25, EVALUATIONS = 50, LATENTS = 5 /* of all together */ };
static const double TOLERANCE = 0.5; /* nats */
static const double WORSE = 0.02;    /* nats per row that a rival may be behind on so few */

bool thi_is_noise(const char *name)
{
    bool found = strcmp(name, "gaussian") == 0;
    for (int k = 0; k < CANDIDATES; k++) {
        found = found || strcmp(name, candidates[k].likelihood) == 0;
    }
    return found;
}

/* Some rows, and every other of them. */
typedef struct sample {
    thi_rows all, half;
} sample;

/* What was specified for one kind of noise. */
typedef struct side {
    thiele_likelihood *lik;
    thi_latents latents;
    thi_hypers hypers;
    double score;
} side;

/* Takes what f has, which is left with nothing. */
static void put_aside(thi_fitting *f, side *s)
{
    *s = (side){f->model->lik, f->spec.latents, f->hypers, s->score};
    f->model->lik = f->spec.lik = NULL;
    f->spec.latents = (thi_latents){0};
    f->hypers = (thi_hypers){0};
}

static void take_back(thi_fitting *f, side *s)
{
    f->model->lik = f->spec.lik = s->lik;
    f->spec.latents = s->latents;
    f->hypers = s->hypers;
    *s = (side){.score = s->score};
}

static void clear(side *s)
{
    thiele_likelihood_destroy(s->lik);
    thi_latents_clear(&s->latents);
    thi_hypers_clear(&s->hypers);
}

/* The objective of these rows at the present values. */
static thiele_status value_of(thi_fitting *f, const thi_objective *objective, const thi_rows *rows, double *value)
{
    void *state = NULL;
    thiele_status status;
    THI_TRY(objective->open(&state, f->ctx, &f->spec, rows));
    THI_TRY(objective->evaluate(state, f->ctx, &f->hypers, value, NULL));
out:
    if (state != NULL) {
        objective->close(state);
    }
    return status;
}

/* Climbs on all rows; what half of them say of the other half, where that led. */
static thiele_status climb(thi_fitting *f, const thi_objective *objective, const sample *rows, double *score)
{
    thi_problem problem = thi_fitting_problem(f, NULL);
    thi_fit_result result = {0};
    double all, half;
    void *state = NULL;
    thiele_status status;
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
    THI_TRY(objective->open(&state, f->ctx, &f->spec, &rows->all));
    THI_TRY(thi_search_climb(&problem, objective, state, ITERATIONS, TOLERANCE, &result));
    THI_TRY(objective->evaluate(state, f->ctx, &f->hypers, &all, NULL));
    THI_TRY(value_of(f, objective, &rows->half, &half));
    *score = (all - half - thi_hypers_free(&f->hypers)) / (double)(rows->all.n - rows->half.n);
out:
    if (state != NULL) {
        objective->close(state);
    }
    return status;
}

/* Values of the same kernel, and noise of the same size. */
static void begin_at(thi_fitting *f, const side *gaussian)
{
    const thi_hypers *from = &gaussian->hypers;
    double noise = thi_hyper_number(&from->hyper[from->noise]);
    const thiele_likelihood *lik = f->spec.lik;
    int varying = lik->ops->log_variance;
    for (int i = 0; i < gaussian->latents.kernel[0]->parameters; i++) {
        f->hypers.hyper[i].value = from->hyper[i].value;
    }
    if (varying > 0) {
        f->hypers.hyper[f->hypers.first[varying] + f->spec.latents.kernel[varying]->parameters].value = log(noise);
    }
    for (int i = 0; i < lik->parameters; i++) {
        thi_hyper *phi = &f->hypers.hyper[f->hypers.first[f->hypers.groups] + i];
        phi->value = lik->phi[i].power > 0 ? 0.5 * lik->phi[i].power * log(noise) : phi->value;
    }
}

static thiele_status kernels_of(const thi_fitting *f, int candidate, char **out)
{
    thi_text kernels;
    thi_text_init(&kernels, f->ctx);
    thi_text_add(&kernels, "%s%s", f->kernels, candidates[candidate].more);
    return thi_text_take(&kernels, out);
}

/* One other kind of noise on these rows; minus infinity where it cannot be had. f has nothing before and after. */
static thiele_status judge(thi_fitting *f, int candidate, const side *gaussian, const sample *rows, side *out)
{
    char *kernels = NULL;
    double spread;
    thiele_status status;
    out->score = -INFINITY;
    THI_TRY(kernels_of(f, candidate, &kernels));
    THI_TRY(thiele_likelihood_parse(&f->model->lik, f->ctx, candidates[candidate].likelihood, 1, 0));
    f->spec.lik = f->model->lik;
    THI_TRY(thi_make_candidate(f, kernels));
    THI_TRY(thi_start_guess(&f->hypers, f->ctx, &f->spec, &rows->all, &spread));
    begin_at(f, gaussian);
    status = climb(f, &thi_objective_dense, rows, &out->score);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(f->ctx);
        status = THIELE_OK;
    }
out:
    thi_free(kernels);
    put_aside(f, out);
    return status;
}

/* Makes a rival of what was learned. */
static thiele_status add_rival(thi_fitting *f, int candidate, const side *learned)
{
    thi_rival *rival = &f->rival[f->rivals++];
    rival->likelihood = candidates[candidate].likelihood;
    rival->score = learned->score;
    rival->augmented = thi_is_augmented(learned->lik);
    thiele_status status = kernels_of(f, candidate, &rival->kernels);
    return status == THIELE_OK ? thi_named_keep(&rival->values, f->ctx, &learned->hypers) : status;
}

/* The best of each likelihood, where it is not clearly worse than Gaussian noise. */
static thiele_status add_rivals(thi_fitting *f, const side *all)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; k < CANDIDATES && status == THIELE_OK;) {
        int best = k, first = k;
        for (; k < CANDIDATES && strcmp(candidates[k].likelihood, candidates[first].likelihood) == 0; k++) {
            best = all[k + 1].score > all[best + 1].score ? k : best;
        }
        if (all[best + 1].score > all[0].score - WORSE) {
            status = add_rival(f, best, &all[best + 1]);
        }
    }
    if (f->rivals == 2 && f->rival[1].score > f->rival[0].score) { /* the better one first */
        thi_rival swap = f->rival[0];
        f->rival[0] = f->rival[1];
        f->rival[1] = swap;
    }
    return status;
}

/* f stays as it is. */
static thiele_status choose(thi_fitting *f, const sample *rows)
{
    side all[1 + CANDIDATES] = {0};
    double *values = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &values, (size_t)f->hypers.count, sizeof *values));
    thi_hypers_keep(&f->hypers, values);
    THI_TRY(climb(f, &thi_objective_exact, rows, &all[0].score));
    put_aside(f, &all[0]);
    for (int k = 1; k <= CANDIDATES; k++) {
        double deadline = thi_budget_split(f->driver, CANDIDATES + 1 - k);
        status = judge(f, k - 1, &all[0], rows, &all[k]);
        thi_budget_restore(f->driver, deadline);
        THI_TRY(status);
    }
    THI_TRY(add_rivals(f, all));
out:
    if (f->model->lik == NULL) {
        take_back(f, &all[0]);
    }
    if (values != NULL) {
        thi_hypers_load(&f->hypers, values);
    }
    for (int k = 0; k <= CANDIDATES; k++) {
        clear(&all[k]);
    }
    thi_free(values);
    return status == THIELE_OK ? thi_hypers_apply(&f->hypers, f->ctx, &f->spec) : status;
}

/* Rows that all kinds can be learned from in their share of the time. */
static int64_t affordable(const thi_fitting *f)
{
    double flops = thi_budget_flops(f->driver, THI_SHARE_NOISE);
    return (int64_t)fmin(cbrt(flops / (LATENTS * EVALUATIONS * thi_objective_dense.cubes)),
                         thi_budget_rows(f->driver, ROWS));
}

static thiele_status take_sample(thi_fitting *f, const thi_source *source, int64_t count, sample *out)
{
    int64_t *order = NULL;
    thiele_status status;
    THI_TRY(thi_sample_near(f->ctx, source, count, THI_CHOICE_ANCHORS, &out->all));
    THI_TRY(thi_alloc(f->ctx, &order, (size_t)out->all.n, sizeof *order));
    for (int64_t i = 0; i < out->all.n; i++) {
        order[i] = 2 * i;
    }
    THI_TRY(thi_rows_take(&out->half, f->ctx, &out->all, out->all.n / 2, order));
out:
    thi_free(order);
    return status;
}

thiele_status thi_choose_noise(thi_fitting *f)
{
    thi_source memory;
    sample rows = {0};
    const thi_source *source = thi_fitting_source(f, &f->rows, &memory);
    int64_t count = thi_least(affordable(f), source->n);
    thiele_status status = THIELE_OK;
    /* Powers of densities lack constants that differ between kinds of noise: with weights nothing can be compared. */
    if (!f->open_noise || f->rows.weight != NULL || f->hypers.noise < 0 || !thi_has_choice(f) ||
        !thi_method_is_open(f) || f->streamed || count < LEAST) {
        return THIELE_OK;
    }
    double deadline = thi_budget_lend(f->driver, THI_SHARE_NOISE);
    THI_TRY(take_sample(f, source, count, &rows));
    THI_TRY(choose(f, &rows));
out:
    thi_budget_restore(f->driver, deadline);
    thi_rows_free(&rows.all);
    thi_rows_free(&rows.half);
    return status;
}

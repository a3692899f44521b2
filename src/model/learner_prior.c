/*
 * The specification of a model that was fitted before, and its parameters learned further: kernels, means, likelihood
 * and bases go on from where they are.
 */
#include <math.h>
#include <string.h>

#include "fit/blocks.h"
#include "fit/explore.h"
#include "fit/predictive.h"
#include "fit/start.h"
#include "model/learner.h"
#include "model/units.h"

bool thi_learner_has_parameters(const thiele_model *model)
{
    const thi_predictor *p = model->latent;
    bool own_scales = p->log_c != NULL || p->mean_log_c != NULL;
    bool several = model->latents > 1 && p->mean_basis != NULL;
    return model->components == 1 && p->n > 0 && p->local == NULL && !thi_blocks_is_form(model->method) &&
           !own_scales && !several;
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

thiele_status thi_learner_specify(thi_fitting *f)
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
    if (parameters > 0) {
        memcpy(phi, lik->value, parameters * sizeof *phi);
    }
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

/* The present inducing inputs of all groups. */
static thiele_status take_basis(thi_fitting *f, const thi_learner_effort *how)
{
    const thi_latents *latents = &f->spec.latents;
    const thi_predictor *first = f->model->latent;
    size_t numbers = (size_t)first->n * (size_t)first->kernel->dims;
    thiele_status status = thi_alloc(f->ctx, &f->Z, numbers * (size_t)latents->groups, sizeof *f->Z);
    for (int j = 0; status == THIELE_OK && j < latents->count; j++) {
        memcpy(f->Z + numbers * (size_t)latents->group[j], f->model->latent[j].basis, numbers * sizeof *f->Z);
    }
    f->settings = (thi_variational_settings){.Z = f->Z,
                                             .Z_count = first->n,
                                             .inducing = first->n,
                                             .all_Z = true,
                                             .fixed_Z = f->model->kept.fixed_basis,
                                             .components = 1,
                                             .iterations = how->iterations,
                                             .tolerance = how->tolerance};
    return status;
}

/* First guesses, as a fit makes them, of all that is learned. */
static thiele_status guess_values(thi_fitting *f, const thi_rows *rows)
{
    double spread;
    for (int i = 0; i < f->hypers.count; i++) {
        f->hypers.hyper[i].given = f->hypers.hyper[i].fixed;
    }
    thiele_status status = thi_start_guess(&f->hypers, f->ctx, &f->spec, rows, &spread);
    return status == THIELE_OK ? thi_hypers_apply(&f->hypers, f->ctx, &f->spec) : status;
}

/* From inducing inputs that are chosen anew, at these values. */
static thiele_status learn_elsewhere(thi_fitting *f, const thi_problem *problem, thi_fitted *fitted,
                                     thi_learner_noise *noise)
{
    thi_variational_settings settings = f->settings;
    thi_variational_result result;
    double *Z = NULL;
    thiele_status status;
    noise->known = false;
    settings.Z = NULL;
    settings.all_Z = false;
    THI_TRY(thi_first_basis(problem, &settings, settings.inducing, &Z, &settings.Z_count, NULL));
    settings.Z = Z;
    THI_TRY(thi_fit_variational_again(problem, &settings, &result, fitted));
out:
    thi_free(Z);
    return status;
}

/* Bases of as many functions as there are. */
static thiele_status decoupled_by(thi_fitting *f, const thi_problem *problem, const thi_variational_settings *sparse,
                                  thi_fitted *fitted, thi_learner_noise *noise)
{
    const thi_hyper *hyper = f->hypers.noise >= 0 ? &f->hypers.hyper[f->hypers.noise] : NULL;
    const thi_predictor *first = f->model->latent;
    const thi_decoupled_settings settings = {
        .alpha = first->mean_n - first->n, .beta = first->n, .form = THI_DECOUPLED_ORTHOGONAL};
    thi_decoupled_result result;
    thiele_status status = thi_fit_decoupled(problem, sparse, &settings, &result, fitted);
    if (status != THIELE_OK) {
        return status;
    }
    *noise = (thi_learner_noise){.known = hyper != NULL && hyper->apart};
    if (noise->known) {
        noise->value = hyper->value;
        noise->tau = fitted->latent->tau;
    }
    return thi_predictive_undo(f->ctx, &f->spec, &f->hypers);
}

static thiele_status decoupled_here(thi_fitting *f, const thi_problem *problem, thi_fitted *fitted,
                                    thi_learner_noise *noise)
{
    return decoupled_by(f, problem, &f->settings, fitted, noise);
}

/* As a fit that knows nothing of the present values, which compares what it explores. */
static thiele_status decoupled_anew(thi_fitting *f, const thi_problem *problem, thi_fitted *fitted,
                                    thi_learner_noise *noise)
{
    const thi_variational_settings sparse = {
        .inducing = f->settings.inducing, .components = 1, .fixed_Z = f->settings.fixed_Z};
    for (int i = 0; i < f->hypers.count; i++) {
        f->hypers.hyper[i].given = f->hypers.hyper[i].fixed;
    }
    return decoupled_by(f, problem, &sparse, fitted, noise);
}

static thiele_status variational_here(thi_fitting *f, const thi_problem *problem, thi_fitted *fitted,
                                      thi_learner_noise *noise)
{
    noise->known = false;
    return thi_fit_variational_again(problem, &f->settings, &f->outcome, fitted);
}

/*
 * Another search, whose end is taken where its bound is higher than that of the best so far; `best` are the values
 * where that ended.
 */
typedef thiele_status search_fn(thi_fitting *f, const thi_problem *problem, thi_fitted *fitted,
                                thi_learner_noise *noise);
static thiele_status search_again(thi_fitting *f, const thi_problem *problem, search_fn *search, double *best,
                                  thi_fitted *fitted, thi_learner_noise *noise)
{
    thi_learner_noise own = {0};
    int Q = f->spec.latents.count;
    thi_fitted other = {0};
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &other.latent, (size_t)Q, sizeof *other.latent));
    status = search(f, problem, &other, &own);
    bool better = status == THIELE_OK && other.value > fitted->value;
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(f->ctx);
        status = THIELE_OK;
    }
    for (int j = 0; better && j < Q; j++) {
        thi_predictor first = fitted->latent[j];
        fitted->latent[j] = other.latent[j];
        other.latent[j] = first;
    }
    if (better) {
        fitted->value = other.value;
        *noise = own;
        thi_hypers_keep(&f->hypers, best);
    }
    if (status == THIELE_OK && !better) {
        thi_hypers_load(&f->hypers, best);
        status = thi_hypers_apply(&f->hypers, f->ctx, &f->spec);
    }
out:
    for (int j = 0; other.latent != NULL && j < Q; j++) {
        thi_predictor_clear(&other.latent[j]);
    }
    thi_free(other.latent);
    return status;
}

/*
 * From the present values; perhaps from them with other inducing inputs too, and from first guesses: where a function
 * changed, rows of both may have been taken for noise, with length-scales so large that no slope leads back.
 */
static thiele_status learn_further(thi_fitting *f, const thi_problem *problem, const thi_rows *rows,
                                   const thi_learner_effort *how, thi_fitted *fitted, thi_learner_noise *noise)
{
    bool decoupled = f->model->latent->mean_basis != NULL, moves = !f->settings.fixed_Z;
    size_t count = (size_t)f->hypers.count;
    double *base = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &base, 2 * count, sizeof *base));
    thi_hypers_keep(&f->hypers, base);
    THI_TRY(decoupled ? decoupled_here(f, problem, fitted, noise) : variational_here(f, problem, fitted, noise));
    thi_hypers_keep(&f->hypers, base + count);
    if (decoupled && (how->anew || how->guess) && !f->driver->stopped) {
        THI_TRY(search_again(f, problem, decoupled_anew, base + count, fitted, noise));
    }
    if (!decoupled && how->anew && moves && !f->driver->stopped) {
        thi_hypers_load(&f->hypers, base);
        THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
        THI_TRY(search_again(f, problem, learn_elsewhere, base + count, fitted, noise));
    }
    if (!decoupled && how->guess && moves && !f->driver->stopped) {
        THI_TRY(guess_values(f, rows));
        THI_TRY(search_again(f, problem, learn_elsewhere, base + count, fitted, noise));
    }
out:
    thi_free(base);
    return status;
}

thiele_status thi_learner_prior(thi_fitting *f, const thi_rows *rows, const thi_learner_effort *how,
                                thi_predictor *fresh, thi_learner_noise *noise)
{
    thi_source source;
    thi_source_of_rows(&source, rows);
    thi_problem problem = thi_fitting_problem(f, &source);
    thi_fitted fitted = {.latent = fresh};
    thiele_status status;
    THI_TRY(take_basis(f, how));
    THI_TRY(learn_further(f, &problem, rows, how, &fitted, noise));
    for (int j = 0; j < f->spec.latents.count; j++) {
        THI_TRY(thi_online_prepare(&fresh[j], f->ctx));
    }
    fresh->noise = fresh->tau = 0.0;
out:
    return status;
}

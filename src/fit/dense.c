/*
 * Sites at all rows, and hyperparameters by the bound that they give. A step conditions every latent on its sites
 * (posterior/dense.c), takes (E, g, h) from the likelihood, and moves the sites towards those that (g, h) ask for.
 */
#include "fit/dense.h"

#include <math.h>
#include <string.h>

#include "fit/driver.h"

/* Steps below this fraction are not worth a factorisation: what cannot be improved by them is taken as converged. */
static const double SMALLEST_STEP = 1.0 / 1024.0;
/* A divergence from the prior that is negative by more than this, beside its terms, is an accident of rounding. */
static const double ROUNDING = 1e-6;
/* Sites of the first guess have at least this share of the prior's precision. */
static const double FIRST_SHARE = 0.01;
enum { LEAST_STEPS = 8 };
/*
 * The costly part of the gradient is left out when the sites are this close to their fixed point: nats per unit of a
 * log parameter. (What was left out was mostly below this sum, and never more than 1.4 times it, in the cases tried.)
 */
static const double RESIDUAL = 1e-3;

double thi_dense_fit_bytes(int64_t n, int groups)
{
    return 0.5 * (groups + 1) * thi_dense_bytes(n);
}

static thiele_status open_latents(thi_dense_fit *fit, thiele_context *ctx)
{
    const thi_latents *latents = &fit->spec->latents;
    for (int q = 0; q < latents->count; q++) {
        const thi_dense *twin = NULL;
        for (int p = 0; p < q && twin == NULL; p++) {
            twin = latents->group[p] == latents->group[q] ? &fit->latent[p] : NULL;
        }
        thiele_status status =
            thi_dense_open(&fit->latent[q], ctx, fit->rows->n, fit->rows->X, q > 0 ? &fit->latent[0] : NULL, twin);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

thiele_status thi_dense_fit_open(thi_dense_fit *fit, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows)
{
    *fit = (thi_dense_fit){.spec = spec, .rows = rows};
    int64_t n = rows->n, all = n * spec->latents.count;
    const struct {
        double **vector;
        int64_t length;
    } vectors[] = {
        {&fit->sites, 2 * all},
        {&fit->step, 2 * all},
        {&fit->trial, 2 * all},
        {&fit->measure, 2 * all},
        {&fit->o, all},
        {&fit->mu, all},
        {&fit->v, all},
        {&fit->f_mu, all},
        {&fit->f_v, all},
        {&fit->g, all},
        {&fit->h, all},
        {&fit->E, n},
        {&fit->dphi, n * spec->lik->parameters},
    };
    thiele_status status;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        THI_TRY(thi_alloc(ctx, vectors[i].vector, (size_t)vectors[i].length, sizeof(double)));
    }
    THI_TRY(thi_anderson_open(&fit->anderson, ctx, 2 * all, 2 * all));
    THI_TRY(thi_alloc(ctx, &fit->latent, (size_t)spec->latents.count, sizeof *fit->latent));
    THI_TRY(open_latents(fit, ctx));
out:
    if (status != THIELE_OK) {
        thi_dense_fit_close(fit);
    }
    return status;
}

void thi_dense_fit_close(thi_dense_fit *fit)
{
    double *const vectors[] = {fit->sites, fit->step, fit->trial, fit->measure, fit->o, fit->mu,  fit->v,
                               fit->f_mu,  fit->f_v,  fit->g,     fit->h,       fit->E, fit->dphi};
    for (int q = fit->latent != NULL ? fit->spec->latents.count - 1 : -1; q >= 0; q--) {
        thi_dense_close(&fit->latent[q]);
    }
    thi_free(fit->latent);
    thi_anderson_close(&fit->anderson);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        thi_free(vectors[i]);
    }
    *fit = (thi_dense_fit){0};
}

/* n Q: where nu begins behind lambda */
static int64_t half(const thi_dense_fit *fit)
{
    return fit->rows->n * fit->spec->latents.count;
}

/* --- one evaluation -----------------------------------------------------------------------------------------------
 */

/* (E, g, h) of all rows at f_mu, f_v. */
static thiele_status expect(thi_dense_fit *fit, thiele_context *ctx, double *dphi)
{
    return thiele_likelihood_expect(fit->spec->lik, ctx, fit->spec->expectation, fit->rows->n, fit->rows->y, fit->f_mu,
                                    fit->f_v, fit->E, fit->g, fit->h, dphi);
}

/* Conditions on these sites: marginals, (E, g, h) and the bound. */
static thiele_status evaluate(thi_dense_fit *fit, thiele_context *ctx, const double *sites)
{
    const double *lambda = sites, *nu = sites + half(fit);
    int64_t n = fit->rows->n, Q = fit->spec->latents.count;
    double kl = 0.0, expected = 0.0;
    for (int64_t q = 0; q < Q; q++) {
        double *mu = fit->mu + q * n, *v = fit->v + q * n;
        thiele_status status = thi_dense_condition(&fit->latent[q], ctx, lambda + q * n, nu + q * n, mu, v);
        if (status != THIELE_OK) {
            return status;
        }
        double own = thi_dense_kl(&fit->latent[q], lambda + q * n, v);
        if (!(own >= -ROUNDING * fabs(fit->latent[q].log_det) - ROUNDING)) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC, "the posterior is lost to rounding");
        }
        kl += own;
        for (int64_t i = 0; i < n; i++) {
            fit->f_mu[q + i * Q] = mu[i] + fit->o[i + q * n];
            fit->f_v[q + i * Q] = v[i];
        }
    }
    thiele_status status = expect(fit, ctx, NULL);
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        expected += fit->E[i];
    }
    fit->bound = expected - kl;
    return status;
}

/*
 * The step to the sites that (g, h) at the present marginals ask for, and its measure: what it asks of f's mean and
 * variance, r_g = g - nu + lambda mu and r_h = h + lambda/2, in the posterior's units (Fisher's metric, row by row).
 * Returns what the step can gain at most: half its squared length in the whole metric, whose correlations make it n
 * times as long as the sum over rows if they are all 1.
 */
static double aim(thi_dense_fit *fit)
{
    int64_t n = fit->rows->n, Q = fit->spec->latents.count, nu = half(fit);
    for (int64_t j = 0; j < nu; j++) {
        int64_t at = j / n + j % n * Q;
        double lambda = -2.0 * fit->h[at], slope = fit->g[at] - fit->sites[nu + j] + fit->sites[j] * fit->mu[j];
        fit->step[j] = lambda - fit->sites[j];
        fit->step[nu + j] = fit->g[at] + lambda * fit->mu[j] - fit->sites[nu + j];
        fit->measure[j] = M_SQRT1_2 * fit->step[j] * fit->v[j];
        fit->measure[nu + j] = slope * sqrt(fit->v[j]);
    }
    return 0.5 * (double)n * thi_blas_dot(2 * nu, fit->measure, fit->measure);
}

/* --- the beginning ------------------------------------------------------------------------------------------------
 */

/* Kernel matrices and o at the specification's present values. */
static thiele_status take_priors(thi_dense_fit *fit, thiele_context *ctx)
{
    const thi_latents *latents = &fit->spec->latents;
    const thi_rows *rows = fit->rows;
    for (int q = 0; q < latents->count; q++) {
        const thi_prior *prior = &latents->prior[latents->group[q]];
        double *o = fit->o + q * rows->n;
        thiele_status status = thi_dense_prior(&fit->latent[q], ctx, prior);
        if (status != THIELE_OK) {
            return status;
        }
        thi_mean_fill(prior->mean, prior->mean_parameter, rows->n, rows->dims, rows->X, o);
        for (int64_t i = 0; i < rows->n && q == 0 && rows->offset != NULL; i++) {
            o[i] += rows->offset[i];
        }
    }
    return THIELE_OK;
}

static bool is_missing(const thi_rows *rows, int64_t i)
{
    for (int p = 0; p < rows->outputs; p++) {
        if (!isnan(rows->y[i * rows->outputs + p])) {
            return false;
        }
    }
    return true;
}

static double prior_variance(const thi_dense_fit *fit, int64_t q, int64_t i)
{
    return fit->latent[q].K.data[i + i * fit->latent[q].K.ld];
}

/* The step becomes the one from no sites to those at the likelihood's guess of f. */
static thiele_status guess(thi_dense_fit *fit, thiele_context *ctx)
{
    const thiele_likelihood *lik = fit->spec->lik;
    int64_t n = fit->rows->n, Q = fit->spec->latents.count;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t q = 0; q < Q; q++) {
            fit->f_mu[q + i * Q] = fit->o[i + q * n];
            fit->f_v[q + i * Q] = thi_first_variance(lik, q, prior_variance(fit, q, i));
        }
        if (lik->ops->guess != NULL && !is_missing(fit->rows, i)) {
            lik->ops->guess(lik, fit->rows->y + i * fit->rows->outputs, fit->f_mu + i * Q);
        }
    }
    thiele_status status = expect(fit, ctx, NULL);
    for (int64_t j = 0; j < n * Q && status == THIELE_OK; j++) {
        int64_t q = j / n, i = j % n, at = q + i * Q;
        bool missing = is_missing(fit->rows, i);
        double lambda = fmax(-2.0 * fit->h[at], FIRST_SHARE / prior_variance(fit, q, i));
        fit->step[j] = missing ? 0.0 : lambda;
        fit->step[n * Q + j] = missing ? 0.0 : fit->g[at] + lambda * (fit->f_mu[at] - fit->o[j]);
    }
    return status;
}

static void keep_trial(thi_dense_fit *fit)
{
    memcpy(fit->sites, fit->trial, (size_t)(2 * half(fit)) * sizeof *fit->sites);
}

static void try_step(thi_dense_fit *fit, double rho)
{
    for (int64_t j = 0; j < 2 * half(fit); j++) {
        fit->trial[j] = fit->sites[j] + rho * fit->step[j];
    }
}

/* From the prior as far towards the guess as the bound can be computed. */
static thiele_status start_cold(thi_dense_fit *fit, thiele_context *ctx, thi_converge_result *result)
{
    size_t bytes = (size_t)(2 * half(fit)) * sizeof *fit->sites;
    memset(fit->sites, 0, bytes);
    thiele_status status = guess(fit, ctx);
    if (status == THIELE_ERROR_NUMERIC) {
        memset(fit->step, 0, bytes);
        status = THIELE_OK;
    }
    for (double rho = 1.0; status == THIELE_OK; rho *= 0.5) {
        try_step(fit, rho >= SMALLEST_STEP ? rho : 0.0);
        status = evaluate(fit, ctx, fit->trial);
        result->steps++;
        if (status != THIELE_ERROR_NUMERIC || rho < SMALLEST_STEP) {
            break;
        }
        status = THIELE_OK;
    }
    if (status == THIELE_OK) {
        thi_recover(ctx);
        keep_trial(fit);
    }
    return status;
}

/* From the sites of the last call; they may not fit the new prior. */
static thiele_status start(thi_dense_fit *fit, thiele_context *ctx, const thi_converge_options *options,
                           thi_converge_result *result)
{
    if (fit->warm && !options->cold) {
        thiele_status status = evaluate(fit, ctx, fit->sites);
        result->steps++;
        if (status != THIELE_ERROR_NUMERIC) {
            return status;
        }
        thi_recover(ctx);
    }
    fit->warm = false;
    return start_cold(fit, ctx, result);
}

/* --- steps --------------------------------------------------------------------------------------------------------
 */

/* Conditions on the trial: *good when that did not lower the bound, and the sites are now these. */
static thiele_status try_sites(thi_dense_fit *fit, thiele_context *ctx, double least, thi_converge_result *result,
                               bool *good)
{
    thiele_status status = evaluate(fit, ctx, fit->trial);
    result->steps++;
    *good = status == THIELE_OK && fit->bound >= least;
    if (*good) {
        keep_trial(fit);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx);
        status = THIELE_OK;
    }
    return status;
}

/*
 * One step as aimed: the accelerated one if it does not lower the bound, else the plain one, halved until it does not.
 * *moved is false when none was good; the sites are then as they were, conditioned on again.
 */
static thiele_status step(thi_dense_fit *fit, thiele_context *ctx, double tolerance, double *rho, bool *moved,
                          thi_converge_result *result)
{
    double least = fit->bound - tolerance;
    thiele_status status = THIELE_OK;
    thi_anderson_add(&fit->anderson, fit->sites, fit->step, fit->measure);
    *moved = false;
    if (thi_anderson_next(&fit->anderson, *rho, fit->trial)) {
        THI_TRY(try_sites(fit, ctx, least, result, moved));
        if (!*moved) {
            thi_anderson_reset(&fit->anderson);
        }
    }
    for (; !*moved && *rho >= SMALLEST_STEP; *rho *= *moved ? 1.0 : 0.5) {
        try_step(fit, *rho);
        THI_TRY(try_sites(fit, ctx, least, result, moved));
    }
    if (!*moved) {
        result->steps++;
        THI_TRY(evaluate(fit, ctx, fit->sites));
    }
out:
    return status;
}

static bool is_stopped(const thi_spec *spec)
{
    return spec->driver != NULL && thi_driver_stopped(spec->driver);
}

thiele_status thi_dense_converge(thi_dense_fit *fit, thiele_context *ctx, const thi_converge_options *options,
                                 thi_converge_result *result)
{
    *result = (thi_converge_result){0};
    double rho = 1.0;
    thiele_status status;
    THI_TRY(take_priors(fit, ctx));
    THI_TRY(start(fit, ctx, options, result));
    fit->warm = true;
    thi_anderson_reset(&fit->anderson);
    /* A stop is heard once there is something to keep: what the first steps gain is most of it. */
    while (result->steps < options->steps && !result->converged &&
           (result->steps < LEAST_STEPS || !is_stopped(fit->spec))) {
        double before = fit->bound, tried = rho;
        bool moved;
        result->converged = aim(fit) < options->tolerance;
        if (result->converged) {
            break;
        }
        THI_TRY(step(fit, ctx, options->tolerance, &rho, &moved, result));
        result->converged = !moved || fabs(fit->bound - before) < options->tolerance * rho;
        rho = rho < tried ? rho : fmin(1.0, 2.0 * rho);
    }
out:
    if (status != THIELE_OK) {
        fit->warm = false;
    }
    return status;
}

/* --- the gradient -------------------------------------------------------------------------------------------------
 */

/*
 * Of one latent. The bound at fixed sites is log Z + sum_n R_n, R = E - nu mu + lambda (mu^2 + v)/2, whose slopes
 * vanish at the fixed point: dR/dmu = g - nu + lambda mu, dR/dv = h + lambda/2. The second costs much and is left out
 * where its share is nothing: v's slope in a log parameter is about v.
 */
static thiele_status pull_latent(thi_dense_fit *fit, thiele_context *ctx, int q, double *gradient)
{
    const thi_latents *latents = &fit->spec->latents;
    const thi_prior *prior = &latents->prior[latents->group[q]];
    const thi_rows *rows = fit->rows;
    int64_t n = rows->n, Q = latents->count, nu = half(fit);
    double *g = fit->trial, *h = fit->trial + n, *slope = fit->step, share = 0.0; /* n each */
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i + q * n;
        slope[i] = fit->g[q + i * Q];
        g[i] = slope[i] - fit->sites[nu + j] + fit->sites[j] * fit->mu[j];
        h[i] = fit->h[q + i * Q] + 0.5 * fit->sites[j];
        share += fabs(h[i]) * fit->v[j];
    }
    thi_mean_pull(prior->mean, prior->mean_parameter, n, rows->dims, rows->X, slope,
                  gradient + prior->kernel->parameters, NULL);
    return thi_dense_gradient(&fit->latent[q], ctx, prior, g, share > RESIDUAL ? h : NULL, gradient);
}

thiele_status thi_dense_fit_gradient(thi_dense_fit *fit, thiele_context *ctx, double *gradient)
{
    const thi_latents *latents = &fit->spec->latents;
    int parameters = fit->spec->lik->parameters;
    if (parameters > 0) {
        thiele_status status = expect(fit, ctx, fit->dphi);
        if (status != THIELE_OK) {
            return status;
        }
    }
    for (int group = 0; group < latents->groups; group++) {
        for (int q = 0; q < latents->count; q++) {
            thiele_status status = THIELE_OK;
            if (latents->group[q] == group) {
                status = pull_latent(fit, ctx, q, gradient);
            }
            if (status != THIELE_OK) {
                return status;
            }
        }
        gradient += latents->kernel[group]->parameters + latents->mean_parameters;
    }
    for (int64_t i = 0; i < fit->rows->n; i++) {
        for (int p = 0; p < parameters; p++) {
            gradient[p] += fit->dphi[p + i * parameters];
        }
    }
    return THIELE_OK;
}

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
/* Sites of the first guess have at least this share of the prior's precision. */
static const double FIRST_SHARE = 0.01;
/* Nats: sites by other expectations are near enough to those of the bound's own when a step gains less; and sites that
 * no step improves are taken for the fixed point when row by row it would gain less. */
static const double NEAR = 0.1;
enum { LEAST_STEPS = 8 };
static const thi_engine *const engine = &thi_engine_dense;

double thi_dense_fit_bytes(int64_t n, int groups)
{
    return 0.5 * (groups + 1) * thi_dense_bytes(n);
}

static thiele_status open_latents(thi_dense_fit *fit, thiele_context *ctx)
{
    const thi_latents *latents = &fit->spec->latents;
    for (int q = 0; q < latents->count; q++) {
        thi_dense_shape shape = {fit->rows->n, fit->rows->X, q > 0 ? fit->latent[0] : NULL, NULL};
        for (int p = 0; p < q && shape.twin == NULL; p++) {
            shape.twin = latents->group[p] == latents->group[q] ? fit->latent[p] : NULL;
        }
        thiele_status status = engine->open(&fit->latent[q], ctx, &shape);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

thiele_status thi_dense_fit_open(thi_dense_fit *fit, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows)
{
    *fit = (thi_dense_fit){.spec = spec, .rows = rows, .leads = spec->steps != NULL};
    fit->providers = (thi_providers){.lik = spec->lik, .method = spec->expectation};
    fit->first = (thi_providers){.lik = spec->lik, .method = spec->steps};
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
    THI_TRY(thi_alloc(ctx, &fit->fresh, (size_t)spec->latents.count, sizeof *fit->fresh));
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
        engine->close(fit->latent[q]);
    }
    thi_providers_close(&fit->providers);
    thi_providers_close(&fit->first);
    thi_free(fit->fresh);
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
    const thi_asked asked = {0,      fit->rows->n, fit->rows->y, fit->f_mu, fit->f_v,
                             fit->E, fit->g,       fit->h,       dphi,      fit->rows->weight};
    return thi_providers_expect(fit->leading ? &fit->first : &fit->providers, ctx, &asked);
}

/* Conditions a latent on its part of these sites: marginals of f but for the rows' offsets; its KL is added. */
static thiele_status condition(thi_dense_fit *fit, thiele_context *ctx, int64_t q, double *sites, double *kl)
{
    const thi_latents *latents = &fit->spec->latents;
    int64_t n = fit->rows->n;
    thi_dense_sites at = {sites + q * n, sites + half(fit) + q * n, fit->fresh[q]};
    double own;
    thiele_status status;
    fit->fresh[q] = false;
    THI_TRY(engine->begin(fit->latent[q], ctx, &latents->prior[latents->group[q]], &at));
    THI_TRY(engine->end(fit->latent[q], ctx, NULL, &own, NULL));
    THI_TRY(engine->marginals(fit->latent[q], ctx, n, fit->rows->X, fit->mu + q * n, fit->v + q * n));
    *kl += own;
out:
    return status;
}

/* All of them: marginals, (E, g, h) and the bound. */
static thiele_status evaluate(thi_dense_fit *fit, thiele_context *ctx, double *sites)
{
    int64_t n = fit->rows->n, Q = fit->spec->latents.count;
    double kl = 0.0, expected = 0.0;
    thiele_status status = THIELE_OK;
    for (int64_t q = 0; q < Q; q++) {
        double *mu = fit->mu + q * n, *v = fit->v + q * n;
        THI_TRY(condition(fit, ctx, q, sites, &kl));
        for (int64_t i = 0; i < n; i++) {
            fit->f_mu[q + i * Q] = mu[i] + (q == 0 && fit->rows->offset != NULL ? fit->rows->offset[i] : 0.0);
            fit->f_v[q + i * Q] = v[i];
            mu[i] = fit->f_mu[q + i * Q] - fit->o[i + q * n];
        }
    }
    THI_TRY(expect(fit, ctx, NULL));
    for (int64_t i = 0; i < n; i++) {
        expected += fit->E[i];
    }
    fit->bound = expected - kl;
out:
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

/* o at the specification's present values; the engine will make its matrices. */
static void take_priors(thi_dense_fit *fit)
{
    const thi_latents *latents = &fit->spec->latents;
    const thi_rows *rows = fit->rows;
    for (int q = 0; q < latents->count; q++) {
        const thi_prior *prior = &latents->prior[latents->group[q]];
        double *o = fit->o + q * rows->n;
        fit->fresh[q] = true;
        thi_mean_fill(prior->mean, prior->mean_parameter, rows->n, rows->dims, rows->X, o);
        for (int64_t i = 0; i < rows->n && q == 0 && rows->offset != NULL; i++) {
            o[i] += rows->offset[i];
        }
    }
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

/* v (n x Q) becomes k(x, x) of the rows. */
static thiele_status prior_variances(thi_dense_fit *fit, thiele_context *ctx)
{
    const thi_latents *latents = &fit->spec->latents;
    const thi_rows *rows = fit->rows;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < latents->count && status == THIELE_OK; q++) {
        const thiele_kernel *kernel = latents->kernel[latents->group[q]];
        thi_inputs inputs = {0};
        status = thi_inputs_make(&inputs, ctx, kernel, rows->n, rows->X);
        if (status == THIELE_OK) {
            status = thi_kernel_fill_diagonal(kernel, ctx, &inputs, fit->v + q * rows->n);
        }
        thi_inputs_clear(&inputs);
    }
    return status;
}

/* The step becomes the one from no sites to those at the likelihood's guess of f. */
static thiele_status guess(thi_dense_fit *fit, thiele_context *ctx)
{
    const thiele_likelihood *lik = fit->spec->lik;
    int64_t n = fit->rows->n, Q = fit->spec->latents.count;
    thiele_status status = prior_variances(fit, ctx);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        double *prior = fit->g + i * Q; /* not needed yet */
        for (int64_t q = 0; q < Q; q++) {
            prior[q] = fit->o[i + q * n];
            fit->f_v[q + i * Q] = fit->v[i + q * n];
        }
        thi_first_guess(lik, fit->rows->y + i * fit->rows->outputs, prior, fit->f_mu + i * Q, fit->f_v + i * Q);
    }
    status = expect(fit, ctx, NULL);
    for (int64_t j = 0; j < n * Q && status == THIELE_OK; j++) {
        int64_t q = j / n, i = j % n, at = q + i * Q;
        bool missing = is_missing(fit->rows, i);
        double lambda = fmax(-2.0 * fit->h[at], FIRST_SHARE / fit->v[j]);
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
    if (fit->warm && (fit->leads || !options->cold)) {
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

/* Steps from sites that were evaluated. */
static thiele_status climb(thi_dense_fit *fit, thiele_context *ctx, const thi_converge_options *options,
                           thi_converge_result *result)
{
    double rho = 1.0;
    thiele_status status = THIELE_OK;
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
        result->stuck = !moved && aim(fit) > NEAR * (double)fit->rows->n;
        rho = rho < tried ? rho : fmin(1.0, 2.0 * rho);
    }
out:
    return status;
}

/* The first sites by the expectations that are for steps. */
static thiele_status lead(thi_dense_fit *fit, thiele_context *ctx, const thi_converge_options *options,
                          thi_converge_result *result)
{
    thi_converge_options near = {.tolerance = fmax(options->tolerance, NEAR), .steps = options->steps};
    thiele_status status;
    fit->leading = true;
    THI_TRY(start_cold(fit, ctx, result));
    THI_TRY(climb(fit, ctx, &near, result));
    fit->warm = true;
out:
    fit->leading = result->converged = false;
    return status;
}

thiele_status thi_dense_converge(thi_dense_fit *fit, thiele_context *ctx, const thi_converge_options *options,
                                 thi_converge_result *result)
{
    bool cold = options->cold || !fit->warm;
    *result = (thi_converge_result){0};
    thiele_status status;
    take_priors(fit);
    if (fit->leads && cold) {
        THI_TRY(lead(fit, ctx, options, result));
    }
    THI_TRY(start(fit, ctx, options, result));
    bool earlier = fit->warm; /* from the sites of the last call, which other values may have led far astray */
    THI_TRY(climb(fit, ctx, options, result));
    if (result->stuck && earlier) {
        *result = (thi_converge_result){0};
        THI_TRY(start_cold(fit, ctx, result));
        THI_TRY(climb(fit, ctx, options, result));
    }
    fit->warm = !result->stuck;
out:
    if (status != THIELE_OK) {
        fit->warm = false;
    }
    return status;
}

/* --- the gradient -------------------------------------------------------------------------------------------------
 */

/* Of one latent, at the sites that it was conditioned on. */
static thiele_status pull_latent(thi_dense_fit *fit, thiele_context *ctx, int q, double *gradient)
{
    const thi_latents *latents = &fit->spec->latents;
    int64_t n = fit->rows->n, Q = latents->count;
    double *g = fit->step, *h = fit->step + n, kl;
    thi_dense_bar bar = {gradient, gradient + latents->kernel[latents->group[q]]->parameters};
    for (int64_t i = 0; i < n; i++) {
        g[i] = fit->g[q + i * Q];
        h[i] = fit->h[q + i * Q];
    }
    thiele_status status = engine->pull(fit->latent[q], ctx, g, h, &bar);
    return status == THIELE_OK ? engine->end(fit->latent[q], ctx, NULL, &kl, &bar) : status;
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

/* The phases of a variational fit: explore, choose Z, optimise, freeze. */
#include "fit/variational.h"

#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/variational_state.h"

enum {
    FULL_BATCH = 4096, /* most rows that are taken all at once, and with Gaussian noise, which takes fewer passes */
    FULL_BATCH_GAUSSIAN = 16384,
    FULL_BATCH_COUPLED = 500, /* where the likelihood ties several latents together: whole passes gain little each */
    FEWEST_BATCHES = 4,
    BLOCK = 1024,
    ITERATIONS = 200, /* of L-BFGS */
    WARM_ROWS = 4096,
    WARM_ROWS_GAUSSIAN = 8192,
    WARM_PASSES = 50, /* of some five to ten evaluations: with less it is left out */
    WARM_ITERATIONS = 40,
    WARM_ITERATIONS_COUPLED = 4
};
static const double TOLERANCE = 1e-5;

/* --- settings ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool natural, all_rows; /* one full Gaussian by sites; always all rows at a time */
    double rate;            /* of a rule; 0: none */
} optimizers[] = {
    {"natural", true, false, 0.02}, {"lbfgs", false, true, 0.0},     {"alternate", false, true, 0.0},
    {"adam", false, false, 0.01},   {"adadelta", false, false, 1.0}, {"momentum", false, false, 0.001},
    {"natural", false, true, 0.0}, /* of any other family */
};
enum {
    OPTIMIZERS = sizeof optimizers / sizeof *optimizers,
    NATURAL = 0,
    LBFGS = 1,
    ALTERNATE = 2,
    ADAM = 3,
    MEMBERS = 6
};

static thiele_status find_optimizer(thiele_context *ctx, const char *name, int *found)
{
    for (*found = 0; *found < OPTIMIZERS; ++*found) {
        if (strcmp(optimizers[*found].name, name) == 0) {
            return THIELE_OK;
        }
    }
    return thi_fail(
        ctx, THIELE_ERROR_ARGUMENT,
        "there is no optimiser '%.40s': there are auto, natural, lbfgs, alternate, adam, adadelta, momentum", name);
}

static bool is_one_gaussian(const thi_variational_settings *s)
{
    return s->components == 1 && !s->diagonal;
}

/* What does not go together. */
static thiele_status check(thiele_context *ctx, const thi_variational_settings *s, const thi_source *source,
                           bool gaussian)
{
    if (source->n < 1) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "there are no rows to learn from");
    }
    if (s->inducing < 0 || s->components < 1 || s->batch < 0 || s->iterations < -1 || s->epochs < 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "inducing inputs, components, batch, epochs and iterations must not be negative");
    }
    if (!(s->rate >= 0.0 && s->tolerance >= 0.0) || isinf(s->rate)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "rate and tolerance must not be negative");
    }
    if (s->Z != NULL && s->Z_count < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no inducing inputs were given");
    }
    if (s->collapsed && !(gaussian && is_one_gaussian(s))) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "the collapsed bound needs Gaussian noise and one full Gaussian posterior");
    }
    return THIELE_OK;
}

/* Which optimizer, and whether all rows at once. */
static thiele_status choose_optimizer(thiele_context *ctx, const thi_variational_settings *s, bool all_rows, int *found)
{
    const char *name = s->optimizer != NULL ? s->optimizer : "auto";
    if (s->collapsed) {
        *found = NATURAL;
        return THIELE_OK;
    }
    if (strcmp(name, "auto") == 0) {
        /* A posterior with modes on either side of zero is searched from several of them. */
        *found = is_one_gaussian(s) && !(s->even && all_rows) ? NATURAL : MEMBERS;
        return THIELE_OK;
    }
    thiele_status status = find_optimizer(ctx, name, found);
    if (status == THIELE_OK && optimizers[*found].natural && !is_one_gaussian(s)) {
        *found = MEMBERS;
    }
    return status;
}

/* --- explore and choose Z ----------------------------------------------------------------------------------------- */

static thiele_status explore(thi_vfit *fit, bool exact)
{
    return thi_first_explore(&fit->problem, exact ? &thi_objective_exact : &thi_objective_dense, fit->settings,
                             &fit->result->fit, fit->settings->explored);
}

/* One set for all latents to begin with, unless all were given. */
static thiele_status choose_Z(thi_vfit *fit, double **Z, int64_t *M, bool *complete)
{
    int64_t wanted = fit->settings->inducing > 0 ? fit->settings->inducing
                                                 : thi_first_inducing(fit->problem.driver, fit->problem.source,
                                                                      fit->problem.spec->latents.count);
    return thi_first_basis(&fit->problem, fit->settings, wanted, Z, M, complete);
}

/* --- optimise and freeze ------------------------------------------------------------------------------------------ */

static bool coupled(const thi_vfit *fit)
{
    return fit->problem.spec->lik->latents > 1;
}

/*
 * Parameters of the likelihood and first sites from a block of rows; the sites stand for all. *seconds: what a row took
 * in a pass.
 */
static thiele_status first_block(thi_vfit *fit, double *seconds)
{
    const thi_source *all = fit->problem.source;
    thi_source some;
    thi_rows sample = {0};
    double passes = fit->passes, done = fit->pass.rows_done,
           deadline = thi_budget_lend(fit->problem.driver, THI_SHARE_FIRST);
    thiele_status status;
    THI_TRY(thi_source_sample(all, fit->problem.ctx, fit->shape.capacity, THI_SAMPLE_PHI, &sample));
    thi_source_of_rows(&some, &sample);
    fit->problem.source = &some;
    fit->passes = INFINITY;
    double begun = thi_seconds();
    THI_TRY(thi_vfit_first_phi(fit));
    *seconds = (thi_seconds() - begun) / (fit->pass.rows_done - done);
    thi_sites_scale(fit, (double)all->n / (double)some.n);
out:
    thi_budget_restore(fit->problem.driver, deadline);
    fit->problem.source = all;
    fit->passes = passes;
    fit->pass.rows_done = done;
    thi_rows_free(&sample);
    return status;
}

/* Whether there is time for a search on some rows that is more than its first evaluations. */
static bool worth_warming(const thi_vfit *fit, double seconds)
{
    return thi_budget_part(fit->problem.driver, THI_SHARE_WARM) > WARM_PASSES * WARM_ROWS * seconds;
}

/*
 * By sites, hyperparameters and Z too where they are to be learned. With minibatches on some rows, which L-BFGS brings
 * most of the way in the time of a few epochs; the sites that these give stand for all.
 */
static thiele_status warm(thi_vfit *fit, bool all_rows)
{
    const thi_source *all = fit->problem.source;
    thi_source some;
    thi_rows sample = {0};
    if (!all_rows && !fit->conjugate) {
        double seconds;
        thiele_status first = first_block(fit, &seconds);
        if (first != THIELE_OK || !worth_warming(fit, seconds)) {
            return first;
        }
    }
    int iterations = fit->settings->iterations > 0 ? fit->settings->iterations : ITERATIONS;
    double deadline = thi_budget_lend(fit->problem.driver, all_rows ? THI_SHARE_SITES : THI_SHARE_WARM),
           passes = fit->passes;
    thiele_status status;
    fit->passes *= all_rows ? 0.5 : (double)INFINITY;
    if (!all_rows) {
        int64_t rows = fit->conjugate ? WARM_ROWS_GAUSSIAN : coupled(fit) ? BLOCK : WARM_ROWS;
        THI_TRY(thi_source_sample(all, fit->problem.ctx, rows, THI_SAMPLE_WARM, &sample));
        thi_source_of_rows(&some, &sample);
        fit->problem.source = &some;
        iterations = coupled(fit) ? WARM_ITERATIONS_COUPLED : WARM_ITERATIONS;
    }
    if (fit->conjugate) {
        THI_TRY(thi_vfit_profile(fit, thi_vfit_size(fit) > 0));
    }
    THI_TRY(thi_vfit_nested(fit, "warm", iterations, !all_rows));
    thi_sites_scale(fit, (double)all->n / (double)fit->problem.source->n);
out:
    thi_budget_restore(fit->problem.driver, deadline);
    fit->problem.source = all;
    fit->passes = passes;
    fit->result->fit.iterations = 0;
    fit->pass.rows_done = all_rows ? fit->pass.rows_done : 0.0;
    thi_rows_free(&sample);
    return status;
}

/*
 * All rows at once. Of several latents a small sample finds noises that are too small for all rows: a first step of
 * kernels in answer to that leads to one of many optima, by chance; so those are mended before.
 */
static thiele_status optimise_all(thi_vfit *fit)
{
    bool mend = coupled(fit) && thi_vfit_size(fit) > 0 && fit->shape.capacity >= fit->problem.source->n;
    thiele_status status = mend ? thi_vfit_first_phi(fit) : THIELE_OK;
    int iterations = fit->settings->iterations > 0 ? fit->settings->iterations : ITERATIONS;
    return status == THIELE_OK ? thi_vfit_nested(fit, "fit", iterations, false) : status;
}

static double rate_of(const thi_vfit *fit, int optimizer)
{
    return fit->settings->rate > 0.0 ? fit->settings->rate : optimizers[optimizer].rate;
}

static thiele_status optimise_natural(thi_vfit *fit, bool all_rows)
{
    if (all_rows) {
        return fit->conjugate ? thi_vfit_stages(fit) : optimise_all(fit);
    }
    thiele_status status = warm(fit, false);
    return status == THIELE_OK ? thi_vfit_stochastic(fit, "adam", rate_of(fit, NATURAL)) : status;
}

static thiele_status optimise(thi_vfit *fit, int optimizer, bool all_rows, const thi_modes *modes)
{
    switch (optimizer) {
    case NATURAL:
        return optimise_natural(fit, all_rows);
    case LBFGS:
        return thi_vfit_lbfgs(fit);
    case ALTERNATE:
        return thi_vfit_alternate(fit);
    case MEMBERS:
        return thi_vfit_members(fit, modes);
    default:
        return thi_vfit_stochastic(fit, optimizers[optimizer].name, rate_of(fit, optimizer));
    }
}

/* With what its rows say, where that is what q was made of. */
static thiele_status freeze_latent(thi_vfit *fit, int latent, thi_predictor *out)
{
    thiele_status status;
    THI_TRY(fit->pass.engine->freeze(fit->pass.self, fit->problem.ctx, latent, out));
    if (fit->natural && !fit->shape.diagonal) {
        THI_TRY(thi_natural_root(&fit->sites[latent].sum, fit->problem.ctx, out->R[0]));
        out->plus = THI_PLUS_PRECISION;
    }
out:
    return status;
}

thiele_status thi_vfit_freeze(thi_vfit *fit, thi_fitted *fitted)
{
    const thi_pass *pass = &fit->pass;
    thiele_status status = THIELE_OK;
    for (int j = 0; j < fit->shape.latents && status == THIELE_OK; j++) {
        status = freeze_latent(fit, j, &fitted->latent[j]);
    }
    if (fitted->weight != NULL) {
        memcpy(fitted->weight, pass->engine->weights(pass->self),
               (size_t)fit->shape.components * sizeof *fitted->weight);
    }
    fitted->value = pass->at.bound;
    fitted->jitter = pass->engine->jitter(pass->self);
    return status;
}

/* Whether all rows are taken at once where the optimizer leaves the choice; natural steps: by one component. */
static bool takes_all(const thi_vfit *fit, bool gaussian)
{
    int64_t n = fit->problem.source->n, batch = fit->settings->batch;
    const char *name = fit->settings->optimizer;
    bool natural = name == NULL || strcmp(name, "auto") == 0 || strcmp(name, optimizers[NATURAL].name) == 0;
    int64_t most = gaussian && natural       ? FULL_BATCH_GAUSSIAN
                   : natural && coupled(fit) ? FULL_BATCH_COUPLED
                                             : FULL_BATCH;
    return batch > 0 ? batch >= n : n <= most;
}

/*
 * Whether a search over all rows can come to its end before the deadline; where it cannot, minibatches lead further.
 * With Gaussian noise it is q alone that takes one pass.
 */
static bool affords_all(const thi_vfit *fit, int64_t M)
{
    enum { EVALUATIONS = 200 };
    double m = (double)M, flops = 7.0 * (double)fit->problem.source->n * m * m + 8.0 * m * m * m;
    return fit->settings->condition ||
           thi_budget_seconds(fit->problem.driver, EVALUATIONS * flops) < thi_budget_left(fit->problem.driver);
}

/* Rows at a time; *all when those are all rows, or the optimizer takes all in blocks of so many. */
static int64_t choose_batch(const thi_vfit *fit, int64_t M, int optimizer, bool *all)
{
    int64_t n = fit->problem.source->n, batch = fit->settings->batch;
    *all = *all || fit->settings->collapsed || optimizers[optimizer].all_rows;
    if (fit->conjugate && optimizers[optimizer].natural) {
        *all = (*all || fit->settings->condition) && affords_all(fit, M);
    }
    if (batch == 0) {
        batch = *all || 2 * M < BLOCK ? BLOCK : 2 * M;
        batch = *all || n > FEWEST_BATCHES * batch ? batch : n / FEWEST_BATCHES;
    }
    return batch < n ? batch : n;
}

/* One component by sites, before an optimiser of q itself. */
typedef struct beginning {
    bool all_rows;
    bool learn; /* hyperparameters and Z too, where they are to be learned at all */
    bool whole; /* it goes all the way that it takes by itself; else a few steps lead it */
    int64_t batch;
} beginning;

static beginning begin_with(const thi_vfit *fit, int64_t M, int optimizer, bool all_rows)
{
    bool learn = fit->settings->iterations >= 0 && !fit->settings->condition;
    beginning b = {.all_rows = all_rows,
                   .learn = learn && (optimizer == LBFGS || optimizer == MEMBERS),
                   .whole = optimizer == MEMBERS};
    b.batch = choose_batch(fit, M, b.whole ? NATURAL : optimizer, &b.all_rows);
    return b;
}

/* What every process would do for itself is not what several of them are for. */
static thiele_status check_processes(const thi_vfit *fit, bool all_rows)
{
    return all_rows || !thi_ranks_many(fit->problem.ctx)
               ? THIELE_OK
               : thi_fail(fit->problem.ctx, THIELE_ERROR_UNSUPPORTED,
                          "steps on some rows at a time are not shared between processes yet: take all rows in each "
                          "(`optimizer` lbfgs), or one process");
}

static thi_vfit new_fit(const thi_problem *problem, const thi_variational_settings *settings,
                        thi_variational_result *result)
{
    return (thi_vfit){.problem = *problem,
                      .settings = settings,
                      .result = result,
                      .tolerance = settings->tolerance > 0.0 ? settings->tolerance : TOLERANCE,
                      .passes = settings->epochs > 0 ? (double)settings->epochs : (double)INFINITY};
}

/*
 * Where the likelihood cannot tell f from -f, functions that cross zero and such that turn back from it explain the
 * rows alike, and where one mode's values are learned decides which: the best of several draws of the prior is taken.
 */
static thiele_status warm_from_draws(thi_vfit *one)
{
    enum { DRAWS = 4 };
    size_t size = (size_t)thi_vfit_size(one), sites = (size_t)thi_sites_size(&one->shape);
    int draws = DRAWS + one->settings->restarts;
    double *x = NULL, *best, *kept, bound = -INFINITY;
    thiele_status status;
    THI_TRY(thi_alloc(one->problem.ctx, &x, 2 * size + sites, sizeof *x));
    best = x + size;
    kept = best + size;
    memcpy(x, one->vector.x, size * sizeof *x);
    for (int draw = -1; draw < draws && (draw < 0 || !thi_vfit_stopped(one)); draw++) {
        if (draw >= 0) {
            THI_TRY(thi_vfit_take(one, x));
            thi_modes_draw(one, draw);
        }
        status = warm(one, true);
        if (status == THIELE_OK && one->pass.at.bound > bound) {
            bound = one->pass.at.bound;
            memcpy(best, one->vector.x, size * sizeof *best);
            thi_sites_keep(one, kept);
        } else if (status == THIELE_ERROR_NUMERIC && isfinite(bound)) {
            thi_recover(one->problem.ctx);
            status = THIELE_OK;
        }
        THI_TRY(status);
    }
    THI_TRY(thi_vfit_take(one, best));
    THI_TRY(thi_sites_return(one, kept));
out:
    thi_free(x);
    return status;
}

/*
 * The modes that components begin at: by all rows, or by those of a block where they are many, of which the present q
 * is the first: *bound is its own.
 */
static thiele_status find_modes(thi_vfit *one, int most, bool all_rows, thi_modes *modes)
{
    const thi_source *all = one->problem.source;
    thi_source some;
    thi_rows sample = {0};
    double done = one->pass.rows_done, passes = one->passes, bound = one->pass.at.bound, *sites = NULL;
    thiele_status status = THIELE_OK;
    if (!all_rows) {
        THI_TRY(thi_alloc(one->problem.ctx, &sites, (size_t)thi_sites_size(&one->shape), sizeof *sites));
        thi_sites_keep(one, sites);
        THI_TRY(thi_source_sample(all, one->problem.ctx, one->shape.capacity, THI_SAMPLE_PHI, &sample));
        thi_source_of_rows(&some, &sample);
        one->problem.source = &some;
        one->passes = INFINITY;
        thi_sites_scale(one, (double)some.n / (double)all->n);
    }
    THI_TRY(thi_modes_find(one, most, modes));
    modes->weighed = all_rows;
    if (!all_rows) {
        THI_TRY(thi_sites_return(one, sites));
        THI_TRY(thi_modes_lead(one, bound, modes));
    }
out:
    one->problem.source = all;
    one->pass.rows_done = all_rows ? one->pass.rows_done : done;
    one->passes = passes;
    thi_rows_free(&sample);
    thi_free(sites);
    return status;
}

/* Everything by one component, in the way that it takes by itself. */
static thiele_status lead(thi_vfit *one, bool all_rows)
{
    if (all_rows && one->settings->even && thi_vfit_size(one) > 0) {
        return warm_from_draws(one);
    }
    double passes = one->passes, deadline = thi_budget_lend(one->problem.driver, THI_SHARE_SITES);
    one->passes *= all_rows ? 0.5 : 1.0;
    thiele_status status = optimise_natural(one, all_rows);
    one->passes = passes;
    thi_budget_restore(one->problem.driver, deadline);
    return status;
}

/*
 * One component of the family by sites. *Z_of, of all groups, is the caller's; where sites lead to no finite bound it
 * is NULL and there are no modes.
 */
static thiele_status begin_by_sites(thi_vfit *fit, int64_t M, const double *Z, const beginning *b, thi_modes *modes,
                                    double **Z_of)
{
    thi_variational_settings one = *fit->settings;
    one.components = 1;
    thi_vfit first = new_fit(&fit->problem, &one, fit->result);
    first.natural = true;
    first.quick = !b->all_rows;
    first.conjugate = fit->conjugate;
    thiele_status status;
    THI_TRY(thi_vfit_open(&first, M, Z, b->batch, b->learn));
    THI_TRY(b->whole ? lead(&first, b->all_rows) : warm(&first, b->all_rows));
    THI_TRY(find_modes(&first, fit->settings->components, b->all_rows, modes));
    fit->passes = b->whole && !b->all_rows ? (double)INFINITY : fit->passes; /* `epochs` are those of minibatches */
    *Z_of = first.Z;
    first.Z = NULL;
out:
    fit->pass.evaluations = first.pass.evaluations;
    fit->pass.rows_done = first.pass.rows_done;
    thi_vfit_close(&first);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        modes->count = 0;
        status = THIELE_OK;
    }
    return status;
}

/* Opens the fit, at its first q. */
static thiele_status open_fit(thi_vfit *fit, thi_variational_settings *settings, int64_t M, const double *Z,
                              int64_t batch, const beginning *b, thi_modes *modes)
{
    double *Z_of = NULL;
    thiele_status status;
    if (!fit->natural) {
        THI_TRY(begin_by_sites(fit, M, Z, b, modes, &Z_of));
    }
    settings->all_Z = settings->all_Z || Z_of != NULL;
    THI_TRY(thi_vfit_open(fit, M, Z_of != NULL ? Z_of : Z, batch, settings->iterations >= 0 && !settings->condition));
    if (!fit->natural) {
        thi_vfit_start_q(fit, modes);
    }
out:
    thi_free(Z_of);
    return status;
}

static thiele_status run(thi_vfit *fit, thi_variational_settings *settings, bool gaussian, thi_fitted *fitted)
{
    double *Z = NULL;
    int64_t M = 0;
    bool complete, all_rows = takes_all(fit, gaussian);
    int optimizer;
    thi_modes modes = {0};
    thiele_status status;
    THI_TRY(choose_optimizer(fit->problem.ctx, settings, all_rows, &optimizer));
    if (!settings->condition) {
        THI_TRY(explore(fit, gaussian));
    }
    THI_TRY(choose_Z(fit, &Z, &M, &complete));
    /* Where every row is an inducing input there is nothing to gain by moving them. */
    settings->fixed_Z = settings->fixed_Z || complete || settings->condition;
    fit->conjugate = gaussian;
    beginning b = begin_with(fit, M, optimizer, all_rows);
    int64_t batch = choose_batch(fit, M, optimizer, &all_rows);
    THI_TRY(check_processes(fit, all_rows));
    fit->natural = optimizers[optimizer].natural;
    fit->quick = !all_rows;
    fit->result->inducing = M;
    fit->result->batch = b.all_rows ? fit->problem.source->n : b.batch;
    fit->result->optimizer = settings->collapsed ? "collapsed" : optimizers[optimizer].name;
    THI_TRY(open_fit(fit, settings, M, Z, batch, &b, &modes));
    THI_TRY(optimise(fit, optimizer, all_rows, &modes));
    THI_TRY(thi_vfit_freeze(fit, fitted));
out:
    thi_free(Z);
    thi_modes_close(&modes);
    return status;
}

thiele_status thi_fit_variational(const thi_problem *problem, const thi_variational_settings *settings,
                                  thi_variational_result *result, thi_fitted *fitted)
{
    thi_variational_settings own = *settings;
    own.components = own.components == 0 ? 1 : own.components;
    *result = (thi_variational_result){0};
    thi_vfit fit = new_fit(problem, &own, result);
    const char *way = problem->spec->expectation;
    bool gaussian = problem->hypers->noise >= 0 && (way == NULL || strcmp(way, "closed") == 0);
    thiele_status status = check(problem->ctx, &own, problem->source, gaussian);
    if (status == THIELE_OK) {
        status = run(&fit, &own, gaussian, fitted);
    }
    result->fit.evaluations += fit.pass.evaluations;
    result->epochs = fit.pass.rows_done / (double)problem->source->n;
    if (problem->driver->stopped) {
        result->fit.stop = problem->driver->reason;
    }
    thi_vfit_close(&fit);
    return status;
}

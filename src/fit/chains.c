/*
 * Runs several Markov chains side by side, one a thread. They advance in rounds of equally many steps, after each of
 * which the calling thread reports progress and asks whether to go on; how long a round is has no say in what a chain
 * draws. All draws of the watched numbers are kept for the diagnostics, some of all numbers for the predictor.
 */
#include "fit/chains.h"

#include <math.h>
#include <string.h>

#include "fit/chain.h"
#include "likelihood/augment.h"

/* Rounds are about this long: often enough to be stopped, seldom enough to cost nothing. */
static const double ROUND_SECONDS = 0.05;
/* Draws of all chains that are kept for the diagnostics: no more bytes than these, or a quarter of what may be held. */
static const double HISTORY_BYTES = 1073741824.0;
/* Numbers diagnosed together: a line of the cache holds their values of one draw. */
enum { GATHER = 8 };
/* A prior draw without a finite density is halved towards the prior mean at most this often. */
enum { HALVINGS = 60 };

static const thi_sampler *const samplers[] = {&thi_sampler_gibbs, &thi_sampler_gibbs_sparse, &thi_sampler_ess,
                                              &thi_sampler_hmc, &thi_sampler_mh};

typedef struct run {
    thiele_context *ctx;
    const thi_sampler *sampler;
    thi_chains_settings settings; /* no defaults left */
    thi_chain_model model;
    thi_chain *chain; /* one each */
    int64_t all;      /* m Q: numbers of r */
    int64_t watched;
    double *history; /* watched x draws x chains */
    int64_t stride;  /* every stride-th draw is kept */
    int64_t room;    /* kept draws of one chain, at most */
    double *kept;    /* all x room x chains */
    int64_t draws;   /* so far, of each chain */
    int64_t steps;   /* so far, of each chain */
    int64_t round;   /* steps of the next round */
} run;

/* --- settings -------------------------------------------------------------------------------------------------------
 */

static const thi_sampler *find_sampler(const thi_chains_settings *s)
{
    for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++) {
        if (strcmp(samplers[i]->name, s->sampler) == 0 && samplers[i]->sparse == (s->basis.Z != NULL)) {
            return samplers[i];
        }
    }
    return NULL;
}

static thi_chains_settings with_defaults(const thi_chains_settings *given)
{
    thi_chains_settings s = *given;
    s.chains = s.chains == 0 ? 4 : s.chains;
    s.draws = s.draws == 0 ? 1000 : s.draws;
    s.thin = s.thin == 0 ? 1 : s.thin;
    s.keep = s.keep == 0 ? 1000 : s.keep;
    s.burn_in = s.burn_in == 0 ? s.draws * s.thin / 2 : s.burn_in == -1 ? 0 : s.burn_in;
    return s;
}

static thiele_status check(thiele_context *ctx, const thi_chains_settings *s, const thi_sampler *sampler,
                           const thiele_likelihood *lik)
{
    const int64_t most = (int64_t)1 << 31;
    if (sampler == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "'%.40s' is not a sampler%s: %s", s->sampler,
                        s->basis.Z != NULL ? " of inducing inputs" : "",
                        s->basis.Z != NULL ? "gibbs" : "gibbs, ess, hmc or mh");
    }
    if (s->chains < 1 || s->chains > THI_CHAINS_MAX) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "%d chains: there must be 1 to %d", s->chains, THI_CHAINS_MAX);
    }
    if (s->draws < 1 || s->draws > most || s->thin < 1 || s->thin > most || s->keep < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "the numbers of draws, thinning and kept draws must be positive and at most 2^31");
    }
    if (s->burn_in < 0 || s->burn_in > most * most / 2) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "burn-in must be a number of steps, or -1 for none");
    }
    if (!(s->step >= 0.0 && s->step < INFINITY) || s->leaps < 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the step length and the number of leaps must be positive");
    }
    if (sampler->needs_augmentation && !thi_is_augmented(lik)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "the likelihood '%s' has no auxiliary variables for the %s sampler: use ess or hmc",
                        lik->ops->name, sampler->name);
    }
    return THIELE_OK;
}

double thi_chains_bytes(int64_t n, int groups, const thi_chains_settings *settings)
{
    int chains = settings->chains > 0 ? settings->chains : 4;
    const thi_sampler *sampler = find_sampler(settings);
    bool own = sampler != NULL && sampler->needs_augmentation;
    return 8.0 * (double)n * (double)n * (2.0 * groups + (own ? chains * (1.0 + 0.5 * groups) : 0.0)) +
           160.0 * (double)n * chains;
}

/* --- starts ---------------------------------------------------------------------------------------------------------
 */

/* A draw of the prior. */
static thiele_status start(thi_chain *chain)
{
    int64_t all = chain->model->places * chain->model->latents;
    thi_chain_normals(chain, all, chain->trial_r);
    thi_chain_colour(chain->model, chain->trial_r, chain->r);
    chain->log_p = thi_chain_density(chain, chain->r, chain->f);
    for (int i = 0; i < HALVINGS && !isfinite(chain->log_p); i++) {
        for (int64_t j = 0; j < all; j++) {
            chain->r[j] *= 0.5;
        }
        chain->log_p = thi_chain_density(chain, chain->r, chain->f);
    }
    return isfinite(chain->log_p) ? THIELE_OK
                                  : thi_fail(chain->ctx, THIELE_ERROR_NUMERIC,
                                             "the likelihood '%s' has no finite density at draws of the prior nor near "
                                             "its mean: no chain can start",
                                             chain->model->lik->ops->name);
}

static thiele_status open_chain(void *arg, int64_t block, int thread)
{
    (void)thread;
    run *r = arg;
    thi_chain *chain = &r->chain[block];
    chain->model = &r->model;
    chain->settings = &r->settings;
    chain->number = (int)block;
    chain->burning = true;
    chain->own = *r->ctx;
    chain->own.threads = 1;
    chain->own.pool = NULL;
    thi_recover(&chain->own);
    chain->ctx = r->settings.chains > 1 ? &chain->own : r->ctx;
    int64_t rows = r->model.n * r->model.latents;
    const struct {
        double **vector;
        int64_t count;
    } vectors[] = {{&chain->r, r->all},
                   {&chain->trial_r, r->all},
                   {&chain->f, rows},
                   {&chain->trial_f, rows},
                   {&chain->density, rows}};
    thiele_status status;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        THI_TRY(thi_alloc(chain->ctx, vectors[i].vector, (size_t)vectors[i].count, sizeof(double)));
    }
    THI_TRY(start(chain));
    THI_TRY(r->sampler->open(&chain->state, chain));
out:
    return status;
}

static void close_chain(const run *r, thi_chain *chain)
{
    double *const vectors[] = {chain->r, chain->f, chain->trial_r, chain->trial_f, chain->density};
    r->sampler->close(chain->state);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        thi_free(vectors[i]);
    }
}

/* --- rounds ---------------------------------------------------------------------------------------------------------
 */

/* The message of the first chain that failed becomes the context's. */
static thiele_status each_chain(run *r, thi_block_fn fn)
{
    for (int c = 0; c < r->settings.chains; c++) {
        thi_recover(&r->chain[c].own);
    }
    thiele_status status = thi_parallel(r->ctx, r->settings.chains, fn, r);
    for (int c = 0; c < r->settings.chains && status != THIELE_OK; c++) {
        if (r->chain[c].own.message[0] != '\0') {
            memcpy(r->ctx->message, r->chain[c].own.message, sizeof r->ctx->message);
            break;
        }
    }
    return status;
}

static int64_t coordinate(const run *r, int64_t watch)
{
    return watch * r->all / r->watched;
}

/* f of one number in the order m x Q. */
static double value_of(const thi_chain *chain, int64_t j)
{
    return chain->r[j] + chain->model->at[j];
}

static void keep_state(const run *r, const thi_chain *chain, int64_t slot)
{
    double *f = r->kept + (chain->number * r->room + slot) * r->all;
    for (int64_t j = 0; j < r->all; j++) {
        f[j] = value_of(chain, j);
    }
}

static void record(const run *r, const thi_chain *chain, int64_t draw)
{
    double *row = r->history + (chain->number * r->settings.draws + draw) * r->watched;
    for (int64_t k = 0; k < r->watched; k++) {
        row[k] = value_of(chain, coordinate(r, k));
    }
    if ((draw + 1) % r->stride == 0 && draw / r->stride < r->room) {
        keep_state(r, chain, draw / r->stride);
    }
}

static thiele_status advance(void *arg, int64_t block, int thread)
{
    (void)thread;
    const run *r = arg;
    thi_chain *chain = &r->chain[block];
    double started = thi_seconds();
    for (int64_t i = 1; i <= r->round; i++) {
        chain->steps++;
        thiele_status status = r->sampler->step(chain);
        if (status != THIELE_OK) {
            return status;
        }
        int64_t moves = chain->steps - r->settings.burn_in;
        if (!chain->burning && moves % r->settings.thin == 0) {
            record(r, chain, moves / r->settings.thin - 1);
        }
    }
    chain->seconds += chain->burning ? 0.0 : thi_seconds() - started;
    return THIELE_OK;
}

static double mean_density(const run *r)
{
    double sum = 0.0;
    for (int c = 0; c < r->settings.chains; c++) {
        sum += r->chain[c].log_p / r->settings.chains;
    }
    return sum;
}

/* One phase of `steps` steps, in rounds, until it is done or the driver asks to stop. */
static thiele_status advance_all(run *r, thi_driver *driver, const char *phase, int64_t steps)
{
    int64_t round = 1, done = 0;
    thi_driver_phase(driver, phase, steps);
    while (done < steps && !thi_driver_stopped(driver)) {
        double started = thi_seconds();
        r->round = round < steps - done ? round : steps - done;
        thiele_status status = each_chain(r, advance);
        if (status != THIELE_OK) {
            return status;
        }
        done += r->round;
        r->steps += r->round;
        driver->done = done - 1;
        double value = mean_density(r);
        thi_driver_step(driver, &(thi_step){.value = value,
                                            .expected = NAN,
                                            .divergence = NAN,
                                            .size = r->chain[0].step,
                                            .rows = r->model.n * r->settings.chains * r->round});
        double seconds = thi_seconds() - started;
        round = seconds < 0.5 * ROUND_SECONDS   ? 2 * r->round
                : seconds > 2.0 * ROUND_SECONDS ? (r->round + 1) / 2
                                                : round;
    }
    return THIELE_OK;
}

static thiele_status sample(run *r, thi_driver *driver)
{
    thiele_status status = advance_all(r, driver, "burn-in", r->settings.burn_in);
    if (status != THIELE_OK || thi_driver_stopped(driver)) {
        return status;
    }
    for (int c = 0; c < r->settings.chains; c++) {
        r->chain[c].burning = false;
    }
    status = advance_all(r, driver, "sample", r->settings.draws * r->settings.thin);
    r->draws = (r->steps - r->settings.burn_in) / r->settings.thin;
    return status;
}

/* --- diagnostics ----------------------------------------------------------------------------------------------------
 */

typedef struct diagnosing {
    const run *run;
    double **space; /* of each thread: draws x chains x GATHER */
    thi_diagnosis *diagnosis;
} diagnosing;

/* The next GATHER watched numbers. */
static thiele_status diagnose_block(void *arg, int64_t block, int thread)
{
    const diagnosing *d = arg;
    const run *r = d->run;
    int64_t first = block * GATHER, last = first + GATHER < r->watched ? first + GATHER : r->watched;
    int64_t T = r->draws, chains = r->settings.chains;
    double *x = d->space[thread];
    for (int64_t c = 0; c < chains; c++) {
        for (int64_t t = 0; t < T; t++) {
            const double *row = r->history + (c * r->settings.draws + t) * r->watched;
            for (int64_t k = first; k < last; k++) {
                x[((k - first) * chains + c) * T + t] = row[k];
            }
        }
    }
    for (int64_t k = first; k < last; k++) {
        thi_diagnose((int)chains, T, x + (k - first) * chains * T, &d->diagnosis[k], NULL);
    }
    return THIELE_OK;
}

static thiele_status diagnose(const run *r, thi_mixing *mixing)
{
    int threads = r->ctx->threads > 1 ? r->ctx->threads : 1;
    size_t each = (size_t)(r->draws * r->settings.chains * GATHER);
    diagnosing d = {.run = r};
    *mixing = (thi_mixing){NAN, NAN, NAN, NAN, NAN};
    if (r->draws < 4) {
        return THIELE_OK;
    }
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &d.diagnosis, (size_t)r->watched, sizeof *d.diagnosis));
    THI_TRY(thi_alloc(r->ctx, &d.space, (size_t)threads, sizeof *d.space));
    for (int t = 0; t < threads; t++) {
        THI_TRY(thi_alloc_bare(r->ctx, &d.space[t], each, sizeof **d.space));
    }
    THI_TRY(thi_parallel(r->ctx, (r->watched + GATHER - 1) / GATHER, diagnose_block, &d));
    thi_mixing_of(r->watched, d.diagnosis, mixing);
out:
    for (int t = 0; d.space != NULL && t < threads; t++) {
        thi_free(d.space[t]);
    }
    thi_free(d.space);
    thi_free(d.diagnosis);
    return status;
}

/* --- the whole ------------------------------------------------------------------------------------------------------
 */

static thiele_status open_run(run *r, const thi_spec *spec, const thi_rows *rows)
{
    thi_chains_settings *s = &r->settings;
    double budget = fmin(HISTORY_BYTES, 0.25 * (double)thi_memory_limit(r->ctx));
    double fit = budget / (8.0 * (double)s->draws * s->chains);
    r->all = (s->basis.Z != NULL ? s->basis.M : rows->n) * spec->latents.count;
    r->watched = fit >= (double)r->all ? r->all : fit < 1.0 ? 1 : (int64_t)fit;
    int64_t each = s->keep / s->chains > 1 ? s->keep / s->chains : 1;
    r->stride = (s->draws + each - 1) / each;
    r->room = s->draws / r->stride;
    thiele_status status;
    THI_TRY(thi_chain_model_open(&r->model, r->ctx, spec, rows, s->basis));
    THI_TRY(thi_alloc_bare(r->ctx, &r->history, (size_t)(s->draws * s->chains), (size_t)r->watched * sizeof(double)));
    THI_TRY(thi_alloc_bare(r->ctx, &r->kept, (size_t)(r->room * s->chains), (size_t)r->all * sizeof(double)));
    THI_TRY(thi_alloc(r->ctx, &r->chain, (size_t)s->chains, sizeof *r->chain));
    THI_TRY(each_chain(r, open_chain));
out:
    return status;
}

static void close_run(run *r)
{
    for (int c = 0; r->chain != NULL && c < r->settings.chains; c++) {
        close_chain(r, &r->chain[c]);
    }
    thi_free(r->chain);
    thi_free(r->history);
    thi_free(r->kept);
    thi_chain_model_close(&r->model);
}

/* What was kept moves together; a chain that kept nothing gives where it stands. */
static int64_t gather_kept(run *r)
{
    int64_t each = r->draws / r->stride < r->room ? r->draws / r->stride : r->room;
    for (int c = 0; c < r->settings.chains; c++) {
        if (each == 0) {
            keep_state(r, &r->chain[c], 0);
        }
        int64_t count = each > 0 ? each : 1;
        memmove(r->kept + c * count * r->all, r->kept + c * r->room * r->all,
                (size_t)(count * r->all) * sizeof *r->kept);
    }
    return (each > 0 ? each : 1) * r->settings.chains;
}

static void sum_up(const run *r, thi_chains_result *result)
{
    double accepted = 0.0, proposals = 0.0;
    for (int c = 0; c < r->settings.chains; c++) {
        const thi_chain *chain = &r->chain[c];
        accepted += chain->accepted;
        proposals += (double)chain->proposals;
        result->divergences += chain->divergences;
        result->step += chain->step / r->settings.chains;
        result->seconds += chain->seconds / (r->settings.chains * fmax((double)r->draws, 1.0));
    }
    result->acceptance = proposals > 0.0 ? accepted / proposals : NAN;
}

thiele_status thi_chains_run(thiele_context *ctx, thi_driver *driver, const thi_spec *spec, const thi_rows *rows,
                             const thi_chains_settings *settings, thi_chains_result *result)
{
    const thi_sampler *sampler = find_sampler(settings);
    run r = {.ctx = ctx, .sampler = sampler, .settings = with_defaults(settings)};
    *result = (thi_chains_result){0};
    thiele_status status = check(ctx, &r.settings, sampler, spec->lik);
    if (status != THIELE_OK) {
        return status;
    }
    THI_TRY(open_run(&r, spec, rows));
    THI_TRY(sample(&r, driver));
    thi_mixing mixing;
    THI_TRY(diagnose(&r, &mixing));
    *result = (thi_chains_result){.sampler = sampler->name,
                                  .chains = r.settings.chains,
                                  .n = r.model.places,
                                  .basis = settings->basis,
                                  .latents = spec->latents.count,
                                  .draws = r.draws,
                                  .steps = r.steps,
                                  .early = r.draws == 0,
                                  .kept = gather_kept(&r),
                                  .f = r.kept,
                                  .mixing = mixing,
                                  .watched = r.watched,
                                  .jitter = r.model.jitter};
    sum_up(&r, result);
    r.kept = NULL;
out:
    close_run(&r);
    return status;
}

void thi_chains_clear(thi_chains_result *result)
{
    thi_free(result->f);
    *result = (thi_chains_result){0};
}

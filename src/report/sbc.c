/* Simulation-based calibration: sbc.h has the sources. Simulations run one after the other, each with a seed of its
 * own. */
#include "report/sbc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fit/chain.h"

/*
 * Steps of a chain between draws, which must be all but independent: where they are not, ranks gather at both ends.
 * Before the first draw as many as for BURN_IN of them.
 */
static const struct {
    const char *sampler;
    int64_t thin;
} steps[] = {{"gibbs", 10}, {"ess", 40}, {"hmc", 10}, {"mh", 1000}};
enum { SAMPLERS = sizeof steps / sizeof *steps, THIN = 20, BURN_IN = 20 };
/* A purpose of its own beside those of base.h and chain.h. */
enum { THI_RANDOM_SBC = 132 };

/* What all simulations share. */
typedef struct simulator {
    const thi_sbc *sbc;
    thiele_context *ctx;
    thi_chain_model prior; /* factors and means at the rows */
    thi_expect expect;     /* draws y */
    uint64_t seed;
    int64_t *row;
    thi_predictor *latent;
    double *f, *none; /* Q x n: the truth; zeros, its variances */
    double *draw;     /* Q x n: of the posterior */
    double *own, *z;  /* n: of one latent function */
    double *density;  /* n */
    double *mean;     /* n x Q */
    thi_matrix *C;    /* Q: factors of the posterior's covariances */
} simulator;

void thi_sbc_name(const thi_sbc *sbc, int quantity, char name[32])
{
    int64_t last = sbc->rows->n - 1;
    if (quantity < THI_SBC_PLACES) {
        snprintf(name, 32, "f[%lld]", (long long)(quantity * last / (THI_SBC_PLACES - 1) + 1));
    } else {
        snprintf(name, 32, "%s", quantity == THI_SBC_PLACES ? "mean of f" : "log p(y | f)");
    }
}

bool thi_sbc_can(const thi_method *method)
{
    return method != NULL && method->objective != NULL;
}

/* What is ranked; f: Q x n. */
static void measure(simulator *s, const double *f, double value[THI_SBC_QUANTITIES])
{
    const thi_rows *rows = s->sbc->rows;
    const thiele_likelihood *lik = s->sbc->truth->lik;
    int64_t n = rows->n;
    double sum = 0.0, total = 0.0;
    lik->ops->log_density(lik, n, rows->y, f, s->density);
    for (int64_t i = 0; i < n; i++) {
        sum += f[i * lik->latents];
        total += s->density[i];
    }
    for (int k = 0; k < THI_SBC_PLACES; k++) {
        value[k] = f[k * (n - 1) / (THI_SBC_PLACES - 1) * lik->latents];
    }
    value[THI_SBC_PLACES] = sum / (double)n;
    value[THI_SBC_PLACES + 1] = total;
}

/* f of latent q becomes mean + L z. */
static void colour(simulator *s, int q, thi_matrix L, const double *mean, thi_stream stream, uint64_t first, double *f)
{
    int64_t n = s->sbc->rows->n;
    for (int64_t i = 0; i < n; i++) {
        s->z[i] = thi_random_normal(stream, first + (uint64_t)i);
    }
    thi_lower_apply(THI_N, L, s->z, s->own);
    for (int64_t i = 0; i < n; i++) {
        f[i * s->prior.latents + q] = mean[i] + s->own[i];
    }
}

static thiele_status draw_truth(simulator *s, int64_t simulation)
{
    const thi_rows *rows = s->sbc->rows;
    const thi_stream stream = {s->seed, THI_RANDOM_SBC, (uint64_t)simulation};
    int64_t n = rows->n;
    for (int q = 0; q < s->prior.latents; q++) {
        colour(s, q, s->prior.L[s->prior.group[q]], s->prior.o + q * n, stream, (uint64_t)(q * n), s->f);
    }
    const thi_marginals m = {n, 1, NULL, s->f, s->none};
    return thi_mixture_samples(&s->expect, s->ctx, &m, s->row, (uint64_t)simulation, 1, rows->y);
}

/* --- draws of the posterior -----------------------------------------------------------------------------------------
 */

typedef struct ranking {
    double truth[THI_SBC_QUANTITIES];
    int *below;
} ranking;

static void rank_draw(simulator *s, ranking *r)
{
    double value[THI_SBC_QUANTITIES];
    measure(s, s->draw, value);
    for (int k = 0; k < THI_SBC_QUANTITIES; k++) {
        r->below[k] += value[k] < r->truth[k];
    }
}

/* Independent ones, of a Gaussian posterior. */
static thiele_status rank_gaussian(simulator *s, int64_t simulation, ranking *r)
{
    const thi_sbc *sbc = s->sbc;
    const thi_rows *rows = sbc->rows;
    const thi_stream stream = {s->seed, THI_RANDOM_SBC + 1, (uint64_t)simulation};
    int64_t n = rows->n;
    int Q = s->prior.latents;
    double jitter;
    thi_fitted fitted = {.latent = s->latent};
    thiele_status status;
    THI_TRY(thi_freeze(s->ctx, sbc->method->objective, sbc->spec, rows, &fitted));
    for (int q = 0; q < Q; q++) {
        double *mean = s->mean + q * n;
        THI_TRY(thi_predictor_joint(&s->latent[q], s->ctx, 0, n, rows->X, mean, s->C[q].data));
        if (q == 0 && rows->offset != NULL) {
            thi_blas_axpy(n, 1.0, rows->offset, mean);
        }
        THI_TRY(thi_chol_jitter(s->ctx, s->C[q], &jitter));
    }
    for (int d = 0; d < THI_SBC_DRAWS; d++) {
        for (int q = 0; q < Q; q++) {
            colour(s, q, s->C[q], s->mean + q * n, stream, (uint64_t)((d * Q + q) * n), s->draw);
        }
        rank_draw(s, r);
    }
out:
    for (int q = 0; q < Q; q++) {
        thi_predictor_clear(&s->latent[q]);
    }
    return status;
}

static int64_t thin_of(const char *sampler)
{
    int64_t thin = THIN;
    for (int i = 0; i < SAMPLERS; i++) {
        thin = strcmp(steps[i].sampler, sampler) == 0 ? steps[i].thin : thin;
    }
    return thin;
}

static thiele_status rank_chain(simulator *s, ranking *r)
{
    const thi_sbc *sbc = s->sbc;
    int64_t thin = thin_of(sbc->method->sampler);
    const thi_chains_settings settings = {.sampler = sbc->method->sampler,
                                          .chains = 1,
                                          .draws = THI_SBC_DRAWS,
                                          .burn_in = BURN_IN * thin,
                                          .thin = thin,
                                          .keep = THI_SBC_DRAWS};
    thi_chains_result result = {0};
    thi_driver driver;
    int64_t n = sbc->rows->n;
    int Q = s->prior.latents;
    thi_driver_start(&driver, s->ctx, 0.0);
    thiele_status status = thi_chains_run(s->ctx, &driver, sbc->spec, sbc->rows, &settings, &result);
    for (int64_t d = 0; status == THIELE_OK && d < result.kept; d++) {
        const double *f = result.f + d * n * Q;
        for (int64_t i = 0; i < n * Q; i++) {
            s->draw[i % n * Q + i / n] = f[i];
        }
        rank_draw(s, r);
    }
    thi_chains_clear(&result);
    return status;
}

/* What a method says of itself on the way is not about the user's model, and has a seed of its own. */
static thiele_status simulate(simulator *s, int64_t simulation)
{
    thiele_context *ctx = s->ctx;
    thiele_log_fn log = ctx->log;
    thiele_progress_fn progress = ctx->progress;
    ranking r = {.below = s->sbc->rank + simulation * THI_SBC_QUANTITIES};
    memset(r.below, 0, THI_SBC_QUANTITIES * sizeof *r.below);
    thiele_status status = draw_truth(s, simulation);
    if (status != THIELE_OK) {
        return status;
    }
    measure(s, s->f, r.truth);
    ctx->log = NULL;
    ctx->progress = NULL;
    ctx->seed = thi_random_bits((thi_stream){s->seed, THI_RANDOM_SBC + 2, (uint64_t)simulation}, 0);
    status = s->sbc->method->sampler != NULL ? rank_chain(s, &r) : rank_gaussian(s, simulation, &r);
    ctx->log = log;
    ctx->progress = progress;
    ctx->seed = s->seed;
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------
 */

static thiele_status open_simulator(simulator *s)
{
    const thi_sbc *sbc = s->sbc;
    size_t n = (size_t)sbc->rows->n, Q = (size_t)sbc->truth->latents.count;
    thiele_status status;
    THI_TRY(thi_chain_model_open(&s->prior, s->ctx, sbc->truth, sbc->rows, (thi_chains_basis){0}));
    THI_TRY(thi_expect_open(&s->expect, s->ctx, sbc->truth->lik, NULL));
    s->expect.seed = s->seed;
    THI_TRY(thi_alloc(s->ctx, &s->row, n, sizeof *s->row));
    THI_TRY(thi_alloc(s->ctx, &s->latent, Q, sizeof *s->latent));
    THI_TRY(thi_alloc(s->ctx, &s->f, n * Q, sizeof *s->f));
    THI_TRY(thi_alloc(s->ctx, &s->none, n * Q, sizeof *s->none));
    THI_TRY(thi_alloc(s->ctx, &s->draw, n * Q, sizeof *s->draw));
    THI_TRY(thi_alloc(s->ctx, &s->own, n, sizeof *s->own));
    THI_TRY(thi_alloc(s->ctx, &s->z, n, sizeof *s->z));
    THI_TRY(thi_alloc(s->ctx, &s->density, n, sizeof *s->density));
    THI_TRY(thi_alloc(s->ctx, &s->mean, n * Q, sizeof *s->mean));
    THI_TRY(thi_alloc(s->ctx, &s->C, Q, sizeof *s->C));
    for (size_t q = 0; q < Q; q++) {
        THI_TRY(thi_matrix_alloc(&s->C[q], s->ctx, (int64_t)n, (int64_t)n));
    }
    for (size_t i = 0; i < n; i++) {
        s->row[i] = (int64_t)i;
    }
out:
    return status;
}

static void close_simulator(simulator *s)
{
    double *const blocks[] = {s->f, s->none, s->draw, s->own, s->z, s->density, s->mean};
    for (int q = 0; s->C != NULL && q < s->sbc->truth->latents.count; q++) {
        thi_free(s->C[q].data);
    }
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    thi_free(s->C);
    thi_free(s->row);
    thi_free(s->latent);
    thi_expect_close(&s->expect);
    thi_chain_model_close(&s->prior);
}

thiele_status thi_sbc_run(const thi_sbc *sbc, thiele_context *ctx)
{
    simulator s = {.sbc = sbc, .ctx = ctx, .seed = ctx->seed};
    double began = thi_seconds();
    thiele_status status;
    THI_TRY(open_simulator(&s));
    for (int64_t k = 0; k < sbc->simulations; k++) {
        const thiele_progress progress = thi_progress("check", k, sbc->simulations, thi_seconds() - began);
        THI_TRY(thi_tell(ctx, &progress)
                    ? thi_fail(ctx, THIELE_ERROR_CANCELLED, "stopped after %lld of %lld simulations", (long long)k,
                               (long long)sbc->simulations)
                    : THIELE_OK);
        THI_TRY(simulate(&s, k));
    }
out:
    close_simulator(&s);
    return status;
}

/*
 * First means and variances of latent functions some of whose signs the density of a row leaves open. Where these
 * latents vanish so do all slopes, and each row by itself can be explained in many ways, so that guesses row by row
 * agree on nothing. What the rows have in common tells: with f_i ~ N(c, diag s^2) independently, as if the kernels were
 * white, and q(f_i) = N(mu_i, diag v_i), the bound
 *   sum_i E_i - KL(q(f_i) || N(c, diag s^2))
 * rises by natural steps of q and, in turns with these, by c = mean mu_i and s^2 = mean (mu_i - c)^2 + v_i. That is
 * factor analysis where the density is a network's. It begins at several random c, of which the most promising goes on.
 * STARTS x FIRST_STEPS + STEPS passes over at most ROWS rows.
 */
#include <math.h>
#include <string.h>

#include "expect/parallel.h"
#include "fit/driver.h"
#include "fit/start.h"

enum { ROWS = 256, STARTS = 4, FIRST_STEPS = 60, STEPS = 200 };
/* Of a natural step. */
static const double RHO = 0.5;
/* A row that would have a latent vary more than before is allowed this factor. */
static const double MOST_SPREAD = 4.0;
static const double FIRST_V = 0.1;
/* Draws do, whatever the fit itself takes. */
static const char *const METHOD = "qmc:512";

/* Vectors of one start, so that it can be gone on with: Q x n each, then c and s^2. */
typedef struct independent {
    thi_providers providers;
    thi_driver *driver; /* NULL: nobody stops it */
    const thi_rows *rows;
    const bool *open;
    int64_t n;
    int Q;
    double *mu, *v, *g, *h, *E;
    double *c, *s2;
} independent;

static void close_rows(independent *r)
{
    double *const blocks[] = {r->mu, r->v, r->g, r->h, r->E, r->c, r->s2};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    thi_providers_close(&r->providers);
}

static thiele_status open_rows(independent *r, thiele_context *ctx)
{
    size_t Q = (size_t)r->Q, numbers = Q * (size_t)r->n;
    double **const matrices[] = {&r->mu, &r->v, &r->g, &r->h};
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        THI_TRY(thi_alloc(ctx, matrices[i], numbers, sizeof(double)));
    }
    THI_TRY(thi_alloc(ctx, &r->E, (size_t)r->n, sizeof *r->E));
    THI_TRY(thi_alloc(ctx, &r->c, Q, sizeof *r->c));
    THI_TRY(thi_alloc(ctx, &r->s2, Q, sizeof *r->s2));
out:
    return status;
}

/* All rows at a random c, of latents whose signs are open; the others at 0. */
static void begin(independent *r, uint64_t seed, int start)
{
    thi_stream stream = {seed, THI_RANDOM_START, (UINT64_C(1) << 34) + (uint64_t)start};
    for (int q = 0; q < r->Q; q++) {
        r->c[q] = r->open[q] ? thi_random_normal(stream, (uint64_t)q) : 0.0;
        r->s2[q] = 1.0;
        for (int64_t i = 0; i < r->n; i++) {
            r->mu[i * r->Q + q] = r->c[q];
            r->v[i * r->Q + q] = FIRST_V;
        }
    }
}

/* The best c and s^2 for q. Returns sum KL at them. */
static double learn(independent *r)
{
    double n = (double)r->n, KL = 0.0;
    for (int q = 0; q < r->Q; q++) {
        double sum = 0.0, squares = 0.0, logs = 0.0;
        for (int64_t i = 0; i < r->n; i++) {
            sum += r->mu[i * r->Q + q];
        }
        r->c[q] = sum / n;
        for (int64_t i = 0; i < r->n; i++) {
            double d = r->mu[i * r->Q + q] - r->c[q], v = r->v[i * r->Q + q];
            squares += d * d + v;
            logs += log(v);
        }
        r->s2[q] = squares / n;
        KL += 0.5 * (n * log(r->s2[q]) - logs);
    }
    return KL;
}

/* 1/v <- (1 - rho)/v + rho (1/s^2 - 2h),  mu/v <- (1 - rho) mu/v + rho (c/s^2 + g - 2h mu) */
static void step(independent *r)
{
    for (int64_t k = 0; k < r->n * r->Q; k++) {
        int q = (int)(k % r->Q);
        double prior = 1.0 / r->s2[q], to = fmax(prior - 2.0 * r->h[k], prior / MOST_SPREAD);
        double precision = (1.0 - RHO) / r->v[k] + RHO * to;
        double pull = prior * r->c[q] + r->g[k] + (to - prior) * r->mu[k];
        r->mu[k] = ((1.0 - RHO) * r->mu[k] / r->v[k] + RHO * pull) / precision;
        r->v[k] = 1.0 / precision;
    }
}

/* Steps from where r is, as far as there is time. *bound: that of q before the last one, at its best c and s^2. */
static thiele_status climb(independent *r, thiele_context *ctx, int steps, double *bound)
{
    thi_asked asked = {0, r->n, r->rows->y, r->mu, r->v, r->E, r->g, r->h, NULL, r->rows->weight};
    double KL = 0.0;
    *bound = -INFINITY;
    for (int taken = 0; taken < steps && !(r->driver != NULL && thi_driver_stopped(r->driver)); taken++) {
        thiele_status status = thi_providers_expect(&r->providers, ctx, &asked);
        if (status != THIELE_OK) {
            *bound = -INFINITY;
            return status;
        }
        *bound = taken > 0 ? -KL : -INFINITY;
        for (int64_t i = 0; i < r->n; i++) {
            *bound += r->E[i];
        }
        step(r);
        KL = learn(r);
    }
    return THIELE_OK;
}

/* A start that leads nowhere is none. */
static thiele_status try_start(independent *r, thiele_context *ctx, int start, int steps, double *bound)
{
    begin(r, ctx->seed, start);
    thiele_status status = climb(r, ctx, steps, bound);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx);
        status = THIELE_OK;
    }
    return status;
}

thiele_status thi_start_rows(thiele_context *ctx, const thi_spec *spec, const thi_rows *rows, double *mean,
                             double *variance, bool *found)
{
    bool open[THI_SIGNS];
    double bound, best = -INFINITY;
    int most = 0;
    independent r = {.providers = {.lik = spec->lik, .method = spec->lik->ops->expectation != NULL ? NULL : METHOD},
                     .driver = spec->driver,
                     .rows = rows,
                     .open = open,
                     .n = rows->n < ROWS ? rows->n : ROWS,
                     .Q = spec->latents.count};
    thiele_status status = THIELE_OK;
    *found = r.Q > 1 && spec->latents.mean_parameters > 0 && rows->offset == NULL &&
             thi_signs_open(spec->lik, rows->n, rows->y, open);
    if (!*found) {
        return THIELE_OK;
    }
    THI_TRY(open_rows(&r, ctx));
    for (int start = 0; start < STARTS; start++) {
        THI_TRY(try_start(&r, ctx, start, FIRST_STEPS, &bound));
        most = bound > best ? start : most;
        best = fmax(best, bound);
    }
    THI_TRY(try_start(&r, ctx, most, STEPS, &bound));
    *found = bound > -INFINITY;
    memcpy(mean, r.c, (size_t)r.Q * sizeof *mean);
    memcpy(variance, r.s2, (size_t)r.Q * sizeof *variance);
out:
    close_rows(&r);
    return status;
}

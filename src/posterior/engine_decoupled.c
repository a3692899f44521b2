/*
 * Decoupled posteriors as an engine: latents in groups, one thi_decoupled for each (decoupled.h). Numbers of rows and
 * latents, a row together here, become a column for each latent there.
 */
#include <math.h>
#include <string.h>

#include "posterior/decoupled_internal.h"

typedef struct family {
    int groups, latents;
    int *first; /* latent of each group; groups + 1 */
    thi_decoupled **group;
    int64_t n;
    double *mu, *v, *r, *spared; /* rows x latents each */
} family;

static thiele_status place_groups(family *f, thiele_context *ctx, const thi_decoupled_family *shape)
{
    thiele_status status;
    f->groups = shape->groups;
    f->latents = shape->shape.latents;
    THI_TRY(thi_alloc(ctx, &f->group, (size_t)f->groups, sizeof *f->group));
    THI_TRY(thi_alloc(ctx, &f->first, (size_t)f->groups + 1, sizeof *f->first));
    for (int q = 0; q < f->latents; q++) {
        f->first[shape->group[q] + 1] = q + 1;
    }
out:
    return status;
}

static void close(void *self)
{
    family *f = self;
    if (f == NULL) {
        return;
    }
    for (int g = 0; f->group != NULL && g < f->groups; g++) {
        thi_decoupled_close(f->group[g]);
    }
    thi_free(f->group);
    thi_free(f->first);
    thi_free(f->mu);
    thi_free(f);
}

static thiele_status open(void **self, thiele_context *ctx, const void *shape)
{
    const thi_decoupled_family *wanted = shape;
    int64_t numbers = wanted->shape.rows * wanted->shape.latents;
    family *f = NULL;
    thiele_status status;
    *self = NULL;
    THI_TRY(thi_alloc(ctx, &f, 1, sizeof *f));
    THI_TRY(place_groups(f, ctx, wanted));
    THI_TRY(thi_alloc(ctx, &f->mu, (size_t)(4 * numbers), sizeof *f->mu));
    f->v = f->mu + numbers;
    f->r = f->v + numbers;
    f->spared = f->r + numbers;
    for (int g = 0; g < f->groups; g++) {
        thi_decoupled_shape each = wanted->shape;
        each.latents = f->first[g + 1] - f->first[g];
        each.twin = g > 0 ? f->group[0] : NULL;
        THI_TRY(thi_decoupled_open(&f->group[g], ctx, &each));
    }
out:
    if (status != THIELE_OK) {
        close(f);
        return status;
    }
    *self = f;
    return THIELE_OK;
}

static thiele_status begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    family *f = self;
    const thi_decoupled_q *at = q;
    thiele_status status = THIELE_OK;
    for (int g = 0; g < f->groups && status == THIELE_OK; g++) {
        status = thi_decoupled_begin(f->group[g], ctx, &prior[g], &at[g]);
    }
    return status;
}

/* n x Q, a column a latent, from and to Q x n. */
static void to_columns(const family *f, const double *from, double *to)
{
    for (int64_t i = 0; i < f->n; i++) {
        for (int64_t q = 0; q < f->latents; q++) {
            to[i + q * f->n] = from[q + i * f->latents];
        }
    }
}
static void from_columns(const family *f, const double *from, double *to)
{
    for (int64_t i = 0; i < f->n; i++) {
        for (int64_t q = 0; q < f->latents; q++) {
            to[q + i * f->latents] = from[i + q * f->n];
        }
    }
}

static thiele_status marginals(void *self, thiele_context *ctx, int64_t n, const double *X, double *mu, double *v)
{
    family *f = self;
    thiele_status status = THIELE_OK;
    f->n = n;
    for (int g = 0; g < f->groups && status == THIELE_OK; g++) {
        int64_t at = f->first[g] * n;
        status = thi_decoupled_marginals(f->group[g], ctx, n, X, f->mu + at, f->v + at);
    }
    from_columns(f, f->mu, mu);
    from_columns(f, f->v, v);
    return status;
}

static void residual(const void *self, double *r)
{
    const family *f = self;
    for (int g = 0; g < f->groups; g++) {
        for (int q = f->first[g]; q < f->first[g + 1]; q++) {
            thi_decoupled_residual(f->group[g], f->r + q * f->n);
        }
    }
    from_columns(f, f->r, r);
}

static void relieve(void *self, const double *c)
{
    family *f = self;
    to_columns(f, c, f->spared);
    for (int g = 0; g < f->groups; g++) {
        thi_decoupled_relieve(f->group[g], f->spared + f->first[g] * f->n);
    }
}

static thiele_status pull(void *self, thiele_context *ctx, const double *g, const double *h, const void *bar)
{
    static const thi_decoupled_bar NONE;
    family *f = self;
    const thi_decoupled_bar *adjoints = bar;
    thiele_status status = THIELE_OK;
    to_columns(f, g, f->mu);
    to_columns(f, h, f->v);
    for (int k = 0; k < f->groups && status == THIELE_OK; k++) {
        int64_t at = f->first[k] * f->n;
        status = thi_decoupled_pull(f->group[k], ctx, f->mu + at, f->v + at, adjoints != NULL ? &adjoints[k] : &NONE);
    }
    return status;
}

static thiele_status end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    family *f = self;
    const thi_decoupled_bar *adjoints = bar;
    thiele_status status = THIELE_OK;
    (void)expected;
    *kl = 0.0;
    for (int g = 0; g < f->groups && status == THIELE_OK; g++) {
        double own = 0.0;
        status =
            thi_decoupled_end(f->group[g], ctx, &f->group[g]->q.columns, &own, adjoints != NULL ? &adjoints[g] : NULL);
        *kl += own;
    }
    return status;
}

static void step(void *self, double rho, const void *q)
{
    family *f = self;
    const thi_decoupled_q *at = q;
    for (int g = 0; g < f->groups; g++) {
        thi_decoupled_step(f->group[g], rho, at[g].sites);
    }
}

static int group_of(const family *f, int latent)
{
    int g = 0;
    while (f->first[g + 1] <= latent) {
        g++;
    }
    return g;
}

static thiele_status freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    family *f = self;
    int g = group_of(f, latent);
    return thi_decoupled_freeze(f->group[g], ctx, latent - f->first[g], out);
}

static double jitter(const void *self)
{
    const family *f = self;
    double most = 0.0;
    for (int g = 0; g < f->groups; g++) {
        most = fmax(most, thi_decoupled_jitter(f->group[g]));
    }
    return most;
}

thi_decoupled *thi_decoupled_group(void *engine, int group)
{
    const family *f = engine;
    return f->group[group];
}

const thi_engine thi_engine_decoupled = {
    .name = "decoupled",
    .words = "a basis for the mean beside that of the covariance",
    .open = open,
    .close = close,
    .begin = begin,
    .marginals = marginals,
    .residual = residual,
    .relieve = relieve,
    .pull = pull,
    .end = end,
    .step = step,
    .freeze = freeze,
    .jitter = jitter,
};

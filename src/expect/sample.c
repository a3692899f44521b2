/*
 * Draws of y: a component of the mixture, the latents from it, y given them. A likelihood that can't draw has its
 * density integrated over y (predictive_distribution.h), and a uniform number looked up in it; several outputs one
 * after the other, each given those before it. The draws of a pseudo-likelihood follow its class probabilities.
 */
#include <math.h>

#include "expect/integrate.h"
#include "expect/predictive_distribution.h"

/* One row: its marginals, its number, and the draws that are wanted (P x count). */
typedef struct batch {
    thi_expect *expect;
    thiele_context *ctx;
    thi_marginals row;
    uint64_t number, first;
    int64_t count;
    double *y;
} batch;

/* The component of a draw. Latents are numbered from 0 up, components from the top down. */
static int component_of(const batch *b, thi_stream stream, uint64_t draw)
{
    int k = 0;
    if (b->row.components > 1) {
        double left = thi_random_uniform(stream, UINT64_MAX - draw) - b->row.weight[0];
        while (left >= 0 && k < b->row.components - 1) {
            left -= b->row.weight[++k];
        }
    }
    return k;
}

static thiele_status by_sampler(const batch *b)
{
    const thiele_likelihood *lik = b->expect->lik;
    double *f = b->expect->space->f;
    uint64_t Q = (uint64_t)lik->latents;
    thi_stream latent = {b->expect->seed, THI_RANDOM_EXPECT, b->number};
    thi_stream stream = {b->expect->seed, THI_RANDOM_SAMPLE, b->number};
    for (int64_t i = 0; i < b->count; i++) {
        uint64_t draw = b->first + (uint64_t)i;
        uint64_t at = (uint64_t)component_of(b, latent, draw) * Q;
        for (uint64_t q = 0; q < Q; q++) {
            f[q] = b->row.mu[at + q] + sqrt(b->row.v[at + q]) * thi_random_normal(latent, draw * Q + q);
        }
        lik->ops->sample(lik, stream, draw, f, b->y + i * lik->outputs);
    }
    return THIELE_OK;
}

static thiele_status by_classes(const batch *b)
{
    const thiele_likelihood *lik = b->expect->lik;
    bool binary = lik->ops->support == THI_SUPPORT_BINARY;
    int classes = binary ? 2 : lik->classes;
    thi_stream stream = {b->expect->seed, THI_RANDOM_SAMPLE, b->number};
    double *probability = NULL;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_alloc(b->ctx, &probability, (size_t)classes, sizeof *probability));
    THI_TRY(thi_mixture_probabilities(b->expect, b->ctx, &b->row, probability));
    for (int64_t i = 0; i < b->count; i++) {
        double left = thi_random_uniform(stream, b->first + (uint64_t)i) - probability[0];
        int c = 0;
        while (left >= 0 && c < classes - 1) {
            left -= probability[++c];
        }
        b->y[i] = binary ? 2 * c - 1 : c;
    }
out:
    thi_free(probability);
    return status;
}

/* The law of the first output serves all draws; those of the others depend on what was drawn before them. */
static thiele_status by_density(const batch *b)
{
    int P = b->expect->lik->outputs;
    thi_stream stream = {b->expect->seed, THI_RANDOM_SAMPLE, b->number};
    thi_law *law;
    thiele_status status = thi_space_law(b->expect, b->ctx, &law);
    for (int p = 0; p < P; p++) {
        for (int64_t i = 0; i < b->count && status == THIELE_OK; i++) {
            double *y = b->y + i * P;
            uint64_t index = (b->first + (uint64_t)i) * (uint64_t)P + (uint64_t)p;
            for (int later = p; later < P; later++) {
                y[later] = NAN;
            }
            if (i == 0 || p > 0) {
                status = thi_law_fit(law, b->ctx, &b->row, p, y, false);
            }
            if (status == THIELE_OK) {
                status = thi_law_quantile(law, thi_random_uniform(stream, index), &y[p]);
            }
        }
    }
    return status;
}

thiele_status thi_mixture_samples(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, const int64_t *row,
                                  uint64_t first, int64_t count, double *y)
{
    const thiele_likelihood *lik = expect->lik;
    thi_support support = lik->ops->support;
    bool classes = support == THI_SUPPORT_BINARY || support == THI_SUPPORT_CLASS;
    bool sampler = lik->ops->sample != NULL && !lik->ops->pseudo;
    thiele_status status = THIELE_OK;
    for (int k = 0; k < m->components && status == THIELE_OK; k++) {
        int64_t at = k * m->n * lik->latents;
        status = thi_space_spread(expect->space, ctx, m->n, m->mu + at, m->v + at);
    }
    for (int64_t i = 0; i < m->n && status == THIELE_OK; i++) {
        batch b = {expect, ctx, {0}, (uint64_t)row[i], first, count, y + i * count * lik->outputs};
        status = thi_stop_ask(ctx);
        if (status == THIELE_OK) {
            status = thi_gather(expect->space, ctx, m, i, &b.row);
        }
        if (status == THIELE_OK) {
            status = sampler ? by_sampler(&b) : classes ? by_classes(&b) : by_density(&b);
        }
    }
    return status;
}

thiele_status thi_sample_block(thi_expect *expect, thiele_context *ctx, int64_t n, const int64_t *row, const double *mu,
                               const double *v, int64_t count, double *y)
{
    thi_marginals m = {n, 1, NULL, mu, v};
    return thi_mixture_samples(expect, ctx, &m, row, 0, count, y);
}

thiele_status thi_likelihood_sample(thi_expect *expect, thiele_context *ctx, int64_t row, const double *mu,
                                    const double *v, uint64_t first, int64_t n, double *y)
{
    thi_marginals m = {1, 1, NULL, mu, v};
    return thi_mixture_samples(expect, ctx, &m, &row, first, n, y);
}

/* A small decoupled posterior of one latent function or several, everything random, and the value of a bound on it. */
#ifndef DECOUPLED_TESTING_H
#define DECOUPLED_TESTING_H

#include <math.h>
#include <string.h>

#include "posterior/decoupled.h"
#include "testing.h"

enum { DIMS = 2, ROWS = 40, ALPHA = 11, BETA = 6, TESTS = 9, PARAMETERS = 8, LATENTS = 3 };
#define SE_KERNEL "se(ard, lengthscale~[0.9,1.4], variance~1.3)"

typedef struct world {
    thiele_kernel *kernel;
    double mean_parameter[DIMS + 1];
    double X[DIMS * ROWS], y[ROWS], noise[ROWS], Xtest[DIMS * TESTS];
    double alpha[DIMS * ALPHA], log_c_alpha[DIMS * ALPHA], a[ALPHA * LATENTS];
    double beta[DIMS * BETA], log_c_beta[DIMS * BETA], factor[BETA * BETA * LATENTS], t[BETA * LATENTS];
    thi_natural sites[LATENTS];
    thi_matrix L_bar[LATENTS];
    bool orthogonal, general, tight;
    int latents;
    int64_t n_alpha, n_beta;
    thi_decoupled *engine;
} world;

typedef struct gradient {
    double theta[PARAMETERS], mean[DIMS + 1], a[ALPHA * LATENTS], alpha[DIMS * ALPHA], log_c_alpha[DIMS * ALPHA];
    double beta[DIMS * BETA], log_c_beta[DIMS * BETA], L[BETA * BETA * LATENTS];
} gradient;

static inline thi_prior world_prior(const world *w)
{
    return (thi_prior){w->kernel, THI_MEAN_LINEAR, w->mean_parameter};
}

static inline thi_decoupled_q world_q(world *w)
{
    for (int p = 0; p < w->latents; p++) {
        w->sites[p] = (thi_natural){.T = thi_matrix_view(w->factor + p * BETA * BETA, w->n_beta, w->n_beta, BETA),
                                    .t = w->t + p * BETA};
    }
    return (thi_decoupled_q){.alpha = {w->n_alpha, w->alpha, w->general ? w->log_c_alpha : NULL},
                             .beta = {w->n_beta, w->beta, w->general ? w->log_c_beta : NULL},
                             .a = thi_matrix_view(w->a, w->n_alpha, w->latents, ALPHA),
                             .sites = w->sites};
}

static inline thi_decoupled_shape world_shape(const world *w)
{
    return (thi_decoupled_shape){
        .D = DIMS, .latents = w->latents, .orthogonal = w->orthogonal, .beta = BETA, .rows = ROWS, .columns = ALPHA};
}

static inline void world_open_many(world *w, thiele_context *ctx, const char *kernel, bool orthogonal, bool general,
                                   int latents)
{
    *w = (world){.mean_parameter = {0.3, -0.2, 0.15},
                 .orthogonal = orthogonal,
                 .general = general,
                 .latents = latents,
                 .n_alpha = ALPHA,
                 .n_beta = BETA};
    assert_ok(ctx, thiele_kernel_parse(&w->kernel, ctx, kernel, DIMS, NULL));
    test_normals(DIMS * ROWS, 1, w->X);
    test_normals(ROWS, 2, w->y);
    test_normals(DIMS * TESTS, 3, w->Xtest);
    test_normals(DIMS * ALPHA, 4, w->alpha);
    test_normals(DIMS * BETA, 5, w->beta);
    test_normals(ALPHA * LATENTS, 6, w->a);
    test_normals(DIMS * ALPHA, 7, w->log_c_alpha);
    test_normals(DIMS * BETA, 8, w->log_c_beta);
    test_normals(BETA * BETA * LATENTS, 9, w->factor);
    test_normals(BETA * LATENTS, 10, w->t);
    for (int i = 0; i < ROWS; i++) {
        w->y[i] = sin(2.0 * w->X[i * DIMS]) + 0.4 * w->X[i * DIMS + 1] + 0.3 * w->y[i];
        w->noise[i] = 0.2 + 0.1 * (i % 5);
    }
    for (int i = 0; i < DIMS * ALPHA; i++) {
        w->log_c_alpha[i] *= 0.2;
    }
    for (int i = 0; i < DIMS * BETA; i++) {
        w->log_c_beta[i] *= 0.2;
    }
    for (int j = 0; j < BETA * latents && orthogonal; j++) {
        for (int i = j % BETA; i < BETA; i++) {
            /* T: positive definite by its diagonal */
            w->factor[i + j * BETA] = i == j % BETA ? 3.0 + i : 0.5 * w->factor[i + j * BETA];
        }
    }
    thi_decoupled_shape shape = world_shape(w);
    assert_ok(ctx, thi_decoupled_open(&w->engine, ctx, &shape));
}

static inline void world_open(world *w, thiele_context *ctx, const char *kernel, bool orthogonal, bool general)
{
    world_open_many(w, ctx, kernel, orthogonal, general, 1);
}

static inline void world_close(world *w)
{
    thi_decoupled_close(w->engine);
    thiele_kernel_destroy(w->kernel);
}

static inline thi_decoupled_bar gradient_bar(gradient *g, world *w)
{
    bool general = w->general;
    for (int p = 0; p < w->latents; p++) {
        w->L_bar[p] = thi_matrix_view(g->L + p * BETA * BETA, BETA, BETA, BETA);
    }
    return (thi_decoupled_bar){.theta = g->theta,
                               .mean = g->mean,
                               .a = thi_matrix_view(g->a, ALPHA, w->latents, ALPHA),
                               .alpha = g->alpha,
                               .log_c_alpha = general ? g->log_c_alpha : NULL,
                               .beta = g->beta,
                               .log_c_beta = general ? g->log_c_beta : NULL,
                               .L = w->orthogonal ? NULL : w->L_bar};
}

/* Gaussian noise of several sizes: E[log N(y; f, noise)] and its slopes. Each latent has other y. */
static inline double expect_gaussian(const world *w, const double *mu, const double *v, double *g, double *h)
{
    double sum = 0.0;
    for (int j = 0; j < ROWS * w->latents; j++) {
        int i = j % ROWS, latent = j / ROWS;
        double gap = (1.0 - 0.7 * latent) * w->y[i] - mu[j], noise = (1.0 + latent) * w->noise[i];
        sum -= 0.5 * (log(6.283185307179586 * noise) + (gap * gap + v[j]) / noise);
        g[j] = gap / noise;
        h[j] = -0.5 / noise;
    }
    return sum;
}

/* The tighter bound's -log(1 + r/noise)/2 in place of -r/(2 noise), and the slopes in r beyond h. */
static inline double spare(const world *w, double *c)
{
    double r[ROWS], sum = 0.0;
    thi_decoupled_residual(w->engine, r);
    for (int j = 0; j < ROWS * w->latents; j++) {
        double own = r[j % ROWS], noise = (1.0 + j / ROWS) * w->noise[j % ROWS], ratio = own / noise;
        sum += 0.5 * (ratio - log1p(ratio));
        c[j] = 0.5 * ratio / (noise + own);
    }
    return sum;
}

/* The bound, and its gradient unless bar is NULL, from these columns. */
static inline thiele_status world_value(world *w, thiele_context *ctx, thi_decoupled_columns columns, double *value,
                                        const thi_decoupled_bar *bar)
{
    enum { NUMBERS = ROWS * LATENTS };
    double mu[NUMBERS], v[NUMBERS], g[NUMBERS], h[NUMBERS], c[NUMBERS], kl;
    thi_prior prior = world_prior(w);
    thi_decoupled_q q = world_q(w);
    thiele_status status;
    THI_TRY(thi_decoupled_begin(w->engine, ctx, &prior, &q));
    THI_TRY(thi_decoupled_marginals(w->engine, ctx, ROWS, w->X, mu, v));
    *value = expect_gaussian(w, mu, v, g, h);
    *value += w->tight ? spare(w, c) : 0.0;
    if (bar != NULL && w->tight) {
        thi_decoupled_relieve(w->engine, c);
    }
    if (bar != NULL) {
        THI_TRY(thi_decoupled_pull(w->engine, ctx, g, h, bar));
    }
    THI_TRY(thi_decoupled_end(w->engine, ctx, &columns, &kl, bar));
    *value -= kl;
out:
    return status;
}

static const int64_t every_column[ALPHA] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static inline thi_decoupled_columns all_columns(const world *w)
{
    return (thi_decoupled_columns){w->n_alpha, every_column};
}

static inline double world_bound(world *w, thiele_context *ctx, const thi_decoupled_bar *bar)
{
    double value = 0.0;
    assert_ok(ctx, world_value(w, ctx, all_columns(w), &value, bar));
    return value;
}

#endif

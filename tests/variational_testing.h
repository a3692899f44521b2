/*
 * A small variational posterior with all its parts, and a smooth made-up likelihood
 *   E_n = w(x_n) sum_j (sin(mu_j + j) - 0.2 mu_j^2 - 0.3 v_j + 0.1 mu_j v_j - 0.02 v_j^2)
 * so that every gradient can be had by differences. The bound is sum_k pi_k sum_n E_nk - KL.
 */
#ifndef THI_VARIATIONAL_TESTING_H
#define THI_VARIATIONAL_TESTING_H

#include "testing.h"

#include "posterior/variational.h"

enum { WORLD_DIMS = 2, WORLD_GROUPS = 4 };

typedef struct world {
    thi_shape shape;
    int groups;
    thiele_kernel *kernel[WORLD_GROUPS];
    double mean[WORLD_GROUPS][WORLD_DIMS + 1];
    double *Z[WORLD_GROUPS];
    int64_t n;
    double *X; /* WORLD_DIMS x n */
    double *q;
    thi_variational *v;
} world;

typedef struct world_gradient {
    double *q, *theta[WORLD_GROUPS], *mean[WORLD_GROUPS], *Z[WORLD_GROUPS];
} world_gradient;

static inline double *world_zeros(int64_t n)
{
    double *x = calloc((size_t)(n > 0 ? n : 1), sizeof *x);
    assert_non_null(x);
    return x;
}

/* Kernels and means differ between groups. */
static inline void world_prior(const world *w, thi_prior *prior)
{
    for (int g = 0; g < w->groups; g++) {
        prior[g] = (thi_prior){w->kernel[g], g % 2 == 0 ? THI_MEAN_LINEAR : THI_MEAN_CONSTANT, w->mean[g]};
    }
}

static inline void world_start(world *w)
{
    int64_t M = w->shape.inducing;
    int64_t size = thi_variational_size(&w->shape);
    test_normals(size, 11, w->q);
    for (int k = 0; k < w->shape.components; k++) {
        for (int j = 0; j < w->shape.latents; j++) {
            double *own = w->q + thi_variational_offset(&w->shape, k, j) + M;
            for (int64_t c = 0; c < M; c++) {
                *own = -0.3 + 0.2 * *own; /* a log on the diagonal */
                for (int64_t r = 1; !w->shape.diagonal && r < M - c; r++) {
                    own[r] *= 0.2;
                }
                own += w->shape.diagonal ? 1 : M - c;
            }
        }
    }
}

static inline void world_open(world *w, thiele_context *ctx, thi_shape shape, int64_t n)
{
    static const char *const texts[WORLD_GROUPS] = {"se(ard, lengthscale~[1.1,0.8], variance~1.3)",
                                                    "matern52(lengthscale~0.9) + linear(variance~0.3)",
                                                    "rq(lengthscale~1.2, alpha~0.8)", "se(lengthscale~0.7)"};
    shape.dims = WORLD_DIMS;
    *w = (world){.shape = shape, .n = n};
    w->groups = shape.group != NULL ? shape.group[shape.latents - 1] + 1 : shape.latents;
    w->X = world_zeros(n * WORLD_DIMS);
    test_normals(n * WORLD_DIMS, 1, w->X);
    for (int g = 0; g < w->groups; g++) {
        assert_ok(ctx, thiele_kernel_parse(&w->kernel[g], ctx, texts[g], WORLD_DIMS, NULL));
        w->Z[g] = world_zeros(shape.inducing * WORLD_DIMS);
        test_normals(shape.inducing * WORLD_DIMS, (uint64_t)(2 + g), w->Z[g]);
        test_normals(WORLD_DIMS + 1, (uint64_t)(20 + g), w->mean[g]);
    }
    w->q = world_zeros(thi_variational_size(&w->shape));
    world_start(w);
    assert_ok(ctx, thi_variational_open(&w->v, ctx, &w->shape));
}

static inline void world_close(world *w)
{
    thi_variational_close(w->v);
    for (int g = 0; g < w->groups; g++) {
        thiele_kernel_destroy(w->kernel[g]);
        free(w->Z[g]);
    }
    free(w->X);
    free(w->q);
}

static inline void world_gradient_open(const world *w, world_gradient *bar)
{
    bar->q = world_zeros(thi_variational_size(&w->shape));
    for (int g = 0; g < w->groups; g++) {
        bar->theta[g] = world_zeros(thiele_kernel_parameters(w->kernel[g]));
        bar->mean[g] = world_zeros(WORLD_DIMS + 1);
        bar->Z[g] = world_zeros(w->shape.inducing * WORLD_DIMS);
    }
}

static inline void world_gradient_close(const world *w, world_gradient *bar)
{
    free(bar->q);
    for (int g = 0; g < w->groups; g++) {
        free(bar->theta[g]);
        free(bar->mean[g]);
        free(bar->Z[g]);
    }
}

/* E, g, h of all latents of rows first .. first + n - 1 of one component. */
static inline double world_likelihood(const world *w, int64_t first, int64_t n, double weight, const double *mu,
                                      const double *v, double *g, double *h)
{
    int Q = w->shape.latents;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double row = 1.0 + 0.5 * sin(3.0 * w->X[(first + i) * WORLD_DIMS]);
        for (int j = 0; j < Q; j++) {
            double m = mu[i * Q + j], s = v[i * Q + j];
            sum += row * (sin(m + j) - 0.2 * m * m - 0.3 * s + 0.1 * m * s - 0.02 * s * s);
            g[i * Q + j] = weight * row * (cos(m + j) - 0.4 * m + 0.1 * s);
            h[i * Q + j] = weight * row * (-0.3 + 0.1 * m - 0.04 * s);
        }
    }
    return sum;
}

/* Marginals and pulls of all rows, in chunks of the capacity; expected: K numbers. */
static inline void world_rows(const world *w, thiele_context *ctx, bool pull, double *expected)
{
    int Q = w->shape.latents, K = w->shape.components;
    int64_t size = w->shape.capacity * Q * K;
    double *mu = world_zeros(size), *v = world_zeros(size), *g = world_zeros(size), *h = world_zeros(size);
    memset(expected, 0, (size_t)K * sizeof *expected);
    for (int64_t first = 0; first < w->n; first += w->shape.capacity) {
        int64_t n = w->n - first < w->shape.capacity ? w->n - first : w->shape.capacity;
        assert_ok(ctx, thi_variational_marginals(w->v, ctx, n, w->X + first * WORLD_DIMS, mu, v));
        for (int k = 0; k < K; k++) {
            int64_t at = k * n * Q;
            expected[k] +=
                world_likelihood(w, first, n, thi_variational_weights(w->v)[k], mu + at, v + at, g + at, h + at);
        }
        if (pull) {
            assert_ok(ctx, thi_variational_pull(w->v, ctx, g, h));
        }
    }
    free(mu);
    free(v);
    free(g);
    free(h);
}

/* The bound; its gradient is added unless bar is NULL. */
static inline double world_bound(const world *w, thiele_context *ctx, thi_sites *sites, const world_gradient *bar)
{
    thi_prior prior[WORLD_GROUPS];
    double expected[8], kl = 0.0, bound = 0.0;
    world_prior(w, prior);
    assert_ok(ctx, thi_variational_begin(w->v, ctx, prior, (const double *const *)w->Z, sites == NULL ? w->q : NULL,
                                         sites, true));
    world_rows(w, ctx, bar != NULL, expected);
    if (bar != NULL) {
        thi_adjoints adjoints = {sites == NULL ? bar->q : NULL, bar->theta, bar->mean, bar->Z};
        assert_ok(ctx, thi_variational_end(w->v, ctx, expected, &kl, &adjoints));
    } else {
        assert_ok(ctx, thi_variational_end(w->v, ctx, NULL, &kl, NULL));
    }
    for (int k = 0; k < w->shape.components; k++) {
        bound += thi_variational_weights(w->v)[k] * expected[k];
    }
    return bound - kl;
}

#endif

/* Predictors on a basis of random points, with weights and roots of a test's choice, that no fit has to make. */
#ifndef THI_POINTS_TESTING_H
#define THI_POINTS_TESTING_H

#include "testing_context.h"

#include "posterior/predictor.h"

enum { D = 3 };

#define KERNEL "matern52(ard, variance~2.5)"

typedef struct world {
    thiele_kernel *kernel;
    thi_prior prior;
    double *Z, mean_parameter[D + 1];
    int64_t n;
} world;

static inline void world_open(world *w, const char *kernel, int64_t n)
{
    *w = (world){.n = n};
    assert_ok(ctx, thiele_kernel_parse(&w->kernel, ctx, kernel, D, NULL));
    assert_ok(ctx, thi_alloc(ctx, &w->Z, (size_t)(D * n), sizeof *w->Z));
    test_normals(D * n, 5, w->Z);
    test_normals(D + 1, 6, w->mean_parameter);
    w->prior = (thi_prior){w->kernel, THI_MEAN_LINEAR, w->mean_parameter};
}

static inline void world_close(world *w)
{
    thiele_kernel_destroy(w->kernel);
    thi_free(w->Z);
}

/* L = chol(k(Z, Z)), random weights, nothing added. */
static inline void predictor_open(world *w, thi_predictor *p, int components)
{
    double jitter;
    assert_ok(ctx, thi_predictor_begin(p, ctx, &w->prior, w->n, w->Z, components));
    assert_ok(ctx, thi_kernel_fill(w->kernel, ctx, &p->inputs, &p->inputs, p->L, true));
    assert_ok(ctx, thi_chol_jitter(ctx, p->L, &jitter));
    test_normals(w->n * components, 7, p->a);
}

/* R of r rows for each component, to be filled in. */
static inline void add_root(thi_predictor *p, thi_plus plus, int64_t r)
{
    p->plus = plus;
    assert_ok(ctx, thi_alloc(ctx, &p->R, (size_t)p->components, sizeof *p->R));
    for (int k = 0; k < p->components; k++) {
        assert_ok(ctx, thi_matrix_alloc(&p->R[k], ctx, r, p->n));
    }
}

/* Ls with S = Ls Ls' of eigenvalues up to `most`: a random orthogonal-like mixture of few directions below it. */
static inline void fill_triangle(thi_predictor *p, double most)
{
    int64_t n = p->n;
    double *v;
    assert_ok(ctx, thi_alloc(ctx, &v, (size_t)n, sizeof *v));
    for (int k = 0; k < p->components; k++) {
        thi_matrix S = p->R[k];
        test_normals(n, 20 + (uint64_t)k, v);
        double norm = thi_blas_dot(n, v, v);
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = j; i < n; i++) {
                S.data[i + j * n] = (i == j ? most : 0.0) - 0.9 * most * v[i] * v[j] / norm;
            }
        }
        assert_ok(ctx, thi_chol(ctx, S));
    }
    thi_free(v);
}

/* The mean on a basis of its own of n points; stretched: with length-scales of their own, which are the kernel's. */
static inline void separate_mean(thi_predictor *p, int64_t n, bool stretched)
{
    p->mean_n = n;
    thi_free(p->a);
    assert_ok(ctx, thi_alloc(ctx, &p->a, (size_t)n, sizeof *p->a));
    assert_ok(ctx, thi_alloc(ctx, &p->mean_basis, (size_t)(n * D), sizeof *p->mean_basis));
    test_normals(n, 40, p->a);
    test_normals(n * D, 41, p->mean_basis);
    if (stretched) {
        assert_ok(ctx, thi_alloc(ctx, &p->mean_log_c, (size_t)(n * D), sizeof *p->mean_log_c));
        assert_ok(ctx, thi_alloc(ctx, &p->log_c, (size_t)(p->n * D), sizeof *p->log_c));
    }
    assert_ok(ctx, thi_predictor_finish(p, ctx));
}

#endif

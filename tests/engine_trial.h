/* The rows of the list of engines, each on the problem of its fixture. */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "engine_fixtures.h"

/* The variance of Gaussian noise. */
static const double NOISE = 0.3;

static const struct {
    const thi_engine *engine;
    const engine_fixture *fixture;
} rows[] = {
#define THI_ENGINE(name) {&thi_engine_##name, &fixture_##name},
#include THI_ENGINES
#undef THI_ENGINE
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct trial {
    const thi_engine *engine;
    const engine_fixture *fixture;
    engine_problem p;
    void *self;
    int64_t members;        /* Q n K */
    double *c, *d;          /* members each: slopes of F in mu and v */
    double *mu, *v, *g, *h; /* members each: of the last part */
    double *r, *r_bar;      /* likewise: the residual, and its adjoint beyond h */
    bool gaussian;          /* F is the expectation of Gaussian noise instead */
} trial;

/* Kernels and q from x. */
static inline void move(trial *t)
{
    for (int k = 0; k < t->p.groups; k++) {
        for (int i = 0; i < t->p.kernel[k]->parameters; i++) {
            thi_kernel_set_one(t->p.kernel[k], i, t->p.x[fixture_theta(&t->p, k) + i]);
        }
    }
    if (t->fixture->move != NULL) {
        t->fixture->move(&t->p);
    }
}

static inline void prepare(trial *t, thiele_context *c, int row, int variant, int size)
{
    *t = (trial){.engine = rows[row].engine, .fixture = rows[row].fixture};
    t->fixture->open(&t->p, c, variant, size);
    t->members = t->p.latents * t->p.n * t->p.components;
    double **vectors[] = {&t->c, &t->d, &t->mu, &t->v, &t->g, &t->h, &t->r, &t->r_bar};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = fixture_numbers(t->members);
    }
    test_normals(t->members, 5, t->c);
    test_normals(t->members, 6, t->d);
    move(t);
}

static inline void start(trial *t, thiele_context *c, int row, int variant, int size)
{
    prepare(t, c, row, variant, size);
    assert_ok(c, t->engine->open(&t->self, c, t->p.shape));
}

static inline void finish(trial *t)
{
    double *const vectors[] = {t->c, t->d, t->mu, t->v, t->g, t->h, t->r, t->r_bar, t->p.X, t->p.y, t->p.x, t->p.bar};
    t->engine->close(t->self);
    if (t->fixture->close != NULL) {
        t->fixture->close(&t->p);
    }
    for (int k = 0; k < t->p.groups; k++) {
        thiele_kernel_destroy(t->p.kernel[k]);
    }
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        free(vectors[i]);
    }
}

static inline double weight(const trial *t, int component)
{
    return t->engine->weights != NULL ? t->engine->weights(t->self)[component] : 1.0;
}

/* E of one row of one component, with its slopes. */
static inline double expect_row(const trial *t, int64_t at, int64_t row, int64_t j, double *g, double *h)
{
    if (!t->gaussian) {
        *g = t->c[at];
        *h = t->d[at];
        return *g * t->mu[j] + *h * t->v[j];
    }
    double gap = t->p.y[row] - t->mu[j];
    *g = gap / NOISE;
    *h = -0.5 / NOISE;
    return -0.5 * (gap * gap + t->v[j]) / NOISE;
}

/* E, g and h of rows first .. first + n - 1, weights of the components folded into g and h. */
static inline void expect(trial *t, int64_t first, int64_t n, double *expected)
{
    int64_t Q = t->p.latents, j = 0;
    for (int k = 0; k < t->p.components; k++) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t q = 0; q < Q; q++, j++) {
                expected[k] += expect_row(t, q + Q * (first + i + k * t->p.n), first + i, j, &t->g[j], &t->h[j]);
                t->g[j] *= weight(t, k);
                t->h[j] *= weight(t, k);
            }
        }
    }
}

/* F has a part of its own of the residual, where the engine has one: sin(2 r) a row and latent, times d. */
static inline void expect_residual(trial *t, int64_t first, int64_t n, double *expected)
{
    int64_t Q = t->p.latents, j = 0;
    t->engine->residual(t->self, t->r);
    for (int k = 0; k < t->p.components; k++) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t q = 0; q < Q; q++, j++) {
                double r = t->r[q + i * Q], factor = t->d[q + Q * (first + i + k * t->p.n)];
                assert_true(r >= 0.0 && r <= 1.0001 * t->v[j]);
                expected[k] += factor * sin(2.0 * r);
                t->r_bar[j] = 2.0 * weight(t, k) * factor * cos(2.0 * r);
            }
        }
    }
    t->engine->relieve(t->self, t->r_bar);
}

/* F - KL in so many parts of the rows, and adjoints unless bar is NULL. */
static inline thiele_status evaluate(trial *t, thiele_context *c, int parts, const void *bar, double *value)
{
    double expected[2] = {0.0}, kl;
    thiele_status status;
    THI_TRY(t->engine->begin(t->self, c, t->p.prior, t->p.q));
    for (int part = 0; part < parts && t->engine->marginals != NULL; part++) {
        int64_t first = part * t->p.n / parts, n = (part + 1) * t->p.n / parts - first;
        THI_TRY(t->engine->marginals(t->self, c, n, t->p.X + first * FIXTURE_DIMS, t->mu, t->v));
        expect(t, first, n, expected);
        if (t->engine->residual != NULL && !t->gaussian) {
            expect_residual(t, first, n, expected);
        }
        THI_TRY(t->engine->pull(t->self, c, t->g, t->h, bar));
    }
    THI_TRY(t->engine->end(t->self, c, expected, &kl, bar));
    *value = -kl;
    for (int k = 0; k < t->p.components; k++) {
        *value += weight(t, k) * expected[k];
    }
out:
    return status;
}

static inline double value_of(trial *t, thiele_context *c, int parts, const void *bar)
{
    double value = NAN;
    assert_ok(c, evaluate(t, c, parts, bar, &value));
    return value;
}

#endif

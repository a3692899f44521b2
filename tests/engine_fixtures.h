/*
 * What a test of all engines needs to know of each: a small problem whose q and prior are made from a vector x of
 * numbers that may be moved, with adjoints that go into a vector bar of the same order. Every row of the list has a
 * fixture_NAME: a row without one does not link.
 */
#ifndef ENGINE_FIXTURES_H
#define ENGINE_FIXTURES_H

#include "posterior/engine.h"
#include "testing.h"

enum { FIXTURE_DIMS = 2, FIXTURE_GROUPS = 2 };

typedef struct engine_problem {
    int latents, components, groups; /* Q, K; priors, of which the first Q are those of the latents */
    int64_t n;                       /* rows, which are also the capacity */
    double *X, *y;                   /* FIXTURE_DIMS x n, n */
    thiele_kernel *kernel[FIXTURE_GROUPS];
    thi_prior prior[FIXTURE_GROUPS];
    int64_t numbers;
    double *x, *bar; /* numbers: log parameters of each kernel and those of its mean, then what the fixture has */
    const void *shape, *q, *adjoints;
    bool any_rows; /* marginals of some of the rows may be had */
    bool steps;    /* q moves by natural steps */
    void *own;     /* the fixture's */
} engine_problem;

typedef struct engine_fixture {
    int variants;
    /* size: rows and basis are so many times the smallest. x holds values to begin with. */
    void (*open)(engine_problem *p, thiele_context *ctx, int variant, int size);
    /* After x was moved, and kernels with it; NULL: nothing is left to do. */
    void (*move)(engine_problem *p);
    void (*close)(engine_problem *p); /* what `own` holds; NULL: nothing */
} engine_fixture;

#define THI_ENGINE(name) extern const engine_fixture fixture_##name;
#include THI_ENGINES
#undef THI_ENGINE

/* Zeroed, for as long as the test runs; fails where there is no memory. */
double *fixture_numbers(int64_t n);
/* Rows, y, priors, x with normal draws for `more` numbers after those of the priors; returns where these begin. */
int64_t fixture_begin(engine_problem *p, thiele_context *ctx, int64_t rows, int groups, int64_t more);
/* Where the numbers of a group begin, and those of its mean. */
int64_t fixture_theta(const engine_problem *p, int group);
int64_t fixture_mean(const engine_problem *p, int group);

#endif

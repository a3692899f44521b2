/* What the tests of block posteriors under sites share: a small problem cut into blocks whose rows have sites. */
#ifndef THI_SITES_TESTING_H
#define THI_SITES_TESTING_H

#include "sparse_testing.h"

#include "expect/expect.h"

typedef struct sited {
    world w;
    double y[ROWS]; /* as the likelihood wants them */
    double lambda[ROWS], nu[ROWS], mu[ROWS], v[ROWS], E[ROWS], g[ROWS], h[ROWS];
    thiele_likelihood *lik;
    thi_expect expect;
    int64_t count; /* blocks; 1: all rows are one */
    thi_block block[BLOCKS];
    thi_natural part;
} sited;

typedef struct sited_setting {
    const char *kernel, *likelihood;
    thi_mean mean;
    thi_residual kind;
    int64_t count, M;
} sited_setting;

/* Random sites, every seventh of which is negative but so weak that the posterior is proper. */
static inline void sited_scatter(sited *s)
{
    double z[2 * ROWS];
    test_normals(2 * ROWS, 11, z);
    for (int i = 0; i < ROWS; i++) {
        s->lambda[i] = i % 7 == 3 ? -0.1 : exp(z[i]);
        s->nu[i] = z[ROWS + i];
    }
}

static inline void sited_blocks(sited *s, int64_t count)
{
    s->count = count;
    for (int64_t b = 0; b < count; b++) {
        int64_t first = count == 1 ? 0 : s->w.partition.start[b];
        s->block[b] = (thi_block){
            .n = count == 1 ? ROWS : s->w.block[b].n,
            .X = s->w.X + first * DIMS,
            .at = {s->lambda + first, s->nu + first, s->mu + first, s->v + first, s->g + first, s->h + first},
        };
    }
}

static inline void sited_open(sited *s, thiele_context *ctx, const sited_setting *set)
{
    *s = (sited){0};
    world_open(&s->w, ctx, set->kernel, set->mean);
    s->w.M = set->M;
    assert_ok(ctx, thiele_likelihood_parse(&s->lik, ctx, set->likelihood, 1, 2));
    assert_ok(ctx, thi_expect_open(&s->expect, ctx, s->lik, NULL));
    bool binary = strncmp(set->likelihood, "bernoulli", 9) == 0;
    for (int i = 0; i < ROWS; i++) {
        s->y[i] = !binary ? s->w.y[i] : s->w.y[i] > 0.2 ? 1.0 : -1.0;
    }
    if (set->M == ROWS) {
        memcpy(s->w.Z, s->w.X, sizeof s->w.X);
    }
    thi_sparse_shape shape = {.M = set->M, .largest = ROWS, .gradients = true, .sites = true};
    shape.weight[set->kind] = 1.0;
    assert_ok(ctx, thi_sparse_open(&s->w.sparse, ctx, &shape, DIMS));
    assert_ok(ctx, thi_natural_open(&s->w.sums, ctx, set->M));
    assert_ok(ctx, thi_natural_open(&s->part, ctx, set->M));
    world_prepare(&s->w, ctx);
    sited_blocks(s, set->count);
}

static inline void sited_close(sited *s)
{
    world_close(&s->w);
    thi_natural_close(&s->part);
    thi_expect_close(&s->expect);
    thiele_likelihood_destroy(s->lik);
}

/* Sums and q at the present sites. */
static inline void sited_sum(sited *s, thiele_context *ctx)
{
    thi_natural_zero(&s->w.sums);
    assert_ok(ctx, thi_sparse_sum(&s->w.sparse, ctx, s->count, s->block, 1.0, &s->w.sums));
    assert_ok(ctx, thi_sparse_set(&s->w.sparse, ctx, &s->w.sums));
}

/* Marginals and part at the present q, and what the likelihood says there. */
static inline void sited_look(sited *s, thiele_context *ctx)
{
    double at[ROWS];
    thi_natural_zero(&s->part);
    assert_ok(ctx, thi_sparse_marginals(&s->w.sparse, 1, ctx, s->count, s->block, &s->part));
    thi_mean_fill(s->w.mean, s->w.mean_parameter, ROWS, DIMS, s->w.X, at);
    for (int i = 0; i < ROWS; i++) {
        at[i] += s->mu[i];
    }
    assert_ok(ctx, thi_expect_block(&s->expect, ctx, 0, ROWS, s->y, at, s->v, s->E, s->g, s->h, NULL));
}

/* One step of all blocks. Returns the smallest rho that was taken. */
static inline double sited_step(sited *s, thiele_context *ctx, double rho)
{
    double taken = -1.0;
    sited_look(s, ctx);
    assert_ok(ctx, thi_sparse_step(&s->w.sparse, 1, ctx, s->count, s->block, rho, &s->part, &s->w.sums, &taken));
    return taken;
}

/* The bound, after sited_look. */
static inline double sited_bound(const sited *s)
{
    double bound = thi_sparse_evidence(&s->w.sparse, &s->w.sums);
    for (int64_t b = 0, first = 0; b < s->count; first += s->block[b++].n) {
        bound += thi_block_slack(&s->block[b], s->E + first);
    }
    return bound;
}

/* The predictor of q with the local part of these blocks; one block has one centre. */
static inline void sited_freeze(const sited *s, thiele_context *ctx, thi_predictor *p)
{
    int64_t start[2] = {0, ROWS};
    thi_partition one = {DIMS, ROWS, 1, s->w.partition.scale, s->w.partition.centre, start, NULL, NULL};
    assert_ok(ctx, thi_sparse_freeze(&s->w.sparse, ctx, THI_CONDITIONAL_FULL, p));
    if (s->w.sparse.shape.weight[THI_RESIDUAL_BLOCK] != 0.0) {
        assert_ok(ctx, thi_local_attach(p, ctx, s->count == 1 ? &one : &s->w.partition, s->w.X, s->w.y, 0.0));
        assert_ok(ctx, thi_local_hold_sites(p->local, ctx));
        memcpy(p->local->lambda, s->lambda, sizeof s->lambda);
        memcpy(p->local->nu, s->nu, sizeof s->nu);
    }
}

#endif

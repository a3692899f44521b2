/*
 * More rows for PIC (fit/blocks_online.h): the posterior is that of all rows in their blocks at once, whatever the
 * batches; blocks that grow too large are cut and the model stays proper; sites come to rest; the same bits on any
 * number of threads; after a failure nothing has changed.
 */
#include "sparse_testing.h"
#include "testing_context.h"

#include "expect/parallel.h"
#include "fit/blocks_online.h"
#include "fit/judge.h"

enum { HALF = ROWS / 2, MOST_ROWS = 12 };

/* A model of every second row in the world's blocks, and the others. */
typedef struct start {
    world w;
    thi_predictor p;
    thiele_likelihood *lik;
    thi_rows rest;
    double rest_X[DIMS * ROWS], rest_y[ROWS];
} start;

/* Counts of y, for likelihoods that want them. */
static double target_of(const start *s, int64_t row, bool sites)
{
    return sites ? floor(exp(s->w.y[row])) : s->w.y[row];
}

/* The predictor of a local part in which the caller has put its rows: of their targets, or of no sites yet. */
static void freeze(start *s, thi_local *local)
{
    const thi_partition *p = &local->partition;
    world_engine(&s->w, ctx, 0.0, 0.0, 1.0);
    for (int64_t b = 0; local->lambda == NULL && b < p->blocks; b++) {
        int64_t first = p->start[b];
        thi_block block = {.n = p->start[b + 1] - first, .X = local->X + first * DIMS, .y = local->y + first};
        assert_ok(ctx, thi_sparse_sum(&s->w.sparse, ctx, 1, &block, 1.0, &s->w.sums));
    }
    assert_ok(ctx, thi_sparse_set(&s->w.sparse, ctx, &s->w.sums));
    assert_ok(ctx, thi_sparse_freeze(&s->w.sparse, ctx, THI_CONDITIONAL_FULL, &s->p));
    thi_local_renew(local, s->w.noise);
    s->p.local = local;
}

static void start_open(start *s, const char *likelihood, bool sites)
{
    *s = (start){0};
    world_open(&s->w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    const thi_partition *all = &s->w.partition;
    int64_t begin[BLOCKS + 1] = {0}, own[ROWS], n = 0, rest = 0;
    for (int b = 0; b < BLOCKS; b++) {
        for (int64_t i = all->start[b]; i < all->start[b + 1]; i++) {
            if (i == all->start[b] || i % 2 == 0) {
                own[n++] = i;
            } else {
                memcpy(s->rest_X + DIMS * rest, s->w.X + DIMS * i, DIMS * sizeof *s->rest_X);
                s->rest_y[rest++] = target_of(s, i, sites);
            }
        }
        begin[b + 1] = n;
    }
    s->rest = (thi_rows){.n = rest, .dims = DIMS, .outputs = 1, .X = s->rest_X, .y = s->rest_y};
    thi_partition half = *all;
    thi_local *local = NULL;
    half.start = begin;
    half.n = n;
    assert_ok(ctx, thi_local_create(&local, ctx, &half));
    for (int64_t i = 0; i < n; i++) {
        memcpy(local->X + DIMS * i, s->w.X + DIMS * own[i], DIMS * sizeof *local->X);
        local->y[i] = target_of(s, own[i], sites);
    }
    if (sites) {
        assert_ok(ctx, thi_local_hold_sites(local, ctx));
    }
    freeze(s, local);
    assert_ok(ctx, thiele_likelihood_parse(&s->lik, ctx, likelihood, 1, 0));
}

static void start_close(start *s)
{
    thi_predictor_clear(&s->p);
    thiele_likelihood_destroy(s->lik);
    world_close(&s->w);
}

/* The rest in batches of this size. */
static thiele_status learn(start *s, thiele_context *c, int64_t size, int64_t most)
{
    const thi_blocks_online_settings settings = {.lik = s->lik, .most = most};
    thi_blocks_online *o = NULL;
    thiele_status status;
    assert_null(thi_blocks_online_refuses(1, &s->p));
    THI_TRY(thi_blocks_online_open(&o, c, 1, &s->p, &settings));
    for (int64_t first = 0; first < s->rest.n; first += size) {
        thi_rows part = s->rest;
        part.n = thi_least(size, s->rest.n - first);
        part.X += first * DIMS;
        part.y += first;
        THI_TRY(thi_blocks_online_learn(o, c, &part));
    }
out:
    thi_blocks_online_close(o);
    return status;
}

static void predict(const start *s, thiele_context *c, double *mean, double *variance)
{
    int64_t clipped = 0;
    assert_ok(c, thi_predictor_marginals(&s->p, c, TESTS, s->w.Xtest, mean, variance, &clipped));
}

/* What it predicts is what all its rows at once lead to, in the blocks that it has. */
static void assert_whole(start *s)
{
    double mean[2][TESTS], variance[2][TESTS];
    const thi_local *now = s->p.local;
    thi_local *local = NULL;
    assert_int_equal(now->partition.n, ROWS);
    predict(s, ctx, mean[0], variance[0]);
    assert_ok(ctx, thi_local_create(&local, ctx, &now->partition));
    memcpy(local->X, now->X, sizeof s->w.X);
    memcpy(local->y, now->y, sizeof s->w.y);
    thi_predictor_clear(&s->p);
    freeze(s, local);
    predict(s, ctx, mean[1], variance[1]);
    assert_all_near(mean[0], mean[1], TESTS, 1e-8, 1e-8);
    assert_all_near(variance[0], variance[1], TESTS, 1e-8, 1e-8);
}

static void test_whole(void **state)
{
    (void)state;
    static const int64_t sizes[] = {ROWS, 7, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        start s;
        start_open(&s, "gaussian(noise=0.11)", false);
        thi_rows rest = s.rest;
        int64_t block[ROWS];
        assert_ok(ctx, thi_partition_find(&s.p.local->partition, ctx, rest.n, rest.X, block));
        assert_ok(ctx, learn(&s, ctx, sizes[i], 0));
        assert_int_equal(s.p.local->partition.blocks, BLOCKS);
        /* Each row is in the block of its nearest centre, behind those that were there. */
        for (int64_t r = 0; r < rest.n; r++) {
            const thi_local *local = s.p.local;
            bool found = false;
            for (int64_t k = local->partition.start[block[r]]; k < local->partition.start[block[r] + 1]; k++) {
                found = found || (local->y[k] == rest.y[r] && local->X[DIMS * k] == rest.X[DIMS * r]);
            }
            assert_true(found);
        }
        assert_whole(&s);
        start_close(&s);
    }
}

/* Blocks are cut in even pieces, whose centres are their means; cut or not, the posterior is that of its blocks. */
static void test_cuts(void **state)
{
    (void)state;
    static const int64_t sizes[] = {ROWS, 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        start s;
        start_open(&s, "gaussian(noise=0.11)", false);
        assert_ok(ctx, learn(&s, ctx, sizes[i], MOST_ROWS));
        const thi_partition *p = &s.p.local->partition;
        assert_true(p->blocks > BLOCKS);
        for (int64_t b = 0; b < p->blocks; b++) {
            assert_true(p->start[b + 1] > p->start[b] && p->start[b + 1] - p->start[b] <= MOST_ROWS);
        }
        for (int64_t b = BLOCKS; i == 0 && b < p->blocks; b++) {
            double sum = 0.0, size = (double)(p->start[b + 1] - p->start[b]);
            for (int64_t k = p->start[b]; k < p->start[b + 1]; k++) {
                sum += p->scale[0] * s.p.local->X[DIMS * k];
            }
            assert_near(p->centre[DIMS * b], sum / size, 1e-12, 1e-12);
        }
        assert_whole(&s);
        start_close(&s);
    }
}

/* At rest a natural step would leave sites where they are: nu = g - 2 h mu, lambda = -2 h. */
static void test_sites(void **state)
{
    (void)state;
    start s;
    start_open(&s, "poisson", true);
    /* Every block is touched. */
    assert_ok(ctx, learn(&s, ctx, ROWS, MOST_ROWS));
    const thi_local *local = s.p.local;
    int64_t n = local->partition.n;
    double *mu = calloc((size_t)n * 6, sizeof *mu), *v = mu + n, *E = v + n, *g = E + n, *h = g + n, *m = h + n;
    thi_rows rows = {.n = n, .dims = DIMS, .outputs = 1, .X = local->X, .y = local->y};
    thi_providers providers = {.lik = s.lik};
    thi_mean_fill(s.w.mean, s.w.mean_parameter, n, DIMS, local->X, m);
    /* Rows as the model predicts them may be of another block than they belong to: those of nearest centres only. */
    int64_t *block = calloc((size_t)n, sizeof *block), checked = 0;
    assert_ok(ctx, thi_partition_find(&local->partition, ctx, n, local->X, block));
    assert_ok(ctx, thi_latent_marginals(ctx, 1, &s.p, &rows, mu, v));
    const thi_asked asked = {0, n, local->y, mu, v, E, g, h, NULL, NULL};
    assert_ok(ctx, thi_providers_expect(&providers, ctx, &asked));
    for (int64_t i = 0; i < n; i++) {
        int64_t b = block[i];
        if (i < local->partition.start[b] || i >= local->partition.start[b + 1]) {
            continue;
        }
        checked++;
        /* Rounds end where a step would gain 1e-6 nats a row: about its root off. */
        assert_near(local->lambda[i], -2.0 * h[i], 1e-3, 1e-3);
        assert_near(local->nu[i], g[i] - 2.0 * h[i] * (mu[i] - m[i]), 1e-3, 1e-3);
    }
    assert_true(checked > n / 2);
    thi_providers_close(&providers);
    free(mu);
    free(block);
    start_close(&s);
}

static void test_threads(void **state)
{
    (void)state;
    for (int sites = 0; sites < 2; sites++) {
        double mean[2][TESTS], variance[2][TESTS];
        for (int i = 0; i < 2; i++) {
            thiele_context *other = test_context(i == 0 ? 1 : 3);
            start s;
            start_open(&s, sites ? "poisson" : "gaussian(noise=0.11)", sites == 1);
            assert_ok(other, learn(&s, other, 11, MOST_ROWS));
            predict(&s, other, mean[i], variance[i]);
            start_close(&s);
            thiele_context_destroy(other);
        }
        assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
        assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
    }
}

/* Whatever fails, the model is that of the batches before. */
static void test_failures(void **state)
{
    (void)state;
    for (int sites = 0; sites < 2; sites++) {
        start s;
        double mean[2][TESTS], variance[2][TESTS];
        thi_blocks_online *o = NULL;
        start_open(&s, sites ? "poisson" : "gaussian(noise=0.11)", sites == 1);
        const thi_blocks_online_settings settings = {.lik = s.lik, .most = MOST_ROWS};
        assert_ok(ctx, thi_blocks_online_open(&o, ctx, 1, &s.p, &settings));
        predict(&s, ctx, mean[0], variance[0]);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status != THIELE_OK; nth++) {
            thi_fail_allocation(ctx, nth, true);
            status = thi_blocks_online_learn(o, ctx, &s.rest);
            thi_fail_allocation(ctx, 0, false);
            if (status != THIELE_OK) {
                assert_int_equal(status, THIELE_ERROR_MEMORY);
                predict(&s, ctx, mean[1], variance[1]);
                assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
                assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
            }
        }
        thi_blocks_online_close(o);
        assert_int_equal(s.p.local->partition.n, ROWS);
        start_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_cuts),     cmocka_unit_test(test_sites),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

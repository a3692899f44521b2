/* Partitions into blocks: complete, within the bound and never empty whatever the data; centres are means; a row finds
 * its block; the same on any number of threads; close to plain k-means. */
#include "testing_context.h"

#include "basis/partition_internal.h"

#define TEN 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
static const double ones[40] = {TEN, TEN, TEN, TEN};

typedef struct table {
    int D;
    int64_t n;
    double *X;
    int64_t largest; /* rows that were fetched at once */
} table;

static thiele_status fetch(void *arg, thiele_context *c, int64_t count, const int64_t *row, double *X)
{
    (void)c;
    table *t = arg;
    t->largest = count > t->largest ? count : t->largest;
    for (int64_t i = 0; i < count; i++) {
        assert_true(row[i] >= 0 && row[i] < t->n);
        memcpy(X + i * t->D, t->X + row[i] * t->D, (size_t)t->D * sizeof *X);
    }
    return THIELE_OK;
}

static thi_partition_rows rows_of(table *t)
{
    return (thi_partition_rows){t->D, t->n, t, fetch};
}

static table table_open(int D, int64_t n)
{
    return (table){D, n, calloc((size_t)(n * D), sizeof(double)), 0};
}

static table uniform(int D, int64_t n)
{
    table t = table_open(D, n);
    for (int64_t i = 0; i < n * D; i++) {
        t.X[i] = thi_random_uniform((thi_stream){3, THI_RANDOM_DEMO, 1}, (uint64_t)i);
    }
    return t;
}

/* `groups` normal ones; the density of the last is `range`^D times less than that of the first, which has more rows. */
static table clustered(int D, int64_t n, int groups, double narrow, double range)
{
    table t = table_open(D, n);
    for (int64_t i = 0; i < n; i++) {
        double u = thi_random_uniform((thi_stream){3, THI_RANDOM_DEMO, 2}, (uint64_t)i);
        int g = (int)(groups * u * u);
        double sd = narrow * pow(range, (double)g / groups);
        for (int d = 0; d < D; d++) {
            double centre = 4.0 * thi_random_normal((thi_stream){3, THI_RANDOM_DEMO, 3}, (uint64_t)(g * D + d));
            t.X[i * D + d] =
                centre + sd * thi_random_normal((thi_stream){3, THI_RANDOM_DEMO, 4}, (uint64_t)(i * D + d));
        }
    }
    return t;
}

/* Each row once, ascending in its block; sizes within 1 and the bound. */
static void assert_partition(const thi_partition *p, int64_t n, int64_t blocks)
{
    char *seen = calloc((size_t)n, 1);
    assert_int_equal(p->n, n);
    assert_int_equal(p->blocks, blocks < n ? blocks : n);
    assert_int_equal(p->start[0], 0);
    assert_int_equal(p->start[p->blocks], n);
    for (int64_t b = 0; b < p->blocks; b++) {
        int64_t size = p->start[b + 1] - p->start[b];
        assert_true(size >= 1 && size * p->blocks <= THI_PARTITION_LARGEST * n);
        for (int64_t i = p->start[b]; i < p->start[b + 1]; i++) {
            assert_true(p->order[i] >= 0 && p->order[i] < n);
            assert_int_equal(seen[p->order[i]]++, 0);
            assert_true(i == p->start[b] || p->order[i - 1] < p->order[i]);
        }
    }
    free(seen);
}

/* Centres against plain means, and the sum of squared distances to them. */
static double assert_means(const thi_partition *p, const table *t)
{
    double total = 0.0;
    for (int64_t b = 0; b < p->blocks; b++) {
        int64_t size = p->start[b + 1] - p->start[b];
        for (int d = 0; d < t->D; d++) {
            double sum = 0.0;
            double square = 0.0;
            for (int64_t i = p->start[b]; i < p->start[b + 1]; i++) {
                double x = p->scale[d] * t->X[p->order[i] * t->D + d];
                double off = x - p->centre[b * t->D + d];
                sum += x;
                square += off * off;
            }
            /* Values are below 20; n roundings of sums of up to n of them. */
            assert_near(p->centre[b * t->D + d], sum / (double)size, 1e-12, 1e-12);
            total += square;
        }
    }
    return total;
}

static void assert_makes(table *t, int64_t blocks, const double *scale, double seconds)
{
    thi_partition p;
    thi_partition_rows rows = rows_of(t);
    assert_ok(ctx, thi_partition_make(&p, ctx, &rows, blocks, scale, seconds));
    assert_partition(&p, t->n, blocks);
    assert_means(&p, t);
    assert_true(t->largest <= THI_PARTITION_CHUNK);
    thi_partition_clear(&p);
}

/* Every kind of data with few, many, as many and more blocks than rows, with and without time for k-means. */
static void test_blocks(void **state)
{
    (void)state;
    const int64_t blocks[] = {1, 2, 7, 50, 999, 1000, 5000};
    for (int kind = 0; kind < 5; kind++) {
        table t = kind == 0 ? uniform(3, 1000) : clustered(3, 1000, 5, 0.01, 100.0);
        for (int64_t i = 0; i < t.n; i++) {
            double *x = t.X + i * t.D;
            if (kind == 2) {
                x[0] = x[1] = x[2] = 7.0; /* all equal */
            } else if (kind == 3) {
                x[1] = -2.0; /* one column constant */
            } else if (kind == 4 && i % 10 != 0) {
                x[0] = x[1] = x[2] = 0.5; /* nine of ten equal */
            }
        }
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
            assert_makes(&t, blocks[b], ones, 0.0);
            assert_makes(&t, blocks[b], ones, 1e-6);
        }
        free(t.X);
    }
    table one = uniform(1, 1);
    assert_makes(&one, 1, ones, 0.0);
    free(one.X);
}

/* Beyond one chunk: several fetches, a block larger than a chunk, minibatches. */
static void test_large(void **state)
{
    (void)state;
    table t = uniform(2, 3 * THI_PARTITION_CHUNK + 5);
    assert_makes(&t, 40, ones, 0.0);
    for (int64_t i = 0; i < t.n - 100; i++) {
        t.X[2 * i] = t.X[2 * i + 1] = 0.25;
    }
    assert_makes(&t, 3, ones, 0.0);
    assert_makes(&t, 40, ones, 0.0);
    free(t.X);
    /* (2 x 40 + 10) x 2,300 x 20,000 flops are beyond 4e9, and the seconds just suffice not to take a smaller sample.
     */
    t = uniform(40, 20000);
    assert_makes(&t, 2300, ones, 1.5);
    free(t.X);
}

/* A column of scale 0 does not count, whatever it holds; without any column blocks are runs of rows. */
static void test_scale(void **state)
{
    (void)state;
    const double first[3] = {2.0, 0.0, 0.0};
    const double none[3] = {0.0, 0.0, 0.0};
    table t = uniform(3, 1000);
    table u = uniform(3, 1000);
    for (int64_t i = 0; i < u.n; i++) {
        u.X[3 * i + 1] = i % 2 == 0 ? NAN : INFINITY;
        u.X[3 * i + 2] = -(double)i;
    }
    thi_partition p;
    thi_partition q;
    thi_partition_rows rows = rows_of(&t);
    assert_ok(ctx, thi_partition_make(&p, ctx, &rows, 20, first, 0.0));
    rows = rows_of(&u);
    assert_ok(ctx, thi_partition_make(&q, ctx, &rows, 20, first, 0.0));
    assert_memory_equal(p.order, q.order, (size_t)t.n * sizeof *p.order);
    assert_memory_equal(p.start, q.start, 21 * sizeof *p.start);
    assert_memory_equal(p.centre, q.centre, 60 * sizeof *p.centre);
    int64_t block[20];
    for (int few = 1; few <= 20; few += 19) {
        int64_t want = 0;
        for (int64_t b = 1; b < 20; b++) {
            want = fabs(q.centre[3 * b] - 2.0 * u.X[0]) < fabs(q.centre[3 * want] - 2.0 * u.X[0]) ? b : want;
        }
        assert_ok(ctx, thi_partition_find(&q, ctx, few, u.X, block));
        assert_int_equal(block[0], want);
    }
    thi_partition_clear(&p);
    thi_partition_clear(&q);
    assert_ok(ctx, thi_partition_make(&q, ctx, &rows, 20, none, 0.0));
    assert_partition(&q, u.n, 20);
    for (int64_t i = 0; i < u.n; i++) {
        assert_int_equal(q.order[i], i);
    }
    thi_partition_clear(&q);
    free(t.X);
    free(u.X);
}

/* Rows of narrow groups come back to their own block, one by one as well as all at once. */
static void test_find(void **state)
{
    (void)state;
    enum { GROUPS = 12, N = 6000 };
    table t = table_open(2, N);
    test_normals(2 * N, 9, t.X);
    for (int64_t i = 0; i < N; i++) {
        t.X[2 * i] = 0.02 * t.X[2 * i] + (double)(i % GROUPS % 4);
        t.X[2 * i + 1] = 0.02 * t.X[2 * i + 1] + 30.0 * (double)(i % GROUPS / 4);
    }
    const double scale[2] = {1.0, 1.0 / 30.0};
    thi_partition p;
    thi_partition_rows rows = rows_of(&t);
    assert_ok(ctx, thi_partition_make(&p, ctx, &rows, GROUPS, scale, 0.0));
    assert_partition(&p, N, GROUPS);
    static int64_t block[N];
    assert_ok(ctx, thi_partition_find(&p, ctx, N, t.X, block));
    int64_t home = 0;
    for (int64_t b = 0; b < GROUPS; b++) {
        for (int64_t i = p.start[b]; i < p.start[b + 1]; i++) {
            home += block[p.order[i]] == b;
        }
    }
    print_message("%lld of %d rows are nearest to their own block\n", (long long)home, N);
    assert_true(home > N * 9 / 10);
    for (int64_t i = 0; i < N; i += 97) {
        int64_t single = -1;
        assert_ok(ctx, thi_partition_find(&p, ctx, 1, t.X + 2 * i, &single));
        assert_int_equal(single, block[i]);
    }
    assert_ok(ctx, thi_partition_find(&p, ctx, 0, NULL, NULL));
    thi_partition_clear(&p);
    free(t.X);
}

static void test_threads(void **state)
{
    (void)state;
    thiele_context *alone = test_context(1);
    table t = clustered(4, 30000, 20, 0.01, 50.0);
    thi_partition p;
    thi_partition q;
    thi_partition_rows rows = rows_of(&t);
    int64_t *block = malloc((size_t)(2 * t.n) * sizeof *block);
    assert_ok(ctx, thi_partition_make(&p, ctx, &rows, 300, ones, 0.0));
    assert_ok(alone, thi_partition_make(&q, alone, &rows, 300, ones, 0.0));
    assert_memory_equal(p.order, q.order, (size_t)t.n * sizeof *p.order);
    assert_memory_equal(p.start, q.start, 301 * sizeof *p.start);
    assert_memory_equal(p.centre, q.centre, 4 * 300 * sizeof *p.centre);
    assert_ok(ctx, thi_partition_find(&p, ctx, t.n, t.X, block));
    assert_ok(alone, thi_partition_find(&q, alone, t.n, t.X, block + t.n));
    assert_memory_equal(block, block + t.n, (size_t)t.n * sizeof *block);
    thi_partition_clear(&p);
    thi_partition_clear(&q);
    free(block);
    free(t.X);
    thiele_context_destroy(alone);
}

/* The sum of squares within blocks of plain k-means, of whatever sizes. */
static double plain_cost(table *t, int64_t blocks)
{
    thi_partition_rows rows = rows_of(t);
    thi_scaled_rows s = {ctx, &rows, ones};
    thi_nearest near = {0};
    int64_t *label = malloc((size_t)t->n * sizeof *label);
    double *sum = calloc((size_t)(blocks * t->D), sizeof *sum);
    double *size = calloc((size_t)blocks, sizeof *size);
    assert_ok(ctx, thi_partition_centres(&near, &s, blocks, 0.0));
    assert_ok(ctx, thi_partition_assign(&near, &s, label, sum));
    double cost = 0.0;
    for (int64_t i = 0; i < t->n; i++) {
        size[label[i]] += 1.0;
    }
    for (int64_t i = 0; i < t->n * t->D; i++) {
        int64_t k = label[i / t->D];
        double off = t->X[i] - sum[k * t->D + i % t->D] / size[k];
        cost += off * off;
    }
    thi_nearest_close(&near);
    free(label);
    free(sum);
    free(size);
    return cost;
}

static double balanced_cost(table *t, int64_t blocks, double seconds)
{
    thi_partition p;
    thi_partition_rows rows = rows_of(t);
    assert_ok(ctx, thi_partition_make(&p, ctx, &rows, blocks, ones, seconds));
    assert_partition(&p, t->n, blocks);
    double cost = assert_means(&p, t);
    thi_partition_clear(&p);
    return cost;
}

/*
 * What the bound costs: nothing where the density is even. Groups whose densities differ by orders of magnitude need
 * many blocks where the rows are dense and distances hardly matter; those are missing elsewhere.
 */
static void test_quality(void **state)
{
    (void)state;
    const struct {
        int D;
        double narrow, range, most;
    } cases[] = {{2, 0.3, 3.0, 1.2}, {8, 0.3, 3.0, 1.2}, {8, 0.01, 80.0, 1.3}, {2, 0.01, 80.0, 1.6}};
    table t = uniform(4, 30000);
    double plain = plain_cost(&t, 100);
    assert_near(balanced_cost(&t, 100, 0.0), plain, 1e-6, 0.0);
    /* Centres at random, as a deadline may ask for. */
    double hasty = balanced_cost(&t, 100, 1e-6);
    print_message("uniform: without time for k-means %.3f times the sum of squares\n", hasty / plain);
    assert_true(hasty < 1.6 * plain);
    free(t.X);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        t = clustered(cases[k].D, 30000, 20, cases[k].narrow, cases[k].range);
        double ratio = balanced_cost(&t, 100, 0.0) / plain_cost(&t, 100);
        print_message("%d columns, widths %g to %g: %.3f times the sum of squares of plain k-means\n", cases[k].D,
                      cases[k].narrow, cases[k].narrow * cases[k].range, ratio);
        assert_true(ratio < cases[k].most);
        free(t.X);
    }
}

static void test_random(void **state)
{
    (void)state;
    const int64_t blocks[] = {1, 7, 100, 1003, 4000};
    thi_partition p;
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        assert_ok(ctx, thi_partition_random(&p, ctx, 1003, blocks[b]));
        assert_partition(&p, 1003, blocks[b]);
        for (int64_t k = 0; k < p.blocks; k++) {
            int64_t size = p.start[k + 1] - p.start[k];
            assert_true(size == 1003 / p.blocks || size == 1003 / p.blocks + 1);
        }
        int64_t block;
        double x = 0.0;
        assert_fails(ctx, thi_partition_find(&p, ctx, 1, &x, &block), THIELE_ERROR_ARGUMENT, "without centres");
        thi_partition_clear(&p);
    }
    assert_ok(ctx, thi_partition_random(&p, ctx, 1003, 2));
    assert_true(p.order[100] != 100); /* no run of rows */
    thi_partition_clear(&p);
}

static thiele_status refuse(void *arg, thiele_context *c, int64_t count, const int64_t *row, double *X)
{
    int *left = arg;
    (void)row;
    memset(X, 0, (size_t)count * sizeof *X);
    return --*left < 0 ? thi_fail(c, THIELE_ERROR_IO, "the disk is gone") : THIELE_OK;
}

static void test_errors(void **state)
{
    (void)state;
    table t = uniform(2, 10);
    thi_partition p;
    thi_partition_rows rows = rows_of(&t);
    const double wrong[2] = {1.0, NAN};
    assert_fails(ctx, thi_partition_make(&p, ctx, &rows, 0, ones, 0.0), THIELE_ERROR_ARGUMENT, "into 0 blocks");
    assert_fails(ctx, thi_partition_make(&p, ctx, &rows, 2, wrong, 0.0), THIELE_ERROR_ARGUMENT, "column 2");
    rows.n = 0;
    assert_fails(ctx, thi_partition_make(&p, ctx, &rows, 2, ones, 0.0), THIELE_ERROR_ARGUMENT, "cut 0 rows");
    assert_fails(ctx, thi_partition_random(&p, ctx, 0, 1), THIELE_ERROR_ARGUMENT, "cut 0 rows");
    free(t.X);
    /* Rows that cannot be read: at the sample, the assignment, a cut, a piece. */
    int left = 0;
    thiele_status status = THIELE_ERROR_IO;
    for (int good = 0; status != THIELE_OK; good++) {
        left = good;
        rows = (thi_partition_rows){1, 100, &left, refuse};
        status = thi_partition_make(&p, ctx, &rows, 4, ones, 0.0);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_IO);
        assert_true(good < 100);
        thi_partition_clear(&p);
    }
    /* More rows than any memory holds. */
    rows = (thi_partition_rows){3, INT64_C(1) << 40, &left, refuse};
    assert_int_not_equal(thi_partition_make(&p, ctx, &rows, 100, ones, 0.0), THIELE_OK);
    assert_null(p.order);
}

/* The n-th allocation fails, for every n: an error, nothing held. */
static void test_allocations(void **state)
{
    (void)state;
    enum { N = 400 };
    table t = clustered(2, N, 5, 0.01, 100.0);
    thi_partition_rows rows = rows_of(&t);
    const size_t held = thi_memory_held(ctx);
    static int64_t block[N];
    thiele_status status = THIELE_ERROR_MEMORY;
    int64_t nth = 1;
    for (; status != THIELE_OK; nth++) {
        thi_partition p = {0};
        thi_partition q = {0};
        thi_fail_allocation(ctx, nth, false);
        status = thi_partition_make(&p, ctx, &rows, 20, ones, 0.0);
        if (status == THIELE_OK) {
            status = thi_partition_find(&p, ctx, N, t.X, block);
        }
        if (status == THIELE_OK) {
            status = thi_partition_random(&q, ctx, N, 20);
        }
        thi_fail_allocation(ctx, 0, false);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        thi_partition_clear(&p);
        thi_partition_clear(&q);
        assert_int_equal(thi_memory_held(ctx), held);
    }
    assert_true(nth > 30);
    free(t.X);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_large),   cmocka_unit_test(test_scale),
        cmocka_unit_test(test_find),   cmocka_unit_test(test_threads), cmocka_unit_test(test_quality),
        cmocka_unit_test(test_random), cmocka_unit_test(test_errors),  cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

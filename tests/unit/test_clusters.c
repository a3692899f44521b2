/* The parts of k-means: nearest centres and means against plain loops, empty clusters, the distribution of seeds. */
#include "testing_context.h"

#include "basis/clusters.h"

static double distance2(int D, const double *a, const double *b)
{
    double sum = 0.0;
    for (int d = 0; d < D; d++) {
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    }
    return sum;
}

/* The nearest of m vectors. */
static int64_t nearest(int D, int64_t m, const double *Z, const double *x)
{
    int64_t best = 0;
    for (int64_t j = 1; j < m; j++) {
        best = distance2(D, Z + j * D, x) < distance2(D, Z + best * D, x) ? j : best;
    }
    return best;
}

/* Against the plain loop; centres beyond one gemm, rows beyond one block, a mean of 1e6 that the shift takes away. */
static void test_assign(void **state)
{
    (void)state;
    enum { N = 301, M = 300, D = 3 };
    static double X[N * D], raw[M * D], C[M * (D + 1)], weight[M];
    double shift[D] = {1e6, -1e6, 0.0};
    test_normals(N * D, 1, X);
    test_normals(M * D, 2, raw);
    for (int i = 0; i < N * D; i++) {
        X[i] += shift[i % D];
    }
    thi_points points = {D, N, X, NULL, shift};
    thi_centres centres = {M, C, weight};
    for (int m = 0; m < M; m++) {
        for (int d = 0; d < D; d++) {
            raw[m * D + d] += shift[d];
        }
        thi_centre_set(&centres, &points, m, raw + m * D);
    }
    thi_clusters clusters;
    assert_ok(ctx, thi_clusters_open(&clusters, ctx, D, N, M));
    assert_ok(ctx, thi_clusters_assign(&clusters, ctx, &points, &centres, 0, true));
    double cost = 0.0;
    for (int64_t i = 0; i < N; i++) {
        int64_t want = nearest(D, M, raw, X + i * D);
        assert_int_equal(clusters.near[i], want);
        assert_near(clusters.distance[i], distance2(D, X + i * D, raw + want * D), 1e-12, 0.0);
        cost += clusters.distance[i];
    }
    assert_near(thi_clusters_cost(&clusters, &points), cost, 1e-13, 0.0);
    /* In two parts, the later one on top of the first: the same. */
    static int64_t near[N];
    memcpy(near, clusters.near, sizeof near);
    centres.count = 100;
    assert_ok(ctx, thi_clusters_assign(&clusters, ctx, &points, &centres, 0, true));
    centres.count = M;
    assert_ok(ctx, thi_clusters_assign(&clusters, ctx, &points, &centres, 100, false));
    assert_memory_equal(near, clusters.near, sizeof near);
    /* Means of members; a weight that was there counts as that many rows at the old place. */
    weight[near[0]] = 2.0;
    assert_ok(ctx, thi_clusters_update(&clusters, ctx, &points, &centres));
    double want = 2.0 * (raw[near[0] * D] - shift[0]);
    double rows = 2.0;
    for (int64_t i = 0; i < N; i++) {
        want += near[i] == near[0] ? X[i * D] - shift[0] : 0.0;
        rows += near[i] == near[0];
    }
    assert_near(C[near[0] * (D + 1)], want / rows, 1e-9, 1e-15);
    assert_near(weight[near[0]], rows, 0.0, 0.0);
    thi_clusters_close(&clusters);
}

/* Two centres that no row is near move to the two ends that are farthest from the third. */
static void test_empty(void **state)
{
    (void)state;
    enum { N = 5, M = 3 };
    const double x[N] = {0.0, 0.1, -7.0, 6.9, 6.0};
    const double raw[M] = {100.0, 0.0, 200.0};
    const double shift = 0.0;
    double C[2 * M];
    double weight[M] = {0};
    thi_points points = {1, N, x, NULL, &shift};
    thi_centres centres = {M, C, weight};
    thi_clusters clusters;
    for (int m = 0; m < M; m++) {
        thi_centre_set(&centres, &points, m, raw + m);
    }
    assert_ok(ctx, thi_clusters_open(&clusters, ctx, 1, N, M));
    assert_ok(ctx, thi_clusters_assign(&clusters, ctx, &points, &centres, 0, true));
    assert_ok(ctx, thi_clusters_update(&clusters, ctx, &points, &centres));
    assert_near(C[0], 100.0, 0.0, 0.0);
    assert_near(C[2], 6.0 / 5.0, 1e-15, 0.0);
    thi_clusters_fill_empty(&clusters, &points, &centres);
    assert_near(C[0], -7.0, 0.0, 0.0);
    assert_near(C[4], 6.9, 0.0, 0.0);
    thi_clusters_close(&clusters);
}

/* Which of seven points is left without a seed when six are drawn one by one, as k-means++ is written. */
static int left_out_one_by_one(int N, const double *x, thi_stream stream)
{
    double d2[7];
    bool taken[7] = {false};
    for (int i = 0; i < N; i++) {
        d2[i] = 1.0; /* the first is uniform */
    }
    for (int m = 0; m < N - 1; m++) {
        double sum = 0.0;
        for (int i = 0; i < N; i++) {
            sum += d2[i];
        }
        double target = sum * thi_random_uniform(stream, (uint64_t)m);
        int pick = 0;
        while (pick + 1 < N && target >= d2[pick]) {
            target -= d2[pick++];
        }
        taken[pick] = true;
        for (int i = 0; i < N; i++) {
            double off = (x[i] - x[pick]) * (x[i] - x[pick]);
            d2[i] = m == 0 || off < d2[i] ? off : d2[i];
        }
    }
    int out = 0;
    while (taken[out]) {
        out++;
    }
    return out;
}

/* Distances that are old while several seeds are drawn do not change the distribution of the seeds. */
static void test_seeds_distribution(void **state)
{
    (void)state;
    enum { N = 7, TRIALS = 40000 };
    const double x[N] = {0.0, 0.5, 0.9, 2.0, 2.3, 4.0, 4.2};
    const double shift = 0.0;
    double C[2 * N];
    double weight[N];
    double got[N] = {0};
    double want[N] = {0};
    thi_points points = {1, N, x, NULL, &shift};
    thi_clusters clusters;
    assert_ok(ctx, thi_clusters_open(&clusters, ctx, 1, N, N));
    for (int trial = 0; trial < TRIALS; trial++) {
        thi_centres centres = {0, C, weight};
        thi_distinct seeds;
        assert_ok(ctx, thi_distinct_open(&seeds, ctx, 1, N));
        thi_stream stream = {1, THI_RANDOM_DEMO, (uint64_t)trial};
        assert_ok(ctx, thi_seeds_draw(&centres, ctx, &points, N - 1, stream, &seeds, &clusters));
        assert_int_equal(centres.count, N - 1);
        thi_distinct_close(&seeds);
        int out = 0;
        for (int i = 0; i < N; i++) {
            bool there = false;
            for (int m = 0; m < N - 1; m++) {
                there = there || C[2 * m] == x[i];
            }
            out = there ? out : i;
        }
        got[out] += 1.0;
        want[left_out_one_by_one(N, x, (thi_stream){2, THI_RANDOM_DEMO, (uint64_t)trial})] += 1.0;
    }
    thi_clusters_close(&clusters);
    for (int i = 0; i < N; i++) {
        /* Two independent counts: 4 standard deviations of their difference. */
        assert_true(fabs(got[i] - want[i]) <= 4.0 * sqrt(got[i] + want[i] + 1.0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assign),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_seeds_distribution),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

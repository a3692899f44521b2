/* Inducing inputs: k-means, nested subsets, greedy variance; duplicates, M > N, threads, memory. */
#include "testing_context.h"

#include "basis/basis.h"

static const char *const methods[] = {"kmeans", "random", "greedy"};
enum { METHODS = 3 };

static thiele_kernel *make_kernel(int D, const char *text)
{
    thiele_kernel *kernel = NULL;
    thi_columns columns = {.dims = D, .columns = D};
    assert_ok(ctx, thi_kernel_parse(&kernel, ctx, text, &columns));
    return kernel;
}

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

/* Mean squared distance of rows to their nearest of Z. */
static double distortion(int D, int64_t n, const double *X, int64_t m, const double *Z)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += distance2(D, X + i * D, Z + nearest(D, m, Z, X + i * D) * D) / (double)n;
    }
    return sum;
}

static void assert_distinct(int D, int64_t m, const double *Z)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < i; j++) {
            assert_true(distance2(D, Z + i * D, Z + j * D) > 0.0);
        }
    }
}

/* Each of Z is one of the rows. */
static void assert_rows_of(int D, int64_t n, const double *X, int64_t m, const double *Z)
{
    for (int64_t j = 0; j < m; j++) {
        assert_true(distance2(D, X + nearest(D, n, X, Z + j * D) * D, Z + j * D) == 0.0);
    }
}

/* --- k-means ---------------------------------------------------------------------------------------------------- */

/* Twenty clusters far apart: k-means++ with Lloyd finds nearly all of them from any seed. */
static void test_kmeans_clusters(void **state)
{
    (void)state;
    enum { N = 4000, M = 20, D = 2 };
    static double X[N * D];
    double Z[M * D];
    test_normals(N * D, 1, X);
    for (int i = 0; i < N; i++) {
        X[i * D] += 20.0 * (i % 5);
        X[i * D + 1] += 20.0 * (i / 5 % 4);
    }
    thi_basis_source source = {D, N, X, NULL};
    double mean = 0.0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        int64_t chosen;
        ctx->seed = seed;
        assert_ok(ctx, thi_basis_choose(ctx, "kmeans", &source, M, Z, &chosen));
        assert_int_equal(chosen, M);
        mean += distortion(D, N, X, M, Z) / 20.0;
    }
    ctx->seed = 1;
    /* The optimum is 2 (unit normals in two dimensions). A missed cluster costs 400/20 = 20: fewer than one in two
     * runs has one, where uniform seeds miss six of twenty. */
    assert_true(mean < 12.0);
    assert_true(mean > 1.9);
}

/* A centre is the mean of the rows nearest to it, but for the last iteration's small gain. */
static void test_kmeans_fixed_point(void **state)
{
    (void)state;
    enum { N = 5000, M = 50, D = 4 };
    static double X[N * D];
    static double Z[M * D], mean[M * D], random[M * D];
    double rows[M] = {0};
    int64_t chosen;
    test_normals(N * D, 3, X);
    thi_basis_source source = {D, N, X, NULL};
    assert_ok(ctx, thi_basis_choose(ctx, "kmeans", &source, M, Z, &chosen));
    assert_int_equal(chosen, M);
    memset(mean, 0, sizeof mean);
    for (int64_t i = 0; i < N; i++) {
        int64_t j = nearest(D, M, Z, X + i * D);
        rows[j] += 1.0;
        for (int d = 0; d < D; d++) {
            mean[j * D + d] += X[i * D + d];
        }
    }
    double shift = 0.0;
    for (int j = 0; j < M; j++) {
        assert_true(rows[j] > 0.0);
        for (int d = 0; d < D; d++) {
            shift += pow(mean[j * D + d] / rows[j] - Z[j * D + d], 2.0) * rows[j] / N;
        }
    }
    double reached = distortion(D, N, X, M, Z);
    assert_true(shift < 1e-3 * reached);
    assert_ok(ctx, thi_basis_choose(ctx, "random", &source, M, random, &chosen));
    assert_true(reached < 0.8 * distortion(D, N, X, M, random));
}

/* So many rows that minibatches are used: much better than a random subset, and close to Lloyd's on a part. */
static void test_kmeans_minibatch(void **state)
{
    (void)state;
    enum { N = 100000, PART = 20000, M = 400, D = 50, SEEN = 2000 };
    double *X = malloc((size_t)N * D * sizeof *X);
    double *Z = malloc(3 * (size_t)M * D * sizeof *Z);
    for (int64_t i = 0; i < (int64_t)N * D; i++) {
        X[i] = thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 4}, (uint64_t)i);
    }
    const char *const how[3] = {"kmeans", "kmeans", "random"};
    const int64_t rows[3] = {N, PART, N};
    double reached[3];
    for (int k = 0; k < 3; k++) {
        int64_t chosen;
        thi_basis_source source = {D, rows[k], X, NULL};
        assert_ok(ctx, thi_basis_choose(ctx, how[k], &source, M, Z + (size_t)k * M * D, &chosen));
        assert_int_equal(chosen, M);
        /* Rows that the part did not have. */
        reached[k] = distortion(D, SEEN, X + (size_t)(N - SEEN) * D, M, Z + (size_t)k * M * D);
    }
    assert_true(reached[0] < 1.03 * reached[1]);
    assert_true(reached[0] < 0.8 * reached[2]);
    free(Z);
    free(X);
}

/* Few rows for many centres, on a grid with many ties: clusters run empty and are filled again. */
static void test_kmeans_small(void **state)
{
    (void)state;
    enum { N = 60, D = 1 };
    double X[N];
    double Z[N];
    for (uint64_t seed = 0; seed < 200; seed++) {
        for (int i = 0; i < N; i++) {
            X[i] = floor(30.0 * thi_random_uniform((thi_stream){seed, THI_RANDOM_DEMO, 5}, (uint64_t)i));
        }
        ctx->seed = seed;
        thi_basis_source source = {D, N, X, NULL};
        int64_t M = 1 + (int64_t)(seed % 30);
        int64_t chosen;
        assert_ok(ctx, thi_basis_choose(ctx, "kmeans", &source, M, Z, &chosen));
        int64_t distinct = 0;
        for (int v = 0; v < 30; v++) {
            bool there = false;
            for (int i = 0; i < N; i++) {
                there = there || X[i] == v;
            }
            distinct += there;
        }
        assert_int_equal(chosen, M < distinct ? M : distinct);
        assert_distinct(D, chosen, Z);
    }
    ctx->seed = 1;
}

/* Nearly all rows are equal, so that the rows seeds are drawn from have fewer than M different ones. */
static void test_kmeans_rare(void **state)
{
    (void)state;
    enum { N = 100000, RARE = 10, M = 8 };
    double *X = calloc(N, sizeof *X);
    double Z[M];
    int64_t chosen;
    for (int r = 0; r < RARE; r++) {
        X[1000 + 9000 * r] = 1.0 + r * r;
    }
    thi_basis_source source = {1, N, X, NULL};
    assert_ok(ctx, thi_basis_choose(ctx, "kmeans", &source, M, Z, &chosen));
    assert_int_equal(chosen, M);
    assert_distinct(1, M, Z);
    free(X);
}

/* --- Nested subsets --------------------------------------------------------------------------------------------- */

static void test_random(void **state)
{
    (void)state;
    enum { N = 500, D = 3 };
    static double X[N * D], all[N * D], some[N * D];
    int64_t chosen;
    test_normals(N * D, 1, X);
    memcpy(X + 10 * D, X + 20 * D, D * sizeof *X);
    thi_basis_source source = {D, N, X, NULL};
    assert_ok(ctx, thi_basis_choose(ctx, "random", &source, N, all, &chosen));
    assert_int_equal(chosen, N - 1);
    assert_distinct(D, chosen, all);
    assert_rows_of(D, N, X, chosen, all);
    for (int64_t M = 1; M < N; M = 2 * M + 1) {
        assert_ok(ctx, thi_basis_choose(ctx, "random", &source, M, some, &chosen));
        assert_int_equal(chosen, M);
        assert_memory_equal(some, all, (size_t)(M * D) * sizeof *all);
    }
    ctx->seed = 2;
    assert_ok(ctx, thi_basis_choose(ctx, "random", &source, 10, some, &chosen));
    assert_true(memcmp(some, all, 10 * D * sizeof *all) != 0);
    ctx->seed = 1;
}

/* --- Greedy ----------------------------------------------------------------------------------------------------- */

/* Variance of f(x) given f at m rows, by a dense Cholesky factor. */
static double variance_given(const thiele_kernel *kernel, int D, int64_t m, const double *Z, const double *x)
{
    thi_inputs A, B;
    thi_matrix K, k;
    double own;
    assert_ok(ctx, thi_inputs_make(&A, ctx, kernel, m, Z));
    assert_ok(ctx, thi_inputs_make(&B, ctx, kernel, 1, x));
    assert_ok(ctx, thi_matrix_alloc(&K, ctx, m, m));
    assert_ok(ctx, thi_matrix_alloc(&k, ctx, m, 1));
    assert_ok(ctx, thi_kernel_fill(kernel, ctx, &A, &A, K, true));
    assert_ok(ctx, thi_kernel_fill(kernel, ctx, &A, &B, k, false));
    assert_ok(ctx, thi_kernel_fill_diagonal(kernel, ctx, &B, &own));
    assert_ok(ctx, thi_chol(ctx, K));
    thi_blas_trsv(THI_N, K, k.data);
    own -= thi_blas_dot(m, k.data, k.data);
    thi_inputs_clear(&A);
    thi_inputs_clear(&B);
    thi_free(K.data);
    thi_free(k.data);
    (void)D;
    return own;
}

static void test_greedy(void **state)
{
    (void)state;
    enum { N = 120, M = 12, D = 2 };
    double X[N * D];
    double Z[M * D];
    double with_white[M * D];
    int64_t chosen;
    test_normals(N * D, 1, X);
    thiele_kernel *kernel = make_kernel(D, "matern52(lengthscale=0.7, variance=2) + linear");
    thi_basis_source source = {D, N, X, kernel};
    assert_ok(ctx, thi_basis_choose(ctx, "greedy", &source, M, Z, &chosen));
    assert_int_equal(chosen, M);
    assert_rows_of(D, N, X, M, Z);
    for (int64_t m = 1; m < M; m++) {
        double own = variance_given(kernel, D, m, Z, Z + m * D);
        for (int64_t i = 0; i < N; i++) {
            assert_true(variance_given(kernel, D, m, Z, X + i * D) <= own * (1.0 + 1e-9));
        }
    }
    thiele_kernel_destroy(kernel);
    /* White noise changes nothing: no inducing input explains it. */
    source.kernel = kernel = make_kernel(D, "matern52(lengthscale=0.7, variance=2) + linear + white(variance=5)");
    assert_ok(ctx, thi_basis_choose(ctx, "greedy", &source, M, with_white, &chosen));
    assert_memory_equal(Z, with_white, sizeof Z);
    thiele_kernel_destroy(kernel);
}

/* A kernel of rank D is exhausted by D rows; one that is zero everywhere still gets a row. */
static void test_greedy_ends(void **state)
{
    (void)state;
    enum { N = 40000, M = 10, D = 3 };
    double *X = malloc((size_t)N * D * sizeof *X);
    double Z[M * D];
    int64_t chosen;
    test_normals((int64_t)N * D, 1, X);
    thiele_kernel *kernel = make_kernel(D, "linear");
    /* More rows than candidates. */
    thi_basis_source source = {D, N, X, kernel};
    assert_ok(ctx, thi_basis_choose(ctx, "greedy", &source, M, Z, &chosen));
    assert_int_equal(chosen, D);
    assert_rows_of(D, N, X, chosen, Z);
    memset(X, 0, (size_t)N * D * sizeof *X);
    source.n = 50;
    assert_ok(ctx, thi_basis_choose(ctx, "greedy", &source, M, Z, &chosen));
    assert_int_equal(chosen, 1);
    X[4] = 1e200;
    assert_fails(ctx, thi_basis_choose(ctx, "greedy", &source, M, Z, &chosen), THIELE_ERROR_NUMERIC, "not finite");
    thiele_kernel_destroy(kernel);
    free(X);
}

/* --- All methods ------------------------------------------------------------------------------------------------ */

static void test_duplicates(void **state)
{
    (void)state;
    enum { N = 3000, DISTINCT = 7, D = 2 };
    static double X[N * D];
    double Z[20 * D];
    for (int i = 0; i < N; i++) {
        X[i * D] = i * i % 13; /* seven quadratic residues, 0 among them */
        X[i * D + 1] = i % 2 == 0 ? 0.0 : -0.0;
    }
    thiele_kernel *kernel = make_kernel(D, "se");
    thi_basis_source source = {D, N, X, kernel};
    for (int k = 0; k < METHODS; k++) {
        for (int64_t M = 1; M <= 20; M++) {
            int64_t chosen;
            assert_ok(ctx, thi_basis_choose(ctx, methods[k], &source, M, Z, &chosen));
            assert_int_equal(chosen, M < DISTINCT ? M : DISTINCT);
            assert_distinct(D, chosen, Z);
        }
        assert_rows_of(D, N, X, DISTINCT, Z);
    }
    thiele_kernel_destroy(kernel);
}

static void test_more_than_rows(void **state)
{
    (void)state;
    enum { N = 30, M = 100, D = 2 };
    double X[N * D];
    double Z[M * D];
    test_normals(N * D, 1, X);
    thiele_kernel *kernel = make_kernel(D, "matern12(lengthscale=0.1)");
    thi_basis_source source = {D, N, X, kernel};
    for (int k = 0; k < METHODS; k++) {
        int64_t chosen;
        assert_ok(ctx, thi_basis_choose(ctx, methods[k], &source, M, Z, &chosen));
        assert_int_equal(chosen, N);
        assert_distinct(D, N, Z);
        assert_rows_of(D, N, X, N, Z);
        source.n = 1;
        assert_ok(ctx, thi_basis_choose(ctx, methods[k], &source, M, Z, &chosen));
        assert_int_equal(chosen, 1);
        assert_memory_equal(Z, X, D * sizeof *X);
        source.n = N;
    }
    thiele_kernel_destroy(kernel);
}

static void test_threads(void **state)
{
    (void)state;
    enum { N = 6000, M = 90, D = 5 };
    static double X[N * D], Z[3][M * D];
    test_normals(N * D, 1, X);
    thiele_kernel *kernel = make_kernel(D, "se");
    thi_basis_source source = {D, N, X, kernel};
    for (int k = 0; k < METHODS; k++) {
        for (int threads = 1; threads <= 3; threads++) {
            thiele_context *own = test_context(threads);
            int64_t chosen;
            assert_ok(own, thi_basis_choose(own, methods[k], &source, M, Z[threads - 1], &chosen));
            assert_int_equal(chosen, M);
            assert_memory_equal(Z[0], Z[threads - 1], sizeof Z[0]);
            thiele_context_destroy(own);
        }
    }
    thiele_kernel_destroy(kernel);
}

static void test_errors(void **state)
{
    (void)state;
    double X[2] = {0.0, 1.0};
    double Z[2];
    int64_t chosen;
    thi_basis_source source = {1, 2, X, NULL};
    assert_fails(ctx, thi_basis_choose(ctx, "grid", &source, 1, Z, &chosen), THIELE_ERROR_ARGUMENT, "'grid'");
    assert_fails(ctx, thi_basis_choose(ctx, "greedy", &source, 1, Z, &chosen), THIELE_ERROR_ARGUMENT, "kernel");
    assert_fails(ctx, thi_basis_choose(ctx, "random", &source, 0, Z, &chosen), THIELE_ERROR_ARGUMENT, "0 inducing");
    source.n = 0;
    assert_fails(ctx, thi_basis_choose(ctx, "random", &source, 1, Z, &chosen), THIELE_ERROR_ARGUMENT, "0 rows");
}

static void test_allocations(void **state)
{
    (void)state;
    enum { N = 300, M = 20, D = 2 };
    static double X[N * D], Z[M * D];
    test_normals(N * D, 1, X);
    thiele_kernel *kernel = make_kernel(D, "se");
    thi_basis_source source = {D, N, X, kernel};
    for (int k = 0; k < METHODS; k++) {
        size_t held = thi_memory_held(ctx);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status != THIELE_OK; nth++) {
            int64_t chosen;
            thi_fail_allocation(ctx, nth, true);
            status = thi_basis_choose(ctx, methods[k], &source, M, Z, &chosen);
            thi_fail_allocation(ctx, 0, false);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            assert_int_equal(thi_memory_held(ctx), held);
        }
    }
    thiele_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_kmeans_rare),
        cmocka_unit_test(test_kmeans_clusters),
        cmocka_unit_test(test_kmeans_fixed_point),
        cmocka_unit_test(test_kmeans_minibatch),
        cmocka_unit_test(test_kmeans_small),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_greedy_ends),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_more_than_rows),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

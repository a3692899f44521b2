/*
 * Dense linear algebra by its identities: residuals of factors, inverses, solves and products on sizes around the edges
 * of tiles, on views with a larger leading dimension, with nothing written outside the triangle, and with the same bits
 * on any number of threads.
 */
#include "testing_context.h"

#include <float.h>
#include <limits.h>

#include "linalg/linalg.h"

static const int64_t sizes[] = {1, 2, 3, 31, 32, 33, 71, 72, 73, 127, 128, 129, 239, 240, 241, 257, 289, 500, 1000};
enum { SIZES = sizeof sizes / sizeof sizes[0], GAP = 5 };

/* A matrix of normal draws inside a larger one: ld = rows + GAP. */
static thi_matrix draw(int64_t rows, int64_t cols, uint64_t row)
{
    thi_matrix A = {NULL, rows, cols, rows + GAP};
    assert_ok(ctx, thi_alloc(ctx, &A.data, (size_t)(A.ld * (cols + 1)), sizeof *A.data));
    test_normals(A.ld * cols, row, A.data);
    return A;
}

static thi_matrix duplicate(thi_matrix A)
{
    thi_matrix B = A;
    assert_ok(ctx, thi_alloc(ctx, &B.data, (size_t)(A.ld * (A.cols + 1)), sizeof *B.data));
    memcpy(B.data, A.data, (size_t)(A.ld * A.cols) * sizeof(double));
    return B;
}

static double at(thi_matrix A, int64_t i, int64_t j)
{
    return A.data[i + j * A.ld];
}

/* Positive definite with a condition number of a few hundred; both triangles. */
static thi_matrix draw_definite(int64_t n, uint64_t row)
{
    thi_matrix A = draw(n, n, row), K = draw(n, n, row + 1);
    thi_blas_gemm(THI_N, THI_T, 1 / (double)n, A, A, 0, K);
    for (int64_t i = 0; i < n; i++) {
        K.data[i + i * K.ld] += 0.02;
    }
    thi_free(A.data);
    return K;
}

/* A well-conditioned lower triangle under an upper one that must never be read. */
static thi_matrix draw_lower(int64_t n, uint64_t row)
{
    thi_matrix L = draw(n, n, row);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            double *x = &L.data[i + j * L.ld];
            *x = i < j ? NAN : i == j ? 1 + fabs(*x) : *x / (double)n;
        }
    }
    return L;
}

static thi_matrix lower_of(thi_matrix A)
{
    thi_matrix L = duplicate(A);
    for (int64_t j = 0; j < A.cols; j++) {
        memset(L.data + j * L.ld, 0, (size_t)j * sizeof(double));
    }
    return L;
}

static double norm(thi_matrix A)
{
    double sum = 0;
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = 0; i < A.rows; i++) {
            sum += at(A, i, j) * at(A, i, j);
        }
    }
    return sqrt(sum);
}

/* |A - B| in the Frobenius norm, over the lower triangles or all. */
static double distance(thi_matrix A, thi_matrix B, bool lower)
{
    double sum = 0;
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = lower ? j : 0; i < A.rows; i++) {
            double d = at(A, i, j) - at(B, i, j);
            sum += d * d;
        }
    }
    return sqrt(sum);
}

/* Everything but the lower triangle has the same bits, the rows between columns too. */
static void assert_upper_same(thi_matrix A, thi_matrix B)
{
    for (int64_t j = 0; j < A.cols; j++) {
        assert_memory_equal(A.data + j * A.ld, B.data + j * B.ld, (size_t)j * sizeof(double));
        assert_memory_equal(A.data + A.rows + j * A.ld, B.data + A.rows + j * B.ld, GAP * sizeof(double));
    }
}

static void test_alloc(void **state)
{
    (void)state;
    thi_matrix A;
    assert_fails(ctx, thi_matrix_alloc(&A, ctx, (int64_t)INT_MAX + 1, 1), THIELE_ERROR_LIMIT, "too large");
    assert_fails(ctx, thi_matrix_alloc(&A, ctx, INT_MAX, INT_MAX), THIELE_ERROR_LIMIT, "");
    assert_null(A.data);
    assert_ok(ctx, thi_matrix_alloc(&A, ctx, 3, 2));
    assert_true(A.rows == 3 && A.cols == 2 && A.ld == 3 && norm(A) == 0);
    thi_free(A.data);
    assert_ok(ctx, thi_matrix_alloc(&A, ctx, 0, 0));
    thi_free(A.data);
}

/* Empty operands: nothing happens, except that beta still counts. */
static void test_empty(void **state)
{
    (void)state;
    double one = 7;
    thi_matrix none = {NULL, 0, 0, 0}, row = {&one, 1, 0, 1}, column = {&one, 0, 1, 0}, C = {&one, 1, 1, 1};
    thi_blas_gemm(THI_N, THI_N, 1, row, column, 2, C);
    assert_true(one == 14);
    thi_blas_gemv(THI_N, 1, row, NULL, 0.5, &one);
    assert_true(one == 7);
    thi_blas_gemmt(THI_T, THI_N, 1, column, column, 3, C);
    thi_blas_syrk(THI_N, 1, row, 0, C);
    assert_true(one == 0);
    thi_blas_trsm(THI_LEFT, THI_N, 1, none, none);
    thi_blas_trmm(THI_RIGHT, THI_N, 1, none, row);
    thi_blas_symm(THI_LEFT, 1, none, none, 0, none);
    thi_blas_trsv(THI_N, none, NULL);
    double jitter = 1;
    assert_ok(ctx, thi_chol(ctx, none));
    assert_ok(ctx, thi_chol_jitter(ctx, none, &jitter));
    assert_true(jitter == 0 && thi_chol_logdet(none) == 0);
    assert_ok(ctx, thi_tri_inverse(ctx, none));
    assert_ok(ctx, thi_chol_inverse(ctx, none));
    assert_ok(ctx, thi_tri_solve(ctx, THI_N, none, none));
    assert_ok(ctx, thi_tri_multiply(ctx, THI_N, none, none));
    assert_ok(ctx, thi_multiply(ctx, THI_N, THI_N, 1, none, none, 0, none, true));
    assert_ok(ctx, thi_chol_adjoint(ctx, none, none, none));
    thi_symmetrise(none);
}

/* The wrappers against sums written out. */
static void test_wrappers(void **state)
{
    (void)state;
    enum { N = 7 };
    thi_matrix L = draw_lower(N, 1), B = draw(N, N, 2), C = draw(N, N, 3);
    thi_matrix X = duplicate(B), S = lower_of(L), Y = duplicate(C);
    double x[N], y[N], tolerance = 100 * DBL_EPSILON;
    thi_symmetrise(S);
    thi_blas_symm(THI_RIGHT, 2, L, B, -1, C);
    thi_blas_gemm(THI_N, THI_N, 2, B, S, -1, Y);
    assert_true(distance(C, Y, false) < tolerance);
    thi_blas_trmm(THI_RIGHT, THI_T, 0.5, L, X);
    thi_blas_trsm(THI_RIGHT, THI_T, 2, L, X);
    assert_true(distance(X, B, false) < tolerance);
    thi_blas_gemv(THI_T, 1, S, B.data, 0, x);
    thi_blas_gemv(THI_N, 1, S, B.data, 0, y);
    assert_all_near(x, y, N, 0, tolerance);
    memcpy(x, B.data, sizeof x);
    memcpy(y, B.data, sizeof y);
    thi_blas_trsv(THI_T, L, x);
    thi_blas_trsm(THI_LEFT, THI_T, 1, L, thi_matrix_view(y, N, 1, N));
    assert_all_near(x, y, N, 0, tolerance);
    thi_blas_axpy(N, -1, x, y);
    assert_true(thi_blas_dot(N, y, y) < tolerance);
    thi_matrix *all[] = {&L, &B, &C, &X, &S, &Y};
    for (int k = 0; k < 6; k++) {
        thi_free(all[k]->data);
    }
}

/* |K - L L'| <= c n eps |K|, the determinant of K, nothing outside the lower triangle. */
static void test_chol(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        int64_t n = sizes[s];
        thi_matrix K = draw_definite(n, 10), A = duplicate(K);
        assert_ok(ctx, thi_chol(ctx, A));
        assert_upper_same(A, K);
        thi_matrix L = lower_of(A), product = duplicate(K);
        assert_ok(ctx, thi_multiply(ctx, THI_N, THI_T, 1, L, L, 0, product, true));
        assert_true(distance(product, K, true) <= 4 * (double)n * DBL_EPSILON * norm(K));
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += 2 * log(at(L, i, i));
        }
        assert_near(thi_chol_logdet(A), sum, 0, 0);
        thi_free(K.data);
        thi_free(A.data);
        thi_free(L.data);
        thi_free(product.data);
    }
}

/* 2 x 2 and a matrix whose factor is known in whole numbers. */
static void test_chol_known(void **state)
{
    (void)state;
    double a[] = {4, 2, -1, 10};
    assert_ok(ctx, thi_chol(ctx, thi_matrix_view(a, 2, 2, 2)));
    assert_true(a[0] == 2 && a[1] == 1 && a[2] == -1 && a[3] == 3);
    assert_near(thi_chol_logdet(thi_matrix_view(a, 2, 2, 2)), log(36), 4 * DBL_EPSILON, 0);
    thi_matrix K;
    enum { N = 300 }; /* K_ij = min(i, j): L is all ones */
    assert_ok(ctx, thi_matrix_alloc(&K, ctx, N, N));
    for (int64_t j = 0; j < N; j++) {
        for (int64_t i = j; i < N; i++) {
            K.data[i + j * N] = (double)j + 1;
        }
    }
    assert_ok(ctx, thi_chol(ctx, K));
    for (int64_t j = 0; j < N; j++) {
        for (int64_t i = 0; i < N; i++) {
            assert_true(at(K, i, j) == (i >= j ? 1 : 0));
        }
    }
    thi_free(K.data);
}

static void test_chol_refuses(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        int64_t n = sizes[s];
        char pivot[40];
        snprintf(pivot, sizeof pivot, "pivot %lld of", (long long)(n + 1) / 2);
        const double values[] = {-1, 0, NAN, INFINITY};
        for (int v = 0; v < 4; v++) {
            thi_matrix K = draw_definite(n, 20);
            int64_t i = (n - 1) / 2;
            for (int64_t k = 0; k < n; k++) {
                K.data[i + k * K.ld] = K.data[k + i * K.ld] = 0;
            }
            K.data[i + i * K.ld] = values[v];
            assert_fails(ctx, thi_chol(ctx, K), THIELE_ERROR_NUMERIC, pivot);
            thi_free(K.data);
        }
    }
}

static void test_jitter(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        int64_t n = sizes[s], rank = n / 3 + 1;
        double jitter = -1;
        thi_matrix K = draw_definite(n, 30), A = duplicate(K), B = duplicate(K);
        assert_ok(ctx, thi_chol_jitter(ctx, A, &jitter));
        assert_ok(ctx, thi_chol(ctx, B));
        assert_true(jitter == 0 && distance(A, B, true) == 0);
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = 0; i < j; i++) {
                assert_true(at(A, i, j) == at(K, j, i));
            }
        }
        /* K = F F' of a third of the rank: 1e-12 of the mean diagonal is already well above rounding. */
        thi_matrix F = draw(n, rank, 31);
        thi_blas_gemm(THI_N, THI_T, 1 / (double)rank, F, F, 0, K);
        thi_free(A.data);
        A = duplicate(K);
        assert_ok(ctx, thi_chol_jitter(ctx, A, &jitter));
        if (n >= 31) {
            assert_true(jitter > 0 && jitter < 1e-10);
        }
        thi_matrix L = lower_of(A);
        thi_blas_gemmt(THI_N, THI_T, 1, L, L, 0, B);
        assert_true(distance(B, K, true) <= (4 * (double)n * DBL_EPSILON) * norm(K) + jitter * sqrt((double)n));
        thi_matrix *all[] = {&K, &A, &B, &F, &L};
        for (int k = 0; k < 5; k++) {
            thi_free(all[k]->data);
        }
    }
}

static void test_jitter_refuses(void **state)
{
    (void)state;
    const int64_t orders[] = {1, 5, 300};
    for (int s = 0; s < 3; s++) {
        int64_t n = orders[s];
        double jitter;
        thi_matrix K = draw_definite(n, 40), A = duplicate(K), B = duplicate(K);
        for (int64_t i = 0; i < n * K.ld; i++) {
            A.data[i] = -A.data[i];
        }
        assert_fails(ctx, thi_chol_jitter(ctx, A, &jitter), THIELE_ERROR_NUMERIC, "mean of its diagonal");
        if (n > 1) {
            B.data[0] = -0.1;
            assert_fails(ctx, thi_chol_jitter(ctx, B, &jitter), THIELE_ERROR_NUMERIC, "even with");
            memcpy(A.data, K.data, (size_t)(n * K.ld) * sizeof(double));
            A.data[n - 1] = -INFINITY;
            assert_fails(ctx, thi_chol_jitter(ctx, A, &jitter), THIELE_ERROR_NUMERIC, "column 1 is -inf");
        }
        K.data[(n - 1) * (K.ld + 1)] = NAN;
        assert_fails(ctx, thi_chol_jitter(ctx, K, &jitter), THIELE_ERROR_NUMERIC, "not finite");
        thi_free(K.data);
        thi_free(A.data);
        thi_free(B.data);
    }
}

/* W L = I and L L' X = I. */
static void test_inverses(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        int64_t n = sizes[s];
        thi_matrix L = draw_lower(n, 50), W = duplicate(L), X = duplicate(L), I = duplicate(L);
        assert_ok(ctx, thi_tri_inverse(ctx, W));
        assert_ok(ctx, thi_chol_inverse(ctx, X));
        assert_upper_same(W, L);
        assert_upper_same(X, L);
        thi_matrix full = lower_of(L), product = lower_of(W);
        assert_ok(ctx, thi_tri_multiply(ctx, THI_N, L, product));
        for (int64_t i = 0; i < n * I.ld; i++) {
            I.data[i] = i % I.ld == i / I.ld ? 1 : 0;
        }
        double tolerance = 4 * (double)n * DBL_EPSILON * norm(full) * sqrt((double)n);
        assert_true(distance(product, I, false) <= tolerance);
        thi_symmetrise(X);
        assert_ok(ctx, thi_tri_multiply(ctx, THI_T, L, X));
        assert_ok(ctx, thi_tri_multiply(ctx, THI_N, L, X));
        assert_true(distance(X, I, false) <= tolerance * norm(full));
        thi_matrix *all[] = {&L, &W, &X, &I, &full, &product};
        for (int k = 0; k < 6; k++) {
            thi_free(all[k]->data);
        }
    }
}

/*
 * The factor of a nearly singular kernel matrix, condition number 4e11. Against long double from the same factor;
 * methods whose errors grow along the way miss this tolerance by orders of magnitude.
 */
static void test_inverse_ill_conditioned(void **state)
{
    (void)state;
    enum { N = 300 };
    static long double W[N][N];
    thi_matrix L;
    assert_ok(ctx, thi_matrix_alloc(&L, ctx, N, N));
    for (int64_t i = 0; i < N * N; i++) {
        double r = (double)(i % N - i / N) / 40;
        L.data[i] = exp(-0.5 * r * r) + (i % N == i / N ? 1e-10 : 0);
    }
    assert_ok(ctx, thi_chol(ctx, L));
    for (int j = 0; j < N; j++) {
        for (int i = j; i < N; i++) {
            long double sum = i == j;
            for (int k = j; k < i; k++) {
                sum -= (long double)at(L, i, k) * W[j][k];
            }
            W[j][i] = sum / (long double)at(L, i, i);
        }
    }
    assert_ok(ctx, thi_chol_inverse(ctx, L));
    double worst = 0, largest = 0;
    for (int j = 0; j < N; j++) {
        for (int i = j; i < N; i++) {
            long double sum = 0;
            for (int k = i; k < N; k++) {
                sum += W[i][k] * W[j][k];
            }
            worst = fmax(worst, (double)fabsl(sum - (long double)at(L, i, j)));
            largest = fmax(largest, (double)fabsl(sum));
        }
    }
    assert_true(worst <= 3e-11 * largest);
    thi_free(L.data);
}

static void test_solves(void **state)
{
    (void)state;
    const int64_t columns[] = {1, 2, 5, 47, 48, 49, 200, 450};
    for (int s = 0; s < SIZES; s += 2) {
        for (int c = 0; c < 8; c++) {
            int64_t n = sizes[s];
            thi_matrix L = draw_lower(n, 60), B = draw(n, columns[c], 61), X = duplicate(B);
            for (int t = 0; t < 2; t++) {
                thi_trans tl = t == 0 ? THI_N : THI_T;
                assert_ok(ctx, thi_tri_solve(ctx, tl, L, X));
                assert_ok(ctx, thi_tri_multiply(ctx, tl, L, X));
                assert_true(distance(X, B, false) <= 20 * (double)n * DBL_EPSILON * norm(B));
            }
            for (int64_t j = 0; j < B.cols; j++) {
                assert_memory_equal(X.data + n + j * X.ld, B.data + n + j * B.ld, GAP * sizeof(double));
            }
            thi_free(L.data);
            thi_free(B.data);
            thi_free(X.data);
        }
    }
}

/* All transposes, against one call of the BLAS; the upper triangle untouched when only the lower is asked for. */
static void test_multiply(void **state)
{
    (void)state;
    const int64_t shapes[][3] = {{1, 1, 1},      {97, 3, 500},  {300, 200, 100}, {241, 241, 129},
                                 {500, 500, 33}, {7, 900, 400}, {61, 61, 3001},  {40, 90, 2048}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int t = 0; t < 8; t++) {
            thi_trans ta = t & 1 ? THI_T : THI_N, tb = t & 2 ? THI_T : THI_N;
            bool lower = (t & 4) && shapes[s][0] == shapes[s][1];
            int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            thi_matrix A = ta == THI_T ? draw(k, m, 70) : draw(m, k, 70),
                       B = tb == THI_T ? draw(n, k, 71) : draw(k, n, 71);
            thi_matrix C = draw(m, n, 72), D = duplicate(C), before = duplicate(C);
            assert_ok(ctx, thi_multiply(ctx, ta, tb, 1.5, A, B, -0.5, C, lower));
            thi_blas_gemm(ta, tb, 1.5, A, B, -0.5, D);
            assert_true(distance(C, D, lower) <= (double)k * DBL_EPSILON * norm(A) * norm(B));
            if (lower) {
                assert_upper_same(C, before);
            }
            thi_matrix *all[] = {&A, &B, &C, &D, &before};
            for (int f = 0; f < 5; f++) {
                thi_free(all[f]->data);
            }
        }
    }
}

static void test_symmetrise(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        thi_matrix A = draw(sizes[s], sizes[s], 80), B = duplicate(A);
        thi_symmetrise(A);
        assert_true(distance(A, B, true) == 0);
        for (int64_t j = 0; j < A.cols; j++) {
            for (int64_t i = 0; i < j; i++) {
                assert_true(at(A, i, j) == at(B, j, i));
            }
        }
        thi_free(A.data);
        thi_free(B.data);
    }
}

/* Each allocation failing in turn: MEMORY, and nothing is kept. */
static void test_allocation_failures(void **state)
{
    (void)state;
    thi_matrix K = draw_definite(300, 90);
    size_t held = thi_memory_held(ctx);
    double jitter;
    for (int op = 0; op < 4; op++) {
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth++) {
            assert_true(nth < 10);
            thi_fail_allocation(ctx, nth, true);
            status = op == 0   ? thi_chol(ctx, K)
                     : op == 1 ? thi_chol_jitter(ctx, K, &jitter)
                     : op == 2 ? thi_tri_inverse(ctx, K)
                               : thi_chol_inverse(ctx, K);
            assert_int_equal(thi_memory_held(ctx), held);
        }
        thi_fail_allocation(ctx, 0, false);
        assert_ok(ctx, status);
        thi_free(K.data);
        K = draw_definite(300, 90);
    }
    thi_free(K.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),      cmocka_unit_test(test_empty),
        cmocka_unit_test(test_wrappers),   cmocka_unit_test(test_chol),
        cmocka_unit_test(test_chol_known), cmocka_unit_test(test_chol_refuses),
        cmocka_unit_test(test_jitter),     cmocka_unit_test(test_jitter_refuses),
        cmocka_unit_test(test_inverses),   cmocka_unit_test(test_inverse_ill_conditioned),
        cmocka_unit_test(test_solves),     cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_symmetrise), cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

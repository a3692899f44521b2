/*
 * The adjoint of the Cholesky factor: against central differences element by element, against the forward derivative
 * dL = L Phi(L^-1 dK L^-T) to rounding on sizes around the edges of tiles, and against K^-1, the gradient of log|K|.
 */
#include "testing_context.h"

#include <float.h>

#include "linalg/linalg.h"

static thi_matrix make(int64_t n)
{
    thi_matrix A;
    assert_ok(ctx, thi_matrix_alloc(&A, ctx, n, n));
    return A;
}

static thi_matrix copy_of(thi_matrix A)
{
    thi_matrix B = make(A.rows);
    memcpy(B.data, A.data, (size_t)(A.rows * A.cols) * sizeof(double));
    return B;
}

static thi_matrix draw_symmetric(int64_t n, uint64_t row)
{
    thi_matrix A = make(n);
    test_normals(n * n, row, A.data);
    thi_symmetrise(A);
    return A;
}

static thi_matrix draw_definite(int64_t n, uint64_t row)
{
    thi_matrix A = make(n), K = make(n);
    test_normals(n * n, row, A.data);
    thi_blas_gemm(THI_N, THI_T, 1 / (double)n, A, A, 0, K);
    for (int64_t i = 0; i < n; i++) {
        K.data[i + i * n] += 0.1;
    }
    thi_free(A.data);
    return K;
}

/* <A, B> over the lower triangles. */
static double inner_lower(thi_matrix A, thi_matrix B)
{
    double sum = 0;
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = j; i < A.rows; i++) {
            sum += A.data[i + j * A.ld] * B.data[i + j * B.ld];
        }
    }
    return sum;
}

/* tr(A B) of symmetric matrices given by their lower triangles. */
static double inner_symmetric(thi_matrix A, thi_matrix B)
{
    double sum = 2 * inner_lower(A, B);
    for (int64_t i = 0; i < A.rows; i++) {
        sum -= A.data[i + i * A.ld] * B.data[i + i * B.ld];
    }
    return sum;
}

/* Kbar for F = <G, L(K)>; rubbish above the diagonals must not matter. */
static thi_matrix adjoint_of(thi_matrix K, thi_matrix G)
{
    thi_matrix L = copy_of(K), Kbar = copy_of(G), work = make(K.rows);
    assert_ok(ctx, thi_chol(ctx, L));
    for (int64_t j = 0; j < K.cols; j++) {
        for (int64_t i = 0; i < j; i++) {
            L.data[i + j * L.ld] = Kbar.data[i + j * L.ld] = NAN;
        }
    }
    assert_ok(ctx, thi_chol_adjoint(ctx, L, Kbar, work));
    thi_free(L.data);
    thi_free(work.data);
    return Kbar;
}

static double value(thi_matrix K, thi_matrix G)
{
    thi_matrix L = copy_of(K);
    assert_ok(ctx, thi_chol(ctx, L));
    double F = inner_lower(G, L);
    thi_free(L.data);
    return F;
}

static void test_central_differences(void **state)
{
    (void)state;
    const double h = 1e-5;
    for (int64_t n = 1; n <= 7; n++) {
        thi_matrix K = draw_definite(n, 1), G = draw_symmetric(n, 2), Kbar = adjoint_of(K, G);
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = j; i < n; i++) {
                double *x = &K.data[i + j * n], kept = *x;
                *x = kept + h;
                double up = value(K, G);
                *x = kept - h;
                double down = value(K, G);
                *x = kept;
                /* An entry of the lower triangle stands for itself and its mirror image. */
                assert_near((i == j ? 1 : 2) * Kbar.data[i + j * n], (up - down) / (2 * h), 1e-6, 1e-6);
            }
        }
        thi_free(K.data);
        thi_free(G.data);
        thi_free(Kbar.data);
    }
}

/* dL for a change dK. */
static thi_matrix forward(thi_matrix K, thi_matrix dK)
{
    thi_matrix L = copy_of(K), M = copy_of(dK);
    assert_ok(ctx, thi_chol(ctx, L));
    thi_blas_trsm(THI_LEFT, THI_N, 1, L, M);
    thi_blas_trsm(THI_RIGHT, THI_T, 1, L, M);
    for (int64_t j = 0; j < M.cols; j++) {
        memset(M.data + j * M.ld, 0, (size_t)j * sizeof(double));
        M.data[j + j * M.ld] *= 0.5;
    }
    thi_blas_trmm(THI_LEFT, THI_N, 1, L, M);
    thi_free(L.data);
    return M;
}

static void test_forward_derivative(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 33, 95, 96, 97, 200, 241, 500};
    for (int s = 0; s < 9; s++) {
        int64_t n = sizes[s];
        thi_matrix K = draw_definite(n, 11), dK = draw_symmetric(n, 12), G = draw_symmetric(n, 13);
        thi_matrix Kbar = adjoint_of(K, G), dL = forward(K, dK);
        double size = sqrt(inner_lower(Kbar, Kbar) * inner_lower(dK, dK));
        assert_near(inner_symmetric(Kbar, dK), inner_lower(G, dL), 0, 100 * (double)n * DBL_EPSILON * size);
        thi_matrix *all[] = {&K, &dK, &G, &Kbar, &dL};
        for (int k = 0; k < 5; k++) {
            thi_free(all[k]->data);
        }
    }
}

static void test_log_determinant(void **state)
{
    (void)state;
    enum { N = 150 };
    thi_matrix K = draw_definite(N, 21), L = copy_of(K), G = make(N);
    assert_ok(ctx, thi_chol(ctx, L));
    for (int64_t i = 0; i < N; i++) {
        G.data[i + i * N] = 2 / L.data[i + i * N];
    }
    thi_matrix Kbar = adjoint_of(K, G);
    assert_ok(ctx, thi_chol_inverse(ctx, L));
    for (int64_t j = 0; j < N; j++) {
        /* |K^-1| is at most 10. */
        assert_all_near(&Kbar.data[j + j * N], &L.data[j + j * N], N - j, 0, 1000 * N * DBL_EPSILON);
    }
    thi_matrix *all[] = {&K, &L, &G, &Kbar};
    for (int k = 0; k < 4; k++) {
        thi_free(all[k]->data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_central_differences),
        cmocka_unit_test(test_forward_derivative),
        cmocka_unit_test(test_log_determinant),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/*
 * The BLAS of the library, all calls to it: BLIS through its CBLAS face, on the calling thread. Dimensions fit an int
 * because thi_matrix_alloc refuses others. Empty operands never reach the library, which treats a zero leading
 * dimension as an error.
 */
#include <assert.h>
#include <cblas.h>
#include <limits.h>

#include "linalg/linalg.h"

static inline int narrow(int64_t n)
{
    assert(n >= 0 && n <= INT_MAX);
    return (int)n;
}

static inline int leading(thi_matrix A)
{
    return narrow(A.ld > 0 ? A.ld : 1);
}

static inline enum CBLAS_TRANSPOSE trans(thi_trans t)
{
    return t == THI_T ? CblasTrans : CblasNoTrans;
}

static inline enum CBLAS_SIDE side_of(thi_side side)
{
    return side == THI_RIGHT ? CblasRight : CblasLeft;
}

static inline bool empty(thi_matrix A)
{
    return A.rows == 0 || A.cols == 0;
}

/* The inner dimension of a product op(A) op(B). */
static inline int inner(thi_trans ta, thi_matrix A)
{
    return narrow(ta == THI_T ? A.rows : A.cols);
}

void thi_blas_gemm(thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B, double beta, thi_matrix C)
{
    if (!empty(C)) {
        cblas_dgemm(CblasColMajor, trans(ta), trans(tb), narrow(C.rows), narrow(C.cols), inner(ta, A), alpha, A.data,
                    leading(A), B.data, leading(B), beta, C.data, leading(C));
    }
}

void thi_blas_gemmt(thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B, double beta, thi_matrix C)
{
    if (!empty(C)) {
        cblas_dgemmt(CblasColMajor, CblasLower, trans(ta), trans(tb), narrow(C.rows), inner(ta, A), alpha, A.data,
                     leading(A), B.data, leading(B), beta, C.data, leading(C));
    }
}

void thi_blas_syrk(thi_trans ta, double alpha, thi_matrix A, double beta, thi_matrix C)
{
    if (!empty(C)) {
        cblas_dsyrk(CblasColMajor, CblasLower, trans(ta), narrow(C.rows), inner(ta, A), alpha, A.data, leading(A), beta,
                    C.data, leading(C));
    }
}

void thi_blas_symm(thi_side side, double alpha, thi_matrix S, thi_matrix B, double beta, thi_matrix C)
{
    if (!empty(C)) {
        cblas_dsymm(CblasColMajor, side_of(side), CblasLower, narrow(C.rows), narrow(C.cols), alpha, S.data, leading(S),
                    B.data, leading(B), beta, C.data, leading(C));
    }
}

void thi_blas_trsm(thi_side side, thi_trans tl, double alpha, thi_matrix L, thi_matrix B)
{
    if (!empty(B)) {
        cblas_dtrsm(CblasColMajor, side_of(side), CblasLower, trans(tl), CblasNonUnit, narrow(B.rows), narrow(B.cols),
                    alpha, L.data, leading(L), B.data, leading(B));
    }
}

void thi_blas_trmm(thi_side side, thi_trans tl, double alpha, thi_matrix L, thi_matrix B)
{
    if (!empty(B)) {
        cblas_dtrmm(CblasColMajor, side_of(side), CblasLower, trans(tl), CblasNonUnit, narrow(B.rows), narrow(B.cols),
                    alpha, L.data, leading(L), B.data, leading(B));
    }
}

void thi_blas_gemv(thi_trans ta, double alpha, thi_matrix A, const double *x, double beta, double *y)
{
    if (empty(A)) {
        int64_t length = ta == THI_T ? A.cols : A.rows;
        for (int64_t i = 0; i < length; i++) {
            y[i] = beta == 0 ? 0 : beta * y[i];
        }
        return;
    }
    cblas_dgemv(CblasColMajor, trans(ta), narrow(A.rows), narrow(A.cols), alpha, A.data, leading(A), x, 1, beta, y, 1);
}

void thi_blas_trsv(thi_trans tl, thi_matrix L, double *x)
{
    if (L.rows == 0) {
        return;
    }
    cblas_dtrsv(CblasColMajor, CblasLower, trans(tl), CblasNonUnit, narrow(L.rows), L.data, leading(L), x, 1);
}

double thi_blas_dot(int64_t n, const double *x, const double *y)
{
    return cblas_ddot(narrow(n), x, 1, y, 1);
}

void thi_blas_axpy(int64_t n, double alpha, const double *x, double *y)
{
    cblas_daxpy(narrow(n), alpha, x, 1, y, 1);
}

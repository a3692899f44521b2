/*
 * Dense linear algebra over column-major views. The BLAS is reached through this header only.
 *
 * The thi_blas_* wrappers run on the calling thread. The functions with a context cut their work into tiles of a size
 * that depends on the matrix alone, do each with single-threaded BLAS and combine them in a fixed order: the result has
 * the same bits on any number of threads.
 */
#ifndef THI_LINALG_H
#define THI_LINALG_H

#include "base/base.h"

/* rows x cols, element (i, j) at data[i + j * ld]. Views made by these functions have dimensions that fit a BLAS int.
 */
typedef struct thi_matrix {
    double *data;
    int64_t rows, cols, ld;
} thi_matrix;

/* A new zeroed matrix (ld = rows). Error LIMIT when a dimension exceeds a BLAS int; MEMORY. Free with thi_free(data).
 */
thiele_status thi_matrix_alloc(thi_matrix *out, thiele_context *ctx, int64_t rows, int64_t cols) THI_MUST_CHECK;
/* Whether every entry is zero: a product with it need not be made. */
bool thi_matrix_is_zero(thi_matrix A);

static inline thi_matrix thi_matrix_view(double *data, int64_t rows, int64_t cols, int64_t ld)
{
    return (thi_matrix){data, rows, cols, ld};
}
/* The lower triangle of a square matrix; clean: with zeros above it. */
void thi_tri_copy(thi_matrix from, thi_matrix to);
void thi_tri_copy_clean(thi_matrix from, thi_matrix to);

static inline thi_matrix thi_matrix_block(thi_matrix A, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
    return (thi_matrix){A.data + row + col * A.ld, rows, cols, A.ld};
}

typedef enum thi_trans { THI_N = 0, THI_T = 1 } thi_trans;
typedef enum thi_side { THI_LEFT = 0, THI_RIGHT = 1 } thi_side;

/* --- blas.c: single-threaded ------------------------------------------------------------------------------------- */
/* C = alpha op(A) op(B) + beta C */
void thi_blas_gemm(thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B, double beta, thi_matrix C);
/* The same, touching the lower triangle of the square C only. */
void thi_blas_gemmt(thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B, double beta, thi_matrix C);
/* Lower triangle of C = alpha A A' + beta C (THI_N) or alpha A' A + beta C (THI_T). */
void thi_blas_syrk(thi_trans ta, double alpha, thi_matrix A, double beta, thi_matrix C);
/* C = alpha S B + beta C (LEFT) or alpha B S + beta C (RIGHT), S symmetric, its lower triangle given. */
void thi_blas_symm(thi_side side, double alpha, thi_matrix S, thi_matrix B, double beta, thi_matrix C);
/* B = alpha op(L)^-1 B (LEFT) or alpha B op(L)^-1 (RIGHT), L lower triangular. */
void thi_blas_trsm(thi_side side, thi_trans tl, double alpha, thi_matrix L, thi_matrix B);
/* B = alpha op(L) B (LEFT) or alpha B op(L) (RIGHT). */
void thi_blas_trmm(thi_side side, thi_trans tl, double alpha, thi_matrix L, thi_matrix B);
/* y = alpha op(A) x + beta y, unit strides */
void thi_blas_gemv(thi_trans ta, double alpha, thi_matrix A, const double *x, double beta, double *y);
/* x = op(L)^-1 x */
void thi_blas_trsv(thi_trans tl, thi_matrix L, double *x);
double thi_blas_dot(int64_t n, const double *x, const double *y);
void thi_blas_axpy(int64_t n, double alpha, const double *x, double *y);

/* --- chol.c: tiles on all threads ----------------------------------------------------------------------------------
 */
/*
 * Lower triangle of A becomes its Cholesky factor, the strict upper one is left alone. NUMERIC when a pivot is not
 * positive (the message has no advice: the caller knows the matrix); A's lower triangle is then garbage. n^3/3 flops.
 */
thiele_status thi_chol(thiele_context *ctx, thi_matrix A) THI_MUST_CHECK;
/*
 * The same with a ladder of jitter: none, then 1e-12, 1e-11, ... 1e-4 of the mean diagonal. On entry the full lower
 * triangle of A; the strict upper triangle is used to keep a copy of it, so that no second matrix is needed (on exit it
 * holds the transpose of the original strict lower triangle). *jitter is what was added. NUMERIC when the whole ladder
 * fails or an entry is not finite.
 */
thiele_status thi_chol_jitter(thiele_context *ctx, thi_matrix A, double *jitter) THI_MUST_CHECK;
/* The rungs, as multiples of the mean diagonal: for whoever factors elsewhere. */
enum { THI_JITTER_RUNGS = 10 };
double thi_jitter_rung(int rung);
/* log|L L'| = 2 sum log L_ii */
double thi_chol_logdet(thi_matrix L);
/* B = op(L)^-1 B, column blocks of B in parallel. n^2 flops a column. */
thiele_status thi_tri_solve(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B);
/* B = op(L) B, likewise. */
thiele_status thi_tri_multiply(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B);
/* L becomes L^-1 (lower triangles), in place. n^3/3 flops. */
thiele_status thi_tri_inverse(thiele_context *ctx, thi_matrix L);
/* The lower triangle of L becomes that of L'L, in place. n^3/3 flops. */
thiele_status thi_tri_square(thiele_context *ctx, thi_matrix L);
/* The lower triangle of L becomes that of (L L')^-1, in place. 2n^3/3 flops. */
thiele_status thi_chol_inverse(thiele_context *ctx, thi_matrix L);
/* C = alpha op(A) op(B) + beta C; lower_only: C square, lower triangle only. */
thiele_status thi_multiply(thiele_context *ctx, thi_trans ta, thi_trans tb, double alpha, thi_matrix A, thi_matrix B,
                           double beta, thi_matrix C, bool lower_only);
/* Copies the lower triangle onto the upper. */
void thi_symmetrise(thi_matrix A);
/*
 * Adjoint of the Cholesky factor: on entry Lbar (lower triangle) = dF/dL; on exit its lower triangle is that of the
 * symmetric Kbar with dF = tr(Kbar dK):  Kbar = L^-T sym(Phi(L' Lbar)) L^-1, Phi = lower triangle with the diagonal
 * halved. (Murray 2016, "Differentiation of the Cholesky decomposition".) work: n x n. 5n^3/3 flops, all in solves and
 * products: the recursion with 2n^3/3 loses digits.
 */
thiele_status thi_chol_adjoint(thiele_context *ctx, thi_matrix L, thi_matrix Lbar, thi_matrix work);

/* --- quadrature.c ----------------------------------------------------------------------------------------------------
 */
/*
 * Gauss-Hermite for the standard normal weight: E[f(Z)] ~ sum_i weight_i f(node_i); exact for polynomials up to degree
 * 2n - 1. Nodes ascend and are exactly symmetric, 1 <= n <= 512. Newton on the orthonormal recurrence.
 */
thiele_status thi_gauss_hermite(thiele_context *ctx, int n, double *node, double *weight);

#endif

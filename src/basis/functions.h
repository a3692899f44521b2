/*
 * Basis functions of decoupled Gaussian processes (Cheng and Boots 2017, section 3.3 and appendix B.1): n points X,
 * each of which stands for k(x_i, .), with any kernel; or generalised, for one squared exponential or Matern kernel
 * k = s2 g(t), t = |u - u'|^2, each with length-scales of its own, l_id = l_d c_id (their equation 15):
 *   psi_i'psi_j = s2 prod_d sqrt(2 l_id l_jd / (l_id^2 + l_jd^2)) g(t_ij),   t_ij = 2 sum_d (x_id - x_jd)^2 /
 *                                                                                   (l_id^2 + l_jd^2)
 * Rows of data are functions with c = 1, among which this is k. It is a covariance whatever x and l (Gibbs 1997;
 * Paciorek and Schervish 2006): a g that serves in any number of columns is a mixture of exp(-z t), z >= 0 (Schoenberg
 * 1938; of Matern's with smoothness nu, z is nu/2 over a gamma(nu) variable), and for each z the expression with
 * exp(-z t) for g is the inner product over u of normalised Gaussian bumps N(u; x_i, diag(l_i^2)/(4 z)). So f,
 * the process that rows see, is part of one over all (x, l), and functions are its values elsewhere. Against rows t is
 * an inner product of 2 D + 1 features, so that a matrix takes one GEMM and one profile an entry, its adjoint one GEMM,
 * and one more where the slope of g is not a multiple of g.
 */
#ifndef THI_FUNCTIONS_H
#define THI_FUNCTIONS_H

#include "kernel/kernel.h"

/* What log c may be: beyond it c squared would soon leave the range of numbers. */
#define THI_STRETCH_MAX 100.0

typedef struct thi_functions {
    const thiele_kernel *kernel; /* borrowed, as are X and log_c */
    int64_t n;
    const double *X;     /* D x n */
    const double *log_c; /* D x n: logs of the factors c; NULL: plain points */
    thi_inputs inputs;   /* plain */
    /* Generalised, of the d columns that the kernel looks at: x and l, n of each column together, `stride` apart; the
     * features, 2 d + 1 a function, and k where t = 0. */
    int64_t stride;
    const double *x, *l, *feature, *most;
    double *own;
} thi_functions;

/* Adjoints of n functions; each is added to, NULL: not wanted. */
typedef struct thi_functions_bar {
    double *theta;     /* of the kernel's log parameters; c stays when a length-scale moves */
    double *X, *log_c; /* D x n */
} thi_functions_bar;

/* Whether functions of this kernel may have length-scales of their own: one squared exponential or Matern. */
bool thi_functions_may_stretch(const thiele_kernel *kernel);
/* At the kernel's present values. Error: MEMORY. */
thiele_status thi_functions_make(thi_functions *f, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                                 const double *X, const double *log_c);
void thi_functions_clear(thi_functions *f);
/* Functions first .. first + count - 1, as a view that is not to be cleared. */
thi_functions thi_functions_part(const thi_functions *f, int64_t first, int64_t count);

/* K (rows x n) = k(rows, functions) */
thiele_status thi_functions_fill(const thi_functions *f, thiele_context *ctx, const thi_inputs *rows, thi_matrix K);
/* For F = sum Kbar K, with K at hand. */
thiele_status thi_functions_pull(const thi_functions *f, thiele_context *ctx, const thi_inputs *rows, thi_matrix Kbar,
                                 thi_matrix K, const thi_functions_bar *bar);
/* K (A.n x B.n) = k(A, B). symmetric: A and B are the same, and all of K is filled. Both generalised, or none. */
thiele_status thi_functions_cross(const thi_functions *A, const thi_functions *B, thiele_context *ctx, thi_matrix K,
                                  bool symmetric);
/*
 * For F = sum Kbar K: bar is that of B. symmetric: Kbar is symmetric and its lower triangle given, K is whole, and bar
 * takes both arguments' share.
 */
thiele_status thi_functions_pull_cross(const thi_functions *A, const thi_functions *B, thiele_context *ctx,
                                       thi_matrix Kbar, thi_matrix K, bool symmetric, const thi_functions_bar *bar);
/* k(f_i, f_i) */
thiele_status thi_functions_diagonal(const thi_functions *f, thiele_context *ctx, double *diagonal);

#endif

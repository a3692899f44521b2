/*
 * Basis functions of decoupled Gaussian processes (Cheng and Boots 2017, section 3.3 and appendix B.1): n points X,
 * each of which stands for k(x_i, .), with any kernel; or generalised, for one squared exponential, each with
 * length-scales of its own, l_id = l_d c_id (their equation 15): psi_i'psi_j = s2 prod_d sqrt(2 l_id l_jd / (l_id^2 +
 * l_jd^2)) exp(-(x_id - x_jd)^2 / (l_id^2 + l_jd^2)) Rows of data are functions with c = 1. Against rows the exponent
 * is an inner product of 2 D + 1 features, so that a matrix takes one GEMM and one exp an entry, and its adjoint one
 * GEMM.
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
     * features, 2 d + 1 a function, and what they are at most. */
    int64_t stride;
    const double *x, *l, *feature, *most;
    double *own;
} thi_functions;

/* Adjoints of n functions; each is added to, NULL: not wanted. */
typedef struct thi_functions_bar {
    double *theta;     /* of the kernel's log parameters; c stays when a length-scale moves */
    double *X, *log_c; /* D x n */
} thi_functions_bar;

/* Whether functions of this kernel may have length-scales of their own. */
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

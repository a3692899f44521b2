/*
 * One triangle for a variance, in place of a solve with L and a product with R: with S = R'R on w = L^-1 k, k =
 * k(basis, x) already scaled,
 *   var = k(x, x) - w'(I - S) w = k(x, x) - |C k|^2,   C = U'L^-1 diag(scale) lower triangular, U U' = I - S with U
 * upper triangular; and where nothing of K - Q is kept, var = w'S w = |C k|^2 with U U' = S.
 * That takes S <= I, which holds where all sites are at least zero, and a C whose large entries (those of L^-1) do not
 * cost digits. Whoever uses one tries the second on rows of its own; thi_triangle_probes has some.
 */
#ifndef THI_TRIANGLE_H
#define THI_TRIANGLE_H

#include "posterior/predictor.h"

/* Of 64 bits' 16 digits a variance keeps 10, in units of k(x, x), by one triangle, or it is not had by one. */
#define THI_TRIANGLE_LOSS 1e-10

/*
 * C of one component in the lower triangle of a new matrix (free its data), for a predictor with R on w or without R.
 * NUMERIC where S <= I does not hold. 8n^3/3 flops where R is as large; two or three more matrices of that size while
 * it is made.
 */
thiele_status thi_triangle_make(thi_matrix *C, thiele_context *ctx, const thi_predictor *predictor, int component);

enum { THI_TRIANGLE_PROBES = 64 };
/*
 * The points of the basis, or some of them, and points half way between two: the columns of X (D x at most
 * THI_TRIANGLE_PROBES). There k is largest, and with it what large entries of C lose. Returns how many there are.
 */
int64_t thi_triangle_probes(const thi_predictor *predictor, double *X);

#endif

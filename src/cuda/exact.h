/*
 * Exact regression on a card (posterior/exact.h has the formulas): one n x n matrix that holds K and then L. Triangular
 * solves multiply by inverses of the diagonal tiles of L, made once, and by the tiles below or above: all products,
 * which cuBLAS does 2 to 10 times as fast as solves.
 */
#ifndef THI_CUDA_EXACT_H
#define THI_CUDA_EXACT_H

#include "cuda/card.h"

/* Rows of a tile; columns of a panel of the inverse, at most. */
enum { TILE = 512, PANEL = 4096 };

struct thi_cuda_exact {
    thi_session *session;
    int64_t n;
    int targets;
    double *L;     /* n x n */
    double *T;     /* TILE x n: the inverse of each diagonal tile of L */
    double *alpha; /* n x targets */
    double *u;     /* n x features, of the last factor */
    int features;
    double *panel, *room; /* of a panel each: width() columns of n; room also holds a tile's rows of it */
};

/* Columns of a panel: n/8, as far as tiles allow, so that little is computed above the diagonal. */
int64_t thi_cuda_width(int64_t n);
/*
 * X = L[first:, first:]^-1 X, of n - first rows with leading dimension ld; first is a multiple of TILE. (n - first)^2
 * flops a column. room: TILE x columns.
 */
thiele_status thi_cuda_forward(thi_cuda_exact *e, int64_t first, double *X, int64_t ld, int64_t columns, double *room,
                               thi_device_said *said);
/* The same with the transpose of L. */
thiele_status thi_cuda_backward(thi_cuda_exact *e, int64_t first, double *X, int64_t ld, int64_t columns, double *room,
                                thi_device_said *said);

#endif

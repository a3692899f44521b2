/* What the files of the decoupled engine share. */
#ifndef THI_DECOUPLED_INTERNAL_H
#define THI_DECOUPLED_INTERNAL_H

#include "posterior/decoupled.h"

/* The rows at hand. */
typedef struct thi_decoupled_rows {
    int64_t n;
    const double *X;
    thi_inputs rows;
    thi_matrix k, V, W, U; /* rows x M: k(x, beta); V' or U'; work */
    thi_matrix portion;    /* rows or columns or beta, x PORTION */
    thi_matrix weights;    /* the same */
    double *left;          /* rows: what beta does not explain of k(x, x); plain: 0 */
    const double *spared;  /* rows: its adjoint beyond h, borrowed for the next pull; NULL: 0 */
} thi_decoupled_rows;

struct thi_decoupled {
    thi_decoupled_shape shape;
    thi_prior prior;
    thi_decoupled_q q;
    thi_functions alpha, beta;
    /* M x M each, M = beta.n; their storage has room for shape.beta. */
    thi_matrix K;      /* K_beta, whole */
    thi_matrix root;   /* plain: C with H = C C'; orthogonal: chol(I + T) */
    thi_matrix factor; /* plain: L with zeros above its diagonal; orthogonal: Lb */
    thi_matrix S;      /* whole; plain: H^-1 */
    thi_matrix map;    /* plain: L C^-T, so that v = k - |map'k|^2 */
    thi_matrix KL;     /* plain: K_beta L */
    thi_matrix Th;     /* sum over rows: V diag(h) V'; plain: U diag(h) U', U = map'k */
    thi_matrix Kh;     /* plain: k(beta, x) diag(h) U' */
    thi_matrix Tc;     /* orthogonal: V diag(spared) V' */
    thi_matrix work, more;
    double *m, *c, *lean; /* M each, orthogonal: m, c, m - c */
    double *Vg;           /* M: sum over rows of V g */
    double log_det, jitter;
    thi_decoupled_rows at;
    double *theta, *pick; /* parameters (grown when needed); columns */
    int parameters;
};

/* M x M matrices are packed to the present M, ld = M. */
static inline thi_matrix thi_decoupled_square(thi_matrix A, int64_t M)
{
    return thi_matrix_view(A.data, M, M, M > 0 ? M : 1);
}

static inline thi_matrix thi_decoupled_view(thi_matrix A, int64_t rows, int64_t cols)
{
    return thi_matrix_view(A.data, rows, cols, rows > 0 ? rows : 1);
}

/* Functions of alpha from `first` on, at most a portion. */
static inline thi_functions thi_decoupled_portion(const thi_decoupled *d, int64_t first)
{
    int64_t left = d->alpha.n - first;
    return thi_functions_part(&d->alpha, first, left < THI_DECOUPLED_PORTION ? left : THI_DECOUPLED_PORTION);
}

/* Adjoints of such a part. */
static inline thi_functions_bar thi_decoupled_alpha_bar(const thi_decoupled *d, const thi_decoupled_bar *bar,
                                                        int64_t first)
{
    int64_t at = first * d->shape.D;
    return (thi_functions_bar){bar->theta, bar->alpha != NULL ? bar->alpha + at : NULL,
                               bar->log_c_alpha != NULL ? bar->log_c_alpha + at : NULL};
}

/* Whether anything of a covariance with alpha, or with beta, is to be differentiated. */
static inline bool thi_decoupled_moves_alpha(const thi_decoupled_bar *bar)
{
    return bar->theta != NULL || bar->alpha != NULL || bar->log_c_alpha != NULL;
}
static inline bool thi_decoupled_moves_beta(const thi_decoupled_bar *bar)
{
    return bar->theta != NULL || bar->beta != NULL || bar->log_c_beta != NULL;
}

/* A = x y' */
static inline void thi_decoupled_outer(thi_matrix A, const double *x, double scale, const double *y)
{
    for (int64_t j = 0; j < A.cols; j++) {
        double by = scale * y[j];
        for (int64_t i = 0; i < A.rows; i++) {
            A.data[i + j * A.ld] = by * x[i];
        }
    }
}

#endif

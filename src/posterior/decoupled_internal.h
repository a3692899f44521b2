/* What the files of the decoupled engine share. */
#ifndef THI_DECOUPLED_INTERNAL_H
#define THI_DECOUPLED_INTERNAL_H

#include "posterior/decoupled.h"

/* The rows at hand. */
typedef struct thi_decoupled_rows {
    int64_t n;
    const double *X;
    thi_inputs rows;
    thi_matrix k, V, U;            /* rows x M: k(x, beta); V' or, plain, work; work */
    thi_matrix portion;            /* rows or columns or beta, x PORTION */
    thi_matrix weights;            /* the same */
    double *left;                  /* rows: what beta does not explain of k(x, x); plain: 0 */
    const double *spared;          /* rows x latents: its adjoints beyond h, borrowed for the next pull; NULL: 0 */
    double *all_g, *all_h, *all_c; /* rows: sums over the latents */
} thi_decoupled_rows;

/* One function's q(u_beta). Matrices are M x M, M = beta.n; their storage has room for shape.beta. */
typedef struct thi_decoupled_latent {
    thi_matrix root; /* plain: C with H = C C'; orthogonal: chol(I + T) */
    thi_matrix S;    /* whole; plain: H^-1 */
    thi_matrix Th;   /* sum over rows: V diag(h) V'; plain: U diag(h) U', U = map'k */
    thi_matrix L;    /* plain: L with zeros above its diagonal */
    thi_matrix map;  /* plain: L C^-T, so that v = k - |map'k|^2 */
    thi_matrix KL;   /* plain: K_beta L */
    thi_matrix Kh;   /* plain: k(beta, x) diag(h) U' */
    thi_matrix W;    /* rows x M: V'(S - I); plain: U' */
    double log_det;
} thi_decoupled_latent;

struct thi_decoupled {
    thi_decoupled_shape shape;
    thi_prior prior;
    thi_decoupled_q q;
    thi_functions alpha, beta;
    thi_matrix K;  /* K_beta, whole */
    thi_matrix Lb; /* orthogonal */
    thi_matrix Tc; /* orthogonal: V diag(spared) V', of all latents */
    thi_matrix work, more;
    thi_decoupled_latent *latent;
    double *m, *c, *lean; /* M x latents each, orthogonal: m, c, m - c */
    double *Vg, *cbar;    /* M x latents: sum over rows of V g; work */
    double jitter;
    thi_decoupled_rows at;
    double *theta, *pick; /* parameters (grown when needed); columns */
    double *along;        /* PORTION x latents */
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

/* n x latents numbers as a matrix. */
static inline thi_matrix thi_decoupled_columns_of(const thi_decoupled *d, const double *x, int64_t n)
{
    return thi_matrix_view((double *)x, n, d->shape.latents, n > 0 ? n : 1);
}

/* Functions of alpha from `first` on, at most a portion; rows of a or of its adjoint that are theirs. */
static inline thi_functions thi_decoupled_portion(const thi_decoupled *d, int64_t first)
{
    int64_t left = d->alpha.n - first;
    return thi_functions_part(&d->alpha, first, left < THI_DECOUPLED_PORTION ? left : THI_DECOUPLED_PORTION);
}
static inline thi_matrix thi_decoupled_part(thi_matrix a, int64_t first, int64_t n)
{
    return thi_matrix_view(a.data + first, n, a.cols, a.ld);
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

#endif

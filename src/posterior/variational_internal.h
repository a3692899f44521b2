/*
 * What the files of the variational posterior share. Matrices over rows of data are kept with a row of data as a row:
 * V here is the transpose of V = L^-1 Kzx of math.md, n x M, so that the adjoint of k(X, Z) lies as thi_kernel_pull
 * wants it and sums over inducing points run along contiguous rows.
 *
 * Gradients in a Cholesky factor L are kept as P = L' Lbar, lower triangle only: for V = L^-1 Kzx it is -Vbar V', and
 * then Kbar = L^-T H L^-1 / 2 with the symmetric H whose lower triangle is P's: Lbar itself is never needed.
 *
 *   variational.c          opening, factors of Kzz, closing
 *   variational_q.c        q and its gradient between numbers and matrices
 *   variational_sites.c    q from sites, and natural steps
 *   variational_quick.c    products with Kzz^-1 in place of solves
 *   variational_rows.c     marginals and their adjoints, by blocks of rows
 *   variational_kl.c       KL(q || p), the bound of a mixture, their gradients
 *   variational_adjoint.c      gradients of kernels and Z from what the rows left
 *   variational_sums.c         sums of the rows as numbers that others are added to
 *   variational_freeze.c   the predictor
 */
#ifndef THI_VARIATIONAL_INTERNAL_H
#define THI_VARIATIONAL_INTERNAL_H

#include "posterior/variational.h"

/* Most rows of data in a block; rows or columns of M x M matrices worked at a time. */
enum { THI_ROWS = 128, THI_BAND = 96 };

/* One latent in one component: member k Q + j. */
typedef struct thi_member {
    int component, latent, group;
    double *m;     /* M: mean of w; of u for a plain diagonal */
    double *s;     /* M: variances of a diagonal */
    double *g_sum; /* M: V g, or A g for a plain diagonal; summed over all pulls */
    double *h_sum; /* M: (V . V) h or (A . A) h of a diagonal */
    double *mbar;  /* M: gradient in m */
    double *sbar;  /* M: gradient in s */
    thi_matrix Ls; /* M x M: the factor of S in w, zeros above the diagonal */
    thi_matrix T;  /* M x M, lower triangle: V diag(h) V' */
    thi_matrix W;  /* rows x M: V Ls; the first member of a group has the group's Vbar there after a pull */
    thi_matrix D;  /* M x M: L^-T (S - I) L^-1, when quick */
    double *a;     /* M: L^-T m, when quick */
    thi_matrix G;  /* M x M, lower triangle: gradient in S of what a mixture's entropy has of pairs; K > 1 only */
} thi_member;

/* What latents with the same kernel and Z share. */
typedef struct thi_group {
    thi_prior prior;
    const double *Z;
    thi_inputs z, x;
    int latents;
    thi_member *first;
    thi_matrix L;             /* M x M, lower triangle */
    thi_matrix N;             /* of a plain diagonal or when quick: L^-1, zeros above the diagonal */
    double *inverse_diagonal; /* of a plain diagonal: that of Kzz^-1 */
    double jitter;
    thi_matrix V;              /* rows x M; k(X, Z) itself in a raw evaluation */
    thi_matrix A;              /* rows x M, of a plain diagonal: V L^-1 */
    thi_matrix bar;            /* rows x M: Vbar, then the adjoint of k(X, Z) */
    thi_matrix P;              /* M x M, lower triangle */
    double *k, *norm, *offset; /* rows: k(x, x), |V_n|^2, prior mean */
    double *g, *h, *c;         /* rows: sums over the members of g, of the adjoints of k(x, x), and of those beyond h */
    double *theta_bar, *mean_bar, *Z_bar;
} thi_group;

struct thi_variational {
    thi_shape shape;
    int *group_of;
    int groups, members;
    thi_group *group;
    thi_member *member;
    double *weight;     /* K */
    double *weight_bar; /* K: gradients in the weights, times them */
    double *pair;       /* K x K: P_kl of variational_kl.c, then log r_kl */
    double *density;    /* K: z_k of variational_kl.c */
    double *self;       /* K: how much of log|S_k|/2 is in the entropy; 1 when K = 1 */
    double *vectors;    /* all vectors of M of the members */
    double *sums;       /* g_sum and h_sum of all members; part of `vectors` */
    int64_t sums_size;
    double *part;           /* of sums_size for every block of rows */
    thi_matrix scaled;      /* rows x M */
    thi_matrix work[2];     /* M x M */
    const thi_sites *sites; /* of this evaluation, or NULL */
    bool factored, narrow;
    bool raw;      /* this evaluation goes by D: V is k(X, Z) */
    bool raw_sums; /* T and g_sum are those of k(Z, x) in place of V: from the pulls of such an evaluation to its end */
    bool pulled;   /* since begin */
    bool relieved; /* P has what the pulls since begin were given beyond h */
    const double *c; /* for the next pull, or NULL */
    int64_t rows;    /* of the last marginals */
};

static inline bool thi_is_full(const thi_variational *v)
{
    return !v->shape.diagonal;
}

/* Where the diagonal of a plain family lives: in u. */
static inline bool thi_is_plain_diagonal(const thi_variational *v)
{
    return v->shape.diagonal && !v->shape.whitened;
}

/* Calls fn for bands of THI_BAND of M, on all threads where `flops` are worth it. */
static inline int64_t thi_bands(int64_t M)
{
    return (M + THI_BAND - 1) / THI_BAND;
}
static inline int64_t thi_band_end(int64_t band, int64_t M)
{
    return (band + 1) * THI_BAND < M ? (band + 1) * THI_BAND : M;
}

/* --- variational_q.c --- */
void thi_q_take_weights(thi_variational *v, const double *q);
thiele_status thi_q_take(thi_variational *v, thiele_context *ctx, const double *q);
/* Adds the gradient in the numbers of a member: from mbar and that in Ls (lower triangle), or from mbar and sbar. */
thiele_status thi_q_give(const thi_variational *v, thiele_context *ctx, const thi_member *member, thi_matrix Lsbar,
                         double *q_bar);
/* The same for the logits, from weight_bar. */
void thi_q_give_weights(const thi_variational *v, double *q_bar);

/* --- variational_sites.c --- */
thiele_status thi_sites_take(thi_variational *v, thiele_context *ctx, thi_sites *sites);
/* P of the member's group += that of the collapsed bound at fixed sites. T is full symmetric. */
thiele_status thi_sites_adjoint(thi_variational *v, thiele_context *ctx, const thi_member *member);

/* --- variational_quick.c --- */
/* Whether this evaluation is raw; if so, D and a. fresh: L is new. */
thiele_status thi_quick_begin(thi_variational *v, thiele_context *ctx, bool fresh);
/* From T and g_sum of k(Z, x) to those of V. */
thiele_status thi_quick_end(thi_variational *v, thiele_context *ctx);
/* N = L^-1. */
thiele_status thi_group_invert(thiele_context *ctx, thi_group *group);

/* --- variational_kl.c --- */
thiele_status thi_kl_value(thi_variational *v, thiele_context *ctx, double *kl);
/* After thi_kl_value: mbar, sbar and G become minus the gradient of KL; weight_bar that of F - KL. */
thiele_status thi_kl_adjoint(thi_variational *v, thiele_context *ctx, const double *expected);

/* --- variational_adjoint.c --- */
/* Copies the lower triangle onto the upper one, on all threads. */
thiele_status thi_mirror(thiele_context *ctx, thi_matrix A);

#endif

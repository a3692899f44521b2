/*
 * Sparse Gaussian regression as a sum over blocks of rows (Quinonero-Candela and Rasmussen 2005; Hoang, Hoang and Low
 * 2015; MATH.md sections 3 and 5). With L = chol(Kzz), V_i = L^-1 k(Z, X_i), R = K - V'V and Gamma_i = R_i + noise I
 * of block i, all of q(u) is in two sums, here in the coordinates w = L^-1 u, where the prior is N(0, I):
 *   T = sum_i V_i Gamma_i^-1 V_i',   t = sum_i V_i Gamma_i^-1 r_i,   r = y - m(x)
 *   q(w) = N(B^-1 t, B^-1),  B = I + T
 * What R_i keeps of K_i - Q_i tells the models apart: nothing (SoR, DTC), its diagonal (FITC, FIC), all (PITC, PIC).
 * Natural parameters add up, so a weighted combination of models is one too (remark 2 after their equation 16).
 *
 * The bound of MATH.md section 5, sum_i [log N(r_i; V_i'm, Gamma_i) - tr(V_i' S V_i Gamma_i^-1)/2] - KL, is a sum over
 * blocks for any q(w) = N(m, S); at q* it equals the log evidence log N(r; 0, Q + Gamma), and so does its gradient.
 */
#ifndef THI_SPARSE_H
#define THI_SPARSE_H

#include "posterior/natural.h"
#include "posterior/predictor.h"

typedef enum thi_residual {
    THI_RESIDUAL_NONE,
    THI_RESIDUAL_DIAGONAL,
    THI_RESIDUAL_BLOCK,
    THI_RESIDUAL_KINDS
} thi_residual;

/* Rows of one block, borrowed: X is D x n. */
typedef struct thi_block {
    int64_t n;
    const double *X, *y;
} thi_block;

typedef struct thi_sparse_shape {
    int64_t M, largest;                /* inducing inputs; rows of the largest block */
    double weight[THI_RESIDUAL_KINDS]; /* of each kind, not negative; one of them 1 unless models are combined */
    bool penalised; /* the bounds of kind NONE lose tr(R)/(2 noise): that is Titsias' bound, which learns well */
    bool gradients; /* thi_sparse_pull will be called */
} thi_sparse_shape;

/* Adjoints; each is added to. */
typedef struct thi_sparse_bar {
    double *theta, *mean, *log_noise; /* the kernel's parameters, those of the mean, one number */
    double *Z;                        /* D x M, or NULL: not wanted */
} thi_sparse_bar;

typedef struct thi_sparse_space thi_sparse_space;

typedef struct thi_sparse {
    thi_sparse_shape shape;
    int D;
    thi_prior prior; /* borrowed, as is Z */
    const double *Z; /* D x M */
    double noise;    /* variance */
    thi_inputs inputs;
    thi_matrix L; /* chol(Kzz) */
    double jitter;
    uint64_t basis; /* fingerprint of all that sums over blocks depend on but their rows */
    /* q(w) = N(m, S) of thi_sparse_set: */
    thi_matrix root; /* chol(B) */
    thi_matrix S;    /* full symmetric */
    double *m;
    double log_det, fit; /* log|B|, |chol(B)^-1 t|^2 */
    thi_sparse_space *space;
} thi_sparse;

/* Blocks that are worked on side by side. Sums are taken over this many at a time whatever the number of threads. */
enum { THI_SPARSE_LANES = 8 };

/* Bytes that it holds. */
double thi_sparse_bytes(const thi_sparse_shape *shape, int threads);
thiele_status thi_sparse_open(thi_sparse *sparse, thiele_context *ctx, const thi_sparse_shape *shape, int D);
void thi_sparse_close(thi_sparse *sparse);
/* Factors Kzz at the prior's present values. M^3/3 flops. */
thiele_status thi_sparse_prepare(thi_sparse *sparse, thiele_context *ctx, const thi_prior *prior, const double *Z,
                                 double noise);
/*
 * Adds scale times the sums over some blocks. For a block of n rows 2 M^2 n flops and, with kind BLOCK,
 * n^3/3 + 2 M n^2 more.
 */
thiele_status thi_sparse_sum(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                             double scale, thi_natural *sums);
/*
 * Adds the `count` blocks that the last thi_sparse_sum was over (at most THI_SPARSE_LANES) to a tree of this basis, as
 * its blocks number first, first + 1, ...
 */
thiele_status thi_sparse_keep(const thi_sparse *sparse, thiele_context *ctx, int64_t first, int64_t count,
                              thi_natural_tree *tree);
/* q from sums. M^3 flops. NUMERIC when B is not positive definite. */
thiele_status thi_sparse_set(thi_sparse *sparse, thiele_context *ctx, const thi_natural *sums);
/* KL(q || p) of the present q. */
double thi_sparse_divergence(const thi_sparse *sparse);
/* log N(y; m, Q + Gamma) when q is that of the sums over all blocks. */
double thi_sparse_evidence(const thi_sparse *sparse, const thi_natural *sums);
/* The blocks' share of the bound at the present q, from their sums alone: M^2 flops. The bound is this less the KL. */
double thi_sparse_expected(const thi_sparse *sparse, const thi_natural *sums);
/*
 * Adds scale times the blocks' share of the bound at the present q to *value, and of its gradient to bar. 6 M^2 n flops
 * a block and, with kind BLOCK, n^3 + 6 M n^2 more.
 */
thiele_status thi_sparse_pull(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              double scale, double *value, const thi_sparse_bar *bar);
/*
 * A block's rows as the model sees each of them without itself, with q that of the sums over all blocks: with C = (Q +
 * Gamma)^-1 the residual of row i is [C r]_i / C_ii and its variance, noise included, 1 / C_ii. Kinds DIAGONAL or BLOCK
 * alone. M^2 n flops and, with kind BLOCK, n^3 + 2 M n^2 more.
 */
thiele_status thi_sparse_leave_out(thi_sparse *sparse, thiele_context *ctx, const thi_block *block, double *residual,
                                   double *variance);
/* The predictor of the present q. */
thiele_status thi_sparse_freeze(const thi_sparse *sparse, thiele_context *ctx, thi_conditional conditional,
                                thi_predictor *out);

#endif

/*
 * Sparse Gaussian regression as a sum over blocks of rows (Quinonero-Candela and Rasmussen 2005; Hoang, Hoang and Low
 * 2015; math.md sections 3 and 5). With L = chol(Kzz), V_i = L^-1 k(Z, X_i), R = K - V'V and Gamma_i = R_i + noise I
 * of block i, all of q(u) is in two sums, here in the coordinates w = L^-1 u, where the prior is N(0, I):
 *   T = sum_i V_i Gamma_i^-1 V_i',   t = sum_i V_i Gamma_i^-1 r_i,   r = y - m(x)
 *   q(w) = N(B^-1 t, B^-1),  B = I + T
 * What R_i keeps of K_i - Q_i tells the models apart: nothing (SoR, DTC), its diagonal (FITC, FIC), all (PITC, PIC).
 * Natural parameters add up, so a weighted combination of models is one too (remark 2 after their equation 16).
 *
 * The bound of math.md section 5, sum_i [log N(r_i; V_i'm, Gamma_i) - tr(V_i' S V_i Gamma_i^-1)/2] - KL, is a sum over
 * blocks for any q(w) = N(m, S); at q* it equals the log evidence log N(r; 0, Q + Gamma), and so does its gradient.
 *
 * Any likelihood enters the block models (one kind alone, DIAGONAL or BLOCK) by Gaussian sites exp(nu f - lambda
 * f^2/2) of the rows, f the residual above the prior mean (math.md section 8; Gaussian noise is lambda = 1/noise, nu =
 * r/noise). Negative sites are allowed as long as the posterior is proper. With Lambda = diag(lambda), of each block
 *   C = (R + Lambda^-1)^-1,  e = (I + Lambda R)^-1 nu,  G = I - R C = (I + R Lambda)^-1
 *   T = sum_i V_i C_i V_i',  t = sum_i V_i e_i,  constant = sum_i [nu_i' R_i e_i - log|I + R_i Lambda_i|]/2
 * q(w), its divergence and its predictor are as above; the log evidence is log Z, that of the sites. The rows have
 *   mu = V'm + R a,  a = e - C V'm = nu - lambda mu,  cov = G R + G V'S V G'
 * and q(f) = q(w) prod_i q(f_i | w) has the bound of the model with the block prior
 *   sum_n E_n - KL = log Z + sum_n [E_n - nu mu + lambda (mu^2 + v)/2]
 * with the E, g = dE/dmu, h = dE/dv that the likelihood has at N(mu + m(x), v); at any other q(w) in place of log Z
 * thi_sparse_expected less thi_sparse_divergence. It bounds no GP's evidence: never compare it across Z, partitions or
 * methods.
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

/*
 * What a bound of kind NONE loses for R: with TRACE and LOG it is below the GP's own log evidence, with LOG never less
 * than with TRACE (Titsias 2025; Bui, Ashman and Turner 2025; math.md section 9). q is the same.
 */
typedef enum thi_penalty {
    THI_PENALTY_NONE,  /* nothing: DTC's own evidence */
    THI_PENALTY_TRACE, /* tr(R)/(2 noise): Titsias' bound of 2009 */
    THI_PENALTY_LOG    /* sum_n log(1 + R_nn/noise)/2 */
} thi_penalty;

/* Sites of the rows of a block and what is known at them, n numbers each. All is the caller's. */
typedef struct thi_block_sites {
    double *lambda, *nu; /* NULL: there are none, and y has Gaussian noise */
    double *mu, *v;      /* marginals of f less the prior mean: thi_sparse_marginals writes them */
    const double *g, *h; /* dE/dmu, dE/dv there */
} thi_block_sites;

/* Rows of one block, borrowed: X is D x n. y may be NULL where there are sites. */
typedef struct thi_block {
    int64_t n;
    const double *X, *y;
    bool same; /* its rows are those of the last call for marginals, which may have kept V and R of them */
    thi_block_sites at;
} thi_block;

typedef struct thi_sparse_shape {
    int64_t M, largest;                /* inducing inputs; rows of the largest block */
    double weight[THI_RESIDUAL_KINDS]; /* of each kind, not negative; one of them 1 unless models are combined */
    thi_penalty penalty;
    bool gradients; /* thi_sparse_pull will be called */
    bool sites;     /* the blocks have sites, all of them, and one kind, DIAGONAL or BLOCK, has weight 1 */
    bool twin;      /* an engine of the same prior is right before it in an array and lends its work space */
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
/* Error: ARGUMENT (sites with weights of no one prior), MEMORY. */
thiele_status thi_sparse_open(thi_sparse *sparse, thiele_context *ctx, const thi_sparse_shape *shape, int D);
void thi_sparse_close(thi_sparse *sparse);
/* Factors Kzz at the prior's present values. M^3/3 flops. */
thiele_status thi_sparse_prepare(thi_sparse *sparse, thiele_context *ctx, const thi_prior *prior, const double *Z,
                                 double noise);
/*
 * Adds scale times the sums over some blocks. For a block of n rows 2 M^2 n flops and, with kind BLOCK,
 * n^3/3 + 2 M n^2 more; where there are negative sites n^3 + 3 M n^2, and n^2 for each that is weak or negative
 * (dense.h). Error: NUMERIC when negative sites outweigh a block's prior.
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
/* log N(y; m, Q + Gamma), with sites log Z, when q is that of the sums over all blocks. */
double thi_sparse_evidence(const thi_sparse *sparse, const thi_natural *sums);
/* The blocks' share of the bound at the present q, from their sums alone: M^2 flops. The bound is this less the KL. */
double thi_sparse_expected(const thi_sparse *sparse, const thi_natural *sums);
/*
 * Adds scale times the blocks' share of the bound at the present q to *value, and of its gradient to bar. 6 M^2 n flops
 * a block and, with kind BLOCK, n^3 + 6 M n^2 more.
 *
 * With sites the share is that of thi_sparse_expected, and the gradient at fixed sites. g and h NULL: they are taken to
 * be those of the fixed point (g = a, h = -lambda/2), where this is the gradient of the whole bound. Given, it is that
 * of log Z + sum_n [E_n - nu mu + lambda (mu^2 + v)/2] anywhere, with q that of the sums over all blocks and scale 1;
 * that takes 6 M^2 n flops a block, 4 M^3 in all and, with kind BLOCK, 4n^3 + 9 M n^2 a block more. log_noise stays.
 */
thiele_status thi_sparse_pull(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              double scale, double *value, const thi_sparse_bar *bar);
/*
 * Of blocks with sites: mu and v of their rows under the present q(w). Unless part is NULL the sums over these blocks
 * are added to it, as thi_sparse_sum would. A block costs 3 M^2 n flops and, with kind BLOCK, n^3 + 5 M n^2 more.
 *
 * Twins are engines of one prior, each opened as the twin of the one before it in an array. They look at the same
 * rows, each with sites of its own (block: twins x count, those of an engine side by side; part: one each), and what
 * depends on rows and prior alone is made once for all of them: M^2 n and M n^2 flops, and k(x, x') of the block.
 */
thiele_status thi_sparse_marginals(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t count,
                                   const thi_block *block, thi_natural *part);
/*
 * One natural step of the sites of some blocks, of twins as above, at their mu, g and h:
 *   lambda <- (1 - rho) lambda - 2 rho h,   nu <- (1 - rho) nu + rho (g - 2 h mu)
 * sums is that over all blocks of the model and part that over these (thi_sparse_marginals has it), both at the present
 * sites; sums becomes that at the new ones, and q that of sums. A block whose own posterior would be improper halves
 * its rho; those with negative sites do, and after them all, where I + T would not be positive definite. Below 1e-9 a
 * block stays where it is.
 * Rows of blocks that the last thi_sparse_marginals was of must not have changed since.
 * *taken is the smallest rho that was taken. Sums change by differences: make them anew now and then. M^3 flops beside
 * those of thi_sparse_sum.
 */
thiele_status thi_sparse_step(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t count, const thi_block *block,
                              double rho, const thi_natural *part, thi_natural *sums, double *taken);
/*
 * The rows' share of the bound beside log Z: sum_n [E_n - nu mu + lambda (mu^2 + v)/2]. E NULL: zero, and the KL is
 * -log Z less this.
 */
double thi_block_slack(const thi_block *block, const double *E);
/*
 * A block's rows as the model sees each of them without itself: its residual, and its variance with the noise. Where
 * the block is among the sums these are [C r]_i / C_ii and 1 / C_ii with C = (Q + Gamma)^-1; else q knows nothing of
 * it, and the other rows of the block say what predictions by PIC would take from them: with C = Gamma^-1 of the block
 * [C (r - V'm)]_i / C_ii, and 1 / C_ii + |root^-1 [V C]_i|^2 / C_ii^2. Kinds DIAGONAL or BLOCK alone, without sites.
 * M^2 n flops and, with kind BLOCK, n^3 + 2 M n^2 more.
 */
thiele_status thi_sparse_leave_out(thi_sparse *sparse, thiele_context *ctx, const thi_block *block, bool among,
                                   double *residual, double *variance);
/* The predictor of the present q. */
thiele_status thi_sparse_freeze(const thi_sparse *sparse, thiele_context *ctx, thi_conditional conditional,
                                thi_predictor *out);

#endif

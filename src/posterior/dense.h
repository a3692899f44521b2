/*
 * The posterior of one latent function at the n data rows themselves under Gaussian sites exp(nu f - lambda f^2/2)
 * (math.md section 3 with Z = X; savigp-jmlr section 6.1.1: q has n + n parameters). f is the residual above the prior
 * mean:  Sigma = (K^-1 + Lambda)^-1,  mu = Sigma nu.
 *
 * K is never factored. With the sites lambda >= 0, s = sqrt(lambda), B = I + s K s = Lb Lb' (eigenvalues >= 1):
 *   C+ = s B^-1 s,  Sigma+ = K - K C+ K
 * and the others, d = sqrt(-lambda) on their rows only, by a second small factor (proper exactly when it exists):
 *   M = I - d Sigma+ d = Lm Lm',  G+ = I - K C+,  C = C+ - G+' d M^-1 d G+,  Sigma = K - K C K
 * (Rasmussen and Williams 2006, section 3.4.3, for the first part.) Two n x n matrices, and three of n times the number
 * of negative sites.
 */
#ifndef THI_DENSE_H
#define THI_DENSE_H

#include "posterior/engine.h"

/* What the engine is opened with: see thi_dense_open. work and twin are workspaces of such engines. */
typedef struct thi_dense_shape {
    int64_t n;
    const double *X; /* D x n */
    const void *work, *twin;
} thi_dense_shape;

/* Its q: n each, moved by steps alone. fresh: the prior's values changed since the last begin. */
typedef struct thi_dense_sites {
    double *lambda, *nu;
    bool fresh;
} thi_dense_sites;

/* Its adjoints. */
typedef struct thi_dense_bar {
    double *theta, *mean;
} thi_dense_bar;

typedef struct thi_dense {
    int64_t n;
    const double *X; /* D x n, borrowed */
    thi_inputs inputs;
    thi_matrix K;                        /* full symmetric */
    thi_matrix L;                        /* work space: nothing in it is needed by a later call */
    const struct thi_dense *work, *twin; /* who lends L, and who K and inputs; NULL: owned */
    double *scale, *a, *mu;
    thi_matrix U;   /* negatives x n: Lm^-1 d G+; no rows when all lambda >= 0 */
    double log_det; /* log|I + K Lambda| = log|B| + log|M| */
    double log_z;   /* log of the integral of p(f) prod exp(nu f - lambda f^2/2) */
} thi_dense;

/* Bytes that one of them over n rows holds at its peak when nothing is lent, U and its like apart. */
double thi_dense_bytes(int64_t n);
/*
 * For several latents over the same rows, worked one at a time: `work` lends its L, and `twin` (of the same prior) its
 * K; both outlive this one. NULL: its own.
 */
thiele_status thi_dense_open(thi_dense *dense, thiele_context *ctx, int64_t n, const double *X, const thi_dense *work,
                             const thi_dense *twin);
void thi_dense_close(thi_dense *dense);
/* For n rows, no more than it was opened with: their K is there. */
void thi_dense_resize(thi_dense *dense, int64_t n);
/*
 * In place of thi_dense_prior, for what inducing variables leave of it: K = k(x, x') - V'V of the given inputs, V being
 * M x inputs->n. These may be fewer rows than it was opened with. Rounding leaves no negative variance. M n^2 flops.
 */
thiele_status thi_dense_residual(thi_dense *dense, thiele_context *ctx, const thiele_kernel *kernel,
                                 const thi_inputs *inputs, thi_matrix V);
/* K from the prior's kernel; with a twin, after it. */
thiele_status thi_dense_prior(thi_dense *dense, thiele_context *ctx, const thi_prior *prior);
/*
 * Conditions on sites: mu and v (n each; of the residual), log_z, a = K^-1 mu = nu - lambda mu. 2 n^3/3 flops, n^2 more
 * for each row whose site is weak (lambda k(x, x) < 1/1000) and 4 n^2 for each whose site is negative. Error: NUMERIC
 * when the posterior would not be proper.
 */
thiele_status thi_dense_condition(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu,
                                  double *mu, double *v);
/* The same of sites none of which is negative, without variances: log_z, a, and Lb in L. n^3/3 flops. */
thiele_status thi_dense_weigh(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu);
/* Right after thi_dense_condition: the lower triangle of L becomes that of C. n^3/3 flops. */
thiele_status thi_dense_precision(thi_dense *dense, thiele_context *ctx);
/*
 * After thi_dense_condition: theta_bar += d/d log theta of the collapsed bound at fixed sites, log_z + sum_n R_n(mu_n,
 * v_n), where g_n = dR/dmu and h_n = dR/dv (zero at the fixed point of the sites; each may be NULL: zero). Kbar = (a a'
 * - C)/2 + sym((G'g) a') + G' diag(h) G, G = I - K C. n^3 flops, and 3 n^3 more with h; K serves as work space and
 * is filled again, so that after an error it is garbage.
 */
thiele_status thi_dense_gradient(thi_dense *dense, thiele_context *ctx, const thi_prior *prior, const double *g,
                                 const double *h, double *theta_bar);
/* KL(q || p) = (mu'a + log_det - sum_n lambda v)/2, with the lambda and v of the last thi_dense_condition. */
double thi_dense_kl(const thi_dense *dense, const double *lambda, const double *v);
/* After thi_dense_condition: copies it into a predictor. n^3/3 flops. */
thiele_status thi_dense_freeze(const thi_dense *dense, thiele_context *ctx, const thi_prior *prior,
                               thi_predictor *predictor);

/* --- shared by dense.c and dense_gradient.c ---------------------------------------------------------------------- */
/* K, full, from inputs that are there. */
thiele_status thi_dense_fill(thi_dense *dense, thiele_context *ctx, const thi_prior *prior);
/* The lower triangle of L (n x n) becomes Lb, by the present scale. n^3/3 flops. */
thiele_status thi_dense_factor(const thi_dense *dense, thiele_context *ctx, thi_matrix L);

#endif

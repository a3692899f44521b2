/*
 * Variational posteriors over inducing variables (math.md sections 2 and 3; savigp-jmlr sections 4 and 5, appendices C
 * and D). Q latent functions, each with M inducing inputs Z, Kzz = L L', u = L w; q(w) is a Gaussian per latent, or a
 * mixture of K of them:
 *   q = sum_k pi_k prod_j N(m_kj, S_kj)      mu_n = o_n + V_n'm      v_n = k_nn - |V_n|^2 + V_n'S V_n,  V = L^-1 Kzx
 * S is full (a Cholesky factor with a log diagonal) or diagonal. The parameters of q are those of w (whitened) or of u
 * (plain): the paper's diagonal families are plain, and then mu = A'm, v = k_nn - |V_n|^2 + A_n'S A_n with A = L^-T V.
 * A third form, for one full Gaussian, is by sites: S = (I + T)^-1, m = S t, whitened by the factor L they came with.
 *
 * One evaluation is
 *   thi_variational_begin           factors Kzz, takes q (or sites)
 *   thi_variational_marginals       (mu, v) of some rows, at most the capacity
 *   thi_variational_pull            takes (g, h) of those rows back; repeat for more rows
 *   thi_variational_end             the KL term, and what was asked for of the gradient
 * Matrices are allocated by thi_variational_open only; after it there are the kernels' small work spaces and the
 * features of inputs. Rows are worked in blocks with single-threaded BLAS and reduced in a fixed order: the same bits
 * on any number of threads. Cost a latent with a full S: 5 B M^2 + O(M^3) flops, 3 B M^2 when quick; a diagonal one
 * costs O(K B M) beyond the solves that all components share.
 */
#ifndef THI_VARIATIONAL_H
#define THI_VARIATIONAL_H

#include "posterior/engine.h"
#include "posterior/natural.h"

typedef struct thi_shape {
    int latents, components; /* Q, K */
    int dims;                /* D */
    int64_t inducing;        /* M */
    int64_t capacity;        /* rows at a time, at most */
    bool diagonal, whitened;
    bool jensen;  /* of a mixture: the entropy bound of savigp-jmlr eq. 14 in place of the pairwise one */
    bool fixed_Z; /* no gradient in Z will be asked for */
    bool steps;   /* thi_variational_step will be */
    bool spares;  /* thi_variational_residual will be; never quick then */
    /*
     * Full S only: where Kzz is well conditioned, products with Kzz^-1 in place of solves (variational_quick.c). For
     * minibatches of many more rows than M: variances lose some digits, the noise of the batch is far larger.
     */
    bool quick;
    /*
     * Latents with the same number share kernel and Z, so that Kzz, V and their adjoints are made once for all of them.
     * Ascending from 0 without gaps; NULL: each latent its own.
     */
    const int *group;
} thi_shape;

/* Sites of one latent: S^-1 = I + T, S^-1 m = t in the coordinates w = L^-1 u of the factor L. T: lower triangle. */
typedef struct thi_sites {
    thi_natural sum;
    thi_matrix L;
} thi_sites;

/* What a gradient is wanted for; NULL: not wanted. Everything is added to. */
typedef struct thi_adjoints {
    double *q;            /* as q itself */
    double *const *theta; /* of each group, log parameters */
    double *const *mean;  /* of each group: parameters of the prior mean */
    double *const *Z;     /* of each group: D x M; several may be the same array */
} thi_adjoints;

/* What the engine's begin takes; see thi_variational_begin and thi_variational_narrow. */
typedef struct thi_variational_at {
    const double *const *Z;
    const double *q;
    thi_sites *sites;
    bool fresh, narrow;
} thi_variational_at;

typedef struct thi_variational thi_variational;

thiele_status thi_variational_open(thi_variational **out, thiele_context *ctx, const thi_shape *shape);
void thi_variational_close(thi_variational *v);
int thi_variational_groups(const thi_variational *v);

/*
 * The numbers of q, in turn: the K logits of pi (none when K = 1); then for each component, for each latent: m (M), and
 * the lower triangle of the Cholesky factor of S packed by columns with the logs of its diagonal, or the M logs of the
 * standard deviations of a diagonal one.
 */
int64_t thi_variational_size(const thi_shape *shape);
/* Where in q component k, latent j begins. */
int64_t thi_variational_offset(const thi_shape *shape, int component, int latent);

/*
 * prior and Z: one a group, borrowed until thi_variational_end. q as above, or NULL and sites (one a latent; K = 1, not
 * diagonal, whitened). Sites that came with another L are moved to the present one (they are the same in u). fresh: the
 * kernels or Z changed since the last call; else the factors are kept. Errors: NUMERIC (Kzz cannot be factored even
 * with jitter, or I + T is not positive definite), MEMORY.
 */
thiele_status thi_variational_begin(thi_variational *v, thiele_context *ctx, const thi_prior *prior,
                                    const double *const *Z, const double *q, thi_sites *sites, bool fresh);
/*
 * narrow: from now on no gradient in kernels, means and Z is asked for, and pulls do without their part of the work:
 * B M^2 flops of 3 B M^2 are left. Set between evaluations.
 */
void thi_variational_narrow(thi_variational *v, bool narrow);
/* The weights pi of the components. */
const double *thi_variational_weights(const thi_variational *v);
/* The largest jitter that a Kzz needed. */
double thi_variational_jitter(const thi_variational *v);
/* mu, v: Q x n x K (component slowest); mu holds the prior mean already. n <= capacity; X (D x n) is borrowed. */
thiele_status thi_variational_marginals(thi_variational *v, thiele_context *ctx, int64_t n, const double *X, double *mu,
                                        double *variance);
/* The part k_nn - |V_n|^2 of the variances of those rows, Q x n: what is left of the prior whatever q is. */
void thi_variational_residual(const thi_variational *v, double *r);
/* Q x n x K, borrowed until the next pull, which takes it: dF/dr, r that part, beyond h. M^2 flops a row and group. */
/* Sums of the pulls since begin, as in engine.h. */
int64_t thi_variational_sums(const thi_variational *v);
void thi_variational_take(thi_variational *v, double *to);
void thi_variational_put(thi_variational *v, const double *from);
void thi_variational_relieve(thi_variational *v, const double *c);
/*
 * g, h: Q x n x K, dF/dmu and dF/dv of the rows that thi_variational_marginals was last called for, the weights of the
 * minibatch and of the components folded in.
 */
thiele_status thi_variational_pull(thi_variational *v, thiele_context *ctx, const double *g, const double *h);
/*
 * *kl: KL(q || p), exact for K = 1; for a mixture an upper bound (variational_kl.c). Adjoints (may be NULL)
 * get the gradient of F - KL. expected (K numbers; may be NULL when K = 1): the rows' weighted sum of E of each
 * component without its pi, for the gradient of the logits. With sites given to begin, the gradient in theta, mean and
 * Z is that of the collapsed bound at fixed sites in u, and there is none in q.
 */
thiele_status thi_variational_end(thi_variational *v, thiele_context *ctx, const double *expected, double *kl,
                                  const thi_adjoints *adjoints);
/*
 * After thi_variational_end and before the next begin: a natural-gradient step of size rho of the sites that begin was
 * given, with the (g, h) pulled since: T <- (1 - rho) T - 2 rho V diag(h) V', t <- (1 - rho) t + rho (V g - 2
 * V diag(h) V'm). Whether I + T is positive definite shows at the next begin.
 */
void thi_variational_step(thi_variational *v, double rho, thi_sites *sites);
/* Copies one latent into a predictor. Between begin and the next begin. */
thiele_status thi_variational_freeze(const thi_variational *v, thiele_context *ctx, int latent,
                                     thi_predictor *predictor);

thiele_status thi_sites_alloc(thi_sites *sites, thiele_context *ctx, int64_t M);
void thi_sites_free(thi_sites *sites);

#endif

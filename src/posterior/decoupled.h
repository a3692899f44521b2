/*
 * Decoupled Gaussian processes (Cheng and Boots 2017; math.md section 6): the mean has a basis alpha of its own, which
 * may be large since every cost is linear in it, beside the basis beta of the covariance (basis/functions.h).
 *
 * Plain (theirs), B = L L', H = I + L'K_beta L:
 *   mu = m(x) + k(x, alpha) a       v = k(x, x) - k(x, beta) L H^-1 L' k(beta, x)
 *   KL = a'K_alpha a / 2 + log|H| / 2 - (M_beta - tr H^-1) / 2
 * Orthogonal (Salimbeni, Cheng, Boots and Deisenroth 2018): q(u_beta) by sites in the coordinates w = Lb^-1 u, K_beta =
 * Lb Lb', V = Lb^-1 k(beta, x), S = (I + T)^-1, m = S t as in sparse.h, and a mean orthogonal to it:
 *   mu = m(x) + V'm + o,  o = k(x, alpha) a - V'c,  c = Lb^-1 K_beta,alpha a       v = k(x, x) - |V|^2 + V'S V
 *   KL = KL(q(w) || N(0, I)) + (a'K_alpha a - |c|^2) / 2
 *
 * The quadratic term needs all of K_alpha; it is estimated from some of its columns I: with s = (M_alpha/|I|) a on I
 * and 0 elsewhere, E[s] = a, and s takes the place of one of the two a. Value and gradients are linear in s, so without
 * bias; with all columns they are exact. Of the orthogonal form what the columns say of the residual covariance is
 * taken, which is small where beta reaches: c_s = Lb^-1 K_beta,I s is subtracted with them.
 *
 * Several latent functions that share prior and bases: K_beta, V and all covariances with alpha are made once for them,
 * and a, (T, t) or L are those of each. Numbers of rows and latents are rows x latents, a column for each function.
 *
 * One evaluation is thi_decoupled_begin, then _marginals and _pull for some rows, again for others, then _end. Time and
 * memory are linear in M_alpha: covariances with alpha are made by portions of THI_DECOUPLED_PORTION functions, and
 * again for the pull, since keeping them would take rows x M_alpha numbers. With n rows 2 n M_alpha (2 D + 40) flops,
 * some 3 times as many with gradients in the kernel or points; 4 n M_beta^2 + O(M_beta^3) for beta. The same bits on
 * any number of threads.
 */
#ifndef THI_DECOUPLED_H
#define THI_DECOUPLED_H

#include "basis/functions.h"
#include "posterior/engine.h"
#include "posterior/natural.h"

enum { THI_DECOUPLED_PORTION = 512 };

typedef struct thi_decoupled_shape {
    int D, latents;
    bool orthogonal;
    int64_t beta;    /* most functions of the covariance */
    int64_t rows;    /* most rows at a time */
    int64_t columns; /* most columns of K_alpha that a KL term is estimated from */
    /* Another of the same sizes, which outlives it, in whose work space it computes: one at a time. NULL: its own. */
    const struct thi_decoupled *twin;
} thi_decoupled_shape;

/* One basis; X and log_c are D x n, log_c NULL: plain points. */
typedef struct thi_decoupled_basis {
    int64_t n;
    const double *X, *log_c;
} thi_decoupled_basis;

/* Some columns of K_alpha, distinct. */
typedef struct thi_decoupled_columns {
    int64_t count;
    const int64_t *index;
} thi_decoupled_columns;

/* The parameters of q, borrowed from begin to end. */
typedef struct thi_decoupled_q {
    thi_decoupled_basis alpha, beta; /* both generalised, or none; each may be empty */
    thi_matrix a;                    /* alpha.n x latents */
    thi_natural *sites;              /* of each latent: T or, plain, L in its place, beta.n x beta.n; t */
    thi_decoupled_columns columns;   /* that the engine's end takes the KL term from */
} thi_decoupled_q;

/* Adjoints; each is added to, NULL (or NULL data): not wanted. */
typedef struct thi_decoupled_bar {
    double *theta, *mean;        /* of the prior */
    thi_matrix a;                /* alpha.n x latents */
    double *alpha, *log_c_alpha; /* D x alpha.n */
    double *beta, *log_c_beta;   /* D x beta.n */
    const thi_matrix *L;         /* plain: lower triangles, one a latent */
} thi_decoupled_bar;

/* The engine's shape: latents in groups, each with a prior and bases of its own; q and bar are one a group. */
typedef struct thi_decoupled_family {
    thi_decoupled_shape shape; /* of all latents together */
    int groups;
    const int *group; /* of each latent, ascending from 0 without gaps */
} thi_decoupled_family;

typedef struct thi_decoupled thi_decoupled;

thiele_status thi_decoupled_open(thi_decoupled **out, thiele_context *ctx, const thi_decoupled_shape *shape);
void thi_decoupled_close(thi_decoupled *d);

/* Error: NUMERIC where H, K_beta or I + T cannot be factored. */
thiele_status thi_decoupled_begin(thi_decoupled *d, thiele_context *ctx, const thi_prior *prior,
                                  const thi_decoupled_q *q);
/* mu and v (n x latents) of n rows (X: D x n, borrowed until the pull). */
thiele_status thi_decoupled_marginals(thi_decoupled *d, thiele_context *ctx, int64_t n, const double *X, double *mu,
                                      double *v);
/*
 * Orthogonal: r = k(x, x) - |V|^2 of those rows, for the tighter bound of Gaussian noise (math.md section 9; it holds
 * for any mean, since given u_beta the mean of f may move as long as the KL pays for it); plain: 0, where the bound
 * stays what it is. It is the same for all latents. c: dF/dr of each latent beyond dF/dv, borrowed for the next pull.
 */
void thi_decoupled_residual(const thi_decoupled *d, double *r);
void thi_decoupled_relieve(thi_decoupled *d, const double *c);
/* g, h: dF/dmu and dF/dv of those rows, as mu and v. */
thiele_status thi_decoupled_pull(thi_decoupled *d, thiele_context *ctx, const double *g, const double *h,
                                 const thi_decoupled_bar *bar);
/* *kl as the columns tell it, and the rest of the gradient of F - KL. bar may be NULL. */
thiele_status thi_decoupled_end(thi_decoupled *d, thiele_context *ctx, const thi_decoupled_columns *columns, double *kl,
                                const thi_decoupled_bar *bar);
/*
 * Orthogonal, after the pulls and before the next begin: a natural step of size rho with the (g, h) pulled since begin,
 * as math.md section 3 has it: T <- (1 - rho) T - 2 rho V diag(h) V', t <- (1 - rho) t + rho V (g - 2 h V'm).
 * The sites, one a latent, may have room for more functions.
 */
void thi_decoupled_step(const thi_decoupled *d, double rho, thi_natural *sites);
/*
 * Orthogonal, after begin: the weights b (beta.n) of k(x, beta) in mu = m(x) + k(x, alpha) a + k(x, beta) b of a
 * latent; and t that gives such weights at the present a and T.
 */
void thi_decoupled_weights(const thi_decoupled *d, int latent, double *b);
void thi_decoupled_weigh(const thi_decoupled *d, int latent, const double *b, double *t);
/* After begin: what the covariances add to the KL, whatever the means. */
double thi_decoupled_spread(const thi_decoupled *d);
/* The largest jitter that K_beta needed; 0 for the plain form, which needs none. */
double thi_decoupled_jitter(const thi_decoupled *d);
/*
 * The predictor of a latent at the present q, after begin; the evaluation is over with it. In the plain form S = (I +
 * Lb'B Lb)^-1, and K_beta may need jitter.
 */
thiele_status thi_decoupled_freeze(thi_decoupled *d, thiele_context *ctx, int latent, thi_predictor *out);

/* A group of the engine. */
thi_decoupled *thi_decoupled_group(void *engine, int group);

#endif

/*
 * The local correction of PIC (Snelson and Ghahramani 2007; math.md section 5): x also sees the training rows D of its
 * own block. With w = L^-1 k(Z, x), V = L^-1 k(Z, X_D), Gamma = K_DD - V'V + noise I, r = k(X_D, x) - V'w, e =
 * Gamma^-1 y_D (y_D: targets less their prior mean) and q(w) = N(m, S):
 *   b    = w - V Gamma^-1 r
 *   mean = m(x) + r'e + b'm
 *   var  = k(x, x) - |w|^2 - r' Gamma^-1 r + b'S b
 * A mean alone needs no solve: m(x) + k(x, Z) g + k(x, X_D) alpha, alpha = e - Gamma^-1 V'm, g = L^-T (m - V alpha).
 * Any likelihood's sites come in the same form (math.md section 8): noise I becomes diag(lambda)^-1, never formed, e
 * that of sparse.h, and Gamma^-1 = s (C C')^-1 s - U'U as the dense posterior has it (dense.h); without sites s = 1 and
 * there is no U.
 *
 * A row with its variance takes (M + n)^2 multiply-adds for a block of n rows: M^2/2 for w, M n for r, n^2 for Gamma^-1
 * r, M n for b, M^2/2 for b'S b; its mean alone M + n. (C^-1 V' in place of V would save n^2/2 of them, and a block
 * would take M n^2/2 more: that is less work only from M rows a block on.)
 *
 * What a block needs is made when a row first asks for it (M^2 n + M n^2 + n^3/3 flops for n rows) and kept in a cache,
 * from which whatever was not used for longest is dropped. The cache is shared by all threads and contexts that
 * predict; its memory counts in the context that made an entry, and may outlive it.
 */
#ifndef THI_LOCAL_H
#define THI_LOCAL_H

#include "basis/partition.h"
#include "posterior/dense.h"
#include "posterior/predictor.h"

/* What a cache may hold, and the share of a context's limit that it stays within when that is less: as much as a call
 * needs must fit beside it. */
#define THI_LOCAL_CACHE_BYTES 256e6
#define THI_LOCAL_CACHE_SHARE 0.125

typedef struct thi_local_cache thi_local_cache;

typedef struct thi_local {
    thi_partition partition; /* with centres, without order */
    double *X, *y;           /* D x N, N: rows by blocks */
    int64_t *holders;        /* how many hold partition, X and y: parts of the latent functions of one model */
    double noise;            /* variance */
    double *lambda, *nu;     /* N each: sites, which take the place of y and noise; NULL: none */
    int64_t largest;         /* rows of the largest block */
    thi_local_cache *cache;
    double cache_most; /* bytes that it may hold: THI_LOCAL_CACHE_BYTES unless it is set */
} thi_local;

/*
 * Room for the rows of a partition with centres, which is copied. The caller fills in X and y, row i of which is row
 * order[i] of the table, and then calls thi_local_renew. It becomes a part of a predictor of a sparse posterior (one
 * component, R by a triangle, THI_CONDITIONAL_FULL) when that predictor's field `local` is set, which then owns it.
 */
thiele_status thi_local_create(thi_local **out, thiele_context *ctx, const thi_partition *partition);
/* One for another latent function of the same model, with the rows of `first`, which are held once. */
thiele_status thi_local_share(thi_local **out, thiele_context *ctx, const thi_local *first);
/* Room for the rows' sites: zeros, which the caller fills in before thi_local_renew, whose noise is not looked at then.
 */
thiele_status thi_local_hold_sites(thi_local *local, thiele_context *ctx);
/* Forgets all that was made of the rows: before it serves another predictor, or other rows. Nobody may be using it. */
void thi_local_renew(thi_local *local, double noise);
/* The three in one, for rows that are at hand. */
thiele_status thi_local_attach(thi_predictor *predictor, thiele_context *ctx, const thi_partition *partition,
                               const double *X, const double *y, double noise);
/* NULL does nothing. */
void thi_local_destroy(thi_local *local);

/*
 * What does not depend on q(w) of n rows, so that many q(w) can be followed with one projection: mean = m(x) +
 * r'e (to which B'm is to be added), the columns b of B (M x n), variance = k(x, x) - |w|^2 - r' Gamma^-1 r (to
 * which b'S b is). block: of each row, or NULL: that of the nearest centre. Error: ARGUMENT (a block that there is
 * not).
 */
thiele_status thi_local_project(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                const int64_t *block, double *mean, thi_matrix B, double *variance);
/*
 * Those of thi_predictor_marginals and thi_predictor_joint, for a predictor with a local part. Rows are taken
 * THI_PREDICT_WINDOW at a time and worked on block by block. block: as above. In the joint covariance rows of one block
 * share K - Q - r' Gamma^-1 r, rows of different blocks b'S b alone.
 */
thiele_status thi_local_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                  const int64_t *block, double *mean, double *variance, int64_t *clipped);
thiele_status thi_local_joint(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                              double *mean, double *covariance);

/* --- local_near.c --- */
/*
 * Marginals by the rows nearest to x in the partition's distances, THI_LOCAL_NEAR of those in the THI_LOCAL_SEARCHED
 * nearest blocks, in place of the rows of its own block: near a border half of what matters is beyond it. q(w) stays.
 * For k rows M k^2 + k^3/3 flops a row, the search, and the factors of all blocks that it has seen; where these do not
 * fit into the cache, k(Z, X) and M^2 k more.
 */
enum { THI_LOCAL_NEAR = 160, THI_LOCAL_SEARCHED = 5 };
thiele_status thi_local_near(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                             double *mean, double *variance, int64_t *clipped);
/*
 * The same of so many predictors side by side, twins of the first: mean and variance are n x twins. Beyond the first
 * each takes k^3/3 flops a row.
 */
thiele_status thi_local_near_twins(const thi_predictor *predictor, int twins, thiele_context *ctx, int64_t n,
                                   const double *X, double *mean, double *variance, int64_t *clipped);
/* Whether both have sites at the same rows, the same inducing inputs and kernel. */
bool thi_local_are_twins(const thi_predictor *a, const thi_predictor *b);

/* --- local_blend.c --- */
/* The blocks with the nearest centres, nearest first, and their distances; infinite where there are no more. 3 P D
 * flops. */
void thi_local_nearest(const thi_partition *partition, const double *x, int count, int64_t *block, double *distance);
/* Blocks that predict a row together, at most. */
enum { THI_LOCAL_BLENDED = 3 };
/* Those of a row and their weights, positive and summing to one. Returns how many there are. */
int thi_local_weights(const thi_partition *partition, const double *x, int64_t block[THI_LOCAL_BLENDED],
                      double weight[THI_LOCAL_BLENDED]);
/* Mean and variance as continuous functions of x; variance may be NULL, but spares no work. */
thiele_status thi_local_blend(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                              double *mean, double *variance, int64_t *clipped);

/* --- local_cache.c --- */
/* Of one block. */
typedef struct thi_local_factor {
    int64_t block;
    bool whole;        /* V, C, e and the scale are there; else only what means need */
    thi_inputs inputs; /* of X_D */
    double *alpha, *g; /* n, M */
    thi_matrix V, C;   /* M x n, n x n */
    double *e;         /* n */
    double *scale;     /* n: s; NULL: 1 */
    thi_matrix U;      /* negative sites x n */
    double bytes;
    /* Under the cache's lock: */
    bool cached;
    int64_t users;
    uint64_t used; /* when it was last asked for */
} thi_local_factor;

/*
 * Rows that a factor is of. lambda NULL: y and the noise in place of sites. V (M x n): known, or NULL. prior: of rows
 * with sites, holds K - V'V as thi_dense_residual makes it, or NULL. Borrowed.
 */
typedef struct thi_local_rows {
    int64_t n;
    const double *X, *y, *lambda, *nu, *V;
    const thi_dense *prior;
} thi_local_rows;
/* A whole factor that no cache holds. Error: NUMERIC, MEMORY. */
thiele_status thi_local_factor_make(const thi_predictor *predictor, thiele_context *ctx, const thi_local_rows *rows,
                                    thi_local_factor **out);
void thi_local_factor_free(thi_local_factor *factor);
/* One row by a factor of any rows. variance NULL: not wanted. */
thiele_status thi_local_one(const thi_predictor *predictor, thiele_context *ctx, const thi_local_factor *factor,
                            const double *x, double *mean, double *variance, int64_t *clipped);

thiele_status thi_local_cache_create(thi_local_cache **out, thiele_context *ctx, int64_t blocks);
void thi_local_cache_destroy(thi_local_cache *cache);
void thi_local_cache_empty(thi_local_cache *cache);
/* Bytes that it holds. */
double thi_local_cache_held(thi_local_cache *cache);
/*
 * A block's factor, from the cache or made; it stays until it is released, whoever else uses the cache. Error: NUMERIC,
 * MEMORY, LIMIT.
 */
thiele_status thi_local_acquire(const thi_predictor *predictor, thiele_context *ctx, int64_t block, bool whole,
                                thi_local_factor **out);
void thi_local_release(thi_local_cache *cache, thi_local_factor *factor);

#endif

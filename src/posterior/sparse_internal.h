/* What the files of the sparse engine share: work spaces and the parts of one block. */
#ifndef THI_SPARSE_INTERNAL_H
#define THI_SPARSE_INTERNAL_H

#include <math.h>

#include "posterior/dense.h"
#include "posterior/sparse.h"

/* Of one thread. Views are cut to the block at hand. */
typedef struct thi_sparse_desk {
    thiele_context own; /* inside, everything runs on this thread */
    thi_inputs inputs;  /* of the block */
    bool loaded;        /* with sites: V and R are those of the block */
    thi_matrix V, W;    /* M x largest; W: NULL unless needed */
    thi_matrix X, Xt;   /* M x largest, largest x M: gradients, and X with sites */
    thi_matrix G;       /* largest x largest: kind BLOCK only */
    double *r, *k, *e;  /* largest each: y - m(x), k(x, x) (with sites of kind DIAGONAL: R), work */
    thi_dense dense;    /* kind BLOCK with sites: a block's posterior with R as its prior covariance */
    /* Gradients away from the fixed point of the sites, made when they are needed: M x largest, and largest x largest
     * with kind BLOCK. */
    double *wide[2], *square[2];
} thi_sparse_desk;

/* A step of the sites of one block. */
typedef struct thi_sparse_move {
    double rho;
    const double *lambda, *nu; /* as they were */
} thi_sparse_move;

/* Of one lane: the share of its block. */
typedef struct thi_sparse_lane {
    thi_natural sums;
    thi_matrix VV;   /* M x M: sum of Vbar V' */
    double *numbers; /* the three below, one after the other */
    double *theta_bar, *mean_bar, *log_noise_bar, *Z_bar;
    double value;
    thi_sparse_move *move;
    double *V, *R;   /* of the block that marginals were last taken of, for its step; NULL: made again */
    const double *X; /* whose they are; NULL: nobody's */
    int64_t n;
    bool failed;
    char message[THI_MESSAGE_MAX];
} thi_sparse_lane;

struct thi_sparse_space {
    int desks;
    thi_sparse_desk *desk;
    thi_sparse_lane lane[THI_SPARSE_LANES];
    thi_matrix work; /* M x M */
    /* Where thi_sparse_pull takes expectations: the q of the engine, or with g and h what their pull makes of it. */
    const double *m;
    thi_matrix S;
};

/* --- sparse_block.c --- */
/* What thi_sparse_sum and thi_sparse_pull do for one block, on the context of its desk. */
typedef thiele_status (*thi_sparse_part)(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                         const thi_block *block, thi_sparse_lane *lane);
/* The V and R of the blocks: made, made and kept, or those that were kept if they are of the same rows. */
typedef enum thi_sparse_use { THI_SPARSE_FRESH, THI_SPARSE_KEEP, THI_SPARSE_AGAIN } thi_sparse_use;
/*
 * Does `part` for lanes <= THI_SPARSE_LANES blocks, each into its lane; of twins (sparse.h) one after the other, the
 * blocks of each `stride` after those of the one before.
 */
thiele_status thi_sparse_lanes(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t lanes,
                               const thi_block *block, int64_t stride, thi_sparse_part part, thi_sparse_use use);
/* V, r (where there are no sites), k(x, x) of a block; and with kind BLOCK: G = chol(Gamma). */
thiele_status thi_sparse_load(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                              const thi_block *block);
thiele_status thi_sparse_load_gamma(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block);
/* The sums of one block into its lane. */
thiele_status thi_sparse_sum_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                  const thi_block *block, thi_sparse_lane *lane);
/* B = B op(L)^-1 by strips of rows. */
thiele_status thi_sparse_solve_right(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B);

/* --- sparse_sites.c --- */
/*
 * A block with sites: V; X = V C; e; r the variances given w; *constant its share of log Z. With kind BLOCK R is in
 * dense.K and C in dense.L, both full; with kind DIAGONAL R is in k.
 */
thiele_status thi_sparse_condition(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, double *constant);
/* After that: W = V G'. */
thiele_status thi_sparse_influence(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block);
/* The sums of a block with sites. */
thiele_status thi_sparse_sum_sites(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, thi_natural *sums);

/* --- sparse_sites_pull.c --- */
/* The blocks have g and h: m and S of the space become those that make the adjoints of log Z those of the bound. */
thiele_status thi_sparse_tilt(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              double scale, thi_natural *tilted);
/* Of a block with sites: its value, Vbar into W, the adjoint of m(x) into e, and those of R into the lane. */
thiele_status thi_sparse_pull_sites(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block, thi_sparse_lane *lane);

/* What a row with R_nn = left loses in the bounds of kind NONE. */
static inline double thi_sparse_loss(const thi_sparse *sparse, double left)
{
    thi_penalty penalty = sparse->shape.penalty;
    double each = penalty == THI_PENALTY_NONE ? 0.0 : 0.5 * sparse->shape.weight[THI_RESIDUAL_NONE];
    return each * (penalty == THI_PENALTY_LOG ? log1p(left / sparse->noise) : left / sparse->noise);
}

/* Its derivative in left; that in the log noise is -left times this. */
static inline double thi_sparse_loss_slope(const thi_sparse *sparse, double left)
{
    thi_penalty penalty = sparse->shape.penalty;
    double each = penalty == THI_PENALTY_NONE ? 0.0 : 0.5 * sparse->shape.weight[THI_RESIDUAL_NONE];
    return each / (penalty == THI_PENALTY_LOG ? sparse->noise + left : sparse->noise);
}

static inline thi_matrix thi_sparse_view(thi_matrix A, int64_t rows, int64_t cols)
{
    return thi_matrix_view(A.data, rows, cols, rows);
}

#endif

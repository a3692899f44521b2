/* What the files of the sparse engine share: work spaces and the parts of one block. */
#ifndef THI_SPARSE_INTERNAL_H
#define THI_SPARSE_INTERNAL_H

#include "posterior/sparse.h"

/* Of one thread. Views are cut to the block at hand. */
typedef struct thi_sparse_desk {
    thiele_context own; /* inside, everything runs on this thread */
    thi_inputs inputs;  /* of the block */
    thi_matrix V, W;    /* M x largest; W: NULL unless needed */
    thi_matrix X, Xt;   /* M x largest, largest x M: gradients only */
    thi_matrix G;       /* largest x largest: kind BLOCK only */
    double *r, *k, *e;  /* largest each: y - m(x), k(x, x), work */
} thi_sparse_desk;

/* Of one lane: the share of its block. */
typedef struct thi_sparse_lane {
    thi_natural sums;
    thi_matrix VV;   /* M x M: sum of Vbar V' */
    double *numbers; /* the three below, one after the other */
    double *theta_bar, *mean_bar, *log_noise_bar, *Z_bar;
    double value;
    bool failed;
    char message[THI_MESSAGE_MAX];
} thi_sparse_lane;

struct thi_sparse_space {
    int desks;
    thi_sparse_desk *desk;
    thi_sparse_lane lane[THI_SPARSE_LANES];
    thi_matrix work; /* M x M */
};

/* --- sparse_block.c --- */
/* What thi_sparse_sum and thi_sparse_pull do for one block, on the context of its desk. */
typedef thiele_status (*thi_sparse_part)(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                         const thi_block *block, thi_sparse_lane *lane);
/* Does `part` for count <= THI_SPARSE_LANES blocks, each into its lane. */
thiele_status thi_sparse_lanes(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                               thi_sparse_part part);
/* V, r, k(x, x) of a block; and with kind BLOCK: G = chol(Gamma). */
thiele_status thi_sparse_load(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                              const thi_block *block);
thiele_status thi_sparse_load_gamma(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block);
/* B = B op(L)^-1 by strips of rows. */
thiele_status thi_sparse_solve_right(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B);

static inline thi_matrix thi_sparse_view(thi_matrix A, int64_t rows, int64_t cols)
{
    return thi_matrix_view(A.data, rows, cols, rows);
}

#endif

/*
 * The sufficient statistic: what rows say of the inducing variables w = L^-1 u, in natural parameters. Every method is
 * a sum over rows of these: q(w) is S^-1 = I + T, S^-1 m = t. They add and subtract (streams, forgetting, leaving a
 * block out), travel as bytes, and add up in a tree over the numbers of the blocks, so that the sum has the same bits
 * whatever was added where and in which order.
 */
#ifndef THI_NATURAL_H
#define THI_NATURAL_H

#include "linalg/linalg.h"

typedef struct thi_natural {
    thi_matrix T;    /* M x M, lower triangle */
    double *t;       /* M */
    double constant; /* of the log evidence: -sum_i [r_i' Gamma_i^-1 r_i + log|2 pi Gamma_i|] / 2 */
    double rows;     /* that it is the sum over */
    uint64_t basis;  /* a fingerprint of the kernel and Z that it belongs to; 0: nobody asks */
} thi_natural;

/* All zeros. */
thiele_status thi_natural_open(thi_natural *sum, thiele_context *ctx, int64_t M);
void thi_natural_close(thi_natural *sum);
void thi_natural_zero(thi_natural *sum);
/* sum = keep * sum + gain * other: (1, 1) adds, (1, -1) subtracts, (1 - rho, rho) moves, (c, 0) scales. */
void thi_natural_mix(thi_natural *sum, double keep, const thi_natural *other, double gain);

/* sum = other, of the same size. */
void thi_natural_copy(thi_natural *sum, const thi_natural *other);
/* Lower triangle of C = chol(I + T). M^3/3 flops. Error: NUMERIC. */
thiele_status thi_natural_root(const thi_natural *sum, thiele_context *ctx, thi_matrix C);
/*
 * The statistic of q(w) = N(m, S) from C = chol(S^-1), by products alone: T = C C' - I, t = C C'm. sum may be larger
 * than q: the rest of it stays. M^3 flops.
 */
thiele_status thi_natural_take(thi_natural *sum, thiele_context *ctx, thi_matrix C, const double *m);

/* --- the tree --------------------------------------------------------------------------------------------------------
 */

/* Blocks index * 2^level up to the next multiple, all of which are there. */
typedef struct thi_natural_node {
    int level;
    int64_t index;
    thi_natural sum;
} thi_natural_node;

/* Nodes whose siblings have not come yet: as many as the binary digits of the blocks so far when these come in order.
 */
typedef struct thi_natural_tree {
    int64_t M;
    uint64_t basis;
    int count, room;
    thi_natural_node *node; /* by the first of their blocks */
} thi_natural_tree;

void thi_natural_tree_open(thi_natural_tree *tree, int64_t M, uint64_t basis);
void thi_natural_tree_close(thi_natural_tree *tree);
/* Adds what block number `block` says. Errors: ARGUMENT (it is there; another size or basis), MEMORY. */
thiele_status thi_natural_tree_add(thi_natural_tree *tree, thiele_context *ctx, int64_t block, const thi_natural *sum);
/* The sum over all blocks, which sum (of the tree's size) becomes. The tree stays as it is. */
thiele_status thi_natural_tree_sum(const thi_natural_tree *tree, thiele_context *ctx, thi_natural *sum);
/* To bytes (*bytes is the caller's) and back: the nodes join those of a tree. Errors: FORMAT, ARGUMENT, MEMORY; then
 * the tree is to be closed. */
thiele_status thi_natural_tree_pack(const thi_natural_tree *tree, thiele_context *ctx, unsigned char **bytes,
                                    size_t *length);
thiele_status thi_natural_tree_unpack(thi_natural_tree *tree, thiele_context *ctx, const unsigned char *bytes,
                                      size_t length);

#endif

/*
 * The posterior of blocks for any likelihood: each row has a Gaussian site per latent function, which natural steps
 * bring to their fixed point, some blocks at a time. Sites are kept by row. What is shared by the steps of some blocks
 * (blocks_sites.c), of all of them (blocks_sites_all.c) and of those that are learned from (blocks_sites_some.c).
 */
#ifndef THI_BLOCKS_SITES_H
#define THI_BLOCKS_SITES_H

#include "expect/parallel.h"
#include "fit/blocks_state.h"

struct thi_bsites {
    int64_t N, room;             /* rows of the table, and of THI_SPARSE_LANES blocks */
    double *all_lambda, *all_nu; /* of all rows of the table, N x Q, the latent function slowest */
    thi_providers providers;
    thi_block *here; /* THI_SPARSE_LANES x Q: the blocks at hand, those of a latent function side by side */
    double *desk;    /* what follows, in one piece */
    /* Of the blocks at hand: room x Q, the latent function slowest; o: prior mean and offset. */
    double *lambda, *nu, *mu, *v, *g, *h, *o;
    double *f_mu, *f_v, *f_g, *f_h; /* Q x room, as expectations have it */
    double *E;
    double bound;
    int64_t left;    /* blocks that a pass left as they were, because expectations of theirs are no numbers */
    int64_t settled; /* the first so many rows of the table keep their sites */
};

/* The size of steps, and what the last rounds (of the same turn) had to gain. */
typedef struct thi_bsites_pace {
    double rho, before[2];
} thi_bsites_pace;

static const thi_bsites_pace thi_bsites_first_pace = {1.0, {INFINITY, INFINITY}};

/* Where there is more to gain than before steps were too long. */
void thi_bsites_adapt(const thi_bfit *fit, int64_t round, double gains, thi_bsites_pace *p);
/* How many of `count` blocks are at hand together from `first` on. */
int64_t thi_bsites_lanes(int64_t count, int64_t first);
/* Of a latent function. */
const thi_prior *thi_bsites_prior(const thi_bfit *fit, int q);
/* Rows of some blocks, with their sites. */
thiele_status thi_bsites_bring(thi_bfit *fit, int64_t count, const int64_t *block, int64_t *rows);
/* The blocks at hand as a latent function sees them. */
void thi_bsites_look_at(const thi_bfit *fit, int64_t count, int q, thi_block *block);
/*
 * Some blocks, steps as long as they gain much, of those that have no sites yet more: covariances are there. What the
 * last had to gain is added to *gains.
 */
thiele_status thi_bsites_visit(thi_bfit *fit, int64_t count, const int64_t *block, int64_t round, double rho,
                               double *gains);
/* log Z of the sites so far: what progress shows. */
double thi_bsites_log_z(const thi_bfit *fit);
/* Adds the part of the bound of some blocks beside log Z to *own, another look at each. */
thiele_status thi_bsites_slack(thi_bfit *fit, int64_t count, const int64_t *block, double *own);

#endif

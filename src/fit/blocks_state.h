/* What the phases of a fit by blocks share. */
#ifndef THI_BLOCKS_STATE_H
#define THI_BLOCKS_STATE_H

#include "basis/partition.h"
#include "data/batches.h"
#include "fit/blocks.h"
#include "fit/explore.h"
#include "posterior/local.h"

/* Blocks of which some rows are held out to see the error, and which of their rows: every so many. */
enum { THI_HELD_BLOCKS = 4, THI_HELD_EVERY = 10, THI_HELD_MOST = 64 };

typedef struct thi_bsites thi_bsites;

typedef struct thi_bfit {
    thi_problem problem;
    const thi_variational_settings *sparse;
    const thi_blocks_settings *settings;
    thi_blocks_result *result;
    bool closed;       /* Gaussian noise and one target: q* by sums alone */
    bool learn;        /* hyperparameters */
    bool climbs;       /* these by the evidence of blocks; else a variational fit has them */
    bool small;        /* blocks, while they are learned by sites: many rounds for each evaluation */
    thi_starts starts; /* of learning */
    double *Z;
    int64_t M;
    thi_partition partition;
    int64_t typical; /* rows of a block, on average */
    thi_rows held;   /* out of the first blocks */
    int latents;
    thi_sparse *engine;    /* one per latent function, as are: */
    thi_natural *sums;     /* of all blocks, or what those so far say of them */
    thi_natural *step;     /* of the blocks of a step */
    thi_natural_tree tree; /* of a pass without a schedule: blocks by their place in it */
    thi_bsites *sites;     /* unless it is closed */
    thi_rows buffer;       /* of THI_SPARSE_LANES blocks */
    thi_block block[THI_SPARSE_LANES];
    thi_local **local; /* PIC */
    double next_probe, next_snapshot;
    double closing;    /* seconds to be kept for freezing */
    int64_t looked_at; /* blocks that are looked at after it */
} thi_bfit;

/* --- blocks_rows.c --- */
/* Cuts the rows into blocks and opens what holds some of them. */
thiele_status thi_bfit_partition(thi_bfit *fit);
/* Rows of at most THI_SPARSE_LANES blocks into fit->block; returns how many rows these are. */
thiele_status thi_bfit_load(thi_bfit *fit, int64_t count, const int64_t *block, int64_t *rows);
/* The rows of all blocks for predictions by PIC. */
thiele_status thi_bfit_gather(thi_bfit *fit);

/* --- blocks_cost.c: what fits before the deadline --- */
/* Flops of the sums over some blocks of typical size; of their adjoints; of q; of the local factors of some blocks. */
double thi_bfit_sum_flops(const thi_bfit *fit, int64_t blocks);
double thi_bfit_pull_flops(const thi_bfit *fit, int64_t blocks);
double thi_bfit_set_flops(const thi_bfit *fit);
double thi_bfit_local_flops(const thi_bfit *fit, int64_t blocks);
/* Whether so many flops can be had before the deadline, with what the end takes after them. */
bool thi_bfit_affords(const thi_bfit *fit, double flops);
/* Keeps time for freezing the predictor. */
void thi_bfit_plan(thi_bfit *fit);
/* Seconds of a pass over all blocks and of freezing, or of what there can be of it. */
double thi_bfit_pass_seconds(const thi_bfit *fit);

/* --- blocks_sites.c: any likelihood, by sites of the rows (math.md section 8) --- */
thiele_status thi_bsites_open(thi_bfit *fit);
void thi_bsites_close(thi_bfit *fit);
/* Sites of all blocks, from none, some blocks at a time and then again while it helps and there is time. */
thiele_status thi_bsites_steps(thi_bfit *fit);
/*
 * Brings the sites of some blocks to their fixed point, at the present values and as if there were no other rows, and
 * has the bound there; and its gradient, which is added to. Parameters of the likelihood have none.
 */
thiele_status thi_bsites_converge(thi_bfit *fit, int64_t count, const int64_t *block, double *value);
thiele_status thi_bsites_pull(thi_bfit *fit, int64_t count, const int64_t *block, double *gradient);
/* Sites of the rows to the local parts of the predictors. */
thiele_status thi_bsites_lend(thi_bfit *fit);
/* The bound of the last round. */
double thi_bsites_bound(const thi_bfit *fit);
/* The first rows of the source are those of frozen local parts: their sites, of which the first `settled` stay. */
void thi_bsites_take(thi_bfit *fit, const thi_predictor *from, int64_t settled);
/* Adds some blocks at their present sites to the sums and steps until theirs are at rest, the others' as they are. */
thiele_status thi_bsites_join(thi_bfit *fit, int64_t count, const int64_t *block);

/* --- blocks_learn.c --- */
/* Factors Kzz at the present values of the hyperparameters. */
thiele_status thi_bfit_prepare(thi_bfit *fit);
/* L-BFGS on the log evidence of some blocks, and of more as long as there is time. */
thiele_status thi_bfit_learn(thi_bfit *fit);

/* --- blocks_steps.c --- */
/* All blocks once, or steps as the settings have them; a deadline or a stop ends them with what there is. */
thiele_status thi_bfit_steps(thi_bfit *fit);
/* In which order a pass goes over the blocks. */
void thi_bfit_order(const thi_bfit *fit, int64_t pass, thi_shuffle *order);

/* --- blocks_gradient.c --- */
/* The plain gradient in place of the natural one: moves what fit->sums stands for by fit->step. */
thiele_status thi_bfit_gradient(thi_bfit *fit, double rho);

/* --- blocks_noise.c --- */
/* The noise of predictions, by rows that are left out of what was frozen. */
thiele_status thi_bfit_noise(thi_bfit *fit, thi_fitted *fitted);

/* --- blocks_borders.c --- */
/* How far the predictions of what was frozen jump where blocks meet, if there is time to look. */
thiele_status thi_bfit_borders(thi_bfit *fit, const thi_fitted *fitted);

/* --- blocks.c --- */
/* The present state as a predictor; fit->local is lent to it. */
thiele_status thi_bfit_freeze(thi_bfit *fit, thi_fitted *fitted);
/* Between stages of learning: a posterior at the present values, with its snapshots, in a share of the time. */
thiele_status thi_bfit_show(thi_bfit *fit);
/* Between steps: the error on held-out rows and a snapshot, when they are due. */
thiele_status thi_bfit_look(thi_bfit *fit);

#endif

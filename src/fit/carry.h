/*
 * What a learner knows, for a learner of other parameters: rows that are at hand get sites anew; those of rows before
 * them are carried over as observations (anchor.h), with the power in (0, 1/2, 1/4, ... 2^-10, 0 too) of
 * their density that makes the rows at hand most likely. Where nothing has changed that is 1; where old rows say what
 * no longer holds, 0.
 */
#ifndef THI_FIT_CARRY_H
#define THI_FIT_CARRY_H

#include "fit/anchor.h"
#include "fit/kept.h"

/* Sites of rows in their order, Q x n. */
typedef struct thi_row_sites {
    double *lambda, *nu;
    double *weight; /* n: what forgetting has left of each; NULL: all of it */
} thi_row_sites;

/* sum (one a latent function) = what is known without these rows. All of them fit into memory. */
thiele_status thi_carry_without(thi_online *online, thiele_context *ctx, const thi_rows *rows, thi_row_sites sites,
                                thi_natural *sum);
/* The sites of rows that were learned before, as the present q would have them. */
thiele_status thi_carry_find(thi_online *online, thiele_context *ctx, const thi_rows *rows, thi_row_sites sites);
/*
 * A learner knows rows by the sites that its present q, of the rows or most of them, has for them (of Gaussian noise
 * they are the same whatever q is), by their weight, and what anchors (one a latent function) say, whose power it
 * chooses. NUMERIC where that is no proper posterior.
 */
thiele_status thi_carry_learn(thi_online *online, thiele_context *ctx, const thi_anchor *anchor, const thi_rows *rows,
                              thi_row_sites sites);

#endif

/*
 * Sparse regression by blocks: SoR, DTC, FITC, FIC, PITC and PIC (Quinonero-Candela and Rasmussen 2005; Snelson and
 * Ghahramani 2007), exact by one pass over the blocks, or anytime (Hoang, Hoang and Low 2015): steps on single blocks
 * after each of which there is a model.
 *
 *   phase       what                                                                  rows
 *   explore     hyperparameters by exact regression                                   some
 *   basis       inducing inputs Z                                                     some
 *   partition   k-means blocks in the kernel's own distances (PITC, PIC); for the     all
 *               others blocks are portions of work, and random ones tell most
 *   learn       log evidence by L-BFGS, in stages of more and more blocks             as many as time allows
 *   blocks      q*(u) by one pass, in random order                                    all
 *   steps       q(u) by stochastic natural gradients, rho_t = rho_0/(1 + tau rho_0    as many as time allows
 *               t)^kappa
 *
 * Blocks are drawn without replacement. Without a schedule q is that of the blocks so far and nothing else, so that it
 * is never surer than its data, and after one pass it is q*; with one, P times what a few blocks say stands for all.
 * Z stays where it was chosen.
 */
#ifndef THI_FIT_BLOCKS_H
#define THI_FIT_BLOCKS_H

#include "fit/variational.h"
#include "posterior/sparse.h"

/* A model of the family, or a combination of some that share their test conditional. */
typedef struct thi_blocks_form {
    double weight[THI_RESIDUAL_KINDS]; /* sum to 1 */
    thi_conditional conditional;
    bool local; /* PIC: predictions use the rows of their block */
} thi_blocks_form;
/* "pic", "0.3 fitc + 0.7 dtc". False: it is none. */
bool thi_blocks_is_form(const char *text);
/* Error: ARGUMENT (a model that cannot be combined, weights that do not sum to 1). */
thiele_status thi_blocks_form_parse(thi_blocks_form *form, thiele_context *ctx, const char *text);

/* Zero stands for the default everywhere. */
typedef struct thi_blocks_settings {
    thi_blocks_form form;
    int64_t blocks;           /* P; default: blocks of about max(M, 500) rows */
    const char *column;       /* whose values are the blocks, by the last dimension of X (thi_encoder); NULL: none */
    bool anytime, gradient;   /* gradient: steps by the plain gradient (their equations 14, 17, 18), for comparison */
    double rho_0, tau, kappa; /* 0: no schedule */
    int64_t step_blocks;      /* blocks a step; default: so many that they have some 2,000 rows, at most 8 */
    thi_snapshot snapshot;
} thi_blocks_settings;

typedef struct thi_blocks_result {
    thi_fit_result fit; /* iterations: steps, or those of L-BFGS; evaluations: of blocks */
    int64_t inducing, blocks, largest;
    double passes;     /* over the rows, by steps at the final values */
    double rows;       /* that the value is of: those seen, or all where some stand for them */
    bool estimate;     /* the value, because some rows stand for others, or were seen at other hyperparameters */
    double held_error; /* root mean square on the rows that were held out; NaN: none were */
    int64_t borders; /* points where two blocks meet that were looked at (PIC), times latent functions; 0: none were */
    double jump_median, jump_largest; /* there, between the two predictions, in their standard deviations */
    double partition_seconds, learn_seconds;
} thi_blocks_result;

/*
 * hypers and spec have the learned values at the end. For Gaussian noise and one target. sparse: inducing inputs,
 * iterations, restarts, epochs, condition. Errors: ARGUMENT, DATA, NUMERIC, MEMORY.
 */
thiele_status thi_fit_blocks(const thi_problem *problem, const thi_variational_settings *sparse,
                             const thi_blocks_settings *settings, thi_blocks_result *result, thi_fitted *fitted);

#endif

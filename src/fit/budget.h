/*
 * The time plan of a fit: everything that a deadline decides. The phases before the last get shares of what is left
 * when they begin (one table, budget.c); learning gets the rest but what conditioning and saving are known to need; and
 * the speed of the machine is what the fit has seen of it, which is less beside other programs. Without a deadline
 * nothing is cut short.
 */
#ifndef THI_BUDGET_H
#define THI_BUDGET_H

#include "fit/driver.h"

typedef enum thi_share {
    THI_SHARE_KERNEL,    /* a choice among kernels */
    THI_SHARE_NOISE,     /* and of noise, on some rows */
    THI_SHARE_COUPLE,    /* how outputs of a network are coupled, on some rows */
    THI_SHARE_NODES,     /* and its nodes, each by itself */
    THI_SHARE_FAVOURITE, /* all of a fit that has rivals, before them */
    THI_SHARE_EXPLORE,   /* hyperparameters by a dense method on samples of the rows */
    THI_SHARE_BASIS,     /* inducing inputs chosen among the rows */
    THI_SHARE_PASS,      /* one pass over all rows: inducing inputs are as many as it has time for */
    THI_SHARE_PARTITION, /* rows cut into blocks */
    THI_SHARE_FIRST,     /* first sites and parameters of a likelihood, from a block of rows */
    THI_SHARE_WARM,      /* all of it on a sample, before minibatches */
    THI_SHARE_SITES,     /* natural steps, before another optimiser of q; a sample of the rows, before all of them */
    THI_SHARE_STAGE,     /* one of the samples that grow to all rows */
    THI_SHARE_END,       /* q from all rows, after minibatches */
    THI_SHARE_STEP,      /* one step of many */
    THI_SHARE_LOOK,      /* looks at held-out rows */
    THI_SHARE_VALUES,    /* hyperparameters by a variational fit, before blocks */
    THI_SHARE_SMALL,     /* the same before a decoupled fit, whose own bound goes on from there */
    THI_SHARE_STEPS,     /* steps of a decoupled fit, before its sweeps */
    THI_SHARE_TRIAL,     /* steps that try a rate */
    THI_SHARE_LEARN,     /* hyperparameters, where a posterior by steps or draws follows */
    THI_SHARE_REPLACE,   /* another model in place of one that is no good */
    THI_SHARE_HOLDOUT,   /* all of a fit without the held-out rows, where one with them follows */
    THI_SHARE_UNSCORED,  /* the same where none follows */
    THI_SHARE_SCORES,    /* predictions of the held-out rows */
    THI_SHARES
} thi_share;

/* Seconds until the deadline, not below 0; infinite without one. */
double thi_budget_left(const thi_driver *driver);
/* The share itself, and that of them. */
double thi_budget_share(thi_share share);
double thi_budget_part(const thi_driver *driver, thi_share share);
/* What so many flops will take, and how many a share of the time left buys, at the speed seen so far. */
double thi_budget_seconds(const thi_driver *driver, double flops);
double thi_budget_flops(const thi_driver *driver, thi_share share);
/*
 * Without a deadline work has limits of its own: flops that are worth it, and rows of what grows with their cube, both
 * scaled by the effort that was asked for.
 */
double thi_budget_work(const thi_driver *driver, double flops);
double thi_budget_rows(const thi_driver *driver, double rows);
/* So many flops took so long. */
void thi_budget_took(thi_driver *driver, double flops, double seconds);
/*
 * A phase may take its share, or all but the seconds kept for what follows: returns the deadline of the whole, to be
 * given back after it. That a phase was ended by its share is then forgotten.
 */
double thi_budget_lend(thi_driver *driver, thi_share share);
double thi_budget_keep(thi_driver *driver, double seconds);
/* The first of so many equal parts. */
double thi_budget_split(thi_driver *driver, int64_t parts);
void thi_budget_restore(thi_driver *driver, double deadline);
/* Beyond the deadline, for what cannot be left out: a share of the whole, and a moment. A stop before it is forgotten.
 */
void thi_budget_extend(thi_driver *driver, thi_share share);

#endif

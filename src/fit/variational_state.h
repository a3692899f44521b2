/*
 * What the files of the variational fit share: everything that is allocated once, and one evaluation of the bound.
 *
 *   variational.c             phases: explore, choose Z, optimise, freeze
 *   variational_state.c       opening, closing, between the optimiser's vector and the model
 *   variational_pass.c        the bound and its gradient over some rows or all of them
 *   variational_sites.c       natural steps to their fixed point
 *   variational_stages.c      Gaussian noise: samples that grow
 *   variational_noise.c       Gaussian noise: its best value and q by one pass
 *   variational_nested.c      L-BFGS over hyperparameters and Z with sites at their fixed point; collapsed
 *   variational_gradient.c    L-BFGS over q and the rest, together or by turns
 *   variational_white.c       q from sites that stay in w; diagonal ones
 *   variational_phi.c         first values of the likelihood's parameters
 *   variational_modes.c       modes of the posterior
 *   variational_first.c       where optimisers of q itself begin
 *   variational_members.c     natural steps of any family in its own numbers
 *   variational_again.c       from where a model is, on other rows
 *   variational_stochastic.c  minibatches: natural steps with Adam, or Adam and the like for all
 */
#ifndef THI_FIT_VARIATIONAL_STATE_H
#define THI_FIT_VARIATIONAL_STATE_H

#include "fit/pass.h"
#include "fit/variational.h"
#include "posterior/variational.h"

/* Parts of the optimiser's vector, in this order. */
enum { THI_PART_Q, THI_PART_KERNEL, THI_PART_PHI, THI_PART_Z, THI_PARTS };

/* The optimiser's vector: q (none with sites), free hypers of kernels and means, of the likelihood, Z unless fixed. */
typedef struct thi_vfit_vector {
    int64_t first[THI_PARTS + 1];
    double *x, *bar; /* present values; gradient of bound + log prior */
    double *base;    /* first guesses of all hypers */
} thi_vfit_vector;

/* Where gradients in kernels, means and Z go, one a group. */
typedef struct thi_vfit_bars {
    double **theta, **mean, **Z;
} thi_vfit_bars;

typedef struct thi_vfit {
    thi_problem problem;
    const thi_variational_settings *settings;
    thi_variational_result *result;
    bool natural;   /* q by sites */
    bool quick;     /* minibatches: see thi_shape */
    bool conjugate; /* Gaussian noise: a natural step of size 1 over all rows is the optimum */
    double tolerance;

    int64_t batch; /* rows a step; the capacity may be larger */
    thi_shape shape;
    double *Z; /* D x M x groups */
    const double **Z_of;
    bool fresh;   /* kernels or Z changed since the last begin */
    bool applied; /* kernels, likelihood and Z are those of x */
    bool narrow;  /* no gradient in kernels, means and Z was asked for last */
    thi_vfit_vector vector;
    thi_vfit_bars bars;
    thi_adjoints bar; /* of the present evaluation */
    thi_pass pass;

    thi_sites *sites; /* Q, or NULL */
    bool white;       /* they stay in w as kernels and Z move, else in u */
    struct {
        double *q;
        thi_matrix work;
        thi_matrix *L; /* factors of each group's Kzz, where q is diagonal in u; else NULL */
    } whitened;

    double passes; /* over the rows, at most */
} thi_vfit;

/* --- variational.c --- */
/* The posterior as it was begun last, with what its rows say where that is what q was made of. */
thiele_status thi_vfit_freeze(thi_vfit *fit, thi_fitted *fitted);

/* --- variational_state.c --- */
/*
 * Allocates everything for M inducing inputs (D x M, copied) and steps of so many rows. The context and the rest are
 * set before.
 */
thiele_status thi_vfit_open(thi_vfit *fit, int64_t M, const double *Z, int64_t batch, bool learn_prior);
void thi_vfit_close(thi_vfit *fit);
int64_t thi_vfit_size(const thi_vfit *fit);
/* x (may be fit->vector.x) becomes the present values. NUMERIC when a hyperparameter has run away. */
thiele_status thi_vfit_take(thi_vfit *fit, const double *x);
/* Moves runaway hyperparameters of x back to where they may be. */
void thi_vfit_confine(const thi_vfit *fit, double *x);

/* --- variational_pass.c --- */
/* Bound, its parts and what is wanted at the present values. NUMERIC where it is not finite. */
thiele_status thi_vfit_evaluate(thi_vfit *fit, const thi_part *part, thi_wanted wanted);
/* Readies q without looking at rows: for freezing. */
thiele_status thi_vfit_begin(thi_vfit *fit);
/* The next rows, at most so many; 0: there are no more. */
typedef int64_t (*thi_next_rows)(void *arg, int64_t most, int64_t *row);
/*
 * What a natural step needs from as many rows as `next` has, each with the weight 1: fit->pass.at.seen of them were
 * whole. The bound is of no use then.
 */
thiele_status thi_vfit_pull_some(thi_vfit *fit, thi_next_rows next, void *arg);
/*
 * E of the rows that were looked at last, which stand for all, at the same marginals and the present parameters of the
 * likelihood: fit->pass.at.expected, and the gradient in those parameters.
 */
thiele_status thi_vfit_expect_again(thi_vfit *fit);
/* A natural step of the sites with what was pulled. */
void thi_vfit_step(thi_vfit *fit, double rho);
/* True when the deadline, the progress callback or the number of passes ends the fit. */
bool thi_vfit_stopped(const thi_vfit *fit);
/* Progress after an evaluation. value: what is shown; size: of the step, NaN for none. */
void thi_vfit_report(thi_vfit *fit, double value, double size, int64_t rows);

/* --- variational_sites.c --- */
/* Numbers in a copy of all sites. */
int64_t thi_sites_size(const thi_shape *shape);
void thi_sites_keep(const thi_vfit *fit, double *copy);
void thi_sites_put(thi_vfit *fit, const double *copy);
void thi_sites_clear(thi_vfit *fit);
void thi_sites_scale(thi_vfit *fit, double factor);
/* Sites that were kept at the present values, whatever the sites are now. */
thiele_status thi_sites_return(thi_vfit *fit, const double *copy);

/* Room for thi_sites_converge. */
typedef struct thi_sites_work {
    double *from, *to;
} thi_sites_work;
thiele_status thi_sites_work_open(thi_sites_work *work, const thi_vfit *fit);
void thi_sites_work_close(thi_sites_work *work);
/* The sites become work->from + rho (sites - work->from). */
void thi_sites_mix(thi_vfit *fit, const thi_sites_work *work, double rho);
/*
 * Natural steps over these rows until one changes the bound by less than `tolerance` nats, at most so many. The bound
 * never falls by more; a step that would lower it, or make q improper, is halved. Sites that are of no use are given
 * up for q = p. What the sites are at the end has not been evaluated yet.
 */
thiele_status thi_sites_converge(thi_vfit *fit, const thi_part *part, const thi_sites_work *work, double tolerance,
                                 int steps);

/* --- variational_noise.c --- */
/*
 * Gaussian noise, sites: q at its optimum for the rows, or those there is time for, and the bound there, by one pass;
 * learn: at the noise that is best for these rows, kernels and Z.
 */
thiele_status thi_vfit_profile(thi_vfit *fit, bool learn);

/* --- variational_white.c --- */
/* Whether a Kzz, as it was when the engine last took the sites, is so near to singular that they should stay in w. */
bool thi_white_needed(const thi_vfit *fit);
/*
 * The numbers of q from the sites, or those of the nearest diagonal q where the family is. NUMERIC when they give none.
 */
thiele_status thi_white_take(thi_vfit *fit);

/* --- variational_phi.c --- */
/*
 * Before a search on some rows: natural steps and the optimum of the likelihood's parameters by turns. The source has
 * no more rows than the capacity. Leaves sites that belong to the new parameters nearly.
 */
thiele_status thi_vfit_first_phi(thi_vfit *fit);

/* --- variational_modes.c --- */
/* Modes of the posterior, the best first: numbers of q of one component (a full factor whatever the family). */
typedef struct thi_modes {
    int count;
    double *q, *bound;
    bool weighed; /* the bounds are of all rows; else that of the first is */
} thi_modes;
/*
 * At most so many, at the present hyperparameters and Z; `one` has one component by sites, and is at a mode, which is
 * all that is looked at where one is wanted and the likelihood tells f from -f. Its sites are of no use afterwards. To
 * be closed after an error too.
 */
thiele_status thi_modes_find(thi_vfit *one, int most, thi_modes *modes);
/* The present q of all rows, with this bound, takes the place of the mode that it is nearest to, and is the first. */
thiele_status thi_modes_lead(thi_vfit *one, double bound, thi_modes *modes);
void thi_modes_close(thi_modes *modes);
/* The sites become those of q = N(z, I) in w, z a draw of the prior by this number. */
void thi_modes_draw(thi_vfit *one, int draw);

/* --- variational_first.c --- */
/* The first numbers of q in x: at modes, as many as there are; none: the prior. */
void thi_vfit_start_q(thi_vfit *fit, const thi_modes *modes);
/* All components at the best mode: the bound is that of one. */
void thi_vfit_start_equal(thi_vfit *fit, const thi_modes *modes);

/* --- variational_members.c --- */
/* Room for natural steps in the numbers of q. */
typedef struct thi_members {
    double *from, *slope, *weight;
    thi_matrix square[2];
} thi_members;
thiele_status thi_members_open(thi_members *work, const thi_vfit *fit);
void thi_members_close(thi_members *work);
/*
 * Natural steps of all components over all rows until one changes the bound by less than `tolerance` nats, at most so
 * many; the bound never falls. NUMERIC when there is no bound where they begin.
 */
thiele_status thi_members_converge(thi_vfit *fit, thi_members *work, double tolerance, int steps);

/* --- the optimisers: each leaves the model at its end, begun --- */
/* coarse: q need not be at its optimum to the last digits. */
/* Gaussian noise: L-BFGS as below on samples that grow; then q by one pass over all rows. */
thiele_status thi_vfit_stages(thi_vfit *fit);
thiele_status thi_vfit_nested(thi_vfit *fit, const char *phase, int iterations, bool coarse);
thiele_status thi_vfit_lbfgs(thi_vfit *fit);
/* Any family: L-BFGS over hyperparameters and Z with q at its optimum by natural steps; modes as q began at. */
thiele_status thi_vfit_members(thi_vfit *fit, const thi_modes *modes);
thiele_status thi_vfit_alternate(thi_vfit *fit);
thiele_status thi_vfit_stochastic(thi_vfit *fit, const char *rule, double rate);

#endif

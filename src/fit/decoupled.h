/*
 * Decoupled Gaussian processes on minibatches (Cheng and Boots 2017, Algorithm 1; Salimbeni et al. 2018 for the
 * orthogonal form): a mean with M_alpha basis functions, a covariance with M_beta, any likelihood with one latent
 * function, posterior/decoupled.h for the formulas.
 *
 *   phase       what
 *   explore     hyperparameters by exact regression or a dense method on some rows, or the median trick on one batch
 *   basis       orthogonal: beta among some rows
 *   rate        a few steps with each of several rates from the same start, where none was given: the one whose bound
 *               is highest at their end is taken
 *   fit         a step a minibatch: new functions from its rows up to the limits (alpha; plain: beta too), a natural
 *               step of the sites (orthogonal), Adam with rate/(1 + 0.1 sqrt t) for a, L, hyperparameters and, where
 *               asked for, the points and length-scales of the functions
 *   sweeps      the weights of the mean at their optimum for these hyperparameters (decoupled_sweeps.c), Gaussian noise
 *               with them; some rows are held out at first, and say which noise and which share of the variances
 *               predictions want (predictive.h)
 *   end         orthogonal: sites at their optimum given the rest over all rows, or those there is time for
 *
 * With sweeps hyperparameters and beta are those of a variational fit with as many inducing inputs (phase "fit" of
 * variational.h before this one's), whose bound this one's begins at; the steps only fill the bases, and sweeps raise
 * the bound from there, the noise with them. While they are learned, hyperparameters hold still for the first steps.
 * Adam's steps of a and L are divided by k of the function with itself (the paper's Jacobi preconditioner, remark 2 of
 * appendix A).
 *
 * Shared: incremental sparse regression (iVSGPR; Cheng and Boots 2016). Mirror ascent with the KL as its divergence is
 * the natural step of the sites. K_beta's Cholesky factor of more points begins with that of fewer, and so do the
 * coordinates w: where T = 0 for the new ones q is as it was before, whatever the points.
 *
 * Memory: (batch + columns + M_beta) x (512 + 4 M_beta)
 * numbers and some 10 D (M_alpha + M_beta), whatever the rows; sweeps: max(65,536, 4 M_alpha) rows x max(M_beta, 512)
 * and 256 M_alpha.
 */
#ifndef THI_FIT_DECOUPLED_H
#define THI_FIT_DECOUPLED_H

#include "fit/variational.h"

typedef enum thi_decoupled_form {
    THI_DECOUPLED_AUTO,
    THI_DECOUPLED_PLAIN,
    THI_DECOUPLED_ORTHOGONAL
} thi_decoupled_form;

/* Zero stands for the default everywhere. */
typedef struct thi_decoupled_settings {
    int64_t alpha;           /* M_alpha; default 4096, at most the rows */
    int64_t beta;            /* M_beta; default 500, at most a half of the rows; negative: none */
    int64_t batch;           /* rows a step; default 1024 */
    int64_t added;           /* new functions a step; default 128, or so many that an epoch reaches the limits */
    int64_t columns;         /* of K_alpha that the KL term is estimated from; default 256 */
    thi_decoupled_form form; /* auto: orthogonal when M_alpha > M_beta */
    bool shared;             /* one basis, beta, for both; it grows from the rows of the steps */
    bool generalised;        /* functions with length-scales of their own; one se or Matern kernel */
    bool learn_basis;        /* points, and length-scales where generalised */
    bool median;             /* hyperparameters begin by the median trick, and are learned by the bound from there */
    bool learn_hypers;       /* by this bound, as always without sweeps; from where exploring led */
    int sweeps;              /* at most; default 10; negative: none */
    double rate;             /* gamma_0; default: chosen among 0.1, 0.01, 0.001 */
    thi_snapshot snapshot;   /* the first when beta is there: with sweeps after the variational fit */
} thi_decoupled_settings;

typedef struct thi_decoupled_result {
    thi_fit_result fit;
    int64_t alpha, beta, batch;
    bool orthogonal;
    double rate;
    int64_t bound_rows; /* that the bound is from */
    bool judged;        /* rows that were held out have said which noise predictions want (predictive.h) */
} thi_decoupled_result;

/*
 * hypers and spec have the learned values at the end. sparse: iterations (default 300, without sweeps 2,000), restarts,
 * condition, basis. Errors: ARGUMENT (several latent functions, generalised with another kernel), DATA, NUMERIC,
 * MEMORY.
 */
thiele_status thi_fit_decoupled(const thi_problem *problem, const thi_variational_settings *sparse,
                                const thi_decoupled_settings *settings, thi_decoupled_result *result,
                                thi_fitted *fitted);

#endif

/*
 * Sparse variational inference for any likelihood (savigp-jmlr; math.md sections 2 and 3): M inducing inputs Z, q(u) a
 * Gaussian or a mixture, learned together with hyperparameters and Z by raising
 *   bound = E_q[log p(y | f)] - KL(q || p)
 * from rows in memory or streamed. Phases: hyperparameters are explored on a few hundred rows with a dense method
 * (search.h); Z is chosen (basis.h); all is optimised; a last pass over the rows gives the bound, and q is frozen.
 * Where natural steps take minibatches, the whole is first brought near on some thousand rows at once. With a deadline
 * the phases before the last share it.
 *
 *   optimizer   what is stepped                                         rows        q
 *   natural     sites of q by natural gradients; the rest by Adam       minibatch   one full Gaussian
 *               the same to convergence within each evaluation of an    all         one full Gaussian
 *               L-BFGS over the rest (Gaussian noise: one step, which
 *               is Titsias' collapsed bound, the tighter one of 2025)
 *               the same with natural steps of each component in its    all; the    any
 *               own numbers, from the modes of the posterior            rest also
 *                                                                       minibatch
 *   lbfgs       q and the rest together, from where natural steps led   all         any
 *               with one component
 *   alternate   by turns q, kernel, likelihood, Z (savigp-jmlr 9.1),    all         any
 *               then on in the direction of all turns
 *   adam, adadelta, momentum: all of it, rules.h                        minibatch   any
 *
 * The last six begin at a q that natural steps with one component found at the first hyperparameters (on some rows
 * where they take minibatches); natural steps of another family where one component ends that goes all its way, by all
 * rows or by minibatches, so that several are never behind one. "auto": natural. Memory beyond the rows:
 * O(batch M + M^2) a latent and component. The same bits on any number of threads.
 */
#ifndef THI_FIT_VARIATIONAL_H
#define THI_FIT_VARIATIONAL_H

#include "fit/search.h"

/* Zero stands for the default everywhere. */
typedef struct thi_variational_settings {
    int64_t inducing;     /* M; default: all distinct rows up to 500/sqrt(latents), at least 100 */
    const char *basis;    /* basis.h; default "kmeans" */
    const double *Z;      /* given inducing inputs, D x Z_count, in place of chosen ones */
    int64_t Z_count;      /* of them */
    bool fixed_Z;         /* Z is not learned */
    bool all_Z;           /* the given Z is one set for each group, D x Z_count x groups */
    bool condition;       /* hyperparameters and Z stay as they are; only q is fitted */
    int components;       /* K; default 1 */
    bool diagonal, plain; /* family of q; plain: diagonal in u, not in w */
    bool jensen;          /* a mixture's entropy by savigp-jmlr eq. 14, not by pairs */
    bool even;            /* the likelihood cannot tell f from -f */
    const char *optimizer;
    bool collapsed;   /* Gaussian noise: Titsias' bound over all rows, whatever the optimizer */
    int64_t batch;    /* rows at a time; default all up to 4096 (16384: natural, Gaussian noise), else 1024 or 2 M */
    double rate;      /* of Adam (0.01; beside natural steps 0.02), AdaDelta (1), momentum (0.001) */
    int epochs;       /* passes over the rows, at most; default of minibatches: 5,000 steps, 10 to 100 epochs */
    int iterations;   /* steps, iterations (natural 200, lbfgs 500) or cycles (200); -1: hyperparameters and Z stay */
    double tolerance; /* stop when this many nats a row are gained no more, over some steps; default 1e-5 */
    int restarts;     /* further random starts while exploring */
    thi_starts *explored; /* gets what exploring found, the caller's; NULL: not wanted */
} thi_variational_settings;

typedef struct thi_variational_result {
    thi_fit_result fit;    /* iterations and evaluations of all phases */
    int64_t inducing;      /* M */
    int64_t batch;         /* rows at a time */
    const char *optimizer; /* the one that was used; "collapsed" where that was */
    int64_t bound_rows;    /* rows that the final bound is from: fewer than all when the fit was ended early */
    double epochs;         /* passes over the rows while optimising */
} thi_variational_result;

/*
 * hypers holds first guesses in and the learned values out; spec has them too. fitted: latent as in search.h; weight
 * (room for K, may be NULL when K = 1); value is the bound; jitter. A deadline or a cancelled fit ends with the best or
 * last proper state. Errors: ARGUMENT (settings that do not go together), DATA, NUMERIC (not even the first bound can
 * be computed), MEMORY.
 */
thiele_status thi_fit_variational(const thi_problem *problem, const thi_variational_settings *settings,
                                  thi_variational_result *result, thi_fitted *fitted);
/*
 * The same from where a model is, for one full Gaussian and rows in memory: hypers and settings->Z (of all groups) are
 * present values, of which iterations and tolerance say how far they go on. No exploring, no choice of Z.
 */
thiele_status thi_fit_variational_again(const thi_problem *problem, const thi_variational_settings *settings,
                                        thi_variational_result *result, thi_fitted *fitted);

#endif

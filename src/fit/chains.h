/*
 * Markov chains over the latents at the training rows of a dense model, hyperparameters fixed:
 *   f_q = o_q + r_q,  r_q = L_g w_q,  K_g + jitter = L_g L_g',  w ~ N(0, I),  y ~ p(y | f)
 * (augmented-aaci section 5.1 and the samplers that it compares with). Several chains side by side, one a thread; what
 * a chain does depends on the seed and its number alone.
 */
#ifndef THI_CHAINS_H
#define THI_CHAINS_H

#include "fit/diagnostics.h"
#include "fit/driver.h"
#include "fit/spec.h"
#include "posterior/predictor.h"

/*
 * Inducing inputs: the draws are those of u = f(Z), under the prior of FITC (Snelson and Ghahramani 2006),
 *   f_i = o_i + k(x_i, Z) Kzz^-1 u + d_i,  d_i ~ N(0, k(x_i, x_i) - k(x_i, Z) Kzz^-1 k(Z, x_i)) one by one,
 * which with Z = X is the model itself.
 */
typedef struct thi_chains_basis {
    const double *Z; /* D x M x groups, borrowed; NULL: all rows */
    int64_t M;
} thi_chains_basis;

/* Zeros mean the defaults. A step of a chain is one move of all latents; every `thin`-th after burn-in is a draw. */
typedef struct thi_chains_settings {
    const char *sampler;    /* gibbs, ess, hmc or mh */
    int chains;             /* 4; at most THI_CHAINS_MAX */
    int64_t draws;          /* of each chain; 1000 */
    int64_t burn_in;        /* steps before the first draw; 0: half as many as follow; -1: none */
    int64_t thin;           /* 1 */
    int64_t keep;           /* draws kept in all, evenly spaced; 1000, and one of each chain at least */
    double step;            /* of hmc and mh; 0: found during burn-in */
    int leaps;              /* of hmc; 0: at random for up to half the prior's period, 128 at most */
    thi_chains_basis basis; /* gibbs only */
} thi_chains_settings;

typedef struct thi_chains_result {
    const char *sampler;
    int chains;
    int64_t n; /* rows, or inducing inputs */
    thi_chains_basis basis;
    int latents;         /* Q */
    int64_t draws;       /* of each chain; fewer than asked for when it was stopped */
    int64_t steps;       /* of each chain, burn-in included */
    bool early;          /* stopped before the first draw: what is kept is where the chains stood */
    int64_t kept;        /* S */
    double *f;           /* n x Q x S, owned: thi_chains_clear; a chain's draws lie together, in their order */
    thi_mixing mixing;   /* over the f that were watched; NaN with fewer than 4 draws */
    int64_t watched;     /* n Q, or fewer evenly spread ones where all draws of all would take too much memory */
    double acceptance;   /* accepted share of the proposals after burn-in; of gibbs: of its split draws (gibbs_split.h),
                            or 1 */
    int64_t divergences; /* of hmc, after burn-in: steps whose energy was lost */
    double step;         /* in use at the end, mean over the chains; 0: the sampler has none */
    double seconds;      /* of one draw of one chain on its thread */
    double jitter;       /* the most that was added to the diagonal of a K */
} thi_chains_result;

/* Bytes that a run holds at its peak beside what is kept and watched. */
double thi_chains_bytes(int64_t n, int groups, const thi_chains_settings *settings);
/*
 * result is filled on success only. When the driver asks to stop, the step at hand is finished and what there is
 * becomes the result; why is in the driver. Errors: ARGUMENT (settings out of range, no such sampler), UNSUPPORTED
 * (gibbs without an augmentation), NUMERIC (no finite density to start from), MEMORY, LIMIT.
 */
thiele_status thi_chains_run(thiele_context *ctx, thi_driver *driver, const thi_spec *spec, const thi_rows *rows,
                             const thi_chains_settings *settings, thi_chains_result *result);
void thi_chains_clear(thi_chains_result *result);
/*
 * The draws as a mixture of equal weights: latent (Q of them, none begun) gets predictors with S components,
 *   mean_s(x) = m(x) + k(x, X) a_s,  a_s = K^-1 (f_s - o),  var(x) = k(x, x) - |L^-1 k(X, x)|^2,
 * for the spec and rows of the run; with inducing inputs Z in place of X. n^3/3 flops for each group and 2 n^2 S for
 * each latent. On an error all are clear.
 */
thiele_status thi_chains_freeze(const thi_chains_result *result, thiele_context *ctx, const thi_spec *spec,
                                const thi_rows *rows, thi_predictor *latent);

#endif

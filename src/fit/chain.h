/* One Markov chain, the model that all of them share, and what a sampler is. */
#ifndef THI_CHAIN_H
#define THI_CHAIN_H

#include "fit/chains.h"
#include "linalg/linalg.h"

/* --- the model: read by all chains, changed by none ----------------------------------------------------------------
 */

typedef struct thi_chain_model {
    int64_t n;
    int64_t places;               /* m: where r lies, the n rows or M inducing inputs */
    int latents;                  /* Q */
    const thiele_likelihood *lik; /* borrowed, as are y and group */
    const double *y;              /* P x n */
    const double *weight;         /* n, or NULL: 1 */
    const int *group;             /* of each latent */
    int groups;
    thi_matrix *K, *L; /* one a group: K + jitter at the places, full symmetric, and its factor */
    double *o;         /* n x Q */
    double *at;        /* m x Q: the mean at the places; o itself where they are the rows */
    /* Of inducing inputs, one a group: U = K(X, Z) L^-T (n x M), and what they leave of k(x, x) (n x groups). */
    thi_matrix *U;
    double *left;
    double jitter; /* the most that was added to a diagonal */
} thi_chain_model;
/* spec and rows outlive it. n^3/3 flops a group; with inducing inputs n M^2. */
thiele_status thi_chain_model_open(thi_chain_model *model, thiele_context *ctx, const thi_spec *spec,
                                   const thi_rows *rows, thi_chains_basis basis);
void thi_chain_model_close(thi_chain_model *model);
/* y = L x or L'x for a lower triangle; y is not x. n^2 flops. */
void thi_lower_apply(thi_trans trans, thi_matrix L, const double *x, double *y);

/* A purpose of its own beside those of base.h. */
enum { THI_RANDOM_CHAIN = 64 };

/* --- a chain -------------------------------------------------------------------------------------------------------
 */

typedef struct thi_chain {
    const thi_chain_model *model;
    const thi_chains_settings *settings; /* no zeros left but step and leaps */
    thiele_context *ctx;                 /* its own when there are several chains: they fail apart */
    thiele_context own;
    int number;
    uint64_t next; /* random numbers used so far */
    int64_t steps; /* begun so far */
    bool burning;  /* still adapting */
    double *r, *f; /* where it stands: m x Q above the mean, and Q x n as the likelihood sees it */
    double log_p;  /* log p(y | f) */
    double *trial_r, *trial_f;
    double *density; /* n of n Q: of each row */
    double step;     /* in use; 0: none */
    double accepted; /* of the proposals, after burn-in */
    int64_t proposals, divergences;
    double seconds; /* in steps after burn-in */
    void *state;    /* the sampler's */
} thi_chain;

/* Standard normal and uniform (0, 1) draws of this chain's stream. */
void thi_chain_normals(thi_chain *chain, int64_t count, double *out);
double thi_chain_uniform(thi_chain *chain);
/* The stream of one row: for draws that the likelihood makes, numbered by chain->steps. */
thi_stream thi_chain_row_stream(const thi_chain *chain, int64_t row);
/* r = L w, or g = L'f: m x Q each. m^2 flops a latent. */
void thi_chain_colour(const thi_chain_model *model, const double *w, double *r);
void thi_chain_pull(const thi_chain_model *model, const double *g, double *out);
/* w = L^-1 r, in place. */
void thi_chain_whiten(const thi_chain_model *model, double *r);
/* log p(y | f), f: Q x n; minus infinity where it is no number. */
double thi_chain_log_p(thi_chain *chain, const double *f);
/* The same of f = o + r at all rows; with inducing inputs of its mean given r, where r is not the trial. */
double thi_chain_density(thi_chain *chain, const double *r, double *f);
/* The chain moves to its trial, which has this density. */
void thi_chain_accept(thi_chain *chain, double log_p);
/* Counts a proposal, unless burning. */
void thi_chain_count(thi_chain *chain, double accepted, int64_t proposals);

/* --- samplers ------------------------------------------------------------------------------------------------------
 */

typedef struct thi_sampler {
    const char *name;
    bool needs_augmentation;
    bool sparse; /* for inducing inputs, and only for them */
    /* The chain stands at its start. close takes what open left, also after a failure. */
    thiele_status (*open)(void **state, thi_chain *chain);
    /* One move, leaving the posterior as it is; while chain->burning it may adapt. */
    thiele_status (*step)(thi_chain *chain);
    void (*close)(void *state);
} thi_sampler;

extern const thi_sampler thi_sampler_gibbs, thi_sampler_gibbs_sparse, thi_sampler_ess, thi_sampler_hmc, thi_sampler_mh;

#endif

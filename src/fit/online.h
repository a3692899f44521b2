/*
 * Learning from rows once, a batch at a time, with the old posterior as prior (streaming variational Bayes: Broderick
 * et al. 2013; the incremental sparse regression of Cheng and Boots 2016 on a basis that stays). Hyperparameters,
 * inducing inputs and the likelihood are fixed. In the coordinates w = L^-1 u of math.md section 3 each latent function
 * has q(w) = N(B^-1 t, B^-1),  B = I + T and a batch adds its sites: T += V diag(lambda) V', t += V nu. Of Gaussian
 * noise they do not depend on q, so that any order and any cut into batches ends in the posterior of all rows together;
 * of other likelihoods they are found by natural-gradient rounds on the batch's bound sum_n E_n - KL(q || q_old),
 * damped so that it never falls.
 *
 * Decoupled posteriors (posterior/decoupled.h): w is of the covariance's basis beta. Of their mean what is outside of
 * its span, o(x) = k(x, alpha) a - V'c with c = L^-1 k(beta, alpha) a, stays as it is and is added to the prior mean;
 * the functions of beta in the mean's basis get the weights L^-T (m - c). KL(q || q_old) is theorem 1, equation 13, of
 * Cheng and Boots 2017 at equal alpha, a and beta.
 *
 * Forgetting: before a batch of n rows T and t are multiplied by exp(-n / forget), and by what the time since the batch
 * before it has left. What was learned fades towards the prior, and the last `forget` rows or so are what counts; o
 * does not fade.
 *
 * Cost of a batch of n rows, per latent function: fill of k(Z, X), 3 n M^2 + M^3/3 flops; of other likelihoods 2 n M^2
 * + M^3/3 a round; of decoupled ones fill of k(alpha, X). Matrices are allocated by thi_online_open only. The same bits
 * on any number of threads.
 */
#ifndef THI_FIT_ONLINE_H
#define THI_FIT_ONLINE_H

#include "expect/parallel.h"
#include "posterior/sparse.h"

typedef struct thi_online_settings {
    int64_t capacity;        /* rows of a batch, at most */
    double forget;           /* rows that count, about; 0: all of them */
    const char *expectation; /* how (E, g, h) are had; NULL: the best way. Borrowed */
    bool weighs;             /* the bound of a batch is wanted of Gaussian noise as well */
    /* Of Gaussian noise: lambda = none / noise + diagonal / (noise + k - |V|^2). A block is one row: BLOCK is DIAGONAL.
     */
    double weight[THI_RESIDUAL_KINDS];
} thi_online_settings;

/* One latent function. */
typedef struct thi_online_latent {
    const thi_predictor *basis; /* kernel, mean, Z, L, what o is made of; borrowed */
    thi_natural sum, next;      /* what the rows so far say; next: with the batch */
    double *m, *old;            /* old: m without the batch */
    thi_matrix root;            /* chol(I + T) */
    double log_det;             /* log|I + T| without the batch */
    thi_matrix V, W;            /* M x capacity: L^-1 k(Z, X), and work */
    double *left;               /* capacity: k(x, x) - |V|^2 */
    double *c;                  /* M; 0 unless decoupled */
    double *room;               /* decoupled: capacity x THI_PREDICT_PORTION */
} thi_online_latent;

typedef struct thi_online {
    thi_online_settings settings;
    const thiele_likelihood *lik; /* borrowed */
    thi_providers providers;
    int latents;
    thi_online_latent *latent;
    int64_t n;      /* rows of the present batch */
    double lasting; /* what time leaves of all before it; 1 again once it is learned */
    /* Q x capacity each: prior mean with o and the row's offset, marginals, sites now, where a round goes, and a trial.
     */
    double *shift, *mu, *v, *lambda, *nu, *lambda_to, *nu_to, *lambda_try, *nu_try, *g, *h;
    double *E;    /* capacity */
    double bound; /* of the batch that was learned last; of Gaussian noise where it is wanted */
} thi_online;

/* Why a posterior is of no kind that learns like this, or NULL. */
const char *thi_online_refuses(const thi_predictor *latent);
/*
 * Brings a predictor into the form that learns: R by what its rows say, and a mean with a basis of its own has the
 * functions of the covariance as its last ones: unless they are there they are added with weights 0. After an error the
 * predictor is to be cleared.
 */
thiele_status thi_online_prepare(thi_predictor *latent, thiele_context *ctx);
/* What its rows say, of a prepared one; c as above (n, or NULL: 0). sum may be larger (natural.h). M^3 flops. */
thiele_status thi_online_sites(const thi_predictor *latent, thiele_context *ctx, const double *c, thi_natural *sum);
/*
 * From frozen predictors of one component (`latents` of them, borrowed, none refused, all prepared). M^3 flops. Errors:
 * NUMERIC, MEMORY.
 */
thiele_status thi_online_open(thi_online *online, thiele_context *ctx, int latents, const thi_predictor *latent,
                              const thiele_likelihood *lik, const thi_online_settings *settings);
void thi_online_close(thi_online *online);
/*
 * Takes a batch: marginals (Q x n) of the latent functions at the n <= capacity columns of X before they are learned.
 * offset (n, or NULL) is added to the first one.
 */
thiele_status thi_online_predict(thi_online *online, thiele_context *ctx, int64_t n, const double *X,
                                 const double *offset, double *mu, double *v);
/*
 * Learns the batch that was predicted last; y is P x n (NaN: missing). row numbers its first row, for expectations by
 * draws. After an error the posterior is without the batch.
 */
thiele_status thi_online_learn(thi_online *online, thiele_context *ctx, const double *y, int64_t row);
/* What is left of all that is known, by its rows and by time, once the present batch is learned. */
double thi_online_share(const thi_online *online);
/* The same in two steps: q with the batch and its bound; then the batch is kept, or q is without it again. */
thiele_status thi_online_weigh(thi_online *online, thiele_context *ctx, const double *y, int64_t row);
void thi_online_settle(thi_online *online, thiele_context *ctx, bool keep);
/* The mean that a latent function's sites are told apart from at the n columns of X: the prior's, with o. */
thiele_status thi_online_shift(const thi_online_latent *latent, thiele_context *ctx, int64_t n, const double *X,
                               double *out);
/* What the rows so far say is no more than `sum`, of a latent function, from now on. NUMERIC: as it was before. */
thiele_status thi_online_put(thi_online *online, thiele_context *ctx, int latent, const thi_natural *sum);
/*
 * Sites of the batch that was predicted last, into lambda and nu, as the present q would have them: where q was learned
 * from these rows too, those that it has.
 */
thiele_status thi_online_find_sites(thi_online *online, thiele_context *ctx, const double *y, int64_t row);
/* sum -= sites (Q x n) of the batch that was predicted last, of one latent function. */
thiele_status thi_online_take_out(thi_online *online, thiele_context *ctx, int latent, const double *lambda,
                                  const double *nu, thi_natural *sum);
/* The noise that the rows of a latent function have, which need not be that of predictions. */
double thi_online_noise(const thi_online *online, int latent);
/* Puts the present q of a latent function into a prepared predictor of the same bases. */
void thi_online_freeze(const thi_online *online, int latent, thi_predictor *out);

/* --- what online.c and online_learn.c share --- */
/* root = chol(I + T), m = (I + T)^-1 t. NUMERIC when I + T is not positive definite. */
thiele_status thi_online_factor(thi_online_latent *latent, thiele_context *ctx, const thi_natural *sum);
/* mu = shift + V'm, v = left + |root^-1 V|^2 of the batch at the present q. */
thiele_status thi_online_marginals(thi_online *online, thiele_context *ctx, double *mu, double *v);

#endif

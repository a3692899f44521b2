/*
 * From a likelihood and marginals (mu, v) to the three numbers (E, g, h) of math.md section 1, block by block, and to
 * what is predicted. A provider is chosen once and used for many blocks; it owns its nodes, draws and work space, so
 * that a block allocates nothing (rules of more nodes are made when they are first needed).
 *
 * A row whose outputs are all missing has E = g = h = 0. A density that is NaN at a point that was asked for, or an E,
 * g or h that is not finite (a density of zero within reach of the marginal, or an overflow), is the error NUMERIC with
 * y, f, mu and v in its sentence. Points with a weight below 1e-200 (30 standard deviations out) are never asked for.
 */
#ifndef THI_EXPECT_H
#define THI_EXPECT_H

#include "likelihood/likelihood.h"

typedef enum thi_provider {
    THI_CLOSED,
    THI_AUGMENTED, /* the bound of auxiliary variables, in closed form */
    THI_QUADRATURE,
    THI_MONTE_CARLO,
    THI_QUASI_MONTE_CARLO
} thi_provider;

typedef struct thi_space thi_space;

typedef struct thi_expect {
    const thiele_likelihood *lik; /* borrowed; the values of its parameters may change between blocks */
    thi_provider provider;
    int count;            /* nodes a latent, or draws; 0: adaptive quadrature */
    bool reparameterised; /* derivatives are used in place of scores */
    bool antithetic;      /* Monte Carlo: draws come in pairs z, -z */
    bool control;         /* Monte Carlo by scores: with the control variate */
    uint64_t seed;        /* draws depend on (seed, row) only: common random numbers within a run */
    thi_space *space;
} thi_expect;

/* At most this many rows a call. */
enum { THI_EXPECT_BLOCK = 256 };

/*
 * method: NULL (best), "closed", "augmented", "quadrature[:n]", "mc:n", "qmc:n". Errors: ARGUMENT (unknown, or not
 * offered by this likelihood), MEMORY. The object may be closed after an error.
 */
/* Whether a method (NULL: the best) means draws. */
bool thi_expect_is_drawn(const thiele_likelihood *lik, const char *method);
/*
 * Whether it leaves noise in (E, g, h), which are then not exactly the derivatives of each other: draws do, unless the
 * density is a polynomial that two sets of them agree about (couplings.c).
 */
thiele_status thi_expect_noise(thiele_context *ctx, const thiele_likelihood *lik, const char *method, bool *noisy);
thiele_status thi_expect_open(thi_expect *expect, thiele_context *ctx, const thiele_likelihood *lik,
                              const char *method);
void thi_expect_close(thi_expect *expect);
/*
 * n <= THI_EXPECT_BLOCK rows; shapes as in thiele_likelihood_expect; row numbers the first row (for the draws). A work
 * space belongs to the object: one object a thread. What a row gets depends on that row alone, bit for bit.
 */
thiele_status thi_expect_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const double *y,
                               const double *mu, const double *v, double *E, double *g, double *h, double *dphi);

/*
 * The latents of a block of rows: Gaussian, mu and v being Q x n, or a mixture of such with the same weights in all
 * rows: mu and v are Q x n x components then, and the weights add up to 1 (NULL for one component).
 */
typedef struct thi_marginals {
    int64_t n; /* at most THI_EXPECT_BLOCK */
    int components;
    const double *weight, *mu, *v;
} thi_marginals;

/* --- predict.c, predictive.c: the same blocks --------------------------------------------------------------------- */

/* E[y], Var[y] (P x n); NaN and infinite where the law has none. UNSUPPORTED for classes, which have no mean. */
thiele_status thi_predict_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu, const double *v,
                                double *mean, double *variance);
/* log of the integral of p(y | f) N(f; mu, diag v); minus infinity where y is impossible. */
thiele_status thi_log_predictive_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *y,
                                       const double *mu, const double *v, double *out);
/*
 * P(class c), classes x n, for a likelihood over classes or two values (then 2 x n: -1 first). The classes of a
 * pseudo-likelihood are scaled to sum to 1. UNSUPPORTED for others.
 */
thiele_status thi_probabilities_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu,
                                      const double *v, double *probability);

/* --- mixture.c: the same for mixtures of marginals ---------------------------------------------------------------- */

thiele_status thi_mixture_predict(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, double *mean,
                                  double *variance);
thiele_status thi_mixture_log_predictive(thi_expect *expect, thiele_context *ctx, const thi_marginals *m,
                                         const double *y, double *out);
thiele_status thi_mixture_probabilities(thi_expect *expect, thiele_context *ctx, const thi_marginals *m,
                                        double *probability);

/* --- quantile.c --------------------------------------------------------------------------------------------------- */

/*
 * For each output by itself the y with P(Y <= y) = p[j], 0 < p < 1; for counts, classes and two values the smallest y
 * with P(Y <= y) >= p[j]. out: count x P x n. A Gaussian with one component costs a multiplication each, others a
 * search (10 to 100 averages over f) or, from the density alone, an integral over y (predictive_distribution.h).
 */
thiele_status thi_mixture_quantiles(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, int count,
                                    const double *p, double *out);
/* The same for one component. */
thiele_status thi_quantile_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu, const double *v,
                                 int count, const double *p, double *out);
/* The same for one row and one p; out: P. */
thiele_status thi_likelihood_quantile(thi_expect *expect, thiele_context *ctx, const double *mu, const double *v,
                                      double p, double *out);

/* --- sample.c ----------------------------------------------------------------------------------------------------- */

/*
 * Draws first, ..., first + count - 1 of y for each row; y: P x count x n. They depend on (seed, row[i], number of the
 * draw) only; row numbers the rows. The outputs of a draw belong together.
 */
thiele_status thi_mixture_samples(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, const int64_t *row,
                                  uint64_t first, int64_t count, double *y);
/* The same for one component, from draw 0 on. */
thiele_status thi_sample_block(thi_expect *expect, thiele_context *ctx, int64_t n, const int64_t *row, const double *mu,
                               const double *v, int64_t count, double *y);
/* The same for one row; y: P x n. */
thiele_status thi_likelihood_sample(thi_expect *expect, thiele_context *ctx, int64_t row, const double *mu,
                                    const double *v, uint64_t first, int64_t n, double *y);

#endif

/*
 * Likelihoods: how observations y depend on the latent functions f. Built-in ones are made from text; your own needs
 * one C function.
 *
 *   gaussian(noise)            y = f + e, e ~ N(0, noise)
 *   heteroscedastic            two latents: y ~ N(f_1, exp(f_2))
 *   student-t(nu, scale)       (y - f)/scale is Student-t with nu degrees of freedom; a learned nu stays between 2
 *                              and 100
 *   laplace(beta)              density exp(-|y - f|/beta) / (2 beta)
 *   matern32(rho)              density sqrt3/(4 rho) (1 + u) exp(-u), u = sqrt3 |y - f|/rho
 *   bernoulli, bernoulli-probit  y in {-1, +1}: sigmoid(y f), Phi(y f)
 *   svm                        -2 max(0, 1 - y f): a pseudo-likelihood, not normalised over y
 *   softmax                    C classes, C latents: exp(f_y) / sum exp f
 *   logistic-softmax           C classes, C latents: sigmoid(f_y) / sum sigmoid(f)
 *   poisson(offset)            counts with mean exp(f + offset)
 *   sigmoid-poisson(rate)      counts with mean rate * sigmoid(f)
 *   negative-binomial(r)       counts with mean m = exp(f) and variance m + m^2/r
 *   binomial(trials)           counts out of `trials` with probability sigmoid(f)
 *   gamma(shape)               mean exp(f), variance mean^2/shape
 *   exponential                mean exp(f)
 *   beta(precision)            in (0, 1), mean sigmoid(f), precision a + b
 *   ordinal(sigma, cuts)       class k (from 0) when f + sigma e falls between cut k and cut k+1 (cuts from 1)
 *   warped(noise, a, b, c)     t(y) = y + sum_i a_i tanh(b_i (y + c_i)) is gaussian
 *                              (terms=N of them; 2 by default)
 *   gprn(nodes=Q, noise)       P outputs: y_p = sum_q W_pq f_q + e_p, e_p ~ N(0, noise_p); latents f_1..f_Q, then W row
 *                              by row
 *   mixing(latents=Q, noise)   P outputs: y_p = sum_q w_pq f_q + e_p with weights w as parameters
 */
#ifndef THIELE_LIKELIHOOD_H
#define THIELE_LIKELIHOOD_H

#include <thiele/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_likelihood thiele_likelihood;

/* Plug-ins carry this number. Those of version 1 are accepted too, others refused. */
#define THIELE_LIKELIHOOD_VERSION 2

/* The values an output can take. */
typedef enum thiele_support {
    THIELE_SUPPORT_REAL,
    THIELE_SUPPORT_POSITIVE, /* y > 0 */
    THIELE_SUPPORT_UNIT,     /* 0 < y < 1 */
    THIELE_SUPPORT_COUNT,    /* 0, 1, 2, ... */
    THIELE_SUPPORT_BINARY,   /* -1, +1 */
    THIELE_SUPPORT_CLASS     /* 0, 1, ..., classes - 1 */
} thiele_support;

/* A parameter of your own likelihood. Names are words of a-z, 0-9, _ and -, the first a letter, no two the same. */
typedef struct thiele_likelihood_parameter {
    const char *name;
    double initial;
    int positive; /* 1: positive, learned as a log */
} thiele_likelihood_parameter;

/* An augmentation: log p(y | f) = log_c + g f + log phi(r), r = alpha - beta f + gamma f^2, or one latent's share
 * of it. */
typedef struct thiele_likelihood_coefficients {
    double log_c, g, alpha, beta, gamma;
} thiele_likelihood_coefficients;

/*
 * Your own likelihood. Only log_density is needed (or log_densities, or an augmentation, below); it must be safe to
 * call from several threads. It returns log p(y | f), minus infinity where y is impossible, never NaN. It never
 * sees rows whose outputs are all missing; of several outputs some may be NaN, and it leaves those out. phi
 * holds the parameters' values in order.
 */
typedef struct thiele_likelihood_spec {
    size_t size;
    int version; /* THIELE_LIKELIHOOD_VERSION */
    const char *name;
    int outputs, latents; /* P, Q */
    int parameters;
    const thiele_likelihood_parameter *parameter;
    double (*log_density)(const double *y, const double *f, const double *phi, void *user);
    /* Optional, or NULL: E[y | f] and Var[y | f], one per output. */
    void (*moments)(const double *f, const double *phi, double *mean, double *variance, void *user);
    /*
     * The values of y, for all outputs. Predictions that the spec does not define (moments, quantiles, samples, class
     * probabilities) come from sums or integrals of exp(log_density) over these values; a single output is evaluated
     * with the others set to NaN. A density that does not add up to 1 is divided by its sum. Densities over reals must
     * not have atoms (probability at single values), which would be missed.
     */
    thiele_support support;
    int classes; /* for THIELE_SUPPORT_CLASS */
    void *user;
    /*
     * Optional, both or neither: an augmentation, from which the conjugate method and the Gibbs sampler follow. It
     * writes the density with a function phi of r = alpha - beta f + gamma f^2 >= 0,
     *     log p(y | f) = log_c + g f + log phi(r).
     * With Q latents, out has Q entries (all zeros before the call), and log_c, g f and r are their sums: terms that
     * belong to no latent may go into the first. Here phi(0) = 1 and phi is completely monotone (its derivatives
     * alternate in sign): the Laplace transform of a positive variable omega. log_phi returns the log of phi, in any
     * branch, at the complex number r[0] + i r[1], r[0] >= 0; the log does not underflow where r is large.
     * The law of omega should have a density. phi may depend on y. With these, log_density may be NULL; the density
     * must then add up to 1. thiele_likelihood_try detects most functions that break these rules. A spec from an
     * earlier header, which ends before these, stays valid. At most 64 latents and 64 parameters.
     */
    void (*coefficients)(const double *y, const double *parameters, thiele_likelihood_coefficients *out, void *user);
    void (*log_phi)(const double *y, const double *parameters, const double *r, double *out, void *user);
    /*
     * Optional, from version 2 on: the log densities of n points in one call, out_i = log p(y_i | f_i), where y is P x
     * n and f is Q x n, one point per column. The points come from several rows, with many draws of f for each, side by
     * side with the same y. With it, log_density may be NULL; if both are given they must agree.
     */
    void (*log_densities)(int64_t n, const double *y, const double *f, const double *phi, double *out, void *user);
} thiele_likelihood_spec;

#ifdef __cplusplus
inline thiele_likelihood_spec thiele_likelihood_spec_init()
{
    thiele_likelihood_spec made = thiele_likelihood_spec();
    made.size = sizeof made;
    made.version = THIELE_LIKELIHOOD_VERSION;
    made.outputs = made.latents = 1;
    return made;
}
#define THIELE_LIKELIHOOD_SPEC_INIT thiele_likelihood_spec_init()
#else
#define THIELE_LIKELIHOOD_SPEC_INIT                                                                                    \
    {                                                                                                                  \
        .size = sizeof(thiele_likelihood_spec), .version = THIELE_LIKELIHOOD_VERSION, .outputs = 1, .latents = 1       \
    }
#endif

/* A plug-in is a shared library with this function; the spec and all it points to must live as long as the library. */
typedef const thiele_likelihood_spec *(*thiele_likelihood_plugin_fn)(void);
#define THIELE_LIKELIHOOD_PLUGIN_SYMBOL "thiele_likelihood_plugin"

/*
 * From text: a name with its parameters in parentheses, `=` fixed, `~` first guess. outputs: the number of target
 * columns; classes: that of a class target (otherwise 0). Errors: ARGUMENT (no such likelihood or parameter, a value
 * outside its range, another number of outputs), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_parse(thiele_likelihood **out, thiele_context *ctx, const char *text,
                                                 int outputs, int classes);
/*
 * From your own function. The spec is borrowed and must outlive the likelihood. Errors: FORMAT (made for
 * another version of this header), ARGUMENT (no name or density, half an augmentation, invalid counts, support or
 * parameters), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_custom(thiele_likelihood **out, thiele_context *ctx,
                                                  const thiele_likelihood_spec *spec);
/*
 * From a plug-in: the path of a shared library, which may be followed by parameters in parentheses as above. A path
 * without a slash means the current folder. It is first loaded in a child process. Errors: IO (no such file, or no
 * process could be started), FORMAT (it cannot be loaded, crashes or hangs while loading, is not a likelihood, or was
 * made for another version), ARGUMENT (as for your own function, or wrong parameters), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_load(thiele_likelihood **out, thiele_context *ctx, const char *path);
/*
 * Evaluates the density of n rows (y is P x n) at a few values of f in a child process, so that a plug-in that crashes,
 * hangs or returns NaN causes an error instead of ending the program. A few rows are enough. Errors: NUMERIC (it
 * did one of these: the message says which, and for which y and f), ARGUMENT (an augmentation whose phi is not 1 at 0,
 * or grows, or is found not to be completely monotone, or that differs from log_density or, without one, does not
 * add up to 1 over all y: the message says which), IO (no process could be started), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_try(const thiele_likelihood *likelihood, thiele_context *ctx, int64_t n,
                                               const double *y);
THIELE_API void thiele_likelihood_destroy(thiele_likelihood *likelihood);

THIELE_API const char *thiele_likelihood_name(const thiele_likelihood *likelihood);
THIELE_API int thiele_likelihood_outputs(const thiele_likelihood *likelihood);
THIELE_API int thiele_likelihood_latents(const thiele_likelihood *likelihood);
THIELE_API int thiele_likelihood_parameters(const thiele_likelihood *likelihood);
THIELE_API const char *thiele_likelihood_parameter_name(const thiele_likelihood *likelihood, int index);
THIELE_API double thiele_likelihood_get_parameter(const thiele_likelihood *likelihood, int index);
THIELE_API thiele_status thiele_likelihood_set_parameter(thiele_likelihood *likelihood, thiele_context *ctx, int index,
                                                         double value);

/* log p(y_i | f_i) for n rows: y is P x n, f is Q x n, column-major. */
THIELE_API void thiele_likelihood_log_density(const thiele_likelihood *likelihood, int64_t n, const double *y,
                                              const double *f, double *out);

/*
 * (E, g, h): E_i = E[log p(y_i | f)], g = dE/dmu, h = dE/dv (Q x n each) under f ~ N(mu_i, diag v_i); mu and v are Q x
 * n. method: NULL for the best available, or "closed", "augmented" (a lower bound of E, by auxiliary variables),
 * "quadrature:20", "mc:500", "qmc:512". dphi (parameters x n; in log phi for positive ones) may be NULL. Random draws
 * depend on the context's seed and the row. Errors: ARGUMENT (method unknown or not offered), NUMERIC (the density is
 * NaN, or E, g or h not finite: a density of zero within reach of the marginal, an overflow, a marginal that is not
 * a Gaussian; the message has y, f, mu and v), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_expect(const thiele_likelihood *likelihood, thiele_context *ctx,
                                                  const char *method, int64_t n, const double *y, const double *mu,
                                                  const double *v, double *E, double *g, double *h, double *dphi);
/* Which method NULL stands for: "closed", "quadrature" or "qmc:512". */
THIELE_API const char *thiele_likelihood_best_method(const thiele_likelihood *likelihood);

/*
 * E[y] and Var[y] (P x n) under f ~ N(mu, diag v); NaN and infinity where the tails are too heavy for them. Errors:
 * UNSUPPORTED (classes have no mean), NUMERIC (the density is NaN, or has no finite sum over y), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_predict(const thiele_likelihood *likelihood, thiele_context *ctx, int64_t n,
                                                   const double *mu, const double *v, double *mean, double *variance);
/*
 * log of the integral of p(y_i | f) N(f; mu_i, diag v_i) over f; minus infinity where y is impossible. Errors: NUMERIC
 * (the density is NaN), MEMORY.
 */
THIELE_API thiele_status thiele_likelihood_log_predictive(const thiele_likelihood *likelihood, thiele_context *ctx,
                                                          int64_t n, const double *y, const double *mu, const double *v,
                                                          double *out);

#ifdef __cplusplus
}
#endif
#endif

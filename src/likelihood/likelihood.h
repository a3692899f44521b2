/*
 * What a likelihood is: p(y | f) with P outputs y, Q latents f and parameters phi. Its log density is enough for
 * inference (SAVIGP); whatever more it offers is used. Everything works on blocks of rows: y is P x n, f is Q x n,
 * column-major, one row of data a column. A missing output (NaN) is left out of its row's density. math.md section 1;
 * src/expect turns this into (E, g, h).
 *
 * Derivatives in phi are with respect to log phi for positive parameters, plain otherwise.
 */
#ifndef THI_LIKELIHOOD_H
#define THI_LIKELIHOOD_H

#include "base/base.h"
#include <thiele/likelihood.h>

/* What values an output may take. Binary outputs are -1 and +1 here, classes 0 .. C-1. */
typedef enum thi_support {
    THI_SUPPORT_REAL,
    THI_SUPPORT_POSITIVE, /* y > 0 */
    THI_SUPPORT_UNIT,     /* 0 < y < 1 */
    THI_SUPPORT_COUNT,    /* 0, 1, 2, ... */
    THI_SUPPORT_BINARY,
    THI_SUPPORT_CLASS,
    THI_SUPPORTS
} thi_support;

/* A place on the axis of f where log p bends, and over what width: quadrature is refined around it. Width 0: a kink. */
typedef struct thi_bend {
    double at, width;
} thi_bend;
enum { THI_BENDS_MAX = 4 };

typedef struct thi_augmentation thi_augmentation; /* likelihood/augment.h */

typedef struct thi_likelihood_ops {
    const char *name;
    thi_support support;
    /*
     * The fit works with (y - center)/scale in place of y: true where y = f + noise in some sense, so that a shift and
     * a scale of y are those of f. Not for a user's own, whose units nobody knows.
     */
    bool standardise;
    bool separate;    /* output p depends on latent p alone, as y = f + Gaussian noise */
    bool several;     /* made for any number of outputs */
    bool ordered;     /* its classes stand in an order */
    bool log_link;    /* the mean is proportional to exp(f): an exposure e is the offset log e of f */
    bool pseudo;      /* not normalised over y: its distributions are divided by their sum */
    int log_variance; /* the index of the latent that is the log of a variance of y; 0: none */

    /* Required. out_i = log p(y_i | f_i). */
    void (*log_density)(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out);

    /* Optional: first derivatives and the diagonal of the second ones in f (Q x n each). Default: none; scores are
     * used. */
    void (*derivatives)(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2);
    /* Optional: derivatives in phi (parameters x n). Default: central differences of log_density. */
    void (*phi_derivatives)(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi);
    /*
     * Optional: the exact E (n), g and h (Q x n) and dphi (parameters x n, may be NULL) under f ~ N(mu, diag v).
     * Default: quadrature or sampling.
     */
    void (*expectation)(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                        double *E, double *g, double *h, double *dphi);
    /*
     * Optional, where log p(y | f) is quadratic in each latent by itself whatever y and f are: minus its second
     * derivatives (Q numbers), of outputs that are there. Bounds are tighter then (fit/pass.c).
     */
    void (*precision)(const thiele_likelihood *lik, double *out);
    /* Optional, Q = 1: where log p(y | f) bends sharply as a function of f; returns how many (at most THI_BENDS_MAX).
     */
    int (*bends)(const thiele_likelihood *lik, const double *y, thi_bend *bend);

    /* Optional: E[y | f] and Var[y | f] (P x n). Default: sums or integrals of the density over y. */
    void (*conditional)(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance);
    /* Optional: E[y] and Var[y] under f ~ N(mu, diag v), exact (P x n). Default: quadrature of the conditional ones. */
    void (*predictive)(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                       double *variance);
    /* Optional: log of the integral of p(y | f) under f ~ N(mu, diag v), exact. Default: quadrature. */
    void (*log_predictive)(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                           double *out);
    /* Optional: P(Y_output <= y) under f ~ N(mu, diag v), exact. Default: the average of the one given f. */
    double (*predictive_cdf)(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v);
    /*
     * Optional: the continuous ranked probability score of y under the same, exact. Default: an integral of the
     * distribution function.
     */
    double (*predictive_crps)(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v);
    /*
     * Optional, where each output is a monotone function of a normal variable under f ~ N(mu, diag v): its values at
     * z[j] standard deviations of that variable, count x P x n. Default: the distribution function is inverted.
     */
    void (*quantiles)(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, int count,
                      const double *z, double *out);
    /* Optional, P = 1: P(Y <= y | f), for quantiles. Default: sums or integrals of the density over y. */
    double (*cdf)(const thiele_likelihood *lik, double y, const double *f);
    /* Optional: a draw of y given f; `draw` numbers it within the stream. Default: by the density's quantiles. */
    void (*sample)(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y);
    /*
     * Optional: whether some latents of a row might all have the other sign as well; f: 1 for these, 0 for the others
     * (of no use if not). Default: no.
     */
    bool (*even)(const thiele_likelihood *lik, const double *y, double *f);
    /* Optional: a first guess of f from y; f comes with its means before y, 0 where there are none. Default: 0. */
    void (*guess)(const thiele_likelihood *lik, const double *y, double *f);
    /* Optional: the probability of each class (of -1, then +1 when binary) given f: classes x n. Default: by density.
     */
    void (*probabilities)(const thiele_likelihood *lik, int64_t n, const double *f, double *prob);
    /* Optional: the same under f ~ N(mu, diag v), exact. Default: from log_predictive, or the average of those given f.
     */
    void (*predictive_probabilities)(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v,
                                     double *prob);
    /* Optional: what is wrong with the parameters ("trials must be a whole number"), or NULL. Default: nothing. */
    const char *(*check)(const thiele_likelihood *lik);
    /* Optional: what is wrong with a y in the support ("more successes than trials"), or NULL. Default: nothing. */
    const char *(*refuses)(const thiele_likelihood *lik, double y);
    /* Optional: auxiliary variables that make it Gaussian in f. Default: none. */
    const thi_augmentation *augmentation;
} thi_likelihood_ops;

typedef struct thi_phi {
    char *name;
    double value;
    bool positive; /* learned as a log */
    bool fixed;
    bool given;   /* the user said a value */
    double least; /* while it is learned it stays above this; 0: no more than its range asks for */
    double most;  /* and below this; 0: likewise */
    /*
     * Units where the targets are standardised, y_model = (y - center)/scale: value in those of the data =
     * scale^power * value here, and scale * value - center for a shifted one (a place on the axis of -y).
     */
    int power;
    bool shifted;
    int output; /* whose scale that is, from 1; 0: that of all of them */
} thi_phi;

struct thiele_likelihood {
    const thi_likelihood_ops *ops;
    int outputs, latents, parameters;
    thi_phi *phi;  /* parameters of them */
    double *value; /* phi's values, contiguous, for the densities */
    int classes;   /* softmax, ordinal */
    int nodes;     /* GPRN: node functions; warped: tanh terms */
    const thiele_likelihood_spec *spec;
    void *library; /* of a plug-in: what dlopen gave */
    char *path;    /* and its file */
};

/* Whether outputs are sums of products of latents: node functions, the first of them, and weights. */
static inline bool thi_is_network(const thiele_likelihood *lik)
{
    return lik->ops->several && lik->nodes > 0 && lik->latents > lik->nodes;
}

/* --- registry.c: names to likelihoods ---------------------------------------------------------------------------- */

/* A built-in family. families.h says what make finds and what it does; {NULL, NULL} ends the list. */
typedef struct thi_family_entry {
    const thi_likelihood_ops *ops;
    thiele_status (*make)(thiele_likelihood *lik, thiele_context *ctx);
} thi_family_entry;
extern const thi_family_entry thi_family_entries[];

/* Learned unless the caller marks it as fixed afterwards. */
thiele_status thi_likelihood_add_phi(thiele_likelihood *lik, thiele_context *ctx, const char *name, double value,
                                     bool positive);
/* The same with its power of the scale of y (thi_phi). */
thiele_status thi_likelihood_add_scaled(thiele_likelihood *lik, thiele_context *ctx, const char *name, double value,
                                        bool positive, int power);
/*
 * The sum of the logs of the scales of a row's outputs at f, which may be means: p(y | f)^w times the w - 1 st power of
 * these integrates over y to what depends on w alone. A density with weights has that power too: else a row of weight 2
 * would say that there is no noise. 0 where y has no scale: labels, counts, a user's own.
 */
double thi_likelihood_log_scale(const thiele_likelihood *lik, const double *y, const double *f);
/* Its derivative in the log of parameter k. */
double thi_likelihood_scale_slope(const thiele_likelihood *lik, const double *y, int k);
/* Whether it is a user's own that takes many points a call, and wants many: it may be slow to call. */
bool thi_likelihood_is_batched(const thiele_likelihood *lik);
/*
 * ops->guess, which there is, of n rows: y is P x n, f is Q x n and comes as there. A user's own function of one latent
 * is asked about many rows at a time.
 */
void thi_likelihood_guesses(const thiele_likelihood *lik, int64_t n, const double *y, double *f);
/* All of it apart from the original; the library of a plug-in stays loaded until the last copy is gone. */
thiele_status thi_likelihood_copy(thiele_likelihood **out, thiele_context *ctx, const thiele_likelihood *lik);
/* Why y is outside the support ("a count must be 0, 1, 2, ..."), or NULL when it is fine. NaN (missing) is fine. */
const char *thi_likelihood_refuses(const thiele_likelihood *lik, double y);
/* Sets a parameter when the value is in its range. Values may depend on each other: ops->check, after all are set. */
thiele_status thi_likelihood_set_phi(thiele_likelihood *lik, thiele_context *ctx, int index, double value);
/* What the family says about the parameters as they stand. */
thiele_status thi_likelihood_check(const thiele_likelihood *lik, thiele_context *ctx);

/* --- parse.c ------------------------------------------------------------------------------------------------------ */

/*
 * The family that a text names, without making one: what is before '(' counts. *ops is NULL for "plugin:...". Error:
 * ARGUMENT for an unknown name, with those that there are.
 */
thiele_status thi_likelihood_find(thiele_context *ctx, const char *text, const thi_likelihood_ops **ops);
/* The text that makes the same likelihood again (with the same numbers of outputs and classes), values and all. */
void thi_likelihood_print(const thiele_likelihood *lik, thi_text *text);
/* Sets the parameters of a likelihood that exists from "(name=value, ...)"; empty text is fine. */
thiele_status thi_likelihood_arguments(thiele_likelihood *lik, thiele_context *ctx, const char *text);

/* --- plugin.c ----------------------------------------------------------------------------------------------------- */

/* thiele_likelihood_try with a limit on the child's time. Called on the main thread, outside parallel work. */
thiele_status thi_likelihood_try(const thiele_likelihood *lik, thiele_context *ctx, int64_t n, const double *y,
                                 double seconds);

#endif

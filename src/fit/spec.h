/*
 * What is fitted to what: the prior of every latent function, the likelihood, the rows. All in the units of the model
 * (standardised); a fit changes the values of kernels, means and likelihood in place.
 */
#ifndef THI_SPEC_H
#define THI_SPEC_H

#include "data/data.h"
#include "expect/expect.h"
#include "posterior/prior.h"

/* Plain Gaussian noise: the built-in one, whatever a user's own is called. */
bool thi_is_gaussian(const thiele_likelihood *lik);

/*
 * Training rows. offset is added to the first latent function; a row counts as `weight` rows that are equal to it: its
 * likelihood to that power.
 */
typedef struct thi_rows {
    int64_t n;
    int dims, outputs; /* D, P */
    double *X, *y;     /* D x n, P x n (NaN: missing) */
    double *offset;    /* n, or NULL: 0 */
    double *weight;    /* n, positive; or NULL: 1 */
} thi_rows;
/* What rows have beside X and y. */
typedef struct thi_aside {
    bool offset, weight;
} thi_aside;
thi_aside thi_rows_aside(const thi_rows *rows);
thiele_status thi_rows_alloc(thi_rows *rows, thiele_context *ctx, int64_t n, int dims, int outputs, thi_aside beside);
void thi_rows_free(thi_rows *rows);
/* Row `from` of others becomes row `to`: X, y, and what both have beside them. */
void thi_rows_copy(thi_rows *rows, int64_t to, const thi_rows *others, int64_t from);
/* How many rows they stand for: the sum of their weights. */
double thi_rows_count(const thi_rows *rows);
/* Copies of `count` of the rows, those numbered by order. */
thiele_status thi_rows_take(thi_rows *out, thiele_context *ctx, const thi_rows *rows, int64_t count,
                            const int64_t *order);
/* A random part of at most `count` of them, by the context's seed. */
thiele_status thi_rows_sample(thi_rows *out, thiele_context *ctx, const thi_rows *rows, int64_t count);

/* The latent functions: Q of them in groups that share one prior (and one kernel). */
typedef struct thi_latents {
    int count, groups; /* Q, G */
    int *group;        /* of each latent */
    thi_mean mean;
    int mean_parameters;    /* of one group */
    thiele_kernel **kernel; /* G of them, owned */
    double *mean_parameter; /* mean_parameters x G */
    thi_prior *prior;       /* views of the above */
} thi_latents;
/*
 * Kernels from text: one for all latents, or as many as there are with ';' between them. shared: all latents have one
 * prior; else each its own. Error: ARGUMENT.
 */
thiele_status thi_latents_make(thi_latents *latents, thiele_context *ctx, const char *kernels, const char *mean,
                               const thi_columns *columns, int count, bool shared);
void thi_latents_clear(thi_latents *latents);
/* A view of one latent function by itself: its values are those of the whole. */
thi_latents thi_latents_view(const thi_latents *latents, int latent);

typedef struct thi_spec {
    thi_latents latents;
    thiele_likelihood *lik;  /* borrowed */
    const char *expectation; /* how E, g, h are to be had; NULL: the best way. Borrowed */
    const char *steps;       /* how those that natural steps begin with; NULL: the same. Borrowed */
    /* Asked between the steps of a long evaluation, which then ends with what it has; NULL: nobody is. Borrowed. */
    struct thi_driver *driver;
} thi_spec;

/*
 * Which latents (open: THI_SIGNS) could all have the other sign as well, by the first few of n rows of y (P x n) that
 * are seen; false: none, or there are more latents than that.
 */
enum { THI_SIGNS = 64 };
bool thi_signs_open(const thiele_likelihood *lik, int64_t n, const double *y, bool *open);
/* Whether there is one latent, and it is such a one. */
bool thi_is_even(const thiele_likelihood *lik, int64_t n, const double *y);
/*
 * Where one row's latent functions begin, by their means and (in v) variances before: the likelihood's guess of f, with
 * a tenth of that variance, but no more than moderate odds or rates allow where f is a logarithm (exp(f) would leave
 * nothing to go by). The log of a noise stays where it is. Where a user's density has signs that are open, and the
 * means say which, it is the mode beside these.
 */
void thi_first_guess(const thiele_likelihood *lik, const double *y, const double *prior, double *f, double *v);

/*
 * From the units of the model to those of the data: f_data = offset + unit * f. A latent of a likelihood whose targets
 * are not standardised, or have several scales, keeps its own; the log of a variance is shifted.
 */
void thi_latent_unit(const thiele_likelihood *lik, const thi_encoder *encoder, int latent, double *unit,
                     double *offset);

#endif

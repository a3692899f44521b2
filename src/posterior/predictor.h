/*
 * The one immutable predictor of a latent function (math.md section 7). A posterior with K components (one, unless it
 * is a mixture) ends as
 *   mean_k(x) = m(x) + k(x, basis) a_k
 *   var_k(x)  = tau (k(x, x) - |w|^2 + |R_k u|^2),   w = L^-1 (scale . k(basis, x)),  u = w or k(basis, x)
 * in the coordinates and units that the model was fitted in. Exact regression has
 * neither scale nor R; inducing-point posteriors have L = chol(Kzz), R = Ls' or C^-1 on w; dense sites have scale =
 * sqrt(lambda) and, where some lambda is negative, R on k. PIC adds what the training rows near x say (local.h).
 * Decoupled posteriors have a second basis for the mean, and their basis functions may have length-scales of their own.
 */
#ifndef THI_PREDICTOR_H
#define THI_PREDICTOR_H

#include "basis/functions.h"
#include "posterior/exact.h"

/* How the matrix R of a component is given. */
typedef enum thi_plus {
    THI_PLUS_NONE,     /* there is none */
    THI_PLUS_TRIANGLE, /* lower triangle of Ls (n x n); R = Ls', applied to w */
    THI_PLUS_WHITE,    /* r x n, applied to w */
    THI_PLUS_KERNEL,   /* r x n, applied to k(basis, x) */
    THI_PLUS_PRECISION /* lower triangle of C = chol(I + T), what rows say (natural.h); R = C^-1, applied to w */
} thi_plus;

/* What is kept of K - Q = k(x, x') - w'w', which is what the basis does not explain. */
typedef enum thi_conditional {
    THI_CONDITIONAL_FULL = 0,
    THI_CONDITIONAL_NONE,     /* nothing: var = |R u|^2 (SoR) */
    THI_CONDITIONAL_DIAGONAL, /* variances, but no covariances of different rows (FIC) */
    THI_CONDITIONAL_KINDS
} thi_conditional;

struct thi_local;

typedef struct thi_predictor {
    thiele_kernel *kernel; /* owned, as is all of it */
    thi_mean mean;
    double *mean_parameter;
    int64_t n;     /* 0: var = k(x, x); with mean_basis only */
    double *basis; /* D x n */
    double *log_c; /* D x n: factors of the length-scales of basis functions (functions.h); NULL: points */
    int64_t mean_n;
    double *mean_basis, *mean_log_c; /* D x mean_n: of the mean, where it has its own; NULL: basis serves both */
    int components;
    double *a;     /* n, or mean_n, x components */
    double *scale; /* n, or NULL: 1 */
    thi_matrix L;  /* n x n, lower triangle */
    thi_plus plus;
    thi_matrix *R; /* one a component; NULL without */
    thi_conditional conditional;
    /*
     * Where rows have shown that predictions of y want another noise, or a smaller variance, than the posterior was
     * made with (fit/predictive.h): the variance of its noise, and the factor of its variances. 0: neither is another.
     */
    double noise, tau;
    struct thi_local *local; /* of PIC (components 1, R by a triangle, conditional FULL); NULL: none */
    thi_inputs inputs;
    thi_functions functions, mean_functions; /* with mean_basis, in place of inputs */
} thi_predictor;

/*
 * Takes over the factor and weights of a conditioned exact regression (which is closed by this, also on failure), and
 * copies the rest.
 */
thiele_status thi_predictor_freeze(thi_predictor *predictor, thiele_context *ctx, thi_exact *exact,
                                   const thi_prior *prior);
/*
 * The beginning of a predictor over n basis points: copies of them, of the kernel and of the mean, zeroed weights and
 * L, no R. The caller fills these in; thi_predictor_clear takes it back at any time.
 */
thiele_status thi_predictor_begin(thi_predictor *predictor, thiele_context *ctx, const thi_prior *prior, int64_t n,
                                  const double *basis, int components);
/* For a predictor whose fields were read from a file: makes what is derived from them. */
thiele_status thi_predictor_finish(thi_predictor *predictor, thiele_context *ctx);
void thi_predictor_clear(thi_predictor *predictor);

/* Whether R is given by a lower triangle of n rows. */
static inline bool thi_plus_is_triangle(thi_plus plus)
{
    return plus == THI_PLUS_TRIANGLE || plus == THI_PLUS_PRECISION;
}
/* U (n x any number) = R U in place, of a component whose R is given by a triangle. */
thiele_status thi_predictor_apply_root(const thi_predictor *predictor, thiele_context *ctx, int component,
                                       thi_matrix U);
/* Of THI_PLUS_PRECISION: R = C^-1 itself, a lower triangle with zeros above it, in a new matrix. n^3/3 flops. */
thiele_status thi_predictor_invert_root(const thi_predictor *predictor, thiele_context *ctx, int component,
                                        thi_matrix *R);
/*
 * A posterior with R on w as what its rows say: R = C^-1 in place of Ls' or a matrix, by inverting S = R'R. Of files
 * of version 2, and of fits that have S and no sums over rows. 5 n^3/3 flops a component. Errors: NUMERIC, MEMORY.
 */
thiele_status thi_predictor_to_precision(thi_predictor *predictor, thiele_context *ctx);

static inline double thi_predictor_tau(const thi_predictor *predictor)
{
    return predictor->tau > 0.0 ? predictor->tau : 1.0;
}

/* Rows predicted at a time, and with a local part: the more are together, the more are of one block. */
enum { THI_PREDICT_BLOCK = 512, THI_PREDICT_WINDOW = 128 * THI_PREDICT_BLOCK };
/*
 * Mean and, unless variance is NULL, variance of f at the n columns of X (D x n), n x components each. A variance that
 * rounding made negative is set to zero and counted in *clipped. n (basis) x THI_PREDICT_BLOCK doubles a thread; 2 D +
 * n_basis flops an entry of k(basis, X), and as many again as R has, unless there are so many rows that it pays to put
 * L and R into one triangle (triangle.h).
 */
thiele_status thi_predictor_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                      double *mean, double *variance, int64_t *clipped);
/* Which rows a prediction with a local part sees (local.h). */
typedef enum thi_sight {
    THI_SEES_BLOCK,   /* those of its own block */
    THI_SEES_NEAREST, /* those nearest to it, of several blocks; unless blocks are by a column */
    THI_SEES_BLEND    /* those of the nearest blocks in turn: continuous across blocks */
} thi_sight;
/*
 * The same of a table that comes in windows: begins as {.p = predictor, .rows = those of the whole table}. What so many
 * rows pay for is made with the first window that has rows. One thread at a time. With twins mean and variance are
 * n x twins.
 */
typedef struct thi_batch {
    const thi_predictor *p; /* borrowed */
    int twins;              /* so many predictors from p on, with which it shares work; 0: it is alone */
    int64_t rows;
    thi_sight sight;
    bool decided;
    thi_matrix *C; /* owned: one triangle a component, where it pays and is accurate; else NULL */
} thi_batch;
/* Finds out how many of the predictors from p on, which are side by side and `most` at most, are twins. */
int thi_batch_twins(thi_batch *batch, int most);
thiele_status thi_batch_marginals(thi_batch *batch, thiele_context *ctx, int64_t n, const double *X, double *mean,
                                  double *variance, int64_t *clipped);
void thi_batch_clear(thi_batch *batch);
/* Mean and covariance (n x n, full symmetric) of f at all columns of X together, of one component. */
thiele_status thi_predictor_joint(const thi_predictor *predictor, thiele_context *ctx, int component, int64_t n,
                                  const double *X, double *mean, double *covariance);

/* joint.c: the same of all components together, with these weights. */
thiele_status thi_predictor_joint_mixture(const thi_predictor *predictor, thiele_context *ctx, const double *weight,
                                          int64_t n, const double *X, double *mean, double *covariance);

/* Functions of separate bases whose covariances are made at a time; room for rows x so many numbers, else unused. */
enum { THI_PREDICT_PORTION = 256 };
/* K (n x rows) = k(basis, x) */
thiele_status thi_predictor_fill(const thi_predictor *predictor, thiele_context *ctx, const thi_inputs *rows,
                                 double *room, thi_matrix K);
/* mean (rows) += k(x, f) a of the first `count` functions f of mean_basis. */
thiele_status thi_predictor_add_mean(const thi_predictor *predictor, thiele_context *ctx, int64_t count,
                                     const double *a, const thi_inputs *rows, double *room, double *mean);

#endif

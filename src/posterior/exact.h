/*
 * Exact Gaussian-process regression (Rasmussen and Williams 2006, chapter 2): y = m(x) + f(x) + e, f ~ GP(0, k),
 * e ~ N(0, noise). With K + noise I = L L' and alpha = (L L')^-1 (y - m):
 *   log p(y) = -(y - m)'alpha/2 - sum log L_ii - n log(2 pi)/2
 *   d log p / dK = Kbar = (alpha alpha' - (L L')^-1) / 2
 * With weights, row i has the noise s2/w_i and, beside the formula, -((w_i - 1) log(2 pi) + log w_i)/2: its likelihood
 * to the power w_i, over the scale of y to the power 1 - w_i (likelihood.h). Of several targets these are sums over
 * them. One n x n matrix serves all of it: it holds K, then L, then, for the gradient, the inverse.
 */
#ifndef THI_EXACT_H
#define THI_EXACT_H

#include "posterior/prior.h"

/* What the engine (engine.h) is opened with; its q is the noise, a variance. */
typedef struct thi_exact_shape {
    int64_t n;
    int targets;          /* P, functions with one prior; 1 where there are predictions to come */
    const double *X, *y;  /* D x n, P x n */
    const double *weight; /* n: row i has the noise s2 / weight; NULL: 1 */
} thi_exact_shape;

/* Its adjoints. */
typedef struct thi_exact_bar {
    double *theta, *mean, *log_noise;
} thi_exact_bar;

typedef struct thi_exact {
    thi_exact_shape shape;
    thi_prior prior; /* of the engine's begin */
    thi_inputs inputs;
    thi_matrix L;        /* n x n */
    double *alpha;       /* n x P */
    double log_marginal; /* log p(y) */
    double noise;        /* variance */
    double jitter;       /* added to the diagonal beside the noise */
    bool factored;       /* L is the factor, not the inverse */
} thi_exact;

/* Bytes that an exact regression over n rows holds at its peak. */
double thi_exact_bytes(int64_t n);
thiele_status thi_exact_open_shape(thi_exact *exact, thiele_context *ctx, const thi_exact_shape *shape);
/* The same of one target. */
thiele_status thi_exact_open(thi_exact *exact, thiele_context *ctx, int64_t n, const double *X, const double *y);
/* What it borrows stays in its place: it may be opened again. */
void thi_exact_close(thi_exact *exact);
/* Factors, solves, log_marginal; noise is a variance. n^3/3 flops. Error: NUMERIC, naming the likely cause. */
thiele_status thi_exact_condition(thi_exact *exact, thiele_context *ctx, const thi_prior *prior, double noise);
/*
 * After thi_exact_condition with the same prior: adds d log p(y) / d log theta, / d mean parameters, / d log noise. L
 * becomes the inverse: condition again before predicting. 2 n^3/3 flops.
 */
thiele_status thi_exact_gradient(thi_exact *exact, thiele_context *ctx, const thi_prior *prior, double *theta_bar,
                                 double *mean_bar, double *log_noise_bar);
/*
 * Leave-one-out predictions of y (P x n, with the noise of a row of weight 1) and their variances, of such rows: y_i -
 * alpha_i / c_i and 1 / c_i, c = diag((L L')^-1) (Rasmussen and Williams section 5.4.2). Needs the factor. n^3/3 flops,
 * n x 256 doubles.
 */
thiele_status thi_exact_loo(const thi_exact *exact, thiele_context *ctx, double *mean, double *variance);

#endif

/*
 * The one immutable predictor (MATH.md section 7): every posterior ends as
 *   mean(x) = k(x, basis) a + m(x)          var(x) = k(x, x) - |L^-1 k(basis, x)|^2
 * in the coordinates and units that the model was fitted in.
 */
#ifndef THI_PREDICTOR_H
#define THI_PREDICTOR_H

#include "posterior/exact.h"

typedef struct thi_predictor {
    thiele_kernel *kernel; /* owned, as is all of it */
    thi_mean mean;
    double *mean_parameter;
    int64_t n;
    double *basis; /* D x n */
    double *a;     /* n */
    thi_matrix L;  /* n x n, lower triangle */
    thi_inputs inputs;
} thi_predictor;

/*
 * Takes over the factor and weights of a conditioned exact regression (which is closed by this, also on failure), and
 * copies the rest.
 */
thiele_status thi_predictor_freeze(thi_predictor *predictor, thiele_context *ctx, thi_exact *exact,
                                   const thi_prior *prior);
/* For a predictor whose fields were read from a file: makes what is derived from them. */
thiele_status thi_predictor_finish(thi_predictor *predictor, thiele_context *ctx);
void thi_predictor_clear(thi_predictor *predictor);

/* Rows predicted at a time. */
enum { THI_PREDICT_BLOCK = 512 };
/*
 * Mean and, unless variance is NULL, variance of f at the n columns of X (D x n). A variance that rounding made
 * negative is set to zero and counted in *clipped. n (basis) x THI_PREDICT_BLOCK doubles; 2 D + n_basis flops an entry
 * of k(basis, X).
 */
thiele_status thi_predictor_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                      double *mean, double *variance, int64_t *clipped);
/* Mean and covariance (n x n, full symmetric) of f at all columns of X together. */
thiele_status thi_predictor_joint(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                  double *mean, double *covariance);

#endif

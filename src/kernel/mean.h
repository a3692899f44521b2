/* Mean functions of the prior: zero, constant b, linear b + w'x. Their parameters are learned like the kernel's. */
#ifndef THI_MEAN_H
#define THI_MEAN_H

#include "base/base.h"

typedef enum thi_mean { THI_MEAN_ZERO, THI_MEAN_CONSTANT, THI_MEAN_LINEAR, THI_MEAN_COUNT } thi_mean;

const char *thi_mean_name(thi_mean mean);
/* Error: ARGUMENT for an unknown name. */
thiele_status thi_mean_find(thiele_context *ctx, const char *name, thi_mean *mean);
/* 0, 1 or D + 1: b, then w. */
int thi_mean_parameters(thi_mean mean, int D);
/* out_i = m(x_i), X is D x n */
void thi_mean_fill(thi_mean mean, const double *parameter, int64_t n, int D, const double *X, double *out);
/* For F with dF/dm(x_i) = mbar_i: parameter_bar += dF/dparameter, and Xbar (D x n) += dF/dX unless NULL. */
void thi_mean_pull(thi_mean mean, const double *parameter, int64_t n, int D, const double *X, const double *mbar,
                   double *parameter_bar, double *Xbar);

#endif

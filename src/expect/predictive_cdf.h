/*
 * P(Y <= y) of one output of one row, averaged over f and added up over the components of a mixture: exact where the
 * likelihood has it, else the average of the one given f, else from the density alone (predictive_distribution.h).
 */
#ifndef THI_PREDICTIVE_CDF_H
#define THI_PREDICTIVE_CDF_H

#include "expect/integrate.h"
#include "expect/predictive_distribution.h"

typedef struct thi_row_cdf {
    thi_expect *expect;
    thi_marginals row; /* of thi_gather: its components are one behind the other */
    int output;
    bool again;   /* averages are taken at the levels of the ladder where the one before settled */
    thi_law *law; /* from the density alone; else NULL */
} thi_row_cdf;

/* Whether the likelihood tells its distribution function; else its density is integrated over y. */
bool thi_has_cdf(const thiele_likelihood *lik);
/* Before the first value, and after anything else has used the provider. */
thiele_status thi_row_cdf_prepare(thi_row_cdf *cdf, thiele_context *ctx);
thiele_status thi_row_cdf_at(thi_row_cdf *cdf, thiele_context *ctx, double y, double *p);

#endif

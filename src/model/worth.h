/* What a fit ended with, judged as its user would: is it better than a constant, and did it end by itself? */
#ifndef THI_WORTH_H
#define THI_WORTH_H

#include "model/specify.h"

/*
 * The model at some of its own rows beside the best constant: for numbers a Gaussian with their mean and variance, for
 * labels their frequencies. *worse: by more than chance allows, for a target at least. Likelihoods of counts and of
 * several dependent targets are not judged.
 */
thiele_status thi_is_worse_than_constant(thi_fitting *f, bool *worse);
/* Says what a user should know of how it ended: limits that were reached, with what to do. */
void thi_report_limits(const thi_fitting *f);

#endif

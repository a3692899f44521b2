/*
 * How heavy the tail of importance weights is: the shape k of the generalised Pareto law that fits the largest of them
 * (Vehtari, Simpson, Gelman, Yao and Gabry 2024), by the estimator of Zhang and Stephens (2009) with the weak prior of
 * the former. A mean with such weights is to be trusted for k < min(1 - 1/log10 S, 0.7), S draws.
 */
#ifndef THI_PARETO_H
#define THI_PARETO_H

#include "base/base.h"

/*
 * n log weights, up to a constant; they are sorted in place, and the largest of them replaced by the quantiles of the
 * law (smoothed): all with that of the largest as 0. Returns k; infinite where fewer than 5 of them are a tail. O(n log
 * n).
 */
double thi_pareto_smooth(int64_t n, double *log_weight);
double thi_pareto_threshold(int64_t n);

#endif

/* What statistics says of a number that was seen: how far chance alone takes it. */
#ifndef THI_STATISTIC_H
#define THI_STATISTIC_H

#include "base/base.h"

/* The largest distance between the distribution function of n sorted numbers and that of the uniform law on (0, 1). */
double thi_ks_uniform(int64_t n, const double *sorted);
/* The same between two samples, both sorted. */
double thi_ks_two(int64_t n, const double *a, int64_t m, const double *b);
/* P(distance >= d) of n independent numbers, with Stephens' correction for small n (1970); two samples have n m/(n +
 * m). */
double thi_kolmogorov_tail(double n, double d);
/* The distance that n numbers exceed with probability alpha: half the width of a simultaneous band. */
double thi_kolmogorov_quantile(double n, double alpha);
/* P(X >= k) and P(X <= k) for X ~ Binomial(n, p). */
double thi_binomial_upper(int64_t n, int64_t k, double p);
double thi_binomial_lower(int64_t n, int64_t k, double p);
/* Counts that Binomial(n, p) leaves on either side with probability alpha/2 at most. */
void thi_binomial_band(int64_t n, double p, double alpha, int64_t *low, int64_t *high);
/* P(X >= x) of chi-square with df degrees of freedom. */
double thi_chi_square_tail(double df, double x);
/* The quantile of sorted numbers, between neighbours. */
double thi_sorted_quantile(int64_t n, const double *sorted, double p);

#endif

/*
 * Differences of log Gamma and digamma that lose nothing when their arguments are large and close: the plain
 * difference of log Gamma at 1e8 is good to six digits only. From Stirling's series above 10, where its next term is
 * below an ulp.
 */
#ifndef THI_STIRLING_H
#define THI_STIRLING_H

/* log Gamma(x + y) - log Gamma(x), x > 0, y >= 0. */
double thi_lgamma_rise(double x, double y);
/* digamma(x + y) - digamma(x), x > 0, y >= 0. */
double thi_digamma_rise(double x, double y);
/* x log x - x - log Gamma(x), x > 0: about log(x/(2 pi))/2. */
double thi_lgamma_gap(double x);
/* log x - digamma(x), x > 0: about 1/(2x). */
double thi_digamma_gap(double x);
/* d - log(1 + d) without cancellation near d = 0; ratio = 1 + d is given too. */
double thi_log_excess(double d, double ratio);
/* log of n choose k. */
double thi_log_choose(double n, double k);

#endif

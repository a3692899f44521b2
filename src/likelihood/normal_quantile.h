/* The Gaussian predictive distribution: its quantiles. */
#ifndef THI_NORMAL_QUANTILE_H
#define THI_NORMAL_QUANTILE_H

/* z with P(Z <= z) = p for a standard normal Z, 0 < p < 1; relative error below 1e-15 in the centre, 1e-14 in the
 * tails. */
double thi_normal_quantile(double p);

#endif

/*
 * How far to trust the draws of several Markov chains of one number: do the chains agree (R-hat: Gelman and Rubin 1992,
 * Brooks and Gelman 1998), and how many independent draws are theirs worth (Geyer 1992).
 *
 * m chains of n draws. W: mean of the chains' variances (n - 1); B: n times the variance (m - 1) of their means.
 *   var+ = (n-1)/n W + B/n,  V = var+ + B/(m n)
 *   rho_t of a chain = sum_{i < n-t} d_i d_{i+t} / sum d_i^2, d the deviations from the chain's mean
 *   tau = -1 + 2 sum_k (rho_{2k} + rho_{2k+1}) over the leading positive pairs;  effective draws n/tau
 */
#ifndef THI_DIAGNOSTICS_H
#define THI_DIAGNOSTICS_H

#include "base/base.h"

enum { THI_CHAINS_MAX = 64 };

typedef struct thi_diagnosis {
    double within, between; /* W, B */
    double pooled, spread;  /* var+, V */
    /* sqrt(V/W); without the sampling term, sqrt(var+/W); with the correction for df: sqrt((df+3)/(df+1) V/W). */
    double rhat, rhat_plain, rhat_corrected;
    double df;             /* 2 V^2 / var(V) */
    double lag1;           /* rho_1, mean over the chains */
    double ess;            /* sum of the chains' own n/tau */
    double ess_multichain; /* m n/tau with rho_t = 1 - (W - mean_j s_j^2 rho_jt)/var+ */
} thi_diagnosis;

/*
 * x (n x m, a chain a column) is overwritten by the deviations from the chains' means. ess_per_chain (m) may be NULL. A
 * chain that never moved counts as one draw with rho_1 = 1; R-hat is then infinite unless all stand at one value. One
 * chain: R-hat is that of its halves, df is NaN. m <= THI_CHAINS_MAX, n >= 4. O(m n) for each lag up to the first pair
 * that is not positive.
 */
void thi_diagnose(int m, int64_t n, double *x, thi_diagnosis *out, double *ess_per_chain);

/* Subtracts the mean; returns it. */
double thi_centre(int64_t n, double *x);
/* rho_lag of centred draws d; 1 when they are all zero. */
double thi_autocorrelation(int64_t n, const double *d, int64_t lag);

/* The diagnoses of many numbers in one. */
typedef struct thi_mixing {
    double rhat;                  /* the largest */
    double share;                 /* of the numbers whose R-hat is above THI_RHAT_MIXED or none */
    double lag1;                  /* mean */
    double ess_least, ess_median; /* of ess_multichain */
} thi_mixing;
#define THI_RHAT_MIXED 1.05
/* count >= 1 diagnoses; the order of `diagnosis` is changed. */
void thi_mixing_of(int64_t count, thi_diagnosis *diagnosis, thi_mixing *out);

#endif

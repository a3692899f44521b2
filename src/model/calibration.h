/*
 * Calibration: how the predictions of a fitted model are corrected by residuals of rows that it had not seen.
 *
 * Numbers. Each row's predictive law has a place and a spread on the axis without ends (y, log y, log odds): its
 * median, and the way from there to its 16% and 84% quantiles, one standard deviation of a normal. The score of a row
 * is t = (y - median)/spread. Split conformal prediction (Vovk et al. 2005; Lei et al. 2018): of n exchangeable scores
 * and one more, the latter is at most the ceil((n + 1) L)-th smallest |t| with a probability from L to L + 1/(n + 1).
 * So the central interval of level L is median -+ spread T, and the law with these intervals at a few levels, T linear
 * in the normal score between them, is what is predicted: quantiles, density, variance and draws all come from it.
 *
 * Labels. p_c^(1/temperature), scaled to sum to 1 (Guo et al. 2017).
 */
#ifndef THI_CALIBRATION_H
#define THI_CALIBRATION_H

#include "base/base.h"
#include "likelihood/likelihood.h"

enum { THI_KNOTS_MAX = 12 };

/* The law of scaled residuals, symmetric: T at normal scores z > 0, both ascending. No knots: the normal one, T = z. */
typedef struct thi_residual_law {
    int count;
    double level[THI_KNOTS_MAX]; /* of the central intervals */
    double z[THI_KNOTS_MAX], t[THI_KNOTS_MAX];
    double square;   /* E[T^2] under a standard normal z */
    double distance; /* E|T - T'|/2 of two draws */
} thi_residual_law;

typedef struct thi_calibration {
    int64_t rows;          /* that it comes from; 0: the model is not calibrated */
    bool left_out;         /* they are leave-one-out residuals; else rows that were held out */
    double temperature;    /* of labels; 0: the targets are numbers */
    thi_residual_law *law; /* of numbers: one a target */
} thi_calibration;

/* Place and spread of one predictive law, on the axis of its support. */
typedef struct thi_spread {
    double below, centre, above; /* first the quantiles of 16%, 50% and 84%, then the ways from the centre */
} thi_spread;

void thi_sort(int64_t n, double *x);
/* From |t| of n scores in ascending order: conformal quantiles at the levels that so many can tell. */
void thi_residual_law_make(thi_residual_law *law, int64_t n, const double *size);
/* Fills in what follows from the levels and their T. False when they are no law. */
bool thi_residual_law_finish(thi_residual_law *law);
/* T(z) for any normal score z, and the z with T(z) = t. */
double thi_residual_quantile(const thi_residual_law *law, double z);
double thi_residual_score(const thi_residual_law *law, double t);

/* The continuous ranked probability score of a residual t. */
double thi_residual_crps(const thi_residual_law *law, double t);

/* Three quantiles on the axis of the support become a spread. */
void thi_spread_finish(thi_spread *spread, thi_support support);
/* (y - centre)/spread; finite wherever y is in the support. */
double thi_spread_residual(const thi_spread *spread, thi_support support, double y);
/* The y at normal score z of the calibrated law; the log of its density at y. */
double thi_calibrated_value(const thi_residual_law *law, const thi_spread *spread, thi_support support, double z);
double thi_calibrated_log_density(const thi_residual_law *law, const thi_spread *spread, thi_support support, double y);
/* The variance of the calibrated law, where `variance` is the one before. */
double thi_calibrated_variance(const thi_residual_law *law, const thi_spread *spread, thi_support support,
                               double variance);

/* The continuous ranked probability score of y under the calibrated law, in closed form where its sides are equal. */
thiele_status thi_calibrated_crps(const thi_residual_law *law, const thi_spread *spread, thi_support support,
                                  thiele_context *ctx, double y, double *crps);

/* Probabilities (classes x n) to those at a temperature, in place. */
void thi_temper(double temperature, int64_t n, int classes, double *probability);
/*
 * The temperature with the smallest mean of -log p of the labels, between 0.1 and 10, with a prior that is worth one
 * row. probability: classes x n.
 */
double thi_find_temperature(int64_t n, int classes, const int *label, const double *probability);

#endif

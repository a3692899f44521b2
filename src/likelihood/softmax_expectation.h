/* Averages of a softmax over independent normal latents, deterministic and fast for any number of classes. */
#ifndef THI_SOFTMAX_EXPECTATION_H
#define THI_SOFTMAX_EXPECTATION_H

#include "likelihood/likelihood.h"

/* thi_likelihood_ops.expectation and .log_predictive. */
void thi_softmax_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                             const double *v, double *E, double *g, double *h, double *dphi);
void thi_softmax_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                const double *v, double *out);
/* P(class c) under f ~ N(mu, diag v): classes x n, columns add up to 1. All classes for the price of one. */
void thi_softmax_probabilities(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v,
                               double *probability);

#endif

/*
 * The built-in likelihoods, each a table of operations and a function that makes one. Before make is called the object
 * holds what was asked for: outputs, classes and nodes, 0 where nothing was said; make fills in defaults, refuses what
 * makes no sense, sets latents and adds the parameters, marking those that are fixed unless asked otherwise.
 */
#ifndef THI_FAMILIES_H
#define THI_FAMILIES_H

#include "likelihood/augment.h"

/* --- reals and signs --- */
extern const thi_likelihood_ops thi_lik_bernoulli, thi_lik_bernoulli_probit, thi_lik_gaussian, thi_lik_heteroscedastic,
    thi_lik_laplace, thi_lik_matern32, thi_lik_student_t, thi_lik_svm;

thiele_status thi_make_bernoulli(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_gaussian(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_heteroscedastic(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_laplace(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_matern32(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_student_t(thiele_likelihood *lik, thiele_context *ctx);

/* --- counts, positive and bounded reals, classes, several outputs --- */
extern const thi_likelihood_ops thi_lik_beta, thi_lik_binomial, thi_lik_exponential, thi_lik_gamma, thi_lik_gaussians,
    thi_lik_gprn, thi_lik_logistic_softmax, thi_lik_mixing, thi_lik_negative_binomial, thi_lik_ordinal, thi_lik_poisson,
    thi_lik_sigmoid_poisson, thi_lik_softmax, thi_lik_warped;

thiele_status thi_make_beta(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_binomial(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_exponential(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_gamma(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_gaussians(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_gprn(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_logistic_softmax(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_mixing(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_negative_binomial(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_ordinal(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_poisson(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_sigmoid_poisson(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_softmax(thiele_likelihood *lik, thiele_context *ctx);
thiele_status thi_make_warped(thiele_likelihood *lik, thiele_context *ctx);

/* --- augmentations by a form (augment_forms.c) --- */
extern const thi_augmentation thi_aug_bernoulli, thi_aug_binomial, thi_aug_laplace, thi_aug_matern32,
    thi_aug_negative_binomial, thi_aug_student_t, thi_aug_svm;

#endif

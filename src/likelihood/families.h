/*
 * The built-in likelihoods, each a table of operations and a function that makes one. Before make is called the object
 * holds what was asked for: outputs, classes and nodes, 0 where nothing was said; make fills in defaults, refuses what
 * makes no sense, sets latents and adds the parameters, marking those that are fixed unless asked otherwise.
 */
#ifndef THI_LIKELIHOOD_FAMILIES_H
#define THI_LIKELIHOOD_FAMILIES_H

#include "likelihood/augment.h"

/* The list of all of them; a program of tests has its own. */
#ifndef THI_FAMILIES
#define THI_FAMILIES "likelihood/families.def"
#endif
#define THI_FAMILY(ops, make)                                                                                          \
    extern const thi_likelihood_ops thi_lik_##ops;                                                                     \
    thiele_status thi_make_##make(thiele_likelihood *lik, thiele_context *ctx);
#include THI_FAMILIES
#undef THI_FAMILY

/* --- augmentations by a form (augment_forms.c) --- */
extern const thi_augmentation thi_aug_bernoulli, thi_aug_binomial, thi_aug_laplace, thi_aug_matern32,
    thi_aug_negative_binomial, thi_aug_student_t, thi_aug_svm;

#endif

/* A user's own likelihood: what custom.c, custom_augment.c and plugin.c share. */
#ifndef THI_CUSTOM_H
#define THI_CUSTOM_H

#include "likelihood/augment.h"

/* Of this header, or of one of version 1, without or with augmentations; no field beyond its size may be read. */
bool thi_spec_is_known(const thiele_likelihood_spec *spec);
/* Whether it has log_densities. */
bool thi_spec_is_batched(const thiele_likelihood_spec *spec);
bool thi_spec_is_augmented(const thiele_likelihood_spec *spec);
/* What can be said about an augmentation without calling it. */
thiele_status thi_custom_check(thiele_context *ctx, const thiele_likelihood_spec *spec);

extern const thi_augmentation thi_custom_augmentation;
/* log p from the augmentation. */
double thi_custom_density(const thiele_likelihood *lik, double y, double f);

/* What is wrong with an augmentation, and where. */
typedef struct thi_flaw {
    int kind;
    double y, at, got, want;
} thi_flaw;
/* True when something is: the identity with log_density at this y and, if `whole`, phi itself. Calls the user's code.
 */
bool thi_custom_examine(const thiele_likelihood *lik, double y, bool whole, thi_flaw *flaw);
/* ARGUMENT, with a sentence about it. */
thiele_status thi_custom_refuse(thiele_context *ctx, const thiele_likelihood *lik, const thi_flaw *flaw);

#endif

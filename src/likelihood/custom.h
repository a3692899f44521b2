/* A user's own likelihood: what custom.c, custom_augment.c, those next to it and plugin.c share. */
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

/* The most latents of an augmentation. */
enum { THI_AUGMENTED_LATENTS = 64 };

/* Of one output and one latent, and of more (custom_latents.c). */
extern const thi_augmentation thi_custom_augmentation, thi_custom_augmentation_of_latents;
/* log p from the augmentation; y: the outputs of a row, f: its latents. */
double thi_custom_density(const thiele_likelihood *lik, const double *y, const double *f);
/* One for each latent. */
void thi_custom_coefficients(const thiele_likelihood *lik, const double *y, thi_coefficients *out);
/* r = E[sum_q (alpha_q - beta_q f_q + gamma_q f_q^2)] under f_q ~ N(mu_q, v_q); v may be NULL for zeros. */
double thi_custom_square(int latents, const thi_coefficients *c, const double *mu, const double *v);
/* log phi of one row, which is the arg: a thi_log_phi_fn (inversion.h). */
typedef struct thi_custom_row {
    const thiele_likelihood *lik;
    const double *y;
} thi_custom_row;
double complex thi_custom_log_phi(const void *row, double complex r);
/* The sum, or integral, of the density over all y at one f, which y suits well; one output. */
double thi_custom_total(const thiele_likelihood *lik, double y, const double *f);

/* custom_signs.c: operations of a likelihood. */
bool thi_custom_even(const thiele_likelihood *lik, const double *y, double *f);
void thi_custom_guess(const thiele_likelihood *lik, const double *y, double *f);

/* What is wrong with an augmentation, and where. */
typedef struct thi_flaw {
    int kind;
    double y, at, got, want;
} thi_flaw;
/* True when something is: the identity with log_density at these outputs and, if `whole`, phi itself and the sum over
 * all y. Calls the user's code. */
bool thi_custom_examine(const thiele_likelihood *lik, const double *y, bool whole, thi_flaw *flaw);
/* ARGUMENT, with a sentence about it. */
thiele_status thi_custom_refuse(thiele_context *ctx, const thiele_likelihood *lik, const thi_flaw *flaw);

#endif

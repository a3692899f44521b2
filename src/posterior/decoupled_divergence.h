/*
 * KL between two decoupled posteriors with bases of their own in one space of functions (Cheng and Boots 2017, theorem
 * 1): q has the mean k(., alpha) a and the precision I + Psi_beta B Psi_beta', B = L L' (the prior mean is that of
 * both), p the same with bars:
 *   2 KL(q || p) = log|H| - (M_beta - tr H^-1) - tr(Y H^-1 Y') + |d|^2 + |g|^2 + tr(H_p) - M_p - log|H_p|
 *   H = I + L'K_beta L,   H_p = I + L_p'K_beta_p L_p,   Y = L_p'K_beta_p,beta L
 *   d = k(., alpha) a - k(., alpha_p) a_p,   g = L_p'd(beta_p)
 * No dimension of the space is in it. What anchors a model to an old one while its bases grow, move or are pruned.
 * With B = L1^-T T L1^-1, L1 = chol(K_beta), it is that of posteriors by sites (natural.h) too. Time M_alpha^2 and
 * M_beta^3, memory linear in M_alpha: covariances with alpha are made by portions. The same bits on any number of
 * threads.
 */
#ifndef THI_DECOUPLED_DIVERGENCE_H
#define THI_DECOUPLED_DIVERGENCE_H

#include "basis/functions.h"

typedef struct thi_decoupled_law {
    thi_functions alpha, beta; /* of one kernel; alpha may be empty */
    const double *a;           /* alpha.n */
    thi_matrix L;              /* beta.n x beta.n, lower triangle with zeros above; diagonal of either sign */
} thi_decoupled_law;

/* Gradients; each is added to, NULL: not wanted. */
typedef struct thi_decoupled_law_bar {
    double *a;                     /* of q */
    double *L;                     /* of q: beta.n x beta.n, lower triangle */
    double *theta;                 /* of the kernel that both have */
    thi_functions_bar alpha, beta; /* of q's points and their length-scales; theta is not looked at */
} thi_decoupled_law_bar;

/* bar NULL: the value alone. Errors: NUMERIC (H cannot be factored), MEMORY. */
thiele_status thi_decoupled_divergence(thiele_context *ctx, const thi_decoupled_law *q, const thi_decoupled_law *p,
                                       double *value, const thi_decoupled_law_bar *bar);

#endif

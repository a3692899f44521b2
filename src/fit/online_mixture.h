/*
 * Online learning of a mixture (online.h): every component goes on as if it were alone, with itself as prior, and the
 * weights follow what each of them made of the batch,
 *   pi_k <- pi_k exp(bound_k) / sum_l pi_l exp(bound_l),   bound_k = sum_n E_nk - KL(q_k || q_k,old)
 * which maximises sum_k pi_k bound_k - KL(pi || pi_old), a lower bound of that of the mixtures: KL(q || q_old) of two
 * mixtures is at most that of their weights and of their components pair by pair. Forgetting fades log pi too. K times
 * the cost of one component.
 */
#ifndef THI_FIT_ONLINE_MIXTURE_H
#define THI_FIT_ONLINE_MIXTURE_H

#include "fit/online.h"

typedef struct thi_online_mixture {
    int components, latents;
    double *weight;      /* K; borrowed, and changed by learning */
    thi_predictor *view; /* Q x K: components of the predictors as predictors, which borrow all they have */
    thi_online *of;      /* K */
} thi_online_mixture;

/* As thi_online_open; latent (changed by freezing) and weight outlive it. */
thiele_status thi_online_mixture_open(thi_online_mixture *mixture, thiele_context *ctx, int latents,
                                      thi_predictor *latent, double *weight, const thiele_likelihood *lik,
                                      const thi_online_settings *settings);
void thi_online_mixture_close(thi_online_mixture *mixture);
/* As thi_online_predict: mu and v are Q x n x K. */
thiele_status thi_online_mixture_predict(thi_online_mixture *mixture, thiele_context *ctx, int64_t n, const double *X,
                                         const double *offset, double *mu, double *v);
/* As thi_online_learn; lasting: what time leaves of all before the batch, 1: all of it. */
thiele_status thi_online_mixture_learn(thi_online_mixture *mixture, thiele_context *ctx, double lasting,
                                       const double *y, int64_t row);
/* Puts the present q into the predictors. */
void thi_online_mixture_freeze(thi_online_mixture *mixture);

#endif

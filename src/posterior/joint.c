/*
 * Several rows together under a mixture: mean sum_k pi_k m_k, and the covariance sum_k pi_k (C_k + d_k d_k'), d_k what
 * m_k differs by from that mean. Components without R (draws of the posterior) have one C between them. n^2 (n_basis +
 * n) flops for each C, n^2 for each component.
 */
#include <math.h>
#include <string.h>

#include "posterior/predictor.h"

/* covariance = sum_k pi_k C_k; room: n x n, mean: n, overwritten. */
static thiele_status add_covariances(const thi_predictor *p, thiele_context *ctx, const double *weight, int64_t n,
                                     const double *X, double *room, double *mean, double *covariance)
{
    int distinct = p->R != NULL ? p->components : 1;
    memset(covariance, 0, (size_t)(n * n) * sizeof *covariance);
    for (int k = 0; k < distinct; k++) {
        thiele_status status = thi_predictor_joint(p, ctx, k, n, X, mean, room);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_axpy(n * n, distinct > 1 ? weight[k] : 1.0, room, covariance);
    }
    return THIELE_OK;
}

thiele_status thi_predictor_joint_mixture(const thi_predictor *p, thiele_context *ctx, const double *weight, int64_t n,
                                          const double *X, double *mean, double *covariance)
{
    int K = p->components;
    double *room = NULL, *means = NULL;
    int64_t clipped;
    thiele_status status;
    if (K == 1) {
        return thi_predictor_joint(p, ctx, 0, n, X, mean, covariance);
    }
    THI_TRY(thi_alloc(ctx, &room, (size_t)(n * n), sizeof *room));
    THI_TRY(thi_alloc(ctx, &means, (size_t)n * (size_t)K, sizeof *means));
    THI_TRY(add_covariances(p, ctx, weight, n, X, room, mean, covariance));
    THI_TRY(thi_predictor_marginals(p, ctx, n, X, means, NULL, &clipped));
    memset(mean, 0, (size_t)n * sizeof *mean);
    for (int k = 0; k < K; k++) {
        thi_blas_axpy(n, weight[k], means + k * n, mean);
    }
    for (int k = 0; k < K; k++) {
        for (int64_t i = 0; i < n; i++) {
            means[i + k * n] = sqrt(weight[k]) * (means[i + k * n] - mean[i]);
        }
    }
    thi_matrix d = thi_matrix_view(means, n, K, n);
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, d, d, 1.0, thi_matrix_view(covariance, n, n, n), false));
out:
    thi_free(room);
    thi_free(means);
    return status;
}

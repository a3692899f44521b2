/*
 * KL(q || p), and its gradient in q at fixed L. For one Gaussian it is exact; in w
 *   KL = (|m|^2 + tr S - M - log|S|) / 2
 * For a mixture (savigp-jmlr eqs. 14 and 15, appendix C) it is minus the sum of
 *   entropy bound  -sum_k pi_k z_k,  z_k = log sum_l pi_l N_kl,  N_kl = prod_j N(m_kj; m_lj, S_kj + S_lj)
 *   cross term      sum_k pi_k sum_j E_kj[log p(w_j)]
 * log|L| is in both and cancels, so that a full mixture in u has the same bound in w; a diagonal one in u has Kzz in
 * the cross term: m'Kzz^-1 m + sum_i s_i (Kzz^-1)_ii + log|Kzz| in place of |m|^2 + tr S.
 *
 * With C = S_k + S_l, e = C^-1 (m_k - m_l) and r_kl = pi_l N_kl / exp(z_k):
 *   d entropy / d log N_kl = -pi_k r_kl       d log N_kl / dS_k = (e e' - C^-1)/2
 *
 * Cost: O(K^2 M^3) a latent for full ones, O(K^2 M) for diagonal ones.
 */
#include "posterior/variational_internal.h"

#include <math.h>
#include <string.h>

#define LOG_2   0.693147180559945309417
#define LOG_2PI 1.837877066409345483561

static thi_member *member_of(const thi_variational *v, int component, int latent)
{
    return &v->member[component * v->shape.latents + latent];
}

/* log|S| of one member, in its own coordinates. */
static double log_determinant(const thi_variational *v, const thi_member *member)
{
    double sum = 0.0;
    if (thi_is_full(v)) {
        return thi_chol_logdet(member->Ls);
    }
    for (int64_t i = 0; i < v->shape.inducing; i++) {
        sum += log(member->s[i]);
    }
    return sum;
}

/* -2 E[log p(w)] - M log 2 pi of one member; mbar is used for L^-1 m. */
static double cross_term(const thi_variational *v, const thi_member *member)
{
    int64_t M = v->shape.inducing;
    const thi_group *group = &v->group[member->group];
    double sum = thi_blas_dot(M, member->m, member->m);
    if (thi_is_full(v)) {
        for (int64_t j = 0; j < M; j++) {
            const double *column = member->Ls.data + j + j * M;
            sum += thi_blas_dot(M - j, column, column);
        }
        return sum;
    }
    if (thi_is_plain_diagonal(v)) {
        memcpy(member->mbar, member->m, (size_t)M * sizeof(double));
        thi_blas_trsv(THI_N, group->L, member->mbar);
        return thi_blas_dot(M, member->mbar, member->mbar) + thi_blas_dot(M, member->s, group->inverse_diagonal) +
               thi_chol_logdet(group->L);
    }
    for (int64_t i = 0; i < M; i++) {
        sum += member->s[i];
    }
    return sum;
}

/* The lower triangle of work[0] becomes the factor of S_k + S_l. */
static thiele_status factor_pair(thi_variational *v, thiele_context *ctx, const thi_member *a, const thi_member *b)
{
    thi_matrix C = v->work[0];
    thiele_status status = thi_multiply(ctx, THI_N, THI_T, 1.0, a->Ls, a->Ls, 0.0, C, true);
    if (status == THIELE_OK) {
        status = thi_multiply(ctx, THI_N, THI_T, 1.0, b->Ls, b->Ls, 1.0, C, true);
    }
    if (status == THIELE_OK) {
        status = thi_chol(ctx, C);
    }
    return status;
}

/* log N(m_k; m_l, S_k + S_l) of one latent. */
static thiele_status full_pair(thi_variational *v, thiele_context *ctx, thi_member *a, const thi_member *b, double *out)
{
    int64_t M = v->shape.inducing;
    thi_matrix C = v->work[0];
    double *difference = v->work[1].data;
    thiele_status status = factor_pair(v, ctx, a, b);
    for (int64_t i = 0; i < M; i++) {
        difference[i] = a->m[i] - b->m[i];
    }
    if (status == THIELE_OK) {
        thi_blas_trsv(THI_N, C, difference);
        *out = -0.5 * ((double)M * LOG_2PI + thi_chol_logdet(C) + thi_blas_dot(M, difference, difference));
    }
    return status;
}

static double diagonal_pair(int64_t M, const thi_member *a, const thi_member *b)
{
    double sum = (double)M * LOG_2PI;
    for (int64_t i = 0; i < M; i++) {
        double c = a->s[i] + b->s[i], e = a->m[i] - b->m[i];
        sum += log(c) + e * e / c;
    }
    return -0.5 * sum;
}

/* log N_kl of all pairs, k <= l, into the upper triangle of `pair`. */
static thiele_status all_pairs(thi_variational *v, thiele_context *ctx)
{
    int K = v->shape.components, Q = v->shape.latents;
    double M = (double)v->shape.inducing;
    for (int l = 0; l < K; l++) {
        for (int k = 0; k <= l; k++) {
            double sum = 0.0;
            for (int j = 0; j < Q; j++) {
                thi_member *a = member_of(v, k, j), *b = member_of(v, l, j);
                double own = 0.0;
                thiele_status status = THIELE_OK;
                if (k == l) {
                    own = -0.5 * (M * (LOG_2PI + LOG_2) + log_determinant(v, a));
                } else if (thi_is_full(v)) {
                    status = full_pair(v, ctx, a, b, &own);
                } else {
                    own = diagonal_pair(v->shape.inducing, a, b);
                }
                if (status != THIELE_OK) {
                    return status;
                }
                sum += own;
            }
            v->pair[k + l * K] = v->pair[l + k * K] = sum;
        }
    }
    return THIELE_OK;
}

/* z_k, with `pair` becoming log r_kl = log pi_l + log N_kl - z_k at [l + k K]. */
static void densities(thi_variational *v)
{
    int K = v->shape.components;
    for (int k = 0; k < K; k++) {
        double *row = v->pair + k * K, largest = -INFINITY, sum = 0.0;
        for (int l = 0; l < K; l++) {
            row[l] += log(v->weight[l]);
            largest = row[l] > largest ? row[l] : largest;
        }
        for (int l = 0; l < K; l++) {
            sum += exp(row[l] - largest);
        }
        v->density[k] = largest + log(fmax(sum, 1.0)); /* the largest gives 1 by itself */
        for (int l = 0; l < K; l++) {
            row[l] -= v->density[k];
        }
    }
}

thiele_status thi_kl_value(thi_variational *v, thiele_context *ctx, double *kl)
{
    int K = v->shape.components;
    double M = (double)v->shape.inducing, sum = 0.0;
    for (int i = 0; i < v->members; i++) {
        double cross = cross_term(v, &v->member[i]);
        if (K == 1) {
            sum += 0.5 * (cross - M - log_determinant(v, &v->member[i]));
        } else {
            sum += 0.5 * v->weight[v->member[i].component] * (cross + M * LOG_2PI);
        }
    }
    v->self[0] = 1.0;
    thiele_status status = K > 1 ? all_pairs(v, ctx) : THIELE_OK;
    if (status == THIELE_OK && K > 1) {
        densities(v);
        for (int k = 0; k < K; k++) {
            sum += v->weight[k] * v->density[k];
            v->self[k] = v->weight[k] * exp(v->pair[k + k * K]);
        }
    }
    *kl = sum;
    return status;
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

/* What a member has without pairs: -pi_k of the cross term and its own part of the entropy. Of a full one in mbar only.
 */
static void own_adjoint(const thi_variational *v, thi_member *member)
{
    int64_t M = v->shape.inducing;
    const thi_group *group = &v->group[member->group];
    double weight = v->weight[member->component], self = v->self[member->component];
    if (thi_is_plain_diagonal(v)) {
        thi_blas_trsv(THI_T, group->L, member->mbar); /* it holds L^-1 m */
    } else {
        memcpy(member->mbar, member->m, (size_t)M * sizeof(double));
    }
    for (int64_t i = 0; i < M; i++) {
        member->mbar[i] *= -weight;
    }
    for (int64_t i = 0; v->shape.diagonal && i < M; i++) {
        double precision = thi_is_plain_diagonal(v) ? group->inverse_diagonal[i] : 1.0;
        member->sbar[i] = 0.5 * (self / member->s[i] - weight * precision);
    }
}

/* Adds `weight` times the gradient of log N(m_k; m_l, S_k + S_l). */
static thiele_status full_pair_adjoint(thi_variational *v, thiele_context *ctx, thi_member *a, thi_member *b,
                                       double weight)
{
    int64_t M = v->shape.inducing;
    thi_matrix C = v->work[0];
    double *e = v->work[1].data;
    thiele_status status = factor_pair(v, ctx, a, b);
    for (int64_t i = 0; i < M; i++) {
        e[i] = a->m[i] - b->m[i];
    }
    if (status == THIELE_OK) {
        thi_blas_trsv(THI_N, C, e);
        thi_blas_trsv(THI_T, C, e);
        status = thi_chol_inverse(ctx, C);
    }
    for (int64_t j = 0; j < M && status == THIELE_OK; j++) {
        a->mbar[j] -= weight * e[j];
        b->mbar[j] += weight * e[j];
        for (int64_t i = j; i < M; i++) {
            double own = 0.5 * weight * (e[i] * e[j] - C.data[i + j * M]);
            a->G.data[i + j * M] += own;
            b->G.data[i + j * M] += own;
        }
    }
    return status;
}

static void diagonal_pair_adjoint(int64_t M, thi_member *a, thi_member *b, double weight)
{
    for (int64_t i = 0; i < M; i++) {
        double c = 1.0 / (a->s[i] + b->s[i]), e = c * (a->m[i] - b->m[i]), own = 0.5 * weight * (e * e - c);
        a->mbar[i] -= weight * e;
        b->mbar[i] += weight * e;
        a->sbar[i] += own;
        b->sbar[i] += own;
    }
}

/*
 * pi_k times the gradient in pi_k: pi_k (E_k + cross_k - z_k) - sum_a pi_a r_ak. Without a division: a weight may be
 * zero.
 */
static void weights_adjoint(thi_variational *v, const double *expected)
{
    int K = v->shape.components, Q = v->shape.latents;
    for (int k = 0; k < K; k++) {
        double sum = (expected != NULL ? expected[k] : 0.0) - v->density[k];
        for (int j = 0; j < Q; j++) {
            sum -= 0.5 * ((double)v->shape.inducing * LOG_2PI + cross_term(v, member_of(v, k, j)));
        }
        v->weight_bar[k] = v->weight[k] * sum;
        for (int a = 0; a < K; a++) {
            v->weight_bar[k] -= v->weight[a] * exp(v->pair[k + a * K]);
        }
    }
}

thiele_status thi_kl_adjoint(thi_variational *v, thiele_context *ctx, const double *expected)
{
    int K = v->shape.components, Q = v->shape.latents;
    int64_t M = v->shape.inducing;
    thiele_status status = THIELE_OK;
    if (K > 1) {
        weights_adjoint(v, expected);
    }
    for (int i = 0; i < v->members; i++) {
        own_adjoint(v, &v->member[i]);
        if (v->member[i].G.data != NULL) {
            memset(v->member[i].G.data, 0, (size_t)(M * M) * sizeof(double));
        }
    }
    for (int l = 0; l < K; l++) {
        for (int k = 0; k < l; k++) {
            double weight = -v->weight[k] * exp(v->pair[l + k * K]) - v->weight[l] * exp(v->pair[k + l * K]);
            for (int j = 0; j < Q && status == THIELE_OK; j++) {
                thi_member *a = member_of(v, k, j), *b = member_of(v, l, j);
                if (thi_is_full(v)) {
                    status = full_pair_adjoint(v, ctx, a, b, weight);
                } else {
                    diagonal_pair_adjoint(M, a, b, weight);
                }
            }
        }
    }
    return status;
}

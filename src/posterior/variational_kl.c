/*
 * KL(q || p), and its gradient in q at fixed L. For one Gaussian it is exact; in w
 *   KL = (|m|^2 + tr S - M - log|S|) / 2
 * For a mixture it is minus the sum of a lower bound on the entropy and
 *   cross term      sum_k pi_k sum_j E_kj[log p(w_j)]                        (savigp-jmlr eq. 15)
 * log|L| is in both and cancels, so that a full mixture in u has the same bound in w; a diagonal one in u has Kzz in
 * the cross term: m'Kzz^-1 m + sum_i s_i (Kzz^-1)_ii + log|Kzz| in place of |m|^2 + tr S.
 *
 * The entropy bound goes by pairs of components, z_k = log sum_l pi_l exp(P_kl), P_kl a sum over the latents:
 *   pairwise  sum_k pi_k (H_k - z_k)   P_kl = -(Bhattacharyya's distance of k and l)        (math.md section 10)
 *   jensen    -sum_k pi_k z_k          P_kl = log N(m_k; m_l, S_k + S_l)                    (savigp-jmlr eq. 14)
 * H_k being the entropy of component k. With C = S_k + S_l, d = m_k - m_l and M dimensions both are
 *   P_kl = -a d'C^-1 d - log|C|/2 + b (log|S_k| + log|S_l|) + c M
 *   pairwise  a = 1/4, b = 1/4, c = log(2)/2        jensen  a = 1/2, b = 0, c = -log(2 pi)/2
 * The first is exact for equal components and for those far apart (Kolchinsky and Tracey 2017); the second loses
 * M (1 - log 2)/2 a latent wherever the components lie.
 *
 * With e = C^-1 d and r_kl = pi_l exp(P_kl - z_k):
 *   d entropy / d P_kl = -pi_k r_kl      dP_kl / dm_k = -2 a e      dP_kl / dS_k = a e e' - C^-1/2 + b S_k^-1
 * C is factored between the factors of S_k and S_l, C = L_k (I + B B') L_k', B = L_k^-1 L_l: nothing is lost where S
 * is nearly singular. Cost: O(K^2 M^3) a latent for full ones, O(K^2 M) for diagonal ones.
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

/* The numbers a, b, c above. */
typedef struct pair_form {
    double square, own, constant;
} pair_form;

static pair_form form_of(const thi_variational *v)
{
    static const pair_form pairwise = {0.25, 0.25, 0.5 * LOG_2}, jensen = {0.5, 0.0, -0.5 * LOG_2PI};
    return v->shape.jensen ? jensen : pairwise;
}

/* The lower triangle of work[0] becomes the factor of I + B B'; a->sbar, free in a full member, m_k - m_l. */
static thiele_status factor_pair(thi_variational *v, thiele_context *ctx, thi_member *a, const thi_member *b)
{
    int64_t M = v->shape.inducing;
    thi_matrix C = v->work[0], B = v->work[1];
    thiele_status status;
    thi_tri_copy_clean(b->Ls, B);
    THI_TRY(thi_tri_solve(ctx, THI_N, a->Ls, B));
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, B, B, 0.0, C, true));
    for (int64_t i = 0; i < M; i++) {
        C.data[i + i * M] += 1.0;
        a->sbar[i] = a->m[i] - b->m[i];
    }
    THI_TRY(thi_chol(ctx, C));
out:
    return status;
}

/* P_kl of one latent. */
static thiele_status full_pair(thi_variational *v, thiele_context *ctx, thi_member *a, const thi_member *b, double *out)
{
    int64_t M = v->shape.inducing;
    pair_form form = form_of(v);
    thiele_status status = factor_pair(v, ctx, a, b);
    if (status == THIELE_OK) {
        double log_a = thi_chol_logdet(a->Ls), log_b = thi_chol_logdet(b->Ls);
        thi_blas_trsv(THI_N, a->Ls, a->sbar);
        thi_blas_trsv(THI_N, v->work[0], a->sbar);
        *out = (double)M * form.constant - form.square * thi_blas_dot(M, a->sbar, a->sbar) -
               0.5 * thi_chol_logdet(v->work[0]) + (form.own - 0.5) * log_a + form.own * log_b;
    }
    return status;
}

/* log c - 2 b (log s_k + log s_l) as one logarithm, which is exact for equal ones: b is 1/4 or 0. */
static double diagonal_pair(const thi_variational *v, const thi_member *a, const thi_member *b)
{
    pair_form form = form_of(v);
    double sum = 0.0, square = 0.0;
    for (int64_t i = 0; i < v->shape.inducing; i++) {
        double c = a->s[i] + b->s[i], d = a->m[i] - b->m[i];
        sum += form.own > 0.0 ? 0.5 * log(0.25 * (c / a->s[i]) * (c / b->s[i])) : log(c) - 2.0 * form.constant;
        square += d * d / c;
    }
    return -form.square * square - 0.5 * sum;
}

/* P_kk of one latent. */
static double own_pair(const thi_variational *v, const thi_member *member)
{
    return v->shape.jensen ? -0.5 * ((double)v->shape.inducing * (LOG_2PI + LOG_2) + log_determinant(v, member)) : 0.0;
}

/* P_kl of all pairs. */
static thiele_status all_pairs(thi_variational *v, thiele_context *ctx)
{
    int K = v->shape.components, Q = v->shape.latents;
    for (int l = 0; l < K; l++) {
        for (int k = 0; k <= l; k++) {
            double sum = 0.0;
            for (int j = 0; j < Q; j++) {
                thi_member *a = member_of(v, k, j), *b = member_of(v, l, j);
                double own = 0.0;
                thiele_status status = THIELE_OK;
                if (k == l) {
                    own = own_pair(v, a);
                } else if (thi_is_full(v)) {
                    status = full_pair(v, ctx, a, b, &own);
                } else {
                    own = diagonal_pair(v, a, b);
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

/* z_k, with `pair` becoming log r_kl = log pi_l + P_kl - z_k at [l + k K]. */
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

/* The part of KL that a member has without pairs, without its weight. */
static double own_part(const thi_variational *v, const thi_member *member)
{
    double M = (double)v->shape.inducing, cross = cross_term(v, member);
    bool jensen = v->shape.components > 1 && v->shape.jensen;
    return 0.5 * (cross + (jensen ? M * LOG_2PI : -M - log_determinant(v, member)));
}

/* How much of log|S_k|/2 is in the entropy: by H_k or P_kk, and by the other pairs. */
static double self_of(const thi_variational *v, int k)
{
    int K = v->shape.components;
    double sum = v->weight[k];
    if (v->shape.jensen) {
        return v->weight[k] * exp(v->pair[k + k * K]);
    }
    for (int l = 0; l < K; l++) {
        sum -= l == k ? 0.0 : 0.5 * (v->weight[k] * exp(v->pair[l + k * K]) + v->weight[l] * exp(v->pair[k + l * K]));
    }
    return sum;
}

thiele_status thi_kl_value(thi_variational *v, thiele_context *ctx, double *kl)
{
    int K = v->shape.components;
    double sum = 0.0;
    for (int i = 0; i < v->members; i++) {
        sum += v->weight[v->member[i].component] * own_part(v, &v->member[i]);
    }
    v->self[0] = 1.0;
    thiele_status status = K > 1 ? all_pairs(v, ctx) : THIELE_OK;
    if (status == THIELE_OK && K > 1) {
        densities(v);
        for (int k = 0; k < K; k++) {
            sum += v->weight[k] * v->density[k];
            v->self[k] = self_of(v, k);
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

/* Adds `weight` times the gradient of P_kl but for log|S_k| and log|S_l|, which are in v->self. */
static thiele_status full_pair_adjoint(thi_variational *v, thiele_context *ctx, thi_member *a, thi_member *b,
                                       double weight)
{
    int64_t M = v->shape.inducing;
    double square = form_of(v).square, *e = a->sbar;
    thi_matrix C = v->work[0], X = v->work[1];
    thiele_status status;
    THI_TRY(factor_pair(v, ctx, a, b));
    thi_blas_trsv(THI_N, a->Ls, e);
    thi_blas_trsv(THI_N, C, e);
    thi_blas_trsv(THI_T, C, e);
    thi_blas_trsv(THI_T, a->Ls, e);
    thi_tri_copy_clean(a->Ls, X);
    THI_TRY(thi_tri_inverse(ctx, X));
    THI_TRY(thi_tri_solve(ctx, THI_N, C, X));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, X, X, 0.0, C, true));
    for (int64_t j = 0; j < M; j++) {
        a->mbar[j] -= 2.0 * square * weight * e[j];
        b->mbar[j] += 2.0 * square * weight * e[j];
        for (int64_t i = j; i < M; i++) {
            double own = weight * (square * e[i] * e[j] - 0.5 * C.data[i + j * M]);
            a->G.data[i + j * M] += own;
            b->G.data[i + j * M] += own;
        }
    }
out:
    return status;
}

static void diagonal_pair_adjoint(const thi_variational *v, thi_member *a, thi_member *b, double weight)
{
    double square = form_of(v).square;
    for (int64_t i = 0; i < v->shape.inducing; i++) {
        double c = 1.0 / (a->s[i] + b->s[i]), e = c * (a->m[i] - b->m[i]), own = weight * (square * e * e - 0.5 * c);
        a->mbar[i] -= 2.0 * square * weight * e;
        b->mbar[i] += 2.0 * square * weight * e;
        a->sbar[i] += own;
        b->sbar[i] += own;
    }
}

/*
 * pi_k times the gradient in pi_k: pi_k (E_k - KL's part of k - z_k) - sum_a pi_a r_ak. Without a division: a weight
 * may be zero.
 */
static void weights_adjoint(thi_variational *v, const double *expected)
{
    int K = v->shape.components, Q = v->shape.latents;
    for (int k = 0; k < K; k++) {
        double sum = (expected != NULL ? expected[k] : 0.0) - v->density[k];
        for (int j = 0; j < Q; j++) {
            sum -= own_part(v, member_of(v, k, j));
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
                    diagonal_pair_adjoint(v, a, b, weight);
                }
            }
        }
    }
    return status;
}

/*
 * A latent as a predictor (math.md section 7): a_k = L^-T m_k, and R on w = L^-1 k(Z, x): Ls' of a full S, diag(sqrt s)
 * of a diagonal one in w, diag(sqrt s) L^-T of one in u (there a_k = Kzz^-1 m_k).
 */
#include "posterior/variational_internal.h"

#include <math.h>
#include <string.h>

/* R of one component, zeroed before. */
static void fill_root(const thi_variational *v, const thi_group *group, const thi_member *member, thi_matrix R)
{
    if (thi_is_full(v)) {
        thi_tri_copy(member->Ls, R);
        return;
    }
    for (int64_t i = 0; i < R.rows; i++) {
        double deviation = sqrt(member->s[i]);
        if (v->shape.whitened) {
            R.data[i + i * R.ld] = deviation;
            continue;
        }
        /* (L^-T)_ij = N_ji, j >= i */
        for (int64_t j = i; j < R.cols; j++) {
            R.data[i + j * R.ld] = deviation * group->N.data[j + i * R.ld];
        }
    }
}

thiele_status thi_variational_freeze(const thi_variational *v, thiele_context *ctx, int latent,
                                     thi_predictor *predictor)
{
    int64_t M = v->shape.inducing;
    int K = v->shape.components;
    const thi_group *group = &v->group[v->group_of[latent]];
    thiele_status status = THIELE_OK;
    THI_TRY(thi_predictor_begin(predictor, ctx, &group->prior, M, group->Z, K));
    THI_TRY(thi_alloc(ctx, &predictor->R, (size_t)K, sizeof *predictor->R));
    predictor->plus = thi_is_full(v) ? THI_PLUS_TRIANGLE : THI_PLUS_WHITE;
    thi_tri_copy(group->L, predictor->L);
    for (int k = 0; k < K; k++) {
        const thi_member *member = &v->member[k * v->shape.latents + latent];
        double *a = predictor->a + k * M;
        THI_TRY(thi_matrix_alloc(&predictor->R[k], ctx, M, M));
        fill_root(v, group, member, predictor->R[k]);
        memcpy(a, member->m, (size_t)M * sizeof(double));
        if (thi_is_plain_diagonal(v)) {
            thi_blas_trsv(THI_N, group->L, a);
        }
        thi_blas_trsv(THI_T, group->L, a);
    }
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

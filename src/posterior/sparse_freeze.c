/* A sparse posterior as a predictor (math.md section 7): basis Z, a = L^-T m, R = C^-1 with C = chol(B). */
#include <string.h>

#include "posterior/sparse.h"

thiele_status thi_sparse_freeze(const thi_sparse *sparse, thiele_context *ctx, thi_conditional conditional,
                                thi_predictor *out)
{
    int64_t M = sparse->shape.M;
    thiele_status status;
    THI_TRY(thi_predictor_begin(out, ctx, &sparse->prior, M, sparse->Z, 1));
    out->conditional = conditional;
    out->plus = THI_PLUS_PRECISION;
    thi_tri_copy(sparse->L, out->L);
    memcpy(out->a, sparse->m, (size_t)M * sizeof *out->a);
    thi_blas_trsv(THI_T, sparse->L, out->a);
    THI_TRY(thi_alloc(ctx, &out->R, 1, sizeof *out->R));
    THI_TRY(thi_matrix_alloc(&out->R[0], ctx, M, M));
    thi_tri_copy(sparse->root, out->R[0]);
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(out);
    }
    return status;
}

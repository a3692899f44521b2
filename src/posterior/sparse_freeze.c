/*
 * A sparse posterior as a predictor (MATH.md section 7): basis Z, a = L^-T m, R = Ls' with Ls = chol(B^-1). Ls is made
 * from B without forming its inverse: with J the reversal of rows, J B J = C C' gives B = U U', U = J C J an upper
 * triangle, and B^-1 = U^-T U^-1, so that Ls = U^-T, entry (i, j) of which is (C^-1)_{M-1-j, M-1-i}. 5 M^3/3 flops.
 */
#include <string.h>

#include "posterior/sparse.h"

/* Lower triangle of `to` = that of J A J, A symmetric with its lower triangle given. */
static void reverse(thi_matrix A, thi_matrix to)
{
    int64_t M = A.rows;
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            to.data[i + j * M] = A.data[(M - 1 - j) + (M - 1 - i) * M];
        }
    }
}

thiele_status thi_sparse_inverse_root(thiele_context *ctx, thi_matrix B, thi_matrix Ls)
{
    thi_matrix work = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&work, ctx, B.rows, B.rows));
    reverse(B, work);
    THI_TRY(thi_chol(ctx, work));
    THI_TRY(thi_tri_inverse(ctx, work));
    reverse(work, Ls);
out:
    thi_free(work.data);
    return status;
}

static thiele_status fill_root(const thi_sparse *sparse, thiele_context *ctx, thi_matrix Ls)
{
    int64_t M = sparse->shape.M;
    thi_matrix B = {0}, root = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&B, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&root, ctx, M, M));
    thi_tri_copy(sparse->root, root);
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, root, root, 0.0, B, true));
    THI_TRY(thi_sparse_inverse_root(ctx, B, Ls));
out:
    thi_free(B.data);
    thi_free(root.data);
    return status;
}

thiele_status thi_sparse_freeze(const thi_sparse *sparse, thiele_context *ctx, thi_conditional conditional,
                                thi_predictor *out)
{
    int64_t M = sparse->shape.M;
    thiele_status status;
    THI_TRY(thi_predictor_begin(out, ctx, &sparse->prior, M, sparse->Z, 1));
    out->conditional = conditional;
    out->plus = THI_PLUS_TRIANGLE;
    thi_tri_copy(sparse->L, out->L);
    memcpy(out->a, sparse->m, (size_t)M * sizeof *out->a);
    thi_blas_trsv(THI_T, sparse->L, out->a);
    THI_TRY(thi_alloc(ctx, &out->R, 1, sizeof *out->R));
    THI_TRY(thi_matrix_alloc(&out->R[0], ctx, M, M));
    THI_TRY(fill_root(sparse, ctx, out->R[0]));
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(out);
    }
    return status;
}

/*
 * A decoupled posterior as a predictor (math.md section 7). The covariance of the plain form is that of sites T = Lb'B
 * Lb (Woodbury: Lb'(B^-1 + K_beta)^-1 Lb = I - (I + T)^-1), so both are frozen as sparse posteriors are. The mean has a
 * basis of its own: alpha, and in the orthogonal form beta with the weights Lb^-T (m - c) beside it. Without alpha and
 * with plain points that is a sparse posterior, and is frozen as one.
 */
#include <string.h>

#include "posterior/decoupled_internal.h"
#include "posterior/sparse.h"

/* Plain: Lb into more, chol(I + Lb'B Lb) into work. */
static thiele_status factor_plain(thi_decoupled *d, thiele_context *ctx, int64_t M, int latent, thi_matrix Lb,
                                  thi_matrix root)
{
    thi_matrix map = thi_decoupled_square(d->latent[latent].map, M);
    thiele_status status;
    memcpy(Lb.data, d->K.data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_chol_jitter(ctx, Lb, &d->jitter));
    memcpy(map.data, d->latent[latent].L.data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_tri_multiply(ctx, THI_T, Lb, map));
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, map, map, 0.0, root, true));
    for (int64_t i = 0; i < M; i++) {
        root.data[i + i * M] += 1.0;
    }
    THI_TRY(thi_chol(ctx, root));
out:
    return status;
}

/* The mean's basis: alpha and, where its weights are there already, beta after it. */
static thiele_status freeze_mean(const thi_decoupled *d, thiele_context *ctx, int latent, bool with_beta,
                                 thi_predictor *out)
{
    const thi_decoupled_basis *alpha = &d->q.alpha, *beta = &d->q.beta;
    int64_t M = with_beta ? beta->n : 0, n = alpha->n + M;
    size_t D = (size_t)d->shape.D, first = D * (size_t)alpha->n, second = D * (size_t)M;
    double *a = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &a, (size_t)n, sizeof *a));
    memcpy(a, d->q.a.data + latent * d->q.a.ld, (size_t)alpha->n * sizeof *a);
    memcpy(a + alpha->n, out->a, (size_t)M * sizeof *a);
    thi_free(out->a);
    out->a = a;
    out->mean_n = n;
    THI_TRY(thi_alloc(ctx, &out->mean_basis, first + second, sizeof *out->mean_basis));
    memcpy(out->mean_basis, alpha->X, first * sizeof(double));
    memcpy(out->mean_basis + first, beta->X, second * sizeof(double));
    if (alpha->log_c != NULL) {
        THI_TRY(thi_alloc(ctx, &out->mean_log_c, first + second, sizeof(double)));
        THI_TRY(thi_alloc(ctx, &out->log_c, D * (size_t)beta->n, sizeof(double)));
        memcpy(out->mean_log_c, alpha->log_c, first * sizeof(double));
        memcpy(out->mean_log_c + first, beta->log_c, second * sizeof(double));
        memcpy(out->log_c, beta->log_c, D * (size_t)beta->n * sizeof(double));
    }
    THI_TRY(thi_predictor_finish(out, ctx));
out:
    return status;
}

thiele_status thi_decoupled_freeze(thi_decoupled *d, thiele_context *ctx, int latent, thi_predictor *out)
{
    int64_t M = d->beta.n;
    bool orthogonal = d->shape.orthogonal;
    thi_matrix Lb = thi_decoupled_square(orthogonal ? d->Lb : d->more, M);
    thi_matrix root = thi_decoupled_square(orthogonal ? d->latent[latent].root : d->work, M);
    thiele_status status;
    *out = (thi_predictor){0};
    if (M == 0) {
        THI_TRY(thi_predictor_begin(out, ctx, &d->prior, 0, d->q.beta.X, 1));
    } else {
        if (!orthogonal) {
            THI_TRY(factor_plain(d, ctx, M, latent, Lb, root));
        }
        thi_sparse view = {
            .shape = {.M = M}, .prior = d->prior, .Z = d->q.beta.X, .L = Lb, .root = root, .m = d->lean + latent * M};
        THI_TRY(thi_sparse_freeze(&view, ctx, THI_CONDITIONAL_FULL, out));
    }
    if (M == 0 || !orthogonal || d->q.alpha.n > 0 || d->q.beta.log_c != NULL) {
        THI_TRY(freeze_mean(d, ctx, latent, orthogonal, out));
    }
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(out);
    }
    return status;
}

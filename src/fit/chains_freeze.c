/*
 * Draws of the latents at the data rows as a predictor: a mixture of equal weights whose components differ in their
 * means alone (chains.h). n^3/3 flops for each kernel and 2 n^2 for each draw and latent.
 */
#include <string.h>

#include "fit/chain.h"

static thiele_status freeze_latent(const thi_chains_result *result, thiele_context *ctx, const thi_chain_model *model,
                                   const thi_prior *prior, const double *X, int q, thi_predictor *out)
{
    int64_t n = result->n, S = result->kept, all = n * result->latents;
    thi_matrix L = model->L[model->group[q]];
    thiele_status status = thi_predictor_begin(out, ctx, prior, n, X, (int)S);
    if (status != THIELE_OK) {
        return status;
    }
    thi_matrix a = thi_matrix_view(out->a, n, S, n);
    for (int64_t s = 0; s < S; s++) {
        for (int64_t i = 0; i < n; i++) {
            out->a[i + s * n] = result->f[i + q * n + s * all] - model->at[i + q * n];
        }
    }
    for (int64_t j = 0; j < n; j++) {
        memcpy(out->L.data + j + j * n, L.data + j + j * n, (size_t)(n - j) * sizeof(double));
    }
    THI_TRY(thi_tri_solve(ctx, THI_N, out->L, a));
    THI_TRY(thi_tri_solve(ctx, THI_T, out->L, a));
out:
    return status;
}

thiele_status thi_chains_freeze(const thi_chains_result *result, thiele_context *ctx, const thi_spec *spec,
                                const thi_rows *rows, thi_predictor *latent)
{
    const thi_latents *latents = &spec->latents;
    thi_chain_model model;
    for (int q = 0; q < latents->count; q++) {
        latent[q] = (thi_predictor){0};
    }
    thiele_status status = thi_chain_model_open(&model, ctx, spec, rows, result->basis);
    for (int q = 0; q < latents->count && status == THIELE_OK; q++) {
        const thi_prior *prior = &latents->prior[latents->group[q]];
        const double *Z = result->basis.Z;
        const double *X = Z != NULL ? Z + latents->group[q] * result->n * rows->dims : rows->X;
        status = freeze_latent(result, ctx, &model, prior, X, q, &latent[q]);
    }
    for (int q = 0; q < latents->count && status != THIELE_OK; q++) {
        thi_predictor_clear(&latent[q]);
    }
    thi_chain_model_close(&model);
    return status;
}

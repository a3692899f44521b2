/* Prediction in blocks, from the form that every posterior is frozen into. */
#include "posterior/predictor.h"

#include <string.h>

static thiele_status copy_doubles(thiele_context *ctx, double **out, size_t count, const double *from)
{
    thiele_status status = thi_alloc(ctx, out, count, sizeof **out);
    if (status == THIELE_OK && count > 0) {
        memcpy(*out, from, count * sizeof **out);
    }
    return status;
}

thiele_status thi_predictor_freeze(thi_predictor *predictor, thiele_context *ctx, thi_exact *exact,
                                   const thi_prior *prior)
{
    size_t D = (size_t)prior->kernel->dims;
    size_t means = (size_t)thi_mean_parameters(prior->mean, prior->kernel->dims);
    *predictor = (thi_predictor){.mean = prior->mean, .n = exact->n, .L = exact->L, .a = exact->alpha};
    exact->L = (thi_matrix){0};
    exact->alpha = NULL;
    thiele_status status;
    THI_TRY(copy_doubles(ctx, &predictor->basis, D * (size_t)exact->n, exact->X));
    THI_TRY(copy_doubles(ctx, &predictor->mean_parameter, means, prior->mean_parameter));
    THI_TRY(thi_kernel_copy(&predictor->kernel, ctx, prior->kernel));
    THI_TRY(thi_predictor_finish(predictor, ctx));
out:
    thi_exact_close(exact);
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

thiele_status thi_predictor_finish(thi_predictor *predictor, thiele_context *ctx)
{
    return thi_inputs_make(&predictor->inputs, ctx, predictor->kernel, predictor->n, predictor->basis);
}

void thi_predictor_clear(thi_predictor *predictor)
{
    thi_inputs_clear(&predictor->inputs);
    thiele_kernel_destroy(predictor->kernel);
    thi_free(predictor->mean_parameter);
    thi_free(predictor->basis);
    thi_free(predictor->a);
    thi_free(predictor->L.data);
    *predictor = (thi_predictor){0};
}

/* mean_j = m(x_j) + k_j'a for the columns of Kzx */
static void means(const thi_predictor *p, int64_t n, const double *X, thi_matrix Kzx, double *mean)
{
    thi_mean_fill(p->mean, p->mean_parameter, n, p->kernel->dims, X, mean);
    thi_blas_gemv(THI_T, 1.0, Kzx, p->a, 1.0, mean);
}

/* One block: Kzx is filled here and overwritten by L^-1 Kzx. */
static thiele_status block_marginals(const thi_predictor *p, thiele_context *ctx, int64_t n, const double *X,
                                     thi_matrix Kzx, double *mean, double *variance, int64_t *clipped)
{
    thi_inputs inputs;
    thiele_status status = thi_inputs_make(&inputs, ctx, p->kernel, n, X);
    if (status != THIELE_OK) {
        return status;
    }
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &p->inputs, &inputs, Kzx, false));
    means(p, n, X, Kzx, mean);
    if (variance == NULL) {
        goto out;
    }
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &inputs, variance));
    THI_TRY(thi_tri_solve(ctx, THI_N, p->L, Kzx));
    for (int64_t j = 0; j < n; j++) {
        const double *w = Kzx.data + j * Kzx.ld;
        variance[j] -= thi_blas_dot(p->n, w, w);
        if (variance[j] < 0.0) {
            variance[j] = 0.0;
            *clipped += 1;
        }
    }
out:
    thi_inputs_clear(&inputs);
    return status;
}

thiele_status thi_predictor_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                      double *mean, double *variance, int64_t *clipped)
{
    int D = predictor->kernel->dims;
    thi_matrix Kzx;
    thiele_status status = thi_matrix_alloc(&Kzx, ctx, predictor->n, n < THI_PREDICT_BLOCK ? n : THI_PREDICT_BLOCK);
    for (int64_t first = 0; status == THIELE_OK && first < n; first += THI_PREDICT_BLOCK) {
        int64_t count = n - first < THI_PREDICT_BLOCK ? n - first : THI_PREDICT_BLOCK;
        status = block_marginals(predictor, ctx, count, X + first * D, thi_matrix_block(Kzx, 0, 0, predictor->n, count),
                                 mean + first, variance != NULL ? variance + first : NULL, clipped);
    }
    thi_free(Kzx.data);
    return status;
}

thiele_status thi_predictor_joint(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                  double *mean, double *covariance)
{
    thi_matrix Kzx = {0};
    thi_inputs inputs = {0};
    thi_matrix C = thi_matrix_view(covariance, n, n, n);
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, ctx, predictor->kernel, n, X));
    THI_TRY(thi_matrix_alloc(&Kzx, ctx, predictor->n, n));
    THI_TRY(thi_kernel_fill(predictor->kernel, ctx, &predictor->inputs, &inputs, Kzx, false));
    means(predictor, n, X, Kzx, mean);
    THI_TRY(thi_tri_solve(ctx, THI_N, predictor->L, Kzx));
    THI_TRY(thi_kernel_fill(predictor->kernel, ctx, &inputs, &inputs, C, true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, Kzx, Kzx, 1.0, C, true));
    thi_symmetrise(C);
out:
    thi_inputs_clear(&inputs);
    thi_free(Kzx.data);
    return status;
}

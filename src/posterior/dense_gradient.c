/*
 * The adjoint of K for Gaussian sites at the data rows; the formulas are in dense.h. L is formed anew, because the
 * matrix may have been lent to another latent since: n^3 flops, most of them the inverse.
 */
#include "posterior/dense_columns.h"

#include <string.h>

typedef struct columns {
    const thi_dense *dense;
    const double *q;
} columns;

/* L = s L s: from B^-1 to C+ */
static thiele_status scale_columns(void *arg, int64_t block, int thread)
{
    (void)thread;
    const columns *c = arg;
    const double *s = c->dense->scale;
    for (int64_t j = block * THI_DENSE_COLUMNS; j < thi_dense_block_end(c->dense->n, block); j++) {
        double *l = c->dense->L.data + j * c->dense->L.ld;
        for (int64_t i = j; i < c->dense->n; i++) {
            l[i] *= s[i] * s[j];
        }
    }
    return THIELE_OK;
}

/* From C to (a a' - C)/2 + sym(q a') */
static thiele_status kbar_columns(void *arg, int64_t block, int thread)
{
    (void)thread;
    const columns *c = arg;
    const double *a = c->dense->a, *q = c->q;
    for (int64_t j = block * THI_DENSE_COLUMNS; j < thi_dense_block_end(c->dense->n, block); j++) {
        double *l = c->dense->L.data + j * c->dense->L.ld;
        for (int64_t i = j; i < c->dense->n; i++) {
            l[i] = 0.5 * (a[i] * a[j] + q[i] * a[j] + a[i] * q[j] - l[i]);
        }
    }
    return THIELE_OK;
}

/* K becomes G' = I - C K; C is in L, full. */
static thiele_status influence(thi_dense *dense, thiele_context *ctx, thi_matrix work)
{
    int64_t n = dense->n;
    for (int64_t first = 0; first < n; first += work.cols) {
        int64_t count = n - first < work.cols ? n - first : work.cols;
        thi_matrix Kb = thi_matrix_block(dense->K, 0, first, n, count);
        thi_matrix Wb = thi_matrix_block(work, 0, 0, n, count);
        thiele_status status = thi_multiply(ctx, THI_N, THI_N, -1.0, dense->L, Kb, 0.0, Wb, false);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t j = 0; j < count; j++) {
            memcpy(Kb.data + j * Kb.ld, Wb.data + j * Wb.ld, (size_t)n * sizeof *Kb.data);
            Kb.data[first + j + j * Kb.ld] += 1.0;
        }
    }
    return THIELE_OK;
}

/* L += G' diag(h) G, lower triangle; G' is in K. */
static thiele_status add_curvature(thi_dense *dense, thiele_context *ctx, const double *h, thi_matrix work)
{
    int64_t n = dense->n;
    for (int64_t first = 0; first < n; first += work.cols) {
        int64_t count = n - first < work.cols ? n - first : work.cols;
        thi_matrix Gb = thi_matrix_block(dense->K, 0, first, n, count);
        thi_matrix Wb = thi_matrix_block(work, 0, 0, n, count);
        for (int64_t j = 0; j < count; j++) {
            for (int64_t i = 0; i < n; i++) {
                Wb.data[i + j * Wb.ld] = h[first + j] * Gb.data[i + j * Gb.ld];
            }
        }
        thiele_status status = thi_multiply(ctx, THI_N, THI_T, 1.0, Wb, Gb, 1.0, dense->L, true);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

/* From W = Lb^-1 to C. */
thiele_status thi_dense_precision(thi_dense *dense, thiele_context *ctx)
{
    columns c = {.dense = dense};
    thiele_status status;
    THI_TRY(thi_tri_square(ctx, dense->L));
    THI_TRY(thi_dense_each_column(ctx, c.dense->n, scale_columns, &c));
    if (dense->U.rows > 0) {
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, dense->U, dense->U, 1.0, dense->L, true));
    }
out:
    return status;
}

thiele_status thi_dense_gradient(thi_dense *dense, thiele_context *ctx, const thi_prior *prior, const double *g,
                                 const double *h, double *theta_bar)
{
    int64_t n = dense->n;
    double *q = NULL, *t = NULL;
    thi_matrix work = {0};
    columns c = {.dense = dense};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &q, (size_t)n, sizeof *q));
    THI_TRY(thi_alloc(ctx, &t, (size_t)n, sizeof *t));
    THI_TRY(thi_dense_factor(dense, ctx, dense->L));
    THI_TRY(thi_tri_inverse(ctx, dense->L));
    THI_TRY(thi_dense_precision(dense, ctx));
    if (g != NULL || h != NULL) {
        thi_symmetrise(dense->L);
    }
    if (g != NULL) {
        memcpy(q, g, (size_t)n * sizeof *q);
        thi_blas_gemv(THI_N, 1.0, dense->K, g, 0.0, t);
        thi_blas_gemv(THI_N, -1.0, dense->L, t, 1.0, q);
    }
    if (h != NULL) {
        THI_TRY(thi_matrix_alloc(&work, ctx, n, THI_DENSE_COLUMNS < n ? THI_DENSE_COLUMNS : n));
        THI_TRY(influence(dense, ctx, work));
    }
    c.q = q;
    THI_TRY(thi_dense_each_column(ctx, c.dense->n, kbar_columns, &c));
    if (h != NULL) {
        THI_TRY(add_curvature(dense, ctx, h, work));
        THI_TRY(thi_dense_fill(dense, ctx, prior));
    }
    THI_TRY(thi_kernel_pull(prior->kernel, ctx, &dense->inputs, &dense->inputs, dense->L, true, theta_bar, NULL));
out:
    thi_free(q);
    thi_free(t);
    thi_free(work.data);
    return status;
}

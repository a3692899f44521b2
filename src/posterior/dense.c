/*
 * Gaussian sites at the data rows; the formulas are in dense.h.
 *
 * A row's variance and weight come in two forms that lose digits at opposite ends. With W = Lb^-1 and w_i its column,
 *   v_i = (1 - |w_i|^2) / lambda_i              good when the site says much (lambda k >> 1), and free once W is there
 *   v_i = k_ii - |W s K e_i|^2                  good when it says little, n^2 flops
 * (both before negative sites). They are equally good at lambda k = 1; the border is drawn at 1/1000, which gives up at
 * most three digits of the first for the sake of its price.
 */
#include "posterior/dense_columns.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double STRONG = 1e-3;

double thi_dense_bytes(int64_t n)
{
    return 8.0 * (double)n * (2.0 * (double)n + THI_DENSE_COLUMNS + 64.0);
}

thiele_status thi_dense_open(thi_dense *dense, thiele_context *ctx, int64_t n, const double *X, const thi_dense *work,
                             const thi_dense *twin)
{
    *dense = (thi_dense){.n = n, .X = X, .work = work, .twin = twin};
    thiele_status status;
    if (work != NULL) {
        dense->L = work->L;
    } else {
        THI_TRY(thi_matrix_alloc(&dense->L, ctx, n, n));
    }
    if (twin == NULL) {
        THI_TRY(thi_matrix_alloc(&dense->K, ctx, n, n));
    }
    THI_TRY(thi_alloc(ctx, &dense->scale, (size_t)n, sizeof *dense->scale));
    THI_TRY(thi_alloc(ctx, &dense->a, (size_t)n, sizeof *dense->a));
    THI_TRY(thi_alloc(ctx, &dense->mu, (size_t)n, sizeof *dense->mu));
out:
    if (status != THIELE_OK) {
        thi_dense_close(dense);
    }
    return status;
}

void thi_dense_close(thi_dense *dense)
{
    if (dense->twin == NULL) {
        thi_inputs_clear(&dense->inputs);
        thi_free(dense->K.data);
    }
    if (dense->work == NULL) {
        thi_free(dense->L.data);
    }
    thi_free(dense->scale);
    thi_free(dense->a);
    thi_free(dense->mu);
    thi_free(dense->U.data);
    *dense = (thi_dense){0};
}

thiele_status thi_dense_fill(thi_dense *dense, thiele_context *ctx, const thi_prior *prior)
{
    thiele_status status = thi_kernel_fill(prior->kernel, ctx, &dense->inputs, &dense->inputs, dense->K, true);
    if (status == THIELE_OK) {
        thi_symmetrise(dense->K);
    }
    return status;
}

thiele_status thi_dense_prior(thi_dense *dense, thiele_context *ctx, const thi_prior *prior)
{
    if (dense->twin != NULL) {
        dense->K = dense->twin->K;
        dense->inputs = dense->twin->inputs;
        return THIELE_OK;
    }
    thi_inputs_clear(&dense->inputs);
    thiele_status status = thi_inputs_make(&dense->inputs, ctx, prior->kernel, dense->n, dense->X);
    return status == THIELE_OK ? thi_dense_fill(dense, ctx, prior) : status;
}

void thi_dense_resize(thi_dense *dense, int64_t n)
{
    dense->n = n;
    dense->K = thi_matrix_view(dense->K.data, n, n, n);
    dense->L = thi_matrix_view(dense->L.data, n, n, n);
}

thiele_status thi_dense_residual(thi_dense *dense, thiele_context *ctx, const thiele_kernel *kernel,
                                 const thi_inputs *inputs, thi_matrix V)
{
    int64_t n = inputs->n;
    thiele_status status;
    thi_dense_resize(dense, n);
    THI_TRY(thi_kernel_fill(kernel, ctx, inputs, inputs, dense->K, true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, V, V, 1.0, dense->K, true));
    for (int64_t j = 0; j < n; j++) {
        dense->K.data[j + j * n] = fmax(dense->K.data[j + j * n], 0.0);
    }
    thi_symmetrise(dense->K);
out:
    return status;
}

/* --- columns of the lower triangle, in parallel -------------------------------------------------------------------
 */

typedef struct columns {
    const thi_dense *dense;
    thi_matrix L;
    const double *lambda;
    double *v;
} columns;

/* L = I + s K s */
static thiele_status form_columns(void *arg, int64_t block, int thread)
{
    (void)thread;
    const columns *c = arg;
    const double *s = c->dense->scale;
    for (int64_t j = block * THI_DENSE_COLUMNS; j < thi_dense_block_end(c->dense->n, block); j++) {
        const double *k = c->dense->K.data + j * c->dense->K.ld;
        double *l = c->L.data + j * c->L.ld;
        for (int64_t i = j; i < c->dense->n; i++) {
            l[i] = s[i] * k[i] * s[j];
        }
        l[j] += 1.0;
    }
    return THIELE_OK;
}

static bool is_strong(const thi_dense *dense, const double *lambda, int64_t i)
{
    return lambda[i] * dense->K.data[i + i * dense->K.ld] >= STRONG;
}

/* The variances of the rows with strong sites, from the columns of W. */
static thiele_status strong_columns(void *arg, int64_t block, int thread)
{
    (void)thread;
    const columns *c = arg;
    for (int64_t j = block * THI_DENSE_COLUMNS; j < thi_dense_block_end(c->dense->n, block); j++) {
        const double *w = c->L.data + j + j * c->L.ld;
        if (is_strong(c->dense, c->lambda, j)) {
            c->v[j] = (1.0 - thi_blas_dot(c->dense->n - j, w, w)) / c->lambda[j];
        }
    }
    return THIELE_OK;
}

/* --- conditioning -------------------------------------------------------------------------------------------------
 */

thiele_status thi_dense_factor(const thi_dense *dense, thiele_context *ctx, thi_matrix L)
{
    columns c = {.dense = dense, .L = L};
    thiele_status status = thi_dense_each_column(ctx, c.dense->n, form_columns, &c);
    if (status == THIELE_OK) {
        status = thi_chol(ctx, L);
    }
    return status != THIELE_ERROR_NUMERIC
               ? status
               : thi_fail(ctx, status,
                          "the posterior could not be computed: the sites or the kernel matrix are not finite, or "
                          "1e16 times apart (a variance or a noise far out of proportion is the usual cause)");
}

/* V (n x count) = W s K e_i for the rows listed; W is in L. */
static thiele_status whiten(const thi_dense *dense, thiele_context *ctx, int64_t count, const int64_t *row,
                            thi_matrix V)
{
    for (int64_t c = 0; c < count; c++) {
        const double *k = dense->K.data + row[c] * dense->K.ld;
        double *column = V.data + c * V.ld;
        for (int64_t i = 0; i < dense->n; i++) {
            column[i] = dense->scale[i] * k[i];
        }
    }
    return thi_tri_multiply(ctx, THI_N, dense->L, thi_matrix_block(V, 0, 0, dense->n, count));
}

static thiele_status weak_variances(const thi_dense *dense, thiele_context *ctx, const double *lambda, double *v)
{
    int64_t n = dense->n, next = 0, left = 0;
    for (int64_t i = 0; i < n; i++) {
        left += !is_strong(dense, lambda, i);
    }
    thi_matrix V;
    thiele_status status = thi_matrix_alloc(&V, ctx, n, left < THI_DENSE_COLUMNS ? left : THI_DENSE_COLUMNS);
    while (left > 0 && status == THIELE_OK) {
        int64_t row[THI_DENSE_COLUMNS], count = 0;
        for (; next < n && count < THI_DENSE_COLUMNS; next++) {
            if (!is_strong(dense, lambda, next)) {
                row[count++] = next;
            }
        }
        status = whiten(dense, ctx, count, row, V);
        for (int64_t c = 0; c < count; c++) {
            const double *w = V.data + c * V.ld;
            v[row[c]] = dense->K.data[row[c] + row[c] * dense->K.ld] - thi_blas_dot(n, w, w);
        }
        left -= count;
    }
    thi_free(V.data);
    return status;
}

/*
 * a = (I - C+ K) nu. On strong rows nu = s z and (I - C+ K) s z = s B^-1 z, which does not cancel; the rest is taken as
 * it stands:  a = rest + s B^-1 (z - s K rest). apply: of what is in L, thi_tri_multiply of W or thi_tri_solve of Lb.
 */
static thiele_status weights(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu,
                             thiele_status (*apply)(thiele_context *, thi_trans, thi_matrix, thi_matrix))
{
    int64_t n = dense->n;
    double *z;
    thiele_status status = thi_alloc(ctx, &z, (size_t)n, sizeof *z);
    if (status != THIELE_OK) {
        return status;
    }
    thi_matrix Z = thi_matrix_view(z, n, 1, n);
    for (int64_t i = 0; i < n; i++) {
        dense->a[i] = is_strong(dense, lambda, i) ? 0.0 : nu[i];
    }
    thi_blas_gemv(THI_N, 1.0, dense->K, dense->a, 0.0, z);
    for (int64_t i = 0; i < n; i++) {
        z[i] = (is_strong(dense, lambda, i) ? nu[i] / dense->scale[i] : 0.0) - dense->scale[i] * z[i];
    }
    THI_TRY(apply(ctx, THI_N, dense->L, Z));
    THI_TRY(apply(ctx, THI_T, dense->L, Z));
    for (int64_t i = 0; i < n; i++) {
        dense->a[i] += dense->scale[i] * z[i];
    }
out:
    thi_free(z);
    return status;
}

static void transpose(thi_matrix A, thi_matrix to)
{
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = 0; i < A.rows; i++) {
            to.data[j + i * to.ld] = A.data[i + j * A.ld];
        }
    }
}

/* H (n x m) = G+' d = d - s B^-1 s K d for the m rows listed */
static thiele_status negative_columns(const thi_dense *dense, thiele_context *ctx, const double *lambda, int64_t m,
                                      const int64_t *row, thi_matrix H)
{
    thiele_status status = whiten(dense, ctx, m, row, H);
    if (status == THIELE_OK) {
        status = thi_tri_multiply(ctx, THI_T, dense->L, H);
    }
    for (int64_t c = 0; c < m && status == THIELE_OK; c++) {
        double d = sqrt(-lambda[row[c]]), *column = H.data + c * H.ld;
        for (int64_t i = 0; i < dense->n; i++) {
            column[i] *= -d * dense->scale[i];
        }
        column[row[c]] += d;
    }
    return status;
}

/* The lower triangle of M = I - d P becomes its factor; P (n x m) = Sigma+ d. */
static thiele_status factor_negatives(thi_dense *dense, thiele_context *ctx, const double *lambda, const int64_t *row,
                                      thi_matrix P, thi_matrix M)
{
    for (int64_t k = 0; k < M.cols; k++) {
        for (int64_t i = k; i < M.rows; i++) {
            M.data[i + k * M.ld] = (i == k) - sqrt(-lambda[row[i]]) * P.data[row[i] + k * P.ld];
        }
    }
    thiele_status status = thi_chol(ctx, M);
    if (status == THIELE_ERROR_NUMERIC) {
        return thi_fail(ctx, status, "the posterior is not proper: negative sites outweigh the prior");
    }
    dense->log_det += status == THIELE_OK ? thi_chol_logdet(M) : 0.0;
    return status;
}

/* The m rows listed have negative sites: makes U, and brings v and a from those of the other sites to those of all. */
static thiele_status add_negatives(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu,
                                   int64_t m, const int64_t *row, double *v)
{
    int64_t n = dense->n;
    thi_matrix H = {0}, P = {0}, M = {0};
    double *t = NULL;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&dense->U, ctx, m, n));
    THI_TRY(thi_matrix_alloc(&H, ctx, n, m));
    THI_TRY(thi_matrix_alloc(&P, ctx, n, m));
    THI_TRY(thi_matrix_alloc(&M, ctx, m, m));
    THI_TRY(thi_alloc(ctx, &t, (size_t)m, sizeof *t));
    THI_TRY(negative_columns(dense, ctx, lambda, m, row, H));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, dense->K, H, 0.0, P, false));
    THI_TRY(factor_negatives(dense, ctx, lambda, row, P, M));
    transpose(H, dense->U);
    thi_matrix T = thi_matrix_view(H.data, m, n, m); /* Lm^-1 d Sigma+ */
    transpose(P, T);
    THI_TRY(thi_tri_solve(ctx, THI_N, M, dense->U));
    THI_TRY(thi_tri_solve(ctx, THI_N, M, T));
    for (int64_t i = 0; i < n; i++) {
        v[i] += thi_blas_dot(m, T.data + i * m, T.data + i * m);
    }
    thi_blas_gemv(THI_N, 1.0, T, nu, 0.0, t);
    thi_blas_gemv(THI_T, 1.0, dense->U, t, 1.0, dense->a);
out:
    thi_free(H.data);
    thi_free(P.data);
    thi_free(M.data);
    thi_free(t);
    return status;
}

static thiele_status negatives(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu, double *v)
{
    int64_t m = 0, *row;
    thiele_status status = thi_alloc(ctx, &row, (size_t)dense->n, sizeof *row);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < dense->n; i++) {
        if (lambda[i] < 0.0) {
            row[m++] = i;
        }
    }
    if (m > 0) {
        status = add_negatives(dense, ctx, lambda, nu, m, row, v);
    }
    thi_free(row);
    return status;
}

/* Lb, in L. */
static thiele_status begin(thi_dense *dense, thiele_context *ctx, const double *lambda)
{
    thi_free(dense->U.data);
    dense->U = (thi_matrix){0};
    for (int64_t i = 0; i < dense->n; i++) {
        dense->scale[i] = lambda[i] < 0.0 ? 0.0 : sqrt(lambda[i]);
    }
    thiele_status status = thi_dense_factor(dense, ctx, dense->L);
    dense->log_det = status == THIELE_OK ? thi_chol_logdet(dense->L) : NAN;
    return status;
}

/* mu and log_z from a. */
static thiele_status finish(thi_dense *dense, thiele_context *ctx, const double *nu)
{
    thi_blas_gemv(THI_N, 1.0, dense->K, dense->a, 0.0, dense->mu);
    dense->log_z = 0.5 * (thi_blas_dot(dense->n, nu, dense->mu) - dense->log_det);
    return isfinite(dense->log_z)
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_NUMERIC, "the posterior could not be computed: its sites are too large");
}

thiele_status thi_dense_condition(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu,
                                  double *mu, double *v)
{
    int64_t n = dense->n;
    columns c = {.dense = dense, .L = dense->L, .lambda = lambda, .v = v};
    thiele_status status;
    THI_TRY(begin(dense, ctx, lambda));
    THI_TRY(thi_tri_inverse(ctx, dense->L));
    THI_TRY(thi_dense_each_column(ctx, c.dense->n, strong_columns, &c));
    THI_TRY(weak_variances(dense, ctx, lambda, v));
    THI_TRY(weights(dense, ctx, lambda, nu, thi_tri_multiply));
    THI_TRY(negatives(dense, ctx, lambda, nu, v));
    THI_TRY(finish(dense, ctx, nu));
    for (int64_t i = 0; i < n; i++) {
        /* Never below what rounding leaves of k_ii. */
        v[i] = fmax(v[i], DBL_EPSILON * dense->K.data[i + i * dense->K.ld]);
        mu[i] = dense->mu[i];
    }
out:
    return status;
}

thiele_status thi_dense_weigh(thi_dense *dense, thiele_context *ctx, const double *lambda, const double *nu)
{
    thiele_status status;
    THI_TRY(begin(dense, ctx, lambda));
    THI_TRY(weights(dense, ctx, lambda, nu, thi_tri_solve));
    THI_TRY(finish(dense, ctx, nu));
out:
    return status;
}

double thi_dense_kl(const thi_dense *dense, const double *lambda, const double *v)
{
    return 0.5 * (thi_blas_dot(dense->n, dense->mu, dense->a) + dense->log_det - thi_blas_dot(dense->n, lambda, v));
}

/* --- the predictor ------------------------------------------------------------------------------------------------
 */

thiele_status thi_dense_freeze(const thi_dense *dense, thiele_context *ctx, const thi_prior *prior,
                               thi_predictor *predictor)
{
    size_t n = (size_t)dense->n;
    thiele_status status = thi_predictor_begin(predictor, ctx, prior, dense->n, dense->X, 1);
    if (status != THIELE_OK) {
        return status;
    }
    THI_TRY(thi_alloc(ctx, &predictor->scale, n, sizeof *predictor->scale));
    memcpy(predictor->scale, dense->scale, n * sizeof *predictor->scale);
    memcpy(predictor->a, dense->a, n * sizeof *predictor->a);
    THI_TRY(thi_dense_factor(dense, ctx, predictor->L));
    if (dense->U.rows > 0) {
        THI_TRY(thi_alloc(ctx, &predictor->R, 1, sizeof *predictor->R));
        THI_TRY(thi_matrix_alloc(&predictor->R[0], ctx, dense->U.rows, dense->n));
        memcpy(predictor->R[0].data, dense->U.data, (size_t)dense->U.rows * n * sizeof(double));
        predictor->plus = THI_PLUS_KERNEL;
    }
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

/* The decoupled engine: its state, factors, marginals. The formulas are in decoupled.h. */
#include "posterior/decoupled.h"

#include <math.h>
#include <string.h>

#include "posterior/decoupled_internal.h"
#include "posterior/sparse_internal.h"

/* --- state -----------------------------------------------------------------------------------------------------------
 */

static thiele_status open_squares(thi_decoupled *d, thiele_context *ctx)
{
    int64_t M = d->shape.beta;
    thi_matrix *both[] = {&d->K, &d->root, &d->factor, &d->S, &d->Th, &d->work, &d->more};
    thi_matrix *plain[] = {&d->map, &d->KL, &d->Kh};
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        THI_TRY(thi_matrix_alloc(both[i], ctx, M, M));
    }
    for (size_t i = 0; !d->shape.orthogonal && i < sizeof plain / sizeof *plain; i++) {
        THI_TRY(thi_matrix_alloc(plain[i], ctx, M, M));
    }
    if (d->shape.orthogonal) {
        THI_TRY(thi_matrix_alloc(&d->Tc, ctx, M, M));
    }
    THI_TRY(thi_alloc(ctx, &d->m, (size_t)(4 * M), sizeof *d->m));
    d->c = d->m + M;
    d->lean = d->c + M;
    d->Vg = d->lean + M;
out:
    return status;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

thiele_status thi_decoupled_open(thi_decoupled **out, thiele_context *ctx, const thi_decoupled_shape *shape)
{
    thi_decoupled *d = NULL;
    int64_t M = shape->beta, most = largest(largest(shape->rows, shape->columns), M);
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &d, 1, sizeof *d));
    d->shape = *shape;
    THI_TRY(open_squares(d, ctx));
    THI_TRY(thi_matrix_alloc(&d->at.k, ctx, shape->rows, M));
    THI_TRY(thi_matrix_alloc(&d->at.V, ctx, shape->rows, M));
    THI_TRY(thi_matrix_alloc(&d->at.W, ctx, shape->rows, M));
    THI_TRY(thi_matrix_alloc(&d->at.U, ctx, shape->rows, M));
    THI_TRY(thi_matrix_alloc(&d->at.portion, ctx, most, THI_DECOUPLED_PORTION));
    THI_TRY(thi_matrix_alloc(&d->at.weights, ctx, most, THI_DECOUPLED_PORTION));
    THI_TRY(thi_alloc(ctx, &d->at.left, (size_t)shape->rows, sizeof *d->at.left));
    THI_TRY(thi_alloc(ctx, &d->pick, (size_t)(shape->columns * (2 * shape->D + 1)), sizeof *d->pick));
out:
    if (status != THIELE_OK) {
        thi_decoupled_close(d);
        return status;
    }
    *out = d;
    return THIELE_OK;
}

void thi_decoupled_close(thi_decoupled *d)
{
    if (d == NULL) {
        return;
    }
    thi_matrix *all[] = {&d->K,    &d->root, &d->factor, &d->S,          &d->Th,        &d->work,
                         &d->more, &d->map,  &d->KL,     &d->Kh,         &d->Tc,        &d->at.k,
                         &d->at.V, &d->at.W, &d->at.U,   &d->at.portion, &d->at.weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        thi_free(all[i]->data);
    }
    thi_functions_clear(&d->alpha);
    thi_functions_clear(&d->beta);
    thi_inputs_clear(&d->at.rows);
    thi_free(d->m);
    thi_free(d->at.left);
    thi_free(d->theta);
    thi_free(d->pick);
    thi_free(d);
}

/* --- factors ---------------------------------------------------------------------------------------------------------
 */

static void add_identity(thi_matrix A)
{
    for (int64_t i = 0; i < A.rows; i++) {
        A.data[i + i * A.ld] += 1.0;
    }
}

/* root = chol(root), its log determinant and S = root^-T root^-1. */
static thiele_status invert(thi_decoupled *d, thiele_context *ctx, thi_matrix root, thi_matrix S)
{
    thiele_status status;
    THI_TRY(thi_chol(ctx, root));
    d->log_det = thi_chol_logdet(root);
    thi_tri_copy_clean(root, S);
    THI_TRY(thi_chol_inverse(ctx, S));
    thi_symmetrise(S);
out:
    return status;
}

static thiele_status begin_plain(thi_decoupled *d, thiele_context *ctx, int64_t M)
{
    thi_matrix L = thi_decoupled_square(d->factor, M), KL = thi_decoupled_square(d->KL, M);
    thi_matrix root = thi_decoupled_square(d->root, M), map = thi_decoupled_square(d->map, M);
    thiele_status status;
    thi_tri_copy_clean(d->q.factor, L);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, thi_decoupled_square(d->K, M), L, 0.0, KL, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, L, KL, 0.0, root, true));
    add_identity(root);
    THI_TRY(invert(d, ctx, root, thi_decoupled_square(d->S, M)));
    memcpy(map.data, L.data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, root, map));
out:
    return status;
}

/* c = Lb^-1 K_beta,alpha a */
static thiele_status project_mean(thi_decoupled *d, thiele_context *ctx, int64_t M)
{
    memset(d->c, 0, (size_t)M * sizeof *d->c);
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, M, part.n);
        thiele_status status = thi_functions_cross(&d->beta, &part, ctx, K, false);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_gemv(THI_N, 1.0, K, d->q.a + first, 1.0, d->c);
    }
    thi_blas_trsv(THI_N, thi_decoupled_square(d->factor, M), d->c);
    return THIELE_OK;
}

static thiele_status begin_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M)
{
    thi_matrix Lb = thi_decoupled_square(d->factor, M), root = thi_decoupled_square(d->root, M);
    thiele_status status;
    memcpy(Lb.data, d->K.data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_chol_jitter(ctx, Lb, &d->jitter));
    thi_tri_copy_clean(d->q.factor, root);
    add_identity(root);
    THI_TRY(invert(d, ctx, root, thi_decoupled_square(d->S, M)));
    thi_blas_gemv(THI_N, 1.0, thi_decoupled_square(d->S, M), d->q.t, 0.0, d->m);
    THI_TRY(project_mean(d, ctx, M));
    for (int64_t i = 0; i < M; i++) {
        d->lean[i] = d->m[i] - d->c[i];
    }
out:
    return status;
}

static thiele_status make_functions(thi_functions *f, thiele_context *ctx, const thiele_kernel *kernel,
                                    const thi_decoupled_basis *basis)
{
    thi_functions_clear(f);
    return thi_functions_make(f, ctx, kernel, basis->n, basis->X, basis->log_c);
}

thiele_status thi_decoupled_begin(thi_decoupled *d, thiele_context *ctx, const thi_prior *prior,
                                  const thi_decoupled_q *q)
{
    int64_t M = q->beta.n;
    size_t square = (size_t)(M * M) * sizeof(double);
    thiele_status status;
    d->prior = *prior;
    d->q = *q;
    d->parameters = prior->kernel->parameters;
    d->log_det = d->jitter = 0.0;
    THI_TRY(thi_grow(ctx, &d->theta, (size_t)d->parameters, sizeof *d->theta));
    THI_TRY(make_functions(&d->alpha, ctx, prior->kernel, &q->alpha));
    THI_TRY(make_functions(&d->beta, ctx, prior->kernel, &q->beta));
    if (M == 0) {
        return THIELE_OK;
    }
    memset(d->Th.data, 0, square);
    memset(d->Vg, 0, (size_t)M * sizeof *d->Vg);
    memset(d->shape.orthogonal ? d->Tc.data : d->Kh.data, 0, square);
    THI_TRY(thi_functions_cross(&d->beta, &d->beta, ctx, thi_decoupled_square(d->K, M), true));
    THI_TRY(d->shape.orthogonal ? begin_orthogonal(d, ctx, M) : begin_plain(d, ctx, M));
out:
    if (status == THIELE_ERROR_NUMERIC) {
        status = thi_fail_in(ctx, status, "the covariance of %lld basis functions", (long long)M);
    }
    return status;
}

double thi_decoupled_jitter(const thi_decoupled *d)
{
    return d->jitter;
}

/* --- marginals -------------------------------------------------------------------------------------------------------
 */

/* mu += k(x, alpha) a */
static thiele_status add_means(thi_decoupled *d, thiele_context *ctx, double *mu)
{
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, d->at.n, part.n);
        thiele_status status = thi_functions_fill(&part, ctx, &d->at.rows, K);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_gemv(THI_N, 1.0, K, d->q.a + first, 1.0, mu);
    }
    return THIELE_OK;
}

/* v += scale sum_j A_ij B_ij */
static void add_products(thi_matrix A, thi_matrix B, double scale, double *v)
{
    for (int64_t j = 0; j < A.cols; j++) {
        const double *a = A.data + j * A.ld, *b = B.data + j * B.ld;
        for (int64_t i = 0; i < A.rows; i++) {
            v[i] += scale * a[i] * b[i];
        }
    }
}

/* What beta adds to mu and v. */
static thiele_status add_beta(thi_decoupled *d, thiele_context *ctx, int64_t M, double *mu, double *v)
{
    int64_t n = d->at.n;
    thi_matrix k = thi_decoupled_view(d->at.k, n, M), V = thi_decoupled_view(d->at.V, n, M),
               W = thi_decoupled_view(d->at.W, n, M);
    thiele_status status;
    THI_TRY(thi_functions_fill(&d->beta, ctx, &d->at.rows, k));
    if (!d->shape.orthogonal) {
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, k, thi_decoupled_square(d->map, M), 0.0, V, false));
        add_products(V, V, -1.0, v);
        return THIELE_OK;
    }
    memcpy(V.data, k.data, (size_t)(n * M) * sizeof(double));
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, thi_decoupled_square(d->factor, M), V));
    add_products(V, V, -1.0, d->at.left);
    memcpy(W.data, V.data, (size_t)(n * M) * sizeof(double));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, V, thi_decoupled_square(d->S, M), -1.0, W, false));
    add_products(V, W, 1.0, v);
    thi_blas_gemv(THI_N, 1.0, V, d->lean, 1.0, mu);
out:
    return status;
}

thiele_status thi_decoupled_marginals(thi_decoupled *d, thiele_context *ctx, int64_t n, const double *X, double *mu,
                                      double *v)
{
    const thi_prior *prior = &d->prior;
    thiele_status status;
    d->at.n = n;
    d->at.X = X;
    thi_inputs_clear(&d->at.rows);
    THI_TRY(thi_inputs_make(&d->at.rows, ctx, prior->kernel, n, X));
    thi_mean_fill(prior->mean, prior->mean_parameter, n, d->shape.D, X, mu);
    THI_TRY(thi_kernel_fill_diagonal(prior->kernel, ctx, &d->at.rows, v));
    for (int64_t i = 0; i < n; i++) {
        d->at.left[i] = d->shape.orthogonal ? v[i] : 0.0;
    }
    d->at.spared = NULL;
    THI_TRY(add_means(d, ctx, mu));
    if (d->beta.n > 0) {
        THI_TRY(add_beta(d, ctx, d->beta.n, mu, v));
    }
    for (int64_t i = 0; i < n; i++) {
        v[i] = fmax(v[i], 0.0);
        d->at.left[i] = fmax(d->at.left[i], 0.0);
    }
out:
    return status;
}

void thi_decoupled_residual(const thi_decoupled *d, double *r)
{
    memcpy(r, d->at.left, (size_t)d->at.n * sizeof *r);
}

void thi_decoupled_relieve(thi_decoupled *d, const double *c)
{
    d->at.spared = d->shape.orthogonal ? c : NULL;
}

/* The decoupled engine: its state, factors, marginals. The formulas are in decoupled.h. */
#include "posterior/decoupled.h"

#include <math.h>
#include <string.h>

#include "posterior/decoupled_internal.h"
#include "posterior/sparse_internal.h"

/* --- state -----------------------------------------------------------------------------------------------------------
 */

static thiele_status open_latent(thi_decoupled_latent *q, thiele_context *ctx, const thi_decoupled_shape *shape)
{
    int64_t M = shape->beta;
    thi_matrix *both[] = {&q->root, &q->S, &q->Th};
    thi_matrix *plain[] = {&q->L, &q->map, &q->KL, &q->Kh};
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        THI_TRY(thi_matrix_alloc(both[i], ctx, M, M));
    }
    for (size_t i = 0; !shape->orthogonal && i < sizeof plain / sizeof *plain; i++) {
        THI_TRY(thi_matrix_alloc(plain[i], ctx, M, M));
    }
    THI_TRY(thi_matrix_alloc(&q->W, ctx, shape->rows, M));
out:
    return status;
}

static thiele_status open_squares(thi_decoupled *d, thiele_context *ctx)
{
    int64_t M = d->shape.beta, each = M * d->shape.latents;
    const thi_decoupled *twin = d->shape.twin;
    thi_matrix *work[] = {&d->work, &d->more};
    thi_matrix *orthogonal[] = {&d->Lb, &d->Tc};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &d->latent, (size_t)d->shape.latents, sizeof *d->latent));
    for (int p = 0; p < d->shape.latents; p++) {
        THI_TRY(open_latent(&d->latent[p], ctx, &d->shape));
    }
    for (size_t i = 0; twin == NULL && i < sizeof work / sizeof *work; i++) {
        THI_TRY(thi_matrix_alloc(work[i], ctx, M, M));
    }
    d->work = twin != NULL ? twin->work : d->work;
    d->more = twin != NULL ? twin->more : d->more;
    THI_TRY(thi_matrix_alloc(&d->K, ctx, M, M));
    for (size_t i = 0; d->shape.orthogonal && i < sizeof orthogonal / sizeof *orthogonal; i++) {
        THI_TRY(thi_matrix_alloc(orthogonal[i], ctx, M, M));
    }
    THI_TRY(thi_alloc(ctx, &d->m, (size_t)(5 * each), sizeof *d->m));
    d->c = d->m + each;
    d->lean = d->c + each;
    d->Vg = d->lean + each;
    d->cbar = d->Vg + each;
out:
    return status;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static thiele_status open_rows(thi_decoupled_rows *at, thiele_context *ctx, const thi_decoupled_shape *shape)
{
    int64_t M = shape->beta, n = shape->rows, most = largest(largest(n, shape->columns), M);
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&at->k, ctx, n, M));
    THI_TRY(thi_matrix_alloc(&at->V, ctx, n, M));
    if (shape->twin != NULL) {
        at->U = shape->twin->at.U;
        at->portion = shape->twin->at.portion;
        at->weights = shape->twin->at.weights;
    } else {
        THI_TRY(thi_matrix_alloc(&at->U, ctx, n, M));
        THI_TRY(thi_matrix_alloc(&at->portion, ctx, most, THI_DECOUPLED_PORTION));
        THI_TRY(thi_matrix_alloc(&at->weights, ctx, most, THI_DECOUPLED_PORTION));
    }
    THI_TRY(thi_alloc(ctx, &at->left, (size_t)(4 * n), sizeof *at->left));
    at->all_g = at->left + n;
    at->all_h = at->all_g + n;
    at->all_c = at->all_h + n;
out:
    return status;
}

thiele_status thi_decoupled_open(thi_decoupled **out, thiele_context *ctx, const thi_decoupled_shape *shape)
{
    thi_decoupled *d = NULL;
    int64_t P = shape->latents;
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &d, 1, sizeof *d));
    d->shape = *shape;
    THI_TRY(open_squares(d, ctx));
    THI_TRY(open_rows(&d->at, ctx, shape));
    THI_TRY(thi_alloc(ctx, &d->pick, (size_t)(shape->columns * (2 * shape->D + P)), sizeof *d->pick));
    THI_TRY(thi_alloc(ctx, &d->along, (size_t)(THI_DECOUPLED_PORTION * P), sizeof *d->along));
out:
    if (status != THIELE_OK) {
        thi_decoupled_close(d);
        return status;
    }
    *out = d;
    return THIELE_OK;
}

static void close_latent(thi_decoupled_latent *q)
{
    thi_matrix *all[] = {&q->root, &q->S, &q->Th, &q->L, &q->map, &q->KL, &q->Kh, &q->W};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        thi_free(all[i]->data);
    }
}

void thi_decoupled_close(thi_decoupled *d)
{
    if (d == NULL) {
        return;
    }
    thi_matrix *own[] = {&d->K, &d->Lb, &d->Tc, &d->at.k, &d->at.V};
    thi_matrix *work[] = {&d->work, &d->more, &d->at.U, &d->at.portion, &d->at.weights};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        thi_free(own[i]->data);
    }
    for (size_t i = 0; d->shape.twin == NULL && i < sizeof work / sizeof *work; i++) {
        thi_free(work[i]->data);
    }
    for (int p = 0; d->latent != NULL && p < d->shape.latents; p++) {
        close_latent(&d->latent[p]);
    }
    thi_functions_clear(&d->alpha);
    thi_functions_clear(&d->beta);
    thi_inputs_clear(&d->at.rows);
    thi_free(d->latent);
    thi_free(d->m);
    thi_free(d->at.left);
    thi_free(d->theta);
    thi_free(d->pick);
    thi_free(d->along);
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
static thiele_status invert(thi_decoupled_latent *q, thiele_context *ctx, int64_t M)
{
    thi_matrix root = thi_decoupled_square(q->root, M), S = thi_decoupled_square(q->S, M);
    thiele_status status;
    THI_TRY(thi_chol(ctx, root));
    q->log_det = thi_chol_logdet(root);
    thi_tri_copy_clean(root, S);
    THI_TRY(thi_chol_inverse(ctx, S));
    thi_symmetrise(S);
out:
    return status;
}

static thiele_status begin_plain(thi_decoupled *d, thiele_context *ctx, int64_t M)
{
    thiele_status status = THIELE_OK;
    for (int p = 0; p < d->shape.latents; p++) {
        thi_decoupled_latent *q = &d->latent[p];
        thi_matrix L = thi_decoupled_square(q->L, M), KL = thi_decoupled_square(q->KL, M);
        thi_matrix root = thi_decoupled_square(q->root, M), map = thi_decoupled_square(q->map, M);
        thi_tri_copy_clean(d->q.sites[p].T, L);
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, thi_decoupled_square(d->K, M), L, 0.0, KL, false));
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, L, KL, 0.0, root, true));
        add_identity(root);
        THI_TRY(invert(q, ctx, M));
        memcpy(map.data, L.data, (size_t)(M * M) * sizeof(double));
        THI_TRY(thi_sparse_solve_right(ctx, THI_T, root, map));
        memset(q->Kh.data, 0, (size_t)(M * M) * sizeof(double));
    }
out:
    return status;
}

/* c = Lb^-1 K_beta,alpha a */
static thiele_status project_mean(thi_decoupled *d, thiele_context *ctx, int64_t M)
{
    thi_matrix c = thi_decoupled_columns_of(d, d->c, M);
    thiele_status status = THIELE_OK;
    memset(d->c, 0, (size_t)(M * c.cols) * sizeof *d->c);
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, M, part.n);
        THI_TRY(thi_functions_cross(&d->beta, &part, ctx, K, false));
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, K, thi_decoupled_part(d->q.a, first, part.n), 1.0, c, false));
    }
    THI_TRY(thi_tri_solve(ctx, THI_N, thi_decoupled_square(d->Lb, M), c));
out:
    return status;
}

static thiele_status begin_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M)
{
    thi_matrix Lb = thi_decoupled_square(d->Lb, M);
    thiele_status status;
    memcpy(Lb.data, d->K.data, (size_t)(M * M) * sizeof(double));
    memset(d->Tc.data, 0, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_chol_jitter(ctx, Lb, &d->jitter));
    for (int p = 0; p < d->shape.latents; p++) {
        thi_matrix root = thi_decoupled_square(d->latent[p].root, M);
        thi_tri_copy_clean(d->q.sites[p].T, root);
        add_identity(root);
        THI_TRY(invert(&d->latent[p], ctx, M));
        thi_blas_gemv(THI_N, 1.0, thi_decoupled_square(d->latent[p].S, M), d->q.sites[p].t, 0.0, d->m + p * M);
    }
    THI_TRY(project_mean(d, ctx, M));
    for (int64_t i = 0; i < M * d->shape.latents; i++) {
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
    thiele_status status;
    d->prior = *prior;
    d->q = *q;
    d->parameters = prior->kernel->parameters;
    d->jitter = 0.0;
    THI_TRY(thi_grow(ctx, &d->theta, (size_t)d->parameters, sizeof *d->theta));
    THI_TRY(make_functions(&d->alpha, ctx, prior->kernel, &q->alpha));
    THI_TRY(make_functions(&d->beta, ctx, prior->kernel, &q->beta));
    if (M == 0) {
        return THIELE_OK;
    }
    for (int p = 0; p < d->shape.latents; p++) {
        memset(d->latent[p].Th.data, 0, (size_t)(M * M) * sizeof(double));
    }
    memset(d->Vg, 0, (size_t)(M * d->shape.latents) * sizeof *d->Vg);
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

/* mu += k(x, alpha) a; before the first sweep a is zero. */
static thiele_status add_means(thi_decoupled *d, thiele_context *ctx, thi_matrix mu)
{
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, d->at.n, part.n),
                   a = thi_decoupled_part(d->q.a, first, part.n);
        if (!thi_matrix_is_zero(a)) {
            THI_TRY(thi_functions_fill(&part, ctx, &d->at.rows, K));
            THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, K, a, 1.0, mu, false));
        }
    }
out:
    return status;
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
static thiele_status add_plain(thi_decoupled *d, thiele_context *ctx, int64_t M, double *v)
{
    thi_matrix k = thi_decoupled_view(d->at.k, d->at.n, M);
    thiele_status status;
    THI_TRY(thi_functions_fill(&d->beta, ctx, &d->at.rows, k));
    for (int p = 0; p < d->shape.latents; p++) {
        thi_matrix W = thi_decoupled_view(d->latent[p].W, d->at.n, M);
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, k, thi_decoupled_square(d->latent[p].map, M), 0.0, W, false));
        add_products(W, W, -1.0, v + p * d->at.n);
    }
out:
    return status;
}

static thiele_status add_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M, thi_matrix mu, double *v)
{
    int64_t n = d->at.n;
    thi_matrix k = thi_decoupled_view(d->at.k, n, M), V = thi_decoupled_view(d->at.V, n, M);
    thiele_status status;
    THI_TRY(thi_functions_fill(&d->beta, ctx, &d->at.rows, k));
    memcpy(V.data, k.data, (size_t)(n * M) * sizeof(double));
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, thi_decoupled_square(d->Lb, M), V));
    add_products(V, V, -1.0, d->at.left);
    for (int p = 0; p < d->shape.latents; p++) {
        thi_matrix W = thi_decoupled_view(d->latent[p].W, n, M);
        memcpy(W.data, V.data, (size_t)(n * M) * sizeof(double));
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, V, thi_decoupled_square(d->latent[p].S, M), -1.0, W, false));
        add_products(V, W, 1.0, v + p * n);
    }
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, V, thi_decoupled_columns_of(d, d->lean, M), 1.0, mu, false));
out:
    return status;
}

/* The prior's own mean and variance, for each latent. */
static thiele_status begin_marginals(thi_decoupled *d, thiele_context *ctx, double *mu, double *v)
{
    const thi_prior *prior = &d->prior;
    int64_t n = d->at.n;
    thi_mean_fill(prior->mean, prior->mean_parameter, n, d->shape.D, d->at.X, mu);
    thiele_status status = thi_kernel_fill_diagonal(prior->kernel, ctx, &d->at.rows, v);
    for (int p = 1; p < d->shape.latents; p++) {
        memcpy(mu + p * n, mu, (size_t)n * sizeof *mu);
        memcpy(v + p * n, v, (size_t)n * sizeof *v);
    }
    for (int64_t i = 0; i < n; i++) {
        d->at.left[i] = d->shape.orthogonal ? v[i] : 0.0;
    }
    return status;
}

static void clip(int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = fmax(x[i], 0.0);
    }
}

thiele_status thi_decoupled_marginals(thi_decoupled *d, thiele_context *ctx, int64_t n, const double *X, double *mu,
                                      double *v)
{
    thi_matrix means = thi_decoupled_columns_of(d, mu, n);
    thiele_status status;
    d->at.n = n;
    d->at.X = X;
    d->at.spared = NULL;
    thi_inputs_clear(&d->at.rows);
    THI_TRY(thi_inputs_make(&d->at.rows, ctx, d->prior.kernel, n, X));
    THI_TRY(begin_marginals(d, ctx, mu, v));
    THI_TRY(add_means(d, ctx, means));
    if (d->beta.n > 0) {
        THI_TRY(d->shape.orthogonal ? add_orthogonal(d, ctx, d->beta.n, means, v) : add_plain(d, ctx, d->beta.n, v));
    }
    clip(n * d->shape.latents, v);
    clip(n, d->at.left);
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

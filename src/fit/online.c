/* The state of online learning: from a frozen predictor and back, and the marginals of a batch. See online.h. */
#include "fit/online.h"

#include <math.h>
#include <string.h>

const char *thi_online_refuses(const thi_predictor *p)
{
    if (p->local != NULL) {
        return "its rows belong to blocks (fit by --method pitc or fitc instead)";
    }
    if (p->mean_basis != NULL || p->log_c != NULL) {
        return "its mean has a basis of its own (fit by --method collapsed or variational instead)";
    }
    if (p->components != 1) {
        return "its posterior is a mixture (fit with --posterior full instead)";
    }
    if ((p->plus != THI_PLUS_TRIANGLE && p->plus != THI_PLUS_WHITE) || p->scale != NULL) {
        return "it keeps its training rows, not inducing inputs (fit with --inducing M instead)";
    }
    return NULL;
}

/* --- opening ---------------------------------------------------------------------------------------------------------
 */

static void copy_lower(thi_matrix from, thi_matrix to)
{
    for (int64_t j = 0; j < from.cols; j++) {
        memcpy(to.data + j + j * to.ld, from.data + j + j * from.ld, (size_t)(from.rows - j) * sizeof(double));
    }
}

/* Lower triangle of B = S^-1, S = Ls Ls' or R'R. */
static thiele_status invert_posterior(const thi_predictor *p, thiele_context *ctx, thi_matrix B)
{
    thi_matrix R = p->R[0], N = {0};
    thiele_status status;
    if (p->plus == THI_PLUS_WHITE) {
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, R, R, 0.0, B, true));
        THI_TRY(thi_chol(ctx, B));
        return thi_chol_inverse(ctx, B);
    }
    THI_TRY(thi_matrix_alloc(&N, ctx, p->n, p->n));
    copy_lower(R, N);
    THI_TRY(thi_tri_inverse(ctx, N));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, N, N, 0.0, B, true));
out:
    thi_free(N.data);
    return status;
}

/* Natural parameters from the frozen form: m = L'a, t = B m, T = B - I. */
static thiele_status recover(thi_online_latent *l, thiele_context *ctx)
{
    const thi_predictor *p = l->basis;
    int64_t M = p->n;
    thi_matrix m = thi_matrix_view(l->m, M, 1, M);
    thiele_status status = invert_posterior(p, ctx, l->T);
    if (status == THIELE_ERROR_NUMERIC) {
        return thi_fail_in(ctx, status, "the posterior over the %lld inducing inputs", (long long)M);
    }
    if (status != THIELE_OK) {
        return status;
    }
    memcpy(l->m, p->a, (size_t)M * sizeof *l->m);
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, p->L, m);
    thi_blas_symm(THI_LEFT, 1.0, l->T, m, 0.0, thi_matrix_view(l->t, M, 1, M));
    for (int64_t i = 0; i < M; i++) {
        l->T.data[i + i * M] -= 1.0;
    }
    return THIELE_OK;
}

thiele_status thi_online_factor(thi_online_latent *l, thiele_context *ctx, thi_matrix A, const double *b)
{
    int64_t M = A.rows;
    copy_lower(A, l->root);
    for (int64_t i = 0; i < M; i++) {
        l->root.data[i + i * M] += 1.0;
    }
    thiele_status status = thi_chol(ctx, l->root);
    if (status == THIELE_OK) {
        memcpy(l->m, b, (size_t)M * sizeof *l->m);
        thi_blas_trsv(THI_N, l->root, l->m);
        thi_blas_trsv(THI_T, l->root, l->m);
    }
    return status;
}

static thiele_status latent_open(thi_online_latent *l, thiele_context *ctx, const thi_predictor *p, int64_t capacity)
{
    int64_t M = p->n;
    thiele_status status;
    l->basis = p;
    THI_TRY(thi_matrix_alloc(&l->T, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&l->next, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&l->root, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&l->V, ctx, M, capacity));
    THI_TRY(thi_matrix_alloc(&l->W, ctx, M, capacity));
    THI_TRY(thi_alloc(ctx, &l->t, (size_t)M, sizeof *l->t));
    THI_TRY(thi_alloc(ctx, &l->t_next, (size_t)M, sizeof *l->t_next));
    THI_TRY(thi_alloc(ctx, &l->m, (size_t)M, sizeof *l->m));
    THI_TRY(thi_alloc(ctx, &l->old, (size_t)M, sizeof *l->old));
    THI_TRY(thi_alloc(ctx, &l->left, (size_t)capacity, sizeof *l->left));
    THI_TRY(recover(l, ctx));
    THI_TRY(thi_online_factor(l, ctx, l->T, l->t));
out:
    return status;
}

static void latent_close(thi_online_latent *l)
{
    thi_free(l->T.data);
    thi_free(l->next.data);
    thi_free(l->root.data);
    thi_free(l->V.data);
    thi_free(l->W.data);
    thi_free(l->t);
    thi_free(l->t_next);
    thi_free(l->m);
    thi_free(l->old);
    thi_free(l->left);
}

enum { ARRAYS = 11 }; /* of Q x capacity numbers */

thiele_status thi_online_open(thi_online *o, thiele_context *ctx, int latents, const thi_predictor *latent,
                              const thiele_likelihood *lik, const thi_online_settings *settings)
{
    *o = (thi_online){.settings = *settings, .lik = lik, .latents = latents};
    size_t numbers = (size_t)settings->capacity * (size_t)latents;
    double **array[ARRAYS] = {&o->shift, &o->mu,         &o->v,      &o->lambda, &o->nu, &o->lambda_to,
                              &o->nu_to, &o->lambda_try, &o->nu_try, &o->g,      &o->h};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &o->latent, (size_t)latents, sizeof *o->latent));
    THI_TRY(thi_alloc(ctx, &o->E, (size_t)settings->capacity, sizeof *o->E));
    for (int i = 0; i < ARRAYS; i++) {
        THI_TRY(thi_alloc(ctx, array[i], numbers, sizeof **array[i]));
    }
    for (int j = 0; j < latents; j++) {
        THI_TRY(latent_open(&o->latent[j], ctx, &latent[j], settings->capacity));
    }
out:
    if (status != THIELE_OK) {
        thi_online_close(o);
    }
    return status;
}

void thi_online_close(thi_online *o)
{
    double *array[ARRAYS] = {o->shift, o->mu,         o->v,      o->lambda, o->nu, o->lambda_to,
                             o->nu_to, o->lambda_try, o->nu_try, o->g,      o->h};
    for (int j = 0; o->latent != NULL && j < o->latents; j++) {
        latent_close(&o->latent[j]);
    }
    for (int i = 0; i < ARRAYS; i++) {
        thi_free(array[i]);
    }
    thi_free(o->latent);
    thi_free(o->E);
    *o = (thi_online){0};
}

/* --- marginals -------------------------------------------------------------------------------------------------------
 */

static thi_matrix columns(thi_matrix A, int64_t n)
{
    return thi_matrix_view(A.data, A.rows, n, A.ld);
}

/* V, what it leaves of k(x, x), and the prior mean of the batch. */
static thiele_status load(thi_online *o, thiele_context *ctx, int j, const double *X)
{
    thi_online_latent *l = &o->latent[j];
    const thi_predictor *p = l->basis;
    int64_t n = o->n;
    thi_matrix V = columns(l->V, n);
    thi_inputs inputs = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, ctx, p->kernel, n, X));
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &p->inputs, &inputs, V, false));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &inputs, l->left));
    THI_TRY(thi_tri_solve(ctx, THI_N, p->L, V));
    for (int64_t i = 0; i < n; i++) {
        const double *w = V.data + i * V.ld;
        l->left[i] = fmax(0.0, l->left[i] - thi_blas_dot(p->n, w, w));
    }
    thi_mean_fill(p->mean, p->mean_parameter, n, p->kernel->dims, X, o->E);
    for (int64_t i = 0; i < n; i++) {
        o->shift[i * o->latents + j] = o->E[i];
    }
out:
    thi_inputs_clear(&inputs);
    return status;
}

thiele_status thi_online_marginals(thi_online *o, thiele_context *ctx, double *mu, double *v)
{
    int64_t n = o->n;
    for (int j = 0; j < o->latents; j++) {
        thi_online_latent *l = &o->latent[j];
        thi_matrix V = columns(l->V, n), W = columns(l->W, n);
        bool conditional = l->basis->conditional != THI_CONDITIONAL_NONE;
        memcpy(W.data, V.data, (size_t)(V.rows * n) * sizeof *W.data);
        thiele_status status = thi_tri_solve(ctx, THI_N, l->root, W);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_gemv(THI_T, 1.0, V, l->m, 0.0, o->E);
        for (int64_t i = 0; i < n; i++) {
            const double *w = W.data + i * W.ld;
            int64_t at = i * o->latents + j;
            mu[at] = o->shift[at] + o->E[i];
            v[at] = (conditional ? l->left[i] : 0.0) + thi_blas_dot(V.rows, w, w);
        }
    }
    return THIELE_OK;
}

thiele_status thi_online_predict(thi_online *o, thiele_context *ctx, int64_t n, const double *X, const double *offset,
                                 double *mu, double *v)
{
    thiele_status status = THIELE_OK;
    o->n = n;
    for (int j = 0; j < o->latents; j++) {
        THI_TRY(load(o, ctx, j, X));
    }
    for (int64_t i = 0; offset != NULL && i < n; i++) {
        o->shift[i * o->latents] += offset[i];
    }
    THI_TRY(thi_online_marginals(o, ctx, mu, v));
out:
    return status;
}

/* --- freezing --------------------------------------------------------------------------------------------------------
 */

thiele_status thi_online_freeze(const thi_online *o, thiele_context *ctx, int latent, thi_predictor *out)
{
    const thi_online_latent *l = &o->latent[latent];
    int64_t M = l->T.rows;
    thi_matrix B = {0}, Ls = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&B, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&Ls, ctx, M, M));
    copy_lower(l->T, B);
    for (int64_t i = 0; i < M; i++) {
        B.data[i + i * M] += 1.0;
    }
    THI_TRY(thi_sparse_inverse_root(ctx, B, Ls));
    thi_free(out->R[0].data);
    out->R[0] = Ls;
    Ls = (thi_matrix){0};
    out->plus = THI_PLUS_TRIANGLE;
    memcpy(out->a, l->m, (size_t)M * sizeof *out->a);
    thi_blas_trsv(THI_T, l->basis->L, out->a);
out:
    thi_free(B.data);
    thi_free(Ls.data);
    return status;
}

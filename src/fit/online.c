/* The state of online learning: from a frozen predictor and back, and the marginals of a batch. See online.h. */
#include "fit/online.h"

#include <math.h>
#include <string.h>

const char *thi_online_refuses(const thi_predictor *p)
{
    if (p->n == 0) {
        return "its covariance has no basis functions (fit with `inducing` M instead)";
    }
    if (p->plus == THI_PLUS_NONE || p->plus == THI_PLUS_KERNEL || p->scale != NULL) {
        return "it keeps its training rows, not inducing inputs (fit with `inducing` M instead)";
    }
    return NULL;
}

/* --- decoupled posteriors --------------------------------------------------------------------------------------------
 */

/* Functions of the mean before those of the covariance: alpha. */
static int64_t outside(const thi_predictor *p)
{
    return p->mean_basis != NULL ? p->mean_n - p->n : 0;
}

static bool ends_in_basis(const thi_predictor *p)
{
    int64_t at = outside(p) * p->kernel->dims;
    size_t bytes = (size_t)(p->n * p->kernel->dims) * sizeof(double);
    return at >= 0 && memcmp(p->mean_basis + at, p->basis, bytes) == 0 &&
           (p->log_c == NULL || memcmp(p->mean_log_c + at, p->log_c, bytes) == 0);
}

static thiele_status append(thiele_context *ctx, double **to, size_t count, const double *from, size_t added)
{
    thiele_status status = thi_grow(ctx, to, count + added, sizeof **to);
    if (status == THIELE_OK) {
        memcpy(*to + count, from, added * sizeof **to);
    }
    return status;
}

thiele_status thi_online_prepare(thi_predictor *p, thiele_context *ctx)
{
    size_t D = (size_t)p->kernel->dims, count = D * (size_t)p->mean_n, added = D * (size_t)p->n;
    thiele_status status;
    if (p->plus != THI_PLUS_PRECISION) {
        THI_TRY(thi_predictor_to_precision(p, ctx));
    }
    if (p->mean_basis == NULL || ends_in_basis(p)) {
        return THIELE_OK;
    }
    THI_TRY(append(ctx, &p->mean_basis, count, p->basis, added));
    if (p->log_c != NULL) {
        THI_TRY(append(ctx, &p->mean_log_c, count, p->log_c, added));
    }
    THI_TRY(thi_grow(ctx, &p->a, (size_t)(p->mean_n + p->n), sizeof *p->a));
    p->mean_n += p->n;
    THI_TRY(thi_predictor_finish(p, ctx));
out:
    return status;
}

/* c = L^-1 k(beta, alpha) a */
static thiele_status project(thi_online_latent *l, thiele_context *ctx)
{
    const thi_predictor *p = l->basis;
    int64_t alpha = outside(p), most = alpha < THI_PREDICT_PORTION ? alpha : THI_PREDICT_PORTION;
    thi_matrix room = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&room, ctx, p->n, most));
    for (int64_t first = 0; first < alpha; first += most) {
        thi_functions part = thi_functions_part(&p->mean_functions, first, alpha - first < most ? alpha - first : most);
        thi_matrix K = thi_matrix_view(room.data, p->n, part.n, p->n);
        THI_TRY(thi_functions_cross(&p->functions, &part, ctx, K, false));
        thi_blas_gemv(THI_N, 1.0, K, p->a + first, 1.0, l->c);
    }
    thi_blas_trsv(THI_N, p->L, l->c);
out:
    thi_free(room.data);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------------------------------
 */

thiele_status thi_online_sites(const thi_predictor *p, thiele_context *ctx, const double *c, thi_natural *sum)
{
    int64_t M = p->n;
    double *m = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &m, (size_t)M, sizeof *m));
    memcpy(m, p->a + outside(p), (size_t)M * sizeof *m);
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, p->L, thi_matrix_view(m, M, 1, M));
    if (c != NULL) {
        thi_blas_axpy(M, 1.0, c, m);
    }
    THI_TRY(thi_natural_take(sum, ctx, p->R[0], m));
out:
    thi_free(m);
    return status;
}

thiele_status thi_online_factor(thi_online_latent *l, thiele_context *ctx, const thi_natural *sum)
{
    thiele_status status = thi_natural_root(sum, ctx, l->root);
    if (status == THIELE_OK) {
        memcpy(l->m, sum->t, (size_t)sum->T.rows * sizeof *l->m);
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
    THI_TRY(thi_natural_open(&l->sum, ctx, M));
    THI_TRY(thi_natural_open(&l->next, ctx, M));
    THI_TRY(thi_matrix_alloc(&l->root, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&l->V, ctx, M, capacity));
    THI_TRY(thi_matrix_alloc(&l->W, ctx, M, capacity));
    THI_TRY(thi_alloc(ctx, &l->m, (size_t)M, sizeof *l->m));
    THI_TRY(thi_alloc(ctx, &l->old, (size_t)M, sizeof *l->old));
    THI_TRY(thi_alloc(ctx, &l->left, (size_t)capacity, sizeof *l->left));
    THI_TRY(thi_alloc(ctx, &l->c, (size_t)M, sizeof *l->c));
    if (p->mean_basis != NULL) {
        THI_TRY(thi_alloc(ctx, &l->room, (size_t)capacity * THI_PREDICT_PORTION, sizeof *l->room));
        THI_TRY(project(l, ctx));
    }
    THI_TRY(thi_online_sites(p, ctx, l->c, &l->sum));
    THI_TRY(thi_online_factor(l, ctx, &l->sum));
out:
    return status;
}

static void latent_close(thi_online_latent *l)
{
    thi_natural_close(&l->sum);
    thi_natural_close(&l->next);
    thi_free(l->root.data);
    thi_free(l->V.data);
    thi_free(l->W.data);
    thi_free(l->m);
    thi_free(l->old);
    thi_free(l->left);
    thi_free(l->c);
    thi_free(l->room);
}

enum { ARRAYS = 11 }; /* of Q x capacity numbers */

thiele_status thi_online_open(thi_online *o, thiele_context *ctx, int latents, const thi_predictor *latent,
                              const thiele_likelihood *lik, const thi_online_settings *settings)
{
    *o = (thi_online){.settings = *settings,
                      .lasting = 1.0,
                      .lik = lik,
                      .providers = {.lik = lik, .method = settings->expectation},
                      .latents = latents};
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
    thi_providers_close(&o->providers);
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

/* V, what it leaves of k(x, x), and the prior mean of the batch with o. */
static thiele_status load(thi_online *o, thiele_context *ctx, int j, const double *X)
{
    thi_online_latent *l = &o->latent[j];
    const thi_predictor *p = l->basis;
    int64_t n = o->n;
    thi_matrix V = columns(l->V, n);
    thi_inputs inputs = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, ctx, p->kernel, n, X));
    THI_TRY(thi_predictor_fill(p, ctx, &inputs, l->room, V));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &inputs, l->left));
    THI_TRY(thi_tri_solve(ctx, THI_N, p->L, V));
    for (int64_t i = 0; i < n; i++) {
        const double *w = V.data + i * V.ld;
        l->left[i] = fmax(0.0, l->left[i] - thi_blas_dot(p->n, w, w));
    }
    thi_mean_fill(p->mean, p->mean_parameter, n, p->kernel->dims, X, o->E);
    if (outside(p) > 0) {
        THI_TRY(thi_predictor_add_mean(p, ctx, outside(p), p->a, &inputs, l->room, o->E));
        thi_blas_gemv(THI_T, -1.0, V, l->c, 1.0, o->E);
    }
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
    for (int64_t i = 0; i < n * o->latents; i++) {
        v[i] *= thi_predictor_tau(o->latent[i % o->latents].basis);
    }
out:
    return status;
}

thiele_status thi_online_shift(const thi_online_latent *l, thiele_context *ctx, int64_t n, const double *X, double *out)
{
    const thi_predictor *p = l->basis;
    size_t portion = (size_t)n * THI_PREDICT_PORTION;
    thi_inputs inputs = {0};
    thi_matrix K = {0};
    double *room = NULL, *weight = NULL;
    thiele_status status = THIELE_OK;
    thi_mean_fill(p->mean, p->mean_parameter, n, p->kernel->dims, X, out);
    if (outside(p) == 0) {
        return status;
    }
    THI_TRY(thi_inputs_make(&inputs, ctx, p->kernel, n, X));
    THI_TRY(thi_matrix_alloc(&K, ctx, p->n, n));
    THI_TRY(thi_alloc(ctx, &room, portion, sizeof *room));
    THI_TRY(thi_alloc(ctx, &weight, (size_t)p->n, sizeof *weight));
    THI_TRY(thi_predictor_add_mean(p, ctx, outside(p), p->a, &inputs, room, out));
    THI_TRY(thi_predictor_fill(p, ctx, &inputs, room, K));
    memcpy(weight, l->c, (size_t)p->n * sizeof *weight);
    thi_blas_trsv(THI_T, p->L, weight);
    thi_blas_gemv(THI_T, -1.0, K, weight, 1.0, out);
out:
    thi_inputs_clear(&inputs);
    thi_free(K.data);
    thi_free(room);
    thi_free(weight);
    return status;
}

/* --- freezing --------------------------------------------------------------------------------------------------------
 */

void thi_online_freeze(const thi_online *o, int latent, thi_predictor *out)
{
    const thi_online_latent *l = &o->latent[latent];
    int64_t M = l->sum.T.rows;
    double *a = out->a + outside(out);
    thi_tri_copy(l->root, out->R[0]);
    memcpy(a, l->m, (size_t)M * sizeof *a);
    thi_blas_axpy(M, -1.0, l->c, a);
    thi_blas_trsv(THI_T, l->basis->L, a);
}

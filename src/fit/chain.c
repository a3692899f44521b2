/*
 * What samplers over the latents at the data rows share: kernel matrices and their factors, products with these (n^2
 * flops each), the density of a state, random numbers by the number of the chain.
 */
#include "fit/chain.h"

#include <math.h>
#include <string.h>

#include "linalg/vector.h"

/* --- the model ------------------------------------------------------------------------------------------------------
 */

/* K and L at the places of one group. */
static thiele_status fill_group(thi_chain_model *model, thiele_context *ctx, const thi_prior *prior,
                                const thi_inputs *places, int g)
{
    int64_t m = model->places;
    double jitter = 0.0;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&model->K[g], ctx, m, m));
    THI_TRY(thi_matrix_alloc(&model->L[g], ctx, m, m));
    THI_TRY(thi_kernel_fill(prior->kernel, ctx, places, places, model->K[g], true));
    memcpy(model->L[g].data, model->K[g].data, (size_t)(m * m) * sizeof(double));
    THI_TRY(thi_chol_jitter(ctx, model->L[g], &jitter));
    thi_symmetrise(model->K[g]);
    for (int64_t i = 0; i < m; i++) {
        model->K[g].data[i + i * m] += jitter;
    }
    model->jitter = fmax(model->jitter, jitter);
out:
    return status == THIELE_ERROR_NUMERIC ? thi_fail_in(ctx, status, "the kernel matrix of the rows") : status;
}

/* U' = L^-1 K(Z, X), transposed, and what it leaves. */
static thiele_status explain_rows(thi_chain_model *model, thiele_context *ctx, const thi_prior *prior,
                                  const thi_inputs *places, const thi_rows *rows, int g)
{
    int64_t n = model->n, M = model->places;
    double *left = model->left + g * n;
    thi_matrix W = {0};
    thi_inputs inputs = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&inputs, ctx, prior->kernel, n, rows->X));
    THI_TRY(thi_matrix_alloc(&W, ctx, M, n));
    THI_TRY(thi_matrix_alloc(&model->U[g], ctx, n, M));
    THI_TRY(thi_kernel_fill(prior->kernel, ctx, places, &inputs, W, false));
    THI_TRY(thi_tri_solve(ctx, THI_N, model->L[g], W));
    THI_TRY(thi_kernel_fill_diagonal(prior->kernel, ctx, &inputs, left));
    for (int64_t i = 0; i < n; i++) {
        const double *w = W.data + i * M;
        for (int64_t j = 0; j < M; j++) {
            model->U[g].data[i + j * n] = w[j];
        }
        left[i] = fmax(0.0, left[i] - thi_blas_dot(M, w, w));
    }
out:
    thi_free(W.data);
    thi_inputs_clear(&inputs);
    return status;
}

static thiele_status open_group(thi_chain_model *model, thiele_context *ctx, const thi_prior *prior,
                                const thi_rows *rows, const double *X, int g)
{
    thi_inputs places = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&places, ctx, prior->kernel, model->places, X));
    THI_TRY(fill_group(model, ctx, prior, &places, g));
    if (model->U != NULL) {
        THI_TRY(explain_rows(model, ctx, prior, &places, rows, g));
    }
out:
    thi_inputs_clear(&places);
    return status;
}

static void fill_means(thi_chain_model *model, const thi_latents *latents, const thi_rows *rows, const double *Z)
{
    for (int64_t q = 0; q < latents->count; q++) {
        const thi_prior *prior = &latents->prior[latents->group[q]];
        double *o = model->o + q * rows->n;
        thi_mean_fill(prior->mean, prior->mean_parameter, rows->n, rows->dims, rows->X, o);
        for (int64_t i = 0; i < rows->n && q == 0 && rows->offset != NULL; i++) {
            o[i] += rows->offset[i];
        }
        if (Z != NULL) {
            thi_mean_fill(prior->mean, prior->mean_parameter, model->places, rows->dims,
                          Z + latents->group[q] * model->places * rows->dims, model->at + q * model->places);
        }
    }
}

static thiele_status allocate(thi_chain_model *model, thiele_context *ctx, bool sparse)
{
    size_t groups = (size_t)model->groups, Q = (size_t)model->latents, n = (size_t)model->n;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &model->K, groups, sizeof *model->K));
    THI_TRY(thi_alloc(ctx, &model->L, groups, sizeof *model->L));
    THI_TRY(thi_alloc(ctx, &model->o, n * Q, sizeof *model->o));
    model->at = model->o;
    if (sparse) {
        model->at = NULL;
        THI_TRY(thi_alloc(ctx, &model->at, (size_t)model->places * Q, sizeof *model->at));
        THI_TRY(thi_alloc(ctx, &model->U, groups, sizeof *model->U));
        THI_TRY(thi_alloc(ctx, &model->left, n * groups, sizeof *model->left));
    }
out:
    return status;
}

thiele_status thi_chain_model_open(thi_chain_model *model, thiele_context *ctx, const thi_spec *spec,
                                   const thi_rows *rows, thi_chains_basis basis)
{
    const thi_latents *latents = &spec->latents;
    bool sparse = basis.Z != NULL;
    *model = (thi_chain_model){.n = rows->n,
                               .places = sparse ? basis.M : rows->n,
                               .latents = latents->count,
                               .lik = spec->lik,
                               .y = rows->y,
                               .weight = rows->weight,
                               .group = latents->group,
                               .groups = latents->groups};
    thiele_status status;
    THI_TRY(allocate(model, ctx, sparse));
    for (int g = 0; g < latents->groups; g++) {
        const double *X = sparse ? basis.Z + g * basis.M * rows->dims : rows->X;
        THI_TRY(open_group(model, ctx, &latents->prior[g], rows, X, g));
    }
    fill_means(model, latents, rows, basis.Z);
out:
    if (status != THIELE_OK) {
        thi_chain_model_close(model);
    }
    return status;
}

void thi_chain_model_close(thi_chain_model *model)
{
    for (int g = 0; g < model->groups; g++) {
        thi_free(model->K != NULL ? model->K[g].data : NULL);
        thi_free(model->L != NULL ? model->L[g].data : NULL);
        thi_free(model->U != NULL ? model->U[g].data : NULL);
    }
    thi_free(model->at != model->o ? model->at : NULL);
    thi_free(model->K);
    thi_free(model->L);
    thi_free(model->U);
    thi_free(model->left);
    thi_free(model->o);
    *model = (thi_chain_model){0};
}

/* --- products with triangles ----------------------------------------------------------------------------------------
 */

/* y += L x for a small lower triangle. */
static void add_triangle(thi_matrix L, const double *x, double *y)
{
    for (int64_t j = 0; j < L.cols; j++) {
        const double *column = L.data + j * L.ld;
        for (int64_t i = j; i < L.rows; i++) {
            y[i] += column[i] * x[j];
        }
    }
}

/* y += L'x for a small lower triangle. */
static void add_triangle_transposed(thi_matrix L, const double *x, double *y)
{
    for (int64_t j = 0; j < L.cols; j++) {
        const double *column = L.data + j * L.ld;
        for (int64_t i = j; i < L.rows; i++) {
            y[j] += column[i] * x[i];
        }
    }
}

void thi_lower_apply(thi_trans trans, thi_matrix L, const double *x, double *y)
{
    enum { PANEL = 32 };
    memset(y, 0, (size_t)L.rows * sizeof *y);
    for (int64_t j = 0; j < L.rows; j += PANEL) {
        int64_t width = L.rows - j < PANEL ? L.rows - j : PANEL, below = j + width;
        thi_matrix corner = thi_matrix_block(L, j, j, width, width);
        thi_matrix panel = thi_matrix_block(L, below, j, L.rows - below, width);
        if (trans == THI_N) {
            add_triangle(corner, x + j, y + j);
        } else {
            add_triangle_transposed(corner, x + j, y + j);
        }
        if (panel.rows > 0 && trans == THI_N) {
            thi_blas_gemv(THI_N, 1.0, panel, x + j, 1.0, y + below);
        } else if (panel.rows > 0) {
            thi_blas_gemv(THI_T, 1.0, panel, x + below, 1.0, y + j);
        }
    }
}

static void apply_all(const thi_chain_model *model, thi_trans trans, const double *x, double *y)
{
    for (int64_t q = 0; q < model->latents; q++) {
        thi_lower_apply(trans, model->L[model->group[q]], x + q * model->places, y + q * model->places);
    }
}

void thi_chain_colour(const thi_chain_model *model, const double *w, double *r)
{
    apply_all(model, THI_N, w, r);
}

void thi_chain_pull(const thi_chain_model *model, const double *g, double *out)
{
    apply_all(model, THI_T, g, out);
}

void thi_chain_whiten(const thi_chain_model *model, double *r)
{
    for (int64_t q = 0; q < model->latents; q++) {
        thi_blas_trsv(THI_N, model->L[model->group[q]], r + q * model->places);
    }
}

/* --- random numbers -------------------------------------------------------------------------------------------------
 */

/* Row streams of a chain lie below its own: no table has 2^40 rows. */
static const uint64_t CHAIN_ROWS = (uint64_t)1 << 40;

static thi_stream own_stream(const thi_chain *chain)
{
    return thi_chain_row_stream(chain, (int64_t)CHAIN_ROWS - 1);
}

thi_stream thi_chain_row_stream(const thi_chain *chain, int64_t row)
{
    return (thi_stream){chain->ctx->seed, THI_RANDOM_CHAIN, (uint64_t)chain->number * CHAIN_ROWS + (uint64_t)row};
}

/* Pairs of them, at most PAIRS at a time: the first of all pairs, then the second ones. */
void thi_chain_normals(thi_chain *chain, int64_t count, double *out)
{
    enum { PAIRS = 128 };
    double u[PAIRS], v[PAIRS], x[PAIRS], y[PAIRS], four[4];
    thi_stream stream = own_stream(chain);
    for (int64_t done = 0; done < count; done += 2 * PAIRS) {
        int64_t left = count - done < 2 * PAIRS ? count - done : 2 * PAIRS, pairs = (left + 1) / 2;
        for (int64_t k = 0; k < pairs; k += 2) {
            thi_random_uniforms(stream, chain->next++, four);
            memcpy(u + k, four, 2 * sizeof *u);
            memcpy(v + k, four + 2, 2 * sizeof *v);
        }
        thi_vector()->normals(pairs, u, v, x, y);
        memcpy(out + done, x, (size_t)pairs * sizeof *out);
        memcpy(out + done + pairs, y, (size_t)(left - pairs) * sizeof *out);
    }
}

double thi_chain_uniform(thi_chain *chain)
{
    return thi_random_uniform(own_stream(chain), chain->next++);
}

/* --- states ---------------------------------------------------------------------------------------------------------
 */

double thi_chain_log_p(thi_chain *chain, const double *f)
{
    const thi_chain_model *m = chain->model;
    double sum = 0.0;
    m->lik->ops->log_density(m->lik, m->n, m->y, f, chain->density);
    for (int64_t i = 0; i < m->n; i++) {
        sum += chain->density[i];
        if (m->weight != NULL) {
            double scale = thi_likelihood_log_scale(m->lik, m->y + i * m->lik->outputs, f + i * m->latents);
            sum += (m->weight[i] - 1.0) * (chain->density[i] + scale);
        }
    }
    return isnan(sum) ? -INFINITY : sum;
}

/* Of latent q, above o: r itself or, with inducing inputs, U L^-1 r, where the trial is work. n numbers. */
static const double *rows_of(thi_chain *chain, const double *r, int64_t q)
{
    const thi_chain_model *m = chain->model;
    int g = m->group[q];
    const double *own = r + q * m->places;
    if (m->U == NULL) {
        return own;
    }
    memcpy(chain->trial_r, own, (size_t)m->places * sizeof *own);
    thi_blas_trsv(THI_N, m->L[g], chain->trial_r);
    thi_blas_gemv(THI_N, 1.0, m->U[g], chain->trial_r, 0.0, chain->density);
    return chain->density;
}

double thi_chain_density(thi_chain *chain, const double *r, double *f)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents;
    for (int64_t q = 0; q < Q; q++) {
        const double *own = rows_of(chain, r, q);
        for (int64_t i = 0; i < n; i++) {
            f[q + i * Q] = m->o[i + q * n] + own[i];
        }
    }
    return thi_chain_log_p(chain, f);
}

static void swap(double **a, double **b)
{
    double *c = *a;
    *a = *b;
    *b = c;
}

void thi_chain_accept(thi_chain *chain, double log_p)
{
    swap(&chain->r, &chain->trial_r);
    swap(&chain->f, &chain->trial_f);
    chain->log_p = log_p;
}

void thi_chain_count(thi_chain *chain, double accepted, int64_t proposals)
{
    if (!chain->burning) {
        chain->accepted += accepted;
        chain->proposals += proposals;
    }
}

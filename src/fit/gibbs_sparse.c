/*
 * Gibbs sampling with inducing inputs (chains.h: the prior of FITC). With u = L w and U = K(X, Z) L^-T a row is
 * r_i = U_i w + d_i, d_i ~ N(0, l_i); given its site exp(nu r - lambda r^2/2) the d_i are integrated out of w's law,
 *   w ~ N(P^-1 U'nu', P^-1),  P = I + U'Lambda'U,  lambda' = lambda/(1 + lambda l),  nu' = nu/(1 + lambda l),
 *   d_i given w ~ N(v (nu_i - lambda_i U_i w), v),  v = l_i/(1 + lambda_i l_i),
 * so that w and d are drawn together. n M^2 + M^3/3 flops a latent, n M numbers that all chains share.
 */
#include <math.h>
#include <string.h>

#include "fit/chain.h"
#include "likelihood/augment.h"

/* Rows of U that are weighed together. */
enum { ROWS = 256 };

typedef struct sparse {
    thi_matrix P, panel;       /* M x M; ROWS x M */
    double *lambda, *nu;       /* Q x n: sites of f */
    double *weight, *mean, *e; /* n each: lambda', U w, normals */
    double *w;                 /* M */
} sparse;

static void sparse_close(void *state)
{
    sparse *g = state;
    if (g == NULL) {
        return;
    }
    double *const vectors[] = {g->P.data, g->panel.data, g->lambda, g->nu, g->weight, g->mean, g->e, g->w};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        thi_free(vectors[i]);
    }
    thi_free(g);
}

static thiele_status sparse_open(void **state, thi_chain *chain)
{
    const thi_chain_model *m = chain->model;
    size_t n = (size_t)m->n, Q = (size_t)m->latents;
    sparse *g = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(chain->ctx, &g, 1, sizeof *g));
    *state = g;
    const struct {
        double **vector;
        size_t count;
    } all[] = {{&g->lambda, n * Q}, {&g->nu, n * Q}, {&g->weight, n},
               {&g->mean, n},       {&g->e, n},      {&g->w, (size_t)m->places}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        THI_TRY(thi_alloc(chain->ctx, all[i].vector, all[i].count, sizeof(double)));
    }
    THI_TRY(thi_matrix_alloc(&g->P, chain->ctx, m->places, m->places));
    THI_TRY(thi_matrix_alloc(&g->panel, chain->ctx, ROWS, m->places));
out:
    return status;
}

/* The lower triangle of P = I + U'Lambda'U, a panel of rows at a time. */
static void form(sparse *g, thi_matrix U)
{
    int64_t M = U.cols;
    for (int64_t j = 0; j < M; j++) {
        memset(g->P.data + j * M, 0, (size_t)M * sizeof(double));
        g->P.data[j + j * M] = 1.0;
    }
    for (int64_t first = 0; first < U.rows; first += ROWS) {
        int64_t count = U.rows - first < ROWS ? U.rows - first : ROWS;
        thi_matrix panel = thi_matrix_block(g->panel, 0, 0, count, M);
        for (int64_t j = 0; j < M; j++) {
            for (int64_t i = 0; i < count; i++) {
                panel.data[i + j * panel.ld] = sqrt(g->weight[first + i]) * U.data[first + i + j * U.ld];
            }
        }
        thi_blas_syrk(THI_T, 1.0, panel, 1.0, g->P);
    }
}

/* w of latent q under its sites, and U w. */
static thiele_status draw_w(thi_chain *chain, sparse *g, int q)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents, M = m->places;
    thi_matrix U = m->U[m->group[q]];
    const double *left = m->left + m->group[q] * n;
    for (int64_t i = 0; i < n; i++) {
        double lambda = fmax(0.0, g->lambda[q + i * Q]), share = 1.0 / (1.0 + lambda * left[i]);
        g->weight[i] = lambda * share;
        g->mean[i] = (g->nu[q + i * Q] - lambda * m->o[i + q * n]) * share;
    }
    form(g, U);
    thiele_status status = thi_chol(chain->ctx, g->P);
    if (status != THIELE_OK) {
        return status != THIELE_ERROR_NUMERIC
                   ? status
                   : thi_fail(chain->ctx, status, "the sites that the sampler drew are not finite");
    }
    thi_blas_gemv(THI_T, 1.0, U, g->mean, 0.0, g->w);
    thi_blas_trsv(THI_N, g->P, g->w);
    thi_chain_normals(chain, M, chain->trial_r + q * M);
    thi_blas_axpy(M, 1.0, chain->trial_r + q * M, g->w);
    thi_blas_trsv(THI_T, g->P, g->w);
    thi_lower_apply(THI_N, m->L[m->group[q]], g->w, chain->trial_r + q * M);
    thi_blas_gemv(THI_N, 1.0, U, g->w, 0.0, g->mean);
    return THIELE_OK;
}

/* f = o + U w + d */
static void draw_rows(thi_chain *chain, sparse *g, int q)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents;
    const double *left = m->left + m->group[q] * n;
    thi_chain_normals(chain, n, g->e);
    for (int64_t i = 0; i < n; i++) {
        double lambda = fmax(0.0, g->lambda[q + i * Q]), v = left[i] / (1.0 + lambda * left[i]);
        double o = m->o[i + q * n], slope = g->nu[q + i * Q] - lambda * (o + g->mean[i]);
        chain->trial_f[q + i * Q] = o + g->mean[i] + v * slope + sqrt(v) * g->e[i];
    }
}

static thiele_status sparse_step(thi_chain *chain)
{
    const thi_chain_model *m = chain->model;
    sparse *g = chain->state;
    thi_augmented_sites(m->lik, m->n, thi_chain_row_stream(chain, 0), (uint64_t)chain->steps, m->y, chain->f, g->lambda,
                        g->nu);
    for (int q = 0; q < m->latents; q++) {
        thiele_status status = draw_w(chain, g, q);
        if (status != THIELE_OK) {
            return status;
        }
        draw_rows(chain, g, q);
    }
    thi_chain_accept(chain, thi_chain_log_p(chain, chain->trial_f));
    thi_chain_count(chain, 1.0, 1);
    return THIELE_OK;
}

const thi_sampler thi_sampler_gibbs_sparse = {
    .name = "gibbs",
    .needs_augmentation = true,
    .sparse = true,
    .open = sparse_open,
    .step = sparse_step,
    .close = sparse_close,
};

/*
 * Gibbs sampling of an augmented model (augmented-aaci section 3.3.2, Algorithm 2): given f the auxiliary variables of
 * every row, which leave a Gaussian site exp(nu f - lambda f^2/2); given the sites f itself,
 *   r = f - o ~ N(Sigma nu', Sigma),  Sigma = (K^-1 + Lambda)^-1,  nu' = nu - lambda o.
 * The draw is a prior one moved by the error of what it predicts (Matheron's rule), with s = sqrt(lambda), B = I + s K
 * s = Lb Lb', prior draw r0 and noise e ~ N(0, I):
 *   r = r0 + K (rest + s B^-1 (z - s K rest - s r0 - e)),   nu' = s z + rest
 * rest holds the sites too weak to be divided by s, and is mostly zero. K is not inverted. n^3/3 flops a latent.
 */
#include <math.h>
#include <string.h>

#include "fit/chain.h"
#include "likelihood/augment.h"

/* A site is weak when it brings less than this share of the prior's precision. */
static const double WEAK = 1e-6;

typedef struct gibbs {
    thi_matrix B;
    double *s, *a, *z;           /* n each */
    double *lambda, *nu;         /* n x Q: sites of f */
    double *row_lambda, *row_nu; /* Q */
} gibbs;

static void gibbs_close(void *state)
{
    gibbs *g = state;
    if (g == NULL) {
        return;
    }
    double *const vectors[] = {g->B.data, g->s, g->a, g->z, g->lambda, g->nu, g->row_lambda, g->row_nu};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        thi_free(vectors[i]);
    }
    thi_free(g);
}

static thiele_status gibbs_open(void **state, thi_chain *chain)
{
    size_t n = (size_t)chain->model->n, Q = (size_t)chain->model->latents;
    gibbs *g = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(chain->ctx, &g, 1, sizeof *g));
    *state = g;
    const struct {
        double **vector;
        size_t count;
    } all[] = {{&g->s, n},      {&g->a, n},          {&g->z, n},     {&g->lambda, n * Q},
               {&g->nu, n * Q}, {&g->row_lambda, Q}, {&g->row_nu, Q}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        THI_TRY(thi_alloc(chain->ctx, all[i].vector, all[i].count, sizeof(double)));
    }
    THI_TRY(thi_matrix_alloc(&g->B, chain->ctx, chain->model->n, chain->model->n));
out:
    return status;
}

/* --- f given the sites ----------------------------------------------------------------------------------------------
 */

/* The lower triangle of B = I + s K s */
static void form(thi_matrix K, const double *s, thi_matrix B)
{
    for (int64_t j = 0; j < K.cols; j++) {
        const double *k = K.data + j * K.ld;
        double *b = B.data + j * B.ld;
        for (int64_t i = j; i < K.rows; i++) {
            b[i] = s[i] * k[i] * s[j];
        }
        b[j] += 1.0;
    }
}

/* a = rest and z - s K rest - s r0; z's place is work until then. lambda, nu: of latent q. */
static void residual(const thi_chain_model *m, thi_matrix K, gibbs *work, int q, const double *lambda, const double *nu,
                     const double *r0)
{
    const double *o = m->o + q * m->n;
    bool any = false;
    for (int64_t i = 0; i < m->n; i++) {
        bool weak = lambda[i] * K.data[i + i * K.ld] < WEAK;
        work->a[i] = weak ? nu[i] - lambda[i] * o[i] : 0.0;
        any = any || work->a[i] != 0.0;
    }
    memset(work->z, 0, (size_t)m->n * sizeof *work->z);
    if (any) {
        thi_blas_gemv(THI_N, 1.0, K, work->a, 0.0, work->z);
    }
    for (int64_t i = 0; i < m->n; i++) {
        bool weak = lambda[i] * K.data[i + i * K.ld] < WEAK;
        double own = weak ? 0.0 : (nu[i] - lambda[i] * o[i]) / work->s[i];
        work->z[i] = own - work->s[i] * (work->z[i] + r0[i]);
    }
}

/* r (n) of latent q under the prior and its sites. n^3/3 flops. */
static thiele_status draw_latent(thi_chain *chain, gibbs *work, int q, double *r)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n;
    const double *lambda = work->lambda + q * n, *nu = work->nu + q * n;
    thi_matrix K = m->K[m->group[q]];
    for (int64_t i = 0; i < n; i++) {
        work->s[i] = sqrt(fmax(lambda[i], 0.0));
    }
    form(K, work->s, work->B);
    thiele_status status = thi_chol(chain->ctx, work->B);
    if (status != THIELE_OK) {
        return status != THIELE_ERROR_NUMERIC
                   ? status
                   : thi_fail(chain->ctx, status, "the sites that the sampler drew are not finite");
    }
    thi_chain_normals(chain, n, work->a);
    thi_lower_apply(THI_N, m->L[m->group[q]], work->a, r);
    residual(m, K, work, q, lambda, nu, r);
    for (int64_t i = 0; i < n; i++) {
        double e;
        thi_chain_normals(chain, 1, &e);
        work->z[i] -= e;
    }
    thi_blas_trsv(THI_N, work->B, work->z);
    thi_blas_trsv(THI_T, work->B, work->z);
    for (int64_t i = 0; i < n; i++) {
        work->a[i] += work->s[i] * work->z[i];
    }
    thi_blas_gemv(THI_N, 1.0, K, work->a, 1.0, r);
    return THIELE_OK;
}

/* --- the sites given f, and a step ----------------------------------------------------------------------------------
 */

/* Rows without an observation keep their zeros. */
static void draw_sites(thi_chain *chain, gibbs *g)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents, P = m->lik->outputs;
    for (int64_t i = 0; i < n; i++) {
        if (m->missing[i]) {
            continue;
        }
        thi_augmented_site(m->lik, thi_chain_row_stream(chain, i), (uint64_t)chain->steps, m->y + i * P,
                           chain->f + i * Q, g->row_lambda, g->row_nu);
        for (int64_t q = 0; q < Q; q++) {
            g->lambda[i + q * n] = g->row_lambda[q];
            g->nu[i + q * n] = g->row_nu[q];
        }
    }
}

static thiele_status gibbs_step(thi_chain *chain)
{
    gibbs *g = chain->state;
    int64_t n = chain->model->n;
    draw_sites(chain, g);
    for (int q = 0; q < chain->model->latents; q++) {
        thiele_status status = draw_latent(chain, g, q, chain->trial_r + q * n);
        if (status != THIELE_OK) {
            return status;
        }
    }
    thi_chain_accept(chain, thi_chain_density(chain, chain->trial_r, chain->trial_f));
    thi_chain_count(chain, 1.0, 1);
    return THIELE_OK;
}

const thi_sampler thi_sampler_gibbs = {
    .name = "gibbs",
    .needs_augmentation = true,
    .open = gibbs_open,
    .step = gibbs_step,
    .close = gibbs_close,
};

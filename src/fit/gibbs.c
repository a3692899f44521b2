/*
 * Gibbs sampling of an augmented model (augmented-aaci section 3.3.2, Algorithm 2): given f the auxiliary variables of
 * every row, which leave a Gaussian site exp(nu f - lambda f^2/2); given the sites f itself,
 *   r = f - o ~ N(Sigma nu', Sigma),  Sigma = (K^-1 + Lambda)^-1,  nu' = nu - lambda o.
 * The draw is a prior one moved by the error of what it predicts (Matheron's rule), with s = sqrt(lambda), B = I + s K
 * s = Lb Lb', prior draw r0 and noise e ~ N(0, I):
 *   r = r0 + K (rest + s B^-1 (z - s K rest - s r0 - e)),   nu' = s z + rest
 * rest holds the sites too weak to be divided by s, and is mostly zero. K is not inverted. n^3/3 flops a latent. After
 * the first LOOK steps of a long burn-in the cheaper draw of gibbs_split.h takes over where it is one.
 */
#include <math.h>
#include <string.h>

#include "fit/gibbs_split.h"
#include "likelihood/augment.h"

/* A site is weak when it brings less than this share of the prior's precision. */
static const double WEAK = 1e-6;

/* Dense draws from which typical sites are taken; split draws after which it is judged whether they move. */
enum { LOOK = 20, JUDGE = 40 };
/* The least share of proposals that a split draw must accept: data that no f explains have few taken. */
static const double TAKEN = 0.3;

typedef struct gibbs {
    thi_matrix B;
    thi_split *split;            /* Q: of each latent; rank 0: drawn densely */
    double *typical;             /* n x Q: see look_at */
    double *s, *a, *z;           /* n each */
    double *lambda, *nu;         /* n x Q: sites of r = f - o */
    double *row_lambda, *row_nu; /* Q x n: sites of f */
    int latents;                 /* Q */
} gibbs;

static void gibbs_close(void *state)
{
    gibbs *g = state;
    if (g == NULL) {
        return;
    }
    double *const vectors[] = {g->B.data, g->s, g->a, g->z, g->lambda, g->nu, g->row_lambda, g->row_nu, g->typical};
    for (int q = 0; g->split != NULL && q < g->latents; q++) {
        thi_split_close(&g->split[q]);
    }
    thi_free(g->split);
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
    g->latents = (int)Q;
    const struct {
        double **vector;
        size_t count;
    } all[] = {{&g->s, n},          {&g->a, n},          {&g->z, n},
               {&g->lambda, n * Q}, {&g->nu, n * Q},     {&g->row_lambda, n * Q},
               {&g->row_nu, n * Q}, {&g->typical, n * Q}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        THI_TRY(thi_alloc(chain->ctx, all[i].vector, all[i].count, sizeof(double)));
    }
    THI_TRY(thi_alloc(chain->ctx, &g->split, Q, sizeof *g->split));
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

/* a = rest and z - s K rest - s r0; z's place is work until then. */
static void residual(const thi_chain_model *m, thi_matrix K, gibbs *work, const double *lambda, const double *nu,
                     const double *r0)
{
    bool any = false;
    for (int64_t i = 0; i < m->n; i++) {
        bool weak = lambda[i] * K.data[i + i * K.ld] < WEAK;
        work->a[i] = weak ? nu[i] : 0.0;
        any = any || work->a[i] != 0.0;
    }
    memset(work->z, 0, (size_t)m->n * sizeof *work->z);
    if (any) {
        thi_blas_gemv(THI_N, 1.0, K, work->a, 0.0, work->z);
    }
    for (int64_t i = 0; i < m->n; i++) {
        bool weak = lambda[i] * K.data[i + i * K.ld] < WEAK;
        double own = weak ? 0.0 : nu[i] / work->s[i];
        work->z[i] = own - work->s[i] * (work->z[i] + r0[i]);
    }
}

/* r (n) of latent q under the prior and its sites. n^3/3 flops. */
static thiele_status draw_dense(thi_chain *chain, gibbs *work, int q, double *r)
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
        return status;
    }
    thi_chain_normals(chain, n, work->a);
    thi_lower_apply(THI_N, m->L[m->group[q]], work->a, r);
    residual(m, K, work, lambda, nu, r);
    thi_chain_normals(chain, n, work->s);
    thi_blas_axpy(n, -1.0, work->s, work->z);
    thi_blas_trsv(THI_N, work->B, work->z);
    thi_blas_trsv(THI_T, work->B, work->z);
    for (int64_t i = 0; i < n; i++) {
        work->a[i] += sqrt(fmax(lambda[i], 0.0)) * work->z[i];
    }
    thi_blas_gemv(THI_N, 1.0, K, work->a, 1.0, r);
    return THIELE_OK;
}

/* --- from one draw to the other -------------------------------------------------------------------------------------
 */

/*
 * Typical sites: the lambda whose share of a row's precision, lambda/(lambda + 1/k), is the mean of those seen. Single
 * huge ones, as a Laplace likelihood has, hardly count.
 */
static void look_at(const thi_chain *chain, gibbs *g)
{
    const thi_chain_model *m = chain->model;
    for (int64_t j = 0; j < m->n * m->latents; j++) {
        thi_matrix K = m->K[m->group[j / m->n]];
        double k = K.data[(j % m->n) * (K.ld + 1)], share = g->lambda[j] / (1.0 + g->lambda[j] * k);
        g->typical[j] += share / LOOK;
        if (chain->steps == LOOK) {
            g->typical[j] /= fmax(1.0 - g->typical[j] * k, 1e-12);
        }
    }
}

static thiele_status look(thi_chain *chain, gibbs *g)
{
    thiele_status status = THIELE_OK;
    if (chain->steps > LOOK + JUDGE || chain->settings->burn_in < LOOK + JUDGE) {
        return status;
    }
    if (chain->steps <= LOOK) {
        look_at(chain, g);
    }
    for (int q = 0; q < g->latents && status == THIELE_OK; q++) {
        if (chain->steps == LOOK) {
            status = thi_split_open(&g->split[q], chain, q, g->typical + q * chain->model->n, g->B);
        } else if (chain->steps == LOOK + JUDGE && (double)g->split[q].moved < TAKEN * JUDGE) {
            thi_split_close(&g->split[q]);
        }
    }
    return status;
}

/* --- the sites given f, and a step ----------------------------------------------------------------------------------
 */

static void draw_sites(thi_chain *chain, gibbs *g)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents;
    thi_augmented_sites(m->lik, n, thi_chain_row_stream(chain, 0), (uint64_t)chain->steps, m->y, chain->f,
                        g->row_lambda, g->row_nu);
    for (int64_t q = 0; q < Q; q++) {
        for (int64_t i = 0; i < n; i++) {
            g->lambda[i + q * n] = g->row_lambda[q + i * Q];
            g->nu[i + q * n] = g->row_nu[q + i * Q] - g->row_lambda[q + i * Q] * m->o[i + q * n];
        }
    }
}

static thiele_status draw_latent(thi_chain *chain, gibbs *g, int q, double *accepted)
{
    int64_t at = q * chain->model->n;
    double *r = chain->trial_r + at;
    thiele_status status = g->split[q].rank > 0
                               ? thi_split_draw(&g->split[q], chain, g->lambda + at, g->nu + at, g->B, r, accepted)
                               : draw_dense(chain, g, q, r);
    return status != THIELE_ERROR_NUMERIC
               ? status
               : thi_fail(chain->ctx, status, "the sites that the sampler drew are not finite");
}

static thiele_status gibbs_step(thi_chain *chain)
{
    gibbs *g = chain->state;
    thiele_status status;
    draw_sites(chain, g);
    THI_TRY(look(chain, g));
    for (int q = 0; q < g->latents; q++) {
        double accepted = 1.0;
        THI_TRY(draw_latent(chain, g, q, &accepted));
        thi_chain_count(chain, accepted, 1);
    }
    thi_chain_accept(chain, thi_chain_density(chain, chain->trial_r, chain->trial_f));
out:
    return status;
}

const thi_sampler thi_sampler_gibbs = {
    .name = "gibbs",
    .needs_augmentation = true,
    .open = gibbs_open,
    .step = gibbs_step,
    .close = gibbs_close,
};

/*
 * Theorem 1 of Cheng and Boots 2017 and its gradient. With F = KL, P = H^-1, h = L_p g:
 *   Hbar = (P - P^2 + P Y'Y P) / 2,   Ybar = -Y P
 *   Kbar(beta, beta) = L Hbar L',   Kbar(beta_p, beta) = L_p Ybar L',   Lbar = 2 K_beta L Hbar + K_beta,beta_p L_p Ybar
 *   Kbar(beta_p, alpha) = h a',   Kbar(beta_p, alpha_p) = -h a_p',   Kbar(beta_p, beta_p) = L_p (I - H_p^-1) L_p' / 2
 *   Kbar of d: s s'/2 over both alphas, s = (a, -a_p);   abar = d(alpha) + k(alpha, beta_p) h
 */
#include "posterior/decoupled_divergence.h"

#include <string.h>

enum { PORTION = 512 };

/* Half of a law that is needed twice: C C' = H = I + L'K L. */
typedef struct half {
    thi_matrix K, KL, C;
} half;

typedef struct work {
    thiele_context *ctx;
    const thi_decoupled_law *q, *p;
    const thi_decoupled_law_bar *bar; /* NULL: no gradients */
    half of_q, of_p;
    thi_matrix cross, Y; /* k(beta_p, beta); L_p' cross L */
    double *d, *g, *h;   /* M_p: d(beta_p), g, L_p g */
    double *theta;       /* room for a gradient that is halved */
} work;

static thiele_status half_open(half *x, thiele_context *ctx, const thi_decoupled_law *law)
{
    int64_t M = law->beta.n;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&x->K, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&x->KL, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&x->C, ctx, M, M));
    THI_TRY(thi_functions_cross(&law->beta, &law->beta, ctx, x->K, true));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, x->K, law->L, 0.0, x->KL, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, law->L, x->KL, 0.0, x->C, true));
    for (int64_t i = 0; i < M; i++) {
        x->C.data[i + i * M] += 1.0;
    }
out:
    return status;
}

static void half_close(half *x)
{
    thi_free(x->K.data);
    thi_free(x->KL.data);
    thi_free(x->C.data);
}

static double trace(thi_matrix A)
{
    double sum = 0.0;
    for (int64_t i = 0; i < A.rows; i++) {
        sum += A.data[i + i * A.ld];
    }
    return sum;
}

static double square(thi_matrix A)
{
    return thi_blas_dot(A.rows * A.cols, A.data, A.data);
}

/* --- covariances ---------------------------------------------------------------------------------------------------
 */

/* log|H| - (M - tr H^-1) - tr(Y H^-1 Y') + tr(H_p) - M_p - log|H_p|; C becomes H^-1 for both, whole. */
static thiele_status covariances(work *w, double *value)
{
    thiele_context *ctx = w->ctx;
    int64_t M = w->q->beta.n, Mp = w->p->beta.n;
    thi_matrix C = w->of_q.C, Cp = w->of_p.C, U = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&U, ctx, M, Mp));
    *value += trace(Cp) - (double)Mp;
    THI_TRY(thi_chol(ctx, Cp));
    THI_TRY(thi_chol(ctx, C));
    *value += thi_chol_logdet(C) - thi_chol_logdet(Cp);
    for (int64_t j = 0; j < Mp; j++) {
        for (int64_t i = 0; i < M; i++) {
            U.data[i + j * M] = w->Y.data[j + i * Mp];
        }
    }
    THI_TRY(thi_tri_solve(ctx, THI_N, C, U));
    *value -= square(U);
    THI_TRY(thi_chol_inverse(ctx, C));
    THI_TRY(thi_chol_inverse(ctx, Cp));
    thi_symmetrise(C);
    thi_symmetrise(Cp);
    *value += trace(C) - (double)M;
out:
    thi_free(U.data);
    return status;
}

static thiele_status pull_new(work *w)
{
    thiele_context *ctx = w->ctx;
    thi_matrix P = w->of_q.C, L = w->q->L, Lp = w->p->L, Hbar = {0}, YP = {0}, one = {0}, two = {0}, Lbar = {0};
    int64_t M = P.rows, Mp = Lp.rows;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&Hbar, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&YP, ctx, Mp, M));
    THI_TRY(thi_matrix_alloc(&one, ctx, Mp, M));
    THI_TRY(thi_matrix_alloc(&two, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&Lbar, ctx, M, M));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, w->Y, P, 0.0, YP, false));
    memcpy(Hbar.data, P.data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, -0.5, P, P, 0.5, Hbar, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 0.5, YP, YP, 1.0, Hbar, false));
    /* Lbar = 2 K L Hbar - cross' L_p Y P */
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 2.0, w->of_q.KL, Hbar, 0.0, Lbar, false));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, -1.0, Lp, YP, 0.0, one, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, w->cross, one, 1.0, Lbar, false));
    for (int64_t j = 0; w->bar->L != NULL && j < M; j++) {
        thi_blas_axpy(M - j, 1.0, Lbar.data + j + j * M, w->bar->L + j + j * M);
    }
    thi_functions_bar beta = w->bar->beta;
    beta.theta = w->bar->theta;
    /* YP becomes L_p Ybar L', two L Hbar, Hbar L Hbar L'. */
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, one, L, 0.0, YP, false));
    THI_TRY(thi_functions_pull_cross(&w->p->beta, &w->q->beta, ctx, YP, w->cross, false, &beta));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, L, Hbar, 0.0, two, false));
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, two, L, 0.0, Hbar, false));
    THI_TRY(thi_functions_pull_cross(&w->q->beta, &w->q->beta, ctx, Hbar, w->of_q.K, true, &beta));
out:
    thi_free(Hbar.data);
    thi_free(YP.data);
    thi_free(one.data);
    thi_free(two.data);
    thi_free(Lbar.data);
    return status;
}

/* Of p the kernel alone moves: Kbar = L_p (I - H_p^-1) L_p' / 2. */
static thiele_status pull_old(work *w)
{
    thi_matrix P = w->of_p.C, L = w->p->L, LP = {0};
    int64_t M = P.rows;
    const thi_functions_bar bar = {.theta = w->bar->theta};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&LP, w->ctx, M, M));
    for (int64_t i = 0; i < M * M; i++) {
        P.data[i] = -0.5 * P.data[i] + (i % (M + 1) == 0 ? 0.5 : 0.0);
    }
    THI_TRY(thi_multiply(w->ctx, THI_N, THI_N, 1.0, L, P, 0.0, LP, false));
    THI_TRY(thi_multiply(w->ctx, THI_N, THI_T, 1.0, LP, L, 0.0, P, false));
    THI_TRY(thi_functions_pull_cross(&w->p->beta, &w->p->beta, w->ctx, P, w->of_p.K, true, &bar));
out:
    thi_free(LP.data);
    return status;
}

/* --- means -----------------------------------------------------------------------------------------------------------
 */

/* One of the two sets of functions whose sum d is, with the weights' sign; bar: of q's. */
typedef struct side {
    const thi_functions *alpha;
    const double *a;
    double sign;
    double *abar;
    thi_functions_bar bar;
} side;

/* A portion of a side with one of another, or with beta_p. */
static thi_functions_bar part_of(const side *s, int64_t first, double *theta)
{
    int64_t at = first * s->alpha->kernel->dims;
    return (thi_functions_bar){.theta = theta,
                               .X = s->bar.X != NULL ? s->bar.X + at : NULL,
                               .log_c = s->bar.log_c != NULL ? s->bar.log_c + at : NULL};
}

/* Kbar = x y' */
static void outer(thi_matrix Kbar, double factor, const double *x, const double *y)
{
    for (int64_t j = 0; j < Kbar.cols; j++) {
        for (int64_t i = 0; i < Kbar.rows; i++) {
            Kbar.data[i + j * Kbar.ld] = factor * x[i] * y[j];
        }
    }
}

static thiele_status two_open(thi_matrix pair[2], thiele_context *ctx, int64_t rows, int64_t most)
{
    pair[0] = pair[1] = (thi_matrix){0};
    thiele_status status = thi_matrix_alloc(&pair[0], ctx, rows, most);
    return status == THIELE_OK ? thi_matrix_alloc(&pair[1], ctx, rows, most) : status;
}

/* d(beta_p) += this side's part. */
static thiele_status add_to_d(work *w, const side *s)
{
    int64_t Mp = w->p->beta.n, n = s->alpha->n;
    thi_matrix pair[2];
    thiele_status status = two_open(pair, w->ctx, Mp, PORTION);
    for (int64_t first = 0; status == THIELE_OK && first < n; first += PORTION) {
        thi_functions part = thi_functions_part(s->alpha, first, n - first < PORTION ? n - first : PORTION);
        thi_matrix K = thi_matrix_view(pair[0].data, Mp, part.n, Mp);
        status = thi_functions_cross(&w->p->beta, &part, w->ctx, K, false);
        if (status == THIELE_OK) {
            thi_blas_gemv(THI_N, s->sign, K, s->a + first, 1.0, w->d);
        }
    }
    thi_free(pair[0].data);
    thi_free(pair[1].data);
    return status;
}

/* What g says of this side: Kbar(beta_p, alpha) = h a', abar += k(alpha, beta_p) h. */
static thiele_status pull_g(work *w, const side *s)
{
    int64_t Mp = w->p->beta.n, n = s->alpha->n;
    thi_matrix pair[2];
    thiele_status status = two_open(pair, w->ctx, Mp, PORTION);
    for (int64_t first = 0; status == THIELE_OK && first < n; first += PORTION) {
        thi_functions part = thi_functions_part(s->alpha, first, n - first < PORTION ? n - first : PORTION);
        thi_matrix K = thi_matrix_view(pair[0].data, Mp, part.n, Mp), Kbar = K;
        thi_functions_bar bar = part_of(s, first, w->bar->theta);
        Kbar.data = pair[1].data;
        outer(Kbar, s->sign, w->h, s->a + first);
        THI_TRY(thi_functions_cross(&w->p->beta, &part, w->ctx, K, false));
        THI_TRY(thi_functions_pull_cross(&w->p->beta, &part, w->ctx, Kbar, K, false, &bar));
        if (s->abar != NULL) {
            thi_blas_gemv(THI_T, s->sign, K, w->h, 1.0, s->abar + first);
        }
    }
out:
    thi_free(pair[0].data);
    thi_free(pair[1].data);
    return status;
}

/* *value += a'k(alpha, alpha2) a2 with both signs, and the gradient of half of it in the points and weights of s. */
static thiele_status pair_up(work *w, const side *other, const side *s, double *value)
{
    int64_t rows = other->alpha->n, n = s->alpha->n;
    double sign = other->sign * s->sign, d[PORTION];
    thi_matrix pair[2];
    thiele_status status = two_open(pair, w->ctx, rows, PORTION);
    for (int64_t first = 0; status == THIELE_OK && first < n && rows > 0; first += PORTION) {
        thi_functions part = thi_functions_part(s->alpha, first, n - first < PORTION ? n - first : PORTION);
        thi_matrix K = thi_matrix_view(pair[0].data, rows, part.n, rows), Kbar = K;
        Kbar.data = pair[1].data;
        THI_TRY(thi_functions_cross(other->alpha, &part, w->ctx, K, false));
        thi_blas_gemv(THI_T, sign, K, other->a, 0.0, d);
        *value += thi_blas_dot(part.n, d, s->a + first);
        if (w->bar != NULL) {
            thi_functions_bar bar = part_of(s, first, w->theta);
            outer(Kbar, sign, other->a, s->a + first);
            THI_TRY(thi_functions_pull_cross(other->alpha, &part, w->ctx, Kbar, K, false, &bar));
        }
        if (w->bar != NULL && s->abar != NULL) {
            thi_blas_axpy(part.n, 1.0, d, s->abar + first);
        }
    }
out:
    thi_free(pair[0].data);
    thi_free(pair[1].data);
    return status;
}

/* |d|^2 + |g|^2 */
static thiele_status means(work *w, double *value)
{
    const thi_decoupled_law_bar none = {0}, *bar = w->bar != NULL ? w->bar : &none;
    const side sides[2] = {{&w->q->alpha, w->q->a, 1.0, bar->a, bar->alpha}, {&w->p->alpha, w->p->a, -1.0, NULL, {0}}};
    int64_t Mp = w->p->beta.n;
    thiele_status status = THIELE_OK;
    for (int s = 0; s < 2; s++) {
        THI_TRY(add_to_d(w, &sides[s]));
        /* Every pair comes up both ways round: points of q have both shares, the kernel twice its own. */
        THI_TRY(pair_up(w, &sides[0], &sides[s], value));
        THI_TRY(pair_up(w, &sides[1], &sides[s], value));
    }
    thi_blas_gemv(THI_T, 1.0, w->p->L, w->d, 0.0, w->g);
    thi_blas_gemv(THI_N, 1.0, w->p->L, w->g, 0.0, w->h);
    *value += thi_blas_dot(Mp, w->g, w->g);
    for (int s = 0; w->bar != NULL && s < 2; s++) {
        THI_TRY(pull_g(w, &sides[s]));
    }
    if (bar->theta != NULL) {
        thi_blas_axpy(w->q->beta.kernel->parameters, 0.5, w->theta, bar->theta);
    }
out:
    return status;
}

/* --- all of it -------------------------------------------------------------------------------------------------------
 */

static thiele_status open_work(work *w)
{
    thiele_context *ctx = w->ctx;
    int64_t M = w->q->beta.n, Mp = w->p->beta.n;
    thi_matrix LK = {0};
    thiele_status status;
    THI_TRY(half_open(&w->of_q, ctx, w->q));
    THI_TRY(half_open(&w->of_p, ctx, w->p));
    THI_TRY(thi_matrix_alloc(&w->cross, ctx, Mp, M));
    THI_TRY(thi_matrix_alloc(&w->Y, ctx, Mp, M));
    THI_TRY(thi_matrix_alloc(&LK, ctx, Mp, M));
    THI_TRY(thi_alloc(ctx, &w->d, 3 * (size_t)Mp, sizeof *w->d));
    THI_TRY(thi_alloc(ctx, &w->theta, (size_t)w->q->beta.kernel->parameters, sizeof *w->theta));
    w->g = w->d + Mp;
    w->h = w->g + Mp;
    THI_TRY(thi_functions_cross(&w->p->beta, &w->q->beta, ctx, w->cross, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, w->p->L, w->cross, 0.0, LK, false));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, LK, w->q->L, 0.0, w->Y, false));
out:
    thi_free(LK.data);
    return status;
}

thiele_status thi_decoupled_divergence(thiele_context *ctx, const thi_decoupled_law *q, const thi_decoupled_law *p,
                                       double *value, const thi_decoupled_law_bar *bar)
{
    work w = {.ctx = ctx, .q = q, .p = p, .bar = bar};
    double twice = 0.0;
    thiele_status status;
    THI_TRY(open_work(&w));
    THI_TRY(covariances(&w, &twice));
    THI_TRY(means(&w, &twice));
    if (bar != NULL) {
        THI_TRY(pull_new(&w));
        THI_TRY(pull_old(&w));
    }
    *value = 0.5 * twice;
out:
    half_close(&w.of_q);
    half_close(&w.of_p);
    thi_free(w.cross.data);
    thi_free(w.Y.data);
    thi_free(w.d);
    thi_free(w.theta);
    return status;
}

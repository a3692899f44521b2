/*
 * Adjoints of a decoupled posterior. Of a row with (g, h), plain, with Y = H^-1 L'k, U = C^-1 L'k:
 *   kbar(beta, x) = -2 h L Y       Theta = sum h Y Y'       Lbar = -2 sum h k Y' + 2 K_beta L Theta
 *   Kbar_beta = L Theta L'
 * and of the KL, J = H^-1 - H^-2: Lbar = K_beta L J, Kbar_beta = L J L' / 2. Orthogonal, with Vbar the adjoint of V:
 *   Vbar = (m - c) g + 2 h (S - I) V    cbar = c_s - V g    kbar = Lb^-T Vbar    hbar = Lb^-T cbar
 * (less 2 e V where r = k - |V|^2 has the adjoint h + e)
 *   Lbar_b = -tril(Lb^-T sum Vbar V' + hbar c')      Kbar_beta,alpha = hbar a'
 * The quadratic term of the KL gives -K_I,alpha's to abar; for the points of alpha the kernel is differentiated in one
 * argument only, which is half of what symmetry makes of it; for its parameters the half is taken.
 */
#include <string.h>

#include "posterior/decoupled_internal.h"
#include "posterior/sparse_internal.h"

/* --- rows ------------------------------------------------------------------------------------------------------------
 */

/* to = diag(h) A */
static void scale_rows(thi_matrix A, const double *h, thi_matrix to)
{
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = 0; i < A.rows; i++) {
            to.data[i + j * to.ld] = h[i] * A.data[i + j * A.ld];
        }
    }
}

static thi_functions_bar beta_bar(const thi_decoupled_bar *bar)
{
    return (thi_functions_bar){bar->theta, bar->beta, bar->log_c_beta};
}

/* Sums over rows, and U becomes kbar', of all latents together. */
static thiele_status rows_plain(thi_decoupled *d, thiele_context *ctx, int64_t M, const double *h)
{
    thi_matrix k = thi_decoupled_view(d->at.k, d->at.n, M), V = thi_decoupled_view(d->at.V, d->at.n, M);
    thi_matrix U = thi_decoupled_view(d->at.U, d->at.n, M);
    thiele_status status = THIELE_OK;
    for (int p = 0; p < d->shape.latents; p++) {
        const thi_decoupled_latent *q = &d->latent[p];
        thi_matrix W = thi_decoupled_view(q->W, d->at.n, M);
        scale_rows(W, h + p * d->at.n, V);
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, W, V, 1.0, thi_decoupled_square(q->Th, M), true));
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, k, V, 1.0, thi_decoupled_square(q->Kh, M), false));
        THI_TRY(thi_multiply(ctx, THI_N, THI_T, -2.0, V, thi_decoupled_square(q->map, M), p > 0 ? 1.0 : 0.0, U, false));
    }
out:
    return status;
}

/* U = g (m - c)' + 2 h V'(S - I) - 2 c V', then times Lb^-1 */
static thiele_status rows_covariances(thi_decoupled *d, thiele_context *ctx, int64_t M, const double *g,
                                      const double *h)
{
    int64_t n = d->at.n;
    thi_matrix V = thi_decoupled_view(d->at.V, n, M), U = thi_decoupled_view(d->at.U, n, M);
    thiele_status status;
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, thi_decoupled_columns_of(d, g, n),
                         thi_decoupled_columns_of(d, d->lean, M), 0.0, U, false));
    for (int64_t j = 0; j < M; j++) {
        double *u = U.data + j * n;
        for (int p = 0; p < d->shape.latents; p++) {
            const double *w = d->latent[p].W.data + j * n, *own = h + p * n;
            for (int64_t i = 0; i < n; i++) {
                u[i] += 2.0 * own[i] * w[i];
            }
        }
        for (int64_t i = 0; i < n; i++) {
            u[i] -= 2.0 * d->at.all_c[i] * V.data[i + j * n];
        }
    }
    THI_TRY(thi_sparse_solve_right(ctx, THI_N, thi_decoupled_square(d->Lb, M), U));
out:
    return status;
}

static thiele_status rows_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M, const double *g, const double *h,
                                     bool moves)
{
    int64_t n = d->at.n;
    thi_matrix V = thi_decoupled_view(d->at.V, n, M), U = thi_decoupled_view(d->at.U, n, M);
    thiele_status status = THIELE_OK;
    for (int p = 0; p < d->shape.latents; p++) {
        scale_rows(V, h + p * n, U);
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, U, 1.0, thi_decoupled_square(d->latent[p].Th, M), true));
    }
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, thi_decoupled_columns_of(d, g, n), 1.0,
                         thi_decoupled_columns_of(d, d->Vg, M), false));
    if (moves && d->at.spared != NULL) {
        scale_rows(V, d->at.all_c, U);
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, U, 1.0, thi_decoupled_square(d->Tc, M), true));
    }
    if (moves) {
        THI_TRY(rows_covariances(d, ctx, M, g, h));
    }
out:
    return status;
}

static thiele_status pull_beta(thi_decoupled *d, thiele_context *ctx, int64_t M, const double *g, const double *h,
                               const thi_decoupled_bar *bar)
{
    bool moves = thi_decoupled_moves_beta(bar);
    thi_functions_bar own = beta_bar(bar);
    thiele_status status;
    THI_TRY(d->shape.orthogonal ? rows_orthogonal(d, ctx, M, g, h, moves) : rows_plain(d, ctx, M, h));
    if (moves) {
        THI_TRY(thi_functions_pull(&d->beta, ctx, &d->at.rows, thi_decoupled_view(d->at.U, d->at.n, M),
                                   thi_decoupled_view(d->at.k, d->at.n, M), &own));
    }
out:
    return status;
}

/* abar += k(alpha, x) g, and what these covariances give to the kernel and the points. */
static thiele_status pull_alpha(thi_decoupled *d, thiele_context *ctx, const double *g, const thi_decoupled_bar *bar)
{
    bool moves = thi_decoupled_moves_alpha(bar);
    thiele_status status = THIELE_OK;
    thi_matrix slopes = thi_decoupled_columns_of(d, g, d->at.n);
    for (int64_t first = 0; first < d->alpha.n && (moves || bar->a.data != NULL); first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, d->at.n, part.n),
                   Kbar = thi_decoupled_view(d->at.weights, d->at.n, part.n);
        thi_functions_bar own = thi_decoupled_alpha_bar(d, bar, first);
        THI_TRY(thi_functions_fill(&part, ctx, &d->at.rows, K));
        if (bar->a.data != NULL) {
            THI_TRY(
                thi_multiply(ctx, THI_T, THI_N, 1.0, K, slopes, 1.0, thi_decoupled_part(bar->a, first, part.n), false));
        }
        if (moves) {
            THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, slopes, thi_decoupled_part(d->q.a, first, part.n), 0.0, Kbar,
                                 false));
            THI_TRY(thi_functions_pull(&part, ctx, &d->at.rows, Kbar, K, &own));
        }
    }
out:
    return status;
}

/* to = the sum of the columns of x (n x latents, or NULL: 0) */
static void add_up(const thi_decoupled *d, const double *x, double *to)
{
    int64_t n = d->at.n;
    memset(to, 0, (size_t)n * sizeof *to);
    for (int p = 0; x != NULL && p < d->shape.latents; p++) {
        thi_blas_axpy(n, 1.0, x + p * n, to);
    }
}

thiele_status thi_decoupled_pull(thi_decoupled *d, thiele_context *ctx, const double *g, const double *h,
                                 const thi_decoupled_bar *bar)
{
    const thi_prior *prior = &d->prior;
    thi_decoupled_rows *at = &d->at;
    thiele_status status = THIELE_OK;
    add_up(d, at->spared, at->all_c);
    if (d->beta.n > 0) {
        THI_TRY(pull_beta(d, ctx, d->beta.n, g, h, bar));
    }
    THI_TRY(pull_alpha(d, ctx, g, bar));
    if (bar->theta != NULL) {
        add_up(d, h, at->all_h);
        thi_blas_axpy(at->n, 1.0, at->all_c, at->all_h);
        THI_TRY(thi_kernel_pull_diagonal(prior->kernel, ctx, &at->rows, at->all_h, bar->theta, NULL));
    }
    at->spared = NULL;
    if (bar->mean != NULL) {
        add_up(d, g, at->all_g);
        thi_mean_pull(prior->mean, prior->mean_parameter, at->n, d->shape.D, at->X, at->all_g, bar->mean, NULL);
    }
out:
    return status;
}

/* --- the quadratic term ----------------------------------------------------------------------------------------------
 */

/* The functions of the columns, copied into d->pick, and s behind them. */
static thiele_status pick_columns(thi_decoupled *d, thiele_context *ctx, const thi_decoupled_columns *columns,
                                  thi_functions *picked, thi_matrix *s)
{
    int64_t D = d->shape.D, count = columns->count;
    double *X = d->pick, *log_c = X + count * D, scale = (double)d->alpha.n / (double)count;
    *s = thi_decoupled_columns_of(d, log_c + count * D, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = columns->index[i];
        memcpy(X + i * D, d->q.alpha.X + at * D, (size_t)D * sizeof *X);
        if (d->q.alpha.log_c != NULL) {
            memcpy(log_c + i * D, d->q.alpha.log_c + at * D, (size_t)D * sizeof *X);
        }
        for (int p = 0; p < d->shape.latents; p++) {
            s->data[i + p * s->ld] = scale * d->q.a.data[at + p * d->q.a.ld];
        }
    }
    return thi_functions_make(picked, ctx, d->prior.kernel, count, X, d->q.alpha.log_c != NULL ? log_c : NULL);
}

/* *value += a'K_alpha,I s / 2 and its share of the gradient, with a minus. */
static thiele_status quadratic(thi_decoupled *d, thiele_context *ctx, const thi_functions *picked, thi_matrix s,
                               double *value, const thi_decoupled_bar *bar)
{
    bool moves = bar != NULL && thi_decoupled_moves_alpha(bar);
    thiele_status status = THIELE_OK;
    memset(d->theta, 0, (size_t)d->parameters * sizeof *d->theta);
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, picked->n, part.n);
        thi_matrix Kbar = thi_decoupled_view(d->at.weights, picked->n, part.n);
        thi_matrix a = thi_decoupled_part(d->q.a, first, part.n), along = thi_decoupled_columns_of(d, d->along, part.n);
        THI_TRY(thi_functions_cross(picked, &part, ctx, K, false));
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, K, s, 0.0, along, false));
        for (int p = 0; p < d->shape.latents; p++) {
            *value += 0.5 * thi_blas_dot(part.n, along.data + p * along.ld, a.data + p * a.ld);
            if (bar != NULL && bar->a.data != NULL) {
                thi_blas_axpy(part.n, -1.0, along.data + p * along.ld, bar->a.data + first + p * bar->a.ld);
            }
        }
        if (moves) {
            thi_functions_bar own = thi_decoupled_alpha_bar(d, bar, first);
            own.theta = d->theta;
            THI_TRY(thi_multiply(ctx, THI_N, THI_T, -1.0, s, a, 0.0, Kbar, false));
            THI_TRY(thi_functions_pull_cross(picked, &part, ctx, Kbar, K, false, &own));
        }
    }
    if (bar != NULL && bar->theta != NULL) {
        thi_blas_axpy(d->parameters, 0.5, d->theta, bar->theta);
    }
out:
    return status;
}

/* cs = Lb^-1 K_beta,I s */
static thiele_status project_columns(thi_decoupled *d, thiele_context *ctx, const thi_functions *picked, thi_matrix s,
                                     thi_matrix cs)
{
    int64_t M = d->beta.n;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < picked->n; first += THI_DECOUPLED_PORTION) {
        int64_t left = picked->n - first;
        thi_functions part =
            thi_functions_part(picked, first, left < THI_DECOUPLED_PORTION ? left : THI_DECOUPLED_PORTION);
        thi_matrix K = thi_decoupled_view(d->at.portion, M, part.n);
        THI_TRY(thi_functions_cross(&d->beta, &part, ctx, K, false));
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, K, thi_decoupled_part(s, first, part.n), 1.0, cs, false));
    }
    THI_TRY(thi_tri_solve(ctx, THI_N, thi_decoupled_square(d->Lb, M), cs));
out:
    return status;
}

/* What c = Lb^-1 K_beta,alpha a gives to alpha, a, beta and the kernel, by hbar. */
static thiele_status pull_projection(thi_decoupled *d, thiele_context *ctx, thi_matrix hbar,
                                     const thi_decoupled_bar *bar)
{
    int64_t M = d->beta.n;
    bool alpha = thi_decoupled_moves_alpha(bar), beta = bar->beta != NULL || bar->log_c_beta != NULL;
    thi_functions_bar points = {NULL, bar->beta, bar->log_c_beta};
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, M, part.n),
                   Kbar = thi_decoupled_view(d->at.weights, M, part.n), a = thi_decoupled_part(d->q.a, first, part.n);
        thi_functions_bar own = thi_decoupled_alpha_bar(d, bar, first);
        THI_TRY(thi_functions_cross(&d->beta, &part, ctx, K, false));
        if (bar->a.data != NULL) {
            THI_TRY(
                thi_multiply(ctx, THI_T, THI_N, 1.0, K, hbar, 1.0, thi_decoupled_part(bar->a, first, part.n), false));
        }
        if (alpha) {
            THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, hbar, a, 0.0, Kbar, false));
            THI_TRY(thi_functions_pull_cross(&d->beta, &part, ctx, Kbar, K, false, &own));
        }
        if (beta) {
            thi_matrix Kt = thi_decoupled_view(d->at.portion, part.n, M),
                       bart = thi_decoupled_view(d->at.weights, part.n, M);
            THI_TRY(thi_functions_cross(&part, &d->beta, ctx, Kt, false));
            THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, a, hbar, 0.0, bart, false));
            THI_TRY(thi_functions_pull_cross(&part, &d->beta, ctx, bart, Kt, false, &points));
        }
    }
out:
    return status;
}

/* --- the end ---------------------------------------------------------------------------------------------------------
 */

static double trace_of(thi_matrix A)
{
    double sum = 0.0;
    for (int64_t i = 0; i < A.rows; i++) {
        sum += A.data[i + i * A.ld];
    }
    return sum;
}

static thiele_status pull_covariance(thi_decoupled *d, thiele_context *ctx, thi_matrix Kbar,
                                     const thi_decoupled_bar *bar)
{
    thi_functions_bar own = beta_bar(bar);
    return thi_functions_pull_cross(&d->beta, &d->beta, ctx, Kbar, thi_decoupled_square(d->K, Kbar.rows), true, &own);
}

/* E = Theta - J/2 gives Lbar = -2 (sum h k Y') + 2 K L E and, added up over the latents, Kbar = L E L'. */
static thiele_status end_plain_one(thi_decoupled *d, thiele_context *ctx, int64_t M, int p,
                                   const thi_decoupled_bar *bar)
{
    thi_decoupled_latent *q = &d->latent[p];
    thi_matrix E = thi_decoupled_square(q->Th, M), root = thi_decoupled_square(q->root, M);
    thi_matrix S = thi_decoupled_square(q->S, M), Kh = thi_decoupled_square(q->Kh, M);
    thi_matrix L = thi_decoupled_square(q->L, M), work = thi_decoupled_square(d->work, M);
    thiele_status status;
    thi_symmetrise(E);
    THI_TRY(thi_tri_solve(ctx, THI_T, root, E));
    THI_TRY(thi_sparse_solve_right(ctx, THI_N, root, E));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 0.5, S, S, 1.0, E, false));
    thi_blas_axpy(M * M, -0.5, S.data, E.data);
    if (bar->L != NULL) {
        THI_TRY(thi_sparse_solve_right(ctx, THI_N, root, Kh));
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 2.0, thi_decoupled_square(q->KL, M), E, -2.0, Kh, false));
        for (int64_t j = 0; j < M; j++) {
            thi_blas_axpy(M - j, 1.0, Kh.data + j + j * M, bar->L[p].data + j + j * bar->L[p].ld);
        }
    }
    if (thi_decoupled_moves_beta(bar)) {
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, L, E, 0.0, work, false));
        THI_TRY(
            thi_multiply(ctx, THI_N, THI_T, 1.0, work, L, p > 0 ? 1.0 : 0.0, thi_decoupled_square(d->more, M), true));
    }
out:
    return status;
}

static thiele_status end_plain(thi_decoupled *d, thiele_context *ctx, int64_t M, const thi_decoupled_bar *bar)
{
    thiele_status status = THIELE_OK;
    for (int p = 0; p < d->shape.latents; p++) {
        THI_TRY(end_plain_one(d, ctx, M, p, bar));
    }
    if (thi_decoupled_moves_beta(bar)) {
        THI_TRY(pull_covariance(d, ctx, thi_decoupled_square(d->more, M), bar));
    }
out:
    return status;
}

/* Lbar of all latents; hbar takes the place of cbar. */
static thiele_status end_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M, thi_matrix cbar,
                                    const thi_decoupled_bar *bar)
{
    thi_matrix Lb = thi_decoupled_square(d->Lb, M), Tc = thi_decoupled_square(d->Tc, M);
    thi_matrix Lbar = thi_decoupled_square(d->work, M), more = thi_decoupled_square(d->more, M);
    thiele_status status;
    THI_TRY(thi_tri_solve(ctx, THI_T, Lb, cbar));
    THI_TRY(pull_projection(d, ctx, cbar, bar));
    if (!thi_decoupled_moves_beta(bar)) {
        return THIELE_OK;
    }
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, -1.0, thi_decoupled_columns_of(d, d->lean, M),
                         thi_decoupled_columns_of(d, d->Vg, M), 0.0, Lbar, false));
    for (int p = 0; p < d->shape.latents; p++) {
        thi_matrix Th = thi_decoupled_square(d->latent[p].Th, M);
        thi_symmetrise(Th);
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, -2.0, thi_decoupled_square(d->latent[p].S, M), Th, 1.0, Lbar, false));
        thi_blas_axpy(M * M, 2.0, Th.data, Lbar.data);
    }
    thi_symmetrise(Tc);
    thi_blas_axpy(M * M, 2.0, Tc.data, Lbar.data);
    THI_TRY(thi_tri_solve(ctx, THI_T, Lb, Lbar));
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, -1.0, cbar, thi_decoupled_columns_of(d, d->c, M), 1.0, Lbar, false));
    THI_TRY(thi_chol_adjoint(ctx, Lb, Lbar, more));
    THI_TRY(pull_covariance(d, ctx, Lbar, bar));
out:
    return status;
}

double thi_decoupled_spread(const thi_decoupled *d)
{
    int64_t M = d->beta.n;
    double sum = 0.0;
    for (int p = 0; p < d->shape.latents && M > 0; p++) {
        sum += 0.5 * (trace_of(thi_decoupled_square(d->latent[p].S, M)) - (double)M + d->latent[p].log_det);
    }
    return sum;
}

/* KL of what beta parameterises. */
static double beta_divergence(const thi_decoupled *d, int64_t M)
{
    double mean = d->shape.orthogonal ? 0.5 * thi_blas_dot(M * d->shape.latents, d->m, d->m) : 0.0;
    return thi_decoupled_spread(d) + mean;
}

thiele_status thi_decoupled_end(thi_decoupled *d, thiele_context *ctx, const thi_decoupled_columns *columns, double *kl,
                                const thi_decoupled_bar *bar)
{
    int64_t M = d->beta.n, each = M * d->shape.latents;
    bool mean = d->alpha.n > 0 && columns->count > 0;
    thi_functions picked = {0};
    thi_matrix s, cbar = thi_decoupled_columns_of(d, d->cbar, M);
    thiele_status status = THIELE_OK;
    *kl = M > 0 ? beta_divergence(d, M) : 0.0;
    memset(d->cbar, 0, (size_t)each * sizeof *d->cbar);
    if (mean) {
        THI_TRY(pick_columns(d, ctx, columns, &picked, &s));
        THI_TRY(quadratic(d, ctx, &picked, s, kl, bar));
    }
    if (mean && d->shape.orthogonal && M > 0) {
        THI_TRY(project_columns(d, ctx, &picked, s, cbar));
        *kl -= 0.5 * thi_blas_dot(each, d->c, d->cbar);
    }
    if (bar == NULL || M == 0) {
        goto out;
    }
    if (d->shape.orthogonal) {
        thi_blas_axpy(each, -1.0, d->Vg, d->cbar);
        THI_TRY(end_orthogonal(d, ctx, M, cbar, bar));
    } else {
        THI_TRY(end_plain(d, ctx, M, bar));
    }
out:
    thi_functions_clear(&picked);
    return status;
}

static void step_one(const thi_decoupled *d, int p, double rho, thi_natural *sites)
{
    int64_t M = d->beta.n;
    thi_matrix T = sites->T;
    const double *Th = d->latent[p].Th.data, *m = d->m + p * M;
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            T.data[i + j * T.ld] = (1.0 - rho) * T.data[i + j * T.ld] - 2.0 * rho * Th[i + j * M];
        }
        double along = d->Vg[j + p * M];
        for (int64_t i = 0; i < M; i++) {
            along -= 2.0 * m[i] * Th[i >= j ? i + j * M : j + i * M];
        }
        sites->t[j] = (1.0 - rho) * sites->t[j] + rho * along;
    }
}

void thi_decoupled_step(const thi_decoupled *d, double rho, thi_natural *sites)
{
    for (int p = 0; p < d->shape.latents; p++) {
        step_one(d, p, rho, &sites[p]);
    }
}

/* b = Lb^-T (m - c) */
void thi_decoupled_weights(const thi_decoupled *d, int latent, double *b)
{
    int64_t M = d->beta.n;
    memcpy(b, d->lean + latent * M, (size_t)M * sizeof *b);
    thi_blas_trsv(THI_T, thi_decoupled_square(d->Lb, M), b);
}

/* t = (I + T)(Lb'b + c) */
void thi_decoupled_weigh(const thi_decoupled *d, int latent, const double *b, double *t)
{
    int64_t M = d->beta.n;
    const double *L = d->Lb.data;
    thi_matrix T = d->q.sites[latent].T;
    double *m = d->work.data;
    for (int64_t j = 0; j < M; j++) {
        m[j] = d->c[j + latent * M] + thi_blas_dot(M - j, L + j + j * M, b + j);
    }
    for (int64_t j = 0; j < M; j++) {
        t[j] = m[j];
        for (int64_t i = 0; i < M; i++) {
            t[j] += m[i] * T.data[i >= j ? i + j * T.ld : j + i * T.ld];
        }
    }
}

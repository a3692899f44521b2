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

/* Sums over rows, and U becomes kbar'. */
static thiele_status rows_plain(thi_decoupled *d, thiele_context *ctx, int64_t M, const double *h)
{
    thi_matrix V = thi_decoupled_view(d->at.V, d->at.n, M), W = thi_decoupled_view(d->at.W, d->at.n, M);
    thiele_status status;
    scale_rows(V, h, W);
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, W, 1.0, thi_decoupled_square(d->Th, M), true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, thi_decoupled_view(d->at.k, d->at.n, M), W, 1.0,
                         thi_decoupled_square(d->Kh, M), false));
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, -2.0, W, thi_decoupled_square(d->map, M), 0.0,
                         thi_decoupled_view(d->at.U, d->at.n, M), false));
out:
    return status;
}

static thiele_status rows_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M, const double *g, const double *h,
                                     bool moves)
{
    thi_matrix V = thi_decoupled_view(d->at.V, d->at.n, M), W = thi_decoupled_view(d->at.W, d->at.n, M);
    thi_matrix U = thi_decoupled_view(d->at.U, d->at.n, M);
    thiele_status status;
    scale_rows(V, h, U);
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, U, 1.0, thi_decoupled_square(d->Th, M), true));
    thi_blas_gemv(THI_T, 1.0, V, g, 1.0, d->Vg);
    if (moves && d->at.spared != NULL) {
        scale_rows(V, d->at.spared, U);
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, U, 1.0, thi_decoupled_square(d->Tc, M), true));
    }
    for (int64_t j = 0; moves && j < M; j++) {
        for (int64_t i = 0; i < d->at.n; i++) {
            double spared = d->at.spared != NULL ? d->at.spared[i] * V.data[i + j * V.ld] : 0.0;
            U.data[i + j * U.ld] = g[i] * d->lean[j] + 2.0 * (h[i] * W.data[i + j * W.ld] - spared);
        }
    }
    if (moves) {
        THI_TRY(thi_sparse_solve_right(ctx, THI_N, thi_decoupled_square(d->factor, M), U));
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
    for (int64_t first = 0; first < d->alpha.n && (moves || bar->a != NULL); first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, d->at.n, part.n),
                   Kbar = thi_decoupled_view(d->at.weights, d->at.n, part.n);
        thi_functions_bar own = thi_decoupled_alpha_bar(d, bar, first);
        THI_TRY(thi_functions_fill(&part, ctx, &d->at.rows, K));
        if (bar->a != NULL) {
            thi_blas_gemv(THI_T, 1.0, K, g, 1.0, bar->a + first);
        }
        if (moves) {
            thi_decoupled_outer(Kbar, g, 1.0, d->q.a + first);
            THI_TRY(thi_functions_pull(&part, ctx, &d->at.rows, Kbar, K, &own));
        }
    }
out:
    return status;
}

thiele_status thi_decoupled_pull(thi_decoupled *d, thiele_context *ctx, const double *g, const double *h,
                                 const thi_decoupled_bar *bar)
{
    const thi_prior *prior = &d->prior;
    thiele_status status = THIELE_OK;
    if (d->beta.n > 0) {
        THI_TRY(pull_beta(d, ctx, d->beta.n, g, h, bar));
    }
    THI_TRY(pull_alpha(d, ctx, g, bar));
    if (bar->theta != NULL) {
        THI_TRY(thi_kernel_pull_diagonal(prior->kernel, ctx, &d->at.rows, h, bar->theta, NULL));
    }
    if (bar->theta != NULL && d->at.spared != NULL) {
        THI_TRY(thi_kernel_pull_diagonal(prior->kernel, ctx, &d->at.rows, d->at.spared, bar->theta, NULL));
    }
    d->at.spared = NULL;
    if (bar->mean != NULL) {
        thi_mean_pull(prior->mean, prior->mean_parameter, d->at.n, d->shape.D, d->at.X, g, bar->mean, NULL);
    }
out:
    return status;
}

/* --- the quadratic term ----------------------------------------------------------------------------------------------
 */

/* The functions of the columns, copied into d->pick, and s behind them. */
static thiele_status pick_columns(thi_decoupled *d, thiele_context *ctx, const thi_decoupled_columns *columns,
                                  thi_functions *picked, double **s)
{
    int64_t D = d->shape.D, count = columns->count;
    double *X = d->pick, *log_c = X + count * D, scale = (double)d->alpha.n / (double)count;
    *s = log_c + count * D;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = columns->index[i];
        memcpy(X + i * D, d->q.alpha.X + at * D, (size_t)D * sizeof *X);
        if (d->q.alpha.log_c != NULL) {
            memcpy(log_c + i * D, d->q.alpha.log_c + at * D, (size_t)D * sizeof *X);
        }
        (*s)[i] = scale * d->q.a[at];
    }
    return thi_functions_make(picked, ctx, d->prior.kernel, count, X, d->q.alpha.log_c != NULL ? log_c : NULL);
}

/* *value += a'K_alpha,I s / 2 and its share of the gradient, with a minus. */
static thiele_status quadratic(thi_decoupled *d, thiele_context *ctx, const thi_functions *picked, const double *s,
                               double *value, const thi_decoupled_bar *bar)
{
    double along[THI_DECOUPLED_PORTION];
    bool moves = bar != NULL && thi_decoupled_moves_alpha(bar);
    thiele_status status = THIELE_OK;
    memset(d->theta, 0, (size_t)d->parameters * sizeof *d->theta);
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, picked->n, part.n);
        thi_matrix Kbar = thi_decoupled_view(d->at.weights, picked->n, part.n);
        THI_TRY(thi_functions_cross(picked, &part, ctx, K, false));
        thi_blas_gemv(THI_T, 1.0, K, s, 0.0, along);
        *value += 0.5 * thi_blas_dot(part.n, along, d->q.a + first);
        if (bar != NULL && bar->a != NULL) {
            thi_blas_axpy(part.n, -1.0, along, bar->a + first);
        }
        if (moves) {
            thi_functions_bar own = thi_decoupled_alpha_bar(d, bar, first);
            own.theta = d->theta;
            thi_decoupled_outer(Kbar, s, -1.0, d->q.a + first);
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
static thiele_status project_columns(thi_decoupled *d, thiele_context *ctx, const thi_functions *picked,
                                     const double *s, double *cs)
{
    int64_t M = d->beta.n;
    memset(cs, 0, (size_t)M * sizeof *cs);
    for (int64_t first = 0; first < picked->n; first += THI_DECOUPLED_PORTION) {
        int64_t left = picked->n - first;
        thi_functions part =
            thi_functions_part(picked, first, left < THI_DECOUPLED_PORTION ? left : THI_DECOUPLED_PORTION);
        thi_matrix K = thi_decoupled_view(d->at.portion, M, part.n);
        thiele_status status = thi_functions_cross(&d->beta, &part, ctx, K, false);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_gemv(THI_N, 1.0, K, s + first, 1.0, cs);
    }
    thi_blas_trsv(THI_N, thi_decoupled_square(d->factor, M), cs);
    return THIELE_OK;
}

/* What c = Lb^-1 K_beta,alpha a gives to alpha, a, beta and the kernel, by hbar. */
static thiele_status pull_projection(thi_decoupled *d, thiele_context *ctx, const double *hbar,
                                     const thi_decoupled_bar *bar)
{
    int64_t M = d->beta.n;
    bool alpha = thi_decoupled_moves_alpha(bar), beta = bar->beta != NULL || bar->log_c_beta != NULL;
    thi_functions_bar points = {NULL, bar->beta, bar->log_c_beta};
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < d->alpha.n; first += THI_DECOUPLED_PORTION) {
        thi_functions part = thi_decoupled_portion(d, first);
        thi_matrix K = thi_decoupled_view(d->at.portion, M, part.n),
                   Kbar = thi_decoupled_view(d->at.weights, M, part.n);
        thi_functions_bar own = thi_decoupled_alpha_bar(d, bar, first);
        THI_TRY(thi_functions_cross(&d->beta, &part, ctx, K, false));
        if (bar->a != NULL) {
            thi_blas_gemv(THI_T, 1.0, K, hbar, 1.0, bar->a + first);
        }
        if (alpha) {
            thi_decoupled_outer(Kbar, hbar, 1.0, d->q.a + first);
            THI_TRY(thi_functions_pull_cross(&d->beta, &part, ctx, Kbar, K, false, &own));
        }
        if (beta) {
            thi_matrix Kt = thi_decoupled_view(d->at.portion, part.n, M),
                       bart = thi_decoupled_view(d->at.weights, part.n, M);
            THI_TRY(thi_functions_cross(&part, &d->beta, ctx, Kt, false));
            thi_decoupled_outer(bart, d->q.a + first, 1.0, hbar);
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

/* E = Theta - J/2 gives Lbar = -2 (sum h k Y') + 2 K L E and Kbar = L E L'. */
static thiele_status end_plain(thi_decoupled *d, thiele_context *ctx, int64_t M, const thi_decoupled_bar *bar)
{
    thi_matrix E = thi_decoupled_square(d->Th, M), root = thi_decoupled_square(d->root, M);
    thi_matrix S = thi_decoupled_square(d->S, M), Kh = thi_decoupled_square(d->Kh, M);
    thi_matrix L = thi_decoupled_square(d->factor, M), work = thi_decoupled_square(d->work, M);
    thiele_status status;
    thi_symmetrise(E);
    THI_TRY(thi_tri_solve(ctx, THI_T, root, E));
    THI_TRY(thi_sparse_solve_right(ctx, THI_N, root, E));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 0.5, S, S, 1.0, E, false));
    thi_blas_axpy(M * M, -0.5, S.data, E.data);
    if (bar->L.data != NULL) {
        THI_TRY(thi_sparse_solve_right(ctx, THI_N, root, Kh));
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 2.0, thi_decoupled_square(d->KL, M), E, -2.0, Kh, false));
        for (int64_t j = 0; j < M; j++) {
            thi_blas_axpy(M - j, 1.0, Kh.data + j + j * M, bar->L.data + j + j * bar->L.ld);
        }
    }
    if (thi_decoupled_moves_beta(bar)) {
        thi_matrix Kbar = thi_decoupled_square(d->more, M);
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, L, E, 0.0, work, false));
        THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, work, L, 0.0, Kbar, true));
        THI_TRY(pull_covariance(d, ctx, Kbar, bar));
    }
out:
    return status;
}

/* hbar takes the place of cbar. */
static thiele_status end_orthogonal(thi_decoupled *d, thiele_context *ctx, int64_t M, double *cbar,
                                    const thi_decoupled_bar *bar)
{
    thi_matrix Lb = thi_decoupled_square(d->factor, M), Th = thi_decoupled_square(d->Th, M);
    thi_matrix Tc = thi_decoupled_square(d->Tc, M);
    thi_matrix Lbar = thi_decoupled_square(d->work, M), more = thi_decoupled_square(d->more, M);
    thiele_status status;
    thi_blas_trsv(THI_T, Lb, cbar);
    THI_TRY(pull_projection(d, ctx, cbar, bar));
    if (!thi_decoupled_moves_beta(bar)) {
        return THIELE_OK;
    }
    thi_symmetrise(Th);
    thi_symmetrise(Tc);
    thi_decoupled_outer(Lbar, d->lean, -1.0, d->Vg);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, -2.0, thi_decoupled_square(d->S, M), Th, 1.0, Lbar, false));
    thi_blas_axpy(M * M, 2.0, Th.data, Lbar.data);
    thi_blas_axpy(M * M, 2.0, Tc.data, Lbar.data);
    THI_TRY(thi_tri_solve(ctx, THI_T, Lb, Lbar));
    for (int64_t j = 0; j < M; j++) {
        thi_blas_axpy(M, -d->c[j], cbar, Lbar.data + j * M);
    }
    THI_TRY(thi_chol_adjoint(ctx, Lb, Lbar, more));
    THI_TRY(pull_covariance(d, ctx, Lbar, bar));
out:
    return status;
}

/* KL of what beta parameterises. */
static double beta_divergence(const thi_decoupled *d, int64_t M)
{
    double trace = trace_of(thi_decoupled_square(d->S, M));
    double fit = d->shape.orthogonal ? thi_blas_dot(M, d->m, d->m) : 0.0;
    return 0.5 * (trace + fit - (double)M + d->log_det);
}

thiele_status thi_decoupled_end(thi_decoupled *d, thiele_context *ctx, const thi_decoupled_columns *columns, double *kl,
                                const thi_decoupled_bar *bar)
{
    int64_t M = d->beta.n;
    bool mean = d->alpha.n > 0 && columns->count > 0;
    thi_functions picked = {0};
    double *s = NULL, *cbar = NULL;
    thiele_status status;
    *kl = M > 0 ? beta_divergence(d, M) : 0.0;
    THI_TRY(thi_alloc(ctx, &cbar, (size_t)M, sizeof *cbar));
    if (mean) {
        THI_TRY(pick_columns(d, ctx, columns, &picked, &s));
        THI_TRY(quadratic(d, ctx, &picked, s, kl, bar));
    }
    if (mean && d->shape.orthogonal && M > 0) {
        THI_TRY(project_columns(d, ctx, &picked, s, cbar));
        *kl -= 0.5 * thi_blas_dot(M, d->c, cbar);
    }
    if (bar == NULL || M == 0) {
        goto out;
    }
    if (d->shape.orthogonal) {
        thi_blas_axpy(M, -1.0, d->Vg, cbar);
        THI_TRY(end_orthogonal(d, ctx, M, cbar, bar));
    } else {
        THI_TRY(end_plain(d, ctx, M, bar));
    }
out:
    thi_functions_clear(&picked);
    thi_free(cbar);
    return status;
}

void thi_decoupled_step(const thi_decoupled *d, double rho, thi_natural *sites)
{
    int64_t M = d->beta.n;
    thi_matrix T = sites->T;
    double *t = sites->t;
    const double *Th = d->Th.data;
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            T.data[i + j * T.ld] = (1.0 - rho) * T.data[i + j * T.ld] - 2.0 * rho * Th[i + j * M];
        }
        double along = d->Vg[j];
        for (int64_t i = 0; i < M; i++) {
            along -= 2.0 * d->m[i] * Th[i >= j ? i + j * M : j + i * M];
        }
        t[j] = (1.0 - rho) * t[j] + rho * along;
    }
}

/* b = Lb^-T (m - c) */
void thi_decoupled_weights(const thi_decoupled *d, double *b)
{
    memcpy(b, d->lean, (size_t)d->beta.n * sizeof *b);
    thi_blas_trsv(THI_T, thi_decoupled_square(d->factor, d->beta.n), b);
}

/* t = (I + T)(Lb'b + c) */
void thi_decoupled_weigh(const thi_decoupled *d, const double *b, double *t)
{
    int64_t M = d->beta.n;
    const double *L = d->factor.data;
    thi_matrix T = d->q.factor;
    double *m = d->work.data;
    for (int64_t j = 0; j < M; j++) {
        m[j] = d->c[j] + thi_blas_dot(M - j, L + j + j * M, b + j);
    }
    for (int64_t j = 0; j < M; j++) {
        t[j] = m[j];
        for (int64_t i = 0; i < M; i++) {
            t[j] += m[i] * T.data[i >= j ? i + j * T.ld : j + i * T.ld];
        }
    }
}

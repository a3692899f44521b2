/*
 * The end of an evaluation: KL, and the gradients in q, kernels and inducing inputs from what the pulls left behind.
 * For a full S, with T = V diag(h) V':
 *   Lsbar = 2 tril(T Ls) + what KL adds        P -= m (V g)' + 2 (S T - T),  S T = Ls (T Ls)'
 * of a plain one also (m_w = L^-1 m_u, Ls_w = L^-1 Ls_u)
 *   P -= mbar m' + Lsbar Ls'        mbar_u = L^-T mbar,  Lsbar_u = tril(L^-T Lsbar)
 * and for a plain diagonal, from the cross term with d = sum pi_k s_k over members and a_k = L^-1 m_k
 *   P += sum_k pi_k a_k a_k' + L^-1 diag(d) L^-T - I (a latent)
 * At last Kbar, made from P, goes to the kernel. With Kzz = L L' in all (1/3 + 1 + 2/3 + 4/3) M^3 flops.
 */
#include "posterior/variational_internal.h"

#include <string.h>
static thiele_status mirror_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    thi_matrix A = *(const thi_matrix *)arg;
    int64_t first = band * THI_BAND, end = thi_band_end(band, A.rows);
    for (int64_t r = first + 1; r < A.rows; r++) {
        double *restrict to = A.data + r * A.ld;
        const double *from = A.data + r;
        for (int64_t c = first; c < (end < r ? end : r); c++) {
            to[c] = from[c * A.ld];
        }
    }
    return THIELE_OK;
}

thiele_status thi_mirror(thiele_context *ctx, thi_matrix A)
{
    return thi_parallel_work(ctx, thi_bands(A.rows), 16.0 * (double)A.cols * (double)A.cols, mirror_band, &A);
}

/* What bands of M x M matrices are worked with. */
typedef struct band_task {
    const thi_variational *v;
    const thi_member *member;
    thi_matrix L, P, R, from;
} band_task;

static double cube(const thi_variational *v)
{
    double M = (double)v->shape.inducing;
    return M * M * M;
}

/* A pass over an M x M matrix is bound by memory: an entry counts as some 16 flops. */
static double square_work(const thi_variational *v)
{
    return 16.0 * (double)v->shape.inducing * (double)v->shape.inducing;
}

/* Rows of a band of M x M. */
static thi_matrix band_rows(thi_matrix A, int64_t band)
{
    int64_t first = band * THI_BAND;
    return thi_matrix_block(A, first, 0, thi_band_end(band, A.rows) - first, A.cols);
}

/* R = from Ls, `from` full symmetric */
static thiele_status times_factor_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const band_task *t = arg;
    thi_matrix R = band_rows(t->R, band), from = band_rows(t->from, band);
    for (int64_t c = 0; c < R.cols; c++) {
        memcpy(R.data + c * R.ld, from.data + c * from.ld, (size_t)R.rows * sizeof(double));
    }
    thi_blas_trmm(THI_RIGHT, THI_N, 1.0, t->member->Ls, R);
    return THIELE_OK;
}

static thiele_status times_factor(thi_variational *v, thiele_context *ctx, const thi_member *member, thi_matrix from,
                                  thi_matrix R)
{
    band_task t = {.v = v, .member = member, .R = R, .from = from};
    return thi_parallel_work(ctx, thi_bands(R.rows), cube(v), times_factor_band, &t);
}

/* P -= m (V g)' + 2 (Ls R' - T): rows of a band up to the diagonal; the longest bands first. */
static thiele_status full_prior_band(void *arg, int64_t block, int thread)
{
    (void)thread;
    const band_task *t = arg;
    const thi_member *member = t->member;
    int64_t M = t->P.rows, band = thi_bands(M) - 1 - block, first = band * THI_BAND, end = thi_band_end(band, M);
    thi_matrix P = thi_matrix_block(t->P, first, 0, end - first, end);
    thi_blas_gemm(THI_N, THI_T, -2.0, thi_matrix_block(member->Ls, first, 0, end - first, end),
                  thi_matrix_block(t->R, 0, 0, end, end), 1.0, P);
    for (int64_t c = 0; c < end; c++) {
        const double *T = member->T.data + first + c * M, *m = member->m + first;
        double *to = P.data + c * P.ld, g = member->g_sum[c];
        for (int64_t r = 0; r < end - first; r++) {
            to[r] += 2.0 * T[r] - m[r] * g;
        }
    }
    return THIELE_OK;
}

/* Columns of a band of R, T Ls until now, become those of Lsbar: lower triangle, zeros above. `from`: G Ls, or none. */
static thiele_status factor_gradient_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const band_task *t = arg;
    double weight = t->v->weight[t->member->component], self = t->v->self[t->member->component];
    int64_t M = t->R.rows, end = thi_band_end(band, M);
    for (int64_t c = band * THI_BAND; c < end; c++) {
        double *to = t->R.data + c * M;
        const double *Ls = t->member->Ls.data + c * M;
        memset(to, 0, (size_t)c * sizeof(double));
        for (int64_t r = c; r < M; r++) {
            to[r] = 2.0 * to[r] - weight * Ls[r];
        }
        for (int64_t r = c; t->from.data != NULL && r < M; r++) {
            to[r] += 2.0 * t->from.data[r + c * M];
        }
        to[c] += self / Ls[c];
    }
    return THIELE_OK;
}

/* From w to u: what the gradients in m and Ls mean for L, and what they are in u. */
static thiele_status unwhiten(const thi_variational *v, thiele_context *ctx, const thi_member *member, thi_matrix R)
{
    thi_matrix P = v->group[member->group].P, L = v->group[member->group].L;
    thiele_status status = thi_multiply(ctx, THI_N, THI_T, -1.0, R, member->Ls, 1.0, P, true);
    for (int64_t c = 0; c < P.cols; c++) {
        for (int64_t r = c; r < P.rows; r++) {
            P.data[r + c * P.ld] -= member->mbar[r] * member->m[c];
        }
    }
    thi_blas_trsv(THI_T, L, member->mbar);
    return status == THIELE_OK ? thi_tri_solve(ctx, THI_T, L, R) : status;
}

/* T Ls in work[0], and from it the member's share of P. */
static thiele_status rows_gradient(thi_variational *v, thiele_context *ctx, const thi_member *member, bool prior)
{
    thi_matrix R = v->work[0];
    band_task t = {.v = v, .member = member, .P = v->group[member->group].P, .R = R};
    thiele_status status = THIELE_OK;
    THI_TRY(times_factor(v, ctx, member, member->T, R));
    if (prior) {
        THI_TRY(thi_parallel_work(ctx, thi_bands(R.rows), cube(v), full_prior_band, &t));
    }
out:
    return status;
}

static thiele_status end_full(thi_variational *v, thiele_context *ctx, const thi_member *member, bool prior,
                              double *q_bar)
{
    band_task t = {.v = v, .member = member, .R = v->work[0]};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_mirror(ctx, member->T));
    if (v->sites != NULL) {
        return prior ? thi_sites_adjoint(v, ctx, member) : status;
    }
    THI_TRY(rows_gradient(v, ctx, member, prior));
    thi_blas_axpy(t.R.rows, 1.0, member->g_sum, member->mbar);
    if (q_bar == NULL && v->shape.whitened) {
        return status;
    }
    if (member->G.data != NULL) {
        t.from = v->work[1];
        THI_TRY(thi_mirror(ctx, member->G));
        THI_TRY(times_factor(v, ctx, member, member->G, t.from));
    }
    THI_TRY(thi_parallel_work(ctx, thi_bands(t.R.rows), square_work(v), factor_gradient_band, &t));
    if (!v->shape.whitened) {
        THI_TRY(unwhiten(v, ctx, member, t.R));
    }
    if (q_bar != NULL) {
        THI_TRY(thi_q_give(v, ctx, member, t.R, q_bar));
    }
out:
    return status;
}

/* The cross term of a plain diagonal in P. */
static thiele_status plain_cross(thi_variational *v, thiele_context *ctx, thi_group *group)
{
    int64_t M = v->shape.inducing;
    thi_matrix ND = v->work[0], P = group->P;
    double *d = v->work[1].data, *a = d + M;
    memset(d, 0, (size_t)M * sizeof(double));
    for (int i = 0; i < v->members; i++) {
        const thi_member *member = &v->member[i];
        if (&v->group[member->group] != group) {
            continue;
        }
        double weight = v->weight[member->component];
        thi_blas_axpy(M, weight, member->s, d);
        memcpy(a, member->m, (size_t)M * sizeof(double));
        thi_blas_trsv(THI_N, group->L, a);
        for (int64_t c = 0; c < M; c++) {
            thi_blas_axpy(M - c, weight * a[c], a + c, P.data + c + c * M);
        }
    }
    for (int64_t c = 0; c < M; c++) {
        P.data[c + c * M] -= (double)group->latents;
        for (int64_t r = 0; r < M; r++) {
            ND.data[r + c * M] = d[c] * group->N.data[r + c * M];
        }
    }
    return thi_multiply(ctx, THI_N, THI_T, 1.0, ND, group->N, 1.0, P, true);
}

static thiele_status end_diagonal(thi_variational *v, thiele_context *ctx, bool prior, double *q_bar)
{
    int64_t M = v->shape.inducing;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < v->members; i++) {
        thi_member *member = &v->member[i];
        thi_blas_axpy(M, 1.0, member->g_sum, member->mbar);
        thi_blas_axpy(M, 1.0, member->h_sum, member->sbar);
        if (q_bar != NULL) {
            THI_TRY(thi_q_give(v, ctx, member, (thi_matrix){0}, q_bar));
        }
    }
    for (int g = 0; prior && thi_is_plain_diagonal(v) && g < v->groups && status == THIELE_OK; g++) {
        status = plain_cross(v, ctx, &v->group[g]);
    }
out:
    return status;
}

/* --- Kbar --------------------------------------------------------------------------------------------------------- */

/* Rows of a band of R = Phi(P) L^-1, Phi halving the diagonal: lower triangular, so a leading block of L is enough. */
static thiele_status right_band(void *arg, int64_t block, int thread)
{
    (void)thread;
    const band_task *t = arg;
    int64_t M = t->P.rows, band = thi_bands(M) - 1 - block, first = band * THI_BAND, end = thi_band_end(band, M);
    thi_matrix R = thi_matrix_block(t->R, first, 0, end - first, end);
    for (int64_t c = 0; c < end; c++) {
        const double *from = t->P.data + first + c * M;
        double *to = R.data + c * R.ld;
        for (int64_t r = 0; r < end - first; r++) {
            int64_t below = first + r - c;
            to[r] = below > 0 ? 0.5 * from[r] : below == 0 ? 0.25 * from[r] : 0.0;
        }
    }
    thi_blas_trsm(THI_RIGHT, THI_N, 1.0, thi_matrix_block(t->L, 0, 0, end, end), R);
    return THIELE_OK;
}

/* Columns of a band of L^-T R. */
static thiele_status left_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const band_task *t = arg;
    int64_t M = t->P.rows, first = band * THI_BAND, end = thi_band_end(band, M);
    thi_matrix R = thi_matrix_block(t->R, 0, first, M, end - first);
    for (int64_t c = 0; c < R.cols; c++) {
        memset(R.data + c * R.ld, 0, (size_t)first * sizeof(double));
    }
    thi_blas_trsm(THI_LEFT, THI_T, 1.0, t->L, R);
    return THIELE_OK;
}

/* Columns of a band of Kbar = R + R', lower triangle, into P. */
static thiele_status sum_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const band_task *t = arg;
    int64_t M = t->P.rows, first = band * THI_BAND, end = thi_band_end(band, M);
    for (int64_t r = first; r < M; r++) {
        const double *across = t->R.data + r * M;
        for (int64_t c = first; c < end && c <= r; c++) {
            t->P.data[r + c * M] = t->R.data[r + c * M] + across[c];
        }
    }
    return THIELE_OK;
}

/* P becomes the lower triangle of Kbar, which goes to the kernel. */
static thiele_status end_group(thi_variational *v, thiele_context *ctx, thi_group *group, bool wants_Z)
{
    band_task t = {.v = v, .L = group->L, .P = group->P, .R = v->work[0]};
    int64_t bands = thi_bands(v->shape.inducing);
    thiele_status status = THIELE_OK;
    THI_TRY(thi_parallel_work(ctx, bands, cube(v) / 3, right_band, &t));
    THI_TRY(thi_parallel_work(ctx, bands, cube(v), left_band, &t));
    THI_TRY(thi_parallel_work(ctx, bands, square_work(v), sum_band, &t));
    /* thi_chol_jitter left Kzz above the diagonal. */
    THI_TRY(thi_kernel_pull_known(group->prior.kernel, ctx, &group->z, &group->z, group->P, group->L, true,
                                  group->theta_bar, wants_Z ? group->Z_bar : NULL));
out:
    return status;
}

static void add(int64_t n, const double *from, double *const *to, int g)
{
    for (int64_t i = 0; to != NULL && to[g] != NULL && i < n; i++) {
        to[g][i] += from[i];
    }
}

static thiele_status end_prior(thi_variational *v, thiele_context *ctx, const thi_adjoints *adjoints)
{
    int D = v->shape.dims;
    for (int g = 0; g < v->groups; g++) {
        thi_group *group = &v->group[g];
        bool wants_Z = adjoints->Z != NULL && adjoints->Z[g] != NULL;
        thiele_status status = end_group(v, ctx, group, wants_Z);
        if (status != THIELE_OK) {
            return status;
        }
        add(thiele_kernel_parameters(group->prior.kernel), group->theta_bar, adjoints->theta, g);
        add(thi_mean_parameters(group->prior.mean, D), group->mean_bar, adjoints->mean, g);
        add(D * v->shape.inducing, group->Z_bar, adjoints->Z, g);
    }
    return THIELE_OK;
}

static thiele_status clear_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    thi_matrix A = *(const thi_matrix *)arg;
    int64_t first = band * THI_BAND;
    memset(A.data + first * A.ld, 0, (size_t)((thi_band_end(band, A.cols) - first) * A.ld) * sizeof(double));
    return THIELE_OK;
}

/* Zeros in place of what pulls would have written first: T, or P of a diagonal family; and in P of most full ones. */
static thiele_status clear_unwritten(thi_variational *v, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    for (int i = 0; i < v->members && thi_is_full(v) && !v->pulled && status == THIELE_OK; i++) {
        status = thi_parallel_work(ctx, thi_bands(v->shape.inducing), square_work(v), clear_band, &v->member[i].T);
    }
    bool written = thi_is_full(v) ? v->relieved : v->pulled;
    for (int g = 0; g < v->groups && !written && status == THIELE_OK; g++) {
        status = thi_parallel_work(ctx, thi_bands(v->shape.inducing), square_work(v), clear_band, &v->group[g].P);
    }
    return status;
}

thiele_status thi_variational_end(thi_variational *v, thiele_context *ctx, const double *expected, double *kl,
                                  const thi_adjoints *adjoints)
{
    thiele_status status = THIELE_OK;
    THI_TRY(thi_quick_end(v, ctx));
    THI_TRY(thi_kl_value(v, ctx, kl));
    if (adjoints == NULL) {
        return status;
    }
    bool prior = !v->narrow && (adjoints->theta != NULL || adjoints->mean != NULL || adjoints->Z != NULL);
    THI_TRY(clear_unwritten(v, ctx));
    THI_TRY(thi_kl_adjoint(v, ctx, expected));
    for (int i = 0; i < v->members && thi_is_full(v); i++) {
        THI_TRY(end_full(v, ctx, &v->member[i], prior, adjoints->q));
    }
    if (v->shape.diagonal) {
        THI_TRY(end_diagonal(v, ctx, prior, adjoints->q));
    }
    if (adjoints->q != NULL && v->sites == NULL) {
        thi_q_give_weights(v, adjoints->q);
    }
    if (prior) {
        THI_TRY(end_prior(v, ctx, adjoints));
    }
out:
    return status;
}

/*
 * Marginals and adjoints by products with Kzz^-1 (the end of math.md section 2). With
 *   D = L^-T (S - I) L^-1       a = L^-T m       X = k(X, Z) D
 * of a member, mu = o + k(X, Z) a, v_n = k_nn + k_n' D k_n and k(X, Z)bar = g a' + 2 diag(h) X: one product of 2 M^2
 * flops a row serves both, and k(Z, X) diag(h) k(X, Z) takes M^2 more; no triangular one is left. It is whitened once
 * at the end. Besides, 6 M^3 flops an evaluation.
 *
 * A variance is then right to about eps tr(Kzz^-1) k(z, z) (the mean one), where solves are right to about eps. An
 * evaluation goes this way only where that is below ACCURACY, and far enough below for the sites; else as always.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "posterior/variational_internal.h"

#define ACCURACY       1e-7
#define SITES_ACCURACY 1e-3

/* eps tr(Kzz^-1) tr(Kzz) / M */
static double lost_digits(const thi_group *group)
{
    double trace = 0.0, inverse = 0.0;
    int64_t M = group->L.rows;
    for (int64_t j = 0; j < M; j++) {
        const double *L = group->L.data + j + j * M, *N = group->N.data + j + j * M;
        trace += thi_blas_dot(M - j, L, L);
        inverse += thi_blas_dot(M - j, N, N);
    }
    return DBL_EPSILON * inverse * trace / (double)M;
}

/* M x M products of which one side is triangular, in bands of rows or columns: what is zero is left out. */
typedef struct form_task {
    thi_matrix N, Ls, R, D, T;
} form_task;

/* Columns of a band of R = Ls'N. */
static thiele_status root_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const form_task *t = arg;
    int64_t M = t->N.rows, first = band * THI_BAND, cols = thi_band_end(band, M) - first;
    thi_blas_gemm(THI_T, THI_N, 1.0, thi_matrix_block(t->Ls, first, 0, M - first, M),
                  thi_matrix_block(t->N, first, first, M - first, cols), 0.0,
                  thi_matrix_block(t->R, 0, first, M, cols));
    return THIELE_OK;
}

/* Rows of a band of D = R'R - N'N, up to the diagonal; the longest first. */
static thiele_status form_band(void *arg, int64_t block, int thread)
{
    (void)thread;
    const form_task *t = arg;
    int64_t M = t->N.rows, band = thi_bands(M) - 1 - block, first = band * THI_BAND, end = thi_band_end(band, M);
    thi_matrix D = thi_matrix_block(t->D, first, 0, end - first, end);
    thi_blas_gemm(THI_T, THI_N, -1.0, thi_matrix_block(t->N, first, first, M - first, end - first),
                  thi_matrix_block(t->N, first, 0, M - first, end), 0.0, D);
    thi_blas_gemm(THI_T, THI_N, 1.0, thi_matrix_block(t->R, 0, first, M, end - first),
                  thi_matrix_block(t->R, 0, 0, M, end), 1.0, D);
    return THIELE_OK;
}

/* Columns of a band of R = T N'. */
static thiele_status right_band(void *arg, int64_t block, int thread)
{
    (void)thread;
    const form_task *t = arg;
    int64_t M = t->N.rows, band = thi_bands(M) - 1 - block, first = band * THI_BAND, end = thi_band_end(band, M);
    thi_blas_gemm(THI_N, THI_T, 1.0, thi_matrix_block(t->T, 0, 0, M, end),
                  thi_matrix_block(t->N, first, 0, end - first, end), 0.0,
                  thi_matrix_block(t->R, 0, first, M, end - first));
    return THIELE_OK;
}

/* Rows of a band of T = N R, up to the diagonal. */
static thiele_status left_band(void *arg, int64_t block, int thread)
{
    (void)thread;
    const form_task *t = arg;
    int64_t M = t->N.rows, band = thi_bands(M) - 1 - block, first = band * THI_BAND, end = thi_band_end(band, M);
    thi_blas_gemm(THI_N, THI_N, 1.0, thi_matrix_block(t->N, first, 0, end - first, end),
                  thi_matrix_block(t->R, 0, 0, end, end), 0.0, thi_matrix_block(t->T, first, 0, end - first, end));
    return THIELE_OK;
}

/* Of about M^3 flops. */
static thiele_status by_bands(const thi_variational *v, thiele_context *ctx, thi_block_fn fn, form_task *t)
{
    double M = (double)v->shape.inducing;
    return thi_parallel_work(ctx, thi_bands(v->shape.inducing), M * M * M, fn, t);
}

/* D and a of a member. */
static thiele_status make_form(thi_variational *v, thiele_context *ctx, thi_member *member)
{
    const thi_group *group = &v->group[member->group];
    form_task t = {.N = group->N, .Ls = member->Ls, .R = v->work[0], .D = member->D};
    thiele_status status = THIELE_OK;
    memcpy(member->a, member->m, (size_t)t.N.rows * sizeof(double));
    thi_blas_trsv(THI_T, group->L, member->a);
    THI_TRY(by_bands(v, ctx, root_band, &t));
    THI_TRY(by_bands(v, ctx, form_band, &t));
    THI_TRY(thi_mirror(ctx, member->D));
out:
    return status;
}

/*
 * How many digits a group may lose. Natural steps add up sites over all rows: the rounding of T, lost_digits times as
 * large as T, must stay far below the I that it is added to; the smallest entry of Ls tells how large T is. Where q is
 * still the prior, it does not tell how large T will be.
 */
static double permitted(const thi_variational *v, int group)
{
    double least = 1.0, M = (double)v->shape.inducing;
    for (int i = 0; i < v->members; i++) {
        thi_matrix Ls = v->member[i].Ls;
        for (int64_t j = 0; v->member[i].group == group && j < Ls.rows; j++) {
            least = fmin(least, Ls.data[j + j * Ls.ld] * Ls.data[j + j * Ls.ld]);
        }
    }
    return !v->shape.steps ? ACCURACY : least > 0.5 ? 0.0 : fmin(ACCURACY, SITES_ACCURACY * least / M);
}

thiele_status thi_quick_begin(thi_variational *v, thiele_context *ctx, bool fresh)
{
    thiele_status status = THIELE_OK;
    bool raw = v->shape.quick;
    for (int g = 0; g < v->groups && raw && fresh; g++) {
        THI_TRY(thi_group_invert(ctx, &v->group[g]));
    }
    for (int g = 0; g < v->groups && raw; g++) {
        raw = lost_digits(&v->group[g]) < permitted(v, g);
    }
    for (int i = 0; i < v->members && raw; i++) {
        THI_TRY(make_form(v, ctx, &v->member[i]));
    }
    v->raw = raw;
    v->raw_sums = false;
out:
    return status;
}

thiele_status thi_quick_end(thi_variational *v, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    for (int i = 0; i < v->members && v->raw_sums; i++) {
        thi_member *member = &v->member[i];
        const thi_group *group = &v->group[member->group];
        form_task t = {.N = group->N, .R = v->work[0], .T = member->T};
        THI_TRY(thi_mirror(ctx, member->T));
        THI_TRY(by_bands(v, ctx, right_band, &t));
        THI_TRY(by_bands(v, ctx, left_band, &t));
        thi_blas_trsv(THI_N, group->L, member->g_sum);
    }
    v->raw_sums = false;
out:
    return status;
}

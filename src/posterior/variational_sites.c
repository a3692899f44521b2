/*
 * q by sites (math.md section 3): S^-1 = I + T, S^-1 m = t in w = L^-1 u. The lower factor Ls with S = Ls Ls' is had
 * from I + T with rows and columns in reverse order, J (I + T) J = C C', as Ls = J C^-T J: 2 M^3/3 flops.
 *
 * Moving to another L: with C = L_old^-1 L_new, T becomes C'T C and t becomes C't; in u they are the same.
 *
 * The gradient in L of the collapsed bound at sites that are fixed in u: with Th = V diag(h) V', c = (I - S)(V g - m)
 * the part at fixed (m, S), -m (V g)' - 2 (S - I) Th, and that through m and S come to the symmetric
 *   P = L'Lbar = (I - S)(2 Th - I)(I - S) - m m' - m c' - c m'
 */
#include "posterior/variational_internal.h"

#include <string.h>

thiele_status thi_sites_alloc(thi_sites *sites, thiele_context *ctx, int64_t M)
{
    *sites = (thi_sites){0};
    thiele_status status;
    THI_TRY(thi_natural_open(&sites->sum, ctx, M));
    THI_TRY(thi_matrix_alloc(&sites->L, ctx, M, M));
    return THIELE_OK;
out:
    thi_sites_free(sites);
    return status;
}

void thi_sites_free(thi_sites *sites)
{
    thi_natural_close(&sites->sum);
    thi_free(sites->L.data);
    *sites = (thi_sites){0};
}

static bool same_lower(thi_matrix A, thi_matrix B)
{
    bool same = true;
    for (int64_t j = 0; j < A.cols && same; j++) {
        same = memcmp(A.data + j + j * A.ld, B.data + j + j * B.ld, (size_t)(A.rows - j) * sizeof(double)) == 0;
    }
    return same;
}

/* T = 0 and t = 0 are the same in any coordinates, and need no factor to have come with. */
static bool is_zero(const thi_sites *sites)
{
    int64_t M = sites->sum.T.rows;
    bool zero = true;
    for (int64_t j = 0; j < M && zero; j++) {
        zero = sites->sum.t[j] == 0.0;
        for (int64_t i = j; i < M && zero; i++) {
            zero = sites->sum.T.data[i + j * sites->sum.T.ld] == 0.0;
        }
    }
    return zero;
}

/* To the coordinates of L. */
static thiele_status move(thi_variational *v, thiele_context *ctx, thi_sites *sites, thi_matrix L)
{
    thi_matrix C = v->work[0], TC = v->work[1];
    thi_matrix t = thi_matrix_view(sites->sum.t, L.rows, 1, L.rows);
    thiele_status status = THIELE_OK;
    thi_tri_copy_clean(L, C);
    THI_TRY(thi_tri_solve(ctx, THI_N, sites->L, C));
    THI_TRY(thi_mirror(ctx, sites->sum.T));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sites->sum.T, C, 0.0, TC, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, C, TC, 0.0, sites->sum.T, true));
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, C, t);
out:
    return status;
}

/* Columns of a band of J (I + T) J, lower triangle, or of its inverse factor back. */
typedef struct flip_task {
    thi_matrix from, to;
    double add;
} flip_task;

static thiele_status flip_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const flip_task *t = arg;
    int64_t M = t->from.rows, first = band * THI_BAND, end = thi_band_end(band, M);
    for (int64_t i = first; i < M; i++) {
        const double *from = t->from.data + (M - 1 - i) * t->from.ld;
        double *to = t->to.data + i;
        for (int64_t j = first; j < end && j <= i; j++) {
            to[j * t->to.ld] = from[M - 1 - j] + (i == j ? t->add : 0.0);
        }
    }
    return THIELE_OK;
}

/* to_ij = from_(M-1-j)(M-1-i) for i >= j: the transpose in reverse order, whose lower triangle is that of `from`. */
static thiele_status flip(thiele_context *ctx, thi_matrix from, double add, thi_matrix to)
{
    flip_task t = {from, to, add};
    return thi_parallel_work(ctx, thi_bands(from.rows), 8.0 * (double)from.rows * (double)from.rows, flip_band, &t);
}

/* Ls and m of a member from its sites. */
static thiele_status solve(thi_variational *v, thiele_context *ctx, const thi_sites *sites, thi_member *member)
{
    thi_matrix C = v->work[0], m = thi_matrix_view(member->m, C.rows, 1, C.rows);
    thiele_status status = THIELE_OK;
    THI_TRY(flip(ctx, sites->sum.T, 1.0, C));
    status = thi_chol(ctx, C);
    if (status == THIELE_ERROR_NUMERIC) {
        return thi_fail(
            ctx, status,
            "the sites of latent function %d do not give a proper posterior: I + T is not positive definite "
            "(take a shorter step)",
            member->latent + 1);
    }
    THI_TRY(status);
    THI_TRY(thi_tri_inverse(ctx, C));
    THI_TRY(flip(ctx, C, 0.0, member->Ls));
    memcpy(member->m, sites->sum.t, (size_t)C.rows * sizeof(double));
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, member->Ls, m);
    thi_blas_trmm(THI_LEFT, THI_N, 1.0, member->Ls, m);
out:
    return status;
}

thiele_status thi_sites_take(thi_variational *v, thiele_context *ctx, thi_sites *sites)
{
    thi_q_take_weights(v, NULL);
    thiele_status status = THIELE_OK;
    for (int i = 0; i < v->members && status == THIELE_OK; i++) {
        thi_matrix L = v->group[v->member[i].group].L;
        if (!same_lower(sites[i].L, L)) {
            status = is_zero(&sites[i]) ? THIELE_OK : move(v, ctx, &sites[i], L);
            if (status != THIELE_OK) {
                return status;
            }
            thi_tri_copy_clean(L, sites[i].L);
        }
        status = solve(v, ctx, &sites[i], &v->member[i]);
    }
    return status;
}

/* T = (1 - rho) T + by A, lower triangles; A is left out when `by` is zero. */
static void blend(thi_matrix T, double rho, double by, thi_matrix A)
{
    for (int64_t j = 0; j < T.cols; j++) {
        double *to = T.data + j * T.ld;
        const double *from = A.data + j * A.ld;
        for (int64_t i = j; i < T.rows; i++) {
            to[i] = (1.0 - rho) * to[i] + (by != 0.0 ? by * from[i] : 0.0);
        }
    }
}

void thi_variational_step(thi_variational *v, double rho, thi_sites *sites)
{
    int64_t M = v->shape.inducing;
    double by = v->pulled ? -2.0 * rho : 0.0; /* without pulls nothing is in T */
    for (int i = 0; i < v->members; i++) {
        const thi_member *member = &v->member[i];
        double *t = sites[i].sum.t;
        blend(sites[i].sum.T, rho, by, member->T);
        for (int64_t r = 0; r < M; r++) {
            t[r] = (1.0 - rho) * t[r] + rho * member->g_sum[r];
        }
        if (v->pulled) {
            thi_blas_symm(THI_LEFT, by, member->T, thi_matrix_view(member->m, M, 1, M), 1.0,
                          thi_matrix_view(t, M, 1, M));
        }
    }
}

/* D = I - S, full. */
static thiele_status one_less(thiele_context *ctx, const thi_member *member, thi_matrix D)
{
    thiele_status status = thi_multiply(ctx, THI_N, THI_T, -1.0, member->Ls, member->Ls, 0.0, D, true);
    for (int64_t j = 0; j < D.cols; j++) {
        D.data[j + j * D.ld] += 1.0;
    }
    return status == THIELE_OK ? thi_mirror(ctx, D) : status;
}

/* X = 2 X - D */
static void twice_less(thi_matrix D, thi_matrix X)
{
    for (int64_t i = 0; i < D.rows * D.cols; i++) {
        X.data[i] = 2.0 * X.data[i] - D.data[i];
    }
}

thiele_status thi_sites_adjoint(thi_variational *v, thiele_context *ctx, const thi_member *member)
{
    thi_matrix D = v->work[0], X = v->work[1], P = v->group[member->group].P;
    int64_t M = v->shape.inducing;
    double *c = member->sbar, *residual = member->mbar;
    thiele_status status = THIELE_OK;
    THI_TRY(one_less(ctx, member, D));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, member->T, D, 0.0, X, false));
    twice_less(D, X);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, D, X, 1.0, P, true));
    for (int64_t i = 0; i < M; i++) {
        residual[i] = member->g_sum[i] - member->m[i];
    }
    thi_blas_gemv(THI_N, 1.0, D, residual, 0.0, c);
    for (int64_t j = 0; j < M; j++) {
        const double *m = member->m;
        for (int64_t i = j; i < M; i++) {
            P.data[i + j * M] -= m[i] * m[j] + m[i] * c[j] + c[i] * m[j];
        }
    }
out:
    return status;
}

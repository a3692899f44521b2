/* Observations in place of rows: from sites, and as sites again of another basis. See anchor.h. */
#include "fit/anchor.h"

#include <math.h>
#include <string.h>

/* Of the largest pivot: what subtraction and rounding leave of nothing. */
static const double NOTHING = 1e-10;

/* --- from sites ------------------------------------------------------------------------------------------------------
 */

static void swap_rows(thi_matrix F, int64_t columns, int64_t i, int64_t k)
{
    for (int64_t c = 0; c < columns; c++) {
        double kept = F.data[i + c * F.ld];
        F.data[i + c * F.ld] = F.data[k + c * F.ld];
        F.data[k + c * F.ld] = kept;
    }
}

/*
 * Pivoted Cholesky of T = F F' (Higham 2002, section 10.3): rows of F in the order of the pivots, of which there are
 * *rank. left: M numbers of work.
 */
static void factor(const thi_natural *sum, thi_matrix F, int64_t *order, double *left, int64_t *rank)
{
    thi_matrix T = sum->T;
    int64_t M = F.rows;
    double largest = 0.0;
    for (int64_t i = 0; i < M; i++) {
        order[i] = i;
        left[i] = T.data[i + i * T.ld];
        largest = fmax(largest, left[i]);
    }
    for (*rank = 0; *rank < M; ++*rank) {
        int64_t at = *rank, best = at;
        for (int64_t i = at + 1; i < M; i++) {
            best = left[i] > left[best] ? i : best;
        }
        if (!(left[best] > NOTHING * largest)) {
            break;
        }
        int64_t row = order[best];
        double pivot = sqrt(left[best]);
        order[best] = order[at];
        order[at] = row;
        left[best] = left[at];
        swap_rows(F, at, at, best);
        double *column = F.data + at * F.ld;
        column[at] = pivot;
        for (int64_t i = at + 1; i < M; i++) {
            int64_t low = order[i] < row ? order[i] : row, high = order[i] < row ? row : order[i];
            column[i] = T.data[high + low * T.ld];
        }
        for (int64_t c = 0; c < at; c++) {
            const double *before = F.data + c * F.ld;
            thi_blas_axpy(M - at - 1, -before[at], before + at + 1, column + at + 1);
        }
        for (int64_t i = at + 1; i < M; i++) {
            column[i] /= pivot;
            left[i] -= column[i] * column[i];
        }
    }
}

/* B = L^-T F with the rows of F back in their order, and value = b + B'm(Z), where the rows of the pivots give b. */
static thiele_status finish(thi_anchor *a, thiele_context *ctx, const thi_online_latent *l, const thi_natural *sum,
                            thi_matrix F, const int64_t *order)
{
    double *mean = NULL;
    thiele_status status;
    for (int64_t i = 0; i < a->count; i++) {
        a->value[i] = sum->t[order[i]];
    }
    thi_blas_trsv(THI_N, thi_matrix_view(F.data, a->count, a->count, F.ld), a->value);
    for (int64_t c = 0; c < a->count; c++) {
        for (int64_t i = 0; i < a->points; i++) {
            a->B.data[order[i] + c * a->B.ld] = F.data[i + c * F.ld];
        }
    }
    THI_TRY(thi_tri_solve(ctx, THI_T, l->basis->L, a->B));
    THI_TRY(thi_alloc(ctx, &mean, (size_t)a->points, sizeof *mean));
    THI_TRY(thi_online_shift(l, ctx, a->points, a->Z, mean));
    thi_blas_gemv(THI_T, 1.0, a->B, mean, 1.0, a->value);
out:
    thi_free(mean);
    return status;
}

thiele_status thi_anchor_take(thi_anchor *a, thiele_context *ctx, const thi_online_latent *l, const thi_natural *sum)
{
    const thi_predictor *p = l->basis;
    size_t M = (size_t)p->n, numbers = M * (size_t)p->kernel->dims;
    int64_t *order = NULL;
    double *left = NULL;
    thi_matrix F = {0};
    thiele_status status;
    *a = (thi_anchor){.points = p->n};
    THI_TRY(thi_alloc(ctx, &order, M, sizeof *order));
    THI_TRY(thi_alloc(ctx, &left, M, sizeof *left));
    THI_TRY(thi_matrix_alloc(&F, ctx, p->n, p->n));
    factor(sum, F, order, left, &a->count);
    THI_TRY(thi_alloc(ctx, &a->Z, numbers, sizeof *a->Z));
    memcpy(a->Z, p->basis, numbers * sizeof *a->Z);
    THI_TRY(thi_matrix_alloc(&a->B, ctx, p->n, a->count));
    THI_TRY(thi_alloc(ctx, &a->value, (size_t)a->count, sizeof *a->value));
    if (a->count > 0) {
        THI_TRY(finish(a, ctx, l, sum, F, order));
    }
out:
    thi_free(order);
    thi_free(left);
    thi_free(F.data);
    return status;
}

void thi_anchor_close(thi_anchor *a)
{
    thi_free(a->Z);
    thi_free(a->B.data);
    thi_free(a->value);
    *a = (thi_anchor){0};
}

/* --- as sites --------------------------------------------------------------------------------------------------------
 */

/* H = L1^-1 k(Z1, Z) B and J = B'k(Z, Z) B - H'H. */
static thiele_status project(thi_anchored *s, thiele_context *ctx, const thi_anchor *a, const thi_predictor *p)
{
    thi_inputs Z = {0}, Z1 = {0};
    thi_matrix K = {0}, KB = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&Z, ctx, p->kernel, a->points, a->Z));
    THI_TRY(thi_inputs_make(&Z1, ctx, p->kernel, p->n, p->basis));
    THI_TRY(thi_matrix_alloc(&K, ctx, p->n, a->points));
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &Z1, &Z, K, false));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, K, a->B, 0.0, s->H, false));
    THI_TRY(thi_tri_solve(ctx, THI_N, p->L, s->H));
    thi_free(K.data);
    K = (thi_matrix){0};
    THI_TRY(thi_matrix_alloc(&K, ctx, a->points, a->points));
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &Z, &Z, K, true));
    thi_symmetrise(K);
    THI_TRY(thi_matrix_alloc(&KB, ctx, a->points, a->count));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, K, a->B, 0.0, KB, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, a->B, KB, 0.0, s->J, true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, s->H, s->H, 1.0, s->J, true));
out:
    thi_inputs_clear(&Z);
    thi_inputs_clear(&Z1);
    thi_free(K.data);
    thi_free(KB.data);
    return status;
}

thiele_status thi_anchored_open(thi_anchored *s, thiele_context *ctx, const thi_anchor *a, const thi_online_latent *l)
{
    double *mean = NULL;
    thiele_status status;
    *s = (thi_anchored){0};
    THI_TRY(thi_matrix_alloc(&s->H, ctx, l->basis->n, a->count));
    THI_TRY(thi_matrix_alloc(&s->J, ctx, a->count, a->count));
    THI_TRY(thi_alloc(ctx, &s->excess, (size_t)a->count, sizeof *s->excess));
    if (a->count == 0) {
        return THIELE_OK;
    }
    THI_TRY(project(s, ctx, a, l->basis));
    THI_TRY(thi_alloc(ctx, &mean, (size_t)a->points, sizeof *mean));
    THI_TRY(thi_online_shift(l, ctx, a->points, a->Z, mean));
    memcpy(s->excess, a->value, (size_t)a->count * sizeof *s->excess);
    thi_blas_gemv(THI_T, -1.0, a->B, mean, 1.0, s->excess);
out:
    thi_free(mean);
    return status;
}

void thi_anchored_close(thi_anchored *s)
{
    thi_free(s->H.data);
    thi_free(s->J.data);
    thi_free(s->excess);
    *s = (thi_anchored){0};
}

thiele_status thi_anchored_sites(const thi_anchored *s, thiele_context *ctx, double power, thi_natural *sum)
{
    int64_t r = s->J.rows, M = s->H.rows;
    thi_matrix G = {0}, U = {0};
    double *pull = NULL;
    thiele_status status = THIELE_OK;
    thi_natural_zero(sum);
    if (r == 0 || power <= 0.0) {
        return THIELE_OK;
    }
    THI_TRY(thi_matrix_alloc(&G, ctx, r, r));
    THI_TRY(thi_matrix_alloc(&U, ctx, r, M));
    THI_TRY(thi_alloc(ctx, &pull, (size_t)r, sizeof *pull));
    thi_tri_copy(s->J, G);
    for (int64_t i = 0; i < r; i++) {
        /* A variance that the basis leaves over is none where rounding makes it negative. */
        G.data[i + i * r] = fmax(0.0, G.data[i + i * r]) + 1.0 / power;
        for (int64_t k = 0; k < M; k++) {
            U.data[i + k * r] = s->H.data[k + i * M];
        }
    }
    THI_TRY(thi_chol(ctx, G));
    THI_TRY(thi_tri_solve(ctx, THI_N, G, U));
    memcpy(pull, s->excess, (size_t)r * sizeof *pull);
    thi_blas_trsv(THI_N, G, pull);
    thi_blas_gemv(THI_T, 1.0, U, pull, 0.0, sum->t);
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, U, U, 0.0, sum->T, true));
out:
    thi_free(G.data);
    thi_free(U.data);
    thi_free(pull);
    return status;
}

thiele_status thi_natural_evidence(const thi_natural *sum, thiele_context *ctx, double *value)
{
    int64_t M = sum->T.rows;
    thi_matrix C = {0};
    double *m = NULL;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&C, ctx, M, M));
    THI_TRY(thi_alloc(ctx, &m, (size_t)M, sizeof *m));
    THI_TRY(thi_natural_root(sum, ctx, C));
    memcpy(m, sum->t, (size_t)M * sizeof *m);
    thi_blas_trsv(THI_N, C, m);
    *value = 0.5 * (thi_blas_dot(M, m, m) - thi_chol_logdet(C));
out:
    thi_free(C.data);
    thi_free(m);
    return status;
}

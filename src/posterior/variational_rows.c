/*
 * Marginals of rows and their adjoints (math.md section 2; savigp-jmlr eqs. 18, 19 and 23, appendices C and D). In the
 * layout of variational_internal.h, for a full S,
 *   V = k(X, Z) L^-T       W = V Ls       mu = o + V m       v = k - |V_n|^2 + |W_n|^2
 *   Vbar = g m' + 2 diag(h) (W Ls' - V)       k(X, Z)bar = Vbar L^-1       T += V' diag(h) V
 * and where the residual r = k - |V_n|^2 has the adjoint h + c in place of h (math.md section 9)
 *   Vbar -= 2 diag(c) V       kbar = h + c       P += 2 V' diag(c) V
 *
 * Five products of M^2 flops a row, all in blocks of rows with single-threaded BLAS but for T, which is cut into tiles.
 *
 * A raw evaluation (variational_quick.c) has k(X, Z) in place of V, and one product in place of four.
 *
 * A diagonal S, in w: v = k - |V_n|^2 + (V . V) s, Vbar = g m' + 2 diag(h) V diag(s - 1), P -= Vbar'V. In u, with
 * A = V L^-1 in place of V: Abar = g m' + 2 diag(h) A diag(s), C = Abar L^-T, and with H the sum of h over all members
 *   Vbar = C - 2 diag(H) V       P -= E'V + V'E,  E = C - diag(H) V
 */
#include "posterior/variational_internal.h"

#include <float.h>
#include <string.h>

#include "linalg/vector.h"

typedef struct rows_task {
    thi_variational *v;
    thi_group *group;
    thi_member *member; /* of a full family: the one whose turn it is */
    bool last;          /* of its group */
    int64_t n, size;    /* rows in all, in a block */
    double *mu, *variance;
    const double *g, *h, *c;
} rows_task;

/* The size depends on n alone: at most THI_ROWS, all blocks about equal. */
static int64_t block_size(int64_t n)
{
    int64_t blocks = (n + THI_ROWS - 1) / THI_ROWS;
    return blocks > 0 ? ((n + blocks - 1) / blocks + 7) / 8 * 8 : 8;
}

static int64_t block_count(const rows_task *t)
{
    return (t->n + t->size - 1) / t->size;
}

/* Rows of the block, as a part of a rows x M matrix. */
static thi_matrix block_of(const rows_task *t, thi_matrix A, int64_t block)
{
    int64_t first = block * t->size;
    int64_t rows = t->n - first < t->size ? t->n - first : t->size;
    return thi_matrix_block(A, first, 0, rows, A.cols);
}

/* Where the number of row i of a member stands in mu, v, g, h: Q x n x K. */
static int64_t place(const rows_task *t, const thi_member *member, int64_t i)
{
    return member->latent + t->v->shape.latents * (i + t->n * member->component);
}

static void gather(const rows_task *t, const thi_member *member, const double *from, int64_t first, int64_t rows,
                   double *to)
{
    for (int64_t i = 0; i < rows; i++) {
        to[i] = from[place(t, member, first + i)];
    }
}

/* h + c: the adjoint of what is left of the prior. */
static void gather_less(const rows_task *t, const thi_member *member, int64_t block, int64_t rows, const double *h,
                        double *less)
{
    memset(less, 0, (size_t)rows * sizeof *less);
    if (t->c != NULL) {
        gather(t, member, t->c, block * t->size, rows, less);
    }
    for (int64_t i = 0; i < rows; i++) {
        less[i] += h[i];
    }
}

static void copy_block(thi_matrix from, thi_matrix to)
{
    for (int64_t c = 0; c < from.cols; c++) {
        memcpy(to.data + c * to.ld, from.data + c * from.ld, (size_t)from.rows * sizeof(double));
    }
}

/* out_i = sum over columns of weight_c A_ic^2; weight NULL: 1 */
static void squares(thi_matrix A, const double *weight, double *restrict out)
{
    memset(out, 0, (size_t)A.rows * sizeof(double));
    for (int64_t c = 0; c < A.cols; c++) {
        const double *column = A.data + c * A.ld;
        double s = weight != NULL ? weight[c] : 1.0;
        for (int64_t i = 0; i < A.rows; i++) {
            out[i] += s * (column[i] * column[i]);
        }
    }
}

/* out_i = sum over columns of A_ic B_ic */
static void products(thi_matrix A, thi_matrix B, double *out)
{
    memset(out, 0, (size_t)A.rows * sizeof(double));
    for (int64_t c = 0; c < A.cols; c++) {
        thi_vector()->add_times(A.rows, A.data + c * A.ld, B.data + c * B.ld, out);
    }
}

/* --- marginals ---------------------------------------------------------------------------------------------------- */

static void member_marginals(const rows_task *t, const thi_member *member, int64_t block)
{
    const thi_group *group = t->group;
    int64_t first = block * t->size;
    thi_matrix V = block_of(t, group->V, block), base = V;
    const double *m = member->m;
    double mu[THI_ROWS], plus[THI_ROWS];
    if (t->v->raw) {
        thi_matrix X = block_of(t, member->W, block);
        thi_blas_gemm(THI_N, THI_N, 1.0, V, member->D, 0.0, X);
        products(V, X, plus);
        m = member->a;
    } else if (thi_is_full(t->v)) {
        thi_matrix W = block_of(t, member->W, block);
        copy_block(V, W);
        thi_blas_trmm(THI_RIGHT, THI_N, 1.0, member->Ls, W);
        squares(W, NULL, plus);
    } else {
        base = thi_is_plain_diagonal(t->v) ? block_of(t, group->A, block) : V;
        squares(base, member->s, plus);
    }
    thi_blas_gemv(THI_N, 1.0, base, m, 0.0, mu);
    for (int64_t i = 0; i < V.rows; i++) {
        int64_t at = place(t, member, first + i);
        double k = group->k[first + i], variance = k - group->norm[first + i] + plus[i];
        t->mu[at] = group->offset[first + i] + mu[i];
        /* Rounding may make it negative. */
        t->variance[at] = variance > DBL_EPSILON * k ? variance : DBL_EPSILON * k;
    }
}

static thiele_status marginals_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    const rows_task *t = arg;
    thi_group *group = t->group;
    thi_matrix V = block_of(t, group->V, block);
    if (t->v->raw) {
        memset(group->norm + block * t->size, 0, (size_t)V.rows * sizeof(double));
    } else {
        thi_blas_trsm(THI_RIGHT, THI_T, 1.0, group->L, V);
        squares(V, NULL, group->norm + block * t->size);
    }
    if (thi_is_plain_diagonal(t->v)) {
        thi_matrix A = block_of(t, group->A, block);
        copy_block(V, A);
        thi_blas_trsm(THI_RIGHT, THI_N, 1.0, group->L, A);
    }
    for (int i = 0; i < t->v->members; i++) {
        if (&t->v->group[t->v->member[i].group] == group) {
            member_marginals(t, &t->v->member[i], block);
        }
    }
    return THIELE_OK;
}

/* Flops of `passes` triangular products over the rows. */
static double row_flops(const rows_task *t, double passes)
{
    double M = (double)t->v->shape.inducing;
    return passes * (double)t->n * M * M;
}

thiele_status thi_variational_marginals(thi_variational *v, thiele_context *ctx, int64_t n, const double *X, double *mu,
                                        double *variance)
{
    thiele_status status = THIELE_OK;
    v->rows = n;
    for (int g = 0; g < v->groups; g++) {
        thi_group *group = &v->group[g];
        const thi_prior *prior = &group->prior;
        rows_task t = {.v = v, .group = group, .n = n, .size = block_size(n), .mu = mu, .variance = variance};
        thi_inputs_clear(&group->x);
        THI_TRY(thi_inputs_make(&group->x, ctx, prior->kernel, n, X));
        thi_mean_fill(prior->mean, prior->mean_parameter, n, v->shape.dims, X, group->offset);
        THI_TRY(thi_kernel_fill_diagonal(prior->kernel, ctx, &group->x, group->k));
        THI_TRY(thi_kernel_fill(prior->kernel, ctx, &group->x, &group->z,
                                thi_matrix_block(group->V, 0, 0, n, v->shape.inducing), false));
        THI_TRY(thi_parallel_work(ctx, block_count(&t), row_flops(&t, 2.0), marginals_block, &t));
    }
out:
    return status;
}

/* --- adjoints ----------------------------------------------------------------------------------------------------- */

/* The block's part of one of the members' sums. */
static double *part_of(const rows_task *t, int64_t block, const double *sum)
{
    return t->v->part + block * t->v->sums_size + (sum - t->v->sums);
}

/* bar (+)= g m' + 2 diag(h) W - 2 diag(less) V: one column at a time */
static void full_bar(const thi_member *member, const double *g, const double *h, const double *less, thi_matrix V,
                     thi_matrix W, thi_matrix bar)
{
    for (int64_t c = 0; c < V.cols; c++) {
        const double *v = V.data + c * V.ld, *w = W.data + c * W.ld;
        double *to = bar.data + c * bar.ld, m = member->m[c];
        for (int64_t i = 0; i < V.rows; i++) {
            double own = g[i] * m + 2.0 * (h[i] * w[i] - less[i] * v[i]);
            to[i] = bar.data == W.data ? own : to[i] + own;
        }
    }
}

/* bar (+)= g a' + diag(h) X */
static void raw_bar(const thi_member *member, const double *g, const double *h, thi_matrix X, thi_matrix bar)
{
    for (int64_t c = 0; c < X.cols; c++) {
        thi_vector()->combine(X.rows, member->a[c], g, X.data + c * X.ld, h, bar.data != X.data, bar.data + c * bar.ld);
    }
}

static thiele_status full_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    const rows_task *t = arg;
    const thi_member *member = t->member;
    thi_matrix V = block_of(t, t->group->V, block), scaled = block_of(t, t->v->scaled, block);
    double g[THI_ROWS], h[THI_ROWS], less[THI_ROWS];
    gather(t, member, t->g, block * t->size, V.rows, g);
    gather(t, member, t->h, block * t->size, V.rows, h);
    for (int64_t c = 0; c < V.cols; c++) {
        thi_vector()->times(V.rows, V.data + c * V.ld, h, scaled.data + c * scaled.ld);
    }
    thi_blas_gemv(THI_T, 1.0, V, g, 0.0, part_of(t, block, member->g_sum));
    if (t->v->narrow) {
        return THIELE_OK;
    }
    thi_matrix W = block_of(t, member->W, block), bar = block_of(t, t->group->bar, block);
    if (t->v->raw) {
        for (int64_t i = 0; i < V.rows; i++) {
            h[i] *= 2.0;
        }
        raw_bar(member, g, h, W, bar);
        return THIELE_OK;
    }
    thi_blas_trmm(THI_RIGHT, THI_T, 1.0, member->Ls, W);
    gather_less(t, member, block, V.rows, h, less);
    full_bar(member, g, h, less, V, W, bar);
    if (t->last) {
        thi_blas_trsm(THI_RIGHT, THI_N, 1.0, t->group->L, bar);
    }
    return THIELE_OK;
}

/* What a member of a diagonal family adds to a block of Abar or Vbar, and its sums. */
static void diagonal_member(const rows_task *t, const thi_member *member, int64_t block, thi_matrix base,
                            thi_matrix bar, bool whitened)
{
    double g[THI_ROWS], h[THI_ROWS], less[THI_ROWS], column_h[THI_ROWS];
    double *g_sum = part_of(t, block, member->g_sum), *h_sum = part_of(t, block, member->h_sum);
    gather(t, member, t->g, block * t->size, base.rows, g);
    gather(t, member, t->h, block * t->size, base.rows, h);
    gather_less(t, member, block, base.rows, h, less);
    thi_blas_gemv(THI_T, 1.0, base, g, 0.0, g_sum);
    for (int64_t c = 0; c < base.cols; c++) {
        const double *from = base.data + c * base.ld;
        double *to = bar.data + c * bar.ld, m = member->m[c], s = member->s[c];
        for (int64_t i = 0; i < base.rows; i++) {
            to[i] += g[i] * m + 2.0 * (s * h[i] - (whitened ? less[i] : 0.0)) * from[i];
            column_h[i] = h[i] * from[i];
        }
        h_sum[c] = thi_blas_dot(base.rows, from, column_h);
    }
}

/* Of a plain diagonal: bar, Abar until now, becomes k(X, Z)bar; scaled becomes E. */
static void finish_plain(const rows_task *t, int64_t block, thi_matrix V, thi_matrix bar)
{
    thi_matrix E = block_of(t, t->v->scaled, block);
    const double *h = t->group->h + block * t->size;
    thi_blas_trsm(THI_RIGHT, THI_T, 1.0, t->group->L, bar);
    for (int64_t c = 0; c < V.cols; c++) {
        const double *from = V.data + c * V.ld;
        double *to = bar.data + c * bar.ld, *half = E.data + c * E.ld;
        for (int64_t i = 0; i < V.rows; i++) {
            half[i] = to[i] - h[i] * from[i];
            to[i] = half[i] - h[i] * from[i];
        }
    }
    thi_blas_trsm(THI_RIGHT, THI_N, 1.0, t->group->L, bar);
}

static thiele_status diagonal_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    const rows_task *t = arg;
    thi_variational *v = t->v;
    bool plain = thi_is_plain_diagonal(v);
    thi_matrix V = block_of(t, t->group->V, block), bar = block_of(t, t->group->bar, block);
    for (int64_t c = 0; c < bar.cols; c++) {
        memset(bar.data + c * bar.ld, 0, (size_t)bar.rows * sizeof(double));
    }
    for (int i = 0; i < v->members; i++) {
        if (&v->group[v->member[i].group] == t->group) {
            diagonal_member(t, &v->member[i], block, plain ? block_of(t, t->group->A, block) : V, bar, !plain);
        }
    }
    if (v->narrow) {
        return THIELE_OK;
    }
    if (plain) {
        finish_plain(t, block, V, bar);
    } else {
        copy_block(bar, block_of(t, v->scaled, block));
        thi_blas_trsm(THI_RIGHT, THI_N, 1.0, t->group->L, bar);
    }
    return THIELE_OK;
}

/* Sums of g, h + c and c over the members of the group, row by row. */
static void sum_members(const rows_task *t)
{
    thi_group *group = t->group;
    memset(group->g, 0, (size_t)t->n * sizeof(double));
    memset(group->h, 0, (size_t)t->n * sizeof(double));
    memset(group->c, 0, (size_t)t->n * sizeof(double));
    for (int i = 0; i < t->v->members; i++) {
        const thi_member *member = &t->v->member[i];
        for (int64_t r = 0; &t->v->group[member->group] == group && r < t->n; r++) {
            group->g[r] += t->g[place(t, member, r)];
            group->h[r] += t->h[place(t, member, r)];
            group->c[r] += t->c != NULL ? t->c[place(t, member, r)] : 0.0;
        }
    }
    thi_blas_axpy(t->n, 1.0, group->c, group->h);
}

static thiele_status spare_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    const rows_task *t = arg;
    thi_matrix V = block_of(t, t->group->V, block), scaled = block_of(t, t->v->scaled, block);
    for (int64_t c = 0; c < V.cols; c++) {
        thi_vector()->times(V.rows, V.data + c * V.ld, t->group->c + block * t->size, scaled.data + c * scaled.ld);
    }
    return THIELE_OK;
}

/* P += 2 V' diag(c) V */
static thiele_status pull_spared(thiele_context *ctx, rows_task *t)
{
    thi_variational *v = t->v;
    thi_matrix V = thi_matrix_block(t->group->V, 0, 0, t->n, v->shape.inducing);
    thi_matrix scaled = thi_matrix_block(v->scaled, 0, 0, t->n, v->shape.inducing);
    thiele_status status;
    THI_TRY(thi_parallel_work(ctx, block_count(t), 16.0 * (double)t->n * (double)V.cols, spare_block, t));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 2.0, V, scaled, v->relieved ? 1.0 : 0.0, t->group->P, true));
out:
    return status;
}

static thiele_status pull_full(thiele_context *ctx, rows_task *t)
{
    thi_variational *v = t->v;
    thi_matrix V = thi_matrix_block(t->group->V, 0, 0, t->n, v->shape.inducing);
    thi_matrix scaled = thi_matrix_block(v->scaled, 0, 0, t->n, v->shape.inducing);
    thiele_status status = THIELE_OK;
    int left = t->group->latents * v->shape.components;
    for (int i = 0; i < v->members && status == THIELE_OK; i++) {
        thi_member *member = &v->member[i];
        if (&v->group[member->group] != t->group) {
            continue;
        }
        t->member = member;
        t->last = --left == 0;
        THI_TRY(thi_parallel_work(ctx, block_count(t), row_flops(t, 2.0), full_block, t));
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, V, scaled, v->pulled ? 1.0 : 0.0, member->T, true));
    }
    if (t->c != NULL && !v->narrow) {
        THI_TRY(pull_spared(ctx, t));
    }
out:
    return status;
}

static thiele_status pull_diagonal(thiele_context *ctx, rows_task *t)
{
    thi_variational *v = t->v;
    thi_matrix V = thi_matrix_block(t->group->V, 0, 0, t->n, v->shape.inducing);
    thi_matrix E = thi_matrix_block(v->scaled, 0, 0, t->n, v->shape.inducing);
    thiele_status status = THIELE_OK;
    THI_TRY(thi_parallel_work(ctx, block_count(t), row_flops(t, 2.0), diagonal_block, t));
    if (!v->narrow) {
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, E, V, v->pulled ? 1.0 : 0.0, t->group->P, true));
    }
    if (!v->narrow && thi_is_plain_diagonal(v)) {
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, V, E, 1.0, t->group->P, true));
    }
out:
    return status;
}

/* From the adjoints of k(X, Z), k(x, x) and the mean of a group to those of its parameters. */
static thiele_status pull_prior(const rows_task *t, thiele_context *ctx)
{
    thi_group *group = t->group;
    const thi_prior *prior = &group->prior;
    thi_matrix bar = thi_matrix_block(group->bar, 0, 0, t->n, t->v->shape.inducing);
    thi_mean_pull(prior->mean, prior->mean_parameter, t->n, t->v->shape.dims, group->x.X, group->g, group->mean_bar,
                  NULL);
    thiele_status status = thi_kernel_pull_diagonal(prior->kernel, ctx, &group->x, group->h, group->theta_bar, NULL);
    if (status == THIELE_OK) {
        thi_matrix K = t->v->raw ? thi_matrix_block(group->V, 0, 0, t->n, t->v->shape.inducing) : (thi_matrix){0};
        status = thi_kernel_pull_known(prior->kernel, ctx, &group->x, &group->z, bar, K, false, group->theta_bar,
                                       t->v->shape.fixed_Z ? NULL : group->Z_bar);
    }
    return status;
}

thiele_status thi_variational_pull(thi_variational *v, thiele_context *ctx, const double *g, const double *h)
{
    rows_task t = {.v = v, .n = v->rows, .size = block_size(v->rows), .g = g, .h = h, .c = v->c};
    thiele_status status = THIELE_OK;
    for (int i = 0; i < v->groups; i++) {
        t.group = &v->group[i];
        sum_members(&t);
        THI_TRY(thi_is_full(v) ? pull_full(ctx, &t) : pull_diagonal(ctx, &t));
        if (!v->narrow) {
            THI_TRY(pull_prior(&t, ctx));
        }
    }
    thi_reduce(block_count(&t), v->sums_size, v->part, v->sums);
    v->pulled = true;
    v->relieved = v->relieved || (v->c != NULL && !v->narrow);
    v->c = NULL;
    v->raw_sums = v->raw;
out:
    return status;
}

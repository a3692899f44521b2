/* Rows predicted with the local correction: sorted by block, then a few hundred columns of a block at a time. */
#include "posterior/local.h"

#include <string.h>

/* Up to this many columns a product is bound by reading the matrix: one pass a column is as fast as it gets. */
enum { FEW = 4 };

/* --- columns of one block --------------------------------------------------------------------------------------------
 */

/* A piece of work: what is asked for, and room for some columns of one block. */
typedef struct job {
    const thi_predictor *p;
    thiele_context *ctx;
    int64_t n; /* rows in all */
    double *mean, *variance;
    int64_t *clipped;
    thi_matrix B;          /* M x n: b of all rows; data NULL: not kept */
    thi_matrix covariance; /* n x n, lower triangle, of the joint only */
    /* Room, and the part of it that the present columns take: */
    int64_t room;
    double *x, *numbers; /* D x room; mean and variance of the columns */
    thi_matrix K, Kd;    /* M x room: k(Z, x), w, b in turn;  largest x room: k(X_D, x), r, C^-1 s r, Gamma^-1 r */
    double *Ur;          /* negative sites x room: U r; made when it is needed */
    thi_matrix work;     /* M x room: R b;  joint: columns x columns */
    thi_inputs inputs;
} job;

/* rows: of the largest factor. */
static thiele_status job_open(job *j, int64_t rows, int64_t room)
{
    const thi_predictor *p = j->p;
    thiele_status status;
    j->room = room;
    THI_TRY(thi_alloc_bare(j->ctx, &j->x, (size_t)(p->kernel->dims * room), sizeof *j->x));
    THI_TRY(thi_alloc_bare(j->ctx, &j->numbers, (size_t)(2 * room), sizeof *j->numbers));
    THI_TRY(thi_matrix_alloc(&j->K, j->ctx, p->n, room));
    THI_TRY(thi_matrix_alloc(&j->Kd, j->ctx, rows, room));
    THI_TRY(thi_matrix_alloc(&j->work, j->ctx, p->n > room ? p->n : room, room));
out:
    return status;
}

static void job_close(job *j)
{
    thi_free(j->x);
    thi_free(j->numbers);
    thi_free(j->K.data);
    thi_free(j->Kd.data);
    thi_free(j->Ur);
    thi_free(j->work.data);
    thi_inputs_clear(&j->inputs);
}

static thi_matrix cut(thi_matrix A, int64_t rows, int64_t cols)
{
    return thi_matrix_view(A.data, rows, cols, rows);
}

/* C -= op(A) B */
static thiele_status subtract(thiele_context *ctx, thi_trans ta, thi_matrix A, thi_matrix B, thi_matrix C)
{
    if (B.cols > FEW) {
        return thi_multiply(ctx, ta, THI_N, -1.0, A, B, 1.0, C, false);
    }
    for (int64_t j = 0; j < B.cols; j++) {
        thi_blas_gemv(ta, -1.0, A, B.data + j * B.ld, 1.0, C.data + j * C.ld);
    }
    return THIELE_OK;
}

/* The columns' kernel values, and m(x) as their mean. */
static thiele_status fill(job *j, const thi_local_factor *f, int64_t count)
{
    const thi_predictor *p = j->p;
    thi_matrix K = cut(j->K, p->n, count), Kd = cut(j->Kd, f->inputs.n, count);
    thiele_status status;
    thi_inputs_clear(&j->inputs);
    THI_TRY(thi_inputs_make(&j->inputs, j->ctx, p->kernel, count, j->x));
    THI_TRY(thi_kernel_fill(p->kernel, j->ctx, &p->inputs, &j->inputs, K, false));
    THI_TRY(thi_kernel_fill(p->kernel, j->ctx, &f->inputs, &j->inputs, Kd, false));
    thi_mean_fill(p->mean, p->mean_parameter, count, p->kernel->dims, j->x, j->numbers);
out:
    return status;
}

/* After fill: the mean. */
static void add_mean(job *j, const thi_local_factor *f, int64_t count)
{
    thi_blas_gemv(THI_T, 1.0, cut(j->K, j->p->n, count), f->g, 1.0, j->numbers);
    thi_blas_gemv(THI_T, 1.0, cut(j->Kd, f->inputs.n, count), f->alpha, 1.0, j->numbers);
}

/* w and r in place of the kernel values. */
static thiele_status residual(job *j, const thi_local_factor *f, int64_t count)
{
    thi_matrix K = cut(j->K, j->p->n, count);
    thiele_status status = thi_tri_solve(j->ctx, THI_N, j->p->L, K);
    return status == THIELE_OK ? subtract(j->ctx, THI_T, f->V, K, cut(j->Kd, f->inputs.n, count)) : status;
}

static void scale_rows(const double *scale, thi_matrix A)
{
    for (int64_t i = 0; scale != NULL && i < A.rows * A.cols; i++) {
        A.data[i] *= scale[i % A.rows];
    }
}

static thi_matrix negatives(const job *j, const thi_local_factor *f, int64_t count)
{
    return thi_matrix_view(j->Ur, f->U.rows, count, f->U.rows);
}

/* After residual: C^-1 s r in place of r, U r; variance k(x, x) - |w|^2 - r' Gamma^-1 r. */
static thiele_status solve(job *j, const thi_local_factor *f, int64_t count)
{
    const thi_predictor *p = j->p;
    thi_matrix K = cut(j->K, p->n, count), Kd = cut(j->Kd, f->inputs.n, count);
    double *variance = j->numbers + j->room;
    thiele_status status;
    if (f->U.rows > 0) {
        THI_TRY(thi_grow(j->ctx, &j->Ur, (size_t)(f->U.rows * j->room), sizeof *j->Ur));
        THI_TRY(thi_multiply(j->ctx, THI_N, THI_N, 1.0, f->U, Kd, 0.0, negatives(j, f, count), false));
    }
    scale_rows(f->scale, Kd);
    THI_TRY(thi_tri_solve(j->ctx, THI_N, f->C, Kd));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, j->ctx, &j->inputs, variance));
    for (int64_t i = 0; i < count; i++) {
        const double *w = K.data + i * K.ld, *s = Kd.data + i * Kd.ld;
        variance[i] -= thi_blas_dot(K.rows, w, w) + thi_blas_dot(Kd.rows, s, s);
    }
    for (int64_t i = 0; f->U.rows > 0 && i < count; i++) {
        const double *u = j->Ur + i * f->U.rows;
        variance[i] += thi_blas_dot(f->U.rows, u, u);
    }
out:
    return status;
}

/* Gamma^-1 r, and b = w - V Gamma^-1 r in place of w. */
static thiele_status fold(job *j, const thi_local_factor *f, int64_t count)
{
    thi_matrix K = cut(j->K, j->p->n, count), Kd = cut(j->Kd, f->inputs.n, count);
    thiele_status status;
    THI_TRY(thi_tri_solve(j->ctx, THI_T, f->C, Kd));
    scale_rows(f->scale, Kd);
    if (f->U.rows > 0) {
        THI_TRY(subtract(j->ctx, THI_T, f->U, negatives(j, f, count), Kd));
    }
    THI_TRY(subtract(j->ctx, THI_N, f->V, Kd, K));
out:
    return status;
}

/* variance += |R b|^2 */
static thiele_status add_posterior(job *j, int64_t count)
{
    int64_t M = j->p->n;
    double *variance = j->numbers + j->room;
    thi_matrix Rb = cut(j->work, M, count);
    memcpy(Rb.data, j->K.data, (size_t)(M * count) * sizeof(double));
    thiele_status status = thi_predictor_apply_root(j->p, j->ctx, 0, Rb);
    for (int64_t i = 0; i < count && status == THIELE_OK; i++) {
        const double *u = Rb.data + i * M;
        variance[i] += thi_blas_dot(M, u, u);
    }
    return status;
}

/* Columns of B to their rows. */
static void keep_b(const job *j, int64_t count, const int64_t *row)
{
    int64_t M = j->p->n;
    for (int64_t i = 0; i < count; i++) {
        memcpy(j->B.data + row[i] * j->B.ld, j->K.data + i * M, (size_t)M * sizeof(double));
    }
}

/* --- what is wanted of them ------------------------------------------------------------------------------------------
 */

typedef thiele_status (*piece_fn)(job *j, const thi_local_factor *f, int64_t count, const int64_t *row);

static thiele_status marginals_piece(job *j, const thi_local_factor *f, int64_t count, const int64_t *row)
{
    const double *variance = j->numbers + j->room;
    thiele_status status;
    THI_TRY(fill(j, f, count));
    add_mean(j, f, count);
    for (int64_t i = 0; i < count; i++) {
        j->mean[row[i]] = j->numbers[i];
    }
    if (j->variance == NULL) {
        return THIELE_OK;
    }
    THI_TRY(residual(j, f, count));
    THI_TRY(solve(j, f, count));
    THI_TRY(fold(j, f, count));
    THI_TRY(add_posterior(j, count));
    for (int64_t i = 0; i < count; i++) {
        bool negative = j->clipped != NULL && variance[i] < 0.0;
        j->variance[row[i]] = negative ? 0.0 : variance[i];
        if (negative) {
            *j->clipped += 1;
        }
    }
out:
    return status;
}

static thiele_status project_piece(job *j, const thi_local_factor *f, int64_t count, const int64_t *row)
{
    thiele_status status;
    THI_TRY(fill(j, f, count));
    THI_TRY(residual(j, f, count));
    thi_blas_gemv(THI_T, 1.0, cut(j->Kd, f->inputs.n, count), f->e, 1.0, j->numbers);
    THI_TRY(solve(j, f, count));
    for (int64_t i = 0; i < count; i++) {
        j->mean[row[i]] = j->numbers[i];
        j->variance[row[i]] = j->numbers[j->room + i];
    }
    THI_TRY(fold(j, f, count));
    keep_b(j, count, row);
out:
    return status;
}

/* The rows of one block all at once: they share k(x, x') - w'w' - r' Gamma^-1 r'. */
static thiele_status joint_piece(job *j, const thi_local_factor *f, int64_t count, const int64_t *row)
{
    thi_matrix w = cut(j->K, j->p->n, count), s = cut(j->Kd, f->inputs.n, count), G = cut(j->work, count, count);
    thiele_status status;
    THI_TRY(fill(j, f, count));
    add_mean(j, f, count);
    THI_TRY(residual(j, f, count));
    THI_TRY(solve(j, f, count));
    THI_TRY(thi_kernel_fill(j->p->kernel, j->ctx, &j->inputs, &j->inputs, G, true));
    THI_TRY(thi_multiply(j->ctx, THI_T, THI_N, -1.0, w, w, 1.0, G, true));
    THI_TRY(thi_multiply(j->ctx, THI_T, THI_N, -1.0, s, s, 1.0, G, true));
    if (f->U.rows > 0) {
        thi_matrix Ur = negatives(j, f, count);
        THI_TRY(thi_multiply(j->ctx, THI_T, THI_N, 1.0, Ur, Ur, 1.0, G, true));
    }
    for (int64_t c = 0; c < count; c++) {
        j->mean[row[c]] = j->numbers[c];
        /* Rows of a block ascend, so this is the lower triangle. */
        for (int64_t i = c; i < count; i++) {
            j->covariance.data[row[i] + row[c] * j->n] = G.data[i + c * count];
        }
    }
    THI_TRY(fold(j, f, count));
    keep_b(j, count, row);
out:
    return status;
}

/* --- rows by blocks --------------------------------------------------------------------------------------------------
 */

/* order: the rows sorted by block, ascending within one. */
static thiele_status sort_rows(thiele_context *ctx, int64_t blocks, int64_t n, const int64_t *block, int64_t *order)
{
    int64_t *next = NULL;
    thiele_status status = thi_alloc(ctx, &next, (size_t)blocks + 1, sizeof *next);
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        if (block[i] < 0 || block[i] >= blocks) {
            status = thi_fail(ctx, THIELE_ERROR_ARGUMENT, "row %lld is of block %lld, and there are %lld", (long long)i,
                              (long long)block[i], (long long)blocks);
            break;
        }
        next[block[i] + 1]++;
    }
    for (int64_t b = 0; b < blocks && status == THIELE_OK; b++) {
        next[b + 1] += next[b];
    }
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        order[next[block[i]]++] = i;
    }
    thi_free(next);
    return status;
}

/* The rows of one block, as many at a time as there is room for. */
static thiele_status do_block(job *j, const double *X, int64_t block, int64_t n, const int64_t *row, piece_fn fn)
{
    int D = j->p->kernel->dims;
    bool whole = j->variance != NULL || j->covariance.data != NULL;
    thi_local_factor *f = NULL;
    thiele_status status = thi_local_acquire(j->p, j->ctx, block, whole, &f);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t first = 0; first < n && status == THIELE_OK; first += j->room) {
        int64_t count = n - first < j->room ? n - first : j->room;
        for (int64_t i = 0; i < count; i++) {
            memcpy(j->x + i * D, X + row[first + i] * D, (size_t)D * sizeof *j->x);
        }
        status = fn(j, f, count, row + first);
    }
    thi_local_release(j->p->local->cache, f);
    return status;
}

/* Does fn for all rows, block by block. block: of each row, or NULL. */
static thiele_status by_blocks(job *j, int64_t n, const double *X, const int64_t *block, piece_fn fn)
{
    const thi_partition *partition = &j->p->local->partition;
    int64_t *found = NULL, *order = NULL;
    thiele_status status;
    THI_TRY(thi_alloc_bare(j->ctx, &order, (size_t)n, sizeof *order));
    if (block == NULL) {
        THI_TRY(thi_alloc_bare(j->ctx, &found, (size_t)n, sizeof *found));
        THI_TRY(thi_partition_find(partition, j->ctx, n, X, found));
        block = found;
    }
    THI_TRY(sort_rows(j->ctx, partition->blocks, n, block, order));
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && block[order[end]] == block[order[first]]; end++) {
        }
        THI_TRY(do_block(j, X, block[order[first]], end - first, order + first, fn));
    }
out:
    thi_free(found);
    thi_free(order);
    return status;
}

static int64_t room_of(int64_t n)
{
    return n < THI_PREDICT_BLOCK ? n : THI_PREDICT_BLOCK;
}

thiele_status thi_local_project(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                const int64_t *block, double *mean, thi_matrix B, double *variance)
{
    job j = {.p = predictor, .ctx = ctx, .n = n, .mean = mean, .variance = variance, .B = B};
    thiele_status status = job_open(&j, predictor->local->largest, room_of(n));
    if (status == THIELE_OK) {
        status = by_blocks(&j, n, X, block, project_piece);
    }
    job_close(&j);
    return status;
}

thiele_status thi_local_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                  const int64_t *block, double *mean, double *variance, int64_t *clipped)
{
    job j = {.p = predictor, .ctx = ctx, .clipped = clipped};
    int D = predictor->kernel->dims;
    thiele_status status = job_open(&j, predictor->local->largest, room_of(n));
    for (int64_t first = 0; first < n && status == THIELE_OK; first += THI_PREDICT_WINDOW) {
        int64_t count = n - first < THI_PREDICT_WINDOW ? n - first : THI_PREDICT_WINDOW;
        j.n = count;
        j.mean = mean + first;
        j.variance = variance != NULL ? variance + first : NULL;
        status = by_blocks(&j, count, X + first * D, block != NULL ? block + first : NULL, marginals_piece);
    }
    for (int64_t i = 0; variance != NULL && i < n; i++) {
        variance[i] *= thi_predictor_tau(predictor);
    }
    job_close(&j);
    return status;
}

thiele_status thi_local_one(const thi_predictor *predictor, thiele_context *ctx, const thi_local_factor *factor,
                            const double *x, double *mean, double *variance, int64_t *clipped)
{
    const int64_t row = 0;
    job j = {.p = predictor, .ctx = ctx, .n = 1, .mean = mean, .variance = variance, .clipped = clipped};
    thiele_status status = job_open(&j, factor->inputs.n, 1);
    if (status == THIELE_OK) {
        memcpy(j.x, x, (size_t)predictor->kernel->dims * sizeof *x);
        status = marginals_piece(&j, factor, 1, &row);
    }
    job_close(&j);
    return status;
}

thiele_status thi_local_joint(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                              double *mean, double *covariance)
{
    thi_matrix C = thi_matrix_view(covariance, n, n, n);
    job j = {.p = predictor, .ctx = ctx, .n = n, .mean = mean, .covariance = C};
    thiele_status status;
    memset(covariance, 0, (size_t)(n * n) * sizeof *covariance);
    THI_TRY(thi_matrix_alloc(&j.B, ctx, predictor->n, n));
    THI_TRY(job_open(&j, predictor->local->largest, n));
    THI_TRY(by_blocks(&j, n, X, NULL, joint_piece));
    THI_TRY(thi_predictor_apply_root(predictor, ctx, 0, j.B));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, j.B, j.B, 1.0, C, true));
    thi_symmetrise(C);
out:
    thi_free(j.B.data);
    job_close(&j);
    return status;
}

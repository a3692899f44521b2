/* One block's share of the sums, and the lanes that blocks are worked on in. */
#include <math.h>
#include <string.h>

#include "posterior/sparse_internal.h"

#define LOG_2PI 1.837877066409345483561

/* Rows of a strip of thi_sparse_solve_right. */
enum { STRIP = 96 };

/* --- lanes -----------------------------------------------------------------------------------------------------------
 */

typedef struct lanes_task {
    thi_sparse *sparse;
    int twins;
    thiele_context *ctx;
    const thi_block *block;
    int64_t stride;
    thi_sparse_part part;
    thi_sparse_use use;
    bool alone;
} lanes_task;

/* The lane's V and R in the place of the desk's. */
static void take_kept(const lanes_task *task, const thi_block *block, const thi_sparse_lane *lane,
                      thi_sparse_desk *desk)
{
    desk->V.data = lane->V;
    desk->dense.K.data = lane->R;
    desk->loaded = (block->same || task->use == THI_SPARSE_AGAIN) && lane->X == block->X && lane->n == block->n;
    thi_dense_resize(&desk->dense, block->n);
}

static thiele_status work_twins(const lanes_task *task, thiele_context *ctx, int64_t at, thi_sparse_desk *desk)
{
    thi_matrix V = desk->V, K = desk->dense.K;
    thi_sparse_lane *first = &task->sparse->space->lane[at];
    thiele_status status = THIELE_OK;
    desk->loaded = false;
    if (first->V != NULL) {
        take_kept(task, &task->block[at], first, desk);
    }
    for (int q = 0; q < task->twins && status == THIELE_OK; q++) {
        thi_sparse *twin = &task->sparse[q];
        status = task->part(twin, ctx, desk, &task->block[at + q * task->stride], &twin->space->lane[at]);
    }
    first->X = task->use != THI_SPARSE_FRESH && status == THIELE_OK ? task->block[at].X : NULL;
    first->n = task->block[at].n;
    desk->V = V;
    desk->dense.K = K;
    return status;
}

/* A block by itself may use all threads; of several each has one, and its messages are kept in its lane. */
static thiele_status work_lane(void *arg, int64_t block, int thread)
{
    const lanes_task *task = arg;
    thi_sparse_space *space = task->sparse->space;
    thi_sparse_desk *desk = &space->desk[thread];
    thi_sparse_lane *lane = &space->lane[block];
    if (task->alone) {
        return work_twins(task, task->ctx, block, desk);
    }
    desk->own = *task->ctx;
    desk->own.threads = 1;
    thiele_status status = work_twins(task, &desk->own, block, desk);
    lane->failed = status != THIELE_OK;
    if (lane->failed) {
        memcpy(lane->message, desk->own.message, sizeof lane->message);
    }
    return status;
}

thiele_status thi_sparse_lanes(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t lanes,
                               const thi_block *block, int64_t stride, thi_sparse_part part, thi_sparse_use use)
{
    lanes_task task = {sparse, twins, ctx, block, stride, part, use, lanes == 1};
    for (int64_t i = 0; i < lanes; i++) {
        sparse->space->lane[i].failed = false;
    }
    if (task.alone) {
        return work_lane(&task, 0, 0);
    }
    thiele_status status = thi_parallel(ctx, lanes, work_lane, &task);
    for (int64_t i = 0; status != THIELE_OK && i < lanes; i++) {
        if (sparse->space->lane[i].failed) {
            memcpy(ctx->message, sparse->space->lane[i].message, sizeof ctx->message);
            break;
        }
    }
    return status;
}

/* --- one block -------------------------------------------------------------------------------------------------------
 */

typedef struct right_task {
    thi_trans trans;
    thi_matrix L, B;
} right_task;

static thiele_status solve_strip(void *arg, int64_t strip, int thread)
{
    (void)thread;
    const right_task *t = arg;
    int64_t first = strip * STRIP;
    int64_t rows = t->B.rows - first < STRIP ? t->B.rows - first : STRIP;
    thi_blas_trsm(THI_RIGHT, t->trans, 1.0, t->L, thi_matrix_block(t->B, first, 0, rows, t->B.cols));
    return THIELE_OK;
}

thiele_status thi_sparse_solve_right(thiele_context *ctx, thi_trans tl, thi_matrix L, thi_matrix B)
{
    right_task task = {tl, L, B};
    double flops = (double)B.rows * (double)B.cols * (double)B.cols;
    return thi_parallel_work(ctx, (B.rows + STRIP - 1) / STRIP, flops, solve_strip, &task);
}

thiele_status thi_sparse_load(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                              const thi_block *block)
{
    const thi_prior *prior = &sparse->prior;
    thi_matrix V = thi_sparse_view(desk->V, sparse->shape.M, block->n);
    thiele_status status;
    thi_inputs_clear(&desk->inputs);
    THI_TRY(thi_inputs_make(&desk->inputs, ctx, prior->kernel, block->n, block->X));
    THI_TRY(thi_kernel_fill(prior->kernel, ctx, &sparse->inputs, &desk->inputs, V, false));
    THI_TRY(thi_tri_solve(ctx, THI_N, sparse->L, V));
    THI_TRY(thi_kernel_fill_diagonal(prior->kernel, ctx, &desk->inputs, desk->k));
    if (sparse->shape.sites) {
        return THIELE_OK;
    }
    thi_mean_fill(prior->mean, prior->mean_parameter, block->n, sparse->D, block->X, desk->r);
    for (int64_t j = 0; j < block->n; j++) {
        desk->r[j] = block->y[j] - desk->r[j];
    }
out:
    return status;
}

thiele_status thi_sparse_load_gamma(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block)
{
    int64_t n = block->n;
    thi_matrix V = thi_sparse_view(desk->V, sparse->shape.M, n), G = thi_sparse_view(desk->G, n, n);
    double jitter;
    thiele_status status;
    THI_TRY(thi_kernel_fill(sparse->prior.kernel, ctx, &desk->inputs, &desk->inputs, G, true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, V, V, 1.0, G, true));
    for (int64_t j = 0; j < n; j++) {
        G.data[j + j * n] += sparse->noise;
    }
    status = thi_chol_jitter(ctx, G, &jitter);
    if (status == THIELE_ERROR_NUMERIC) {
        status = thi_fail_in(ctx, status,
                             "the rows of a block are too much alike for its covariance to be factored (an input with "
                             "outliers, or a noise fixed near zero: clip the input, or use `method` fitc)");
    }
out:
    return status;
}

/* Kind BLOCK: W = V C^-T, Gamma = C C'. */
static thiele_status add_whole(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                               const thi_block *block, thi_natural *sums)
{
    int64_t n = block->n, M = sparse->shape.M;
    double weight = sparse->shape.weight[THI_RESIDUAL_BLOCK];
    thi_matrix G = thi_sparse_view(desk->G, n, n), W = thi_sparse_view(desk->W, M, n);
    thiele_status status;
    THI_TRY(thi_sparse_load_gamma(sparse, ctx, desk, block));
    memcpy(W.data, desk->V.data, (size_t)(M * n) * sizeof(double));
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, G, W));
    memcpy(desk->e, desk->r, (size_t)n * sizeof(double));
    thi_blas_trsv(THI_N, G, desk->e);
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, weight, W, W, 1.0, sums->T, true));
    thi_blas_gemv(THI_N, weight, W, desk->e, 1.0, sums->t);
    double fit = thi_blas_dot(n, desk->e, desk->e);
    sums->constant -= 0.5 * weight * (fit + thi_chol_logdet(G) + (double)n * LOG_2PI);
out:
    return status;
}

/* Kinds NONE and DIAGONAL in one product: V is overwritten by V diag(lambda)^1/2. */
static thiele_status add_columns(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                 const thi_block *block, thi_natural *sums)
{
    int64_t n = block->n, M = sparse->shape.M;
    double noise = sparse->noise;
    double none = sparse->shape.weight[THI_RESIDUAL_NONE], diagonal = sparse->shape.weight[THI_RESIDUAL_DIAGONAL];
    thi_matrix V = thi_sparse_view(desk->V, M, n);
    double constant = 0.0;
    for (int64_t j = 0; j < n; j++) {
        double *v = V.data + j * M, r = desk->r[j];
        double left = fmax(0.0, desk->k[j] - thi_blas_dot(M, v, v));
        double gamma = noise + left;
        double lambda = none / noise + diagonal / gamma;
        constant += none * log(noise) + diagonal * log(gamma) + lambda * r * r + 2.0 * thi_sparse_loss(sparse, left);
        double root = sqrt(lambda);
        for (int64_t i = 0; i < M; i++) {
            v[i] *= root;
        }
        desk->e[j] = root * r;
    }
    sums->constant -= 0.5 * (constant + (none + diagonal) * (double)n * LOG_2PI);
    thi_blas_gemv(THI_N, 1.0, V, desk->e, 1.0, sums->t);
    return thi_multiply(ctx, THI_N, THI_T, 1.0, V, V, 1.0, sums->T, true);
}

thiele_status thi_sparse_sum_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                  const thi_block *block, thi_sparse_lane *lane)
{
    const double *weight = sparse->shape.weight;
    thiele_status status;
    thi_natural_zero(&lane->sums);
    lane->sums.rows = (double)block->n;
    lane->sums.basis = sparse->basis;
    if (sparse->shape.sites) {
        return thi_sparse_sum_sites(sparse, ctx, desk, block, &lane->sums);
    }
    THI_TRY(thi_sparse_load(sparse, ctx, desk, block));
    if (weight[THI_RESIDUAL_BLOCK] != 0.0) {
        THI_TRY(add_whole(sparse, ctx, desk, block, &lane->sums));
    }
    if (weight[THI_RESIDUAL_NONE] != 0.0 || weight[THI_RESIDUAL_DIAGONAL] != 0.0) {
        THI_TRY(add_columns(sparse, ctx, desk, block, &lane->sums));
    }
out:
    return status;
}

thiele_status thi_sparse_sum(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                             double scale, thi_natural *sums)
{
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        int64_t lanes = count - first < THI_SPARSE_LANES ? count - first : THI_SPARSE_LANES;
        thiele_status status =
            thi_sparse_lanes(sparse, 1, ctx, lanes, block + first, 0, thi_sparse_sum_part, THI_SPARSE_FRESH);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < lanes; i++) {
            thi_natural_mix(sums, 1.0, &sparse->space->lane[i].sums, scale);
        }
    }
    return THIELE_OK;
}

thiele_status thi_sparse_keep(const thi_sparse *sparse, thiele_context *ctx, int64_t first, int64_t count,
                              thi_natural_tree *tree)
{
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < count && status == THIELE_OK; i++) {
        status = thi_natural_tree_add(tree, ctx, first + i, &sparse->space->lane[i].sums);
    }
    return status;
}

/* --- leaving rows out ------------------------------------------------------------------------------------------------
 */

/* W = V Gamma^-1 (M x n), precision_i = [Gamma^-1]_ii and e = Gamma^-1 e. */
static thiele_status apply_gamma(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                 const thi_block *block, thi_matrix W, double *e, double *precision)
{
    int64_t n = block->n, M = sparse->shape.M;
    thiele_status status;
    memcpy(W.data, desk->V.data, (size_t)(M * n) * sizeof(double));
    if (sparse->shape.weight[THI_RESIDUAL_BLOCK] == 0.0) {
        for (int64_t j = 0; j < n; j++) {
            double *w = W.data + j * M;
            precision[j] = 1.0 / (sparse->noise + fmax(0.0, desk->k[j] - thi_blas_dot(M, w, w)));
            e[j] *= precision[j];
            for (int64_t i = 0; i < M; i++) {
                w[i] *= precision[j];
            }
        }
        return THIELE_OK;
    }
    thi_matrix G = thi_sparse_view(desk->G, n, n);
    THI_TRY(thi_sparse_load_gamma(sparse, ctx, desk, block));
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, G, W));
    THI_TRY(thi_sparse_solve_right(ctx, THI_N, G, W));
    thi_blas_trsv(THI_N, G, e);
    thi_blas_trsv(THI_T, G, e);
    THI_TRY(thi_chol_inverse(ctx, G));
    for (int64_t j = 0; j < n; j++) {
        precision[j] = G.data[j + j * n];
    }
out:
    return status;
}

thiele_status thi_sparse_leave_out(thi_sparse *sparse, thiele_context *ctx, const thi_block *block, bool among,
                                   double *residual, double *variance)
{
    thi_sparse_desk *desk = &sparse->space->desk[0];
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix W = {0}, V = thi_sparse_view(desk->V, M, n);
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&W, ctx, M, n));
    THI_TRY(thi_sparse_load(sparse, ctx, desk, block));
    memcpy(residual, desk->r, (size_t)n * sizeof *residual);
    thi_blas_gemv(THI_T, -1.0, V, sparse->m, 1.0, residual);
    THI_TRY(apply_gamma(sparse, ctx, desk, block, W, residual, variance));
    THI_TRY(thi_tri_solve(ctx, THI_N, sparse->root, W));
    for (int64_t j = 0; j < n; j++) {
        const double *w = W.data + j * M;
        double C = variance[j], through_w = thi_blas_dot(M, w, w), own = among ? C - through_w : C;
        residual[j] /= own;
        variance[j] = 1.0 / own + (among ? 0.0 : through_w / (C * C));
    }
out:
    thi_free(W.data);
    return status;
}

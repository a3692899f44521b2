/*
 * Blocks with Gaussian sites: their share of the sums, the marginals of their rows, and natural steps. The formulas are
 * in sparse.h. A block of kind BLOCK is a dense posterior (dense.h) with R as the prior covariance, which knows strong,
 * weak and negative sites; of kind DIAGONAL it is n posteriors of one row:
 *   b = 1 + lambda R,  C = lambda/b,  e = nu/b,  G = 1/b
 */
#include <math.h>
#include <string.h>

#include "posterior/sparse_internal.h"

/* --- one block -------------------------------------------------------------------------------------------------------
 */

static bool is_whole(const thi_sparse *sparse)
{
    return sparse->shape.weight[THI_RESIDUAL_BLOCK] != 0.0;
}

static bool has_negative(const thi_block *block)
{
    bool negative = false;
    for (int64_t i = 0; i < block->n; i++) {
        negative = negative || block->at.lambda[i] < 0.0;
    }
    return negative;
}

/* V and R, unless a twin has made them. */
static thiele_status load(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk, const thi_block *block)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n);
    thiele_status status;
    if (desk->loaded) {
        return THIELE_OK;
    }
    THI_TRY(thi_sparse_load(sparse, ctx, desk, block));
    if (is_whole(sparse)) {
        THI_TRY(thi_dense_residual(&desk->dense, ctx, sparse->prior.kernel, &desk->inputs, V));
    }
    for (int64_t j = 0; !is_whole(sparse) && j < n; j++) {
        const double *v = V.data + j * M;
        desk->k[j] = fmax(0.0, desk->k[j] - thi_blas_dot(M, v, v));
    }
    desk->loaded = true;
out:
    return status;
}

static thiele_status condition_whole(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                     const thi_block *block, double *constant)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), X = thi_sparse_view(desk->X, M, n);
    thi_dense *dense = &desk->dense;
    thiele_status status;
    THI_TRY(thi_dense_condition(dense, ctx, block->at.lambda, block->at.nu, desk->e, desk->r));
    *constant = dense->log_z;
    memcpy(desk->e, dense->a, (size_t)n * sizeof *desk->e);
    THI_TRY(thi_dense_precision(dense, ctx));
    thi_symmetrise(dense->L);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, V, dense->L, 0.0, X, false));
out:
    return status;
}

static thiele_status condition_columns(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                       const thi_block *block, double *constant)
{
    int64_t M = sparse->shape.M;
    const double *lambda = block->at.lambda, *nu = block->at.nu;
    *constant = 0.0;
    for (int64_t j = 0; j < block->n; j++) {
        const double *v = desk->V.data + j * M;
        double left = desk->k[j], b = 1.0 + lambda[j] * left;
        if (!(b > 0.0) || !isfinite(b)) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                            "the posterior is not proper: negative sites outweigh the prior");
        }
        desk->r[j] = left / b;
        desk->e[j] = nu[j] / b;
        for (int64_t i = 0; i < M; i++) {
            desk->X.data[i + j * M] = lambda[j] / b * v[i];
        }
        *constant += 0.5 * (nu[j] * left * desk->e[j] - log(b));
    }
    return THIELE_OK;
}

thiele_status thi_sparse_condition(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, double *constant)
{
    thiele_status status = load(sparse, ctx, desk, block);
    return status == THIELE_OK
               ? (is_whole(sparse) ? condition_whole : condition_columns)(sparse, ctx, desk, block, constant)
               : status;
}

/* By V G' = V - X R. */
thiele_status thi_sparse_influence(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix X = thi_sparse_view(desk->X, M, n), W = thi_sparse_view(desk->W, M, n);
    memcpy(W.data, desk->V.data, (size_t)(M * n) * sizeof *W.data);
    if (is_whole(sparse)) {
        return thi_multiply(ctx, THI_N, THI_N, -1.0, X, desk->dense.K, 1.0, W, false);
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < M; i++) {
            W.data[i + j * M] /= 1.0 + block->at.lambda[j] * desk->k[j];
        }
    }
    return THIELE_OK;
}

/* --- sums ------------------------------------------------------------------------------------------------------------
 */

/* After thi_sparse_condition. */
static thiele_status add_conditioned(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                     const thi_block *block, thi_natural *sums)
{
    thi_matrix V = thi_sparse_view(desk->V, sparse->shape.M, block->n);
    thi_matrix X = thi_sparse_view(desk->X, sparse->shape.M, block->n);
    thi_blas_gemv(THI_N, 1.0, V, desk->e, 1.0, sums->t);
    return thi_multiply(ctx, THI_N, THI_T, 1.0, X, V, 1.0, sums->T, true);
}

/* Of sites none of which is negative, C = s Lb^-T Lb^-1 s: by X = V s Lb^-T. */
static thiele_status add_factored(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                  const thi_block *block, thi_natural *sums)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), X = thi_sparse_view(desk->X, M, n);
    thi_dense *dense = &desk->dense;
    thiele_status status;
    THI_TRY(thi_dense_weigh(dense, ctx, block->at.lambda, block->at.nu));
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < M; i++) {
            X.data[i + j * M] = dense->scale[j] * V.data[i + j * M];
        }
    }
    THI_TRY(thi_sparse_solve_right(ctx, THI_T, dense->L, X));
    sums->constant = dense->log_z;
    thi_blas_gemv(THI_N, 1.0, V, dense->a, 1.0, sums->t);
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, X, X, 1.0, sums->T, true));
out:
    return status;
}

thiele_status thi_sparse_sum_sites(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, thi_natural *sums)
{
    thiele_status status;
    THI_TRY(load(sparse, ctx, desk, block));
    if (is_whole(sparse) && !has_negative(block)) {
        return add_factored(sparse, ctx, desk, block, sums);
    }
    THI_TRY(thi_sparse_condition(sparse, ctx, desk, block, &sums->constant));
    THI_TRY(add_conditioned(sparse, ctx, desk, block, sums));
out:
    return status;
}

/* --- marginals -------------------------------------------------------------------------------------------------------
 */

/* After thi_sparse_condition; e becomes a. */
static thiele_status fill_marginals(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), X = thi_sparse_view(desk->X, M, n);
    thi_matrix W = thi_sparse_view(desk->W, M, n);
    double *mu = block->at.mu, *v = block->at.v;
    thiele_status status;
    thi_blas_gemv(THI_T, -1.0, X, sparse->m, 1.0, desk->e);
    thi_blas_gemv(THI_T, 1.0, V, sparse->m, 0.0, mu);
    if (is_whole(sparse)) {
        thi_blas_gemv(THI_N, 1.0, desk->dense.K, desk->e, 1.0, mu);
    } else {
        for (int64_t j = 0; j < n; j++) {
            mu[j] += desk->k[j] * desk->e[j];
        }
    }
    THI_TRY(thi_sparse_influence(sparse, ctx, desk, block));
    THI_TRY(thi_tri_solve(ctx, THI_N, sparse->root, W));
    for (int64_t j = 0; j < n; j++) {
        const double *w = W.data + j * M;
        v[j] = desk->r[j] + thi_blas_dot(M, w, w);
    }
out:
    return status;
}

/* With the sums, which are in its lane. */
static thiele_status marginals_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block, thi_sparse_lane *lane)
{
    thiele_status status;
    thi_natural_zero(&lane->sums);
    lane->sums.rows = (double)block->n;
    lane->sums.basis = sparse->basis;
    THI_TRY(thi_sparse_condition(sparse, ctx, desk, block, &lane->sums.constant));
    THI_TRY(add_conditioned(sparse, ctx, desk, block, &lane->sums));
    THI_TRY(fill_marginals(sparse, ctx, desk, block));
out:
    return status;
}

/* total[q] += the sums in the lanes of each twin. */
static void add_lanes(const thi_sparse *sparse, int twins, int64_t lanes, thi_natural *total)
{
    for (int q = 0; q < twins; q++) {
        for (int64_t i = 0; i < lanes; i++) {
            thi_natural_mix(&total[q], 1.0, &sparse[q].space->lane[i].sums, 1.0);
        }
    }
}

thiele_status thi_sparse_marginals(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t count,
                                   const thi_block *block, thi_natural *part)
{
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count && status == THIELE_OK; first += THI_SPARSE_LANES) {
        int64_t lanes = thi_least(count - first, THI_SPARSE_LANES);
        status = thi_sparse_lanes(sparse, twins, ctx, lanes, block + first, count, marginals_part, THI_SPARSE_KEEP);
        if (status == THIELE_OK && part != NULL) {
            add_lanes(sparse, twins, lanes, part);
        }
    }
    return status;
}

double thi_block_slack(const thi_block *block, const double *E)
{
    const thi_block_sites *at = &block->at;
    double sum = 0.0;
    for (int64_t i = 0; i < block->n; i++) {
        double mu = at->mu[i];
        sum += (E != NULL ? E[i] : 0.0) - at->nu[i] * mu + 0.5 * at->lambda[i] * (mu * mu + at->v[i]);
    }
    return sum;
}

/* --- steps -----------------------------------------------------------------------------------------------------------
 */

/* A step of less is none. */
static const double LEAST = 1e-9;

/* The sites of a block at the present rho of its step. */
static void move_sites(const thi_block *block, const thi_sparse_move *move)
{
    const thi_block_sites *at = &block->at;
    double rho = move->rho;
    memcpy(at->lambda, move->lambda, (size_t)block->n * sizeof *at->lambda);
    memcpy(at->nu, move->nu, (size_t)block->n * sizeof *at->nu);
    for (int64_t i = 0; rho != 0.0 && i < block->n; i++) {
        at->lambda[i] = (1.0 - rho) * at->lambda[i] - 2.0 * rho * at->h[i];
        at->nu[i] = (1.0 - rho) * at->nu[i] + rho * (at->g[i] - 2.0 * at->h[i] * at->mu[i]);
    }
}

static double shorter(double rho)
{
    return 0.5 * rho >= LEAST ? 0.5 * rho : 0.0;
}

/* Moves the sites of a block as far as its own posterior stays proper, and sums it there. */
static thiele_status step_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                               const thi_block *block, thi_sparse_lane *lane)
{
    for (;;) {
        move_sites(block, lane->move);
        thiele_status status = thi_sparse_sum_part(sparse, ctx, desk, block, lane);
        if (status != THIELE_ERROR_NUMERIC || lane->move->rho == 0.0) {
            return status;
        }
        thi_recover(ctx);
        lane->move->rho = shorter(lane->move->rho);
    }
}

/* total[q] += the sums over the blocks of each twin at their new sites. */
static thiele_status move_blocks(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t count,
                                 const thi_block *block, thi_sparse_move *move, thi_natural *total)
{
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count && status == THIELE_OK; first += THI_SPARSE_LANES) {
        int64_t lanes = thi_least(count - first, THI_SPARSE_LANES);
        for (int64_t k = 0; k < twins * lanes; k++) {
            sparse[k / lanes].space->lane[k % lanes].move = &move[first + k % lanes + k / lanes * count];
        }
        status = thi_sparse_lanes(sparse, twins, ctx, lanes, block + first, count, step_part, THI_SPARSE_AGAIN);
        if (status == THIELE_OK) {
            add_lanes(sparse, twins, lanes, total);
        }
    }
    return status;
}

/* Keeps the blocks' sites in `kept`, which has room for them. */
static void keep_sites(int64_t count, const thi_block *block, double rho, thi_sparse_move *move, double *kept)
{
    for (int64_t i = 0; i < count; i++) {
        size_t bytes = (size_t)block[i].n * sizeof *kept;
        move[i] = (thi_sparse_move){rho, kept, kept + block[i].n};
        memcpy(kept, block[i].at.lambda, bytes);
        memcpy(kept + block[i].n, block[i].at.nu, bytes);
        kept += 2 * block[i].n;
    }
}

static double smallest(int64_t count, const thi_sparse_move *move)
{
    double least = HUGE_VAL;
    for (int64_t i = 0; i < count; i++) {
        least = fmin(least, move[i].rho);
    }
    return least;
}

/* Shorter steps of the blocks that have negative sites, or of all when these have none left. False: nothing moves. */
static bool shorten(int64_t count, const thi_block *block, thi_sparse_move *move)
{
    for (int pass = 0; pass < 2; pass++) {
        bool shortened = false;
        for (int64_t i = 0; i < count; i++) {
            if (move[i].rho > 0.0 && (pass == 1 || has_negative(&block[i]))) {
                move[i].rho = shorter(move[i].rho);
                shortened = true;
            }
        }
        if (shortened) {
            return true;
        }
    }
    return false;
}

/* Sums over the blocks that do not move. */
static void leave(const thi_natural *part, const thi_natural *sums, thi_natural *total)
{
    thi_natural_mix(total, 0.0, sums, 1.0);
    thi_natural_mix(total, 1.0, part, -1.0);
}

/* The posterior that the blocks' move has made, or as much of the move as leaves it proper; total: the sums there. */
static thiele_status settle(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                            thi_sparse_move *move, const thi_natural *part, const thi_natural *sums, thi_natural *total)
{
    thiele_status status;
    while ((status = thi_sparse_set(sparse, ctx, total)) == THIELE_ERROR_NUMERIC && shorten(count, block, move)) {
        thi_recover(ctx);
        leave(part, sums, total);
        THI_TRY(move_blocks(sparse, 1, ctx, count, block, move, total));
    }
out:
    return status;
}

static thiele_status move_all(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t count, const thi_block *block,
                              thi_sparse_move *move, const thi_natural *part, const thi_natural *sums,
                              thi_natural *total)
{
    thiele_status status;
    for (int q = 0; q < twins; q++) {
        leave(&part[q], &sums[q], &total[q]);
    }
    THI_TRY(move_blocks(sparse, twins, ctx, count, block, move, total));
    for (int q = 0; q < twins; q++) {
        THI_TRY(settle(&sparse[q], ctx, count, block + q * count, move + q * count, &part[q], &sums[q], &total[q]));
    }
out:
    return status;
}

static thiele_status open_totals(thi_natural **total, thiele_context *ctx, int twins, int64_t M)
{
    thiele_status status = thi_alloc(ctx, total, (size_t)twins, sizeof **total);
    for (int q = 0; q < twins && status == THIELE_OK; q++) {
        status = thi_natural_open(&(*total)[q], ctx, M);
    }
    return status;
}

static void close_totals(thi_natural *total, int twins)
{
    for (int q = 0; total != NULL && q < twins; q++) {
        thi_natural_close(&total[q]);
    }
    thi_free(total);
}

thiele_status thi_sparse_step(thi_sparse *sparse, int twins, thiele_context *ctx, int64_t count, const thi_block *block,
                              double rho, const thi_natural *part, thi_natural *sums, double *taken)
{
    int64_t rows = 0, all = twins * count;
    double *kept = NULL;
    thi_sparse_move *move = NULL;
    thi_natural *total = NULL;
    thiele_status status;
    for (int64_t i = 0; i < all; i++) {
        rows += block[i].n;
    }
    THI_TRY(thi_alloc(ctx, &kept, (size_t)(2 * rows), sizeof *kept));
    THI_TRY(thi_alloc(ctx, &move, (size_t)all, sizeof *move));
    THI_TRY(open_totals(&total, ctx, twins, sparse->shape.M));
    keep_sites(all, block, rho, move, kept);
    status = move_all(sparse, twins, ctx, count, block, move, part, sums, total);
    for (int64_t i = 0; status != THIELE_OK && i < all; i++) {
        move[i].rho = 0.0;
        move_sites(&block[i], &move[i]);
    }
    if (status == THIELE_OK) {
        for (int q = 0; q < twins; q++) {
            thi_natural_mix(&sums[q], 0.0, &total[q], 1.0);
        }
        *taken = smallest(all, move);
    }
out:
    close_totals(total, twins);
    thi_free(kept);
    thi_free(move);
    return status;
}

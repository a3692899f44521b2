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

static thiele_status condition_whole(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                     const thi_block *block, double *constant)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), X = thi_sparse_view(desk->X, M, n);
    thi_dense *dense = &desk->dense;
    thiele_status status;
    THI_TRY(thi_dense_residual(dense, ctx, sparse->prior.kernel, &desk->inputs, V));
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
        double left = fmax(0.0, desk->k[j] - thi_blas_dot(M, v, v)), b = 1.0 + lambda[j] * left;
        if (!(b > 0.0) || !isfinite(b)) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                            "the posterior is not proper: negative sites outweigh the prior");
        }
        desk->k[j] = left;
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
    bool whole = sparse->shape.weight[THI_RESIDUAL_BLOCK] != 0.0;
    thiele_status status = thi_sparse_load(sparse, ctx, desk, block);
    return status == THIELE_OK ? (whole ? condition_whole : condition_columns)(sparse, ctx, desk, block, constant)
                               : status;
}

/* By V G' = V - X R. */
thiele_status thi_sparse_influence(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix X = thi_sparse_view(desk->X, M, n), W = thi_sparse_view(desk->W, M, n);
    memcpy(W.data, desk->V.data, (size_t)(M * n) * sizeof *W.data);
    if (sparse->shape.weight[THI_RESIDUAL_BLOCK] != 0.0) {
        return thi_multiply(ctx, THI_N, THI_N, -1.0, X, desk->dense.K, 1.0, W, false);
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < M; i++) {
            W.data[i + j * M] /= 1.0 + block->at.lambda[j] * desk->k[j];
        }
    }
    return THIELE_OK;
}

thiele_status thi_sparse_sum_sites(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, thi_natural *sums)
{
    thi_matrix V = thi_sparse_view(desk->V, sparse->shape.M, block->n);
    thi_matrix X = thi_sparse_view(desk->X, sparse->shape.M, block->n);
    thi_blas_gemv(THI_N, 1.0, V, desk->e, 1.0, sums->t);
    return thi_multiply(ctx, THI_N, THI_T, 1.0, X, V, 1.0, sums->T, true);
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
    if (sparse->shape.weight[THI_RESIDUAL_BLOCK] != 0.0) {
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

static thiele_status marginals_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block, thi_sparse_lane *lane)
{
    thiele_status status = thi_sparse_condition(sparse, ctx, desk, block, &lane->sums.constant);
    return status == THIELE_OK ? fill_marginals(sparse, ctx, desk, block) : status;
}

static thiele_status both_parts(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                const thi_block *block, thi_sparse_lane *lane)
{
    thiele_status status = thi_sparse_sum_part(sparse, ctx, desk, block, lane);
    return status == THIELE_OK ? fill_marginals(sparse, ctx, desk, block) : status;
}

thiele_status thi_sparse_marginals(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                                   thi_natural *part)
{
    thi_sparse_part fn = part != NULL ? both_parts : marginals_part;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count && status == THIELE_OK; first += THI_SPARSE_LANES) {
        int64_t lanes = count - first < THI_SPARSE_LANES ? count - first : THI_SPARSE_LANES;
        status = thi_sparse_lanes(sparse, ctx, lanes, block + first, fn);
        for (int64_t i = 0; part != NULL && status == THIELE_OK && i < lanes; i++) {
            thi_natural_mix(part, 1.0, &sparse->space->lane[i].sums, 1.0);
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

/* total += the sums over the blocks at their new sites. */
static thiele_status move_blocks(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                                 thi_sparse_move *move, thi_natural *total)
{
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count && status == THIELE_OK; first += THI_SPARSE_LANES) {
        int64_t lanes = count - first < THI_SPARSE_LANES ? count - first : THI_SPARSE_LANES;
        thi_sparse_lane *lane = sparse->space->lane;
        for (int64_t i = 0; i < lanes; i++) {
            lane[i].move = &move[first + i];
        }
        status = thi_sparse_lanes(sparse, ctx, lanes, block + first, step_part);
        for (int64_t i = 0; status == THIELE_OK && i < lanes; i++) {
            thi_natural_mix(total, 1.0, &lane[i].sums, 1.0);
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

static bool has_negative(const thi_block *block)
{
    bool negative = false;
    for (int64_t i = 0; i < block->n; i++) {
        negative = negative || block->at.lambda[i] < 0.0;
    }
    return negative;
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

/* Moves the blocks as far as the whole posterior stays proper; total becomes the sums there. */
static thiele_status move_all(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              thi_sparse_move *move, const thi_natural *part, const thi_natural *sums,
                              thi_natural *total)
{
    for (;;) {
        thi_natural_mix(total, 0.0, sums, 1.0);
        thi_natural_mix(total, 1.0, part, -1.0);
        thiele_status status = move_blocks(sparse, ctx, count, block, move, total);
        bool moved = status == THIELE_OK;
        status = moved ? thi_sparse_set(sparse, ctx, total) : status;
        if (!moved || status != THIELE_ERROR_NUMERIC || !shorten(count, block, move)) {
            return status;
        }
        thi_recover(ctx);
    }
}

thiele_status thi_sparse_step(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              double rho, const thi_natural *part, thi_natural *sums, double *taken)
{
    int64_t rows = 0;
    double *kept = NULL;
    thi_sparse_move *move = NULL;
    thi_natural total = {0};
    thiele_status status;
    for (int64_t i = 0; i < count; i++) {
        rows += block[i].n;
    }
    THI_TRY(thi_alloc(ctx, &kept, (size_t)(2 * rows), sizeof *kept));
    THI_TRY(thi_alloc(ctx, &move, (size_t)count, sizeof *move));
    THI_TRY(thi_natural_open(&total, ctx, sparse->shape.M));
    keep_sites(count, block, rho, move, kept);
    status = move_all(sparse, ctx, count, block, move, part, sums, &total);
    for (int64_t i = 0; status != THIELE_OK && i < count; i++) {
        move[i].rho = 0.0;
        move_sites(&block[i], &move[i]);
    }
    if (status == THIELE_OK) {
        thi_natural_mix(sums, 0.0, &total, 1.0);
        *taken = smallest(count, move);
    }
out:
    thi_natural_close(&total);
    thi_free(kept);
    thi_free(move);
    return status;
}

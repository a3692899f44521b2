/* The sparse engine: its state, sums over blocks, and q from them. The formulas are in sparse.h. */
#include "posterior/sparse.h"

#include <math.h>
#include <string.h>

#include "posterior/sparse_internal.h"

/* --- state -----------------------------------------------------------------------------------------------------------
 */

static bool has_blocks(const thi_sparse_shape *shape)
{
    return shape->weight[THI_RESIDUAL_BLOCK] != 0.0;
}

/* Of blocks no larger than this each lane has room for V and R. */
enum { KEPT_ROWS = 1200 };

static double kept(const thi_sparse_shape *shape)
{
    double M = (double)shape->M, n = (double)shape->largest;
    return shape->sites && !shape->twin && has_blocks(shape) && n <= KEPT_ROWS ? n * (M + n) : 0.0;
}

double thi_sparse_bytes(const thi_sparse_shape *shape, int threads)
{
    double M = (double)shape->M, n = (double)shape->largest;
    bool more = shape->gradients || shape->sites;
    bool tilts = shape->gradients && shape->sites && has_blocks(shape);
    double desk = M * n * (1.0 + (has_blocks(shape) || more) + more + shape->gradients + 2.0 * tilts) +
                  n * n * ((1.0 + shape->sites) * has_blocks(shape) + 2.0 * tilts) + 6.0 * n;
    double lanes = THI_SPARSE_LANES * (M * M * (1.0 + shape->gradients) + kept(shape));
    return 8.0 * ((shape->twin ? 0.0 : threads * desk) + lanes + 5.0 * M * M);
}

static thiele_status desk_open(thi_sparse_desk *desk, thiele_context *ctx, const thi_sparse_shape *shape)
{
    int64_t M = shape->M, n = shape->largest;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&desk->V, ctx, M, n));
    if (has_blocks(shape) || shape->gradients || shape->sites) {
        THI_TRY(thi_matrix_alloc(&desk->W, ctx, M, n));
    }
    if (has_blocks(shape) && shape->sites) {
        THI_TRY(thi_dense_open(&desk->dense, ctx, n, NULL, NULL, NULL));
    } else if (has_blocks(shape)) {
        THI_TRY(thi_matrix_alloc(&desk->G, ctx, n, n));
    }
    if (shape->gradients || shape->sites) {
        THI_TRY(thi_matrix_alloc(&desk->X, ctx, M, n));
    }
    if (shape->gradients) {
        THI_TRY(thi_matrix_alloc(&desk->Xt, ctx, n, M));
    }
    THI_TRY(thi_alloc(ctx, &desk->r, (size_t)(3 * n), sizeof *desk->r));
    desk->k = desk->r + n;
    desk->e = desk->k + n;
out:
    return status;
}

static void desk_close(thi_sparse_desk *desk)
{
    thi_inputs_clear(&desk->inputs);
    thi_free(desk->V.data);
    thi_free(desk->W.data);
    thi_free(desk->G.data);
    thi_free(desk->X.data);
    thi_free(desk->Xt.data);
    thi_free(desk->r);
    thi_dense_close(&desk->dense);
    for (int i = 0; i < 2; i++) {
        thi_free(desk->wide[i]);
        thi_free(desk->square[i]);
    }
}

static thiele_status desks_open(thi_sparse_space *space, thiele_context *ctx, const thi_sparse_shape *shape)
{
    space->desks = ctx->threads > 1 ? ctx->threads : 1;
    thiele_status status = thi_alloc(ctx, &space->desk, (size_t)space->desks, sizeof *space->desk);
    for (int i = 0; i < space->desks && status == THIELE_OK; i++) {
        status = desk_open(&space->desk[i], ctx, shape);
    }
    return status;
}

static thiele_status space_open(thi_sparse_space *space, thiele_context *ctx, const thi_sparse_shape *shape,
                                const thi_sparse_space *lender)
{
    thiele_status status = THIELE_OK;
    if (lender != NULL) {
        space->desk = lender->desk;
    } else {
        THI_TRY(desks_open(space, ctx, shape));
    }
    for (int i = 0; i < THI_SPARSE_LANES; i++) {
        THI_TRY(thi_natural_open(&space->lane[i].sums, ctx, shape->M));
        if (kept(shape) > 0.0) {
            THI_TRY(thi_alloc_bare(ctx, &space->lane[i].V, (size_t)kept(shape), sizeof(double)));
            space->lane[i].R = space->lane[i].V + shape->M * shape->largest;
        }
        if (shape->gradients) {
            THI_TRY(thi_matrix_alloc(&space->lane[i].VV, ctx, shape->M, shape->M));
        }
    }
    THI_TRY(thi_matrix_alloc(&space->work, ctx, shape->M, shape->M));
out:
    return status;
}

/* Sites want a prior of which they are the likelihood: one kind by itself, and R in it. */
static bool has_prior(const thi_sparse_shape *shape)
{
    const double *weight = shape->weight;
    return weight[THI_RESIDUAL_NONE] == 0.0 && weight[THI_RESIDUAL_DIAGONAL] + weight[THI_RESIDUAL_BLOCK] == 1.0 &&
           weight[THI_RESIDUAL_DIAGONAL] * weight[THI_RESIDUAL_BLOCK] == 0.0;
}

thiele_status thi_sparse_open(thi_sparse *sparse, thiele_context *ctx, const thi_sparse_shape *shape, int D)
{
    int64_t M = shape->M;
    *sparse = (thi_sparse){.shape = *shape, .D = D};
    thiele_status status;
    if (shape->sites && !has_prior(shape)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "combinations of models, SoR and DTC need Gaussian noise: for other likelihoods use "
                        "pic, pitc or fitc");
    }
    THI_TRY(thi_matrix_alloc(&sparse->L, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&sparse->root, ctx, M, M));
    THI_TRY(thi_matrix_alloc(&sparse->S, ctx, M, M));
    THI_TRY(thi_alloc(ctx, &sparse->m, (size_t)M, sizeof *sparse->m));
    THI_TRY(thi_alloc(ctx, &sparse->space, 1, sizeof *sparse->space));
    THI_TRY(space_open(sparse->space, ctx, shape, shape->twin ? sparse[-1].space : NULL));
out:
    if (status != THIELE_OK) {
        thi_sparse_close(sparse);
    }
    return status;
}

void thi_sparse_close(thi_sparse *sparse)
{
    thi_sparse_space *space = sparse->space;
    for (int i = 0; space != NULL && space->desk != NULL && i < space->desks /* none are lent */; i++) {
        desk_close(&space->desk[i]);
    }
    for (int i = 0; space != NULL && i < THI_SPARSE_LANES; i++) {
        thi_natural_close(&space->lane[i].sums);
        thi_free(space->lane[i].VV.data);
        thi_free(space->lane[i].V);
        thi_free(space->lane[i].numbers);
    }
    if (space != NULL) {
        thi_free(sparse->shape.twin ? NULL : space->desk);
        thi_free(space->work.data);
        thi_free(space);
    }
    thi_inputs_clear(&sparse->inputs);
    thi_free(sparse->L.data);
    thi_free(sparse->root.data);
    thi_free(sparse->S.data);
    thi_free(sparse->m);
    *sparse = (thi_sparse){0};
}

/* One number after the other. */
static uint64_t mark(uint64_t hash, int64_t count, int64_t stride, const double *numbers)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, numbers + i * stride, sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* The diagonal of L stands for the kernel: each number of it depends on all parameters. Never 0. */
static uint64_t fingerprint(const thi_sparse *sparse)
{
    int64_t M = sparse->shape.M;
    const thi_prior *prior = &sparse->prior;
    uint64_t hash = mark(1 + (uint64_t)prior->mean, M * sparse->D, 1, sparse->Z);
    hash = mark(hash, M, M + 1, sparse->L.data);
    hash = mark(hash, thi_mean_parameters(prior->mean, sparse->D), 1, prior->mean_parameter);
    hash = mark(hash, THI_RESIDUAL_KINDS, 1, sparse->shape.weight);
    return mark(hash, 1, 1, &sparse->noise) | 1;
}

thiele_status thi_sparse_prepare(thi_sparse *sparse, thiele_context *ctx, const thi_prior *prior, const double *Z,
                                 double noise)
{
    thiele_status status;
    thi_inputs_clear(&sparse->inputs);
    sparse->prior = *prior;
    sparse->Z = Z;
    sparse->noise = noise;
    THI_TRY(thi_inputs_make(&sparse->inputs, ctx, prior->kernel, sparse->shape.M, Z));
    THI_TRY(thi_kernel_fill(prior->kernel, ctx, &sparse->inputs, &sparse->inputs, sparse->L, true));
    status = thi_chol_jitter(ctx, sparse->L, &sparse->jitter);
    if (status == THIELE_ERROR_NUMERIC) {
        status = thi_fail_in(ctx, status, "the kernel matrix of the %lld inducing inputs", (long long)sparse->shape.M);
    }
    sparse->basis = fingerprint(sparse);
    for (int i = 0; i < THI_SPARSE_LANES; i++) {
        sparse->space->lane[i].X = NULL;
    }
out:
    return status;
}

/* --- q ---------------------------------------------------------------------------------------------------------------
 */

thiele_status thi_sparse_set(thi_sparse *sparse, thiele_context *ctx, const thi_natural *sums)
{
    int64_t M = sparse->shape.M;
    thiele_status status;
    THI_TRY(thi_natural_root(sums, ctx, sparse->root));
    sparse->log_det = thi_chol_logdet(sparse->root);
    memcpy(sparse->m, sums->t, (size_t)M * sizeof(double));
    thi_blas_trsv(THI_N, sparse->root, sparse->m);
    sparse->fit = thi_blas_dot(M, sparse->m, sparse->m);
    thi_blas_trsv(THI_T, sparse->root, sparse->m);
    thi_tri_copy(sparse->root, sparse->S);
    THI_TRY(thi_chol_inverse(ctx, sparse->S));
    thi_symmetrise(sparse->S);
out:
    return status;
}

double thi_sparse_divergence(const thi_sparse *sparse)
{
    int64_t M = sparse->shape.M;
    double trace = 0.0;
    for (int64_t i = 0; i < M; i++) {
        trace += sparse->S.data[i + i * M];
    }
    return 0.5 * (trace + thi_blas_dot(M, sparse->m, sparse->m) - (double)M + sparse->log_det);
}

double thi_sparse_evidence(const thi_sparse *sparse, const thi_natural *sums)
{
    return sums->constant + 0.5 * (sparse->fit - sparse->log_det);
}

double thi_sparse_expected(const thi_sparse *sparse, const thi_natural *sums)
{
    int64_t M = sparse->shape.M;
    const double *m = sparse->m;
    double quadratic = 0.0;
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            double both = sums->T.data[i + j * M] * (sparse->S.data[i + j * M] + m[i] * m[j]);
            quadratic += i == j ? both : 2.0 * both;
        }
    }
    return sums->constant + thi_blas_dot(M, m, sums->t) - 0.5 * quadratic;
}

/*
 * Adjoints of the bound of blocks with sites, log Z + sum_n rho_n(mu_n, v_n), rho = E - nu mu + lambda (mu^2 + v)/2, at
 * fixed sites. With dG = -G dR C, so that dmu = G (dR a + dV'm) and dcov = G dR G' + ..., of each block
 *   gamma = drho/dmu = g - a,  eta = drho/dv = h + lambda/2,  q = G'gamma,  Y = G' diag(eta) G
 *   Rbar = [a~ a~' - C + C V'S~V C]/2 + sym(q a') + Y - 2 sym(Y V'S V C),   a~ = e - C V'm~
 *   Vbar = m~ a~' - S~V C + m q' + 2 S V Y - 2 V Rbar
 * The change of q(w) is in m~ and S~: with mbar = sum V G'gamma and Sbar = sum V G' diag(eta) G V' over all blocks,
 *   m~ = m + p,  p = S mbar,   S~ = S + 2 S Sbar S - p p'
 * since dF = mbar' dm + tr(Sbar dS) at m = S t, S = (I + T)^-1 adds p'dt - tr((sym(p m') + S Sbar S) dT), and log Z
 * itself is m'dt - tr((S + m m') dT)/2. At the fixed point of the sites gamma = eta = 0 and the tildes go.
 */
#include <string.h>

#include "posterior/sparse_internal.h"

static bool is_tilted(const thi_block *block)
{
    return block->at.g != NULL;
}

/* --- through q(w) ----------------------------------------------------------------------------------------------------
 */

/* A block's share of mbar and Sbar, as t and T of its lane. */
static thiele_status tilt_part(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                               const thi_block *block, thi_sparse_lane *lane)
{
    int64_t n = block->n, M = sparse->shape.M;
    const thi_block_sites *at = &block->at;
    thi_matrix X = thi_sparse_view(desk->X, M, n), W = thi_sparse_view(desk->W, M, n);
    double constant;
    thiele_status status;
    THI_TRY(thi_sparse_condition(sparse, ctx, desk, block, &constant));
    THI_TRY(thi_sparse_influence(sparse, ctx, desk, block));
    thi_blas_gemv(THI_T, -1.0, X, sparse->m, 1.0, desk->e);
    for (int64_t j = 0; j < n; j++) {
        double eta = at->h[j] + 0.5 * at->lambda[j];
        desk->e[j] = at->g[j] - desk->e[j];
        for (int64_t i = 0; i < M; i++) {
            X.data[i + j * M] = eta * W.data[i + j * M];
        }
    }
    thi_natural_zero(&lane->sums);
    thi_blas_gemv(THI_N, 1.0, W, desk->e, 1.0, lane->sums.t);
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, X, W, 1.0, lane->sums.T, true));
out:
    return status;
}

/* From mbar and Sbar to m~ and S~. 4 M^3 flops. */
static thiele_status tilt_moments(thi_sparse *sparse, thiele_context *ctx, thi_natural *tilted)
{
    int64_t M = sparse->shape.M;
    thi_matrix work = sparse->space->work, S = tilted->T;
    double *p = NULL;
    thiele_status status = thi_alloc(ctx, &p, (size_t)M, sizeof *p);
    if (status != THIELE_OK) {
        return status;
    }
    thi_symmetrise(S);
    thi_blas_gemv(THI_N, 1.0, sparse->S, tilted->t, 0.0, p);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 2.0, sparse->S, S, 0.0, work, false));
    memcpy(S.data, sparse->S.data, (size_t)(M * M) * sizeof *S.data);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, work, sparse->S, 1.0, S, true));
    for (int64_t j = 0; j < M; j++) {
        thi_blas_axpy(M - j, -p[j], p + j, S.data + j + j * M);
        tilted->t[j] = sparse->m[j] + p[j];
    }
    thi_symmetrise(S);
out:
    thi_free(p);
    return status;
}

thiele_status thi_sparse_tilt(thi_sparse *sparse, thiele_context *ctx, int64_t count, const thi_block *block,
                              double scale, thi_natural *tilted)
{
    thi_sparse_space *space = sparse->space;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        int64_t lanes = count - first < THI_SPARSE_LANES ? count - first : THI_SPARSE_LANES;
        THI_TRY(thi_sparse_lanes(sparse, 1, ctx, lanes, block + first, 0, tilt_part, THI_SPARSE_FRESH));
        for (int64_t i = 0; i < lanes; i++) {
            thi_natural_mix(tilted, 1.0, &space->lane[i].sums, scale);
        }
    }
    THI_TRY(tilt_moments(sparse, ctx, tilted));
    space->m = tilted->t;
    space->S = tilted->T;
out:
    return status;
}

/* --- kind DIAGONAL ---------------------------------------------------------------------------------------------------
 */

/* S V in `SV`, S~V in W, which becomes Vbar; k becomes Rbar. */
static void pull_columns(const thi_sparse *sparse, thi_sparse_desk *desk, const thi_block *block, thi_matrix SV,
                         thi_sparse_lane *lane)
{
    int64_t M = sparse->shape.M;
    const thi_block_sites *at = &block->at;
    const double *m = sparse->m, *m_tilted = sparse->space->m;
    for (int64_t j = 0; j < block->n; j++) {
        const double *v = desk->V.data + j * M, *s = SV.data + j * M;
        double *vbar = desk->W.data + j * M;
        double G = 1.0 / (1.0 + at->lambda[j] * desk->k[j]), c = at->lambda[j] * G, e = desk->e[j];
        double u = thi_blas_dot(M, v, m), spread = thi_blas_dot(M, v, s), a = e - c * u, q = 0.0, Y = 0.0;
        double tilted = e - c * thi_blas_dot(M, v, m_tilted);
        lane->value += 0.5 * (u * (e + a) - c * spread);
        if (is_tilted(block)) {
            q = G * (at->g[j] - a);
            Y = G * G * (at->h[j] + 0.5 * at->lambda[j]);
        }
        double rbar = 0.5 * (tilted * tilted - c + c * c * thi_blas_dot(M, v, vbar)) + q * a + Y * (1 - 2 * c * spread);
        for (int64_t i = 0; i < M; i++) {
            vbar[i] = tilted * m_tilted[i] - c * vbar[i] + q * m[i] + 2.0 * (Y * s[i] - rbar * v[i]);
        }
        desk->k[j] = rbar;
        desk->e[j] = is_tilted(block) ? at->g[j] : a;
    }
}

static thiele_status pull_diagonal(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, thi_sparse_lane *lane)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), W = thi_sparse_view(desk->W, M, n);
    thi_matrix SV = thi_sparse_view(desk->X, M, n);
    thiele_status status;
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sparse->S, V, 0.0, SV, false));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sparse->space->S, V, 0.0, W, false));
    pull_columns(sparse, desk, block, SV, lane);
    THI_TRY(thi_kernel_pull_diagonal(sparse->prior.kernel, ctx, &desk->inputs, desk->k, lane->theta_bar, NULL));
out:
    return status;
}

/* --- kind BLOCK ------------------------------------------------------------------------------------------------------
 */

static thiele_status ready_room(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk)
{
    size_t M = (size_t)sparse->shape.M, n = (size_t)sparse->shape.largest;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < 2 && desk->square[i] == NULL; i++) {
        THI_TRY(thi_grow(ctx, &desk->wide[i], M * n, sizeof *desk->wide[i]));
        THI_TRY(thi_alloc(ctx, &desk->square[i], n * n, sizeof *desk->square[i]));
    }
out:
    return status;
}

/* q into k; Y into square[1]; V Y into wide[1]; (V Y)'(S X) into square[0]. S X is in wide[0]; R is overwritten. */
static thiele_status tilt_block(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                const thi_block *block)
{
    int64_t n = block->n, M = sparse->shape.M;
    const thi_block_sites *at = &block->at;
    thi_matrix G = thi_matrix_view(desk->square[0], n, n, n), Y = thi_matrix_view(desk->square[1], n, n, n);
    thi_matrix SX = thi_matrix_view(desk->wide[0], M, n, M), VY = thi_matrix_view(desk->wide[1], M, n, M);
    thi_matrix V = thi_sparse_view(desk->V, M, n), R = desk->dense.K;
    thiele_status status;
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, -1.0, R, desk->dense.L, 0.0, G, false));
    for (int64_t j = 0; j < n; j++) {
        G.data[j + j * n] += 1.0;
        for (int64_t i = 0; i < n; i++) {
            R.data[i + j * n] = (at->h[i] + 0.5 * at->lambda[i]) * G.data[i + j * n];
        }
        desk->k[j] = 0.0;
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) {
            desk->k[j] += G.data[i + j * n] * (at->g[i] - desk->r[i]);
        }
    }
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, G, R, 0.0, Y, true));
    thi_symmetrise(Y);
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, V, Y, 0.0, VY, false));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, VY, SX, 0.0, G, false));
out:
    return status;
}

/* Rbar, full, takes the place of C; S~X is in W. */
static thiele_status residual_adjoint(thiele_context *ctx, thi_sparse_desk *desk, const thi_block *block, thi_matrix X,
                                      thi_matrix W)
{
    int64_t n = block->n;
    const double *a = desk->r, *q = desk->k, *tilted = desk->e;
    const double *Y = desk->square[1], *D = desk->square[0];
    thi_matrix Rbar = desk->dense.L;
    thiele_status status = thi_multiply(ctx, THI_T, THI_N, 0.5, X, W, -0.5, Rbar, true);
    for (int64_t j = 0; j < n && status == THIELE_OK; j++) {
        double *r = Rbar.data + j * n;
        thi_blas_axpy(n - j, 0.5 * tilted[j], tilted + j, r + j);
        for (int64_t i = j; is_tilted(block) && i < n; i++) {
            r[i] += 0.5 * (q[i] * a[j] + a[i] * q[j]) + Y[i + j * n] - D[i + j * n] - D[j + i * n];
        }
    }
    thi_symmetrise(Rbar);
    return status;
}

/* W from S~X to Vbar. */
static thiele_status cross_adjoint(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                   const thi_block *block, thi_matrix W)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n);
    thiele_status status;
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, -2.0, V, desk->dense.L, -1.0, W, false));
    for (int64_t j = 0; j < n; j++) {
        thi_blas_axpy(M, desk->e[j], sparse->space->m, W.data + j * M);
    }
    if (is_tilted(block)) {
        THI_TRY(
            thi_multiply(ctx, THI_N, THI_N, 2.0, sparse->S, thi_matrix_view(desk->wide[1], M, n, M), 1.0, W, false));
        for (int64_t j = 0; j < n; j++) {
            thi_blas_axpy(M, desk->k[j], sparse->m, W.data + j * M);
        }
    }
out:
    return status;
}

static thiele_status pull_block(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                const thi_block *block, thi_sparse_lane *lane)
{
    int64_t n = block->n, M = sparse->shape.M;
    thi_matrix V = thi_sparse_view(desk->V, M, n), X = thi_sparse_view(desk->X, M, n);
    thi_matrix W = thi_sparse_view(desk->W, M, n), SX = W;
    thiele_status status;
    if (is_tilted(block)) {
        THI_TRY(ready_room(sparse, ctx, desk));
        SX = thi_matrix_view(desk->wide[0], M, n, M);
    }
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sparse->S, X, 0.0, SX, false));
    memcpy(desk->r, desk->e, (size_t)n * sizeof *desk->r);
    thi_blas_gemv(THI_T, -1.0, X, sparse->m, 1.0, desk->r);
    thi_blas_gemv(THI_T, 1.0, V, sparse->m, 0.0, desk->k);
    lane->value += 0.5 * (thi_blas_dot(n, desk->k, desk->e) + thi_blas_dot(n, desk->k, desk->r) -
                          thi_blas_dot(M * n, SX.data, V.data));
    thi_blas_gemv(THI_T, -1.0, X, sparse->space->m, 1.0, desk->e);
    if (is_tilted(block)) {
        THI_TRY(tilt_block(sparse, ctx, desk, block));
        THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, sparse->space->S, X, 0.0, W, false));
    }
    THI_TRY(residual_adjoint(ctx, desk, block, X, W));
    THI_TRY(cross_adjoint(sparse, ctx, desk, block, W));
    memcpy(desk->e, is_tilted(block) ? block->at.g : desk->r, (size_t)n * sizeof *desk->e);
    THI_TRY(thi_kernel_pull(sparse->prior.kernel, ctx, &desk->inputs, &desk->inputs, desk->dense.L, true,
                            lane->theta_bar, NULL));
out:
    return status;
}

thiele_status thi_sparse_pull_sites(const thi_sparse *sparse, thiele_context *ctx, thi_sparse_desk *desk,
                                    const thi_block *block, thi_sparse_lane *lane)
{
    bool whole = sparse->shape.weight[THI_RESIDUAL_BLOCK] != 0.0;
    double constant = 0.0;
    thiele_status status = thi_sparse_condition(sparse, ctx, desk, block, &constant);
    lane->value += constant;
    return status == THIELE_OK ? (whole ? pull_block : pull_diagonal)(sparse, ctx, desk, block, lane) : status;
}

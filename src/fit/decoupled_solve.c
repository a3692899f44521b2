/*
 * The weights of a decoupled mean by blocks, at fixed hyperparameters and covariance. The mean is f = m(x) + sum_i w_i
 * psi_i over alpha and, in the orthogonal form, beta; with (g, lambda = -2 h) of some rows the bound is, up to second
 * order, a concave quadratic in w: kernel ridge regression with the penalty |f|^2 / 2 in the kernel's own norm. A block
 * I of functions that are near to each other is solved for exactly while the others hold still,
 *   (K_I,x Lambda K_x,I + K_I) d = K_I,x r - <psi_I, f>,   r = g - lambda (change of f so far),
 * and f at the rows and <psi, f> of all functions follow it: block Gauss-Seidel, an overlapping-domain method with beta
 * as its coarse grid. After each sweep the optimum among all combinations of the changes that the sweeps so far have
 * made is taken: everything that is tracked is linear in w, so that it costs nothing, and it makes of the sweeps the
 * preconditioner of a conjugate direction method. Adam, blind to how functions overlap, is far slower: 50 epochs leave
 * four times the error of ten sweeps on a function of three columns. The last digits come slowly. One sweep costs about
 * an epoch: rows x M_alpha covariances and rows x M_alpha x block flops, the latter in the first one alone where all
 * rows have one curvature, Gaussian noise. There a sweep never lowers the bound; else one that does is halved. Memory:
 * rows x block and M x block numbers, and rows + 2 M for each change that is kept.
 *
 * Several latent functions: with Gaussian noise those of a group in one turn, whose covariances and products are made
 * once for all of them. Of other likelihoods one after the other, with (g, h) of all anew before the next: each
 * curvature is that of a function while the others hold still, and steps of all together could be too long. Changes
 * are combined for each function by itself.
 */
#include <math.h>
#include <string.h>

#include "fit/decoupled_sweep.h"

enum { HALVINGS = 5 };
/* Curvatures are kept above this part of the largest: a likelihood that is not log-concave has some below zero. */
static const double LEAST_CURVATURE = 1e-6;

/* Slopes and curvatures of one latent, a column each. */
static void take_column(thi_sweep *s, int64_t q)
{
    int64_t n = s->rows.n, Q = s->latents;
    double *g = s->at.g + q * n, *h = s->at.h + q * n, *root = s->at.root + q * n, largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        g[i] = s->at.slope[q + i * Q];
        h[i] = -2.0 * s->at.bend[q + i * Q];
        largest = fmax(largest, h[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        h[i] = fmax(h[i], LEAST_CURVATURE * largest + 1e-300);
        root[i] = s->alike ? 1.0 : sqrt(s->weight * h[i]);
    }
}

thiele_status thi_sweep_look(thi_sweep *s, double *value)
{
    int64_t n = s->rows.n, Q = s->latents, functions = (s->n_alpha + s->n_beta) * Q;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t q = 0; q < Q; q++) {
            s->at.mu[q + i * Q] = s->f[i + q * n];
        }
    }
    const thi_asked asked = {0,       n,           s->rows.y,  s->at.mu, s->at.v,
                             s->at.E, s->at.slope, s->at.bend, NULL,     s->rows.weight};
    thiele_status status = thi_providers_expect(&s->fit->pass.providers, s->fit->problem.ctx, &asked);
    double expected = 0.0;
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        expected += s->at.E[i];
    }
    for (int64_t q = 0; status == THIELE_OK && q < Q; q++) {
        take_column(s, q);
    }
    *value = s->weight * expected - s->cover.lost - 0.5 * thi_blas_dot(functions, s->a, s->at_alpha);
    return status;
}

/* G += K_I,x Lambda K_x,I of a latent, with K = K_x,I times the root of Lambda or, where all rows have one curvature,
 * without it. */
static thiele_status add_rows(thi_sweep *s, thi_matrix gram, int64_t latent, thi_matrix K, thi_matrix G)
{
    if (!s->alike) {
        return thi_multiply(s->fit->problem.ctx, THI_T, THI_N, 1.0, K, K, 1.0, G, true);
    }
    double curvature = s->weight * s->at.h[latent * s->rows.n];
    for (int64_t j = 0; j < G.cols; j++) {
        thi_blas_axpy(G.rows - j, curvature, gram.data + j + j * gram.ld, G.data + j + j * G.ld);
    }
    return THIELE_OK;
}

/* K = K_x,I, or with the root of Lambda: then the turn is one latent's. */
static thiele_status fill(thi_sweep *s, const thi_turn *turn, const thi_functions *block, thi_matrix K)
{
    const double *root = s->at.root + turn->first * K.rows;
    thiele_status status = thi_functions_fill(block, s->fit->problem.ctx, &s->inputs[turn->group], K);
    for (int64_t j = 0; j < K.cols && !s->alike; j++) {
        for (int64_t i = 0; i < K.rows; i++) {
            K.data[i + j * K.ld] *= root[i];
        }
    }
    return status;
}

/* d = (K_I,x Lambda K_x,I + K_I)^-1 d, column by column. */
static thiele_status solve_columns(thi_sweep *s, const thi_turn *turn, int64_t index, const thi_functions *block,
                                   thi_matrix K, thi_matrix d)
{
    thiele_context *ctx = s->fit->problem.ctx;
    int64_t m = block->n;
    thi_matrix G = thi_matrix_view(s->G.data, m, m, m), own = thi_matrix_view(s->own.data, m, m, m), gram = {0};
    double jitter;
    thiele_status status;
    if (s->alike) {
        gram = thi_sweep_gram(s, turn->group, index);
    }
    if (s->alike && !s->known) {
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, K, K, 0.0, gram, true));
    }
    THI_TRY(thi_functions_cross(block, block, ctx, own, true));
    for (int64_t p = 0; p < turn->count; p++) {
        memcpy(G.data, own.data, (size_t)(m * m) * sizeof(double));
        THI_TRY(add_rows(s, gram, turn->first + p, K, G));
        THI_TRY(thi_chol_jitter(ctx, G, &jitter));
        thi_blas_trsv(THI_N, G, d.data + p * m);
        thi_blas_trsv(THI_T, G, d.data + p * m);
    }
out:
    return status;
}

static thiele_status solve_block(thi_sweep *s, const thi_turn *turn, int64_t index)
{
    thiele_context *ctx = s->fit->problem.ctx;
    thi_functions block = thi_sweep_block(s, turn->group, index);
    int64_t n = s->rows.n, m = block.n, first = turn->first * n, count = turn->count * n;
    thi_matrix K = thi_matrix_view(s->K.data, n, m, n), d = thi_matrix_view(s->d, m, turn->count, m);
    thi_matrix along = thi_matrix_view(s->at.along + first, n, turn->count, n), w, own;
    thiele_status status;
    thi_sweep_columns(s, turn, index, &w, &own);
    THI_TRY(fill(s, turn, &block, K));
    for (int64_t p = 0; p < turn->count; p++) {
        for (int64_t j = 0; j < m; j++) {
            d.data[j + p * m] = -own.data[j + p * own.ld];
        }
    }
    for (int64_t i = first; i < first + count; i++) {
        s->at.along[i] = s->weight * s->at.g[i] / s->at.root[i];
    }
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, K, along, 1.0, d, false));
    THI_TRY(solve_columns(s, turn, index, &block, K, d));
    THI_TRY(thi_multiply(ctx, THI_N, THI_N, 1.0, K, d, 0.0, along, false));
    for (int64_t i = first; i < first + count; i++) {
        double change = s->at.along[i] / s->at.root[i];
        s->f[i] += change;
        s->at.g[i] -= s->at.h[i] * change;
    }
    for (int64_t p = 0; p < turn->count; p++) {
        thi_blas_axpy(m, 1.0, d.data + p * m, w.data + p * w.ld);
    }
    THI_TRY(thi_sweep_follow(s, turn, &block, d));
out:
    return status;
}

/* The change that the last sweep made joins the others, in place of the oldest where there is no room. */
static thiele_status remember(thi_sweep *s)
{
    double *to = s->changes == THI_SWEEP_DIRECTIONS ? s->change[0] : NULL;
    if (to == NULL) {
        thiele_status status = thi_alloc(s->fit->problem.ctx, &to, (size_t)s->size, sizeof *to);
        if (status != THIELE_OK) {
            return status;
        }
    } else {
        s->changes--;
        memmove(s->change, s->change + 1, (size_t)s->changes * sizeof *s->change);
    }
    for (int64_t i = 0; i < s->size; i++) {
        to[i] = s->state[i] - s->before[i];
    }
    s->change[s->changes++] = to;
    return THIELE_OK;
}

/* Where the numbers of a latent are in a state or a change: f, <psi, f> and w of alpha and of beta. */
typedef struct column {
    int64_t f, at_alpha, at_beta, a, b;
} column;

static column column_of(const thi_sweep *s, int64_t q)
{
    return (column){q * s->rows.n, s->at_alpha - s->state + q * s->n_alpha, s->at_beta - s->state + q * s->n_beta,
                    s->a - s->state + q * s->n_alpha, s->b - s->state + q * s->n_beta};
}

/* What a change does to the quadratic of a latent: its slope at the present state, and the curvature with another one.
 */
static double slope_along(const thi_sweep *s, const column *c, const double *change)
{
    return s->weight * thi_blas_dot(s->rows.n, s->at.g + c->f, change + c->f) -
           thi_blas_dot(s->n_alpha, s->state + c->a, change + c->at_alpha) -
           thi_blas_dot(s->n_beta, s->state + c->b, change + c->at_beta);
}

static double curvature_along(const thi_sweep *s, const column *c, const double *one, const double *other)
{
    double sum = 0.0;
    for (int64_t i = c->f; i < c->f + s->rows.n; i++) {
        sum += s->at.h[i] * one[i] * other[i];
    }
    return s->weight * sum + thi_blas_dot(s->n_alpha, one + c->a, other + c->at_alpha) +
           thi_blas_dot(s->n_beta, one + c->b, other + c->at_beta);
}

/* The best combination of a latent's changes so far. */
static thiele_status combine_column(thi_sweep *s, const column *c)
{
    double data[THI_SWEEP_DIRECTIONS * THI_SWEEP_DIRECTIONS], best[THI_SWEEP_DIRECTIONS], jitter;
    int K = s->changes;
    thi_matrix H = thi_matrix_view(data, K, K, K);
    for (int j = 0; j < K; j++) {
        best[j] = slope_along(s, c, s->change[j]);
        for (int i = j; i < K; i++) {
            data[i + j * K] = curvature_along(s, c, s->change[i], s->change[j]);
        }
    }
    thiele_status status = thi_chol_jitter(s->fit->problem.ctx, H, &jitter);
    if (status != THIELE_OK) {
        return status;
    }
    thi_blas_trsv(THI_N, H, best);
    thi_blas_trsv(THI_T, H, best);
    for (int j = 0; j < K; j++) {
        const double *change = s->change[j];
        thi_blas_axpy(s->rows.n, best[j], change + c->f, s->state + c->f);
        thi_blas_axpy(s->n_alpha, best[j], change + c->at_alpha, s->state + c->at_alpha);
        thi_blas_axpy(s->n_beta, best[j], change + c->at_beta, s->state + c->at_beta);
        thi_blas_axpy(s->n_alpha, best[j], change + c->a, s->state + c->a);
        thi_blas_axpy(s->n_beta, best[j], change + c->b, s->state + c->b);
    }
    return THIELE_OK;
}

/* Of all latents, after a look. s->before has the state without it. */
static thiele_status combine(thi_sweep *s)
{
    thiele_status status = THIELE_OK;
    memcpy(s->before, s->state, (size_t)s->size * sizeof *s->state);
    for (int64_t q = 0; q < s->latents && status == THIELE_OK; q++) {
        column c = column_of(s, q);
        status = combine_column(s, &c);
    }
    return status;
}

/* Combines, unless rounding or a likelihood that is no quadratic makes it worse. */
static thiele_status accelerate(thi_sweep *s, double *value)
{
    double with = -INFINITY;
    thiele_status status = combine(s);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(s->fit->problem.ctx);
        status = THIELE_OK;
    } else if (status == THIELE_OK) {
        status = thi_sweep_look(s, &with);
    }
    THI_TRY(status);
    if (with >= *value) {
        *value = with;
        return THIELE_OK;
    }
    memcpy(s->state, s->before, (size_t)s->size * sizeof *s->state);
    THI_TRY(thi_sweep_look(s, value));
out:
    return status;
}

/* Latents of a turn, at fixed curvatures. A step too long is halved. */
static thiele_status take_turn(thi_sweep *s, int t, double *value)
{
    thi_turn turn = thi_sweep_turn(s, t);
    double before = *value;
    thiele_status status = THIELE_OK;
    memcpy(s->at_turn, s->state, (size_t)s->size * sizeof *s->state);
    for (int64_t i = 0; i < thi_sweep_blocks(s); i++) {
        THI_TRY(solve_block(s, &turn, i));
        if (thi_driver_ask(s->fit->problem.driver)) {
            break;
        }
    }
    THI_TRY(thi_sweep_look(s, value));
    for (int k = 0; k < HALVINGS && *value < before; k++) {
        for (int64_t i = 0; i < s->size; i++) {
            s->state[i] = 0.5 * (s->state[i] + s->at_turn[i]);
        }
        THI_TRY(thi_sweep_look(s, value));
    }
out:
    return status;
}

/* One sweep; *value is the bound before and after it. */
thiele_status thi_sweep_once(thi_sweep *s, double *value)
{
    thiele_status status = THIELE_OK;
    memcpy(s->before, s->state, (size_t)s->size * sizeof *s->state);
    for (int t = 0; t < thi_sweep_turns(s) && (t == 0 || !thi_driver_stopped(s->fit->problem.driver)); t++) {
        THI_TRY(take_turn(s, t, value));
    }
    s->known = true;
    THI_TRY(remember(s));
    THI_TRY(accelerate(s, value));
out:
    return status;
}

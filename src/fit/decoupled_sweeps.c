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
 * an epoch: rows x M_alpha covariances and rows x M_alpha x block flops. With Gaussian noise a sweep never lowers the
 * bound; else one that does is halved. Memory: rows x block numbers, and rows + 2 M for each change that is kept.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/decoupled_sweep.h"

enum { LEAST_ROWS = 32768, ROWS_A_FUNCTION = 4, HALVINGS = 5, FEWEST_SWEEPS = 3, HELD = 2000, HELD_SHARE = 10 };
/* Nats a row: a sweep that gains less is the last one. */
static const double TOLERANCE = 1e-4;
/* Curvatures are kept above this part of the largest: a likelihood that is not log-concave has some below zero. */
static const double LEAST_CURVATURE = 1e-6;

/* (E, g, h) at the present f; *value: the bound but for what the covariance adds. */
static thiele_status look(thi_sweep *s, double *value)
{
    int64_t n = s->rows.n;
    const thi_asked asked = {0, n, s->rows.y, s->f, s->at.v, s->at.E, s->at.g, s->at.h, NULL};
    thiele_status status = thi_providers_expect(&s->fit->pass.providers, s->fit->problem.ctx, &asked);
    double expected = 0.0, largest = 0.0;
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        expected += s->at.E[i];
        largest = fmax(largest, -2.0 * s->at.h[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        s->at.h[i] = fmax(-2.0 * s->at.h[i], LEAST_CURVATURE * largest + 1e-300);
        s->at.root[i] = sqrt(s->weight * s->at.h[i]);
    }
    *value = s->weight * expected - s->cover.lost -
             0.5 * (thi_blas_dot(s->alpha.n, s->a, s->at_alpha) + thi_blas_dot(s->beta.n, s->b, s->at_beta));
    return status;
}

static thiele_status solve_block(thi_sweep *s, int64_t index)
{
    thiele_context *ctx = s->fit->problem.ctx;
    double *w, jitter;
    const double *own;
    thi_functions block = thi_sweep_block(s, index, &w, &own);
    int64_t n = s->rows.n, m = block.n;
    thi_matrix K = thi_matrix_view(s->K.data, n, m, n), G = thi_matrix_view(s->G.data, m, m, m);
    thiele_status status;
    THI_TRY(thi_functions_fill(&block, ctx, &s->inputs, K));
    for (int64_t j = 0; j < m; j++) {
        for (int64_t i = 0; i < n; i++) {
            K.data[i + j * n] *= s->at.root[i];
        }
        s->d[j] = -own[j];
    }
    for (int64_t i = 0; i < n; i++) {
        s->at.along[i] = s->weight * s->at.g[i] / s->at.root[i];
    }
    thi_blas_gemv(THI_T, 1.0, K, s->at.along, 1.0, s->d);
    THI_TRY(thi_functions_cross(&block, &block, ctx, G, true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, K, K, 1.0, G, true));
    THI_TRY(thi_chol_jitter(ctx, G, &jitter));
    thi_blas_trsv(THI_N, G, s->d);
    thi_blas_trsv(THI_T, G, s->d);
    thi_blas_gemv(THI_N, 1.0, K, s->d, 0.0, s->at.along);
    for (int64_t i = 0; i < n; i++) {
        double change = s->at.along[i] / s->at.root[i];
        s->f[i] += change;
        s->at.g[i] -= s->at.h[i] * change;
    }
    thi_blas_axpy(m, 1.0, s->d, w);
    THI_TRY(thi_sweep_follow(s, &block, s->d));
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

/* What a change does to the quadratic: its slope at the present state, and the curvature with another one. */
static double slope_along(const thi_sweep *s, const double *change)
{
    int64_t n = s->rows.n, M = s->alpha.n + s->beta.n;
    return s->weight * thi_blas_dot(n, s->at.g, change) - thi_blas_dot(M, s->a, change + n);
}

static double curvature_along(const thi_sweep *s, const double *one, const double *other)
{
    int64_t n = s->rows.n, M = s->alpha.n + s->beta.n;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += s->at.h[i] * one[i] * other[i];
    }
    return s->weight * sum + thi_blas_dot(M, one + n + M, other + n);
}

/* The best combination of all changes so far, after a look. s->before has the state without it. */
static thiele_status combine(thi_sweep *s)
{
    double data[THI_SWEEP_DIRECTIONS * THI_SWEEP_DIRECTIONS], best[THI_SWEEP_DIRECTIONS], jitter;
    int K = s->changes;
    thi_matrix H = thi_matrix_view(data, K, K, K);
    for (int j = 0; j < K; j++) {
        best[j] = slope_along(s, s->change[j]);
        for (int i = j; i < K; i++) {
            data[i + j * K] = curvature_along(s, s->change[i], s->change[j]);
        }
    }
    thiele_status status = thi_chol_jitter(s->fit->problem.ctx, H, &jitter);
    if (status != THIELE_OK) {
        return status;
    }
    thi_blas_trsv(THI_N, H, best);
    thi_blas_trsv(THI_T, H, best);
    memcpy(s->before, s->state, (size_t)s->size * sizeof *s->state);
    for (int j = 0; j < K; j++) {
        thi_blas_axpy(s->size, best[j], s->change[j], s->state);
    }
    return THIELE_OK;
}

/* Combines, unless rounding or a likelihood that is no quadratic makes it worse. */
static thiele_status accelerate(thi_sweep *s, double *value)
{
    double with;
    thiele_status status = combine(s);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(s->fit->problem.ctx);
        return THIELE_OK;
    }
    THI_TRY(status);
    THI_TRY(look(s, &with));
    if (with >= *value) {
        *value = with;
        return THIELE_OK;
    }
    memcpy(s->state, s->before, (size_t)s->size * sizeof *s->state);
    THI_TRY(look(s, value));
out:
    return status;
}

/* Gaussian noise at its optimum for the present f. */
static thiele_status renew_noise(thi_sweep *s)
{
    double squares = 0.0;
    for (int64_t i = 0; i < s->rows.n; i++) {
        squares += (s->rows.y[i] - s->f[i]) * (s->rows.y[i] - s->f[i]);
    }
    return s->covered ? thi_dcover_profile(&s->cover, s->fit, squares) : THIELE_OK;
}

/* One sweep; *value is the bound before and after it. A step too long is halved. */
static thiele_status one_sweep(thi_sweep *s, double *value)
{
    double before = *value;
    thiele_status status = THIELE_OK;
    memcpy(s->before, s->state, (size_t)s->size * sizeof *s->state);
    for (int64_t i = 0; i < thi_sweep_blocks(s); i++) {
        THI_TRY(solve_block(s, i));
        if (thi_driver_stopped(s->fit->problem.driver)) {
            break;
        }
    }
    THI_TRY(look(s, value));
    for (int k = 0; k < HALVINGS && *value < before; k++) {
        for (int64_t i = 0; i < s->size; i++) {
            s->state[i] = 0.5 * (s->state[i] + s->before[i]);
        }
        THI_TRY(look(s, value));
    }
    THI_TRY(remember(s));
    THI_TRY(accelerate(s, value));
out:
    return status;
}

/* --- by the clock ----------------------------------------------------------------------------------------------------
 */

/* Flops of a sweep, or about those of opening one, per row. */
static double flops_a_row(const thi_dfit *fit, int64_t functions)
{
    return (double)functions * (2.0 * fit->problem.source->dims + THI_SWEEP_BLOCK);
}

int64_t thi_dfit_swept(const thi_dfit *fit)
{
    double flops = thi_budget_flops(fit->problem.driver, THI_SHARE_STEPS) /
                   (FEWEST_SWEEPS * ROWS_A_FUNCTION * flops_a_row(fit, 1));
    return (int64_t)fmin((double)fit->most_alpha, sqrt(flops));
}

/* As many rows as some sweeps have time for; 0: fewer than would tell the functions apart. */
static int64_t rows_of(const thi_dfit *fit, int64_t most)
{
    double seconds =
        thi_budget_seconds(fit->problem.driver, FEWEST_SWEEPS * flops_a_row(fit, fit->n_alpha + fit->n_beta));
    double rows = fmin((double)most, thi_budget_left(fit->problem.driver) / seconds);
    return rows < fmin(ROWS_A_FUNCTION * (double)fit->n_alpha, (double)most) ? 0 : (int64_t)rows;
}

/* The rows that were held out, as the present q predicts them. */
static thiele_status judge(const thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    thi_left_out *out = &fit->left_out;
    int64_t most = fit->batches.largest, D = s->rows.dims;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < s->held.n; first += most) {
        THI_TRY(fit->pass.engine->marginals(fit->pass.self, fit->problem.ctx, thi_least(most, s->held.n - first),
                                            s->held.X + first * D, out->error2 + first, out->v + first));
    }
    for (int64_t i = 0; i < s->held.n; i++) {
        double gap = s->held.y[i] - out->error2[i] - (s->held.offset != NULL ? s->held.offset[i] : 0.0);
        out->error2[i] = gap * gap;
    }
    out->n = s->held.n;
out:
    return status;
}

/* Sweeps over some of the rows until they gain little, `held` of which only judge what comes of it. */
static thiele_status sweep_rows(thi_dfit *fit, int64_t rows, int64_t held, int sweeps)
{
    thi_sweep s;
    double value, before, began, tolerance = fit->sparse->tolerance > 0.0 ? fit->sparse->tolerance : TOLERANCE;
    thiele_status status;
    THI_TRY(thi_sweep_open(&s, fit, rows, held));
    for (int i = 0; i < sweeps && !thi_driver_stopped(fit->problem.driver); i++) {
        began = thi_seconds();
        THI_TRY(look(&s, &before));
        value = before;
        THI_TRY(one_sweep(&s, &value));
        if (!thi_driver_stopped(fit->problem.driver)) {
            thi_budget_took(fit->problem.driver, (double)s.rows.n * flops_a_row(fit, fit->n_alpha + fit->n_beta),
                            thi_seconds() - began);
        }
        thi_driver_report(fit->problem.driver, value);
        THI_TRY(renew_noise(&s));
        if (value - before < tolerance * (double)fit->problem.source->n) {
            break;
        }
    }
    THI_TRY(thi_sweep_keep(&s));
    THI_TRY(judge(&s));
out:
    thi_sweep_close(&s);
    return status;
}

/* Rows to hold out, where a noise of predictions is to be found, and room for what they say. */
static thiele_status hold_rows(thi_dfit *fit, int64_t *held)
{
    const thi_hypers *hypers = fit->problem.hypers;
    bool wanted = hypers->noise >= 0 && !hypers->hyper[hypers->noise].fixed && fit->orthogonal && fit->n_alpha > 0;
    thiele_status status = THIELE_OK;
    *held = wanted ? thi_least(HELD, fit->problem.source->n / HELD_SHARE) : 0;
    if (*held > 0) {
        THI_TRY(thi_alloc(fit->problem.ctx, &fit->left_out.error2, (size_t)*held, sizeof *fit->left_out.error2));
        THI_TRY(thi_alloc(fit->problem.ctx, &fit->left_out.v, (size_t)*held, sizeof *fit->left_out.v));
    }
out:
    return status;
}

/* Where all rows are swept, those that were held out join the others in the end. */
thiele_status thi_dfit_sweeps(thi_dfit *fit, int sweeps)
{
    int64_t n = fit->problem.source->n, most = ROWS_A_FUNCTION * fit->n_alpha, rows = 0, held;
    thiele_status status;
    most = thi_least(n, most > LEAST_ROWS ? most : LEAST_ROWS);
    thi_driver_phase(fit->problem.driver, "sweeps", sweeps);
    THI_TRY(hold_rows(fit, &held));
    int64_t beyond = n - most >= held ? held : 0;
    while (fit->n_alpha > 0 && rows < most && !thi_driver_stopped(fit->problem.driver)) {
        int64_t next = rows_of(fit, most);
        if (next < most && next < 2 * rows + 1) {
            break;
        }
        rows = next;
        THI_TRY(sweep_rows(fit, rows + beyond, held, sweeps));
    }
    if (rows > 0 && beyond < held && !thi_driver_stopped(fit->problem.driver)) {
        THI_TRY(sweep_rows(fit, rows, 0, sweeps));
    }
out:
    return status;
}

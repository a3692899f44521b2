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

#include "basis/partition.h"
#include "fit/budget.h"
#include "fit/decoupled_state.h"

enum {
    DIRECTIONS = 16,
    BLOCK = 256,
    LEAST_ROWS = 32768,
    ROWS_A_FUNCTION = 4,
    PORTION = 1024,
    HALVINGS = 5,
    FEWEST_SWEEPS = 3
};
/* Nats a row: a sweep that gains less is the last one. */
static const double TOLERANCE = 1e-4;
/* Curvatures are kept above this part of the largest: a likelihood that is not log-concave has some below zero. */
static const double LEAST_CURVATURE = 1e-6;

typedef struct sweep {
    thi_dfit *fit;
    thi_rows rows;
    thi_inputs inputs;
    thi_functions alpha, beta;
    thi_partition partition;
    int64_t most;  /* functions of the largest block */
    double weight; /* of a row */
    /* What a sweep changes, in one piece: f of the rows, <psi, f> and w of alpha and of beta. */
    int64_t size;
    double *state, *f, *at_alpha, *at_beta, *a, *b;
    double *before;
    double *change[DIRECTIONS]; /* of the state, by the last sweeps; the first `changes` of them */
    int changes;
    struct {
        double *v, *E, *g, *h, *root, *along;
    } at; /* rows */
    thi_matrix K, G, part;
    double *d;
} sweep;

/* --- opening ---------------------------------------------------------------------------------------------------------
 */

static thiele_status fetch_points(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, double *X)
{
    (void)ctx;
    thi_dfit *fit = arg;
    int64_t D = fit->problem.source->dims;
    for (int64_t i = 0; i < count; i++) {
        memcpy(X + i * D, thi_dfit_part(fit, THI_DPART_ALPHA) + row[i] * D, (size_t)D * sizeof *X);
    }
    return THIELE_OK;
}

/* One over the length-scales of each column; 0 where the kernel has none. */
static void column_scales(const thiele_kernel *kernel, double *scale)
{
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        bool scaled = leaf->kind->family == THI_DISTANCE && leaf->kind->map == &thi_features_scaled;
        for (int d = 0; scaled && d < leaf->dims; d++) {
            scale[leaf->dim[d]] = fmax(scale[leaf->dim[d]], 1.0 / thi_leaf_lengthscale(leaf, d));
        }
    }
}

/* Numbers of a part of x, `each` a function, into the order of the blocks. */
static void reorder(const int64_t *order, int64_t n, int64_t each, double *x, double *work)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(work + i * each, x + order[i] * each, (size_t)each * sizeof *x);
    }
    memcpy(x, work, (size_t)(n * each) * sizeof *x);
}

/* Functions that are near to each other stand together from now on. */
static thiele_status sort_functions(sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t D = fit->problem.source->dims, n = fit->n_alpha;
    thi_partition_rows points = {(int)D, n, fit, fetch_points};
    double *scale = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &scale, (size_t)D, sizeof *scale));
    column_scales(fit->problem.spec->latents.kernel[0], scale);
    THI_TRY(thi_partition_make(&s->partition, fit->problem.ctx, &points, (n + BLOCK - 1) / BLOCK, scale, 0.0));
    const int64_t *order = s->partition.order;
    double *work = fit->vector.before;
    reorder(order, n, 1, thi_dfit_part(fit, THI_DPART_A), work);
    reorder(order, n, 1, fit->vector.scale_a, work);
    reorder(order, n, D, thi_dfit_part(fit, THI_DPART_ALPHA), work);
    if (fit->settings->generalised) {
        reorder(order, n, D, thi_dfit_part(fit, THI_DPART_C_ALPHA), work);
    }
    s->most = fit->orthogonal ? fit->n_beta : 0;
    for (int64_t i = 0; i < s->partition.blocks; i++) {
        int64_t count = s->partition.start[i + 1] - s->partition.start[i];
        s->most = count > s->most ? count : s->most;
    }
out:
    thi_free(scale);
    return status;
}

static thiele_status open_room(sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t n = s->rows.n, M = fit->n_alpha, Mb = fit->n_beta;
    thiele_status status;
    s->size = n + 2 * (M + Mb);
    THI_TRY(thi_alloc(fit->problem.ctx, &s->state, (size_t)s->size, sizeof *s->state));
    THI_TRY(thi_alloc(fit->problem.ctx, &s->before, (size_t)s->size, sizeof *s->before));
    s->f = s->state;
    s->at_alpha = s->f + n;
    s->at_beta = s->at_alpha + M;
    s->a = s->at_beta + Mb;
    s->b = s->a + M;
    THI_TRY(thi_alloc(fit->problem.ctx, &s->at.v, (size_t)(6 * n), sizeof *s->at.v));
    s->at.E = s->at.v + n;
    s->at.g = s->at.E + n;
    s->at.h = s->at.g + n;
    s->at.root = s->at.h + n;
    s->at.along = s->at.root + n;
    THI_TRY(thi_matrix_alloc(&s->K, fit->problem.ctx, n, s->most));
    THI_TRY(thi_matrix_alloc(&s->G, fit->problem.ctx, s->most, s->most));
    THI_TRY(thi_matrix_alloc(&s->part, fit->problem.ctx, PORTION, s->most));
    THI_TRY(thi_alloc(fit->problem.ctx, &s->d, (size_t)s->most, sizeof *s->d));
out:
    return status;
}

/* <psi, f> of all functions += those of the block's with weights d. */
static thiele_status follow(sweep *s, const thi_functions *block, const double *d)
{
    const thi_functions *all[2] = {&s->alpha, &s->beta};
    double *at[2] = {s->at_alpha, s->at_beta};
    for (int k = 0; k < 2; k++) {
        for (int64_t first = 0; first < all[k]->n; first += PORTION) {
            thi_functions part = thi_functions_part(all[k], first, thi_least(PORTION, all[k]->n - first));
            thi_matrix K = thi_matrix_view(s->part.data, part.n, block->n, part.n);
            thiele_status status = thi_functions_cross(&part, block, s->fit->problem.ctx, K, false);
            if (status != THIELE_OK) {
                return status;
            }
            thi_blas_gemv(THI_N, 1.0, K, d, 1.0, at[k] + first);
        }
    }
    return THIELE_OK;
}

static int64_t blocks_of(const sweep *s)
{
    return s->partition.blocks + (s->fit->orthogonal && s->beta.n > 0);
}

/* The functions of a block, their weights, and their <psi, f>; beta is the last one. */
static thi_functions block_at(const sweep *s, int64_t i, double **w, const double **own)
{
    int64_t first = i < s->partition.blocks ? s->partition.start[i] : 0;
    bool mean = i < s->partition.blocks;
    *w = mean ? s->a + first : s->b;
    *own = mean ? s->at_alpha + first : s->at_beta;
    return mean ? thi_functions_part(&s->alpha, first, s->partition.start[i + 1] - first)
                : thi_functions_part(&s->beta, 0, s->beta.n);
}

/* Marginals of the rows, and <psi, f> at the present weights. */
static thiele_status first_state(sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t n = s->rows.n, most = fit->batches.largest, D = s->rows.dims;
    thiele_status status;
    THI_TRY(thi_dfit_ready(fit));
    for (int64_t first = 0; first < n; first += most) {
        THI_TRY(fit->pass.engine->marginals(fit->pass.self, fit->problem.ctx, thi_least(most, n - first),
                                            s->rows.X + first * D, s->f + first, s->at.v + first));
    }
    for (int64_t i = 0; s->rows.offset != NULL && i < n; i++) {
        s->f[i] += s->rows.offset[i];
    }
    memcpy(s->a, thi_dfit_part(fit, THI_DPART_A), (size_t)fit->n_alpha * sizeof *s->a);
    if (fit->orthogonal && fit->n_beta > 0) {
        thi_decoupled_weights(fit->pass.self, s->b);
    }
    for (int64_t i = 0; i < blocks_of(s); i++) {
        double *w;
        const double *own;
        thi_functions block = block_at(s, i, &w, &own);
        THI_TRY(follow(s, &block, w));
    }
out:
    return status;
}

static thiele_status sweep_open(sweep *s, thi_dfit *fit, int64_t rows)
{
    const thiele_kernel *kernel = fit->problem.spec->latents.kernel[0];
    thi_decoupled_q q;
    thiele_status status;
    *s = (sweep){.fit = fit};
    THI_TRY(sort_functions(s));
    q = thi_dfit_q(fit);
    THI_TRY(thi_source_sample(fit->problem.source, fit->problem.ctx, rows, THI_SAMPLE_WARM, &s->rows));
    s->weight = (double)fit->problem.source->n / (double)s->rows.n;
    THI_TRY(thi_inputs_make(&s->inputs, fit->problem.ctx, kernel, s->rows.n, s->rows.X));
    THI_TRY(thi_functions_make(&s->alpha, fit->problem.ctx, kernel, q.alpha.n, q.alpha.X, q.alpha.log_c));
    THI_TRY(
        thi_functions_make(&s->beta, fit->problem.ctx, kernel, fit->orthogonal ? q.beta.n : 0, q.beta.X, q.beta.log_c));
    THI_TRY(open_room(s));
    THI_TRY(first_state(s));
out:
    return status;
}

static void sweep_close(sweep *s)
{
    thi_partition_clear(&s->partition);
    thi_rows_free(&s->rows);
    thi_inputs_clear(&s->inputs);
    thi_functions_clear(&s->alpha);
    thi_functions_clear(&s->beta);
    thi_free(s->state);
    thi_free(s->before);
    for (int k = 0; k < DIRECTIONS; k++) {
        thi_free(s->change[k]);
    }
    thi_free(s->at.v);
    thi_free(s->K.data);
    thi_free(s->G.data);
    thi_free(s->part.data);
    thi_free(s->d);
}

/* --- sweeps ----------------------------------------------------------------------------------------------------------
 */

/* (E, g, h) at the present f; *value: the bound but for what the covariance adds. */
static thiele_status look(sweep *s, double *value)
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
    *value = s->weight * expected -
             0.5 * (thi_blas_dot(s->alpha.n, s->a, s->at_alpha) + thi_blas_dot(s->beta.n, s->b, s->at_beta));
    return status;
}

static thiele_status solve_block(sweep *s, int64_t index)
{
    thiele_context *ctx = s->fit->problem.ctx;
    double *w, jitter;
    const double *own;
    thi_functions block = block_at(s, index, &w, &own);
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
    THI_TRY(follow(s, &block, s->d));
out:
    return status;
}

/* The change that the last sweep made joins the others, in place of the oldest where there is no room. */
static thiele_status remember(sweep *s)
{
    double *to = s->changes == DIRECTIONS ? s->change[0] : NULL;
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
static double slope_along(const sweep *s, const double *change)
{
    int64_t n = s->rows.n, M = s->alpha.n + s->beta.n;
    return s->weight * thi_blas_dot(n, s->at.g, change) - thi_blas_dot(M, s->a, change + n);
}

static double curvature_along(const sweep *s, const double *one, const double *other)
{
    int64_t n = s->rows.n, M = s->alpha.n + s->beta.n;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += s->at.h[i] * one[i] * other[i];
    }
    return s->weight * sum + thi_blas_dot(M, one + n + M, other + n);
}

/* The best combination of all changes so far, after a look. s->before has the state without it. */
static thiele_status combine(sweep *s)
{
    double data[DIRECTIONS * DIRECTIONS], best[DIRECTIONS], jitter;
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
static thiele_status accelerate(sweep *s, double *value)
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

/* Where Gaussian noise is that of a bound: its optimum at the present f. What exploring found stays. */
static thiele_status renew_noise(sweep *s)
{
    thi_dfit *fit = s->fit;
    thi_hyper *noise = fit->problem.hypers->noise >= 0 ? &fit->problem.hypers->hyper[fit->problem.hypers->noise] : NULL;
    double sum = 0.0;
    if (noise == NULL || noise->fixed || !(fit->learn || fit->bound_noise) || fit->sparse->iterations < 0) {
        return THIELE_OK;
    }
    for (int64_t i = 0; i < s->rows.n; i++) {
        double gap = s->rows.y[i] - s->f[i];
        sum += gap * gap + s->at.v[i];
    }
    noise->value = log(fmax(sum / (double)s->rows.n - noise->floor, 1e-300));
    if (fit->learn) {
        thi_hypers_pack(fit->problem.hypers, thi_dfit_part(fit, THI_DPART_HYPER));
    }
    return thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
}

/* One sweep; *value is the bound before and after it. A step too long is halved. */
static thiele_status one_sweep(sweep *s, double *value)
{
    double before = *value;
    thiele_status status = THIELE_OK;
    memcpy(s->before, s->state, (size_t)s->size * sizeof *s->state);
    for (int64_t i = 0; i < blocks_of(s); i++) {
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
    return (double)functions * (2.0 * fit->problem.source->dims + BLOCK);
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

/* Sweeps over some of the rows until they gain little. */
static thiele_status sweep_rows(thi_dfit *fit, int64_t rows, int sweeps)
{
    sweep s;
    double value, before, began, tolerance = fit->sparse->tolerance > 0.0 ? fit->sparse->tolerance : TOLERANCE;
    thiele_status status;
    THI_TRY(sweep_open(&s, fit, rows));
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
    memcpy(thi_dfit_part(fit, THI_DPART_A), s.a, (size_t)fit->n_alpha * sizeof *s.a);
    THI_TRY(thi_dfit_ready(fit));
    if (fit->orthogonal && fit->n_beta > 0) {
        thi_decoupled_weigh(fit->pass.self, s.b, fit->vector.sites.t);
    }
out:
    sweep_close(&s);
    return status;
}

thiele_status thi_dfit_sweeps(thi_dfit *fit, int sweeps)
{
    int64_t n = fit->problem.source->n, most = ROWS_A_FUNCTION * fit->n_alpha, rows = 0;
    thiele_status status = THIELE_OK;
    most = thi_least(n, most > LEAST_ROWS ? most : LEAST_ROWS);
    thi_driver_phase(fit->problem.driver, "sweeps", sweeps);
    while (fit->n_alpha > 0 && rows < most && !thi_driver_stopped(fit->problem.driver)) {
        int64_t next = rows_of(fit, most);
        if (next < most && next < 2 * rows + 1) {
            break;
        }
        rows = next;
        THI_TRY(sweep_rows(fit, rows, sweeps));
    }
out:
    return status;
}

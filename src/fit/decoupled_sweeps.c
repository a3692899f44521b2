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
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/decoupled_sweep.h"

enum {
    LEAST_ROWS = 65536,
    ROWS_A_FUNCTION = 4,
    HALVINGS = 5,
    FEWEST_SWEEPS = 6,
    COURSES = 8,
    HELD = 2000,
    FEW_ROWS = 16384, /* that hyperparameters are compared by */
    HELD_SHARE = 10
};
/* Nats a row: a sweep that gains less is the last one. */
static const double TOLERANCE = 1e-4;
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

/* (E, g, h) at the present f; *value: the bound but for what the covariance adds. */
static thiele_status look(thi_sweep *s, double *value)
{
    int64_t n = s->rows.n, Q = s->latents, functions = (s->n_alpha + s->n_beta) * Q;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t q = 0; q < Q; q++) {
            s->at.mu[q + i * Q] = s->f[i + q * n];
        }
    }
    const thi_asked asked = {0, n, s->rows.y, s->at.mu, s->at.v, s->at.E, s->at.slope, s->at.bend, NULL};
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

/* What a change does to the quadratic: its slope at the present state, and the curvature with another one. */
static double slope_along(const thi_sweep *s, const double *change)
{
    int64_t n = s->rows.n * s->latents, M = (s->n_alpha + s->n_beta) * s->latents;
    return s->weight * thi_blas_dot(n, s->at.g, change) - thi_blas_dot(M, s->a, change + n);
}

static double curvature_along(const thi_sweep *s, const double *one, const double *other)
{
    int64_t n = s->rows.n * s->latents, M = (s->n_alpha + s->n_beta) * s->latents;
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

/* Squared errors of a target over the rows that have it; *count of them. */
static double squares_of(const thi_sweep *s, int64_t q, double *count)
{
    const double *f = s->f + q * s->rows.n;
    double squares = 0.0;
    *count = 0.0;
    for (int64_t i = 0; i < s->rows.n; i++) {
        double gap = s->rows.y[q + i * s->latents] - f[i];
        squares += isnan(gap) ? 0.0 : gap * gap;
        *count += !isnan(gap);
    }
    return squares;
}

/* Gaussian noise at its optimum for the present errors, or those of all rows where `unseen` is the share of others. */
static thiele_status renew_noise(thi_sweep *s, double unseen)
{
    for (int q = 0; q < s->latents && s->covered; q++) {
        double count, seen = squares_of(s, q, &count);
        double held = unseen > 0.0 ? count * thi_left_out_error(&s->fit->left_out[q]) : seen;
        s->noise.more[q] = unseen * (held - seen);
        s->noise.squares[q] = seen + s->noise.more[q];
    }
    return s->covered ? thi_dcover_profile(&s->cover, s->fit, s->noise.squares) : THIELE_OK;
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
        if (thi_driver_stopped(s->fit->problem.driver)) {
            break;
        }
    }
    THI_TRY(look(s, value));
    for (int k = 0; k < HALVINGS && *value < before; k++) {
        for (int64_t i = 0; i < s->size; i++) {
            s->state[i] = 0.5 * (s->state[i] + s->at_turn[i]);
        }
        THI_TRY(look(s, value));
    }
out:
    return status;
}

/* One sweep; *value is the bound before and after it. */
static thiele_status one_sweep(thi_sweep *s, double *value)
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

/* --- by the clock ----------------------------------------------------------------------------------------------------
 */

/* Flops of some sweeps over a row: with Gaussian noise products of functions are those of the first one, and of a
 * group. */
static double flops_a_row(const thi_dfit *fit, int64_t functions, int sweeps)
{
    static const double EXP = 40.0;
    bool tight = thi_pass_is_tight(fit->problem.spec, &thi_engine_decoupled);
    int turns = tight ? fit->latents->groups : fit->latents->count, products = tight ? 1 : sweeps;
    return turns * (double)functions * (sweeps * (2.0 * fit->problem.source->dims + EXP) + products * THI_SWEEP_BLOCK);
}

int64_t thi_dfit_swept(const thi_dfit *fit)
{
    double flops =
        thi_budget_flops(fit->problem.driver, THI_SHARE_STEPS) / (ROWS_A_FUNCTION * flops_a_row(fit, 1, FEWEST_SWEEPS));
    return (int64_t)fmin((double)fit->most_alpha, sqrt(flops));
}

static int64_t most_rows(const thi_dfit *fit, int64_t functions)
{
    return thi_least(fit->problem.source->n, thi_most(ROWS_A_FUNCTION * functions, LEAST_ROWS));
}

double thi_dfit_sweep_flops(const thi_dfit *fit)
{
    return COURSES * (double)most_rows(fit, fit->most_alpha) *
           flops_a_row(fit, fit->most_alpha + fit->most_beta, FEWEST_SWEEPS);
}

/* As many rows as some sweeps have time for; 0: fewer than would tell the functions apart. */
static int64_t rows_of(const thi_dfit *fit, int64_t most)
{
    double seconds =
        thi_budget_seconds(fit->problem.driver, flops_a_row(fit, fit->n_alpha + fit->n_beta, FEWEST_SWEEPS));
    double rows = fmin((double)most, thi_budget_left(fit->problem.driver) / seconds);
    return rows < fmin(ROWS_A_FUNCTION * (double)fit->n_alpha, (double)most) ? 0 : (int64_t)rows;
}

/* A block of rows that were held out, as the present q predicts them, joins what is known of each target. */
static void judge_rows(const thi_sweep *s, int64_t first, int64_t count)
{
    thi_dfit *fit = s->fit;
    int64_t Q = s->latents;
    for (int64_t i = 0; i < count * Q; i++) {
        thi_left_out *out = &fit->left_out[i % Q];
        double offset = s->held.offset != NULL && i % Q == 0 ? s->held.offset[first + i / Q] : 0.0;
        double gap = s->held.y[first * Q + i] - fit->pass.mu[i] - offset;
        if (!isnan(gap)) {
            out->error2[out->n] = gap * gap;
            out->v[out->n++] = fit->pass.v[i];
        }
    }
}

static thiele_status judge(const thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t most = fit->batches.largest, D = s->rows.dims;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < s->latents; q++) {
        fit->left_out[q].n = 0;
    }
    for (int64_t first = 0; first < s->held.n; first += most) {
        int64_t count = thi_least(most, s->held.n - first);
        THI_TRY(fit->pass.engine->marginals(fit->pass.self, fit->problem.ctx, count, s->held.X + first * D,
                                            fit->pass.mu, fit->pass.v));
        judge_rows(s, first, count);
    }
    fit->held = s->held.n;
out:
    return status;
}

/* The noise that the mean is made with: a part of the bound's, which is kept. */
static thiele_status lower_noise(thi_sweep *s, double ratio)
{
    thi_dfit *fit = s->fit;
    for (int q = 0; q < s->latents && ratio < 1.0; q++) {
        thi_hyper *noise = thi_dfit_noise(fit, q);
        s->noise.kept[q] = noise->value;
        noise->value = log(fmax(ratio * thi_hyper_number(noise) - noise->floor, 1e-3 * noise->floor));
    }
    return ratio < 1.0 ? thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec) : THIELE_OK;
}

static thiele_status raise_noise(thi_sweep *s, double ratio)
{
    thi_dfit *fit = s->fit;
    for (int q = 0; q < s->latents && ratio < 1.0; q++) {
        thi_dfit_noise(fit, q)->value = s->noise.kept[q];
    }
    return ratio < 1.0 ? thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec) : THIELE_OK;
}

/* Sweeps until they gain little; returns how many by *count. */
static thiele_status sweep_on(thi_sweep *s, const thi_course *c, int *count)
{
    thi_dfit *fit = s->fit;
    double value, before, gained = INFINITY;
    double enough =
        (fit->sparse->tolerance > 0.0 ? fit->sparse->tolerance : TOLERANCE) * (double)fit->problem.source->n;
    thiele_status status = THIELE_OK;
    for (; *count < c->sweeps && gained >= enough && !thi_driver_stopped(fit->problem.driver); ++*count) {
        THI_TRY(lower_noise(s, c->ratio));
        THI_TRY(look(s, &before));
        value = before;
        THI_TRY(one_sweep(s, &value));
        gained = value - before;
        THI_TRY(raise_noise(s, c->ratio));
        THI_TRY(renew_noise(s, 0.0));
        THI_TRY(look(s, &value));
        thi_driver_report(fit->problem.driver, value);
        bool hopeless = *count >= FEWEST_SWEEPS / 2 && value + (c->sweeps - *count - 1) * gained < c->least;
        gained = hopeless ? 0.0 : gained;
    }
out:
    return status;
}

/* Rows that are not learned from have the errors of those held out: the noise and the bound with them. */
static thiele_status count_unseen(thi_sweep *s, double unseen, double *value)
{
    thiele_status status;
    THI_TRY(renew_noise(s, unseen));
    THI_TRY(look(s, value));
    for (int q = 0; q < s->latents; q++) {
        *value -= 0.5 * s->weight * s->noise.more[q] / s->fit->problem.spec->lik->value[q];
    }
    THI_TRY(thi_sweep_keep(s));
out:
    return status;
}

thiele_status thi_sweep_course(thi_dfit *fit, const thi_course *c, double *value)
{
    thi_sweep s;
    double began = thi_seconds();
    int sweeps = 0;
    thiele_status status;
    THI_TRY(thi_sweep_open(&s, fit, c->rows, c->held));
    THI_TRY(sweep_on(&s, c, &sweeps));
    if (!thi_driver_stopped(fit->problem.driver)) {
        double flops = (double)s.rows.n * flops_a_row(fit, fit->n_alpha + fit->n_beta, sweeps + 1);
        thi_budget_took(fit->problem.driver, flops, thi_seconds() - began);
    }
    THI_TRY(look(&s, value));
    THI_TRY(thi_sweep_keep(&s));
    if (c->held > 0) {
        THI_TRY(judge(&s));
        THI_TRY(count_unseen(&s, c->unseen, value));
    }
out:
    thi_sweep_close(&s);
    return status;
}

/* Whether there is time for so many of them, and for what must follow. */
static bool has_time(const thi_dfit *fit, const thi_course *c, int courses)
{
    double flops = courses * (double)c->rows * flops_a_row(fit, fit->n_alpha + fit->n_beta, c->sweeps + 1) + c->after;
    return !thi_driver_stopped(fit->problem.driver) &&
           thi_budget_left(fit->problem.driver) > thi_budget_seconds(fit->problem.driver, flops);
}

bool thi_sweep_has_time(const thi_dfit *fit, const thi_course *c)
{
    return has_time(fit, c, 2);
}

/* Rows to hold out, where a noise of predictions is to be found, and room for what they say. */
static thiele_status hold_rows(thi_dfit *fit, int64_t *held)
{
    bool wanted = false;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < fit->latents->count && fit->pass.tight; q++) {
        wanted = wanted || (!thi_dfit_noise(fit, q)->fixed && fit->orthogonal && fit->n_alpha > 0);
    }
    *held = wanted ? thi_least(HELD, fit->problem.source->n / HELD_SHARE) : 0;
    for (int q = 0; q<fit->latents->count && * held> 0; q++) {
        thi_left_out *out = &fit->left_out[q];
        THI_TRY(thi_alloc(fit->problem.ctx, &out->error2, (size_t)*held, sizeof *out->error2));
        THI_TRY(thi_alloc(fit->problem.ctx, &out->v, (size_t)*held, sizeof *out->v));
    }
out:
    return status;
}

/* What hyperparameters are compared by, before the weights of those that are taken. */
static thi_course few_rows(const thi_dfit *fit, int64_t held, int sweeps)
{
    int64_t n = fit->problem.source->n, rows = thi_least(n, FEW_ROWS + held), functions = fit->n_alpha + fit->n_beta;
    return (thi_course){.rows = rows,
                        .held = held,
                        .sweeps = sweeps < FEWEST_SWEEPS ? sweeps : FEWEST_SWEEPS,
                        .unseen = 1.0 - (double)(rows - held) / (double)n,
                        .least = -INFINITY,
                        .after = (double)most_rows(fit, fit->n_alpha) * flops_a_row(fit, functions, FEWEST_SWEEPS),
                        .ratio = 1.0};
}

/* Where all rows are swept, those that were held out join the others in the end. */
thiele_status thi_dfit_sweeps(thi_dfit *fit, int sweeps)
{
    int64_t n = fit->problem.source->n, most = most_rows(fit, fit->n_alpha), rows = 0, held;
    thi_course c = {.sweeps = sweeps, .least = -INFINITY, .ratio = 1.0};
    double value;
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "sweeps", sweeps);
    THI_TRY(hold_rows(fit, &held));
    c.held = held;
    int64_t beyond = n - most >= held ? held : 0;
    thi_course few = few_rows(fit, held, sweeps);
    if (held > 0 && has_time(fit, &few, 1)) {
        THI_TRY(thi_dfit_climb(fit, &few));
    }
    while (fit->n_alpha > 0 && rows < most && !thi_driver_stopped(fit->problem.driver)) {
        int64_t next = rows_of(fit, most);
        if (next < most && next < 2 * rows + 1) {
            break;
        }
        rows = next;
        c.rows = rows + beyond;
        c.unseen = 1.0 - (double)(c.rows - held) / (double)n;
        THI_TRY(thi_sweep_course(fit, &c, &value));
    }
    if (rows > 0 && held > 0) {
        THI_TRY(thi_dfit_loosen(fit, &c, value));
    }
    if (rows > 0 && beyond < held && !thi_driver_stopped(fit->problem.driver)) {
        c.rows = rows;
        c.held = 0;
        THI_TRY(thi_sweep_course(fit, &c, &value));
    }
out:
    return status;
}

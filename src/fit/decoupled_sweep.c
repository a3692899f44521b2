/* Opening sweeps over the weights of a decoupled mean: rows, functions in blocks, what a sweep follows. */
#include "fit/decoupled_sweep.h"

#include <math.h>
#include <string.h>

/* Where a function is in the first group: others have it there too, or not far from it. */
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

static void reorder_functions(thi_dfit *fit, const int64_t *order)
{
    int64_t D = fit->problem.source->dims, n = fit->n_alpha;
    double *work = fit->vector.before;
    for (int q = 0; q < fit->latents->count; q++) {
        reorder(order, n, 1, thi_dfit_of(fit, THI_DPART_A, q), work);
    }
    for (int g = 0; g < fit->latents->groups; g++) {
        reorder(order, n, 1, fit->vector.scale_a + g * fit->most_alpha, work);
        reorder(order, n, D, thi_dfit_of(fit, THI_DPART_ALPHA, g), work);
        if (fit->settings->generalised) {
            reorder(order, n, D, thi_dfit_of(fit, THI_DPART_C_ALPHA, g), work);
        }
    }
}

/* Functions that are near to each other stand together from now on. */
static thiele_status sort_functions(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t D = fit->problem.source->dims, n = fit->n_alpha;
    thi_partition_rows points = {(int)D, n, fit, fetch_points};
    double *scale = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &scale, (size_t)D, sizeof *scale));
    for (int g = 0; g < s->groups; g++) {
        column_scales(fit->latents->kernel[g], scale);
    }
    THI_TRY(thi_partition_make(&s->partition, fit->problem.ctx, &points, (n + THI_SWEEP_BLOCK - 1) / THI_SWEEP_BLOCK,
                               scale, 0.0));
    reorder_functions(fit, s->partition.order);
    s->most = fit->orthogonal ? fit->n_beta : 0;
    for (int64_t i = 0; i < s->partition.blocks; i++) {
        int64_t count = s->partition.start[i + 1] - s->partition.start[i];
        s->most = count > s->most ? count : s->most;
    }
out:
    thi_free(scale);
    return status;
}

int64_t thi_sweep_blocks(const thi_sweep *s)
{
    return s->partition.blocks + (s->n_beta > 0);
}

static int64_t block_size(const thi_sweep *s, int64_t i)
{
    return i < s->partition.blocks ? s->partition.start[i + 1] - s->partition.start[i] : s->n_beta;
}

thi_functions thi_sweep_block(const thi_sweep *s, int group, int64_t i)
{
    bool mean = i < s->partition.blocks;
    return thi_functions_part(mean ? &s->alpha[group] : &s->beta[group], mean ? s->partition.start[i] : 0,
                              block_size(s, i));
}

void thi_sweep_columns(const thi_sweep *s, const thi_turn *turn, int64_t i, thi_matrix *w, thi_matrix *own)
{
    bool mean = i < s->partition.blocks;
    int64_t ld = mean ? s->n_alpha : s->n_beta, at = (mean ? s->partition.start[i] : 0) + turn->first * ld;
    *w = thi_matrix_view((mean ? s->a : s->b) + at, block_size(s, i), turn->count, ld);
    *own = thi_matrix_view((mean ? s->at_alpha : s->at_beta) + at, block_size(s, i), turn->count, ld);
}

int thi_sweep_turns(const thi_sweep *s)
{
    return s->alike ? s->groups : s->latents;
}

thi_turn thi_sweep_turn(const thi_sweep *s, int i)
{
    int first = thi_dfit_first(s->fit, i);
    return s->alike ? (thi_turn){i, first, thi_dfit_first(s->fit, i + 1) - first}
                    : (thi_turn){s->fit->latents->group[i], i, 1};
}

/* Numbers of the first blocks' matrices. */
static int64_t gram_size(const thi_sweep *s, int64_t blocks)
{
    int64_t size = 0;
    for (int64_t i = 0; i < blocks; i++) {
        size += block_size(s, i) * block_size(s, i);
    }
    return size;
}

thi_matrix thi_sweep_gram(const thi_sweep *s, int group, int64_t i)
{
    int64_t m = block_size(s, i);
    double *of_group = s->gram + group * gram_size(s, thi_sweep_blocks(s));
    return thi_matrix_view(of_group + gram_size(s, i), m, m, m);
}

static thiele_status open_state(thi_sweep *s)
{
    thiele_context *ctx = s->fit->problem.ctx;
    int64_t n = s->rows.n, Q = s->latents;
    thiele_status status;
    s->size = (n + 2 * (s->n_alpha + s->n_beta)) * Q;
    THI_TRY(thi_alloc(ctx, &s->state, (size_t)s->size, sizeof *s->state));
    THI_TRY(thi_alloc(ctx, &s->before, (size_t)s->size, sizeof *s->before));
    THI_TRY(thi_alloc(ctx, &s->at_turn, (size_t)s->size, sizeof *s->at_turn));
    s->f = s->state;
    s->at_alpha = s->f + n * Q;
    s->at_beta = s->at_alpha + s->n_alpha * Q;
    s->a = s->at_beta + s->n_beta * Q;
    s->b = s->a + s->n_alpha * Q;
    double **at[] = {&s->at.v, &s->at.mu, &s->at.slope, &s->at.bend, &s->at.g, &s->at.h, &s->at.root, &s->at.along};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        THI_TRY(thi_alloc(ctx, at[i], (size_t)(n * Q), sizeof(double)));
    }
    THI_TRY(thi_alloc(ctx, &s->at.E, (size_t)n, sizeof *s->at.E));
    THI_TRY(thi_alloc(ctx, &s->noise.squares, (size_t)(3 * Q), sizeof *s->noise.squares));
    s->noise.more = s->noise.squares + Q;
    s->noise.kept = s->noise.more + Q;
out:
    return status;
}

static thiele_status open_room(thi_sweep *s)
{
    thiele_context *ctx = s->fit->problem.ctx;
    size_t grams = (size_t)(s->alike ? s->groups * gram_size(s, thi_sweep_blocks(s)) : 0);
    thiele_status status;
    THI_TRY(open_state(s));
    THI_TRY(thi_matrix_alloc(&s->K, ctx, s->rows.n, s->most));
    THI_TRY(thi_matrix_alloc(&s->G, ctx, s->most, s->most));
    THI_TRY(thi_matrix_alloc(&s->own, ctx, s->most, s->most));
    THI_TRY(thi_matrix_alloc(&s->part, ctx, THI_SWEEP_PORTION, s->most));
    THI_TRY(thi_alloc(ctx, &s->d, (size_t)(s->most * s->latents), sizeof *s->d));
    THI_TRY(thi_alloc_bare(ctx, &s->gram, grams, sizeof *s->gram));
out:
    return status;
}

thiele_status thi_sweep_follow(thi_sweep *s, const thi_turn *turn, const thi_functions *block, thi_matrix d)
{
    const thi_functions *all[2] = {&s->alpha[turn->group], &s->beta[turn->group]};
    double *at[2] = {s->at_alpha, s->at_beta};
    thiele_status status = THIELE_OK;
    for (int k = 0; k < 2; k++) {
        int64_t ld = all[k]->n;
        for (int64_t first = 0; first < ld; first += THI_SWEEP_PORTION) {
            thi_functions part = thi_functions_part(all[k], first, thi_least(THI_SWEEP_PORTION, ld - first));
            thi_matrix K = thi_matrix_view(s->part.data, part.n, block->n, part.n);
            thi_matrix to = thi_matrix_view(at[k] + first + turn->first * ld, part.n, turn->count, ld);
            THI_TRY(thi_functions_cross(&part, block, s->fit->problem.ctx, K, false));
            THI_TRY(thi_multiply(s->fit->problem.ctx, THI_N, THI_N, 1.0, K, d, 1.0, to, false));
        }
    }
out:
    return status;
}

/* Marginals of the rows; where the noise is Gaussian, what it needs of them. */
static thiele_status first_marginals(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t n = s->rows.n, most = fit->batches.largest, D = s->rows.dims, Q = s->latents;
    thiele_status status;
    THI_TRY(thi_dfit_ready(fit));
    for (int64_t first = 0; first < n; first += most) {
        int64_t count = thi_least(most, n - first);
        THI_TRY(fit->pass.engine->marginals(fit->pass.self, fit->problem.ctx, count, s->rows.X + first * D,
                                            s->at.mu + first * Q, s->at.v + first * Q));
        if (s->covered) {
            THI_TRY(thi_dcover_add(&s->cover, fit, first, count));
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t q = 0; q < Q; q++) {
            s->f[i + q * n] = s->at.mu[q + i * Q] + (s->rows.offset != NULL && q == 0 ? s->rows.offset[i] : 0.0);
        }
    }
    for (int g = 0; g < s->groups && !s->covered; g++) {
        s->cover.lost += thi_decoupled_spread(thi_decoupled_group(fit->pass.self, g));
    }
    if (s->covered) {
        thi_dcover_end(&s->cover, fit);
        memset(s->at.v, 0, (size_t)(n * Q) * sizeof *s->at.v);
        THI_TRY(thi_dcover_look(&s->cover, fit));
    }
out:
    return status;
}

/* All that sweeps follow, at the present weights; those of the mean are zero before the first sweep. */
static thiele_status first_state(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    thiele_status status;
    THI_TRY(first_marginals(s));
    for (int q = 0; q < s->latents; q++) {
        int group = fit->latents->group[q];
        memcpy(s->a + q * s->n_alpha, thi_dfit_of(fit, THI_DPART_A, q), (size_t)s->n_alpha * sizeof *s->a);
        if (s->n_beta > 0) {
            thi_decoupled_weights(thi_decoupled_group(fit->pass.self, group), q - thi_dfit_first(fit, group),
                                  s->b + q * s->n_beta);
        }
    }
    for (int t = 0; t < thi_sweep_turns(s); t++) {
        thi_turn turn = thi_sweep_turn(s, t);
        for (int64_t i = 0; i < thi_sweep_blocks(s); i++) {
            thi_functions block = thi_sweep_block(s, turn.group, i);
            thi_matrix w, own;
            thi_sweep_columns(s, &turn, i, &w, &own);
            if (!thi_matrix_is_zero(w)) {
                THI_TRY(thi_sweep_follow(s, &turn, &block, w));
            }
        }
    }
out:
    return status;
}

/* `count` of the rows, evenly spread over them, are held out. */
static thiele_status hold_out(thi_sweep *s, int64_t count)
{
    thi_rows *rows = &s->rows;
    int64_t n = rows->n, kept = 0;
    thiele_status status =
        thi_rows_alloc(&s->held, s->fit->problem.ctx, count, rows->dims, rows->outputs, thi_rows_aside(rows));
    s->held.n = 0;
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        bool out = (i + 1) * count / n > i * count / n;
        thi_rows *to = out ? &s->held : rows;
        int64_t at = out ? s->held.n++ : kept++;
        thi_rows_copy(to, at, rows, i);
    }
    rows->n = status == THIELE_OK ? kept : n;
    return status;
}

static thiele_status open_functions(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    thiele_context *ctx = fit->problem.ctx;
    size_t G = (size_t)s->groups;
    const thi_decoupled_q *q = thi_dfit_q(fit);
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &s->inputs, G, sizeof *s->inputs));
    THI_TRY(thi_alloc(ctx, &s->alpha, G, sizeof *s->alpha));
    THI_TRY(thi_alloc(ctx, &s->beta, G, sizeof *s->beta));
    for (int g = 0; g < s->groups; g++) {
        const thiele_kernel *kernel = fit->latents->kernel[g];
        THI_TRY(thi_inputs_make(&s->inputs[g], ctx, kernel, s->rows.n, s->rows.X));
        THI_TRY(thi_functions_make(&s->alpha[g], ctx, kernel, s->n_alpha, q[g].alpha.X, q[g].alpha.log_c));
        THI_TRY(thi_functions_make(&s->beta[g], ctx, kernel, s->n_beta, q[g].beta.X, q[g].beta.log_c));
    }
out:
    return status;
}

/* Gaussian noise, and every row has all targets. */
static bool is_alike(const thi_sweep *s)
{
    bool alike = s->covered;
    for (int64_t i = 0; alike && i < s->rows.n * s->rows.outputs; i++) {
        alike = !isnan(s->rows.y[i]);
    }
    return alike;
}

thiele_status thi_sweep_open(thi_sweep *s, thi_dfit *fit, int64_t rows, int64_t held)
{
    thiele_status status;
    *s = (thi_sweep){.fit = fit,
                     .latents = fit->latents->count,
                     .groups = fit->latents->groups,
                     .n_alpha = fit->n_alpha,
                     .n_beta = fit->orthogonal ? fit->n_beta : 0};
    THI_TRY(sort_functions(s));
    THI_TRY(thi_source_sample(fit->problem.source, fit->problem.ctx, rows, THI_SAMPLE_WARM, &s->rows));
    if (held > 0) {
        THI_TRY(hold_out(s, held));
    }
    s->weight = (double)fit->problem.source->n / (double)s->rows.n;
    s->covered = fit->pass.tight && fit->orthogonal;
    s->alike = is_alike(s);
    if (s->covered) {
        THI_TRY(thi_dcover_open(&s->cover, fit, &s->rows, s->weight));
    }
    THI_TRY(open_functions(s));
    THI_TRY(open_room(s));
    THI_TRY(first_state(s));
out:
    return status;
}

void thi_sweep_close(thi_sweep *s)
{
    double *numbers[] = {s->state,   s->gram,     s->before,    s->at_turn, s->at.v,         s->at.mu,    s->at.slope,
                         s->at.bend, s->at.E,     s->at.g,      s->at.h,    s->at.root,      s->at.along, s->K.data,
                         s->G.data,  s->own.data, s->part.data, s->d,       s->noise.squares};
    for (int g = 0; g < s->groups && s->inputs != NULL && s->alpha != NULL && s->beta != NULL; g++) {
        thi_inputs_clear(&s->inputs[g]);
        thi_functions_clear(&s->alpha[g]);
        thi_functions_clear(&s->beta[g]);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        thi_free(numbers[i]);
    }
    for (int k = 0; k < THI_SWEEP_DIRECTIONS; k++) {
        thi_free(s->change[k]);
    }
    thi_partition_clear(&s->partition);
    thi_rows_free(&s->rows);
    thi_rows_free(&s->held);
    thi_dcover_close(&s->cover);
    thi_free(s->inputs);
    thi_free(s->alpha);
    thi_free(s->beta);
}

/* The sites of Gaussian noise are G/s2. */
static void keep_sites(const thi_sweep *s, int q)
{
    thi_matrix T = s->fit->vector.sites[q].T, G = s->cover.sum[q].T;
    for (int64_t j = 0; j < G.rows; j++) {
        for (int64_t i = j; i < G.rows; i++) {
            T.data[i + j * T.ld] = G.data[i + j * G.ld] / s->fit->problem.spec->lik->value[q];
        }
    }
}

thiele_status thi_sweep_keep(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    thiele_status status;
    for (int q = 0; q < s->latents; q++) {
        memcpy(thi_dfit_of(fit, THI_DPART_A, q), s->a + q * s->n_alpha, (size_t)s->n_alpha * sizeof *s->a);
        if (s->covered) {
            keep_sites(s, q);
        }
    }
    THI_TRY(thi_dfit_ready(fit));
    if (s->n_beta == 0) {
        goto out;
    }
    for (int q = 0; q < s->latents; q++) {
        int group = fit->latents->group[q];
        thi_decoupled_weigh(thi_decoupled_group(fit->pass.self, group), q - thi_dfit_first(fit, group),
                            s->b + q * s->n_beta, fit->vector.sites[q].t);
    }
    THI_TRY(thi_dfit_ready(fit));
out:
    return status;
}

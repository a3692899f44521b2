/* Opening sweeps over the weights of a decoupled mean: rows, functions in blocks, what a sweep follows. */
#include "fit/decoupled_sweep.h"

#include <math.h>
#include <string.h>

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
static thiele_status sort_functions(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t D = fit->problem.source->dims, n = fit->n_alpha;
    thi_partition_rows points = {(int)D, n, fit, fetch_points};
    double *scale = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &scale, (size_t)D, sizeof *scale));
    column_scales(fit->problem.spec->latents.kernel[0], scale);
    THI_TRY(thi_partition_make(&s->partition, fit->problem.ctx, &points, (n + THI_SWEEP_BLOCK - 1) / THI_SWEEP_BLOCK,
                               scale, 0.0));
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

int64_t thi_sweep_blocks(const thi_sweep *s)
{
    return s->partition.blocks + (s->fit->orthogonal && s->beta.n > 0);
}

thi_functions thi_sweep_block(const thi_sweep *s, int64_t i, double **w, const double **own)
{
    int64_t first = i < s->partition.blocks ? s->partition.start[i] : 0;
    bool mean = i < s->partition.blocks;
    *w = mean ? s->a + first : s->b;
    *own = mean ? s->at_alpha + first : s->at_beta;
    return mean ? thi_functions_part(&s->alpha, first, s->partition.start[i + 1] - first)
                : thi_functions_part(&s->beta, 0, s->beta.n);
}

/* Numbers of the first blocks' matrices. */
static int64_t gram_size(const thi_sweep *s, int64_t blocks)
{
    int64_t size = 0;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t m = i < s->partition.blocks ? s->partition.start[i + 1] - s->partition.start[i] : s->beta.n;
        size += m * m;
    }
    return size;
}

thi_matrix thi_sweep_gram(const thi_sweep *s, int64_t i)
{
    int64_t m = i < s->partition.blocks ? s->partition.start[i + 1] - s->partition.start[i] : s->beta.n;
    return thi_matrix_view(s->gram + gram_size(s, i), m, m, m);
}

static thiele_status open_room(thi_sweep *s)
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
    THI_TRY(thi_matrix_alloc(&s->part, fit->problem.ctx, THI_SWEEP_PORTION, s->most));
    THI_TRY(thi_alloc(fit->problem.ctx, &s->d, (size_t)s->most, sizeof *s->d));
    if (s->covered) {
        THI_TRY(thi_alloc_bare(fit->problem.ctx, &s->gram, (size_t)gram_size(s, thi_sweep_blocks(s)), sizeof *s->gram));
    }
out:
    return status;
}

thiele_status thi_sweep_follow(thi_sweep *s, const thi_functions *block, const double *d)
{
    const thi_functions *all[2] = {&s->alpha, &s->beta};
    double *at[2] = {s->at_alpha, s->at_beta};
    for (int k = 0; k < 2; k++) {
        for (int64_t first = 0; first < all[k]->n; first += THI_SWEEP_PORTION) {
            thi_functions part = thi_functions_part(all[k], first, thi_least(THI_SWEEP_PORTION, all[k]->n - first));
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

/* Marginals of the rows; where the noise is Gaussian, what it needs of them. */
static thiele_status first_marginals(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t n = s->rows.n, most = fit->batches.largest, D = s->rows.dims;
    thiele_status status;
    THI_TRY(thi_dfit_ready(fit));
    for (int64_t first = 0; first < n; first += most) {
        int64_t count = thi_least(most, n - first);
        THI_TRY(fit->pass.engine->marginals(fit->pass.self, fit->problem.ctx, count, s->rows.X + first * D,
                                            s->f + first, s->at.v + first));
        if (s->covered) {
            THI_TRY(thi_dcover_add(&s->cover, fit, first, count));
        }
    }
    for (int64_t i = 0; s->rows.offset != NULL && i < n; i++) {
        s->f[i] += s->rows.offset[i];
    }
    if (s->covered) {
        thi_dcover_end(&s->cover, fit);
        memset(s->at.v, 0, (size_t)n * sizeof *s->at.v);
        THI_TRY(thi_dcover_look(&s->cover, fit));
    }
out:
    return status;
}

/* All that sweeps follow, at the present weights. */
static thiele_status first_state(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    thiele_status status;
    THI_TRY(first_marginals(s));
    memcpy(s->a, thi_dfit_part(fit, THI_DPART_A), (size_t)fit->n_alpha * sizeof *s->a);
    if (fit->orthogonal && fit->n_beta > 0) {
        thi_decoupled_weights(fit->pass.self, s->b);
    }
    for (int64_t i = 0; i < thi_sweep_blocks(s); i++) {
        double *w;
        const double *own;
        thi_functions block = thi_sweep_block(s, i, &w, &own);
        THI_TRY(thi_sweep_follow(s, &block, w));
    }
out:
    return status;
}

/* `count` of the rows, evenly spread over them, are held out. */
static thiele_status hold_out(thi_sweep *s, int64_t count)
{
    thi_rows *rows = &s->rows;
    int64_t n = rows->n, D = rows->dims, kept = 0;
    thiele_status status = thi_rows_alloc(&s->held, s->fit->problem.ctx, count, rows->dims, 1, rows->offset != NULL);
    s->held.n = 0;
    for (int64_t i = 0; status == THIELE_OK && i < n; i++) {
        bool out = (i + 1) * count / n > i * count / n;
        thi_rows *to = out ? &s->held : rows;
        int64_t at = out ? s->held.n++ : kept++;
        memmove(to->X + at * D, rows->X + i * D, (size_t)D * sizeof *rows->X);
        to->y[at] = rows->y[i];
        if (rows->offset != NULL) {
            to->offset[at] = rows->offset[i];
        }
    }
    rows->n = status == THIELE_OK ? kept : n;
    return status;
}

thiele_status thi_sweep_open(thi_sweep *s, thi_dfit *fit, int64_t rows, int64_t held)
{
    const thiele_kernel *kernel = fit->problem.spec->latents.kernel[0];
    thi_decoupled_q q;
    thiele_status status;
    *s = (thi_sweep){.fit = fit};
    THI_TRY(sort_functions(s));
    q = thi_dfit_q(fit);
    THI_TRY(thi_source_sample(fit->problem.source, fit->problem.ctx, rows, THI_SAMPLE_WARM, &s->rows));
    if (held > 0) {
        THI_TRY(hold_out(s, held));
    }
    s->weight = (double)fit->problem.source->n / (double)s->rows.n;
    s->covered = fit->pass.tight && fit->orthogonal;
    if (s->covered) {
        THI_TRY(thi_dcover_open(&s->cover, fit, s->rows.n, s->weight));
    }
    THI_TRY(thi_inputs_make(&s->inputs, fit->problem.ctx, kernel, s->rows.n, s->rows.X));
    THI_TRY(thi_functions_make(&s->alpha, fit->problem.ctx, kernel, q.alpha.n, q.alpha.X, q.alpha.log_c));
    THI_TRY(
        thi_functions_make(&s->beta, fit->problem.ctx, kernel, fit->orthogonal ? q.beta.n : 0, q.beta.X, q.beta.log_c));
    THI_TRY(open_room(s));
    THI_TRY(first_state(s));
out:
    return status;
}

void thi_sweep_close(thi_sweep *s)
{
    thi_partition_clear(&s->partition);
    thi_rows_free(&s->rows);
    thi_rows_free(&s->held);
    thi_dcover_close(&s->cover);
    thi_inputs_clear(&s->inputs);
    thi_functions_clear(&s->alpha);
    thi_functions_clear(&s->beta);
    thi_free(s->state);
    thi_free(s->gram);
    thi_free(s->before);
    for (int k = 0; k < THI_SWEEP_DIRECTIONS; k++) {
        thi_free(s->change[k]);
    }
    thi_free(s->at.v);
    thi_free(s->K.data);
    thi_free(s->G.data);
    thi_free(s->part.data);
    thi_free(s->d);
}

/* The sites of Gaussian noise are G/s2. */
thiele_status thi_sweep_keep(thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    thi_matrix T = fit->vector.sites.T, G = s->cover.sum.T;
    thiele_status status;
    memcpy(thi_dfit_part(fit, THI_DPART_A), s->a, (size_t)fit->n_alpha * sizeof *s->a);
    for (int64_t j = 0; s->covered && j < G.rows; j++) {
        for (int64_t i = j; i < G.rows; i++) {
            T.data[i + j * T.ld] = G.data[i + j * G.ld] / fit->problem.spec->lik->value[0];
        }
    }
    THI_TRY(thi_dfit_ready(fit));
    if (fit->orthogonal && fit->n_beta > 0) {
        thi_decoupled_weigh(fit->pass.self, s->b, fit->vector.sites.t);
        THI_TRY(thi_dfit_ready(fit));
    }
out:
    return status;
}

/* Covariances of basis functions, plain ones by the kernel, generalised ones here. Formulas: functions.h. */
#include "basis/functions.h"

#include <math.h>
#include <string.h>

#include "linalg/vector.h"

/* Functions of a task against rows; columns of a task against functions. */
enum { BLOCK = 32, COLUMNS = 8 };

bool thi_functions_may_stretch(const thiele_kernel *kernel)
{
    static const bool mixture[THI_PROFILE_COUNT] = {[THI_PROFILE_SE] = true,
                                                    [THI_PROFILE_MATERN12] = true,
                                                    [THI_PROFILE_MATERN32] = true,
                                                    [THI_PROFILE_MATERN52] = true};
    const thi_kind *kind = kernel->root->type == THI_NODE_LEAF ? kernel->leaf[kernel->root->leaf].kind : NULL;
    return kind != NULL && kind->family == THI_DISTANCE && mixture[kind->profile] && kind->map == &thi_features_scaled;
}

static const thi_leaf *leaf_of(const thi_functions *f)
{
    return &f->kernel->leaf[f->kernel->root->leaf];
}

static int64_t features_of(const thi_leaf *leaf)
{
    return 2 * (int64_t)leaf->dims + 1;
}

/* The features of function i: 2 w_d, -4 w_d x_d, 2 sum_d w_d x_d^2 with w_d = 1/(l_id^2 + l_d^2); and what t = 0 gives.
 */
static double make_features(const thi_functions *f, const thi_leaf *leaf, int64_t i, double *feature)
{
    int d = leaf->dims;
    double ratio = 1.0, squares = 0.0;
    for (int k = 0; k < d; k++) {
        double x = f->x[i + k * f->stride], l = f->l[i + k * f->stride], own = thi_leaf_lengthscale(leaf, k);
        double w = 1.0 / (l * l + own * own);
        feature[k] = 2.0 * w;
        feature[d + k] = -4.0 * w * x;
        squares += 2.0 * w * x * x;
        ratio *= 2.0 * l * own * w;
    }
    feature[2 * d] = squares;
    return thi_leaf_variance(leaf) * sqrt(ratio);
}

static thiele_status make_generalised(thi_functions *f, thiele_context *ctx)
{
    const thi_leaf *leaf = leaf_of(f);
    int D = f->kernel->dims, d = leaf->dims;
    int64_t n = f->n, features = features_of(leaf);
    thiele_status status = thi_alloc_bare(ctx, &f->own, (size_t)(n * (2 * d + features + 1)), sizeof *f->own);
    if (status != THIELE_OK) {
        return status;
    }
    double *x = f->own, *l = x + n * d, *feature = l + n * d, *most = feature + n * features;
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < d; k++) {
            int64_t at = i * D + leaf->dim[k];
            x[i + k * n] = f->X[at];
            l[i + k * n] = thi_leaf_lengthscale(leaf, k) * exp(f->log_c[at]);
        }
    }
    f->stride = n;
    f->x = x;
    f->l = l;
    f->feature = feature;
    f->most = most;
    for (int64_t i = 0; i < n; i++) {
        most[i] = make_features(f, leaf, i, feature + i * features);
    }
    return THIELE_OK;
}

thiele_status thi_functions_make(thi_functions *f, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                                 const double *X, const double *log_c)
{
    *f = (thi_functions){.kernel = kernel, .n = n, .X = X, .log_c = log_c};
    return log_c == NULL ? thi_inputs_make(&f->inputs, ctx, kernel, n, X) : make_generalised(f, ctx);
}

void thi_functions_clear(thi_functions *f)
{
    thi_inputs_clear(&f->inputs);
    thi_free(f->own);
    *f = (thi_functions){0};
}

thi_functions thi_functions_part(const thi_functions *f, int64_t first, int64_t count)
{
    thi_functions part = *f;
    int D = f->kernel->dims;
    part.n = count;
    part.own = NULL;
    part.X += first * D;
    if (f->log_c == NULL) {
        part.inputs.n = count;
        part.inputs.X += first * D;
        for (int i = 0; i < f->kernel->leaves; i++) {
            part.inputs.leaf[i] += first * f->kernel->leaf[i].features;
        }
        return part;
    }
    part.log_c += first * D;
    part.x += first;
    part.l += first;
    part.feature += first * features_of(leaf_of(f));
    part.most += first;
    return part;
}

static thi_profile_args scaled_by(double scale)
{
    return (thi_profile_args){.scale = scale};
}

/*
 * dk/dt of n entries whose k is at hand; t: their t, which the squared exponential has no need of; unused: room for 2 n
 * numbers.
 */
static void slopes(const thi_leaf *leaf, int64_t n, double scale, const double *t, const double *k, double *unused,
                   double *dk)
{
    if (leaf->kind->profile == THI_PROFILE_SE) {
        for (int64_t i = 0; i < n; i++) {
            dk[i] = -0.5 * k[i];
        }
        return;
    }
    thi_profiles()->adjoint[leaf->kind->profile](n, scaled_by(scale), t, unused, dk, unused + n);
}

/* --- against rows ----------------------------------------------------------------------------------------------------
 */

/* What the tasks of one call share. */
typedef struct task {
    const thi_functions *A, *B; /* A: functions against functions */
    thi_matrix K, Kbar;
    thi_matrix rows; /* (2 d + 1) x rows: x_d^2, x_d, 1 */
    bool symmetric;
    const thi_functions_bar *bar;
    double *part; /* task x parameters */
    double *work;
    int64_t per_thread;
} task;

static thiele_status row_features(task *t, thiele_context *ctx, const thi_inputs *rows)
{
    const thi_leaf *leaf = leaf_of(t->B);
    int D = t->B->kernel->dims, d = leaf->dims;
    thiele_status status = thi_matrix_alloc(&t->rows, ctx, features_of(leaf), rows->n);
    for (int64_t j = 0; status == THIELE_OK && j < rows->n; j++) {
        double *to = t->rows.data + j * t->rows.ld;
        for (int k = 0; k < d; k++) {
            double x = rows->X[j * D + leaf->dim[k]];
            to[k] = x * x;
            to[d + k] = x;
        }
        to[2 * d] = 1.0;
    }
    return status;
}

static double row_flops(const task *t)
{
    return (2.0 * (double)t->rows.rows + 40.0) * (double)t->rows.cols * (double)t->B->n;
}

static thi_matrix features_from(const thi_functions *f, int64_t first, int64_t count)
{
    int64_t features = features_of(leaf_of(f));
    return thi_matrix_view((double *)f->feature + first * features, features, count, features);
}

/* t of rows and some functions, which rounding leaves no smaller than 0. */
static void fill_squares(const task *t, int64_t first, int64_t count, thi_matrix to)
{
    thi_blas_gemm(THI_T, THI_N, 1.0, t->rows, features_from(t->B, first, count), 0.0, to);
    for (int64_t i = 0; i < count; i++) {
        double *column = to.data + i * to.ld;
        for (int64_t j = 0; j < to.rows; j++) {
            column[j] = column[j] > 0.0 ? column[j] : 0.0;
        }
    }
}

static thiele_status fill_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    const task *t = arg;
    int64_t first = block * BLOCK, count = thi_least(t->B->n - first, BLOCK), n = t->rows.cols;
    thi_matrix K = thi_matrix_block(t->K, 0, first, n, count);
    fill_squares(t, first, count, K);
    for (int64_t i = 0; i < count; i++) {
        double *column = K.data + i * K.ld;
        thi_profiles()->fill[leaf_of(t->B)->kind->profile](n, scaled_by(t->B->most[first + i]), column, column);
    }
    return THIELE_OK;
}

thiele_status thi_functions_fill(const thi_functions *f, thiele_context *ctx, const thi_inputs *rows, thi_matrix K)
{
    if (f->log_c == NULL) {
        return thi_kernel_fill(f->kernel, ctx, rows, &f->inputs, K, false);
    }
    task t = {.B = f, .K = K};
    thiele_status status = row_features(&t, ctx, rows);
    if (status == THIELE_OK) {
        status = thi_parallel_work(ctx, (f->n + BLOCK - 1) / BLOCK, row_flops(&t), fill_block, &t);
    }
    thi_free(t.rows.data);
    return status;
}

/* From sums over rows of U = Kbar dk/dt times x_d^2, x_d and 1, and of Kbar K, to the adjoints of function i. */
static void pull_function(const task *t, int64_t i, const double *sum, double whole, double *theta)
{
    const thi_functions *f = t->B;
    const thi_leaf *leaf = leaf_of(f);
    int D = f->kernel->dims, d = leaf->dims;
    theta[leaf->first + leaf->lengthscales] += whole;
    for (int k = 0; k < d; k++) {
        double x = f->x[i + k * f->stride], l = f->l[i + k * f->stride], own = thi_leaf_lengthscale(leaf, k);
        double w = 1.0 / (l * l + own * own);
        double spread = sum[k] - 2.0 * x * sum[d + k] + x * x * sum[2 * d]; /* sum of U (x_i - x)^2 */
        int64_t at = i * D + leaf->dim[k];
        theta[leaf->first + leaf->scale[k]] -= 4.0 * w * spread;
        if (t->bar->X != NULL) {
            t->bar->X[at] += 4.0 * w * (x * sum[2 * d] - sum[d + k]);
        }
        if (t->bar->log_c != NULL) {
            t->bar->log_c[at] += 0.5 * (own * own - l * l) * w * whole - 4.0 * l * l * w * w * spread;
        }
    }
}

static thiele_status pull_block(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    const thi_functions *f = t->B;
    int64_t first = block * BLOCK, count = thi_least(f->n - first, BLOCK), n = t->rows.cols, features = t->rows.rows;
    double *work = t->work + thread * t->per_thread;
    double whole[BLOCK], *unused = work + n * BLOCK, *slope = unused + 2 * n;
    thi_matrix U = thi_matrix_view(work, n, count, n);
    thi_matrix sums = thi_matrix_view(slope + n, features, count, features);
    if (leaf_of(f)->kind->profile != THI_PROFILE_SE) {
        fill_squares(t, first, count, U);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t column = first + i;
        const double *Kbar = t->Kbar.data + column * t->Kbar.ld, *K = t->K.data + column * t->K.ld;
        slopes(leaf_of(f), n, f->most[column], U.data + i * n, K, unused, slope);
        thi_vector()->times(n, Kbar, slope, U.data + i * n);
        whole[i] = thi_blas_dot(n, Kbar, K);
    }
    thi_blas_gemm(THI_N, THI_N, 1.0, t->rows, U, 0.0, sums);
    for (int64_t i = 0; i < count; i++) {
        pull_function(t, first + i, sums.data + i * features, whole[i], t->part + block * f->kernel->parameters);
    }
    return THIELE_OK;
}

/* Opens the work space of a pull, runs its tasks and adds up their share of theta. */
static thiele_status run_pull(task *t, thiele_context *ctx, int64_t tasks, double flops, thi_block_fn fn)
{
    int64_t parameters = t->B->kernel->parameters;
    thiele_status status;
    THI_TRY(thi_alloc_bare(ctx, &t->work, (size_t)(t->per_thread * ctx->threads), sizeof *t->work));
    THI_TRY(thi_alloc(ctx, &t->part, (size_t)(tasks * parameters), sizeof *t->part));
    THI_TRY(thi_parallel_work(ctx, tasks, flops, fn, t));
    if (t->bar->theta != NULL) {
        thi_reduce(tasks, parameters, t->part, t->bar->theta);
    }
out:
    thi_free(t->work);
    thi_free(t->part);
    return status;
}

/* The kernel gives theta in any case. */
static thiele_status pull_plain(const thi_functions *f, thiele_context *ctx, const thi_inputs *A, thi_matrix Kbar,
                                thi_matrix K, bool symmetric, const thi_functions_bar *bar)
{
    double *theta = bar->theta, *unwanted = NULL;
    thiele_status status = THIELE_OK;
    if (theta == NULL) {
        THI_TRY(thi_alloc(ctx, &unwanted, (size_t)f->kernel->parameters, sizeof *unwanted));
        theta = unwanted;
    }
    THI_TRY(thi_kernel_pull_known(f->kernel, ctx, A, &f->inputs, Kbar, K, symmetric, theta, bar->X));
out:
    thi_free(unwanted);
    return status;
}

thiele_status thi_functions_pull(const thi_functions *f, thiele_context *ctx, const thi_inputs *rows, thi_matrix Kbar,
                                 thi_matrix K, const thi_functions_bar *bar)
{
    if (f->log_c == NULL) {
        return pull_plain(f, ctx, rows, Kbar, K, false, bar);
    }
    task t = {.B = f, .K = K, .Kbar = Kbar, .bar = bar};
    thiele_status status;
    THI_TRY(row_features(&t, ctx, rows));
    t.per_thread = BLOCK * (rows->n + t.rows.rows) + 3 * rows->n;
    THI_TRY(run_pull(&t, ctx, (f->n + BLOCK - 1) / BLOCK, row_flops(&t), pull_block));
out:
    thi_free(t.rows.data);
    return status;
}

/* --- against functions -----------------------------------------------------------------------------------------------
 */

/* Some 12 flops and a division a column of the table. */
static double cross_flops(const task *t)
{
    return (20.0 * leaf_of(t->B)->dims + 40.0) * (double)t->A->n * (double)t->B->n;
}

/* t of column j, and the product of 2 l l' / (l^2 + l'^2) over the columns of the table. */
static void cross_squares(const task *t, int64_t j, double *squares, double *ratio)
{
    const thi_functions *A = t->A, *B = t->B;
    const thi_leaf *leaf = leaf_of(B);
    int64_t n = A->n;
    for (int64_t i = 0; i < n; i++) {
        ratio[i] = 1.0;
        squares[i] = 0.0;
    }
    for (int k = 0; k < leaf->dims; k++) {
        const double *x = A->x + k * A->stride, *l = A->l + k * A->stride;
        double xj = B->x[j + k * B->stride], lj = B->l[j + k * B->stride], square = lj * lj;
        for (int64_t i = 0; i < n; i++) {
            double w = 1.0 / (l[i] * l[i] + square), apart = x[i] - xj;
            squares[i] += 2.0 * apart * apart * w;
            ratio[i] *= 2.0 * l[i] * lj * w;
        }
    }
}

/* Column j of K; ratio: room for A.n numbers. */
static void cross_column(const task *t, int64_t j, double *ratio)
{
    const thi_leaf *leaf = leaf_of(t->B);
    int64_t n = t->A->n;
    double *K = t->K.data + j * t->K.ld;
    cross_squares(t, j, K, ratio);
    thi_profiles()->fill[leaf->kind->profile](n, scaled_by(thi_leaf_variance(leaf)), K, K);
    for (int64_t i = 0; i < n; i++) {
        K[i] *= sqrt(ratio[i]);
    }
}

static thiele_status cross_columns(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    int64_t end = thi_least(t->B->n, (block + 1) * COLUMNS);
    for (int64_t j = block * COLUMNS; j < end; j++) {
        cross_column(t, j, t->work + thread * t->per_thread);
    }
    return THIELE_OK;
}

thiele_status thi_functions_cross(const thi_functions *A, const thi_functions *B, thiele_context *ctx, thi_matrix K,
                                  bool symmetric)
{
    thiele_status status;
    if (B->log_c == NULL) {
        status = thi_kernel_fill(B->kernel, ctx, &A->inputs, symmetric ? &A->inputs : &B->inputs, K, symmetric);
        if (status == THIELE_OK && symmetric) {
            thi_symmetrise(K);
        }
        return status;
    }
    task t = {.A = A, .B = B, .K = K, .per_thread = A->n};
    THI_TRY(thi_alloc_bare(ctx, &t.work, (size_t)(t.per_thread * ctx->threads), sizeof *t.work));
    THI_TRY(thi_parallel_work(ctx, (B->n + COLUMNS - 1) / COLUMNS, cross_flops(&t), cross_columns, &t));
out:
    thi_free(t.work);
    return status;
}

/* The weights W = Kbar K of column j, and U = Kbar dk/dt; work: room for 4 A.n numbers. */
static void weigh_column(const task *t, int64_t j, double *W, double *U, double *work)
{
    const thi_leaf *leaf = leaf_of(t->B);
    int64_t n = t->A->n;
    const double *K = t->K.data + j * t->K.ld, *Kbar = t->Kbar.data + j * t->Kbar.ld;
    double *squares = work, *ratio = work + n;
    bool exponential = leaf->kind->profile == THI_PROFILE_SE;
    if (!exponential) {
        cross_squares(t, j, squares, ratio);
    }
    slopes(leaf, n, thi_leaf_variance(leaf), squares, K, work + 2 * n, U);
    for (int64_t i = 0; i < n; i++) {
        double bar = t->symmetric && i < j ? t->Kbar.data[j + i * t->Kbar.ld] : Kbar[i];
        W[i] = bar * K[i];
        U[i] *= bar * (exponential ? 1.0 : sqrt(ratio[i]));
    }
}

static void pull_column(const task *t, int64_t j, const double *W, const double *U, double *theta)
{
    const thi_functions *A = t->A, *B = t->B;
    const thi_leaf *leaf = leaf_of(B);
    double both = t->symmetric ? 2.0 : 1.0, whole = 0.0;
    for (int64_t i = 0; i < A->n; i++) {
        whole += W[i];
    }
    theta[leaf->first + leaf->lengthscales] += whole;
    for (int k = 0; k < leaf->dims; k++) {
        const double *x = A->x + k * A->stride, *l = A->l + k * A->stride;
        double xj = B->x[j + k * B->stride], lj = B->l[j + k * B->stride], square = lj * lj;
        double shift = 0.0, spread = 0.0, stretch = 0.0;
        for (int64_t i = 0; i < A->n; i++) {
            double own = l[i] * l[i], w = 1.0 / (own + square), apart = x[i] - xj, Uw = U[i] * w;
            shift -= Uw * apart;
            spread -= Uw * apart * apart;
            stretch += w * (0.5 * W[i] * (own - square)) - 4.0 * Uw * square * apart * apart * w;
        }
        int64_t at = j * B->kernel->dims + leaf->dim[k];
        theta[leaf->first + leaf->scale[k]] += 4.0 * spread;
        if (t->bar->X != NULL) {
            t->bar->X[at] += both * 4.0 * shift;
        }
        if (t->bar->log_c != NULL) {
            t->bar->log_c[at] += both * stretch;
        }
    }
}

static thiele_status pull_columns(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    double *W = t->work + thread * t->per_thread, *U = W + t->A->n;
    int64_t end = thi_least(t->B->n, (block + 1) * COLUMNS);
    for (int64_t j = block * COLUMNS; j < end; j++) {
        weigh_column(t, j, W, U, U + t->A->n);
        pull_column(t, j, W, U, t->part + block * t->B->kernel->parameters);
    }
    return THIELE_OK;
}

thiele_status thi_functions_pull_cross(const thi_functions *A, const thi_functions *B, thiele_context *ctx,
                                       thi_matrix Kbar, thi_matrix K, bool symmetric, const thi_functions_bar *bar)
{
    if (B->log_c == NULL) {
        return pull_plain(B, ctx, symmetric ? &B->inputs : &A->inputs, Kbar, K, symmetric, bar);
    }
    task t = {.A = A, .B = B, .K = K, .Kbar = Kbar, .symmetric = symmetric, .bar = bar, .per_thread = 6 * A->n};
    return run_pull(&t, ctx, (B->n + COLUMNS - 1) / COLUMNS, 2.0 * cross_flops(&t), pull_columns);
}

thiele_status thi_functions_diagonal(const thi_functions *f, thiele_context *ctx, double *diagonal)
{
    if (f->log_c == NULL) {
        return thi_kernel_fill_diagonal(f->kernel, ctx, &f->inputs, diagonal);
    }
    for (int64_t i = 0; i < f->n; i++) {
        diagonal[i] = thi_leaf_variance(leaf_of(f));
    }
    return THIELE_OK;
}

/* Prediction in blocks, from the form that every posterior is frozen into. */
#include "posterior/predictor.h"

#include <string.h>

#include "posterior/local.h"

static thiele_status copy_doubles(thiele_context *ctx, double **out, size_t count, const double *from)
{
    thiele_status status = thi_alloc(ctx, out, count, sizeof **out);
    if (status == THIELE_OK && count > 0) {
        memcpy(*out, from, count * sizeof **out);
    }
    return status;
}

/* What every predictor copies from its prior and its basis. */
static thiele_status copy_prior(thi_predictor *p, thiele_context *ctx, const thi_prior *prior, const double *basis)
{
    size_t D = (size_t)prior->kernel->dims;
    size_t means = (size_t)thi_mean_parameters(prior->mean, prior->kernel->dims);
    thiele_status status;
    THI_TRY(copy_doubles(ctx, &p->basis, D * (size_t)p->n, basis));
    THI_TRY(copy_doubles(ctx, &p->mean_parameter, means, prior->mean_parameter));
    THI_TRY(thi_kernel_copy(&p->kernel, ctx, prior->kernel));
    THI_TRY(thi_predictor_finish(p, ctx));
out:
    return status;
}

thiele_status thi_predictor_freeze(thi_predictor *predictor, thiele_context *ctx, thi_exact *exact,
                                   const thi_prior *prior)
{
    *predictor = (thi_predictor){.mean = prior->mean, .n = exact->n, .components = 1, .L = exact->L, .a = exact->alpha};
    exact->L = (thi_matrix){0};
    exact->alpha = NULL;
    thiele_status status = copy_prior(predictor, ctx, prior, exact->X);
    thi_exact_close(exact);
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

thiele_status thi_predictor_begin(thi_predictor *predictor, thiele_context *ctx, const thi_prior *prior, int64_t n,
                                  const double *basis, int components)
{
    *predictor = (thi_predictor){.mean = prior->mean, .n = n, .components = components};
    thiele_status status;
    THI_TRY(copy_prior(predictor, ctx, prior, basis));
    THI_TRY(thi_alloc(ctx, &predictor->a, (size_t)n * (size_t)components, sizeof *predictor->a));
    THI_TRY(thi_matrix_alloc(&predictor->L, ctx, n, n));
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

static void clear_derived(thi_predictor *p)
{
    thi_inputs_clear(&p->inputs);
    thi_functions_clear(&p->functions);
    thi_functions_clear(&p->mean_functions);
}

thiele_status thi_predictor_finish(thi_predictor *predictor, thiele_context *ctx)
{
    thi_predictor *p = predictor;
    thiele_status status;
    clear_derived(p);
    if (p->mean_basis == NULL) {
        return thi_inputs_make(&p->inputs, ctx, p->kernel, p->n, p->basis);
    }
    THI_TRY(thi_functions_make(&p->functions, ctx, p->kernel, p->n, p->basis, p->log_c));
    THI_TRY(thi_functions_make(&p->mean_functions, ctx, p->kernel, p->mean_n, p->mean_basis, p->mean_log_c));
out:
    return status;
}

void thi_predictor_clear(thi_predictor *predictor)
{
    thi_local_destroy(predictor->local);
    clear_derived(predictor);
    thiele_kernel_destroy(predictor->kernel);
    thi_free(predictor->mean_parameter);
    thi_free(predictor->basis);
    thi_free(predictor->log_c);
    thi_free(predictor->mean_basis);
    thi_free(predictor->mean_log_c);
    thi_free(predictor->a);
    thi_free(predictor->scale);
    thi_free(predictor->L.data);
    for (int k = 0; predictor->R != NULL && k < predictor->components; k++) {
        thi_free(predictor->R[k].data);
    }
    thi_free(predictor->R);
    *predictor = (thi_predictor){0};
}

/* --- a block of rows -------------------------------------------------------------------------------------------------
 */

/* Work space of a block: k(basis, x), where R is given a second matrix, and k(x, some functions) of separate bases. */
typedef struct space {
    thi_matrix K, R, portion;
} space;

static int64_t most_rows(const thi_predictor *p)
{
    int64_t rows = 0;
    for (int k = 0; p->R != NULL && k < p->components; k++) {
        rows = p->R[k].rows > rows ? p->R[k].rows : rows;
    }
    return rows;
}

static thiele_status space_open(space *s, thiele_context *ctx, const thi_predictor *p, int64_t columns, bool variance)
{
    *s = (space){0};
    thiele_status status = thi_matrix_alloc(&s->K, ctx, p->n, columns);
    if (status == THIELE_OK && variance && p->plus != THI_PLUS_NONE) {
        status = thi_matrix_alloc(&s->R, ctx, most_rows(p), columns);
    }
    if (status == THIELE_OK && p->mean_basis != NULL) {
        status = thi_matrix_alloc(&s->portion, ctx, columns, THI_PREDICT_PORTION);
    }
    return status;
}

static void space_close(space *s)
{
    thi_free(s->K.data);
    thi_free(s->R.data);
    thi_free(s->portion.data);
}

static thi_matrix first_columns(thi_matrix A, int64_t rows, int64_t n)
{
    return thi_matrix_view(A.data, rows, n, A.ld);
}

/* Ru = R_k u for the columns u of K (k(basis, x), or w where R takes that); a view of the work space. */
static thiele_status apply_plus(const thi_predictor *p, thiele_context *ctx, int component, const space *s,
                                thi_matrix *Ru)
{
    thi_matrix R = p->R[component];
    *Ru = first_columns(s->R, R.rows, s->K.cols);
    if (p->plus != THI_PLUS_TRIANGLE) {
        return thi_multiply(ctx, THI_N, THI_N, 1.0, R, s->K, 0.0, *Ru, false);
    }
    for (int64_t j = 0; j < s->K.cols; j++) {
        memcpy(Ru->data + j * Ru->ld, s->K.data + j * s->K.ld, (size_t)p->n * sizeof(double));
    }
    return thi_tri_multiply(ctx, THI_T, R, *Ru);
}

/* variance (n x components) += |R u|^2 */
static thiele_status add_plus(const thi_predictor *p, thiele_context *ctx, const space *s, double *variance)
{
    int64_t n = s->K.cols;
    for (int k = 0; k < p->components; k++) {
        thi_matrix Ru;
        thiele_status status = apply_plus(p, ctx, k, s, &Ru);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t j = 0; j < n; j++) {
            const double *u = Ru.data + j * Ru.ld;
            variance[k * n + j] += thi_blas_dot(Ru.rows, u, u);
        }
    }
    return THIELE_OK;
}

/* Overwrites K = k(basis, x) by w = L^-1 (scale . K). */
static thiele_status whiten(const thi_predictor *p, thiele_context *ctx, thi_matrix K)
{
    for (int64_t j = 0; p->scale != NULL && j < K.cols; j++) {
        for (int64_t i = 0; i < p->n; i++) {
            K.data[i + j * K.ld] *= p->scale[i];
        }
    }
    return thi_tri_solve(ctx, THI_N, p->L, K);
}

/* variance (n x components) -= |w|^2 */
static void subtract_explained(const thi_predictor *p, thi_matrix K, double *variance)
{
    for (int64_t j = 0; j < K.cols; j++) {
        const double *w = K.data + j * K.ld;
        double explained = thi_blas_dot(p->n, w, w);
        for (int k = 0; k < p->components; k++) {
            variance[k * K.cols + j] -= explained;
        }
    }
}

/* variance (n x components) = k(x, x) - |w|^2 + |R u|^2; K is overwritten by w. */
static thiele_status variances(const thi_predictor *p, thiele_context *ctx, const thi_inputs *inputs, const space *s,
                               double *variance)
{
    int64_t n = s->K.cols;
    bool on_kernel = p->plus == THI_PLUS_KERNEL, conditional = p->conditional != THI_CONDITIONAL_NONE;
    thiele_status status = THIELE_OK;
    if (conditional) {
        THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, inputs, variance));
    } else {
        memset(variance, 0, (size_t)n * sizeof *variance);
    }
    for (int k = 1; k < p->components; k++) {
        memcpy(variance + k * n, variance, (size_t)n * sizeof *variance);
    }
    if (p->n == 0) {
        return THIELE_OK;
    }
    if (on_kernel) {
        THI_TRY(add_plus(p, ctx, s, variance));
    }
    THI_TRY(whiten(p, ctx, s->K));
    if (conditional) {
        subtract_explained(p, s->K, variance);
    }
    if (p->plus != THI_PLUS_NONE && !on_kernel) {
        THI_TRY(add_plus(p, ctx, s, variance));
    }
out:
    return status;
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

thiele_status thi_predictor_add_mean(const thi_predictor *p, thiele_context *ctx, int64_t count, const double *a,
                                     const thi_inputs *inputs, double *room, double *mean)
{
    for (int64_t first = 0; first < count; first += THI_PREDICT_PORTION) {
        thi_functions part = thi_functions_part(&p->mean_functions, first, at_most(count - first, THI_PREDICT_PORTION));
        thi_matrix K = thi_matrix_view(room, inputs->n, part.n, inputs->n);
        thiele_status status = thi_functions_fill(&part, ctx, inputs, K);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_gemv(THI_N, 1.0, K, a + first, 1.0, mean);
    }
    return THIELE_OK;
}

/* mean (n): m(x_j) + k_j'a, with k(basis, x) in s->K. */
static thiele_status one_mean(const thi_predictor *p, thiele_context *ctx, int component, const thi_inputs *inputs,
                              const space *s, double *mean)
{
    thi_mean_fill(p->mean, p->mean_parameter, inputs->n, p->kernel->dims, inputs->X, mean);
    if (p->mean_basis != NULL) {
        return thi_predictor_add_mean(p, ctx, p->mean_n, p->a + component * p->mean_n, inputs, s->portion.data, mean);
    }
    thi_blas_gemv(THI_T, 1.0, s->K, p->a + component * p->n, 1.0, mean);
    return THIELE_OK;
}

thiele_status thi_predictor_fill(const thi_predictor *p, thiele_context *ctx, const thi_inputs *inputs, double *room,
                                 thi_matrix K)
{
    int64_t n = inputs->n;
    if (p->mean_basis == NULL) {
        return thi_kernel_fill(p->kernel, ctx, &p->inputs, inputs, K, false);
    }
    for (int64_t first = 0; first < p->n; first += THI_PREDICT_PORTION) {
        thi_functions part = thi_functions_part(&p->functions, first, at_most(p->n - first, THI_PREDICT_PORTION));
        thiele_status status = thi_functions_fill(&part, ctx, inputs, thi_matrix_view(room, n, part.n, n));
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = 0; i < part.n; i++) {
                K.data[first + i + j * K.ld] = room[j + i * n];
            }
        }
    }
    return THIELE_OK;
}

/* One block, n x components results. */
static thiele_status block_marginals(const thi_predictor *p, thiele_context *ctx, int64_t n, const double *X,
                                     const space *s, double *mean, double *variance)
{
    thi_inputs inputs;
    thiele_status status = thi_inputs_make(&inputs, ctx, p->kernel, n, X);
    if (status != THIELE_OK) {
        return status;
    }
    THI_TRY(thi_predictor_fill(p, ctx, &inputs, s->portion.data, s->K));
    for (int k = 0; k < p->components; k++) {
        THI_TRY(one_mean(p, ctx, k, &inputs, s, mean + k * n));
    }
    if (variance != NULL) {
        THI_TRY(variances(p, ctx, &inputs, s, variance));
    }
out:
    thi_inputs_clear(&inputs);
    return status;
}

/* --- all rows --------------------------------------------------------------------------------------------------------
 */

/* Copies a block's columns to their place among all rows; a negative variance becomes zero. */
static void place(int64_t count, int components, const double *block, int64_t n, int64_t first, double *out,
                  int64_t *clipped)
{
    for (int k = 0; k < components; k++) {
        for (int64_t i = 0; i < count; i++) {
            double value = block[k * count + i];
            bool negative = clipped != NULL && value < 0.0;
            out[k * n + first + i] = negative ? 0.0 : value;
            if (negative) {
                *clipped += 1;
            }
        }
    }
}

/* What a thread that works on blocks of its own has; one works on all of them where each is the work of all threads. */
typedef struct worker {
    thiele_context ctx; /* the caller's, for one thread and with a message of its own */
    space s;
    double *block; /* mean and variance of a block */
    int64_t clipped;
    int64_t failed; /* the lowest block that failed, or INT64_MAX */
} worker;

typedef struct task {
    const thi_predictor *p;
    int64_t n, columns;
    const double *X;
    double *mean, *variance;
    worker *workers;
} task;

static thiele_status do_block(const task *t, thiele_context *ctx, worker *w, int64_t index)
{
    int D = t->p->kernel->dims, K = t->p->components;
    int64_t first = index * THI_PREDICT_BLOCK, count = at_most(t->n - first, THI_PREDICT_BLOCK);
    space part = {first_columns(w->s.K, t->p->n, count), w->s.R, w->s.portion};
    double *variance = t->variance != NULL ? w->block + t->columns * K : NULL;
    thiele_status status = block_marginals(t->p, ctx, count, t->X + first * D, &part, w->block, variance);
    if (status != THIELE_OK) {
        w->failed = index < w->failed ? index : w->failed;
        return status;
    }
    place(count, K, w->block, t->n, first, t->mean, NULL);
    if (variance != NULL) {
        place(count, K, variance, t->n, first, t->variance, &w->clipped);
    }
    return THIELE_OK;
}

static thiele_status one_of_many(void *arg, int64_t index, int thread)
{
    const task *t = arg;
    worker *w = &t->workers[thread];
    return do_block(t, &w->ctx, w, index);
}

/* Each thread a block at a time; of several failures the message is that of the lowest block, as is the status. */
static thiele_status many_blocks(const task *t, thiele_context *ctx, int64_t blocks)
{
    int64_t lowest = INT64_MAX;
    for (int i = 0; i < ctx->threads; i++) {
        t->workers[i].ctx = *ctx;
        t->workers[i].ctx.threads = 1;
        t->workers[i].ctx.pool = NULL;
    }
    thiele_status status = thi_parallel(ctx, blocks, one_of_many, (void *)t);
    for (int i = 0; i < ctx->threads; i++) {
        if (t->workers[i].failed < lowest) {
            lowest = t->workers[i].failed;
            memcpy(ctx->message, t->workers[i].ctx.message, sizeof ctx->message);
        }
    }
    return status;
}

/*
 * Blocks are cut by the same rule whether one thread does a block or all do it together: no bit depends on this. Many
 * blocks of a small basis wait less for each other; few, or those that take much memory, are the work of all threads.
 */
static int workers_of(const thi_predictor *p, const thiele_context *ctx, int64_t blocks)
{
    enum { SMALL = 2048 };
    return ctx->threads > 1 && blocks >= 2 * (int64_t)ctx->threads && p->n <= SMALL ? ctx->threads : 1;
}

thiele_status thi_predictor_marginals(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                      double *mean, double *variance, int64_t *clipped)
{
    int64_t blocks = (n + THI_PREDICT_BLOCK - 1) / THI_PREDICT_BLOCK;
    int count = workers_of(predictor, ctx, blocks);
    task t = {predictor, n, at_most(n, THI_PREDICT_BLOCK), X, mean, variance, NULL};
    thiele_status status;
    if (predictor->local != NULL) {
        return thi_local_marginals(predictor, ctx, n, X, mean, variance, clipped);
    }
    THI_TRY(thi_alloc(ctx, &t.workers, (size_t)count, sizeof *t.workers));
    for (int i = 0; i < count; i++) {
        t.workers[i].failed = INT64_MAX;
        THI_TRY(space_open(&t.workers[i].s, ctx, predictor, t.columns, variance != NULL));
        THI_TRY(thi_alloc(ctx, &t.workers[i].block, (size_t)(2 * t.columns * predictor->components), sizeof(double)));
    }
    if (count > 1) {
        THI_TRY(many_blocks(&t, ctx, blocks));
    }
    for (int64_t index = 0; count == 1 && index < blocks; index++) {
        THI_TRY(do_block(&t, ctx, t.workers, index));
    }
    for (int i = 0; variance != NULL && i < count; i++) {
        *clipped += t.workers[i].clipped;
    }
out:
    for (int i = 0; t.workers != NULL && i < count; i++) {
        space_close(&t.workers[i].s);
        thi_free(t.workers[i].block);
    }
    thi_free(t.workers);
    return status;
}

/* C (lower triangle) += (R u)'(R u) */
static thiele_status joint_plus(const thi_predictor *p, thiele_context *ctx, int component, const space *s,
                                thi_matrix C)
{
    thi_matrix Ru;
    thiele_status status = apply_plus(p, ctx, component, s, &Ru);
    return status == THIELE_OK ? thi_multiply(ctx, THI_T, THI_N, 1.0, Ru, Ru, 1.0, C, true) : status;
}

/* C (lower triangle) = what the conditional keeps of k(x, x'). */
static thiele_status joint_prior(const thi_predictor *p, thiele_context *ctx, const thi_inputs *inputs, thi_matrix C)
{
    int64_t n = C.rows;
    if (p->conditional == THI_CONDITIONAL_FULL) {
        return thi_kernel_fill(p->kernel, ctx, inputs, inputs, C, true);
    }
    memset(C.data, 0, (size_t)(n * n) * sizeof *C.data);
    if (p->conditional == THI_CONDITIONAL_NONE) {
        return THIELE_OK;
    }
    /* The first column holds the diagonal until each number is in its place. */
    thiele_status status = thi_kernel_fill_diagonal(p->kernel, ctx, inputs, C.data);
    for (int64_t j = 1; j < n && status == THIELE_OK; j++) {
        C.data[j + j * n] = C.data[j];
        C.data[j] = 0.0;
    }
    return status;
}

/* C (lower triangle) -= what it keeps of w'w. */
static thiele_status joint_explained(const thi_predictor *p, thiele_context *ctx, thi_matrix w, thi_matrix C)
{
    if (p->conditional == THI_CONDITIONAL_FULL) {
        return thi_multiply(ctx, THI_T, THI_N, -1.0, w, w, 1.0, C, true);
    }
    for (int64_t j = 0; p->conditional == THI_CONDITIONAL_DIAGONAL && j < C.cols; j++) {
        C.data[j + j * C.ld] -= thi_blas_dot(p->n, w.data + j * w.ld, w.data + j * w.ld);
    }
    return THIELE_OK;
}

thiele_status thi_predictor_joint(const thi_predictor *predictor, thiele_context *ctx, int component, int64_t n,
                                  const double *X, double *mean, double *covariance)
{
    space s = {0};
    thi_inputs inputs = {0};
    thi_matrix C = thi_matrix_view(covariance, n, n, n);
    bool on_kernel = predictor->plus == THI_PLUS_KERNEL;
    thiele_status status;
    if (predictor->local != NULL) {
        return thi_local_joint(predictor, ctx, n, X, mean, covariance);
    }
    THI_TRY(thi_inputs_make(&inputs, ctx, predictor->kernel, n, X));
    THI_TRY(space_open(&s, ctx, predictor, n, true));
    THI_TRY(thi_predictor_fill(predictor, ctx, &inputs, s.portion.data, s.K));
    THI_TRY(one_mean(predictor, ctx, component, &inputs, &s, mean));
    THI_TRY(joint_prior(predictor, ctx, &inputs, C));
    if (predictor->n == 0) {
        thi_symmetrise(C);
        goto out;
    }
    if (on_kernel) {
        THI_TRY(joint_plus(predictor, ctx, component, &s, C));
    }
    THI_TRY(whiten(predictor, ctx, s.K));
    THI_TRY(joint_explained(predictor, ctx, s.K, C));
    if (predictor->plus != THI_PLUS_NONE && !on_kernel) {
        THI_TRY(joint_plus(predictor, ctx, component, &s, C));
    }
    thi_symmetrise(C);
out:
    thi_inputs_clear(&inputs);
    space_close(&s);
    return status;
}

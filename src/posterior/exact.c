/* Exact regression in one matrix; the formulas are in exact.h. */
#include "posterior/exact.h"

#include <math.h>
#include <string.h>

#define LOG_2PI 1.837877066409345483561

/* Columns solved or rewritten at a time. */
enum { COLUMNS = 256 };

double thi_exact_bytes(int64_t n)
{
    /* The matrix, and beside it blocks of columns of the leave-one-out solve and other vectors of n. */
    return 8.0 * (double)n * ((double)n + COLUMNS + 64.0);
}

thiele_status thi_exact_open_shape(thi_exact *exact, thiele_context *ctx, const thi_exact_shape *shape)
{
    int64_t n = shape->n;
    *exact = (thi_exact){.shape = *shape};
    thiele_status status = thi_matrix_alloc(&exact->L, ctx, n, n);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &exact->alpha, (size_t)n * (size_t)shape->targets, sizeof *exact->alpha);
    }
    if (status != THIELE_OK) {
        thi_exact_close(exact);
    }
    return status;
}

thiele_status thi_exact_open(thi_exact *exact, thiele_context *ctx, int64_t n, const double *X, const double *y)
{
    return thi_exact_open_shape(exact, ctx, &(thi_exact_shape){n, 1, X, y, NULL});
}

void thi_exact_close(thi_exact *exact)
{
    thi_inputs_clear(&exact->inputs);
    thi_free(exact->L.data);
    thi_free(exact->alpha);
    *exact = (thi_exact){.shape = exact->shape};
}

/* The matrix could not be factored even with jitter: adds what usually makes it so. */
static thiele_status explain(thiele_context *ctx)
{
    char reason[THI_MESSAGE_MAX];
    memcpy(reason, ctx->message, sizeof reason);
    return thi_fail(
        ctx, THIELE_ERROR_NUMERIC,
        "the kernel matrix could not be factored (%.300s): the usual causes are equal or nearly equal rows with a "
        "noise fixed near zero, or a length-scale far beyond the range of the data (let the noise be learned, or "
        "set a larger one with `set` noise=...)",
        reason);
}

/* alpha of every target; returns the sum of (y - m)'alpha. */
static double solve(thi_exact *exact, const thi_prior *prior)
{
    const thi_exact_shape *s = &exact->shape;
    double fit = 0.0;
    for (int p = 0; p < s->targets; p++) {
        double *alpha = exact->alpha + p * s->n;
        thi_mean_fill(prior->mean, prior->mean_parameter, s->n, prior->kernel->dims, s->X, alpha);
        for (int64_t i = 0; i < s->n; i++) {
            alpha[i] = s->y[i * s->targets + p] - alpha[i];
        }
        thi_blas_trsv(THI_N, exact->L, alpha);
        fit += thi_blas_dot(s->n, alpha, alpha);
        thi_blas_trsv(THI_T, exact->L, alpha);
    }
    return fit;
}

static double weight_of(const thi_exact *exact, int64_t i)
{
    return exact->shape.weight != NULL ? exact->shape.weight[i] : 1.0;
}

/* The sum of (w - 1) log(2 pi) + log w: what N(y; f, s2/w) has beyond the w-th power over the scale of y. */
static double surplus(const thi_exact *exact)
{
    double sum = 0.0;
    for (int64_t i = 0; i < exact->shape.n && exact->shape.weight != NULL; i++) {
        double w = exact->shape.weight[i];
        sum += (w - 1.0) * LOG_2PI + log(w);
    }
    return sum;
}

thiele_status thi_exact_condition(thi_exact *exact, thiele_context *ctx, const thi_prior *prior, double noise)
{
    int64_t n = exact->shape.n;
    thi_inputs_clear(&exact->inputs);
    exact->factored = false;
    exact->noise = noise;
    thiele_status status = thi_inputs_make(&exact->inputs, ctx, prior->kernel, n, exact->shape.X);
    if (status == THIELE_OK) {
        status = thi_kernel_fill(prior->kernel, ctx, &exact->inputs, &exact->inputs, exact->L, true);
    }
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        exact->L.data[i + i * exact->L.ld] += noise / weight_of(exact, i);
    }
    status = thi_chol_jitter(ctx, exact->L, &exact->jitter);
    if (status != THIELE_OK) {
        return status == THIELE_ERROR_NUMERIC ? explain(ctx) : status;
    }
    double fit = solve(exact, prior);
    exact->log_marginal =
        -0.5 * (fit + exact->shape.targets * (thi_chol_logdet(exact->L) + (double)n * LOG_2PI + surplus(exact)));
    exact->factored = true;
    return THIELE_OK;
}

/* A block of columns of the inverse becomes that of Kbar; adds its diagonal. */
typedef struct kbar_task {
    thi_matrix K;
    int targets;
    const double *alpha, *weight;
    double *trace; /* of the diagonal over the weights */
} kbar_task;

static thiele_status kbar_columns(void *arg, int64_t block, int thread)
{
    (void)thread;
    const kbar_task *t = arg;
    int64_t n = t->K.rows;
    int64_t end = (block + 1) * COLUMNS < n ? (block + 1) * COLUMNS : n;
    for (int64_t j = block * COLUMNS; j < end; j++) {
        double *column = t->K.data + j * t->K.ld;
        for (int64_t i = j; i < n; i++) {
            column[i] = 0.5 * (t->alpha[i] * t->alpha[j] - t->targets * column[i]);
        }
        for (int p = 1; p < t->targets; p++) {
            const double *alpha = t->alpha + p * n;
            thi_blas_axpy(n - j, 0.5 * alpha[j], alpha + j, column + j);
        }
        t->trace[block] += t->weight != NULL ? column[j] / t->weight[j] : column[j];
    }
    return THIELE_OK;
}

thiele_status thi_exact_gradient(thi_exact *exact, thiele_context *ctx, const thi_prior *prior, double *theta_bar,
                                 double *mean_bar, double *log_noise_bar)
{
    const thi_exact_shape *s = &exact->shape;
    int64_t blocks = (s->n + COLUMNS - 1) / COLUMNS;
    double flops = (2.0 + 2.0 * s->targets) * (double)s->n * (double)s->n;
    kbar_task t = {.K = exact->L, .targets = s->targets, .alpha = exact->alpha, .weight = s->weight};
    exact->factored = false;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &t.trace, (size_t)blocks, sizeof *t.trace));
    THI_TRY(thi_chol_inverse(ctx, exact->L));
    THI_TRY(thi_parallel_work(ctx, blocks, flops, kbar_columns, &t));
    THI_TRY(thi_kernel_pull(prior->kernel, ctx, &exact->inputs, &exact->inputs, exact->L, true, theta_bar, NULL));
    for (int p = 0; p < s->targets; p++) {
        thi_mean_pull(prior->mean, prior->mean_parameter, s->n, prior->kernel->dims, s->X, exact->alpha + p * s->n,
                      mean_bar, NULL);
    }
    double trace = 0.0;
    thi_reduce(blocks, 1, t.trace, &trace);
    *log_noise_bar += exact->noise * trace;
out:
    thi_free(t.trace);
    return status;
}

thiele_status thi_exact_loo(const thi_exact *exact, thiele_context *ctx, double *mean, double *variance)
{
    int64_t n = exact->shape.n;
    int P = exact->shape.targets;
    thi_matrix V;
    thiele_status status = thi_matrix_alloc(&V, ctx, n, COLUMNS < n ? COLUMNS : n);
    for (int64_t first = 0; status == THIELE_OK && first < n; first += V.cols) {
        /* Columns of L^-1 are zero above their own index: only the trailing triangle is solved with. */
        int64_t cols = n - first < V.cols ? n - first : V.cols;
        int64_t rows = n - first;
        thi_matrix E = thi_matrix_view(V.data, rows, cols, rows);
        memset(E.data, 0, (size_t)(rows * cols) * sizeof *E.data);
        for (int64_t j = 0; j < cols; j++) {
            E.data[j + j * rows] = 1.0;
        }
        status = thi_tri_solve(ctx, THI_N, thi_matrix_block(exact->L, first, first, rows, rows), E);
        for (int64_t j = 0; j < cols; j++) {
            double c = thi_blas_dot(rows, E.data + j * rows, E.data + j * rows);
            for (int p = 0; p < P; p++) {
                int64_t at = (first + j) * P + p;
                mean[at] = exact->shape.y[at] - exact->alpha[first + j + p * n] / c;
            }
            double w = weight_of(exact, first + j);
            variance[first + j] = 1.0 / c + (w != 1.0 ? exact->noise * (1.0 - 1.0 / w) : 0.0);
        }
    }
    thi_free(V.data);
    return status;
}

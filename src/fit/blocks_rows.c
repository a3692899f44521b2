/* Which rows make up which block, and bringing them to the engine. */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

/* Rows of a block: usually, of many latent functions, and to learn from. */
enum { ROWS_A_BLOCK = 500, ROWS_OF_MANY = 250, ROWS_A_SMALL_BLOCK = 125 };
/* Rows that the kernel's distances are taken at: as many columns, as few. */
enum { PROBES = 64, FEWEST_PROBES = 8, PROBED = 2048, FEWEST_TO_HOLD = 2000 };
/* Of one core, that k-means of all rows is worth; blocks to learn from are soon forgotten. */
static const double SECONDS = 6.0, SECONDS_SMALL = 3.0;

/* --- the kernel's own distances --------------------------------------------------------------------------------------
 */

/* value_i = k(a_i, b_i) of rows that count as different ones: without white noise. K: n x n of work space. */
static thiele_status fill_pairs(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                const thi_inputs *B, thi_matrix K, double *value)
{
    thiele_status status = thi_kernel_fill(kernel, ctx, A, B, K, false);
    for (int64_t i = 0; status == THIELE_OK && i < K.rows; i++) {
        value[i] = K.data[i + i * K.ld];
    }
    return status;
}

/*
 * How fast the kernel falls along column d, as 1/l of a squared exponential with the same fall over a quarter of a
 * standard deviation: correlation = exp(-(step scale)^2 / 2) there. A column that it does not heed gets 0. work: n x D,
 * then 3 n.
 */
static thiele_status kernel_scale(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A, int d,
                                  thi_matrix K, double *work, double *scale)
{
    static const double STEP = 0.25;
    int64_t n = A->n, D = kernel->dims;
    double *X = work, *here = X + n * D, *there = here + n, *between = there + n, total = 0.0;
    thi_inputs B = {0};
    thiele_status status;
    memcpy(X, A->X, (size_t)(n * D) * sizeof *X);
    for (int64_t i = 0; i < n; i++) {
        X[i * D + d] += STEP;
    }
    THI_TRY(thi_inputs_make(&B, ctx, kernel, n, X));
    THI_TRY(fill_pairs(kernel, ctx, A, A, K, here));
    THI_TRY(fill_pairs(kernel, ctx, &B, &B, K, there));
    THI_TRY(fill_pairs(kernel, ctx, A, &B, K, between));
    for (int64_t i = 0; i < n; i++) {
        double correlation = between[i] / sqrt(here[i] * there[i]);
        total -= 2.0 * log(fmin(1.0, fmax(correlation, 1e-6)));
    }
    *scale = sqrt(total / (double)n) / STEP;
out:
    thi_inputs_clear(&B);
    return status;
}

static thiele_status kernel_scales(const thi_bfit *fit, double *scale)
{
    const thiele_kernel *kernel = fit->problem.spec->latents.kernel[0];
    int D = fit->problem.source->dims;
    thi_rows sample = {0};
    thi_matrix K = {0};
    thi_inputs A = {0};
    double *work = NULL;
    int64_t probes = thi_least(PROBES, PROBED / D > FEWEST_PROBES ? PROBED / D : FEWEST_PROBES);
    thiele_status status;
    THI_TRY(thi_source_sample(fit->problem.source, fit->problem.ctx, probes, THI_SAMPLE_BLOCKS, &sample));
    THI_TRY(thi_inputs_make(&A, fit->problem.ctx, kernel, sample.n, sample.X));
    THI_TRY(thi_matrix_alloc(&K, fit->problem.ctx, sample.n, sample.n));
    THI_TRY(thi_alloc(fit->problem.ctx, &work, (size_t)(sample.n * (D + 3)), sizeof *work));
    for (int d = 0; d < D; d++) {
        THI_TRY(kernel_scale(kernel, fit->problem.ctx, &A, d, K, work, &scale[d]));
    }
out:
    thi_inputs_clear(&A);
    thi_rows_free(&sample);
    thi_free(K.data);
    thi_free(work);
    return status;
}

/* --- partition -------------------------------------------------------------------------------------------------------
 */

/* Rows of a source as the partition asks for them. */
typedef struct fetch_task {
    const thi_source *source;
    thi_rows rows;
} fetch_task;

static thiele_status fetch_inputs(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, double *X)
{
    fetch_task *task = arg;
    thi_rows *rows = &task->rows;
    thiele_status status = THIELE_OK;
    if (rows->n < count) {
        thi_rows_free(rows);
        status = thi_rows_alloc(rows, ctx, count, task->source->dims, task->source->outputs, task->source->beside);
    }
    if (status == THIELE_OK) {
        int64_t room = rows->n;
        status = task->source->fetch(task->source->arg, ctx, count, row, rows);
        if (status == THIELE_OK && rows->n < count) {
            status = thi_fail(ctx, THIELE_ERROR_DATA,
                              "some rows have missing values, and blocks need complete rows: remove them from the "
                              "table, or allow more memory (`memory`)");
        }
        rows->n = room;
    }
    if (status == THIELE_OK) {
        memcpy(X, rows->X, (size_t)count * (size_t)task->source->dims * sizeof *X);
    }
    return status;
}

static int64_t choose_blocks(const thi_bfit *fit)
{
    /* Where there was time for few inducing inputs only, blocks are smaller too: they cost about as much. */
    bool hurried = fit->problem.driver->deadline > 0.0 && fit->sparse->inducing == 0 && fit->sparse->Z == NULL;
    int64_t usual = fit->latents > 2 ? ROWS_OF_MANY : ROWS_A_BLOCK;
    int64_t least = hurried && 2 * fit->M < usual ? 2 * fit->M : usual;
    int64_t rows = fit->small ? ROWS_A_SMALL_BLOCK : fit->M > least ? fit->M : least;
    int64_t blocks =
        fit->settings->blocks > 0 && !fit->small ? fit->settings->blocks : (fit->problem.source->n + rows - 1) / rows;
    return blocks < fit->problem.source->n ? blocks : fit->problem.source->n;
}

static int64_t largest_block(const thi_partition *p)
{
    int64_t largest = 0;
    for (int64_t b = 0; b < p->blocks; b++) {
        int64_t n = p->start[b + 1] - p->start[b];
        largest = n > largest ? n : largest;
    }
    return largest;
}

/* A block of the user's own may be as large as the table: what its matrices take is counted first. */
static thiele_status check_largest(const thi_bfit *fit)
{
    thiele_context *ctx = fit->problem.ctx;
    int64_t largest = largest_block(&fit->partition);
    thi_sparse_shape shape = {.M = fit->M,
                              .largest = largest,
                              .weight = {[THI_RESIDUAL_BLOCK] = 1.0},
                              .gradients = fit->learn && fit->closed,
                              .sites = !fit->closed};
    double bytes = fit->latents * thi_sparse_bytes(&shape, ctx->threads), most = (double)thi_memory_limit(ctx);
    return bytes < most
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_LIMIT,
                          "the largest block by column '%s' has %lld rows, whose matrices need %.1f GB with "
                          "%.1f GB allowed: name a column with smaller groups, leave out `partition`, or raise "
                          "`memory`",
                          fit->settings->column, (long long)largest, 1e-9 * bytes, 1e-9 * most);
}

static thiele_status cut(thi_bfit *fit)
{
    int D = fit->problem.source->dims;
    int64_t blocks = choose_blocks(fit);
    double *scale = NULL;
    fetch_task task = {.source = fit->problem.source};
    thi_partition_rows rows = {D, fit->problem.source->n, &task, fetch_inputs};
    thiele_status status;
    if (fit->settings->form.weight[THI_RESIDUAL_BLOCK] == 0.0) {
        return thi_partition_random(&fit->partition, fit->problem.ctx, fit->problem.source->n, blocks);
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &scale, (size_t)D, sizeof *scale));
    THI_TRY(kernel_scales(fit, scale));
    if (fit->settings->column != NULL) {
        scale[D - 1] = 0.0;
        THI_TRY(thi_partition_by_mark(&fit->partition, fit->problem.ctx, &rows, scale));
        THI_TRY(check_largest(fit));
        goto out;
    }
    double enough = thi_budget_work(fit->problem.driver, fit->small ? SECONDS_SMALL : SECONDS);
    double seconds = fmax(1e-3, fmin(enough, thi_budget_part(fit->problem.driver, THI_SHARE_PARTITION)));
    THI_TRY(thi_partition_make(&fit->partition, fit->problem.ctx, &rows, blocks, scale, seconds));
out:
    thi_rows_free(&task.rows);
    thi_free(scale);
    return status;
}

static bool is_held(int64_t block, int64_t place)
{
    return block < THI_HELD_BLOCKS && place % THI_HELD_EVERY == THI_HELD_EVERY - 1 &&
           place / THI_HELD_EVERY < THI_HELD_MOST;
}

/* Moves the held-out rows of the first blocks from the partition to row; returns how many. */
static int64_t take_out(thi_partition *p, int64_t *row)
{
    int64_t held = 0, kept = 0, first = 0;
    for (int64_t b = 0; b < p->blocks; b++) {
        int64_t end = p->start[b + 1];
        for (int64_t i = first; i < end; i++) {
            if (is_held(b, i - first)) {
                row[held++] = p->order[i];
            } else {
                p->order[kept++] = p->order[i];
            }
        }
        first = end;
        p->start[b + 1] = kept;
    }
    p->n = kept;
    return held;
}

static thiele_status hold_out(thi_bfit *fit)
{
    const thi_source *s = fit->problem.source;
    int64_t *row = NULL;
    thiele_status status;
    thi_rows_free(&fit->held);
    if (!fit->settings->anytime || fit->sites != NULL || s->n < FEWEST_TO_HOLD ||
        fit->partition.blocks <= THI_HELD_BLOCKS) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &row, (size_t)(THI_HELD_BLOCKS * THI_HELD_MOST), sizeof *row));
    int64_t held = take_out(&fit->partition, row);
    THI_TRY(thi_rows_alloc(&fit->held, fit->problem.ctx, held, s->dims, s->outputs, s->beside));
    if (held > 0) {
        THI_TRY(s->fetch(s->arg, fit->problem.ctx, held, row, &fit->held));
    }
out:
    thi_free(row);
    return status;
}

thiele_status thi_bfit_partition(thi_bfit *fit)
{
    const thi_source *s = fit->problem.source;
    double started = thi_seconds();
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "partition", 1);
    thi_partition_clear(&fit->partition);
    THI_TRY(cut(fit));
    int64_t largest = largest_block(&fit->partition);
    fit->typical = (s->n + fit->partition.blocks - 1) / fit->partition.blocks;
    fit->result->blocks = fit->partition.blocks;
    fit->result->largest = largest;
    fit->result->partition_seconds += thi_seconds() - started;
    thi_rows_free(&fit->buffer);
    THI_TRY(thi_rows_alloc(&fit->buffer, fit->problem.ctx, THI_SPARSE_LANES * largest, s->dims, s->outputs, s->beside));
    THI_TRY(hold_out(fit));
out:
    return status;
}

/* --- loading ---------------------------------------------------------------------------------------------------------
 */

thiele_status thi_bfit_load(thi_bfit *fit, int64_t count, const int64_t *block, int64_t *rows)
{
    const thi_source *s = fit->problem.source;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t *start = fit->partition.start + block[i];
        int64_t n = start[1] - start[0];
        thi_rows part = {.n = n, .dims = s->dims, .outputs = s->outputs};
        part.X = fit->buffer.X + at * s->dims;
        part.y = fit->buffer.y + at * s->outputs;
        part.offset = s->beside.offset ? fit->buffer.offset + at : NULL;
        part.weight = s->beside.weight ? fit->buffer.weight + at : NULL;
        thiele_status status = s->fetch(s->arg, fit->problem.ctx, n, fit->partition.order + start[0], &part);
        if (status != THIELE_OK) {
            return status;
        }
        fit->block[i] = (thi_block){.n = part.n, .X = part.X, .y = part.y};
        at += part.n;
    }
    *rows = at;
    return THIELE_OK;
}

/* The targets serve looks at single rows, where there is one of each. */
static thiele_status gather_inputs(thi_bfit *fit)
{
    const thi_partition *p = &fit->partition;
    size_t D = (size_t)fit->problem.source->dims;
    int64_t rows;
    for (int64_t b = 0; b < p->blocks; b++) {
        thiele_status status = thi_bfit_load(fit, 1, &b, &rows);
        if (status != THIELE_OK) {
            return status;
        }
        memcpy(fit->local[0]->X + (size_t)p->start[b] * D, fit->buffer.X, (size_t)rows * D * sizeof(double));
        if (fit->problem.source->outputs == 1) {
            memcpy(fit->local[0]->y + p->start[b], fit->buffer.y, (size_t)rows * sizeof(double));
        }
    }
    return THIELE_OK;
}

thiele_status thi_bfit_gather(thi_bfit *fit)
{
    const thi_source *s = fit->problem.source;
    const thi_partition *p = &fit->partition;
    thiele_status status;
    THI_TRY(thi_local_create(&fit->local[0], fit->problem.ctx, p));
    for (int q = 1; q < fit->latents; q++) {
        THI_TRY(thi_local_share(&fit->local[q], fit->problem.ctx, fit->local[0]));
    }
    if (fit->sites != NULL) {
        return gather_inputs(fit);
    }
    thi_rows rows = {.n = p->n, .dims = s->dims, .outputs = s->outputs, .X = fit->local[0]->X, .y = fit->local[0]->y};
    THI_TRY(s->fetch(s->arg, fit->problem.ctx, p->n, p->order, &rows));
out:
    return status;
}

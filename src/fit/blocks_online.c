/* A fit by blocks that goes on where a frozen one ended: see blocks_online.h. */
#include "fit/blocks_online.h"

#include <math.h>
#include <string.h>

#include "fit/blocks_state.h"
#include "fit/online.h"

/* Latent functions that share their blocks. */
typedef struct unit {
    thi_bfit fit; /* engines, and of a batch the grown partition, local parts and sums */
    thi_spec spec;
    thi_source source; /* the rows so far by their blocks, and those of the batch behind them */
    thi_blocks_result result;
    thi_predictor *latent;   /* the first */
    int output;              /* of blocks with targets: which; else -1 */
    bool weighted;           /* rows of the fit had weights, which nobody knows any more */
    thi_rows batch;          /* as far as it concerns them */
    thi_natural *known;      /* of the rows so far; fit.sums: with the batch */
    int64_t touched, *block; /* of each row of the batch; then the blocks that it touched */
} unit;

struct thi_blocks_online {
    thi_blocks_online_settings settings;
    int units;
    unit *unit;
};

static bool has_sites(const thi_predictor *p)
{
    return p->local->lambda != NULL;
}

static bool same_blocks(const thi_predictor *a, const thi_predictor *b)
{
    const thi_partition *p = &a->local->partition, *r = &b->local->partition;
    return p->blocks == r->blocks && a->n == b->n && a->kernel->dims == b->kernel->dims &&
           memcmp(p->start, r->start, (size_t)(p->blocks + 1) * sizeof *p->start) == 0;
}

const char *thi_blocks_online_refuses(int latents, const thi_predictor *latent)
{
    bool same = true;
    for (int q = 0; same && q < latents; q++) {
        same = latent[q].local != NULL && has_sites(&latent[q]) == has_sites(latent) &&
               (!has_sites(latent) || same_blocks(&latent[q], latent));
    }
    return same ? NULL : "the blocks of its latent functions are not of one kind";
}

/* --- rows ------------------------------------------------------------------------------------------------------------
 */

static const thi_local *local_of(const unit *u)
{
    return u->latent->local;
}

static const double *inputs_of(const unit *u, int64_t row)
{
    const thi_local *local = local_of(u);
    int64_t next = row - local->partition.n;
    return next < 0 ? local->X + row * u->source.dims : u->batch.X + next * u->source.dims;
}

/* Rows whose sites stay may have any target: it is not looked at. */
static thiele_status fetch(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, thi_rows *out)
{
    (void)ctx;
    const unit *u = arg;
    const thi_local *local = local_of(u);
    size_t D = (size_t)u->source.dims, P = (size_t)u->source.outputs;
    int64_t N = local->partition.n;
    for (int64_t i = 0; i < count; i++) {
        int64_t next = row[i] - N;
        const double *y = next >= 0 ? u->batch.y + (size_t)next * P : P == 1 ? local->y + row[i] : u->batch.y;
        memcpy(out->X + (size_t)i * D, inputs_of(u, row[i]), D * sizeof *out->X);
        memcpy(out->y + (size_t)i * P, y, P * sizeof *y);
        if (u->source.beside.offset) {
            out->offset[i] = next < 0 ? 0.0 : u->batch.offset[next];
        }
    }
    out->n = count;
    return THIELE_OK;
}

static thiele_status fetch_inputs(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, double *X)
{
    (void)ctx;
    const unit *u = arg;
    size_t D = (size_t)u->source.dims;
    for (int64_t i = 0; i < count; i++) {
        memcpy(X + (size_t)i * D, inputs_of(u, row[i]), D * sizeof *X);
    }
    return THIELE_OK;
}

/* The batch as these latent functions see it: with targets, the rows that have theirs. */
static thiele_status take_batch(unit *u, thiele_context *ctx, const thi_rows *rows)
{
    size_t D = (size_t)rows->dims, P = (size_t)u->source.outputs;
    thiele_status status;
    thi_rows_free(&u->batch);
    THI_TRY(thi_rows_alloc(&u->batch, ctx, rows->n, rows->dims, u->source.outputs, u->source.beside));
    u->batch.n = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        const double *y = rows->y + i * rows->outputs + (u->output >= 0 ? u->output : 0);
        int64_t to = u->batch.n;
        if (u->output >= 0 && isnan(*y)) {
            continue;
        }
        memcpy(u->batch.X + (size_t)to * D, rows->X + (size_t)i * D, D * sizeof *rows->X);
        memcpy(u->batch.y + (size_t)to * P, y, P * sizeof *y);
        if (u->source.beside.offset) {
            u->batch.offset[to] = rows->offset[i];
        }
        u->batch.n++;
    }
    u->source.n = local_of(u)->partition.n + u->batch.n;
out:
    return status;
}

/* --- opening ---------------------------------------------------------------------------------------------------------
 */

static void close_engines(unit *u)
{
    for (int q = 0; q < u->fit.latents; q++) {
        thi_sparse_close(&u->fit.engine[q]);
    }
}

/* Engines for blocks of so many rows, with the factors that the sums belong to; all of them are open, or none. */
static thiele_status open_engines(unit *u, thiele_context *ctx, int64_t largest)
{
    thi_bfit *fit = &u->fit;
    thi_sparse_shape shape = {
        .M = fit->M, .largest = largest, .weight = {[THI_RESIDUAL_BLOCK] = 1.0}, .sites = u->output < 0};
    thiele_status status = THIELE_OK;
    if (fit->engine->space != NULL && fit->engine->shape.largest >= largest) {
        return THIELE_OK;
    }
    close_engines(u);
    for (int q = 0; q < fit->latents; q++) {
        const thi_predictor *p = &u->latent[q];
        THI_TRY(thi_sparse_open(&fit->engine[q], ctx, &shape, p->kernel->dims));
        THI_TRY(thi_sparse_prepare(&fit->engine[q], ctx, &u->spec.latents.prior[q], p->basis, p->local->noise));
        thi_tri_copy(p->L, fit->engine[q].L);
    }
out:
    if (status != THIELE_OK) {
        close_engines(u);
    }
    return status;
}

/* Blocks as the local part of a latent function has them. */
static void look_at(const unit *u, int q, int64_t count, const int64_t *block, thi_block *out)
{
    const thi_local *local = u->latent[q].local;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = local->partition.start[block[i]];
        out[i] = (thi_block){.n = local->partition.start[block[i] + 1] - first,
                             .X = local->X + first * local->partition.D,
                             .y = local->y + first};
        if (local->lambda != NULL) {
            out[i].at = (thi_block_sites){.lambda = local->lambda + first, .nu = local->nu + first};
        }
    }
}

/* sums += scale times what some of the blocks so far say. */
static thiele_status add_known(unit *u, thiele_context *ctx, int64_t count, const int64_t *block, double scale,
                               thi_natural *sums)
{
    thi_block here[THI_SPARSE_LANES];
    for (int64_t i = 0; i < count; i += THI_SPARSE_LANES) {
        int64_t lanes = thi_least(count - i, THI_SPARSE_LANES);
        for (int q = 0; q < u->fit.latents; q++) {
            look_at(u, q, lanes, block + i, here);
            thiele_status status = thi_sparse_sum(&u->fit.engine[q], ctx, lanes, here, scale, &sums[q]);
            if (status != THIELE_OK) {
                return status;
            }
        }
    }
    return THIELE_OK;
}

/* What all rows so far say: as frozen, or found anew. */
static thiele_status open_sums(unit *u, thiele_context *ctx, bool anew)
{
    thiele_status status = THIELE_OK;
    for (int q = 0; q < u->fit.latents; q++) {
        THI_TRY(thi_natural_open(&u->known[q], ctx, u->fit.M));
        THI_TRY(thi_natural_open(&u->fit.sums[q], ctx, u->fit.M));
        THI_TRY(thi_natural_open(&u->fit.step[q], ctx, u->fit.M));
        if (!anew) {
            THI_TRY(thi_online_sites(&u->latent[q], ctx, NULL, &u->known[q]));
        }
    }
    for (int64_t b = 0; anew && b < local_of(u)->partition.blocks; b++) {
        THI_TRY(add_known(u, ctx, 1, &b, 1.0, u->known));
    }
out:
    return status;
}

static thiele_status open_unit(unit *u, thiele_context *ctx, const thi_blocks_online_settings *settings)
{
    thi_latents *latents = &u->spec.latents;
    size_t Q = (size_t)u->fit.latents;
    const thi_predictor *p = u->latent;
    thiele_status status;
    u->fit.M = p->n;
    u->weighted = settings->weighted;
    u->fit.result = &u->result;
    u->fit.problem = (thi_problem){.spec = &u->spec, .source = &u->source};
    u->source = (thi_source){.dims = p->kernel->dims,
                             .outputs = u->output >= 0 ? 1 : settings->lik->outputs,
                             .beside = {.offset = u->output < 0 && settings->exposed},
                             .run = 1,
                             .arg = u,
                             .fetch = fetch};
    u->spec.lik = (thiele_likelihood *)settings->lik;
    u->spec.expectation = settings->expectation;
    latents->count = latents->groups = (int)Q;
    THI_TRY(thi_alloc(ctx, &latents->group, Q, sizeof *latents->group));
    THI_TRY(thi_alloc(ctx, &latents->prior, Q, sizeof *latents->prior));
    THI_TRY(thi_alloc(ctx, &u->known, Q, sizeof *u->known));
    THI_TRY(thi_alloc(ctx, &u->fit.engine, Q, sizeof *u->fit.engine));
    THI_TRY(thi_alloc(ctx, &u->fit.sums, Q, sizeof *u->fit.sums));
    THI_TRY(thi_alloc(ctx, &u->fit.step, Q, sizeof *u->fit.step));
    THI_TRY(thi_alloc(ctx, &u->fit.local, Q, sizeof(thi_local *)));
    for (size_t q = 0; q < Q; q++) {
        latents->group[q] = (int)q;
        latents->prior[q] = (thi_prior){p[q].kernel, p[q].mean, p[q].mean_parameter};
    }
    THI_TRY(open_engines(u, ctx, p->local->largest));
    THI_TRY(open_sums(u, ctx, settings->anew));
out:
    return status;
}

/* What a batch needed. */
static void drop_batch(unit *u)
{
    for (int q = 0; u->fit.local != NULL && q < u->fit.latents; q++) {
        thi_local_destroy(u->fit.local[q]);
        u->fit.local[q] = NULL;
    }
    thi_bsites_close(&u->fit);
    thi_partition_clear(&u->fit.partition);
    thi_rows_free(&u->fit.buffer);
    thi_rows_free(&u->batch);
    thi_free(u->block);
    u->block = NULL;
}

static void close_unit(unit *u)
{
    drop_batch(u);
    if (u->fit.engine != NULL) {
        close_engines(u);
    }
    for (int q = 0; u->fit.local != NULL && q < u->fit.latents; q++) {
        thi_natural_close(&u->known[q]);
        thi_natural_close(&u->fit.sums[q]);
        thi_natural_close(&u->fit.step[q]);
    }
    thi_free(u->spec.latents.group);
    thi_free(u->spec.latents.prior);
    thi_free(u->known);
    thi_free(u->fit.engine);
    thi_free(u->fit.sums);
    thi_free(u->fit.step);
    thi_free(u->fit.local);
}

thiele_status thi_blocks_online_open(thi_blocks_online **out, thiele_context *ctx, int latents, thi_predictor *latent,
                                     const thi_blocks_online_settings *settings)
{
    bool sites = has_sites(latent);
    thi_blocks_online *o = NULL;
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &o, 1, sizeof *o));
    o->settings = *settings;
    o->units = sites ? 1 : latents;
    THI_TRY(thi_alloc(ctx, &o->unit, (size_t)o->units, sizeof *o->unit));
    for (int k = 0; k < o->units; k++) {
        unit *u = &o->unit[k];
        u->latent = &latent[k];
        u->fit.latents = sites ? latents : 1;
        u->output = sites ? -1 : k;
        THI_TRY(open_unit(u, ctx, settings));
    }
    *out = o;
    return THIELE_OK;
out:
    thi_blocks_online_close(o);
    return status;
}

void thi_blocks_online_close(thi_blocks_online *o)
{
    for (int k = 0; o != NULL && o->unit != NULL && k < o->units; k++) {
        close_unit(&o->unit[k]);
    }
    if (o != NULL) {
        thi_free(o->unit);
        thi_free(o);
    }
}

/* --- a batch ---------------------------------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The first u->touched of u->block: each of them once. */
static void list_touched(unit *u)
{
    qsort(u->block, (size_t)u->batch.n, sizeof *u->block, ascending);
    u->touched = 0;
    for (int64_t i = 0; i < u->batch.n; i++) {
        if (i == 0 || u->block[i] != u->block[u->touched - 1]) {
            u->block[u->touched++] = u->block[i];
        }
    }
}

static int64_t largest_of(const thi_partition *p)
{
    int64_t largest = 0;
    for (int64_t b = 0; b < p->blocks; b++) {
        largest = thi_most(largest, p->start[b + 1] - p->start[b]);
    }
    return largest;
}

/* Rows to blocks, and what these said out of the sums. u->block becomes the list of blocks that are not what they were.
 */
static thiele_status join(unit *u, thiele_context *ctx, int64_t most)
{
    const thi_partition *p = &local_of(u)->partition;
    thi_partition_rows rows = {p->D, u->source.n, u, fetch_inputs};
    thi_bfit *fit = &u->fit;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &u->block, (size_t)u->batch.n, sizeof *u->block));
    THI_TRY(thi_partition_find(p, ctx, u->batch.n, u->batch.X, u->block));
    THI_TRY(thi_partition_grow(&fit->partition, ctx, p, &rows, u->block, most));
    u->result.largest = largest_of(&fit->partition);
    THI_TRY(open_engines(u, ctx, thi_most(u->result.largest, local_of(u)->largest)));
    list_touched(u);
    for (int q = 0; q < fit->latents; q++) {
        thi_natural_copy(&fit->sums[q], &u->known[q]);
    }
    THI_TRY(add_known(u, ctx, u->touched, u->block, -1.0, fit->sums));
    int64_t more = fit->partition.blocks - p->blocks;
    THI_TRY(thi_grow(ctx, &u->block, (size_t)(u->touched + more), sizeof *u->block));
    for (int64_t b = p->blocks; b < fit->partition.blocks; b++) {
        u->block[u->touched++] = b;
    }
    THI_TRY(thi_rows_alloc(&fit->buffer, ctx, THI_SPARSE_LANES * u->result.largest, u->source.dims, u->source.outputs,
                           u->source.beside));
out:
    return status;
}

/* What the touched blocks say now, by their targets. */
static thiele_status add_targets(unit *u, thiele_context *ctx)
{
    int64_t rows;
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < u->touched; i += THI_SPARSE_LANES) {
        int64_t lanes = thi_least(u->touched - i, THI_SPARSE_LANES);
        THI_TRY(thi_bfit_load(&u->fit, lanes, u->block + i, &rows));
        THI_TRY(thi_sparse_sum(u->fit.engine, ctx, lanes, u->fit.block, 1.0, u->fit.sums));
    }
    THI_TRY(thi_sparse_set(u->fit.engine, ctx, u->fit.sums));
out:
    return status;
}

/* The same by sites, which are found for the new rows and where possible again for the others. */
static thiele_status add_sites(unit *u)
{
    bool known = u->source.outputs == 1 && !u->source.beside.offset && !u->weighted;
    thiele_status status;
    THI_TRY(thi_bsites_open(&u->fit));
    thi_bsites_take(&u->fit, u->latent, known ? 0 : local_of(u)->partition.n);
    THI_TRY(thi_bsites_join(&u->fit, u->touched, u->block));
out:
    return status;
}

/* All that the batch changes, beside what there is. */
static thiele_status learn_unit(unit *u, thiele_context *ctx, const thi_rows *rows, int64_t most)
{
    thiele_status status;
    u->fit.problem.ctx = ctx;
    THI_TRY(take_batch(u, ctx, rows));
    if (u->batch.n == 0) {
        return THIELE_OK;
    }
    THI_TRY(join(u, ctx, most));
    THI_TRY(u->output < 0 ? add_sites(u) : add_targets(u, ctx));
    THI_TRY(thi_bfit_gather(&u->fit));
    if (u->output < 0) {
        THI_TRY(thi_bsites_lend(&u->fit));
    }
out:
    return status;
}

/* The batch becomes part of what is known, and of the predictors. */
static void commit(unit *u)
{
    for (int q = 0; u->batch.n > 0 && q < u->fit.latents; q++) {
        thi_predictor *p = &u->latent[q];
        const thi_sparse *e = &u->fit.engine[q];
        thi_local *local = u->fit.local[q];
        thi_natural before = u->known[q];
        u->known[q] = u->fit.sums[q];
        u->fit.sums[q] = before;
        local->cache_most = p->local->cache_most;
        thi_local_renew(local, p->local->noise);
        u->fit.local[q] = p->local;
        p->local = local;
        thi_tri_copy(e->root, p->R[0]);
        memcpy(p->a, e->m, (size_t)p->n * sizeof *p->a);
        thi_blas_trsv(THI_T, p->L, p->a);
    }
}

thiele_status thi_blocks_online_learn(thi_blocks_online *o, thiele_context *ctx, const thi_rows *rows)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; k < o->units && status == THIELE_OK; k++) {
        status = learn_unit(&o->unit[k], ctx, rows, o->settings.most);
    }
    for (int k = 0; k < o->units; k++) {
        if (status == THIELE_OK) {
            commit(&o->unit[k]);
        }
        drop_batch(&o->unit[k]);
    }
    return status;
}

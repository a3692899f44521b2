/*
 * Factors of blocks, kept within a limit. A factor is made without the lock, so that nobody waits for another's work:
 * two threads that miss the same block both make it, with the same bits, and the second drops its own. A factor in use
 * is never freed. Blocks of memory carry their heap with them (base/alloc.c), so entries may outlive the context that
 * made them; when that context runs into its limit, what is idle in the cache goes first.
 */
#include <pthread.h>
#include <string.h>

#include "posterior/local.h"

struct thi_local_cache {
    pthread_mutex_t lock;
    int64_t blocks;
    thi_local_factor **slot; /* 2 x blocks: what means need, and whole ones */
    double held;
    uint64_t clock;
};

/* --- one factor ------------------------------------------------------------------------------------------------------
 */

/* What means do not need goes. */
static void strip(thi_local_factor *f)
{
    thi_free(f->V.data);
    thi_free(f->C.data);
    thi_free(f->U.data);
    thi_free(f->e);
    thi_free(f->scale);
    f->V = f->C = f->U = (thi_matrix){0};
    f->e = f->scale = NULL;
    f->whole = false;
}

void thi_local_factor_free(thi_local_factor *f)
{
    if (f != NULL) {
        strip(f);
        thi_inputs_clear(&f->inputs);
        thi_free(f->alpha);
        thi_free(f->g);
        thi_free(f);
    }
}

static double factor_bytes(const thi_predictor *p, const thi_local_factor *f)
{
    double n = (double)f->inputs.n, M = (double)p->n, features = 0.0;
    for (int i = 0; i < p->kernel->leaves; i++) {
        features += p->kernel->leaf[i].features;
    }
    double whole = f->whole ? M * n + n * n + n * (2.0 + (double)f->U.rows) : 0.0;
    return 8.0 * (whole + n + M + features * n);
}

/* C, s, U and e of sites. */
static thiele_status factor_sites(const thi_predictor *p, thiele_context *ctx, const thi_local_rows *rows,
                                  thi_local_factor *f)
{
    int64_t n = f->inputs.n;
    thi_dense dense = {0};
    double *moments = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &moments, (size_t)(2 * n), sizeof *moments));
    THI_TRY(thi_dense_open(&dense, ctx, n, NULL, NULL, rows->prior));
    THI_TRY(rows->prior != NULL ? thi_dense_prior(&dense, ctx, NULL)
                                : thi_dense_residual(&dense, ctx, p->kernel, &f->inputs, f->V));
    THI_TRY(thi_dense_condition(&dense, ctx, rows->lambda, rows->nu, moments, moments + n));
    THI_TRY(thi_dense_factor(&dense, ctx, f->C));
    f->e = dense.a;
    f->scale = dense.scale;
    f->U = dense.U;
    dense.a = dense.scale = NULL;
    dense.U = (thi_matrix){0};
out:
    thi_dense_close(&dense);
    thi_free(moments);
    return status;
}

/* x becomes Gamma^-1 x. */
static thiele_status apply_gamma(const thi_local_factor *f, thiele_context *ctx, double *x)
{
    int64_t n = f->inputs.n, negatives = f->U.rows;
    double *u;
    thiele_status status = thi_alloc(ctx, &u, (size_t)negatives, sizeof *u);
    if (status != THIELE_OK) {
        return status;
    }
    if (negatives > 0) {
        thi_blas_gemv(THI_N, 1.0, f->U, x, 0.0, u);
    }
    for (int64_t i = 0; f->scale != NULL && i < n; i++) {
        x[i] *= f->scale[i];
    }
    thi_blas_trsv(THI_N, f->C, x);
    thi_blas_trsv(THI_T, f->C, x);
    for (int64_t i = 0; f->scale != NULL && i < n; i++) {
        x[i] *= f->scale[i];
    }
    if (negatives > 0) {
        thi_blas_gemv(THI_T, -1.0, f->U, u, 1.0, x);
    }
    thi_free(u);
    return THIELE_OK;
}

/* C and e of targets with noise: C = chol(K - V'V + noise I). alpha becomes y_D. */
static thiele_status factor_targets(const thi_predictor *p, thiele_context *ctx, const thi_local_rows *rows,
                                    thi_local_factor *f)
{
    int64_t n = f->inputs.n;
    double jitter;
    thiele_status status;
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &f->inputs, &f->inputs, f->C, true));
    THI_TRY(thi_multiply(ctx, THI_T, THI_N, -1.0, f->V, f->V, 1.0, f->C, true));
    for (int64_t j = 0; j < n; j++) {
        f->C.data[j + j * n] += p->local->noise;
    }
    THI_TRY(thi_chol_jitter(ctx, f->C, &jitter));
    THI_TRY(thi_alloc(ctx, &f->e, (size_t)n, sizeof *f->e));
    thi_mean_fill(p->mean, p->mean_parameter, n, p->kernel->dims, f->inputs.X, f->e);
    for (int64_t i = 0; i < n; i++) {
        f->e[i] = f->alpha[i] = rows->y[i] - f->e[i];
    }
    THI_TRY(apply_gamma(f, ctx, f->e));
out:
    return status;
}

static thiele_status factor_matrices(const thi_predictor *p, thiele_context *ctx, const thi_local_rows *rows,
                                     thi_local_factor *f)
{
    size_t n = (size_t)f->inputs.n, M = (size_t)p->n;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&f->V, ctx, p->n, f->inputs.n));
    THI_TRY(thi_matrix_alloc(&f->C, ctx, f->inputs.n, f->inputs.n));
    THI_TRY(thi_alloc(ctx, &f->alpha, n, sizeof *f->alpha));
    if (rows->V != NULL) {
        memcpy(f->V.data, rows->V, M * n * sizeof *rows->V);
    } else {
        THI_TRY(thi_kernel_fill(p->kernel, ctx, &p->inputs, &f->inputs, f->V, false));
        THI_TRY(thi_tri_solve(ctx, THI_N, p->L, f->V));
    }
    THI_TRY((rows->lambda != NULL ? factor_sites : factor_targets)(p, ctx, rows, f));
out:
    return status;
}

/* alpha, which is y_D or with sites 0 before, and g; the mean m of q(w) is L'a. With targets y_D - V'm is solved for at
 * once: e less the other would cancel. */
static thiele_status factor_vectors(const thi_predictor *p, thiele_context *ctx, thi_local_factor *f)
{
    int64_t n = f->inputs.n, M = p->n;
    double *m = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &f->g, (size_t)M, sizeof *f->g));
    THI_TRY(thi_alloc(ctx, &m, (size_t)M, sizeof *m));
    for (int64_t j = 0; j < M; j++) {
        m[j] = thi_blas_dot(M - j, p->L.data + j + j * p->L.ld, p->a + j);
    }
    thi_blas_gemv(THI_T, -1.0, f->V, m, 1.0, f->alpha);
    THI_TRY(apply_gamma(f, ctx, f->alpha));
    if (p->local->lambda != NULL) {
        thi_blas_axpy(n, 1.0, f->e, f->alpha);
    }
    memcpy(f->g, m, (size_t)M * sizeof *f->g);
    thi_blas_gemv(THI_N, -1.0, f->V, f->alpha, 1.0, f->g);
    thi_blas_trsv(THI_T, p->L, f->g);
out:
    thi_free(m);
    return status;
}

thiele_status thi_local_factor_make(const thi_predictor *p, thiele_context *ctx, const thi_local_rows *rows,
                                    thi_local_factor **out)
{
    thi_local_factor *f = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &f, 1, sizeof *f));
    f->whole = true;
    THI_TRY(thi_inputs_make(&f->inputs, ctx, p->kernel, rows->n, rows->X));
    THI_TRY(factor_matrices(p, ctx, rows, f));
    THI_TRY(factor_vectors(p, ctx, f));
out:
    if (status != THIELE_OK) {
        thi_local_factor_free(f);
        f = NULL;
    }
    *out = f;
    return status;
}

static thiele_status factor_make(const thi_predictor *p, thiele_context *ctx, int64_t block, bool whole,
                                 thi_local_factor **out)
{
    const thi_local *local = p->local;
    const thi_partition *partition = &local->partition;
    int64_t first = partition->start[block], n = partition->start[block + 1] - first;
    thi_local_rows rows = {.n = n, .X = local->X + first * partition->D, .y = local->y + first};
    if (local->lambda != NULL) {
        rows.lambda = local->lambda + first;
        rows.nu = local->nu + first;
    }
    thiele_status status = thi_local_factor_make(p, ctx, &rows, out);
    if (status == THIELE_ERROR_NUMERIC) {
        status = thi_fail_in(ctx, status, "the %lld rows of block %lld", (long long)n, (long long)block);
    }
    if (status == THIELE_OK) {
        (*out)->block = block;
        if (!whole) {
            strip(*out);
        }
        (*out)->bytes = factor_bytes(p, *out);
    }
    return status;
}

/* --- the cache -------------------------------------------------------------------------------------------------------
 */

thiele_status thi_local_cache_create(thi_local_cache **out, thiele_context *ctx, int64_t blocks)
{
    thi_local_cache *cache = NULL;
    thi_local_factor **slot = NULL;
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &cache, 1, sizeof *cache));
    THI_TRY(thi_alloc(ctx, &slot, 2 * (size_t)blocks, sizeof(thi_local_factor *)));
    if (pthread_mutex_init(&cache->lock, NULL) != 0) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory: a lock could not be had"));
    }
    cache->blocks = blocks;
    cache->slot = slot;
    *out = cache;
    return THIELE_OK;
out:
    thi_free(slot);
    thi_free(cache);
    return status;
}

void thi_local_cache_empty(thi_local_cache *cache)
{
    for (int64_t i = 0; i < 2 * cache->blocks; i++) {
        thi_local_factor_free(cache->slot[i]);
        cache->slot[i] = NULL;
    }
    cache->held = 0.0;
}

void thi_local_cache_destroy(thi_local_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    thi_local_cache_empty(cache);
    pthread_mutex_destroy(&cache->lock);
    thi_free(cache->slot);
    thi_free(cache);
}

double thi_local_cache_held(thi_local_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    double held = cache->held;
    pthread_mutex_unlock(&cache->lock);
    return held;
}

/* From here to thi_local_acquire: under the lock. */

static thi_local_factor **slot_of(thi_local_cache *cache, int64_t block, bool whole)
{
    return &cache->slot[block + (whole ? cache->blocks : 0)];
}

/* Drops what was idle for longest until no more than `most` bytes are held, as far as that is possible. */
static void shrink(thi_local_cache *cache, double most)
{
    while (cache->held > most) {
        thi_local_factor *oldest = NULL;
        for (int64_t i = 0; i < 2 * cache->blocks; i++) {
            thi_local_factor *f = cache->slot[i];
            if (f != NULL && f->users == 0 && (oldest == NULL || f->used < oldest->used)) {
                oldest = f;
            }
        }
        if (oldest == NULL) {
            return;
        }
        *slot_of(cache, oldest->block, oldest->whole) = NULL;
        cache->held -= oldest->bytes;
        thi_local_factor_free(oldest);
    }
}

/* A whole factor serves where only means are wanted. */
static thi_local_factor *find(thi_local_cache *cache, int64_t block, bool whole)
{
    thi_local_factor *f = *slot_of(cache, block, whole);
    if (f == NULL && !whole) {
        f = *slot_of(cache, block, true);
    }
    if (f != NULL) {
        f->users++;
        f->used = ++cache->clock;
    }
    return f;
}

/* Keeps a new factor where there is room for it. */
static void keep(thi_local_cache *cache, thi_local_factor *f, double budget)
{
    shrink(cache, f->bytes <= budget ? budget - f->bytes : budget);
    f->users = 1;
    f->used = ++cache->clock;
    f->cached = cache->held + f->bytes <= budget;
    if (f->cached) {
        *slot_of(cache, f->block, f->whole) = f;
        cache->held += f->bytes;
    }
}

thiele_status thi_local_acquire(const thi_predictor *predictor, thiele_context *ctx, int64_t block, bool whole,
                                thi_local_factor **out)
{
    thi_local_cache *cache = predictor->local->cache;
    double share = THI_LOCAL_CACHE_SHARE * (double)thi_memory_limit(ctx);
    double most = predictor->local->cache_most, budget = share < most ? share : most;
    thi_local_factor *made = NULL;
    pthread_mutex_lock(&cache->lock);
    *out = find(cache, block, whole);
    pthread_mutex_unlock(&cache->lock);
    if (*out != NULL) {
        return THIELE_OK;
    }
    thiele_status status = factor_make(predictor, ctx, block, whole, &made);
    if (status == THIELE_ERROR_LIMIT) {
        pthread_mutex_lock(&cache->lock);
        shrink(cache, 0.0);
        pthread_mutex_unlock(&cache->lock);
        thi_recover(ctx);
        status = factor_make(predictor, ctx, block, whole, &made);
    }
    if (status != THIELE_OK) {
        return status;
    }
    pthread_mutex_lock(&cache->lock);
    *out = find(cache, block, whole);
    if (*out == NULL) {
        keep(cache, made, budget);
        *out = made;
        made = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    thi_local_factor_free(made);
    return THIELE_OK;
}

void thi_local_release(thi_local_cache *cache, thi_local_factor *factor)
{
    pthread_mutex_lock(&cache->lock);
    factor->users--;
    bool drop = !factor->cached && factor->users == 0;
    pthread_mutex_unlock(&cache->lock);
    if (drop) {
        thi_local_factor_free(factor);
    }
}

/* The training rows of a local part: their blocks, targets or sites. */
#include <string.h>

#include "posterior/local.h"

static thiele_status copy_numbers(thiele_context *ctx, double **out, int64_t count, const double *from)
{
    thiele_status status = thi_alloc_bare(ctx, out, (size_t)count, sizeof **out);
    if (status == THIELE_OK) {
        memcpy(*out, from, (size_t)count * sizeof **out);
    }
    return status;
}

static thiele_status copy_partition(thi_partition *to, thiele_context *ctx, const thi_partition *from)
{
    thiele_status status;
    *to = (thi_partition){.D = from->D, .n = from->start[from->blocks], .blocks = from->blocks};
    THI_TRY(copy_numbers(ctx, &to->scale, from->D, from->scale));
    THI_TRY(copy_numbers(ctx, &to->centre, from->D * from->blocks, from->centre));
    if (from->mark != NULL) {
        THI_TRY(copy_numbers(ctx, &to->mark, from->blocks, from->mark));
    }
    THI_TRY(thi_alloc_bare(ctx, &to->start, (size_t)from->blocks + 1, sizeof *to->start));
    memcpy(to->start, from->start, (size_t)(from->blocks + 1) * sizeof *to->start);
out:
    return status;
}

thiele_status thi_local_create(thi_local **out, thiele_context *ctx, const thi_partition *partition)
{
    thi_local *local = NULL;
    thiele_status status;
    *out = NULL;
    if (partition->centre == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a partition without centres has no nearest block");
    }
    THI_TRY(thi_alloc(ctx, &local, 1, sizeof *local));
    THI_TRY(thi_alloc(ctx, &local->holders, 1, sizeof *local->holders));
    *local->holders = 1;
    local->cache_most = THI_LOCAL_CACHE_BYTES;
    THI_TRY(copy_partition(&local->partition, ctx, partition));
    THI_TRY(thi_alloc(ctx, &local->X, (size_t)(partition->D * local->partition.n), sizeof *local->X));
    THI_TRY(thi_alloc(ctx, &local->y, (size_t)local->partition.n, sizeof *local->y));
    THI_TRY(thi_local_cache_create(&local->cache, ctx, partition->blocks));
    for (int64_t i = 0; i < partition->blocks; i++) {
        int64_t rows = partition->start[i + 1] - partition->start[i];
        local->largest = rows > local->largest ? rows : local->largest;
    }
    *out = local;
    return THIELE_OK;
out:
    thi_local_destroy(local);
    return status;
}

thiele_status thi_local_share(thi_local **out, thiele_context *ctx, const thi_local *first)
{
    thi_local *local = NULL;
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &local, 1, sizeof *local));
    *local = (thi_local){.partition = first->partition,
                         .X = first->X,
                         .y = first->y,
                         .holders = first->holders,
                         .largest = first->largest,
                         .cache_most = THI_LOCAL_CACHE_BYTES};
    ++*local->holders;
    THI_TRY(thi_local_cache_create(&local->cache, ctx, local->partition.blocks));
    *out = local;
    return THIELE_OK;
out:
    thi_local_destroy(local);
    return status;
}

thiele_status thi_local_hold_sites(thi_local *local, thiele_context *ctx)
{
    thiele_status status = thi_grow(ctx, &local->lambda, (size_t)local->partition.n, sizeof *local->lambda);
    return status == THIELE_OK ? thi_grow(ctx, &local->nu, (size_t)local->partition.n, sizeof *local->nu) : status;
}

void thi_local_renew(thi_local *local, double noise)
{
    thi_local_cache_empty(local->cache);
    local->noise = noise;
}

thiele_status thi_local_attach(thi_predictor *predictor, thiele_context *ctx, const thi_partition *partition,
                               const double *X, const double *y, double noise)
{
    thiele_status status = thi_local_create(&predictor->local, ctx, partition);
    if (status == THIELE_OK) {
        int64_t N = predictor->local->partition.n;
        memcpy(predictor->local->X, X, (size_t)(partition->D * N) * sizeof *X);
        memcpy(predictor->local->y, y, (size_t)N * sizeof *y);
        thi_local_renew(predictor->local, noise);
    }
    return status;
}

void thi_local_destroy(thi_local *local)
{
    if (local == NULL) {
        return;
    }
    if (local->holders != NULL && --*local->holders == 0) {
        thi_partition_clear(&local->partition);
        thi_free(local->X);
        thi_free(local->y);
        thi_free(local->holders);
    }
    thi_local_cache_destroy(local->cache);
    thi_free(local->lambda);
    thi_free(local->nu);
    thi_free(local);
}

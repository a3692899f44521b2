/* Rows in memory as a source, and samples of any source. */
#include "fit/source.h"

#include "data/batches.h"

/* Fewest places that a sample of streamed rows comes from. */
enum { LEAST_PLACES = 256 };

static thiele_status fetch_rows(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, thi_rows *out)
{
    (void)ctx;
    const thi_rows *rows = arg;
    for (int64_t i = 0; i < count; i++) {
        thi_rows_copy(out, i, rows, row[i]);
    }
    out->n = count;
    return THIELE_OK;
}

void thi_source_of_rows(thi_source *source, const thi_rows *rows)
{
    *source = (thi_source){.n = rows->n,
                           .dims = rows->dims,
                           .outputs = rows->outputs,
                           .beside = thi_rows_aside(rows),
                           .run = 1,
                           .arg = (void *)rows,
                           .fetch = fetch_rows};
}

/* The numbers of `count` < n rows: by runs of equal length, whole runs in random order. */
static void draw(const thi_source *source, uint64_t seed, uint64_t use, int64_t count, int64_t *row)
{
    int64_t most = count / LEAST_PLACES > 1 ? count / LEAST_PLACES : 1;
    int64_t run = source->run < most ? source->run : most;
    thi_shuffle order;
    thi_shuffle_open(&order, (thi_stream){seed, THI_RANDOM_SUBSET, use}, source->n / run);
    for (int64_t i = 0; i < count; i++) {
        row[i] = thi_shuffle_at(&order, i / run) * run + i % run;
    }
}

thiele_status thi_source_sample(const thi_source *source, thiele_context *ctx, int64_t count, uint64_t use,
                                thi_rows *out)
{
    int64_t *row = NULL;
    thiele_status status;
    bool all = count >= source->n;
    count = all ? source->n : count;
    THI_TRY(thi_rows_alloc(out, ctx, count, source->dims, source->outputs, source->beside));
    THI_TRY(thi_alloc(ctx, &row, (size_t)count, sizeof *row));
    for (int64_t i = 0; all && i < count; i++) {
        row[i] = i;
    }
    if (!all) {
        draw(source, ctx->seed, use, count, row);
    }
    THI_TRY(source->fetch(source->arg, ctx, count, row, out));
    if (out->n == 0) {
        status = thi_fail(ctx, THIELE_ERROR_DATA, "every one of the %lld rows examined has a missing value",
                          (long long)count);
    }
out:
    thi_free(row);
    if (status != THIELE_OK) {
        thi_rows_free(out);
    }
    return status;
}

/*
 * Fits by several processes (thiele/ranks.h): what can be shared, and whether all of them are about the same thing.
 * Every process goes through the whole fit and takes the same decisions; only passes over all rows are divided
 * (fit/pass.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/ranks.h"
#include "linalg/vector.h"
#include "model/methods.h"
#include "model/specify.h"
#include <thiele/version.h>

static uint64_t mark(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

/* Rows, and what the encoder has learned of them: means and levels of all columns. */
static thiele_status agree_on_table(const thi_fitting *f)
{
    json_t *json = thi_encoder_to_json(&f->model->encoder);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL) {
        return thi_fail(f->ctx, THIELE_ERROR_MEMORY, "out of memory while processes compared their tables");
    }
    int64_t table[2] = {f->streamed ? f->stream.source.n : f->rows.n, (int64_t)mark(1, text)};
    free(text);
    return thi_ranks_agree(f->ctx, table, sizeof table, "table");
}

thiele_status thi_check_ranks(const thi_fitting *f)
{
    thiele_context *ctx = f->ctx;
    thiele_status status;
    if (!thi_ranks_many(ctx)) {
        return THIELE_OK;
    }
    if ((f->method->can & THI_CAN_RANKS) == 0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "method '%s' does not run on %d processes: %s", f->method->name,
                        ctx->ranks.count, thi_method_lacks(f->method, THI_CAN_RANKS));
    }
    if (f->options->stopping.deadline > 0.0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "a fit by several processes has no deadline yet: limit it by `iterations`");
    }
    uint64_t machine = mark(mark(1, THIELE_VERSION), thi_vector()->name);
    THI_TRY(thi_ranks_agree(ctx, &machine, sizeof machine, "version of thiele, or another kind of processor,"));
    THI_TRY(agree_on_table(f));
out:
    return status;
}

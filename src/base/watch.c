/* Looking up from work that has no result yet. The clock is asked each time, the callback twenty times a second. */
#include <math.h>

#include "base/base.h"

static const double PATIENCE = 0.05; /* seconds between two looks, and before the first */

thi_watch thi_watch_begin(thiele_context *ctx, const char *what, double until)
{
    thi_watch old = ctx->watch;
    double now = thi_seconds();
    ctx->watch = (thi_watch){what, now, now + PATIENCE, until > 0.0 ? until : old.until};
    return old;
}

void thi_watch_end(thiele_context *ctx, thi_watch old)
{
    ctx->watch = old;
}

thiele_status thi_look_up(thiele_context *ctx, int64_t done, int64_t total)
{
    thi_watch *watch = &ctx->watch;
    double now = watch->what != NULL ? thi_seconds() : 0.0;
    if (watch->what == NULL || now < watch->next) {
        return THIELE_OK;
    }
    watch->next = now + PATIENCE;
    if (watch->until > 0.0 && now >= watch->until) {
        return thi_fail(ctx, THIELE_ERROR_CANCELLED,
                        "the deadline came while %s was read, before there was a result: allow more time, or give "
                        "fewer rows",
                        watch->what);
    }
    const thiele_progress progress = {.phase = "read",
                                      .done = done,
                                      .total = total,
                                      .value = NAN,
                                      .seconds = now - watch->began,
                                      .seconds_left = NAN,
                                      .expected = NAN,
                                      .divergence = NAN,
                                      .step = NAN,
                                      .rows_per_second = NAN,
                                      .held_out = NAN};
    return ctx->progress == NULL || ctx->progress(&progress, ctx->progress_user) == 0
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_CANCELLED, "stopped while %s was read", watch->what);
}

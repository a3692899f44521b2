/*
 * Long work that can be asked to stop: the progress callback is asked now and then from deep inside, on the thread that
 * it belongs to, and the other threads see what it said.
 */
#include "base/base.h"

/* Seconds from one question to the next. */
static const double EVERY = 0.03;

void thi_stop_begin(thi_stop *stop, thiele_context *ctx, const thiele_progress *progress)
{
    *stop = (thi_stop){.progress = *progress, .caller = pthread_self(), .began = thi_seconds()};
    stop->asked = stop->began;
    ctx->stop = ctx->progress != NULL ? stop : NULL;
}

void thi_stop_end(thiele_context *ctx)
{
    ctx->stop = NULL;
}

/* On the thread of the callback. */
static void ask(thi_stop *stop, thiele_context *ctx)
{
    double now = thi_seconds();
    if (now - stop->asked >= EVERY) {
        stop->asked = now;
        stop->progress.seconds += now - stop->began;
        stop->began = now;
        if (ctx->progress(&stop->progress, ctx->progress_user) != 0) {
            atomic_store(&stop->asked_for, true);
        }
    }
}

thiele_status thi_stop_ask(thiele_context *ctx)
{
    thi_stop *stop = ctx->stop;
    if (stop == NULL) {
        return THIELE_OK;
    }
    if (!atomic_load(&stop->asked_for) && pthread_equal(stop->caller, pthread_self())) {
        ask(stop, ctx);
    }
    return atomic_load(&stop->asked_for) ? thi_fail(ctx, THIELE_ERROR_CANCELLED, "stopped before the end") : THIELE_OK;
}

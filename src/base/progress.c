/*
 * Long work that looks up now and then: the progress callback is told how far it is and may ask to stop. Reading has no
 * result yet that a deadline could leave, and asks row by row (thi_watch); the loops of a prediction ask from deep
 * inside, on the thread that the callback belongs to, and the other threads see what it said (thi_stop).
 */
#include <math.h>

#include "base/base.h"

/* Seconds between two looks of a reader, and before its first; from one question of a loop to the next. */
static const double PATIENCE = 0.05, EVERY = 0.03;

thiele_progress thi_progress(const char *phase, int64_t done, int64_t total, double seconds)
{
    return (thiele_progress){.phase = phase,
                             .done = done,
                             .total = total,
                             .value = NAN,
                             .seconds = seconds,
                             .seconds_left = NAN,
                             .expected = NAN,
                             .divergence = NAN,
                             .step = NAN,
                             .rows_per_second = NAN,
                             .held_out = NAN};
}

bool thi_tell(const thiele_context *ctx, const thiele_progress *progress)
{
    return ctx->progress != NULL && ctx->progress(progress, ctx->progress_user) != 0;
}

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
        return thi_fail(
            ctx, THIELE_ERROR_CANCELLED,
            "the deadline came while %s was being read, before there was a result: allow more time, or give "
            "fewer rows",
            watch->what);
    }
    const thiele_progress progress = thi_progress("read", done, total, now - watch->began);
    return thi_tell(ctx, &progress)
               ? thi_fail(ctx, THIELE_ERROR_CANCELLED, "stopped while %s was being read", watch->what)
               : THIELE_OK;
}

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
        if (thi_tell(ctx, &stop->progress)) {
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

/* Deadlines, progress and cancellation live here and not in the algorithms. */
#include "fit/driver.h"

#include <math.h>

void thi_driver_start(thi_driver *driver, thiele_context *ctx, double deadline)
{
    *driver =
        (thi_driver){.ctx = ctx, .started = thi_seconds(), .deadline = deadline, .phase = "explore", .value = NAN};
}

void thi_driver_phase(thi_driver *driver, const char *phase, int64_t total)
{
    driver->phase = phase;
    driver->done = 0;
    driver->total = total;
    driver->value = NAN;
    driver->phase_started = thi_seconds();
}

/* As if the rest of the phase went on like its beginning, to its last evaluation or the deadline. */
static double seconds_left(const thi_driver *driver, double now)
{
    double each = (now - driver->phase_started) / (double)driver->done;
    double left = each * (double)(driver->total - driver->done);
    return driver->deadline > 0.0 ? fmin(driver->started + driver->deadline - now, left) : left;
}

void thi_driver_report(thi_driver *driver, double value)
{
    driver->done++;
    /* Line searches may take more evaluations than iterations were allowed for. */
    driver->total = driver->done > driver->total ? driver->done : driver->total;
    driver->value = isnan(driver->value) || value > driver->value ? value : driver->value;
    thiele_context *ctx = driver->ctx;
    if (ctx->progress == NULL || driver->stopped) {
        return;
    }
    double now = thi_seconds();
    thiele_progress progress = {.phase = driver->phase,
                                .done = driver->done,
                                .total = driver->total,
                                .value = driver->value,
                                .seconds = now - driver->started,
                                .seconds_left = seconds_left(driver, now)};
    if (ctx->progress(&progress, ctx->progress_user) != 0) {
        driver->stopped = true;
        driver->reason = THIELE_STOP_CANCELLED;
    }
}

bool thi_driver_stopped(thi_driver *driver)
{
    if (!driver->stopped && driver->deadline > 0.0 && thi_seconds() - driver->started >= driver->deadline) {
        driver->stopped = true;
        driver->reason = THIELE_STOP_DEADLINE;
    }
    return driver->stopped;
}

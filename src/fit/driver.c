/* Deadlines, progress and cancellation live here and not in the algorithms. */
#include "fit/driver.h"

#include <math.h>

void thi_driver_start(thi_driver *driver, thiele_context *ctx, double deadline)
{
    *driver = (thi_driver){.ctx = ctx, .started = thi_seconds(), .deadline = deadline, .phase = "start", .value = NAN};
}

void thi_driver_phase(thi_driver *driver, const char *phase, int64_t total)
{
    driver->phase = phase;
    driver->done = 0;
    driver->total = total;
    driver->value = NAN;
}

static double seconds_left(const thi_driver *driver, double elapsed)
{
    double left = driver->done > 0 ? elapsed / (double)driver->done * (double)(driver->total - driver->done) : NAN;
    return driver->deadline > 0.0 ? fmin(driver->deadline - elapsed, left) : left;
}

void thi_driver_report(thi_driver *driver, double value)
{
    driver->done++;
    driver->value = isnan(driver->value) || value > driver->value ? value : driver->value;
    thiele_context *ctx = driver->ctx;
    if (ctx->progress == NULL || driver->stopped) {
        return;
    }
    double elapsed = thi_seconds() - driver->started;
    thiele_progress progress = {driver->phase, driver->done, driver->total,
                                driver->value, elapsed,      seconds_left(driver, elapsed)};
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

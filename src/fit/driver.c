/* Deadlines, progress and cancellation live here and not in the algorithms. */
#include "fit/driver.h"

#include <math.h>

void thi_driver_start(thi_driver *driver, thiele_context *ctx, double deadline)
{
    *driver = (thi_driver){.ctx = ctx,
                           .started = thi_seconds(),
                           .deadline = deadline,
                           .phase = "explore",
                           .value = NAN,
                           .held_out = NAN,
                           .unit = 1.0};
}

void thi_driver_phase(thi_driver *driver, const char *phase, int64_t total)
{
    driver->phase = phase;
    driver->done = 0;
    driver->total = total;
    driver->value = NAN;
    driver->rows = 0;
    driver->phase_started = thi_seconds();
}

/* As if the rest of the phase went on like its beginning, to its last evaluation or the deadline. */
static double seconds_left(const thi_driver *driver, double now)
{
    double each = (now - driver->phase_started) / (double)driver->done;
    double left = each * (double)(driver->total - driver->done);
    return driver->deadline > 0.0 ? fmin(driver->started + driver->deadline - now, left) : left;
}

/* Tells the callback, and remembers when it asks to stop. */
static void tell(thi_driver *driver, thiele_progress progress)
{
    thiele_context *ctx = driver->ctx;
    if (ctx->progress == NULL || driver->stopped) {
        return;
    }
    double now = thi_seconds();
    progress.phase = driver->phase;
    progress.done = driver->done;
    progress.total = driver->total;
    progress.held_out = driver->held_out * driver->unit;
    progress.seconds = now - driver->started;
    progress.seconds_left = seconds_left(driver, now);
    if (ctx->progress(&progress, ctx->progress_user) != 0) {
        driver->stopped = true;
        driver->reason = THIELE_STOP_CANCELLED;
    }
}

static void count_one(thi_driver *driver)
{
    driver->done++;
    /* Line searches may take more evaluations than iterations were allowed for. */
    driver->total = driver->done > driver->total ? driver->done : driver->total;
}

void thi_driver_report(thi_driver *driver, double value)
{
    count_one(driver);
    driver->value = isnan(driver->value) || value > driver->value ? value : driver->value;
    tell(driver, (thiele_progress){
                     .value = driver->value, .expected = NAN, .divergence = NAN, .step = NAN, .rows_per_second = NAN});
}

void thi_driver_step(thi_driver *driver, const thi_step *step)
{
    count_one(driver);
    driver->rows += step->rows;
    driver->value = step->value;
    tell(driver,
         (thiele_progress){.value = step->value,
                           .expected = step->expected,
                           .divergence = step->divergence,
                           .step = step->size,
                           .rows_per_second = (double)driver->rows / (thi_seconds() - driver->phase_started + 1e-9)});
}

void thi_driver_count(thi_driver *driver, int64_t rows)
{
    count_one(driver);
    driver->rows += rows;
    tell(driver,
         (thiele_progress){.value = driver->value,
                           .expected = NAN,
                           .divergence = NAN,
                           .step = NAN,
                           .rows_per_second = (double)driver->rows / (thi_seconds() - driver->phase_started + 1e-9)});
}

bool thi_driver_stopped(thi_driver *driver)
{
    if (!driver->stopped && driver->deadline > 0.0 && thi_seconds() - driver->started >= driver->deadline) {
        driver->stopped = true;
        driver->reason = THIELE_STOP_DEADLINE;
    }
    return driver->stopped;
}

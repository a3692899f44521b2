/* Deadlines, progress and cancellation live here and not in the algorithms. */
#include "fit/driver.h"

#include <math.h>

#include "base/ranks.h"

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
    double left = driver->done > 0 && driver->total > 0 ? each * (double)(driver->total - driver->done) : NAN;
    return driver->deadline > 0.0 ? fmin(driver->started + driver->deadline - now, left) : left;
}

thiele_progress thi_driver_progress(const thi_driver *driver)
{
    double now = thi_seconds();
    thiele_progress progress = thi_progress(driver->phase, driver->done, driver->total, now - driver->started);
    progress.value = driver->value;
    progress.seconds_left = seconds_left(driver, now);
    progress.held_out = driver->held_out * driver->unit;
    if (driver->rows > 0) {
        progress.rows_per_second = (double)driver->rows / (now - driver->phase_started + 1e-9);
    }
    return progress;
}

/* What the first process says of it, to all of them: whoever stopped alone would leave the others waiting. */
static bool agreed(thiele_context *ctx, bool stop)
{
    unsigned char says = stop;
    return thi_ranks_broadcast(ctx, &says, 1) != THIELE_OK || says != 0;
}

/* Tells the callback, and remembers when it asks to stop. */
static void tell(thi_driver *driver, thiele_progress progress)
{
    if (!driver->stopped && agreed(driver->ctx, thi_tell(driver->ctx, &progress))) {
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
    tell(driver, thi_driver_progress(driver));
}

void thi_driver_step(thi_driver *driver, const thi_step *step)
{
    count_one(driver);
    driver->rows += step->rows;
    driver->value = step->value;
    thiele_progress progress = thi_driver_progress(driver);
    progress.expected = step->expected;
    progress.divergence = step->divergence;
    progress.step = step->size;
    tell(driver, progress);
}

void thi_driver_count(thi_driver *driver, int64_t rows)
{
    count_one(driver);
    driver->rows += rows;
    tell(driver, thi_driver_progress(driver));
}

void thi_driver_rows(thi_driver *driver, int64_t rows)
{
    driver->done += rows;
    driver->rows += rows;
    tell(driver, thi_driver_progress(driver));
}

thi_watch thi_driver_watch(const thi_driver *driver, const char *what)
{
    return thi_watch_begin(driver->ctx, what, driver->deadline > 0.0 ? driver->started + driver->deadline : 0.0);
}

bool thi_driver_stopped(thi_driver *driver)
{
    if (!driver->stopped && driver->deadline > 0.0 && thi_seconds() - driver->started >= driver->deadline) {
        driver->stopped = true;
        driver->reason = THIELE_STOP_DEADLINE;
    }
    return driver->stopped;
}

bool thi_driver_ask(thi_driver *driver)
{
    tell(driver, thi_driver_progress(driver));
    return thi_driver_stopped(driver);
}

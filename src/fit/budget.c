/* Shares, speeds and what is left until the deadline. */
#include "fit/budget.h"

#include <math.h>

/* Shares of what is left. */
static const double share_of[THI_SHARES] = {
    [THI_SHARE_KERNEL] = 0.12, [THI_SHARE_NOISE] = 0.12,  [THI_SHARE_FAVOURITE] = 0.6, [THI_SHARE_EXPLORE] = 0.12,
    [THI_SHARE_BASIS] = 0.05,  [THI_SHARE_PASS] = 0.1,    [THI_SHARE_PARTITION] = 0.1, [THI_SHARE_FIRST] = 0.2,
    [THI_SHARE_WARM] = 0.1,    [THI_SHARE_SITES] = 0.5,   [THI_SHARE_STAGE] = 0.3,     [THI_SHARE_END] = 0.2,
    [THI_SHARE_STEP] = 0.02,   [THI_SHARE_LOOK] = 0.05,   [THI_SHARE_VALUES] = 0.6,    [THI_SHARE_STEPS] = 0.5,
    [THI_SHARE_COUPLE] = 0.25, [THI_SHARE_NODES] = 0.7,   [THI_SHARE_TRIAL] = 0.15,    [THI_SHARE_LEARN] = 0.4,
    [THI_SHARE_HOLDOUT] = 0.6, [THI_SHARE_REPLACE] = 0.1, [THI_SHARE_SMALL] = 0.45,    [THI_SHARE_UNSCORED] = 0.9,
    [THI_SHARE_SCORES] = 0.3,
};
/* A cautious speed of one thread until something was measured, and how much of a new measurement counts. */
static const double FIRST_SPEED = 2e10, SHARE_OF_NEW = 0.3;

double thi_budget_left(const thi_driver *driver)
{
    return driver->deadline > 0.0 ? fmax(0.0, driver->started + driver->deadline - thi_seconds()) : (double)INFINITY;
}

double thi_budget_share(thi_share share)
{
    return share_of[share];
}

double thi_budget_part(const thi_driver *driver, thi_share share)
{
    return share_of[share] * thi_budget_left(driver);
}

static double speed(const thi_driver *driver)
{
    return driver->speed > 0.0 ? driver->speed : FIRST_SPEED;
}

double thi_budget_seconds(const thi_driver *driver, double flops)
{
    return flops / speed(driver);
}

double thi_budget_flops(const thi_driver *driver, thi_share share)
{
    return thi_budget_part(driver, share) * speed(driver);
}

static double effort(const thi_driver *driver)
{
    return driver->effort > 0.0 ? driver->effort : 1.0;
}

double thi_budget_work(const thi_driver *driver, double flops)
{
    return flops * effort(driver);
}

double thi_budget_rows(const thi_driver *driver, double rows)
{
    return rows * cbrt(effort(driver));
}

void thi_budget_took(thi_driver *driver, double flops, double seconds)
{
    double seen = flops / fmax(seconds, 1e-9);
    driver->speed = driver->speed > 0.0 ? driver->speed + SHARE_OF_NEW * (seen - driver->speed) : seen;
}

/* The deadline of a phase that ends so many seconds from now. */
static double shorten(thi_driver *driver, double seconds)
{
    double deadline = driver->deadline;
    if (deadline > 0.0) {
        /* 0 would be none at all. */
        driver->deadline = fmin(deadline, fmax(1e-9, thi_seconds() - driver->started + fmax(0.0, seconds)));
    }
    return deadline;
}

double thi_budget_lend(thi_driver *driver, thi_share share)
{
    return shorten(driver, thi_budget_part(driver, share));
}

double thi_budget_keep(thi_driver *driver, double seconds)
{
    return shorten(driver, thi_budget_left(driver) - seconds);
}

double thi_budget_split(thi_driver *driver, int64_t parts)
{
    return shorten(driver, thi_budget_left(driver) / (double)parts);
}

void thi_budget_restore(thi_driver *driver, double deadline)
{
    driver->deadline = deadline;
    if (driver->stopped && driver->reason == THIELE_STOP_DEADLINE) {
        driver->stopped = false;
    }
}

void thi_budget_extend(thi_driver *driver, thi_share share)
{
    static const double MOMENT = 0.5;
    if (driver->deadline > 0.0) {
        double now = thi_seconds() - driver->started;
        driver->deadline = fmax(driver->deadline, now + MOMENT + share_of[share] * driver->deadline);
    }
    driver->stopped = false;
}

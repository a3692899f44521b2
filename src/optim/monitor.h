/*
 * Watches a noisy objective that is being lowered: when to take smaller steps, and when to stop.
 *
 * Values are averaged over windows. The noise of one value is estimated from the differences of successive ones (von
 * Neumann 1941), which a trend hardly touches; so each window has a mean and a standard error, and "lower" below means
 * by more than two standard errors of the difference and by more than the tolerance. At the end of a window:
 *
 *   lower than the best window, or than the one before       GO
 *   higher than the one before (by four standard errors)     SLOWER: the steps are too long
 *   neither, and windows are not yet eight times as long     GO, with windows twice as long: noise hides slow progress
 *   neither, at their full length                            SLOWER: the noise of the steps hides what is left
 *   the third such SLOWER since the best window              STOP: smaller steps do not help either
 *
 * SLOWER asks the caller to halve its rate. A stall far above the best window (steps were too long and did damage) is
 * no reason to stop, only to go slower; after 30 halvings it stops in any case. Pure noise ends after some 35 windows
 * of the first length; progress by more than 1/8 of the standard error of a short window in each of them goes on. What
 * blows up within one window cannot be caught here: begin at a safe rate.
 */
#ifndef THI_MONITOR_H
#define THI_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

typedef enum thi_signal { THI_SIGNAL_GO, THI_SIGNAL_SLOWER, THI_SIGNAL_STOP } thi_signal;

/* Mean of a window and its squared standard error. */
typedef struct thi_level {
    double mean, error2;
} thi_level;

typedef struct thi_monitor {
    int64_t window; /* its present length */
    double tolerance;
    bool converged;  /* why it stopped: smaller steps did not help; else 30 halvings */
    double smoothed; /* exponential average over about a window: for display */
    int64_t seen;    /* values so far */
    /* Of the window that is being filled: */
    int64_t filled;
    double origin, last, sum, jumps;
    /* Of those before: */
    thi_level best, before;
    int64_t windows;
    int doubled, in_vain, slowed;
} thi_monitor;

/*
 * window >= 8 values, the first length: an epoch when it has between 20 and 100 steps, else some 50. tolerance >= 0: a
 * gain a window, in units of the value, that is not worth going on for.
 */
void thi_monitor_open(thi_monitor *monitor, int64_t window, double tolerance);
/* The value of one step. One that is not finite is not counted, and the answer is SLOWER (STOP after too many). */
thi_signal thi_monitor_add(thi_monitor *monitor, double value);
/* Whether the last window was surely higher than the best one. */
bool thi_monitor_is_worse(const thi_monitor *monitor);

#endif

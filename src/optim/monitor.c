/*
 * The stopping test and automatic step size of monitor.h. O(1) a value, no memory. The constants were chosen on noisy
 * quadratics, trends and stationary noise: a false alarm of "higher" must be rare enough (4 standard errors) not to
 * wear down the rate of a long run, and windows that do not grow halve the rate of a run that is merely slow, which
 * makes it slower still.
 */
#include "optim/monitor.h"

#include <math.h>

enum { LEAST_WINDOW = 8, DOUBLINGS = 3, IN_VAIN = 3, MOST_SLOWED = 30 };
static const double LOWER_ERRORS = 2.0;
static const double HIGHER_ERRORS = 4.0;

void thi_monitor_open(thi_monitor *monitor, int64_t window, double tolerance)
{
    *monitor = (thi_monitor){.window = window > LEAST_WINDOW ? window : LEAST_WINDOW, .tolerance = tolerance};
}

static bool below(const thi_monitor *m, thi_level a, thi_level b, double errors)
{
    return a.mean < b.mean - fmax(m->tolerance, errors * sqrt(a.error2 + b.error2));
}

static thi_signal slower(thi_monitor *m)
{
    m->slowed++;
    return m->slowed >= MOST_SLOWED ? THI_SIGNAL_STOP : THI_SIGNAL_SLOWER;
}

static thi_signal judge(thi_monitor *m, thi_level now)
{
    thi_level before = m->before;
    m->before = now;
    m->windows++;
    if (m->windows == 1 || below(m, now, m->best, LOWER_ERRORS)) {
        m->best = now;
        m->in_vain = 0;
        return THI_SIGNAL_GO;
    }
    if (below(m, now, before, LOWER_ERRORS)) {
        return THI_SIGNAL_GO;
    }
    if (below(m, before, now, HIGHER_ERRORS)) {
        return slower(m);
    }
    if (m->doubled < DOUBLINGS) {
        m->doubled++;
        m->window *= 2;
        return THI_SIGNAL_GO;
    }
    m->in_vain += !below(m, m->best, now, HIGHER_ERRORS);
    m->converged = m->in_vain >= IN_VAIN;
    return m->converged ? THI_SIGNAL_STOP : slower(m);
}

/* Mean and squared standard error of a full window, which begins anew. */
static thi_level take_window(thi_monitor *m)
{
    double n = (double)m->window;
    thi_level level = {m->origin + m->sum / n, m->jumps / (2.0 * (n - 1.0)) / n};
    m->filled = 0;
    return level;
}

bool thi_monitor_is_worse(const thi_monitor *monitor)
{
    return monitor->windows > 1 && below(monitor, monitor->best, monitor->before, HIGHER_ERRORS);
}

thi_signal thi_monitor_add(thi_monitor *monitor, double value)
{
    thi_monitor *m = monitor;
    if (!isfinite(value)) {
        return slower(m);
    }
    m->seen++;
    double weight = fmax(1.0 / (double)m->seen, 2.0 / ((double)m->window + 1.0));
    m->smoothed += weight * (value - m->smoothed);
    if (m->filled == 0) {
        /* Sums are of differences to the first value: the mean may be large beside the noise. */
        m->origin = m->last = value;
        m->sum = m->jumps = 0.0;
    }
    m->sum += value - m->origin;
    m->jumps += (value - m->last) * (value - m->last);
    m->last = value;
    if (++m->filled < m->window) {
        return THI_SIGNAL_GO;
    }
    return judge(m, take_window(m));
}

/* Where an axis has its ticks, and what is written at them. */
#include <math.h>

#include "draw/draw.h"

static double nice_step(double least)
{
    static const double nice[] = {1.0, 2.0, 5.0, 10.0};
    double power = pow(10.0, floor(log10(least)));
    int i = 0;
    while (i < 3 && nice[i] * power < least * (1.0 - 1e-9)) {
        i++;
    }
    return nice[i] * power;
}

draw_ticks draw_choose_ticks(double from, double to, int most)
{
    static const double SLACK = 1e-9; /* of a step: for ends that are ticks but for rounding */
    most = most < 2 ? 2 : most;
    if (!(from < to) || !isfinite(to - from)) {
        return (draw_ticks){from, 1.0, 0};
    }
    double step = nice_step((to - from) / most);
    double first, last;
    while (true) {
        first = ceil(from / step - SLACK);
        last = floor(to / step + SLACK);
        if (last - first + 1.0 <= most) {
            break;
        }
        step = nice_step(1.5 * step);
    }
    return (draw_ticks){first * step, step, last < first ? 0 : (int)(last - first) + 1};
}

double draw_tick(const draw_ticks *ticks, int i)
{
    /* By whole multiples of the step, so that zero is zero. */
    return (round(ticks->first / ticks->step) + i) * ticks->step;
}

char *draw_tick_text(const draw_ticks *ticks, int i, char buffer[DRAW_NUMBER_MAX])
{
    static const double LARGE = 1e6, SMALL = 1e-4;
    double value = draw_tick(ticks, i);
    double last = draw_tick(ticks, ticks->count - 1);
    double largest = fmax(fabs(ticks->first), fabs(last));
    int decimals = (int)fmax(0.0, -floor(log10(ticks->step) + 1e-9));
    if (largest >= LARGE || largest < SMALL) {
        /* Enough digits to tell neighbours apart. */
        double places = floor(log10(largest) + 1e-9) - floor(log10(ticks->step) + 1e-9);
        int digits = (int)fmin(15.0, fmax(0.0, places));
        snprintf(buffer, DRAW_NUMBER_MAX, value == 0.0 ? "0" : "%.*e", digits, value);
    } else {
        snprintf(buffer, DRAW_NUMBER_MAX, "%.*f", decimals, value);
    }
    return buffer;
}

void draw_widen(double *from, double *to, double share)
{
    double width = *to - *from;
    double more = width > 1e-12 * fmax(fabs(*from), fabs(*to)) ? share * width : fmax(0.05 * fabs(*from), 1e-300);
    more = *from == 0.0 && *to == 0.0 ? 1.0 : more;
    *from -= more;
    *to += more;
}

/* Seconds on a clock that never goes back. */
#include <time.h>

#include "base/base.h"

double thi_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

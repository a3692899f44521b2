/*
 * bench-stream_rows ROWS [SEED [CHANGE]]: a stream of CSV rows without end in sight, for `thiele fit - --stream` and
 * `thiele update MODEL -`: eight inputs x1 .. x8 in [-1, 1] and
 *   y = sin(3 x1) + x2 x3 + cos(4 x4)/2 + 0.3 x5 + noise of standard deviation 0.1,
 * with x6 .. x8 of no use. From row CHANGE on (from 0; none: never) x1 and x2 are taken with the other sign.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

enum { INPUTS = 8 };

/* A number as five decimals, which is faster than printf by far. */
static char *put(char *at, double x)
{
    long scaled = lround(fabs(x) * 1e5);
    char digits[24];
    int count = 0;
    if (x < 0.0 && scaled > 0) {
        *at++ = '-';
    }
    while (count < 6 || scaled > 0) {
        digits[count++] = (char)('0' + scaled % 10);
        scaled /= 10;
    }
    while (count > 0) {
        *at++ = digits[--count];
        if (count == 5) {
            *at++ = '.';
        }
    }
    return at;
}

int main(int argc, char **argv)
{
    int64_t rows = argc > 1 ? atoll(argv[1]) : 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    int64_t change = argc > 3 ? atoll(argv[3]) : INT64_MAX;
    char line[64 * (INPUTS + 1)];
    fputs("x1,x2,x3,x4,x5,x6,x7,x8,y\n", stdout);
    for (int64_t i = 0; i < rows; i++) {
        thi_stream stream = {seed, THI_RANDOM_DEMO, (uint64_t)i};
        double x[INPUTS], sign = i >= change ? -1.0 : 1.0;
        char *at = line;
        for (int d = 0; d < INPUTS; d++) {
            x[d] = 2.0 * thi_random_uniform(stream, (uint64_t)d) - 1.0;
            at = put(at, x[d]);
            *at++ = ',';
        }
        double f = sin(3.0 * sign * x[0]) + sign * x[1] * x[2] + 0.5 * cos(4.0 * x[3]) + 0.3 * x[4];
        at = put(at, f + 0.1 * thi_random_normal(stream, INPUTS));
        *at++ = '\n';
        if (fwrite(line, 1, (size_t)(at - line), stdout) != (size_t)(at - line)) {
            return 1;
        }
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

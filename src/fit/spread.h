/*
 * How numbers r >= 0 are spread, in a room that does not grow with how many there are: bins of equal width in log r,
 * each with the count and the first two moments of its numbers, from which sums of smooth functions of log r follow. A
 * sum of log(1 + r/s2) is right to about WIDTH^3/100 a number, WIDTH = 1/32, at any s2.
 */
#ifndef THI_FIT_SPREAD_H
#define THI_FIT_SPREAD_H

#include <stdint.h>

enum { THI_SPREAD_BINS = 4096 };

typedef struct thi_spread {
    double sum; /* of all numbers */
    struct {
        double count, first, second; /* of r/centre - 1 and its square */
    } bin[THI_SPREAD_BINS];
} thi_spread;

/* Numbers are added to a spread that begins as all zeros. */
void thi_spread_add(thi_spread *spread, int64_t n, const double *r);
/* All of it is so many numbers, which add up. */
enum { THI_SPREAD_NUMBERS = sizeof(thi_spread) / sizeof(double) };
/* sum of log(1 + r/s2) */
double thi_spread_logs(const thi_spread *spread, double s2);

#endif

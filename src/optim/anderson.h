/*
 * Anderson's acceleration of a fixed-point iteration x <- T(x) (Anderson 1965; Walker and Ni 2011). From the last few
 * points and their steps f = T(x) - x it finds the combination whose step is shortest,
 *   gamma = argmin |f - sum_j gamma_j df_j|,   next = x + rho f - sum_j gamma_j (dx_j + rho df_j)
 * dx, df being differences between points that followed each other. For a linear T it is GMRES. O(n memory) a point.
 */
#ifndef THI_ANDERSON_H
#define THI_ANDERSON_H

#include "linalg/linalg.h"

/* Of 3, 5, 8, 10 and 12: 30, 39, 25, 25, 23 steps of a softmax's sites, all the same for the easier likelihoods. */
enum { THI_ANDERSON_MEMORY = 10 };

typedef struct thi_anderson {
    int64_t n, measures;
    int held, newest; /* differences held, and where the newest one lies */
    bool begun;
    double *x, *f, *measure;    /* of the last point */
    double *dx, *df, *dmeasure; /* THI_ANDERSON_MEMORY columns each */
} thi_anderson;

/* x and f have n numbers; the length of f is that of `measures` numbers which the caller makes from it. */
thiele_status thi_anderson_open(thi_anderson *anderson, thiele_context *ctx, int64_t n, int64_t measures);
void thi_anderson_close(thi_anderson *anderson);
/* Forgets all points. */
void thi_anderson_reset(thi_anderson *anderson);
/* Takes a point in. */
void thi_anderson_add(thi_anderson *anderson, const double *x, const double *f, const double *measure);
/* Whether there is anything to extrapolate from; if so, the point to go to next. */
bool thi_anderson_next(const thi_anderson *anderson, double rho, double *next);

#endif

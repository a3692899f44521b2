/*
 * The profiles of kernel/profiles.h, one text for the host's vectors and for other compilers' scalars. Who includes it
 * may define REAL, a number or a vector of them that double mixes with, and what is done to it; a double and the C
 * library's functions otherwise. R_SELECT takes the comparison of two REAL.
 */
#ifndef THI_PROFILE_FORMULAS_H
#define THI_PROFILE_FORMULAS_H

#include "base/pointwise.h"
#include "kernel/profiles.h"

#ifndef REAL
#include <math.h>
#define REAL                     double
#define R_SPLAT(x)               (x)
#define R_SELECT(where, yes, no) ((where) ? (yes) : (no))
#define R_EXP                    exp
#define R_LOG1P                  log1p
#define R_SQRT                   sqrt
#endif

/* Value, derivative in t, derivative in log shape; the compiler drops what a caller does not use. */
typedef struct thi_jet {
    REAL k, dk, dshape;
} thi_jet;

THI_POINTWISE thi_jet thi_jet_of(REAL k, REAL dk, REAL dshape)
{
    thi_jet jet = {k, dk, dshape};
    return jet;
}

THI_POINTWISE thi_jet thi_profile_se(REAL t, const thi_profile_args *args)
{
    REAL k = args->scale * R_EXP(-0.5 * t);
    return thi_jet_of(k, -0.5 * k, R_SPLAT(0.0));
}

/* t, held below what would make a power of it infinite (and times exp(-r) = 0 not a number); NaN stays NaN. */
THI_POINTWISE REAL thi_profile_capped(REAL t)
{
    return R_SELECT(t > 1e200, R_SPLAT(1e200), t);
}

THI_POINTWISE thi_jet thi_profile_matern12(REAL t, const thi_profile_args *args)
{
    REAL r = R_SQRT(t);
    REAL k = args->scale * R_EXP(-r);
    REAL safe = R_SELECT(r > 0.0, r, R_SPLAT(1.0));
    return thi_jet_of(k, R_SELECT(r > 0.0, -0.5 * k / safe, R_SPLAT(0.0)), R_SPLAT(0.0));
}

THI_POINTWISE thi_jet thi_profile_matern32(REAL t, const thi_profile_args *args)
{
    REAL a = R_SQRT(3.0 * thi_profile_capped(t));
    REAL e = args->scale * R_EXP(-a);
    return thi_jet_of((1.0 + a) * e, -1.5 * e, R_SPLAT(0.0));
}

THI_POINTWISE thi_jet thi_profile_matern52(REAL t, const thi_profile_args *args)
{
    REAL a = R_SQRT(5.0 * thi_profile_capped(t));
    REAL e = args->scale * R_EXP(-a);
    return thi_jet_of((1.0 + a * (1.0 + a * (1.0 / 3.0))) * e, (-5.0 / 6.0) * (1.0 + a) * e, R_SPLAT(0.0));
}

THI_POINTWISE thi_jet thi_profile_rq(REAL t, const thi_profile_args *args)
{
    REAL x = t * (0.5 / args->shape);
    REAL logb = R_LOG1P(x);
    REAL k = args->scale * R_EXP(-args->shape * logb);
    REAL over = x / (1.0 + x);
    return thi_jet_of(k, -0.5 * k / (1.0 + x), args->shape * k * (over - logb));
}

THI_POINTWISE thi_jet thi_profile_linear(REAL t, const thi_profile_args *args)
{
    return thi_jet_of(args->scale * t, R_SPLAT(args->scale), R_SPLAT(0.0));
}

THI_POINTWISE thi_jet thi_profile_polynomial(REAL t, const thi_profile_args *args)
{
    REAL base = t + args->shape;
    REAL below = R_SPLAT(args->scale);
    for (int i = 1; i < args->degree; i++) {
        below *= base;
    }
    REAL slope = (double)args->degree * below;
    return thi_jet_of(below * base, slope, args->shape * slope);
}

THI_POINTWISE thi_jet thi_profile_one(REAL t, const thi_profile_args *args)
{
    (void)t;
    return thi_jet_of(R_SPLAT(args->scale), R_SPLAT(0.0), R_SPLAT(0.0));
}

#endif

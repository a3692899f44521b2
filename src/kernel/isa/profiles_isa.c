/*
 * The loops of kernel/profiles.h for one instruction set (the build compiles this file once for each). A tail shorter
 * than a vector is copied into one, so that every element goes through the same instructions.
 */
#include "linalg/isa/lanes.h"

#define REAL                     vd
#define R_SPLAT                  splat
#define R_SELECT(where, yes, no) choose((vi)(where), yes, no)
#define R_EXP                    VEXP
#define R_LOG1P                  VLOG1P
#define R_SQRT                   VSQRT
#include "kernel/profile_formulas.h"

#define PROFILE(f)                                                                                                     \
    static void fill_##f(int64_t n, thi_profile_args args, const double *t, double *k)                                 \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + W <= n; i += W) {                                                                                   \
            store(k + i, thi_profile_##f(load(t + i), &args).k);                                                       \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            store_part(k + i, thi_profile_##f(load_part(t + i, n - i), &args).k, n - i);                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void adjoint_##f(int64_t n, thi_profile_args args, const double *t, double *k, double *dk, double *dshape)  \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + W <= n; i += W) {                                                                                   \
            thi_jet j = thi_profile_##f(load(t + i), &args);                                                           \
            store(k + i, j.k);                                                                                         \
            store(dk + i, j.dk);                                                                                       \
            store(dshape + i, j.dshape);                                                                               \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            thi_jet j = thi_profile_##f(load_part(t + i, n - i), &args);                                               \
            store_part(k + i, j.k, n - i);                                                                             \
            store_part(dk + i, j.dk, n - i);                                                                           \
            store_part(dshape + i, j.dshape, n - i);                                                                   \
        }                                                                                                              \
    }

PROFILE(se)
PROFILE(matern12)
PROFILE(matern32)
PROFILE(matern52)
PROFILE(rq)
PROFILE(linear)
PROFILE(polynomial)
PROFILE(one)

extern const thi_profile_ops PASTE(thi_profiles_, THI_ISA);
const thi_profile_ops PASTE(thi_profiles_, THI_ISA) = {
    .fill = {fill_se, fill_matern12, fill_matern32, fill_matern52, fill_rq, fill_linear, fill_polynomial, fill_one},
    .adjoint = {adjoint_se, adjoint_matern12, adjoint_matern32, adjoint_matern52, adjoint_rq, adjoint_linear,
                adjoint_polynomial, adjoint_one},
};

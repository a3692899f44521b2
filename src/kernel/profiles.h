/*
 * The radial profiles of the stationary kernels as functions of t = r^2, and those of the dot-product kernels as
 * functions of t = <u, u'>; each at unit variance. Their formulas are in kernel/profile_formulas.h, their loops are
 * compiled once per instruction set (isa/profiles_isa.c) and picked at run time.
 */
#ifndef THI_PROFILES_H
#define THI_PROFILES_H

#include <stdint.h>

typedef enum thi_profile {
    THI_PROFILE_SE,         /* exp(-t/2) */
    THI_PROFILE_MATERN12,   /* exp(-r) */
    THI_PROFILE_MATERN32,   /* (1 + a) exp(-a), a = sqrt3 r */
    THI_PROFILE_MATERN52,   /* (1 + a + a^2/3) exp(-a), a = sqrt5 r */
    THI_PROFILE_RQ,         /* (1 + t/(2 shape))^-shape */
    THI_PROFILE_LINEAR,     /* t */
    THI_PROFILE_POLYNOMIAL, /* (t + shape)^degree */
    THI_PROFILE_ONE,        /* 1 */
    THI_PROFILE_COUNT
} thi_profile;

/* What a profile is a function of: |u - u'|^2, <u, u'>, or nothing (a row with itself). */
typedef enum thi_family { THI_DISTANCE, THI_DOT, THI_WHITE } thi_family;

/* scale: the variance; shape: alpha or offset; degree: of the polynomial. */
typedef struct thi_profile_args {
    double scale, shape;
    int degree;
} thi_profile_args;

typedef struct thi_profile_ops {
    /* k = scale * profile(t); k may be t. */
    void (*fill[THI_PROFILE_COUNT])(int64_t n, thi_profile_args args, const double *t, double *k);
    /* The same with dk = scale * d profile/dt and dshape = scale * d profile/d log shape (0 where there is no shape).
     * At r = 0 the derivative of a Matern-1/2 is taken as 0. */
    void (*adjoint[THI_PROFILE_COUNT])(int64_t n, thi_profile_args args, const double *t, double *k, double *dk,
                                       double *dshape);
} thi_profile_ops;

/* The best set for this processor; borrowed, constant. Elementwise, as those of linalg/vector.h. */
const thi_profile_ops *thi_profiles(void);

#endif

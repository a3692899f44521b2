/*
 * The compiler's vector types for one instruction set, THI_ISA (portable, avx2 or avx512), and what loops over them
 * need; exp, log, log1p, erfc and (sin, cos) of pi x, VTURN, are SLEEF's. For files that the build compiles once per
 * instruction set.
 */
#ifndef THI_LANES_H
#define THI_LANES_H

#include <sleef.h>
#include <stdint.h>
#include <string.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define ISA_avx512   3
#define ISA_avx2     2
#define ISA_portable 1
#define ISA_LEVEL    PASTE(ISA_, THI_ISA)

#if ISA_LEVEL == 3
enum { W = 8 };
#define VEXP   Sleef_expd8_u10avx512f
#define VLOG   Sleef_logd8_u10avx512f
#define VLOG1P Sleef_log1pd8_u10avx512f
#define VERFC  Sleef_erfcd8_u15avx512f
#define VTURN  Sleef_sincospid8_u05avx512f
#define VPAIR  Sleef___m512d_2
#define VSQRT  _mm512_sqrt_pd
#elif ISA_LEVEL == 2
enum { W = 4 };
#define VEXP   Sleef_expd4_u10avx2
#define VLOG   Sleef_logd4_u10avx2
#define VLOG1P Sleef_log1pd4_u10avx2
#define VERFC  Sleef_erfcd4_u15avx2
#define VTURN  Sleef_sincospid4_u05avx2
#define VPAIR  Sleef___m256d_2
#define VSQRT  _mm256_sqrt_pd
#else
enum { W = 2 };
#if defined(__aarch64__)
#define VEXP   Sleef_expd2_u10advsimd
#define VLOG   Sleef_logd2_u10advsimd
#define VLOG1P Sleef_log1pd2_u10advsimd
#define VERFC  Sleef_erfcd2_u15advsimd
#define VTURN  Sleef_sincospid2_u05advsimd
#define VPAIR  Sleef_float64x2_t_2
#define VSQRT  vsqrtq_f64
#else
#define VEXP   Sleef_expd2_u10
#define VLOG   Sleef_logd2_u10
#define VLOG1P Sleef_log1pd2_u10
#define VERFC  Sleef_erfcd2_u15
#define VTURN  Sleef_sincospid2_u05
#define VPAIR  Sleef___m128d_2
#define VSQRT  _mm_sqrt_pd
#endif
#endif

typedef double vd __attribute__((vector_size(W * sizeof(double))));
typedef int64_t vi __attribute__((vector_size(W * sizeof(int64_t))));

static inline vd load(const double *x)
{
    vd v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void store(double *y, vd v)
{
    memcpy(y, &v, sizeof v);
}

/* The first n < W elements; the rest are zero. */
static inline vd load_part(const double *x, int64_t n)
{
    vd v = {0};
    memcpy(&v, x, (size_t)n * sizeof *x);
    return v;
}

static inline void store_part(double *y, vd v, int64_t n)
{
    memcpy(y, &v, (size_t)n * sizeof *y);
}

static inline vd where(vi mask, vd v)
{
    return (vd)((vi)v & mask);
}

static inline vd splat(double x)
{
    return x - (vd){0};
}

static inline vd choose(vi mask, vd yes, vd no)
{
    return (vd)(((vi)yes & mask) | ((vi)no & ~mask));
}

#endif

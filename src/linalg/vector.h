/*
 * Loops over vectors, compiled once per instruction set (isa/vector_isa.c) and picked once at run time. Elementwise
 * results do not depend on where in a vector an element stands, so cutting a vector differently changes no bit.
 */
#ifndef THI_VECTOR_H
#define THI_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Rows of a panel (linalg/panels.h): the widest vector, and a multiple of every other one. */
enum { THI_PANEL = 8 };

typedef struct thi_vector_ops {
    const char *name;
    /* y = exp(x), y = log(x); y may be x. Within 1 ulp (SLEEF). */
    void (*exp)(int64_t n, const double *x, double *y);
    void (*log)(int64_t n, const double *x, double *y);
    /* y = log(1/(1 + exp(-x))), finite for every finite x; y may be x. Within 2 ulp. */
    void (*log_sigmoid)(int64_t n, const double *x, double *y);
    /* y = 1/(1 + exp(-x)) and its slope dy = y (1 - y), to full relative precision in both tails; y may be x. */
    void (*sigmoid)(int64_t n, const double *x, double *y, double *dy);
    /* y = log Phi(x) of the standard normal, to full relative precision in both tails; y may be x. */
    void (*log_phi)(int64_t n, const double *x, double *y);
    /* m = phi(x)/Phi(x) and excess = x + m, the slope of log Phi and that of -log m; within 3e-13; m may be x. */
    void (*mills)(int64_t n, const double *x, double *m, double *excess);
    /* Two normals from two uniforms (Box and Muller 1958): sqrt(-2 log u) times cos and sin of 2 pi v. */
    void (*normals)(int64_t n, const double *u, const double *v, double *x, double *y);
    /*
     * g = max(0, a + b - 2 g): squared distances from inner products and squared norms. True when one of them is so
     * much smaller than a + b (or not a number) that it must be computed again: THI_DISTANCE_LOSS.
     */
    bool (*distance)(int64_t n, const double *a, double b, double *g);
    /* Entry by entry: y = x h; sum += x h; y = a g + x h, or y += that. y may be x. */
    void (*times)(int64_t n, const double *x, const double *h, double *y);
    void (*add_times)(int64_t n, const double *x, const double *h, double *sum);
    void (*combine)(int64_t n, double a, const double *g, const double *x, const double *h, bool add, double *y);
    /* w = scale a b, entry by entry; sum += w likewise; returns the total of w. w may be a or b. */
    double (*weigh)(int64_t n, double scale, const double *a, const double *b, double *w, double *sum);
    /*
     * One point against n others, a multiple of THI_PANEL, that are given feature by feature (Z: n x F, columns
     * `stride` apart): t_i = sum_f ((x_f - Z_if) s_f)^2, and t_i = sum_f x_f Z_if.
     */
    void (*point_distances)(int64_t n, int F, int64_t stride, const double *Z, const double *x, const double *s,
                            double *t);
    void (*point_products)(int64_t n, int F, int64_t stride, const double *Z, const double *x, double *t);
    /* y (THI_PANEL) = A x, A: THI_PANEL x columns, the columns a multiple of THI_PANEL. */
    void (*panel)(int64_t columns, const double *A, const double *x, double *y);
} thi_vector_ops;

/* r^2 below this fraction of |u|^2 + |u'|^2 is computed again from differences: at most 4 of 16 digits are ever lost.
 */
#define THI_DISTANCE_LOSS 1e-4

/* The best set for this processor; borrowed, constant. */
const thi_vector_ops *thi_vector(void);

/* Which of name_portable, name_avx2 and name_avx512, constants of one type, is best for this processor. */
#if defined(__x86_64__)
#define THI_BEST_ISA(name)                                                                                             \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? &name##_avx512                          \
     : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")       ? &name##_avx2                            \
                                                                             : &name##_portable)
#else
#define THI_BEST_ISA(name) (&name##_portable)
#endif

#endif

/*
 * What rows that are gone say of a function, for a model of other parameters (Bui, Nguyen and Turner 2017). Sites of an
 * old basis Z, T = F F' and t in the coordinates w = L^-1 (f(Z) - m(Z)), are as good as r observations with the noise
 * 1 of linear functionals of f,
 *   value = B'f(Z) + e,   e ~ N(0, I),   B = L^-T F,   value = b + B'm(Z),   F b = t
 * which any prior of f can be conditioned on. With new inducing inputs, their factor L1 and mean m1:
 *   H = L1^-1 k(Z1, Z) B,   Gamma = I/power + B'k(Z, Z) B - H'H,   T1 = H Gamma^-1 H',   t1 = H Gamma^-1 (value -
 * B'm1(Z)) What the new basis cannot express of them counts as noise, as in PITC with one block. The same kernel, mean
 * and Z give T1 = T and t1 = t. power < 1: they count as so much less.
 */
#ifndef THI_FIT_ANCHOR_H
#define THI_FIT_ANCHOR_H

#include "fit/online.h"

typedef struct thi_anchor {
    int64_t points, count; /* M, r */
    double *Z;             /* D x M */
    thi_matrix B;          /* M x r */
    double *value;         /* r */
} thi_anchor;

/*
 * From sites (their lower triangle, which may have lost digits by subtraction: what is below 1e-10 of the largest is
 * none) of a latent function that learns online. M^2 r flops. To be closed after an error too.
 */
thiele_status thi_anchor_take(thi_anchor *anchor, thiele_context *ctx, const thi_online_latent *latent,
                              const thi_natural *sum);
void thi_anchor_close(thi_anchor *anchor);

/* An anchor as a new latent function sees it, whatever the power. */
typedef struct thi_anchored {
    thi_matrix H;   /* M1 x r */
    thi_matrix J;   /* r x r, lower triangle: Gamma - I/power */
    double *excess; /* r: value - B'm1(Z) */
} thi_anchored;
/* latent: of a basis of points. 2 M^2 r + M r^2 flops. To be closed after an error too. */
thiele_status thi_anchored_open(thi_anchored *seen, thiele_context *ctx, const thi_anchor *anchor,
                                const thi_online_latent *latent);
void thi_anchored_close(thi_anchored *seen);
/* sum (of the latent function's size) = T1, t1. power 0: zeros. r^3/3 + M r^2 flops. */
thiele_status thi_anchored_sites(const thi_anchored *seen, thiele_context *ctx, double power, thi_natural *sum);

/* log of the integral of exp(t'w - w'T w/2) over w ~ N(0, I): t'(I + T)^-1 t / 2 - log|I + T| / 2. */
thiele_status thi_natural_evidence(const thi_natural *sum, thiele_context *ctx, double *value);

#endif

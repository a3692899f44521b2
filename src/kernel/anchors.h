/*
 * k(points, x) of one x at a time against points that stay: what kernel.h does for tiles, without allocation, without a
 * GEMM and from differences of inputs, which lose no digits whatever the offset of the data. The points' features are
 * kept feature by feature, so that the loops run along the points.
 */
#ifndef THI_ANCHORS_H
#define THI_ANCHORS_H

#include "kernel/kernel.h"
#include "linalg/panels.h"

typedef struct thi_anchors {
    const thiele_kernel *kernel; /* borrowed, at the values that it had; X too is borrowed only while they are made */
    int64_t n, stride;           /* points, and room for them: thi_panel_length(n), at least one */
    double *own;                 /* holds all that follows */
    const double *Z[THI_KERNEL_NODES_MAX]; /* of each leaf: stride x features; of a linear map the inputs themselves */
    const double *s[THI_KERNEL_NODES_MAX]; /* and what their differences are multiplied by */
    double *features;                      /* of x */
    double *buffer;                        /* stride numbers for each level of the tree */
} thi_anchors;

/* Error: MEMORY. */
thiele_status thi_anchors_make(thi_anchors *anchors, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                               const double *X);
void thi_anchors_clear(thi_anchors *anchors);
/*
 * k = k(points, x), of thi_panel_length(n) numbers, those beyond n zero. One thread at a time: there is one work space.
 * 3 flops a feature and one exp an entry.
 */
void thi_anchors_fill(const thi_anchors *anchors, const double *x, double *k);
/* k(x, x) */
double thi_anchors_diagonal(const thi_anchors *anchors, const double *x);

#endif

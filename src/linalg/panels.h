/*
 * A matrix laid out for products with one vector at a time: panels of THI_PANEL rows, each by columns, so that a
 * product reads it once from front to back, in whole vectors. What a triangle has on its other side is left out but for
 * the corner of each panel. A product is bound by the reading: a triangle of order 500 is 1 MB, about the second-level
 * cache of a core, and takes 10 to 16 microseconds.
 */
#ifndef THI_PANELS_H
#define THI_PANELS_H

#include "linalg/linalg.h"
#include "linalg/vector.h"

typedef enum thi_panel_shape { THI_PANELS_WHOLE, THI_PANELS_LOWER, THI_PANELS_UPPER } thi_panel_shape;

typedef struct thi_panels {
    thi_panel_shape shape;
    int64_t rows, cols; /* of the matrix */
    double *data;
} thi_panels;

/* Vectors for products are this long and zero beyond their end. */
static inline int64_t thi_panel_length(int64_t n)
{
    return (n + THI_PANEL - 1) / THI_PANEL * THI_PANEL;
}

/* A copy of op(A), of which a triangle's other side is not looked at; triangles are square. Error: MEMORY. */
thiele_status thi_panels_make(thi_panels *panels, thiele_context *ctx, thi_panel_shape shape, thi_trans ta,
                              thi_matrix A);
void thi_panels_clear(thi_panels *panels);
/* y = P x; x and y of thi_panel_length of the columns and rows, different ones. */
void thi_panels_multiply(const thi_panels *panels, const double *x, double *y);

#endif

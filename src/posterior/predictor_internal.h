/* A block of rows, which predictor.c predicts and predictor_table.c makes a table of. */
#ifndef THI_PREDICTOR_INTERNAL_H
#define THI_PREDICTOR_INTERNAL_H

#include "posterior/predictor.h"

/* Work space of a block: k(basis, x), where it needs one a second matrix, and k(x, some functions) of separate bases.
 */
typedef struct thi_rows_space {
    thi_matrix K, R, portion;
} thi_rows_space;

thiele_status thi_rows_space_open(thi_rows_space *space, thiele_context *ctx, const thi_predictor *predictor,
                                  int64_t columns, bool variance);
void thi_rows_space_close(thi_rows_space *space);

/*
 * Mean and, unless variance is NULL, variance of a block of n rows, n x components each; space is for n columns or
 * more. C: one triangle a component (triangle.h) to have the variance from, or NULL: from L and R.
 */
thiele_status thi_predictor_block(const thi_predictor *predictor, thiele_context *ctx, int64_t n, const double *X,
                                  const thi_rows_space *space, const thi_matrix *C, double *mean, double *variance);

#endif

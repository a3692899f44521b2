/* A whole encoded table in memory, for the methods that need all rows at once. */
#include <string.h>

#include "model/model.h"

thiele_status thi_read_all(thiele_context *ctx, thi_reader *reader, double **X, double **y, int64_t **row, int64_t *n)
{
    int64_t rows = reader->table->rows;
    int64_t D = reader->encoder->dims;
    int64_t *local = NULL;
    *X = *y = NULL;
    *n = 0;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, X, (size_t)rows * (size_t)D, sizeof **X));
    if (reader->target >= 0) {
        THI_TRY(thi_alloc(ctx, y, (size_t)rows, sizeof **y));
    }
    THI_TRY(thi_alloc(ctx, &local, (size_t)rows, sizeof *local));
    for (int64_t first = 0; first < rows; first += THI_TABLE_BLOCK) {
        int64_t count = rows - first < THI_TABLE_BLOCK ? rows - first : THI_TABLE_BLOCK;
        int64_t kept;
        THI_TRY(
            thi_reader_read(reader, ctx, first, count, *X + *n * D, *y != NULL ? *y + *n : NULL, local + *n, &kept));
        *n += kept;
    }
out:
    if (status != THIELE_OK) {
        thi_free(*X);
        thi_free(*y);
        *X = *y = NULL;
    }
    if (status == THIELE_OK && row != NULL) {
        *row = local;
    } else {
        thi_free(local);
    }
    return status;
}

/* A whole table in memory. */
#include "model/model.h"

thiele_status thi_read_all(thiele_context *ctx, thi_reader *reader, thi_rows *rows, int64_t **row)
{
    const thi_encoder *encoder = reader->encoder;
    int64_t total = reader->table->rows;
    int P = reader->how.target ? encoder->targets : 0;
    int64_t *local = NULL;
    thiele_status status = thi_rows_alloc(rows, ctx, total, encoder->dims, P, encoder->exposure != NULL);
    if (status != THIELE_OK) {
        return status;
    }
    rows->n = 0;
    THI_TRY(thi_alloc(ctx, &local, (size_t)total, sizeof *local));
    THI_TRY(thi_reader_read(reader, ctx, 0, total, rows->X, P > 0 ? rows->y : NULL, rows->offset, local, &rows->n));
    if (row != NULL) {
        *row = local;
        local = NULL;
    }
out:
    if (status != THIELE_OK) {
        thi_rows_free(rows);
    }
    thi_free(local);
    return status;
}

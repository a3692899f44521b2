/* A whole table in memory. */
#include "model/model.h"
#include "model/table_stream.h"

thiele_status thi_read_all(thiele_context *ctx, thi_reader *reader, thi_rows *rows, int64_t **row)
{
    const thi_encoder *encoder = reader->encoder;
    int64_t total = reader->table->rows;
    int P = reader->how.target ? encoder->targets : 0;
    int64_t *local = NULL;
    const thi_aside beside = thi_reader_aside(reader);
    thiele_status status = thi_rows_alloc(rows, ctx, total, encoder->dims, P, beside);
    if (status != THIELE_OK) {
        return status;
    }
    rows->n = 0;
    THI_TRY(thi_alloc(ctx, &local, (size_t)total, sizeof *local));
    const thi_room room = {rows->X, P > 0 ? rows->y : NULL, rows->offset, rows->weight, local};
    THI_TRY(thi_reader_fill(reader, ctx, 0, total, &room, &rows->n));
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

/* Rows by number from a table: consecutive ones are read together. */
#include "model/table_stream.h"

/* A block of HDF5 rows, or lines of text, is read at nearly the speed of the file. */
enum { RUN = 256 };

/* How many of row[0 ..] follow each other. */
static int64_t run_length(int64_t count, const int64_t *row)
{
    int64_t length = 1;
    while (length < count && row[length] == row[0] + length) {
        length++;
    }
    return length;
}

static thiele_status fetch(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, thi_rows *out)
{
    thi_table_stream *stream = arg;
    out->n = 0;
    for (int64_t at = 0; at < count;) {
        int64_t length = run_length(count - at, row + at);
        int64_t kept;
        double *offset = out->offset != NULL ? out->offset + out->n : NULL;
        thiele_status status = thi_reader_read(&stream->reader, ctx, row[at], length, out->X + out->n * out->dims,
                                               out->y + out->n * out->outputs, offset, NULL, &kept);
        if (status != THIELE_OK) {
            return status;
        }
        out->n += kept;
        at += length;
    }
    return THIELE_OK;
}

thiele_status thi_table_stream_open(thi_table_stream *stream, thiele_context *ctx, const thi_encoder *encoder,
                                    const thiele_table *table, const thi_reading *how)
{
    *stream = (thi_table_stream){.source = {.n = table->rows,
                                            .dims = encoder->dims,
                                            .outputs = encoder->targets,
                                            .offset = encoder->exposure != NULL,
                                            .run = RUN,
                                            .arg = stream,
                                            .fetch = fetch}};
    return thi_reader_open(&stream->reader, ctx, encoder, table, how);
}

void thi_table_stream_close(thi_table_stream *stream)
{
    thi_reader_close(&stream->reader);
}

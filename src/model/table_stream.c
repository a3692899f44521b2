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
        const thi_room room = {.X = out->X + out->n * out->dims,
                               .y = out->y + out->n * out->outputs,
                               .offset = out->offset != NULL ? out->offset + out->n : NULL,
                               .weight = out->weight != NULL ? out->weight + out->n : NULL};
        thiele_status status = thi_reader_fill(&stream->reader, ctx, row[at], length, &room, &kept);
        if (status != THIELE_OK) {
            return status;
        }
        out->n += kept;
        at += length;
    }
    return THIELE_OK;
}

thi_aside thi_reader_aside(const thi_reader *reader)
{
    return (thi_aside){.offset = reader->encoder->exposure != NULL, .weight = reader->weights >= 0};
}

thiele_status thi_table_stream_open(thi_table_stream *stream, thiele_context *ctx, const thi_encoder *encoder,
                                    const thiele_table *table, const thi_reading *how)
{
    *stream = (thi_table_stream){.source = {.n = table->rows,
                                            .dims = encoder->dims,
                                            .outputs = encoder->targets,
                                            .run = RUN,
                                            .arg = stream,
                                            .fetch = fetch}};
    thiele_status status = thi_reader_open(&stream->reader, ctx, encoder, table, how);
    stream->source.beside = thi_reader_aside(&stream->reader);
    return status;
}

void thi_table_stream_close(thi_table_stream *stream)
{
    thi_reader_close(&stream->reader);
}

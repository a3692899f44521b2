/* A table as a source of rows for a method that streams them. */
#ifndef THI_TABLE_STREAM_H
#define THI_TABLE_STREAM_H

#include "fit/source.h"

typedef struct thi_table_stream {
    thi_reader reader;
    thi_source source; /* what the method gets */
} thi_table_stream;

/* What the rows that a reader gives have beside X and y. */
thi_aside thi_reader_aside(const thi_reader *reader);
/* table and encoder are borrowed. The object must not move afterwards. */
thiele_status thi_table_stream_open(thi_table_stream *stream, thiele_context *ctx, const thi_encoder *encoder,
                                    const thiele_table *table, const thi_reading *how);
void thi_table_stream_close(thi_table_stream *stream);

#endif

/*
 * A feed of any bytes: the first chooses the header, the delimiter, whether bad lines are left out, the second how many
 * rows are skipped and asked for at a time. All tables together have the rows that the feed counts, unless
 * only the table can know them: of a single column a blank line is a row without a value, and a CR by itself ends one.
 */
#include "fuzz_file.h"

#include <thiele/stream.h>

static void read_all(thiele_feed *feed, thiele_context *ctx, int64_t most, int64_t skip, bool counts)
{
    enum { TURNS = 10000 };
    int64_t rows = 0;
    bool failed = false, several = false; /* columns */
    for (int turn = 0; turn < TURNS && !thiele_feed_ended(feed) && !failed; turn++) {
        thiele_table *table = NULL;
        failed = thiele_feed_next(feed, ctx, 1, most, 0.0, &table) != THIELE_OK;
        if (failed && (table != NULL || *thiele_context_message(ctx) == '\0')) {
            abort();
        }
        if (table != NULL) {
            rows += table->rows;
            several = counts && table->columns > 1;
            if (several && table->rows > most) {
                abort();
            }
            fuzz_look(table, ctx);
            thiele_table_destroy(table);
        }
    }
    if (!failed && several && thiele_feed_rows(feed) >= skip && rows != thiele_feed_rows(feed) - skip) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char delimiters[] = {0, ',', ';', '\t'};
    thiele_table_options table = THIELE_TABLE_OPTIONS_INIT;
    thiele_feed_options options = THIELE_FEED_OPTIONS_INIT;
    thiele_feed *feed;
    thiele_context *ctx = size >= 2 ? fuzz_context() : NULL;
    char path[32];
    if (ctx == NULL) {
        return 0;
    }
    table.header = (thiele_header)((data[0] & 3) % 3);
    table.delimiter = delimiters[(data[0] >> 2) & 3];
    options.skip_bad = (data[0] >> 4) & 1;
    options.skip = data[1] & 7;
    int file = fuzz_file(data + 2, size - 2, path);
    if (thiele_feed_open(&feed, ctx, path, &table, &options) == THIELE_OK) {
        read_all(feed, ctx, 1 + (data[1] >> 3), options.skip, memchr(data + 2, '\r', size - 2) == NULL);
        thiele_feed_close(feed);
    }
    close(file);
    fuzz_end(ctx);
    return 0;
}

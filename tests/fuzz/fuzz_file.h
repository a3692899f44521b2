/* What the fuzzers of files share: the bytes as a file that can be opened, and a look at every cell of a table. */
#ifndef THI_FUZZ_FILE_H
#define THI_FUZZ_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A context of one thread and 256 MB; NULL when there is no memory for it. */
static inline thiele_context *fuzz_context(void)
{
    thiele_context_options limits = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx;
    limits.threads = 1;
    limits.memory_limit = (size_t)1 << 28;
    return thiele_context_create(&ctx, &limits) == THIELE_OK ? ctx : NULL;
}

/* Ends the context, which must hold nothing any more. */
static inline void fuzz_end(thiele_context *ctx)
{
    if (thi_memory_held(ctx) != 0) {
        abort();
    }
    thiele_context_destroy(ctx);
}

/* A file in memory; path: 32 bytes for its name. Returns its descriptor. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[32])
{
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, 32, "/proc/self/fd/%d", file);
    return file;
}

/* The first rows and columns as numbers and as text, and the last row. A failure has a message. */
static inline void fuzz_look(const thiele_table *table, thiele_context *ctx)
{
    enum { ROWS = 64, COLUMNS = 16 };
    char text[64];
    double number[ROWS];
    int64_t rows = table->rows < ROWS ? table->rows : ROWS;
    for (int c = 0; c < table->columns && c < COLUMNS; c++) {
        if (table->name[c] == NULL || (table->ops->numbers(table, ctx, 0, rows, &c, 1, number) != THIELE_OK &&
                                       *thiele_context_message(ctx) == '\0')) {
            abort();
        }
        (void)table->ops->numbers(table, ctx, table->rows - 1, 1, &c, 1, number);
        (void)thiele_table_cell(table, ctx, table->rows - 1, c, text, sizeof text);
    }
}

#endif

/*
 * HDF5 from any bytes, read as thiele_table_open reads it: in a child process. What is tried is that the parent always
 * has a table or a sentence, whatever the HDF5 library does to the child, and never waits.
 */
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const datasets[] = {NULL, "data", "/", "g/a"};
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    thiele_context *ctx = fuzz_context();
    thiele_table *table;
    char path[32];
    if (ctx == NULL) {
        return 0;
    }
    options.dataset = datasets[size % 4 == 0 ? 0 : size % 4];
    int file = fuzz_file(data, size, path);
    if (thi_table_open_apart(&table, ctx, path, &options, thi_table_open_hdf5) == THIELE_OK) {
        fuzz_look(table, ctx);
        thiele_table_destroy(table);
    } else if (*thiele_context_message(ctx) == '\0') {
        abort();
    }
    close(file);
    fuzz_end(ctx);
    return 0;
}

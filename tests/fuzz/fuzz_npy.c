/* NPY from any bytes: whatever opens is looked at, and every number of it is asked for. */
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const thiele_table_options defaults = THIELE_TABLE_OPTIONS_INIT;
    thiele_context *ctx = fuzz_context();
    thiele_table *table;
    char path[32];
    if (ctx == NULL) {
        return 0;
    }
    int file = fuzz_file(data, size, path);
    if (thi_table_open_npy(&table, ctx, path, &defaults) == THIELE_OK) {
        fuzz_look(table, ctx);
        thiele_table_destroy(table);
    } else if (*thiele_context_message(ctx) == '\0') {
        abort();
    }
    close(file);
    fuzz_end(ctx);
    return 0;
}

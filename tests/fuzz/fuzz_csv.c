/*
 * CSV from any bytes: the first chooses header, delimiter and missing tokens, the rest is the text. Whatever opens is
 * looked at in full: every cell as text, as a number and in the census, columns found by name, and rows through a
 * selection.
 */
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_cells(const thiele_table *table, thiele_context *ctx)
{
    const int64_t last = table->rows - 1;
    thiele_table *selected = NULL;
    thi_text buffer;
    thi_text_init(&buffer, ctx);
    if (thiele_table_select(&selected, ctx, table, &last, 1) != THIELE_OK) {
        abort();
    }
    for (int c = 0; c < table->columns; c++) {
        int64_t text, missing, texts = 0, missings = 0;
        double number;
        thi_table_census(table, c, &text, &missing);
        for (int64_t r = 0; r < table->rows; r++) {
            const char *cell;
            size_t length;
            if (thi_table_cell(table, ctx, r, c, &buffer, &cell, &length) != THIELE_OK ||
                (length > 0 && memchr(cell, 0, length) != NULL)) {
                abort();
            }
            bool is_text = table->ops->numbers(table, ctx, r, 1, &c, 1, &number) != THIELE_OK;
            texts += is_text;
            missings += !is_text && number != number;
        }
        if (texts != text || missings != missing) {
            abort();
        }
        (void)selected->ops->numbers(selected, ctx, 0, 1, &c, 1, &number);
    }
    thi_text_clear(&buffer);
    thiele_table_destroy(selected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char delimiters[] = {0, ',', ';', '\t', '|', ':', 0, 0};
    thiele_context_options limits = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    thiele_context *ctx;
    thiele_table *table;
    int column;
    limits.threads = 1;
    limits.memory_limit = (size_t)1 << 28;
    if (size == 0 || thiele_context_create(&ctx, &limits) != THIELE_OK) {
        return 0;
    }
    options.header = (thiele_header)((data[0] & 3) % 3);
    options.delimiter = delimiters[(data[0] >> 2) & 7];
    options.missing = data[0] & 32 ? "-999, ?, n/a" : NULL;
    if (thi_table_parse_csv(&table, ctx, (const char *)data + 1, size - 1, "fuzz.csv", &options) == THIELE_OK) {
        look_at_cells(table, ctx);
        (void)thiele_table_find_column(table, ctx, "strength", &column);
        thiele_table_destroy(table);
    } else if (*thiele_context_message(ctx) == '\0') {
        abort();
    }
    if (thi_memory_held(ctx) != 0) {
        abort();
    }
    thiele_context_destroy(ctx);
    return 0;
}

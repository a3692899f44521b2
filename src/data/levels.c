/*
 * The levels of a text column: its distinct texts without blanks around them, sorted bytewise. One pass over the
 * column.
 */
#include <string.h>

#include "data/encoder.h"

bool thi_is_utf8(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text, *end = s + length;
    while (s < end) {
        int more = *s < 0x80                 ? 0
                   : *s >= 0xC2 && *s < 0xE0 ? 1
                   : *s >= 0xE0 && *s < 0xF0 ? 2
                   : *s >= 0xF0 && *s < 0xF5 ? 3
                                             : -1;
        if (more < 0 || end - s <= more) {
            return false;
        }
        /* no longer than needed, no surrogates, nothing beyond U+10FFFF */
        if ((*s == 0xE0 && s[1] < 0xA0) || (*s == 0xED && s[1] > 0x9F) || (*s == 0xF0 && s[1] < 0x90) ||
            (*s == 0xF4 && s[1] > 0x8F)) {
            return false;
        }
        for (int i = 1; i <= more; i++) {
            if ((s[i] & 0xC0) != 0x80) {
                return false;
            }
        }
        s += more + 1;
    }
    return true;
}

int thi_level_place(char *const *level, int levels, const char *text, size_t length, bool *found)
{
    int low = 0, high = levels;
    *found = false;
    while (low < high && !*found) {
        int middle = (low + high) / 2;
        int order = strncmp(text, level[middle], length);
        if (order == 0 && level[middle][length] != '\0') {
            order = -1;
        }
        *found = order == 0;
        high = order <= 0 ? middle : high;
        low = order > 0 ? middle + 1 : low;
    }
    return *found ? high : low;
}

void thi_text_add_levels(thi_text *text, char *const *level, int levels)
{
    enum { NAMED = 10 };
    for (int l = 0; l < levels && l < NAMED; l++) {
        char shown[THI_SHOWN_MAX];
        thi_show_text(shown, level[l], strlen(level[l]));
        thi_text_add(text, "%s%s", l > 0 ? ", " : "", shown);
    }
    thi_text_add(text, "%s", levels > NAMED ? ", ..." : "");
}

void thi_text_add_names(thi_text *text, char *const *name, int count)
{
    enum { SHOWN = 10 };
    for (int i = 0; i < count && i < SHOWN; i++) {
        thi_text_add(text, "%s'%s'", i == 0 ? "" : ", ", name[i]);
    }
    if (count > SHOWN) {
        thi_text_add(text, " and %d more", count - SHOWN);
    }
}

thiele_status thi_level_insert(thi_input *input, thiele_context *ctx, int place, const char *text, size_t length)
{
    char *copy;
    thiele_status status = thi_strndup(ctx, &copy, text, length);
    if (status != THIELE_OK) {
        return status;
    }
    memmove(input->level + place + 1, input->level + place, (size_t)(input->levels - place) * sizeof *input->level);
    input->level[place] = copy;
    input->levels++;
    return THIELE_OK;
}

void thi_levels_free(char **level, int levels)
{
    for (int l = 0; l < levels; l++) {
        thi_free(level[l]);
    }
    thi_free(level);
}

static thiele_status add_level(thi_input *input, thiele_context *ctx, const thiele_table *table, int64_t row,
                               const char *text, size_t length, int most)
{
    bool found;
    int place = thi_level_place(input->level, input->levels, text, length, &found);
    if (found) {
        return THIELE_OK;
    }
    if (input->levels == most && most == THI_KEYS_MAX) {
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "column '%s' has more than %d different values, too many for blocks: name a column of larger "
                        "groups with `partition`",
                        input->name, most);
    }
    if (input->levels == most) {
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "column '%s' is text with more than %d different values: leave it out with `ignore` %s",
                        input->name, most, input->name);
    }
    if (!thi_is_utf8(text, length)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s', row %s: the text is not UTF-8: convert the file first",
                        input->name, THI_ROW(table, row));
    }
    return thi_level_insert(input, ctx, place, text, length);
}

thiele_status thi_check_commas(thiele_context *ctx, const thiele_table *table, int column)
{
    thi_text buffer;
    const char *text = "";
    size_t length = 0;
    int64_t row = 0;
    thi_text_init(&buffer, ctx);
    thiele_status status = THIELE_OK;
    for (; row < table->rows && length == 0 && status == THIELE_OK; row++) {
        status = thi_table_cell(table, ctx, row, column, &buffer, &text, &length);
        thi_trim(&text, &length);
        status = status == THIELE_OK ? thi_look_up_row(ctx, row, table->rows) : status;
    }
    if (status == THIELE_OK && thi_has_decimal_comma(text, length)) {
        status = thi_fail(ctx, THIELE_ERROR_DATA,
                          "column '%s', row %s: '%.*s' is not a number (decimal commas are not supported: write a "
                          "point, or list an input of categories with `categorical`)",
                          table->name[column], THI_ROW(table, row - 1), (int)length, text);
    }
    thi_text_clear(&buffer);
    return status;
}

thiele_status thi_learn_levels(thi_input *input, thiele_context *ctx, const thiele_table *table, int column, int most)
{
    thi_text buffer;
    thi_text_init(&buffer, ctx);
    thiele_status status = thi_alloc(ctx, &input->level, (size_t)most, sizeof *input->level);
    for (int64_t row = 0; row < table->rows && status == THIELE_OK; row++) {
        const char *text;
        size_t length;
        status = thi_table_cell(table, ctx, row, column, &buffer, &text, &length);
        thi_trim(&text, &length);
        status = status == THIELE_OK ? thi_look_up_row(ctx, row, table->rows) : status;
        if (status == THIELE_OK && length > 0) {
            status = add_level(input, ctx, table, row, text, length, most);
        }
    }
    thi_text_clear(&buffer);
    return status;
}

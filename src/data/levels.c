/*
 * The levels of a text column: its distinct texts without blanks around them, sorted bytewise. One pass over the
 * column.
 */
#include <stdlib.h>
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

/* One more row with a level. rows: how many each has. */
static thiele_status add_level(thi_input *input, int64_t *rows, thiele_context *ctx, const thiele_table *table,
                               int64_t row, const char *text, size_t length)
{
    bool found;
    int place = thi_level_place(input->level, input->levels, text, length, &found);
    if (found) {
        rows[place]++;
        return THIELE_OK;
    }
    if (input->levels == THI_KEYS_MAX) {
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "column '%s' has more than %d different values, too many for blocks or categories: leave it "
                        "out with `ignore`, or use a column with larger groups",
                        input->name, THI_KEYS_MAX);
    }
    if (!thi_is_utf8(text, length)) {
        return thi_fail(
            ctx, THIELE_ERROR_DATA,
            "column '%s', row %s: the text is not UTF-8: convert the file, as with iconv -f latin1 -t utf-8",
            input->name, THI_ROW(table, row));
    }
    memmove(rows + place + 1, rows + place, (size_t)(input->levels - place) * sizeof *rows);
    rows[place] = 1;
    return thi_level_insert(input, ctx, place, text, length);
}

static int by_rows(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (y > x) - (y < x);
}

/* Keeps the levels with the most rows, of equal ones the first; the others go together. sorted: room for all rows. */
static void keep_most(thi_input *input, thiele_context *ctx, const int64_t *rows, int64_t *sorted, int most)
{
    const int levels = input->levels;
    memcpy(sorted, rows, (size_t)levels * sizeof *sorted);
    qsort(sorted, (size_t)levels, sizeof *sorted, by_rows);
    const int64_t least = sorted[most - 1];
    int ties = 0;
    for (int l = 0; l < most; l++) {
        ties += sorted[l] == least;
    }
    input->levels = 0;
    for (int l = 0; l < levels; l++) {
        if (rows[l] > least || (rows[l] == least && ties-- > 0)) {
            input->level[input->levels++] = input->level[l];
        } else {
            thi_free(input->level[l]);
        }
    }
    input->others = true;
    input->rare = levels - most;
    thi_log(ctx, THIELE_LOG_WARNING,
            "'%s' has %d different values: the %d most frequent are its categories, and the others are pooled as "
            "'other'",
            input->name, levels, most);
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
                          "point; or list columns of categories with `categorical`)",
                          table->name[column], THI_ROW(table, row - 1), (int)length, text);
    }
    thi_text_clear(&buffer);
    return status;
}

thiele_status thi_learn_levels(thi_input *input, thiele_context *ctx, const thiele_table *table, int column, int most)
{
    thi_text buffer;
    int64_t *rows = NULL;
    char **level = NULL;
    thi_text_init(&buffer, ctx);
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &input->level, THI_KEYS_MAX, sizeof *input->level));
    THI_TRY(thi_alloc(ctx, &rows, 2 * THI_KEYS_MAX, sizeof *rows));
    for (int64_t row = 0; row < table->rows; row++) {
        const char *text;
        size_t length;
        THI_TRY(thi_table_cell(table, ctx, row, column, &buffer, &text, &length));
        thi_trim(&text, &length);
        THI_TRY(thi_look_up_row(ctx, row, table->rows));
        if (length > 0) {
            THI_TRY(add_level(input, rows, ctx, table, row, text, length));
        }
    }
    if (input->levels > most) {
        keep_most(input, ctx, rows, rows + THI_KEYS_MAX, most);
    }
    if (input->levels > 0) {
        THI_TRY(thi_alloc(ctx, &level, (size_t)input->levels, sizeof *level));
        memcpy(level, input->level, (size_t)input->levels * sizeof *level);
        thi_free(input->level);
        input->level = level;
    }
out:
    thi_free(rows);
    thi_text_clear(&buffer);
    return status;
}

/*
 * Text columns that nothing can be learned from as they stand, found in one pass over each: dates, which are numbers
 * in disguise, and texts with a value of its own for nearly every row (names, identifiers). They are left out of the
 * inputs, with a sentence, unless the user listed them. And a target of texts that can be classes.
 */
#include <ctype.h>
#include <string.h>

#include "data/encoder.h"

/* --- dates ------------------------------------------------------------------------------------------------------- */

/* A run of digits of at most four, as a number; how many digits there are, 0: none, or too many. */
static int take_digits(const char **at, const char *end, int *value)
{
    int digits = 0;
    *value = 0;
    while (*at < end && isdigit((unsigned char)**at)) {
        *value = digits < 4 ? 10 * *value + (**at - '0') : *value;
        ++*at;
        digits++;
    }
    return digits <= 4 ? digits : 0;
}

/* "Mar", "march": 3. */
static int take_month(const char **at, const char *end)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    char name[4] = {0};
    const char *start = *at;
    while (*at < end && isalpha((unsigned char)**at)) {
        ++*at;
    }
    for (int i = 0; i < 3 && start + i < *at; i++) {
        name[i] = (char)tolower((unsigned char)start[i]);
    }
    const char *found = *at - start >= 3 ? strstr(months, name) : NULL;
    return found != NULL && (found - months) % 3 == 0 ? (int)(found - months) / 3 + 1 : 0;
}

/* A day and a month, in either order. */
static bool is_day_and_month(int a, int b)
{
    return a >= 1 && b >= 1 && a <= 31 && b <= 31 && (a <= 12 || b <= 12);
}

/*
 * 2024-01-31, 31.01.2024, 1/31/24, 31-Jan-2024, each by itself or before a blank, comma or T and a time. Versions and
 * addresses (1.2.3, 10.0.0.1) are none: of a date with points the year has four digits.
 */
static bool is_date(const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    int part[3], digits[3];
    char separator = 0;
    bool named = false;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && (at >= end || strchr("-/. ", *at) == NULL || (i == 2 && *at != separator))) {
            return false;
        }
        separator = i > 0 ? *at++ : separator;
        named = i == 1 && at < end && isalpha((unsigned char)*at);
        digits[i] = named ? 2 : take_digits(&at, end, &part[i]);
        part[i] = named ? take_month(&at, end) : part[i];
        if (digits[i] == 0 || part[i] == 0) {
            return false;
        }
    }
    bool ends = at == end || *at == ' ' || *at == ',' || *at == 'T';
    bool year_first = digits[0] == 4 && digits[1] <= 2 && digits[2] <= 2 && part[1] <= 12 && part[2] <= 31;
    bool year_last = digits[0] <= 2 && digits[1] <= 2 && (digits[2] == 4 || (digits[2] == 2 && separator != '.')) &&
                     is_day_and_month(part[0], part[1]);
    return ends && (year_first || year_last);
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

typedef enum verdict { KEPT, DATES, OWN_VALUES, VERDICTS } verdict;

typedef struct census {
    thi_input levels; /* the distinct texts so far */
    int64_t present, dates;
    bool many; /* there are more than an input can have */
} census;

static thiele_status count_cell(census *c, thiele_context *ctx, const char *text, size_t length)
{
    bool found;
    int place = thi_level_place(c->levels.level, c->levels.levels, text, length, &found);
    c->present++;
    c->dates += is_date(text, length);
    c->many = c->many || (!found && c->levels.levels == THI_LEVELS_MAX);
    return found || c->many ? THIELE_OK : thi_level_insert(&c->levels, ctx, place, text, length);
}

/* Nearly every row has its own: more than half of them, and more than a few; or all of them, however few rows. */
static verdict judge(const census *c)
{
    enum { FEW = 10, LEAST = 6 };
    const int64_t distinct = c->levels.levels;
    if (2 * c->dates > c->present) {
        return DATES;
    }
    bool own = (distinct > FEW && 2 * distinct > c->present) || (distinct >= LEAST && distinct == c->present);
    return c->many || own ? OWN_VALUES : KEPT;
}

/* Of a selection the whole table is looked at, as in thi_table_census. *levels: how many texts there are. */
static thiele_status judge_column(thiele_context *ctx, const thiele_table *table, int column, verdict *out, int *levels)
{
    census c = {0};
    thi_text buffer;
    thi_text_init(&buffer, ctx);
    while (table->whole != NULL) {
        table = table->whole;
    }
    thiele_status status = thi_alloc(ctx, &c.levels.level, THI_LEVELS_MAX, sizeof *c.levels.level);
    for (int64_t row = 0; row < table->rows && status == THIELE_OK && !(c.many && c.dates == 0); row++) {
        const char *text;
        size_t length;
        status = thi_table_cell(table, ctx, row, column, &buffer, &text, &length);
        thi_trim(&text, &length);
        status = status == THIELE_OK ? thi_look_up_row(ctx, row, table->rows) : status;
        if (status == THIELE_OK && length > 0) {
            status = count_cell(&c, ctx, text, length);
        }
    }
    *out = judge(&c);
    *levels = c.levels.levels;
    thi_levels_free(c.levels.level, c.levels.levels);
    thi_text_clear(&buffer);
    return status;
}

static thiele_status say_left_out(thiele_context *ctx, verdict why, char *const *name, int count)
{
    thi_text list;
    thi_text_init(&list, ctx);
    thi_text_add_names(&list, name, count);
    thiele_status status = list.status;
    if (status == THIELE_OK && why == DATES) {
        thi_log(ctx, THIELE_LOG_WARNING,
                "%s %s dates and %s left out: turn them into numbers to learn from them (or list the column with "
                "`categorical` to take each for a category)",
                list.data, count == 1 ? "holds" : "hold", count == 1 ? "was" : "were");
    } else if (status == THIELE_OK) {
        thi_log(ctx, THIELE_LOG_WARNING,
                "%s %s text with a value of its own in nearly every row, or more than %d of them, and %s left out "
                "(list the column with `categorical` to keep up to %d values as categories)",
                list.data, count == 1 ? "is" : "are", THI_LEVELS_MAX, count == 1 ? "was" : "were", THI_LEVELS_MAX);
    }
    thi_text_clear(&list);
    return status;
}

thiele_status thi_leave_out_texts(thi_choice *choice)
{
    const thiele_table *table = choice->table;
    thiele_context *ctx = choice->ctx;
    char **name[VERDICTS] = {NULL};
    int count[VERDICTS] = {0};
    int kept = 0;
    thiele_status status = THIELE_OK;
    for (int v = DATES; v < VERDICTS; v++) {
        THI_TRY(thi_alloc(ctx, &name[v], (size_t)choice->inputs, sizeof **name));
    }
    for (int i = 0; i < choice->inputs; i++) {
        const int column = choice->input[i];
        verdict why = KEPT;
        int levels;
        if (thi_table_is_text(table, column) && !choice->categorical[column]) {
            THI_TRY(thi_check_commas(ctx, table, column));
            THI_TRY(judge_column(ctx, table, column, &why, &levels));
        }
        if (why == KEPT) {
            choice->input[kept++] = column;
        } else {
            name[why][count[why]++] = table->name[column];
        }
    }
    choice->inputs = kept;
    for (int v = DATES; v < VERDICTS; v++) {
        if (count[v] > 0) {
            THI_TRY(say_left_out(ctx, (verdict)v, name[v], count[v]));
        }
    }
    if (kept == 0) {
        status = thi_fail(ctx, THIELE_ERROR_DATA, "no input columns are left in %s: the others are %s",
                          thi_table_source(table), count[DATES] > 0 ? "dates or names" : "names, one for each row");
    }
out:
    for (int v = DATES; v < VERDICTS; v++) {
        thi_free(name[v]);
    }
    return status;
}

thiele_status thi_count_classes(thiele_context *ctx, const thiele_table *table, int column, int *classes)
{
    verdict why = DATES;
    int levels = 0;
    thiele_status status = THIELE_OK;
    if (thi_table_is_text(table, column)) {
        THI_TRY(thi_check_commas(ctx, table, column));
        THI_TRY(judge_column(ctx, table, column, &why, &levels));
    }
    *classes = why == KEPT && levels > 1 && levels <= THI_CLASSES_MOST ? levels : 0;
out:
    return status;
}

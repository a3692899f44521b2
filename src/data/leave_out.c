/*
 * What text columns are, found in one pass over each: dates, which are numbers in disguise (data/dates.h); texts with a
 * value of its own for nearly every row (names, identifiers), and dates that could mean several days, which are left
 * out of the inputs, with a sentence, unless the user listed them; categories. And a target of texts that can be
 * classes.
 */
#include <ctype.h>
#include <math.h>
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

typedef enum verdict { KEPT, DATES, OWN_VALUES, MANY_VALUES, VERDICTS } verdict;

typedef struct census {
    thi_input levels; /* the distinct texts so far */
    int64_t present, dates;
    int64_t read[THI_DATE_FORMS]; /* how many are dates of each form, */
    double from[THI_DATE_FORMS];  /* and the first of them */
    bool many;                    /* there are more than can be counted */
} census;

static void count_dates(census *c, const char *text, size_t length)
{
    double days;
    bool any = is_date(text, length);
    for (int form = THI_YEAR_FIRST; form < THI_DATE_FORMS; form++) {
        if (thi_date_read(text, length, (thi_date_form)form, &days)) {
            c->from[form] = c->read[form]++ == 0 ? days : c->from[form];
            any = true;
        }
    }
    c->dates += any;
}

static thiele_status count_cell(census *c, thiele_context *ctx, const char *text, size_t length)
{
    bool found;
    int place = thi_level_place(c->levels.level, c->levels.levels, text, length, &found);
    c->present++;
    count_dates(c, text, length);
    c->many = c->many || (!found && c->levels.levels == THI_KEYS_MAX);
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
    return own ? OWN_VALUES : distinct > THI_LEVELS_MAX ? MANY_VALUES : KEPT;
}

/*
 * The form that most of the dates have. None where they are few, years have two digits, or nothing tells days from
 * months. A day that is there counts from its beginning, times of day from midnight.
 */
static thi_dates choose_form(const census *c)
{
    thi_date_form best = THI_YEAR_FIRST;
    for (int form = THI_DAY_FIRST; form < THI_DATE_FORMS; form++) {
        best = c->read[form] > c->read[best] ? (thi_date_form)form : best;
    }
    bool either = best == THI_DAY_FIRST && c->read[THI_MONTH_FIRST] == c->read[THI_DAY_FIRST];
    if (2 * c->read[best] <= c->present || either) {
        return (thi_dates){THI_NO_DATE, 0.0};
    }
    return (thi_dates){best, best == THI_TIME_OF_DAY ? 0.0 : floor(c->from[best])};
}

/* What a column of texts turned out to be. */
typedef struct finding {
    verdict is;
    int levels;      /* distinct texts, at most THI_KEYS_MAX */
    thi_dates dates; /* of DATES: how to read them, where that is sure */
} finding;

/* Of a selection the whole table is looked at, as in thi_table_census. */
static thiele_status judge_column(thiele_context *ctx, const thiele_table *table, int column, finding *out)
{
    census c = {0};
    thi_text buffer;
    thi_text_init(&buffer, ctx);
    while (table->whole != NULL) {
        table = table->whole;
    }
    thiele_status status = thi_alloc(ctx, &c.levels.level, THI_KEYS_MAX, sizeof *c.levels.level);
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
    *out = (finding){.is = judge(&c), .levels = c.levels.levels};
    if (out->is == DATES) {
        out->dates = choose_form(&c);
    }
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
                "%s %s ambiguous dates (days and months in either order, or two-digit years) and %s left "
                "out: write them as 2024-01-31 to learn from them (or list the column with `categorical` "
                "to make each a category)",
                list.data, count == 1 ? "holds" : "hold", count == 1 ? "was" : "were");
    } else if (status == THIELE_OK && why == OWN_VALUES) {
        thi_log(ctx, THIELE_LOG_WARNING,
                "%s %s text with a different value in nearly every row and %s left out (list the column with "
                "`categorical` to make categories of its values)",
                list.data, count == 1 ? "is" : "are", count == 1 ? "was" : "were");
    } else if (status == THIELE_OK) {
        thi_log(ctx, THIELE_LOG_WARNING,
                "%s %s text with more than %d different values and %s left out (list the column with `categorical` to "
                "keep the %d most frequent, and the others together)",
                list.data, count == 1 ? "is" : "are", THI_LEVELS_MAX, count == 1 ? "was" : "were", THI_LEVELS_MAX);
    }
    thi_text_clear(&list);
    return status;
}

/* A column of dates is a number from here on. */
static void take_dates(const thi_choice *choice, int column, thi_dates dates)
{
    const char *name = choice->table->name[column];
    char from[THI_DATE_MAX];
    thi_date_write(dates.from, dates.form, from);
    choice->dates[column] = dates;
    if (dates.form == THI_TIME_OF_DAY) {
        thi_log(
            choice->ctx, THIELE_LOG_WARNING,
            "'%s' holds times of day and is used as a number: days since midnight, so that 0.5 is noon (for a daily "
            "pattern: `kernel` 'matern52(ard) + periodic(dims=\"%s\", p=1)')",
            name, name);
    } else {
        thi_log(
            choice->ctx, THIELE_LOG_WARNING,
            "'%s' holds dates and is used as a number: days since %s (for a yearly pattern: `kernel` 'matern52(ard) + "
            "periodic(dims=\"%s\", p=365.25)'; `categorical` makes each date a category)",
            name, from, name);
    }
}

/* Whether an input stays, of text or as dates; counts and names those that do not. */
static thiele_status judge_input(thi_choice *choice, int column, char **name[VERDICTS], int count[VERDICTS],
                                 bool *stays)
{
    finding found = {KEPT, 0, {THI_NO_DATE, 0.0}};
    thiele_status status = THIELE_OK;
    if (thi_table_is_text(choice->table, column) && !choice->categorical[column]) {
        THI_TRY(thi_check_commas(choice->ctx, choice->table, column));
        THI_TRY(judge_column(choice->ctx, choice->table, column, &found));
    }
    *stays = choice->listed || found.is == KEPT || found.dates.form != THI_NO_DATE;
    if (found.dates.form != THI_NO_DATE) {
        take_dates(choice, column, found.dates);
    } else if (!*stays) {
        name[found.is][count[found.is]++] = choice->table->name[column];
    }
out:
    return status;
}

thiele_status thi_judge_texts(thi_choice *choice)
{
    thiele_context *ctx = choice->ctx;
    char **name[VERDICTS] = {NULL};
    int count[VERDICTS] = {0};
    int kept = 0;
    thiele_status status = THIELE_OK;
    for (int v = DATES; v < VERDICTS; v++) {
        THI_TRY(thi_alloc(ctx, &name[v], (size_t)choice->inputs, sizeof **name));
    }
    for (int i = 0; i < choice->inputs; i++) {
        bool stays = false;
        THI_TRY(judge_input(choice, choice->input[i], name, count, &stays));
        choice->input[kept] = choice->input[i];
        kept += stays;
    }
    choice->inputs = kept;
    for (int v = DATES; v < VERDICTS; v++) {
        if (count[v] > 0) {
            THI_TRY(say_left_out(ctx, (verdict)v, name[v], count[v]));
        }
    }
    if (kept == 0) {
        status =
            thi_fail(ctx, THIELE_ERROR_DATA, "no input columns are left in %s: the others are %s",
                     thi_table_source(choice->table), count[DATES] > 0 ? "dates or names" : "names, one for each row");
    }
out:
    for (int v = DATES; v < VERDICTS; v++) {
        thi_free(name[v]);
    }
    return status;
}

thiele_status thi_count_classes(thiele_context *ctx, const thiele_table *table, int column, int *classes)
{
    finding found = {.is = DATES};
    thiele_status status = THIELE_OK;
    if (thi_table_is_text(table, column)) {
        THI_TRY(thi_check_commas(ctx, table, column));
        THI_TRY(judge_column(ctx, table, column, &found));
    }
    *classes = found.is == KEPT && found.levels > 1 && found.levels <= THI_CLASSES_MOST ? found.levels : 0;
out:
    return status;
}

/*
 * The labels of a class target: the distinct values of its column, ascending where all are numbers (1 and 1.0 are the
 * same), bytewise where some are texts, or the user's list in its own order. One pass over the column; looking one up
 * takes the log of their number.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/encoder.h"

typedef struct labelling {
    thi_target *target;
    thiele_context *ctx;
    const thiele_table *table;
    int column;
    const thi_target_rule *rule;
} labelling;

/* --- from the column --------------------------------------------------------------------------------------------- */

static thiele_status third_label(const labelling *s, int64_t row, const char *text, size_t length)
{
    char shown[3][THI_SHOWN_MAX];
    thi_show_text(shown[0], text, length);
    for (int l = 0; l < 2; l++) {
        thi_show_text(shown[1 + l], s->target->level[l], strlen(s->target->level[l]));
    }
    return thi_fail(s->ctx, THIELE_ERROR_DATA,
                    "column '%s', row %s: '%s' is a third value after '%s' and '%s', but likelihood '%s' takes two: "
                    "use `likelihood` softmax for more than two classes",
                    s->target->name, THI_ROW(s->table, row), shown[0], shown[1], shown[2], s->rule->likelihood);
}

static thiele_status insert_label(const labelling *s, int64_t row, int place, const char *text, size_t length,
                                  double value)
{
    thi_target *target = s->target;
    const size_t behind = (size_t)(target->levels - place);
    char *copy;
    if (s->rule->signs && target->levels == 2) {
        return third_label(s, row, text, length);
    }
    if (target->levels == THI_LEVELS_MAX) {
        return thi_fail(s->ctx, THIELE_ERROR_DATA, "column '%s' has more than %d different values: %s", target->name,
                        THI_LEVELS_MAX,
                        target->level_value != NULL ? "is it a number? (`likelihood` gaussian)"
                                                    : "so many texts cannot be classes");
    }
    if (!thi_is_utf8(text, length)) {
        return thi_fail(
            s->ctx, THIELE_ERROR_DATA,
            "column '%s', row %s: the text is not UTF-8: convert the file, as with iconv -f latin1 -t utf-8",
            target->name, THI_ROW(s->table, row));
    }
    thiele_status status = thi_strndup(s->ctx, &copy, text, length);
    if (status != THIELE_OK) {
        return status;
    }
    memmove(target->level + place + 1, target->level + place, behind * sizeof *target->level);
    target->level[place] = copy;
    if (target->level_value != NULL) {
        memmove(target->level_value + place + 1, target->level_value + place, behind * sizeof *target->level_value);
        target->level_value[place] = value;
    }
    target->levels++;
    return THIELE_OK;
}

static thiele_status add_number(const labelling *s, int64_t row, double value)
{
    const thi_target *target = s->target;
    char text[THI_NUMBER_MAX];
    int low = 0, high = target->levels;
    if (isinf(value)) {
        return thi_fail(s->ctx, THIELE_ERROR_DATA, "column '%s', row %s: the value is infinite and cannot be a class",
                        target->name, THI_ROW(s->table, row));
    }
    while (low < high) {
        int middle = (low + high) / 2;
        if (target->level_value[middle] == value) {
            return THIELE_OK;
        }
        high = value < target->level_value[middle] ? middle : high;
        low = value > target->level_value[middle] ? middle + 1 : low;
    }
    value += 0.0; /* -0 prints as 0 */
    int length = thi_format_number(text, value);
    return insert_label(s, row, low, text, (size_t)length, value);
}

static thiele_status scan_numbers(const labelling *s)
{
    const int64_t rows = s->table->rows;
    double *value;
    thiele_status status = thi_alloc(s->ctx, &value, THI_TABLE_BLOCK, sizeof *value);
    for (int64_t first = 0; first < rows && status == THIELE_OK; first += THI_TABLE_BLOCK) {
        int64_t count = rows - first < THI_TABLE_BLOCK ? rows - first : THI_TABLE_BLOCK;
        status = s->table->ops->numbers(s->table, s->ctx, first, count, &s->column, 1, value);
        for (int64_t r = 0; r < count && status == THIELE_OK; r++) {
            status = isnan(value[r]) ? THIELE_OK : add_number(s, first + r, value[r]);
        }
        status = status == THIELE_OK ? thi_look_up(s->ctx, first, rows) : status;
    }
    thi_free(value);
    return status;
}

static thiele_status scan_texts(const labelling *s)
{
    thi_text buffer;
    thiele_status status = THIELE_OK;
    thi_text_init(&buffer, s->ctx);
    for (int64_t row = 0; row < s->table->rows && status == THIELE_OK; row++) {
        const char *text;
        size_t length;
        bool found = true;
        int place = 0;
        status = thi_table_cell(s->table, s->ctx, row, s->column, &buffer, &text, &length);
        thi_trim(&text, &length);
        status = status == THIELE_OK ? thi_look_up_row(s->ctx, row, s->table->rows) : status;
        if (status == THIELE_OK && length > 0) {
            place = thi_level_place(s->target->level, s->target->levels, text, length, &found);
        }
        if (!found) {
            status = insert_label(s, row, place, text, length, 0);
        }
    }
    thi_text_clear(&buffer);
    return status;
}

/* A selection has the labels of the whole, unless it has the two that there can be. */
static thiele_status scan_column(labelling *s)
{
    int64_t texts, missing;
    thiele_status status = THIELE_OK;
    thi_table_census(s->table, s->column, &texts, &missing);
    if (texts > 0 && s->rule->ordered) {
        return thi_fail(s->ctx, THIELE_ERROR_DATA,
                        "column '%s' holds texts, and likelihood '%s' needs their order: give it with `classes` "
                        "low,mid,high",
                        s->target->name, s->rule->likelihood);
    }
    if (texts == 0) {
        status = thi_alloc(s->ctx, &s->target->level_value, THI_LEVELS_MAX, sizeof *s->target->level_value);
    }
    while (status == THIELE_OK && s->table != NULL && !(s->rule->signs && s->target->levels == 2)) {
        status = texts == 0 ? scan_numbers(s) : scan_texts(s);
        s->table = s->table->whole;
    }
    return status;
}

/* --- from the user's list ---------------------------------------------------------------------------------------- */

static thiele_status class_part(void *arg, const char *part, size_t length)
{
    const labelling *s = arg;
    thi_target *target = s->target;
    if (length == 0) {
        return THIELE_OK;
    }
    if (target->levels == THI_LEVELS_MAX) {
        return thi_fail(s->ctx, THIELE_ERROR_ARGUMENT, "`classes`: at most %d are allowed", THI_LEVELS_MAX);
    }
    if (!thi_is_utf8(part, length)) {
        return thi_fail(s->ctx, THIELE_ERROR_ARGUMENT, "`classes`: class %d is not UTF-8", target->levels + 1);
    }
    thiele_status status = thi_strndup(s->ctx, &target->level[target->levels], part, length);
    target->levels += status == THIELE_OK;
    return status;
}

/* Classes that are all numbers are matched by value and shown in their shortest form. */
static thiele_status read_class_numbers(thi_target *target, thiele_context *ctx)
{
    double value[THI_LEVELS_MAX];
    thiele_status status;
    for (int l = 0; l < target->levels; l++) {
        if (!thi_parse_number(target->level[l], strlen(target->level[l]), &value[l]) || !isfinite(value[l])) {
            return THIELE_OK;
        }
        value[l] += 0.0;
    }
    THI_TRY(thi_alloc(ctx, &target->level_value, THI_LEVELS_MAX, sizeof *target->level_value));
    for (int l = 0; l < target->levels; l++) {
        char text[THI_NUMBER_MAX], *copy;
        thi_format_number(text, value[l]);
        THI_TRY(thi_strdup(ctx, &copy, text));
        thi_free(target->level[l]);
        target->level[l] = copy;
        target->level_value[l] = value[l];
    }
out:
    return status;
}

static thiele_status take_list(labelling *s, const char *list)
{
    thi_target *target = s->target;
    thiele_status status;
    THI_TRY(thi_split_list(list, class_part, s));
    THI_TRY(read_class_numbers(target, s->ctx));
    if (target->levels < 2) {
        return thi_fail(s->ctx, THIELE_ERROR_ARGUMENT, "`classes` must name at least two classes");
    }
    if (s->rule->signs && target->levels > 2) {
        return thi_fail(s->ctx, THIELE_ERROR_ARGUMENT,
                        "`classes` names %d classes, and likelihood '%s' takes two: use `likelihood` softmax for more "
                        "than two classes",
                        target->levels, s->rule->likelihood);
    }
    for (int l = 1; l < target->levels; l++) {
        for (int k = 0; k < l; k++) {
            if (strcmp(target->level[k], target->level[l]) == 0) {
                return thi_fail(s->ctx, THIELE_ERROR_ARGUMENT, "`classes` names '%s' twice", target->level[l]);
            }
        }
    }
out:
    return status;
}

thiele_status thi_learn_labels(thi_target *target, thiele_context *ctx, const thiele_table *table, int column,
                               const char *list, const thi_target_rule *rule)
{
    labelling s = {target, ctx, table, column, rule};
    thiele_status status = thi_alloc(ctx, &target->level, THI_LEVELS_MAX, sizeof *target->level);
    if (status != THIELE_OK) {
        return status;
    }
    return list != NULL ? take_list(&s, list) : scan_column(&s);
}

/* --- looking up -------------------------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const double x = ((const thi_label *)a)->value, y = ((const thi_label *)b)->value;
    return (x > y) - (x < y);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(((const thi_label *)a)->text, ((const thi_label *)b)->text);
}

thiele_status thi_label_index(thi_label **out, thiele_context *ctx, const thi_encoder *encoder)
{
    const thi_target *target = &encoder->target[0];
    thiele_status status = thi_alloc(ctx, out, (size_t)target->levels, sizeof **out);
    if (status != THIELE_OK) {
        return status;
    }
    for (int l = 0; l < target->levels; l++) {
        (*out)[l] = (thi_label){.text = target->level[l],
                                .value = target->level_value != NULL ? target->level_value[l] : 0,
                                .code = encoder->signs ? 2 * l - 1 : l};
    }
    qsort(*out, (size_t)target->levels, sizeof **out, target->level_value != NULL ? compare_values : compare_texts);
    return THIELE_OK;
}

typedef struct text_key {
    const char *text;
    size_t length;
} text_key;

static int compare_key(const void *key, const void *element)
{
    const text_key *k = key;
    const char *label = ((const thi_label *)element)->text;
    int order = strncmp(k->text, label, k->length);
    return order != 0 ? order : -(label[k->length] != '\0');
}

const thi_label *thi_find_label_text(const thi_label *label, int labels, const char *text, size_t length)
{
    const text_key key = {text, length};
    return bsearch(&key, label, (size_t)labels, sizeof *label, compare_key);
}

const thi_label *thi_find_label_value(const thi_label *label, int labels, double value)
{
    const thi_label key = {.value = value};
    return bsearch(&key, label, (size_t)labels, sizeof *label, compare_values);
}

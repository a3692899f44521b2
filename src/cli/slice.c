/* Where a slice is: the model's columns by its description, the values of --at, the range of --range. */
#include "slice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int slice_level(const json_t *levels, const char *text)
{
    for (size_t l = 0; l < json_array_size(levels); l++) {
        const char *level = json_string_value(json_array_get(levels, l));
        char *end, *level_end;
        double value = strtod(text, &end), other = strtod(level, &level_end);
        bool numbers = end != text && *end == '\0' && level_end != level && *level_end == '\0';
        if (strcmp(level, text) == 0 || (numbers && value == other)) {
            return (int)l;
        }
    }
    return -1;
}

/* Which target, and whose model that is. */
static int choose_target(cli_slice *slice, const thiele_model *model)
{
    const char *name = slice->settings->which, *guess = NULL;
    int targets = thiele_model_targets(model), found = name == NULL ? 0 : -1;
    for (int p = 0; p < targets && found < 0; p++) {
        found = strcmp(name, thiele_model_target(model, p)) == 0 ? p : -1;
        cli_guess(&guess, name, thiele_model_target(model, p));
    }
    if (found < 0) {
        return cli_misuse("the model has no target '%s'%s%s%s", name, guess != NULL ? ": did you mean '" : "",
                          guess != NULL ? guess : "", guess != NULL ? "'?" : "");
    }
    const thiele_model *part = thiele_model_part(model, found);
    const json_t *parts = json_object_get(slice->description, "parts");
    slice->model = part != NULL ? part : model;
    slice->own = part != NULL ? json_array_get(parts, (size_t)found) : slice->description;
    slice->output = part != NULL ? 0 : found;
    slice->target = thiele_model_target(model, found);
    slice->classes = thiele_model_classes(slice->model);
    slice->series = slice->classes > 0 ? slice->classes : 1;
    return CLI_DONE;
}

/* Inputs at their training means and first levels, an exposure at 1. */
static int list_columns(cli_slice *slice)
{
    const json_t *columns = json_object_get(slice->own, "columns");
    const json_t *inputs = json_object_get(columns, "inputs");
    const char *exposure = json_string_value(json_object_get(columns, "exposure"));
    size_t count = json_array_size(inputs) + (exposure != NULL);
    slice->column = calloc(count + 1, sizeof *slice->column);
    if (slice->column == NULL) {
        return cli_fail("out of memory");
    }
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        const json_t *levels = json_object_get(input, "levels");
        slice->column[i] = (slice_column){
            .name = json_string_value(json_object_get(input, "name")),
            .levels = levels,
            .dates = json_string_value(json_object_get(input, "dates")),
            .origin = json_number_value(json_object_get(input, "from")),
            .value = levels != NULL ? 0.0 : json_number_value(json_object_get(input, "center")),
        };
    }
    if (exposure != NULL) {
        slice->column[count - 1] = (slice_column){.name = exposure, .value = 1.0};
    }
    slice->exposure = exposure;
    slice->columns = (int)count;
    return CLI_DONE;
}

/* "x1, x2 or site", of at most a few. */
static void list_names(const cli_slice *slice, char *text, size_t capacity)
{
    enum { MOST = 12 };
    size_t length = 0;
    int inputs = slice->columns - (slice->exposure != NULL);
    for (int i = 0; i < inputs && i < MOST && length < capacity; i++) {
        const char *between = i == 0 ? "" : i + 1 == inputs ? " or " : ", ";
        length += (size_t)snprintf(text + length, capacity - length, "%s%.60s", between, slice->column[i].name);
    }
    if (inputs > MOST && length < capacity) {
        snprintf(text + length, capacity - length, ", ... (%d in all)", inputs);
    }
}

/* The column of a name; -1 after a sentence that says what was said. */
static int find_column(const cli_slice *slice, const char *option, const char *name)
{
    const char *guess = NULL;
    char names[1024];
    for (int i = 0; i < slice->columns; i++) {
        if (strcmp(name, slice->column[i].name) == 0) {
            return i;
        }
        cli_guess(&guess, name, slice->column[i].name);
    }
    if (guess != NULL) {
        cli_misuse("--%s: the model has no input '%s': did you mean '%s'?", option, name, guess);
    } else {
        list_names(slice, names, sizeof names);
        cli_misuse("--%s: the model has no input '%s': it has %s", option, name, names);
    }
    return -1;
}

double slice_value(const slice_column *column, const char *text)
{
    char *end;
    double value;
    if (column->levels != NULL) {
        int level = slice_level(column->levels, text);
        return level >= 0 ? (double)level : (double)NAN;
    }
    if (column->dates != NULL) {
        return thiele_date_read(text, column->dates, &value) ? value - column->origin : (double)NAN;
    }
    value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(value) ? value : (double)NAN;
}

static bool set_value(slice_column *column, const char *text)
{
    column->value = slice_value(column, text);
    if (isnan(column->value)) {
        cli_misuse(column->levels != NULL  ? "--at: '%s' is not a level of '%s' that the model knows"
                   : column->dates != NULL ? "--at: '%s' is not a date, as '%s' must be"
                                           : "--at: '%s' is not a number, as '%s' must be",
                   text, column->name);
        return false;
    }
    column->chosen = true;
    return true;
}

static char *trim(char *text)
{
    text += strspn(text, " ");
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--) {
        text[end - 1] = '\0';
    }
    return text;
}

/* "x2=0, site=north" */
static int take_values(cli_slice *slice)
{
    char *list = slice->settings->plot.at != NULL ? strdup(slice->settings->plot.at) : NULL;
    int result = slice->settings->plot.at != NULL && list == NULL ? cli_fail("out of memory") : CLI_DONE;
    for (char *rest = list; rest != NULL && result == CLI_DONE;) {
        char *value = strsep(&rest, ","), *name = strsep(&value, "=");
        if (value == NULL) {
            result = cli_misuse("--at: '%s' is not NAME=VALUE, such as --at 'age=40, site=north'", trim(name));
            break;
        }
        int column = find_column(slice, "at", trim(name));
        result = column >= 0 && set_value(&slice->column[column], trim(value)) ? CLI_DONE : CLI_MISUSED;
    }
    free(list);
    return result;
}

/* Two standard deviations around the mean of the training rows, unless a table says more. */
static int choose_range(cli_slice *slice)
{
    static const double REACH = 2.0;
    const json_t *inputs = json_object_get(json_object_get(slice->own, "columns"), "inputs");
    const json_t *input = json_array_get(inputs, (size_t)slice->over);
    const char *range = slice->settings->plot.range;
    double center = json_number_value(json_object_get(input, "center"));
    double scale = json_number_value(json_object_get(input, "scale"));
    slice->from = center - REACH * scale;
    slice->to = center + REACH * scale;
    if (range != NULL) {
        char first[64];
        size_t length = strcspn(range, ",");
        snprintf(first, sizeof first, "%.*s", (int)length, range);
        slice->from = slice_value(&slice->column[slice->over], first);
        slice->to = slice_value(&slice->column[slice->over], range + length + (range[length] == ','));
        if (slice->column[slice->over].levels == NULL && (length >= sizeof first || !(slice->from < slice->to))) {
            return cli_misuse("--range: '%s' is not two rising %s", range,
                              slice->column[slice->over].dates != NULL ? "dates such as 2024-01-31,2024-12-31"
                                                                       : "numbers such as 0,10");
        }
        if (slice->column[slice->over].levels != NULL) {
            return cli_misuse("--range needs numbers, and '%s' has levels", slice->column[slice->over].name);
        }
    }
    return CLI_DONE;
}

static int choose_over(cli_slice *slice)
{
    char names[1024];
    const char *over = slice->settings->plot.over;
    int inputs = slice->columns - (slice->exposure != NULL);
    if (over == NULL && inputs > 1) {
        list_names(slice, names, sizeof names);
        return cli_misuse("plot needs --over COL, the input to vary: %s", names);
    }
    slice->over = over != NULL ? find_column(slice, "over", over) : 0;
    if (slice->over < 0) {
        return CLI_MISUSED;
    }
    return slice->over < inputs
               ? choose_range(slice)
               : cli_misuse("--over: '%s' is the exposure, not an input: give one of the inputs", over);
}

int slice_open(cli_slice *slice, cli_settings *settings, const thiele_model *model)
{
    char *text = NULL;
    *slice = (cli_slice){.settings = settings};
    thiele_status status = thiele_model_describe(model, settings->ctx, &text);
    if (status != THIELE_OK) {
        return cli_finish(settings, status);
    }
    slice->description = json_loads(text, 0, NULL);
    thiele_free(text);
    if (slice->description == NULL) {
        return cli_fail("the model's description cannot be read: out of memory");
    }
    int result = choose_target(slice, model);
    result = result == CLI_DONE ? list_columns(slice) : result;
    result = result == CLI_DONE ? choose_over(slice) : result;
    return result == CLI_DONE ? take_values(slice) : result;
}

static void clear_law(slice_law *law)
{
    free(law->mean);
    for (int q = 0; q < SLICE_QUANTILES; q++) {
        free(law->quantile[q]);
    }
}

void slice_close(cli_slice *slice)
{
    thiele_table_destroy(slice->sample);
    clear_law(&slice->law);
    clear_law(&slice->row_law);
    free(slice->column);
    free(slice->x);
    free(slice->cell);
    free(slice->y);
    free(slice->near_x);
    free(slice->near_y);
    json_decref(slice->description);
    *slice = (cli_slice){0};
}

/* A mean of dates is some time of some day, of which the day is enough. */
static double shown_day(const slice_column *column)
{
    double value = column->value + column->origin;
    return strcmp(column->dates, "time") == 0 || column->chosen ? value : floor(value);
}

void slice_setting(const cli_slice *slice, char *text, size_t capacity)
{
    size_t length = 0;
    const char *between = "";
    char date[64];
    *text = '\0';
    for (int i = 0; i < slice->columns && length < capacity; i++) {
        const slice_column *column = &slice->column[i];
        if (i == slice->over) {
            continue;
        }
        if (column->levels != NULL) {
            length += (size_t)snprintf(text + length, capacity - length, "%s%.60s = %.60s", between, column->name,
                                       json_string_value(json_array_get(column->levels, (size_t)column->value)));
        } else if (column->dates != NULL && thiele_date_write(shown_day(column), column->dates, date, sizeof date)) {
            length += (size_t)snprintf(text + length, capacity - length, "%s%.60s = %s", between, column->name, date);
        } else {
            length += (size_t)snprintf(text + length, capacity - length, "%s%.60s = %.4g", between, column->name,
                                       column->value);
        }
        between = ", ";
    }
}

/*
 * A model for people: what it is, what it learned, how much to trust it. Made from the description that the library
 * gives as JSON (docs/file-format.md lists its fields); a field that is absent is left out.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "cli.h"

static const char *text_of(const json_t *json, const char *field)
{
    const char *text = json_string_value(json_object_get(json, field));
    return text != NULL ? text : "-";
}

static char *number_of(const json_t *json, const char *field, char buffer[CLI_NUMBER_MAX])
{
    const json_t *value = json_object_get(json, field);
    return cli_short(json_is_number(value) ? json_number_value(value) : NAN, buffer);
}

static long long count_of(const json_t *json, const char *field)
{
    return (long long)json_integer_value(json_object_get(json, field));
}

static void print_columns(const json_t *columns)
{
    enum { WIDTH = 79 };
    size_t index;
    const json_t *input;
    char text[256];
    int column = 0;
    json_array_foreach(json_object_get(columns, "inputs"), index, input)
    {
        size_t levels = json_array_size(json_object_get(input, "levels"));
        int length =
            snprintf(text, sizeof text, levels > 0 ? "%.200s (%zu levels)" : "%.200s", text_of(input, "name"), levels);
        if (column == 0 || column + 2 + length > WIDTH) {
            column = printf(column == 0 ? "%-14s%s" : ",\n%-14s%s", column == 0 ? "inputs" : "", text);
        } else {
            column += printf(", %s", text);
        }
    }
    putchar('\n');
    cli_row("target", "%s", text_of(json_object_get(columns, "target"), "name"));
}

static void print_parameters(const json_t *parameters)
{
    size_t index;
    const json_t *parameter;
    int width = 0;
    char number[CLI_NUMBER_MAX];
    json_array_foreach(parameters, index, parameter)
    {
        int length = (int)strlen(text_of(parameter, "name"));
        width = length > width && length <= 48 ? length : width;
    }
    json_array_foreach(parameters, index, parameter)
    {
        const char *name = text_of(parameter, "name");
        bool fixed = json_is_true(json_object_get(parameter, "fixed"));
        cli_row(index == 0 ? "learned" : NULL, "%-*s  %s%s%s", width, name, number_of(parameter, "value", number),
                strcmp(name, "noise") == 0 ? "  (variance)" : "", fixed ? "  (fixed)" : "");
    }
}

/* Why it stopped, in words. */
static const char *stop_words(const char *stop)
{
    static const struct {
        const char *stop, *words;
    } table[] = {
        {"converged", "converged"},
        {"iterations", "stopped at the iteration limit"},
        {"deadline", "stopped at the deadline"},
        {"cancelled", "cancelled: stopped before it had converged"},
        {"fixed", "there was nothing to learn"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(stop, table[i].stop) == 0) {
            return table[i].words;
        }
    }
    return stop;
}

/* Two lines: errors in the units of the target, and whether the uncertainties can be believed. */
static void print_summary(const char *label, const json_t *scores)
{
    char rmse[CLI_NUMBER_MAX], mae[CLI_NUMBER_MAX], nlpd[CLI_NUMBER_MAX], smse[CLI_NUMBER_MAX];
    if (count_of(scores, "rows") == 0) {
        return;
    }
    cli_row(label, "%lld rows: RMSE %s, MAE %s, SMSE %s, NLPD %s", count_of(scores, "rows"),
            number_of(scores, "rmse", rmse), number_of(scores, "mae", mae), number_of(scores, "smse", smse),
            number_of(scores, "nlpd", nlpd));
    double inside[3];
    static const char *const fields[] = {"coverage50", "coverage90", "coverage95"};
    for (int i = 0; i < 3; i++) {
        inside[i] = 100 * json_number_value(json_object_get(scores, fields[i]));
    }
    cli_row(NULL, "of them %.1f%%, %.1f%%, %.1f%% lie inside the 50%%, 90%%, 95%% intervals", inside[0], inside[1],
            inside[2]);
}

static void print_worst(const json_t *worst)
{
    enum { FAR = 3 }; /* standard deviations: 3 in 1000 rows of a true model */
    size_t index;
    const json_t *entry;
    int count = 0;
    json_array_foreach(worst, index, entry)
    {
        double z = json_number_value(json_object_get(entry, "z"));
        if (fabs(z) > FAR) {
            printf(count == 0 ? "%-14s" : "%s", count == 0 ? "far off" : ", ");
            printf("row %lld (%+.1f sd)", count_of(entry, "row"), z);
            count++;
        }
    }
    if (count > 0) {
        putchar('\n');
    }
}

int cli_report(const char *description)
{
    char number[CLI_NUMBER_MAX];
    json_t *json = json_loads(description, 0, NULL);
    if (json == NULL) {
        return cli_fail("the model's description cannot be read: out of memory");
    }
    cli_row("method", "%s: %s", text_of(json, "method"), text_of(json, "why"));
    cli_row("kernel", "%s", text_of(json, "kernel"));
    cli_row("mean", "%s", text_of(json, "mean"));
    cli_row("rows", "%lld", count_of(json, "rows"));
    print_columns(json_object_get(json, "columns"));
    print_parameters(json_object_get(json, "parameters"));
    cli_row("evidence", "log marginal likelihood %s", number_of(json, "log_marginal_likelihood", number));
    if (json_number_value(json_object_get(json, "jitter")) > 0) {
        cli_row("jitter", "%s added to the diagonal to factorise it", number_of(json, "jitter", number));
    }
    cli_row("search", "%s (%lld iterations, %lld evaluations)", stop_words(text_of(json, "stop")),
            count_of(json, "iterations"), count_of(json, "evaluations"));
    print_summary("one left out", json_object_get(json, "loo"));
    print_summary("held out", json_object_get(json, "holdout"));
    print_worst(json_object_get(json, "worst"));
    json_decref(json);
    return CLI_DONE;
}

/* thiele report: whether to trust a model, as a page, as JSON, and in a few lines. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option report_options[] = {
    {"output", 'o', cli_parse_text, CLI_AT(output), "FILE",
     "page to write, .html; - for standard output (default: MODEL's name and -report.html, in this folder)", 0, 0},
    {"target", 0, cli_parse_text, CLI_AT(which), "COL", "which of several targets (default: the first)", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Report", report_options},
    {"Rows", cli_score_options},
    {"Model", cli_own_options},
    {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options},
    {"Output", cli_output_options},
    {0},
};

/* "dir/model.thiele" gives "model-report.html". To be freed. */
static char *default_output(const char *model)
{
    static const char ending[] = ".thiele";
    const char *slash = strrchr(model, '/'), *base = slash != NULL ? slash + 1 : model;
    size_t length = strlen(base), cut = sizeof ending - 1, capacity = length + 16;
    char *output = malloc(capacity);
    if (output != NULL) {
        length -= length > cut && strcmp(base + length - cut, ending) == 0 ? cut : 0;
        snprintf(output, capacity, "%.*s-report.html", (int)length, base);
    }
    return output;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

/* The verdict and, of lamps that are on, what they say and what to do. */
static int print_lamps(const char *text)
{
    json_t *report = json_loads(text, 0, NULL);
    const json_t *lamps = json_object_get(report, "lamps");
    if (report == NULL) {
        return cli_fail("out of memory");
    }
    cli_row("verdict", "%s", text_of(report, "verdict"));
    for (size_t k = 0; k < json_array_size(lamps); k++) {
        const json_t *lamp = json_array_get(lamps, k);
        const char *state = text_of(lamp, "state");
        cli_row(text_of(lamp, "name"), "%s%s%s", strcmp(state, "none") == 0 ? "" : state,
                strcmp(state, "none") == 0 ? "" : ": ", text_of(lamp, "says"));
        if (*text_of(lamp, "do") != '\0') {
            cli_row(NULL, "%s", text_of(lamp, "do"));
        }
    }
    json_decref(report);
    return CLI_DONE;
}

/* With --json there is a page only where -o asks for one. */
static thiele_status report(cli_settings *settings, const thiele_model *model, const thiele_table *table,
                            const char *output, char **json)
{
    thiele_report_options options = THIELE_REPORT_OPTIONS_INIT;
    char command[512];
    snprintf(command, sizeof command, "thiele report %.200s%s%.200s", settings->operand[0], table != NULL ? " " : "",
             table != NULL ? settings->operand[1] : "");
    options.target = settings->which;
    options.command = command;
    options.predict = &settings->predict;
    return thiele_model_report(model, settings->ctx, table, &options, output, json);
}

static int run(cli_settings *settings)
{
    const char *const inputs[] = {settings->operand[0], settings->operand[1], NULL};
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    char *chosen = NULL, *json = NULL;
    int result = cli_check_plugin(settings);
    if (result != CLI_DONE) {
        return result;
    }
    if (settings->output == NULL && !settings->json) {
        chosen = default_output(settings->operand[0]);
        if (chosen == NULL) {
            return cli_fail("out of memory");
        }
    }
    const char *output = settings->output != NULL ? settings->output : chosen;
    bool streams = output != NULL && strcmp(output, "-") == 0;
    result = output != NULL && !streams ? cli_check_output(output, inputs) : CLI_DONE;
    if (result == CLI_DONE && streams && settings->json) {
        result = cli_misuse("-o - and --json both want standard output: give the page a file");
    }
    if (result != CLI_DONE) {
        free(chosen);
        return result;
    }
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    if (settings->operand[1] != NULL) {
        CLI_TRY(cli_open_like_training(&table, settings, model, &settings->operand[1], 1));
    }
    CLI_TRY(report(settings, model, table, output, &json));
    cli_progress_clear();
    if (settings->json) {
        cli_put_json(stdout, json);
        putchar('\n');
    } else if (!streams) {
        result = print_lamps(json);
        cli_row("saved to", "%s", output);
    }
out:
    result = status != THIELE_OK || result == CLI_DONE ? cli_finish(settings, status) : result;
    thiele_free(json);
    free(chosen);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_report = {
    .name = "report",
    .usage = "MODEL [DATA] [-o FILE] [OPTIONS]",
    .summary = "say whether to trust a model",
    .about = "Writes one page (HTML) that says whether a model can be trusted, what matters to it and where it fails, "
             "with pictures. DATA are rows with the target that the model has not seen, such as a test table; without "
             "them the page is about the model alone.",
    .operand = {"MODEL", "DATA"},
    .optional = 1,
    .groups = groups,
    .examples = "  thiele report model.thiele test.csv\n"
                "  thiele report model.thiele test.csv -o report.html\n"
                "  thiele report model.thiele test.csv --json\n",
    .run = run,
};

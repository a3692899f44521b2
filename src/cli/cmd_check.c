/* thiele check: whether inference can be believed, by simulation from the model itself. */
#include <jansson.h>
#include <stdlib.h>

#include "cli.h"

static const cli_option check_options[] = {
    {"sbc", 0, cli_parse_int64, CLI_AT(simulations), "N", "simulations (default: 200)", 20, 1e5},
    {"rows", 0, cli_parse_int64, CLI_AT(rows), "ROWS", "rows of each, drawn at random (default: 50)", 10, 200},
    {"target", 0, cli_parse_text, CLI_AT(which), "COL", "which of several targets (default: the first)", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Check", check_options},
    {"Rows", cli_score_options},
    {"Model", cli_own_options},
    {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options},
    {"Output", cli_output_options},
    {0},
};

/* A histogram in one line. */
static void print_quantity(const json_t *own)
{
    const json_t *counts = json_object_get(own, "counts");
    size_t bins = json_array_size(counts);
    json_int_t low = json_integer_value(json_object_get(own, "low"));
    json_int_t high = json_integer_value(json_object_get(own, "high"));
    int outside = 0;
    printf("%-14s", json_string_value(json_object_get(own, "name")));
    for (size_t b = 0; b < bins; b++) {
        json_int_t count = json_integer_value(json_array_get(counts, b));
        outside += count < low || count > high;
        printf(" %3lld", (long long)count);
    }
    printf("  p %.3g%s\n", json_number_value(json_object_get(own, "p")), outside > 0 ? "  outside the band" : "");
}

static int print_check(const char *text)
{
    json_t *check = json_loads(text, 0, NULL);
    const json_t *quantities = json_object_get(check, "quantities");
    if (check == NULL) {
        return cli_fail("out of memory");
    }
    const json_t *first = json_array_get(quantities, 0);
    cli_row("verdict", "%s", json_string_value(json_object_get(check, "verdict")));
    cli_row("simulations", "%lld of %lld rows by method %s",
            (long long)json_integer_value(json_object_get(check, "simulations")),
            (long long)json_integer_value(json_object_get(check, "rows")),
            json_string_value(json_object_get(check, "method")));
    cli_row("ranks",
            "simulations by the rank of the truth among %lld draws, the lowest first; from %lld to %lld by chance",
            (long long)json_integer_value(json_object_get(check, "draws")),
            (long long)json_integer_value(json_object_get(first, "low")),
            (long long)json_integer_value(json_object_get(first, "high")));
    for (size_t k = 0; k < json_array_size(quantities); k++) {
        print_quantity(json_array_get(quantities, k));
    }
    json_decref(check);
    return CLI_DONE;
}

static int run(cli_settings *settings)
{
    thiele_check_options options = THIELE_CHECK_OPTIONS_INIT;
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    char *json = NULL;
    int result = cli_check_plugin(settings);
    if (result != CLI_DONE) {
        return result;
    }
    options.target = settings->which;
    options.simulations = settings->simulations;
    options.rows = settings->rows;
    options.predict = &settings->predict;
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    if (settings->operand[1] != NULL) {
        CLI_TRY(cli_open_like_training(&table, settings, model, &settings->operand[1], 1));
    }
    CLI_TRY(thiele_model_check(model, settings->ctx, table, &options, &json));
    cli_progress_clear();
    if (settings->json) {
        cli_put_json(stdout, json);
        putchar('\n');
    } else {
        result = print_check(json);
    }
out:
    result = status != THIELE_OK || result == CLI_DONE ? cli_finish(settings, status) : result;
    thiele_free(json);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_check = {
    .name = "check",
    .usage = "MODEL [DATA] [--sbc N] [OPTIONS]",
    .summary = "check inference by simulation",
    .about = "Draws functions and targets from the model itself, at its learned parameters, infers them again by its "
             "method, and ranks the truth among draws of the posterior: where inference is right, ranks are uniform "
             "(simulation-based calibration). The inputs are those of rows of DATA, or of the training rows that the "
             "model holds.",
    .operand = {"MODEL", "DATA"},
    .optional = 1,
    .groups = groups,
    .examples = "  thiele check model.thiele\n"
                "  thiele check model.thiele train.csv --sbc 1000 --rows 100\n"
                "  thiele check model.thiele --sbc 500 --json\n",
    .run = run,
};

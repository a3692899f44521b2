/* thiele compare: models side by side on the rows of one table. */
#include <stdlib.h>

#include "cli.h"

enum { MOST = 17 }; /* models, and the table */

static const cli_option compare_options[] = {
    {"target", 0, cli_parse_text, CLI_AT(which), "COL", "which of several targets (default: the first)", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Comparison", compare_options},
    {"Rows", cli_score_options},
    {"Model", cli_own_options},
    {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options},
    {"Output", cli_output_options},
    {0},
};

static void print_result(const cli_settings *settings, int count, const thiele_comparison *each)
{
    if (!settings->json) {
        cli_print_comparisons(count, settings->operand, each);
        printf("on %lld row%s that all of them predict; +- is one standard error\n", (long long)each->rows,
               each->rows == 1 ? "" : "s");
        return;
    }
    cli_json json = {.stream = stdout, .inline_from = 4};
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "models", '[');
    for (int k = 0; k < count; k++) {
        cli_json_comparison(&json, settings->operand[k], &each[k]);
    }
    cli_json_close(&json, ']');
    for (int k = 0; k < count; k++) {
        if (each[k].best) {
            cli_json_text(&json, "best", settings->operand[k]);
        }
    }
    cli_json_close(&json, '}');
}

static int run(cli_settings *settings)
{
    int count = settings->operands - 1;
    thiele_model *model[MOST] = {NULL};
    thiele_comparison each[MOST];
    thiele_table *table = NULL;
    thiele_status status;
    if (cli_check_plugin(settings) != CLI_DONE) {
        return CLI_MISUSED;
    }
    for (int k = 0; k < count; k++) {
        CLI_TRY(cli_load_model(&model[k], settings, settings->operand[k]));
    }
    CLI_TRY(cli_open_like_training(&table, settings, model[0], &settings->operand[count], 1));
    CLI_TRY(thiele_compare(settings->ctx, count, (const thiele_model *const *)model, table, &settings->predict,
                           settings->which, each));
    cli_progress_clear();
    print_result(settings, count, each);
out:;
    int result = cli_finish(settings, status);
    thiele_table_destroy(table);
    for (int k = 0; k < count; k++) {
        thiele_model_destroy(model[k]);
    }
    return result;
}

const cli_command cmd_compare = {
    .name = "compare",
    .usage = "MODEL... DATA [OPTIONS]",
    .summary = "compare models side by side",
    .about = "Scores models of the same target on the same rows, and says how far each is behind the best, by "
             "differences row by row: what makes a row easy or hard for all models cancels there, so that "
             "standard errors are small. The best has the lowest NLPD (for labels, NLP).",
    .operand = {"MODEL", "DATA"},
    .repeated = "MODEL",
    .many = MOST,
    .groups = groups,
    .examples = "  thiele compare pic.thiele variational.thiele test.csv\n"
                "  thiele compare *.thiele test.csv --json\n",
    .run = run,
};

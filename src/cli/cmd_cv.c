/* thiele cv: k-fold scores of a specification. */
#include <stdlib.h>

#include "cli.h"

enum { FOLDS_DEFAULT = 5, FOLDS_MOST = 1000000 };

static const cli_option cv_options[] = {
    {"folds", 'k', cli_parse_int, CLI_AT(folds), "K", "parts to cut the rows into (default: 5)", 2, FOLDS_MOST},
    {0},
};

static const cli_group groups[] = {
    {"Folds", cv_options},
    CLI_FIT_GROUPS,
    {"Reading the table", cli_table_options},
    {"Machine", cli_learning_options},
    {"Output", cli_output_options},
    {0},
};

static void print_result(const cli_settings *settings, const thiele_scores *each, const thiele_scores *overall)
{
    if (!settings->json) {
        cli_print_folds(each, settings->folds, overall);
        return;
    }
    cli_json json = {.stream = stdout, .inline_from = 3};
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "folds", '[');
    for (int i = 0; i < settings->folds; i++) {
        cli_json_scores(&json, NULL, &each[i]);
    }
    cli_json_close(&json, ']');
    cli_json_scores(&json, "overall", overall);
    cli_json_close(&json, '}');
}

static int run(cli_settings *settings)
{
    if (settings->fit.columns.target == NULL) {
        return cli_misuse("cv needs --target COL, the column to predict (usage: thiele cv %s)", cmd_cv.usage);
    }
    settings->folds = settings->folds == 0 ? FOLDS_DEFAULT : settings->folds;
    thiele_table *table = NULL;
    thiele_scores overall, *each = calloc((size_t)settings->folds, sizeof *each);
    if (each == NULL) {
        return cli_fail("out of memory");
    }
    thiele_status status;
    CLI_TRY(cli_open_tables(&table, settings, settings->operand, settings->operands));
    CLI_TRY(thiele_cross_validate(settings->ctx, table, &settings->fit, settings->folds, each, &overall));
    cli_progress_clear();
    print_result(settings, each, &overall);
out:;
    int result = cli_finish(settings, status);
    thiele_table_destroy(table);
    free(each);
    return result;
}

const cli_command cmd_cv = {
    .name = "cv",
    .usage = "DATA... --target COL [--folds K] [OPTIONS]",
    .summary = "score settings by cross-validation",
    .about =
        "Deals the rows of a table into K folds at random, fits a model to all but one fold, scores it on that fold, "
        "and so "
        "on. Takes the options of fit; nothing is saved.",
    .operand = {"DATA"},
    .repeated = "DATA",
    .many = CLI_OPERANDS,
    .groups = groups,
    .without = "result",
    .examples = "  thiele cv train.csv --target strength\n"
                "  thiele cv train.csv --target strength --kernel 'se(ard)' --folds 10 --json\n",
    .run = run,
};

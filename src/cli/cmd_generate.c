/* thiele generate: the built-in data set, for demonstrations and tests. */
#include "cli.h"

enum { ROWS_DEFAULT = 500 };

static const cli_option generate_options[] = {
    {"rows", 'n', cli_parse_int64, CLI_AT(rows), "ROWS", "how many (default: 500)", 1, 1e12},
    {"seed", 0, cli_parse_seed, CLI_AT(context.seed), "N", "another seed gives other rows (default: 0)", 0, 0},
    {"output", 'o', cli_parse_text, CLI_AT(output), "FILE", "CSV file to write (default: standard output)", 0, 0},
    {0},
};

static const cli_group groups[] = {{"Options", generate_options}, {0}};

static int run(cli_settings *settings)
{
    const char *const inputs[] = {NULL};
    int result = cli_check_output(settings->output, inputs);
    if (result != CLI_DONE) {
        return result;
    }
    thiele_table *table = NULL;
    thiele_status status;
    int64_t rows = settings->rows == 0 ? ROWS_DEFAULT : settings->rows;
    cli_catch_signals();
    CLI_TRY(thiele_table_generate(&table, settings->ctx, rows, settings->context.seed));
    CLI_TRY(thiele_table_write(table, settings->ctx, settings->output != NULL ? settings->output : "-"));
out:
    result = cli_finish(settings, status);
    thiele_table_destroy(table);
    return result;
}

const cli_command cmd_generate = {
    .name = "generate",
    .usage = "[-n ROWS] [--seed N] [-o FILE]",
    .summary = "write the built-in data set",
    .about = "Writes rows of a known function with noise, as CSV: strength = 40 + 12 sin(1.5 x1) + 4 x2 + 3 (site = "
             "north) + "
             "noise of standard deviation 0.8 + 0.5 |x1|, and a column 'row' unrelated to it.",
    .operand = {NULL},
    .groups = groups,
    .examples = "  thiele generate -n 500 -o train.csv\n"
                "  thiele generate -n 200 --seed 1 -o test.csv\n"
                "  thiele generate | thiele fit - --target strength --ignore row -o model.thiele\n",
    .run = run,
};

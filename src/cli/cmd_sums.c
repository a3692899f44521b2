/* thiele sums: what the rows of a table say to a model, as a small file that adds up with others (thiele combine). */
#include "cli.h"

static const cli_option sums_options[] = {
    {"output", 'o', cli_parse_text, CLI_AT(output), "SUMS", "file to write; required", 0, 0},
    {0},
};

static const cli_option row_options[] = {
    {"unseen", 0, cli_parse_choice, CLI_AT(predict.unseen), "other|zero|error",
     "a category that training never saw is taken as other, or as none (where the model has no others), or is an error "
     "(default: other, or an error where the model has no others)",
     0, 0},
    {"drop-missing", 0, NULL, CLI_AT(predict.drop_missing), NULL,
     "leave out rows with missing values (default: refuse them)", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Result", sums_options},         {"Rows", row_options},          {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options}, {"Output", cli_output_options}, {0},
};

static void print_outcome(const cli_settings *settings, const thiele_sums *sums, double seconds)
{
    if (settings->json) {
        cli_json json = {.stream = stdout, .inline_from = 1};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "saved", settings->output);
        cli_json_integer(&json, "rows", thiele_sums_rows(sums));
        cli_json_number(&json, "seconds", seconds);
        cli_json_close(&json, '}');
        return;
    }
    char duration[32];
    cli_duration(seconds, duration, sizeof duration);
    cli_row("rows", "%lld", (long long)thiele_sums_rows(sums));
    cli_row("time", "%s", duration);
    cli_row("saved to", "%s", settings->output);
}

static int run(cli_settings *settings)
{
    const thiele_sums_options options = {sizeof options, settings->predict.unseen, settings->predict.drop_missing};
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    thiele_sums *sums = NULL;
    thiele_status status;
    if (settings->output == NULL) {
        return cli_misuse("sums needs -o SUMS, the file to write");
    }
    int result = cli_check_output(settings->output, settings->operand);
    if (result != CLI_DONE) {
        return result;
    }
    double start = cli_seconds();
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    CLI_TRY(thiele_sums_open(&sums, settings->ctx, model));
    CLI_TRY(cli_open_like_training(&table, settings, model, settings->operand + 1, settings->operands - 1));
    CLI_TRY(thiele_sums_add(sums, settings->ctx, table, &options));
    CLI_TRY(thiele_sums_save(sums, settings->ctx, settings->output));
    cli_progress_clear();
    if (settings->output[0] != '-' || settings->output[1] != '\0') {
        print_outcome(settings, sums, cli_seconds() - start);
    }
out:
    result = cli_finish(settings, status);
    thiele_sums_close(sums);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_sums = {
    .name = "sums",
    .usage = "MODEL DATA... -o SUMS [OPTIONS]",
    .summary = "what rows say to a model, to be added up",
    .about = "Writes what the rows of a table say to a model whose parameters and inducing inputs stay: a file of some "
             "8 M^2 bytes for M inducing inputs, however many rows there are. 'thiele combine' adds such files of "
             "parts up, which may have been made anywhere and in any order, to the bits that one pass over all rows "
             "gives. For Gaussian noise and methods collapsed, variational, sor, dtc, fitc and fic.",
    .operand = {"MODEL", "DATA"},
    .repeated = "DATA",
    .many = CLI_OPERANDS,
    .groups = groups,
    .examples = "  thiele sums model.thiele part-07.csv -o part-07.sums\n"
                "  thiele combine model.thiele part-*.sums -o all.thiele\n",
    .run = run,
};

/* thiele update: a model goes on learning from new rows, each once; from a table, a stream or a file that grows. */
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static const cli_option update_options[] = {
    {"output", 'o', cli_parse_text, CLI_AT(output), "MODEL", "file to write (default: MODEL itself, replaced whole)", 0,
     0},
    {"snapshot", 0, cli_parse_real, CLI_AT(update.snapshot), "SECONDS",
     "seconds between saves while rows arrive, for others to read (default: only at the end)", 0.001, 1e9},
    {"deadline", 0, cli_parse_real, CLI_AT(update.deadline), "SECONDS", "stop then (default: at the last row)", 0, 1e9},
    {0},
};

static const cli_option row_options[] = {
    {"batch", 0, cli_parse_int64, CLI_AT(update.batch), "B",
     "rows predicted and then learned together (default: 1024, at most a quarter of --forget)", 1, 4096},
    {"keep", 0, cli_parse_or_none, CLI_AT(update.keep), "ROWS",
     "number of last rows kept in the model, from which parameters are learned; 0: none, and they stay fixed (default: "
     "4096)",
     0, 1e6},
    {"skip", 0, cli_parse_int64, CLI_AT(feed.skip), "ROWS", "leave out the first rows: they were learned before", 0,
     1e15},
    {"unseen", 0, cli_parse_choice, CLI_AT(update.unseen), "other|zero|error",
     "how to treat a category that training never saw: as other, as none (if the model has no other), or as an "
     "error (default: other, or error if the model has no other)",
     0, 0},
    {"drop-missing", 0, NULL, CLI_AT(update.drop_missing), NULL,
     "leave out rows with missing values (default: refuse them)", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Result", update_options},       {"Stream", cli_stream_options},    {"Rows", row_options},
    {"Model", cli_own_options},       {"Training log", cli_log_options}, {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options}, {"Output", cli_output_options},    {0},
};

static bool is_feed(const cli_settings *settings)
{
    return strcmp(settings->operand[1], "-") == 0 || settings->feed.follow || settings->update.skip_bad ||
           settings->feed.skip > 0;
}

static int update(cli_settings *settings, const char *output)
{
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    thiele_feed *feed = NULL;
    int result = CLI_FAILED;
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    if (is_feed(settings)) {
        settings->table.missing =
            settings->table.missing != NULL ? settings->table.missing : thiele_model_missing(model);
        cli_catch_signals();
        CLI_TRY(cli_open_feed(&feed, settings, settings->operand[1]));
    } else {
        CLI_TRY(cli_open_like_training(&table, settings, model, &settings->operand[1], 1));
        if (settings->update.deadline > 0.0) { /* for all of it: what reading has taken is gone */
            double left = settings->update.deadline - cli_running();
            settings->update.deadline = left > 0.01 ? left : 0.01;
        }
    }
    result = cli_learn(settings, model, feed, table, output);
out:
    result = status == THIELE_OK ? result : cli_finish(settings, status);
    thiele_feed_close(feed);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    return result;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* A model that is replaced by what it has learned is updated by one process at a time: none loses another's rows. */
static int update_alone(cli_settings *settings, const char *output)
{
    cli_lock_file lock = {.descriptor = -1};
    int result = is_same_file(output, settings->operand[0]) ? cli_lock(&lock, settings->operand[0]) : CLI_DONE;
    if (result == CLI_DONE) {
        result = update(settings, output);
    }
    cli_unlock(&lock);
    return result;
}

static int run(cli_settings *settings)
{
    if (cli_check_plugin(settings) != CLI_DONE) {
        return CLI_MISUSED;
    }
    const char *output = settings->output != NULL ? settings->output : settings->operand[0];
    if (strcmp(output, "-") == 0) {
        return cli_misuse("a model needs a file: it cannot be read from standard input or written to standard output");
    }
    const char *const inputs[] = {settings->operand[1], NULL};
    int result = cli_check_output(output, inputs);
    if (result == CLI_DONE) {
        result = cli_open_log(settings, output);
    }
    if (result == CLI_DONE) {
        result = update_alone(settings, output);
    }
    return cli_close_log(settings, result);
}

const cli_command cmd_update = {
    .name = "update",
    .usage = "MODEL DATA [-o OUT] [OPTIONS]",
    .summary = "keep learning from new rows",
    .about =
        "Learns the rows of a table, of standard input (DATA is -) or of a growing file (--follow), each once, "
        "with what the model knows as prior; each row is predicted before it is learned, and those errors are "
        "shown. Kernel, likelihood and inducing inputs are learned further from the last rows. Ctrl-C keeps what was "
        "learned.",
    .operand = {"MODEL", "DATA"},
    .groups = groups,
    .examples = "  thiele update model.thiele new.csv\n"
                "  sensor | thiele update model.thiele - --forget 20000 --snapshot 10\n"
                "  thiele update model.thiele log.csv --follow --skip-bad --snapshot 5\n",
    .run = run,
};

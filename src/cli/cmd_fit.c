/* thiele fit: a table in, a model file out, and a summary of what was learned. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option fit_options[] = {
    {"output", 'o', cli_parse_text, CLI_AT(output), "MODEL",
     "file to write (default: the name of the first DATA with .thiele, in this folder)", 0, 0},
    {0},
};

static const cli_option stream_options[] = {
    {"stream", 0, NULL, CLI_AT(stream), NULL,
     "fit the first rows, then learn each later row once as it arrives (see thiele update)", 0, 0},
    {"warm", 0, cli_parse_int64, CLI_AT(warm), "ROWS", "rows that are fitted first (default: 10000)", 2, 1e9},
    {0},
};

static const cli_group groups[] = {
    {"Model file", fit_options},
    CLI_FIT_GROUPS,
    {"Streams", stream_options},
    {"While rows arrive", cli_stream_options},
    {"Training log", cli_log_options},
    {"Reading the table", cli_table_options},
    {"Machine", cli_learning_options},
    {"Output", cli_output_options},
    {0},
};

/* "data/train.csv.gz" gives "train.thiele", standard input "model.thiele". To be freed. */
static char *default_output(const char *data)
{
    static const char *const endings[] = {".gz", ".csv", ".tsv", ".txt", ".npy", ".h5", ".hdf5"};
    const char *slash = strrchr(data, '/');
    const char *base = slash != NULL ? slash + 1 : data;
    base = strcmp(data, "-") == 0 || *base == '\0' ? "model" : base;
    size_t length = strlen(base);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strncmp(base + length - ending, endings[i], ending) == 0) {
            length -= ending;
        }
    }
    char *output = malloc(length + sizeof ".thiele");
    if (output != NULL) {
        memcpy(output, base, length);
        memcpy(output + length, ".thiele", sizeof ".thiele");
    }
    return output;
}

static thiele_status print_result(cli_settings *settings, const thiele_model *model, const char *output, double seconds)
{
    char *description = NULL;
    thiele_status status = thiele_model_describe(model, settings->ctx, &description);
    if (status != THIELE_OK) {
        return status;
    }
    if (settings->json) {
        cli_json json = {.stream = stdout, .inline_from = 2};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "saved", output);
        cli_json_number(&json, "seconds", seconds);
        cli_json_raw(&json, "model", description);
        cli_json_close(&json, '}');
    } else {
        char duration[32];
        cli_duration(seconds, duration, sizeof duration);
        cli_report(description);
        cli_row("time", "%s", duration);
        cli_row("saved to", "%s", output);
    }
    thiele_free(description);
    return THIELE_OK;
}

/*
 * A deadline is for all of it: what reading the table has taken is gone, and saving the model takes some time too. With
 * snapshots the model's own file is there early.
 */
static void plan(cli_settings *settings, const char *output)
{
    static const double SHARE = 0.03, LEAST = 0.02, MOST = 1.0, NEVER_LESS = 0.01;
    double deadline = settings->fit.stopping.deadline;
    if (deadline > 0.0) {
        double saving = LEAST + SHARE * deadline < MOST ? LEAST + SHARE * deadline : MOST;
        double left = deadline - saving - cli_running();
        settings->fit.stopping.deadline = left > NEVER_LESS ? left : NEVER_LESS;
    }
    settings->fit.result.snapshot_file = settings->fit.result.snapshot > 0.0 ? output : NULL;
}

/* The column of times joins those that are no inputs, unless inputs are listed. The new list is the caller's. */
static char *leave_out_time(thiele_fit_options *options, const char *time)
{
    const char *others = options->columns.ignore != NULL ? options->columns.ignore : "";
    size_t length = time != NULL && options->columns.inputs == NULL ? strlen(others) + strlen(time) + 2 : 0;
    char *list = length > 0 ? malloc(length) : NULL;
    if (list != NULL) {
        snprintf(list, length, "%s%s%s", others, *others != '\0' ? "," : "", time);
        options->columns.ignore = list;
    }
    return list;
}

/*
 * The first rows are fitted as any table is, by a method with inducing inputs, in half of the time until a deadline;
 * the others are learned as they come.
 */
static int fit_stream(cli_settings *settings, const char *output)
{
    enum { WARM_DEFAULT = 10000, INDUCING_DEFAULT = 200 };
    thiele_feed *feed = NULL;
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_fit_options *options = &settings->fit;
    thiele_update_options *later = &settings->update;
    int result = CLI_FAILED;
    thiele_status status;
    later->deadline = options->stopping.deadline;
    later->snapshot = options->result.snapshot;
    later->drop_missing = options->columns.drop_missing != 0;
    later->keep = options->result.keep;
    options->inducing.inducing = options->model.method == NULL && options->inducing.inducing == 0
                                     ? INDUCING_DEFAULT
                                     : options->inducing.inducing;
    options->stopping.deadline *= 0.5;
    char *list = leave_out_time(options, later->time);
    cli_catch_signals();
    CLI_TRY(cli_open_feed(&feed, settings, settings->operand[0]));
    CLI_TRY(cli_wait_for_rows(feed, settings, settings->warm > 0 ? settings->warm : WARM_DEFAULT, &table));
    if (table == NULL) {
        thiele_feed_close(feed);
        free(list);
        return cli_signal() != NULL ? cli_finish(settings, THIELE_ERROR_CANCELLED)
                                    : cli_fail("too few rows arrived before the deadline: nothing was saved");
    }
    plan(settings, NULL);
    CLI_TRY(thiele_model_fit(&model, settings->ctx, table, options));
    CLI_TRY(thiele_model_save(model, settings->ctx, output));
    thiele_table_destroy(table);
    table = NULL;
    if (later->deadline > 0.0) {
        later->deadline = later->deadline > cli_running() + 0.01 ? later->deadline - cli_running() : 0.01;
    }
    result = cli_learn(settings, model, feed, NULL, output);
out:
    result = status == THIELE_OK ? result : cli_finish(settings, status);
    thiele_feed_close(feed);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    free(list);
    return result;
}

static int fit(cli_settings *settings, const char *output)
{
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_status status;
    CLI_TRY(cli_open_tables(&table, settings, settings->operand, settings->operands));
    double start = cli_seconds();
    plan(settings, output);
    CLI_TRY(thiele_model_fit(&model, settings->ctx, table, &settings->fit));
    double seconds = cli_seconds() - start;
    if (settings->ranks.rank == 0) {
        CLI_TRY(thiele_model_save(model, settings->ctx, output));
    }
    cli_progress_clear();
    CLI_TRY(print_result(settings, model, output, seconds));
out:;
    int result = cli_finish(settings, status);
    bool first = settings->ranks.rank == 0; /* the others leave the last word to it, and time to save */
    if (status == THIELE_OK && first && thiele_model_stop(model) == THIELE_STOP_CANCELLED) {
        result = cli_fail("stopped by %s: the best model so far was saved to %s", cli_signal(), output);
    }
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    return result;
}

static int run(cli_settings *settings)
{
    if (settings->fit.columns.target == NULL) {
        return cli_misuse("fit needs --target COL, the column to predict (usage: thiele fit %s)", cmd_fit.usage);
    }
    const thiele_update_options *later = &settings->update;
    bool streams = settings->warm > 0 || settings->feed.follow || later->forget > 0.0 || later->window > 0 ||
                   later->skip_bad || later->freeze || later->time != NULL || later->half_life > 0.0;
    if (streams && !settings->stream) {
        return cli_misuse("--warm, --follow, --forget, --half-life, --time, --freeze, --window and --skip-bad are for "
                          "rows that arrive: add --stream");
    }
    if (settings->stream && settings->operands > 1) {
        return cli_misuse("fit --stream reads one file or pipe: give one DATA, or leave --stream out");
    }
    if (settings->output != NULL && strcmp(settings->output, "-") == 0) {
        return cli_misuse("a model cannot go to standard output: give a file name with -o");
    }
    char *chosen = settings->output == NULL ? default_output(settings->operand[0]) : NULL;
    const char *output = settings->output != NULL ? settings->output : chosen;
    int result = output == NULL ? cli_fail("out of memory") : cli_check_output(output, settings->operand);
    if (result == CLI_DONE) {
        result = cli_open_log(settings, output);
    }
    if (result == CLI_DONE) {
        result = settings->stream ? fit_stream(settings, output) : fit(settings, output);
    }
    result = cli_close_log(settings, result);
    free(chosen);
    return result;
}

const cli_command cmd_fit = {
    .name = "fit",
    .usage = "DATA... --target COL [-o MODEL] [OPTIONS]",
    .summary = "fit a model to a table",
    .about =
        "Fits a Gaussian process to a table (CSV, gzipped CSV, NPY or HDF5; - reads CSV from standard input) and saves "
        "it. Ctrl-C keeps the best model so far. With --stream it then keeps learning from the rows that follow.",
    .operand = {"DATA"},
    .repeated = "DATA",
    .many = CLI_OPERANDS,
    .groups = groups,
    .examples = "  thiele fit train.csv --target strength -o model.thiele\n"
                "  thiele fit train.csv --target y --inputs x1,x2 --holdout 0.2\n"
                "  thiele fit train.csv --target y --calibrate\n"
                "  thiele fit part-*.csv --target y -o model.thiele\n"
                "  thiele fit co2.csv --target ppm --kernel 'se + periodic(p=1)*se' --restarts 5\n"
                "  thiele fit visits.csv --target count --likelihood poisson --exposure hours\n"
                "  thiele fit iris.csv --target species --likelihood softmax\n"
                "  thiele fit log.csv --target -1 --set 'noise=0.1' --deadline 30 --json\n"
                "  thiele fit flights.csv --target delay --method pic --anytime --deadline 60\n"
                "  sensor | thiele fit - --stream --target y --snapshot 10 -o live.thiele\n",
    .run = run,
};

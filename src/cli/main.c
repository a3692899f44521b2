/* The command `thiele`: finds the command's row in the table below, reads its options, makes a context and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const cli_command *const cli_commands[] = {&cmd_fit,     &cmd_update,     &cmd_predict, &cmd_score,    &cmd_compare,
                                           &cmd_sums,    &cmd_combine,    &cmd_cv,      &cmd_info,     &cmd_plot,
                                           &cmd_report,  &cmd_check,      &cmd_devices, &cmd_examples, &cmd_generate,
                                           &cmd_options, &cmd_completion, NULL};

/*
 * A closed standard stream would hand its number to the next file that is opened, and messages would land in it. It is
 * opened for reading only, so that writing to it is an error that gets noticed.
 */
static void keep_standard_streams(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != descriptor) {
            _exit(CLI_FAILED);
        }
    }
}

/* What one may type for a command. */
static const struct {
    const char *word, *command;
} synonyms[] = {
    {"train", "fit"},     {"learn", "fit"},        {"evaluate", "score"},  {"eval", "score"},
    {"test", "score"},    {"show", "info"},        {"summary", "info"},    {"describe", "info"},
    {"draw", "plot"},     {"picture", "plot"},     {"diagnose", "report"}, {"trust", "report"},
    {"data", "generate"}, {"crossvalidate", "cv"}, {"demo", "examples"},   {"tutorial", "examples"},
};

/* NULL after a sentence; topics: the name may also be one that help knows. */
static const cli_command *find_command(const char *name, bool topics)
{
    const char *guess = NULL;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        guess = strcmp(name, synonyms[i].word) == 0 ? synonyms[i].command : guess;
    }
    for (int i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0) {
            return cli_commands[i];
        }
        cli_guess(&guess, name + strspn(name, "-"), cli_commands[i]->name);
    }
    const char *kind = *name == '-' ? "option" : topics ? "command, topic or option" : "command";
    if (topics && guess == NULL) {
        cli_guess_topic(&guess, name + strspn(name, "-"));
    }
    if (*name == '-') {
        cli_guess(&guess, name, "--version");
        cli_guess(&guess, name, "--help");
    }
    if (guess != NULL) {
        cli_misuse("there is no %s '%s': did you mean '%s'?", kind, name, guess);
    } else {
        cli_misuse("there is no %s '%s' ('thiele --help' lists them)", kind, name);
    }
    return NULL;
}

/* A plug-in may call exit; nothing of ours does, but for a process that ends the others. */
static bool finished;

static int run_command(const cli_command *command, int count, char **arguments)
{
    cli_settings settings = {
        .context = THIELE_CONTEXT_OPTIONS_INIT,
        .table = THIELE_TABLE_OPTIONS_INIT,
        .fit = THIELE_FIT_OPTIONS_INIT,
        .predict = THIELE_PREDICT_OPTIONS_INIT,
        .feed = THIELE_FEED_OPTIONS_INIT,
        .update = THIELE_UPDATE_OPTIONS_INIT,
    };
    int result = CLI_MISUSED;
    if (!cli_parse(&settings, command, count, arguments)) {
        goto out;
    }
    if (settings.help) {
        cli_help(command);
        result = CLI_DONE;
        goto out;
    }
    settings.context.log = cli_log;
    settings.context.log_user = &settings;
    settings.context.progress = cli_progress;
    settings.context.progress_user = &settings;
    result = cli_open_ranks(&settings);
    if (result == CLI_DONE) {
        thiele_status status = thiele_context_create(&settings.ctx, &settings.context);
        result = status == THIELE_OK ? command->run(&settings) : cli_finish(&settings, status);
    }
    cli_progress_clear();
    finished = result != CLI_DONE;
    result = cli_close_ranks(&settings, result);
    finished = false;
out:
    thiele_context_destroy(settings.ctx);
    cli_settings_clear(&settings);
    return result;
}

static int help(int count, char **arguments)
{
    if (count == 0) {
        cli_overview(stdout, cli_commands);
        return CLI_DONE;
    }
    for (int i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(cli_commands[i]->name, arguments[0]) == 0) {
            cli_help(cli_commands[i]);
            return CLI_DONE;
        }
    }
    if (cli_help_about(arguments[0])) {
        return CLI_DONE;
    }
    find_command(arguments[0], true);
    return CLI_MISUSED;
}

static int dispatch(int count, char **arguments)
{
    if (count == 0) {
        cli_overview(stderr, cli_commands);
        return CLI_MISUSED;
    }
    const char *word = arguments[0];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("thiele %s\n", thiele_version());
        return CLI_DONE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        return help(count - 1, arguments + 1);
    }
    const cli_command *command = find_command(word, false);
    return command != NULL ? run_command(command, count - 1, arguments + 1) : CLI_MISUSED;
}

static void notice_exit(void)
{
    if (!finished) {
        fputs("thiele: the likelihood's plug-in ended the program: nothing was saved\n", stderr);
        _exit(CLI_FAILED);
    }
}

int main(int argc, char **argv)
{
    atexit(notice_exit);
    keep_standard_streams();
    (void)cli_running(); /* from here on */
    /* Whoever reads our output may stop at any time: then we end too, without a word, even if the caller ignores it. */
    signal(SIGPIPE, SIG_DFL);
    /* A file that grows beyond its limit is a write that fails, with a sentence and the old file in its place. */
    signal(SIGXFSZ, SIG_IGN);
    int result = cli_fit_options_make() ? dispatch(argc > 0 ? argc - 1 : 0, argv + 1) : cli_fail("out of memory");
    result = result == CLI_DONE ? cli_flush() : result;
    finished = true;
    cli_fit_options_clear();
    return result;
}

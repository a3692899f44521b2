/*
 * What the commands share. A command is a row of a table: its name, its options and a function. Options are rows too:
 * each says where in the settings its value goes, and most go straight into an option struct of the library.
 */
#ifndef CLI_H
#define CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <thiele/thiele.h>

#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Exit statuses. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSED = 2 };

typedef struct cli_command cli_command;

/* A NULL stands behind the last operand. */
enum { CLI_OPERANDS = 4097 };

/* Everything a command line can say. */
typedef struct cli_settings {
    const cli_command *command;
    thiele_context *ctx;
    thiele_context_options context;
    thiele_ranks ranks; /* processes that mpirun began with this one */
    thiele_table_options table;
    thiele_fit_options fit;
    thiele_predict_options predict;
    thiele_feed_options feed;
    thiele_update_options update;
    int stream;         /* --stream */
    int64_t warm;       /* --warm */
    const char *output; /* -o */
    const char *joint;
    const char *log;      /* --log */
    FILE *log_stream;     /* open while a fit runs */
    double reading_until; /* while a table is opened: when that must end, in seconds of cli_running; 0: never */
    bool late;            /* it did not */
    int folds;
    int64_t rows;
    int64_t simulations; /* --sbc */
    int json, quiet, help;
    int markdown, man, man_cv;
    int past;          /* flags that no longer do anything */
    const char *which; /* --target, of commands that look at a model */
    struct {
        const char *over, *at, *range;
    } plot;
    const char *operand[CLI_OPERANDS + 1];
    int operands;
    const char **given;      /* lists so far, of each option of a fit; NULL: none */
    struct cli_owned *owned; /* what values allocated, freed by cli_settings_clear */
} cli_settings;

/* --- options.c: reading the command line -------------------------------------------------------------------------- */

typedef struct cli_option cli_option;
/* Reads a value into the settings; false after it has said what is wrong with it. */
typedef bool (*cli_parse_fn)(cli_settings *settings, const cli_option *option, const char *text);

struct cli_option {
    const char *name;   /* without dashes; NULL ends a list */
    char letter;        /* -o; 0: none */
    cli_parse_fn parse; /* NULL: a flag, which sets an int to 1 */
    size_t offset;      /* of its place in cli_settings */
    const char *value;  /* what help calls the value; for a choice, its words: "auto|yes|no" */
    const char *help;
    double min, max; /* of a number; both 0: any */
};

typedef struct cli_group {
    const char *title; /* NULL ends a list */
    const cli_option *options;
} cli_group;

/* Among the groups of a command: all options of a fit, in groups of their own (fit_options.c). */
#define CLI_FIT_GROUPS                                                                                                 \
    {                                                                                                                  \
        "", NULL                                                                                                       \
    }

struct cli_command {
    const char *name, *usage, *summary, *about;
    const char *operand[2]; /* names of the operands, all required but for the last `optional` ones */
    int optional;
    const char *repeated; /* the operand that comes as often as you like; NULL: none does */
    int many;             /* operands in all, at most, where one is repeated */
    const cli_group *groups;
    const char *without; /* of the groups of CLI_FIT_GROUPS: one that it has no use for */
    const char *examples;
    int (*run)(cli_settings *settings);
};

#define CLI_AT(field) offsetof(cli_settings, field)

bool cli_parse_text(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_list(cli_settings *settings, const cli_option *option, const char *text); /* appends after a comma */
bool cli_parse_int(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_int64(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_seed(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_real(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_choice(cli_settings *settings, const cli_option *option, const char *text); /* the index, as an int */
bool cli_parse_device(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_size(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_delimiter(cli_settings *settings, const cli_option *option, const char *text);
bool cli_parse_quantiles(cli_settings *settings, const cli_option *option, const char *text);
/* An option of a fit, or (text NULL) a flag of one. */
bool cli_parse_fit(cli_settings *settings, const cli_option *option, const char *text);
/* As an int64, but 0 is kept as -1, the library's word for "none": its 0 asks for the default. */
bool cli_parse_or_none(cli_settings *settings, const cli_option *option, const char *text);

/* Reads arguments (without the names of program and command) and checks the number of operands. */
bool cli_parse(cli_settings *settings, const cli_command *command, int count, char **arguments);
void cli_settings_clear(cli_settings *settings);
/* Memory that cli_settings_clear frees; NULL after a sentence. */
void *cli_own(cli_settings *settings, size_t bytes);
/* The index-th group of a command, those of a fit among them; NULL after the last. */
const cli_group *cli_group_at(const cli_command *command, int index);
/* Whether a command has the options of a fit. */
bool cli_takes_fit_options(const cli_command *command);
/* Whether any command has an option of this name, with underscores for dashes. */
bool cli_has_option(const char *name, size_t length);
/* Keeps in *guess (NULL at first) the candidate nearest to a misspelt word, as long as one is near. */
void cli_guess(const char **guess, const char *word, const char *candidate);

/* --- help.c ------------------------------------------------------------------------------------------------------- */

void cli_help(const cli_command *command);
/* More about a group of options or one option, by its name; false: there is none. */
bool cli_help_about(const char *word);
/* As cli_guess, over what cli_help_about knows. */
void cli_guess_topic(const char **guess, const char *word);
void cli_overview(FILE *stream, const cli_command *const *commands);
/* The help of all options of a fit. */
void cli_print_fit_options(void);

/* --- marked.c --------------------------------------------------------------------------------------------------------
 */

typedef enum cli_medium { CLI_PLAIN, CLI_MARKDOWN, CLI_ROFF } cli_medium;
/* A text of the library's table of options, in which `name` is an option and `=word` a word that one takes. */
void cli_put_marked(FILE *stream, const char *text, cli_medium medium);

/* --- groups.c: options that several commands share -----------------------------------------------------------------
 */

extern const cli_option cli_table_options[], cli_machine_options[], cli_learning_options[], cli_output_options[],
    cli_own_options[], cli_log_options[], cli_stream_options[];

/* --- fit_options.c: those of a fit, from the library's table ---------------------------------------------------------
 */

/* Called once, at the beginning; false: out of memory. */
bool cli_fit_options_make(void);
void cli_fit_options_clear(void);
int cli_fit_groups(void);
const cli_group *cli_fit_group(int index);
/* What the library knows of an option or a group of them; NULL: it is none of a fit. */
const thiele_option *cli_fit_option(const cli_option *option);
const thiele_option_group *cli_fit_group_facts(const cli_group *group);
/* An option by another of its names, also one that no longer does anything; NULL: there is none. */
const cli_option *cli_fit_alias(const char *name, size_t length);
/* The whole help of an option: its meaning, words and default. Returns buffer. */
enum { CLI_HELP_MAX = 2048 };
const char *cli_option_help(const cli_option *option, char buffer[CLI_HELP_MAX]);

/* --- messages.c --------------------------------------------------------------------------------------------------- */

/* One sentence on standard error; both return the exit status that goes with it. */
int cli_fail(const char *format, ...) CLI_PRINTF(1, 2);
int cli_misuse(const char *format, ...) CLI_PRINTF(1, 2);
/* The exit status for a result of the library, after printing the context's sentence about it. */
int cli_finish(cli_settings *settings, thiele_status status);
/* The context's log sink. */
void cli_log(thiele_log_level level, const char *line, void *user);

#define CLI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != THIELE_OK) {                                                                                     \
            goto out;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* --- ranks.c: several processes ------------------------------------------------------------------------------------
 */

/* Finds them; CLI_DONE, or the exit status after a sentence. */
int cli_open_ranks(cli_settings *settings);
/* The last call of a process: `result` other than CLI_DONE ends all of them. Returns it. */
int cli_close_ranks(cli_settings *settings, int result);
/* Before a sentence of cli_finish. */
void cli_wait_for_first(const cli_settings *settings);

/* --- progress.c: signals and the progress line ---------------------------------------------------------------------
 */

/* Called by the library now and then; its result is non-zero once a signal has asked for the end. */
int cli_progress(const thiele_progress *progress, void *user);
void cli_progress_clear(void);
/*
 * From here on the first SIGINT, SIGTERM or SIGHUP asks long work to stop; a second one ends the process. A file that
 * grows beyond its limit (SIGXFSZ) asks too, and its write fails.
 */
void cli_catch_signals(void);
/* "Ctrl-C", "SIGTERM", ..., or NULL when there was no signal. */
const char *cli_signal(void);
double cli_seconds(void);
/* Seconds since the process began. */
double cli_running(void);
/* "4.2 s", "3 min 20 s", "2 h 5 min" */
void cli_duration(double seconds, char *buffer, size_t capacity);

/* --- files.c: where output goes ------------------------------------------------------------------------------------
 */

/*
 * Checks before the work that `path` can be written after it and is none of the inputs (NULL-terminated, "-" and absent
 * files are skipped). Returns CLI_DONE, or the exit status after a sentence.
 */
int cli_check_output(const char *path, const char *const *inputs);
/* Whether what was given as the likelihood of a model can be one; says so when not. */
int cli_check_plugin(const cli_settings *settings);
/* A model, with its likelihood attached where the user gave one. */
thiele_status cli_load_model(thiele_model **model, cli_settings *settings, const char *path);
/*
 * Opens the table of a command, of one file or several: from here on signals are caught, and a deadline counts while
 * the table is read.
 */
thiele_status cli_open_tables(thiele_table **table, cli_settings *settings, const char *const *path, int count);
/* The same for a model: missing values are written as they were in training unless --missing says otherwise. */
thiele_status cli_open_like_training(thiele_table **table, cli_settings *settings, const thiele_model *model,
                                     const char *const *path, int count);
/* Output that appears whole or not at all, on a path or (NULL or "-") on standard output. */
typedef struct cli_file {
    FILE *stream; /* write here */
    const char *path;
    char *temporary; /* what it is called before it takes its place */
    bool named;      /* it is there by that name */
} cli_file;
int cli_file_begin(cli_file *file, const char *path);
int cli_file_commit(cli_file *file);
void cli_file_abandon(cli_file *file);
/* Waits until nobody else updates the model at path, and keeps others waiting until the unlock. */
typedef struct cli_lock_file {
    int descriptor;
    char *name;
} cli_lock_file;
int cli_lock(cli_lock_file *lock, const char *path);
void cli_unlock(cli_lock_file *lock);
/* Flushes standard output. The last thing a run does. */
int cli_flush(void);
/* The training log, where one is asked for; it must not be the file that the result goes to. */
int cli_open_log(cli_settings *settings, const char *output);
/* The exit status: `result`, or a failure when the log could not be written. */
int cli_close_log(cli_settings *settings, int result);

/* --- stream.c: learning from rows that arrive ------------------------------------------------------------------------
 */

thiele_status cli_open_feed(thiele_feed **feed, cli_settings *settings, const char *path);
/* The first rows as one table; NULL when a signal or the deadline came first. */
thiele_status cli_wait_for_rows(thiele_feed *feed, cli_settings *settings, int64_t rows, thiele_table **table);
/* Learns from a feed or (feed NULL) a table, saves the model whatever ends it, and prints what came of it. */
int cli_learn(cli_settings *settings, const thiele_model *model, thiele_feed *feed, const thiele_table *table,
              const char *output);

/* --- output.c: numbers, scores and JSON -----------------------------------------------------------------------------
 */

/* Values at depth `inline_from` and deeper are written on one line. */
typedef struct cli_json {
    FILE *stream;
    int depth, inline_from;
    bool started; /* the innermost object or array has a member */
} cli_json;
/* key is NULL inside arrays and at the top. */
void cli_json_open(cli_json *json, const char *key, char bracket);
void cli_json_close(cli_json *json, char bracket);
void cli_json_text(cli_json *json, const char *key, const char *text);
void cli_json_integer(cli_json *json, const char *key, int64_t value);
/* The shortest text that reads back the same; null when it is not finite. */
void cli_json_number(cli_json *json, const char *key, double value);
/* Text that is JSON already. */
void cli_json_raw(cli_json *json, const char *key, const char *text);
/* Rows by label and guess of a model of classes, as thiele_model_confusion gives them; rows NULL: there are none. */
typedef struct cli_confusion {
    const thiele_model *model;
    int64_t *rows;
} cli_confusion;
/* confusion.c */
void cli_print_confusion(const cli_confusion *confusion);
void cli_json_confusion(cli_json *json, const cli_confusion *confusion);

void cli_json_scores(cli_json *json, const char *key, const thiele_scores *scores);
/* The same of a model that was calibrated by so many rows (0: it was not), with the confusion of its labels. */
void cli_json_model_scores(cli_json *json, const char *key, const thiele_scores *scores, int64_t by,
                           const cli_confusion *confusion);

enum { CLI_NUMBER_MAX = 32 };
/* Five significant digits, "-" for NaN; returns buffer. */
char *cli_short(double value, char buffer[CLI_NUMBER_MAX]);
/* The shortest text that reads back the same. */
char *cli_exact(double value, char buffer[CLI_NUMBER_MAX]);
/* "label       text", the label only when it is not NULL. */
/*
 * Text for people, in which control characters (names from files may hold any) are written as \xNN and options, which
 * the library puts between backquotes, with dashes.
 */
void cli_put(FILE *stream, const char *text);
void cli_put_format(FILE *stream, const char *format, va_list arguments) CLI_PRINTF(2, 0);
/* A JSON document, in whose strings control characters are escapes. */
void cli_put_json(FILE *stream, const char *text);
void cli_row(const char *label, const char *format, ...) CLI_PRINTF(2, 3);
void cli_print_scores(const thiele_scores *scores);
/* Models beside each other, under their names. */
void cli_print_comparisons(int count, const char *const *name, const thiele_comparison *each);
void cli_json_comparison(cli_json *json, const char *name, const thiele_comparison *comparison);
/* A line for each of count + 1 scores: the folds and, last, all together. */
void cli_print_folds(const thiele_scores *each, int count, const thiele_scores *overall);

/* --- report.c: a model's description (JSON) for people ---------------------------------------------------------------
 */

int cli_report(const char *description);

/* How rows are scored. */
extern const cli_option cli_score_options[];
extern const cli_command cmd_fit, cmd_update, cmd_predict, cmd_score, cmd_compare, cmd_sums, cmd_combine, cmd_cv,
    cmd_info, cmd_plot, cmd_report, cmd_check, cmd_devices, cmd_examples, cmd_generate, cmd_options, cmd_completion;
/* All of them, to a NULL. */
extern const cli_command *const cli_commands[];

#endif

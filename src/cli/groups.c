/* Options that several commands share, beside those of a fit (fit_options.c). */
#include <stddef.h>

#include "cli.h"

const cli_option cli_stream_options[] = {
    {"follow", 0, NULL, CLI_AT(feed.follow), NULL,
     "DATA is a growing CSV file: wait for more rows until Ctrl-C, SIGTERM or the deadline", 0, 0},
    {"forget", 0, cli_parse_real, CLI_AT(update.forget), "ROWS",
     "roughly how many of the last rows count; older ones fade (default: all count)", 1, 1e15},
    {"half-life", 0, cli_parse_real, CLI_AT(update.half_life), "TIME",
     "after this time what was learned counts half as much, by --time and in its units: days for dates (default: time "
     "takes nothing away)",
     1e-300, 1e300},
    {"time", 0, cli_parse_text, CLI_AT(update.time), "COLUMN",
     "the rows' times, as numbers or dates; the column is not an input unless --inputs names it", 0, 0},
    {"freeze", 0, NULL, CLI_AT(update.freeze), NULL,
     "kernel, likelihood and inducing inputs stay as they were fitted (default: they are learned too)", 0, 0},
    {"window", 0, cli_parse_int64, CLI_AT(update.window), "ROWS",
     "number of rows behind the recent errors (default: 10000)", 1, 1e15},
    {"skip-bad", 0, NULL, CLI_AT(update.skip_bad), NULL,
     "leave out and count rows that cannot be used (default: stop and save what was learned)", 0, 0},
    {0},
};

const cli_option cli_log_options[] = {
    {"log", 0, cli_parse_text, CLI_AT(log), "FILE", "write a line of JSON for every evaluation or step", 0, 0},
    {0},
};

const cli_option cli_table_options[] = {
    {"missing", 0, cli_parse_list, CLI_AT(table.missing), "TOKENS",
     "texts that mean 'no value', besides the empty field, NA, NaN, nan and null", 0, 0},
    {"header", 0, cli_parse_choice, CLI_AT(table.header), "auto|yes|no",
     "whether the first row has column names (default: auto: unless it is all numbers)", 0, 0},
    {"delimiter", 0, cli_parse_delimiter, CLI_AT(table.delimiter), "CHAR",
     "between fields; 'tab' for a tab (default: comma, semicolon or tab, as found)", 0, 0},
    {"dataset", 0, cli_parse_text, CLI_AT(table.dataset), "PATH", "dataset or group in an HDF5 file", 0, 0},
    {0},
};

/* Of every command that computes, and of those that learn. */
#define MACHINE_OPTIONS                                                                                                \
    {"threads",                                                                                                        \
     0,                                                                                                                \
     cli_parse_int,                                                                                                    \
     CLI_AT(context.threads),                                                                                          \
     "N",                                                                                                              \
     "default: one per processor; results do not depend on it",                                                        \
     0,                                                                                                                \
     1024},                                                                                                            \
        {"seed", 0, cli_parse_seed, CLI_AT(context.seed), "N", "for every random draw (default: 0)", 0, 0},            \
    {                                                                                                                  \
        "memory", 0, cli_parse_size, CLI_AT(context.memory_limit), "SIZE",                                             \
            "most memory to use, such as 4G (default: nine tenths of the machine's)", 0, 0                             \
    }

const cli_option cli_machine_options[] = {
    MACHINE_OPTIONS,
    {0},
};

const cli_option cli_learning_options[] = {
    MACHINE_OPTIONS,
    {"device", 0, cli_parse_device, CLI_AT(context.device), "auto|cpu|cuda[:N]",
     "where large matrices are computed; see 'thiele devices' (default: auto: a card where it is faster)", 0, 0},
    {0},
};

const cli_option cli_own_options[] = {
    {"likelihood", 0, cli_parse_text, CLI_AT(fit.model.likelihood), "plugin:FILE.so",
     "the likelihood of a model that was fitted with your own", 0, 0},
    {0},
};

const cli_option cli_output_options[] = {
    {"json", 0, NULL, CLI_AT(json), NULL, "JSON for programs, in full precision", 0, 0},
    {"quiet", 0, NULL, CLI_AT(quiet), NULL, "no progress line and no warnings", 0, 0},
    {0},
};

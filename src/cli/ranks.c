/*
 * Commands that mpirun began several times (include/thiele/ranks.h): the first process speaks and writes for all. The
 * others are silent, and say what went wrong with them alone if the first has not said it before.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* What no process does: the first one says so, and they end each by itself. */
static int refuse(cli_settings *settings, const char *format, const char *name)
{
    int result = settings->ranks.rank == 0 ? cli_misuse(format, name) : CLI_MISUSED;
    thiele_ranks_close(&settings->ranks, 0);
    return result;
}

int cli_open_ranks(cli_settings *settings)
{
    char why[512];
    if (thiele_ranks_open(&settings->ranks, why, sizeof why) != THIELE_OK) {
        return cli_fail("%s", why);
    }
    bool alone = settings->ranks.count == 1, first = settings->ranks.rank == 0;
    if (!alone && settings->command != &cmd_fit) {
        return refuse(settings, "%s works in one process: leave mpirun out", settings->command->name);
    }
    if (!alone && settings->stream) {
        return refuse(settings, "%s --stream reads rows once, in one process: leave mpirun out",
                      settings->command->name);
    }
    if (!first) {
        settings->quiet = 1;
        settings->log = NULL;
        settings->fit.result.snapshot = 0.0;
        if (freopen("/dev/null", "w", stdout) == NULL) {
            return CLI_FAILED;
        }
    }
    settings->context.ranks = alone ? NULL : &settings->ranks;
    return CLI_DONE;
}

int cli_close_ranks(cli_settings *settings, int result)
{
    thiele_ranks_close(&settings->ranks, result);
    return result;
}

/* Most that goes wrong does so in all processes, and the first one, which ends the others, says it. */
void cli_wait_for_first(const cli_settings *settings)
{
    enum { SECONDS = 5 };
    if (settings->ranks.rank > 0) {
        sleep(SECONDS);
        fprintf(stderr, "process %d of %d: ", settings->ranks.rank + 1, settings->ranks.count);
    }
}

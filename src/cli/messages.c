/* Sentences on standard error. Standard output stays free for results. */
#include <stdarg.h>
#include <string.h>

#include "cli.h"

static void say(const char *kind, const char *format, va_list arguments)
{
    cli_progress_clear();
    fprintf(stderr, "thiele: %s", kind);
    cli_put_format(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
    return CLI_MISUSED;
}

static void warn(const char *format, ...) CLI_PRINTF(1, 2);
static void warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("warning: ", format, arguments);
    va_end(arguments);
}

int cli_finish(cli_settings *settings, thiele_status status)
{
    cli_progress_clear();
    if (status == THIELE_OK) {
        return CLI_DONE;
    }
    if (status == THIELE_ERROR_CANCELLED && cli_signal() != NULL) {
        return cli_fail("stopped by %s before there was a result: nothing was saved", cli_signal());
    }
    if (status == THIELE_ERROR_CANCELLED && settings->late) {
        return cli_fail(
            "the deadline came while the table was being read: nothing was saved (allow more with --deadline, or "
            "give fewer rows)");
    }
    cli_wait_for_first(settings);
    const char *sentence = thiele_context_message(settings->ctx);
    bool own = strcmp(sentence, thiele_status_meaning(THIELE_OK)) == 0; /* it was not the library that failed */
    cli_fail("%s", own ? thiele_status_meaning(status) : sentence);
    return status == THIELE_ERROR_ARGUMENT ? CLI_MISUSED : CLI_FAILED;
}

/* Each fold of a cross-validation finds the same in the table: it is said once. */
static bool was_said(const char *line)
{
    enum { KEPT = 64 };
    static uint64_t said[KEPT];
    static int count;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const unsigned char *c = (const unsigned char *)line; *c != '\0'; c++) {
        hash = (hash ^ *c) * UINT64_C(1099511628211);
    }
    for (int i = 0; i < count; i++) {
        if (said[i] == hash) {
            return true;
        }
    }
    if (count < KEPT) {
        said[count++] = hash;
    }
    return false;
}

void cli_log(thiele_log_level level, const char *line, void *user)
{
    const cli_settings *settings = user;
    if (level == THIELE_LOG_WARNING && !settings->quiet && !was_said(line)) {
        warn("%s", line);
    }
}

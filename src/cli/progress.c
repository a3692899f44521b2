/*
 * Signals and the progress line. The first SIGINT, SIGTERM or SIGHUP only sets a flag, which the library's next
 * progress call hands on, so that the best model so far can be saved; it also restores the defaults, so that a second
 * one ends the process. The line is drawn on standard error, when that is a terminal, at most ten times a second.
 */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t signal_seen;

/* The line on the terminal now. */
static struct {
    int length;
    double drawn;
} line;

/* Signals that ask for the end, and what they are called. */
static const struct {
    int number;
    bool once; /* a second one ends the process; else it comes with every write that fails */
    const char *name;
} signals[] = {
    {SIGINT, true, "Ctrl-C"},
    {SIGTERM, true, "SIGTERM"},
    {SIGHUP, true, "SIGHUP"},
    {SIGXFSZ, false, "the limit on the size of files"},
};
enum { SIGNALS = sizeof signals / sizeof *signals };
static volatile sig_atomic_t caught[SIGNALS];

static void handle_signal(int number)
{
    signal_seen = number;
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].once && caught[i]) {
            signal(signals[i].number, SIG_DFL);
        }
    }
}

/* A signal that was ignored from the start (nohup, a shell's background job) stays so; main ignores those of files. */
void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART}, old;
    for (int i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i].number, NULL, &old) == 0 && (old.sa_handler != SIG_IGN || !signals[i].once)) {
            caught[i] = sigaction(signals[i].number, &action, NULL) == 0;
        }
    }
}

const char *cli_signal(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].number == signal_seen) {
            return signals[i].name;
        }
    }
    return NULL;
}

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cli_running(void)
{
    static double began;
    double now = cli_seconds();
    began = began == 0.0 ? now : began;
    return now - began;
}

void cli_duration(double seconds, char *buffer, size_t capacity)
{
    double whole = round(seconds);
    if (seconds < 9.95) {
        snprintf(buffer, capacity, "%.1f s", seconds);
    } else if (whole < 60) {
        snprintf(buffer, capacity, "%.0f s", whole);
    } else if (whole < 3600) {
        snprintf(buffer, capacity, "%.0f min %.0f s", floor(whole / 60), fmod(whole, 60));
    } else {
        snprintf(buffer, capacity, "%.0f h %.0f min", floor(whole / 3600), floor(fmod(whole, 3600) / 60));
    }
}

void cli_progress_clear(void)
{
    if (line.length > 0) {
        fprintf(stderr, "\r%*s\r", line.length, "");
        line.length = 0;
    }
}

/* Of rows that arrive the error is of predictions made before they were learned. */
static bool is_stream(const thiele_progress *progress)
{
    return strcmp(progress->phase, "stream") == 0;
}

static void describe(const thiele_progress *progress, char *text, size_t capacity)
{
    char duration[32];
    /* How long the exploration takes is not known before it is over, and the fit is still to come. */
    bool foreseen = strcmp(progress->phase, "explore") != 0;
    int used = snprintf(text, capacity, "%s  %lld", progress->phase, (long long)progress->done);
    if (progress->total > 0 && foreseen) {
        used += snprintf(text + used, capacity - (size_t)used, " of up to %lld", (long long)progress->total);
    }
    if (isfinite(progress->value)) {
        char number[CLI_NUMBER_MAX];
        used += snprintf(text + used, capacity - (size_t)used, "  value %s (model units)",
                         cli_short(progress->value, number));
    }
    if (isfinite(progress->held_out)) {
        char number[CLI_NUMBER_MAX];
        used += snprintf(text + used, capacity - (size_t)used, "  %s %s",
                         is_stream(progress) ? "prequential error" : "held-out RMSE",
                         cli_short(progress->held_out, number));
    }
    if (isfinite(progress->rows_per_second)) {
        char number[CLI_NUMBER_MAX];
        used +=
            snprintf(text + used, capacity - (size_t)used, "  %s rows/s", cli_short(progress->rows_per_second, number));
    }
    cli_duration(progress->seconds, duration, sizeof duration);
    used += snprintf(text + used, capacity - (size_t)used, "  %s", duration);
    if (isfinite(progress->seconds_left) && foreseen) {
        cli_duration(progress->seconds_left, duration, sizeof duration);
        snprintf(text + used, capacity - (size_t)used, ", up to about %s left", duration);
    }
}

static void draw(const thiele_progress *progress)
{
    enum { WIDE = 240 };
    char text[512];
    struct winsize window;
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1 : 79;
    thiele_progress shown = *progress;
    char phase[64];
    snprintf(phase, sizeof phase, "%s", progress->phase);
    shown.phase = phase;
    describe(&shown, text, sizeof text);
    int length = (int)strlen(text);
    length = length < width ? length : width;
    length = length < WIDE ? length : WIDE;
    fprintf(stderr, "\r%.*s%*s", length, text, line.length > length ? line.length - length : 0, "");
    line.length = length;
}

/* One line of JSON for each step. */
static void log_step(FILE *stream, const thiele_progress *p)
{
    cli_json json = {.stream = stream, .inline_from = 1};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "phase", p->phase);
    cli_json_integer(&json, "step", p->done);
    cli_json_number(&json, "seconds", p->seconds);
    cli_json_number(&json, "value", p->value);
    cli_json_number(&json, "expected", p->expected);
    cli_json_number(&json, "divergence", p->divergence);
    cli_json_number(&json, "step_size", p->step);
    cli_json_number(&json, "rows_per_second", p->rows_per_second);
    cli_json_number(&json, is_stream(p) ? "prequential_error" : "held_out_rmse", p->held_out);
    cli_json_close(&json, '}');
}

/* Whether a table is being opened and the deadline for that has passed. */
static bool is_late(const cli_settings *settings)
{
    return settings->reading_until > 0.0 && cli_running() >= settings->reading_until;
}

int cli_progress(const thiele_progress *progress, void *user)
{
    cli_settings *settings = user;
    settings->late = settings->late || is_late(settings);
    if (settings->log_stream != NULL) {
        log_step(settings->log_stream, progress);
    }
    if (!settings->quiet && isatty(STDERR_FILENO)) {
        double now = cli_seconds();
        if (line.length == 0 || now - line.drawn > 0.1) {
            draw(progress);
            line.drawn = now;
        }
    }
    return signal_seen != 0 || settings->late;
}

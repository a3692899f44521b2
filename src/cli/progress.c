/*
 * Signals and the progress line. The first SIGINT, SIGTERM or SIGHUP only sets a flag, which the library's next
 * progress call hands on, so that the best model so far can be saved; it also restores the defaults, so that a second
 * one ends the process. The line is drawn on standard error, when that is a terminal, at most ten times a second.
 */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
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

/* What a phase is about, for somebody who does not know its name. */
static const char *meaning(const char *phase)
{
    static const struct {
        const char *phase, *meaning;
    } phases[] = {
        {"read", "reading the table"},
        {"explore", "looking for a good start"},
        {"starts", "comparing starts"},
        {"rate", "trying step lengths"},
        {"basis", "choosing inducing inputs"},
        {"partition", "cutting the rows into blocks"},
        {"warm", "learning from some rows"},
        {"learn", "learning"},
        {"fit", "learning"},
        {"blocks", "learning, block by block"},
        {"steps", "learning"},
        {"sweeps", "learning"},
        {"end", "last steps"},
        {"burn-in", "first draws, not kept"},
        {"sample", "drawing"},
        {"predict", "predicting"},
        {"check", "simulating"},
        {"stream", "rows learned"},
    };
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (strcmp(phases[i].phase, phase) == 0) {
            return phases[i].meaning;
        }
    }
    return phase;
}

/* A total from NO_BOUND on says nothing before a hundredth of it is done: a fit that only a deadline ends has one. */
enum { LINE_MAX_WIDTH = 240, NO_BOUND = 100000 };

/* Adds a piece to the line if it fits; those that matter most come first. */
static void add_piece(char *text, int width, const char *format, ...) CLI_PRINTF(3, 4);
static void add_piece(char *text, int width, const char *format, ...)
{
    char piece[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (strlen(text) + strlen(piece) <= (size_t)width) {
        strcat(text, piece);
    }
}

/* At most `width` characters into text, which has LINE_MAX_WIDTH + 1: the time left goes before what is nice to know.
 */
static void describe(const thiele_progress *progress, char *text, int width)
{
    char number[CLI_NUMBER_MAX], duration[32];
    /* How long the exploration takes is not known before it is over, and the fit is still to come. */
    bool foreseen = strcmp(progress->phase, "explore") != 0;
    *text = '\0';
    add_piece(text, width, "%s: %lld", meaning(progress->phase), (long long)progress->done);
    bool bounded = progress->total > 0 && (progress->total < NO_BOUND || 100 * progress->done > progress->total);
    if (bounded && foreseen) {
        add_piece(text, width, " of up to %lld", (long long)progress->total);
    }
    cli_duration(progress->seconds, duration, sizeof duration);
    add_piece(text, width, ", %s", duration);
    if (progress->seconds_left >= 0.5 && foreseen) { /* not where it is NaN */
        cli_duration(progress->seconds_left, duration, sizeof duration);
        add_piece(text, width, ", up to about %s left", duration);
    }
    if (isfinite(progress->held_out)) {
        add_piece(text, width, is_stream(progress) ? ", error before learning %s" : ", error on held-out rows %s",
                  cli_short(progress->held_out, number));
    }
    if (isfinite(progress->rows_per_second)) {
        add_piece(text, width, ", %.0f rows/s", progress->rows_per_second);
    }
    if (isfinite(progress->value)) {
        add_piece(text, width, ", objective %s (rising)", cli_short(progress->value, number));
    }
}

static void draw(const thiele_progress *progress)
{
    char text[LINE_MAX_WIDTH + 1];
    struct winsize window;
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1 : 79;
    describe(progress, text, width < LINE_MAX_WIDTH ? width : LINE_MAX_WIDTH);
    int length = (int)strlen(text);
    fprintf(stderr, "\r%s%*s", text, line.length > length ? line.length - length : 0, "");
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

/* A child process, a pipe from it, and its end. */
#include "likelihood/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FOUND = 256 };

/* Never returns. Signals end the child as if nobody had asked for them, and leave no core file. */
static void live(thi_child_fn fn, const void *arg, size_t size, int to_parent)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        signal(deadly[i], SIG_DFL);
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    char found[MOST_FOUND] = {0};
    fn(arg, found);
    _exit(write(to_parent, found, size) == (ssize_t)size ? 0 : 1);
}

/* True when the child's finding came before its time was up. */
static bool receive(int from_child, double seconds, void *finding, size_t size, bool *late)
{
    double end = thi_seconds() + seconds;
    struct pollfd wait = {.fd = from_child, .events = POLLIN};
    int ready;
    do {
        double left = end - thi_seconds();
        ready = poll(&wait, 1, left > 0 ? (int)(left * 1000.0) + 1 : 0);
    } while (ready < 0 && errno == EINTR);
    *late = ready == 0;
    return ready > 0 && read(from_child, finding, size) == (ssize_t)size;
}

/* Waits for the child's end, and makes one when its time is up: it may have closed its pipe and gone on. */
static int reap(pid_t pid, double seconds, bool *late)
{
    int ended = 0;
    double end = thi_seconds() + seconds;
    pid_t done;
    while ((done = waitpid(pid, &ended, WNOHANG)) == 0 && thi_seconds() < end) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    if (done == 0) {
        *late = true;
        kill(pid, SIGKILL);
        while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
        }
    }
    return ended;
}

static const char *signal_words(int number)
{
    static const struct {
        int number;
        const char *words;
    } known[] = {{SIGSEGV, "a segmentation fault (memory that is not its own)"},
                 {SIGBUS, "a bus error"},
                 {SIGFPE, "an arithmetic error (such as an integer divided by zero)"},
                 {SIGILL, "an illegal instruction"},
                 {SIGABRT, "an abort"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].number == number) {
            return known[i].words;
        }
    }
    return "a signal";
}

static thi_fate tell(int ended, bool late, double seconds, char *words, size_t length)
{
    if (late) {
        snprintf(words, length, "did not return within %g seconds", seconds);
        return THI_CHILD_LATE;
    }
    if (WIFSIGNALED(ended)) {
        snprintf(words, length, "crashed with %s (signal %d)", signal_words(WTERMSIG(ended)), WTERMSIG(ended));
        return THI_CHILD_CRASHED;
    }
    snprintf(words, length, "ended the process");
    return THI_CHILD_LEFT;
}

thiele_status thi_child_run(thiele_context *ctx, thi_child_fn fn, const void *arg, void *finding, size_t size,
                            double seconds, thi_fate *fate, char *words, size_t length)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "a pipe to a child process could not be made: %s", strerror(errno));
    }
    fflush(NULL); /* a child that calls exit() must not write our buffers once more */
    pid_t pid = fork();
    if (pid < 0) {
        int why = errno;
        close(ends[0]);
        close(ends[1]);
        return thi_fail(ctx, THIELE_ERROR_IO, "a child process could not be started: %s", strerror(why));
    }
    if (pid == 0) {
        close(ends[0]);
        live(fn, arg, size < MOST_FOUND ? size : MOST_FOUND, ends[1]);
    }
    close(ends[1]);
    bool late, told = receive(ends[0], seconds, finding, size, &late);
    int ended = reap(pid, late ? 0.0 : seconds, &late);
    close(ends[0]);
    *fate = told ? THI_CHILD_RETURNED : tell(ended, late, seconds, words, length);
    return THIELE_OK;
}

/*
 * Likelihoods from shared libraries, and a first try of any likelihood in a child process: a density that crashes or
 * hangs takes only the child with it, and the parent says what happened.
 */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "likelihood/likelihood.h"

/* --- loading ---------------------------------------------------------------------------------------------------------
 */

/* "mine.so(rate~2)" is the path "./mine.so" and the arguments "(rate~2)". */
static thiele_status split_path(thiele_context *ctx, const char *text, char **path, const char **arguments)
{
    size_t length = strlen(text);
    *arguments = text + length;
    if (length > 0 && text[length - 1] == ')' && strrchr(text, '(') != NULL) {
        *arguments = strrchr(text, '(');
    }
    if (*arguments == text) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a plug-in is named by the path of its file");
    }
    thi_text whole;
    thi_text_init(&whole, ctx);
    thi_text_add(&whole, "%s", memchr(text, '/', (size_t)(*arguments - text)) == NULL ? "./" : "");
    thi_text_add_bytes(&whole, text, (size_t)(*arguments - text));
    return thi_text_take(&whole, path);
}

static thiele_status open_library(thiele_context *ctx, const char *path, void **library,
                                  const thiele_likelihood_spec **spec)
{
    if (access(path, R_OK) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "plug-in '%.300s': %s", path, strerror(errno));
    }
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL) {
        const char *why = dlerror();
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.200s' cannot be loaded: %.400s", path,
                        why != NULL ? why : "no reason given");
    }
    thiele_likelihood_plugin_fn plugin = NULL;
    *(void **)&plugin = dlsym(*library, THIELE_LIKELIHOOD_PLUGIN_SYMBOL);
    if (plugin == NULL) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.300s' has no function '%s': it is not a likelihood", path,
                        THIELE_LIKELIHOOD_PLUGIN_SYMBOL);
    }
    *spec = plugin();
    return *spec != NULL ? THIELE_OK
                         : thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.300s' gives no likelihood (NULL)", path);
}

thiele_status thiele_likelihood_load(thiele_likelihood **out, thiele_context *ctx, const char *path)
{
    *out = NULL;
    char *file = NULL;
    const char *arguments;
    void *library = NULL;
    const thiele_likelihood_spec *spec = NULL;
    thiele_likelihood *lik = NULL;
    thiele_status status;
    THI_TRY(split_path(ctx, path, &file, &arguments));
    THI_TRY(open_library(ctx, file, &library, &spec));
    status = thiele_likelihood_custom(&lik, ctx, spec);
    if (status != THIELE_OK) {
        thi_fail_in(ctx, status, "plug-in '%.300s'", file);
        goto out;
    }
    lik->library = library;
    library = NULL;
    THI_TRY(thi_likelihood_arguments(lik, ctx, arguments));
    *out = lik;
    lik = NULL;
out:
    thiele_likelihood_destroy(lik);
    if (library != NULL) {
        dlclose(library);
    }
    thi_free(file);
    return status;
}

/* --- trying out ------------------------------------------------------------------------------------------------------
 */

/* What the child tells the parent: the first thing that is wrong, if any. */
typedef enum verdict { FINE, BAD_DENSITY, BAD_MOMENT } verdict;
typedef struct finding {
    verdict verdict;
    int64_t row;
    double f, value;
} finding;

typedef struct trial {
    const thiele_likelihood *lik;
    int64_t n;
    const double *y;
    double seconds;              /* that the child has */
    double *f, *mean, *variance; /* work space, made before the child is */
} trial;

/* All latents at one value. */
static finding try_row(const trial *t, int64_t row, double f)
{
    const thi_likelihood_ops *ops = t->lik->ops;
    const double *y = t->y + row * t->lik->outputs;
    for (int q = 0; q < t->lik->latents; q++) {
        t->f[q] = f;
    }
    double value;
    ops->log_density(t->lik, 1, y, t->f, &value);
    if (isnan(value) || value == INFINITY) {
        return (finding){BAD_DENSITY, row, f, value};
    }
    if (ops->conditional != NULL) {
        ops->conditional(t->lik, 1, t->f, t->mean, t->variance);
        for (int p = 0; p < t->lik->outputs; p++) {
            if (isnan(t->mean[p]) || isnan(t->variance[p]) || t->variance[p] < 0) {
                return (finding){BAD_MOMENT, row, f, isnan(t->mean[p]) ? t->mean[p] : t->variance[p]};
            }
        }
    }
    return (finding){FINE, row, f, value};
}

static finding try_all(const trial *t)
{
    static const double at[] = {0, 0.5, -0.5, 2, -2, 10, -10, 50, -50};
    for (int64_t row = 0; row < t->n; row++) {
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            finding found = try_row(t, row, at[i]);
            if (found.verdict != FINE) {
                return found;
            }
        }
    }
    return (finding){FINE, 0, 0, 0};
}

/* Never returns. Signals end the child as if nobody had asked for them, and leave no core file. */
static void child(const trial *t, int to_parent)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        signal(deadly[i], SIG_DFL);
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    finding found = try_all(t);
    ssize_t written = write(to_parent, &found, sizeof found);
    _exit(written == (ssize_t)sizeof found ? 0 : 1);
}

/* True when the child's finding came before its time was up. */
static bool receive(int from_child, double seconds, finding *found, bool *late)
{
    double end = thi_seconds() + seconds;
    struct pollfd wait = {.fd = from_child, .events = POLLIN};
    int ready;
    do {
        double left = end - thi_seconds();
        ready = poll(&wait, 1, left > 0 ? (int)(left * 1000.0) + 1 : 0);
    } while (ready < 0 && errno == EINTR);
    *late = ready == 0;
    return ready > 0 && read(from_child, found, sizeof *found) == (ssize_t)sizeof *found;
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

static thiele_status report(const trial *t, thiele_context *ctx, const finding *found)
{
    if (found->verdict == FINE) {
        return THIELE_OK;
    }
    const char *what = found->verdict == BAD_DENSITY ? "log_density" : "moments";
    char value[THI_NUMBER_MAX];
    thi_format_number(value, found->value);
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "likelihood '%.100s': its %s gave %s for y = %g (row %lld) and f = %g; log densities are finite or "
                    "minus infinity, moments are numbers",
                    thiele_likelihood_name(t->lik), what, isnan(found->value) ? "NaN" : value,
                    t->y[found->row * t->lik->outputs], (long long)found->row + 1, found->f);
}

static thiele_status report_end(const trial *t, thiele_context *ctx, int ended, bool late)
{
    const char *name = thiele_likelihood_name(t->lik);
    if (late) {
        return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                        "likelihood '%.100s': its functions did not return within %g seconds", name, t->seconds);
    }
    if (WIFSIGNALED(ended)) {
        return thi_fail(ctx, THIELE_ERROR_NUMERIC, "likelihood '%.100s': its functions crashed with %s (signal %d)",
                        name, signal_words(WTERMSIG(ended)), WTERMSIG(ended));
    }
    return thi_fail(ctx, THIELE_ERROR_NUMERIC, "likelihood '%.100s': its functions ended the process", name);
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

static thiele_status run(const trial *t, thiele_context *ctx)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "no pipe to a child process could be made: %s", strerror(errno));
    }
    fflush(NULL); /* a child that calls exit() must not write our buffers once more */
    pid_t pid = fork();
    if (pid < 0) {
        int why = errno;
        close(ends[0]);
        close(ends[1]);
        return thi_fail(ctx, THIELE_ERROR_IO, "no child process could be started: %s", strerror(why));
    }
    if (pid == 0) {
        close(ends[0]);
        child(t, ends[1]);
    }
    close(ends[1]);
    finding found;
    bool late;
    bool told = receive(ends[0], t->seconds, &found, &late);
    int ended = reap(pid, late ? 0.0 : t->seconds, &late);
    close(ends[0]);
    return told ? report(t, ctx, &found) : report_end(t, ctx, ended, late);
}

thiele_status thi_likelihood_try(const thiele_likelihood *lik, thiele_context *ctx, int64_t n, const double *y,
                                 double seconds)
{
    trial t = {.lik = lik, .n = n, .y = y, .seconds = seconds};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &t.f, (size_t)lik->latents, sizeof *t.f));
    THI_TRY(thi_alloc(ctx, &t.mean, (size_t)lik->outputs, sizeof *t.mean));
    THI_TRY(thi_alloc(ctx, &t.variance, (size_t)lik->outputs, sizeof *t.variance));
    THI_TRY(run(&t, ctx));
out:
    thi_free(t.f);
    thi_free(t.mean);
    thi_free(t.variance);
    return status;
}

/* A few hundred evaluations are a matter of microseconds: ten seconds are enough for any density. */
thiele_status thiele_likelihood_try(const thiele_likelihood *likelihood, thiele_context *ctx, int64_t n,
                                    const double *y)
{
    return thi_likelihood_try(likelihood, ctx, n, y, 10.0);
}

/*
 * A table in a process of its own, for readers that a damaged file can crash or keep busy for ever: the child opens
 * the file and hands rows over a socket; whatever becomes of it, the parent has a sentence. The child has its own
 * state of the reader's library, so no thread of the program meets another inside it. It lives as long as the table,
 * ends when its socket does, may hold as much memory as the context, and spend SECONDS of the processor on a request.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "data/data.h"

/* Numbers in one answer at most (1 MB), between which the parent looks up; seconds; bytes of all names. */
enum { PIECE = 1 << 17, SECONDS = 30, NAMES_MAX = 1 << 30 };

typedef struct request {
    int64_t first, count;
    int columns; /* their numbers follow */
} request;

/* Behind it: the names, each with its zero byte; the numbers; or the message. */
typedef struct answer {
    thiele_status status;
    int64_t rows, columns;
    size_t bytes;
} answer;

typedef struct apart_table {
    thiele_table base;
    thi_table_open_fn *open;
    const char *path;
    const thiele_table_options *options;
    int socket;
    pid_t child; /* 0: none */
} apart_table;

/* --- the child --------------------------------------------------------------------------------------------------- */

static bool receive(int socket, void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        ssize_t got = read(socket, at, size);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool hand_over(int socket, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return false;
        }
        at += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool hand_failure(int socket, const thiele_context *ctx, thiele_status status)
{
    answer a = {.status = status, .bytes = strlen(ctx->message)};
    return hand_over(socket, &a, sizeof a) && hand_over(socket, ctx->message, a.bytes);
}

static void limit_time(void)
{
    struct timespec used;
    struct rlimit limit;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 && getrlimit(RLIMIT_CPU, &limit) == 0) {
        rlim_t until = (rlim_t)used.tv_sec + SECONDS;
        limit.rlim_cur = until < limit.rlim_max ? until : limit.rlim_max;
        setrlimit(RLIMIT_CPU, &limit);
    }
}

/* What the process holds now, from the program that it was made from, and what the context may still take. */
static void limit_memory(const thiele_context *ctx)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    bool known = file != NULL && fscanf(file, "%*s %*s %*s %*s %*s %llu", &pages) == 1;
    size_t left = thi_memory_limit(ctx) - thi_memory_held(ctx);
    if (file != NULL) {
        fclose(file);
    }
    rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + left;
#if defined(__SANITIZE_ADDRESS__)
    known = false; /* its shadow memory would count */
#endif
    if (known && most > left) {
        setrlimit(RLIMIT_DATA, &(struct rlimit){most, most});
    }
}

/* A signal to the whole group is for the parent to answer; what crashes ends without a word and a core file. */
static void become_child(const thiele_context *ctx, int null)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        signal(ignored[i], SIG_IGN);
    }
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        signal(deadly[i], SIG_DFL);
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    limit_memory(ctx);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
}

/* All that the program had open: a pipe whose other end waits for its end must not wait for us. */
static void close_others(const char *path, int socket, int null)
{
    struct stat table, info;
    DIR *folder = stat(path, &table) == 0 ? opendir("/proc/self/fd") : NULL;
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int file = atoi(entry->d_name);
        bool own = file > STDERR_FILENO && file != socket && file != dirfd(folder) && fstat(file, &info) == 0 &&
                   (info.st_dev != table.st_dev || info.st_ino != table.st_ino);
        if (own) {
            close(file);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    dup2(null, STDIN_FILENO);
}

static bool hand_table(int socket, thiele_context *ctx, const thiele_table *table)
{
    answer a = {.status = THIELE_OK, .rows = table->rows, .columns = table->columns};
    for (int c = 0; c < table->columns; c++) {
        a.bytes += strlen(table->name[c]) + 1;
    }
    if (a.bytes > NAMES_MAX) {
        return hand_failure(socket, ctx,
                            thi_fail(ctx, THIELE_ERROR_LIMIT, "%s: its names are too long", table->source));
    }
    bool fine = hand_over(socket, &a, sizeof a);
    for (int c = 0; c < table->columns && fine; c++) {
        fine = hand_over(socket, table->name[c], strlen(table->name[c]) + 1);
    }
    return fine;
}

/* What the child works in: for so many columns of a request, which may name one of them twice. */
typedef struct desk {
    size_t columns;
    int *column;
    double *value;
} desk;

static thiele_status make_room(desk *d, thiele_context *ctx, size_t columns)
{
    if (columns <= d->columns) {
        return THIELE_OK;
    }
    thiele_status status = thi_grow(ctx, &d->column, columns, sizeof *d->column);
    if (status == THIELE_OK) {
        status = thi_grow(ctx, &d->value, columns > PIECE ? columns : PIECE, sizeof *d->value);
    }
    d->columns = status == THIELE_OK ? columns : 0;
    return status;
}

/* Answers one request; false: there are no more. */
static bool serve(int socket, thiele_context *ctx, const thiele_table *table, desk *d)
{
    request q;
    if (!receive(socket, &q, sizeof q) || make_room(d, ctx, (size_t)q.columns) != THIELE_OK ||
        !receive(socket, d->column, (size_t)q.columns * sizeof *d->column)) {
        return false;
    }
    limit_time();
    thiele_status status = table->ops->numbers(table, ctx, q.first, q.count, d->column, q.columns, d->value);
    if (status != THIELE_OK) {
        return hand_failure(socket, ctx, status);
    }
    answer a = {.status = THIELE_OK, .bytes = (size_t)q.count * (size_t)q.columns * sizeof *d->value};
    return hand_over(socket, &a, sizeof a) && hand_over(socket, d->value, a.bytes);
}

/* Never returns. */
static void live(const apart_table *apart, thiele_context *ctx, int socket)
{
    thiele_table *table = NULL;
    desk d = {0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ctx->log = NULL;
    ctx->progress = NULL;
    become_child(ctx, null);
    limit_time();
    thiele_status status = apart->open(&table, ctx, apart->path, apart->options);
    close_others(apart->path, socket, null);
    if (status == THIELE_OK) {
        status = make_room(&d, ctx, (size_t)table->columns);
    }
    bool more = status == THIELE_OK ? hand_table(socket, ctx, table) : hand_failure(socket, ctx, status) && false;
    while (more) {
        more = serve(socket, ctx, table, &d);
    }
    _exit(0);
}

/* --- the parent -------------------------------------------------------------------------------------------------- */

/* Ends the child and says how it ended by itself, if it did. */
static thiele_status bury(apart_table *apart, thiele_context *ctx)
{
    enum { MOMENT = 100 }; /* milliseconds: the socket of a child that crashed is closed before it has quite ended */
    int ended = 0;
    pid_t done = 0;
    for (int i = 0; i < MOMENT && done == 0; i++) {
        done = waitpid(apart->child, &ended, WNOHANG);
        if (done == 0) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    if (done == 0) {
        kill(apart->child, SIGKILL);
        waitpid(apart->child, &ended, 0);
    }
    apart->child = 0;
    bool crashed = done > 0 && WIFSIGNALED(ended);
    if (crashed && WTERMSIG(ended) == SIGXCPU) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT,
                        "%s cannot be read: its library did not finish within %d seconds; the "
                        "file is damaged",
                        apart->path, SECONDS);
    }
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s cannot be read: its library %s on it; the file is damaged",
                    apart->path, crashed ? "crashed" : "gave up");
}

/* As receive, looking up meanwhile. */
static thiele_status await(apart_table *apart, thiele_context *ctx, void *data, size_t size)
{
    enum { PATIENCE = 50 }; /* milliseconds */
    char *at = data;
    while (size > 0) {
        struct pollfd watched = {.fd = apart->socket, .events = POLLIN};
        int ready = poll(&watched, 1, PATIENCE);
        thiele_status status = thi_look_up(ctx, 0, 0);
        if (status != THIELE_OK) {
            return status;
        }
        ssize_t got = ready > 0 ? recv(apart->socket, at, size, MSG_DONTWAIT) : 1;
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
            return bury(apart, ctx);
        }
        got = ready > 0 && got > 0 ? got : 0;
        at += got;
        size -= (size_t)got;
    }
    return THIELE_OK;
}

/* The answer, and its message where it is one. A child that is not in step any more is of no use. */
static thiele_status await_answer(apart_table *apart, thiele_context *ctx, answer *a)
{
    char message[THI_MESSAGE_MAX];
    thiele_status status = await(apart, ctx, a, sizeof *a);
    if (status != THIELE_OK || a->status == THIELE_OK) {
        return status;
    }
    if (a->bytes >= sizeof message) {
        return bury(apart, ctx);
    }
    status = await(apart, ctx, message, a->bytes);
    message[a->bytes] = '\0';
    return status != THIELE_OK ? status : thi_fail(ctx, a->status, "%s", message);
}

static thiele_status ask(apart_table *apart, thiele_context *ctx, request q, const int *column, double *out)
{
    answer a;
    size_t bytes = (size_t)q.count * (size_t)q.columns * sizeof *out;
    if (apart->child == 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "%s can no longer be read", apart->base.source);
    }
    if (!hand_over(apart->socket, &q, sizeof q) ||
        !hand_over(apart->socket, column, (size_t)q.columns * sizeof *column)) {
        return bury(apart, ctx);
    }
    thiele_status status = await_answer(apart, ctx, &a);
    if (status == THIELE_OK) {
        status = a.bytes == bytes ? await(apart, ctx, out, bytes) : bury(apart, ctx);
    }
    if (status == THIELE_ERROR_CANCELLED && apart->child != 0) {
        /* Its answer would be taken for that to the next question. */
        kill(apart->child, SIGKILL);
        waitpid(apart->child, NULL, 0);
        apart->child = 0;
    }
    return status;
}

static thiele_status apart_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                   const int *column, int columns, double *out)
{
    apart_table *apart = (apart_table *)(uintptr_t)table; /* which child there is, is no part of the table */
    int64_t step = columns < PIECE ? PIECE / (columns > 0 ? columns : 1) : 1;
    thiele_status status = THIELE_OK;
    for (int64_t at = 0; at < count && columns > 0 && status == THIELE_OK; at += step) {
        request q = {first + at, count - at < step ? count - at : step, columns};
        status = ask(apart, ctx, q, column, out + at * columns);
    }
    return status;
}

static void apart_destroy(thiele_table *table)
{
    apart_table *apart = (apart_table *)table;
    if (apart->child > 0) {
        kill(apart->child, SIGKILL);
        while (waitpid(apart->child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (apart->socket >= 0) {
        close(apart->socket);
    }
    thi_table_clear(table);
    thi_free(apart);
}

static const thi_table_ops apart_ops = {.numbers = apart_numbers, .destroy = apart_destroy};

static thiele_status start(apart_table *apart, thiele_context *ctx)
{
    int ends[2] = {-1, -1};
    pid_t child = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? fork() : -1;
    if (child == 0) {
        close(ends[0]);
        live(apart, ctx, ends[1]);
    }
    int reason = errno;
    apart->socket = ends[0];
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    if (child < 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "%s is read in a separate process, and none could be started: %s",
                        apart->path, strerror(reason));
    }
    apart->child = child;
    return THIELE_OK;
}

static thiele_status take_names(thiele_table *table, thiele_context *ctx, const char *text, size_t length)
{
    const char *at = text;
    thiele_status status = THIELE_OK;
    for (int c = 0; c < table->columns && status == THIELE_OK; c++) {
        status = thi_strdup(ctx, &table->name[c], at < text + length ? at : "");
        at += at < text + length ? strlen(at) + 1 : 0;
    }
    return status;
}

static thiele_status introduce(apart_table *apart, thiele_context *ctx)
{
    answer a;
    char *text = NULL;
    thiele_status status;
    THI_TRY(await_answer(apart, ctx, &a));
    if (a.bytes < (size_t)a.columns || a.bytes > NAMES_MAX) {
        THI_TRY(bury(apart, ctx));
    }
    THI_TRY(thi_alloc(ctx, &text, a.bytes + 1, 1));
    THI_TRY(await(apart, ctx, text, a.bytes));
    THI_TRY(thi_table_init(&apart->base, ctx, apart->path, a.rows, a.columns));
    THI_TRY(take_names(&apart->base, ctx, text, a.bytes));
out:
    thi_free(text);
    return status;
}

thiele_status thi_table_open_apart(thiele_table **out, thiele_context *ctx, const char *path,
                                   const thiele_table_options *options, thi_table_open_fn *open_table)
{
    apart_table *apart;
    *out = NULL;
    thiele_status status = thi_alloc(ctx, &apart, 1, sizeof *apart);
    if (status != THIELE_OK) {
        return status;
    }
    apart->base.ops = &apart_ops;
    apart->open = open_table;
    apart->path = path;
    apart->options = options;
    apart->socket = -1;
    THI_TRY(start(apart, ctx));
    THI_TRY(introduce(apart, ctx));
    apart->path = apart->base.source;
    *out = &apart->base;
    return THIELE_OK;
out:
    thiele_table_destroy(&apart->base);
    return status;
}

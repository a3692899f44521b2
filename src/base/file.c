/*
 * Files that appear whole or not at all, and the sentences for when they can't. The bytes go to a file without a name
 * (O_TMPFILE) where the system has such, which is gone with the process; it gets a name beside the old file right
 * before it takes that one's place. A name that a killed process left is known by its form, and by nobody holding its
 * lock: the next one who writes the same file clears it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

/* Temporaries are called base.PID-N.tmp: so much of base, and so much after it. */
enum { BASE_MAX = 200, SUFFIX_MAX = 48 };

thiele_status thi_file_failed(thi_file *file, thiele_context *ctx)
{
    int reason = errno;
    const char *name = file->path != NULL ? file->path : "standard output";
    thiele_status kind = reason == ENOMEM ? THIELE_ERROR_MEMORY : THIELE_ERROR_IO;
    thiele_status status =
        thi_fail(ctx, kind, "cannot write %s: %s%s", name, reason == ENOMEM ? "out of memory" : strerror(reason),
                 reason == ENOSPC ? " (free some space or write elsewhere with -o)" : "");
    thi_file_abandon(file);
    return status;
}

/* A device or a pipe takes bytes as they come: there is nothing to rename. */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* Where the file's name begins in its path. */
static size_t base_at(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* The folder of the file, opened; -1 and errno when that fails. */
static int open_folder(const thi_file *file)
{
    size_t at = base_at(file->path);
    char *folder = at > 0 ? strndup(file->path, at) : strdup(".");
    int descriptor = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int reason = folder != NULL ? errno : ENOMEM;
    free(folder);
    errno = reason;
    return descriptor;
}

static bool skip_digits(const char **text)
{
    const char *start = *text;
    while (isdigit((unsigned char)**text)) {
        (*text)++;
    }
    return *text > start;
}

/* Whether `name` is one that open_named or give_name make for this base. */
static bool is_temporary(const char *name, const char *base)
{
    size_t length = strnlen(base, BASE_MAX);
    if (strncmp(name, base, length) != 0 || name[length] != '.') {
        return false;
    }
    name += length + 1;
    return skip_digits(&name) && *name++ == '-' && skip_digits(&name) && strcmp(name, ".tmp") == 0;
}

/* Removes what killed processes left of earlier writes of this file: a living one holds the lock of its own. */
static void clear_left_over(int folder, const char *base)
{
    int copy = dup(folder);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    if (list == NULL) {
        close(copy);
        return;
    }
    for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (!is_temporary(entry->d_name, base)) {
            continue;
        }
        int left = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (left >= 0 && flock(left, LOCK_EX | LOCK_NB) == 0) {
            unlinkat(folder, entry->d_name, 0);
        }
        if (left >= 0) {
            close(left);
        }
    }
    closedir(list);
}

static void make_name(thi_file *file, int n)
{
    size_t at = base_at(file->path);
    int length = (int)(at + strnlen(file->path + at, BASE_MAX));
    snprintf(file->temporary, strlen(file->path) + SUFFIX_MAX, "%.*s.%ld-%d.tmp", length, file->path, (long)getpid(),
             n);
}

enum { TRIES = 1000 };

/* A new file with a name, locked; -1 and errno when that fails. */
static int open_named(thi_file *file)
{
    for (int n = 0; n < TRIES; n++) {
        struct stat info;
        make_name(file, n);
        int descriptor = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST) {
            break;
        }
        /* Between the two calls another process may take it for left over: then the next name. */
        if (descriptor >= 0 && (flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno == ENOTSUP || errno == ENOLCK) &&
            fstat(descriptor, &info) == 0 && info.st_nlink > 0) {
            file->named = true;
            return descriptor;
        }
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    return -1;
}

/* A new file without a name that can be given one later; -1 when the system or the file's folder has no such. */
static int open_nameless(const thi_file *file)
{
    char link[64];
    size_t at = base_at(file->path);
    char *folder = at > 0 ? strndup(file->path, at) : strdup(".");
    int descriptor = folder != NULL ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
    free(folder);
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (descriptor >= 0 && (access(link, F_OK) != 0 || flock(descriptor, LOCK_EX | LOCK_NB) != 0)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* Names a file that has none, locked as it is. */
static bool give_name(thi_file *file)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file->stream));
    for (int n = 0; n < TRIES && !file->named; n++) {
        make_name(file, n);
        file->named = linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) == 0;
        if (!file->named && errno != EEXIST) {
            return false;
        }
    }
    return file->named;
}

static thiele_status open_temporary(thi_file *file, thiele_context *ctx)
{
    struct stat old;
    bool replaces = stat(file->path, &old) == 0;
    if (replaces && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return thi_file_failed(file, ctx);
    }
    thiele_status status = thi_alloc(ctx, &file->temporary, strlen(file->path) + SUFFIX_MAX, 1);
    if (status != THIELE_OK) {
        thi_file_abandon(file);
        return status;
    }
    /* A folder that may be written but not read is neither cleared nor synced. */
    file->folder = open_folder(file);
    if (file->folder < 0 && errno != EACCES) {
        return thi_file_failed(file, ctx);
    }
    if (file->folder >= 0) {
        clear_left_over(file->folder, file->path + base_at(file->path));
    }
    int descriptor = open_nameless(file);
    descriptor = descriptor >= 0 ? descriptor : open_named(file);
    file->stream = descriptor >= 0 ? fdopen(descriptor, "w+b") : NULL;
    if (file->stream == NULL) {
        int reason = errno;
        close(descriptor);
        errno = reason;
        return thi_file_failed(file, ctx);
    }
    return replaces && fchmod(descriptor, old.st_mode & 07777) != 0 ? thi_file_failed(file, ctx) : THIELE_OK;
}

thiele_status thi_file_begin(thi_file *file, thiele_context *ctx, const char *path)
{
    *file = (thi_file){.folder = -1};
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
        return THIELE_OK;
    }
    /* A link is followed: what it points to is replaced, not the link. */
    char *resolved = realpath(path, NULL);
    bool out_of_memory = resolved == NULL && errno == ENOMEM;
    thiele_status status = thi_strdup(ctx, &file->path, resolved != NULL ? resolved : path);
    free(resolved);
    if (status != THIELE_OK) {
        return status;
    }
    if (out_of_memory) {
        errno = ENOMEM;
        return thi_file_failed(file, ctx);
    }
    if (is_special(path)) {
        file->stream = fopen(path, "wb");
        return file->stream != NULL ? THIELE_OK : thi_file_failed(file, ctx);
    }
    return open_temporary(file, ctx);
}

bool thi_stamp_take(thi_stamp *stamp, int descriptor)
{
    struct stat info;
    bool known = fstat(descriptor, &info) == 0;
    *stamp = known ? (thi_stamp){.device = info.st_dev,
                                 .inode = info.st_ino,
                                 .size = info.st_size,
                                 .seconds = info.st_mtim.tv_sec,
                                 .nanoseconds = info.st_mtim.tv_nsec}
                   : (thi_stamp){0};
    return known;
}

static bool same_stamp(const thi_stamp *a, const thi_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->seconds == b->seconds &&
           a->nanoseconds == b->nanoseconds;
}

/*
 * Opens and locks the file that is to be replaced, so that of two who know the same one only the first replaces it; -1
 * when there is none. *as_known: it is the one that the stamp is of.
 */
static int lock_old(const thi_file *file, bool *as_known)
{
    thi_stamp before = {0}, after = {0};
    int old = open(file->path, O_RDONLY | O_CLOEXEC);
    *as_known = true;
    if (old >= 0) {
        (void)flock(old, LOCK_EX);
        int now = open(file->path, O_RDONLY | O_CLOEXEC);
        *as_known = thi_stamp_take(&before, old) && same_stamp(&before, file->stamp) && now >= 0 &&
                    thi_stamp_take(&after, now) && same_stamp(&after, &before);
        close(now);
    }
    return old;
}

static thiele_status replaced_meanwhile(thi_file *file, thiele_context *ctx)
{
    thiele_status status = thi_fail(ctx, THIELE_ERROR_IO,
                                    "%s was replaced by another program after it was read, and was left alone: "
                                    "try again, or write elsewhere with -o",
                                    file->path);
    thi_file_abandon(file);
    return status;
}

/* The file takes its place, and the folder knows it for good. File systems without synced folders say EINVAL. */
static thiele_status take_place(thi_file *file, thiele_context *ctx)
{
    bool as_known = true;
    if (fsync(fileno(file->stream)) != 0 || (!file->named && !give_name(file))) {
        return thi_file_failed(file, ctx);
    }
    int old = file->stamp != NULL ? lock_old(file, &as_known) : -1;
    bool placed = as_known && rename(file->temporary, file->path) == 0;
    int reason = errno;
    if (old >= 0) {
        close(old);
    }
    if (!as_known) {
        return replaced_meanwhile(file, ctx);
    }
    errno = reason;
    file->named = !placed;
    if (placed && file->stamp != NULL) {
        thi_stamp_take(file->stamp, fileno(file->stream));
    }
    if (!placed || (file->folder >= 0 && fsync(file->folder) != 0 && errno != EINVAL)) {
        return thi_file_failed(file, ctx);
    }
    return THIELE_OK;
}

thiele_status thi_file_commit(thi_file *file, thiele_context *ctx)
{
    if (fflush(file->stream) != 0 || ferror(file->stream)) {
        return thi_file_failed(file, ctx);
    }
    if (file->stream == stdout) {
        file->stream = NULL;
        return THIELE_OK;
    }
    if (file->temporary != NULL) {
        /* Synced and in its place: closing it can't fail any more in a way that matters. */
        thiele_status status = take_place(file, ctx);
        thi_file_abandon(file);
        return status;
    }
    int closed = fclose(file->stream);
    file->stream = NULL;
    if (closed != 0) {
        return thi_file_failed(file, ctx);
    }
    thi_file_abandon(file);
    return THIELE_OK;
}

void thi_file_abandon(thi_file *file)
{
    if (file->named) {
        unlink(file->temporary);
    }
    if (file->stream != NULL && file->stream != stdout) {
        fclose(file->stream);
    }
    if (file->temporary != NULL && file->folder >= 0) {
        close(file->folder);
    }
    thi_free(file->temporary);
    thi_free(file->path);
    *file = (thi_file){0};
}

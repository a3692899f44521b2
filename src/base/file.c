/* Files that appear whole or not at all, and the sentences for when they can't. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

thiele_status thi_file_failed(thi_file *file, thiele_context *ctx)
{
    int reason = errno;
    const char *name = file->path != NULL ? file->path : "standard output";
    thiele_status status = thi_fail(ctx, THIELE_ERROR_IO, "cannot write %s: %s%s", name, strerror(reason),
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

/* Makes and opens a file that did not exist, named path.N for the first free N; -1 and errno when that fails. */
static int open_fresh(thi_file *file, const char *path)
{
    enum { TRIES = 10000 };
    size_t room = strlen(path) + 16;
    for (int n = 0; n < TRIES; n++) {
        snprintf(file->temporary, room, "%s.%d", path, n);
        int descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

static thiele_status open_temporary(thi_file *file, thiele_context *ctx, const char *path)
{
    struct stat old;
    bool replaces = stat(path, &old) == 0;
    if (replaces && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return thi_file_failed(file, ctx);
    }
    thiele_status status = thi_alloc(ctx, &file->temporary, strlen(path) + 16, 1);
    if (status != THIELE_OK) {
        thi_file_abandon(file);
        return status;
    }
    int descriptor = open_fresh(file, path);
    if (descriptor < 0) {
        int reason = errno;
        thi_free(file->temporary);
        file->temporary = NULL;
        errno = reason;
        return thi_file_failed(file, ctx);
    }
    file->stream = fdopen(descriptor, "wb");
    if (file->stream == NULL) {
        int reason = errno;
        close(descriptor);
        errno = reason;
        return thi_file_failed(file, ctx);
    }
    if (replaces && fchmod(descriptor, old.st_mode & 07777) != 0) {
        return thi_file_failed(file, ctx);
    }
    return THIELE_OK;
}

thiele_status thi_file_begin(thi_file *file, thiele_context *ctx, const char *path)
{
    *file = (thi_file){0};
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
        return THIELE_OK;
    }
    /* A link is followed: what it points to is replaced, not the link. */
    char *resolved = realpath(path, NULL);
    thiele_status status = thi_strdup(ctx, &file->path, resolved != NULL ? resolved : path);
    free(resolved);
    if (status != THIELE_OK) {
        return status;
    }
    if (is_special(path)) {
        file->stream = fopen(path, "wb");
        return file->stream != NULL ? THIELE_OK : thi_file_failed(file, ctx);
    }
    return open_temporary(file, ctx, file->path);
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
    if (file->temporary != NULL && fsync(fileno(file->stream)) != 0) {
        return thi_file_failed(file, ctx);
    }
    int closed = fclose(file->stream);
    file->stream = NULL;
    if (closed != 0 || (file->temporary != NULL && rename(file->temporary, file->path) != 0)) {
        return thi_file_failed(file, ctx);
    }
    thi_free(file->temporary);
    file->temporary = NULL;
    thi_file_abandon(file);
    return THIELE_OK;
}

void thi_file_abandon(thi_file *file)
{
    if (file->stream != NULL && file->stream != stdout) {
        fclose(file->stream);
    }
    if (file->temporary != NULL) {
        unlink(file->temporary);
    }
    thi_free(file->temporary);
    thi_free(file->path);
    *file = (thi_file){0};
}

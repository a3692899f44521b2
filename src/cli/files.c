/*
 * Where output goes: checks made before the work so that an hour of it is not lost for a misspelt folder, files that
 * appear whole or not at all (without a name in the same folder where there can be such, synced, named, renamed), and
 * the lock of a model that is being updated.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static bool is_standard(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

/* The folder of path, to be freed; NULL when memory is out. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + (slash == path));
}

/* Keeps errno over a call that may change it. */
static void close_kept(int descriptor)
{
    int reason = errno;
    close(descriptor);
    errno = reason;
}

/* A new file without a name in the folder of path, which can be given one; -1 where there is no such. */
static int open_nameless(const char *path)
{
    char link[64];
    char *folder = folder_of(path);
    int descriptor = folder != NULL ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
    free(folder);
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (descriptor >= 0 && access(link, F_OK) != 0) {
        close_kept(descriptor);
        return -1;
    }
    return descriptor;
}

/* Makes a new file beside path, for its temporary name (to be freed) if it needs one now. -1 and errno when it can't.
 */
static int open_beside(cli_file *file)
{
    size_t capacity = strlen(file->path) + 48;
    file->temporary = malloc(capacity);
    if (file->temporary == NULL) {
        return -1;
    }
    /* As the library calls its own, and locked like them: what a killed process left is cleared by the next one. */
    snprintf(file->temporary, capacity, "%s.%ld-0.tmp", file->path, (long)getpid());
    int descriptor = open_nameless(file->path);
    if (descriptor < 0) {
        descriptor = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        file->named = descriptor >= 0;
    }
    if (descriptor >= 0) {
        (void)flock(descriptor, LOCK_EX | LOCK_NB);
    }
    return descriptor;
}

static int check_existing(const char *path, const struct stat *info, const char *const *inputs)
{
    struct stat input;
    if (S_ISDIR(info->st_mode)) {
        return cli_fail("'%s' is a folder: give the name of a file in it", path);
    }
    for (int i = 0; inputs[i] != NULL; i++) {
        bool known = strcmp(inputs[i], "-") != 0 && stat(inputs[i], &input) == 0;
        if (known && input.st_dev == info->st_dev && input.st_ino == info->st_ino && S_ISREG(info->st_mode)) {
            return cli_misuse("writing '%s' would overwrite the input '%s': give another name", path, inputs[i]);
        }
    }
    if (access(path, W_OK) != 0) {
        return cli_fail("'%s' exists and may not be overwritten: give another name", path);
    }
    return CLI_DONE;
}

/* Whether a file can be made in the folder of path, found out by making one. */
static int check_folder(const char *path)
{
    char *folder = folder_of(path);
    cli_file file = {.path = path};
    struct stat info;
    int result = CLI_DONE;
    if (folder == NULL) {
        return cli_fail("out of memory");
    }
    if (stat(folder, &info) != 0) {
        result = cli_fail("cannot write '%s': folder '%s': %s (create it, or write elsewhere)", path, folder,
                          strerror(errno));
    } else if (!S_ISDIR(info.st_mode)) {
        result = cli_fail("cannot write '%s': '%s' is not a folder", path, folder);
    } else {
        int descriptor = open_beside(&file);
        if (descriptor < 0) {
            result = cli_fail("cannot write '%s': no file can be made in folder '%s': %s (write elsewhere)", path,
                              folder, strerror(errno));
        } else {
            close(descriptor);
        }
    }
    cli_file_abandon(&file);
    free(folder);
    return result;
}

int cli_check_output(const char *path, const char *const *inputs)
{
    struct stat info;
    if (is_standard(path)) {
        return CLI_DONE;
    }
    if (stat(path, &info) == 0) {
        int result = check_existing(path, &info, inputs);
        if (result != CLI_DONE || !S_ISREG(info.st_mode)) {
            return result;
        }
    }
    return check_folder(path);
}

static const char plugin[] = "plugin:";

int cli_check_plugin(const cli_settings *settings)
{
    const char *text = settings->fit.model.likelihood;
    return text == NULL || strncmp(text, plugin, strlen(plugin)) == 0
               ? CLI_DONE
               : cli_misuse("--likelihood takes only plugin:FILE.so here: built-in ones are in the model");
}

thiele_status cli_load_model(thiele_model **model, cli_settings *settings, const char *path)
{
    const char *text = settings->fit.model.likelihood;
    thiele_likelihood *likelihood = NULL;
    thiele_status status;
    CLI_TRY(thiele_model_load(model, settings->ctx, path));
    if (text == NULL) {
        return THIELE_OK;
    }
    CLI_TRY(thiele_likelihood_load(&likelihood, settings->ctx, text + strlen(plugin)));
    CLI_TRY(thiele_model_attach(*model, settings->ctx, likelihood));
out:
    thiele_likelihood_destroy(likelihood);
    return status;
}

thiele_status cli_open_tables(thiele_table **table, cli_settings *settings, const char *const *path, int count)
{
    cli_catch_signals();
    settings->reading_until =
        settings->fit.stopping.deadline > 0.0 ? settings->fit.stopping.deadline : settings->update.deadline;
    thiele_status status = thiele_table_open_files(table, settings->ctx, path, count, &settings->table);
    settings->reading_until = 0.0;
    return status;
}

thiele_status cli_open_like_training(thiele_table **table, cli_settings *settings, const thiele_model *model,
                                     const char *const *path, int count)
{
    if (settings->table.missing == NULL) {
        settings->table.missing = thiele_model_missing(model);
    }
    return cli_open_tables(table, settings, path, count);
}

static int write_failed(cli_file *file)
{
    int reason = errno;
    cli_file_abandon(file);
    return cli_fail("cannot write %s: %s%s", is_standard(file->path) ? "standard output" : file->path, strerror(reason),
                    reason == ENOSPC ? " (free some space or write elsewhere)" : "");
}

int cli_file_begin(cli_file *file, const char *path)
{
    struct stat info;
    *file = (cli_file){.path = path};
    if (is_standard(path)) {
        file->stream = tmpfile();
        return file->stream != NULL ? CLI_DONE : cli_fail("cannot make a temporary file: %s", strerror(errno));
    }
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        file->stream = fopen(path, "wb");
        return file->stream != NULL ? CLI_DONE : write_failed(file);
    }
    int descriptor = open_beside(file);
    file->stream = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (file->stream == NULL) {
        close_kept(descriptor);
        return write_failed(file);
    }
    return CLI_DONE;
}

static bool copy_to_stdout(FILE *stream)
{
    char buffer[65536];
    size_t count;
    rewind(stream);
    while ((count = fread(buffer, 1, sizeof buffer, stream)) > 0) {
        if (fwrite(buffer, 1, count, stdout) != count) {
            return false;
        }
    }
    return !ferror(stream) && fflush(stdout) == 0;
}

/* The folder knows the new file for good; one that may not be read, or can't be synced, does when it does. */
static bool sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int descriptor = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool synced = descriptor >= 0 ? fsync(descriptor) == 0 || errno == EINVAL : errno == EACCES;
    close_kept(descriptor);
    free(folder);
    return synced;
}

static bool take_place(cli_file *file)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file->stream));
    if (fsync(fileno(file->stream)) != 0) {
        return false;
    }
    file->named = file->named || linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) == 0;
    if (!file->named || rename(file->temporary, file->path) != 0) {
        return false;
    }
    file->named = false;
    return sync_folder(file->path);
}

int cli_file_commit(cli_file *file)
{
    bool good = fflush(file->stream) == 0 && !ferror(file->stream);
    if (good && is_standard(file->path)) {
        good = copy_to_stdout(file->stream);
    }
    if (good && file->temporary != NULL) {
        good = take_place(file);
    }
    if (!good) {
        return write_failed(file);
    }
    bool matters = file->temporary == NULL && !is_standard(file->path);
    int closed = fclose(file->stream);
    file->stream = NULL;
    if (matters && closed != 0) {
        return write_failed(file);
    }
    cli_file_abandon(file);
    return CLI_DONE;
}

void cli_file_abandon(cli_file *file)
{
    if (file->named) {
        unlink(file->temporary);
        file->named = false;
    }
    if (file->stream != NULL) {
        fclose(file->stream);
        file->stream = NULL;
    }
    free(file->temporary);
    file->temporary = NULL;
}

int cli_open_log(cli_settings *settings, const char *output)
{
    if (settings->log == NULL) {
        return CLI_DONE;
    }
    const char *const kept[] = {output, NULL};
    int result = cli_check_output(settings->log, settings->operand);
    result = result == CLI_DONE ? cli_check_output(settings->log, kept) : result;
    if (result == CLI_DONE && (settings->log_stream = fopen(settings->log, "w")) == NULL) {
        result = cli_fail("cannot write %s: %s", settings->log, strerror(errno));
    }
    return result;
}

int cli_close_log(cli_settings *settings, int result)
{
    FILE *stream = settings->log_stream;
    settings->log_stream = NULL;
    bool unwritten = stream != NULL && ferror(stream) != 0;
    if (stream != NULL && (fclose(stream) != 0 || unwritten) && result == CLI_DONE) {
        result = cli_fail("cannot write %s: %s", settings->log, strerror(errno));
    }
    return result;
}

int cli_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return CLI_DONE;
    }
    return cli_fail("cannot write standard output: %s", strerror(errno));
}

/* --- updates of one model, one after the other --- */

/* Opens the lock's file and takes it, as long as it is still there: who had it before has removed it. */
static int try_lock(const char *name)
{
    struct stat opened, there;
    int descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        return -1;
    }
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        close_kept(descriptor);
        return -1;
    }
    if (fstat(descriptor, &opened) != 0 || stat(name, &there) != 0 || opened.st_ino != there.st_ino ||
        opened.st_dev != there.st_dev) {
        close(descriptor);
        errno = EWOULDBLOCK;
        return -1;
    }
    return descriptor;
}

int cli_lock(cli_lock_file *lock, const char *path)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    char *resolved = realpath(path, NULL);
    size_t capacity = strlen(resolved != NULL ? resolved : path) + sizeof ".lock";
    bool said = false;
    *lock = (cli_lock_file){.descriptor = -1, .name = malloc(capacity)};
    if (lock->name != NULL) {
        snprintf(lock->name, capacity, "%s.lock", resolved != NULL ? resolved : path);
    }
    free(resolved);
    if (lock->name == NULL) {
        return cli_fail("out of memory");
    }
    while ((lock->descriptor = try_lock(lock->name)) < 0) {
        if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS) {
            break; /* a file system without locks: the library still notices a model that was replaced */
        }
        if (errno != EWOULDBLOCK) {
            return cli_fail("cannot lock %s by %s: %s", path, lock->name, strerror(errno));
        }
        if (!said) {
            fprintf(stderr, "thiele: waiting for another update of %s to end\n", path);
            said = true;
        }
        nanosleep(&pause, NULL);
    }
    return CLI_DONE;
}

void cli_unlock(cli_lock_file *lock)
{
    if (lock->descriptor >= 0) {
        unlink(lock->name);
        close(lock->descriptor);
    }
    free(lock->name);
    *lock = (cli_lock_file){.descriptor = -1};
}

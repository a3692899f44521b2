/*
 * Where output goes: checks made before the work so that an hour of it is not lost for a misspelt folder, and files
 * that appear whole or not at all (a temporary name in the same folder, synced, renamed).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static bool is_standard(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

/* Makes a new file beside path; *name (to be freed) is what it is called. -1 and errno when it can't. */
static int open_beside(const char *path, char **name)
{
    size_t capacity = strlen(path) + 32;
    *name = malloc(capacity);
    if (*name == NULL) {
        return -1;
    }
    snprintf(*name, capacity, "%s.tmp%ld", path, (long)getpid());
    int descriptor = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        int reason = errno;
        free(*name);
        *name = NULL;
        errno = reason;
    }
    return descriptor;
}

static int check_existing(const char *path, const struct stat *info, const char *const *inputs)
{
    struct stat input;
    if (S_ISDIR(info->st_mode)) {
        return cli_fail("'%s' is a folder: give the name of a file to write in it", path);
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
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + (slash == path));
    char *name = NULL;
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
        int descriptor = open_beside(path, &name);
        if (descriptor < 0) {
            result = cli_fail("cannot write '%s': no file can be made in folder '%s': %s (write elsewhere)", path,
                              folder, strerror(errno));
        } else {
            close(descriptor);
            unlink(name);
        }
    }
    free(name);
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
    const char *text = settings->fit.likelihood;
    return text == NULL || strncmp(text, plugin, strlen(plugin)) == 0
               ? CLI_DONE
               : cli_misuse("--likelihood takes plugin:FILE.so here: built-in ones are in the model");
}

thiele_status cli_load_model(thiele_model **model, cli_settings *settings, const char *path)
{
    const char *text = settings->fit.likelihood;
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

thiele_status cli_open_like_training(thiele_table **table, cli_settings *settings, const thiele_model *model,
                                     const char *path)
{
    if (settings->table.missing == NULL) {
        settings->table.missing = thiele_model_missing(model);
    }
    return thiele_table_open(table, settings->ctx, path, &settings->table);
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
    int descriptor = open_beside(path, &file->temporary);
    if (descriptor < 0) {
        return write_failed(file);
    }
    file->stream = fdopen(descriptor, "wb");
    if (file->stream == NULL) {
        close(descriptor);
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

int cli_file_commit(cli_file *file)
{
    bool good = fflush(file->stream) == 0 && !ferror(file->stream);
    if (good && is_standard(file->path)) {
        good = copy_to_stdout(file->stream);
    }
    if (good && file->temporary != NULL) {
        good = fsync(fileno(file->stream)) == 0;
    }
    if (!good) {
        return write_failed(file);
    }
    int closed = fclose(file->stream);
    file->stream = NULL;
    if (closed != 0 || (file->temporary != NULL && rename(file->temporary, file->path) != 0)) {
        return write_failed(file);
    }
    free(file->temporary);
    file->temporary = NULL;
    return CLI_DONE;
}

void cli_file_abandon(cli_file *file)
{
    if (file->stream != NULL) {
        fclose(file->stream);
        file->stream = NULL;
    }
    if (file->temporary != NULL) {
        unlink(file->temporary);
        free(file->temporary);
        file->temporary = NULL;
    }
}

int cli_open_log(cli_settings *settings, const char *output)
{
    if (settings->log == NULL) {
        return CLI_DONE;
    }
    const char *const kept[] = {settings->operand[0], settings->operands > 1 ? settings->operand[1] : output, output,
                                NULL};
    int result = cli_check_output(settings->log, kept);
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

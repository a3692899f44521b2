/*
 * The whole of a text file in memory. Everything goes through zlib, which passes plain files on as they are and checks
 * the length and checksum of gzipped ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/csv.h"

enum { CHUNK = 1 << 24, BUFFER = 1 << 17, FIRST_CAPACITY = 1 << 16 };

static thiele_status read_failed(thiele_context *ctx, const char *name, gzFile file)
{
    int reason = errno;
    int code;
    gzerror(file, &code);
    if (code == Z_ERRNO) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: %s", name, strerror(reason));
    }
    if (code == Z_MEM_ERROR) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while unpacking %s", name);
    }
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s is %s: copy or download it again", name,
                    code == Z_BUF_ERROR ? "a gzip file that ends too early" : "a damaged gzip file");
}

/* Reads on until the end of the file; text grows as it must and has room for one byte more than *length. */
static thiele_status read_all(thiele_context *ctx, const char *name, gzFile file, size_t capacity, char **text,
                              size_t *length)
{
    thiele_status status = thi_alloc_bare(ctx, text, capacity, 1);
    *length = 0;
    while (status == THIELE_OK) {
        size_t room = capacity - 1 - *length;
        errno = 0;
        int got = gzread(file, *text + *length, (unsigned)(room < CHUNK ? room : CHUNK));
        int code;
        gzerror(file, &code);
        if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {
            return read_failed(ctx, name, file);
        }
        if (got == 0) {
            break;
        }
        *length += (size_t)got;
        if (*length == capacity - 1) {
            capacity *= 2;
            status = thi_grow(ctx, text, capacity, 1);
        }
    }
    return status;
}

static int open_descriptor(const char *path)
{
    return strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
}

thiele_status thi_read_text(thiele_context *ctx, const char *path, char **text, size_t *length)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    *text = NULL;
    int descriptor = open_descriptor(path);
    struct stat info;
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        thiele_status status = thi_fail(ctx, THIELE_ERROR_IO, "cannot open %s: %s", name, strerror(errno));
        if (descriptor >= 0) {
            close(descriptor);
        }
        return status;
    }
    gzFile file = gzdopen(descriptor, "rb");
    if (file == NULL) {
        close(descriptor);
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while opening %s", name);
    }
    gzbuffer(file, BUFFER);
    /* One byte for the zero behind the text and one so that the end of a plain file is met without growing. */
    size_t capacity = (S_ISREG(info.st_mode) ? (size_t)info.st_size : FIRST_CAPACITY) + 2;
    thiele_status status = read_all(ctx, name, file, capacity, text, length);
    gzclose(file);
    if (status != THIELE_OK) {
        thi_free(*text);
        *text = NULL;
        return status;
    }
    (*text)[*length] = '\0';
    return THIELE_OK;
}

/*
 * The whole of a text file in memory, plain or gzipped (RFC 1952: one member or several), or of a pipe as it comes.
 * Nothing waits for longer than a twentieth of a second without looking up. A gzip file counts as whole when every
 * member's length and checksum are right and nothing but zeros, with which tapes are filled up, stands behind the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/csv.h"

enum { CHUNK = 1 << 22, BUFFER = 1 << 17, FIRST_CAPACITY = 1 << 16, PATIENCE = 50 /* milliseconds */ };

typedef struct source {
    thiele_context *ctx;
    const char *name; /* for messages */
    int file;
    int64_t done, total; /* bytes of the file */
    bool ended;
    unsigned char buffer[BUFFER]; /* what was read ahead */
    size_t ahead;
    char *text; /* room for one byte more than length */
    size_t length, capacity;
} source;

/* Reads some bytes, at most `size`, or notices the end. */
static thiele_status read_some(source *s, void *data, size_t size, size_t *got)
{
    *got = 0;
    while (*got == 0 && !s->ended) {
        struct pollfd watched = {.fd = s->file, .events = POLLIN};
        int ready = poll(&watched, 1, PATIENCE);
        thiele_status status = thi_look_up(s->ctx, s->done, s->total);
        if (status != THIELE_OK) {
            return status;
        }
        ssize_t count = ready > 0 ? read(s->file, data, size) : -1;
        if (ready > 0 && count < 0 && errno != EINTR && errno != EAGAIN) {
            return thi_fail(s->ctx, THIELE_ERROR_IO, "cannot read %s: %s", s->name, strerror(errno));
        }
        s->ended = count == 0;
        *got = count > 0 ? (size_t)count : 0;
    }
    s->done += (int64_t)*got;
    return THIELE_OK;
}

/* Twice the room when there is none left. */
static thiele_status make_room(source *s)
{
    char *larger;
    if (s->length + 1 < s->capacity) {
        return THIELE_OK;
    }
    thiele_status status = thi_alloc_bare(s->ctx, &larger, 2 * s->capacity, 1);
    if (status != THIELE_OK) {
        return status;
    }
    for (size_t at = 0; at < s->length && status == THIELE_OK; at += CHUNK) {
        memcpy(larger + at, s->text + at, s->length - at < CHUNK ? s->length - at : CHUNK);
        status = thi_look_up(s->ctx, s->done, s->total);
    }
    thi_free(s->text);
    s->text = larger;
    s->capacity *= 2;
    return status;
}

/* What there is room for, a piece at a time. */
static size_t room_of(const source *s)
{
    size_t room = s->capacity - 1 - s->length;
    return room < CHUNK ? room : CHUNK;
}

static thiele_status copy_plain(source *s)
{
    size_t got = s->ahead;
    thiele_status status = THIELE_OK;
    while (status == THIELE_OK && s->length + 1 + got >= s->capacity) {
        status = make_room(s);
    }
    if (status == THIELE_OK) {
        memcpy(s->text, s->buffer, got);
        s->length = got;
    }
    while (status == THIELE_OK && !s->ended) {
        status = make_room(s);
        if (status == THIELE_OK) {
            status = read_some(s, s->text + s->length, room_of(s), &got);
            s->length += got;
        }
    }
    return status;
}

/* --- gzip -------------------------------------------------------------------------------------------------------- */

static thiele_status damaged(const source *s, int code, int64_t members)
{
    if (code == Z_MEM_ERROR) {
        return thi_fail(s->ctx, THIELE_ERROR_MEMORY, "out of memory while unpacking %s", s->name);
    }
    if (members == 0) {
        return thi_fail(s->ctx, THIELE_ERROR_FORMAT, "%s is a damaged gzip file: copy or download it again", s->name);
    }
    return thi_fail(s->ctx, THIELE_ERROR_FORMAT,
                    "%s is a gzip file of several parts, of which part %lld is damaged: copy or download it again",
                    s->name, (long long)members + 1);
}

/* Between two members. *filled: zeros were met, which only more of them may follow. True: another member begins. */
static thiele_status next_member(const source *s, z_stream *z, bool *filled, bool *begins)
{
    while (z->avail_in > 0 && *z->next_in == 0) {
        *filled = true;
        z->next_in++;
        z->avail_in--;
    }
    *begins = z->avail_in > 0 && *z->next_in == 0x1f && !*filled;
    if (z->avail_in > 0 && !*begins) {
        return thi_fail(s->ctx, THIELE_ERROR_FORMAT,
                        "%s has other bytes after its gzip data: it is damaged, or two files in one", s->name);
    }
    return THIELE_OK;
}

static thiele_status unpack(source *s, z_stream *z)
{
    int64_t members = 0;
    bool between = false, filled = false;
    thiele_status status;
    z->next_in = s->buffer;
    z->avail_in = (unsigned)s->ahead;
    while (true) {
        if (z->avail_in == 0) {
            THI_TRY(read_some(s, s->buffer, BUFFER, &s->ahead));
            z->next_in = s->buffer;
            z->avail_in = (unsigned)s->ahead;
        }
        if (s->ended && z->avail_in == 0) {
            return between ? THIELE_OK
                           : thi_fail(s->ctx, THIELE_ERROR_FORMAT,
                                      "%s is a gzip file that ends too early: copy or download it again", s->name);
        }
        if (between) {
            bool begins;
            THI_TRY(next_member(s, z, &filled, &begins));
            if (!begins) {
                continue;
            }
            inflateReset(z);
        }
        THI_TRY(make_room(s));
        z->next_out = (unsigned char *)s->text + s->length;
        z->avail_out = (unsigned)room_of(s);
        int code = inflate(z, Z_NO_FLUSH);
        s->length = (size_t)((char *)z->next_out - s->text);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
            return damaged(s, code, members);
        }
        between = code == Z_STREAM_END;
        members += between;
        THI_TRY(thi_look_up(s->ctx, s->done, s->total));
    }
out:
    return status;
}

static thiele_status copy_gzipped(source *s)
{
    enum { GZIP_WINDOW = 15 + 16 };
    z_stream z = {0};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) {
        return damaged(s, Z_MEM_ERROR, 0);
    }
    thiele_status status = unpack(s, &z);
    inflateEnd(&z);
    return status;
}

/* --- the file ---------------------------------------------------------------------------------------------------- */

/* Not to wait for whoever writes a named pipe: that comes when it is read, and can be stopped. */
static int open_descriptor(const char *path)
{
    return strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static thiele_status open_source(source *s, const char *path)
{
    struct stat info;
    s->file = open_descriptor(path);
    if (s->file < 0 || fstat(s->file, &info) != 0) {
        return thi_fail(s->ctx, THIELE_ERROR_IO, "cannot open %s: %s", s->name, strerror(errno));
    }
    s->total = S_ISREG(info.st_mode) ? (int64_t)info.st_size : 0;
    /* One byte for the zero behind the text and one so that the end of a plain file is met without growing. */
    s->capacity = (S_ISREG(info.st_mode) ? (size_t)info.st_size : FIRST_CAPACITY) + 2;
    return thi_alloc_bare(s->ctx, &s->text, s->capacity, 1);
}

static thiele_status read_source(source *s)
{
    thiele_status status = THIELE_OK;
    size_t got;
    while (status == THIELE_OK && s->ahead < 2 && !s->ended) {
        status = read_some(s, s->buffer + s->ahead, BUFFER - s->ahead, &got);
        s->ahead += got;
    }
    if (status != THIELE_OK) {
        return status;
    }
    return s->ahead >= 2 && s->buffer[0] == 0x1f && s->buffer[1] == 0x8b ? copy_gzipped(s) : copy_plain(s);
}

thiele_status thi_read_text(thiele_context *ctx, const char *path, char **text, size_t *length)
{
    source *s;
    *text = NULL;
    thiele_status status = thi_alloc(ctx, &s, 1, sizeof *s);
    if (status != THIELE_OK) {
        return status;
    }
    s->ctx = ctx;
    s->name = strcmp(path, "-") == 0 ? "standard input" : path;
    s->file = -1;
    THI_TRY(open_source(s, path));
    THI_TRY(read_source(s));
    s->text[s->length] = '\0';
    *text = s->text;
    *length = s->length;
    s->text = NULL;
out:
    if (s->file >= 0) {
        close(s->file);
    }
    thi_free(s->text);
    thi_free(s);
    return status;
}

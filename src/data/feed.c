/*
 * Feeds: the lines of standard input, of a pipe or of a file that grows, as small tables (include/thiele/stream.h).
 * Bytes are read as they come and cut where records end; some records with the header before them are a CSV text like
 * any other. Memory: the bytes of the records that are asked for at once, and one that is not complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/csv.h"
#include <thiele/stream.h>

enum { CAPACITY = 1 << 18, ROOM = 1 << 16, RECORD_MAX = 1 << 20, SKIP_ROWS = 4096 };
/* Seconds between two looks at a file that may have grown. */
static const double NAP = 0.1;

/* In a record: where a field may begin, in one, between its quotes, behind a quote there. */
typedef enum place { AT_FIELD, IN_FIELD, IN_QUOTES, BEHIND_QUOTE } place;

struct thiele_feed {
    int file;
    char *source, *missing; /* for messages; tokens, owned */
    thiele_table_options table;
    thiele_feed_options options;
    thi_csv_format format;
    bool begun;    /* the header was read, and what separates fields is known */
    bool complete; /* no more bytes will come */
    char *header;  /* the first record with its line ending; NULL: there is none */
    size_t header_length;
    int64_t header_lines;
    int64_t columns;
    /* What was read and not handed out yet, with a zero byte behind it. */
    char *text;
    size_t length, capacity;
    size_t scanned, end; /* looked at; the end of the complete records among that */
    int64_t records;     /* complete and not blank */
    place where;         /* `scanned` is */
    int64_t position;    /* in the file */
    int64_t rows, lines, skipped;
};

/* --- opening ---------------------------------------------------------------------------------------------------------
 */

static thiele_status feed_start(thiele_feed *feed, thiele_context *ctx, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    struct stat info;
    thiele_status status;
    THI_TRY(thi_strdup(ctx, &feed->source, standard ? "standard input" : path));
    if (feed->table.missing != NULL) {
        THI_TRY(thi_strdup(ctx, &feed->missing, feed->table.missing));
        feed->table.missing = feed->missing;
    }
    THI_TRY(thi_alloc_bare(ctx, &feed->text, CAPACITY, 1));
    feed->capacity = CAPACITY;
    feed->file = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (feed->file < 0 || fstat(feed->file, &info) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot open %s: %s", feed->source, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: it is a folder, not a file", path);
    }
out:
    return status;
}

thiele_status thiele_feed_open(thiele_feed **out, thiele_context *ctx, const char *path,
                               const thiele_table_options *table_options, const thiele_feed_options *options)
{
    THI_NEED_OUT(out, ctx, ctx && path);
    thiele_feed *feed = NULL;
    thiele_feed_options taken;
    thiele_table_options table;
    thiele_status status;
    if (path == NULL || *path == '\0') {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no file was named");
    }
    THI_TRY(thi_take_options(ctx, "thiele_feed_options", &taken, sizeof taken, options));
    THI_TRY(thi_take_options(ctx, "thiele_table_options", &table, sizeof table, table_options));
    if (taken.skip < 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a feed cannot skip a negative number of rows");
    }
    THI_TRY(thi_alloc(ctx, &feed, 1, sizeof *feed));
    feed->file = -1;
    feed->table = table;
    feed->options = taken;
    thi_csv_set_delimiter(&feed->format, ',');
    THI_TRY(feed_start(feed, ctx, path));
    *out = feed;
    feed = NULL;
out:
    thiele_feed_close(feed);
    return status;
}

void thiele_feed_close(thiele_feed *feed)
{
    if (feed == NULL) {
        return;
    }
    if (feed->file >= 0) {
        close(feed->file);
    }
    thi_free(feed->source);
    thi_free(feed->missing);
    thi_free(feed->header);
    thi_free(feed->text);
    thi_free(feed);
}

int thiele_feed_ended(const thiele_feed *feed)
{
    THI_NEED_OR(1, feed);
    return feed->complete && feed->length == 0;
}

int64_t thiele_feed_rows(const thiele_feed *feed)
{
    THI_NEED_OR(0, feed);
    return feed->rows;
}

int64_t thiele_feed_skipped(const thiele_feed *feed)
{
    THI_NEED_OR(0, feed);
    return feed->skipped;
}

/* --- bytes -----------------------------------------------------------------------------------------------------------
 */

/* Waits for bytes or for `seconds`. False: the time is over, or there was a signal. */
static bool wait_for(int file, double seconds)
{
    struct pollfd watched = {.fd = file, .events = POLLIN};
    int milliseconds = (int)fmin(ceil(1000.0 * fmax(seconds, 0.0)), 1e9);
    return poll(file >= 0 ? &watched : NULL, file >= 0, milliseconds) > 0;
}

/* At the end of the file for now. */
static thiele_status at_end(thiele_feed *feed, thiele_context *ctx, double until, bool *late)
{
    struct stat info;
    bool regular = fstat(feed->file, &info) == 0 && S_ISREG(info.st_mode);
    if (!feed->options.follow || !regular) {
        feed->complete = true;
        return THIELE_OK;
    }
    if (info.st_size < feed->position) {
        return thi_fail(ctx, THIELE_ERROR_IO, "%s is shorter than it was: it was cut or written anew", feed->source);
    }
    double left = until - thi_seconds();
    (void)wait_for(-1, fmin(NAP, left));
    *late = left <= NAP;
    return THIELE_OK;
}

/* Reads what is there. *late: nothing came in time. */
static thiele_status read_some(thiele_feed *feed, thiele_context *ctx, double until, bool *late)
{
    if (feed->capacity - feed->length < ROOM) {
        thiele_status status = thi_grow(ctx, &feed->text, 2 * feed->capacity, 1);
        if (status != THIELE_OK) {
            return status;
        }
        feed->capacity *= 2;
    }
    if (!wait_for(feed->file, until - thi_seconds())) {
        *late = true;
        return THIELE_OK;
    }
    ssize_t got = read(feed->file, feed->text + feed->length, feed->capacity - 1 - feed->length);
    if (got == 0) {
        return at_end(feed, ctx, until, late);
    }
    if (got < 0) {
        *late = errno == EINTR;
        return errno == EINTR || errno == EAGAIN
                   ? THIELE_OK
                   : thi_fail(ctx, THIELE_ERROR_IO, "cannot read %s: %s", feed->source, strerror(errno));
    }
    feed->length += (size_t)got;
    feed->position += got;
    feed->text[feed->length] = '\0';
    return THIELE_OK;
}

/* --- records ---------------------------------------------------------------------------------------------------------
 */

/* The place behind one more byte. A quote opens only where a field begins: 5" is five inches. */
static place next_place(const thiele_feed *feed, place now, char c)
{
    if (now == IN_QUOTES) {
        return c == '"' ? BEHIND_QUOTE : IN_QUOTES;
    }
    if (c == '"') {
        return now == IN_FIELD ? IN_FIELD : IN_QUOTES; /* "" behind a quote is one of the field's */
    }
    /* Before the beginning was read any delimiter may be the one. */
    if (feed->begun ? c == feed->format.delimiter : strchr(",;:|\t", c) != NULL) {
        return AT_FIELD;
    }
    return now == AT_FIELD && (c == ' ' || c == '\t') ? AT_FIELD : IN_FIELD;
}

/*
 * Goes on from `at` to the end of the line there; true when a record ends with it. Whether quotes stand where they may
 * is for the reader of the table to say. Lines without any are passed at the speed of memchr.
 */
static bool pass_line(const thiele_feed *feed, size_t *at, place *where)
{
    const char *start = feed->text + *at;
    size_t rest = feed->length - *at;
    const char *feed_line = memchr(start, '\n', rest);
    size_t length = feed_line != NULL ? (size_t)(feed_line - start) + 1 : rest;
    bool plain = *where != IN_QUOTES && (feed->options.skip_bad || memchr(start, '"', length) == NULL);
    for (size_t i = 0; i < length && !(plain && feed_line != NULL) && !feed->options.skip_bad; i++) {
        *where = next_place(feed, *where, start[i]);
    }
    *at += length;
    bool ends = feed_line != NULL && *where != IN_QUOTES;
    *where = ends ? AT_FIELD : *where;
    return ends || (feed->complete && *at == feed->length);
}

static bool is_blank(const thiele_feed *feed, size_t from, size_t to)
{
    for (; from < to; from++) {
        char c = feed->text[from];
        if (c != '\n' && c != '\r' && (c != ' ' || c == feed->format.delimiter) &&
            (c != '\t' || c == feed->format.delimiter)) {
            return false;
        }
    }
    return true;
}

static void forget_scan(thiele_feed *feed)
{
    feed->scanned = feed->end = 0;
    feed->records = 0;
    feed->where = AT_FIELD;
}

/* Counts complete records, `most` of them at most. */
static void scan(thiele_feed *feed, int64_t most)
{
    if (feed->records > most) {
        forget_scan(feed);
    }
    while (feed->records < most && feed->scanned < feed->length) {
        if (pass_line(feed, &feed->scanned, &feed->where)) {
            feed->records += !is_blank(feed, feed->end, feed->scanned);
            feed->end = feed->scanned;
            feed->where = AT_FIELD;
        }
    }
}

/* The first `count` bytes are done with. */
static void consume(thiele_feed *feed, size_t count)
{
    feed->lines += thi_csv_count_lines(feed->text, feed->text + count);
    feed->length -= count;
    memmove(feed->text, feed->text + count, feed->length + 1);
    forget_scan(feed);
}

/* --- the beginning ---------------------------------------------------------------------------------------------------
 */

/* A table of the first record alone: when that has no rows, it is a header. */
static thiele_status find_header(thiele_feed *feed, thiele_context *ctx, const char *record, size_t length)
{
    thiele_table *table = NULL;
    char *copy = NULL;
    thiele_status status = thi_strndup(ctx, &copy, record, length);
    if (status != THIELE_OK) {
        return status;
    }
    status = thi_csv_take_text(&table, ctx, copy, length, feed->source, &feed->table);
    feed->table.header = status == THIELE_OK ? THIELE_HEADER_NO : THIELE_HEADER_YES;
    thiele_table_destroy(table);
    if (status != THIELE_ERROR_DATA) {
        return status;
    }
    thi_recover(ctx);
    feed->header_length = length;
    feed->header_lines = thi_csv_count_lines(record, record + length);
    return thi_strndup(ctx, &feed->header, record, length);
}

static thiele_status begin(thiele_feed *feed, thiele_context *ctx)
{
    if (feed->length >= 2 && memcmp(feed->text, "\x1f\x8b", 2) == 0) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s is gzipped: unpack it on the way (zcat FILE | thiele ... -)",
                        feed->source);
    }
    size_t mark = feed->length >= 3 && memcmp(feed->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    const char *record = thi_csv_skip_blank_lines(&feed->format, feed->text + mark);
    const char *end = feed->text + feed->length;
    size_t stop = (size_t)(record - feed->text);
    place where = AT_FIELD;
    thi_csv_field field;
    thiele_status status = THIELE_OK;
    while (!pass_line(feed, &stop, &where) && stop < feed->length) {
    }
    feed->table.delimiter = feed->table.delimiter != 0 ? feed->table.delimiter : thi_csv_guess_delimiter(record, end);
    THI_TRY(find_header(feed, ctx, record, stop - (size_t)(record - feed->text)));
    thi_csv_set_delimiter(&feed->format, feed->table.delimiter);
    feed->columns = thi_csv_count_fields(&feed->format, record, end, &field);
    feed->begun = true;
    consume(feed, feed->header != NULL ? stop : (size_t)(record - feed->text));
out:
    return status;
}

/* --- tables ----------------------------------------------------------------------------------------------------------
 */

/* Without a header a part whose rows are all too long, or too short, would be a table by itself. */
static thiele_status other_width(const thiele_feed *feed, thiele_context *ctx, thiele_table **table)
{
    long long row = thi_table_row_number(*table, 0), line = (long long)(*table)->ops->line(*table, 0);
    int fields = (*table)->columns;
    thiele_table_destroy(*table);
    *table = NULL;
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s, row %lld (line %lld): %d field%s, but %lld %s expected",
                    feed->source, row, line, fields, fields == 1 ? "" : "s", (long long)feed->columns,
                    feed->columns == 1 ? "is" : "are");
}

/* The first `length` bytes, behind the header. */
static thiele_status make_table(thiele_feed *feed, thiele_context *ctx, size_t length, thiele_table **table)
{
    char *text = NULL;
    thi_csv_part before = {feed->rows, feed->lines - feed->header_lines};
    thiele_status status = thi_alloc_bare(ctx, &text, feed->header_length + length + 2, 1);
    if (status != THIELE_OK) {
        return status;
    }
    if (feed->header != NULL) {
        memcpy(text, feed->header, feed->header_length);
    }
    memcpy(text + feed->header_length, feed->text, length);
    length += feed->header_length;
    text[length] = '\0';
    status = thi_csv_take_part(table, ctx, text, length, feed->source, &feed->table, before);
    return status == THIELE_OK && (*table)->columns != feed->columns ? other_width(feed, ctx, table) : status;
}

/* The first record that is not blank and has not as many fields as there are columns; false: there is none. */
static bool find_bad(const thiele_feed *feed, size_t from, size_t *start, size_t *stop)
{
    thi_csv_field field;
    for (*stop = from; *stop < feed->end;) {
        place where = AT_FIELD;
        *start = *stop;
        while (!pass_line(feed, stop, &where) && *stop < feed->end) {
        }
        const char *at = feed->text + *start, *end = feed->text + feed->length;
        if (!is_blank(feed, *start, *stop) && thi_csv_count_fields(&feed->format, at, end, &field) != feed->columns) {
            return true;
        }
    }
    return false;
}

/* Bad lines become blank ones, which a table skips, so that lines keep their numbers. */
static void blank_bad(thiele_feed *feed)
{
    size_t start, stop = 0;
    while (find_bad(feed, stop, &start, &stop)) {
        for (size_t i = start; i < stop; i++) {
            bool ending = feed->text[i] == '\n' || (feed->text[i] == '\r' && feed->text[i + 1] == '\n');
            feed->text[i] = ending ? feed->text[i] : ' ';
        }
        feed->records--;
        feed->skipped++;
    }
}

/*
 * The complete records as a table. When one of them is no row: those before it; it is an error by itself, or left out.
 * NULL when none is left.
 */
static thiele_status hand_out(thiele_feed *feed, thiele_context *ctx, thiele_table **table)
{
    size_t end = feed->end, start = 0, stop = 0;
    thiele_status status = make_table(feed, ctx, end, table);
    if (status == THIELE_ERROR_FORMAT && feed->options.skip_bad) {
        thi_recover(ctx);
        blank_bad(feed);
        status = feed->records > 0 ? make_table(feed, ctx, end, table) : THIELE_OK;
    } else if (status == THIELE_ERROR_FORMAT && find_bad(feed, 0, &start, &stop) && !is_blank(feed, 0, start)) {
        thi_recover(ctx);
        end = start;
        status = make_table(feed, ctx, end, table);
    } else if (status == THIELE_ERROR_FORMAT) {
        end = stop > 0 ? stop : end;
    }
    if (status == THIELE_OK || status == THIELE_ERROR_FORMAT) {
        consume(feed, end);
    }
    feed->rows += *table != NULL ? (*table)->rows : 0;
    return status;
}

static thiele_status too_long(thiele_feed *feed, thiele_context *ctx)
{
    long long line = 1 + (long long)(feed->lines + thi_csv_count_lines(feed->text, feed->text + feed->end));
    feed->length = 0;
    feed->complete = true;
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s, line %lld: a row of more than %d bytes (is a quote never closed?)",
                    feed->source, line, RECORD_MAX);
}

/* Reads until there are `most` records, the time is over or there is no more. */
static thiele_status gather(thiele_feed *feed, thiele_context *ctx, int64_t most, double until)
{
    bool late = false;
    scan(feed, most);
    while (feed->records < most && !feed->complete && !late) {
        thiele_status status = read_some(feed, ctx, until, &late);
        if (status != THIELE_OK) {
            return status;
        }
        late = late || thi_seconds() >= until + NAP; /* more comes all the time */
        if (feed->complete) {
            forget_scan(feed); /* the last record may have no line ending */
        }
        scan(feed, most);
        if (feed->length - feed->end > RECORD_MAX && feed->scanned == feed->length && feed->records < most) {
            return too_long(feed, ctx);
        }
    }
    return THIELE_OK;
}

static thiele_status next_rows(thiele_feed *feed, thiele_context *ctx, int64_t least, int64_t most, double until,
                               thiele_table **table)
{
    thiele_status status;
    *table = NULL;
    if (!feed->begun) {
        /* The header and a row, from which what separates fields is guessed. */
        THI_TRY(gather(feed, ctx, 2, until));
        if (feed->records < 2 && !feed->complete) {
            return THIELE_OK;
        }
        if (feed->records == 0) {
            return thi_fail(ctx, THIELE_ERROR_DATA, "%s is empty", feed->source);
        }
        THI_TRY(begin(feed, ctx));
    }
    THI_TRY(gather(feed, ctx, most, until));
    if (feed->complete && feed->records == 0) {
        feed->length = 0;
        return feed->rows > 0 || feed->skipped > 0
                   ? THIELE_OK
                   : thi_fail(ctx, THIELE_ERROR_DATA, "%s has a header and no rows", feed->source);
    }
    if (feed->records >= most || feed->complete || feed->records >= (least > 1 ? least : 1)) {
        THI_TRY(hand_out(feed, ctx, table));
    }
out:
    return status;
}

/* The rows that are left out first, then those that are wanted. */
static thiele_status skip_and_take(thiele_feed *feed, thiele_context *ctx, int64_t least, int64_t most, double until,
                                   thiele_table **table)
{
    while (feed->rows < feed->options.skip && !thiele_feed_ended(feed)) {
        int64_t left = feed->options.skip - feed->rows;
        thiele_status status = next_rows(feed, ctx, 1, left < SKIP_ROWS ? left : SKIP_ROWS, until, table);
        bool none = *table == NULL;
        thiele_table_destroy(*table);
        *table = NULL;
        if (status != THIELE_OK || none) {
            return status;
        }
    }
    return thiele_feed_ended(feed) ? THIELE_OK : next_rows(feed, ctx, least, most, until, table);
}

thiele_status thiele_feed_next(thiele_feed *feed, thiele_context *ctx, int64_t least, int64_t most, double seconds,
                               thiele_table **table)
{
    THI_NEED_OUT(table, ctx, feed && ctx);
    if (most < 1 || least > most || !(seconds >= 0.0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "a feed must be asked for at least one row, and for a time that is not negative");
    }
    thi_watch watch = thi_watch_begin(ctx, feed->source, 0.0);
    thiele_status status = skip_and_take(feed, ctx, least, most, thi_seconds() + seconds, table);
    thi_watch_end(ctx, watch);
    return status;
}

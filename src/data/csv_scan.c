/* The grammar of CSV: fields, records, quotes, and guessing what separates fields. See csv.h. */
#include <string.h>

#include "data/csv.h"

static bool is_blank(const thi_csv_format *format, char c)
{
    return (c == ' ' || c == '\t') && c != format->delimiter;
}

void thi_csv_set_delimiter(thi_csv_format *format, char delimiter)
{
    memset(format, 0, sizeof *format);
    format->delimiter = delimiter;
    format->stop[(unsigned char)delimiter] = true;
    format->stop['\n'] = true;
    format->stop['\r'] = true;
    format->stop[0] = true;
}

static const char *read_quoted(const thi_csv_format *format, const char *quote, const char *end, thi_csv_field *field)
{
    const char *start = quote + 1;
    const char *at = start;
    bool escaped = false;
    for (;;) {
        at = memchr(at, '"', (size_t)(end - at));
        if (at == NULL) {
            *field = (thi_csv_field){quote, 0, false, THI_CSV_UNCLOSED};
            return NULL;
        }
        if (at[1] != '"') {
            break;
        }
        escaped = true;
        at += 2;
    }
    *field = (thi_csv_field){start, (size_t)(at - start), escaped, THI_CSV_FINE};
    do {
        at++;
    } while (is_blank(format, *at));
    if (!format->stop[(unsigned char)*at]) {
        *field = (thi_csv_field){at, 0, false, THI_CSV_AFTER_QUOTE};
        return NULL;
    }
    return at;
}

const char *thi_csv_read_field(const thi_csv_format *format, const char *at, const char *end, thi_csv_field *field)
{
    while (is_blank(format, *at)) {
        at++;
    }
    if (*at == '"') {
        return read_quoted(format, at, end, field);
    }
    const char *start = at;
    while (!format->stop[(unsigned char)*at]) {
        at++;
    }
    const char *last = at;
    while (last > start && is_blank(format, last[-1])) {
        last--;
    }
    *field = (thi_csv_field){start, (size_t)(last - start), false, THI_CSV_FINE};
    return at;
}

int64_t thi_csv_count_fields(const thi_csv_format *format, const char *at, const char *end, thi_csv_field *field)
{
    int64_t count = 1;
    while ((at = thi_csv_read_field(format, at, end, field)) != NULL && at < end && *at == format->delimiter) {
        at++;
        count++;
    }
    return at != NULL ? count : 0;
}

const char *thi_csv_next_line(const char *at)
{
    return at + (at[0] == '\r' && at[1] == '\n' ? 2 : at[0] == '\r' || at[0] == '\n');
}

const char *thi_csv_skip_blank_lines(const thi_csv_format *format, const char *at)
{
    for (;;) {
        const char *rest = at;
        while (is_blank(format, *rest)) {
            rest++;
        }
        if (*rest == '\0') {
            return rest;
        }
        if (*rest != '\n' && *rest != '\r') {
            return at;
        }
        at = thi_csv_next_line(rest);
    }
}

void thi_csv_unescape(const thi_csv_field *field, thi_text *text)
{
    const char *at = field->start, *end = field->start + field->length;
    const char *quote;
    while (field->escaped && (quote = memchr(at, '"', (size_t)(end - at))) != NULL) {
        thi_text_add_bytes(text, at, (size_t)(quote + 1 - at));
        at = quote + 2;
    }
    thi_text_add_bytes(text, at, (size_t)(end - at));
}

static bool ends_line(const char *at)
{
    return *at == '\n' || (*at == '\r' && at[1] != '\n');
}

/* The top bit of each byte of the word that equals c. */
static uint64_t bytes_equal(uint64_t word, char c)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    word ^= (unsigned char)c * 0x0101010101010101u;
    return ~(((word & low) + low) | word | low);
}

/*
 * Eight bytes at a time: all but the carriage return before a line feed, which may stand at the end of the word before.
 */
int64_t thi_csv_count_lines(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101u;
    int64_t count = 0;
    while (at < end && (end - at) % 8 != 0) {
        count += ends_line(at++);
    }
    for (; at < end; at += 8) {
        uint64_t word, next;
        memcpy(&word, at, sizeof word);
        memcpy(&next, at + 1, sizeof next);
        uint64_t feeds = bytes_equal(word, '\n');
        uint64_t returns = bytes_equal(word, '\r') & ~bytes_equal(next, '\n');
        count += (int64_t)(((feeds | returns) >> 7) * ones >> 56);
    }
    return count;
}

static const char candidates[] = ",;\t";
enum { CANDIDATES = sizeof candidates - 1 };

/* Counts each candidate outside quotes in the record at `at`; returns the record's end. */
static const char *count_candidates(const char *at, const char *end, int64_t *count)
{
    bool quoted = false;
    for (; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        quoted ^= *at == '"';
        for (int i = 0; i < CANDIDATES; i++) {
            count[i] += !quoted && *at == candidates[i];
        }
    }
    return at;
}

char thi_csv_guess_delimiter(const char *text, const char *end)
{
    int64_t first[CANDIDATES] = {0}, second[CANDIDATES] = {0};
    const char *at = count_candidates(text, end, first);
    while (*at == '\n' || *at == '\r') {
        at++;
    }
    count_candidates(at, end, second);
    for (int agreeing = 1; agreeing >= 0; agreeing--) {
        int best = -1;
        for (int i = 0; i < CANDIDATES; i++) {
            bool fits = first[i] > 0 && (!agreeing || first[i] == second[i]);
            best = fits && (best < 0 || first[i] > first[best]) ? i : best;
        }
        if (best >= 0) {
            return candidates[best];
        }
    }
    return ',';
}

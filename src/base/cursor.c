/* Steps through a small text. */
#include "base/cursor.h"

#include <ctype.h>
#include <string.h>

thiele_status thi_cursor_fail(const thi_cursor *cursor, const char *why)
{
    return thi_fail(cursor->ctx, THIELE_ERROR_ARGUMENT, "%s '%.200s', position %d: %s", cursor->what, cursor->text,
                    (int)(cursor->at - cursor->text) + 1, why);
}

char thi_cursor_peek(thi_cursor *cursor)
{
    while (isspace((unsigned char)*cursor->at)) {
        cursor->at++;
    }
    return *cursor->at;
}

bool thi_cursor_accept(thi_cursor *cursor, char c)
{
    if (thi_cursor_peek(cursor) != c) {
        return false;
    }
    cursor->at++;
    return true;
}

const char *thi_cursor_word(thi_cursor *cursor, size_t *length)
{
    thi_cursor_peek(cursor);
    const char *start = cursor->at;
    while (isalnum((unsigned char)*cursor->at) || *cursor->at == '_') {
        cursor->at++;
    }
    *length = (size_t)(cursor->at - start);
    return start;
}

thiele_status thi_cursor_number(thi_cursor *cursor, double *value)
{
    thi_cursor_peek(cursor);
    size_t length = strspn(cursor->at, "+-0123456789.eE");
    if (!thi_parse_number(cursor->at, length, value)) {
        return thi_cursor_fail(cursor, "a number was expected");
    }
    cursor->at += length;
    return THIELE_OK;
}

bool thi_word_is(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* A place in a small text that is being parsed: what kernel and likelihood texts share. */
#ifndef THI_CURSOR_H
#define THI_CURSOR_H

#include "base/base.h"

typedef struct thi_cursor {
    thiele_context *ctx;
    const char *what; /* "kernel", for messages */
    const char *text, *at;
} thi_cursor;

/* ARGUMENT, "kernel 'TEXT', position 12: why". */
thiele_status thi_cursor_fail(const thi_cursor *cursor, const char *why);
/* The next character that is no blank, which is not passed. */
char thi_cursor_peek(thi_cursor *cursor);
/* Passes c if it comes next. */
bool thi_cursor_accept(thi_cursor *cursor, char c);
/* Passes a word of letters, digits and underscores; length 0 when there is none. */
const char *thi_cursor_word(thi_cursor *cursor, size_t *length);
/* Passes a decimal number. */
thiele_status thi_cursor_number(thi_cursor *cursor, double *value);
/* Whether word[0..length-1] is `name`. */
bool thi_word_is(const char *word, size_t length, const char *name);

#endif

/*
 * Text with marks, as the library has it, for several media: `name` is an option, `=word` one of the words that an
 * option takes.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void put_character(FILE *stream, char c, cli_medium medium)
{
    if (medium == CLI_ROFF && (c == '-' || c == '\\' || c == '\'')) {
        fputs(c == '-' ? "\\-" : c == '\'' ? "\\(aq" : "\\e", stream);
    } else if (medium == CLI_MARKDOWN && strchr("<*_|", c) != NULL && c != '\0') {
        fprintf(stream, "\\%c", c);
    } else {
        fputc(c, stream);
    }
}

static void put_characters(FILE *stream, const char *text, size_t length, cli_medium medium)
{
    for (size_t i = 0; i < length; i++) {
        put_character(stream, text[i], medium);
    }
}

/* A name or word between its marks. */
static void put_mark(FILE *stream, const char *text, size_t length, cli_medium medium)
{
    bool word = *text == '=';
    if (medium == CLI_MARKDOWN) {
        fprintf(stream, "`%.*s`", (int)(length - word), text + word);
        return;
    }
    fputs(medium == CLI_ROFF ? "\\fB" : "", stream);
    put_characters(stream, "--", word ? 0 : 2, medium);
    for (size_t i = word; i < length; i++) {
        put_character(stream, !word && text[i] == '_' ? '-' : text[i], medium);
    }
    fputs(medium == CLI_ROFF ? "\\fR" : "", stream);
}

void cli_put_marked(FILE *stream, const char *text, cli_medium medium)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "`");
        put_characters(stream, text, length, medium);
        text += length;
        const char *end = *text == '`' ? strchr(text + 1, '`') : NULL;
        if (end != NULL) {
            put_mark(stream, text + 1, (size_t)(end - text - 1), medium);
            text = end + 1;
        } else if (*text != '\0') {
            put_character(stream, *text++, medium);
        }
    }
}

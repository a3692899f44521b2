/* Growing text, numbers as text, lists in text, and how far two words are apart. */
#include <ctype.h>
#include <string.h>

#include "base/base.h"

void thi_text_init(thi_text *text, thiele_context *ctx)
{
    *text = (thi_text){.ctx = ctx};
}

static bool make_room(thi_text *text, size_t more)
{
    if (text->status == THIELE_OK && text->length + more + 1 > text->capacity) {
        size_t capacity = 2 * text->capacity + more + 64;
        text->status = thi_grow(text->ctx, &text->data, capacity, 1);
        if (text->status == THIELE_OK) {
            text->capacity = capacity;
        }
    }
    return text->status == THIELE_OK;
}

void thi_text_add_bytes(thi_text *text, const char *bytes, size_t length)
{
    if (make_room(text, length)) {
        memcpy(text->data + text->length, bytes, length);
        text->length += length;
        text->data[text->length] = '\0';
    }
}

void thi_text_add(thi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !make_room(text, (size_t)length)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

/* As printf's %.*g, with a point whatever the program's locale says. */
static int format_digits(char *buffer, int digits, double value)
{
    int length = snprintf(buffer, THI_NUMBER_MAX, "%.*g", digits, value);
    char *odd = buffer + strspn(buffer, "+-0123456789einfa");
    if (*odd != '\0') {
        *odd = '.';
    }
    return length;
}

int thi_format_number(char *buffer, double value)
{
    /* 15 digits nearly always suffice for numbers that people wrote; 17 always do. */
    for (int digits = 15; digits < 17; digits++) {
        double back;
        int length = format_digits(buffer, digits, value);
        if (thi_parse_number(buffer, (size_t)length, &back) && back == value) {
            return length;
        }
    }
    return format_digits(buffer, 17, value);
}

void thi_text_add_number(thi_text *text, double value)
{
    char buffer[THI_NUMBER_MAX];
    int length = thi_format_number(buffer, value);
    thi_text_add_bytes(text, buffer, (size_t)length);
}

thiele_status thi_text_take(thi_text *text, char **out)
{
    *out = NULL;
    thi_text_add_bytes(text, "", 0);
    if (text->status != THIELE_OK) {
        thiele_status status = text->status;
        thi_text_clear(text);
        return status;
    }
    *out = text->data;
    thi_text_init(text, text->ctx);
    return THIELE_OK;
}

void thi_text_clear(thi_text *text)
{
    thi_free(text->data);
    thi_text_init(text, text->ctx);
}

/* The end of the list item that starts at `at`: a comma outside brackets and quotes, or the end of the text. */
static const char *item_end(const char *at)
{
    int depth = 0;
    bool quoted = false;
    while (*at != '\0' && !(*at == ',' && depth <= 0 && !quoted)) {
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        quoted = quoted != (*at == '"');
        at++;
    }
    return at;
}

thiele_status thi_split_list(const char *list, thiele_status (*fn)(void *arg, const char *part, size_t length),
                             void *arg)
{
    while (list != NULL && *list != '\0') {
        const char *end = item_end(list);
        const char *first = list;
        const char *last = end;
        while (first < last && isspace((unsigned char)*first)) {
            first++;
        }
        while (last > first && isspace((unsigned char)last[-1])) {
            last--;
        }
        if (last - first >= 2 && *first == '"' && last[-1] == '"') {
            first++;
            last--;
        }
        thiele_status status = fn(arg, first, (size_t)(last - first));
        if (status != THIELE_OK) {
            return status;
        }
        list = *end == ',' ? end + 1 : end;
    }
    return THIELE_OK;
}

int thi_printable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    int more = *s < 0x80                 ? 0
               : *s >= 0xC2 && *s < 0xE0 ? 1
               : *s >= 0xE0 && *s < 0xF0 ? 2
               : *s >= 0xF0 && *s < 0xF5 ? 3
                                         : -1;
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool control = more == 0 ? *s < ' ' || *s == 0x7F : more == 1 && *s == 0xC2 && s[1] < 0xA0;
    return control ? 0 : more + 1;
}

enum { DISTANCE_MAX = 128 };

int thi_edit_distance(const char *a, const char *b, int limit)
{
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n >= DISTANCE_MAX || m >= DISTANCE_MAX || limit < 0) {
        return strcmp(a, b) == 0 ? 0 : limit + 1;
    }
    int row[DISTANCE_MAX];
    for (size_t j = 0; j <= m; j++) {
        row[j] = (int)j;
    }
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            int best = diagonal + !same;
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m] < limit + 1 ? row[m] : limit + 1;
}

/*
 * JSON by jansson, which allocates by malloc alone (its hooks are one pair for the whole process, and that is the
 * application's): before a text is parsed, what its tree can take at most is counted in the context.
 */
#include "model/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * At most, by jansson 2.14 on 64 bits with malloc's own headers: an object and its first buckets, an array and its
 * first room, a member with its key's block and its share of the buckets, an element with its share of the room (which
 * doubles: the old one is there while it is copied). Values are counted with what stands before them.
 */
enum { OBJECT_BYTES = 320, ARRAY_BYTES = 224, MEMBER_BYTES = 208, ELEMENT_BYTES = 128, PARSER_BYTES = 32768 };

/* Texts are there twice, while they are read and in the tree, and the buffer of the first doubles. */
static size_t tree_bytes(const char *text, size_t length)
{
    static const size_t each[256] = {
        ['{'] = OBJECT_BYTES, ['['] = ARRAY_BYTES, [':'] = MEMBER_BYTES, [','] = ELEMENT_BYTES};
    size_t bytes = PARSER_BYTES + 4 * length;
    bool inside = false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        inside = inside != (c == '"');
        bytes += inside ? 0 : each[c];
        i += inside && c == '\\';
    }
    return bytes;
}

/*
 * jansson (2.14) does not notice when the buffer of a text cannot grow: the text loses a character, and where that is
 * its closing quote the process may end by an assertion. So the buffer grows while a text of no importance is read, the
 * first of a list of two; it is kept, and longer than nearly all texts that follow. Not near a power of two, at which
 * it grows.
 */
enum { PADDING = 5000, AROUND = 5 }; /* ["...",TEXT] */

static char *pad(const char *text, size_t length)
{
    char *padded = malloc(PADDING + AROUND + length);
    if (padded != NULL) {
        memcpy(padded, "[\"", 2);
        memset(padded + 2, ' ', PADDING);
        memcpy(padded + 2 + PADDING, "\",", 2);
        memcpy(padded + 4 + PADDING, text, length);
        padded[4 + PADDING + length] = ']';
    }
    return padded;
}

static json_t *load(const char *padded, size_t length, bool *damaged)
{
    json_error_t error = {0};
    errno = 0;
    json_t *list = json_loadb(padded, PADDING + AROUND + length, JSON_REJECT_DUPLICATES, &error);
    json_t *root = json_array_size(list) == 2 ? json_incref(json_array_get(list, 1)) : NULL;
    *damaged = (list == NULL && errno != ENOMEM && error.text[0] != '\0' &&
                json_error_code(&error) != json_error_out_of_memory) ||
               (list != NULL && root == NULL);
    json_decref(list);
    return root;
}

/*
 * An allocation that fails inside jansson may end in NULL, in a text that is called damaged, or in one that has lost a
 * character. So there must be room for all of it, and the text is read twice: it is damaged when it is so both times,
 * and it is what it is when it is the same both times.
 */
static json_t *load_twice(const char *text, size_t length, size_t bytes, bool *damaged)
{
    bool again;
    void *room = malloc(bytes);
    *damaged = false;
    if (room == NULL) {
        return NULL;
    }
    free(room);
    char *padded = pad(text, length);
    if (padded == NULL) {
        return NULL;
    }
    json_t *first = load(padded, length, damaged), *second = load(padded, length, &again);
    free(padded);
    *damaged = *damaged && again;
    if (!json_equal(first, second)) {
        json_decref(first);
        first = NULL;
    }
    json_decref(second);
    return first;
}

thiele_status thi_json_parse(thi_json *json, thiele_context *ctx, const char *text, size_t length, const char *what)
{
    bool damaged;
    *json = (thi_json){.ctx = ctx};
    size_t bytes = 2 * tree_bytes(text, length);
    thiele_status status = thi_count(ctx, bytes);
    if (status != THIELE_OK) {
        return status;
    }
    json->counted = bytes;
    json->root = load_twice(text, length, bytes, &damaged);
    if (json->root != NULL) {
        return THIELE_OK;
    }
    thi_json_clear(json);
    return damaged ? thi_fail(ctx, THIELE_ERROR_FORMAT, "%s is damaged", what)
                   : thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while %s was read", what);
}

void thi_json_clear(thi_json *json)
{
    json_decref(json->root);
    if (json->counted > 0) {
        thi_uncount(json->ctx, json->counted);
    }
    *json = (thi_json){0};
}

static int add_to_text(const char *bytes, size_t length, void *arg)
{
    thi_text *text = arg;
    thi_text_add_bytes(text, bytes, length);
    return text->status == THIELE_OK ? 0 : -1;
}

thiele_status thi_json_text(thiele_context *ctx, const json_t *json, size_t flags, char **out)
{
    thi_text text;
    *out = NULL;
    thi_text_init(&text, ctx);
    int failed = json == NULL || json_dump_callback(json, add_to_text, &text, flags | JSON_REAL_PRECISION(17)) != 0;
    if (failed && text.status == THIELE_OK) {
        thi_text_clear(&text);
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while JSON was written");
    }
    return thi_text_take(&text, out);
}

void thi_json_quote(thi_text *text, const char *string)
{
    thi_text_add_bytes(text, "\"", 1);
    for (const char *c = string; *c != '\0'; c++) {
        size_t plain = 0;
        while ((unsigned char)c[plain] >= 0x20 && c[plain] != '"' && c[plain] != '\\') {
            plain++;
        }
        thi_text_add_bytes(text, c, plain);
        c += plain;
        if (*c == '\0') {
            break;
        }
        if ((unsigned char)*c < 0x20) {
            thi_text_add(text, "\\u%04x", (unsigned char)*c);
        } else {
            thi_text_add(text, "\\%c", *c);
        }
    }
    thi_text_add_bytes(text, "\"", 1);
}

thiele_status thi_json_known(thiele_context *ctx, const json_t *json, const json_t *known)
{
    const char *name;
    json_t *value;
    size_t i;
    thiele_status status = THIELE_OK;
    json_array_foreach(json, i, value)
    {
        THI_TRY(thi_json_known(ctx, value, json_array_get(known, i)));
    }
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        const json_t *there = json_object_get(known, name);
        if (there == NULL) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT, "this version does not know its field '%.40s'", name);
        }
        THI_TRY(thi_json_known(ctx, value, there));
    }
out:
    return status;
}

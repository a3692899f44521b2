/* A hash table of texts (FNV-1a, linear probing): O(length) for each lookup, and one allocation for each new text. */
#include "data/texts.h"

#include <stdint.h>
#include <string.h>

static uint64_t hash(const char *text, size_t length)
{
    uint64_t h = 14695981039346656037U;
    for (size_t i = 0; i < length; i++) {
        h = (h ^ (unsigned char)text[i]) * 1099511628211U;
    }
    return h ^ (h >> 32);
}

/* Where a text is, or the free slot where it would be. */
static size_t find(const thi_texts *texts, const char *text, size_t length)
{
    size_t at = hash(text, length) & (texts->slots - 1);
    for (; texts->slot[at] != 0; at = (at + 1) & (texts->slots - 1)) {
        const char *there = texts->text[texts->slot[at] - 1];
        if (strncmp(there, text, length) == 0 && there[length] == '\0') {
            break;
        }
    }
    return at;
}

/* Room for twice as many: both lists are there before anything changes. */
static thiele_status make_room(thi_texts *texts, thiele_context *ctx)
{
    enum { FIRST = 64 };
    if (texts->count > INT32_MAX / 4) {
        return thi_fail(ctx, THIELE_ERROR_LIMIT, "a column has more than %d different texts", (int)texts->count);
    }
    const int32_t room = texts->room > 0 ? 2 * texts->room : FIRST;
    int32_t *slot;
    thiele_status status = thi_grow(ctx, &texts->text, (size_t)room, sizeof *texts->text);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &slot, 2 * (size_t)room, sizeof *slot);
    }
    if (status != THIELE_OK) {
        return status;
    }
    thi_free(texts->slot);
    texts->slot = slot;
    texts->slots = 2 * (size_t)room;
    texts->room = room;
    for (int32_t i = 0; i < texts->count; i++) {
        texts->slot[find(texts, texts->text[i], strlen(texts->text[i]))] = i + 1;
    }
    return THIELE_OK;
}

thiele_status thi_texts_add(thi_texts *texts, thiele_context *ctx, const char *text, size_t length, int32_t *number)
{
    thiele_status status = THIELE_OK;
    if (texts->count == texts->room) {
        THI_TRY(make_room(texts, ctx));
    }
    const size_t at = find(texts, text, length);
    if (texts->slot[at] == 0) {
        THI_TRY(thi_strndup(ctx, &texts->text[texts->count], text, length));
        texts->slot[at] = ++texts->count;
    }
    *number = texts->slot[at] - 1;
out:
    return status;
}

void thi_texts_clear(thi_texts *texts)
{
    for (int32_t i = 0; i < texts->count; i++) {
        thi_free(texts->text[i]);
    }
    thi_free(texts->text);
    thi_free(texts->slot);
    *texts = (thi_texts){0};
}

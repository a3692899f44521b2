/*
 * Arrow arrays from any bytes. Each column takes a head of 16 bytes (its format, lengths and counts, which may
 * contradict each other) and what follows as the contents of its buffers. Buffers have the sizes that the head's length
 * and offset need, and bytes of texts those that their last offset needs: what the interface can say is true of them,
 * and everything else is whatever the bytes are. Reading past a buffer is found by the sanitizers.
 */
#include "../arrow_testing.h"
#include "fuzz_file.h"

enum { HEAD = 16, COLUMNS = 3, MOST_BYTES = 1 << 16 };

static const char *const formats[] = {"n",    "b",       "c",   "C",     "s",         "S", "i",  "I",        "l",
                                      "L",    "e",       "f",   "g",     "u",         "U", "vu", "tdD",      "tdm",
                                      "tss:", "tsn:UTC", "tts", "d:9,2", "d:9,32,32", "z", "+l", "d:9,2,64", "ttn"};
static const int widths[] = {0, 0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 4, 8, 16, 4, 8, 8, 8, 4, 16, 4, 4, 4, 8, 8};
_Static_assert(sizeof formats / sizeof *formats == sizeof widths / sizeof *widths, "a width for each format");

typedef struct input {
    const uint8_t *at, *end;
} input;

static void take(input *in, void *to, size_t size)
{
    const size_t left = (size_t)(in->end - in->at), most = size < left ? size : left;
    memset(to, 0, size);
    memcpy(to, in->at, most);
    in->at += most;
}

/* A block of exactly this size, filled from the input. */
static void *block(input *in, size_t size)
{
    void *made = malloc(size > 0 ? size : 1);
    if (made == NULL) {
        abort();
    }
    take(in, made, size);
    return made;
}

/* Bytes of texts, as many as the largest offset says. */
static void *text_bytes(input *in, const void *offsets, int width, int64_t count)
{
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        int32_t narrow;
        if (width == 8) {
            memcpy(&at, (const char *)offsets + 8 * i, sizeof at);
        } else {
            memcpy(&narrow, (const char *)offsets + 4 * i, sizeof narrow);
            at = narrow;
        }
        most = at > most ? at : most;
    }
    return most <= MOST_BYTES ? block(in, (size_t)most) : NULL;
}

/* False where offsets point further than there can be bytes: an array that no program hands over. */
static bool make_part(input *in, arrow_column *column, int b)
{
    uint8_t head[HEAD];
    take(in, head, sizeof head);
    const int kind = head[0] % (int)(sizeof widths / sizeof *widths);
    const int64_t length = head[1] % 40, offset = head[2] % 8, elements = length + offset;
    const bool texts = strcmp(formats[kind], "u") == 0 || strcmp(formats[kind], "U") == 0;
    const bool views = strcmp(formats[kind], "vu") == 0;
    const void **buffer = column->part[b].buffer;
    column->format = b == 0 ? formats[kind] : column->format;
    column->part[b].length = (head[3] & 1) != 0 ? (int8_t)head[4] : length;
    column->part[b].length = column->part[b].length < length ? column->part[b].length : length;
    column->part[b].offset = (head[3] & 2) != 0 ? -offset : offset;
    column->part[b].nulls = (int8_t)head[5] % 42;
    column->part[b].buffers = (head[3] & 4) != 0                       ? head[6] % 5
                              : widths[kind] == 0 && head[0] % 27 == 0 ? 0
                              : texts                                  ? 3
                              : views                                  ? 4
                                                                       : 2;
    buffer[0] = (head[3] & 8) != 0 ? block(in, (size_t)(elements + 7) / 8) : NULL;
    buffer[1] =
        (head[3] & 16) == 0 ? block(in, (size_t)(elements + 1) * (size_t)(widths[kind] > 0 ? widths[kind] : 1)) : NULL;
    if (b > 0 && column->format != formats[kind]) {
        column->part[b].length = 0;
    }
    if (texts && buffer[1] != NULL) {
        buffer[2] = text_bytes(in, buffer[1], widths[kind], elements + 1);
        return buffer[2] != NULL;
    }
    if (views) {
        int64_t size = head[7];
        buffer[2] = block(in, (size_t)size);
        buffer[3] = block(in, sizeof size);
        memcpy((void *)(uintptr_t)buffer[3], &size, sizeof size);
        column->part[b].buffers = column->part[b].buffers == 4 ? 4 : 2;
    }
    return true;
}

static void free_parts(arrow_column *column)
{
    for (int b = 0; b < 2; b++) {
        for (int i = 0; i < 4; i++) {
            free((void *)(uintptr_t)column->part[b].buffer[i]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    thiele_context *ctx = fuzz_context();
    arrow_column column[COLUMNS] = {{.name = "a"}, {.name = "b"}, {.name = "c"}}, dictionary[COLUMNS] = {{0}};
    arrow_source source = {0};
    input in = {data, data + size};
    uint8_t head[4];
    bool sound = true;
    thiele_table *table;
    if (ctx == NULL) {
        return 0;
    }
    take(&in, head, sizeof head);
    source.columns = 1 + head[0] % COLUMNS;
    source.batches = 1 + head[1] % 2;
    source.offset = head[2] % 3;
    for (int c = 0; c < source.columns; c++) {
        source.column[c] = &column[c];
        for (int b = 0; b < source.batches; b++) {
            sound = make_part(&in, &column[c], b) && sound;
        }
        if ((head[3] >> c & 1) != 0) {
            column[c].dictionary = &dictionary[c];
            for (int b = 0; b < source.batches; b++) {
                sound = make_part(&in, &dictionary[c], b) && sound;
            }
        }
    }
    if (sound) {
        struct ArrowArrayStream stream = arrow_stream(&source);
        if (thiele_table_from_arrow(&table, ctx, &stream) == THIELE_OK) {
            fuzz_look(table, ctx);
            thiele_table_destroy(table);
        } else if (*thiele_context_message(ctx) == '\0') {
            abort();
        }
        if (source.held != 0) {
            abort();
        }
    }
    for (int c = 0; c < COLUMNS; c++) {
        free_parts(&column[c]);
        free_parts(&dictionary[c]);
    }
    fuzz_end(ctx);
    return 0;
}

/* The different texts of a column, numbered in the order in which they first come. */
#ifndef THI_TEXTS_H
#define THI_TEXTS_H

#include "base/base.h"

typedef struct thi_texts {
    char **text; /* count of them, each with a terminating zero */
    int32_t count;
    int32_t *slot; /* open addressing: 1 + the number of a text, 0 is free */
    size_t slots;  /* a power of two, at most half of them taken */
    int32_t room;
} thi_texts;

/* The number of a text, which is copied where it is new. Errors: LIMIT (2^31 - 1 different ones), MEMORY. */
thiele_status thi_texts_add(thi_texts *texts, thiele_context *ctx, const char *text, size_t length, int32_t *number);
void thi_texts_clear(thi_texts *texts);

#endif

/* What the fuzzers of texts share: a context of little memory, and what must hold after every text. */
#ifndef FUZZ_TEXTS_H
#define FUZZ_TEXTS_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline thiele_context *fuzz_context(void)
{
    thiele_context_options limits = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx = NULL;
    limits.threads = 1;
    limits.memory_limit = (size_t)1 << 28;
    return thiele_context_create(&ctx, &limits) == THIELE_OK ? ctx : NULL;
}

/* A failure has a sentence, and nothing is left of the work. */
static inline void fuzz_done(thiele_context *ctx, thiele_status status)
{
    if ((status != THIELE_OK && *thiele_context_message(ctx) == '\0') || thi_memory_held(ctx) != 0) {
        abort();
    }
    thiele_context_destroy(ctx);
}

#endif

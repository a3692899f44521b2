/* The context: threads, seed, memory limit, sinks. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base.h"
#include "base/blis_memory.h"
#include "base/pool.h"
#include <thiele/version.h>

enum { THREADS_MAX = 1024 };

/* Those that this process may use. */
static int processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count < THREADS_MAX ? count : THREADS_MAX;
}

/* "auto", "cpu", "cuda" or "cuda:1"; false: it is none of them. */
static bool read_device(const char *text, thi_device *device)
{
    static const char *const words[] = {"auto", "cpu", "cuda"};
    enum { DIGITS_MAX = 3 };
    size_t length = text != NULL ? strcspn(text, ":") : 0, digits = text != NULL ? strspn(text + length, ":") : 0;
    *device = (thi_device){.wish = THI_DEVICE_AUTO};
    for (int wish = THI_DEVICE_AUTO; text != NULL && wish <= THI_DEVICE_CUDA; wish++) {
        if (strlen(words[wish]) != length || memcmp(words[wish], text, length) != 0) {
            continue;
        }
        const char *number = text + length + digits;
        size_t given = strspn(number, "0123456789");
        device->wish = (thi_device_wish)wish;
        device->card = atoi(number);
        return digits == 0 ? text[length] == '\0'
                           : wish == THI_DEVICE_CUDA && digits == 1 && given >= 1 && given <= DIGITS_MAX &&
                                 number[given] == '\0';
    }
    return text == NULL;
}

/* What there is of a table of processes has all that several need. */
static bool read_ranks(const thiele_ranks *given, thiele_ranks *ranks)
{
    *ranks = given != NULL ? *given : (thiele_ranks){.count = 1};
    bool whole = ranks->count == 1 || (ranks->send != NULL && ranks->receive != NULL && ranks->broadcast != NULL);
    return whole && ranks->rank >= 0 && ranks->rank < ranks->count;
}

thiele_status thiele_context_create(thiele_context **out, const thiele_context_options *options)
{
    THI_NEED_OUT(out, NULL, true);
    thiele_context_options taken;
    thi_device device;
    thiele_ranks ranks;
    if (thi_take_options(NULL, "thiele_context_options", &taken, sizeof taken, options) != THIELE_OK ||
        taken.threads < 0 || taken.threads > THREADS_MAX || !read_device(taken.device, &device) ||
        !read_ranks(taken.ranks, &ranks)) {
        return THIELE_ERROR_ARGUMENT;
    }
    options = &taken;
    thiele_context *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        return THIELE_ERROR_MEMORY;
    }
    ctx->heap = thi_heap_create(options->memory_limit);
    if (ctx->heap == NULL || !thi_blis_reserve(1)) {
        free(ctx->heap);
        free(ctx);
        return THIELE_ERROR_MEMORY;
    }
    ctx->threads = options->threads > 0 ? options->threads : processors();
    ctx->seed = options->seed;
    ctx->device = device;
    ctx->ranks = ranks;
    ctx->log = options->log;
    ctx->log_user = options->log_user;
    ctx->progress = options->progress;
    ctx->progress_user = options->progress_user;
    *out = ctx;
    return THIELE_OK;
}

void thiele_context_destroy(thiele_context *ctx)
{
    if (ctx == NULL) {
        return;
    }
    if (ctx->device.end != NULL) {
        ctx->device.end(ctx->device.session);
    }
    thi_pool_destroy(ctx->pool);
    thi_blis_release(1);
    thi_heap_release(ctx->heap);
    free(ctx);
}

const char *thiele_context_message(const thiele_context *ctx)
{
    if (ctx == NULL) {
        return "the context could not be made: its options are invalid or memory is exhausted";
    }
    return ctx->message[0] != '\0' ? ctx->message : thiele_status_meaning(THIELE_OK);
}

int thiele_context_threads(const thiele_context *ctx)
{
    THI_NEED_OR(0, ctx);
    return ctx->threads;
}

const char *thiele_version(void)
{
    return THIELE_VERSION;
}

void thiele_free(void *memory)
{
    thi_free(memory);
}

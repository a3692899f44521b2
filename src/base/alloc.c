/*
 * Checked allocation. Every block carries a header with its size and the heap that it is counted in (the header too),
 * so that a context can limit what it holds, blocks can outlive the context, and tests can let the n-th allocation
 * fail. The header is as long as the alignment (64 bytes: a cache line and the widest vector).
 */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

struct thi_heap {
    size_t limit;
    atomic_size_t held;
    atomic_llong holders; /* live blocks, plus one for the context */
    atomic_llong asked;   /* allocations so far */
    int64_t fail_at;      /* the allocation that is to fail, 0 for none */
    bool fail_sticky;
};

typedef struct block_header {
    thi_heap *heap;
    size_t size;
} block_header;

/* What a container may use, where one is set (cgroup v2). */
static size_t container_memory(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
    if (file == NULL) {
        return SIZE_MAX;
    }
    int read = fscanf(file, "%llu", &bytes);
    fclose(file);
    return read == 1 && bytes > 0 && bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

static size_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    size_t physical = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
    size_t container = container_memory();
    return physical < container ? physical : container;
}

thi_heap *thi_heap_create(size_t limit)
{
    thi_heap *heap = calloc(1, sizeof *heap);
    if (heap != NULL) {
        heap->limit = limit > 0 ? limit : machine_memory() / 10 * 9;
        atomic_init(&heap->held, 0);
        atomic_init(&heap->holders, 1);
        atomic_init(&heap->asked, 0);
    }
    return heap;
}

void thi_heap_release(thi_heap *heap)
{
    if (atomic_fetch_sub(&heap->holders, 1) == 1) {
        free(heap);
    }
}

static bool injected_failure(thi_heap *heap)
{
    int64_t count = atomic_fetch_add(&heap->asked, 1) + 1;
    return heap->fail_at > 0 && (count == heap->fail_at || (heap->fail_sticky && count > heap->fail_at));
}

/* Counts `bytes` against the limit, or says why it can't. */
static thiele_status reserve(thiele_context *ctx, size_t bytes)
{
    thi_heap *heap = ctx->heap;
    if (injected_failure(heap)) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory: %zu bytes could not be allocated", bytes);
    }
    size_t held = atomic_fetch_add(&heap->held, bytes);
    if (bytes > heap->limit || held > heap->limit - bytes) {
        atomic_fetch_sub(&heap->held, bytes);
        return thi_fail(ctx, THIELE_ERROR_LIMIT,
                        "needs %.3f MB more, with %.3f MB in use and a limit of %.3f MB (raise it with `memory`)",
                        (double)bytes * 1e-6, (double)held * 1e-6, (double)heap->limit * 1e-6);
    }
    return THIELE_OK;
}

thiele_status thi_count(thiele_context *ctx, size_t bytes)
{
    return reserve(ctx, bytes);
}

void thi_uncount(thiele_context *ctx, size_t bytes)
{
    atomic_fetch_sub(&ctx->heap->held, bytes);
}

static void *block_new(thi_heap *heap, size_t bytes)
{
    void *raw = NULL;
    if (posix_memalign(&raw, ALIGNMENT, ALIGNMENT + bytes) != 0) {
        return NULL;
    }
    *(block_header *)raw = (block_header){heap, bytes};
    atomic_fetch_add(&heap->holders, 1);
    return (char *)raw + ALIGNMENT;
}

static block_header *header_of(void *block)
{
    return (block_header *)((char *)block - ALIGNMENT);
}

thiele_status thi_alloc_bare(thiele_context *ctx, void *out, size_t count, size_t size)
{
    void **block = out;
    *block = NULL;
    if (size != 0 && count > (SIZE_MAX / 2 - ALIGNMENT) / size) {
        return thi_fail(ctx, THIELE_ERROR_LIMIT, "%zu elements of %zu bytes are more than can be addressed", count,
                        size);
    }
    size_t bytes = count * size;
    thiele_status status = reserve(ctx, ALIGNMENT + bytes);
    if (status != THIELE_OK) {
        return status;
    }
    *block = block_new(ctx->heap, bytes);
    if (*block == NULL) {
        atomic_fetch_sub(&ctx->heap->held, ALIGNMENT + bytes);
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory: %zu bytes could not be allocated", bytes);
    }
    return THIELE_OK;
}

thiele_status thi_alloc(thiele_context *ctx, void *out, size_t count, size_t size)
{
    void **block = out;
    thiele_status status = thi_alloc_bare(ctx, out, count, size);
    if (status == THIELE_OK) {
        memset(*block, 0, count * size);
    }
    return status;
}

thiele_status thi_grow(thiele_context *ctx, void *block, size_t count, size_t size)
{
    void **old = block;
    void *larger;
    thiele_status status = thi_alloc(ctx, &larger, count, size);
    if (status != THIELE_OK) {
        return status;
    }
    if (*old != NULL) {
        size_t before = header_of(*old)->size;
        memcpy(larger, *old, before < count * size ? before : count * size);
        thi_free(*old);
    }
    *old = larger;
    return THIELE_OK;
}

thiele_status thi_strndup(thiele_context *ctx, char **out, const char *text, size_t length)
{
    thiele_status status = thi_alloc(ctx, out, length + 1, 1);
    if (status == THIELE_OK) {
        memcpy(*out, text, length);
    }
    return status;
}

thiele_status thi_strdup(thiele_context *ctx, char **out, const char *text)
{
    return thi_strndup(ctx, out, text, strlen(text));
}

void thi_free(void *block)
{
    if (block == NULL) {
        return;
    }
    block_header *header = header_of(block);
    thi_heap *heap = header->heap;
    atomic_fetch_sub(&heap->held, ALIGNMENT + header->size);
    free(header);
    thi_heap_release(heap);
}

size_t thi_memory_held(const thiele_context *ctx)
{
    return atomic_load(&ctx->heap->held);
}

size_t thi_memory_limit(const thiele_context *ctx)
{
    return ctx->heap->limit;
}

void thi_fail_allocation(thiele_context *ctx, int64_t nth, bool sticky)
{
    ctx->heap->fail_at = nth > 0 ? atomic_load(&ctx->heap->asked) + nth : 0;
    ctx->heap->fail_sticky = sticky;
}

int64_t thi_allocations(const thiele_context *ctx)
{
    return atomic_load(&ctx->heap->asked);
}

/*
 * malloc and its kin of the whole process, defined in the test program in place of the C library's: every library that
 * is linked uses these. From `failing_start` to `failing_end` allocations are counted, and the n-th fails. Not for the
 * sanitizers, which need the place for themselves.
 */
#ifndef THI_FAILING_MALLOC_H
#define THI_FAILING_MALLOC_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static struct {
    atomic_bool on;
    bool sticky;        /* those after the n-th fail too */
    int64_t fail_at;    /* from 1; 0: none */
    atomic_llong asked; /* since failing_start */
    atomic_llong live;  /* blocks */
} failing;

static inline void failing_start(int64_t nth, bool sticky)
{
    failing.fail_at = nth;
    failing.sticky = sticky;
    atomic_store(&failing.asked, 0);
    atomic_store(&failing.on, true);
}

/* Returns how many allocations were asked for. */
static inline int64_t failing_end(void)
{
    atomic_store(&failing.on, false);
    return atomic_load(&failing.asked);
}

#if defined(__SANITIZE_ADDRESS__)
enum { FAILING_WORKS = 0 };
#else
enum { FAILING_WORKS = 1 };

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void free(void *block);

static bool fails(void)
{
    if (!atomic_load(&failing.on)) {
        return false;
    }
    int64_t count = atomic_fetch_add(&failing.asked, 1) + 1;
    bool now = failing.fail_at > 0 && (count == failing.fail_at || (failing.sticky && count > failing.fail_at));
    errno = now ? ENOMEM : errno;
    return now;
}

static void *counted(void *block)
{
    atomic_fetch_add(&failing.live, block != NULL);
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
    if (fails()) {
        return NULL;
    }
    void *moved = __libc_realloc(block, size);
    atomic_fetch_add(&failing.live, (moved != NULL) - (block != NULL && (moved != NULL || size == 0)));
    return moved;
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

void free(void *block)
{
    atomic_fetch_sub(&failing.live, block != NULL);
    __libc_free(block);
}
#endif

#endif

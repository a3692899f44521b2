/*
 * BLIS asks for memory in one file, bli_malloc.c, and ends the process when there is none. The functions below have
 * the names of that file and are linked in its place. They hand out pieces of what thi_blis_reserve has had from the
 * system: some 100 kB for the tables of BLIS itself, and for each thread two blocks of A, a panel of B (13 to 19 MB;
 * what is not used is never touched) and some small records. BLIS keeps all of these in pools and takes them from
 * there, so that once a thread is warm nothing here is called.
 */
#include "base/blis_memory.h"

#define BLIS_EXPORT /* what stands in for functions of BLIS does not leave the library */
#include <blis.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What a thread takes beside its packing buffers, and what BLIS takes when it starts: some four times what was seen. */
enum { SMALL_BYTES = 64 << 10, START_BYTES = 512 << 10, PIECE = 64 };

typedef struct chunk {
    struct chunk *next;
    size_t size, used;
} chunk;

/* Lies before each piece. `bytes`: from the end of this header on. */
typedef struct piece {
    struct piece *next; /* of those that are free */
    size_t bytes;
} piece;

static struct {
    pthread_mutex_t lock;
    chunk *chunks;
    piece *free;
    int64_t threads, room; /* promised now, provided for */
    int64_t shortfalls;
    bool started;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool add_chunk(size_t bytes)
{
    chunk *added = malloc(sizeof *added + bytes);
    if (added == NULL) {
        return false;
    }
    *added = (chunk){memory.chunks, bytes, 0};
    memory.chunks = added;
    return true;
}

/* --- pieces --------------------------------------------------------------------------------------------------------
 */

/* Whether p will do and is not much larger than what is asked for. */
static bool suits(const piece *p, size_t bytes, size_t alignment)
{
    return p->bytes >= bytes && p->bytes / 2 <= bytes && (uintptr_t)(p + 1) % alignment == 0;
}

/* The smallest of the free pieces that will do. */
static void *take_free(size_t bytes, size_t alignment)
{
    piece **best = NULL;
    for (piece **at = &memory.free; *at != NULL; at = &(*at)->next) {
        if (suits(*at, bytes, alignment) && (best == NULL || (*at)->bytes < (*best)->bytes)) {
            best = at;
        }
    }
    if (best == NULL) {
        return NULL;
    }
    piece *taken = *best;
    *best = taken->next;
    return taken + 1;
}

static void add_free(void *block)
{
    piece *p = (piece *)block - 1;
    p->next = memory.free;
    memory.free = p;
}

static size_t round_up(size_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static void *cut(chunk *from, size_t bytes, size_t alignment)
{
    uintptr_t base = (uintptr_t)(from + 1);
    uintptr_t first = base + from->used + sizeof(piece);
    uintptr_t start = (first + alignment - 1) / alignment * alignment;
    if (start - base > from->size || from->size - (start - base) < bytes) {
        return NULL;
    }
    from->used = start - base + bytes;
    piece *made = (piece *)start - 1;
    *made = (piece){NULL, bytes};
    return made + 1;
}

static void *take(size_t bytes, size_t alignment)
{
    bytes = round_up(bytes);
    alignment = alignment < PIECE ? PIECE : alignment;
    void *block = take_free(bytes, alignment);
    for (chunk *from = memory.chunks; block == NULL && from != NULL; from = from->next) {
        block = cut(from, bytes, alignment);
    }
    if (block == NULL) {
        memory.shortfalls++;
        block = add_chunk(sizeof(piece) + alignment + bytes) ? cut(memory.chunks, bytes, alignment) : NULL;
    }
    return block;
}

static void *take_locked(size_t bytes, size_t alignment)
{
    pthread_mutex_lock(&memory.lock);
    void *block = take(bytes, alignment);
    pthread_mutex_unlock(&memory.lock);
    return block;
}

static void give_back(void *block)
{
    if (block != NULL) {
        pthread_mutex_lock(&memory.lock);
        add_free(block);
        pthread_mutex_unlock(&memory.lock);
    }
}

/* --- reservations --------------------------------------------------------------------------------------------------
 */

/* BLIS sets itself up once; asked for under the lock, this takes none itself. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static bool start(void)
{
    pthread_mutex_lock(&starting);
    if (!memory.started) {
        pthread_mutex_lock(&memory.lock);
        bool had = add_chunk(START_BYTES);
        pthread_mutex_unlock(&memory.lock);
        if (had) {
            thi_blis_start();
            memory.started = true;
        }
    }
    bool done = memory.started;
    pthread_mutex_unlock(&starting);
    return done;
}

/*
 * Blocks of A (solves pack the triangle and the rest at the same time) and a panel of B as BLIS cuts them, kept whole,
 * and room for the rest: all at once or nothing.
 */
static bool provide_thread(void)
{
    siz_t a, b, c;
    bli_pba_compute_pool_block_sizes(&a, &b, &c, bli_gks_query_cntx());
    a = round_up(a);
    b = round_up(b);
    if (!add_chunk(2 * a + b + 6 * BLIS_PAGE_SIZE + SMALL_BYTES)) {
        return false;
    }
    add_free(cut(memory.chunks, a, BLIS_PAGE_SIZE));
    add_free(cut(memory.chunks, a, BLIS_PAGE_SIZE));
    add_free(cut(memory.chunks, b, BLIS_PAGE_SIZE));
    return true;
}

bool thi_blis_reserve(int threads)
{
    if (!start()) {
        return false;
    }
    pthread_mutex_lock(&memory.lock);
    bool enough = true;
    for (; enough && memory.room < memory.threads + threads; memory.room += enough) {
        enough = provide_thread();
    }
    memory.threads += enough ? threads : 0;
    pthread_mutex_unlock(&memory.lock);
    return enough;
}

void thi_blis_release(int threads)
{
    pthread_mutex_lock(&memory.lock);
    memory.threads -= threads;
    pthread_mutex_unlock(&memory.lock);
}

int64_t thi_blis_shortfalls(void)
{
    pthread_mutex_lock(&memory.lock);
    int64_t count = memory.shortfalls;
    pthread_mutex_unlock(&memory.lock);
    return count;
}

/* --- what BLIS calls -----------------------------------------------------------------------------------------------
 */

void *bli_malloc_user(size_t size, err_t *r_val)
{
    return bli_fmalloc_align(NULL, size, BLIS_HEAP_ADDR_ALIGN_SIZE, r_val);
}

void bli_free_user(void *p)
{
    give_back(p);
}

void *bli_malloc_intl(size_t size, err_t *r_val)
{
    return bli_fmalloc_noalign(NULL, size, r_val);
}

void *bli_calloc_intl(size_t size, err_t *r_val)
{
    void *block = bli_malloc_intl(size, r_val);
    return block != NULL ? memset(block, 0, size) : NULL;
}

void bli_free_intl(void *p)
{
    give_back(p);
}

void *bli_fmalloc_align(malloc_ft f, size_t size, size_t align_size, err_t *r_val)
{
    (void)f;
    *r_val = BLIS_SUCCESS;
    return size > 0 ? take_locked(size, align_size) : NULL;
}

void bli_ffree_align(free_ft f, void *p)
{
    (void)f;
    give_back(p);
}

void *bli_fmalloc_noalign(malloc_ft f, size_t size, err_t *r_val)
{
    (void)f;
    *r_val = BLIS_SUCCESS;
    return take_locked(size, PIECE);
}

void bli_ffree_noalign(free_ft f, void *p)
{
    (void)f;
    give_back(p);
}

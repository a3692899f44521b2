/*
 * A pool of threads. One job at a time: it is open, and threads may join it, until the caller finds no block left; then
 * it is closed, and the caller waits for those that have joined. Threads are counted in `state`, whose highest bit says
 * that the job is open, so that joining and closing cannot miss each other.
 */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/blis_memory.h"

typedef struct worker {
    thi_pool *pool;
    pthread_t handle;
    int number; /* from 1; the caller is 0 */
} worker;

struct thi_pool {
    /* The job. Written while nobody can join, read by those who have. */
    void (*fn)(void *arg, int64_t block, int thread);
    void *arg;
    int64_t blocks;
    atomic_llong next;
    atomic_int most; /* threads that may take part */
    atomic_llong state;
    atomic_llong turn; /* number of the job */
    atomic_bool running, quit;
    atomic_int sleeping; /* workers on `wake` */
    atomic_bool waiting; /* the caller is on `done` */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int workers;
    worker *worker;
    pid_t owner; /* the process that the workers live in: a child after a fork has none of them */
};

static const long long OPEN = 1LL << 62;
/* Some 50 microseconds. */
enum { SPINS = 2000 };

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void work(thi_pool *pool, int number)
{
    for (long long block = atomic_fetch_add(&pool->next, 1); block < pool->blocks;
         block = atomic_fetch_add(&pool->next, 1)) {
        pool->fn(pool->arg, block, number);
    }
}

/* --- workers --------------------------------------------------------------------------------------------------------
 */

static void leave(thi_pool *pool)
{
    if (atomic_fetch_sub(&pool->state, 1) == 1 && atomic_load(&pool->waiting)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

/*
 * The job may end and another, for fewer threads, begin between the look at `most` and the exchange, which then
 * succeeds all the same: what counts is `most` of the job that was joined, which stays until it is left.
 */
static bool join(thi_pool *pool, int number)
{
    long long state = atomic_load(&pool->state);
    while ((state & OPEN) != 0 && number < atomic_load(&pool->most)) {
        if (atomic_compare_exchange_weak(&pool->state, &state, state + 1)) {
            if (number < atomic_load(&pool->most)) {
                return true;
            }
            leave(pool);
            return false;
        }
    }
    return false;
}

static bool news(thi_pool *pool, long long seen)
{
    return atomic_load(&pool->turn) != seen || atomic_load(&pool->quit);
}

static void await_news(thi_pool *pool, long long seen)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (news(pool, seen)) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleeping, 1);
    while (!news(pool, seen)) {
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    atomic_fetch_sub(&pool->sleeping, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *live(void *arg)
{
    const worker *self = arg;
    thi_pool *pool = self->pool;
    long long seen = 0;
    while (!atomic_load(&pool->quit)) {
        await_news(pool, seen);
        seen = atomic_load(&pool->turn);
        if (join(pool, self->number)) {
            work(pool, self->number);
            leave(pool);
        }
    }
    return NULL;
}

/* --- the caller -----------------------------------------------------------------------------------------------------
 */

/* Signals are for the program's own threads. */
static bool start(worker *w)
{
    if (!thi_blis_reserve(1)) {
        return false;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&w->handle, NULL, live, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        thi_blis_release(1);
    }
    return started;
}

thi_pool *thi_pool_create(int threads)
{
    thi_pool *pool = calloc(1, sizeof *pool);
    worker *list = calloc((size_t)threads, sizeof *list);
    if (pool == NULL || list == NULL) {
        free(pool);
        free(list);
        return NULL;
    }
    pool->worker = list;
    pool->owner = getpid();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (int i = 0; i < threads - 1; i++) {
        list[i] = (worker){.pool = pool, .number = i + 1};
        if (!start(&list[i])) {
            break;
        }
        pool->workers++;
    }
    if (pool->workers == 0) {
        thi_pool_destroy(pool);
        return NULL;
    }
    return pool;
}

static void wake_all(thi_pool *pool)
{
    if (atomic_load(&pool->sleeping) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void end_workers(thi_pool *pool)
{
    atomic_store(&pool->quit, true);
    wake_all(pool);
    for (int i = 0; i < pool->workers; i++) {
        pthread_join(pool->worker[i].handle, NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
}

void thi_pool_destroy(thi_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    if (thi_pool_is_own(pool)) {
        end_workers(pool);
    }
    thi_blis_release(pool->workers);
    free(pool->worker);
    free(pool);
}

bool thi_pool_is_own(const thi_pool *pool)
{
    return pool->owner == getpid();
}

static void await_last(thi_pool *pool)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load(&pool->state) == 0) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->waiting, true);
    while (atomic_load(&pool->state) != 0) {
        pthread_cond_wait(&pool->done, &pool->lock);
    }
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->lock);
}

bool thi_pool_run(thi_pool *pool, int threads, int64_t blocks, void (*fn)(void *arg, int64_t block, int thread),
                  void *arg)
{
    if (atomic_exchange(&pool->running, true)) {
        return false;
    }
    pool->fn = fn;
    pool->arg = arg;
    pool->blocks = blocks;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->most, threads);
    atomic_store(&pool->state, OPEN);
    atomic_fetch_add(&pool->turn, 1);
    wake_all(pool);
    work(pool, 0);
    atomic_fetch_and(&pool->state, ~OPEN);
    await_last(pool);
    atomic_store(&pool->running, false);
    return true;
}

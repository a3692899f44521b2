/*
 * Threads that wait for work. They spin for some tens of microseconds after a piece of work, because the next one
 * usually follows at once, and then sleep: on a machine that is busy with other programs a thread that spins for long
 * takes the time of those that have something to do. Work ends when its last block does; a thread that has not woken by
 * then is not waited for.
 */
#ifndef THI_POOL_H
#define THI_POOL_H

#include "base/base.h"

typedef struct thi_pool thi_pool;

/* threads - 1 threads beside the caller's. NULL when none could be started. */
thi_pool *thi_pool_create(int threads);
void thi_pool_destroy(thi_pool *pool);
/* Whether its threads live in this process. After a fork the child's copy has none: it can only be destroyed. */
bool thi_pool_is_own(const thi_pool *pool);
/*
 * Calls fn(arg, block, thread) for all blocks, on at most `threads` threads of which the caller's is number 0. False,
 * and nothing done, when the pool is at work already: the caller is a block of it.
 */
bool thi_pool_run(thi_pool *pool, int threads, int64_t blocks, void (*fn)(void *arg, int64_t block, int thread),
                  void *arg);

#endif

/*
 * The cut into tiles and the ordered tasks of tiles.h. A waiting task spins briefly, as the tile that it waits for is
 * usually nearly done, then gives its processor to others.
 */
#include "linalg/tiles.h"

#include <sched.h>

struct thi_tasks {
    thi_task_fn fn;
    void *arg;
    atomic_llong next; /* the first task that has not begun */
    atomic_bool ended;
    atomic_llong *counter;
};

enum { SPINS = 2000 };

/*
 * Larger tiles are a little faster one by one, smaller ones leave less to wait for. From the operations of bench/linalg
 * with sizes of 72 to 240: on two threads the choice matters up to n = 500, where 192 loses a seventh to a third; from
 * 700 on all are within 5%. On 16 threads 192 loses half at n = 1000 and a third at n = 2000. One thread likes 192: by
 * 5%.
 */
thi_tiling thi_tiling_make(int64_t n, int64_t whole)
{
    int64_t size = n < 700 ? 96 : n < 3000 ? 120 : 192;
    return n <= whole ? (thi_tiling){n, whole, n > 0} : (thi_tiling){n, size, (n + size - 1) / size};
}

bool thi_tasks_wait(thi_tasks *tasks, int64_t counter, int64_t value)
{
    int spins = 0;
    while (atomic_load_explicit(&tasks->counter[counter], memory_order_acquire) < value) {
        if (atomic_load_explicit(&tasks->ended, memory_order_relaxed)) {
            return false;
        }
        if (spins < SPINS) {
            spins++;
        } else {
            sched_yield();
        }
    }
    return true;
}

void thi_tasks_raise(thi_tasks *tasks, int64_t counter)
{
    atomic_fetch_add_explicit(&tasks->counter[counter], 1, memory_order_acq_rel);
}

/* The block that thi_parallel hands out may come in any order: the task is claimed here. */
static thiele_status run_next(void *arg, int64_t block, int thread)
{
    (void)block;
    thi_tasks *tasks = arg;
    int64_t task = atomic_fetch_add_explicit(&tasks->next, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&tasks->ended, memory_order_relaxed) && !tasks->fn(tasks->arg, tasks, task, thread)) {
        atomic_store_explicit(&tasks->ended, true, memory_order_relaxed);
    }
    return THIELE_OK;
}

thiele_status thi_tasks_run(thiele_context *ctx, int64_t tasks, int64_t counters, thi_task_fn fn, void *arg)
{
    thi_tasks run = {.fn = fn, .arg = arg};
    thiele_status status = thi_alloc(ctx, &run.counter, (size_t)counters, sizeof *run.counter);
    if (status != THIELE_OK) {
        return status;
    }
    atomic_init(&run.next, 0);
    atomic_init(&run.ended, false);
    for (int64_t i = 0; i < counters; i++) {
        atomic_init(&run.counter[i], 0);
    }
    status = thi_parallel(ctx, tasks, run_next, &run);
    thi_free(run.counter);
    return status;
}

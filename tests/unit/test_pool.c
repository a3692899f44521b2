/* The pool of threads: every block is done once, by a thread that was asked; nested work is declined; many short jobs.
 */
#include "base/pool.h"
#include "testing.h"

#include <sys/wait.h>

enum { THREADS = 4, JOBS = 20000, MOST = 64 };

typedef struct tally {
    atomic_int times[MOST];
    atomic_int highest; /* thread */
    thi_pool *pool;
    atomic_int declined;
} tally;

static void count(void *arg, int64_t block, int thread)
{
    tally *t = arg;
    atomic_fetch_add(&t->times[block], 1);
    int highest = atomic_load(&t->highest);
    while (thread > highest && !atomic_compare_exchange_weak(&t->highest, &highest, thread)) {
    }
}

static void nest(void *arg, int64_t block, int thread)
{
    tally *t = arg;
    count(arg, block, thread);
    atomic_fetch_add(&t->declined, !thi_pool_run(t->pool, THREADS, MOST, count, arg));
}

static void test_every_block_once(void **state)
{
    (void)state;
    thi_pool *pool = thi_pool_create(THREADS);
    assert_non_null(pool);
    for (int job = 0; job < JOBS; job++) {
        tally t = {.pool = pool};
        int blocks = job % MOST;
        int threads = 1 + job % THREADS;
        assert_true(thi_pool_run(pool, threads, blocks, count, &t));
        for (int b = 0; b < MOST; b++) {
            assert_int_equal(t.times[b], b < blocks);
        }
        assert_true(t.highest < threads);
    }
    thi_pool_destroy(pool);
}

static void test_nested_work_is_declined(void **state)
{
    (void)state;
    tally t = {.pool = thi_pool_create(THREADS)};
    assert_non_null(t.pool);
    assert_true(thi_pool_run(t.pool, THREADS, MOST, nest, &t));
    assert_int_equal(t.declined, MOST);
    thi_pool_destroy(t.pool);
    thi_pool_destroy(NULL);
}

static thiele_status count_block(void *arg, int64_t block, int thread)
{
    count(arg, block, thread);
    return THIELE_OK;
}

/* All blocks, on threads of this process. */
static bool context_works(thiele_context *ctx)
{
    tally t = {0};
    bool right = thi_parallel(ctx, MOST, count_block, &t) == THIELE_OK;
    for (int b = 0; b < MOST; b++) {
        right = right && t.times[b] == 1;
    }
    return right;
}

static thiele_status await_all(void *arg, int64_t block, int thread)
{
    (void)block;
    tally *t = arg;
    if (atomic_exchange(&t->times[thread], 1) == 0) {
        atomic_fetch_add(&t->highest, 1);
    }
    while (atomic_load(&t->highest) < THREADS) {
    }
    return THIELE_OK;
}

/*
 * A child has none of its parent's threads: it gets its own, or just lets the context go. All threads are up before the
 * first fork: AddressSanitizer does not unlock its allocator in a child, and a thread that starts allocates there.
 */
static void test_fork(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer knows no threads of a forked child\n");
    skip();
#endif
    thiele_context *ctx = test_context(THREADS);
    assert_int_equal(thi_parallel(ctx, THREADS, await_all, &(tally){0}), THIELE_OK);
    assert_true(context_works(ctx));
    for (int use = 0; use < 2; use++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            bool right = use == 0 || context_works(ctx);
            thiele_context_destroy(ctx);
            _exit(right ? 0 : 1);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    assert_true(context_works(ctx));
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_once),
        cmocka_unit_test(test_nested_work_is_declined),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

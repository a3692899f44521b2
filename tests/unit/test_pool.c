/* The pool of threads: every block is done once, by a thread that was asked; nested work is declined; many short jobs.
 */
#include "base/pool.h"
#include "testing.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_once),
        cmocka_unit_test(test_nested_work_is_declined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

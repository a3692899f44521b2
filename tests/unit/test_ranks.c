/*
 * Fits by several processes, here threads that talk over sockets: sums over blocks are those of one process to the bit,
 * whoever has which; fits give the same model file on any number of processes and threads; a process that fails takes
 * the others with it; what cannot be shared, and tables that differ, are refused.
 */
#include "model_testing.h"

#include <pthread.h>
#include <sys/socket.h>

#include "fit/subtotals.h"

enum { MOST = 5 };

/* --- processes ---------------------------------------------------------------------------------------------------- */

typedef struct member {
    int rank, count;
    int (*wire)[MOST]; /* wire[a][b]: where a talks to b */
    thiele_context *ctx;
    void (*run)(struct member *member);
    const void *task;
    thiele_status status;
    char message[THI_MESSAGE_MAX];
    double *result;
} member;

static int send_bytes(void *user, const void *bytes, size_t length, int to)
{
    member *m = user;
    const char *at = bytes;
    while (length > 0) {
        ssize_t done = send(m->wire[m->rank][to], at, length, MSG_NOSIGNAL);
        if (done <= 0) {
            return 1;
        }
        at += done;
        length -= (size_t)done;
    }
    return 0;
}

static int receive_bytes(void *user, void *bytes, size_t length, int from)
{
    member *m = user;
    char *at = bytes;
    while (length > 0) {
        ssize_t done = recv(m->wire[m->rank][from], at, length, 0);
        if (done <= 0) {
            return 1;
        }
        at += done;
        length -= (size_t)done;
    }
    return 0;
}

static int broadcast_bytes(void *user, void *bytes, size_t length, int from)
{
    member *m = user;
    int failed = 0;
    if (m->rank != from) {
        return receive_bytes(user, bytes, length, from);
    }
    for (int to = 0; to < m->count && !failed; to++) {
        failed = to != from && send_bytes(user, bytes, length, to);
    }
    return failed;
}

/* Who goes hangs up, so that nobody waits for it. */
static void hang_up(const member *m)
{
    for (int to = 0; to < m->count; to++) {
        if (to != m->rank) {
            shutdown(m->wire[m->rank][to], SHUT_RDWR);
        }
    }
}

static void *live(void *arg)
{
    member *m = arg;
    m->run(m);
    snprintf(m->message, sizeof m->message, "%s", thiele_context_message(m->ctx));
    if (m->status != THIELE_OK) {
        hang_up(m);
    }
    return NULL;
}

static void run_all(member *all, int count, int threads, void (*run)(member *), const void *const *task)
{
    static int wire[MOST][MOST];
    pthread_t thread[MOST];
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < a; b++) {
            int pair[2];
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
            wire[a][b] = pair[0];
            wire[b][a] = pair[1];
        }
    }
    for (int r = 0; r < count; r++) {
        thiele_ranks ranks = {r, count, send_bytes, receive_bytes, broadcast_bytes, NULL, &all[r]};
        thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
        all[r] = (member){.rank = r, .count = count, .wire = wire, .run = run, .task = task[r]};
        options.threads = threads;
        options.seed = 1;
        options.ranks = &ranks;
        assert_int_equal(thiele_context_create(&all[r].ctx, &options), THIELE_OK);
        assert_int_equal(pthread_create(&thread[r], NULL, live, &all[r]), 0);
    }
    for (int r = 0; r < count; r++) {
        assert_int_equal(pthread_join(thread[r], NULL), 0);
        assert_int_equal(thi_memory_held(all[r].ctx), 0);
        thiele_context_destroy(all[r].ctx);
    }
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < count; b++) {
            if (a != b) {
                close(wire[a][b]);
            }
        }
    }
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

enum { LENGTH = 17 };
typedef struct summing {
    int64_t blocks, bad; /* -1: none is */
    double out[LENGTH];
} summing;

static void sum_blocks(member *m)
{
    summing *task = (summing *)m->task;
    thi_subtotals subtotals;
    int64_t first, end;
    thi_subtotals_open(&subtotals, LENGTH);
    for (int again = 0; again < 2; again++) { /* the tree is empty after a sum */
        thi_subtotals_range(m->ctx, task->blocks, &first, &end);
        m->status = THIELE_OK;
        for (int64_t b = first; b < end && m->status == THIELE_OK; b++) {
            double *numbers;
            m->status = b == task->bad ? thi_fail(m->ctx, THIELE_ERROR_DATA, "block %d is bad", (int)b)
                                       : thi_subtotals_next(&subtotals, m->ctx, b, &numbers);
            for (int i = 0; i < LENGTH && m->status == THIELE_OK; i++) {
                numbers[i] = thi_random_normal((thi_stream){1, 2, (uint64_t)b}, (uint64_t)i);
            }
        }
        m->status = thi_subtotals_total(&subtotals, m->ctx, m->status, task->out);
    }
    thi_subtotals_close(&subtotals);
}

static void test_sums(void **state)
{
    (void)state;
    for (int64_t blocks = 1; blocks < 40; blocks++) {
        summing want = {.blocks = blocks, .bad = -1};
        for (int count = 1; count <= MOST; count++) {
            member all[MOST];
            summing each[MOST];
            const void *task[MOST];
            for (int r = 0; r < count; r++) {
                each[r] = (summing){.blocks = blocks, .bad = -1};
                task[r] = &each[r];
            }
            run_all(all, count, 1, sum_blocks, task);
            for (int r = 0; r < count; r++) {
                assert_int_equal(all[r].status, THIELE_OK);
                if (count == 1) {
                    want = each[0];
                }
                assert_memory_equal(each[r].out, want.out, sizeof want.out);
            }
        }
    }
}

/* All hear of the failure of one. */
static void test_failing_block(void **state)
{
    (void)state;
    for (int64_t bad = 0; bad < 11; bad++) {
        member all[MOST];
        summing each[MOST];
        const void *task[MOST];
        for (int r = 0; r < 4; r++) {
            each[r] = (summing){.blocks = 11, .bad = bad};
            task[r] = &each[r];
        }
        run_all(all, 4, 1, sum_blocks, task);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(all[r].status, THIELE_ERROR_DATA);
            assert_non_null(strstr(all[r].message, "is bad"));
        }
    }
}

/* --- fits --------------------------------------------------------------------------------------------------------- */

typedef struct fitting {
    int64_t rows;
    const char *method, *path;
    double deadline;
    const char *likelihood, *optimizer;
} fitting;

static void fit_model(member *m)
{
    const fitting *task = m->task;
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_status status;
    options.columns.target = "strength";
    options.columns.ignore = "row";
    options.model.method = task->method;
    options.stopping.deadline = task->deadline;
    options.model.likelihood = task->likelihood;
    options.prior.kernel = "se";
    options.stopping.effort = "low";
    options.optimiser.optimiser = task->optimizer;
    options.inducing.inducing = 15;
    options.stopping.iterations = 3;
    THI_TRY(thiele_table_generate(&table, m->ctx, task->rows, 1));
    THI_TRY(thiele_model_fit(&model, m->ctx, table, &options));
    if (m->rank == 0) {
        THI_TRY(thiele_model_save(model, m->ctx, task->path));
    }
out:
    m->status = status;
    thiele_model_destroy(model);
    thiele_table_destroy(table);
}

static void fit_all(member *all, int count, int threads, const fitting *task)
{
    const void *each[MOST];
    for (int r = 0; r < count; r++) {
        each[r] = task;
    }
    run_all(all, count, threads, fit_model, each);
}

static void test_same_model(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"collapsed", NULL, NULL}, {"variational", "student-t", "lbfgs"}};
    char first[256], other[256], command[600];
    snprintf(first, sizeof first, "%s", in_folder("one.thiele"));
    snprintf(other, sizeof other, "%s", in_folder("many.thiele"));
    static const int counts[] = {1, 2, 4, 1, 3}; /* three of the first case, two of the second */
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int count = counts[k];
        member all[MOST];
        fitting task = {.rows = 2100,
                        .method = cases[k / 3][0],
                        .likelihood = cases[k / 3][1],
                        .optimizer = cases[k / 3][2],
                        .path = count == 1 ? first : other};
        fit_all(all, count, count == 3 ? 2 : 1, &task);
        for (int r = 0; r < count; r++) {
            if (all[r].status != THIELE_OK) {
                fail_msg("%s", all[r].message);
            }
        }
        snprintf(command, sizeof command, "cmp %s %s", first, task.path);
        assert_int_equal(system(command), 0);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    member all[MOST];
    fitting task = {.rows = 300, .method = "fitc", .path = in_folder("none.thiele")};
    fit_all(all, 2, 1, &task);
    assert_int_equal(all[0].status, THIELE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(all[0].message, "method 'fitc' does not run on 2 processes"));
    task.method = "collapsed";
    task.deadline = 5.0;
    fit_all(all, 2, 1, &task);
    assert_int_equal(all[1].status, THIELE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(all[1].message, "no deadline"));
    task = (fitting){.rows = 9000, .method = "variational", .path = task.path, .likelihood = "student-t"};
    fit_all(all, 2, 1, &task);
    assert_int_equal(all[1].status, THIELE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(all[1].message, "not shared between processes"));
    /* Another table than that of the first: it says so, and the first does not wait. */
    const fitting own[2] = {{.rows = 3000, .method = "collapsed", .path = task.path},
                            {.rows = 3001, .method = "collapsed", .path = ""}};
    const void *each[2] = {&own[0], &own[1]};
    run_all(all, 2, 1, fit_model, each);
    assert_int_equal(all[1].status, THIELE_ERROR_ARGUMENT);
    assert_non_null(strstr(all[1].message, "process 2 of 2 has another table than the first"));
    assert_int_equal(all[0].status, THIELE_ERROR_IO);
    assert_non_null(strstr(all[0].message, "lost the connection"));
}

static void test_options(void **state)
{
    (void)state;
    thiele_context *made;
    thiele_ranks ranks = {.rank = 0, .count = 2};
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.ranks = &ranks;
    assert_int_equal(thiele_context_create(&made, &options), THIELE_ERROR_ARGUMENT);
    ranks = (thiele_ranks){.rank = 2, .count = 1};
    assert_int_equal(thiele_context_create(&made, &options), THIELE_ERROR_ARGUMENT);
    char why[100];
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    assert_int_equal(thiele_ranks_open(&ranks, why, sizeof why), THIELE_OK);
    assert_int_equal(ranks.count, 1);
    thiele_ranks_close(&ranks, 0);
    setenv("PMI_SIZE", "3", 1);
    setenv("THIELE_MPI_LIBRARY", "/nothing/here.so", 1);
    assert_int_equal(thiele_ranks_open(&ranks, why, sizeof why), THIELE_ERROR_UNSUPPORTED);
    assert_non_null(strstr(why, "cannot be loaded"));
    assert_int_equal(thiele_ranks_open(NULL, why, sizeof why), THIELE_ERROR_ARGUMENT);
    thiele_ranks_close(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),     cmocka_unit_test(test_failing_block), cmocka_unit_test(test_same_model),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

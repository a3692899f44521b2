/*
 * Reading that goes wrong or takes too long: gzip files with something behind their end, NPY files that are cut short
 * while they are open, pipes that nobody writes to, packed files that never end, wide tables within a limit of memory.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "data/data.h"
#include "testing.h"

static thiele_context *ctx;
static char folder[] = "/tmp/thiele-test-XXXXXX";
static char path[64];

static void append(const char *mode, const void *bytes, size_t length)
{
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* A gzip member of the given text behind what there is. */
static void append_member(const char *mode, const char *text)
{
    gzFile file = gzopen(path, mode);
    assert_non_null(file);
    assert_int_equal(gzputs(file, text), (int)strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

static long length_of(void)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (long)info.st_size;
}

static void change(long at, unsigned char byte)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    fputc(byte, file);
    fclose(file);
}

static void assert_rows(int64_t rows)
{
    thiele_table *table;
    assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
    assert_int_equal(thiele_table_rows(table), rows);
    thiele_table_destroy(table);
}

static void refuse(const char *part)
{
    thiele_table *table;
    assert_fails(ctx, thiele_table_open(&table, ctx, path, NULL), THIELE_ERROR_FORMAT, part);
    assert_null(table);
}

/* Several members are one text; every byte of the second one's head is checked, and what is no member is refused. */
static void test_members(void **state)
{
    (void)state;
    append_member("wb", "a,b\n1,2\n");
    long first = length_of();
    assert_rows(1);
    append_member("ab", "3,4\n5,6\n");
    assert_rows(3);
    change(first, 'x');
    refuse("other bytes after");
    change(first, 0x1f);
    change(first + 1, 0);
    refuse("part 2 is damaged");
    change(first + 1, 0x8b);
    change(first + 2, 7);
    refuse("part 2 is damaged");
    change(first + 2, 8);
    change(length_of() - 8, 99);
    refuse("part 2 is damaged");
    assert_int_equal(truncate(path, first + 5), 0);
    refuse("ends too early");
    assert_int_equal(truncate(path, first), 0);
    append("ab", "garbage", 7);
    refuse("other bytes after");
    assert_int_equal(truncate(path, first), 0);
    append("ab", "\0\0\0\0", 4); /* as tapes have */
    assert_rows(1);
    append("ab", "x", 1);
    refuse("other bytes after");
}

/* Cut short while it is open: a sentence, in both orders of memory. */
static void test_npy_cut(void **state)
{
    (void)state;
    enum { ROWS = 5000, COLUMNS = 3 };
    static double data[ROWS * COLUMNS];
    static const char *const orders[] = {"False", "True"};
    for (int order = 0; order < 2; order++) {
        char head[128];
        const int columns[2] = {2, 0};
        double out[4];
        thiele_table *table;
        memset(head, ' ', sizeof head);
        memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
        snprintf(head + 10, sizeof head - 10, "{'descr': '<f8', 'fortran_order': %s, 'shape': (%d, %d), }",
                 orders[order], ROWS, COLUMNS);
        head[10 + strlen(head + 10)] = ' ';
        append("wb", head, sizeof head);
        append("ab", data, sizeof data);
        assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
        assert_ok(ctx, table->ops->numbers(table, ctx, ROWS - 2, 2, columns, 2, out));
        assert_int_equal(truncate(path, sizeof head + 8), 0);
        assert_fails(ctx, table->ops->numbers(table, ctx, ROWS - 2, 2, columns, 2, out), THIELE_ERROR_IO,
                     "shorter than it was");
        thiele_table_destroy(table);
    }
}

static int stop_later(const thiele_progress *progress, void *user)
{
    int *calls = user;
    assert_string_equal(progress->phase, "read");
    return ++*calls >= 3;
}

/* A context that asks to stop when it is asked the third time, some 0.15 seconds after the beginning. */
static thiele_context *impatient(int *calls)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *own;
    options.progress = stop_later;
    options.progress_user = calls;
    assert_int_equal(thiele_context_create(&own, &options), THIELE_OK);
    return own;
}

static void test_silent_pipe(void **state)
{
    (void)state;
    int calls = 0;
    thiele_table *table;
    char name[80];
    thiele_context *own = impatient(&calls);
    snprintf(name, sizeof name, "%s.fifo", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    double start = thi_seconds();
    assert_fails(own, thiele_table_open(&table, own, name, NULL), THIELE_ERROR_CANCELLED, "stopped while");
    assert_true(thi_seconds() - start < 2.0);
    unlink(name);
    thiele_context_destroy(own);
}

/* Many megabytes of the same line in a small file. */
static void test_packed_bomb(void **state)
{
    (void)state;
    enum { TIMES = 400 };
    static char lines[1 << 20];
    int calls = 0;
    thiele_table *table;
    for (size_t i = 0; i < sizeof lines; i += 4) {
        memcpy(lines + i, "1,2\n", 4);
    }
    gzFile file = gzopen(path, "wb1");
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(gzwrite(file, lines, sizeof lines), (int)sizeof lines);
    }
    gzclose(file);
    thiele_context *own = impatient(&calls);
    double start = thi_seconds();
    assert_fails(own, thiele_table_open(&table, own, path, NULL), THIELE_ERROR_CANCELLED, "stopped while");
    assert_true(thi_seconds() - start < 3.0);
    thiele_context_destroy(own);
}

/* Every pass of the encoder and its readers looks up: a callback that wants to stop is heard in the first that can. */
static void test_encoder_stops(void **state)
{
    (void)state;
    int calls = 2; /* at once */
    thiele_table *table;
    thi_encoder encoder;
    thi_column_options options = {0};
    thiele_context *own = impatient(&calls);
    options.target = "strength";
    assert_ok(own, thiele_table_generate(&table, own, 5000, 1));
    thi_watch watch = thi_watch_begin(own, "the table", thi_seconds() - 1.0);
    own->watch.next = 0.0;
    assert_fails(own, thi_encoder_learn(&encoder, own, table, &options, NULL), THIELE_ERROR_CANCELLED, "the deadline");
    thi_watch_end(own, watch);
    watch = thi_watch_begin(own, "the table", 0.0);
    own->watch.next = 0.0;
    assert_fails(own, thi_encoder_learn(&encoder, own, table, &options, NULL), THIELE_ERROR_CANCELLED, "stopped while");
    thi_watch_end(own, watch);
    assert_ok(own, thi_encoder_learn(&encoder, own, table, &options, NULL));
    thi_encoder_clear(&encoder);
    thiele_table_destroy(table);
    assert_int_equal(thi_memory_held(own), 0);
    thiele_context_destroy(own);
}

/* 40,000 columns and 20 rows are 6.4 MB of numbers: reading and encoding them takes a few times that. */
static void test_wide(void **state)
{
    (void)state;
    enum { ROWS = 20, COLUMNS = 40000 };
    thiele_context_options limits = THIELE_CONTEXT_OPTIONS_INIT;
    thi_column_options options = {0};
    thiele_context *own;
    thiele_table *table;
    thi_encoder encoder;
    double *values = calloc((size_t)ROWS * COLUMNS, sizeof *values);
    test_normals((int64_t)ROWS * COLUMNS, 1, values);
    limits.memory_limit = (size_t)60e6;
    options.target = "x1";
    assert_int_equal(thiele_context_create(&own, &limits), THIELE_OK);
    assert_ok(own, thiele_table_from_rows(&table, own, ROWS, COLUMNS, values, NULL));
    assert_ok(own, thi_encoder_learn(&encoder, own, table, &options, NULL));
    assert_int_equal(encoder.dims, COLUMNS - 1);
    assert_ok(own, thiele_table_write(table, own, path));
    thi_encoder_clear(&encoder);
    thiele_table_destroy(table);
    assert_int_equal(thi_memory_held(own), 0);
    thiele_context_destroy(own);
    free(values);
}

/* Generated rows are made as they are asked for: any number of them takes no memory. */
static void test_generated(void **state)
{
    (void)state;
    thiele_context_options limits = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *own;
    thiele_table *table;
    char first[32], last[32];
    limits.memory_limit = (size_t)1e6;
    assert_int_equal(thiele_context_create(&own, &limits), THIELE_OK);
    assert_ok(own, thiele_table_generate(&table, own, INT64_C(100000000000), 1));
    assert_int_equal(thiele_table_rows(table), INT64_C(100000000000));
    assert_ok(own, thiele_table_cell(table, own, INT64_C(99999999999), 0, last, sizeof last));
    assert_string_equal(last, "100000000000");
    assert_ok(own, thiele_table_cell(table, own, 0, 3, first, sizeof first));
    assert_true(strcmp(first, "north") == 0 || strcmp(first, "south") == 0 || strcmp(first, "east") == 0);
    thiele_table_destroy(table);
    thiele_context_destroy(own);
}

static int set_up(void **state)
{
    (void)state;
    ctx = test_context(1);
    int failed = mkdtemp(folder) == NULL;
    snprintf(path, sizeof path, "%s/t", folder);
    return failed;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),     cmocka_unit_test(test_npy_cut),       cmocka_unit_test(test_silent_pipe),
        cmocka_unit_test(test_packed_bomb), cmocka_unit_test(test_encoder_stops), cmocka_unit_test(test_wide),
        cmocka_unit_test(test_generated),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

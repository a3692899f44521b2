/* Feeds: records cut wherever bytes happen to end, lines named in messages, files that grow, bad lines. */
#include "testing_context.h"

#include <fcntl.h>

#include <thiele/stream.h>

static char folder[] = "/tmp/thiele-test-feed-XXXXXX";

static int make_folder(void **state)
{
    return mkdtemp(folder) != NULL ? set_up(state) : -1;
}

static int remove_folder(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) | tear_down(state);
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const char *text, const char *mode)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static thiele_feed *open_feed(const char *path, int follow, int skip_bad, int64_t skip)
{
    thiele_feed_options options = THIELE_FEED_OPTIONS_INIT;
    thiele_feed *feed = NULL;
    options.follow = follow;
    options.skip_bad = skip_bad;
    options.skip = skip;
    assert_ok(ctx, thiele_feed_open(&feed, ctx, path, NULL, &options));
    return feed;
}

/* The next table has these cells in its first column: "1 2 3". */
static void expect_rows(thiele_feed *feed, int64_t least, int64_t most, const char *cells)
{
    thiele_table *table = NULL;
    char got[256] = "", cell[64];
    assert_ok(ctx, thiele_feed_next(feed, ctx, least, most, 0.0, &table));
    for (int64_t r = 0; table != NULL && r < thiele_table_rows(table); r++) {
        assert_ok(ctx, thiele_table_cell(table, ctx, r, 0, cell, sizeof cell));
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", r > 0 ? " " : "", cell);
    }
    thiele_table_destroy(table);
    assert_string_equal(got, cells);
}

static void test_chunks(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a,b\n1,2\n3,4\n\n5,6\n7,8\n9,10", /* a blank line; no line ending at the end */
        "\xEF\xBB\xBF"
        "a;b\r\n1;2\r\n3;4\r\n5;6\r\n7;8\r\n9;10\r\n", /* byte order mark, semicolons, CR LF */
        "1\t2\n3\t4\n5\t6\n7\t8\n9\t10\n\n  \n",       /* no header; blank lines at the end */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        thiele_feed *feed = open_feed(write_file("f.csv", texts[i], "w"), 0, 0, 0);
        expect_rows(feed, 2, 2, "1 3");
        assert_int_equal(thiele_feed_rows(feed), 2);
        assert_false(thiele_feed_ended(feed));
        expect_rows(feed, 1, 2, "5 7");
        expect_rows(feed, 2, 2, "9");
        expect_rows(feed, 1, 2, "");
        assert_true(thiele_feed_ended(feed));
        thiele_feed_close(feed);
    }
}

/* From a pipe byte by byte: quotes with line feeds in them, and what is not complete yet. */
static void test_pipe(void **state)
{
    (void)state;
    static const char text[] = "name,y\n\"one\nand \"\"a\"\" half\",1\ntwo,2\n\"three,\",3\n";
    int ends[2], old = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_not_equal(dup2(ends[0], STDIN_FILENO), -1);
    thiele_feed *feed = open_feed("-", 0, 0, 0);
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        assert_int_equal(write(ends[1], text + i, 1), 1);
        if (i + 2 < sizeof text) {
            expect_rows(feed, 3, 3, "");
        }
    }
    expect_rows(feed, 1, 3, "one\nand \"a\" half two three,");
    assert_false(thiele_feed_ended(feed));
    close(ends[1]);
    expect_rows(feed, 1, 3, "");
    assert_true(thiele_feed_ended(feed));
    thiele_feed_close(feed);
    dup2(old, STDIN_FILENO);
    close(old);
    close(ends[0]);
}

/* Appends a random field, plain or quoted with whatever may be inside. */
static void add_field(char *text, uint64_t seed, uint64_t *index)
{
    static const char *const parts[] = {"1", "2.5", "a", "", " ", "\n", ",", "\"\"", "\r\n", "x"};
    thi_stream s = {seed, THI_RANDOM_DEMO, 9};
    bool quoted = thi_random_bits(s, (*index)++) % 3 == 0;
    int count = (int)(thi_random_bits(s, (*index)++) % 4);
    strcat(text, quoted ? "\"" : "");
    for (int i = 0; i < count; i++) {
        strcat(text, parts[thi_random_bits(s, (*index)++) % (quoted ? 10 : 5)]);
    }
    strcat(text, quoted ? "\"" : "z");
}

/* Random tables, whole and through a feed in random portions: the same cells. */
static void test_random_tables(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        char text[8192] = "first,second\n", cell[2][256];
        thi_stream s = {seed, THI_RANDOM_DEMO, 10};
        uint64_t index = 0;
        for (int r = 0; r < 20; r++) {
            add_field(text, seed, &index);
            strcat(text, ",");
            add_field(text, seed, &index);
            strcat(text, thi_random_bits(s, (uint64_t)r) % 2 == 0 ? "\n" : "\r\n\n");
        }
        thiele_table *whole = NULL, *part = NULL;
        thiele_feed *feed = open_feed(write_file("random.csv", text, "w"), 0, 0, 0);
        assert_ok(ctx, thiele_table_open(&whole, ctx, path_of("random.csv"), NULL));
        for (int64_t row = 0; !thiele_feed_ended(feed);) {
            assert_ok(ctx, thiele_feed_next(feed, ctx, 1, 1 + (int64_t)(thi_random_bits(s, index++) % 7), 0.0, &part));
            for (int64_t r = 0; part != NULL && r < thiele_table_rows(part); r++, row++) {
                for (int c = 0; c < 2; c++) {
                    assert_ok(ctx, thiele_table_cell(whole, ctx, row, c, cell[0], sizeof cell[0]));
                    assert_ok(ctx, thiele_table_cell(part, ctx, r, c, cell[1], sizeof cell[1]));
                    assert_string_equal(cell[0], cell[1]);
                }
            }
            thiele_table_destroy(part);
        }
        assert_int_equal(thiele_feed_rows(feed), thiele_table_rows(whole));
        thiele_feed_close(feed);
        thiele_table_destroy(whole);
    }
}

static void test_bad_lines(void **state)
{
    (void)state;
    static const char text[] = "a,b\n1,2\n\n3,4\n5,6,7\n8,9\n\"10\",11\n12,\"13\"14\n15,16\n";
    const char *path = write_file("bad.csv", text, "w");
    thiele_table *table = NULL;
    thiele_feed *feed = open_feed(path, 0, 0, 0);
    expect_rows(feed, 1, 100, "1 3");
    assert_fails(ctx, thiele_feed_next(feed, ctx, 1, 100, 0.0, &table), THIELE_ERROR_FORMAT,
                 "row 3 (line 5): 3 fields, but 2 are expected");
    assert_null(table);
    expect_rows(feed, 1, 100, "8 10");
    assert_fails(ctx, thiele_feed_next(feed, ctx, 1, 100, 0.0, &table), THIELE_ERROR_FORMAT,
                 "line 8: text after a closing quote");
    expect_rows(feed, 1, 100, "15");
    thiele_feed_close(feed);
    feed = open_feed(path, 0, 1, 0);
    expect_rows(feed, 1, 3, "1 3");
    expect_rows(feed, 1, 100, "8 10 15");
    assert_int_equal(thiele_feed_skipped(feed), 2);
    assert_int_equal(thiele_feed_rows(feed), 5);
    thiele_feed_close(feed);
    feed = open_feed(path, 0, 1, 3);
    expect_rows(feed, 1, 100, "10 15");
    assert_int_equal(thiele_feed_rows(feed), 5);
    thiele_feed_close(feed);
}

/* Without a header a chunk of nothing but a bad line is not a table of another width. */
static void test_other_width(void **state)
{
    (void)state;
    const char *path = write_file("f.csv", "1,2\n3,4\n5,6,7\n8,9\n", "w");
    thiele_table *table = NULL;
    thiele_feed *feed = open_feed(path, 0, 0, 0);
    expect_rows(feed, 2, 2, "1 3");
    assert_fails(ctx, thiele_feed_next(feed, ctx, 1, 1, 0.0, &table), THIELE_ERROR_FORMAT,
                 "row 3 (line 3): 3 fields, but 2 are expected");
    assert_null(table);
    expect_rows(feed, 1, 1, "8");
    thiele_feed_close(feed);
    feed = open_feed(path, 0, 1, 0);
    expect_rows(feed, 2, 2, "1 3");
    expect_rows(feed, 1, 1, "");
    expect_rows(feed, 1, 1, "8");
    assert_int_equal(thiele_feed_skipped(feed), 1);
    thiele_feed_close(feed);
}

/* A quote inside a field is no more than a byte of it: the rows behind it do not wait for another. */
static void test_inches(void **state)
{
    (void)state;
    thiele_feed *feed =
        open_feed(write_file("f.csv", "size,y\n5\" pipe,1\n\"6\"\" pipe\",2\n \"a\nb\",3\n", "w"), 0, 0, 0);
    expect_rows(feed, 1, 1, "5\" pipe");
    expect_rows(feed, 1, 1, "6\" pipe");
    expect_rows(feed, 1, 1, "a\nb");
    thiele_feed_close(feed);
}

/* A quote that is never closed does not take all the memory, and with skip_bad no more than its line. */
static void test_open_quote(void **state)
{
    (void)state;
    const char *path = write_file("quote.csv", "a,b\n1,2\n\"3,4\n", "w");
    FILE *file = fopen(path, "a");
    thiele_table *table = NULL;
    for (int i = 0; i < 300000; i++) {
        fputs("5,6\n", file);
    }
    fclose(file);
    thiele_feed *feed = open_feed(path, 0, 0, 0);
    expect_rows(feed, 1, 1, "1");
    assert_fails(ctx, thiele_feed_next(feed, ctx, 1, 100, 0.0, &table), THIELE_ERROR_FORMAT,
                 "line 3: a row of more than");
    assert_true(thiele_feed_ended(feed));
    thiele_feed_close(feed);
    feed = open_feed(path, 0, 1, 0);
    expect_rows(feed, 1, 4, "1 5 5");
    assert_int_equal(thiele_feed_skipped(feed), 1);
    thiele_feed_close(feed);
}

static void test_follow(void **state)
{
    (void)state;
    const char *path = write_file("grow.csv", "a,b\n", "w");
    thiele_table *table = NULL;
    thiele_feed *feed = open_feed(path, 1, 0, 0);
    expect_rows(feed, 1, 10, "");
    write_file("grow.csv", "1,2\n3", "a");
    expect_rows(feed, 1, 10, "1");
    expect_rows(feed, 1, 10, "");
    write_file("grow.csv", ",4\n", "a");
    expect_rows(feed, 1, 10, "3");
    assert_false(thiele_feed_ended(feed));
    write_file("grow.csv", "a,b\n", "w");
    assert_fails(ctx, thiele_feed_next(feed, ctx, 1, 10, 0.0, &table), THIELE_ERROR_IO, "shorter than it was");
    thiele_feed_close(feed);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        thiele_status status;
        const char *part;
    } cases[] = {
        {"", THIELE_ERROR_DATA, "is empty"},
        {"\n \n", THIELE_ERROR_DATA, "is empty"},
        {"a,b\n", THIELE_ERROR_DATA, "a header and no rows"},
        {"a,a\n1,2\n", THIELE_ERROR_FORMAT, "two columns named 'a'"},
        {"\x1f\x8b\x08 and so on\n\n", THIELE_ERROR_FORMAT, "zcat"},
        {"a,b\n1,\"2\n", THIELE_ERROR_FORMAT, "line 2: a quote opens here and is never closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_feed *feed = open_feed(write_file("r.csv", cases[i].text, "w"), 0, 0, 0);
        thiele_table *table = NULL;
        assert_fails(ctx, thiele_feed_next(feed, ctx, 1, 10, 0.0, &table), cases[i].status, cases[i].part);
        thiele_feed_close(feed);
    }
    thiele_feed *none = NULL;
    assert_fails(ctx, thiele_feed_open(&none, ctx, path_of("absent"), NULL, NULL), THIELE_ERROR_IO, "cannot open");
    assert_fails(ctx, thiele_feed_open(&none, ctx, folder, NULL, NULL), THIELE_ERROR_IO, "folder");
}

static thiele_status read_through(const char *path)
{
    thiele_feed_options options = THIELE_FEED_OPTIONS_INIT;
    thiele_table_options tables = THIELE_TABLE_OPTIONS_INIT;
    thiele_feed *feed = NULL;
    thiele_table *table = NULL;
    options.skip_bad = 1;
    tables.missing = "none";
    thiele_status status = thiele_feed_open(&feed, ctx, path, &tables, &options);
    while (status == THIELE_OK && !thiele_feed_ended(feed)) {
        status = thiele_feed_next(feed, ctx, 1, 2, 0.0, &table);
        thiele_table_destroy(table);
    }
    thiele_feed_close(feed);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    const char *path = write_file("alloc.csv", "a,b\n1,none\n2,3,4\n5,6\n7,8\n", "w");
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, read_through(path));
    int64_t count = thi_allocations(ctx) - before;
    for (int64_t nth = 1; nth <= count; nth++) {
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = read_through(path);
        thi_fail_allocation(ctx, 0, false);
        assert_int_equal(status, THIELE_ERROR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_other_width),
        cmocka_unit_test(test_inches),
        cmocka_unit_test(test_open_quote),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_random_tables),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

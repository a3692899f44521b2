/* Several files as one table: every cell, number, census and name is that of one file with all rows; what is refused.
 */
#include <math.h>

#include "data/data.h"
#include "testing.h"

enum { PARTS = 3, ROWS = 7, COLUMNS = 3 };

static thiele_context *ctx;
static char folder[] = "/tmp/thiele-test-XXXXXX";
static const char *const path[PARTS] = {"a.csv", "b.csv", "c.csv"};

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Seven rows in one file, and cut as 3, 1 and 3. */
static void write_all(void)
{
    write_text("all.csv", "x,y,site\n1,2,a\n3,,b\n5,6,a\n7,8,\n9,10,none\n11,12,4\n13,14,b\n");
    write_text("a.csv", "x,y,site\n1,2,a\n3,,b\n5,6,a\n");
    write_text("b.csv", "x,y,site\n7,8,\n");
    write_text("c.csv", "x,y,site\n9,10,none\n11,12,4\n13,14,b\n");
}

static const thiele_table_options options = {sizeof options, .missing = "none"};

static void assert_same_number(double a, double b)
{
    assert_true((isnan(a) && isnan(b)) || a == b);
}

static void assert_same_numbers(const thiele_table *one, const thiele_table *many)
{
    static const int column[2] = {1, 0};
    for (int first = 0; first < ROWS; first++) {
        for (int count = 1; first + count <= ROWS; count++) {
            double a[2 * ROWS], b[2 * ROWS];
            assert_ok(ctx, one->ops->numbers(one, ctx, first, count, column, 2, a));
            assert_ok(ctx, many->ops->numbers(many, ctx, first, count, column, 2, b));
            for (int i = 0; i < 2 * count; i++) {
                assert_same_number(a[i], b[i]);
            }
        }
    }
}

static void test_is_one_file(void **state)
{
    (void)state;
    thiele_table *one, *many;
    assert_ok(ctx, thiele_table_open(&one, ctx, "all.csv", &options));
    assert_ok(ctx, thiele_table_open_files(&many, ctx, path, PARTS, &options));
    assert_int_equal(thiele_table_rows(many), ROWS);
    assert_int_equal(thiele_table_columns(many), COLUMNS);
    assert_string_equal(thi_table_missing(many), "none");
    for (int c = 0; c < COLUMNS; c++) {
        int64_t texts[2], missing[2];
        assert_string_equal(thiele_table_column_name(many, c), thiele_table_column_name(one, c));
        thi_table_census(one, c, &texts[0], &missing[0]);
        thi_table_census(many, c, &texts[1], &missing[1]);
        assert_int_equal(texts[0], texts[1]);
        assert_int_equal(missing[0], missing[1]);
        assert_int_equal(thi_table_is_written(one, c), thi_table_is_written(many, c));
        for (int r = 0; r < ROWS; r++) {
            char a[32], b[32];
            assert_ok(ctx, thiele_table_cell(one, ctx, r, c, a, sizeof a));
            assert_ok(ctx, thiele_table_cell(many, ctx, r, c, b, sizeof b));
            assert_string_equal(a, b);
        }
    }
    assert_same_numbers(one, many);
    thiele_table_destroy(one);
    thiele_table_destroy(many);
}

/* Of the table, and of rows that are selected from it. */
static void test_rows_have_a_file(void **state)
{
    (void)state;
    static const int64_t rows[2] = {6, 2};
    static const int site = 2;
    thiele_table *one, *many, *some;
    double value[3];
    assert_ok(ctx, thiele_table_open_files(&many, ctx, path, PARTS, &options));
    assert_string_equal(THI_ROW(many, 0), "1 of a.csv");
    assert_string_equal(THI_ROW(many, 3), "1 of b.csv");
    assert_string_equal(THI_ROW(many, 6), "3 of c.csv");
    assert_string_equal(thi_table_source(many), "the table of a.csv and 2 more files");
    assert_ok(ctx, thiele_table_select(&some, ctx, many, rows, 2));
    assert_string_equal(THI_ROW(some, 0), "3 of c.csv");
    assert_int_equal(thi_table_row_number(some, 1), 3);
    assert_fails(ctx, many->ops->numbers(many, ctx, 4, 3, &site, 1, value), THIELE_ERROR_DATA,
                 "c.csv: column 'site', row 3: 'b'");
    thiele_table_destroy(some);
    thiele_table_destroy(many);
    assert_ok(ctx, thiele_table_open_files(&one, ctx, path, 1, NULL));
    assert_string_equal(THI_ROW(one, 2), "3");
    thiele_table_destroy(one);
}

static void assert_refused(const char *second, const char *why)
{
    const char *const both[2] = {"a.csv", second};
    thiele_table *table;
    assert_fails(ctx, thiele_table_open_files(&table, ctx, both, 2, NULL), THIELE_ERROR_FORMAT, why);
    assert_null(table);
}

static void test_refuses_other_columns(void **state)
{
    (void)state;
    thiele_table *table;
    write_text("names.csv", "x,z,site\n1,2,a\n");
    write_text("few.csv", "x,y\n1,2\n");
    write_text("more.csv", "x,y,site,w\n1,2,a,4\n");
    assert_refused("names.csv", "column 2 of names.csv is 'z', and that of a.csv is 'y'");
    assert_refused("few.csv", "a.csv has a column 'site', and few.csv has none");
    assert_refused("more.csv", "more.csv has a column 'w', and a.csv has none");
    assert_fails(ctx, thiele_table_open_files(&table, ctx, path, 0, NULL), THIELE_ERROR_ARGUMENT, "no file was named");
    static const char *const absent[2] = {"a.csv", "absent.csv"};
    assert_fails(ctx, thiele_table_open_files(&table, ctx, absent, 2, NULL), THIELE_ERROR_IO,
                 "cannot open absent.csv: No such file");
}

/* Files of numbers (NPY) have no census; they do not go with those that have one. */
static void test_kinds(void **state)
{
    (void)state;
    static const char head[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }";
    static const char *const same[2] = {"n.npy", "n.npy"}, *const mixed[2] = {"n.npy", "n.csv"};
    const double number[2] = {1.5, NAN};
    thiele_table *table;
    bool lacks[2];
    FILE *file = fopen("n.npy", "wb");
    assert_non_null(file);
    fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0, head);
    fwrite(number, sizeof number, 1, file);
    assert_int_equal(fclose(file), 0);
    write_text("n.csv", "x1,x2\n1,2\n");
    assert_ok(ctx, thiele_table_open_files(&table, ctx, same, 2, NULL));
    assert_int_equal(thiele_table_rows(table), 2);
    for (int c = 0; c < 2; c++) {
        assert_ok(ctx, thi_table_lacks(table, ctx, c, &lacks[c]));
    }
    assert_true(!lacks[0] && lacks[1]);
    thiele_table_destroy(table);
    assert_fails(ctx, thiele_table_open_files(&table, ctx, mixed, 2, NULL), THIELE_ERROR_FORMAT,
                 "n.npy and n.csv are files of two kinds");
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *own = test_context(1);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t n = 1; status != THIELE_OK; n++) {
        thiele_table *table = NULL;
        assert_true(n < 1000);
        thi_fail_allocation(own, n, n % 2 == 0);
        status = thiele_table_open_files(&table, own, path, PARTS, &options);
        thi_fail_allocation(own, 0, false);
        thiele_table_destroy(table);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(own), 0);
    }
    thiele_context_destroy(own);
}

static int set_up(void **state)
{
    (void)state;
    ctx = test_context(1);
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) {
        return 1;
    }
    write_all();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"all.csv", "a.csv",    "b.csv", "c.csv", "names.csv",
                                        "few.csv", "more.csv", "n.npy", "n.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unlink(names[i]);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_one_file),           cmocka_unit_test(test_rows_have_a_file),
        cmocka_unit_test(test_refuses_other_columns), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

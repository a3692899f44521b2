/*
 * HDF5 tables, from files that the HDF5 library itself writes here (found at run time, as the library does): matrices,
 * groups, names, which dataset is meant, and damaged files. Skipped where there is no HDF5 library.
 */
#include "data/data.h"
#include "hdf5_testing.h"

/* Names of columns as variable-length UTF-8 strings or as fixed-length ones. */
static void add_names(hid_t dataset, hsize_t count, const char *const *names, bool fixed)
{
    hid_t type = h5.H5Tcopy(h5.string);
    hid_t space = h5.H5Screate_simple(1, &count, NULL);
    char text[8][8] = {{0}};
    h5.H5Tset_size(type, fixed ? 8 : H5T_VARIABLE);
    h5.H5Tset_cset(type, H5T_CSET_UTF8);
    for (hsize_t i = 0; i < count; i++) {
        snprintf(text[i], sizeof text[i], "%s", names[i]);
    }
    hid_t attribute = h5.H5Acreate2(dataset, "columns", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(attribute >= 0);
    assert_true(h5.H5Awrite(attribute, type, fixed ? (const void *)text : (const void *)names) >= 0);
    h5.H5Aclose(attribute);
    h5.H5Sclose(space);
    h5.H5Tclose(type);
}

static thiele_status open_dataset(thiele_table **table, const char *dataset)
{
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    options.dataset = dataset;
    return thiele_table_open(table, ctx, path, &options);
}

enum { ROWS = 1000, COLUMNS = 3 };

static void fill(double *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        data[i] = (double)(i % 1013 - 500);
    }
}

/* Any columns in any order, and single rows through a selection, against the numbers put in. */
static void check_numbers(const thiele_table *table, const double *data)
{
    const int columns[4] = {2, 0, 1, 2};
    double *out = malloc(ROWS * 4 * sizeof *out);
    assert_int_equal(thiele_table_rows(table), ROWS);
    assert_int_equal(thiele_table_columns(table), COLUMNS);
    assert_ok(ctx, table->ops->numbers(table, ctx, 0, ROWS, columns, 4, out));
    for (int i = 0; i < ROWS * 4; i++) {
        assert_true(out[i] == data[i / 4 * COLUMNS + columns[i % 4]]);
    }
    const int64_t rows[4] = {ROWS - 1, 7, 8, 9};
    thiele_table *some;
    assert_ok(ctx, thiele_table_select(&some, ctx, table, rows, 4));
    assert_ok(ctx, some->ops->numbers(some, ctx, 1, 3, columns, 1, out));
    assert_true(out[0] == data[7 * COLUMNS + 2] && out[2] == data[9 * COLUMNS + 2]);
    thiele_table_destroy(some);
    free(out);
}

static void test_matrix(void **state)
{
    (void)state;
    static const char *const names[COLUMNS] = {"age",
                                               "gr\xC3\xB6\xC3\x9F"
                                               "e",
                                               ""};
    static double data[ROWS * COLUMNS];
    fill(data, ROWS * COLUMNS);
    for (int variant = 0; variant < 6; variant++) {
        const hid_t types[3] = {h5.real, h5.single, h5.integer};
        hid_t file = create_file();
        hid_t dataset = add_dataset(file, "data", types[variant % 3], 2, ROWS, COLUMNS, data);
        add_names(dataset, COLUMNS, names, variant < 3);
        h5.H5Dclose(dataset);
        h5.H5Fclose(file);
        thiele_table *table;
        assert_ok(ctx, open_dataset(&table, NULL));
        check_numbers(table, data);
        assert_string_equal(thiele_table_column_name(table, 0), "age");
        assert_string_equal(thiele_table_column_name(table, 1), variant < 3 ? "gr\xC3\xB6\xC3\x9F"
                                                                              "e"
                                                                            : names[1]);
        assert_string_equal(thiele_table_column_name(table, 2), "x3");
        char text[16];
        assert_ok(ctx, thiele_table_cell(table, ctx, 0, 1, text, sizeof text));
        assert_string_equal(text, "-499");
        thiele_table_destroy(table);
    }
}

static void test_group(void **state)
{
    (void)state;
    static double data[ROWS * COLUMNS], column[ROWS];
    fill(data, ROWS * COLUMNS);
    hid_t file = create_file();
    hid_t group = h5.H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int c = 0; c < COLUMNS; c++) {
        const char name[2] = {(char)('a' + c), 0};
        for (int r = 0; r < ROWS; r++) {
            column[r] = data[r * COLUMNS + c];
        }
        add_and_close(group, name, c == 0 ? h5.integer : h5.real, 1, ROWS, 1, column);
        add_and_close(file, name, h5.real, 1, ROWS, 1, column);
    }
    h5.H5Gclose(group);
    h5.H5Fclose(file);
    thiele_table *table;
    assert_ok(ctx, open_dataset(&table, "g"));
    check_numbers(table, data);
    assert_string_equal(thiele_table_column_name(table, 1), "b");
    thiele_table_destroy(table);
    assert_ok(ctx, open_dataset(&table, "/g/b"));
    assert_int_equal(thiele_table_columns(table), 1);
    assert_string_equal(thiele_table_column_name(table, 0), "b");
    thiele_table_destroy(table);
    assert_fails(ctx, open_dataset(&table, NULL), THIELE_ERROR_FORMAT,
                 "holds 'a', 'b', 'c', 'g', which are not all columns");
    assert_fails(ctx, open_dataset(&table, "h"), THIELE_ERROR_ARGUMENT, "no dataset or group 'h'");
}

static void test_choice(void **state)
{
    (void)state;
    const double data[6] = {1, 2, 3, 4, 5, 6};
    thiele_table *table;
    hid_t file = create_file();
    h5.H5Fclose(file);
    assert_fails(ctx, open_dataset(&table, NULL), THIELE_ERROR_DATA, "no columns");
    file = create_file();
    add_and_close(file, "a", h5.real, 1, 3, 1, data);
    add_and_close(file, "b", h5.real, 1, 3, 1, data + 3);
    h5.H5Fclose(file);
    assert_ok(ctx, open_dataset(&table, NULL));
    assert_int_equal(thiele_table_columns(table), 2);
    thiele_table_destroy(table);
    file = create_file();
    add_and_close(file, "a", h5.real, 1, 3, 1, data);
    add_and_close(file, "b", h5.real, 1, 2, 1, data);
    add_and_close(file, "cube", h5.real, 3, 2, 3, data);
    h5.H5Fclose(file);
    assert_fails(ctx, open_dataset(&table, NULL), THIELE_ERROR_FORMAT, "not all of the same length");
    assert_fails(ctx, open_dataset(&table, "cube"), THIELE_ERROR_UNSUPPORTED, "'cube' is not a dataset of numbers");
}

/* Cut short anywhere: an error. */
static void test_cut(void **state)
{
    (void)state;
    static double data[ROWS * COLUMNS];
    fill(data, ROWS * COLUMNS);
    hid_t file = create_file();
    add_and_close(file, "data", h5.real, 2, ROWS, COLUMNS, data);
    h5.H5Fclose(file);
    FILE *stream = fopen(path, "rb");
    fseek(stream, 0, SEEK_END);
    long length = ftell(stream);
    fclose(stream);
    for (long cut = length - 1; cut > 8; cut -= 1 + length / 50) {
        thiele_table *table;
        assert_int_equal(truncate(path, cut), 0);
        assert_fails(ctx, thiele_table_open(&table, ctx, path, NULL), THIELE_ERROR_FORMAT, "damaged or cut off");
        assert_null(table);
    }
}

static void test_allocations(void **state)
{
    (void)state;
    static const char *const names[2] = {"a", "b"};
    const double data[6] = {1, 2, 3, 4, 5, 6};
    hid_t file = create_file();
    hid_t dataset = add_dataset(file, "data", h5.real, 2, 3, 2, data);
    add_names(dataset, 2, names, false);
    h5.H5Dclose(dataset);
    hid_t group = h5.H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_and_close(group, "c", h5.real, 1, 3, 1, data);
    h5.H5Gclose(group);
    h5.H5Fclose(file);
    thiele_context *own = test_context(1);
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    for (int which = 0; which < 2; which++) {
        options.dataset = which == 0 ? "data" : "g";
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t n = 1; status != THIELE_OK; n++) {
            thiele_table *table;
            const int column = 0;
            double value;
            assert_true(n < 100);
            thi_fail_allocation(own, n, false);
            status = thiele_table_open(&table, own, path, &options);
            if (status == THIELE_OK) {
                status = table->ops->numbers(table, own, 0, 1, &column, 1, &value);
            }
            thi_fail_allocation(own, 0, false);
            thiele_table_destroy(table);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            assert_int_equal(thi_memory_held(own), 0);
        }
    }
    thiele_context_destroy(own);
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
        cmocka_unit_test(test_matrix), cmocka_unit_test(test_group),       cmocka_unit_test(test_choice),
        cmocka_unit_test(test_cut),    cmocka_unit_test(test_allocations),
    };
    if (!load_writers()) {
        printf("there is no HDF5 library here: nothing to test\n");
        return 0;
    }
    ctx = test_context(1);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/t.h5", folder);
    return cmocka_run_group_tests(tests, NULL, tear_down);
}

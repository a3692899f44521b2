/*
 * Tables over borrowed columns: the same numbers and texts as the table of copied rows, for row-major, column-major and
 * reversed memory; texts by index; refusals; failing allocations.
 */
#include "data/data.h"
#include "testing_context.h"

enum { ROWS = 5, COLUMNS = 3 };
static const char *const names[COLUMNS] = {"a", "b", "c"};

static double value_of(int row, int column)
{
    return row == 2 && column == 1 ? NAN : row + 0.25 * column;
}

static void check_numbers(const thiele_table *table)
{
    const int wanted[2] = {2, 1};
    double out[2 * (ROWS - 1)];
    assert_int_equal(thiele_table_rows(table), ROWS);
    assert_int_equal(thiele_table_columns(table), COLUMNS);
    assert_string_equal(thiele_table_column_name(table, 1), "b");
    assert_ok(ctx, table->ops->numbers(table, ctx, 1, ROWS - 1, wanted, 2, out));
    for (int r = 0; r < ROWS - 1; r++) {
        for (int j = 0; j < 2; j++) {
            double want = value_of(r + 1, wanted[j]);
            assert_true(isnan(want) ? isnan(out[2 * r + j]) : out[2 * r + j] == want);
        }
    }
    int64_t text, missing;
    thi_table_census(table, 1, &text, &missing);
    assert_int_equal(text, 0);
    assert_int_equal(missing, 1);
    char cell[32];
    assert_ok(ctx, thiele_table_cell(table, ctx, 3, 2, cell, sizeof cell));
    assert_string_equal(cell, "3.5");
    assert_ok(ctx, thiele_table_cell(table, ctx, 2, 1, cell, sizeof cell));
    assert_string_equal(cell, "");
}

static void test_numbers(void **state)
{
    (void)state;
    double rows[ROWS][COLUMNS], columns[COLUMNS][ROWS], back[COLUMNS][ROWS];
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            rows[r][c] = columns[c][r] = back[c][ROWS - 1 - r] = value_of(r, c);
        }
    }
    thiele_column by_row[COLUMNS], by_column[COLUMNS], backwards[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        by_row[c] = (thiele_column){.name = names[c], .values = &rows[0][c], .stride = sizeof rows[0]};
        by_column[c] = (thiele_column){.name = names[c], .values = columns[c]};
        backwards[c] =
            (thiele_column){.name = names[c], .values = &back[c][ROWS - 1], .stride = -(ptrdiff_t)sizeof(double)};
    }
    const thiele_column *const given[] = {by_row, by_column, backwards};
    for (int i = 0; i < 3; i++) {
        thiele_table *table;
        assert_ok(ctx, thiele_table_from_columns(&table, ctx, ROWS, COLUMNS, given[i]));
        check_numbers(table);
        thiele_table_destroy(table);
    }
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"north", "south", "", " 2.5 "};
    static const int32_t codes[ROWS] = {1, 0, -1, 2, 3};
    const thiele_column column = {.name = "site", .codes = codes, .texts = texts, .text_count = 4};
    const int first = 0;
    thiele_table *table;
    int64_t text, missing;
    char cell[32];
    double number;
    assert_ok(ctx, thiele_table_from_columns(&table, ctx, ROWS, 1, &column));
    thi_table_census(table, 0, &text, &missing);
    assert_int_equal(text, 2);
    assert_int_equal(missing, 2);
    for (int r = 0; r < ROWS; r++) {
        assert_ok(ctx, thiele_table_cell(table, ctx, r, 0, cell, sizeof cell));
        assert_string_equal(cell, codes[r] < 0 ? "" : texts[codes[r]]);
    }
    assert_ok(ctx, table->ops->numbers(table, ctx, 4, 1, &first, 1, &number));
    assert_true(number == 2.5);
    assert_ok(ctx, table->ops->numbers(table, ctx, 2, 1, &first, 1, &number));
    assert_true(isnan(number));
    assert_fails(ctx, table->ops->numbers(table, ctx, 0, 2, &first, 1, &number), THIELE_ERROR_DATA,
                 "column 'site', row 1: 'south' is not a number");
    thiele_table_destroy(table);
}

static void test_refusals(void **state)
{
    (void)state;
    static const double values[2] = {1.0, 2.0};
    static const int32_t codes[2] = {0, 1};
    static const char *const texts[] = {"x"};
    const struct {
        thiele_column column;
        int64_t rows;
        thiele_status status;
        const char *part;
    } cases[] = {
        {{.values = values}, 2, THIELE_ERROR_ARGUMENT, "column 1 needs a name"},
        {{.name = "a"}, 2, THIELE_ERROR_ARGUMENT, "values or codes"},
        {{.name = "a", .values = values, .codes = codes, .texts = texts, .text_count = 1},
         2,
         THIELE_ERROR_ARGUMENT,
         "values or codes"},
        {{.name = "a", .codes = codes, .text_count = 1}, 2, THIELE_ERROR_ARGUMENT, "with their texts"},
        {{.name = "a", .codes = codes, .texts = texts, .text_count = 1},
         2,
         THIELE_ERROR_ARGUMENT,
         "row 2: there is no text of index 1"},
        {{.name = "a", .values = values}, 0, THIELE_ERROR_DATA, "no rows"},
    };
    thiele_table *table;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(ctx, thiele_table_from_columns(&table, ctx, cases[i].rows, 1, &cases[i].column), cases[i].status,
                     cases[i].part);
        assert_null(table);
    }
    const thiele_column twice[2] = {{.name = "a", .values = values}, {.name = "a", .values = values}};
    assert_fails(ctx, thiele_table_from_columns(&table, ctx, 2, 2, twice), THIELE_ERROR_FORMAT, "'a'");
}

static void test_failing_allocations(void **state)
{
    (void)state;
    static const double values[2] = {1.0, 2.0};
    static const int32_t codes[2] = {0, -1};
    static const char *const texts[] = {"x"};
    const thiele_column column[2] = {{.name = "a", .values = values},
                                     {.name = "b", .codes = codes, .texts = texts, .text_count = 1}};
    thiele_table *table = NULL;
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t n = 1; status != THIELE_OK; n++) {
        thi_fail_allocation(ctx, n, false);
        status = thiele_table_from_columns(&table, ctx, 2, 2, column);
        thi_fail_allocation(ctx, 0, false);
        assert_true(status == THIELE_OK || (status == THIELE_ERROR_MEMORY && table == NULL));
    }
    thiele_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

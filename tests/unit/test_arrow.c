/*
 * Tables from Arrow: each format against the numbers and texts put in, offsets and bitmaps, several batches with
 * dictionaries of their own, columns that are used where they lie, what must be refused, failing allocations; and that
 * everything is released once.
 */
#include "arrow_testing.h"
#include "data/data.h"
#include "testing_context.h"

enum { ROWS = 3 };
/* Rows 0 and 2 of three are there; the same behind two others. */
static const uint8_t bitmap[] = {0x05}, bitmap_behind[] = {0x14};

static thiele_status take(thiele_table **table, arrow_source *source)
{
    struct ArrowArrayStream stream = arrow_stream(source);
    thiele_status status = thiele_table_from_arrow(table, ctx, &stream);
    assert_null(stream.release);
    return status;
}

static void end(thiele_table *table, arrow_source *source)
{
    thiele_table_destroy(table);
    assert_int_equal(source->held, 0);
}

/* The cells of a column, with blanks between them. */
static void assert_cells(const thiele_table *table, int column, const char *wanted)
{
    char all[256] = "", cell[64];
    for (int64_t r = 0; r < thiele_table_rows(table); r++) {
        assert_ok(ctx, thiele_table_cell(table, ctx, r, column, cell, sizeof cell));
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", r > 0 ? " " : "", *cell != '\0' ? cell : "-");
    }
    assert_string_equal(all, wanted);
}

/* One column of one batch of three, the second one null, as it is and behind two others. */
#define CHECK(text, width, wanted, ...)                                                                                \
    do {                                                                                                               \
        const width values[] = {__VA_ARGS__};                                                                          \
        width behind[2 + ROWS] = {0};                                                                                  \
        memcpy(behind + 2, values, sizeof values);                                                                     \
        check_format(text, wanted, values, behind);                                                                    \
    } while (0)

static void check_format(const char *format, const char *wanted, const void *values, const void *behind)
{
    arrow_column there = {.name = "x", .format = format, .part = {{ROWS, 1, 0, 2, {bitmap, values}}}};
    arrow_column later = {.name = "y", .format = format, .part = {{ROWS + 1, -1, 1, 2, {bitmap_behind, behind}}}};
    arrow_source sources[2] = {{.columns = 1, .batches = 1, .column = {&there}},
                               {.columns = 1, .batches = 1, .column = {&later}, .offset = 1}};
    for (int i = 0; i < 2; i++) {
        thiele_table *table;
        assert_ok(ctx, take(&table, &sources[i]));
        assert_cells(table, 0, wanted);
        end(table, &sources[i]);
    }
}

/* 128 bits, the lower half first. */
typedef struct decimal {
    int64_t half[2];
} decimal;

static void test_numbers(void **state)
{
    (void)state;
    CHECK("c", int8_t, "-128 - 127", INT8_MIN, 9, INT8_MAX);
    CHECK("C", uint8_t, "0 - 255", 0, 9, 255);
    CHECK("s", int16_t, "-32768 - 7", INT16_MIN, 9, 7);
    CHECK("S", uint16_t, "65535 - 7", UINT16_MAX, 9, 7);
    CHECK("i", int32_t, "-2147483648 - 7", INT32_MIN, 9, 7);
    CHECK("I", uint32_t, "4294967295 - 7", UINT32_MAX, 9, 7);
    CHECK("l", int64_t, "-9007199254740992 - 7", -9007199254740992, 9, 7);
    CHECK("L", uint64_t, "9007199254740992 - 7", 9007199254740992, 9, 7);
    CHECK("e", uint16_t, "1.5 - -0.125", 0x3E00, 9, 0xB000);
    CHECK("e", uint16_t, "5.9604644775390625e-08 - -", 0x0001, 9, 0x7E00);
    CHECK("f", float, "0.5 - -2.25", 0.5F, 9.0F, -2.25F);
    CHECK("g", double, "0.1 - -", 0.1, 9.0, NAN);
    CHECK("d:5,2", decimal, "-1.25 - 1.8446744073709552e+17", {{-125, -1}}, {{0, 0}}, {{0, 1}});
    CHECK("d:9,3,32", int32_t, "1.234 - -0.001", 1234, 9, -1);
    CHECK("d:18,-2,64", int64_t, "1200 - 0", 12, 9, 0);
}

static void test_dates(void **state)
{
    (void)state;
    CHECK("tdD", int32_t, "1970-01-02 - 2024-02-29", 1, 9, 19782);
    CHECK("tdm", int64_t, "1970-01-02 - 1969-12-31", 86400000, 9, -86400000);
    CHECK("tss:", int64_t, "1970-01-01T00:00:01 - 2024-02-29T06:30:00", 1, 9, 1709188200);
    CHECK("tsm:Europe/Berlin", int64_t, "1970-01-01T00:00:00.250 - 1970-01-01", 250, 9, 0);
    CHECK("tsu:", int64_t, "2024-02-29T06:30:00.500 - 1970-01-01", 1709188200500000, 9, 0);
    CHECK("tsn:UTC", int64_t, "2024-02-29T06:30:00 - 1970-01-01", 1709188200000000000, 9, 0);
    CHECK("tts", int32_t, "06:30:00 - 00:00:00", 23400, 9, 0);
    CHECK("ttn", int64_t, "06:30:00 - 00:00:00", 23400000000000, 9, 0);
}

/* A 16-byte view: in place, or in a buffer. */
typedef struct text_view {
    int32_t length;
    char start[4];
    int32_t buffer, begin;
} text_view;

static void test_layouts(void **state)
{
    (void)state;
    static const uint8_t bits[] = {0x02};
    static const int32_t begin[] = {0, 5, 5, 9};
    static const int64_t large[] = {0, 5, 5, 9};
    static const char bytes[] = "northwest", far_bytes[] = "..the far northern site";
    static const text_view views[] = {
        {5, "nort", 'h', 0}, {0, "", 0, 0}, {sizeof far_bytes - 3, "the ", 0, 2}}; /* 'h': the rest of the text */
    static const int64_t sizes[] = {sizeof far_bytes - 1};
    arrow_column column[] = {
        {.name = "nothing", .format = "n", .part = {{ROWS, ROWS, 0, 0, {NULL}}}},
        {.name = "flag", .format = "b", .part = {{ROWS, 0, 0, 2, {NULL, bits}}}},
        {.name = "text", .format = "u", .part = {{ROWS, 0, 0, 3, {NULL, begin, bytes}}}},
        {.name = "large", .format = "U", .part = {{ROWS, 1, 0, 3, {bitmap, large, bytes}}}},
        {.name = "view", .format = "vu", .part = {{ROWS, 0, 0, 4, {NULL, views, far_bytes, sizes}}}},
    };
    arrow_source source = {.columns = 5, .batches = 1};
    for (int c = 0; c < source.columns; c++) {
        source.column[c] = &column[c];
    }
    thiele_table *table;
    assert_ok(ctx, take(&table, &source));
    assert_cells(table, 0, "- - -");
    assert_cells(table, 1, "0 1 0");
    assert_cells(table, 2, "north - west");
    assert_cells(table, 3, "north - west");
    assert_cells(table, 4, "north - the far northern site");
    assert_string_equal(thiele_table_column_name(table, 3), "large");
    assert_int_equal(thiele_table_column_is_category(table, 2), 0);
    end(table, &source);
}

/* Batches whose dictionaries list the same texts in other orders, one of them of numbers. */
static void test_dictionaries_and_batches(void **state)
{
    (void)state;
    static const int8_t index[2][ROWS] = {{0, 7, 1}, {1, 0, 0}};
    static const int32_t begin[2][3] = {{0, 5, 10}, {0, 4, 9}};
    static const int64_t years[2][2] = {{2024, 7}, {7, 2025}};
    arrow_column texts = {
        .format = "u",
        .part = {{2, 0, 0, 3, {NULL, begin[0], "northsouth"}}, {2, 0, 0, 3, {NULL, begin[1], "westnorth"}}}};
    arrow_column numbers = {.format = "l", .part = {{2, 0, 0, 2, {NULL, years[0]}}, {2, 0, 0, 2, {NULL, years[1]}}}};
    arrow_column site = {.name = "site",
                         .format = "c",
                         .dictionary = &texts,
                         .part = {{ROWS, 1, 0, 2, {bitmap, index[0]}}, {ROWS, 0, 0, 2, {NULL, index[1]}}}};
    arrow_column year = {.name = "year",
                         .format = "c",
                         .dictionary = &numbers,
                         .part = {{ROWS, 1, 0, 2, {bitmap, index[0]}}, {ROWS, 0, 0, 2, {NULL, index[1]}}}};
    arrow_source source = {.columns = 2, .batches = 2, .column = {&site, &year}};
    thiele_table *table, *some;
    static const int64_t chosen[] = {3, 5};
    assert_ok(ctx, take(&table, &source));
    assert_int_equal(source.held, 0); /* nothing of them is used any more */
    assert_cells(table, 0, "north - south north west west");
    assert_cells(table, 1, "2024 - 7 2025 7 7");
    assert_int_equal(thiele_table_column_is_category(table, 1), 1);
    assert_ok(ctx, thiele_table_select(&some, ctx, table, chosen, 2));
    assert_cells(some, 0, "north west");
    assert_int_equal(thiele_table_column_is_category(some, 1), 1);
    thiele_table_destroy(some);
    end(table, &source);
}

/* 64-bit floats of one batch stay where they are, for as long as the table lives. */
static void test_borrowing(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    double *value = calloc(MANY, sizeof *value);
    arrow_column x = {
        .name = "x", .format = "g", .part = {{MANY, 0, 0, 2, {NULL, value}}, {MANY, 0, 0, 2, {NULL, value}}}};
    arrow_source source = {.columns = 1, .batches = 1, .column = {&x}};
    thiele_table *table;
    char cell[32];
    const size_t before = thi_memory_held(ctx);
    assert_non_null(value);
    assert_ok(ctx, take(&table, &source));
    assert_true(thi_memory_held(ctx) - before < 10000);
    assert_int_equal(source.held, 1); /* the batch */
    value[1] = 2.5;
    assert_ok(ctx, thiele_table_cell(table, ctx, 1, 0, cell, sizeof cell));
    assert_string_equal(cell, "2.5");
    end(table, &source);
    source.batches = 2;
    assert_ok(ctx, take(&table, &source));
    assert_true(thi_memory_held(ctx) - before > 2 * MANY * sizeof *value);
    assert_int_equal(source.held, 0);
    end(table, &source);
    free(value);
}

/* A batch by itself, and a column that is in no struct. */
static void test_single_batch(void **state)
{
    (void)state;
    static const double value[] = {1.0, 2.0, 4.0};
    arrow_column x = {.name = "", .format = "g", .part = {{ROWS, 0, 0, 2, {NULL, value}}}};
    arrow_source source = {.columns = 1, .batches = 1, .column = {&x}};
    struct ArrowSchema schema;
    struct ArrowArray batch;
    thiele_table *table;
    arrow_schema(&source, &schema);
    arrow_batch(&source, 0, &batch);
    assert_ok(ctx, thiele_table_from_arrow_batch(&table, ctx, &schema, &batch));
    assert_null(schema.release);
    assert_null(batch.release);
    assert_cells(table, 0, "1 2 4");
    end(table, &source);
    schema = *arrow_field(&x);
    batch = *arrow_array(&x, 0);
    assert_ok(ctx, thiele_table_from_arrow_batch(&table, ctx, &schema, &batch));
    assert_string_equal(thiele_table_column_name(table, 0), "x1");
    assert_cells(table, 0, "1 2 4");
    end(table, &source);
    assert_fails(ctx, thiele_table_from_arrow_batch(&table, ctx, &schema, &batch), THIELE_ERROR_ARGUMENT, "released");
}

/* Dates as a fit reads them: days since the first row's, by the numbers of a model's table as by its texts. */
static void test_dates_as_texts(void **state)
{
    (void)state;
    static const int32_t day[] = {19723, 0, 19725};
    arrow_column when = {.name = "when", .format = "tdD", .part = {{ROWS, 1, 0, 2, {bitmap, day}}}};
    arrow_source source = {.columns = 1, .batches = 1, .column = {&when}};
    const int first = 0;
    double number[2];
    int64_t text, missing;
    thiele_table *table;
    assert_ok(ctx, take(&table, &source));
    thi_table_census(table, 0, &text, &missing);
    assert_int_equal(text, 2);
    assert_int_equal(missing, 1);
    assert_true(thi_table_is_written(table, 0));
    assert_ok(ctx, table->ops->numbers(table, ctx, 1, 1, &first, 1, number));
    assert_true(isnan(number[0]));
    assert_fails(ctx, table->ops->numbers(table, ctx, 1, 2, &first, 1, number), THIELE_ERROR_DATA,
                 "row 3: '2024-01-03' is not a number");
    end(table, &source);
}

/* --- what is refused --------------------------------------------------------------------------------------------- */

static void test_refused_types(void **state)
{
    (void)state;
    static const double value[8] = {0};
    static const struct {
        const char *format;
        thiele_status code;
        const char *part;
    } cases[] = {
        {"z", THIELE_ERROR_UNSUPPORTED, "column 'x' holds bytes"},
        {"w:16", THIELE_ERROR_UNSUPPORTED, "holds bytes"},
        {"tDs", THIELE_ERROR_UNSUPPORTED, "durations, which nothing is learned from: cast it to a number"},
        {"tiM", THIELE_ERROR_UNSUPPORTED, "intervals"},
        {"+l", THIELE_ERROR_UNSUPPORTED, "lists"},
        {"+vl", THIELE_ERROR_UNSUPPORTED, "lists"},
        {"+s", THIELE_ERROR_UNSUPPORTED, "structs"},
        {"d:40,2,256", THIELE_ERROR_UNSUPPORTED, "decimals of an unusual width"},
        {"d:5", THIELE_ERROR_UNSUPPORTED, "decimals"},
        {"d:", THIELE_ERROR_UNSUPPORTED, "decimals"},
        {"?\n", THIELE_ERROR_UNSUPPORTED, "'?...', which is not known"},
        {"", THIELE_ERROR_UNSUPPORTED, "the Arrow format ''"},
        {NULL, THIELE_ERROR_FORMAT, "no Arrow format"},
    };
    thiele_table *table;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arrow_column x = {.name = "x", .format = cases[i].format, .part = {{1, 0, 0, 2, {NULL, value}}}};
        arrow_source source = {.columns = 1, .batches = 1, .column = {&x}};
        assert_fails(ctx, take(&table, &source), cases[i].code, cases[i].part);
        assert_null(table);
        assert_int_equal(source.held, 0);
    }
}

static void test_damaged_arrays(void **state)
{
    (void)state;
    static const double value[8] = {0};
    static const int32_t backwards[] = {4, 2, 6}, negative[] = {-1, 2, 4}, wide[] = {0, 1, 2};
    static const int64_t large[] = {0, INT64_MAX, 3};
    static const text_view outside = {20, "", 0, 5}, other = {20, "", 3, 0}, before = {20, "", 0, -1},
                           minus = {-1, "", 0, 0};
    static const int64_t size = 24, minus_size = -1;
    static const char bytes[24] = "abcdefghijklmnopqrstuvw";
    static const struct {
        const char *format;
        int64_t length, nulls, offset, buffers;
        const void *buffer[ARROW_BUFFERS];
        thiele_status code;
        const char *part;
    } cases[] = {
        {"g", 1, 0, 0, 1, {NULL, value}, THIELE_ERROR_FORMAT, "number of buffers"},
        {"g", 1, 0, 0, 0, {NULL, value}, THIELE_ERROR_FORMAT, "number of buffers"},
        {"g", 1, 0, 0, -1, {NULL, value}, THIELE_ERROR_FORMAT, "number of buffers"},
        {"g", 1, 0, 0, 2, {NULL, NULL}, THIELE_ERROR_FORMAT, "a buffer of its Arrow array is missing"},
        {"g", 1, 1, 0, 2, {NULL, value}, THIELE_ERROR_FORMAT, "nulls and nothing that says where"},
        {"g", 1, 2, 0, 2, {bitmap, value}, THIELE_ERROR_FORMAT, "make no sense"},
        {"g", 1, -2, 0, 2, {bitmap, value}, THIELE_ERROR_FORMAT, "make no sense"},
        {"g", 1, 0, -1, 2, {NULL, value}, THIELE_ERROR_FORMAT, "make no sense"},
        {"g", 1, 0, INT64_MAX, 2, {NULL, value}, THIELE_ERROR_FORMAT, "make no sense"},
        {"g", -1, 0, 0, 2, {NULL, value}, THIELE_ERROR_FORMAT, "does not fit"},
        {"g", INT64_MAX, 0, 0, 2, {NULL, value}, THIELE_ERROR_FORMAT, "does not fit"},
        {"u", 2, 0, 0, 2, {NULL, wide}, THIELE_ERROR_FORMAT, "number of buffers"},
        {"u", 2, 0, 0, 3, {NULL, wide, NULL}, THIELE_ERROR_FORMAT, "element 1 of its Arrow array"},
        {"u", 2, 0, 0, 3, {NULL, backwards, bytes}, THIELE_ERROR_FORMAT, "ends before it begins"},
        {"u", 2, 0, 0, 3, {NULL, negative, bytes}, THIELE_ERROR_FORMAT, "ends before it begins"},
        {"U", 1, 0, 1, 3, {NULL, large, bytes}, THIELE_ERROR_FORMAT, "ends before it begins"},
        {"vu", 1, 0, 0, 2, {NULL, &outside}, THIELE_ERROR_FORMAT, "number of buffers"},
        {"vu", 1, 0, 0, 3, {NULL, &outside, NULL}, THIELE_ERROR_FORMAT, "not in its buffer"},
        {"vu", 1, 0, 0, 4, {NULL, &outside, bytes, &size}, THIELE_ERROR_FORMAT, "not in its buffer"},
        {"vu", 1, 0, 0, 4, {NULL, &other, bytes, &size}, THIELE_ERROR_FORMAT, "not in its buffer"},
        {"vu", 1, 0, 0, 4, {NULL, &before, bytes, &size}, THIELE_ERROR_FORMAT, "not in its buffer"},
        {"vu", 1, 0, 0, 4, {NULL, &minus, bytes, &size}, THIELE_ERROR_FORMAT, "not in its buffer"},
        {"vu", 1, 0, 0, 4, {NULL, &before, bytes, &minus_size}, THIELE_ERROR_FORMAT, "buffer of its Arrow array"},
        {"vu", 1, 0, 0, 4, {NULL, &before, NULL, &size}, THIELE_ERROR_FORMAT, "buffer of its Arrow array"},
        {"u", 1, 0, 0, 3, {NULL, wide, "\0"}, THIELE_ERROR_DATA, "zero character"},
    };
    thiele_table *table;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arrow_column x = {.name = "x",
                          .format = cases[i].format,
                          .part = {{cases[i].length, cases[i].nulls, cases[i].offset, cases[i].buffers, {NULL}}}};
        arrow_source source = {.columns = 1, .batches = 1, .column = {&x}};
        memcpy(x.part[0].buffer, cases[i].buffer, sizeof cases[i].buffer);
        assert_fails(ctx, take(&table, &source), cases[i].code, cases[i].part);
        assert_null(table);
        assert_int_equal(source.held, 0);
    }
}

static void test_damaged_tables(void **state)
{
    (void)state;
    static const double value[ROWS] = {0};
    static const int8_t far_index[ROWS] = {0, 1, 2}, below[ROWS] = {0, 0, -1};
    static const int32_t begin[] = {0, 1, 2}, late[ROWS] = {0, 0, 2932897};
    static const uint8_t rows_there[] = {0x03};
    arrow_column x = {.name = "x", .format = "g", .part = {{ROWS, 0, 0, 2, {NULL, value}}}};
    arrow_column again = {.name = "x", .format = "g", .part = {{ROWS, 0, 0, 2, {NULL, value}}}};
    arrow_column shorter = {.name = "s", .format = "g", .part = {{ROWS - 1, 0, 0, 2, {NULL, value}}}};
    arrow_column texts = {.format = "u", .part = {{2, 0, 0, 3, {NULL, begin, "ab"}}}};
    arrow_column site = {
        .name = "site", .format = "c", .dictionary = &texts, .part = {{ROWS, 0, 0, 2, {NULL, far_index}}}};
    arrow_column floats = {.name = "f", .format = "g", .dictionary = &texts, .part = {{ROWS, 0, 0, 2, {NULL, value}}}};
    arrow_column date = {.name = "date", .format = "tdD", .part = {{ROWS, 0, 0, 2, {NULL, late}}}};
    arrow_source source = {.columns = 2, .batches = 1, .column = {&x, &again}};
    thiele_table *table;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_FORMAT, "two columns named 'x'");
    source.column[1] = &shorter;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_FORMAT, "column 's': its Arrow array is shorter");
    source.column[1] = &site;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_FORMAT, "element 3 of its Arrow array: an index");
    site.part[0].buffer[1] = below;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_FORMAT, "an index that its dictionary does not have");
    source.column[1] = &floats;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_FORMAT, "not whole numbers");
    texts.dictionary = &x;
    texts.format = "c";
    source.column[1] = &site;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_UNSUPPORTED, "dictionary of dictionaries");
    source.column[1] = &date;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_DATA, "row 3: a date beyond the years");
    source.columns = 1;
    source.fails_after = 1;
    source.batches = 2;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_IO, "the Arrow stream failed: the disk is on fire");
    source.fails_after = 0;
    source.batches = 0;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_DATA, "no rows");
    source.columns = 0;
    source.batches = 1;
    assert_fails(ctx, take(&table, &source), THIELE_ERROR_DATA, "no columns");
    assert_int_equal(source.held, 0);

    source.columns = 1;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    const void *holes[1] = {rows_there};
    arrow_schema(&source, &schema);
    arrow_batch(&source, 0, &batch);
    batch.null_count = -1;
    batch.buffers = holes;
    assert_fails(ctx, thiele_table_from_arrow_batch(&table, ctx, &schema, &batch), THIELE_ERROR_UNSUPPORTED,
                 "whole rows that are null");
    arrow_schema(&source, &schema);
    arrow_batch(&source, 0, &batch);
    batch.n_children = 2;
    assert_fails(ctx, thiele_table_from_arrow_batch(&table, ctx, &schema, &batch), THIELE_ERROR_FORMAT,
                 "batch 1 of the Arrow stream does not fit its schema");
    assert_int_equal(source.held, 0);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    static const double value[ROWS] = {1.0, 2.0, 3.0};
    static const int32_t begin[] = {0, 5, 5, 9}, day[] = {1, 2, 3};
    static const int8_t index[ROWS] = {0, 1, 0};
    arrow_column texts = {.format = "u", .part = {{3, 0, 0, 3, {NULL, begin, "northwest"}}}};
    arrow_column column[] = {
        {.name = "x", .format = "g", .part = {{ROWS, 0, 0, 2, {NULL, value}}}},
        {.name = "n", .format = "g", .part = {{ROWS, 1, 0, 2, {bitmap, value}}}},
        {.name = "t", .format = "u", .part = {{ROWS, 0, 0, 3, {NULL, begin, "northwest"}}}},
        {.name = "d", .format = "tdD", .part = {{ROWS, 0, 0, 2, {NULL, day}}}},
        {.name = "c", .format = "c", .dictionary = &texts, .part = {{ROWS, 0, 0, 2, {NULL, index}}}},
    };
    arrow_source source = {.columns = 5, .batches = 1};
    for (int c = 0; c < source.columns; c++) {
        source.column[c] = &column[c];
    }
    thiele_table *table = NULL;
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t n = 1; status != THIELE_OK; n++) {
        thi_fail_allocation(ctx, n, false);
        status = take(&table, &source);
        thi_fail_allocation(ctx, 0, false);
        assert_true(status == THIELE_OK || (status == THIELE_ERROR_MEMORY && table == NULL && source.held == 0));
    }
    end(table, &source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_dictionaries_and_batches),
        cmocka_unit_test(test_borrowing),
        cmocka_unit_test(test_single_batch),
        cmocka_unit_test(test_dates_as_texts),
        cmocka_unit_test(test_refused_types),
        cmocka_unit_test(test_damaged_arrays),
        cmocka_unit_test(test_damaged_tables),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

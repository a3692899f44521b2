/*
 * NPY tables: every type, byte order and memory order against the numbers put in; damaged headers and lengths refused.
 */
#include "data/data.h"
#include "testing.h"

static thiele_context *ctx;
static char folder[] = "/tmp/thiele-test-XXXXXX";
static char path[64];

static void write_file(const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Puts a header of the given version before the data; returns the length. */
static size_t make_npy(unsigned char *out, int version, const char *dictionary, const void *data, size_t size)
{
    size_t start = version == 1 ? 10 : 12, length = strlen(dictionary);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (size_t i = 8; i < start; i++) {
        out[i] = (unsigned char)(length >> (8 * (i - 8)));
    }
    memcpy(out + start, dictionary, length);
    memcpy(out + start + length, data, size);
    return start + length + size;
}

static thiele_status open_npy(thiele_table **table, int version, const char *dictionary, const void *data, size_t size)
{
    unsigned char bytes[4096];
    write_file(bytes, make_npy(bytes, version, dictionary, data, size));
    return thiele_table_open(table, ctx, path, NULL);
}

static void swap_bytes(unsigned char *data, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t b = 0; b < size / 2; b++) {
            unsigned char kept = data[i * size + b];
            data[i * size + b] = data[i * size + size - 1 - b];
            data[i * size + size - 1 - b] = kept;
        }
    }
}

enum { ROWS = 3, COLUMNS = 2 };

/* The numbers of `values` (row-major) as one type, in both byte orders and both memory orders, all versions. */
#define CHECK_TYPE(code, ctype, ...)                                                                                   \
    do {                                                                                                               \
        const ctype values[ROWS * COLUMNS] = {__VA_ARGS__};                                                            \
        for (int variant = 0; variant < 12; variant++) {                                                               \
            const bool fortran = variant & 1, big = variant & 2;                                                       \
            ctype data[ROWS * COLUMNS];                                                                                \
            char dictionary[128];                                                                                      \
            for (int i = 0; i < ROWS * COLUMNS; i++) {                                                                 \
                data[fortran ? i % COLUMNS * ROWS + i / COLUMNS : i] = values[i];                                      \
            }                                                                                                          \
            if (big) {                                                                                                 \
                swap_bytes((unsigned char *)data, ROWS *COLUMNS, sizeof(ctype));                                       \
            }                                                                                                          \
            snprintf(dictionary, sizeof dictionary, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (3, 2), }  \n",   \
                     sizeof(ctype) == 1 ? '|'                                                                          \
                     : big              ? '>'                                                                          \
                                        : '<',                                                                                      \
                     code, fortran ? "True" : "False");                                                                \
            thiele_table *table;                                                                                       \
            assert_ok(ctx, open_npy(&table, 1 + variant / 4, dictionary, data, sizeof data));                          \
            assert_int_equal(thiele_table_rows(table), ROWS);                                                          \
            assert_int_equal(thiele_table_columns(table), COLUMNS);                                                    \
            const int columns[3] = {1, 0, 1};                                                                          \
            double out[9];                                                                                             \
            assert_ok(ctx, table->ops->numbers(table, ctx, 0, ROWS, columns, 3, out));                                 \
            for (int i = 0; i < 9; i++) {                                                                              \
                assert_true(out[i] == (double)values[i / 3 * COLUMNS + columns[i % 3]]);                               \
            }                                                                                                          \
            thiele_table_destroy(table);                                                                               \
        }                                                                                                              \
    } while (0)

static void test_types(void **state)
{
    (void)state;
    CHECK_TYPE("f8", double, 1.5, -2e300, 3, 0.1, 5e-324, -0.0);
    CHECK_TYPE("f4", float, 1.5f, -2e30f, 3, 0.1f, 1e-45f, INFINITY);
    CHECK_TYPE("i1", int8_t, -128, 127, 0, 1, -1, 5);
    CHECK_TYPE("i2", int16_t, -32768, 32767, 0, 1, -1, 258);
    CHECK_TYPE("i4", int32_t, INT32_MIN, INT32_MAX, 0, 1, -1, 66051);
    CHECK_TYPE("i8", int64_t, INT64_MIN, INT64_C(1) << 53, 0, 1, -1, INT64_C(283686952306183));
    CHECK_TYPE("u1", uint8_t, 255, 128, 0, 1, 2, 3);
    CHECK_TYPE("u2", uint16_t, 65535, 32768, 0, 1, 2, 258);
    CHECK_TYPE("u4", uint32_t, UINT32_MAX, 2147483648u, 0, 1, 2, 66051);
    CHECK_TYPE("u8", uint64_t, UINT64_MAX, UINT64_C(1) << 63, 0, 1, 2, 3);
    CHECK_TYPE("b1", uint8_t, 0, 1, 1, 0, 0, 1);
}

static void test_one_dimension(void **state)
{
    (void)state;
    const double data[3] = {1, NAN, 2.5};
    thiele_table *table;
    char text[32];
    assert_ok(ctx, open_npy(&table, 1, "{'shape':(3,),'fortran_order':False,\"descr\":\"<f8\"}", data, sizeof data));
    assert_int_equal(thiele_table_columns(table), 1);
    assert_string_equal(thiele_table_column_name(table, 0), "x1");
    assert_ok(ctx, thiele_table_cell(table, ctx, 2, 0, text, sizeof text));
    assert_string_equal(text, "2.5");
    assert_ok(ctx, thiele_table_cell(table, ctx, 1, 0, text, sizeof text));
    assert_string_equal(text, "");
    thiele_table_destroy(table);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct refusal {
        const char *dictionary;
        thiele_status code;
        const char *part;
    } refusals[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", THIELE_ERROR_FORMAT, "24 bytes of numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", THIELE_ERROR_FORMAT, "24 bytes of numbers"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", THIELE_ERROR_FORMAT,
         "24 bytes"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }", THIELE_ERROR_UNSUPPORTED, "0 dimensions"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 3), }", THIELE_ERROR_UNSUPPORTED, "3 dimensions"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }", THIELE_ERROR_UNSUPPORTED, "'<f2'"},
        {"{'descr': '|S8', 'fortran_order': False, 'shape': (3,), }", THIELE_ERROR_UNSUPPORTED, "'|S8'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (3,), }", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'fortran_order': Maybe, 'shape': (3,), }", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, }", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'x': 1}", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8', 'shape': (3,)}", THIELE_ERROR_FORMAT, "header"},
        {"{'descr': '<f8", THIELE_ERROR_FORMAT, "header"},
        {"", THIELE_ERROR_FORMAT, "header"},
    };
    const double data[3] = {1, 2, 3};
    thiele_table *table;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        assert_fails(ctx, open_npy(&table, 1, refusals[i].dictionary, data, sizeof data), refusals[i].code,
                     refusals[i].part);
        assert_null(table);
    }
    assert_fails(ctx, open_npy(&table, 4, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", data, sizeof data),
                 THIELE_ERROR_FORMAT, "header");
    assert_fails(ctx, open_npy(&table, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}", data, 0),
                 THIELE_ERROR_DATA, "no rows");
    assert_fails(ctx, open_npy(&table, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0)}", data, 0),
                 THIELE_ERROR_DATA, "no columns");
}

/* Every prefix of a good file, and the good file with any byte changed: a table or an error, never more. */
static void test_mutations(void **state)
{
    (void)state;
    const double data[4] = {1, 2, 3, 4};
    unsigned char bytes[256];
    size_t length =
        make_npy(bytes, 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n", data, sizeof data);
    thiele_table *table;
    for (size_t cut = 6; cut < length; cut++) {
        write_file(bytes, cut);
        assert_int_equal(thiele_table_open(&table, ctx, path, NULL), THIELE_ERROR_FORMAT);
    }
    for (size_t at = 6; at < length; at++) {
        for (uint64_t trial = 0; trial < 8; trial++) {
            unsigned char kept = bytes[at];
            bytes[at] = (unsigned char)thi_random_bits((thi_stream){1, THI_RANDOM_DEMO, at}, trial);
            write_file(bytes, length);
            bytes[at] = kept;
            if (thiele_table_open(&table, ctx, path, NULL) == THIELE_OK) {
                const int column = table->columns - 1;
                double value;
                assert_ok(ctx, table->ops->numbers(table, ctx, table->rows - 1, 1, &column, 1, &value));
                thiele_table_destroy(table);
            }
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    ctx = test_context(1);
    int failed = mkdtemp(folder) == NULL;
    snprintf(path, sizeof path, "%s/t.npy", folder);
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
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_one_dimension),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

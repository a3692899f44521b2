/* CSV in and out: the grammar, what is refused and in which words, round trips of random tables, gzip, memory. */
#include <zlib.h>

#include "data/data.h"
#include "testing.h"

static thiele_context *ctx;
static char folder[] = "/tmp/thiele-test-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_bytes(const char *name, const void *bytes, size_t length)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

static thiele_table *parse_with(const char *text, thiele_table_options options)
{
    thiele_table *table;
    assert_ok(ctx, thi_table_parse_csv(&table, ctx, text, strlen(text), "t.csv", &options));
    return table;
}

static thiele_table *parse(const char *text)
{
    return parse_with(text, (thiele_table_options)THIELE_TABLE_OPTIONS_INIT);
}

static double number_at(const thiele_table *table, int64_t row, int column)
{
    double value;
    assert_ok(ctx, table->ops->numbers(table, ctx, row, 1, &column, 1, &value));
    return value;
}

static const char *cell_at(const thiele_table *table, int64_t row, int column)
{
    static char text[256];
    assert_ok(ctx, thiele_table_cell(table, ctx, row, column, text, sizeof text));
    return text;
}

static void assert_census(const thiele_table *table, int column, int64_t text, int64_t missing)
{
    int64_t t, m;
    thi_table_census(table, column, &t, &m);
    assert_int_equal(t, text);
    assert_int_equal(m, missing);
}

static void assert_refused(const char *text, thiele_status code, const char *part)
{
    thiele_table *table;
    assert_fails(ctx, thi_table_parse_csv(&table, ctx, text, strlen(text), "t.csv", NULL), code, part);
    assert_null(table);
}

static void assert_shape(const thiele_table *table, int64_t rows, int columns)
{
    assert_int_equal(thiele_table_rows(table), rows);
    assert_int_equal(thiele_table_columns(table), columns);
}

/* --- grammar ---------------------------------------------------------------------------------------------------- */

/* The same two rows whatever ends a line, separates fields or surrounds them. */
static void test_dialects(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a,b\n1,x\n2.5,y\n",
        "a,b\r\n1,x\r\n2.5,y",
        "a,b\r1,x\r2.5,y\r",
        "a;b\n1;x\n2.5;y\n",
        "a\tb\n1\tx\n2.5\ty\n",
        "\xEF\xBB\xBF"
        "a,b\n1,x\n2.5,y",
        "\"a\",\"b\"\n1,\"x\"\n\"2.5\",y\n",
        " a , b \n 1 , x \n\t2.5\t, \"y\" \n",
        "\n\na,b\n\n1,x\n  \n2.5,y\n\n\n",
        "a,b\n1,x\r2.5,y\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        thiele_table *table = parse(texts[i]);
        assert_shape(table, 2, 2);
        assert_string_equal(thiele_table_column_name(table, 0), "a");
        assert_string_equal(thiele_table_column_name(table, 1), "b");
        assert_true(number_at(table, 0, 0) == 1 && number_at(table, 1, 0) == 2.5);
        assert_string_equal(cell_at(table, 0, 1), "x");
        assert_string_equal(cell_at(table, 1, 1), "y");
        assert_string_equal(cell_at(table, 1, 0), "2.5");
        assert_census(table, 0, 0, 0);
        assert_census(table, 1, 2, 0);
        thiele_table_destroy(table);
    }
}

static void test_quotes(void **state)
{
    (void)state;
    thiele_table *table = parse("\"say \"\"a\"\"\",b\n\"x,y\",\"two\nlines\"\n\"\"\"\",\"\"\n5\" pipe,\" blank \"\n");
    assert_shape(table, 3, 2);
    assert_string_equal(thiele_table_column_name(table, 0), "say \"a\"");
    assert_string_equal(cell_at(table, 0, 0), "x,y");
    assert_string_equal(cell_at(table, 0, 1), "two\nlines");
    assert_string_equal(cell_at(table, 1, 0), "\"");
    assert_string_equal(cell_at(table, 1, 1), "");
    assert_string_equal(cell_at(table, 2, 0), "5\" pipe");
    assert_string_equal(cell_at(table, 2, 1), " blank ");
    assert_census(table, 1, 2, 1);
    thiele_table_destroy(table);
}

static void test_delimiter(void **state)
{
    (void)state;
    thiele_table *table = parse("\"a;b;c\",d\n1,2\n");
    assert_shape(table, 1, 2);
    thiele_table_destroy(table);
    table = parse_with("1,5;2,5;3,5\n2;3;4,5\n",
                       (thiele_table_options){.size = sizeof(thiele_table_options), .header = THIELE_HEADER_NO});
    assert_shape(table, 2, 3);
    int column = 0;
    double value;
    assert_fails(ctx, table->ops->numbers(table, ctx, 0, 1, &column, 1, &value), THIELE_ERROR_DATA, "decimal comma");
    thiele_table_destroy(table);
    table = parse("age,income (k; net),score\n1,2,3\n");
    assert_shape(table, 1, 3);
    thiele_table_destroy(table);
    table = parse_with("a,b|c\n1|2\n", (thiele_table_options){.size = sizeof(thiele_table_options), .delimiter = '|'});
    assert_shape(table, 1, 2);
    thiele_table_destroy(table);
    const thiele_table_options bad = {.size = sizeof bad, .delimiter = 'e'};
    assert_fails(ctx, thi_table_parse_csv(&table, ctx, "1e5", 3, "", &bad), THIELE_ERROR_ARGUMENT, "'e'");
}

static void test_header(void **state)
{
    (void)state;
    thiele_table *table = parse("1,2,NA\n3,4,5\n");
    assert_shape(table, 2, 3);
    assert_string_equal(thiele_table_column_name(table, 2), "x3");
    assert_null(thiele_table_column_name(table, 3));
    assert_null(thiele_table_column_name(table, -1));
    thiele_table_destroy(table);
    table = parse_with("1,2\n3,4\n",
                       (thiele_table_options){.size = sizeof(thiele_table_options), .header = THIELE_HEADER_YES});
    assert_shape(table, 1, 2);
    assert_string_equal(thiele_table_column_name(table, 1), "2");
    thiele_table_destroy(table);
    table = parse_with("a,b\n3,4\n",
                       (thiele_table_options){.size = sizeof(thiele_table_options), .header = THIELE_HEADER_NO});
    assert_shape(table, 2, 2);
    assert_string_equal(cell_at(table, 0, 0), "a");
    thiele_table_destroy(table);
    table = parse("a,,c\n1,2,3\n");
    assert_string_equal(thiele_table_column_name(table, 1), "x2");
    thiele_table_destroy(table);
    assert_refused("a,b,a\n1,2,3\n", THIELE_ERROR_FORMAT, "two columns named 'a'");
    assert_refused("x2,\n1,2\n", THIELE_ERROR_FORMAT, "two columns named 'x2'");
}

static void test_missing(void **state)
{
    (void)state;
    thiele_table *table = parse("a,b\n,NA\nNaN,nan\n\"null\", \" NA \"\n-nan,NAN\n1,2\ninf,-Infinity\n1e999,text\n");
    assert_shape(table, 7, 2);
    assert_census(table, 0, 0, 4);
    assert_census(table, 1, 1, 4);
    for (int64_t row = 0; row < 4; row++) {
        for (int column = 0; column < 2; column++) {
            assert_true(isnan(number_at(table, row, column)));
            assert_string_equal(cell_at(table, row, column), "");
        }
    }
    assert_true(number_at(table, 5, 0) == INFINITY && number_at(table, 5, 1) == -INFINITY);
    thiele_table_destroy(table);
    table = parse_with("a,b\n-999,?\n-999.0,n/a\n ? ,1\n\"-999\",2\n",
                       (thiele_table_options){.size = sizeof(thiele_table_options), .missing = "-999, ?, n/a"});
    assert_census(table, 0, 0, 3);
    assert_census(table, 1, 0, 2);
    assert_true(number_at(table, 1, 0) == -999);
    thiele_table_destroy(table);
}

/* One column: a blank line is a missing value, but not at the end. */
static void test_one_column(void **state)
{
    (void)state;
    thiele_table *table = parse("a\n1\n\n\n2\n \n\n");
    assert_shape(table, 4, 1);
    assert_census(table, 0, 0, 2);
    assert_true(number_at(table, 3, 0) == 2 && isnan(number_at(table, 1, 0)));
    thiele_table_destroy(table);
    table = parse("7");
    assert_shape(table, 1, 1);
    thiele_table_destroy(table);
}

/* --- refusals --------------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("", THIELE_ERROR_DATA, "t.csv is empty");
    assert_refused("\n \r\n\t\n", THIELE_ERROR_DATA, "t.csv is empty");
    assert_refused("\xEF\xBB\xBF", THIELE_ERROR_DATA, "t.csv is empty");
    assert_refused("a,b\n", THIELE_ERROR_DATA, "t.csv has a header and no rows");
    assert_refused("a,b,c\n1,2,3\n\n1,2\n", THIELE_ERROR_FORMAT, "t.csv, row 2 (line 4): 2 fields, but 3 are expected");
    assert_refused("a,b\n1,\"x\ny\"\n1,2,3\n", THIELE_ERROR_FORMAT, "row 2 (line 4): 3 fields, but 2 are expected");
    assert_refused("a\n1,2\n", THIELE_ERROR_FORMAT, "row 1 (line 2): 2 fields, but 1 is expected");
    assert_refused("a,b\n1,2\n1,2,\n", THIELE_ERROR_FORMAT, "row 2 (line 3): 3 fields");
    assert_refused("a,b\n1\n", THIELE_ERROR_FORMAT, "1 field, but 2 are expected");
    assert_refused("a,b\n1,2\n3,\"x\n4,5\n", THIELE_ERROR_FORMAT,
                   "t.csv, line 3: a quote opens here and is never closed");
    assert_refused("a,\"b", THIELE_ERROR_FORMAT, "t.csv, line 1: a quote opens");
    assert_refused("a,b\n1,\"x\"y\n", THIELE_ERROR_FORMAT, "t.csv, line 2: text after a closing quote");
    assert_refused("\xFF\xFE:", THIELE_ERROR_FORMAT, "UTF-16");
    thiele_table *table;
    assert_fails(ctx, thi_table_parse_csv(&table, ctx, "a,b\n1,2\n\0,3\n", 13, "t.csv", NULL), THIELE_ERROR_FORMAT,
                 "t.csv, line 3: a zero byte");
}

static void test_not_a_number(void **state)
{
    (void)state;
    thiele_table *table = parse("age,note,long\n1,a,1\nn/a,a b,1\n3,1,\""
                                "0123456789012345678901234567890123456789xyz\"\n");
    double out[9];
    const int all[3] = {0, 1, 2};
    assert_fails(ctx, table->ops->numbers(table, ctx, 0, 3, &all[0], 1, out), THIELE_ERROR_DATA,
                 "column 'age', row 2: 'n/a' is not a number (use `missing` n/a to treat it as missing; list columns "
                 "of categories with `categorical` age)");
    assert_fails(ctx, table->ops->numbers(table, ctx, 1, 1, &all[1], 1, out), THIELE_ERROR_DATA,
                 "'a b' is not a number");
    assert_fails(ctx, table->ops->numbers(table, ctx, 2, 1, &all[2], 1, out), THIELE_ERROR_DATA, "6789...' is not");
    assert_ok(ctx, table->ops->numbers(table, ctx, 2, 1, all, 2, out));
    assert_true(out[0] == 3 && out[1] == 1);
    int64_t rows[2] = {2, 1};
    thiele_table *some;
    assert_ok(ctx, thiele_table_select(&some, ctx, table, rows, 2));
    assert_fails(ctx, some->ops->numbers(some, ctx, 0, 2, all, 1, out), THIELE_ERROR_DATA, "row 2: 'n/a'");
    thiele_table_destroy(some);
    thiele_table_destroy(table);
}

/* Fields that are read in one word, and those just too long for it, are what strtod makes of them, to the last bit. */
static void test_short_numbers(void **state)
{
    (void)state;
    enum { ROWS = 4000, COLUMNS = 3 };
    static const char *const formats[] = {"%.0f", "%.1f", "%.3f", "%.6f", "%.9g", "%.0f.", "+%.2f", "%.2e", "\"%.2f\""};
    enum { FORMATS = sizeof formats / sizeof *formats };
    thi_text text;
    thi_text_init(&text, ctx);
    double *wanted = test_malloc(ROWS * COLUMNS * sizeof *wanted);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        char field[64];
        thi_stream stream = {3, THI_RANDOM_DEMO, (uint64_t)i};
        double size = floor(10.0 * thi_random_uniform(stream, 0));
        double value = thi_random_normal(stream, 1) * pow(10.0, size - 1.0);
        int format = (int)(FORMATS * thi_random_uniform(stream, 2));
        snprintf(field, sizeof field, formats[format], formats[format][0] == '+' ? fabs(value) : value);
        wanted[i] = strtod(field + (field[0] == '"'), NULL);
        thi_text_add(&text, "%s%s", field, (i + 1) % COLUMNS > 0 ? "," : i + 1 < ROWS * COLUMNS ? "\n" : "");
    }
    assert_int_equal(text.status, THIELE_OK);
    thiele_table *table =
        parse_with(text.data, (thiele_table_options){.size = sizeof(thiele_table_options), .header = THIELE_HEADER_NO});
    assert_int_equal(thiele_table_rows(table), ROWS);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double read = number_at(table, i / COLUMNS, i % COLUMNS);
        assert_memory_equal(&read, &wanted[i], sizeof read);
    }
    thiele_table_destroy(table);
    thi_text_clear(&text);
    test_free(wanted);
}

static void test_find_column(void **state)
{
    (void)state;
    thiele_table *table = parse("age,strength,2,site\n1,2,3,4\n");
    int column;
    assert_ok(ctx, thiele_table_find_column(table, ctx, "strength", &column));
    assert_int_equal(column, 1);
    assert_ok(ctx, thiele_table_find_column(table, ctx, "2", &column));
    assert_int_equal(column, 2);
    assert_ok(ctx, thiele_table_find_column(table, ctx, "1", &column));
    assert_int_equal(column, 0);
    assert_ok(ctx, thiele_table_find_column(table, ctx, "-1", &column));
    assert_int_equal(column, 3);
    assert_fails(ctx, thiele_table_find_column(table, ctx, "strenght", &column), THIELE_ERROR_COLUMN,
                 "no column 'strenght' in t.csv; did you mean 'strength'?");
    assert_fails(ctx, thiele_table_find_column(table, ctx, "weight", &column), THIELE_ERROR_COLUMN,
                 "no column 'weight' in t.csv; it has 'age', 'strength', '2', 'site'");
    static const char *const off[] = {"0", "5", "-5", "", "1x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        assert_fails(ctx, thiele_table_find_column(table, ctx, off[i], &column), THIELE_ERROR_COLUMN, "no column");
        assert_int_equal(column, -1);
    }
    thiele_table_destroy(table);
}

static void test_cells_of_no_table(void **state)
{
    (void)state;
    thiele_table *table = parse("a,b\nlong text,2\n");
    char text[5];
    assert_ok(ctx, thiele_table_cell(table, ctx, 0, 0, text, sizeof text));
    assert_string_equal(text, "long");
    assert_int_equal(thiele_table_cell(table, ctx, 1, 0, text, sizeof text), THIELE_ERROR_ARGUMENT);
    assert_int_equal(thiele_table_cell(table, ctx, 0, 2, text, sizeof text), THIELE_ERROR_ARGUMENT);
    assert_int_equal(thiele_table_cell(table, ctx, -1, 0, text, sizeof text), THIELE_ERROR_ARGUMENT);
    assert_int_equal(thiele_table_cell(table, ctx, 0, 0, text, 0), THIELE_ERROR_ARGUMENT);
    thiele_table_destroy(table);
    thiele_table_destroy(NULL);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static void test_open(void **state)
{
    (void)state;
    thiele_table *table;
    const char *text = "a,b\n1,2\n3,4\n";
    assert_ok(ctx, thiele_table_open(&table, ctx, write_bytes("plain.csv", text, strlen(text)), NULL));
    assert_shape(table, 2, 2);
    thiele_table_destroy(table);
    assert_fails(ctx, thiele_table_open(&table, ctx, path_of("absent.csv"), NULL), THIELE_ERROR_IO,
                 "absent.csv: No such");
    assert_null(table);
    assert_fails(ctx, thiele_table_open(&table, ctx, folder, NULL), THIELE_ERROR_IO, "folder");
    assert_fails(ctx, thiele_table_open(&table, ctx, write_bytes("empty.csv", "", 0), NULL), THIELE_ERROR_DATA,
                 "is empty");
    assert_fails(ctx, thiele_table_open(&table, ctx, "", NULL), THIELE_ERROR_ARGUMENT, "no file");
    const thiele_table_options wrong = {0};
    assert_fails(ctx, thiele_table_open(&table, ctx, path_of("plain.csv"), &wrong), THIELE_ERROR_ARGUMENT,
                 "TABLE_OPTIONS_INIT");
}

static void test_gzip(void **state)
{
    (void)state;
    enum { ROWS = 20000 };
    char path[128];
    snprintf(path, sizeof path, "%s", path_of("t.csv.gz"));
    gzFile file = gzopen(path, "wb");
    gzprintf(file, "i,square\n");
    for (int i = 0; i < ROWS; i++) {
        gzprintf(file, "%d,%d\n", i, i * i % 1000003);
    }
    gzclose(file);
    thiele_table *table;
    assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
    assert_shape(table, ROWS, 2);
    assert_true(number_at(table, ROWS - 1, 0) == ROWS - 1);
    thiele_table_destroy(table);

    char *bytes = malloc(1 << 20);
    FILE *plain = fopen(path, "rb");
    size_t length = fread(bytes, 1, 1 << 20, plain);
    fclose(plain);
    for (size_t cut = 20; cut < length; cut += length / 7) {
        assert_fails(ctx, thiele_table_open(&table, ctx, write_bytes("cut.gz", bytes, cut), NULL), THIELE_ERROR_FORMAT,
                     "gzip file that ends too early");
    }
    bytes[length / 2] ^= 0x55;
    assert_fails(ctx, thiele_table_open(&table, ctx, write_bytes("bad.gz", bytes, length), NULL), THIELE_ERROR_FORMAT,
                 "damaged gzip file");
    bytes[length / 2] ^= 0x55;
    bytes[length - 6] ^= 1;
    assert_fails(ctx, thiele_table_open(&table, ctx, write_bytes("sum.gz", bytes, length), NULL), THIELE_ERROR_FORMAT,
                 "gzip");
    free(bytes);
}

static void test_standard_input(void **state)
{
    (void)state;
    const char *text = "a,b\n1,2\n3\n";
    int kept = dup(STDIN_FILENO);
    assert_non_null(freopen(write_bytes("in.csv", text, strlen(text)), "rb", stdin));
    thiele_table *table;
    assert_fails(ctx, thiele_table_open(&table, ctx, "-", NULL), THIELE_ERROR_FORMAT, "standard input, row 2 (line 3)");
    dup2(kept, STDIN_FILENO);
    close(kept);
}

static void test_memory_limit(void **state)
{
    (void)state;
    enum { ROWS = 100000 };
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *small;
    options.memory_limit = 1 << 20;
    assert_int_equal(thiele_context_create(&small, &options), THIELE_OK);
    char path[128];
    snprintf(path, sizeof path, "%s", path_of("large.csv.gz"));
    gzFile file = gzopen(path, "wb");
    for (int i = 0; i < ROWS; i++) {
        gzprintf(file, "1,2,3,4,5,6,7,8,9\n");
    }
    gzclose(file);
    thiele_table *table;
    assert_fails(small, thiele_table_open(&table, small, path, NULL), THIELE_ERROR_LIMIT, "limit");
    assert_int_equal(thi_memory_held(small), 0);
    thiele_context_destroy(small);
}

/* --- round trips ------------------------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *index)
{
    return thi_random_bits((thi_stream){3, THI_RANDOM_DEMO, 0}, (*index)++);
}

/* A random text from characters that make trouble, which no one takes for a number or a missing value. */
static void nasty_text(char *text, uint64_t *index)
{
    static const char alphabet[] = "\"\",;\t\r\n ab'\\|\xC3\xA9";
    size_t length = 1 + draw(index) % 8;
    text[0] = 'q';
    for (size_t i = 1; i < length; i++) {
        text[i] = alphabet[draw(index) % (sizeof alphabet - 1)];
    }
    text[length] = '\0';
}

static void quote(thi_text *out, const char *text)
{
    thi_text_add(out, "\"");
    for (; *text != '\0'; text++) {
        thi_text_add(out, *text == '"' ? "\"\"" : "%c", *text);
    }
    thi_text_add(out, "\"");
}

/* Any double but NaN and infinities. */
static double any_double(uint64_t *index)
{
    for (;;) {
        uint64_t bits = draw(index);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            return value;
        }
    }
}

static void assert_same(const thiele_table *a, const thiele_table *b)
{
    assert_shape(b, a->rows, a->columns);
    for (int c = 0; c < a->columns; c++) {
        int64_t text, missing;
        thi_table_census(a, c, &text, &missing);
        assert_string_equal(a->name[c], b->name[c]);
        assert_census(b, c, text, missing);
        for (int64_t r = 0; r < a->rows; r++) {
            char one[64], two[64];
            assert_ok(ctx, thiele_table_cell(a, ctx, r, c, one, sizeof one));
            assert_ok(ctx, thiele_table_cell(b, ctx, r, c, two, sizeof two));
            if (text > 0 || *one == '\0') {
                assert_string_equal(one, two);
            } else {
                double x = number_at(a, r, c), y = number_at(b, r, c);
                assert_memory_equal(&x, &y, sizeof x);
            }
        }
    }
}

/* Random tables written with every field quoted, read, written, read again: the same names, texts and bits. */
static void test_round_trip(void **state)
{
    (void)state;
    uint64_t index = 0;
    for (int trial = 0; trial < 300; trial++) {
        int columns = 1 + (int)(draw(&index) % 5), rows = 1 + (int)(draw(&index) % 12);
        thi_text text;
        char field[64];
        thi_text_init(&text, ctx);
        for (int r = -1; r < rows; r++) {
            for (int c = 0; c < columns; c++) {
                thi_text_add(&text, "%s", c > 0 ? "," : "");
                if (r < 0 || (c % 2 == 1 && draw(&index) % 4 > 0)) {
                    nasty_text(field, &index);
                    snprintf(field + strlen(field), 16, r < 0 ? "n%d" : "", c);
                    quote(&text, field);
                } else if (draw(&index) % 5 > 0) {
                    thi_text_add_number(&text, any_double(&index));
                } else {
                    thi_text_add(&text, "\"\"");
                }
            }
            thi_text_add(&text, "%s", trial % 3 == 0 ? "\r\n" : trial % 3 == 1 ? "\n" : "\r");
        }
        thiele_table *table, *again;
        assert_ok(ctx, thi_table_parse_csv(&table, ctx, text.data, text.length, "", NULL));
        assert_shape(table, rows, columns);
        assert_ok(ctx, thiele_table_write(table, ctx, path_of("again.csv")));
        assert_ok(ctx, thiele_table_open(&again, ctx, path_of("again.csv"), NULL));
        assert_same(table, again);
        thiele_table_destroy(again);
        thiele_table_destroy(table);
        thi_text_clear(&text);
    }
}

static void test_from_rows(void **state)
{
    (void)state;
    uint64_t index = 77;
    double values[5000 * 2];
    for (int i = 0; i < 10000; i++) {
        values[i] = draw(&index) % 50 == 0 ? NAN : any_double(&index);
    }
    const char *const names[] = {"a", "b,c"};
    thiele_table *table, *again;
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, 5000, 2, values, names));
    assert_ok(ctx, thiele_table_write(table, ctx, path_of("rows.csv")));
    assert_ok(ctx, thiele_table_open(&again, ctx, path_of("rows.csv"), NULL));
    assert_same(table, again);
    thiele_table_destroy(again);

    int64_t order[3] = {4999, 0, 1};
    assert_ok(ctx, thiele_table_select(&again, ctx, table, order, 3));
    const int both[2] = {1, 0};
    double out[6];
    assert_ok(ctx, again->ops->numbers(again, ctx, 0, 3, both, 2, out));
    for (int i = 0; i < 6; i++) {
        double want = values[order[i / 2] * 2 + both[i % 2]];
        assert_true(out[i] == want || (isnan(out[i]) && isnan(want)));
    }
    thiele_table_destroy(again);
    order[1] = 5000;
    assert_fails(ctx, thiele_table_select(&again, ctx, table, order, 3), THIELE_ERROR_ARGUMENT, "row 5001");
    thiele_table_destroy(table);
    assert_fails(ctx, thiele_table_from_rows(&table, ctx, 0, 2, values, names), THIELE_ERROR_ARGUMENT, "0 rows");
    const char *const twice[] = {"a", "a"};
    assert_fails(ctx, thiele_table_from_rows(&table, ctx, 2, 2, values, twice), THIELE_ERROR_FORMAT, "'a'");
}

static void test_generate(void **state)
{
    (void)state;
    enum { ROWS = 4000 };
    thiele_table *table, *again;
    assert_ok(ctx, thiele_table_generate(&table, ctx, ROWS, 5));
    assert_shape(table, ROWS, 5);
    assert_ok(ctx, thiele_table_write(table, ctx, path_of("demo.csv")));
    assert_ok(ctx, thiele_table_open(&again, ctx, path_of("demo.csv"), NULL));
    assert_same(table, again);
    thiele_table_destroy(again);
    const int columns[4] = {0, 1, 2, 4};
    double squares = 0;
    for (int64_t r = 0; r < ROWS; r++) {
        double v[4];
        assert_ok(ctx, table->ops->numbers(table, ctx, r, 1, columns, 4, v));
        double f = 40 + 12 * sin(1.5 * v[1]) + 4 * v[2] + 3 * (strcmp(cell_at(table, r, 3), "north") == 0);
        double z = (v[3] - f) / (0.8 + 0.5 * fabs(v[1]));
        assert_true(v[0] == (double)(r + 1) && fabs(v[1]) <= 3 && fabs(v[2]) <= 2 && fabs(z) < 6);
        squares += z * z;
    }
    /* chi squared with 4000 degrees of freedom: mean 1, sd sqrt(2 / 4000) = 0.022 */
    assert_near(squares / ROWS, 1, 0, 0.1);
    thiele_table_destroy(table);
    assert_ok(ctx, thiele_table_generate(&again, ctx, 10, 5));
    thiele_table_destroy(again);
    assert_fails(ctx, thiele_table_generate(&again, ctx, 0, 5), THIELE_ERROR_ARGUMENT, "at least one row");
}

static void test_write_fails(void **state)
{
    (void)state;
    thiele_table *table;
    assert_ok(ctx, thiele_table_generate(&table, ctx, 5000, 1));
    assert_fails(ctx, thiele_table_write(table, ctx, path_of("no/such/folder.csv")), THIELE_ERROR_IO, "folder.csv");
    if (access("/dev/full", W_OK) == 0) {
        assert_fails(ctx, thiele_table_write(table, ctx, "/dev/full"), THIELE_ERROR_IO, "No space left");
    }
    thiele_table_destroy(table);
}

/* Every allocation failing in turn, while opening, reading and writing: an error, and nothing kept. */
static void test_allocations(void **state)
{
    (void)state;
    thiele_context *own = test_context(1);
    const char *text = "a,\"b\"\"c\",site\n1,2,\"x\"\"y\"\n3,,z\n";
    char path[128];
    snprintf(path, sizeof path, "%s", write_bytes("alloc.csv", text, strlen(text)));
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    options.missing = "z,none";
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t n = 1; status != THIELE_OK; n++) {
        thiele_table *table = NULL, *some = NULL;
        const int64_t rows[1] = {1};
        assert_true(n < 1000);
        thi_fail_allocation(own, n, n % 2 == 0);
        status = thiele_table_open(&table, own, path, &options);
        if (status == THIELE_OK) {
            status = thiele_table_write(table, own, path_of("alloc2.csv"));
        }
        if (status == THIELE_OK) {
            status = thiele_table_select(&some, own, table, rows, 1);
        }
        if (status == THIELE_OK) {
            thiele_table_destroy(some);
            status = thiele_table_generate(&some, own, 3, 1);
        }
        thi_fail_allocation(own, 0, false);
        thiele_table_destroy(some);
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
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"plain.csv", "empty.csv", "t.csv.gz",     "cut.gz",    "bad.gz",
                                        "sum.gz",    "in.csv",    "large.csv.gz", "again.csv", "rows.csv",
                                        "demo.csv",  "alloc.csv", "alloc2.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unlink(path_of(names[i]));
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dialects),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_delimiter),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_one_column),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_short_numbers),
        cmocka_unit_test(test_find_column),
        cmocka_unit_test(test_cells_of_no_table),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_from_rows),
        cmocka_unit_test(test_generate),
        cmocka_unit_test(test_write_fails),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

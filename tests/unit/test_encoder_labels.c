/*
 * Class targets of the encoder: labels by number and by text, sorted or in the order that was given, their codes, what
 * is refused and in which words, tables other than CSV, and selections.
 */
#include "target_testing.h"

static void test_binary(void **state)
{
    (void)state;
    double y[5];
    thi_encoder encoder = learn("x,y\n1,1\n2,0\n3,1.0\n4,1e0\n5,-0\n", options_for("y"), &bernoulli);
    assert_labels(&encoder, "0|1");
    assert_true(encoder.signs && encoder.target[0].level_value[0] == 0 && encoder.target[0].level_value[1] == 1);
    /* codes +1 -1 +1 +1 -1 */
    assert_near(encoder.target[0].mean, 0.2, 1e-15, 0);
    assert_near(encoder.target[0].variance, 0.96, 1e-15, 0);
    read_targets(&encoder, "x,y\n1,1.00\n2,0\n3,\" 1 \"\n4,-0.0\n", false, y, NULL);
    assert_true(y[0] == 1 && y[1] == -1 && y[2] == 1 && y[3] == -1);
    assert_unreadable(&encoder, "x,y\n1,0\n2,2\n", (thi_reading){0},
                      "column 'y', row 2: '2' is not one of the classes 0, 1 (those that the model knows)");
    assert_unreadable(&encoder, "x,y\n1,0\n2,yes\n", (thi_reading){0},
                      "column 'y', row 2: 'yes' is not one of the classes 0, 1");
    assert_unreadable(&encoder, "x,y\n1,0\n2,inf\n", (thi_reading){0}, "column 'y', row 2: the value is infinite");
    /* a text elsewhere in the column changes nothing for the numbers */
    assert_unreadable(&encoder, "x,y\n1,0.0\n2,1.0\n3,yes\n", (thi_reading){0}, "row 3: 'yes'");
    thi_encoder_clear(&encoder);
    encoder = learn("x,y\n1,yes\n2,no\n3,yes\n", options_for("y"), &bernoulli);
    assert_labels(&encoder, "no|yes");
    assert_null(encoder.target[0].level_value);
    read_targets(&encoder, "y,x\nno,1\nyes,2\n", false, y, NULL);
    assert_true(y[0] == -1 && y[1] == 1);
    thi_encoder_clear(&encoder);
}

static void test_binary_refused(void **state)
{
    (void)state;
    const thi_column_options options = options_for("y");
    assert_refused("x,y\n1,0\n2,1\n3,0\n4,2\n", options, &bernoulli, THIELE_ERROR_DATA,
                   "column 'y', row 4: '2' is a third value after '0' and '1', but likelihood 'bernoulli' takes two: "
                   "use `likelihood` softmax for more than two classes");
    assert_refused("x,y\n1,yes\n2,no\n3,maybe\n", options, &bernoulli, THIELE_ERROR_DATA,
                   "column 'y', row 3: 'maybe' is a third value after 'no' and 'yes'");
    assert_refused("x,y\n1,1\n2,1.0\n", options, &bernoulli, THIELE_ERROR_DATA,
                   "the target 'y' is the same (1) in every row: there is nothing to learn");
    assert_refused("x,y\n1,a\n2,a\n", options, &softmax, THIELE_ERROR_DATA, "the target 'y' is the same (a)");
    assert_refused("x,y\n1,1\n2,inf\n", options, &bernoulli, THIELE_ERROR_DATA,
                   "column 'y', row 2: the value is infinite");
    assert_refused("x,y\n1,a\n2,\xFF\n", options, &bernoulli, THIELE_ERROR_DATA,
                   "column 'y', row 2: the text is not UTF-8");
    assert_refused("x,y,z\n1,0,1\n2,1,0\n", options_for("y,z"), &bernoulli, THIELE_ERROR_ARGUMENT,
                   "likelihood 'bernoulli' takes one target column of classes, not 2");
}

/* Numbers ascend (10 behind 9), texts are bytewise; quotes, commas, blanks and CRLF are no part of a label. */
static void test_softmax(void **state)
{
    (void)state;
    double y[6];
    thi_encoder encoder = learn("x,y\r\n1,10\r\n2,9\r\n3,9.0\r\n4,-1.5\r\n", options_for("y"), &softmax);
    assert_labels(&encoder, "-1.5|9|10");
    assert_false(encoder.signs);
    read_targets(&encoder, "x,y\r\n1,10.0\r\n2,-1.5\r\n3,9\r\n", false, y, NULL);
    assert_true(y[0] == 2 && y[1] == 0 && y[2] == 1);
    thi_encoder_clear(&encoder);
    const char *text = "x,y\r\n1,\"red, dark\"\r\n2,  light blue \r\n3,\"say \"\"no\"\"\"\r\n4,10\r\n5,9\r\n6,10.0\r\n";
    encoder = learn(text, options_for("y"), &softmax);
    assert_labels(&encoder, "10|10.0|9|light blue|red, dark|say \"no\"");
    assert_null(encoder.target[0].level_value);
    read_targets(&encoder, text, false, y, NULL);
    const double want[6] = {4, 3, 5, 0, 2, 1};
    assert_memory_equal(y, want, sizeof want);
    assert_unreadable(&encoder, "x,y\n1,9\n2,light\n", (thi_reading){0},
                      "column 'y', row 2: 'light' is not one of the classes 10, 10.0, 9, light blue, red, dark, say "
                      "\"no\" (those that the model knows)");
    thi_encoder_clear(&encoder);
}

/* Labels that only left-out rows have are none. */
static void test_labels_dropped(void **state)
{
    (void)state;
    const char *text = "x,y\n1,a\n,b\n3,c\n4,a\n5,d\n";
    thi_column_options options = options_for("y");
    options.drop_missing = 1;
    thi_encoder encoder = learn(text, options, &softmax);
    double y[5];
    assert_labels(&encoder, "a|c|d");
    /* codes 0, 1, 0, 2 */
    assert_near(encoder.target[0].mean, 0.75, 1e-15, 0);
    assert_near(encoder.target[0].variance, 0.6875, 1e-15, 0);
    assert_unreadable(&encoder, text, (thi_reading){0}, "column 'x', row 2: no value");
    read_targets(&encoder, "x,y\n1,d\n2,c\n", true, y, NULL);
    assert_true(y[0] == 2 && y[1] == 1);
    thi_encoder_clear(&encoder);
    encoder = learn("x,y\n1,3\n,2\n3,1\n", options, &ordinal);
    assert_labels(&encoder, "1|3");
    assert_true(encoder.target[0].level_value[1] == 3);
    thi_encoder_clear(&encoder);
    assert_refused("x,y\n1,3\n,2\n3,3\n", options, &softmax, THIELE_ERROR_DATA, "the target 'y' is the same (3)");
    assert_refused("x,y\n1,\n2,\n", options, &softmax, THIELE_ERROR_DATA, "t.csv has 0 rows without missing values");
}

static void test_labels_limit(void **state)
{
    (void)state;
    thi_text number, text;
    thi_text_init(&number, ctx);
    thi_text_init(&text, ctx);
    thi_text_add(&number, "x,price\n");
    thi_text_add(&text, "x,price\n");
    for (int i = 0; i < THI_LEVELS_MAX; i++) {
        thi_text_add(&number, "%d,%g\n", i, 1000 - 0.5 * i);
        thi_text_add(&text, "%d,p%d\n", i, i);
    }
    thi_encoder encoder = learn(number.data, options_for("price"), &softmax);
    assert_int_equal(encoder.target[0].levels, THI_LEVELS_MAX);
    for (int l = 1; l < THI_LEVELS_MAX; l++) {
        assert_true(encoder.target[0].level_value[l - 1] < encoder.target[0].level_value[l]);
    }
    double y[2];
    read_targets(&encoder, "x,price\n1,1000\n2,951\n", false, y, NULL);
    assert_true(y[0] == 99 && y[1] == 1);
    thi_encoder_clear(&encoder);
    thi_text_add(&number, "1,1\n");
    thi_text_add(&text, "1,p\n");
    assert_refused(number.data, options_for("price"), &softmax, THIELE_ERROR_DATA,
                   "column 'price' has more than 100 different values: is it a number? (`likelihood` gaussian)");
    assert_refused(text.data, options_for("price"), &softmax, THIELE_ERROR_DATA,
                   "column 'price' has more than 100 different values: so many texts cannot be classes");
    thi_text_clear(&number);
    thi_text_clear(&text);
}

static void test_classes(void **state)
{
    (void)state;
    double y[4];
    thi_column_options options = options_for("grade");
    assert_refused("x,grade\n1,low\n2,high\n3,mid\n", options, &ordinal, THIELE_ERROR_DATA,
                   "column 'grade' holds texts, and likelihood 'ordinal' needs their order: give it with "
                   "`classes` low,mid,high");
    options.classes = "low, mid,high,none";
    thi_encoder encoder = learn("x,grade\n1,low\n2,high\n3,mid\n", options, &ordinal);
    assert_labels(&encoder, "low|mid|high|none");
    assert_near(encoder.target[0].mean, 1, 1e-15, 0);
    read_targets(&encoder, "x,grade\n1,high\n2,none\n3,low\n4, mid\n", false, y, NULL);
    assert_true(y[0] == 2 && y[1] == 3 && y[2] == 0 && y[3] == 1);
    thi_encoder_clear(&encoder);
    options.classes = "\"red, dark\",\"blue\"";
    encoder = learn("x,grade\n1,\"red, dark\"\n2,blue\n", options, &bernoulli);
    read_targets(&encoder, "x,grade\n1,blue\n2,\"red, dark\"\n", false, y, NULL);
    assert_true(y[0] == 1 && y[1] == -1);
    thi_encoder_clear(&encoder);
    /* numbers in an order of their own, in any notation, with a class that no row has */
    options.classes = "3.0,1e0,2,5";
    encoder = learn("x,grade\n1,1.0\n2,3\n3,2\n", options, &softmax);
    assert_labels(&encoder, "3|1|2|5");
    read_targets(&encoder, "x,grade\n1,5\n2,3\n3,1\n4,2.0\n", false, y, NULL);
    assert_true(y[0] == 3 && y[1] == 0 && y[2] == 1 && y[3] == 2);
    thi_encoder_clear(&encoder);
}

static void test_classes_refused(void **state)
{
    (void)state;
    thi_column_options options = options_for("grade");
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "x,grade\n");
    for (int i = 1; i <= 20; i++) {
        thi_text_add(&text, "%d,%d\n", i, i == 17 ? 7 : 1 + i % 5);
    }
    options.classes = "1,2,3,4,5";
    assert_refused(text.data, options, &ordinal, THIELE_ERROR_DATA,
                   "column 'grade', row 17: '7' is not one of the classes 1, 2, 3, 4, 5 (given by `classes`)");
    thi_text_clear(&text);
    assert_refused("x,grade\n1,1\n2,2\n3,x\n", options, &softmax, THIELE_ERROR_DATA,
                   "column 'grade', row 3: 'x' is not one of the classes 1, 2, 3, 4, 5 (given by `classes`)");
    options.classes = "low,mid";
    assert_refused("x,grade\n1,low\n2,3\n", options, &softmax, THIELE_ERROR_DATA,
                   "column 'grade', row 2: '3' is not one of the classes low, mid (given by `classes`)");
    assert_refused("x,grade\n1,low\n2,low\n", options, &softmax, THIELE_ERROR_DATA,
                   "the target 'grade' is the same (low) in every row");
    const char *rows = "x,grade\n1,1\n2,2\n";
    options.classes = "1,2,3";
    assert_refused(rows, options, &bernoulli, THIELE_ERROR_ARGUMENT,
                   "`classes` names 3 classes, and likelihood 'bernoulli' takes two: use `likelihood` softmax");
    options.classes = "1,2,1.0";
    assert_refused(rows, options, &softmax, THIELE_ERROR_ARGUMENT, "`classes` names '1' twice");
    options.classes = "a,b,a";
    assert_refused(rows, options, &softmax, THIELE_ERROR_ARGUMENT, "`classes` names 'a' twice");
    options.classes = "a";
    assert_refused(rows, options, &softmax, THIELE_ERROR_ARGUMENT, "`classes` must name at least two classes");
    options.classes = "a,\xFF";
    assert_refused(rows, options, &softmax, THIELE_ERROR_ARGUMENT, "`classes`: class 2 is not UTF-8");
}

/* Class numbers of an NPY file, by way of the file. */
static void test_npy(void **state)
{
    (void)state;
    const double values[8] = {0.5, 2, 1.5, 0, 2.5, 2, 3.5, 7};
    char path[] = "/tmp/thiele-test-XXXXXX", header[129];
    int length = snprintf(header, sizeof header, "\x93NUMPY\x01%c\x76%c", 0, 0);
    length += snprintf(header + length, sizeof header - (size_t)length, "%-117s\n",
                       "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }");
    assert_int_equal(length, 128);
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0 && write(descriptor, header, 128) == 128 &&
                write(descriptor, values, sizeof values) == sizeof values && close(descriptor) == 0);
    thiele_table *table;
    thi_encoder encoder;
    thi_reader reader;
    double X[4], y[4];
    int64_t kept;
    const thi_column_options options = options_for("x2");
    assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, &softmax));
    assert_labels(&encoder, "0|2|7");
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.target = true}));
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, 4, X, y, NULL, NULL, &kept));
    assert_true(y[0] == 1 && y[1] == 0 && y[2] == 1 && y[3] == 2);
    thi_reader_close(&reader);
    thi_encoder_clear(&encoder);
    assert_fails(ctx, thi_encoder_learn(&encoder, ctx, table, &options, &bernoulli), THIELE_ERROR_DATA,
                 "column 'x2', row 4: '7' is a third value after '0' and '2'");
    thiele_table_destroy(table);
    unlink(path);
    /* labels that were texts, read from a table of numbers */
    encoder = learn("x1,x2\n1,2\n2,0\n3,7\n4,other\n", options, &softmax);
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, 4, 2, values, NULL));
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.target = true}));
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, 4, X, y, NULL, NULL, &kept));
    assert_true(y[0] == 1 && y[1] == 0 && y[2] == 1 && y[3] == 2);
    thi_reader_close(&reader);
    thi_encoder_clear(&encoder);
    thiele_table_destroy(table);
}

/* A fold knows the labels of the whole; of two, a selection that has both asks no further. */
static void test_selection(void **state)
{
    (void)state;
    thiele_table *table = parse("x,y\n1,a\n2,b\n3,c\n4,a\n5,a\n"), *some;
    thi_encoder encoder;
    const thi_column_options options = options_for("y");
    assert_ok(ctx, thiele_table_select(&some, ctx, table, (const int64_t[]){0, 1, 3}, 3));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, some, &options, &softmax));
    assert_labels(&encoder, "a|b|c");
    assert_near(encoder.target[0].mean, 1.0 / 3, 1e-15, 0);
    thi_encoder_clear(&encoder);
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, some, &options, &bernoulli));
    assert_labels(&encoder, "a|b");
    thi_encoder_clear(&encoder);
    thiele_table_destroy(some);
    assert_ok(ctx, thiele_table_select(&some, ctx, table, (const int64_t[]){3, 0, 4}, 3));
    assert_fails(ctx, thi_encoder_learn(&encoder, ctx, some, &options, &bernoulli), THIELE_ERROR_DATA,
                 "column 'y', row 3: 'c' is a third value after 'a' and 'b'");
    thiele_table_destroy(some);
    thiele_table_destroy(table);
    table = parse("x,y\n1,a\n2,b\n3,a\n4,a\n");
    assert_ok(ctx, thiele_table_select(&some, ctx, table, (const int64_t[]){3, 0, 2}, 3));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, some, &options, &bernoulli));
    assert_labels(&encoder, "a|b");
    assert_true(encoder.target[0].mean == -1 && encoder.target[0].variance == 0);
    thi_encoder_clear(&encoder);
    thiele_table_destroy(some);
    thiele_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary),          cmocka_unit_test(test_binary_refused),
        cmocka_unit_test(test_softmax),         cmocka_unit_test(test_labels_dropped),
        cmocka_unit_test(test_labels_limit),    cmocka_unit_test(test_classes),
        cmocka_unit_test(test_classes_refused), cmocka_unit_test(test_npy),
        cmocka_unit_test(test_selection),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

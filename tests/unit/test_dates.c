/*
 * Dates: which texts are dates of which form, the calendar against itself over eight centuries, and columns of dates as
 * inputs: what they become, on the way through JSON too, what is refused and what a hostile description can say.
 */
#include <math.h>
#include <thiele/table.h>

#include "encoder_testing.h"

static void expect_date(const char *text, thi_date_form form, double want)
{
    double days;
    if (!thi_date_read(text, strlen(text), form, &days) || fabs(days - want) > 1e-9) {
        fail_msg("'%s' is %.17g days, not %.17g", text, days, want);
    }
}

static void test_texts(void **state)
{
    (void)state;
    enum { JAN_31 = 19753 /* 2024 */ };
    static const char *const any[] = {"2024-01-31",  "2024/1/31",   "2024.01.31",       "31-Jan-2024",
                                      "31 jan 2024", "Jan 31 2024", "January 31, 2024", "2024-01-31T00:00Z"};
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) {
        for (int form = THI_YEAR_FIRST; form <= THI_MONTH_FIRST; form++) {
            expect_date(any[i], (thi_date_form)form, JAN_31);
        }
    }
    expect_date("31/01/2024", THI_DAY_FIRST, JAN_31);
    expect_date("31.1.2024", THI_DAY_FIRST, JAN_31);
    expect_date("1/31/2024", THI_MONTH_FIRST, JAN_31);
    expect_date("2024-01", THI_YEAR_FIRST, JAN_31 - 30);
    expect_date("2024-01-31 12:00", THI_YEAR_FIRST, JAN_31 + 0.5);
    expect_date("2024-01-31, 18:00:00", THI_YEAR_FIRST, JAN_31 + 0.75);
    expect_date("2024-01-31T00:00:00.5", THI_YEAR_FIRST, JAN_31 + 0.5 / 86400);
    expect_date("2024-01-31T02:00+02:00", THI_YEAR_FIRST, JAN_31);
    expect_date("2024-01-31T02:00-0400", THI_YEAR_FIRST, JAN_31 + 0.25);
    expect_date("31-Jan-2024 24:00", THI_YEAR_FIRST, JAN_31 + 1);
    expect_date("1969-12-31", THI_YEAR_FIRST, -1);
    expect_date("0000-03-01", THI_YEAR_FIRST, -719468);
    expect_date("06:30", THI_TIME_OF_DAY, 6.5 / 24);
    expect_date("6:30:36", THI_TIME_OF_DAY, 6.51 / 24);
}

static void test_no_dates(void **state)
{
    (void)state;
    static const char *const none[] = {"",
                                       "2024",
                                       "2024-13-01",
                                       "2024-02-30",
                                       "2023-02-29",
                                       "24-01-31",
                                       "31/01/24",
                                       "2024-1/31",
                                       "10.0.0.1",
                                       "1.2.3",
                                       "2024-01-31x",
                                       "2024-01-31T",
                                       "2024-01-31 25:00",
                                       "2024-01-31 10",
                                       "2024-01-31 10:60",
                                       "2024-01-31 10:00+99:00",
                                       "Foo 31, 2024",
                                       "31 J 2024",
                                       "2024-00-10",
                                       "2024 01 31",
                                       "20240131",
                                       "99999999999-01-01",
                                       "2024-01-31T10:00:0",
                                       "-2024-01-31",
                                       "31-Januaryy-2024",
                                       "2024-Jan-"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double days;
        for (int form = THI_NO_DATE; form < THI_DATE_FORMS; form++) {
            if (thi_date_read(none[i], strlen(none[i]), (thi_date_form)form, &days)) {
                fail_msg("'%s' is a date of form %d", none[i], form);
            }
        }
    }
    double days;
    assert_false(thi_date_read("31/01/2024", 10, THI_MONTH_FIRST, &days));
    assert_false(thi_date_read("31/01/2024", 10, THI_YEAR_FIRST, &days));
    assert_false(thi_date_read("31.01.2024", 10, THI_MONTH_FIRST, &days));
    assert_false(thi_date_read("2024-01-31", 10, THI_TIME_OF_DAY, &days));
    /* A text ends where it ends, not at a zero byte. */
    assert_true(thi_date_read("2024-01-311", 10, THI_YEAR_FIRST, &days) && days == 19753);
}

static void test_calendar(void **state)
{
    (void)state;
    char text[THI_DATE_MAX], before[THI_DATE_MAX] = "";
    for (double day = -135140; day < 157000; day++) { /* from 1600 to 2399 */
        thi_date_write(day, THI_YEAR_FIRST, text);
        expect_date(text, THI_YEAR_FIRST, day);
        assert_true(strcmp(before, text) < 0);
        memcpy(before, text, sizeof before);
    }
    thi_date_write(19753.5, THI_YEAR_FIRST, text);
    assert_string_equal(text, "2024-01-31T12:00:00");
    thi_date_write(19753 + 0.25 / 86400, THI_DAY_FIRST, text);
    assert_string_equal(text, "2024-01-31T00:00:00.250");
    thi_date_write(19754 - 1e-12, THI_YEAR_FIRST, text);
    assert_string_equal(text, "2024-02-01");
    thi_date_write(0.5, THI_TIME_OF_DAY, text);
    assert_string_equal(text, "12:00:00");
    thi_date_write(1e300, THI_YEAR_FIRST, text); /* whatever it is, it fits */
}

static void test_public(void **state)
{
    (void)state;
    char text[16];
    double days = 7;
    assert_true(thiele_date_read("31/01/2024", "day-month-year", &days) && days == 19753);
    assert_true(thiele_date_read("2024-01-31", NULL, &days) && days == 19753);
    days = 7;
    assert_false(thiele_date_read("31/01/2024", NULL, &days));
    assert_false(thiele_date_read("31/01/2024", "nonsense", &days));
    assert_false(thiele_date_read(NULL, NULL, &days) || thiele_date_read("2024-01-31", NULL, NULL));
    assert_true(days == 7);
    assert_true(thiele_date_write(19753.5, NULL, text, sizeof text));
    assert_string_equal(text, "2024-01-31T12:0");
    assert_true(thiele_date_write(0.25, "time", text, sizeof text));
    assert_string_equal(text, "06:00:00");
    assert_false(thiele_date_write(NAN, NULL, text, sizeof text) || thiele_date_write(1, "x", text, sizeof text) ||
                 thiele_date_write(1, NULL, NULL, 9) || thiele_date_write(1, NULL, text, 0));
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

static thi_encoder learn(const char *text)
{
    thi_encoder encoder;
    thi_column_options options = options_for("y");
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    thiele_table_destroy(table);
    return encoder;
}

static thiele_status read_all(const thi_encoder *encoder, const thiele_table *table, double *X, int64_t *kept)
{
    thi_reader reader;
    thiele_status status = thi_reader_open(&reader, ctx, encoder, table, &(thi_reading){.drop_missing = *kept > 0});
    if (status == THIELE_OK) {
        status = thi_reader_read(&reader, ctx, 0, table->rows, X, NULL, NULL, NULL, kept);
        thi_reader_close(&reader);
    }
    return status;
}

static void refused(const thi_encoder *encoder, const char *text, const char *part)
{
    double X[64];
    int64_t kept = 0;
    thiele_table *table = parse(text);
    assert_fails(ctx, read_all(encoder, table, X, &kept), THIELE_ERROR_DATA, part);
    thiele_table_destroy(table);
}

static void check_days(const thi_encoder *encoder, const char *text, int rows, const double *days)
{
    double X[64];
    int64_t kept = 1;
    thiele_table *table = parse(text);
    assert_ok(ctx, read_all(encoder, table, X, &kept));
    assert_int_equal(kept, rows);
    for (int i = 0; i < rows; i++) {
        assert_near(X[i * encoder->dims] * encoder->scale[0] + encoder->center[0], days[i], 1e-9, 1e-9);
    }
    thiele_table_destroy(table);
}

static void test_column(void **state)
{
    (void)state;
    thi_encoder encoder = learn("when,y\n2024-01-31 06:00,1\n2024-02-01,4\n2024-03-01,2\n2023-01-31,7\n"), again;
    assert_int_equal(encoder.dims, 1);
    assert_true(encoder.input[0].dates.form == THI_YEAR_FIRST && encoder.input[0].dates.from == 19753);
    assert_near(encoder.center[0], (0.25 + 1 + 30 - 365) / 4, 1e-14, 0);
    json_t *json = thi_encoder_to_json(&encoder);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(json, "inputs"), 0), "since")),
                        "2024-01-31");
    assert_ok(ctx, thi_encoder_from_json(&again, ctx, json));
    json_decref(json);
    assert_memory_equal(&again.input[0].dates.from, &encoder.input[0].dates.from, sizeof(double));
    check_days(&again, "z,when\n1,2024-02-02\n2,\n3,01-Feb-2024\n", 2, (const double[]){2, 1});
    refused(&again, "when\n2024-02-02\n2024-02-31\n",
            "column 'when', row 2: '2024-02-31' is not a date that can be read (write it like 2024-01-31");
    refused(&again, "when\n12\n", "column 'when', row 1: '12' is not a date");
    refused(&again, "when,z\n,1\n", "column 'when', row 1: no value");
    /* Where nothing can be written as a date, the number of days is what it says. */
    thiele_table *numbers;
    double X;
    int64_t kept = 0;
    assert_ok(ctx, thiele_table_from_rows(&numbers, ctx, 1, 1, (const double[]){30}, (const char *const[]){"when"}));
    assert_ok(ctx, read_all(&again, numbers, &X, &kept));
    assert_near(X, (30 - encoder.center[0]) / encoder.scale[0], 1e-15, 0);
    thiele_table_destroy(numbers);
    assert_ok(ctx, thi_encode_row(&again, ctx, (const double[]){30}, &X));
    assert_near(X, (30 - encoder.center[0]) / encoder.scale[0], 1e-15, 0);
    thi_encoder_clear(&encoder);
    thi_encoder_clear(&again);
}

/* One day beyond the twelfth tells which comes first; a row that contradicts the others is an error. */
static void test_order(void **state)
{
    (void)state;
    thi_encoder encoder = learn("when,y\n1/2/2024,1\n13/2/2024,4\n2024-02-14,2\n");
    assert_int_equal(encoder.input[0].dates.form, THI_DAY_FIRST);
    check_days(&encoder, "when\n2/2/2024\n", 1, (const double[]){1});
    refused(&encoder, "when\n2/13/2024\n", "'2/13/2024' is not a date that can be read (write it like 31/01/2024");
    thi_encoder_clear(&encoder);
    encoder = learn("when,y\n1/2/2024,1\n1/13/2024,4\n1/14/2024,2\n");
    assert_int_equal(encoder.input[0].dates.form, THI_MONTH_FIRST);
    thi_encoder_clear(&encoder);
    encoder = learn("at,y\n06:00,1\n12:00,4\n18:00:00,2\n");
    assert_int_equal(encoder.input[0].dates.form, THI_TIME_OF_DAY);
    check_days(&encoder, "at\n00:00\n21:00\n", 2, (const double[]){0, 0.875});
    refused(&encoder, "at\n25:00\n", "'25:00' is not a time that can be read (write it like 13:05");
    thi_encoder_clear(&encoder);
    thi_column_options options = options_for("y");
    thiele_table *table = parse("when,y\n2024-01-01,1\n2024-01-02,3\n2024-01-32,2\n2024-01-03,4\n");
    assert_fails(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL), THIELE_ERROR_DATA,
                 "column 'when', row 3: '2024-01-32' is not a date");
    thiele_table_destroy(table);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const lies[] = {"\"dates\":\"easter\",\"from\":1",
                                       "\"dates\":3,\"from\":1",
                                       "\"dates\":\"time\"",
                                       "\"dates\":\"time\",\"from\":\"1\"",
                                       "\"dates\":\"time\",\"from\":1e9",
                                       "\"dates\":\"time\",\"from\":1,\"levels\":[\"a\",\"b\"]"};
    assert_lies_refused(lies, sizeof lies / sizeof *lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_no_dates), cmocka_unit_test(test_calendar),
        cmocka_unit_test(test_public),  cmocka_unit_test(test_column),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Numbers from text: against the C library, at the edges of each way of scaling, and for what is no number. */
#include <float.h>
#include <locale.h>

#include "base/number.h"
#include "testing.h"

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A copy that ends where the text does: reading on is found by the sanitizer. */
static bool parse_exact(const char *text, size_t length, double *value)
{
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    bool is_number = thi_parse_number(copy, length, value);
    free(copy);
    return is_number;
}

static void check(const char *text)
{
    double got = -1, want = strtod(text, NULL);
    if (!parse_exact(text, strlen(text), &got) || bits_of(got) != bits_of(want)) {
        fail_msg("'%s': got %.17g, want %.17g", text, got, want);
    }
}

static uint64_t draw(uint64_t *index)
{
    return thi_random_bits((thi_stream){11, THI_RANDOM_DEMO, 0}, (*index)++);
}

/* Any double, as programs print them. */
static void test_printed_doubles(void **state)
{
    (void)state;
    uint64_t index = 0;
    char text[64];
    for (int i = 0; i < 100000; i++) {
        double value = from_bits(draw(&index));
        if (!isfinite(value)) {
            continue;
        }
        snprintf(text, sizeof text, "%.*g", 1 + (int)(draw(&index) % 20), value);
        check(text);
        value = ldexp((double)(int64_t)draw(&index), (int)(draw(&index) % 120) - 110);
        snprintf(text, sizeof text, "%.*g", 1 + (int)(draw(&index) % 20), value);
        check(text);
        snprintf(text, sizeof text, "%.*f", (int)(draw(&index) % 12), value);
        check(text);
    }
}

/* Random digits with a point and an exponent anywhere: up to 40 digits, all three ways. */
static void test_random_digits(void **state)
{
    (void)state;
    uint64_t index = 1u << 30;
    for (int i = 0; i < 200000; i++) {
        char text[96];
        int length = 0, digits = 1 + (int)(draw(&index) % (i % 2 == 0 ? 40 : 19));
        int point = (int)(draw(&index) % (unsigned)(digits + 4));
        if (draw(&index) % 3 == 0) {
            text[length++] = "+-"[draw(&index) % 2];
        }
        for (int d = 0; d < digits; d++) {
            if (d == point) {
                text[length++] = '.';
            }
            text[length++] = (char)('0' + draw(&index) % (draw(&index) % 4 == 0 ? 1 : 10));
        }
        if (draw(&index) % 2 == 0) {
            length += sprintf(text + length, "%c%d", "eE"[draw(&index) % 2], (int)(draw(&index) % 80) - 50);
        }
        text[length] = '\0';
        check(text);
    }
}

/* Numbers half way between two doubles, and one digit to either side: the worst there is for rounding. */
static void test_midpoints(void **state)
{
    (void)state;
    uint64_t index = 2u << 30;
    for (int i = 0; i < 20000; i++) {
        char text[1200];
        uint64_t odd = (draw(&index) >> 10) | 1 | (UINT64_C(1) << 53);
        int e = (int)(draw(&index) % 200) - 120;
        /* odd 2^e has 54 bits, the last of which is set; all its digits are printed */
        int length = snprintf(text, 1000, "%.*Lf", e < 0 ? -e : 0, ldexpl((long double)odd, e));
        assert_true(length > 0 && length < 1000);
        check(text);
        strcpy(text + length, e < 0 ? "0000000000000000000000001" : ".0000000001");
        check(text);
        for (char *last = text + length - 1; last >= text; last--) {
            if (*last >= '1' && *last <= '9') {
                text[length] = '\0';
                --*last;
                break;
            }
        }
        check(text);
    }
}

static void test_edges(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+0",
                                        "0.0",
                                        "00",
                                        "007",
                                        ".5",
                                        "5.",
                                        "-.5",
                                        "+5.e3",
                                        "1e22",
                                        "1e23",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740993.0000000000000000001",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "9999999999999999999",
                                        "99999999999999999999",
                                        "9999999999999999999e27",
                                        "9999999999999999999e-27",
                                        "9999999999999999999e28",
                                        "9999999999999999999e-28",
                                        "1e-27",
                                        "1e27",
                                        "4.9e-324",
                                        "2.4703282292062327208e-324",
                                        "2.47e-324",
                                        "2.2250738585072011e-308",
                                        "2.2250738585072014e-308",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "1e309",
                                        "-1e400",
                                        "1e-400",
                                        "0e999999999999999999999",
                                        "1e-999999999999999999999",
                                        "1e+999999999999999999999",
                                        "0.000000000000000000000000000000000000001e39",
                                        "12345678",
                                        "123456789",
                                        "1234567812345678",
                                        "12345678123456781234567812345678",
                                        "1.2345678",
                                        "1.23456789"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check(texts[i]);
    }
}

/* Thousands of digits and zeros: the exponent is counted, and digits beyond what is kept still decide a tie. */
static void test_long(void **state)
{
    (void)state;
    enum { LENGTH = 3000 };
    char text[LENGTH + 32];
    double value;
    memset(text, '0', LENGTH);
    text[1] = '.';
    strcpy(text + LENGTH, "1e2999");
    assert_true(parse_exact(text, strlen(text), &value));
    assert_true(value == 1);
    memset(text, '9', LENGTH);
    strcpy(text + LENGTH, "e-2999");
    check(text);
    /* 1 + 2^-53 is a tie that rounds down; with anything behind it up */
    memset(text, '0', LENGTH);
    const char *tie = "1.00000000000000011102230246251565404236316680908203125";
    memcpy(text, tie, strlen(tie));
    text[LENGTH] = '\0';
    assert_true(parse_exact(text, LENGTH, &value) && value == 1);
    text[LENGTH - 1] = '1';
    assert_true(parse_exact(text, LENGTH, &value) && value == 1 + DBL_EPSILON);
}

static void test_words(void **state)
{
    (void)state;
    double value;
    assert_true(parse_exact("inf", 3, &value) && value == INFINITY);
    assert_true(parse_exact("-Infinity", 9, &value) && value == -INFINITY);
    assert_true(parse_exact("+INF", 4, &value) && value == INFINITY);
    assert_true(parse_exact("NaN", 3, &value) && isnan(value));
    assert_true(parse_exact("-nan", 4, &value) && isnan(value));
    static const char *const others[] = {"",   "-",    "+",       ".",      "-.",   "e5",  ".e5", "1e",    "1e+",
                                         "1x", "1 ",   " 1",      "1,5",    "0x10", "--1", "+-1", "1.2.3", "1e5.0",
                                         "in", "infi", "infinit", "nan(1)", "n/a",  "one", "1d5", "1_000", "1e5e5"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (parse_exact(others[i], strlen(others[i]), &value)) {
            fail_msg("'%s' was taken for a number", others[i]);
        }
    }
    assert_false(parse_exact("1\0", 2, &value));
}

static void test_scan_stops(void **state)
{
    (void)state;
    double value;
    const char *text = "-12.5e3,7";
    assert_ptr_equal(thi_scan_number(text, text + 9, &value), text + 7);
    assert_true(value == -12500);
    assert_ptr_equal(thi_scan_number(text, text + 5, &value), text + 5);
    assert_true(value == -12.5);
    assert_ptr_equal(thi_scan_number(text, text + 6, &value), text + 5);
    assert_null(thi_scan_number(text, text + 1, &value));
    assert_null(thi_scan_number(text, text, &value));
    assert_null(thi_scan_number(text + 7, text + 9, &value));
}

/* Where there is a locale with a decimal comma, it changes nothing. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    double value;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            assert_true(parse_exact("1.5", 3, &value) && value == 1.5);
            assert_true(parse_exact("1.00000000000000000000000000001e-300", 36, &value) && value == 1e-300);
            assert_false(parse_exact("1,5", 3, &value));
        }
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printed_doubles), cmocka_unit_test(test_random_digits), cmocka_unit_test(test_midpoints),
        cmocka_unit_test(test_edges),           cmocka_unit_test(test_long),          cmocka_unit_test(test_words),
        cmocka_unit_test(test_scan_stops),      cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Decimal text to the nearest double, whatever the locale.
 *
 * A number is w 10^e with w an integer. Three ways, each exactly rounded:
 *   w <= 2^53, |e| <= 22     w and 10^|e| are doubles: one multiplication or division (W. D. Clinger, "How to read
 * floating point numbers accurately", PLDI 1990) w < 2^64, |e| <= 27      5^|e| < 2^64: an exact 128-bit product, or
 * quotient with its remainder kept as a sticky bit anything else            the C library, from digits rewritten
 * without a decimal point, which no locale can change Numbers of 17 digits, as programs print them, take the second
 * way: about three times the speed of the third.
 */
#include "base/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "double arithmetic must round to double");

__extension__ typedef unsigned __int128 wide;

enum {
    MANTISSA_DIGITS = 19, /* always fit in 64 bits */
    EXACT_POWER = 22,     /* 10^22 is a double */
    WIDE_POWER = 27,      /* 5^27 < 2^64 */
    /* No double and no midpoint of two has more significant digits than 767; what follows matters only by being there.
     */
    KEPT_DIGITS = 768,
    EXPONENT_LIMIT = 99999
};

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/*
 * Appends the digits at s to *w, modulo 2^64; returns where they end. Eight at a time, and without a branch on how many
 * there are: in a table of numbers nothing is harder to predict.
 */
static inline __attribute__((always_inline)) const char *scan_digits(const char *s, const char *end, uint64_t *w)
{
    static const uint64_t ten[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t sum = *w;
    int count = 8;
    while (count == 8 && end - s >= 8) {
        uint64_t t = thi_load_eight(s) ^ 0x3030303030303030u;
        count = thi_leading_digits(t);
        t = thi_keep_digits(t, count);
        sum = sum * ten[count] + thi_join_digits(t);
        s += count;
    }
    while (count == 8 && s < end && is_digit(*s)) {
        sum = sum * 10 + (uint64_t)(*s++ - '0');
    }
    *w = sum;
    return s;
}

/* Adds the exponent at s ('e', sign, digits) to *e; returns s itself when there is none. */
static const char *scan_exponent(const char *s, const char *end, int64_t *e)
{
    const int64_t huge = INT64_C(1000000000000000);
    const char *p = s + 1;
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+')) {
        negative = *p++ == '-';
    }
    if (p >= end || !is_digit(*p)) {
        return s;
    }
    int64_t exponent = 0;
    for (; p < end && is_digit(*p); p++) {
        exponent = exponent < huge ? exponent * 10 + (*p - '0') : exponent;
    }
    *e += negative ? -exponent : exponent;
    return p;
}

/* 2^e for e in the range of normal numbers. */
static double power_of_two(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/*
 * w 10^e, w > 0, |e| <= 27: 64 leading bits of the exact result, the last one also telling whether anything was cut
 * off. Their conversion to double rounds once; the scaling by a power of two is exact.
 */
static double wide_power(uint64_t w, int e)
{
    /* clang-format off */
    static const uint64_t five[WIDE_POWER + 1] = {
        1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u, 244140625u,
        1220703125u, 6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u,
        95367431640625u, 476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u,
        298023223876953125u, 1490116119384765625u, 7450580596923828125u
    };
    /* clang-format on */
    int lead = __builtin_clzll(w);
    w <<= lead;
    if (e < 0) {
        int shift = __builtin_clzll(five[-e]);
        uint64_t divisor = five[-e] << shift;
        wide dividend = (wide)w << 63;
        uint64_t quotient = (uint64_t)(dividend / divisor);
        quotient |= dividend != (wide)quotient * divisor;
        return (double)quotient * power_of_two(e - 63 + shift - lead);
    }
    wide product = (wide)w * five[e];
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if (high == 0) {
        return (double)low * power_of_two(e - lead);
    }
    int shift = __builtin_clzll(high);
    product <<= shift;
    high = (uint64_t)(product >> 64) | ((uint64_t)product != 0);
    return (double)high * power_of_two(e + 64 - shift - lead);
}

static int clamp_exponent(int64_t e)
{
    return (int)(e > EXPONENT_LIMIT ? EXPONENT_LIMIT : e < -EXPONENT_LIMIT ? -EXPONENT_LIMIT : e);
}

/* w 10^e for what is not as easy as w and 10^|e| being doubles. */
static double scale_hard(uint64_t w, int64_t e)
{
    if (w == 0) {
        return 0.0;
    }
    if (e >= -WIDE_POWER && e <= WIDE_POWER) {
        return wide_power(w, (int)e);
    }
    char buffer[48];
    snprintf(buffer, sizeof buffer, "%" PRIu64 "e%d", w, clamp_exponent(e));
    return strtod(buffer, NULL);
}

/*
 * More than 19 significant digits in text[0..stop-text-1] (digits and a point), times 10^e counted from the last one.
 */
static double scale_long(const char *text, const char *stop, int64_t e)
{
    char buffer[KEPT_DIGITS + 32];
    int kept = 0;
    bool rest = false;
    int64_t cut = 0;
    for (; text < stop; text++) {
        if (*text == '.' || (kept == 0 && *text == '0')) {
            continue;
        }
        if (kept < KEPT_DIGITS) {
            buffer[kept++] = *text;
        } else {
            cut++;
            rest = rest || *text != '0';
        }
    }
    if (rest) {
        buffer[kept++] = '1';
        cut--;
    }
    snprintf(buffer + kept, sizeof buffer - (size_t)kept, "e%d", clamp_exponent(e + cut));
    return strtod(buffer, NULL);
}

/* Whether digits with a point between them number more than 19 when leading zeros are left out. */
static bool is_long(const char *text, const char *stop)
{
    int64_t digits = stop - text;
    for (; text < stop && (*text == '0' || *text == '.'); text++) {
        digits--;
    }
    digits -= memchr(text, '.', (size_t)(stop - text)) != NULL;
    return digits > MANTISSA_DIGITS;
}

/*
 * The value without its sign: the digits in first[0..stop-first-1] are w, times 10^e. Apart, to keep the way past it
 * short.
 */
static __attribute__((noinline)) double scale_rest(const char *first, const char *stop, uint64_t w, int64_t e)
{
    return stop - first > MANTISSA_DIGITS && is_long(first, stop) ? scale_long(first, stop, e) : scale_hard(w, e);
}

static double with_sign(double magnitude, bool negative)
{
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits |= (uint64_t)negative << 63;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude;
}

const char *thi_scan_number(const char *text, const char *end, double *value)
{
    static const double ten[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (text >= end) {
        return NULL;
    }
    /* signs are as good as random: no branch on them */
    const bool negative = *text == '-';
    const char *first = text + (negative | (*text == '+'));
    uint64_t w = 0;
    int64_t e = 0;
    const char *s = scan_digits(first, end, &w);
    int64_t digits = s - first;
    if (s < end && *s == '.') {
        const char *fraction = s + 1;
        s = scan_digits(fraction, end, &w);
        e = fraction - s;
        digits -= e;
    }
    if (digits == 0) {
        return NULL;
    }
    const char *stop = s;
    if (s < end && (*s == 'e' || *s == 'E')) {
        s = scan_exponent(s, end, &e);
    }
    double magnitude;
    if (digits <= MANTISSA_DIGITS && w <= (UINT64_C(1) << 53) && e >= -EXACT_POWER && e <= EXACT_POWER) {
        magnitude = e < 0 ? (double)(int64_t)w / ten[-e] : (double)(int64_t)w * ten[e];
    } else {
        magnitude = scale_rest(first, stop, w, e);
    }
    *value = with_sign(magnitude, negative);
    return s;
}

/* Whether text[0..length-1] is the lower-case word, in any case. */
static bool is_word(const char *text, size_t length, const char *word)
{
    if (length != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if ((text[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return true;
}

bool thi_parse_number(const char *text, size_t length, double *value)
{
    const char *end = text + length;
    const char *stop = thi_scan_number(text, end, value);
    if (stop != NULL) {
        return stop == end;
    }
    bool sign = length > 0 && (*text == '-' || *text == '+');
    bool negative = sign && *text == '-';
    text += sign;
    length -= sign;
    if (is_word(text, length, "inf") || is_word(text, length, "infinity")) {
        *value = negative ? -INFINITY : INFINITY;
        return true;
    }
    if (is_word(text, length, "nan")) {
        *value = NAN;
        return true;
    }
    return false;
}

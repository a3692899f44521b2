/* The scanner under thi_parse_number, and what it is made of, for readers that find the end of a number by reading it.
 */
#ifndef THI_NUMBER_H
#define THI_NUMBER_H

#include <string.h>

#include "base/base.h"

/*
 * Reads the longest decimal number (sign, digits, point, exponent; no inf or nan) that text[0..] begins with; nothing
 * at or behind `end` is touched. Returns where it stopped, NULL when there is no number.
 */
const char *thi_scan_number(const char *text, const char *end, double *value);

/* --- eight digits at once ------------------------------------------------------------------------------------------
 */

/* Eight characters as one word, the first in the lowest byte. */
static inline uint64_t thi_load_eight(const char *s)
{
    uint64_t v;
    memcpy(&v, s, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/*
 * The number of leading digits in eight characters, of which t is the exclusive or with "00000000": a digit is then
 * 0..9, and adding 0x76 to anything larger sets the top bit of its byte. A carry reaches only the bytes behind the
 * first such one.
 */
static inline int thi_leading_digits(uint64_t t)
{
    uint64_t others = ((t + 0x7676767676767676u) | t) & 0x8080808080808080u;
    return others == 0 ? 8 : __builtin_ctzll(others) >> 3;
}

/* Leading zeros take the place of all but the first `count`; two shifts, as one by 64 is undefined. */
static inline uint64_t thi_keep_digits(uint64_t t, int count)
{
    return count == 8 ? t : (t << 8) << (56 - 8 * count);
}

/* Neighbours are joined thrice: digits to pairs, pairs to fours, fours to eight; each by one multiplication. */
static inline uint64_t thi_join_digits(uint64_t t)
{
    t = (t * ((10u << 8) + 1) >> 8) & 0x00FF00FF00FF00FFu;
    t = (t * ((100u << 16) + 1) >> 16) & 0x0000FFFF0000FFFFu;
    return t * (((uint64_t)10000 << 32) + 1) >> 32;
}

#endif

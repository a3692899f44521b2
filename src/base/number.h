/* The scanner under thi_parse_number, for readers that find the end of a number by reading it. */
#ifndef THI_NUMBER_H
#define THI_NUMBER_H

#include "base/base.h"

/*
 * Reads the longest decimal number (sign, digits, point, exponent; no inf or nan) that text[0..] begins with; nothing
 * at or behind `end` is touched. Returns where it stopped, NULL when there is no number.
 */
const char *thi_scan_number(const char *text, const char *end, double *value);

#endif
